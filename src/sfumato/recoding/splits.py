"""The tree of splits of a recoding: its nodes, how rows are sent down, how codes become values, how it is stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.domain import MISSING, Domain, OrderedDomain
from sfumato.kernels.nodes import Nodes
from sfumato.kernels.route import fill_boxes, fill_places
from sfumato.policy.output import Output
from sfumato.recoding.axis import Axis, Floats, OrderedAxis, TreeAxis, axis_as_dict, axis_of
from sfumato.table.files import replace_atomically

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The splits, one entry per node: children stand next to each other, after their parent.

    threshold  ordered axis: values up to it go to the first child (-inf: missing alone does)
    branch     the hierarchy node (of the axis of the parent's split) that this node stands for
    cover      (nodes, axes) the hierarchy node that covers the rows of a leaf, or that a split divides; else -1
    """

    axis: NDArray[np.int32]
    threshold: NDArray[np.float64]
    first_child: NDArray[np.integer[Any]]
    n_children: NDArray[np.int32]
    branch: NDArray[np.int32]
    cover: NDArray[np.int32]

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        return self.axis < 0

    @property
    def n_nodes(self) -> int:
        return len(self.axis)

    def above(self) -> NDArray[np.int32]:
        """The axis that made each node, -1 for the root."""
        return axis_above(self.axis, self.first_child, self.n_children)


FORMAT = 1
NODES = "recoding.parquet"
"""Where the nodes of a large tree are written."""

FEW_NODES = 20_000
"""The boxes of so many nodes are worked out sooner than numba is loaded."""

FIELDS = ("axis", "threshold", "first_child", "n_children", "branch", "cover")


def bytes_per_node(n_axes: int) -> int:
    """Memory that a node takes while rows are recoded: itself, and three times the ends of its box."""
    return 28 + 4 * n_axes + 32 * n_axes


def join_trees(parts: Sequence[Tree]) -> Tree:
    """One tree of consecutive parts, whose children are numbered through already."""
    return Tree(*(np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS))


