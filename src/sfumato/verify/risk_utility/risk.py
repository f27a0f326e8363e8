r"""Risk of a risk-utility release, computed again from its boxes and the side table it was made with.

.. math:: r(x) = \frac{\Phi(x)}{|\rho(x)|}                                   [FEB12, section 2.1.2]

Phi(x) is the floor plus the weights of the nodes of x, rho(x) the rows of the side table that it covers. A row that the
side table lacks counts itself, too. A box does not tell whether its row is lacking, unless it covers nobody; the
certificate tells how many are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import TableError, did_you_mean, number_of, of_side_table
from sfumato.policy.options.risk_utility import DEPTH, RiskUtilityOptions
from sfumato.policy.schema import Attribute, Role
from sfumato.release.folder import sha256_of
from sfumato.table.reading import open_as
from sfumato.table.source import Source
from sfumato.verify.checks import Check, check_equal
from sfumato.verify.groups import Codes, group
from sfumato.verify.groups import values_of as values_alike
from sfumato.verify.risk_utility.boxes import Boxes, Utilities
from sfumato.verify.risk_utility.claims import RISKS_ARE_WEIGHTED, RunFigures, check_promise, share_faults
from sfumato.verify.risk_utility.labels import LabelColumn, cells_of, values_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_READINGS = 64
"""Ways to read one box, if labels stand at several nodes; beyond that nothing is said of it."""

TOLERANCE = 1e-9
ROUNDING = 2.0**-31
"""Of the greatest weight that a box could have: so much each weight may have been rounded by in the run."""

AT_ONCE = 1 << 18
"""So many pairs of a box and a row are compared in one go."""

WORDS = ("mean", "greatest")

Cells = Mapping[str, pa.DictionaryArray]


def _cells(source: Source, boxes: Boxes) -> Cells:
    """The cells of each quasi-identifier of a side table; a TableError if it lacks one."""
    attributes = [column.attribute for column in boxes.columns]
    for attribute in attributes:
        if attribute.name not in source.names:
            hint = did_you_mean(attribute.name, source.names)
            raise TableError(
                f"{source.where} has no column {attribute.name!r}, which risk is counted by.{hint}"
            )
    return {attribute.name: cells_of(source.column(attribute.name), attribute) for attribute in attributes}


@dataclass(frozen=True, eq=False)
class VerifiedSideTable:
    """The distinct rows of a side table, as leaves of the hierarchies of the release."""

    columns: tuple[LabelColumn, ...]
    codes: Ints
    count: Ints
    people: RowsOfPeople | None = None
    """Of people, if these count."""

    @property
    def n_rows(self) -> int:
        return int(self.count.sum())

    @property
    def n_people(self) -> int | None:
        """None if rows count."""
        return None if self.people is None else int(self.people.starts_person.sum())

    @property
    def alike(self) -> Ints:
        """How many rows, or people, have each distinct row."""
        return self.count if self.people is None else np.bincount(self.people.row, minlength=len(self.codes))

    def count_in(self, low: Ints, high: Ints) -> Ints:
        """The rows, or people, within each box."""
        if self.people is None:
            return count_rows_in_boxes(low, high, self.codes, self.count)
        return count_rows_in_boxes(low, high, self.codes[self.people.row], self.people)

    @classmethod
    def of(
        cls, cells: Cells, boxes: Boxes, where: str, person: Ints | None, *, has_all: bool
    ) -> VerifiedSideTable:
        """The rows of these cells; ``has_all`` values of open columns if no row of the release is lacking among them.

        person   whose each row is, if people count
        """
        columns, codes = [], []
        for known, labels in zip(boxes.columns, boxes.labels, strict=True):
            attribute, column = known.attribute, known
            if attribute.declaration.is_open(attribute):
                column = LabelColumn.of(
                    attribute,
                    has_missing=None in known.tree.labels,
                    labels=labels,
                    values=values_of(cells[attribute.name], attribute),
                    has_all=has_all,
                )
            columns.append(column)
            codes.append(column.codes(cells[attribute.name], where))
        groups = group([Codes(own, column.tree.n_leaves) for own, column in zip(codes, columns, strict=True)])
        one = groups.one_row
        people = None if person is None else RowsOfPeople.of(groups.of_row, person)
        return cls(tuple(columns), np.stack([own[one] for own in codes], axis=1), groups.size, people)


@dataclass(frozen=True, eq=False)
class RowsOfPeople:
    """The different rows of each person, one person after the other: ``row`` is which of the distinct rows each is."""

    row: Ints
    person: Ints

    @classmethod
    def of(cls, row: Ints, person: Ints) -> RowsOfPeople:
        """Of all rows of a table."""
        pairs = np.unique(np.stack([person, row], axis=1), axis=0)
        return cls(pairs[:, 1], pairs[:, 0])

    @property
    def starts_person(self) -> NDArray[np.bool_]:
        """Is each the first of its person?"""
        return np.append(True, self.person[1:] != self.person[:-1])[: len(self.person)]

    def count_within(self, rows: Ints, is_within: NDArray[np.bool_]) -> Ints:
        """The people with one of some ``rows``, in their order, within each of some boxes (boxes, rows)."""
        person = self.person[rows]
        starts = np.flatnonzero(np.append(True, person[1:] != person[:-1]))
        return np.asarray(np.logical_or.reduceat(is_within, starts, axis=1).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Readings:
    """Each line of boxes in every way in which its labels can be read: its weight and the rows it covers."""

    line: Ints
    weight: Floats
    covered: Ints
    rounding: float = 0.0
    """How far a weight may lie from that of the run, which counts in whole multiples of a small unit."""

    @classmethod
    def of(cls, boxes: Boxes, side: VerifiedSideTable) -> Readings | str:
        """The readings; or why there are none."""
        options = boxes.policy.options_for(RiskUtilityOptions)
        if boxes.factor is None:
            return "personal weights stand in columns that are not published"
        weights = []
        for column in boxes.columns:
            own = column.weight(options.weights, len(boxes.columns))
            if own is None:
                return (
                    f"the weights of column {column.attribute.name!r} depend on how many values it has, "
                    "and the side table, which lacks rows, may lack some; values that a policy declares are known"
                )
            weights.append(own)
        nodes = _nodes(boxes)
        if nodes is None:
            return "a label stands at too many nodes"
        line, node = nodes
        columns = range(len(weights))
        weight = sum(boxes.factor[line, a] * weights[a][node[:, a]] for a in columns) + float(options.floor)
        distinct, at = np.unique(node, axis=0, return_inverse=True)
        low = np.stack([boxes.columns[a].tree.low[distinct[:, a]] for a in columns], axis=1)
        high = np.stack([boxes.columns[a].tree.high[distinct[:, a]] for a in columns], axis=1)
        found = side.count_in(low.astype(np.int64), high.astype(np.int64))
        greatest = sum(own.max() for own in weights) * max(float(boxes.factor.max()), 1.0) + float(
            options.floor
        )
        rounding = (len(weights) + 1) * ROUNDING * float(greatest)
        return cls(line, np.asarray(weight), found[at.ravel()], rounding)

    def find_ends(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The least and the greatest value among the readings of each line."""
        order = np.argsort(self.line, kind="stable")
        starts = np.flatnonzero(np.diff(self.line[order], prepend=-1))
        return np.minimum.reduceat(values[order], starts), np.maximum.reduceat(values[order], starts)


