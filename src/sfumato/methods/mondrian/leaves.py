"""Leaves of the top of the tree that are still worked on, and what is known of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.protocol import Rows
from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.allowances import NOTHING, Allowance
from sfumato.methods.mondrian.node_counts import NodeCounts
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.subtree import FileRanges

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Siblings:
    """The children of a split, and the counts of their parent."""

    n: int
    parent: NodeCounts


@dataclass(slots=True)
class Leaf:
    """A leaf of the top that is still worked on."""

    node: int
    known: NodeRange
    n_rows: int
    covers: Ints | None = None
    """The hierarchy nodes that cover its rows, once it is known that nothing splits it."""
    siblings: Siblings | None = None
    """The children of the same split, if what it was chosen from is still known."""
    allowance: Allowance = NOTHING
    """What of it may be left out."""

    @property
    def is_final(self) -> bool:
        return self.covers is not None


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Siblings by their places in a list of leaves: those that are counted, and the largest, which need not be."""

    parent: NodeCounts
    counted: list[int]
    largest: int

    @property
    def n_bytes(self) -> int:
        return self.parent.plan.n_bytes * (1 + len(self.counted))


def part_largest(members: Sequence[int], leaves: Sequence[Leaf]) -> tuple[list[int], int]:
    """All members but the one with most rows, and that one."""
    largest = max(members, key=lambda at: leaves[at].n_rows)
    return [at for at in members if at != largest], largest


@dataclass(frozen=True, slots=True, eq=False)
class DividedTree:
    """A tree that satisfies the requirement: the rows of each node, and the parts that hold them."""

    nodes: Nodes
    n_rows: Ints
    ranges: FileRanges
    parts: Sequence[Rows]

    def parts_of(self, node: int) -> Sequence[Rows]:
        return self.parts[self.ranges.first[node] : self.ranges.last[node] + 1]
