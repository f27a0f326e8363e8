"""Checks the published statistics of groups, as far as the published rows tell.

The values of a quasi-identifier are not published. Its statistics must lie in the range that the group's cell
shows, in the right order, and be missing only where the range may be. Other columns are published as they are:
their statistics are computed anew.

That all rows of a group agree in their statistics needs no check here: statistics are cells that tell rows
apart, so rows that differ in them are different groups, and each is held to every requirement.

Shares nothing with :mod:`sfumato.recoding.statistics`, which makes the statistics.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.declarations import Given
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.table.cells import dates, numbers, texts
from sfumato.table.source import Source
from sfumato.verify.exclusions import MISSING, RestLabel
from sfumato.verify.groups import GroupedRows
from sfumato.verify.rows import names_of_statistics

MEAN_TOLERANCE = 1e-9
"""Relative to the largest number of the group: a sum of rounded numbers."""

END_TOLERANCE = 1e-12
"""Relative: a number on a grid may differ from the end that is shown by its own rounding."""

OR_MISSING = " or missing"
ROOT = "*"
INTERVAL = re.compile(r"([\[(])([^,]+), ([^,]+)([\])])")
PERIOD = re.compile(r"(-?\d{1,5})(?:-Q([1-4])|-(\d\d)(?:-(\d\d))?|(s))?")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim about the statistics of one attribute, and of how many groups it is false."""

    claim: str
    n_wrong: int
    n_groups: int

    @property
    def detail(self) -> str:
        return f"{self.n_wrong:,} of {self.n_groups:,} groups have others" if self.n_wrong else ""


def check_statistics(rows: GroupedRows, policy: Policy) -> Iterator[Finding]:
    """The statistics of each attribute that has any: are they possible, or right?"""
    one_row = rows.groups.one_row
    for attribute in policy.schema:
        found = _statistics(rows.source, attribute, policy.statistics, one_row)
        if not found:
            continue
        if attribute.role is Role.QUASI_IDENTIFIER:
            claim = f"the statistics of {attribute.name!r} lie in the ranges beside them"
            spans = _spans(rows.source, attribute, one_row, excludes=policy.excludes_in_labels)
            holds = _lie_inside(spans, found)
        else:
            claim = f"the statistics of {attribute.name!r} are those of the rows"
            holds = _are_right(rows, attribute, found)
        yield Finding(claim, int(np.count_nonzero(~holds)), len(holds))


def _statistics(
    source: Source, attribute: Attribute, statistics: Sequence[str], one_row: Ints
) -> dict[str, pa.Array]:
    """Each statistic that is there, by its word (min, max, mean), for each group."""
    rows = pa.array(one_row)
    out = {}
    for name in names_of_statistics(attribute, statistics):
        if name in source.names:
            column, as_declared = source.column(name).take(rows), Attribute(name, Role.OTHER, attribute.kind)
            cells = (
                _days(column, as_declared) if attribute.kind is Kind.DATE else numbers(column, as_declared)
            )
            out[name.rpartition("_")[2]] = cells
    return out


def _days(column: Any, attribute: Attribute) -> pa.Array:
    return dates(column, attribute).cast(pa.int32())


def _is_there(cells: pa.Array) -> Bools:
    return np.asarray(cells.is_valid().to_numpy(zero_copy_only=False))


def _values(cells: pa.Array) -> NDArray[Any]:
    return np.asarray(cells.fill_null(0).to_numpy(zero_copy_only=False))


# ---- quasi-identifiers: what a cell leaves open ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """The values from ``low`` to ``high`` (days, for dates), and whether missing is one of them.

    ``is_above`` and ``is_below`` leave out the ends themselves.
    """

    low: float
    high: float
    may_be_missing: bool = False
    is_above: bool = False
    is_below: bool = False

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the greatest value that are let pass: ends that belong to it have a little slack."""
        low, high = (END_TOLERANCE * abs(end) if math.isfinite(end) else 0.0 for end in (self.low, self.high))
        return (
            math.nextafter(self.low, math.inf) if self.is_above else self.low - low,
            math.nextafter(self.high, -math.inf) if self.is_below else self.high + high,
        )


