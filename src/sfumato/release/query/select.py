"""Selections: which raw rows satisfy a predicate, which codes do, and which published boxes overlap it.

A selection from a release returns every row whose box overlaps the predicate [LDR08, section 3.2]; what it
returns beyond the rows that satisfy it is the *imprecision*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.encoding.cells import read_ordered
from sfumato.encoding.domain import Domain, OrderedDomain, TreeDomain
from sfumato.errors import InputError, PolicyError
from sfumato.policy.document import Policy
from sfumato.policy.finest import FinestSlices
from sfumato.policy.hierarchy.leaf_ranges import Ranges, read_leaf_ranges
from sfumato.policy.output import bound_names, missing_name, range_names
from sfumato.policy.predicate import Predicate
from sfumato.policy.rectangles import (
    MISSING_ALONE,
    Interval,
    Labels,
    Rectangle,
    Side,
    find_outside,
    make_disjoint,
)
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.recoding.axis import Axis, BoxEnds, OrderedAxis, TreeAxis
from sfumato.recoding.recoder import Recoder
from sfumato.release.query.overlap import AxisOverlap, NodeBoxes, RangeBoxes, make_boxes, snap_to_grid
from sfumato.table import cells as table_cells
from sfumato.table.combinations import number_combinations
from sfumato.table.source import Source

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

MAX_LINES = 10_000
MAX_PIECES = 1_000
"""Disjoint rectangles beyond which shares are bounded instead of added up."""

TOUCH = 2.0**-1000
"""The share of a box that overlaps a predicate in single points only: more than nothing."""


# ---- raw rows --------------------------------------------------------------------------------------


def matches(predicate: Predicate, source: Source, schema: Schema) -> Flags:
    """Which rows of a table as it came in satisfy a predicate.

    >>> from sfumato.policy.predicate import parse
    >>> from sfumato.table.opening import open_table
    >>> schema = Schema.of(age={"role": "quasi-identifier", "kind": "number"})
    >>> rows = open_table(pa.table({"age": [39, 40, None]}))
    >>> [matches(parse(f"{word} age >= 40", schema), rows, schema).tolist() for word in ("", "not")]
    [[False, True, False], [True, False, False]]
    """
    tests = {name: _test(source.column(name), schema[name]) for name in predicate.names}
    return find_satisfying(predicate, tests, source.n_rows)


def find_satisfying(predicate: Predicate, tests: Mapping[str, Callable[[Any], Flags]], n_rows: int) -> Flags:
    """Which rows satisfy a predicate, where ``tests`` tell which cells of a column lie in a side."""
    found = np.zeros(n_rows, dtype=np.bool_)
    for rectangle in predicate.rectangles:
        inside = np.ones(n_rows, dtype=np.bool_)
        for name, side in rectangle.sides.items():
            inside &= tests[name](side)
        found |= inside
    return found


def _test(column: Any, attribute: Attribute) -> Any:
    """A function from a side to the rows whose cells lie in it; the column is read once."""
    if attribute.kind is not Kind.CATEGORY:
        return number_test(read_ordered(attribute, column))
    cells = table_cells.texts(column, attribute)
    labels = [*cells.dictionary.to_pylist(), None]
    at = cells.indices.fill_null(len(labels) - 1).to_numpy(zero_copy_only=False)
    return lambda side: np.array([label in side for label in labels], dtype=np.bool_)[at]


def number_test(values: Floats) -> Callable[[Any], Flags]:
    """A function from a side to the numbers that lie in it."""
    return lambda side: (values >= side.low) & (values <= side.high)


# ---- codes -----------------------------------------------------------------------------------------


def code_ranges(predicate: Predicate, domains: Sequence[Domain]) -> Codes:
    """The predicate as rectangles of codes (lines, axes, 2): first and last code, both included.

    A region of an ordered axis reaches from one threshold to the next, over values that no row has: codes up
    to t overlap a line if its first code is <= t, and codes above t if its last is > t. So ``first`` is the
    code of the least value >= the low end, and ``last`` that of the least value >= the high end. Labels that
    are not neighbours make several lines; what no published box can reach makes none.
    """
    lines: list[tuple[tuple[int, int], ...]] = []
    for rectangle in predicate.rectangles:
        runs = [_runs(domain, rectangle.sides.get(domain.attribute.name)) for domain in domains]
        if len(lines) + int(np.prod([float(len(run)) for run in runs])) > MAX_LINES:
            raise PolicyError(
                f"The predicate falls into more than {MAX_LINES:,} ranges of values; ask for less at once."
            )
        lines += product(*runs)
    return np.array(list(dict.fromkeys(lines)), dtype=np.int64).reshape(-1, len(domains), 2)


def _runs(domain: Domain, side: Side | None) -> list[tuple[int, int]]:
    if side is None:
        return [(0, domain.n_codes - 1)]
    if isinstance(domain, TreeDomain):
        return _leaf_runs(domain, side)
    assert isinstance(side, Interval)
    if side.is_missing:
        return [(0, 0)] if domain.has_missing else []
    slices = FinestSlices.of(domain.attribute)
    step = domain.grid if slices is None else None  # of slices, each that a value may lie in is reached
    reachable = snap_to_grid(side, domain.low, step) & Interval(domain.low, domain.high)
    if not reachable:
        return []
    if slices is not None:
        ends = slices.represent(np.array([reachable.low, reachable.high]))
        reachable = Interval(float(ends[0]), float(ends[1]))
    return [(_first_code(domain, reachable.low), _first_code(domain, reachable.high))]


def _first_code(domain: OrderedDomain, value: float) -> int:
    """The first code of a value at or above this one; the last code if there is none."""
    least, last = int(domain.has_missing), domain.n_codes - 1
    if domain.values is not None:
        half = (domain.grid or 0.0) / 2  # values of a grid may differ in the last bit
        return min(max(int(np.searchsorted(domain.values, value - half)), least), last)
    return min(max(int(np.rint((value - domain.origin) / (domain.grid or 1.0))), least), last)


def _leaf_runs(domain: TreeDomain, side: Side) -> list[tuple[int, int]]:
    tree = domain.hierarchy
    labels = [tree.labels[node] for node in tree.leaf_nodes.tolist()]
    if isinstance(side, Labels):
        inside = np.array([label in side for label in labels], dtype=np.bool_)
    else:
        ranges = read_leaf_ranges(domain.attribute, labels)
        inside = (ranges.first <= side.high) & (ranges.last >= side.low)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(np.int8), [0]])))
    return [(int(start), int(end) - 1) for start, end in edges.reshape(-1, 2)]


# ---- published rows --------------------------------------------------------------------------------


class KnownBoxes(Protocol):
    """What says which boxes published cells stand for: a recoding, or the labels themselves."""

    @property
    def axes(self) -> Sequence[Axis]: ...
    def pieces(self, a: int) -> tuple[pa.Array, BoxEnds]:
        """The boxes along axis ``a``: published label, and ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """How boxes of published rows lie to a predicate: do they touch it, lie inside it, and which share of each does."""

    touches: Flags
    is_inside: Flags
    share: Floats


