"""From boxes to published cells, for any row.

``axis`` is one column of a recoding, ``recoder`` what all recodings share; ``tree`` (grown by splits, with ``ways``
through it) and ``cuts`` (one for each column) are the two kinds. ``tree_file`` and ``large_tree`` hold trees that
exceed memory. ``groups`` are rows that share a box; ``rows``, ``counts`` and ``statistics`` are the three forms in
which they are published.
"""
