"""The top of a tree that is grown in parts: the splits above the parts that are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.subtree import list_descendants, take_subtree
from sfumato.recoding.tree_file import PathStep

NONE = -1


@dataclass(slots=True)
class TopNode:
    """A leaf until it is split. ``branch`` says which part of the parent it is, see ``NodeRange.child``."""

    parent: int = NONE
    branch: int = NONE
    axis: int = NONE
    threshold: int = NONE
    first_child: int = NONE
    n_children: int = 0
    otherwise: int = NONE

    @property
    def children(self) -> range:
        return range(self.first_child, self.first_child + self.n_children)


class TreeTop:
    """The top while it grows. Nodes are known by their number; the root is 0."""

    def __init__(self) -> None:
        self.nodes = [TopNode()]

    def split(
        self, number: int, *, axis: int, threshold: int, branches: Sequence[int], otherwise: int = NONE
    ) -> range:
        """Split a leaf into a child for each branch, see ``Nodes``; returns the numbers of the children."""
        node = self.nodes[number]
        node.axis, node.threshold, node.otherwise = axis, threshold, otherwise
        node.first_child, node.n_children = len(self.nodes), len(branches)
        self.nodes += [TopNode(parent=number, branch=int(branch)) for branch in branches]
        return node.children

    def path(self, number: int) -> list[PathStep]:
        """The splits from the root to a node."""
        steps = []
        while number > 0:
            parent = self.nodes[self.nodes[number].parent]
            branches = [self.nodes[child].branch for child in parent.children]
            taken = number - parent.first_child
            steps.append(PathStep(parent.axis, parent.threshold, branches, taken, parent.otherwise))
            number = self.nodes[number].parent
        return steps[::-1]

    def count_splits(self, n_axes: int) -> np.ndarray:
        """How often each axis is split."""
        return np.bincount([node.axis for node in self.nodes if node.axis >= 0], minlength=n_axes)

    def as_nodes(self) -> Nodes:
        """The top as arrays; it holds no rows."""
        n = len(self.nodes)
        return Nodes(
            axis=np.array([node.axis for node in self.nodes], dtype=np.int32),
            threshold=np.array([node.threshold for node in self.nodes], dtype=np.int64),
            first_child=np.array([node.first_child for node in self.nodes], dtype=np.int32),
            n_children=np.array([node.n_children for node in self.nodes], dtype=np.int32),
            branch=np.array([node.branch for node in self.nodes], dtype=np.int64),
            start=np.zeros(n, dtype=np.int64),
            end=np.zeros(n, dtype=np.int64),
            otherwise=np.array([node.otherwise for node in self.nodes], dtype=np.int32),
        )

    def take_below(self, number: int) -> tuple[Nodes, list[int]]:
        """The tree below a node, and the number in the top of each of its nodes."""
        nodes = self.as_nodes()
        return take_subtree(nodes, number), list_descendants(nodes, number)
