"""Answers from a release: the rows that a predicate may select, and COUNT, SUM, AVG, MIN and MAX over them.

A published row is known up to its box. Where a box overlaps a predicate in part, its rows are taken to be
spread evenly over it: that gives the ``value`` of an answer. What follows for certain gives ``low`` and ``high``:
rows whose whole box is selected surely count, rows whose box overlaps may. The statistics of groups narrow
both, where a release has them [LDR08, section 3.3]. Where rows were left out, any of them may be selected: COUNT of
the table may be as much higher. All other answers are of published rows.

Of a differentially private release the counts carry noise, or rows were drawn at random, and nothing follows for
certain of the table: an answer is its ``value`` alone. It tells nothing of single rows, so MIN and MAX are refused.

Rows in a file are read once for a question: what is distinct in the columns that it asks for is held in memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.cells import read_ordered
from sfumato.errors import InputError, did_you_mean, short
from sfumato.policy import predicate as predicates
from sfumato.policy.document import Policy
from sfumato.policy.kinds import as_date
from sfumato.policy.output import COUNT, SUFFIXES, Form, mean_name, range_names
from sfumato.policy.predicate import Predicate
from sfumato.policy.rectangles import ANY_NUMBER, MISSING_ALONE, Interval, Rectangle
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.release.certificate import Certificate
from sfumato.release.query import select as selection
from sfumato.release.query.labelled import LabelledBoxes
from sfumato.release.query.select import AlikeRows, Overlap, group_rows, published_numbers
from sfumato.table.cells import numbers
from sfumato.table.stored import FiledRows

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX")
ALSO_CALLED = {"MEAN": "AVG"}
ENDLESS = 1e300
"""Ends beyond this are none: the release does not show where the box ends."""


class QueriedRelease(Protocol):
    """What of a release is asked: its rows, how they were recoded, by which policy, and what is claimed of them."""

    @property
    def rows(self) -> pa.Table | FiledRows: ...
    @property
    def certificate(self) -> Certificate: ...
    @property
    def recoding(self) -> Any: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def n_left_out(self) -> int:
        """Rows of the table that the policy let be left out."""


class Answer(NamedTuple):
    """An estimate, and the bounds that follow for certain from the boxes; None where no row is selected.

    Where it is not certain that any row is selected, the bounds of AVG, MIN and MAX are for the case that one is.
    Counts with noise have no bounds: ``low`` and ``high`` are None.
    """

    value: float | date | None
    low: float | date | None
    high: float | date | None


def select(release: QueriedRelease, where: str) -> pa.Table:
    """Every row whose box overlaps the predicate [LDR08, section 3.2]."""
    predicate = predicates.parse(where, release.policy.schema)
    rows = release.rows
    parts = [
        part.filter(
            pa.array(
                selection.select_rows(
                    predicate, part, _boxes_of(release, part, predicate.names), release.policy
                )
            )
        )
        for part in (rows.tables() if isinstance(rows, FiledRows) else [rows])
    ]
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts).unify_dictionaries()


def _boxes_of(release: QueriedRelease, rows: pa.Table, names: Sequence[str]) -> Any:
    """What says which boxes these columns have: the recoding, or the labels where each row has a box of its own."""
    form = release.policy.method.form
    if form not in (Form.BOXES, Form.SAMPLE):
        return release.recoding
    if form is Form.SAMPLE:  # missing is part of every declared domain
        return LabelledBoxes.of(rows, release.policy, names, names)
    utility = release.certificate.claims.utility
    return LabelledBoxes.of(rows, release.policy, names, () if utility is None else utility.missing)


class QueryRows(NamedTuple):
    """The rows that answer a question: those of a release, or the distinct ones of them with their ``weight``."""

    rows: pa.Table
    recoding: Any
    policy: Policy
    weight: NDArray[np.int64] | None

    @classmethod
    def of(cls, release: QueriedRelease, *names: str) -> QueryRows:
        """What is published of these attributes."""
        policy, weight = release.policy, None
        has_counts = policy.has_counts
        rows = release.rows
        if isinstance(rows, FiledRows):
            columns = [name + suffix for name in dict.fromkeys(names) for suffix in ("", *SUFFIXES)]
            known = {*rows.column_names}
            chosen = [name for name in columns if name in known]
            rows, weight = rows.distinct([*chosen, COUNT] if has_counts else chosen)
        if has_counts:
            counts = numbers(
                rows.column(COUNT), Attribute(COUNT, Role.OTHER)
            ).to_numpy()  # text, in a CSV file
            weight = counts if weight is None else counts * weight
            rows, weight = rows.filter(pa.array(weight > 0)), weight[weight > 0]
        asked = [name for name in dict.fromkeys(names) if policy.schema[name].role is Role.QUASI_IDENTIFIER]
        return cls(rows, _boxes_of(release, rows, asked), policy, weight)


def query(release: QueriedRelease, question: str, where: str | None = None) -> Answer:
    """The answer to a question such as ``AVG(hours)``, over all rows or those that ``where`` selects.

    The condition may also stand in the question: ``AVG(hours) WHERE age >= 40``.
    """
    function, name, condition = parse_question(question)
    if condition is not None and where is not None:
        raise InputError("The query has a condition of its own; leave out one of the two.")
    where = condition if where is None else where
    schema = release.policy.schema
    predicate = Predicate("", (Rectangle({}),)) if where is None else predicates.parse(where, schema)
    if function == "COUNT":
        found = _count(QueryRows.of(release, *predicate.names), predicate)
        return _give_bounds(_add_left_out(found, release), release)
    if function in ("MIN", "MAX") and release.policy.is_private:
        raise InputError(
            f"{function} hangs on single rows, and of these a private release tells nothing; ask for COUNT, SUM or AVG."
        )
    attribute = _column(name, function, release.policy)
    is_boxed = attribute.role is Role.QUASI_IDENTIFIER
    asked = QueryRows.of(release, *predicate.names, name)
    values = (_read_boxes if is_boxed else _read_plain)(asked, predicate, attribute)
    find = {"SUM": _find_sum, "AVG": _find_average, "MIN": _find_least, "MAX": _find_greatest}[function]
    answer = _give_bounds(find(values), release)
    return Answer(*map(_day, answer)) if attribute.kind is Kind.DATE else answer


def _add_left_out(found: Answer, release: QueriedRelease) -> Answer:
    """The answer for the table: of the rows that are left out, none may be selected, or all."""
    n_left = release.n_left_out
    return found if not n_left else Answer(found.value, found.low, found.high + n_left)  # type: ignore[operator] # a number


def _give_bounds(answer: Answer, release: QueriedRelease) -> Answer:
    """The answer with its bounds, or without where counts carry noise."""
    return Answer(answer.value, None, None) if release.policy.is_private else answer


# ---- questions -------------------------------------------------------------------------------------

_QUESTION = re.compile(
    r"""\s* (?P<function>\w+) \s* \( \s* (?P<column>"(?:[^"]|"")*"|[^()"]*?) \s* \)
        (?: \s* \b where \b (?P<where>.*) )? \s*""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