def _nodes(boxes: Boxes) -> tuple[Ints, Ints] | None:
    """Every reading of every line: which line it is of, and its nodes; None if there are too many."""
    first = boxes.spread([np.array([float(found[0]) for found in own]) for own in boxes.nodes]).astype(
        np.int64
    )
    n_ways = boxes.spread([np.array([float(len(found)) for found in own]) for own in boxes.nodes]).prod(
        axis=1
    )
    if n_ways.max(initial=1) > MOST_READINGS:
        return None
    line, node = [np.flatnonzero(n_ways == 1)], [first[n_ways == 1]]
    for at in np.flatnonzero(n_ways > 1).tolist():
        own = [found[label] for found, label in zip(boxes.nodes, boxes.of_line[at].tolist(), strict=True)]
        ways = np.array(list(itertools.product(*own)), dtype=np.int64)
        line.append(np.full(len(ways), at))
        node.append(ways)
    return np.concatenate(line), np.concatenate(node)


@dataclass(frozen=True, slots=True)
class Between:
    """What a figure can be, from ``low`` to ``high``."""

    low: float
    high: float

    def has(self, number: float, slack: float) -> bool:
        slack = max(slack, TOLERANCE * abs(self.high))
        return self.low - slack <= number <= self.high + slack

    def __str__(self) -> str:
        if math.isclose(self.low, self.high, rel_tol=TOLERANCE):
            return f"it is {self.high:.12g}"
        return f"it lies between {self.low:.12g} and {self.high:.12g}"


