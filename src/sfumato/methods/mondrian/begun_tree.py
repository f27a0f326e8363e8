"""Trees that are grown on in memory: their upper part is there already."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes
from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.kernels.problem import NODE
from sfumato.methods.mondrian.memory import Begun, Open, one_node
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.subtree import list_children

Codes = NDArray[np.uint32]


def begin_tree(
    nodes: Nodes | None, matrix: Codes, known: NodeRange, axes: Axes
) -> tuple[Begun, NDArray[np.int64] | None]:
    """A tree to be grown on at its leaves, and the order of rows that it needs; None if any order will do."""
    if nodes is None:
        leaf = Open.of(0, len(matrix), known)
        return Begun(one_node(leaf, 1), {0: leaf}), None
    leaf_of_row = Descent(nodes, axes).leaves(matrix)
    sorts_by_counting = len(nodes.axis) <= np.iinfo(np.uint16).max
    order = np.argsort(leaf_of_row.astype(np.uint16 if sorts_by_counting else np.uint32), kind="stable")
    table = np.empty(len(nodes.axis), dtype=NODE)
    for name in Nodes._fields:
        table[name] = getattr(nodes, name)
    n_rows = np.bincount(leaf_of_row, minlength=len(table))
    table["end"] = np.cumsum(n_rows)
    table["start"] = table["end"] - n_rows
    leaves = {
        node: Open.of(int(table["start"][node]), int(table["end"][node]), own)
        for node, own in _find_leaf_ranges(nodes, known, axes)
    }
    return Begun(table, leaves), order


def _find_leaf_ranges(nodes: Nodes, root: NodeRange, axes: Axes) -> Iterator[tuple[int, NodeRange]]:
    """Each leaf of a tree with its range, which follows from the splits above it."""
    known = {0: root}
    for node in range(len(nodes.axis)):
        here = known.pop(node)
        if nodes.axis[node] < 0:
            yield node, here
        axis, threshold = int(nodes.axis[node]), int(nodes.threshold[node])
        for child in list_children(nodes, node):
            known[child] = here.child(axes, axis, threshold, int(nodes.branch[child]))


def make_leaf(n_rows: int) -> Nodes:
    """A tree of one leaf."""
    fields = {"axis": -1, "threshold": -1, "first_child": -1, "n_children": 0, "branch": -1}
    return Nodes(**{name: np.array([value]) for name, value in {**fields, "start": 0, "end": n_rows}.items()})
