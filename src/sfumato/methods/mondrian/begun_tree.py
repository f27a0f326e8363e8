"""Trees that growth in memory starts from: a root alone, or the upper part of a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes
from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.kernels.problem import NODE, Table
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.subtree import list_children

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]


@dataclass(slots=True)
class OpenNode:
    """A node that is still to be split: its rows, and what is known of their codes.

    With a ``region``, splits that serve selections come first, see ``split_for_queries``.
    """

    start: int
    end: int
    bounds: Ints  # (4, axes), see ``NodeRange.as_bounds``
    region: Ints | None = None  # (2, axes), see ``NodeRange.as_region``

    @classmethod
    def of(cls, start: int, end: int, known: NodeRange) -> OpenNode:
        """A node with these rows, in a form that kernels read."""
        return cls(start, end, known.as_bounds(), known.as_region())

    @property
    def n_rows(self) -> int:
        return self.end - self.start

    def first_of(self, capacity: int) -> Table:
        """A table of ``capacity`` nodes (NODE), of which this one is the first and the others are to be filled in."""
        nodes = np.empty(capacity, dtype=NODE).view(np.recarray)
        nodes[0] = (-1, 0, self.start, self.end, -1, -1, 0)
        return nodes


@dataclass(slots=True)
class BegunTree:
    """The upper part of a tree whose rows are in the order of its leaves, and the leaves that may be split on."""

    nodes: Table  # NODE
    leaves: dict[int, OpenNode]

    @classmethod
    def of_root(cls, known: NodeRange, n_rows: int) -> BegunTree:
        """A tree that has only its root so far."""
        root = OpenNode.of(0, n_rows, known)
        return cls(root.first_of(1), {0: root})


def begin_tree(
    nodes: Nodes | None, matrix: Codes, known: NodeRange, axes: Axes
) -> tuple[BegunTree, Ints | None]:
    """The tree of these rows to be grown on below ``nodes``, and the order of rows that it needs; None: any order."""
    if nodes is None:
        return BegunTree.of_root(known, len(matrix)), None
    leaf_of_row = Descent(nodes, axes).leaves(matrix)
    sorts_by_counting = len(nodes.axis) <= np.iinfo(np.uint16).max
    order = np.argsort(leaf_of_row.astype(np.uint16 if sorts_by_counting else np.uint32), kind="stable")
    table = as_table(nodes)
    n_rows = np.bincount(leaf_of_row, minlength=len(table))
    table["end"] = np.cumsum(n_rows)
    table["start"] = table["end"] - n_rows
    leaves = {
        node: OpenNode.of(int(table["start"][node]), int(table["end"][node]), own)
        for node, own in find_leaf_ranges(nodes, known, axes)
    }
    return BegunTree(table, leaves), order


def as_table(nodes: Nodes) -> Table:
    """A tree as one table of nodes (NODE)."""
    table = np.empty(len(nodes.axis), dtype=NODE)
    for name in Nodes._fields:
        table[name] = getattr(nodes, name)
    return table


def find_leaf_ranges(nodes: Nodes, root: NodeRange, axes: Axes) -> Iterator[tuple[int, NodeRange]]:
    """Each leaf of a tree with its range, which follows from the splits above it."""
    known = {0: root}
    for node in range(len(nodes.axis)):
        here = known.pop(node)
        if nodes.axis[node] < 0:
            yield node, here
        axis, threshold = int(nodes.axis[node]), int(nodes.threshold[node])
        for child in list_children(nodes, node):
            known[child] = here.child(axes, axis, threshold, int(nodes.branch[child]))
