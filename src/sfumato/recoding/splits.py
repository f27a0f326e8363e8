"""The tree of splits of a recoding: its nodes, how rows are sent down, how codes become values, how it is stored."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.domain import MISSING, Domain, OrderedDomain
from sfumato.encoding.slices import Slices
from sfumato.kernels.nodes import Nodes
from sfumato.kernels.route import fill_boxes, fill_places
from sfumato.kernels.spans import Spans, unpack_cells, unpack_spans
from sfumato.policy.output import Output
from sfumato.recoding.axis import Axis, BoxEnds, Floats, OrderedAxis, TreeAxis, axis_as_dict, axis_of
from sfumato.recoding.decision_list import CellKeys, NumberCells
from sfumato.recoding.exclusions import ExcludedNodes
from sfumato.table.files import replace_atomically

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The splits, one entry per node: children stand next to each other, after their parent.

    axis       what a node is split on, -1 for a leaf; the number of axes: a list of cells, which are its children
    threshold  ordered axis: values up to it go to the first child (-inf: missing alone does)
    branch     the hierarchy node (of the axis of the parent's split) that this node stands for; -1 for the rest
    cover      (nodes, axes) the hierarchy node that covers the rows of a leaf, or that a split divides; else -1
    otherwise  which child takes missing numbers and values that no branch names; -1: none does, and missing is the lowest
               number
    labels     ends (nodes, axes) of what is published of leaves along ordered axes; None: their boxes
    cells      which nodes are cells of lists; None: none
    """

    axis: NDArray[np.int32]
    threshold: NDArray[np.float64]
    first_child: NDArray[np.integer[Any]]
    n_children: NDArray[np.int32]
    branch: NDArray[np.int32]
    cover: NDArray[np.int32]
    otherwise: NDArray[np.int32]
    labels: BoxEnds | None = None
    cells: CellKeys | None = None

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        return self.axis < 0

    @property
    def n_nodes(self) -> int:
        return len(self.axis)

    @property
    def has_rests(self) -> bool:
        """Does every split say where all other values go?"""
        return bool((self.otherwise >= 0).any()) or self.labels is not None

    def narrow(self, ends: BoxEnds, nodes: Any = slice(None)) -> BoxEnds:
        """The boxes of nodes as they are published, from the boxes of their paths: narrowed to covers and labels."""
        low = np.where(self.cover[nodes] >= 0, self.cover[nodes], ends.low)
        if self.labels is None:
            return BoxEnds(low, ends.high, ends.missing)
        own = self.labels.take(nodes)
        return BoxEnds(np.fmax(low, own.low), np.minimum(ends.high, own.high), ends.missing & own.missing)

    def leave_out(self, is_tree: NDArray[np.bool_], out: Ints) -> None:
        """Put rows NOWHERE that no branch of a hierarchy and no cell of a list takes.

        out   (rows,) the node that each row has come to   IN+OUT
        """
        axis = self.axis[out]
        out[(axis >= 0) & np.append(is_tree, True)[axis]] = NOWHERE

    def above(self) -> NDArray[np.int32]:
        """The axis that made each node, -1 for the root."""
        return axis_above(self.axis, self.first_child, self.n_children)

    def place_in_lists(self, cells: Floats, axes: Sequence[Axis], out: Ints) -> None:
        """Send the rows that are at a list on: to the first cell that contains each, else to the pool, if there is one.

        cells   (rows, axes) as ``RowCells.matrix`` gives them   IN
        out     (rows,) the node that each row is at             IN+OUT
        """
        if self.cells is None:
            return
        n_axes = len(axes)
        waiting = np.flatnonzero(self.axis[out] == n_axes)
        levels = [axis.cells for axis in axes if axis.cells is not None]
        for node in np.unique(out[waiting]).tolist():
            rows = waiting[out[waiting] == node]
            first, n_children = int(self.first_child[node]), int(self.n_children[node])
            listed, has_pool = self.cells.cells_of(first, n_children, levels)
            found = listed.locate(list(cells[rows].T))
            is_there = found < n_children if has_pool else found < len(listed)
            out[rows[is_there]] = first + found[is_there]


FORMAT, FORMAT_OF_RESTS = 1, 2
"""Trees as published [LDR08], and those whose splits say where all other values go."""

