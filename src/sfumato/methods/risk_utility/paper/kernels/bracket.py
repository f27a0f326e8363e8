"""Generalizations between which the best one of a row must lie, and what the rows of the side table prove of them.

f = lambda / r + u^kappa is supermodular: a step up in one column is worth the more, the higher the others stand. So
where a row's best generalization x lies below ``high``, a step of one column that is worth less there than a lower one is
worth less at x, too: ``high`` comes down; ``low`` goes up in the same way. Steps, ladders and brackets are those of
:mod:`sfumato.methods.risk_utility.paper.kernels.marginal`.

A row of the side table *stands* at the least step of each ladder whose node covers it. It is covered by x if it stands
nowhere above x.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.risk_utility.kernels.lattice import node_at
from sfumato.methods.risk_utility.paper.kernels.marginal import (
    COUNT,
    LEVEL,
    MARGIN,
    N_BINS,
    UTILITY,
    WEIGHT,
    bin_width,
    climb,
    ends_are_best,
    total,
    value,
)

# ---- the rows that count --------------------------------------------------------------------------------


@kernel
def fill_ladder(lattice, node_count, rows, factor, own, row, size, ladder):
    """The ladders of one row: size (columns,) int64, ladder (columns, steps, 4) int64   OUT."""
    climb(lattice, node_count, rows, factor, own, row, size, ladder)


@kernel
def fill_standing(lattice, side, side_count, rows, row, own, ladder, high, stands, count):
    """Where the rows of the side table stand, without those above ``high`` somewhere. Returns how many are left.

    side        (columns, distinct rows of the side table)            uint32  IN
    side_count  (distinct rows of the side table,)                    int64   IN
    rows        (rows, columns) codes; ``row`` is the one looked at   uint32  IN
    own         1 if the side table lacks it: it stands lowest        int64   IN
    ladder      (columns, steps, 4); high (columns,)                  int64   IN
    stands      (columns, distinct rows and one more)                 uint8   OUT
    count       (distinct rows and one more,)                         int64   OUT
    """
    n_columns, n = side.shape
    alive = np.arange(n)
    step_of = np.empty(lattice.high.max(), dtype=np.uint8)
    for a in range(n_columns):
        top = node_at(lattice, a, rows[row, a], ladder[a, high[a], LEVEL])
        low, end = lattice.low[top], lattice.high[top]
        if low == lattice.low[lattice.root[a]] and end == lattice.high[lattice.root[a]]:
            continue
        m = 0
        for j in range(n):
            alive[m] = alive[j]
            m += low <= side[a, alive[j]] < end
        n = m
    for a in range(n_columns):
        for step in range(high[a], -1, -1):
            node = node_at(lattice, a, rows[row, a], ladder[a, step, LEVEL])
            step_of[lattice.low[node] : lattice.high[node]] = step
        for j in range(n):
            stands[a, j] = step_of[side[a, alive[j]]]
        if own:
            stands[a, n] = 0
    for j in range(n):
        count[j] = side_count[alive[j]]
    if own:
        count[n] = own
    return n + (1 if own else 0)


@inner
def fill_counts(stands, count, n, ladder, high):
    """Count, at each step of each ladder, the rows that stand no higher there; all stand below ``high``.

    Four histograms in turn: one sum need not wait for the last one.
    """
    lanes = np.empty((4, ladder.shape[1]), dtype=np.int64)
    for a in range(stands.shape[0]):
        lanes[:] = 0
        for j in range(0, n - n % 4, 4):
            lanes[0, stands[a, j]] += count[j]
            lanes[1, stands[a, j + 1]] += count[j + 1]
            lanes[2, stands[a, j + 2]] += count[j + 2]
            lanes[3, stands[a, j + 3]] += count[j + 3]
        for j in range(n - n % 4, n):
            lanes[0, stands[a, j]] += count[j]
        below = np.int64(0)
        for step in range(high[a] + 1):
            below += lanes[0, step] + lanes[1, step] + lanes[2, step] + lanes[3, step]
            ladder[a, step, COUNT] = below


@inner
def drop_above(stands, count, n, ladder, old, high):
    """Keep the rows that stand nowhere above ``high``, in place, and count the others no more; returns their number.

    ``old`` is where ``high`` was; from there down rows are counted.
    """
    is_above = np.zeros(n, dtype=np.uint8)
    for a in range(stands.shape[0]):
        if high[a] < old[a]:
            for j in range(n):
                is_above[j] |= stands[a, j] > high[a]
    lost = np.zeros(ladder.shape[1], dtype=np.int64)
    for a in range(stands.shape[0]):
        lost[:] = 0
        m = 0
        for j in range(n):
            if is_above[j]:
                lost[stands[a, j]] += count[j]
            else:
                stands[a, m] = stands[a, j]
                m += 1
        below = np.int64(0)
        for step in range(high[a] + 1):
            below += lost[step]
            ladder[a, step, COUNT] -= below
    m = 0
    for j in range(n):
        count[m] = count[j]
        m += 1 - is_above[j]
    return m


# ---- the bracket ----------------------------------------------------------------------------------------


@inner
def descend(ladder, low, high, weight, utility, price, unit, power, out):
    """The least best step of each column when all others stand at ``high``, where rows are counted below it.

    A step that covers the same of these rows at the same weight as a higher one is at least as good wherever the others
    stand.
    """
    moved = False
    for a in range(len(high)):
        out[a] = high[a]
        best = -np.inf
        for step in range(high[a], low[a] - 1, -1):
            found = value(
                price,
                ladder[a, step, COUNT],
                weight + ladder[a, step, WEIGHT] - ladder[a, high[a], WEIGHT],
                (utility + ladder[a, step, UTILITY] - ladder[a, high[a], UTILITY]) * unit,
                power,
            )
            is_alike = (
                ladder[a, step, COUNT] == ladder[a, out[a], COUNT]
                and ladder[a, step, WEIGHT] == ladder[a, out[a], WEIGHT]
            )
            if found > best * (1 + MARGIN) or is_alike:
                best = max(best, found)
                out[a] = step
        moved |= out[a] < high[a]
    return moved


@kernel
def fill_first_high(ladder, floor, price, unit, power, high):
    """The first way down, which needs the counts of single columns only; high (columns,) int64   IN+OUT."""
    low, out = np.zeros_like(high), np.empty_like(high)
    weight, utility = total(ladder, high, WEIGHT) + floor, total(ladder, high, UTILITY)
    moved = descend(ladder, low, high, weight, utility, price, unit, power, out)
    high[:] = out
    return moved


@kernel
def fill_high(stands, count, n, ladder, low, floor, price, unit, power, high):
    """Bring ``high`` down as far as it goes. Returns how many rows are left below it.

    stands  (columns, n)                                 uint8   IN+OUT
    count   (n,)                                         int64   IN+OUT
    ladder  (columns, steps, 4), with counts below high  int64   IN+OUT
    low     (columns,)                                   int64   IN
    high    (columns,)                                   int64   IN+OUT
    """
    out = np.empty_like(high)
    fill_counts(stands, count, n, ladder, high)
    while True:
        weight, utility = total(ladder, high, WEIGHT) + floor, total(ladder, high, UTILITY)
        if not descend(ladder, low, high, weight, utility, price, unit, power, out):
            return n
        n = drop_above(stands, count, n, ladder, high, out)
        high[:] = out


@kernel
def fill_low(stands, count, n, ladder, high, floor, price, unit, power, low):
    """Bring ``low`` up as far as it goes; then let no row stand below it. Returns how many rows it covers.

    stands  (columns, n)                                 uint8   IN+OUT
    count   (n,)                                         int64   IN
    ladder  (columns, steps, 4)                          int64   IN
    high    (columns,)                                   int64   IN
    low     (columns,)                                   int64   IN+OUT
    """
    n_columns = stands.shape[0]
    n_above, where = np.empty(n, dtype=np.uint8), np.empty(n, dtype=np.uint8)
    more = np.empty((n_columns, ladder.shape[1]), dtype=np.int64)
    moved = True
    while moved:
        n_above[:], more[:], covered = 0, 0, np.int64(0)
        for a in range(n_columns):
            for j in range(n):
                if stands[a, j] > low[a]:
                    n_above[j] = min(n_above[j] + 1, 2)
                    where[j] = a
        for j in range(n):
            if n_above[j] == 0:
                covered += count[j]
            elif n_above[j] == 1:
                more[where[j], stands[where[j], j]] += count[j]
        moved = rise(ladder, more, covered, high, floor, price, unit, power, low)
    for a in range(n_columns):
        for j in range(n):
            stands[a, j] = max(stands[a, j], low[a])
    return covered


@inner
def rise(ladder, more, covered, high, floor, price, unit, power, low):
    """The greatest best step of each column when all others stand at ``low``: that is where ``low`` goes."""
    moved = False
    weight, utility = total(ladder, low, WEIGHT) + floor, total(ladder, low, UTILITY)
    for a in range(len(low)):
        first = low[a]
        best, found = value(price, covered, weight, utility * unit, power), covered
        for step in range(first + 1, high[a] + 1):
            found += more[a, step]
            worth = value(
                price,
                found,
                weight + ladder[a, step, WEIGHT] - ladder[a, first, WEIGHT],
                (utility + ladder[a, step, UTILITY] - ladder[a, first, UTILITY]) * unit,
                power,
            )
            if worth > best * (1 + MARGIN):
                best = worth
                low[a] = step
        moved |= low[a] > first
    return moved


@kernel
def fill_distinct(stands, count, n):
    """Merge rows that stand alike, in place, by open addressing; returns how many are left. Those after count nothing."""
    size = 16
    while size < 2 * n:
        size *= 2
    mask = np.uint64(size - 1)
    table = np.full(size, -1, dtype=np.int64)
    hashes = np.zeros(n, dtype=np.uint64)
    for a in range(stands.shape[0]):
        for j in range(n):
            hashes[j] = (hashes[j] ^ np.uint64(stands[a, j])) * np.uint64(0x9E3779B97F4A7C15)
            hashes[j] ^= hashes[j] >> np.uint64(29)
    m = 0
    for j in range(n):
        at = hashes[j] & mask
        while table[at] >= 0:
            other = table[at]
            if hashes[other] == hashes[j]:
                for a in range(stands.shape[0]):
                    if stands[a, other] != stands[a, j]:
                        break
                else:
                    break
            at = (at + np.uint64(1)) & mask
        if table[at] >= 0:
            count[table[at]] += count[j]
            continue
        table[at] = m
        hashes[m], count[m] = hashes[j], count[j]
        for a in range(stands.shape[0]):
            stands[a, m] = stands[a, j]
        m += 1
    count[m:n] = 0
    return m


@kernel
def covered_by(stands, count, n, at):
    """The rows that stand nowhere above some steps."""
    alive = np.arange(n)
    for a in range(len(at)):
        m = 0
        for j in range(n):
            alive[m] = alive[j]
            m += stands[a, alive[j]] <= at[a]
        n = m
    found = np.int64(0)
    for j in range(n):
        found += count[alive[j]]
    return found


# ---- certificates ---------------------------------------------------------------------------------------


@kernel
def ends_are_best_nearby(stands, count, n, ladder, low, high, floor, price, unit, power, best):
    """The bound of single columns again, with the rows below ``high`` only and with N(s).

    N(s) is the number of rows whose least common generalization with the row loses at most s: what loses s covers no
    other. stands (columns, n) uint8, count (n,) int64, ladder (columns, steps, 4), low, high (columns,) int64   IN.
    """
    width = bin_width(ladder, low, high)
    loss, bins = np.zeros(n, dtype=np.uint16), np.zeros(ladder.shape[1], dtype=np.uint16)
    for a in range(stands.shape[0]):
        for step in range(low[a], high[a] + 1):
            bins[step] = (ladder[a, low[a], UTILITY] - ladder[a, step, UTILITY]) // width
        for j in range(n):
            loss[j] += bins[max(stands[a, j], low[a])]
    near = np.zeros(N_BINS, dtype=np.int64)
    for j in range(n):
        near[loss[j]] += count[j]
    for b in range(1, N_BINS):
        near[b] += near[b - 1]
    return ends_are_best(ladder, low, high, floor, near, price, unit, power, best, np.empty(N_BINS), np.empty(N_BINS),
                         np.empty(N_BINS, dtype=np.int64), np.empty_like(low))  # fmt: skip


@kernel
def high_is_best(stands, count, n, ladder, low, high, slope, spare, weight, price):
    r"""Is ``high`` better than everything else in the bracket? A transport of rows to columns proves it.

    Let x = high, :math:`\alpha = f(x)`, :math:`\beta = \alpha - u(low)^\kappa` (``spare``) and ``slope`` that of the
    chord of :math:`u^\kappa` over the bracket. A step down of column i to l *demands*

    .. math:: (slope \Phi(x) (d_i(l) - d_i(x_i)) - \beta (w_i(l) - w_i(x_i))) / \lambda

    rows that stand above l in column i. If each row serves one column, and all demands are served with a little to
    spare, then f(y) < f(x) for every other y of the bracket: it loses the rows that serve the columns in which it is
    lower. Greedy, the scarcest column first; that it fails says nothing.
    """
    n_columns = len(low)
    demand = np.zeros(ladder.shape[:2])
    scarcity = np.full(n_columns, -np.inf)
    for a in range(n_columns):
        for step in range(low[a], high[a]):
            gain = slope * weight * (ladder[a, step, UTILITY] - ladder[a, high[a], UTILITY]) / price
            cost = spare * (ladder[a, step, WEIGHT] - ladder[a, high[a], WEIGHT]) / price
            demand[a, step] = gain - cost + MARGIN * (ladder[a, high[a], COUNT] + gain + cost)
            supply = ladder[a, high[a], COUNT] - ladder[a, step, COUNT]
            if demand[a, step] > supply:
                return False
            if demand[a, step] > 0:
                scarcity[a] = max(scarcity[a], demand[a, step] / supply)
    left, stride, at = count[:n].astype(np.float64), coprime(n), 0
    for a in np.argsort(-scarcity):
        taken = 0.0
        for step in range(high[a] - 1, low[a] - 1, -1):
            for _ in range(n):
                if taken >= demand[a, step]:
                    break
                if stands[a, at] > step and left[at] > 0:
                    part = min(left[at], demand[a, step] - taken)
                    left[at] -= part
                    taken += part
                at = (at + stride) % n
            if taken < demand[a, step]:
                return False
    return True


@inner
def coprime(n):
    """About .618 times a number, without a common divisor: steps of it pass all rows in no particular order.

    In the order of the side table one column would use up the rows that another one needs.
    """
    stride = max(np.int64(1), np.int64(0.618 * n))
    while True:
        a, b = n, stride
        while b:
            a, b = b, a % b
        if a == 1:
            return stride
        stride += 1


__all__ = [
    "covered_by",
    "ends_are_best_nearby",
    "fill_distinct",
    "fill_first_high",
    "fill_high",
    "fill_ladder",
    "fill_low",
    "fill_standing",
    "high_is_best",
]
