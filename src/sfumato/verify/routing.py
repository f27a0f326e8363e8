"""Which group each row of a raw table belongs to, by the recoding of a release: read and followed anew.

Rows are sent down the stored tree node by node, or looked up in the pieces of cuts. Shares nothing with the modules
that make recodings and apply them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.policy.schema import Attribute, Kind
from sfumato.table.cells import ordered, texts
from sfumato.table.source import Source
from sfumato.verify.cell_lists import MISSING_KEY, NodeLevels, NumberSteps
from sfumato.verify.groups import Combinations
from sfumato.verify.recoding import NodeAxis, ReadRecoding, ThresholdAxis
from sfumato.verify.tree_boxes import BoxEnds, StoredTree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NOWHERE = -1
"""The place of a row that no part of the recoding takes."""

SLACK = 1e-6
"""Of a step: room for the roundoff of numbers that lie on one."""


def route_rows(recoding: ReadRecoding, source: Source) -> Sequence[Ints]:
    """Along each axis, the place of each row's box among the ends of boxes; ``NOWHERE`` where nothing takes the row.

    A tree has boxes of its own, its leaves, in the order of its nodes: they are the same along all axes.
    """
    axes = [_RoutedAxis.of(axis, source) for axis in recoding.axes]
    if recoding.tree is None:
        pairs = zip(axes, recoding.ends, strict=True)
        return [_find_pieces(own, ends, has_holes=recoding.has_holes) for own, ends in pairs]
    node = _Route(recoding.tree, axes).follow(len(axes[0].place))
    number = np.cumsum(recoding.tree.axis < 0) - 1
    return [np.where(node >= 0, number[node], NOWHERE)] * len(axes)


# ---- cells -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _RoutedAxis:
    """The cells of a column where rows are routed.

    place   numbers, -inf where missing; or the deepest node of the recoding's hierarchy above each cell
    """

    axis: ThresholdAxis | NodeAxis
    place: NDArray[Any]

    @classmethod
    def of(cls, axis: ThresholdAxis | NodeAxis, source: Source) -> _RoutedAxis:
        attribute = axis.attribute
        column = source.column(attribute.name)
        if isinstance(axis, ThresholdAxis):
            cells = ordered(column, attribute)
            values = np.asarray(cells.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.float64)
            return cls(axis, np.where(np.asarray(cells.is_null()), -math.inf, values))
        return cls(axis, _find_nodes(axis, column))


def _find_nodes(axis: NodeAxis, column: Any) -> Ints:
    """The deepest node that the recoding has above each cell."""
    attribute = axis.attribute
    cells = _distinct(column, attribute)
    known = cells.dictionary.to_pylist()
    if attribute.kind is not Kind.CATEGORY:
        values = cells.dictionary.to_numpy(zero_copy_only=False)
        known = values.astype("datetime64[D]" if attribute.kind is Kind.DATE else np.float64)
    tree = attribute.build_hierarchy(known)
    leaves = tree.leaf_nodes[attribute.locate(tree, known).astype(np.int64)]
    below = {
        (above, label): node
        for node, (above, label) in enumerate(zip(axis.parent, axis.labels, strict=True))
        if node
    }
    of_value = []
    for leaf in leaves.tolist():
        way, above = [], leaf
        while above > 0:
            way.append(tree.labels[above])
            above = int(tree.parent[above])
        node = 0
        for label in reversed(way):
            if (node, label) not in below:
                break
            node = below[node, label]
        of_value.append(node)
    of_value.append(below.get((0, None), 0))
    indices = cells.indices.fill_null(len(of_value) - 1).to_numpy(zero_copy_only=False)
    return np.asarray(np.array(of_value, dtype=np.int64)[indices])


def _distinct(column: Any, attribute: Attribute) -> pa.DictionaryArray:
    if attribute.kind is Kind.CATEGORY:
        return texts(column, attribute)
    return ordered(column, attribute).dictionary_encode()


@dataclass(frozen=True, slots=True, eq=False)
class _Spans:
    """The nodes of a hierarchy in depth-first order: those below node v stand from ``first[v]`` up to ``last[v]``."""

    first: Ints
    last: Ints

    @classmethod
    def of(cls, parent: Sequence[int]) -> _Spans:
        n = len(parent)
        size = np.ones(n, dtype=np.int64)
        for node in range(n - 1, 0, -1):
            size[parent[node]] += size[node]
        first, filled = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
        for node in range(1, n):
            above = parent[node]
            first[node] = first[above] + filled[above]
            filled[above] += size[node]
        return cls(first, first + size)


# ---- trees -----------------------------------------------------------------------------------------


class _Route:
    """Rows on their way down a tree."""

    def __init__(self, tree: StoredTree, axes: Sequence[_RoutedAxis]) -> None:
        self.tree, self.axes = tree, axes
        self.spans = [_Spans.of(own.axis.parent) if isinstance(own.axis, NodeAxis) else None for own in axes]

    def follow(self, n_rows: int) -> Ints:
        """The leaf of each row, ``NOWHERE`` where none takes it."""
        tree, found = self.tree, np.full(n_rows, NOWHERE, dtype=np.int64)
        waiting: list[tuple[int, Ints]] = [(0, np.arange(n_rows))]
        while waiting:
            node, rows = waiting.pop()
            if not len(rows):
                continue
            if tree.axis[node] < 0:
                found[rows] = node
                continue
            child = self._child(node, rows)
            order = np.argsort(child, kind="stable")
            ends = np.searchsorted(child[order], np.arange(tree.n_children[node] + 1))
            for j, (start, end) in enumerate(itertools.pairwise(ends)):
                waiting.append((int(tree.first_child[node]) + j, rows[order[start:end]]))
        return found

    def _child(self, node: int, rows: Ints) -> Ints:
        """Which child of a node takes each of its rows."""
        tree, a = self.tree, int(self.tree.axis[node])
        if a == len(self.axes):
            return self._cell(node, rows)
        own, otherwise = self.axes[a], NOWHERE if tree.otherwise is None else int(tree.otherwise[node])
        place = own.place[rows]
        if isinstance(own.axis, ThresholdAxis):
            child: Ints = (place > tree.threshold[node]).astype(np.int64)
            if otherwise >= 0 and tree.threshold[node] > -math.inf:
                child[np.isneginf(place)] = otherwise  # else missing is the lowest number
            return child
        branches = tree.branch[tree.first_child[node] : tree.first_child[node] + tree.n_children[node]]
        spans = self.spans[a]
        assert spans is not None
        named = np.flatnonzero(branches >= 0)
        by_place = named[np.argsort(spans.first[branches[named]])]
        first, last = spans.first[branches[by_place]], spans.last[branches[by_place]]
        at = spans.first[np.maximum(place, 0)]
        near = np.searchsorted(first, at, side="right") - 1
        is_inside = (near >= 0) & (at < last[np.maximum(near, 0)]) & (place >= 0)
        rest = np.flatnonzero(branches < 0)
        elsewhere = int(rest[0]) if len(rest) else otherwise
        return np.where(is_inside, by_place[np.maximum(near, 0)], elsewhere)

    def _cell(self, node: int, rows: Ints) -> Ints:
        """The first cell of a list that contains each row, else the pool, if there is one."""
        tree, n = self.tree, int(self.tree.n_children[node])
        nodes = np.arange(n) + tree.first_child[node]
        levels = np.stack([own.level[nodes] for own in tree.cells], axis=1)
        keys = np.stack([own.key[nodes] for own in tree.cells], axis=1)
        has_pool = bool((levels[-1] < 0).any())
        n_cells = n - has_pool
        child = np.full(len(rows), n_cells if has_pool else NOWHERE, dtype=np.int64)
        left = np.arange(len(rows))
        changes = np.flatnonzero((np.diff(levels[:n_cells], axis=0) != 0).any(axis=1)) + 1
        starts = [0, *changes.tolist()] if n_cells else []
        for start, end in zip(starts, [*starts[1:], n_cells], strict=True):
            own = [self._keys(a, level, rows[left]) for a, level in enumerate(levels[start].tolist())]
            cells = Combinations.of([np.ascontiguousarray(column) for column in keys[start:end].T])
            cell_of = np.empty(cells.n, dtype=np.int64)
            cell_of[cells.of_line] = np.arange(start, end)
            found = cells.find(own)
            child[left[found >= 0]] = cell_of[found[found >= 0]]
            left = left[found < 0]
        return child

    def _keys(self, a: int, level: int, rows: Ints) -> Ints:
        """The key of each row at a level of an axis."""
        own, place = self.axes[a], self.axes[a].place[rows]
        levels = own.axis.levels
        assert levels is not None
        if isinstance(levels, NodeLevels):
            return _climb(levels, place.astype(np.int64), level)
        return _number_keys(levels, place, level)


def _number_keys(levels: NumberSteps, values: Floats, level: int) -> Ints:
    if level == levels.top:
        return np.zeros(len(values), dtype=np.int64)
    is_missing = np.isneginf(values)
    steps = np.ceil((np.where(is_missing, levels.lower, values) - levels.lower) / levels.step - SLACK)
    keys = np.clip(steps, 0, levels.n_steps).astype(np.int64) >> level
    return np.where(is_missing, MISSING_KEY, keys)


def _climb(levels: NodeLevels, node: Ints, level: int) -> Ints:
    while (deep := levels.depth[node] > levels.height - level).any():
        node[deep] = levels.parent[node[deep]]
    return node


# ---- cuts ------------------------------------------------------------------------------------------


def _find_pieces(own: _RoutedAxis, ends: BoxEnds, *, has_holes: bool) -> Ints:
    """The piece of an axis that each row is in."""
    if isinstance(own.axis, ThresholdAxis):
        piece = np.searchsorted(ends.high[:-1], own.place, side="left").astype(np.int64)
        if not has_holes:
            return piece
        low, high = ends.low[piece], ends.high[piece]
        is_missing = np.isneginf(own.place)
        is_inside = np.where(np.isnan(low), own.axis.has_missing | ~is_missing, own.place > low)
        return np.where(is_inside & (own.place <= high), piece, NOWHERE)
    place = np.full(len(own.axis.labels) + 1, NOWHERE, dtype=np.int64)
    place[ends.low.astype(np.int64)] = np.arange(len(ends.low))
    return np.asarray(place[own.place])