@dataclass(frozen=True, eq=False)
class Risks:
    """Mean and greatest risk of the published rows, as far as their boxes tell."""

    mean: Between
    greatest: Between
    n_alone: int
    """Rows in whose box the side table has nobody: it lacks them for certain."""
    of_line: tuple[Floats, Floats]
    """The least and the greatest risk that a row of each line can have."""
    n_lacking: int
    """Rows that count themselves beside others of their box."""

    @classmethod
    def of(cls, boxes: Boxes, readings: Readings, n_lacking: int) -> Risks:
        """The risks if so many rows are lacking and count themselves: those in empty boxes, and any others."""
        as_one = readings.find_ends(readings.weight / np.maximum(readings.covered, 1))
        as_one_more = readings.find_ends(readings.weight / (readings.covered + 1))
        is_alone = readings.find_ends(readings.covered)[1] == 0
        count, n_rows, n_alone = boxes.count, boxes.n_rows, int(boxes.count[is_alone].sum())
        others = np.repeat(np.flatnonzero(~is_alone), count[~is_alone])
        n_more = min(max(n_lacking - n_alone, 0), len(others))
        least, most = (
            math.fsum((count * as_one[i]).tolist())
            + sign * _greatest_sum(sign * (as_one_more[i] - as_one[i])[others], n_more)
            for i, sign in ((0, -1), (1, 1))
        )
        low = as_one[0] if n_more == 0 else as_one_more[0]
        high = as_one_more[1] if n_more == len(others) else as_one[1]
        return cls(
            Between(least / n_rows, most / n_rows),
            Between(float(low.max()), float(high.max())),
            n_alone,
            (as_one[0] if n_more == 0 else np.where(is_alone, as_one[0], as_one_more[0]), as_one[1]),
            n_more,
        )

    def count_above(self, limit: float, count: Ints) -> tuple[int, int]:
        """How many rows have a risk above a limit: surely, and unless the side table lacks them."""
        low, high = self.of_line
        surely = low > limit
        return int(count[surely].sum()), int(count[(high > limit) & ~surely].sum())


def _greatest_sum(values: Floats, n: int) -> float:
    """The sum of the n greatest of them."""
    return math.fsum(np.sort(values)[len(values) - n :].tolist())


def raw_risks(boxes: Boxes, side: VerifiedSideTable) -> Floats:
    """The risk of each distinct row of the table itself as it is: it covers those that are alike."""
    options = boxes.policy.options_for(RiskUtilityOptions)
    weight = np.full(len(side.codes), float(options.floor))
    for a, column in enumerate(side.columns):
        own = column.weight(options.weights, len(side.columns))
        assert own is not None  # the table itself has all values
        weight += own[column.tree.leaf_nodes[side.codes[:, a]]]
    return np.asarray(weight / side.alike)


# ---- rows that boxes cover ------------------------------------------------------------------------------


def count_rows_in_boxes(low: Ints, high: Ints, codes: Ints, count: Ints | RowsOfPeople) -> Ints:
    """The rows of a side table within each box: ``low[b, a] <= code < high[b, a]`` in every column.

    ``codes`` (rows, columns) are distinct rows, ``count`` how often each stands there; or they are those of people, who
    are counted instead. Boxes that share their first
    ranges share the search for the rows within them; memory is a few times that of the codes.

    >>> codes = np.array([[0, 0], [0, 1], [1, 1]])
    >>> count_rows_in_boxes(np.array([[0, 0], [0, 1]]), np.array([[1, 2], [2, 2]]), codes, np.array([5, 1, 2])).tolist()
    [6, 3]
    """
    n_boxes, n_columns = low.shape
    keys = [np.unique(low[:, a] * (high.max(initial=0) + 1) + high[:, a], return_inverse=True)[1]
            for a in range(n_columns)]  # fmt: skip
    by_column = sorted(range(n_columns), key=lambda a: int(keys[a].max(initial=0)))
    order = np.lexsort([keys[a] for a in reversed(by_column)])
    found = np.zeros(n_boxes, dtype=np.int64)
    if n_boxes:
        search = _Search(
            low[order][:, by_column],
            high[order][:, by_column],
            np.ascontiguousarray(codes[:, by_column].T),
            count,
        )
        search.visit(0, slice(0, n_boxes), np.arange(len(codes)))
        found[order] = search.found
    return found


