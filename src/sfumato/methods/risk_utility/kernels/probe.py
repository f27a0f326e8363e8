"""Row-join probing: a generalization of one row that covers many near rows, by joining them one by one; then exchange.

A generalization is its steps, see :mod:`sfumato.methods.risk_utility.kernels.neighbours`. *Joining* a vector raises each
step to that of the vector, so that its rows are covered. An *exchange* lowers at most one column and raises at most one
other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.risk_utility.kernels.neighbours import (
    Measure,
    copy_to,
    is_better,
    measure,
    transpose_vectors,
)

N_CANDIDATES, FEWEST_CANDIDATES = 64, 8
"""Rows whose joining is tried at a time: those that bring most rows of their own per utility lost."""

MOST_PAIRS = 1 << 16
"""Fewer are tried where there are many rows: about so many pairs of rows are compared for one joining."""

FULL = np.iinfo(np.uint16).max

NO_COLUMN = np.int64(-1)
NO_STEP = np.int64(0)


class Exchange(NamedTuple):
    """A generalization x with at most one column lowered and one other raised, and what that gives."""

    measure: Measure
    lowered: int  # a column, or NO_COLUMN
    lowered_to: int  # its step
    raised: int  # a column, or NO_COLUMN
    raised_to: int  # its step


class ProbeScratch(NamedTuple):
    """Working memory for one row. Vectors are those near it; *above* means: not covered by x in some column."""

    across: NDArray[np.uint8]  # (columns, vectors) the vectors, column by column
    alive: NDArray[np.int64]  # (vectors,) those that can still be joined
    more: NDArray[np.int64]  # (vectors,) what joining loses, in the order of ``alive``
    above: NDArray[
        np.uint64
    ]  # (vectors,) the columns where they are above, as bits, in the order of ``alive``
    single: NDArray[np.int64]  # (vectors,) those that are above in one column only
    n_above: NDArray[np.uint16]  # (vectors,) in how many columns a vector is above
    sum_above: NDArray[np.uint32]  # (vectors,) the sum of these columns' numbers
    covered: NDArray[np.int64]  # (columns, steps) rows covered, by their step
    gain: NDArray[np.int64]  # (columns, steps) rows gained
    gain_after: NDArray[np.int64]  # (columns, steps) rows gained though another column is lowered
    candidates: NDArray[np.int64]  # (candidates,)


@inner
def probe_scratch(problem):
    """Working memory for the near rows of one row."""
    steps, n = problem.steps, len(problem.near.n_rows)
    return ProbeScratch(
        transpose_vectors(problem.near.vector),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.uint64),
        np.empty(n, np.int64),
        np.empty(n, np.uint16),
        np.empty(n, np.uint32),
        np.empty_like(steps.loss),
        np.empty_like(steps.loss),
        np.empty_like(steps.loss),
        np.empty(N_CANDIDATES, np.int64),
    )


@inner
def fill_nearest(near, out):
    """The vectors that lose least, nearest first, the row itself apart: how many there are.

    out  (seeds,)  int64  OUT
    """
    n = 0
    for j in range(len(near.loss)):
        loss = near.loss[j]
        if n == len(out) and loss >= near.loss[out[n - 1]]:
            continue
        if loss == 0 and max(near.vector[j]) == 0:
            continue
        at = min(n, len(out) - 1)
        while at > 0 and near.loss[out[at - 1]] > loss:
            out[at] = out[at - 1]
            at -= 1
        out[at] = j
        n = min(n + 1, len(out))
    return n


# ---- joining --------------------------------------------------------------------------------------------


@inner
def _fill_joinable(problem, x, slack, scratch):
    """List in ``scratch.alive`` the vectors that x may be able to join within the slack: how many.

    Losses are rounded down, so none is missed; ``scratch.n_above`` is used for them.
    """
    steps, loss, out = problem.steps, scratch.n_above, scratch.alive
    unit = problem.budget // FULL + 1  # no vector loses more than the budget
    loss[:] = 0
    for a in range(len(x)):
        column, before = scratch.across[a], np.int64(0)
        for s in range(x[a] + 1, steps.n[a]):
            units = min((steps.loss[a, s] - steps.loss[a, x[a]]) // unit, FULL)  # more for no vector
            more, step = np.uint16(units - before), np.uint8(s)
            before = units
            for j in range(len(loss)):
                loss[j] += more if column[j] >= step else np.uint16(0)
    n, most = 0, np.uint16(slack // unit)
    for j in range(len(loss)):
        if loss[j] <= most:
            out[n] = j
            n += 1
    return n


@inner
def _keep_joinable(problem, x, slack, n_alive, scratch):
    """Keep those of the alive vectors that x does not cover but can join within the slack: how many.

    ``scratch.more`` and ``scratch.above`` are written in their order.
    """
    steps, near, alive = problem.steps, problem.near, scratch.alive
    n = 0
    for f in range(n_alive):
        j = alive[f]
        lost, columns = np.int64(0), np.uint64(0)
        for a in range(len(x)):
            s = near.vector[j, a]
            if s > x[a]:
                lost += steps.loss[a, s] - steps.loss[a, x[a]]
                columns |= np.uint64(1) << np.uint64(a & 63)
                if lost > slack:
                    break
        if columns and lost <= slack:
            alive[n], scratch.more[n], scratch.above[n] = j, lost, columns
            n += 1
    return n


@inner
def _per_loss(n_rows, loss):
    """Rows per utility lost; beyond all measure if none is lost."""
    return n_rows / loss if loss > 0 else n_rows * 1e18


@inner
def _fill_candidates(near, alive, n_alive, more, out):
    """The alive vectors with most rows per utility lost: how many.

    out  (candidates,) places in alive  int64  OUT
    """
    n = 0
    for f in range(n_alive):
        ratio = _per_loss(near.n_rows[alive[f]], more[f])
        if n == len(out) and ratio <= _per_loss(near.n_rows[alive[out[n - 1]]], more[out[n - 1]]):
            continue
        at = min(n, len(out) - 1)
        while at > 0 and _per_loss(near.n_rows[alive[out[at - 1]]], more[out[at - 1]]) < ratio:
            out[at] = out[at - 1]
            at -= 1
        out[at] = f
        n = min(n + 1, len(out))
    return n


@inner
def _count_joined(near, x, alive, n_alive, above, f):
    """The rows that x covers more when it joins the alive vector ``f``."""
    j, columns = alive[f], ~above[f]
    rows = np.int64(0)
    for g in range(n_alive):
        if above[g] & columns:
            continue
        t, a = alive[g], 0
        while a < len(x) and (near.vector[t, a] <= x[a] or near.vector[t, a] <= near.vector[j, a]):
            a += 1
        if a == len(x):
            rows += near.n_rows[t]
    return rows


@inner
def join(problem, scratch, x):
    """Join the vector that brings most rows per utility lost, while the budget allows: the work that it was.

    x  (columns,) steps  uint8  IN+OUT
    """
    near, alive, more = problem.near, scratch.alive, scratch.more
    lost = measure(problem, 0, x).loss
    n_alive = _fill_joinable(problem, x, problem.budget - lost, scratch)
    work = 4 * len(alive)
    while True:
        work += 8 * n_alive
        n_alive = _keep_joinable(problem, x, problem.budget - lost, n_alive, scratch)
        if not n_alive:
            return work
        n = min(N_CANDIDATES, max(FEWEST_CANDIDATES, MOST_PAIRS // n_alive))
        candidates = scratch.candidates[:n]
        n = _fill_candidates(near, alive, n_alive, more, candidates)
        work += n * n_alive
        best, best_ratio = -1, -1.0
        for c in range(n):
            f = candidates[c]
            ratio = _per_loss(_count_joined(near, x, alive, n_alive, scratch.above, f), more[f])
            if ratio > best_ratio:
                best, best_ratio = f, ratio
        lost += more[best]
        for a in range(len(x)):
            x[a] = max(x[a], near.vector[alive[best], a])


# ---- exchange -------------------------------------------------------------------------------------------


@inner
def _fill_above(x, scratch):
    """In how many columns each vector is above x, and the sum of these columns' numbers."""
    scratch.n_above[:] = 0
    scratch.sum_above[:] = 0
    for a in range(len(x)):
        _add_above(a, x[a], scratch)


