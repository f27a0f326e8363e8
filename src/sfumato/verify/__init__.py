"""Checks a release on its own: nothing here was used to make it.

``folder`` re-checks a release of ours, ``table`` a table of any tool. ``measure`` finds the groups of the published rows
and what is claimed of them, ``requirements`` defines every requirement anew, and ``sql`` writes the definitions for a
warehouse. ``opening``, ``columns``, ``groups`` and ``portions`` read, name and count rows, in memory and beyond it;
``cells``, ``figures``, ``files``, ``recoding`` (with ``tree_boxes``) and ``statistics`` hold the parts of a release
against each other; ``diffgen`` and ``risk_utility`` check what those methods promise. ``checks`` are the sentences.
"""