class _Search:
    """Boxes in lexicographic order of their ranges, so that those with the same first ranges stand together."""

    def __init__(self, low: Ints, high: Ints, codes: Ints, count: Ints | RowsOfPeople) -> None:
        self.low, self.high, self.codes, self.count = low, high, codes, count
        self.found = np.zeros(len(low), dtype=np.int64)

    def visit(self, depth: int, boxes: slice, rows: Ints) -> None:
        """Count for some boxes, given the rows that lie within all of them in the columns before ``depth``."""
        if not len(rows):
            return
        if depth == self.low.shape[1]:
            self.found[boxes] = self._add_up(rows, np.ones((1, len(rows)), dtype=np.bool_))
            return
        if (boxes.stop - boxes.start) * len(rows) <= AT_ONCE:
            self._compare(depth, boxes, rows)
            return
        low, high = self.low[boxes, depth], self.high[boxes, depth]
        starts = boxes.start + np.flatnonzero(
            np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))
        )
        codes = self.codes[depth][rows]
        for start, stop in zip(starts, np.append(starts[1:], boxes.stop), strict=True):
            is_within = (codes >= self.low[start, depth]) & (codes < self.high[start, depth])
            self.visit(depth + 1, slice(int(start), int(stop)), rows[is_within])

    def _compare(self, depth: int, boxes: slice, rows: Ints) -> None:
        is_within = np.ones((boxes.stop - boxes.start, len(rows)), dtype=np.bool_)
        for a in range(depth, self.low.shape[1]):
            codes = self.codes[a][rows]
            is_within &= (codes >= self.low[boxes, a, None]) & (codes < self.high[boxes, a, None])
        self.found[boxes] = self._add_up(rows, is_within)

    def _add_up(self, rows: Ints, is_within: NDArray[np.bool_]) -> Ints:
        """What some of the rows count for in each of some boxes (boxes, rows)."""
        if isinstance(self.count, RowsOfPeople):
            return self.count.count_within(rows, is_within)
        return np.asarray(is_within @ self.count[rows])


# ---- checks ----------------------------------------------------------------------------------------------


