"""Published cells of a block, looked up."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.recoding.decision_list import CellList, NumberCells, TreeCells

PLACES = Hierarchy.from_tree(
    {"*": {"North": {"n": ["a", "b"]}, "c": None, "South": {"s": ["d"], "t": ["e", "f"]}}}
)
AXES = (NumberCells(10, 0.5, 20, has_missing=True), TreeCells(PLACES, 3))
VALUES = st.sampled_from([-np.inf, 3.0, 10.0, 10.4, 10.5, 13.0, 17.25, 20.0, 99.0])
NODES = st.sampled_from(PLACES.leaf_nodes.tolist())


def contains(level: tuple[int, int], key: tuple[int, int], value: float, node: int) -> bool:
    """Does a cell contain a row? By definition."""
    path = [node]
    while path[0]:
        path.insert(0, int(PLACES.parent[path[0]]))
    if path[: 3 - level[1] + 1][-1] != key[1]:
        return False
    if level[0] == 6:  # 32 steps hold all values, and one more missing
        return key[0] == 0
    if value == -np.inf:
        return key[0] == -1
    step = min(20, max(0, math.floor((value - 10) / 0.5 + 0.5)))
    return key[0] == step // 2 ** level[0]


@st.composite
def lists(draw: st.DrawFn) -> CellList:
    """Cells of rows, each cell once; those of one level vector need not stand together."""
    vectors = st.tuples(st.integers(0, 6), st.integers(0, 3))
    cells = []
    for level, value, node in draw(st.lists(st.tuples(vectors, VALUES, NODES), max_size=12)):
        key = [
            int(AXES[0].keys(level[0], np.array([value]))[0]),
            int(AXES[1].keys(level[1], np.array([node]))[0]),
        ]
        if (level, key) not in cells:
            cells.append((level, key))
    levels = np.array([level for level, _ in cells], dtype=np.int64).reshape(-1, 2)
    return CellList(AXES, levels, np.array([key for _, key in cells], dtype=np.int64).reshape(-1, 2))


@given(lists(), st.lists(st.tuples(VALUES, NODES), min_size=1, max_size=30))
def test_a_row_belongs_to_the_first_cell_that_contains_it(cells, rows):
    pairs = list(zip(map(tuple, cells.levels.tolist()), map(tuple, cells.keys.tolist()), strict=True))
    expected = [
        next((i for i, (level, key) in enumerate(pairs) if contains(level, key, *row)), len(pairs))
        for row in rows
    ]
    columns = [np.array([row[0] for row in rows]), np.array([row[1] for row in rows])]
    assert cells.locate(columns).tolist() == expected


def test_a_value_that_nobody_knows_goes_to_the_pool_unless_a_cell_holds_all():
    north, root = 1, 0
    fine = CellList(AXES, np.array([[6, 1]]), np.array([[0, 2]]))  # level 1: the nodes n, c, s, t
    assert fine.locate([np.array([10.0]), np.array([north])]).tolist() == [1]
    whole = CellList(AXES, np.array([[6, 3]]), np.array([[0, root]]))
    assert whole.locate([np.array([np.nan]), np.array([north])]).tolist() == [0]
