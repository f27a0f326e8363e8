r"""Branch and bound for the least risk of one row: a proof that no generalization within the budget has less.

A *box* of generalizations has least and greatest steps. Each near vector j divides its count among the columns, as
shares :math:`\lambda_{ja}` that sum to it; x *collects* the shares of those columns where it is general enough for j.
So x collects at least the rows that it covers, and what it collects is a sum over columns, as its weight is and the
utility that it loses. With the least risk known, w / c, a better x has

.. math:: c \Phi(x) - w |\rho(x)| < 0

and the least value of the left side over the box, with what x collects for :math:`|\rho(x)|`, is a knapsack problem that
a table solves. If it is not negative the box is done; otherwise its solution collects shares of rows that it does not
cover: these are moved to the columns that it misses, which raises the bound, or the box is divided there. Whole numbers
throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.risk_utility.kernels.neighbours import copy_to, covers, is_better, measure

SHIFTS = 4
"""How often shares are moved before a box is divided."""

FIRST_SHIFTS = 60
"""The same of the whole lattice: all boxes begin with its shares."""


class Box(NamedTuple):
    """Least and greatest steps of generalizations."""

    low: NDArray[np.uint8]  # (columns,)
    high: NDArray[np.uint8]  # (columns,)


class Knapsack(NamedTuple):
    """The table of the knapsack problem, and what columns collect."""

    unit: int  # of losses
    collected: NDArray[np.int64]  # (columns, steps)
    value: NDArray[np.int64]  # (2, units of loss) scratch
    choice: NDArray[np.uint8]  # (columns, units of loss) scratch


@inner
def _fill_shares(problem, parts, out):
    """All of a vector's count to the column whose loss is greatest.

    out  (vectors, columns)  int64  OUT
    """
    loss, near = problem.steps.loss, problem.near
    out[:] = 0
    for j in range(len(near.n_rows)):
        best = 0
        for a in range(out.shape[1]):
            if loss[a, near.vector[j, a]] > loss[best, near.vector[j, best]]:
                best = a
        out[j, best] = parts * near.n_rows[j]


@inner
def _shrink(problem, box):
    """Lower the box's greatest steps to what the budget allows. Returns the loss of its least steps.

    The box is empty if that is above the budget.
    """
    low, high, loss_of = box.low, box.high, problem.steps.loss
    loss = np.int64(0)
    for a in range(len(low)):
        loss += loss_of[a, low[a]]
    for a in range(len(low)):
        while high[a] > low[a] and loss + loss_of[a, high[a]] - loss_of[a, low[a]] > problem.budget:
            high[a] -= 1
    return loss


@inner
def _keep_alive(problem, box, before, out):
    """The vectors that some generalization of the box covers: how many.

    before  (vectors of the box that this one is a part of,)  int32  IN
    out     (vectors,)                                        int32  OUT
    """
    low, high, vector = box.low, box.high, problem.near.vector
    n = 0
    for f in range(len(before)):
        j = before[f]
        lost, a = np.int64(0), 0
        while a < len(low) and vector[j, a] <= high[a] and lost <= problem.budget:
            lost += problem.steps.loss[a, max(vector[j, a], low[a])]
            a += 1
        if a == len(low) and lost <= problem.budget:
            out[n] = j
            n += 1
    return n


@inner
def _fill_collected(near, share, alive, low, out):
    """What each column collects at each step from the box's least on.

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
def _fill_least(problem, box, knapsack, heavy, light, out):
    """The least value of ``heavy`` times weight minus ``light`` times collected, over the box and within the budget.

    out  (columns,) the steps where it is  uint8  OUT
    """
    steps, low, high = problem.steps, box.low, box.high
    unit, choice = knapsack.unit, knapsack.choice
    least_loss = np.int64(0)
    for a in range(len(low)):
        least_loss += steps.loss[a, low[a]]
    n_units = (problem.budget - least_loss) // unit + 1
    now, then = knapsack.value[0], knapsack.value[1]
    now[:n_units] = 0
    for a in range(len(low)):
        now, then = then, now
        for s in range(low[a], high[a] + 1):
            more = (steps.loss[a, s] - steps.loss[a, low[a]]) // unit
            worth = heavy * steps.weight[a, s] - light * knapsack.collected[a, s]
            for q in range(more, n_units):
                found = then[q - more] + worth
                if s == low[a] or found < now[q]:
                    now[q] = found
                    choice[a, q] = s
    q = n_units - 1
    least = now[q]
    for back in range(len(low)):
        a = len(low) - 1 - back
        out[a] = choice[a, q]
        q -= (steps.loss[a, out[a]] - steps.loss[a, low[a]]) // unit
    return least


