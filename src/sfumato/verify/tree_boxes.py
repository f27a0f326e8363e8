"""The boxes of a tree of splits, as a release stores it: its nodes are checked, and its boxes worked out level by level.

Along each axis a node has a *piece*: its two ends. A node has the pieces of its parent, but for one end of one of them,
so it brings one new piece, which gets the node's number. All pieces of the root have number 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.verify.checks import Unfit

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NO_END = -1
"""Nothing limits the piece."""


@dataclass(frozen=True, slots=True)
class AxisShape:
    """What splits along an axis are: thresholds, or nodes of a hierarchy that has ``n_nodes`` of them.

    ``low`` and ``high`` are the ends of a box that nothing limits. ``excludes``: labels of rests say what they exclude.
    """

    low: float
    high: float
    n_nodes: int = 0
    excludes: bool = False

    @property
    def has_thresholds(self) -> bool:
        return self.n_nodes == 0


@dataclass(frozen=True, slots=True, eq=False)
class BoxEnds:
    """The distinct ends that boxes have along one axis; in a hierarchy ``low`` is the node.

    ``of_box`` says which of them each box has, None if each is a box of its own. ``missing`` says whether a missing cell
    belongs to them; None: wherever nothing limits them below. ``told`` are the nodes of a hierarchy that were told apart
    from the rows of each, if labels say so.
    """

    low: Floats
    high: Floats
    of_box: Any = None
    missing: Any = None
    told: Sequence[frozenset[int]] = ()


# ---- the nodes -------------------------------------------------------------------------------------

LABEL_COLUMNS = ("low", "high", "missing", "value")
CELL_COLUMNS = ("level", "key")


@dataclass(frozen=True, slots=True, eq=False)
class StoredLabels:
    """What is published of leaves along one axis of thresholds: ends that their boxes are cut to.

    A low or high end of null limits nothing. ``missing``: some rows lack a value; ``value``: some have one.
    """

    low: Floats
    high: Floats
    missing: NDArray[np.bool_]
    value: NDArray[np.bool_]

    @classmethod
    def of(cls, nodes: pa.Table, a: int, is_leaf: NDArray[np.bool_]) -> StoredLabels:
        """The labels along axis ``a``; Unfit if they are none."""
        low, high, missing, value = (nodes.column(f"{name}_{a}").chunk(0) for name in LABEL_COLUMNS)
        if not all(pa.types.is_boolean(flags.type) and not flags.null_count for flags in (missing, value)):
            raise Unfit("its labels do not say where cells are missing")
        ends = [end.cast(pa.float64()) for end in (low, high)]
        flags = [flag.to_numpy(zero_copy_only=False) for flag in (missing, value)]
        is_there = [end.is_valid().to_numpy(zero_copy_only=False) for end in ends]
        if np.any((is_there[0] | is_there[1]) & ~flags[1]) or np.any((flags[0] | flags[1]) != is_leaf):
            raise Unfit("a label stands where no group is, or a group has none")
        first, last = (
            end.fill_null(limit).to_numpy() for end, limit in zip(ends, (-math.inf, math.inf), strict=True)
        )
        return cls(first, last, flags[0], flags[1])

    def narrow(self, ends: BoxEnds, leaves: Ints) -> BoxEnds:
        """The ends of the leaves' boxes, cut to their labels."""
        value = self.value[leaves]
        low = np.where(value, np.fmax(ends.low[ends.of_box], self.low[leaves]), -math.inf)
        high = np.where(value, np.minimum(ends.high[ends.of_box], self.high[leaves]), -math.inf)
        lines = np.stack([low, high, self.missing[leaves].astype(np.float64)], axis=1)
        known, of_box = np.unique(lines, axis=0, return_inverse=True)
        return BoxEnds(known[:, 0], known[:, 1], of_box.reshape(-1), known[:, 2] > 0)


class StoredCells(NamedTuple):
    """The level and the key of each node along one axis; -1 and -1 where it is no cell of a list."""

    level: Ints
    key: Ints


