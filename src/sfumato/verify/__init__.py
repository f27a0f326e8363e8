"""Checks a release on its own: nothing here was used to make it.

``folder`` has :func:`verify_folder` and :func:`verify_table`, and decides every requirement; ``groups`` and
``portions`` count the published rows, in memory and beyond it; ``cells``, ``figures``, ``files``, ``recoding`` (with
``tree_boxes``) and ``statistics`` hold the parts of a release against each other; ``diffgen`` and ``risk_utility``
check what those methods promise. ``checks`` are the sentences.
"""
