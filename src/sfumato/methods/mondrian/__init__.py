"""Mondrian: a tree of splits, each chosen for the rows of its own node [LDR06a; LDR08].

``method`` is what ``publish`` calls, and ``estimator`` is :class:`Mondrian` for scikit-learn. ``tree_run`` makes the
groups of a table on any engine (with ``sample`` and ``sample_tests`` for Rothko-S), and a ``piece`` is a part that
is loaded.

``criteria`` turns requirements and workload into a ``problem``: what the kernels are told. ``memory`` grows a tree whose
rows are in memory. ``splits`` chooses a split by the same kernels from counts (``node_counts``, ``statistics``,
``cell_scores``, ``candidates``) where the rows are somewhere else. ``node_range`` is what is known of a node's codes;
``tree_top``, ``subtree`` and ``begun_tree`` are parts of a tree; ``covers`` finds hierarchy nodes that cover rows;
``passes`` is what ``tree_run`` asks of an engine.
"""
