r"""Branch and bound for the least risk of one row: a proof that no generalization within the budget has less.

A *box* of generalizations has least and greatest steps. Each near row j spreads its count over the columns, as shares
:math:`\lambda_{ja}` that sum to it; x reaps the shares of those columns where it is general enough for j. So x reaps at
least the rows that it covers, and what it reaps is a sum over columns, as its weight is and the utility that it loses.
With the least risk known, w / c, a better x has

.. math:: c \Phi(x) - w |\rho(x)| < 0

and the least value of the left side over the box, with what x reaps for :math:`|\rho(x)|`, is a knapsack problem that a
table solves. If it is not negative the box is done; otherwise its solution reaps what it does not cover: shares are
moved to the columns that it misses, which raises the bound, or the box is cut in two there. Whole numbers throughout.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.risk_utility.kernels.neighbours import copy_to
from sfumato.methods.risk_utility.kernels.probe import is_better

SHIFTS = 4
"""How often shares are moved before a box is cut."""

FIRST_SHIFTS = 60
"""The same of the whole lattice: all boxes begin with its shares."""


@inner
def _fill_shares(steps, near, parts, out):
    """All of a row's count to the column whose loss is greatest.

    out  (vectors, columns)  int64  OUT
    """
    out[:] = 0
    for j in range(len(near.n_rows)):
        best = 0
        for a in range(out.shape[1]):
            if steps.loss[a, near.vector[j, a]] > steps.loss[best, near.vector[j, best]]:
                best = a
        out[j, best] = parts * near.n_rows[j]


@inner
def _close(steps, budget, low, high):
    """Lower the box's greatest steps to what the budget allows: the loss of its least, more than it if it is empty."""
    loss = np.int64(0)
    for a in range(len(low)):
        loss += steps.loss[a, low[a]]
    for a in range(len(low)):
        while high[a] > low[a] and loss + steps.loss[a, high[a]] - steps.loss[a, low[a]] > budget:
            high[a] -= 1
    return loss


@inner
def _keep_alive(steps, near, budget, low, high, before, out):
    """The vectors that some generalization of the box covers: how many.

    before  (parent's vectors,)  int32  IN
    out     (vectors,)           int32  OUT
    """
    n = 0
    for f in range(len(before)):
        j = before[f]
        lost, a = np.int64(0), 0
        while a < len(low) and near.vector[j, a] <= high[a] and lost <= budget:
            lost += steps.loss[a, max(near.vector[j, a], low[a])]
            a += 1
        if a == len(low) and lost <= budget:
            out[n] = j
            n += 1
    return n


@inner
def _fill_reaped(near, share, alive, low, out):
    """What each column reaps at each step from the box's least on.

    out  (columns, steps)  int64  OUT
    """
    out[:] = 0
    for f in range(len(alive)):
        j = alive[f]
        for a in range(len(low)):
            out[a, max(near.vector[j, a], low[a])] += share[j, a]
    for a in range(len(low)):
        for s in range(low[a] + 1, out.shape[1]):
            out[a, s] += out[a, s - 1]


@inner
def _least(steps, budget, unit, low, high, heavy, light, reaped, value, choice, x):
    """The least value of heavy times weight minus light times reaped, over the box and within the budget.

    value   (2, units of loss)        int64  ROOM
    choice  (columns, units of loss)  uint8  ROOM
    x       (columns,) where it is    uint8  OUT
    """
    least_loss = np.int64(0)
    for a in range(len(low)):
        least_loss += steps.loss[a, low[a]]
    n_units = (budget - least_loss) // unit + 1
    now, then = value[0], value[1]
    now[:n_units] = 0
    for a in range(len(low)):
        now, then = then, now
        for s in range(low[a], high[a] + 1):
            more = (steps.loss[a, s] - steps.loss[a, low[a]]) // unit
            worth = heavy * steps.weight[a, s] - light * reaped[a, s]
            for q in range(more, n_units):
                found = then[q - more] + worth
                if s == low[a] or found < now[q]:
                    now[q] = found
                    choice[a, q] = s
    q = n_units - 1
    least = now[q]
    for back in range(len(low)):
        a = len(low) - 1 - back
        x[a] = choice[a, q]
        q -= (steps.loss[a, x[a]] - steps.loss[a, low[a]]) // unit
    return least


@inner
def _cover(near, alive, x):
    """The rows that x covers."""
    covered = np.int64(0)
    for f in range(len(alive)):
        j, a = alive[f], 0
        while a < len(x) and near.vector[j, a] <= x[a]:
            a += 1
        if a == len(x):
            covered += near.n_rows[j]
    return covered


@inner
def _shift_shares(near, alive, x, share, missed):
    """Move half of what x reaps of rows that it does not cover to the columns where it misses them: is there any?

    share   (vectors, columns)                           int64  IN+OUT
    missed  (columns,) what was reaped and missed there  int64  OUT
    """
    missed[:] = 0
    is_shifted = False
    for f in range(len(alive)):
        j, n_missed, reaped = alive[f], 0, np.int64(0)
        for a in range(len(x)):
            if near.vector[j, a] > x[a]:
                n_missed += 1
            else:
                reaped += share[j, a]
        if not n_missed or not reaped:
            continue
        moved = np.int64(0)
        for a in range(len(x)):
            if near.vector[j, a] <= x[a]:
                part = (share[j, a] + 1) // 2
                share[j, a] -= part
                moved += part
        each, rest = moved // n_missed, moved % n_missed
        for a in range(len(x)):
            if near.vector[j, a] > x[a]:
                share[j, a] += each + (1 if rest > 0 else 0)
                rest -= 1
                missed[a] += reaped
        is_shifted = True
    return is_shifted