class ListChildren(NamedTuple):
    """The children of lists: their nodes, which list each is of, and whether it is the last one there."""

    node: Ints
    of_list: Ints
    is_last: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class StoredTree:
    """The splits: ``axis`` is -1 where a node is a group, and children stand next to each other after their parent."""

    shapes: Sequence[AxisShape]
    axis: Ints
    threshold: Floats
    first_child: Ints
    n_children: Ints
    branch: Ints
    cover: Mapping[int, Ints]
    otherwise: Ints | None = None
    """Which child takes what no branch names; None in trees as published, which have no rests."""
    labels: Mapping[int, StoredLabels] = field(default_factory=dict)
    cells: Sequence[StoredCells] = ()
    """Of each axis, if nodes may be divided by a list of cells; its children are these. Their axis is one too many."""

    @classmethod
    def of(
        cls, nodes: pa.Table, shapes: Sequence[AxisShape], *, has_rests: bool = False, has_lists: bool = False
    ) -> StoredTree:
        """The tree of these nodes; Unfit if they are none."""
        covered = [a for a, shape in enumerate(shapes) if not shape.has_thresholds]
        ordered = [a for a, shape in enumerate(shapes) if shape.has_thresholds] if has_rests else []
        whole = ["axis", "first_child", "n_children", "branch", *(f"cover_{a}" for a in covered)]
        whole += ["otherwise"] if has_rests else []
        if has_lists:
            whole += [f"{name}_{a}" for a in range(len(shapes)) for name in CELL_COLUMNS]
        labels = [f"{name}_{a}" for a in ordered for name in LABEL_COLUMNS]
        if {*nodes.column_names} != {*whole, *labels, "threshold"} or not nodes.num_rows:
            raise Unfit("its nodes have other columns")
        if any(
            nodes.column(name).null_count or not pa.types.is_integer(nodes.column(name).type)
            for name in whole
        ):
            raise Unfit("its nodes are no whole numbers")
        nodes = nodes.combine_chunks()
        found = {name: nodes.column(name).chunk(0).to_numpy().astype(np.int64) for name in whole}
        points = nodes.column("threshold").chunk(0).cast(pa.float64())
        is_split = found["axis"] >= 0
        has_thresholds = _has_thresholds(shapes)[np.maximum(found["axis"], 0)]
        is_there = points.is_valid().to_numpy(zero_copy_only=False)
        tree = cls(
            shapes,
            found["axis"],
            points.fill_null(-math.inf).to_numpy(),
            found["first_child"],
            found["n_children"],
            found["branch"],
            {a: found[f"cover_{a}"] for a in covered},
            found.get("otherwise"),
            {a: StoredLabels.of(nodes, a, found["axis"] < 0) for a in ordered},
            [StoredCells(*(found[f"{name}_{a}"] for name in CELL_COLUMNS)) for a in range(len(shapes))]
            if has_lists
            else (),
        )
        if np.any(is_there & ~(is_split & has_thresholds)):
            raise Unfit("a threshold stands where nothing is split by one")
        tree.check()
        return tree

    def check(self) -> None:
        """Children tile the nodes after the first, each after its parent; what is no split has none."""
        n, inner = len(self.axis), np.flatnonzero(self.axis >= 0)
        first, count = self.first_child[inner], self.n_children[inner]
        order = np.argsort(first, kind="stable")  # they are mostly in order
        ends = np.append(1, (first + count)[order])
        is_leaf = self.axis < 0
        is_tree = (
            np.array_equal(first[order], ends[:-1])
            and ends[-1] == n
            and np.all(first > inner)
            and np.all(count >= 1)
            and np.all(self.first_child[is_leaf] == -1)
            and np.all(self.n_children[is_leaf] == 0)
            and np.all(self.axis[is_leaf] == -1)
            and all(np.all((cover == -1) | is_leaf | (self.axis == a)) for a, cover in self.cover.items())
            and np.all(self.axis < len(self.shapes) + bool(self.cells))
            and self.branch[0] == -1
            and (self.otherwise is None or _are_children(self.otherwise, self.n_children))
        )
        if not is_tree:
            raise Unfit("its nodes are no tree")
        self._check_branches(inner)

    def _check_branches(self, inner: Ints) -> None:
        """A threshold splits in two, and all else are nodes of the hierarchies that are there."""
        size = np.array([*(2 if shape.has_thresholds else shape.n_nodes for shape in self.shapes), 0])
        is_ordered = _has_thresholds(self.shapes)
        count, split = self.n_children[inner], self.axis[inner]
        child = np.repeat(self.first_child[inner], count) + _within(count)
        branch, above = self.branch[child], np.repeat(split, count)
        is_in_place = (branch == _within(count)) | ~is_ordered[above]
        if np.any(is_ordered[split] & (count != 2)) or not is_in_place.all():
            raise Unfit("a threshold does not split in two")
        covers = [(cover, size[a]) for a, cover in self.cover.items()]
        is_last = _within(count) == np.repeat(count, count) - 1
        is_listed = above == len(self.shapes)
        is_rest = (branch == -1) & (is_last | is_listed) & ~is_ordered[above] & (self.otherwise is not None)
        if np.any(((branch < 0) & ~is_rest) | (branch >= size[above])) or any(
            np.any((cover < -1) | (cover >= n)) for cover, n in covers
        ):
            raise Unfit("its nodes name a node of a hierarchy that is not there")

    def leaf_ends(self) -> list[BoxEnds]:
        """The ends of the boxes of its leaves along each axis."""
        inner, leaves = np.flatnonzero(self.axis >= 0), np.flatnonzero(self.axis < 0)
        points, place = self._points(inner)
        found = find_pieces(self._changes(inner, place), inner, leaves, len(self.shapes))
        ends = [
            _threshold_ends(found, a, points[a], shape)
            if shape.has_thresholds
            else self._node_ends(found, a, leaves)
            for a, shape in enumerate(self.shapes)
        ]
        return [self.labels[a].narrow(own, leaves) if a in self.labels else own for a, own in enumerate(ends)]

    def _node_ends(self, found: Pieces, a: int, leaves: Ints) -> BoxEnds:
        """The distinct nodes of a hierarchy that boxes have: the one that covers all their rows, if that is lower."""
        cover, column = self.cover[a][leaves], found.of_leaf[a]
        nodes = np.where(cover >= 0, cover, np.maximum(found.low[column], 0))
        rest_of = (
            found.high[column].astype(np.int64) if self.shapes[a].excludes else np.full(len(leaves), NO_END)
        )
        n = len(self.axis) + 1
        known, of_box = np.unique(nodes * n + rest_of + 1, return_inverse=True)
        low, split = np.divmod(known, n)
        told = self._told_apart(found, a, split - 1) if self.shapes[a].excludes else ()
        return BoxEnds(low.astype(np.float64), low.astype(np.float64), of_box, told=told)

    def _told_apart(self, found: Pieces, a: int, splits: Ints) -> list[frozenset[int]]:
        """The nodes that each of these splits tells apart from its rest, and all that were told apart above."""
        above = dict(zip(found.inner.tolist(), found.high[found.of_inner[a]].tolist(), strict=True))
        told: dict[int, frozenset[int]] = {NO_END: frozenset()}
        for split in splits.tolist():
            way = [split]
            while way[-1] not in told:
                way.append(above[way[-1]])
            for node in reversed(way[:-1]):
                children = slice(self.first_child[node], self.first_child[node] + self.n_children[node])
                told[node] = told[above[node]] | {
                    branch for branch in self.branch[children].tolist() if branch >= 0
                }
        return [told[split] for split in splits.tolist()]

    def _points(self, inner: Ints) -> tuple[list[Floats], Ints]:
        """The different thresholds along each axis, and the number of each node's."""
        points, place, split = [], np.zeros(len(self.axis), dtype=np.int64), self.axis[inner]
        for a, shape in enumerate(self.shapes):
            here = inner[split == a] if shape.has_thresholds else inner[:0]
            known, place[here] = np.unique(self.threshold[here], return_inverse=True)
            points.append(known)
        return points, place

    def _changes(self, inner: Ints, place: Ints) -> Changes:
        """Below a threshold it is the high end that changes, above it the low one.

        A node of a hierarchy is a low end. A rest has its parent's node, and this parent as its high end. Cells of lists
        have their parent's piece, and so has what is left when missing goes to another child.
        """
        count = self.n_children[inner]
        within = _within(count)
        child = np.repeat(self.first_child[inner], count) + within
        parent, axis = np.zeros((2, len(self.axis)), dtype=np.int64)
        parent[child], axis[child] = np.repeat(inner, count), np.repeat(self.axis[inner], count)
        is_ordered = _has_thresholds(self.shapes)[axis]
        is_first = np.zeros(len(axis), dtype=np.bool_)
        is_first[child] = within == 0
        is_listed = axis == len(self.shapes)
        is_rest = ~is_ordered & ~is_listed & (self.branch < 0)
        end = np.where(is_ordered, place[parent], np.where(is_rest, parent, self.branch))
        is_present = (
            is_ordered & ~is_first & np.isneginf(self.threshold[parent]) & (self.otherwise is not None)
        )
        axis[is_listed] = 0
        return Changes(parent, axis, (is_ordered & is_first) | is_rest, end, is_listed | is_present)

    def find_list_children(self) -> ListChildren:
        """The children of lists."""
        lists = np.flatnonzero(self.axis == len(self.shapes))
        count = self.n_children[lists]
        within, of_list = _within(count), np.repeat(lists, count)
        return ListChildren(
            self.first_child[of_list] + within, of_list, within == self.n_children[of_list] - 1
        )