NODES = "recoding.parquet"
"""Where the nodes of a large tree are written."""

LEAVES_OUT = "leaves-rows-out"
"""The key of a recoding that says: a row is left out whose value no branch names, unless a rest takes it."""

NOWHERE = -1
"""The place of a row that is left out."""

FEW_NODES = 20_000
"""The boxes of so many nodes are worked out sooner than numba is loaded."""

FIELDS = ("axis", "threshold", "first_child", "n_children", "branch", "cover", "otherwise")


def bytes_per_node(n_axes: int) -> int:
    """Memory that a node takes while rows are recoded: itself, and three times the ends of its box."""
    return 28 + 4 * n_axes + 32 * n_axes


def join_trees(parts: Sequence[Tree]) -> Tree:
    """One tree of consecutive parts, whose children are numbered through already."""
    labels = [part.labels for part in parts if part.labels is not None]
    joined = BoxEnds(*(np.concatenate(ends) for ends in zip(*labels, strict=True))) if labels else None
    cells = [part.cells for part in parts if part.cells is not None]
    listed = CellKeys(*(np.concatenate(each) for each in zip(*cells, strict=True))) if cells else None
    fields = {name: np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS}
    return Tree(**fields, labels=joined, cells=listed)


def count_splits(
    axis: NDArray[np.integer[Any]], tops: Sequence[int], levels: NDArray[np.integer[Any]] | None
) -> NDArray[np.int64]:
    """How many of these nodes are split on each axis, or are cells of lists below its top level.

    levels   (cells, axes) those of cells, and -1 of other nodes; None: there are no lists
    """
    n_splits = np.bincount(axis[(axis >= 0) & (axis < len(tops))], minlength=len(tops))
    return n_splits if levels is None else n_splits + ((levels >= 0) & (levels < np.array(tops))).sum(axis=0)


def tops_of(axes: Sequence[Axis]) -> list[int]:
    """The top level of each axis, 0 where there are no lists."""
    return [0 if axis.cells is None else axis.cells.top for axis in axes]


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
        self.top = np.array(
            [
                axis.top if isinstance(axis, OrderedAxis) else np.inf if axis.excluded is None else -1.0
                for axis in axes
            ]
        )
        self.has_missing = ~self.is_tree & np.array([axis.has_missing for axis in axes], dtype=np.bool_)
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
        # The rest is no node, and neither is a cell of a list.
        shift = np.where(tree.branch >= 0, self.shift[np.where(tree.branch >= 0, above, 0)], 0)
        return Branches(tree.first_child, np.asarray(tree.branch + shift, dtype=np.int64))

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
            tree.axis, tree.threshold, tree.first_child, tree.n_children, branches.first, branches.node,
            tree.otherwise, self.last, tree.n_nodes if end is None else end, out,
        )  # fmt: skip

    def fill_boxes(self, tree: Tree, ends: BoxEnds, *, start: int = 0, end: int | None = None) -> None:
        """Ends (nodes, axes) of the boxes of children, where their parents' ends are filled in.

        The parents are the nodes from ``start`` up to ``end``.
        """
        fill = fill_boxes.for_few if tree.n_nodes <= FEW_NODES else fill_boxes
        end = tree.n_nodes if end is None else end
        fill(
            self.is_tree, tree.axis, tree.threshold, tree.first_child, tree.n_children, tree.branch, tree.otherwise,
            start, end, *ends,
        )  # fmt: skip

    def everything(self) -> BoxEnds:
        """The ends (axes,) of the root's box."""
        return BoxEnds(np.where(self.is_tree, 0.0, np.nan), self.top, self.has_missing)


def number_told_apart(axes: Sequence[Axis], tree: Tree, rest_of: Floats, ends: BoxEnds) -> BoxEnds:
    """The ends, with the number of the set of nodes that were told apart on the way along axes that exclude them.

    rest_of   (nodes, axes) of all nodes of the tree, the last split whose rest each is in, as ``fill_boxes`` finds it
    ends      of some nodes, with the same in place of the high end
    """
    high = ends.high.copy()
    for a, axis in enumerate(axes):
        if not isinstance(axis, TreeAxis) or axis.excluded is None:
            continue
        told: dict[int, frozenset[int]] = {-1: frozenset()}
        splits, at = np.unique(high[:, a], return_inverse=True)
        for split in splits.astype(np.int64).tolist():
            way = [split]
            while way[-1] not in told:
                way.append(int(rest_of[way[-1], a]))
            for above, own in itertools.pairwise(reversed(way)):
                first = tree.first_child[own]
                branches = tree.branch[first : first + tree.n_children[own]]
                told[own] = told[above].union(branches[branches >= 0].tolist())
        numbers = [axis.excluded.number(told[split]) for split in splits.astype(np.int64).tolist()]
        high[:, a] = np.array(numbers, dtype=np.float64)[at]
    return ends._replace(high=high)