class Question(NamedTuple):
    """A function of a column (``*`` of COUNT), and the condition that stands with it, if one does."""

    function: str
    column: str
    where: str | None


def parse_question(question: str) -> Question:
    """The parts of a question.

    >>> parse_question("mean(hours) where age >= 40")
    Question(function='AVG', column='hours', where=' age >= 40')
    """
    found = _QUESTION.fullmatch(question) if isinstance(question, str) else None
    if found is None:
        raise InputError("A query must be a text such as COUNT(*) or AVG(hours) WHERE age >= 40.")
    function, column = found["function"].upper(), found["column"]
    function = ALSO_CALLED.get(function, function)
    if function not in FUNCTIONS:
        _refuse(function)
    if column.startswith('"'):
        return Question(function, column[1:-1].replace('""', '"'), found["where"])
    if (function == "COUNT") != (column == "*"):
        raise InputError(
            "COUNT is of rows: write COUNT(*)."
            if function == "COUNT"
            else f"{function} is of a column, such as {function}(hours)."
        )
    return Question(function, column, found["where"])


def _refuse(function: str) -> NoReturn:
    known = f"ask for {', '.join(FUNCTIONS[:-1])} or {FUNCTIONS[-1]}"
    if function in ("MEDIAN", "PERCENTILE", "QUANTILE", "MODE", "PERCENTILE_CONT", "PERCENTILE_DISC"):
        raise InputError(
            f"{function} depends on how values lie within a group, which neither boxes nor the least, greatest and "
            f"mean value of groups tell [LDR08, footnote 4]; {known}."
        )
    raise InputError(f"A release answers no {short(function)}; {known}.{did_you_mean(function, FUNCTIONS)}")


def _column(name: str, function: str, policy: Policy) -> Attribute:
    published = [attribute.name for attribute in policy.schema.published]
    if name not in published:
        raise InputError(f"The release has no column {short(name)}.{did_you_mean(name, published)}")
    attribute = policy.schema[name]
    if attribute.kind is Kind.CATEGORY:
        raise InputError(f"{function} is of numbers, and column {short(name)} is a category.")
    if attribute.kind is Kind.DATE and function == "SUM":
        raise InputError(f"Dates such as those of column {short(name)} have no sum; ask for AVG, MIN or MAX.")
    return attribute


