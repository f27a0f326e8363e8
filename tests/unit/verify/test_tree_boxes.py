"""Boxes of a tree's leaves, held against a walk from each leaf up to the root."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.verify.tree_boxes import NO_END, Changes, find_pieces


@st.composite
def trees(draw):
    """Changes, and how many axes there are: every node after the root has a parent before it."""
    n, n_axes = draw(st.integers(1, 30)), draw(st.integers(1, 3))
    numbers = st.integers(0, 2**31 - 1)
    parent = [0, *(draw(numbers) % node for node in range(1, n))]
    axis = [draw(st.integers(0, n_axes - 1)) for _ in range(n)]
    is_high = [draw(st.booleans()) for _ in range(n)]
    end = [draw(st.integers(0, 5)) for _ in range(n)]
    return Changes(*map(np.array, (parent, axis, is_high, end))), n_axes


def box_of(node: int, changes: Changes, n_axes: int) -> list[tuple[int, int]]:
    """The last change of each end on the way down."""
    ends = {(a, is_high): NO_END for a in range(n_axes) for is_high in (False, True)}
    way = []
    while node:
        way.append(node)
        node = int(changes.parent[node])
    for below in reversed(way):
        ends[int(changes.axis[below]), bool(changes.is_high[below])] = int(changes.end[below])
    return [(ends[a, False], ends[a, True]) for a in range(n_axes)]


def boxes_found(changes: Changes, n_axes: int) -> tuple[list[int], list[list[tuple[int, int]]]]:
    above = np.unique(changes.parent[1:])
    leaves = np.setdiff1d(np.arange(len(changes.parent)), above)
    found = find_pieces(changes, above, leaves, n_axes)
    rows = [
        list(zip(found.low[column].tolist(), found.high[column].tolist(), strict=True))
        for column in found.of_leaf
    ]
    return leaves.tolist(), [list(box) for box in zip(*rows, strict=True)]


@given(trees())
def test_a_leaf_has_the_last_change_of_each_end(tree):
    leaves, boxes = boxes_found(*tree)
    assert boxes == [box_of(leaf, *tree) for leaf in leaves]


@pytest.mark.parametrize("n", [1, 2, 300])
def test_a_tree_may_be_a_chain_of_any_length(n):
    node = np.arange(n)
    chain = Changes(np.maximum(node - 1, 0), np.zeros(n, dtype=np.int64), node % 2 == 1, node)
    assert boxes_found(chain, 1) == ([n - 1], [box_of(n - 1, chain, 1)])