class Imprecision(NamedTuple):
    """How many rows a selection returns, how many satisfy it, and the difference."""

    returned: int
    true: int
    imprecision: int


def select_rows(predicate: Predicate, rows: pa.Table, recoding: KnownBoxes | None, policy: Policy) -> Flags:
    """Which published rows a selection returns: those whose box overlaps the predicate."""
    groups = group_rows(predicate.names, rows, recoding, policy)
    return groups.touches(predicate.rectangles)[groups.of_row]


def overlap(predicate: Predicate, rows: pa.Table, recoding: Recoder, policy: Policy) -> Floats:
    """The share in [0, 1] of each published row's box that lies in the predicate; 0 iff they do not overlap."""
    found = overlaps(predicate, rows, recoding, policy)
    return np.where(found.touches, np.maximum(found.share, TOUCH), 0.0)


def overlaps(predicate: Predicate, rows: pa.Table, recoding: Recoder, policy: Policy) -> Overlap:
    """How the box of each published row lies to a predicate."""
    groups = group_rows(predicate.names, rows, recoding, policy)
    found = groups.overlap(predicate.rectangles)
    return Overlap(found.touches[groups.of_row], found.is_inside[groups.of_row], found.share[groups.of_row])


def imprecision(
    predicate: Predicate, source: Source, schema: Schema, rows: pa.Table, recoding: Recoder, policy: Policy
) -> Imprecision:
    """What a selection from the published ``rows`` returns, against the rows of ``source`` that satisfy it.

    ``true`` is an exact count of raw rows.
    """
    returned = int(select_rows(predicate, rows, recoding, policy).sum())
    true = int(matches(predicate, source, schema).sum())
    return Imprecision(returned, true, returned - true)