def _has_thresholds(shapes: Sequence[AxisShape]) -> NDArray[np.bool_]:
    """Is a node on each axis split by a threshold? By number, with that of lists behind."""
    return np.array([*(shape.has_thresholds for shape in shapes), False])


def _are_children(number: Ints, count: Ints) -> bool:
    """Is each number that of a child, or -1?"""
    return bool(np.all((number >= -1) & (number < np.maximum(count, 0))))


def _within(count: Ints) -> Ints:
    """The place of each child among those of its parent, who have so many each."""
    return np.asarray(np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count))


def _threshold_ends(found: Pieces, a: int, points: Floats, shape: AxisShape) -> BoxEnds:
    """The distinct ends of boxes along an axis of thresholds, whose numbers become the thresholds themselves."""
    column = found.of_leaf[a]
    is_used = np.zeros(len(found.low), dtype=np.bool_)
    is_used[column] = True
    pieces = np.flatnonzero(is_used)
    n = len(points) + 1
    of_piece = np.empty(len(found.low), dtype=np.int32)
    key = (found.low[pieces] + np.int64(1)) * n + found.high[pieces] + 1
    known, of_piece[pieces] = np.unique(key, return_inverse=True)
    low, high = np.divmod(known, n)
    return BoxEnds(np.append(shape.low, points)[low], np.append(shape.high, points)[high], of_piece[column])


