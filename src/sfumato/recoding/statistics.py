"""Statistics of each group, published beside its rows [LDR08, section 3.3].

The range of a column (its least and greatest value in the group) answers MIN and MAX, the mean answers SUM
and AVG. They are taken of every published number, and of every quasi-identifier that is a number or a date:
of the raw values, which the box only bounds. Missing cells are left out; where a whole group is missing, so
is its statistic. Where the policy says how fine a column may be published, its finest slices stand in for the raw values:
the least end, the greatest end, and the mean of their middles.

All rows of a group carry the same statistics, so nobody in it becomes easier to tell apart; but the least and
the greatest value are each the exact value of somebody in the group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.policy.output import MAX, MEAN, MIN, statistic_names
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.recoding.recoder import Partition
from sfumato.recoding.slice_ends import find_ends
from sfumato.table import cells as table_cells
from sfumato.table.source import Source

HALF = 32
LOW_HALF = 2**HALF - 1
EXACT = 2**20
"""High halves below this make, with their low halves, whole numbers that a float holds exactly."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def names_of(attribute: Attribute, policy: Policy) -> tuple[str, ...]:
    """The columns of statistics that stand beside a published column, in order.

    >>> policy = Policy.parse('''
    ... attributes: {age: {role: quasi-identifier, type: number}, job: {role: other}}
    ... require: []
    ... output: {values: summary}
    ... ''')
    >>> [names_of(attribute, policy) for attribute in policy.schema]
    [('age_min', 'age_max', 'age_mean'), ()]
    """
    is_quasi = attribute.role is Role.QUASI_IDENTIFIER
    has_statistics = attribute.kind is Kind.NUMBER or (is_quasi and attribute.kind is Kind.DATE)
    if not (attribute.role.is_published and has_statistics):
        return ()
    return statistic_names(attribute.name, policy.statistics)


def check_names(policy: Policy) -> None:
    """Raise if a statistic would have the name of a column; ask before the work."""
    for attribute in policy.schema:
        for name in names_of(attribute, policy):
            if name in policy.schema:
                raise InputError(
                    f"Column {name!r} of the table has the name of a published statistic; "
                    "rename it, or publish no summary."
                )


def columns(source: Source, policy: Policy, groups: Partition) -> dict[str, pa.Array]:
    """Every column of statistics, row by row in the order of the groups.

    They are exact (a mean is rounded once, a mean date to the nearest day), so that the order of the rows
    within a group cannot show in them.
    """
    out: dict[str, pa.Array] = {}
    for attribute in policy.schema:
        if wanted := names_of(attribute, policy):
            found = _statistics(source, attribute, groups)
            cells = {f"{attribute.name}{suffix}": column for suffix, column in found.items()}
            at = pa.array(np.repeat(np.arange(len(groups.size)), groups.size))
            out |= {name: cells[name].take(at) for name in wanted}
    return out