@inner
def _add_above(a, step, scratch):
    """Add the vectors that are above a step of column ``a``."""
    column, one, number = scratch.across[a], np.uint16(1), np.uint32(a)
    n_above, sum_above = scratch.n_above, scratch.sum_above
    for j in range(len(column)):
        is_above = column[j] > step
        n_above[j] += one if is_above else np.uint16(0)
        sum_above[j] += number if is_above else np.uint32(0)


@inner
def _move(a, step, x, scratch):
    """Column ``a`` of x moves to another step."""
    column, before, one, number = scratch.across[a], x[a], np.uint16(1), np.uint32(a)
    n_above, sum_above = scratch.n_above, scratch.sum_above
    for j in range(len(column)):
        is_above = column[j] > before
        n_above[j] -= one if is_above else np.uint16(0)
        sum_above[j] -= number if is_above else np.uint32(0)
    x[a] = step
    _add_above(a, x[a], scratch)


@inner
def _fill_covered(near, n_above, out):
    """By column and step, the rows of covered vectors at this step; returns all covered rows.

    out  (columns, steps)  int64  OUT
    """
    out[:] = 0
    covered = np.int64(0)
    for j in range(len(n_above)):
        if n_above[j] == 0:
            covered += near.n_rows[j]
            for a in range(out.shape[0]):
                out[a, near.vector[j, a]] += near.n_rows[j]
    return covered