@dataclass(frozen=True, slots=True, eq=False)
class AlikeRows:
    """Published rows that look alike in some columns: the cells of each group, and the group of each row.

    ``weight`` says how many rows each one stands for, where it is not one.
    """

    cells: Mapping[str, PublishedCells]
    of_row: Codes
    n: int
    weight: Codes | None = None

    @property
    def size(self) -> Codes:
        return np.bincount(self.of_row, self.weight, minlength=self.n).astype(np.int64)

    def overlap_one(self, rectangle: Rectangle) -> AxisOverlap:
        """How the box of each group lies to one rectangle: the shares along its sides, multiplied."""
        share, touches = np.ones(self.n), np.ones(self.n, dtype=np.bool_)
        for name, side in rectangle.sides.items():
            along = self.cells[name].overlap(side)
            share, touches = share * along.share, touches & along.touches
        return AxisOverlap(share, touches)

    def touches(self, rectangles: Sequence[Rectangle]) -> Flags:
        """Whether the box of each group overlaps any of the rectangles."""
        found = np.zeros(self.n, dtype=np.bool_)
        for rectangle in rectangles:
            found |= self.overlap_one(rectangle).touches
        return found

    def overlap(self, rectangles: Sequence[Rectangle]) -> Overlap:
        """How the box of each group lies to the union of rectangles."""
        touches, share = self.touches(rectangles), np.zeros(self.n)
        for rectangle in disjoint(rectangles):
            share += self.overlap_one(rectangle).share
        is_inside = self._find_inside(rectangles) & touches
        share = np.where(is_inside, 1.0, np.where(touches, np.minimum(share, 1.0), 0.0))
        return Overlap(touches, is_inside, share)

    def _find_inside(self, rectangles: Sequence[Rectangle]) -> Flags:
        """Boxes of which nothing can lie outside all rectangles; in doubt, those that lie within one of them."""
        rest = find_outside(rectangles, at_most=MAX_PIECES)
        rests = [Rectangle({}).minus(one) for one in rectangles] if rest is None else [rest]
        found = np.zeros(self.n, dtype=np.bool_)
        for pieces in rests:
            found |= ~self.touches(pieces)
        return found


def disjoint(rectangles: Sequence[Rectangle]) -> Sequence[Rectangle]:
    """Disjoint rectangles of the same union; where these are too many, the given ones, which are no less."""
    found = make_disjoint(rectangles, at_most=MAX_PIECES)
    return rectangles if found is None else found


def group_rows(
    names: Sequence[str],
    rows: pa.Table,
    recoding: KnownBoxes | None,
    policy: Policy,
    *,
    with_ranges: bool = False,
    beside: Sequence[NDArray[Any]] = (),
    weight: Codes | None = None,
) -> AlikeRows:
    """The rows of a release, alike in these quasi-identifiers (and in the columns ``beside`` them).

    ``with_ranges`` narrows each box to the least and greatest value of its group, where these are published.
    """
    cells, of_row = {}, []
    for name in names:
        known, row = _read_cells(recoding, name, rows, policy)
        is_number = policy.schema[name].kind is not Kind.CATEGORY
        if with_ranges and is_number and "range" in policy.statistics:
            known, row = _narrow_cells(known, row, rows, name)
        cells[name] = known
        of_row.append(row)
    columns = [*of_row, *beside] or [np.zeros(rows.num_rows, dtype=np.int64)]
    group = number_combinations(columns)
    first = group.first_rows()
    at = {
        name: replace(known, at=row[first]) for (name, known), row in zip(cells.items(), of_row, strict=True)
    }
    return AlikeRows(at, group.number, group.n, weight)


@dataclass(frozen=True, slots=True, eq=False)
class PublishedCells:
    """Published cells of one quasi-identifier.

    ``label`` numbers the cell of each box along the axis: several boxes may look the same when published.
    ``at`` are the cells in question.
    """

    boxes: RangeBoxes | NodeBoxes
    label: Codes
    at: Codes
    asked: dict[Side, AxisOverlap] = field(default_factory=dict, repr=False)

    def overlap(self, side: Side) -> AxisOverlap:
        """The share of each cell inside a side: the mean over the boxes that look like it."""
        if side not in self.asked:
            found = self.boxes.overlap(side)
            n_alike = np.bincount(self.label)
            share = np.bincount(self.label, weights=found.share) / np.maximum(n_alike, 1)
            self.asked[side] = AxisOverlap(share, np.bincount(self.label, weights=found.touches) > 0)
        return AxisOverlap(self.asked[side].share[self.at], self.asked[side].touches[self.at])

    def snap(self, side: Interval) -> Interval:
        """From the first value that a cell can have in a side to the last."""
        return self.boxes.snap(side)

    def find_ends(self) -> Ranges:
        """The first and last value of each cell; NaN for missing alone."""
        n = int(self.label.max()) + 1
        low, high = np.full(n, np.nan), np.full(n, np.nan)
        first, last = self.boxes.find_ends()
        np.fmin.at(low, self.label, first)
        np.fmax.at(high, self.label, last)
        return Ranges(low[self.at], high[self.at])