# ---- values ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Sets of rows that look alike: ``n`` rows each, how far they are selected, and what is known of their value.

    The values of selected rows lie in ``low`` .. ``high``, their mean (if all are selected) in ``mean_low`` ..
    ``mean_high``, and ``middle`` is the value to expect. Where ``reaches``, some selected row surely has the value
    ``low``, and some the value ``high``.
    """

    n: NDArray[np.int64]
    overlap: Overlap
    low: Floats
    high: Floats
    middle: Floats
    mean_low: Floats
    mean_high: Floats
    reaches: Flags


def _read_plain(release: QueryRows, predicate: Predicate, attribute: Attribute) -> Values:
    """A column that is published as it is."""
    values = read_ordered(attribute, release.rows.column(attribute.name))
    kept = np.isfinite(values)
    found = _narrow_groups(release, predicate)
    overlap = found.overlap(predicate.rectangles)
    at = found.of_row[kept]
    own = values[kept]
    of_row = Overlap(overlap.touches[at], overlap.is_inside[at], overlap.share[at])
    n = np.ones(len(own), dtype=np.int64) if release.weight is None else release.weight[kept]
    return Values(n, of_row, own, own, own, own, own, of_row.is_inside)


def _read_boxes(release: QueryRows, predicate: Predicate, attribute: Attribute) -> Values:
    """A quasi-identifier: a box per row, and the statistics of its group where they are published."""
    name, statistics = attribute.name, release.policy.statistics
    present = Rectangle({name: ANY_NUMBER})
    rectangles = [both for rectangle in predicate.rectangles if (both := rectangle & present)]
    mean_of_row = (
        published_numbers(release.rows, mean_name(name), attribute.kind) if "mean" in statistics else None
    )
    beside = [] if mean_of_row is None else [mean_of_row]
    groups = _narrow_groups(release, predicate, name, beside=beside)
    first, last = groups.cells[name].find_ends()
    mean = np.full(groups.n, np.nan)
    if mean_of_row is not None:
        mean[groups.of_row] = mean_of_row
    overlap = groups.overlap(rectangles)
    low, high, middle = _find_ends_within(groups, selection.disjoint(rectangles), name, (first, last), mean)
    is_known = overlap.is_inside & ~np.isnan(mean)
    slack = 0.5 if attribute.kind is Kind.DATE else 0.0  # the mean of dates is rounded to a day
    return Values(
        groups.size,
        overlap,
        low,
        high,
        np.where(is_known, mean, middle),
        np.where(is_known, mean - slack, low),
        np.where(is_known, mean + slack, high),
        _find_reached(release, predicate, attribute, groups),
    )


def _find_reached(release: QueryRows, predicate: Predicate, attribute: Attribute, groups: AlikeRows) -> Flags:
    """Groups whose least and greatest value surely belong to selected rows: all that have a value are selected."""
    if "range" not in release.policy.statistics:
        return np.zeros(groups.n, dtype=np.bool_)
    has_range = np.zeros(groups.n, dtype=np.bool_)
    least = published_numbers(release.rows, range_names(attribute.name)[0], attribute.kind)
    has_range[groups.of_row] = ~np.isnan(least)
    or_missing = [*predicate.rectangles, Rectangle({attribute.name: MISSING_ALONE})]
    return has_range & groups.overlap(or_missing).is_inside


def _find_ends_within(
    groups: AlikeRows, rectangles: Any, name: str, ends: tuple[Floats, Floats], mean: Floats
) -> tuple[Floats, Floats, Floats]:
    """The least, greatest and expected value of one quasi-identifier where the boxes lie in the rectangles."""
    n = groups.n
    low, high, total, weight = np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n), np.zeros(n)
    for rectangle in rectangles:
        part, side = groups.overlap_one(rectangle), rectangle.sides[name]
        assert isinstance(side, Interval)
        side = groups.cells[name].snap(side)
        start, stop = (np.clip(end, side.low, side.high) for end in ends)
        is_whole = (start == ends[0]) & (stop == ends[1])
        middle = np.where(is_whole & ~np.isnan(mean), mean, start / 2 + stop / 2)
        share = np.where(part.touches, np.maximum(part.share, selection.TOUCH), 0.0)
        low, high = (
            np.where(part.touches, np.minimum(low, start), low),
            np.where(part.touches, np.maximum(high, stop), high),
        )
        total, weight = total + np.where(part.touches, share * middle, 0.0), weight + share
    if (np.abs(np.concatenate([low[weight > 0], high[weight > 0]])) > ENDLESS).any():
        raise InputError(
            f"The release does not show where the values of column {short(name)} end; declare its bounds."
        )
    low, high = (np.where(weight > 0, end, 0.0) for end in (low, high))
    middle = np.divide(total, weight, out=np.zeros(n), where=weight > 0)
    return low, high, np.clip(middle, low, high)


def _narrow_groups(release: QueryRows, predicate: Predicate, *names: str, beside: Any = ()) -> AlikeRows:
    asked = tuple(dict.fromkeys([*predicate.names, *names]))
    return group_rows(
        asked,
        release.rows,
        release.recoding,
        release.policy,
        with_ranges=True,
        beside=beside,
        weight=release.weight,
    )


# ---- functions -------------------------------------------------------------------------------------


def _count(release: QueryRows, predicate: Predicate) -> Answer:
    groups = _narrow_groups(release, predicate)
    found, size = groups.overlap(predicate.rectangles), groups.size
    low, high = int(size[found.is_inside].sum()), int(size[found.touches].sum())
    return Answer(low if low == high else float(size @ found.share), low, high)


def _find_sum(values: Values) -> Answer:
    n, found = values.n, values.overlap
    maybe = found.touches & ~found.is_inside
    value = np.where(found.touches, found.share * values.middle, 0.0) @ n
    sure_low, sure_high = (
        np.where(found.is_inside, end, 0.0) @ n for end in (values.mean_low, values.mean_high)
    )
    low = sure_low + np.where(maybe, np.minimum(values.low, 0.0), 0.0) @ n
    high = sure_high + np.where(maybe, np.maximum(values.high, 0.0), 0.0) @ n
    return _answer(value, low, high)


def _find_average(values: Values) -> Answer:
    found = values.overlap
    if not found.touches.any():
        return Answer(None, None, None)
    weight = values.n * np.where(found.touches, np.maximum(found.share, selection.TOUCH), 0.0)
    value = (weight @ np.where(found.touches, values.middle, 0.0)) / weight.sum()
    low = _extreme_mean(values, np.where(found.is_inside, values.mean_low, values.low))
    high = -_extreme_mean(values, -np.where(found.is_inside, values.mean_high, values.high))
    return _answer(value, low, high)


def _extreme_mean(values: Values, ends: Floats) -> float:
    """The least mean of all sure rows and any of those that may be selected: add these while they lower it."""
    is_inside = values.overlap.is_inside
    maybe = values.overlap.touches & ~is_inside
    order = np.argsort(ends[maybe], kind="stable")
    n = np.cumsum([values.n[is_inside].sum(), *values.n[maybe][order]])
    sums = np.cumsum([values.n[is_inside] @ ends[is_inside], *(values.n[maybe] * ends[maybe])[order]])
    return float((sums[n > 0] / n[n > 0]).min())


def _find_least(values: Values) -> Answer:
    found = values.overlap
    if not found.touches.any():
        return Answer(None, None, None)
    low = values.low[found.touches].min()
    sure = np.where(values.reaches, values.low, values.high)[found.is_inside | values.reaches]
    high = sure.min() if len(sure) else values.high[found.touches].max()
    return _answer(_expected_least(values), low, high)


def _find_greatest(values: Values) -> Answer:
    found = values.overlap
    mirrored = Values(
        values.n,
        found,
        -values.high,
        -values.low,
        -values.middle,
        -values.mean_high,
        -values.mean_low,
        values.reaches,
    )
    least = _find_least(mirrored)
    return least if least.value is None else _answer(-least.value, -least.high, -least.low)  # type: ignore[operator]


def _expected_least(values: Values) -> float:
    """What the least of evenly spread rows is expected to be, if any is selected.

    The least of n numbers spread evenly over [low, high] is expected at low + (high - low) / (n + 1). Each set of
    rows that look alike counts by the chance that one of them is selected.
    """
    touches = values.overlap.touches
    share = np.maximum(values.overlap.share[touches], selection.TOUCH)
    low, high = values.low[touches], values.high[touches]
    expected = np.where(values.reaches[touches], low, low + (high - low) / (values.n[touches] * share + 1))
    order = np.argsort(expected, kind="stable")
    none = np.where(values.reaches[touches], 0.0, np.power(1.0 - share, values.n[touches]))[
        order
    ]  # chance of no row
    chance = np.concatenate([[1.0], np.cumprod(none)[:-1]]) * (1.0 - none)
    return float(expected[order] @ chance / chance.sum()) if chance.sum() > 0 else float(expected.min())


def _answer(value: Any, low: Any, high: Any) -> Answer:
    return Answer(float(np.clip(value, low, high)), float(low), float(high))


def _day(value: Any) -> date | None:
    return None if value is None else as_date(round(value))
