"""Checks a release on its own: nothing here was used to make it.

``folder`` checks a release of ours again, ``table`` a table of any tool, ``drafts`` rows that are about to be published.
``measure`` finds groups and what is claimed of them, ``requirements`` defines every requirement anew, ``sql`` writes
the definitions for a warehouse, and ``warehouse`` measures rows by what one answers. ``rows`` opens published rows and
names their columns; ``groups`` and ``portions`` group them, in memory and beyond it. ``cells``, ``figures``,
``files``, ``statistics`` and ``recoding`` (with ``tree_boxes``) compare the parts of a release with each other;
``diffgen`` and ``risk_utility`` check what those methods promise. ``checks`` are the sentences.
"""
