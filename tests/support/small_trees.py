"""Random attributes, rows and partition trees in codes, small enough to be looked at row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from sfumato.kernels.axes import Axes
from sfumato.kernels.nodes import Nodes

Shape = list["Shape"]
"""A node of a hierarchy is the list of its children, a leaf an empty list."""


def axes_from(shapes: list[int | Shape]) -> Axes:
    """Attributes: a number of codes for an ordered one, a hierarchy for another."""
    low: list[int] = []
    high: list[int] = []
    children: list[list[int]] = []
    root: list[int] = []
    n_codes: list[int] = []

    def add(shape: Shape, first: int) -> tuple[int, int]:
        """(number of the node, code after its last)"""
        number = len(low)
        low.append(first)
        high.append(first)
        children.append([])
        after = first if shape else first + 1
        for below in shape:
            child, after = add(below, after)
            children[number].append(child)
        high[number] = after
        return number, after

    for shape in shapes:
        root.append(len(low))
        n_codes.append(shape if isinstance(shape, int) else add(shape, 0)[1])
    counts = np.array([len(c) for c in children], dtype=np.int64)
    return Axes(
        is_tree=np.array([not isinstance(shape, int) for shape in shapes]),
        may_split=np.ones(len(shapes), dtype=np.bool_),
        root=np.array(root, dtype=np.int64),
        node_low=np.array(low, dtype=np.int64),
        node_high=np.array(high, dtype=np.int64),
        child_start=np.cumsum(counts) - counts,
        n_children=counts,
        child=np.array([c for below in children for c in below], dtype=np.int64),
        position_start=np.full(len(shapes), -1, dtype=np.int64),
        position=np.zeros(0),
        least_code=np.zeros(len(shapes), dtype=np.int64),
        width=np.array([max(n - 1, 1) for n in n_codes], dtype=np.float64),
    )


def n_codes_of(axes: Axes, shapes: list[int | Shape]) -> list[int]:
    return [
        shape if isinstance(shape, int) else int(axes.node_high[axes.root[a]])
        for a, shape in enumerate(shapes)
    ]


def children_of(axes: Axes, node: int) -> list[int]:
    start = axes.child_start[node]
    return axes.child[start : start + axes.n_children[node]].tolist()


HIERARCHIES: st.SearchStrategy[Shape] = st.recursive(
    st.just([]), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=12
).filter(lambda shape: shape != [])
SHAPES = st.lists(st.one_of(st.integers(1, 9), HIERARCHIES), min_size=1, max_size=4)


@dataclass
class Building:
    """A partition tree as lists, with the rows of each node."""

    axes: Axes
    axis: list[int]
    threshold: list[int]
    first_child: list[int]
    n_children: list[int]
    branch: list[int]
    members: list[np.ndarray]
    region: list[list[tuple[int, int]]]  # codes [low, high) of each attribute
    node_of: list[list[int]]  # hierarchy node of each attribute

    @classmethod
    def of(cls, axes: Axes, n_codes: list[int], n_rows: int) -> Building:
        whole = [(0, n) for n in n_codes]
        return cls(axes, [-1], [-1], [-1], [0], [0], [np.arange(n_rows)], [whole], [axes.root.tolist()])

    def nodes(self) -> Nodes:
        start, end = [0] * len(self.axis), [len(members) for members in self.members]
        for node in range(len(self.axis)):
            at = start[node]
            for child in range(self.first_child[node], self.first_child[node] + self.n_children[node]):
                start[child], end[child] = at, at + len(self.members[child])
                at = end[child]
        return Nodes(
            np.array(self.axis, dtype=np.int32),
            np.array(self.threshold, dtype=np.int64),
            np.array(self.first_child, dtype=np.int32),
            np.array(self.n_children, dtype=np.int32),
            np.array(self.branch, dtype=np.int64),
            np.array(start, dtype=np.int64),
            np.array(end, dtype=np.int64),
            np.full(len(end), -1, dtype=np.int32),
        )

    def append(self, parent: int, branch: int, members: np.ndarray) -> int:
        self.axis.append(-1)
        self.threshold.append(-1)
        self.first_child.append(-1)
        self.n_children.append(0)
        self.branch.append(branch)
        self.members.append(members)
        self.region.append(list(self.region[parent]))
        self.node_of.append(list(self.node_of[parent]))
        return len(self.axis) - 1

    def split_at(self, node: int, axis: int, threshold: int, rows: np.ndarray) -> None:
        self.axis[node], self.threshold[node] = axis, threshold
        self.first_child[node], self.n_children[node] = len(self.axis), 2
        low, high = self.region[node][axis]
        codes = rows[self.members[node], axis]
        for side, keep in enumerate([codes <= threshold, codes > threshold]):
            child = self.append(node, side, self.members[node][keep])
            self.region[child][axis] = (low, threshold + 1) if side == 0 else (threshold + 1, high)

    def split_along(self, node: int, axis: int, used: list[int], rows: np.ndarray) -> None:
        """Into these children of its hierarchy node."""
        self.axis[node], self.threshold[node] = axis, self.node_of[node][axis]
        self.first_child[node], self.n_children[node] = len(self.axis), len(used)
        codes = rows[self.members[node], axis]
        for branch in used:
            low, high = int(self.axes.node_low[branch]), int(self.axes.node_high[branch])
            child = self.append(node, branch, self.members[node][(low <= codes) & (codes < high)])
            self.region[child][axis] = (low, high)
            self.node_of[child][axis] = branch


@st.composite
def trees(draw, *, all_children: bool = False, max_splits: int = 8, least: int = 0):
    """(axes, rows, a tree that somebody might have grown); rows may lie outside it unless ``all_children``.

    ``least``: so many rows at least, if a tree of them can have as many.
    """
    shapes = draw(SHAPES)
    axes = axes_from(shapes)
    n_codes = n_codes_of(axes, shapes)
    n_rows = draw(st.integers(least, least + 40))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    rows = np.stack([random.integers(0, n, n_rows) for n in n_codes], axis=1).astype(np.uint32)
    tree = Building.of(axes, n_codes, n_rows)
    for _ in range(draw(st.integers(0, max_splits))):
        leaves = [node for node, axis in enumerate(tree.axis) if axis < 0]
        node = leaves[int(random.integers(len(leaves)))]
        axis = int(random.integers(len(shapes)))
        if axes.is_tree[axis]:
            used = children_of(axes, tree.node_of[node][axis])
            if not all_children:
                used = [child for child in used if random.random() < 0.8]
            if used:
                tree.split_along(node, axis, used, rows)
        else:
            low, high = tree.region[node][axis]
            if high - low > 1:
                tree.split_at(node, axis, int(random.integers(low, high - 1)), rows)
    return axes, rows, tree
