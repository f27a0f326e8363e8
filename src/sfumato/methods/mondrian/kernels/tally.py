"""What the requirement must know of groups of rows that are never together: added up block by block."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.axes import NO_NUMBER
from sfumato.kernels.compile import kernel
from sfumato.methods.mondrian.kernels.rules import (
    entropy_holds,
    place_in_top,
    recursive_holds,
    variance_holds,
)


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
def fill_holds(n_rows, values, moments, rules, out):
    """Does each group satisfy the requirement, by its definitions?  out is (groups,) bool."""
    most_l = np.int64(1)
    for r in range(rules.recursive.shape[0]):
        most_l = max(most_l, rules.recursive[r].l)
    top = np.zeros(most_l, dtype=np.int64)
    for g in range(n_rows.shape[0]):
        n = n_rows[g]
        holds = n >= max(rules.least_rows, 1)
        for r in range(rules.entropy.shape[0]):
            if holds:
                of = rules.values[rules.entropy[r].of]
                holds = entropy_holds(values[g], of.start, of.end, n, rules.entropy[r].log)
        for r in range(rules.recursive.shape[0]):
            if holds and rules.recursive[r].l > 1:
                of, length = rules.values[rules.recursive[r].of], rules.recursive[r].l - 1
                top[:length] = 0
                for v in range(of.start, of.end):
                    place_in_top(top, length, values[g, v])
                top_rest = np.int64(0)
                for j in range(length):
                    top_rest += top[j]
                holds = recursive_holds(top[0], top_rest, n, rules.recursive[r].up, rules.recursive[r].down)
        for r in range(rules.variance.shape[0]):
            if holds:
                one = moments[g, r]
                holds = variance_holds(one[0], one[1], one[2], one[3], rules.variance[r].least)
        out[g] = holds