def _find_people(source: Source, boxes: Boxes) -> Ints | None:
    """Whose each row of a side table is; None if rows count, or it does not say."""
    unit = boxes.policy.person
    if unit is None or unit not in source.names:
        return None
    attribute = Attribute(unit, Role.SENSITIVE, boxes.policy.schema[unit].kind)
    people = values_alike(source.column(unit), attribute)
    if people.null_count:
        raise TableError(
            f"Column {unit!r}, the unit, is missing in {number_of(people.null_count, 'row')} of {source.where}."
        )
    return np.asarray(people.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def check_risk(boxes: Boxes, figures: RunFigures, table: Any) -> Iterator[Check]:
    """Check the figures of risk with a side table: a path, or a table in memory."""
    with of_side_table():
        source = open_as(table, boxes.policy.schema)
        cells = _cells(source, boxes)
    declared = {column.attribute.name for column in boxes.columns if None in column.tree.labels}
    missing = {name for name, column in cells.items() if column.null_count}
    is_so = missing <= declared and not (figures.is_own and {*boxes.missing} - missing)
    yield Check(
        "cells are missing where the certificate says so", is_so, "" if is_so else "they are in other columns"
    )
    if not is_so:
        return
    with of_side_table():
        person = _find_people(source, boxes)
        has_all = figures.is_own or not figures.lacking
        side = VerifiedSideTable.of(cells, boxes, source.where, person, has_all=has_all)
    yield check_equal("the side table has {}", figures.side_rows, side.n_rows, of="row")
    if figures.side_people != side.n_people:
        told = "rows" if side.n_people is None else f"{side.n_people:,} people"
        yield Check("risk counts whom the certificate says", False, f"by this side table it counts {told}")
        return
    if side.n_people is not None:
        yield Check(f"the side table has rows of {side.n_people:,} people, whom risk counts", True)
    if figures.sha256 is not None and isinstance(table, str | Path) and Path(table).exists():
        is_same = sha256_of(Path(table)) == figures.sha256
        yield Check(
            "the side table is the file that was used", is_same, "" if is_same else "its SHA-256 differs"
        )
    boxes = boxes.with_columns(side.columns)
    if strange := boxes.find_strange():
        name, n = strange[0]
        yield Check(
            "every label is of values that the side table has", False, f"in column {name!r} {n:,} are not"
        )
        return
    readings = Readings.of(boxes, side)
    if isinstance(readings, str):
        yield Check("risk cannot be recomputed", True, readings, is_note=True)
        return
    yield from _check_risks(boxes, figures, side, readings)
    yield from _check_promise_by_side_table(boxes, figures)


def _check_risks(
    boxes: Boxes, figures: RunFigures, side: VerifiedSideTable, readings: Readings
) -> Iterator[Check]:
    found = Risks.of(boxes, readings, figures.lacking)
    is_covered = found.n_alone <= figures.lacking
    yield Check(
        f"the side table lacks {figures.lacking:,} rows",
        is_covered,
        "" if is_covered else f"it has nobody in the boxes of {found.n_alone:,}",
    )
    options = boxes.policy.options_for(RiskUtilityOptions)
    is_published = figures.is_own and not any(options.weights.columns())
    raw = raw_risks(boxes, side) if is_published else None
    if raw is not None:
        yield from _check_raw(figures, raw, side, readings)
    _, one_over = readings.find_ends(1 / np.maximum(readings.covered, 1))
    slacks = readings.rounding * np.array([np.average(one_over, weights=boxes.count), one_over.max()])
    betweens = (found.mean, found.greatest)
    for word, said, between, slack in zip(WORDS, figures.risk, betweens, slacks.tolist(), strict=True):
        is_so = between.has(said, slack)
        is_range = not math.isclose(between.low, between.high, rel_tol=TOLERANCE)
        yield Check(f"the {word} risk is {said:.12g}", is_so, str(between) if is_range or not is_so else "")
    if figures.is_above_one:
        yield RISKS_ARE_WEIGHTED
    yield from _check_limit(boxes, options, readings, found)
    if figures.histogram:
        yield _check_histogram(boxes, figures, side, readings, found, raw)


def _check_raw(
    figures: RunFigures, raw: Floats, side: VerifiedSideTable, readings: Readings
) -> Iterator[Check]:
    """The risk of the rows of the table itself, before."""
    ends = float(np.average(raw, weights=side.count)), float(raw.max())
    for word, said, number in zip(WORDS, figures.raw_risk, ends, strict=True):
        is_so = Between(number, number).has(said, readings.rounding)
        detail = "" if is_so else f"it is {number:.12g}"
        yield Check(f"the {word} risk of the raw rows is {said:.12g}", is_so, detail)


def _check_limit(
    boxes: Boxes, options: RiskUtilityOptions, readings: Readings, found: Risks
) -> Iterator[Check]:
    """The risk that no row may exceed, row by row."""
    if options.risk_at_most is None:
        return
    limit = float(options.risk_at_most)
    n_above, n_doubtful = found.count_above(limit * (1 + TOLERANCE) + readings.rounding, boxes.count)
    n_above += max(n_doubtful - found.n_lacking, 0)
    detail = f"{n_above:,} of {boxes.n_rows:,} have more" if n_above else ""
    yield Check(f"every row has a risk of at most {limit:.6g}", not n_above, detail)


def _check_histogram(
    boxes: Boxes,
    figures: RunFigures,
    side: VerifiedSideTable,
    readings: Readings,
    found: Risks,
    raw: Floats | None,
) -> Check:
    """How many rows have at most the risk of each bin, as they are (of the table itself) and as published."""
    low, high = found.of_line
    n_published, n_raw, is_so = 0, 0, True
    for each in figures.histogram:
        slack = TOLERANCE * each.at_most + readings.rounding
        n_published, n_raw = n_published + each.published, n_raw + each.raw
        surely, maybe = (
            int(boxes.count[risks <= each.at_most + sign * slack].sum())
            for risks, sign in ((high, -1), (low, 1))
        )
        is_so &= surely <= n_published <= maybe
        if raw is not None:
            surely, maybe = (int(side.count[raw <= each.at_most + sign * slack].sum()) for sign in (-1, 1))
            is_so &= surely <= n_raw <= maybe
    return Check("the histogram of risk is what the rows have", is_so, "" if is_so else "it is another")


def _check_promise_by_side_table(boxes: Boxes, figures: RunFigures) -> Iterator[Check]:
    """The promise, where utility is not known without the side table."""
    utilities = Utilities.of(boxes)
    if not any(
        column.attribute.declaration.is_open(column.attribute) for column in boxes.columns
    ) or isinstance(utilities, str):
        return
    options = boxes.policy.options_for(RiskUtilityOptions)
    if not isinstance(options.utility, str) or options.utility == DEPTH:  # checked already
        return
    yield from check_promise(utilities, options)
    faults = share_faults(figures, utilities, options)
    yield Check("the shares of utility are what these boxes can have", not faults, ", and ".join(faults))


__all__ = ["Between", "Readings", "Risks", "VerifiedSideTable", "check_risk", "raw_risks"]
