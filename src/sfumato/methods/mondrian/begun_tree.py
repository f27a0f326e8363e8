"""Trees that growth in memory starts from: a root alone, or the upper part of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.protocol import Loaded
from sfumato.kernels.axes import Axes
from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.allowances import NOTHING, Allowance
from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.kernels.problem import NODE, Table
from sfumato.methods.mondrian.node_range import NodeRange, narrow

Ints = NDArray[np.int64]


@dataclass(slots=True)
class OpenNode:
    """A node that is still to be split: its rows, and what is known of their codes.

    With a ``region``, splits that serve selections come first, see ``split_for_queries``. So many of its rows as its
    ``allowance`` says may be left out.
    """

    start: int
    end: int
    bounds: Ints  # (4, axes), see ``NodeRange.as_bounds``
    region: Ints | None = None  # (2, axes), see ``NodeRange.as_region``
    allowance: Allowance = NOTHING

    @classmethod
    def of(cls, start: int, end: int, known: NodeRange, *, allowance: Allowance = NOTHING) -> OpenNode:
        """A node with these rows, in a form that kernels read."""
        return cls(start, end, known.as_bounds(), known.as_region(), allowance)

    @property
    def n_rows(self) -> int:
        return self.end - self.start

    def first_of(self, capacity: int) -> Table:
        """A table of ``capacity`` nodes (NODE), of which this one is the first and the others are to be filled in."""
        nodes = np.empty(capacity, dtype=NODE).view(np.recarray)
        nodes[0] = (-1, 0, self.start, self.end, -1, -1, 0, -1)
        return nodes


@dataclass(slots=True)
class BegunTree:
    """The upper part of a tree whose rows are in the order of its leaves, and the leaves that may be split on."""

    nodes: Table  # NODE
    leaves: dict[int, OpenNode]

    @classmethod
    def of_root(cls, known: NodeRange, n_rows: int, *, allowance: Allowance = NOTHING) -> BegunTree:
        """A tree that has only its root so far."""
        root = OpenNode.of(0, n_rows, known, allowance=allowance)
        return cls(root.first_of(1), {0: root})


def begin_tree(
    nodes: Nodes | None, part: Loaded, known: NodeRange, axes: Axes, *, allowance: Allowance = NOTHING
) -> tuple[BegunTree, Ints | None]:
    """The tree of these rows to be grown on below ``nodes``, and the order of rows that it needs; None: any order.

    Rows are put in the order of the leaves from left to right, which ``nodes.start`` tells.
    """
    if nodes is None:
        return BegunTree.of_root(known, part.n_rows, allowance=allowance), None
    descent = Descent(nodes, axes)
    of_blocks = [descent.leaves(block.rows) for block in part.blocks()]
    leaf_of_row = np.concatenate([np.zeros(0, dtype=np.int64), *of_blocks])
    found = find_leaf_bounds(nodes, known, axes)
    from_left = found.leaf[np.argsort(nodes.start[found.leaf], kind="stable")]
    sorts_by_counting = len(from_left) <= np.iinfo(np.uint16).max
    rank = np.zeros(len(nodes.axis), dtype=np.uint16 if sorts_by_counting else np.uint32)
    rank[from_left] = np.arange(len(from_left))
    order = np.argsort(rank[leaf_of_row], kind="stable")
    table = as_table(nodes)
    n_rows = np.bincount(leaf_of_row, minlength=len(table))[from_left]
    table["end"][from_left] = np.cumsum(n_rows)
    table["start"][from_left] = table["end"][from_left] - n_rows
    start, end = table["start"][found.leaf].tolist(), table["end"][found.leaf].tolist()
    regions = [None] * len(start) if found.regions is None else found.regions
    each = zip(found.leaf.tolist(), start, end, found.bounds, regions, strict=True)
    leaves = {leaf: OpenNode(*of_leaf) for leaf, *of_leaf in each}
    return BegunTree(table, leaves), order


def as_table(nodes: Nodes) -> Table:
    """A tree as one table of nodes (NODE)."""
    table = np.empty(len(nodes.axis), dtype=NODE)
    for name in Nodes._fields:
        table[name] = getattr(nodes, name)
    return table


class LeafBounds(NamedTuple):
    """The leaves of a tree, ascending, with what the splits above say of their codes."""

    leaf: Ints
    bounds: Ints  # (leaves, 4, axes), see ``NodeRange.as_bounds``
    regions: Ints | None  # (leaves, 2, axes), see ``NodeRange.as_region``


def find_leaf_bounds(nodes: Nodes, root: NodeRange, axes: Axes) -> LeafBounds:
    """What the splits above say of the leaves of a tree, found level by level."""
    here, bounds, region = np.zeros(1, dtype=np.int64), root.as_bounds()[None], root.as_region()
    regions = None if region is None else region[None]
    found: list[tuple[Ints, Ints, Ints | None]] = []
    while len(here):
        is_leaf = nodes.axis[here] < 0
        found.append((here[is_leaf], bounds[is_leaf], None if regions is None else regions[is_leaf]))
        inner = np.flatnonzero(~is_leaf)
        n_children = nodes.n_children[here[inner]]
        above = np.repeat(inner, n_children)
        place = np.arange(len(above)) - np.repeat(np.cumsum(n_children) - n_children, n_children)
        parent = here[above]
        here, bounds = nodes.first_child[parent] + place, bounds[above]
        regions = None if regions is None else regions[above]
        narrow(bounds, regions, axes, nodes.axis[parent], nodes.threshold[parent], nodes.branch[here])
    leaf, bounds = (np.concatenate([level[i] for level in found]) for i in range(2))
    order = np.argsort(leaf)
    if root.region is not None:
        regions = np.concatenate([own for *_, own in found if own is not None])[order]
    return LeafBounds(leaf[order], bounds[order], regions)