# ---- codes become values ---------------------------------------------------------------------------


def split_cells(leaves: Ints, n_axes: int) -> tuple[Ints, Ints | None]:
    """The covers of leaves, and their cells, which stand behind them where a list has taken the place of splits.

    >>> split_cells(np.array([[5, 7]]), 1), split_cells(np.array([[5, 7]]), 2)
    ((array([[5]]), array([[7]])), (array([[5, 7]]), None))
    """
    return leaves[:, :n_axes], leaves[:, n_axes:] if leaves.shape[1] > n_axes else None


def add_no_cells(leaves: Ints, n_columns: int) -> Ints:
    """The covers of leaves with as many columns as those that have cells, too.

    >>> add_no_cells(np.array([[5, 7]]), 4)
    array([[ 5,  7, -1, -1]])
    """
    return np.pad(leaves, ((0, 0), (0, n_columns - leaves.shape[1])), constant_values=-1)


def nodes_in_use(
    nodes: Nodes, covers: Ints, above: NDArray[np.int32], is_tree: Sequence[bool] | NDArray[np.bool_]
) -> list[Ints]:
    """The hierarchy nodes of each axis that splits, branches, covers and cells name; none of an ordered axis."""
    none = np.zeros(0, dtype=np.int64)
    covers, cells = split_cells(covers, len(is_tree))
    keys = np.full((1, len(is_tree)), -1) if cells is None else unpack_cells(cells)[1]
    return [
        np.unique(
            np.concatenate(
                [
                    nodes.branch[(above == a) & (nodes.branch >= 0)],
                    nodes.threshold[nodes.axis == a],
                    covers[covers[:, a] >= 0, a],
                    keys[keys[:, a] >= 0, a],
                ]
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
    slices     public slices of each ordered axis, that labels are narrowed to; none: labels are boxes
    excludes   do labels of rests say what was told apart from them?
    leaves_rows_out   is a row left out whose value no branch names, unless a rest takes it?
    """

    domains: Sequence[Domain]
    roots: Ints
    output: Output = Output.LABELS
    left_out: frozenset[str] = frozenset()
    slices: Sequence[Slices | None] = ()
    excludes: bool = False
    leaves_rows_out: bool = False

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
    slices: Sequence[Slices | None] = ()

    @classmethod
    def of(cls, used: Sequence[Ints], plan: RecodingPlan, *, has_lists: bool) -> Decoder:
        """For trees that use these hierarchy nodes, with lists among their nodes or not."""
        made = [
            axis_of(domain, nodes - root)
            for domain, nodes, root in zip(plan.domains, used, plan.roots, strict=True)
        ]
        axes, new = zip(*made, strict=True)
        both = itertools.zip_longest(axes, plan.slices)
        shown = tuple(_as_shown(axis, own, plan) for axis, own in both)
        if has_lists:
            of_each = zip(shown, plan.domains, plan.slices, strict=True)
            shown = tuple(_with_levels(axis, domain, own) for axis, domain, own in of_each)
        return cls(plan.domains, plan.roots, shown, new, plan.slices)

    def tree(self, nodes: Nodes, covers: Ints, above: NDArray[np.int32]) -> Tree:
        """The same tree in values and in the nodes of pruned hierarchies.

        covers   (leaves, axes) the hierarchy node that covers the rows of a leaf, or their span; -1 where there is none;
                 with lists, the cells of the leaves stand behind them
        above    (nodes,) the axis that made each node, -1 for the root
        """
        is_leaf = nodes.axis < 0
        covers, cells = split_cells(covers, len(self.domains))
        labels = self._labels(is_leaf, covers, cells) if self.slices else None
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
            named = below & (nodes.branch >= 0)
            branch[named] = new[nodes.branch[named] - root]
            cover[here, a] = new[nodes.threshold[here] - root]
            cover[is_leaf, a] = np.where(covers[:, a] < 0, -1, new[np.maximum(covers[:, a] - root, 0)])
        otherwise = nodes.otherwise.astype(np.int32)
        keys = None if cells is None else self._keys(is_leaf, cells)
        return Tree(
            nodes.axis, threshold, nodes.first_child, nodes.n_children, branch, cover, otherwise, labels, keys
        )

    def _keys(self, is_leaf: NDArray[np.bool_], cells: Ints) -> CellKeys:
        """The leaves that are cells, by level and key."""
        found = CellKeys.nowhere((len(is_leaf), len(self.domains)))
        levels, keys = unpack_cells(cells)
        for a, domain in enumerate(self.domains):
            is_cell = levels[:, a] >= 0
            if not isinstance(domain, OrderedDomain):
                keys[is_cell, a] = self.new[a][keys[is_cell, a] - self.roots[a]]
        found.levels[is_leaf], found.keys[is_leaf] = levels, keys
        return found

    def _labels(self, is_leaf: NDArray[np.bool_], covers: Ints, cells: Ints | None) -> BoxEnds:
        """The slices that leaves have rows in, cut to their cells; unlimited elsewhere."""
        shape = (len(is_leaf), len(self.domains))
        found = BoxEnds.without_limits(shape)
        for a, (domain, slices) in enumerate(zip(self.domains, self.slices, strict=True)):
            if slices is None or not isinstance(domain, OrderedDomain):
                continue
            ends = narrow_spans(domain, slices, unpack_spans(np.maximum(covers[:, a], 0)))
            if cells is not None:
                ends = _cut_to_cells(ends, slices, *unpack_cells(cells[:, a]))
            for of_all, own in zip(found, ends, strict=True):
                of_all[is_leaf, a] = np.where(covers[:, a] >= 0, own, of_all[is_leaf, a])
        return found


def _as_shown(axis: Axis, slices: Slices | None, plan: RecodingPlan) -> Axis:
    """The axis, knowing what labels exclude or begin with, and how bounds tell of missing."""
    if isinstance(axis, TreeAxis):
        return replace(axis, excluded=ExcludedNodes(axis.nodes)) if plan.excludes else axis
    if slices is None:
        return axis
    is_flagged = plan.output.has_bounds and axis.has_missing
    return replace(axis, shows_least=slices.is_range and not slices.is_stepped, flags_missing=is_flagged)


def _with_levels(axis: Axis, domain: Domain, slices: Slices | None) -> Axis:
    """The axis, knowing the levels whose cells decision lists are made of."""
    if isinstance(axis, TreeAxis):
        assert not isinstance(domain, OrderedDomain)
        return replace(axis, height=domain.hierarchy.height)
    assert slices is not None
    cells = NumberCells(
        slices.lower, slices.step, slices.n_steps, axis.has_missing, is_stepped=slices.is_stepped
    )
    return replace(axis, cells=cells)


def _cut_to_cells(ends: BoxEnds, slices: Slices, levels: Ints, keys: Ints) -> BoxEnds:
    """The ends, inside cells of numbers; a cell of missing numbers cuts nothing."""
    is_cut, known = (levels >= 0) & (keys >= 0), np.maximum(keys, 0)
    width = np.clip(levels, 0, slices.n_steps.bit_length())
    first = np.where(is_cut, known << width, 0)
    last = np.where(is_cut, (known + 1 << width) - 1, slices.n_steps)
    low, high = slices.ends(first, last)
    return BoxEnds(np.maximum(ends.low, low), np.minimum(ends.high, high), ends.missing)


def narrow_spans(domain: OrderedDomain, slices: Slices, spans: Spans) -> BoxEnds:
    """The ends of the slices from the least to the greatest value; -inf as a high end where there is no value."""
    has_value = spans.least <= spans.greatest
    ends = (domain.value(np.where(has_value, codes, 0)) for codes in (spans.least, spans.greatest))
    least, greatest = (np.where(has_value & np.isfinite(end), end, slices.lower) for end in ends)
    low, high = slices.narrow(least, greatest)
    return BoxEnds(np.where(has_value, low, -np.inf), np.where(has_value, high, -np.inf), spans.missing)


# ---- on disk ---------------------------------------------------------------------------------------


def write_document(
    folder: Path, axes: Sequence[Axis], output: Output, nodes: Any, *, has_rests: bool, leaves_rows_out: bool
) -> None:
    """Write ``recoding.json``: everything but the nodes, and these or where they are."""
    document = {
        "format": FORMAT_OF_RESTS if has_rests else FORMAT,
        "output": str(output),
        **({LEAVES_OUT: True} if leaves_rows_out else {}),
        "attributes": [axis_as_dict(axis) for axis in axes],
        "nodes": nodes,
    }
    with replace_atomically(folder / "recoding.json") as temporary:
        temporary.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), encoding="utf-8")


def table_of(tree: Tree, axes: Sequence[Axis]) -> pa.Table:
    """The nodes as they are stored; a threshold of null is missing, or none."""
    is_ordered = np.array([isinstance(axis, OrderedAxis) for axis in axes])
    has_threshold = np.append(is_ordered, [False, False])[tree.axis] & np.isfinite(tree.threshold)
    columns = {
        "axis": tree.axis,
        "threshold": pa.array(tree.threshold, mask=~has_threshold),
        "first_child": tree.first_child,
        "n_children": tree.n_children,
        "branch": tree.branch,
    }
    for a in np.flatnonzero(~is_ordered):
        columns[f"cover_{a}"] = tree.cover[:, a]
    if tree.has_rests:
        columns["otherwise"] = tree.otherwise
    if tree.labels is not None:
        for of_axis in np.flatnonzero(is_ordered).tolist():
            columns |= _label_columns(tree, tree.labels, of_axis)
    if tree.cells is not None:
        for place, (levels, keys) in enumerate(zip(tree.cells.levels.T, tree.cells.keys.T, strict=True)):
            columns[f"level_{place}"], columns[f"key_{place}"] = levels, keys
    return pa.table(columns)


def _label_columns(tree: Tree, labels: BoxEnds, a: int) -> dict[str, Any]:
    """What is stored of labels along an ordered axis: ends that limit them, is any row missing, has any a value?"""
    low, high, missing = labels.along(a)
    is_there = tree.is_leaf & (high > -np.inf)
    return {
        f"low_{a}": pa.array(low, mask=~is_there | np.isneginf(low)),
        f"high_{a}": pa.array(high, mask=~is_there | np.isposinf(high)),
        f"missing_{a}": pa.array(missing & tree.is_leaf),
        f"value_{a}": pa.array(is_there),
    }


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
        column("otherwise", np.int32)
        if "otherwise" in nodes.column_names
        else np.full(nodes.num_rows, -1, dtype=np.int32),
        _labels_from(nodes, n_axes),
        _cells_from(nodes, n_axes),
    )


def _cells_from(nodes: pa.Table, n_axes: int) -> CellKeys | None:
    """The cells of lists that ``table_of`` stored, None if there are none."""
    if "level_0" not in nodes.column_names:
        return None
    found = CellKeys.nowhere((nodes.num_rows, n_axes))
    for a in range(n_axes):
        found.levels[:, a], found.keys[:, a] = nodes.column(f"level_{a}"), nodes.column(f"key_{a}")
    return found


def _labels_from(nodes: pa.Table, n_axes: int) -> BoxEnds | None:
    """The labels that ``table_of`` stored, None if there are none."""
    ordered = [a for a in range(n_axes) if f"value_{a}" in nodes.column_names]
    if not ordered:
        return None
    shape = (nodes.num_rows, n_axes)
    found = BoxEnds.without_limits(shape)
    is_leaf = np.asarray(nodes.column("axis")) < 0
    for a in ordered:
        low, high = (nodes.column(f"{end}_{a}").cast(pa.float64()) for end in ("low", "high"))
        missing, is_there = (np.asarray(nodes.column(f"{name}_{a}")) for name in ("missing", "value"))
        found.low[:, a] = np.asarray(low.fill_null(-np.inf))
        found.high[:, a] = np.where(is_leaf & ~is_there, -np.inf, np.asarray(high.fill_null(np.inf)))
        found.missing[:, a] = missing | ~is_leaf
    return found