ANYTHING = Span(-math.inf, math.inf, may_be_missing=True)
NOTHING = Span(math.inf, -math.inf)
ONLY_MISSING = Span(math.inf, -math.inf, may_be_missing=True)


def _lie_inside(spans: tuple[Floats, Floats, Bools], found: dict[str, pa.Array]) -> NDArray[np.bool_]:
    is_there = [_is_there(cells) for cells in found.values()]
    has_value = np.logical_and.reduce(is_there)
    is_missing = ~np.logical_or.reduce(is_there)
    low, high, may_be_missing = spans
    values = {word: _values(cells).astype(np.float64) for word, cells in found.items()}
    for value in values.values():
        has_value &= (value >= low) & (value <= high)
    rising = [values[word] for word in ("min", "mean", "max") if word in values]
    for less, more in itertools.pairwise(rising):
        has_value &= less <= more
    return np.asarray(has_value | (is_missing & may_be_missing))


def _spans(
    source: Source, attribute: Attribute, one_row: Ints, *, excludes: bool
) -> tuple[Floats, Floats, Bools]:
    """What the cell of each group leaves open; anything where the label is not published."""
    if attribute.name not in source.names:
        n = len(one_row)
        return np.full(n, -np.inf), np.full(n, np.inf), np.ones(n, dtype=np.bool_)
    cells = texts(source.column(attribute.name).take(pa.array(one_row)), Attribute("", Role.OTHER))
    read = _span_of_rest if excludes else span_of
    spans = [*(read(label, attribute) for label in cells.dictionary.to_pylist()), ONLY_MISSING]
    at = cells.indices.fill_null(len(spans) - 1).to_numpy(zero_copy_only=False)
    ends = np.array([span.reach for span in spans])[at]
    return ends[:, 0], ends[:, 1], np.array([span.may_be_missing for span in spans])[at]


def span_of(label: str, attribute: Attribute) -> Span:
    """The values that a published label stands for; none at all if it cannot be read.

    >>> age = Attribute("age", Role.QUASI_IDENTIFIER, Kind.NUMBER)
    >>> span_of("[20, 24] or missing", age)
    Span(low=20.0, high=24.0, may_be_missing=True, is_above=False, is_below=False)
    >>> span_of("1970-Q1", Attribute("born", Role.QUASI_IDENTIFIER, Kind.DATE)).high
    89.0
    """
    if label == ROOT:
        return ANYTHING
    if isinstance(attribute.hierarchy, Given):
        return _span_of_node(label, attribute, attribute.hierarchy.whole or attribute.hierarchy.tree)
    plain = label.removesuffix(OR_MISSING)
    parts = INTERVAL.fullmatch(plain)
    opening, first, last, closing = parts.groups() if parts else ("[", plain, plain, "]")
    try:
        low, high = _ends(first, attribute.kind)[0], _ends(last, attribute.kind)[1]
    except ValueError:
        return NOTHING
    has_slices = (
        attribute.finest is not None
    )  # statistics are ends of slices, also where labels leave these out
    return Span(
        low, high, plain != label, opening == "(" and not has_slices, closing == ")" and not has_slices
    )


def _span_of_rest(label: str, attribute: Attribute) -> Span:
    """The same of a label that may exclude something: what the policy lists as leaves of that is no value of it.

    >>> ages = {"tree": {"*": {"young": ["1", "9"], "90": None}}}
    >>> age = Attribute("age", "quasi-identifier", Kind.NUMBER, hierarchy=ages)
    >>> _span_of_rest("* (not young, missing)", age)
    Span(low=90.0, high=90.0, may_be_missing=False, is_above=False, is_below=False)
    """
    rest = RestLabel.read(label)
    if rest is None:
        return span_of(label, attribute)
    if isinstance(attribute.hierarchy, Given):
        tree = attribute.hierarchy.whole or attribute.hierarchy.tree
        excluded = rest.excluded({MISSING, *tree.labels}.__contains__)
        found = _span_of_node(rest.node, attribute, tree, excluded)
    else:
        excluded = rest.excluded(lambda name: name == MISSING or span_of(name, attribute) != NOTHING)
        found = span_of(rest.node, attribute)
    return replace(found, may_be_missing=found.may_be_missing and MISSING not in excluded)