@inner
def _fill_single(n_above, out):
    """The vectors that are above x in one column only: how many."""
    n = 0
    for j in range(len(n_above)):
        if n_above[j] == 1:
            out[n] = j
            n += 1
    return n


@inner
def _fill_gain(near, n_single, column, step, scratch, out):
    """By column and step, the rows of vectors that are above x there only, and at most at ``step`` in ``column``.

    out  (columns, steps)  int64  OUT
    """
    out[:] = 0
    for f in range(n_single):
        j = scratch.single[f]
        if near.vector[j, column] <= step:
            a = scratch.sum_above[j]
            out[a, near.vector[j, a]] += near.n_rows[j]


@inner
def _best_raise(problem, x, start, gain, best):
    """The best exchange that raises one column after ``start``, which raises none; ``best`` if none is better.

    gain  (columns, steps) rows more at this very step  int64  IN
    """
    steps = problem.steps
    for a in range(len(x)):
        if a == start.lowered:
            continue
        covered = start.measure.covered
        for s in range(x[a] + 1, steps.n[a]):
            loss = start.measure.loss + steps.loss[a, s] - steps.loss[a, x[a]]
            if loss > problem.budget:
                break
            covered += gain[a, s]
            weight = start.measure.weight + steps.weight[a, s] - steps.weight[a, x[a]]
            found = Measure(covered, weight, loss)
            if is_better(found, best.measure):
                best = Exchange(found, start.lowered, start.lowered_to, np.int64(a), np.int64(s))
    return best