# ---- level by level --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """How the piece of each node along one ``axis`` differs from its parent's: by its low end, or its high one.

    The root is its own parent, and changes nothing.
    """

    parent: Ints
    axis: Ints
    is_high: NDArray[np.bool_]
    end: Ints
    is_same: Any = False
    """Where a node has its parent's piece."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The pieces of a tree's nodes: ``low`` and ``high`` end by number, and the numbers by axis.

    Those of the leaves are in their order; those of other nodes in the order of ``inner``.
    """

    low: NDArray[np.integer[Any]]
    high: NDArray[np.integer[Any]]
    of_leaf: NDArray[np.integer[Any]]
    inner: Ints
    of_inner: NDArray[np.integer[Any]]


def find_pieces(changes: Changes, inner: Ints, leaves: Ints, n_axes: int) -> Pieces:
    """Pieces are numbered anew, level by level, so that those of a level stand side by side.

    >>> a, b = np.array([0, 0, 0]), np.array([NO_END, 7, 7])
    >>> found = find_pieces(Changes(a, a, np.array([False, True, False]), b), np.array([0]), np.array([1, 2]), 1)
    >>> found.low[found.of_leaf].tolist(), found.high[found.of_leaf].tolist()
    ([[-1, 7]], [[7, -1]])
    """
    n = len(inner) + len(leaves)
    inner, levels = _by_level(inner, changes.parent)
    nodes, numbers = np.concatenate([inner, leaves]), np.arange(n)
    number = np.empty(n, dtype=np.int64)
    number[nodes] = numbers
    above, end, first = number[changes.parent[nodes]], changes.end[nodes], changes.axis[nodes] * n
    is_same = None if changes.is_same is False else changes.is_same[nodes]
    own, changed, end_at = first + numbers, first + above, changes.is_high[nodes] * n + numbers
    pieces, ends = np.zeros((n_axes, n), dtype=np.int32), np.full((2, n), NO_END, dtype=np.int32)
    for here in levels if n > 1 else ():
        before = pieces.take(changed[here])
        for row in ends:
            row.take(before, out=row[here], mode="clip")  # the only mode that writes in place
        new = here if is_same is None else np.flatnonzero(~is_same[here]) + here.start
        ends.put(end_at[new], end[new])
        for row in pieces:
            row.take(above[here], out=row[here], mode="clip")
        pieces.put(own[here], numbers[here])
    low, high = ends
    return Pieces(low, high, pieces[:, len(inner) :], inner, pieces[:, : len(inner)])


def _by_level(inner: Ints, parent: Ints) -> tuple[Ints, Iterator[slice]]:
    """The nodes that are split, those next to the root first; where each level below it begins and ends, leaves last."""
    place = np.zeros(len(parent), dtype=np.int64)
    place[inner] = np.arange(len(inner))
    above = place[parent[inner]]
    depth = np.ones(len(inner), dtype=np.int64)
    depth[:1] = 0
    while above.any():  # of each node, as far up as twice the steps of the round before
        depth += depth[above]
        above = above[above]
    size = np.bincount(depth)
    order = np.argsort(depth.astype(np.min_scalar_type(len(size))), kind="stable")  # of few bits it is faster
    ends = [*np.cumsum(size).tolist(), len(parent)]
    return inner[order], map(slice, ends[:-1], ends[1:])
