"""What the counts of single columns prove of the Lagrangian of one row, without reading a row of the side table.

The *ladder* of a column are the nodes that a row may stand for there, its *steps*, the least general first. A step that
another one of its ladder beats whatever the other columns do is left out: one that covers the same rows at the same
weight as a step below it, and one that has no more utility than the step above it and more weight. The greatest levels
that are left cover every row; the best generalization (least levels among equals) is never one of those left out.

A *bracket* are the steps from ``low`` to ``high`` of each ladder.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.risk_utility.kernels.lattice import node_at, weight_at

LOW, HIGH, TIED, OPEN = 0, 1, 2, 3
"""What is proved: the lowest of the bracket is best, its highest, one of the two, or nothing."""

MARGIN = 1e-9
"""Floats that differ by less, of their size, prove nothing."""

N_BINS = 512
"""Losses of utility are counted in bins, downwards, if there are more of them."""


class Ladder(NamedTuple):
    """The ladders of all columns of one row: what stands at each step."""

    size: NDArray[np.int64]  # (columns,) how many steps
    level: NDArray[np.int64]  # (columns, steps) as are the next three
    n_rows: NDArray[np.int64]  # of the side table below the node
    weight: NDArray[np.int64]
    utility: NDArray[np.int64]


class Terms(NamedTuple):
    """The numbers of the Lagrangian, price covered / weight + (unit utility) ^ power."""

    price: float  # lambda by a unit of weight
    unit: float  # of utility
    power: int  # kappa
    floor: int  # added to every weight


class LadderEnds(NamedTuple):
    """The two ends of the ladders of some rows, the low one first, and whether one of them is the best of its row."""

    proved: NDArray[np.int64]  # (rows,) LOW, HIGH, TIED or OPEN
    level: NDArray[np.uint8]  # (rows, 2, columns)
    covered: NDArray[np.int64]  # (rows, 2)
    weight: NDArray[np.int64]  # (rows, 2)
    utility: NDArray[np.int64]  # (rows, 2)


class BoundScratch(NamedTuple):
    """Bounds of generalizations by the bins of their loss, and working memory for them."""

    lightest: NDArray[
        np.float64
    ]  # (N_BINS,) the least weight of exactly that loss, infinite where there is none
    most: NDArray[np.int64]  # (N_BINS,) no such loss covers more rows
    sums: NDArray[np.float64]  # (N_BINS,) scratch
    at: NDArray[np.int64]  # (columns,) scratch


@inner
def value(terms, covered, weight, utility):
    """The Lagrangian of a generalization; utility in units of the problem."""
    power, u = 1.0, utility * terms.unit
    for _ in range(terms.power):
        power *= u
    return terms.price * covered / weight + power


@kernel
def fill_ladder(lattice, node_count, rows, row, out):
    """The ladders of one row.

    lattice     Lattice                                                IN
    node_count  (nodes,) rows of the side table below each node int64  IN
    rows        TableRows; ``row`` is the one looked at                IN
    out         Ladder                                                 OUT
    """
    for a in range(rows.code.shape[1]):
        n, last = 0, np.int64(-1)
        for level in range(lattice.n_levels[a]):
            node = node_at(lattice, a, rows.code[row, a], level)
            if node == last:
                continue
            last = node
            count = node_count[node] + rows.own[row]
            weight, utility = weight_at(lattice, rows.factor, row, a, node), lattice.utility[node]
            if n and out.n_rows[a, n - 1] == count and out.weight[a, n - 1] == weight:
                continue
            while n and out.utility[a, n - 1] == utility and out.weight[a, n - 1] > weight:
                n -= 1
            out.level[a, n], out.n_rows[a, n], out.weight[a, n], out.utility[a, n] = (
                level,
                count,
                weight,
                utility,
            )
            n += 1
        out.size[a] = n


@inner
def total(values, at):
    """The sum of (columns, steps) values at a step of each column."""
    found = np.int64(0)
    for a in range(len(at)):
        found += values[a, at[a]]
    return found


@inner
def bound_scratch(n_columns):
    """Working memory for :func:`ends_are_best`."""
    return BoundScratch(
        np.empty(N_BINS), np.empty(N_BINS, np.int64), np.empty(N_BINS), np.empty(n_columns, np.int64)
    )


@inner
def bin_width(ladder, low, high):
    """Units of utility in a bin of losses."""
    loss = total(ladder.utility, low) - total(ladder.utility, high)
    return max(np.int64(1), -(-loss // np.int64(N_BINS - 1)))


@inner
def fill_lightest(ladder, low, high, width, floor, bounds):
    """The least weight of all choices of steps whose losses fill exactly so many bins; infinite where none do.

    A knapsack, column by column. Sums of weights are whole numbers below 2^53, so that floats hold them exactly. The
    greatest number of bins is returned.
    """
    out, scratch = bounds.lightest, bounds.sums
    last = np.int64(0)
    out[0] = floor
    for a in range(len(low)):
        first = ladder.utility[a, low[a]]
        extra = (first - ladder.utility[a, high[a]]) // width
        for b in range(last + 1):
            scratch[b] = out[b] + ladder.weight[a, low[a]]
        for b in range(last + 1, last + extra + 1):
            scratch[b] = np.inf
        for step in range(low[a] + 1, high[a] + 1):
            shift, weight = (first - ladder.utility[a, step]) // width, ladder.weight[a, step]
            for b in range(last + 1):
                scratch[b + shift] = min(scratch[b + shift], out[b] + weight)
        last += extra
        for b in range(last + 1):
            out[b] = scratch[b]
    return last


@inner
def fill_most_covered(ladder, low, high, width, last, bounds):
    """The most rows that single columns allow at a loss of at most so many bins.

    rho(x) is at most the least count of a column at x, and a larger least count needs a step up in every column that has
    the least.
    """
    at, out = bounds.at, bounds.most
    for a in range(len(low)):
        at[a] = low[a]
    loss = np.int64(0)
    b = np.int64(0)
    while True:
        scarce = 0
        for a in range(len(low)):
            if ladder.n_rows[a, at[a]] < ladder.n_rows[scarce, at[scarce]]:
                scarce = a
        most = ladder.n_rows[scarce, at[scarce]]
        if at[scarce] == high[scarce]:
            break
        before = (ladder.utility[scarce, low[scarce]] - ladder.utility[scarce, at[scarce]]) // width
        at[scarce] += 1
        after = (ladder.utility[scarce, low[scarce]] - ladder.utility[scarce, at[scarce]]) // width
        loss += after - before
        while b < loss:
            out[b] = most
            b += 1
    while b <= last:
        out[b] = most
        b += 1


@kernel
def fill_bounds(ladder, low, high, floor, out):
    """What generalizations within a bracket weigh and cover, by the bins of their loss. Returns width and last bin.

    ladder     Ladder                                IN
    low, high  (columns,)                     int64  IN
    floor      added to every weight          int64  IN
    out        BoundScratch                          OUT
    """
    width = bin_width(ladder, low, high)
    last = fill_lightest(ladder, low, high, width, floor, out)
    fill_most_covered(ladder, low, high, width, last, out)
    return width, last


@inner
def ends_are_best(terms, ladder, low, high, near, best, bounds):
    r"""Is every choice within the bracket, but for its two ends, worth less than ``best``?

    For all x of binned loss b, with :math:`\Phi_{min}(b)` by the knapsack and R(b) the most rows covered,

    .. math:: f(x) \le \lambda R(b) / \Phi_{min}(b) + (u(low) - b)^\kappa

    ``near`` (bins or 0,) int64 are the rows of the side table whose own loss is at most b: what is covered is among them.
    """
    width, last = fill_bounds(ladder, low, high, terms.floor, bounds)
    raw = total(ladder.utility, low)
    least, first, final, below_top = np.int64(-1), last, np.int64(0), np.int64(0)
    for a in range(len(low)):
        if low[a] == high[a]:
            continue
        lowest, highest = ladder.utility[a, low[a]], ladder.utility[a, high[a]]
        step = lowest - ladder.utility[a, low[a] + 1]
        least = step if least < 0 else min(least, step)
        first = min(first, step // width)
        below = (lowest - ladder.utility[a, high[a] - 1]) // width
        final = max(final, last - (lowest - highest) // width + below)
        below_top = max(below_top, ladder.n_rows[a, high[a] - 1])
    for b in range(first, final + 1):
        if bounds.lightest[b] == np.inf:
            continue
        covered = min(bounds.most[b], below_top)
        if len(near):
            covered = min(covered, near[b])
        utility = raw - max(b * width, least)
        if value(terms, covered, bounds.lightest[b], utility) > best * (1 - MARGIN):
            return False
    return True


@inner
def better_end(low_value, high_value):
    """LOW or HIGH, or TIED where floats cannot tell."""
    gap = MARGIN * max(low_value, high_value)
    return LOW if low_value > high_value + gap else HIGH if high_value > low_value + gap else TIED


@kernel
def fill_ends(terms, lattice, node_count, rows, raw_count, which, out):
    """Rows whose best generalization is one of the two ends of their ladders, proved by counts of single columns.

    terms       Terms                                                          IN
    lattice     Lattice                                                        IN
    node_count  (nodes,) rows of the side table below each node         int64  IN
    rows        TableRows                                                      IN
    raw_count   (which,) rows of the side table that equal it, and own  int64  IN
    which       (which,) the rows to look at                            int64  IN
    out         LadderEnds                                                           OUT
    """
    n_columns, n_steps = rows.code.shape[1], lattice.n_levels.max()
    low, high = np.zeros(n_columns, dtype=np.int64), np.empty(n_columns, dtype=np.int64)
    ladder = Ladder(
        np.empty(n_columns, np.int64),
        np.empty((n_columns, n_steps), np.int64),
        np.empty((n_columns, n_steps), np.int64),
        np.empty((n_columns, n_steps), np.int64),
        np.empty((n_columns, n_steps), np.int64),
    )
    bounds, near = bound_scratch(n_columns), np.empty(0, dtype=np.int64)
    for i in range(len(which)):
        fill_ladder(lattice, node_count, rows, which[i], ladder)
        is_raw, is_one = True, True
        for a in range(n_columns):
            high[a] = ladder.size[a] - 1
            is_raw &= ladder.level[a, 0] == 0
            is_one &= ladder.size[a] == 1
            out.level[i, 0, a], out.level[i, 1, a] = ladder.level[a, 0], ladder.level[a, high[a]]
        out.covered[i, 0], out.covered[i, 1] = raw_count[i], ladder.n_rows[0, high[0]]
        for end in range(2):
            at = high if end else low
            out.weight[i, end] = total(ladder.weight, at) + terms.floor
            out.utility[i, end] = total(ladder.utility, at)
        low_value = value(terms, out.covered[i, 0], out.weight[i, 0], out.utility[i, 0])
        high_value = value(terms, out.covered[i, 1], out.weight[i, 1], out.utility[i, 1])
        best = max(low_value, high_value)
        if is_one:
            out.proved[i] = HIGH
        elif is_raw and ends_are_best(terms, ladder, low, high, near, best, bounds):
            out.proved[i] = better_end(low_value, high_value)
        else:
            out.proved[i] = OPEN


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
    "HIGH",
    "LOW",
    "MARGIN",
    "N_BINS",
    "OPEN",
    "TIED",
    "BoundScratch",
    "Ladder",
    "LadderEnds",
    "Terms",
    "bin_width",
    "bound_scratch",
    "ends_are_best",
    "fill_bounds",
    "fill_ends",
    "fill_equal",
    "fill_ladder",
    "total",
    "value",
]