def axis_above(
    axis: NDArray[np.int32], first_child: NDArray[np.integer[Any]], n_children: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The axis whose split made each node, -1 where none of these did."""
    out = np.full(len(axis), -1, dtype=np.int32)
    inner = np.flatnonzero(axis >= 0)
    n = n_children[inner]
    first = np.repeat(first_child[inner], n)
    within = np.arange(len(first)) - np.repeat(np.cumsum(n) - n, n)
    out[first + within] = np.repeat(axis[inner], n)
    return out


# ---- rows are sent down ----------------------------------------------------------------------------


class Branches(NamedTuple):
    """The hierarchy nodes that rows are compared with at a split: those of its children, next to each other."""

    first: NDArray[np.integer[Any]]  # (nodes,) where those of each split begin
    node: Ints


class Router:
    """Sends rows down a tree of splits; what this takes from the axes is worked out once."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.is_tree = np.array([isinstance(axis, TreeAxis) for axis in axes], dtype=np.bool_)
        trees = [axis.nodes for axis in axes if isinstance(axis, TreeAxis)]
        offsets = np.cumsum([0, *(tree.n_nodes for tree in trees)])
        self.top = np.array([axis.top if isinstance(axis, OrderedAxis) else np.inf for axis in axes])
        self.column = np.where(
            self.is_tree, np.cumsum(self.is_tree) - 1, np.cumsum(~self.is_tree) - 1
        ).astype(np.int64)
        self.shift = np.zeros(len(axes), dtype=np.int64)
        """All hierarchies are numbered in one sequence; here begins that of each axis."""
        self.shift[self.is_tree] = offsets[:-1]
        last = [offset + tree.leaf_nodes[tree.high - 1] for offset, tree in zip(offsets, trees, strict=False)]
        self.last = np.concatenate(last).astype(np.int64) if last else np.zeros(0, dtype=np.int64)

    def branches(self, tree: Tree) -> Branches:
        """The branch of every node in that one sequence, in the order of the nodes."""
        above = tree.above()
        numbered = np.asarray(tree.branch + np.where(above >= 0, self.shift[above], 0), dtype=np.int64)
        return Branches(tree.first_child, numbered)

    def fill_places(
        self, cells: Floats, tree: Tree, branches: Branches, out: Ints, *, end: int | None = None
    ) -> None:
        """Send rows down from where they are: to the deepest node that each surely belongs to.

        A row that reaches a node from ``end`` on stops there.

        cells      (rows, axes) as ``RowCells.matrix`` gives them                IN
        branches   of ``tree``                                              IN
        out        (rows,) a node of the tree                               IN+OUT
        """
        nodes = cells[:, self.is_tree].astype(np.int64, order="C") + self.shift[self.is_tree]
        fill_places(
            np.ascontiguousarray(cells[:, ~self.is_tree]), np.ascontiguousarray(nodes), self.column, self.is_tree,
            tree.axis, tree.threshold, tree.first_child, tree.n_children, branches.first, branches.node, self.last,
            tree.n_nodes if end is None else end, out,
        )  # fmt: skip

    def fill_boxes(
        self, tree: Tree, low: Floats, high: Floats, *, start: int = 0, end: int | None = None
    ) -> None:
        """Ends (nodes, axes) of the boxes of children, where their parents' ends are filled in.

        The parents are the nodes from ``start`` up to ``end``.
        """
        fill = fill_boxes.for_few if tree.n_nodes <= FEW_NODES else fill_boxes
        end = tree.n_nodes if end is None else end
        fill(
            self.is_tree, tree.axis, tree.threshold, tree.first_child, tree.n_children, tree.branch, start, end,
            low, high,
        )  # fmt: skip

    def everything(self) -> tuple[Floats, Floats]:
        """The ends (axes,) of the root's box."""
        return np.where(self.is_tree, 0.0, np.nan), self.top


# ---- codes become values ---------------------------------------------------------------------------


def nodes_in_use(
    nodes: Nodes, covers: Ints, above: NDArray[np.int32], is_tree: Sequence[bool] | NDArray[np.bool_]
) -> list[Ints]:
    """The hierarchy nodes of each axis that splits, branches and covers name; none of an ordered axis."""
    none = np.zeros(0, dtype=np.int64)
    return [
        np.unique(
            np.concatenate(
                [nodes.branch[above == a], nodes.threshold[nodes.axis == a], covers[covers[:, a] >= 0, a]]
            )
        )
        if is_tree[a]
        else none
        for a in range(len(is_tree))
    ]


@dataclass(frozen=True, slots=True, eq=False)
class RecodingPlan:
    """What makes a recoding of a tree in codes: the meaning of its codes, and what is published.

    roots      (axes,) number of the first node of an axis' hierarchy, as ``Axes`` has it
    left_out   columns that a release never has: identifiers and dropped ones
    """

    domains: Sequence[Domain]
    roots: Ints
    output: Output = Output.LABELS
    left_out: frozenset[str] = frozenset()

    @property
    def is_tree(self) -> NDArray[np.bool_]:
        return np.array([not isinstance(domain, OrderedDomain) for domain in self.domains], dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Decoder:
    """What codes mean: the axes of a recoding, and where each node of a hierarchy went when it was pruned."""

    domains: Sequence[Domain]
    roots: Ints
    axes: tuple[Axis, ...]
    new: tuple[NDArray[np.int32], ...]

    @classmethod
    def of(cls, used: Sequence[Ints], plan: RecodingPlan) -> Decoder:
        """For trees that use these hierarchy nodes."""
        made = [
            axis_of(domain, nodes - root)
            for domain, nodes, root in zip(plan.domains, used, plan.roots, strict=True)
        ]
        axes, new = zip(*made, strict=True)
        return cls(plan.domains, plan.roots, axes, new)

    def tree(self, nodes: Nodes, covers: Ints, above: NDArray[np.int32]) -> Tree:
        """The same tree in values and in the nodes of pruned hierarchies.

        covers   (leaves, axes) the hierarchy node that covers the rows of a leaf, -1 where none does
        above    (nodes,) the axis that made each node, -1 for the root
        """
        is_leaf = nodes.axis < 0
        n_nodes = len(nodes.axis)
        threshold = np.full(n_nodes, np.nan)
        branch = np.full(n_nodes, -1, dtype=np.int32)
        cover = np.full((n_nodes, len(self.domains)), -1, dtype=np.int32)
        for a, domain in enumerate(self.domains):
            here, below = nodes.axis == a, above == a
            if isinstance(domain, OrderedDomain):
                threshold[here] = domain.value(nodes.threshold[here])
                branch[below] = nodes.branch[below]
                continue
            root, new = self.roots[a], self.new[a]
            branch[below] = new[nodes.branch[below] - root]
            cover[here, a] = new[nodes.threshold[here] - root]
            cover[is_leaf, a] = np.where(covers[:, a] < 0, -1, new[np.maximum(covers[:, a] - root, 0)])
        return Tree(nodes.axis, threshold, nodes.first_child, nodes.n_children, branch, cover)


# ---- on disk ---------------------------------------------------------------------------------------


def write_document(folder: Path, axes: Sequence[Axis], output: Output, nodes: Any) -> None:
    """Write ``recoding.json``: everything but the nodes, and these or where they are."""
    document = {
        "format": FORMAT,
        "output": str(output),
        "attributes": [axis_as_dict(axis) for axis in axes],
        "nodes": nodes,
    }
    with replace_atomically(folder / "recoding.json") as temporary:
        temporary.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), encoding="utf-8")


def table_of(tree: Tree, axes: Sequence[Axis]) -> pa.Table:
    """The nodes as they are stored; a threshold of null is missing, or none."""
    is_ordered = np.array([isinstance(axis, OrderedAxis) for axis in axes])
    has_threshold = ~tree.is_leaf & is_ordered[tree.axis] & np.isfinite(tree.threshold)
    columns = {
        "axis": tree.axis,
        "threshold": pa.array(tree.threshold, mask=~has_threshold),
        "first_child": tree.first_child,
        "n_children": tree.n_children,
        "branch": tree.branch,
    }
    for a in np.flatnonzero(~is_ordered):
        columns[f"cover_{a}"] = tree.cover[:, a]
    return pa.table(columns)


def tree_from(nodes: pa.Table, n_axes: int) -> Tree:
    """The tree that ``table_of`` stored, or consecutive nodes of it."""

    def column(name: str, dtype: Any) -> NDArray[Any]:
        return np.asarray(nodes.column(name)).astype(dtype)

    cover = np.full((nodes.num_rows, n_axes), -1, dtype=np.int32)
    for a in range(n_axes):
        if f"cover_{a}" in nodes.column_names:
            cover[:, a] = column(f"cover_{a}", np.int32)
    first_child = np.asarray(nodes.column("first_child"))
    return Tree(
        column("axis", np.int32),
        np.asarray(nodes.column("threshold").cast(pa.float64()).fill_null(MISSING)),  # may be null throughout
        first_child if first_child.dtype == np.int64 else first_child.astype(np.int32),
        column("n_children", np.int32),
        column("branch", np.int32),
        cover,
    )
