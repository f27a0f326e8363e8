"""Which groups could be divided along a column, and if not, what refuses it.

A division has two parts: the rows up to a value and those above it, or the rows below one child of the lowest common
node and all others. It holds if both parts have enough rows and satisfy every requirement. Groups are looked at as they
are published: by which splits they came about does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.lost.values import ColumnValues
from sfumato.methods.refusals import PartStatistics
from sfumato.policy.requirements import Requirement

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_DIVISIONS = 16
"""So many divisions of a group are tried against requirements beside the number of rows; of more, some evenly chosen."""

GROUPS_AT_ONCE = 1 << 13

UNDIVIDED, TOO_FEW, POSSIBLE, TOGETHER = -4, -3, -2, -1
"""What is found of a group: all rows have one value, no division leaves enough rows, one would hold, or only several
requirements together refuse them all. A number from 0 on is the requirement that refuses them."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Published rows in the order of their groups and then of their values; a run is of one value in one group.

    ``order`` lists the rows, ``group``, ``value`` and ``size`` are those of each run, and ``first`` is the first run of
    each group.
    """

    order: Ints
    group: Ints
    value: Ints
    size: Ints
    first: Ints

    @classmethod
    def of(cls, group: Ints, value: Ints, n_values: int) -> Runs:
        """The runs of rows whose ``group`` and ``value`` are given; each group has rows."""
        key = group * max(n_values, 1) + value
        order = np.argsort(key, kind="stable")
        key = key[order]
        start = np.flatnonzero(np.diff(key, prepend=-1))
        own = order[start]
        of_run = group[own]
        return cls(
            order,
            of_run,
            value[own],
            np.diff(start, append=len(key)),
            np.flatnonzero(np.diff(of_run, prepend=-1)),
        )

    @property
    def last(self) -> Ints:
        """The last run of each group."""
        return np.append(self.first[1:], len(self.group)) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Divisions:
    """Divisions that leave enough rows, in the order of ``group``: one part has the values from ``low`` to ``high``."""

    group: Ints
    low: Ints
    high: Ints


def find_divisions(runs: Runs, values: ColumnValues, n_rows: int) -> tuple[Divisions, Flags]:
    """Those with so many rows in both parts, and which groups have more than one value at all."""
    first, last = runs.value[runs.first], runs.value[runs.last]
    part = values.part_of(first[runs.group], last[runs.group], runs.value)
    is_new = (np.diff(runs.group, prepend=-1) != 0) | (np.diff(part, prepend=-1) != 0)
    start = np.flatnonzero(is_new)
    group, size = runs.group[start], np.add.reduceat(runs.size, start)
    low, high = runs.value[start], runs.value[np.append(start[1:], len(runs.group)) - 1]
    whole = np.bincount(group, size, minlength=len(runs.first)).astype(np.int64)
    begin = np.flatnonzero(np.diff(group, prepend=-1))
    if values.is_ordered:
        running = np.cumsum(size)
        size = running - (running[begin] - size[begin])[group]
        low = low[begin][group]
    at = np.flatnonzero((size >= n_rows) & (whole[group] - size >= n_rows))
    return Divisions(group[at], low[at], high[at]), np.bincount(group, minlength=len(runs.first)) > 1


def find_obstacles(
    runs: Runs,
    values: ColumnValues,
    n_rows: int,
    requirements: Sequence[tuple[Requirement, PartStatistics]],
    value_of_row: Ints,
) -> Ints:
    """What keeps each group as it is: one of the codes above, or which of the requirements.

    ``requirements`` are those that a number of rows does not decide. Their statistics, and ``value_of_row``, are of the
    rows in any order; ``runs.order`` numbers these.
    """
    found, is_mixed = find_divisions(runs, values, n_rows)
    out = np.where(is_mixed, TOO_FEW, UNDIVIDED)
    out[found.group] = POSSIBLE
    if requirements and len(found.group):
        tried, of_group = _choose(found)
        n_groups = len(of_group)
        holds = np.zeros((len(requirements), n_groups), dtype=np.bool_)
        together = np.zeros(n_groups, dtype=np.bool_)
        rows = _rows_of(runs, of_group)
        for start in range(0, n_groups, GROUPS_AT_ONCE):
            some = np.arange(start, min(start + GROUPS_AT_ONCE, n_groups))
            _try_divisions(tried, some, rows, value_of_row, requirements, holds, together)
        first = np.argmin(holds, axis=0)
        refused = np.where(holds.all(axis=0), TOGETHER, first)
        out[of_group] = np.where(together, POSSIBLE, refused)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The rows of some groups: ``order`` lists them, those of a group from ``start`` on, ``size`` in number."""

    order: Ints
    start: Ints
    size: Ints


def _rows_of(runs: Runs, groups: Ints) -> _Rows:
    size = np.add.reduceat(runs.size, runs.first)
    return _Rows(runs.order, (np.cumsum(size) - size)[groups], size[groups])


def _choose(found: Divisions) -> tuple[Divisions, Ints]:
    """At most ``MOST_DIVISIONS`` of each group, its groups numbered anew, and which these are."""
    of_group, at, n = np.unique(found.group, return_inverse=True, return_counts=True)
    rank = np.arange(len(at)) - (np.cumsum(n) - n)[at]
    most = np.minimum(n[at], MOST_DIVISIONS)
    kept = rank * most // n[at] != (rank - 1) * most // n[at]
    return Divisions(at[kept], found.low[kept], found.high[kept]), of_group


def _try_divisions(
    tried: Divisions,
    groups: Ints,
    rows: _Rows,
    value_of_row: Ints,
    requirements: Sequence[tuple[Requirement, PartStatistics]],
    holds: Flags,
    together: Flags,
) -> None:
    """Note in ``holds`` and ``together`` what some groups' divisions allow: each requirement by itself, and all."""
    begin, end = np.searchsorted(tried.group, [groups[0], groups[-1] + 1])
    group = tried.group[begin:end]
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    for each in range(int(rank.max()) + 1):
        at = begin + np.flatnonzero(rank == each)
        own = tried.group[at]
        size = rows.size[own]
        which = np.repeat(np.arange(len(own)), size)
        place = (
            np.arange(len(which)) - np.repeat(np.cumsum(size) - size, size) + np.repeat(rows.start[own], size)
        )
        among = rows.order[place]
        value = value_of_row[among]
        is_inside = (value >= tried.low[at][which]) & (value <= tried.high[at][which])
        part = 2 * which + is_inside
        every = np.ones(len(own), dtype=np.bool_)
        for number, (item, statistics) in enumerate(requirements):
            both = item.holds(statistics(part, 2 * len(own), among)).reshape(-1, 2).all(axis=1)
            holds[number, own] |= both
            every &= both
        together[own] |= every


__all__ = [
    "POSSIBLE",
    "TOGETHER",
    "TOO_FEW",
    "UNDIVIDED",
    "Divisions",
    "Runs",
    "find_divisions",
    "find_obstacles",
]