@inner
def _take_if_better(steps, near, alive, own, floor, budget, x, best, best_state):
    """Is x better than the best known, and within the budget? Then it is the best known."""
    weight, loss = floor, np.int64(0)
    for a in range(len(x)):
        weight += steps.weight[a, x[a]]
        loss += steps.loss[a, x[a]]
    if loss > budget:
        return False
    covered = own + _cover(near, alive, x)
    if not is_better(covered, weight, loss, best_state[0], best_state[1], best_state[2]):
        return False
    copy_to(x, best)
    best_state[0], best_state[1], best_state[2] = covered, weight, loss
    return True


@inner
def _cut(steps, budget, unit, x, low, high, missed):
    """Where the box is cut so that x is in neither half as it was: a column, and the last step of its lower half.

    It is the column where x missed most; or, if x loses more than the budget, for losses are rounded down, the one where
    most was rounded. The column is -1 if nothing is left to cut.
    """
    loss, column, most = np.int64(0), -1, np.int64(-1)
    for a in range(len(x)):
        loss += steps.loss[a, x[a]]
        rounded = (steps.loss[a, x[a]] - steps.loss[a, low[a]]) % unit
        if x[a] > low[a] and rounded > most:
            column, most = a, rounded
    if loss > budget and column >= 0:
        return column, np.int64(x[column]) - 1
    column = -1
    for a in range(len(x)):
        if low[a] < high[a] and (column < 0 or missed[a] > missed[column]):
            column = a
    step = np.int64(0) if column < 0 else min(np.int64(x[column]), np.int64(high[column]) - 1)
    return column, step


@kernel
def prove_least(steps, near, own, floor, budget, unit, parts, most_boxes, best, best_state):
    """Is there no generalization of less risk? The boxes that it took to know, or -1 if they were too many.

    steps       Steps
    near        Near                                          all near rows  IN
    own         1 if the row counts itself                    int64  IN
    floor       added to every weight                         int64  IN
    budget      the utility that may be lost                  int64  IN
    unit        of losses in the knapsack's table             int64  IN
    parts       shares of one row                             int64  IN
    most_boxes  that are looked at                            int64  IN
    best        (columns,) the best known; then the best      uint8  IN+OUT
    best_state  (3,) rows covered, weight, utility lost       int64  IN+OUT
    """
    n, n_columns = near.vector.shape
    depth = np.int64(2)
    for a in range(n_columns):
        depth += steps.n[a]
    share = np.empty((n, n_columns), np.int64)
    _fill_shares(steps, near, parts, share)
    low, high = np.zeros((depth, n_columns), np.uint8), np.zeros((depth, n_columns), np.uint8)
    start, end = np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    room = np.empty((depth + 1) * n, np.int32)
    for j in range(n):
        room[j] = j
    for a in range(n_columns):
        high[0, a] = steps.n[a] - 1
    end[0] = n
    reaped = np.empty_like(steps.loss)
    value = np.empty((2, budget // unit + 1), np.int64)
    choice = np.empty((n_columns, budget // unit + 1), np.uint8)
    x, missed = np.empty(n_columns, np.uint8), np.empty(n_columns, np.int64)
    lower, upper = np.empty(n_columns, np.uint8), np.empty(n_columns, np.uint8)
    n_open, n_boxes = 1, np.int64(0)
    while n_open:
        n_open -= 1
        if n_boxes == most_boxes:
            return np.int64(-1)
        n_boxes += 1
        copy_to(low[n_open], lower)
        copy_to(high[n_open], upper)
        if _close(steps, budget, lower, upper) > budget:
            continue
        first, last = start[n_open], end[n_open]
        last += _keep_alive(steps, near, budget, lower, upper, room[first:last], room[last:])
        first = end[n_open]
        alive = room[first:last]
        is_done = False
        for _ in range(FIRST_SHIFTS if n_boxes == 1 else SHIFTS):
            _fill_reaped(near, share, alive, lower, reaped)
            light, heavy = best_state[1], best_state[0] * parts
            least = _least(steps, budget, unit, lower, upper, heavy, light, reaped, value, choice, x)
            if least + heavy * floor - light * parts * own > -parts:
                is_done = True
                break
            is_new = _take_if_better(steps, near, alive, own, floor, budget, x, best, best_state)
            is_shifted = _shift_shares(near, alive, x, share, missed)
            if not is_new and not is_shifted:
                break
        if is_done:
            continue
        column, step = _cut(steps, budget, unit, x, lower, upper, missed)
        if column < 0:
            continue
        for half in range(2):
            copy_to(lower, low[n_open])
            copy_to(upper, high[n_open])
            if half == 0:
                low[n_open, column] = step + 1
            else:
                high[n_open, column] = step
            start[n_open], end[n_open] = first, last
            n_open += 1
    return n_boxes


__all__ = ["prove_least"]
