"""Trees that growth in memory starts from: the order of rows, and what splits above say of each leaf."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trees import trees

from sfumato.engines.protocol import Loaded
from sfumato.methods.mondrian.begun_tree import begin_tree, find_leaf_bounds
from sfumato.methods.mondrian.kernels.problem import COVER, HIGH, IS_EXACT, LOW
from sfumato.methods.mondrian.node_range import NodeRange


@given(trees(least=1, max_splits=12), st.booleans())
@settings(max_examples=200)
def test_leaves_know_what_the_splits_above_them_say(case, has_queries):
    axes, rows, tree = case
    nodes = tree.nodes()
    n_codes = [high for _, high in tree.region[0]]
    root = NodeRange.of_root(axes, n_codes, has_queries=has_queries)
    leaves = [node for node in range(len(tree.axis)) if tree.axis[node] < 0]
    in_tree = np.sort(
        np.concatenate([tree.members[leaf] for leaf in leaves])
    )  # it may lack some hierarchy nodes
    begun, order = begin_tree(nodes, Loaded(rows[in_tree]), root, axes)
    assert order is not None
    found = find_leaf_bounds(nodes, root, axes)
    assert list(begun.leaves) == found.leaf.tolist() == leaves
    for leaf in leaves:
        here = begun.leaves[leaf]
        assert here.bounds[LOW].tolist() == [low for low, _ in tree.region[leaf]]
        assert here.bounds[HIGH].tolist() == [high - 1 for _, high in tree.region[leaf]]
        is_tree = np.flatnonzero(axes.is_tree)
        assert here.bounds[COVER][is_tree].tolist() == np.array(tree.node_of[leaf])[is_tree].tolist()
        assert not here.bounds[IS_EXACT].any()
        own = in_tree[order[here.start : here.end]]
        assert own.tolist() == tree.members[leaf].tolist(), "in the order of the table"
        assert found.bounds[found.leaf == leaf][0].tolist() == here.bounds.tolist()
        assert (here.region is not None) == has_queries
        if here.region is None:
            continue
        for axis in np.flatnonzero(~axes.is_tree):
            low, high = tree.region[leaf][axis]
            after, last = here.region[:, axis]
            assert after == low - 1
            assert last == (high - 1 if high < n_codes[axis] else np.iinfo(np.int64).max)
        whole = root.as_region()
        assert whole is not None
        assert here.region[:, axes.is_tree].tolist() == whole[:, axes.is_tree].tolist()
        assert found.regions is not None
        assert found.regions[found.leaf == leaf][0].tolist() == here.region.tolist()
