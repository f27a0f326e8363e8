"""Small trees and parts of a tree, and the files that hold the rows of each part."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.kernels.problem import REST

Ints = NDArray[np.int64]


def make_leaf(n_rows: int) -> Nodes:
    """A tree of one leaf."""
    fields = dict.fromkeys(Nodes._fields, -1) | {"n_children": 0, "start": 0, "end": n_rows}
    return Nodes(**{name: np.array([value]) for name, value in fields.items()})


def list_children(nodes: Nodes, node: int) -> range:
    """The children of a node, none of a leaf."""
    first = int(nodes.first_child[node])
    return range(first, first + int(nodes.n_children[node])) if nodes.axis[node] >= 0 else range(0)


def list_descendants(nodes: Nodes, node: int) -> list[int]:
    """A node and all nodes below it, each after its parent, siblings side by side."""
    found = [node]
    for each in found:  # the list grows while it is walked
        found += list_children(nodes, each)
    return found


def list_leaves(nodes: Nodes, node: int) -> list[int]:
    """The leaves at or below a node."""
    return [each for each in list_descendants(nodes, node) if nodes.axis[each] < 0]


def take_subtree(nodes: Nodes, node: int) -> Nodes:
    """The tree below a node, numbered from 0."""
    kept = list_descendants(nodes, node)
    new_number = np.full(len(nodes.axis), -1, dtype=np.int32)
    new_number[kept] = np.arange(len(kept), dtype=np.int32)
    taken = nodes._replace(**{name: column[kept] for name, column in nodes._asdict().items()})
    is_inner = taken.axis >= 0
    first_child = np.where(is_inner, new_number[np.where(is_inner, taken.first_child, 0)], np.int32(-1))
    return taken._replace(first_child=first_child)


def name_no_others(nodes: Nodes, is_tree: NDArray[np.bool_]) -> Nodes:
    """The tree where a rest takes the values that no branch names, and nothing else does: they are left out."""
    splits = np.flatnonzero((nodes.axis >= 0) & (nodes.axis < len(is_tree)))
    splits = splits[is_tree[nodes.axis[splits]]]
    last = nodes.first_child[splits] + nodes.n_children[splits] - 1
    otherwise = nodes.otherwise.copy()
    otherwise[splits[nodes.branch[last] != REST]] = -1
    return nodes._replace(otherwise=otherwise)


class FileRanges(NamedTuple):
    """The first and the last file that hold rows of each node."""

    first: Ints
    last: Ints

    @property
    def n_files(self) -> int:
        return int(self.last.max()) + 1


def plan_files(nodes: Nodes, n_rows: NDArray[Any], max_rows: float) -> FileRanges:
    """One file for each subtree of at most ``max_rows`` rows and for each larger leaf, numbered from left to right."""
    first = np.zeros(len(nodes.axis), dtype=np.int64)
    last = np.zeros(len(nodes.axis), dtype=np.int64)
    n_files, divided, waiting = 0, [], [0]
    while waiting:
        node = waiting.pop()
        if nodes.axis[node] < 0 or n_rows[node] <= max_rows:
            together = list_descendants(nodes, node)
            first[together] = last[together] = n_files
            n_files += 1
        else:
            divided.append(node)
            waiting += reversed(list_children(nodes, node))
    for node in reversed(divided):  # children before parents
        children = list_children(nodes, node)
        first[node], last[node] = first[children[0]], last[children[-1]]
    return FileRanges(first, last)
