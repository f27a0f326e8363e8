"""A partition tree grown level by level from splitters alone, rows being seen only block by block.

The tests compare it with growth in memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from growing import Prepared

from sfumato.encoding.domain import Domain
from sfumato.engines.protocol import Block
from sfumato.methods.mondrian.node_counts import SplitCriteria
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.splits import Split, Splitter
from sfumato.table.spill import Spill

Rows = Any
Box = tuple[tuple[int, ...], ...]


def criteria_of(problem: Prepared, queries: Any = None) -> SplitCriteria:
    return SplitCriteria(problem if queries is None else replace(problem, queries=queries))


def n_codes(domains: tuple[Domain, ...]) -> list[int]:
    return [max(1, domain.n_codes) for domain in domains]


def decide(
    criteria: SplitCriteria,
    state: NodeRange,
    rows: Rows,
    *,
    memory: int,
    block: int,
    spill: Spill | None = None,
) -> tuple[Splitter, int]:
    """The splitter on some rows, and how many passes it took."""
    splitter = Splitter(criteria, state, len(rows))
    passes = 0
    while splitter.plan is not None:
        states = [splitter.plan.new(memory, spill) for _ in range(3)]
        for i, start in enumerate(range(0, len(rows), block)):
            states[i % 3].add(Block(np.ascontiguousarray(rows[start : start + block]), None))
        states[2].merge(states[0])
        states[1].merge(states[2])
        states[0].discard()
        states[2].discard()
        splitter.take(states[1])
        passes += 1
        assert passes < 5000
    return splitter, passes


def leaves(
    criteria: SplitCriteria, state: NodeRange, rows: Rows, *, memory: int = 1 << 40, block: int = 7
) -> list[Any]:
    """(numbers of the rows, splits on the way, covers) of each leaf; the last column is the row number."""
    found = []
    level: list[tuple[NodeRange, Rows, tuple[Any, ...]]] = [(state, rows, ())]
    while level:
        below = []
        for here, part, way in level:
            splitter, _ = decide(criteria, here, part, memory=memory, block=block)
            split = splitter.result
            if split is None:
                found.append((frozenset(part[:, -1].tolist()), way, tuple(splitter.covers.tolist())))
                continue
            place = split.places(part[:, split.axis])
            assert np.bincount(place, minlength=len(split.branches)).tolist() == split.sizes
            for j, child in enumerate(split.ranges):
                below.append((child, part[place == j], (*way, step(split, j))))
        level = below
    return found


def step(split: Split, j: int) -> tuple[int, int, int]:
    return split.axis, split.threshold, split.branches[j]


def leaves_in_memory(problem: Prepared, queries: Any = None) -> list[Any]:
    """``leaves`` as ``TreeGrower`` finds them."""
    engine = problem.engine
    nodes = engine.grow(problem if queries is None else replace(problem, queries=queries))
    covers = engine.covers(nodes, problem.axes)
    numbers = engine.row_numbers()
    ways: dict[int, tuple[Any, ...]] = {0: ()}
    found = []
    leaf = 0
    for node in range(len(nodes.axis)):
        if nodes.axis[node] < 0:
            members = frozenset(numbers[nodes.start[node] : nodes.end[node]].tolist())
            found.append((members, ways[node], tuple(covers[leaf].tolist())))
            leaf += 1
        for j in range(nodes.n_children[node]):
            child = int(nodes.first_child[node]) + j
            here = (int(nodes.axis[node]), int(nodes.threshold[node]), int(nodes.branch[child]))
            ways[child] = (*ways[node], here)
    return found
