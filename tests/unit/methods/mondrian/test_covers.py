"""The hierarchy nodes that cover rows which are read block by block."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from small_trees import axes_from

from sfumato.engines.protocol import Block
from sfumato.methods.mondrian.covers import CodeEnds, find_covers

AXES = axes_from([[[[], []], [[], [], []]], 9])  # a hierarchy of 2 and 3 leaves, and a number
CODES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), min_size=1, max_size=9)


@given(CODES, st.integers(1, 4))
def test_the_cover_is_the_lowest_node_that_has_every_code_below_it(rows, block):
    codes = np.array(rows, dtype=np.uint32)
    ends = CodeEnds(2)
    with_target = np.column_stack([codes, np.full(len(codes), 99, dtype=np.uint32)])
    for start in range(0, len(codes), block):
        ends.add(Block(np.ascontiguousarray(with_target[start : start + block]), None))
    assert ends.get().tolist() == [codes.min(axis=0).tolist(), codes.max(axis=0).tolist()]
    least, greatest = codes[:, 0].min(), codes[:, 0].max()
    covering = [
        node
        for node in range(len(AXES.node_low))
        if AXES.node_low[node] <= least and greatest < AXES.node_high[node]
    ]
    smallest = min(covering, key=lambda node: (AXES.node_high[node] - AXES.node_low[node], -node))
    assert find_covers(AXES, ends.get()).tolist() == [smallest, -1]