def _span_of_node(
    label: str, attribute: Attribute, tree: Hierarchy, excluded: frozenset[str] = frozenset()
) -> Span:
    """From the least to the greatest leaf under the nodes of that label. Missing belongs to the root alone.

    Leaves under nodes of the labels that are ``excluded`` are left out, unless a label stands at several nodes.
    """
    known: list[float] = []
    alone = {name for name in excluded if tree.labels.count(name) == 1}
    for leaf in _leaves_under({label}, tree) - _leaves_under(alone, tree):
        with suppress(ValueError):  # a leaf that no number is found at
            known += _ends(str(tree.labels[leaf]), attribute.kind)
    may_be_missing = label == tree.labels[0]
    return Span(min(known, default=math.inf), max(known, default=-math.inf), may_be_missing)


def _leaves_under(labels: Collection[str], tree: Hierarchy) -> set[int]:
    nodes = [node for node, name in enumerate(tree.labels) if name in labels]
    return {int(leaf) for node in nodes for leaf in tree.leaf_nodes[tree.low[node] : tree.high[node]]}


def _ends(text: str, kind: Kind) -> tuple[float, float]:
    """One number, or the first and the last day of a period: 2024-03-05, 2024-03, 2024-Q1, 2024, 2020s."""
    if kind is not Kind.DATE:
        return float(text), float(text)
    period = PERIOD.fullmatch(text)
    if period is None:
        raise ValueError
    year, quarter, month, day, decade = period.groups()
    if day:
        only = float(np.datetime64(text, "D").astype(np.int64))
        return only, only
    first = 12 * (int(year) - 1970) + (3 * int(quarter) - 3 if quarter else int(month) - 1 if month else 0)
    n_months = 120 if decade else 3 if quarter else 1 if month else 12
    days = np.array([first, first + n_months], dtype="datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return float(days[0]), float(days[1] - 1)


# ---- other columns: what their rows say ------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class NumberSummary:
    """Count, ends and mean of the numbers of each group, computed from its rows; zeros where it has none."""

    count: Ints
    least: NDArray[Any]
    most: NDArray[Any]
    mean: Floats

    @classmethod
    def of(cls, rows: GroupedRows, attribute: Attribute) -> NumberSummary:
        if attribute.name in rows.moments:
            moments = rows.moments[attribute.name]
            return cls(moments.count, *moments.ends, moments.mean)
        cells = numbers(rows.source.column(attribute.name), attribute)
        is_there = _is_there(cells)
        group, value = rows.groups.of_row[is_there], _values(cells)[is_there]
        n_groups = rows.groups.n
        count = np.bincount(group, minlength=n_groups)
        least, most = np.zeros(n_groups, value.dtype), np.zeros(n_groups, value.dtype)
        least[group] = most[group] = value  # any value of the group, to begin with
        np.minimum.at(least, group, value)
        np.maximum.at(most, group, value)
        # each number is divided before they are added up, so that no sum is too large
        shares = value.astype(np.float64) / np.maximum(count, 1)[group]
        mean = np.bincount(group, weights=shares, minlength=n_groups).astype(np.float64)
        return cls(count, least, most, mean)


def _are_right(rows: GroupedRows, attribute: Attribute, found: dict[str, pa.Array]) -> NDArray[np.bool_]:
    right = NumberSummary.of(rows, attribute)
    holds = np.ones(rows.groups.n, dtype=np.bool_)
    for word, of_group in found.items():
        claimed = _values(of_group)
        if word == "mean":
            is_same = _is_mean(claimed.astype(np.float64), right)
        else:
            is_same = claimed == (right.least if word == "min" else right.most)
        holds &= np.where(right.count > 0, is_same & _is_there(of_group), ~_is_there(of_group))
    return holds


def _is_mean(claimed: Floats, right: NumberSummary) -> NDArray[np.bool_]:
    largest = np.maximum(np.abs(right.least.astype(np.float64)), np.abs(right.most.astype(np.float64)))
    return np.asarray(np.abs(claimed - right.mean) <= MEAN_TOLERANCE * largest)
