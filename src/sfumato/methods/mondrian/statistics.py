"""What the requirement must know of groups of rows, gathered block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.mondrian.kernels.problem import VALUES, VARIANCE, Rules, table, work_of
from sfumato.methods.mondrian.kernels.statistics import Bins, accumulate, add_rows, fill_holds

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NOTHING = table(VALUES, []), table(VARIANCE, [])


def count_type(n_rows: int) -> type[np.uint32 | np.int64]:
    """The type of counts of so many rows: the smaller one as long as it holds them."""
    return np.uint32 if n_rows < LARGE else np.int64


LARGE = 1 << 32
"""Rows that four bytes cannot count."""


class GroupStatistics:
    """Rows, rows of each sensitive value and moments of each sensitive number, of every group.

    All are whole numbers and exact; a sum of squares is 2^32 times one number plus another. Statistics of parts of the
    rows add up.
    """

    def __init__(self, n_groups: int, rules: Rules) -> None:
        self.rules = rules
        sensitive = rules.sensitive
        self._values, self._numbers = NOTHING if sensitive is None else (sensitive.values, sensitive.variance)
        self.n_rows = np.zeros(n_groups, dtype=np.int64)
        n_values = 0 if sensitive is None else sensitive.n_values
        self.values: NDArray[np.integer[Any]] = np.zeros((n_groups, n_values), dtype=count_type(0))
        self.moments = np.zeros((n_groups, len(self._numbers), 4), dtype=np.int64)
        self._n_all = 0

    @staticmethod
    def bytes_per_group(rules: Rules) -> int:
        """Memory of one group."""
        sensitive = rules.sensitive
        return 8 + (0 if sensitive is None else 4 * sensitive.n_values + 32 * len(sensitive.variance))

    def add(self, rows: Codes, group: NDArray[Any]) -> None:
        """Some rows, (n, axes and extra columns), and the group of each."""
        self._make_room(len(rows))
        add_rows(rows, group, self._values, self._numbers, self.n_rows, self.values, self.moments)

    def merge(self, other: GroupStatistics) -> None:
        """The rows of another part of the table."""
        self._make_room(other._n_all)
        self.n_rows += other.n_rows
        self.values += other.values.astype(self.values.dtype, copy=False)
        self.moments += other.moments

    def _make_room(self, n_rows: int) -> None:
        """Counts may grow by so many rows."""
        self._n_all += n_rows
        self.values = self.values.astype(count_type(self._n_all), copy=False)

    def as_bins(self, edges: Ints) -> Bins:
        """The groups as bins of an axis, of which all but the last one end with these codes; used up by this."""
        accumulate(self.n_rows, self.values, self.moments)
        return Bins(edges, self.n_rows, self.values, self.moments)

    def hold(self) -> Flags:
        """Which groups satisfy the requirement, by its definitions; one without rows does not."""
        return self._find_holding(self.n_rows, self.values, self.moments)

    def hold_as_one(self, groups: Ints) -> bool:
        """Would these groups satisfy the requirement if they were one? Without any row, they would."""
        n_rows = self.n_rows[groups].sum(keepdims=True)
        values = self.values[groups].sum(axis=0, keepdims=True, dtype=self.values.dtype)
        moments = self.moments[groups].sum(axis=0, keepdims=True)
        return bool(n_rows[0] == 0 or self._find_holding(n_rows, values, moments)[0])

    def _find_holding(self, n_rows: Ints, values: NDArray[np.integer[Any]], moments: Ints) -> Flags:
        out = np.zeros(len(n_rows), dtype=np.bool_)
        fill_holds(n_rows, values, moments, self.rules, work_of(self.rules.sensitive), out)
        return out
