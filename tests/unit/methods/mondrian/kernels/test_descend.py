"""Rows of codes go down a tree: the fast way against the obvious one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trees import Building, axes_from, trees

from sfumato.methods.mondrian.kernels.descend import TOGETHER, Descent


def leaf_of(row, tree: Building) -> int:
    node = 0
    while tree.axis[node] >= 0:
        code = int(row[tree.axis[node]])
        below = range(tree.first_child[node], tree.first_child[node] + tree.n_children[node])
        if tree.axes.is_tree[tree.axis[node]]:
            node = next(
                (
                    c
                    for c in below
                    if tree.axes.node_low[tree.branch[c]] <= code < tree.axes.node_high[tree.branch[c]]
                ),
                -1,
            )
            if node < 0:
                return -1
        else:
            node = below[code > tree.threshold[node]]
    return node


@given(trees())
@settings(max_examples=200)
def test_every_row_reaches_its_leaf_and_a_stranger_none(case):
    axes, rows, tree = case
    assert Descent(tree.nodes(), axes).leaves(rows).tolist() == [leaf_of(row, tree) for row in rows]


@given(trees(all_children=True, least=1), st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_further_columns_and_more_rows_than_go_together_change_nothing(case, seed):
    axes, rows, tree = case
    random = np.random.default_rng(seed)
    many = rows[random.integers(0, len(rows), TOGETHER + 7)]
    wide = np.concatenate([many, random.integers(0, 9, (len(many), 2)).astype(np.uint32)], axis=1)
    found = Descent(tree.nodes(), axes).leaves(wide)
    assert found.tolist() == [leaf_of(row, tree) for row in many]
    assert (found >= 0).all()


def test_a_tree_of_one_leaf_takes_every_row():
    axes = axes_from([4])
    tree = Building.of(axes, [4], 3)
    rows = np.zeros((3, 1), dtype=np.uint32)
    assert Descent(tree.nodes(), axes).leaves(rows).tolist() == [0, 0, 0]
    assert Descent(tree.nodes(), axes).leaves(rows[:0]).tolist() == []


@pytest.mark.parametrize("code", [0, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
def test_codes_and_thresholds_use_all_their_bits(code):
    axes = axes_from([9])
    tree = Building.of(axes, [2**32], 1)
    rows = np.array([[code]], dtype=np.uint32)
    for threshold in {max(code - 1, 0), min(code, 2**32 - 2)}:
        tree = Building.of(axes, [2**32], 1)
        tree.split_at(0, 0, threshold, rows)
        assert Descent(tree.nodes(), axes).leaves(rows).tolist() == [1 if code <= threshold else 2]