def _read_cells(
    recoding: KnownBoxes | None, name: str, rows: pa.Table, policy: Policy
) -> tuple[PublishedCells, Codes]:
    """The cells of one quasi-identifier, and which of them each row has."""
    if recoding is None:
        raise InputError(
            "The release has no recoding, which would say what its boxes are; only questions about all rows are answered."
        )
    a = [axis.attribute.name for axis in recoding.axes].index(name)
    axis = recoding.axes[a]
    labels, ends = recoding.pieces(a)
    if isinstance(axis, OrderedAxis) and not policy.output.has_labels:
        known = [np.asarray(_days(end).fill_null(np.nan)) for end in axis.bounds(*ends)]
        shown = [published_numbers(rows, own, axis.attribute.kind) for own in bound_names(name)]
        shown += [_published_flags(rows, missing_name(name))] if axis.flags_missing else []
        number = number_combinations([np.concatenate(pair) for pair in zip(known, shown, strict=True)]).number
        label, row = number[: len(ends.low)], number[len(ends.low) :]
    else:
        number_of = {text: i for i, text in enumerate(dict.fromkeys(labels.to_pylist()))}
        label = np.array([number_of[text] for text in labels.to_pylist()], dtype=np.int64)
        column = table_cells.texts(_column(rows, name), Attribute(name, Role.OTHER))
        texts = [*column.dictionary.to_pylist(), None]
        at = column.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
        row = np.array([number_of.get(text, -1) for text in texts], dtype=np.int64)[at]
    if n_strange := int((~np.isin(row, label)).sum()):
        raise InputError(
            f"Column {name!r} has {n_strange:,} cells that the recoding of the release does not know; "
            "read the whole release again."
        )
    return PublishedCells(make_boxes(axis, ends), label, row), row


def _narrow_cells(
    known: PublishedCells, row: Codes, rows: pa.Table, name: str
) -> tuple[PublishedCells, Codes]:
    """The cells divided by the range of their group, and no wider than it."""
    axis = known.boxes.axis
    ranges = [published_numbers(rows, own, axis.attribute.kind) for own in range_names(name)]
    finer = number_combinations([row, *ranges])
    first = finer.first_rows()
    cells = replace(known, at=row[first])
    low, high = cells.find_ends()
    boxes = RangeBoxes(
        axis if isinstance(axis, OrderedAxis) else _as_ordered(axis),
        Ranges(np.maximum(low, ranges[0][first]), np.minimum(high, ranges[1][first])),
        cells.overlap(MISSING_ALONE).touches,
    )
    return PublishedCells(boxes, np.arange(len(first)), finer.number), finer.number


def _as_ordered(axis: TreeAxis) -> OrderedAxis:
    """The axis of a number or date whose boxes are told by their least and greatest value."""
    grid = 1.0 if axis.attribute.kind is Kind.DATE else None
    return OrderedAxis(axis.attribute, 0.0, 0.0, grid, axis.has_missing)


def _column(rows: pa.Table, name: str) -> Any:
    if name not in rows.column_names:
        raise InputError(f"The release has no column {name!r}, though its policy publishes it.")
    return rows.column(name)


def published_numbers(rows: pa.Table, name: str, kind: Kind) -> Floats:
    """A published column of numbers or dates; missing is NaN."""
    values = read_ordered(Attribute(name, Role.OTHER, kind), _column(rows, name))
    return np.where(np.isneginf(values), np.nan, values)


def _published_flags(rows: pa.Table, name: str) -> Floats:
    """A published column of true and false; of a CSV file they are texts."""
    flags = table_cells.texts(_column(rows, name), Attribute(name, Role.OTHER))
    is_true = pc.equal(flags.dictionary, "true").take(flags.indices).fill_null(False)
    return np.asarray(is_true.to_numpy(zero_copy_only=False), dtype=np.float64)


def _days(end: pa.Array) -> pa.Array:
    return (end.cast(pa.int32()) if pa.types.is_date(end.type) else end).cast(pa.float64())