class OneGroup:
    """``columns`` of a single group whose rows pass by in batches, because they do not fit in memory.

    >>> policy = Policy.parse('''
    ... attributes: {x: {role: quasi-identifier, type: number}}
    ... require: []
    ... output: {values: summary}
    ... ''')
    >>> group = OneGroup(policy)
    >>> for part in ([1, 2], [6]):
    ...     group.add(pa.record_batch({"x": part}))
    >>> {name: cell.as_py() for name, cell in group.cells().items()}
    {'x_min': 1, 'x_max': 6, 'x_mean': 3.0}
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.columns = {a.name: _Running(a) for a in policy.schema if names_of(a, policy)}

    def add(self, batch: pa.RecordBatch) -> None:
        """Some rows of the group."""
        for name, column in self.columns.items():
            column.add(table_cells.ordered(batch.column(name), column.attribute))

    def merge(self, other: OneGroup) -> None:
        """The rows of the group that another one has seen."""
        for name, column in self.columns.items():
            column.merge(other.columns[name])

    def cells(self) -> dict[str, pa.Scalar]:
        """What all rows of the group carry."""
        out: dict[str, pa.Scalar] = {}
        for name, column in self.columns.items():
            found = column.cells()
            out |= {key: found[key[len(name) :]] for key in names_of(column.attribute, self.policy)}
        return out


class _Running:
    """Least, greatest and exact sum of the values so far."""

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self.least: Any = None
        self.most: Any = None
        self.n, self.total = 0, Fraction(0)
        self.is_whole = True

    def add(self, cells: pa.Array) -> None:
        values = cells.drop_null().to_numpy(zero_copy_only=False)
        if len(values) == 0:
            return
        own = _Running(self.attribute)
        own.is_whole = values.dtype.kind == "i"
        values = values.astype(np.int64) if own.is_whole else values + 0.0
        low, high, middle = _points(self.attribute, values)
        own.is_whole = low.dtype.kind == "i"
        own.least, own.most = low.min().item(), high.max().item()
        own.n, own.total = len(values), _exact_sum(middle)
        self.merge(own)

    def merge(self, other: _Running) -> None:
        if other.n:
            self.least = min(self.least, other.least) if self.n else other.least
            self.most = max(self.most, other.most) if self.n else other.most
        self.n += other.n
        self.total += other.total
        self.is_whole &= other.is_whole

    def cells(self) -> dict[str, pa.Scalar]:
        kind = pa.int64() if self.is_whole else pa.float64()
        if self.attribute.kind is Kind.DATE:
            kind = mean_kind = pa.date32()
        else:
            mean_kind = pa.float64()
        if self.n == 0:
            return {MIN: pa.scalar(None, kind), MAX: pa.scalar(None, kind), MEAN: pa.scalar(None, mean_kind)}
        if self.attribute.kind is Kind.DATE:
            total = int(self.total)
            days = self.least, self.most, (2 * total + self.n) // (2 * self.n)
            low, high, mean = (pa.scalar(day, pa.int32()).cast(pa.date32()) for day in days)
            return {MIN: low, MAX: high, MEAN: mean}
        is_whole = self.is_whole and self.total.denominator == 1
        mean = int(self.total) / self.n if is_whole else _mean_of(self.total, self.n)
        return {
            MIN: pa.scalar(self.least if self.is_whole else float(self.least), kind),
            MAX: pa.scalar(self.most if self.is_whole else float(self.most), kind),
            MEAN: pa.scalar(float(np.clip(mean, self.least, self.most)), mean_kind),
        }


def _points(attribute: Attribute, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """What least, greatest and mean are taken of: the values themselves, or ends and middles of their finest slices."""
    if attribute.finest is None:
        return values, values, values
    low, high = find_ends(attribute, values)
    twice = low + high
    if attribute.kind is Kind.DATE or (twice.dtype.kind == "i" and not np.any(twice % 2)):
        return low, high, twice // 2
    return low, high, twice / 2


def _exact_sum(values: NDArray[Any]) -> Fraction:
    """Exactly, whatever the order: floats as whole numbers of 53 bits, those of one exponent at a time."""
    if values.dtype.kind == "i":
        return Fraction((int((values >> HALF).sum()) << HALF) + int((values & LOW_HALF).sum()))
    share, exponent = np.frexp(values)
    digits = np.ldexp(share, 53).astype(np.int64)
    total = Fraction(0)
    for power in np.unique(exponent).tolist():
        own = digits[exponent == power]
        whole = (int((own >> HALF).sum()) << HALF) + int((own & LOW_HALF).sum())
        total += Fraction(whole) * Fraction(2) ** (power - 53)
    return total


def _mean_of(total: Fraction, n: int) -> float:
    """As ``_mean``: the sum is rounded first, where it is a float at all."""
    try:
        return float(total) / n
    except OverflowError:
        return float(total / n)


# ---- one column ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _GroupValues:
    """The values that are there, group by group; ``starts`` are those of the groups that have any.

    ``place`` is where each group stands among the starts, null if it has no value.
    """

    values: NDArray[Any]
    starts: Ints
    count: Ints
    place: pa.Array


def _statistics(source: Source, attribute: Attribute, groups: Partition) -> dict[str, pa.Array]:
    column = source.column(attribute.name)
    parts = _split_by_group(table_cells.ordered(column, attribute), groups)
    low, high, middle = _points(attribute, parts.values)
    least, most = np.minimum.reduceat(low, parts.starts), np.maximum.reduceat(high, parts.starts)
    parts = replace(parts, values=middle)
    is_date = attribute.kind is Kind.DATE
    if is_date:
        means: NDArray[Any] = _mean_days(parts)
    else:
        means = np.clip(_means(parts), least, most)  # a float's sum is rounded, and so is its share
    found = {MIN: pa.array(least), MAX: pa.array(most), MEAN: pa.array(means)}
    if is_date:
        found = {suffix: days.cast(pa.int32()).cast(pa.date32()) for suffix, days in found.items()}
    return {suffix: of_group.take(parts.place) for suffix, of_group in found.items()}


def _split_by_group(cells: pa.Array, groups: Partition) -> _GroupValues:
    ordered = cells.take(pa.array(groups.row_numbers))
    group = np.repeat(np.arange(len(groups.size)), groups.size)
    if ordered.null_count:
        group = group[ordered.is_valid().to_numpy(zero_copy_only=False)]
    values = ordered.drop_null().to_numpy(zero_copy_only=False)
    values = values.astype(np.int64) if values.dtype.kind == "i" else values + 0.0  # -0.0 is 0.0
    count = np.bincount(group, minlength=len(groups.size))
    has_any = count > 0
    place = pa.array(np.cumsum(has_any) - 1, mask=~has_any)
    count = count[has_any]
    return _GroupValues(values, np.cumsum(count) - count, count, place)


def _means(parts: _GroupValues) -> Floats:
    if parts.values.dtype.kind == "f":
        return _means_of_floats(parts)
    high, low = _halves(parts)
    means = (high * 2.0**HALF + low) / parts.count
    for at in np.flatnonzero(np.abs(high) >= EXACT).tolist():
        means[at] = ((int(high[at]) << HALF) + int(low[at])) / int(parts.count[at])  # Python rounds once
    return np.asarray(means)


def _halves(parts: _GroupValues) -> tuple[Ints, Ints]:
    """The sum of each part as high * 2^32 + low: 64 bits do not hold the sum of many large numbers."""
    high = np.add.reduceat(parts.values >> HALF, parts.starts)
    low = np.add.reduceat(parts.values & LOW_HALF, parts.starts)
    return high + (low >> HALF), low & LOW_HALF


def _means_of_floats(parts: _GroupValues) -> Floats:
    values, ends = parts.values.tolist(), (parts.starts + parts.count).tolist()
    return np.array(
        [_mean(values[start:end]) for start, end in zip(parts.starts.tolist(), ends, strict=True)]
    )


def _mean(values: list[float]) -> float:
    """The mean of the exact sum.

    >>> _mean([1e16, 1.0, -1e16]), _mean([1.7e308, 1.7e308])
    (0.3333333333333333, 1.7e+308)
    """
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return _mean_of(sum(map(Fraction, values), Fraction(0)), len(values))


def _mean_days(parts: _GroupValues) -> Ints:
    """Rounded to the nearest day, the later one of two."""
    total = np.add.reduceat(parts.values, parts.starts)
    return np.asarray((2 * total + parts.count) // (2 * parts.count))
