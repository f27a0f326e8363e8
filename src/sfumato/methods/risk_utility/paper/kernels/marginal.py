"""What the counts of single columns prove of the Lagrangian of one row, without reading a row of the side table.

The *ladder* of a column are the nodes that a row may stand for there, the least general first: (columns, steps, 4) with
the level, the rows of the side table below the node, its weight and its utility. A step that another one of its ladder
beats whatever the other columns do is left out: one that covers the same rows at the same weight as a step below it,
and one that has less utility than none and more weight than the step above it. The greatest levels that are left cover
every row; the best generalization (least levels among equals) is never one of those left out.

A *bracket* are the steps from ``low`` to ``high`` of each ladder.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.risk_utility.kernels.lattice import node_at, weight_at

LEVEL, COUNT, WEIGHT, UTILITY = 0, 1, 2, 3
"""What stands at a step of a ladder."""

LOW, HIGH, TIED, OPEN = 0, 1, 2, 3
"""What is proved: the lowest of the bracket is best, its highest, one of the two, or nothing."""

MARGIN = 1e-9
"""Floats that differ by less, of their size, prove nothing."""

N_BINS = 512
"""Losses of utility are counted in bins, downwards, if there are more of them."""


@inner
def value(price, covered, weight, utility, power):
    """The Lagrangian, price covered / weight + utility ^ power, where the price is by a unit of weight."""
    worth = 1.0
    for _ in range(power):
        worth *= utility
    return price * covered / weight + worth


@inner
def climb(lattice, node_count, rows, factor, own, row, size, ladder):
    """The ladders of one row; size (columns,) int64, ladder (columns, steps, 4) int64   OUT."""
    for a in range(rows.shape[1]):
        n, last = 0, np.int64(-1)
        for level in range(lattice.n_levels[a]):
            node = node_at(lattice, a, rows[row, a], level)
            if node == last:
                continue
            last = node
            count = node_count[node] + own[row]
            weight, utility = weight_at(lattice, factor, row, a, node), lattice.utility[node]
            if n and ladder[a, n - 1, COUNT] == count and ladder[a, n - 1, WEIGHT] == weight:
                continue
            while n and ladder[a, n - 1, UTILITY] == utility and ladder[a, n - 1, WEIGHT] > weight:
                n -= 1
            ladder[a, n, LEVEL], ladder[a, n, COUNT] = level, count
            ladder[a, n, WEIGHT], ladder[a, n, UTILITY] = weight, utility
            n += 1
        size[a] = n


@inner
def total(ladder, at, what):
    """The sum, over columns, of what stands at steps."""
    found = np.int64(0)
    for a in range(len(at)):
        found += ladder[a, at[a], what]
    return found


@inner
def bin_width(ladder, low, high):
    """Units of utility in a bin of losses."""
    loss = total(ladder, low, UTILITY) - total(ladder, high, UTILITY)
    return max(np.int64(1), -(-loss // np.int64(N_BINS - 1)))


@inner
def fill_lightest(ladder, low, high, width, floor, out, scratch):
    """The least weight of all choices of steps whose losses fill exactly so many bins; infinite where none do.

    A knapsack, column by column. Sums of weights are whole numbers below 2^53, so that floats hold them exactly.
    out, scratch (N_BINS,) float64   OUT; the greatest number of bins is returned.
    """
    last = np.int64(0)
    out[0] = floor
    for a in range(len(low)):
        first = ladder[a, low[a], UTILITY]
        extra = (first - ladder[a, high[a], UTILITY]) // width
        for b in range(last + 1):
            scratch[b] = out[b] + ladder[a, low[a], WEIGHT]
        for b in range(last + 1, last + extra + 1):
            scratch[b] = np.inf
        for step in range(low[a] + 1, high[a] + 1):
            shift, weight = (first - ladder[a, step, UTILITY]) // width, ladder[a, step, WEIGHT]
            for b in range(last + 1):
                scratch[b + shift] = min(scratch[b + shift], out[b] + weight)
        last += extra
        for b in range(last + 1):
            out[b] = scratch[b]
    return last


@inner
def fill_most_covered(ladder, low, high, width, last, at, out):
    """The most rows that single columns allow at a loss of at most so many bins.

    rho(x) is at most the least count of a column at x, and a larger least count needs a step up in every column that has
    the least. out (N_BINS,) int64   OUT, at (columns,) int64 scratch.
    """
    for a in range(len(low)):
        at[a] = low[a]
    loss = np.int64(0)
    b = np.int64(0)
    while True:
        scarce = 0
        for a in range(len(low)):
            if ladder[a, at[a], COUNT] < ladder[scarce, at[scarce], COUNT]:
                scarce = a
        most = ladder[scarce, at[scarce], COUNT]
        if at[scarce] == high[scarce]:
            break
        before = (ladder[scarce, low[scarce], UTILITY] - ladder[scarce, at[scarce], UTILITY]) // width
        at[scarce] += 1
        after = (ladder[scarce, low[scarce], UTILITY] - ladder[scarce, at[scarce], UTILITY]) // width
        loss += after - before
        while b < loss:
            out[b] = most
            b += 1
    while b <= last:
        out[b] = most
        b += 1


@kernel
def fill_bounds(ladder, low, high, floor, at, scratch, lightest, most):
    """What generalizations within a bracket weigh and cover, by the bins of their loss. Returns width and last bin.

    ladder         (columns, steps, 4); low, high (columns,)       int64    IN
    floor          added to every weight                           int64    IN
    at, scratch    (columns,) int64, (N_BINS,) float64             scratch
    lightest       (N_BINS,) the least weight of exactly that loss float64  OUT
    most           (N_BINS,) no such loss covers more rows         int64    OUT
    """
    width = bin_width(ladder, low, high)
    last = fill_lightest(ladder, low, high, width, floor, lightest, scratch)
    fill_most_covered(ladder, low, high, width, last, at, most)
    return width, last


@inner
def ends_are_best(ladder, low, high, floor, near, price, unit, power, best, lightest, scratch, most, at):
    r"""Is every choice within the bracket, but for its two ends, worth less than ``best``?

    For all x of binned loss b, with :math:`\Phi_{min}(b)` by the knapsack and R(b) the most rows covered,

    .. math:: f(x) \le \lambda R(b) / \Phi_{min}(b) + (u(low) - b)^\kappa

    ``near`` (bins or 0,) int64 are the rows of the side table whose own loss is at most b: what is covered is among them.
    """
    width, last = fill_bounds(ladder, low, high, floor, at, scratch, lightest, most)
    raw = total(ladder, low, UTILITY)
    least, first, final, below_top = np.int64(-1), last, np.int64(0), np.int64(0)
    for a in range(len(low)):
        if low[a] == high[a]:
            continue
        lowest, highest = ladder[a, low[a], UTILITY], ladder[a, high[a], UTILITY]
        step = lowest - ladder[a, low[a] + 1, UTILITY]
        least = step if least < 0 else min(least, step)
        first = min(first, step // width)
        final = max(final, last - (lowest - highest) // width
                    + (lowest - ladder[a, high[a] - 1, UTILITY]) // width)  # fmt: skip
        below_top = max(below_top, ladder[a, high[a] - 1, COUNT])
    for b in range(first, final + 1):
        if lightest[b] == np.inf:
            continue
        covered = min(most[b], below_top)
        if len(near):
            covered = min(covered, near[b])
        utility = (raw - max(b * width, least)) * unit
        if value(price, covered, lightest[b], utility, power) > best * (1 - MARGIN):
            return False
    return True


@inner
def better_end(low_value, high_value):
    """LOW or HIGH, or TIED where floats cannot tell."""
    gap = MARGIN * max(low_value, high_value)
    return LOW if low_value > high_value + gap else HIGH if high_value > low_value + gap else TIED


@kernel
def fill_ends(
    lattice, node_count, rows, factor, own, raw_count, floor, price, unit, power, which, out, levels
):
    """Rows whose best generalization is one of the two ends of their ladders, proved by counts of single columns.

    node_count  (nodes,) rows of the side table below each node         int64    IN
    rows        (rows, columns) codes                                   uint32   IN
    factor      (rows or 0, columns) personal factors                   float64  IN
    own         (rows,) 1 where the side table lacks the row            int64    IN
    raw_count   (which,) rows of the side table that equal it, and own  int64    IN
    floor       added to every weight                                   int64    IN
    price       lambda by a unit of weight                              float64  IN
    unit        of utility                                              float64  IN
    power       kappa                                                   int64    IN
    which       (which,) the rows to look at                            int64    IN
    out         (which, 7): LOW, HIGH, TIED or OPEN; then what the low  int64    OUT
                end and the high end cover, weigh and are worth
    levels      (which, 2, columns) of the two ends                     uint8    OUT
    """
    n_columns = rows.shape[1]
    size, at = np.empty(n_columns, dtype=np.int64), np.empty(n_columns, dtype=np.int64)
    low, high = np.zeros(n_columns, dtype=np.int64), np.empty(n_columns, dtype=np.int64)
    ladder = np.empty((n_columns, lattice.n_levels.max(), 4), dtype=np.int64)
    lightest, scratch = np.empty(N_BINS), np.empty(N_BINS)
    most, near = np.empty(N_BINS, dtype=np.int64), np.empty(0, dtype=np.int64)
    for i in range(len(which)):
        climb(lattice, node_count, rows, factor, own, which[i], size, ladder)
        is_raw, is_one, covered = True, True, ladder[0, size[0] - 1, COUNT]
        for a in range(n_columns):
            high[a] = size[a] - 1
            is_raw &= ladder[a, 0, LEVEL] == 0
            is_one &= size[a] == 1
            levels[i, 0, a], levels[i, 1, a] = ladder[a, 0, LEVEL], ladder[a, high[a], LEVEL]
        out[i, 1], out[i, 4] = raw_count[i], covered
        out[i, 2], out[i, 5] = total(ladder, low, WEIGHT) + floor, total(ladder, high, WEIGHT) + floor
        out[i, 3], out[i, 6] = total(ladder, low, UTILITY), total(ladder, high, UTILITY)
        low_value = value(price, out[i, 1], out[i, 2], out[i, 3] * unit, power)
        high_value = value(price, out[i, 4], out[i, 5], out[i, 6] * unit, power)
        if is_one:
            out[i, 0] = HIGH
        elif is_raw and ends_are_best(ladder, low, high, floor, near, price, unit, power, max(low_value, high_value),
                                      lightest, scratch, most, at):  # fmt: skip
            out[i, 0] = better_end(low_value, high_value)
        else:
            out[i, 0] = OPEN


@kernel
def fill_equal(side, side_count, rows, which, out):
    """How often rows stand in the side table, whose distinct rows are in lexicographic order: binary search.

    side (distinct rows, columns) uint32, side_count int64, rows (rows, columns) uint32, which (which,) int64   IN
    out (which,) int64   OUT
    """
    for i in range(len(which)):
        first, last = 0, side.shape[0]
        out[i] = 0
        while first < last:
            middle = (first + last) // 2
            order = 0
            for a in range(side.shape[1]):
                if side[middle, a] != rows[which[i], a]:
                    order = -1 if side[middle, a] < rows[which[i], a] else 1
                    break
            if order == 0:
                out[i] = side_count[middle]
                break
            if order < 0:
                first = middle + 1
            else:
                last = middle


__all__ = [
    "COUNT",
    "HIGH",
    "LEVEL",
    "LOW",
    "MARGIN",
    "N_BINS",
    "OPEN",
    "TIED",
    "UTILITY",
    "WEIGHT",
    "better_end",
    "bin_width",
    "climb",
    "ends_are_best",
    "fill_bounds",
    "fill_ends",
    "fill_equal",
    "total",
    "value",
]