@inner
def _shift_shares(near, alive, x, share, missed):
    """Move half of what x collects of rows that it does not cover to the columns where it misses them: is there any?

    share   (vectors, columns)                              int64  IN+OUT
    missed  (columns,) what was collected and missed there  int64  OUT
    """
    missed[:] = 0
    is_shifted = False
    for f in range(len(alive)):
        j, n_missed, collected = alive[f], 0, np.int64(0)
        for a in range(len(x)):
            if near.vector[j, a] > x[a]:
                n_missed += 1
            else:
                collected += share[j, a]
        if not n_missed or not collected:
            continue
        moved = np.int64(0)
        for a in range(len(x)):
            if near.vector[j, a] <= x[a]:
                part = (share[j, a] + 1) // 2
                share[j, a] -= part
                moved += part
        each, remainder = moved // n_missed, moved % n_missed
        for a in range(len(x)):
            if near.vector[j, a] > x[a]:
                share[j, a] += each + (1 if remainder > 0 else 0)
                remainder -= 1
                missed[a] += collected
        is_shifted = True
    return is_shifted


@inner
def _measure_alive(problem, alive, x):
    """The measure of a generalization of a box, whose alive vectors are all that it can cover."""
    covered = np.int64(problem.own)
    for f in range(len(alive)):
        if covers(x, problem.near.vector, alive[f]):
            covered += problem.near.n_rows[alive[f]]
    return measure(problem, covered, x)


@inner
def _choose_division(problem, box, unit, x, missed):
    """Where the box is divided so that x is in neither half as it was: a column, and the last step of its lower half.

    It is the column where x missed most; or, if x loses more than the budget, for losses are rounded down, the one where
    most was rounded. The column is -1 if nothing is left to divide.
    """
    low, high, loss_of = box.low, box.high, problem.steps.loss
    loss, column, most = np.int64(0), -1, np.int64(-1)
    for a in range(len(x)):
        loss += loss_of[a, x[a]]
        rounded = (loss_of[a, x[a]] - loss_of[a, low[a]]) % unit
        if x[a] > low[a] and rounded > most:
            column, most = a, rounded
    if loss > problem.budget and column >= 0:
        return column, np.int64(x[column]) - 1
    column = -1
    for a in range(len(x)):
        if low[a] < high[a] and (column < 0 or missed[a] > missed[column]):
            column = a
    step = np.int64(0) if column < 0 else min(np.int64(x[column]), np.int64(high[column]) - 1)
    return column, step


@kernel
def prove_least(problem, known, unit, parts, most_boxes, best):
    """Is there no generalization of less risk? The measure of the best, and the boxes that it took to know.

    The boxes are -1 if they would be more than are allowed; then nothing is proved.

    problem     RowProblem, with all near rows                IN
    known       Measure of the best known                     IN
    unit        of losses in the knapsack's table      int64  IN
    parts       shares of one row                      int64  IN
    most_boxes  that are looked at                     int64  IN
    best        (columns,) the best known; then the best  uint8  IN+OUT
    """
    near = problem.near
    n, n_columns = near.vector.shape
    depth = np.int64(2)
    for a in range(n_columns):
        depth += problem.steps.n[a]
    share = np.empty((n, n_columns), np.int64)
    _fill_shares(problem, parts, share)
    low, high = np.zeros((depth, n_columns), np.uint8), np.zeros((depth, n_columns), np.uint8)
    start, end = np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    vectors = np.empty((depth + 1) * n, np.int32)  # of open boxes: vectors[start : end] of each
    for j in range(n):
        vectors[j] = j
    for a in range(n_columns):
        high[0, a] = problem.steps.n[a] - 1
    end[0] = n
    n_units = problem.budget // unit + 1
    knapsack = Knapsack(
        unit,
        np.empty_like(problem.steps.loss),
        np.empty((2, n_units), np.int64),
        np.empty((n_columns, n_units), np.uint8),
    )
    x, missed = np.empty(n_columns, np.uint8), np.empty(n_columns, np.int64)
    box = Box(np.empty(n_columns, np.uint8), np.empty(n_columns, np.uint8))
    n_open, n_boxes = 1, np.int64(0)
    while n_open:
        n_open -= 1
        if n_boxes == most_boxes:
            return known, np.int64(-1)
        n_boxes += 1
        copy_to(low[n_open], box.low)
        copy_to(high[n_open], box.high)
        if _shrink(problem, box) > problem.budget:
            continue
        first, last = start[n_open], end[n_open]
        last += _keep_alive(problem, box, vectors[first:last], vectors[last:])
        first = end[n_open]
        alive = vectors[first:last]
        is_done = False
        for _ in range(FIRST_SHIFTS if n_boxes == 1 else SHIFTS):
            _fill_collected(near, share, alive, box.low, knapsack.collected)
            light, heavy = known.weight, known.covered * parts
            least = _fill_least(problem, box, knapsack, heavy, light, x)
            if least + heavy * problem.floor - light * parts * problem.own > -parts:
                is_done = True
                break
            found = _measure_alive(problem, alive, x)
            is_new = found.loss <= problem.budget and is_better(found, known)
            if is_new:
                copy_to(x, best)
                known = found
            is_shifted = _shift_shares(near, alive, x, share, missed)
            if not is_new and not is_shifted:
                break
        if is_done:
            continue
        column, step = _choose_division(problem, box, unit, x, missed)
        if column < 0:
            continue
        for half in range(2):
            copy_to(box.low, low[n_open])
            copy_to(box.high, high[n_open])
            if half == 0:
                low[n_open, column] = step + 1
            else:
                high[n_open, column] = step
            start[n_open], end[n_open] = first, last
            n_open += 1
    return known, n_boxes


__all__ = ["prove_least"]
