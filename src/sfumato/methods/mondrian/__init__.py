"""Mondrian: a tree of splits, each chosen for the rows of its own node [LDR06a; LDR08].

``grow`` makes the groups of a table in memory, ``rothko`` those of a table on disk (``sample`` and ``sample_tests``
for Rothko-S); ``criteria`` turns requirements and workload into what the kernels are told. ``splits``,
``frequency_sets`` and ``feature_cells`` choose a split from counts when its rows are on disk. ``node_range`` is what is
known of a node's codes, ``memory_plan`` divides the memory of a run, ``tree_top`` and ``subtree`` are parts of a tree,
``begun_tree`` and ``covers`` go on with them in memory. ``estimator`` is
:class:`Mondrian` for scikit-learn; ``refusals`` says why a column was not split.
"""
