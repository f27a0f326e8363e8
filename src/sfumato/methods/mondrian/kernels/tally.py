"""The requirement on groups whose rows are read block by block: add up what it needs, then check each group."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.axes import NO_NUMBER
from sfumato.kernels.compile import kernel
from sfumato.methods.mondrian.kernels.rules import counts_hold


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
