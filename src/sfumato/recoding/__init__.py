"""From boxes to published cells, for any row.

``axis`` is one column of a recoding, ``recoder`` what all recodings share, and the groups of a table; ``tree`` (with its
``splits``) and ``cuts`` (one for each column) are the two kinds. ``tree_file`` and ``large_tree`` hold trees that exceed
memory. ``rows``, ``counts`` and ``statistics`` are what is published: rows, counts of a grid, and figures of groups.
"""
