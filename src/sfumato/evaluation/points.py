r"""Points for models to learn from: cells as they are, or boxes turned into numbers [LDR08, section 4.2].

A box of d attributes becomes a point of 2d numbers, its **corners**: the low and the high end of each attribute. The
ends of a category are the codes of its first and last leaf, in the depth-first order of the hierarchy. Two other ways
are there for comparison: the **midpoint** of a box, d numbers, and a **sample** of it, drawn evenly from the values
that it covers and does not exclude, as if it were a row. Corners and midpoints are those of the covering label.

Methods whose cuts all groups share (top-down specialization, DiffGen) need none of this: an attribute has few values
then, intervals or nodes, and models learn from these **values** as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.encoding.domain import TreeDomain
from sfumato.encoding.encoders import encode_axis
from sfumato.errors import InternalError, TableError
from sfumato.evaluation.features import Features
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Kind, Schema
from sfumato.randomness import Random
from sfumato.recoding.axis import BoxEnds, OrderedAxis, TreeAxis, distinct_boxes
from sfumato.table import cells as table_cells
from sfumato.table.source import Source

LEARN_FROM = ("corners", "midpoint", "sample")
VALUES = "values"
"""What shared cuts are learned from."""

LARGEST = 1e38
"""The largest number that can be learned from: trees hold numbers in 32 bits."""

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


# ---- cells as they are -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class NumberColumn:
    """A column of numbers, or of dates as days; missing is NaN."""

    values: Floats

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        return np.isnan(self.values)

    @property
    def cells(self) -> Floats:
        return self.values

    def take(self, rows: Codes) -> NumberColumn:
        return NumberColumn(self.values[rows])


@dataclass(frozen=True, slots=True, eq=False)
class CategoryColumn:
    """A column of texts as codes, in the order of the texts; a missing cell is a value of its own, the last.

    ``texts`` are what the codes stand for, where somebody asks for them.
    """

    codes: Codes
    n_values: int
    is_missing: NDArray[np.bool_]
    texts: pa.Array | None = None

    @property
    def cells(self) -> Codes:
        return self.codes

    def take(self, rows: Codes) -> CategoryColumn:
        return CategoryColumn(self.codes[rows], self.n_values, self.is_missing[rows], self.texts)


Column = NumberColumn | CategoryColumn


def read(sources: Sequence[Source], schema: Schema, names: Sequence[str]) -> dict[str, Column]:
    """Columns of several tables, one table after the other, under common codes.

    >>> from sfumato.table.opening import open_table
    >>> table = open_table(pa.table({"sex": ["m", None, "f"]}))
    >>> read([table], Schema.of(sex="other"), ["sex"])["sex"].codes
    array([1, 2, 0])
    """
    return {
        name: _column([source.column(name) for source in sources], schema[name])
        for name in dict.fromkeys(names)
    }


def _column(parts: Sequence[Any], attribute: Attribute) -> Column:
    if attribute.kind is not Kind.CATEGORY:
        return NumberColumn(np.concatenate([_numbers(part, attribute) for part in parts]))
    decoded = [table_cells.texts(part, attribute).dictionary_decode() for part in parts]
    cells = pa.chunked_array(decoded, pa.string()).combine_chunks().dictionary_encode()
    n_texts, order = len(cells.dictionary), pc.sort_indices(cells.dictionary)
    rank = np.empty(n_texts + 1, dtype=np.int64)
    rank[order.to_numpy()] = np.arange(n_texts)
    rank[n_texts] = n_texts
    at = cells.indices.fill_null(n_texts).to_numpy(zero_copy_only=False)
    texts = cells.dictionary.take(order)
    return CategoryColumn(rank[at], n_texts + bool(cells.null_count), at == n_texts, texts)


def _numbers(column: Any, attribute: Attribute) -> Floats:
    cells = table_cells.ordered(column, attribute)
    numbers = np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    if np.any(np.abs(numbers) > LARGEST):
        raise TableError(
            f"Column {attribute.name!r} holds numbers beyond {LARGEST:g}, which no model can learn from; "
            "mend them, or give the column another unit."
        )
    return numbers


def as_features(columns: Mapping[str, Column]) -> Features:
    """Columns of equal length as points."""
    wide = {name: column for name, column in columns.items() if isinstance(column, NumberColumn)}
    rest = {name: column for name, column in columns.items() if isinstance(column, CategoryColumn)}
    n_rows = len(next(iter(columns.values())).is_missing)
    numbers = np.empty((n_rows, len(wide)))
    for i, column in enumerate(wide.values()):
        numbers[:, i] = column.values
    return Features(
        numbers,
        tuple(column.codes for column in rest.values()),
        tuple(column.n_values for column in rest.values()),
        (*wide, *rest),
    )


# ---- boxes -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ExcludedLeaves:
    """The leaves that the labels of rows exclude along one hierarchy.

    ``number`` says which set each row has, and ``ranges`` of each set its leaves from one code up to another, ascending.
    """

    number: Codes
    ranges: Mapping[int, Sequence[tuple[int, int]]]

    @classmethod
    def of(cls, axis: TreeAxis, numbers: Floats, low: Codes, high: Codes) -> ExcludedLeaves:
        """``low`` and ``high`` are the codes of the leaves below each node of the axis, in the whole hierarchy."""
        assert axis.excluded is not None
        known = np.unique(numbers.astype(np.int64)).tolist()
        nodes = {number: axis.excluded.outermost(number) for number in known}
        ranges = {number: [(int(low[n]), int(high[n])) for n in own] for number, own in nodes.items()}
        return cls(numbers.astype(np.int64), ranges)

    def sample(self, first: Floats, last: Floats, share: Floats) -> Codes:
        """A leaf of each row: the ``share`` of the way from its first to its last one that is not excluded.

        >>> rows = ExcludedLeaves(np.array([0, 1, 1]), {0: (), 1: [(1, 3), (4, 5)]})
        >>> rows.sample(np.zeros(3), np.full(3, 5.0), np.array([0.5, 0.5, 0.9])).tolist()
        [3, 3, 5]
        """
        n_excluded = {number: sum(end - start for start, end in own) for number, own in self.ranges.items()}
        codes = _sample_leaves(first, last - np.array([n_excluded[n] for n in self.number.tolist()]), share)
        for number, ranges in self.ranges.items():
            rows = np.flatnonzero(self.number == number)
            for start, end in ranges:
                codes[rows] += np.where(codes[rows] >= start, end - start, 0)
        return codes


def _sample_leaves(first: Floats, last: Floats, share: Floats) -> Codes:
    return np.minimum(np.floor(first + share * (last - first + 1)), last).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class RowBoxes:
    """The box of each row, as published: its two ends on every axis.

    Numbers and dates: the first and last value that the label shows, NaN where missing is all it says.
    Hierarchies: the codes of the first and last leaf of the whole hierarchy (``trees``, by attribute); some leaves between
    them may be ``excluded``.
    """

    axes: tuple[OrderedAxis | TreeAxis, ...]
    trees: Mapping[str, Hierarchy]
    first: Floats
    last: Floats
    excluded: Mapping[str, ExcludedLeaves] = field(default_factory=dict)

    def columns(self, learn_from: str, random: Random) -> dict[str, dict[str, Column]]:
        """Of each attribute, the columns that stand for it."""
        return {
            axis.attribute.name: self._columns_of(a, axis, learn_from, random)
            for a, axis in enumerate(self.axes)
        }

    def _columns_of(
        self, a: int, axis: OrderedAxis | TreeAxis, learn_from: str, random: Random
    ) -> dict[str, Column]:
        name, first, last = axis.attribute.name, self.first[:, a], self.last[:, a]
        match learn_from:
            case "corners":
                return {f"{name} (low)": NumberColumn(first), f"{name} (high)": NumberColumn(last)}
            case "midpoint":
                return {name: NumberColumn((first + last) / 2)}
            case "sample":
                return {name: self._sample(axis, first, last, random)}
            case "values":
                return {name: _as_values(first, last)}
        raise InternalError(f"Nothing learns from {learn_from}.")

    def _sample(self, axis: OrderedAxis | TreeAxis, first: Floats, last: Floats, random: Random) -> Column:
        share = random.random(len(first))
        if isinstance(axis, TreeAxis):
            name = axis.attribute.name
            n_leaves = self.trees[name].n_leaves
            if name in self.excluded:
                codes = self.excluded[name].sample(first, last, share)
            else:
                codes = _sample_leaves(first, last, share)
            return CategoryColumn(codes, n_leaves, np.zeros(len(codes), dtype=np.bool_))
        if axis.grid is None:
            return NumberColumn(last - share * (last - first))  # the low end of such a box is open
        steps = np.rint((last - first) / axis.grid)
        return NumberColumn(first + axis.grid * np.minimum(np.floor(share * (steps + 1)), steps))


def _as_values(first: Floats, last: Floats) -> CategoryColumn:
    """The distinct boxes of one axis as categories, in the order of their ends."""
    codes, distinct, *_ = distinct_boxes(first, last, np.zeros(len(first), dtype=np.bool_))
    return CategoryColumn(codes.astype(np.int64), len(distinct), np.zeros(len(codes), dtype=np.bool_))


def find_boxes(recoding: Any, fitted: Source, others: Sequence[Source] = ()) -> RowBoxes:
    """The boxes of the rows that a recoding was fitted to, and after them those of other rows."""
    trees = {
        axis.attribute.name: _whole_tree(axis, fitted) for axis in recoding.axes if isinstance(axis, TreeAxis)
    }
    return boxes_from_ends(recoding, [recoding.box_ends(source) for source in (fitted, *others)], trees)


def boxes_from_ends(recoding: Any, ends: Sequence[BoxEnds], trees: Mapping[str, Hierarchy]) -> RowBoxes:
    """Boxes from their ends in a recoding; ``trees`` are the whole hierarchies."""
    low, high, _ = (np.concatenate(side) for side in zip(*ends, strict=True))
    first, last = np.empty_like(low), np.empty_like(high)
    excluded = {}
    for a, axis in enumerate(recoding.axes):
        if isinstance(axis, TreeAxis):
            whole = trees[axis.attribute.name]
            node = np.array([whole.descend(axis.nodes.path(n)) for n in range(axis.nodes.n_nodes)])
            at = node[low[:, a].astype(np.int64)]
            first[:, a], last[:, a] = whole.low[at], whole.high[at] - 1
            if axis.excluded is not None:
                own = ExcludedLeaves.of(axis, high[:, a], whole.low[node], whole.high[node])
                excluded[axis.attribute.name] = own
        else:
            first[:, a], last[:, a] = _shown_ends(axis, low[:, a], high[:, a])
    return RowBoxes(recoding.axes, trees, first, last, excluded)


def _whole_tree(axis: TreeAxis, fitted: Source) -> Hierarchy:
    """The whole hierarchy of an axis: a recoding keeps only the nodes that it uses."""
    domain, _ = encode_axis(fitted, axis.attribute)
    assert isinstance(domain, TreeDomain)
    return domain.hierarchy


def _shown_ends(axis: OrderedAxis, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    is_missing = np.isneginf(high) | (axis.low > axis.high)
    first, last = axis.ends(low, np.where(is_missing, 0.0, high))
    return np.where(is_missing, np.nan, first), np.where(is_missing, np.nan, last)