@inner
def _best_exchange(problem, x, now, n_single, scratch):
    """The exchange of least risk; one that changes nothing if none is better than x.

    now  Measure of x  IN
    """
    steps, near = problem.steps, problem.near
    none = Exchange(now, NO_COLUMN, NO_STEP, NO_COLUMN, NO_STEP)
    _fill_gain(near, n_single, 0, 255, scratch, scratch.gain)
    best = _best_raise(problem, x, none, scratch.gain, none)
    for b in range(len(x)):
        covered = np.int64(problem.own)
        for s in range(x[b]):
            covered += scratch.covered[b, s]
            weight = now.weight + steps.weight[b, s] - steps.weight[b, x[b]]
            loss = now.loss + steps.loss[b, s] - steps.loss[b, x[b]]
            lower = Exchange(Measure(covered, weight, loss), np.int64(b), np.int64(s), NO_COLUMN, NO_STEP)
            if is_better(lower.measure, best.measure):
                best = lower
            at_most = _best_raise(problem, x, lower, scratch.gain, best)
            if not is_better(at_most.measure, best.measure):
                continue  # not even with all rows that column b may have lost
            _fill_gain(near, n_single, b, s, scratch, scratch.gain_after)
            best = _best_raise(problem, x, lower, scratch.gain_after, best)
    return best


@inner
def _climb(problem, scratch, x):
    """Exchange while it helps: the measure of what x becomes, and the work that it was.

    x  (columns,) steps  uint8  IN+OUT
    """
    _fill_above(x, scratch)
    work = 4 * len(scratch.n_above)
    while True:
        covered = problem.own + _fill_covered(problem.near, scratch.n_above, scratch.covered)
        now = measure(problem, covered, x)
        n_single = _fill_single(scratch.n_above, scratch.single)
        work += 2 * len(scratch.n_above) + 8 * n_single + 2_000
        best = _best_exchange(problem, x, now, n_single, scratch)
        if not is_better(best.measure, now):
            return now, work
        if best.raised != NO_COLUMN:
            _move(best.raised, best.raised_to, x, scratch)
        if best.lowered != NO_COLUMN:
            _move(best.lowered, best.lowered_to, x, scratch)


# ---- the search of one row ------------------------------------------------------------------------------


@inner
def _is_seen(seen, n_seen, x):
    """Has this generalization been climbed from before? If not, it is written down."""
    for f in range(n_seen):
        a = 0
        while a < len(x) and seen[f, a] == x[a]:
            a += 1
        if a == len(x):
            return True
    copy_to(x, seen[n_seen])
    return False


@inner
def _comes_first(x, one, other_x, other):
    """Is a generalization better than another? Of equals that of the least steps is, the first column's first."""
    if one.weight * other.covered == other.weight * one.covered and one.loss == other.loss:
        a = 0
        while a < len(x) - 1 and x[a] == other_x[a]:
            a += 1
        return x[a] < other_x[a]
    return is_better(one, other)


@kernel
def probe(problem, n_seeds, most_work, out):
    """Row-join probing from the row itself and its nearest rows, with exchange: the measure of the best.

    problem    RowProblem                             IN
    n_seeds    nearest rows to start from      int64  IN
    most_work  no further seed when it is done int64  IN
    out        (columns,) steps of the best    uint8  OUT
    """
    near, n_columns = problem.near, problem.near.vector.shape[1]
    scratch = probe_scratch(problem)
    seeds, seen = np.empty(n_seeds, np.int64), np.empty((n_seeds + 1, n_columns), np.uint8)
    n_seeds = fill_nearest(near, seeds)
    x = np.zeros(n_columns, np.uint8)
    best = Measure(np.int64(0), np.int64(0), np.int64(0))
    n_seen, work = 0, np.int64(0)
    for seed in range(-1, n_seeds):
        x[:] = 0
        if seed >= 0:
            copy_to(near.vector[seeds[seed]], x)
        work += join(problem, scratch, x)
        if _is_seen(seen, n_seen, x):
            continue
        n_seen += 1
        found, more = _climb(problem, scratch, x)
        work += more
        if n_seen == 1 or _comes_first(x, found, out, best):
            copy_to(x, out)
            best = found
        if work > most_work:
            break
    return best


__all__ = ["fill_nearest", "join", "probe", "probe_scratch"]
