"""What the requirement must know of groups whose rows were counted: added up block by block, then decided.

Groups may be leaves of a tree, or the bins of an axis: its codes, or ranges of them, whose running totals say what lies
on either side of every threshold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import NO_NUMBER
from sfumato.kernels.compile import inner, kernel
from sfumato.methods.mondrian.kernels.rules import counts_hold


class Bins(NamedTuple):
    """Running totals over the bins of one axis, see ``accumulate``."""

    edges: NDArray[np.int64]  # (bins - 1,) the last code of each bin but the last one, ascending
    n_rows: NDArray[np.int64]  # (bins,)
    values: NDArray[np.integer[Any]]  # (bins, sensitive values), four bytes as long as they hold the counts
    moments: NDArray[np.int64]  # (bins, rules of variance, 4)


@kernel
def add_rows(rows, group, sensitive, numbers, n_rows, values, moments):
    """Add some rows to the statistics of their groups.

    rows        (n, columns) uint32                              IN
    group       (n,) int64                                       IN
    sensitive   VALUES                                           IN
    numbers     VARIANCE                                         IN
    n_rows      (groups,)                                        IN+OUT
    values      (groups, sensitive values)                       IN+OUT
    moments     (groups, numbers, 4): rows with a number, their sum, sum of squares in two words   IN+OUT
    """
    for i in range(rows.shape[0]):
        g = group[i]
        n_rows[g] += 1
        for s in range(sensitive.shape[0]):
            values[g, sensitive[s].start + np.int64(rows[i, sensitive[s].column])] += 1
        for r in range(numbers.shape[0]):
            x = rows[i, numbers[r].column]
            if x != NO_NUMBER:
                square = np.uint64(x) * np.uint64(x)
                moments[g, r, 0] += 1
                moments[g, r, 1] += np.int64(x)
                moments[g, r, 2] += np.int64(square >> np.uint64(32))
                moments[g, r, 3] += np.int64(square & np.uint64(0xFFFFFFFF))


@kernel
def fill_holds(n_rows, values, moments, rules, work, out):
    """Does each group satisfy the requirement, by its definitions?  out is (groups,) bool, work scratch."""
    for g in range(n_rows.shape[0]):
        out[g] = n_rows[g] > 0 and counts_hold(n_rows[g], values[g], moments[g], rules, work)


@kernel
def accumulate(n_rows, values, moments):
    """Make them running totals over the groups; all as in ``add_rows``   IN+OUT."""
    for g in range(1, n_rows.shape[0]):
        n_rows[g] += n_rows[g - 1]
        for v in range(values.shape[1]):
            values[g, v] += values[g - 1, v]
        for r in range(moments.shape[1]):
            for w in range(4):
                moments[g, r, w] += moments[g - 1, r, w]


@inner
def between_holds(before, up_to, bins, rules, values, work):
    """The requirement on the rows of the bins (before, up_to]; -1: from the first one on.

    values   (sensitive values,) int64, all zero, work as in ``summarize``   scratch
    """
    n, moments = bins.n_rows[up_to], np.empty((bins.moments.shape[1], 4), dtype=np.int64)
    for v in range(bins.values.shape[1]):
        values[v] = np.int64(bins.values[up_to, v])
    for r in range(moments.shape[0]):
        for w in range(4):
            moments[r, w] = bins.moments[up_to, r, w]
    if before >= 0:
        n -= bins.n_rows[before]
        for v in range(bins.values.shape[1]):
            values[v] -= np.int64(bins.values[before, v])
        for r in range(moments.shape[0]):
            for w in range(4):
                moments[r, w] -= bins.moments[before, r, w]
    holds = counts_hold(n, values, moments, rules, work)
    for v in range(bins.values.shape[1]):
        values[v] = 0
    return holds
