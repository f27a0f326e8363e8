"""Generalizations between which the best one of a row must lie, and what the rows of the side table prove of them.

f = lambda / r + u^kappa is supermodular: a step up in one column is worth the more, the higher the others stand. So
where a row's best generalization x lies below ``high``, a step of one column that is worth less there than a lower one is
worth less at x, too: ``high`` comes down; ``low`` goes up in the same way. Steps, ladders and brackets are those of
:mod:`sfumato.methods.risk_utility.paper.kernels.marginal`.

A row of the side table *stands* at the least step of each ladder whose node covers it. It is covered by x if it stands
nowhere above x. Rows that stand nowhere above ``high`` are kept at the front of :class:`Standing`: the first ``n``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.risk_utility.kernels.lattice import node_at
from sfumato.methods.risk_utility.paper.kernels.marginal import (
    MARGIN,
    N_BINS,
    bin_width,
    bound_scratch,
    ends_are_best,
    total,
    value,
)


class Standing(NamedTuple):
    """Where rows of the side table stand, and how many rows stand alike."""

    step: NDArray[np.uint8]  # (columns, at least n)
    n_rows: NDArray[np.int64]  # (at least n,)


# ---- the rows that count --------------------------------------------------------------------------------


@kernel
def fill_standing(lattice, side, rows, row, ladder, high, out):
    """Where the rows of the side table stand, without those above ``high`` somewhere. Returns how many are left.

    A row that the side table lacks is added: it stands lowest.

    lattice  Lattice                                                  IN
    side     SideRows, its codes column by column                     IN
    rows     TableRows; ``row`` is the one looked at                  IN
    ladder   Ladder                                                   IN
    high     (columns,)                                        int64  IN
    out      Standing, for the distinct rows and one more             OUT
    """
    codes, own = side.code, rows.own[row]
    n_columns, n = codes.shape
    alive = np.arange(n)
    step_of = np.empty(lattice.high.max(), dtype=np.uint8)
    for a in range(n_columns):
        top = node_at(lattice, a, rows.code[row, a], ladder.level[a, high[a]])
        low, end = lattice.low[top], lattice.high[top]
        if low == lattice.low[lattice.root[a]] and end == lattice.high[lattice.root[a]]:
            continue
        m = 0
        for j in range(n):
            alive[m] = alive[j]
            m += low <= codes[a, alive[j]] < end
        n = m
    for a in range(n_columns):
        for step in range(high[a], -1, -1):
            node = node_at(lattice, a, rows.code[row, a], ladder.level[a, step])
            step_of[lattice.low[node] : lattice.high[node]] = step
        for j in range(n):
            out.step[a, j] = step_of[codes[a, alive[j]]]
        if own:
            out.step[a, n] = 0
    for j in range(n):
        out.n_rows[j] = side.n_rows[alive[j]]
    if own:
        out.n_rows[n] = own
    return n + (1 if own else 0)


@inner
def count_steps(standing, n, ladder, high):
    """Count, at each step of each ladder, the rows that stand no higher there; all stand below ``high``.

    Four histograms in turn: one sum need not wait for the last one.
    """
    stands, count = standing.step, standing.n_rows
    lanes = np.empty((4, ladder.n_rows.shape[1]), dtype=np.int64)
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
            ladder.n_rows[a, step] = below


@inner
def drop_above(standing, n, ladder, old, high):
    """Keep the rows that stand nowhere above ``high``, in place, and count the others no more; returns their number.

    ``old`` is where ``high`` was; from there down rows are counted.
    """
    stands, count = standing.step, standing.n_rows
    is_above = np.zeros(n, dtype=np.uint8)
    for a in range(stands.shape[0]):
        if high[a] < old[a]:
            for j in range(n):
                is_above[j] |= stands[a, j] > high[a]
    lost = np.zeros(ladder.n_rows.shape[1], dtype=np.int64)
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
            ladder.n_rows[a, step] -= below
    m = 0
    for j in range(n):
        count[m] = count[j]
        m += 1 - is_above[j]
    return m


# ---- the bracket ----------------------------------------------------------------------------------------


@inner
def descend(terms, ladder, low, high, out):
    """The least best step of each column when all others stand at ``high``, where rows are counted below it.

    A step that covers the same of these rows at the same weight as a higher one is at least as good wherever the others
    stand. Has any column moved?
    """
    moved = False
    weight, utility = total(ladder.weight, high) + terms.floor, total(ladder.utility, high)
    for a in range(len(high)):
        out[a] = high[a]
        best = -np.inf
        for step in range(high[a], low[a] - 1, -1):
            found = value(
                terms,
                ladder.n_rows[a, step],
                weight + ladder.weight[a, step] - ladder.weight[a, high[a]],
                utility + ladder.utility[a, step] - ladder.utility[a, high[a]],
            )
            is_alike = (
                ladder.n_rows[a, step] == ladder.n_rows[a, out[a]]
                and ladder.weight[a, step] == ladder.weight[a, out[a]]
            )
            if found > best * (1 + MARGIN) or is_alike:
                best = max(best, found)
                out[a] = step
        moved |= out[a] < high[a]
    return moved


@kernel
def lower_high_by_columns(terms, ladder, high):
    """Bring ``high`` down once, by the counts of single columns only.

    terms   Terms              IN
    ladder  Ladder             IN
    high    (columns,)  int64  IN+OUT
    """
    low, out = np.zeros_like(high), np.empty_like(high)
    descend(terms, ladder, low, high, out)
    high[:] = out


@kernel
def lower_high(terms, standing, n, ladder, low, high):
    """Bring ``high`` down as far as it goes. Returns how many rows are left below it.

    terms     Terms                                          IN
    standing  Standing, of which the first ``n`` rows count  IN+OUT
    ladder    Ladder, then with counts of rows below high    IN+OUT
    low       (columns,)                              int64  IN
    high      (columns,)                              int64  IN+OUT
    """
    out = np.empty_like(high)
    count_steps(standing, n, ladder, high)
    while descend(terms, ladder, low, high, out):
        n = drop_above(standing, n, ladder, high, out)
        high[:] = out
    return n


@kernel
def raise_low(terms, standing, n, ladder, high, low):
    """Bring ``low`` up as far as it goes; then let no row stand below it.

    terms     Terms                                          IN
    standing  Standing, of which the first ``n`` rows count  IN+OUT
    ladder    Ladder                                         IN
    high      (columns,)                              int64  IN
    low       (columns,)                              int64  IN+OUT
    """
    stands, count = standing.step, standing.n_rows
    n_columns = stands.shape[0]
    n_above, where = np.empty(n, dtype=np.uint8), np.empty(n, dtype=np.uint8)
    more = np.empty((n_columns, ladder.n_rows.shape[1]), dtype=np.int64)
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
        moved = ascend(terms, ladder, more, covered, high, low)
    for a in range(n_columns):
        for j in range(n):
            stands[a, j] = max(stands[a, j], low[a])


@inner
def ascend(terms, ladder, more, covered, high, low):
    """The greatest best step of each column when all others stand at ``low``: that is where ``low`` goes. Has it moved?

    more  (columns, steps) rows that are covered from this step on, and by no other column  int64  IN
    """
    moved = False
    weight, utility = total(ladder.weight, low) + terms.floor, total(ladder.utility, low)
    for a in range(len(low)):
        first, n_covered = low[a], covered
        best = value(terms, covered, weight, utility)
        for step in range(first + 1, high[a] + 1):
            n_covered += more[a, step]
            found = value(
                terms,
                n_covered,
                weight + ladder.weight[a, step] - ladder.weight[a, first],
                utility + ladder.utility[a, step] - ladder.utility[a, first],
            )
            if found > best * (1 + MARGIN):
                best = found
                low[a] = step
        moved |= low[a] > first
    return moved


@kernel
def merge_alike(standing, n):
    """Merge rows that stand alike, in place, by open addressing; returns how many are left. Those after count nothing.

    standing  Standing, of which the first ``n`` rows count  IN+OUT
    """
    stands, count = standing.step, standing.n_rows
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
def count_covered(standing, n, at):
    """The rows, of the first ``n``, that stand nowhere above some steps (columns,)."""
    stands, count = standing.step, standing.n_rows
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
def ends_are_best_nearby(terms, standing, n, ladder, low, high, best):
    """The bound of single columns again, with the rows below ``high`` only and with N(s).

    N(s) is the number of rows whose least common generalization with the row loses at most s: what loses s covers no
    other.

    terms      Terms                                          IN
    standing   Standing, of which the first ``n`` rows count  IN
    ladder     Ladder                                         IN
    low, high  (columns,)                              int64  IN
    best       the value of the better end           float64  IN
    """
    stands, count = standing.step, standing.n_rows
    width = bin_width(ladder, low, high)
    loss, bins = np.zeros(n, dtype=np.uint16), np.zeros(ladder.n_rows.shape[1], dtype=np.uint16)
    for a in range(stands.shape[0]):
        for step in range(low[a], high[a] + 1):
            bins[step] = (ladder.utility[a, low[a]] - ladder.utility[a, step]) // width
        for j in range(n):
            loss[j] += bins[max(stands[a, j], low[a])]
    near = np.zeros(N_BINS, dtype=np.int64)
    for j in range(n):
        near[loss[j]] += count[j]
    for b in range(1, N_BINS):
        near[b] += near[b - 1]
    return ends_are_best(terms, ladder, low, high, near, best, bound_scratch(len(low)))


@kernel
def high_is_best(terms, standing, n, ladder, low, high, slope, spare):
    r"""Is ``high`` better than everything else in the bracket? A transport of rows to columns proves it.

    Let x = high, :math:`\alpha = f(x)`, :math:`\beta = \alpha - u(low)^\kappa` (``spare``) and ``slope`` that of the
    chord of :math:`u^\kappa` over the bracket. A step down of column i to l *demands*

    .. math:: (slope \Phi(x) (d_i(l) - d_i(x_i)) - \beta (w_i(l) - w_i(x_i))) / \lambda

    rows that stand above l in column i. If each row serves one column, and all demands are served with a little to
    spare, then f(y) < f(x) for every other y of the bracket: it loses the rows that serve the columns in which it is
    lower. Greedy, the scarcest column first; that it fails says nothing.
    """
    stands, count, n_columns = standing.step, standing.n_rows, len(low)
    weight, price = total(ladder.weight, high) + terms.floor, terms.price
    demand = np.zeros(ladder.n_rows.shape)
    scarcity = np.full(n_columns, -np.inf)
    for a in range(n_columns):
        for step in range(low[a], high[a]):
            gain = slope * weight * (ladder.utility[a, step] - ladder.utility[a, high[a]]) / price
            cost = spare * (ladder.weight[a, step] - ladder.weight[a, high[a]]) / price
            demand[a, step] = gain - cost + MARGIN * (ladder.n_rows[a, high[a]] + gain + cost)
            supply = ladder.n_rows[a, high[a]] - ladder.n_rows[a, step]
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
    "Standing",
    "count_covered",
    "ends_are_best_nearby",
    "fill_standing",
    "high_is_best",
    "lower_high",
    "lower_high_by_columns",
    "merge_alike",
    "raise_low",
]
