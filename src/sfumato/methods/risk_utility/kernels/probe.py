"""Row-join probing: a generalization of one row that covers many near rows, by joining them one by one; then exchange.

A generalization is its steps (:mod:`sfumato.methods.risk_utility.kernels.neighbours`), and what is known of it three
whole numbers: the rows that it covers, its weight and the utility that it loses. Risks are compared by
cross-multiplication.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.risk_utility.kernels.neighbours import copy_to, transpose_vectors

N_CANDIDATES, FEWEST_CANDIDATES = 64, 8
"""Rows whose joining is tried at a time: those that bring most rows of their own per utility lost."""

MOST_PAIRS = 1 << 16
"""Fewer are tried where there are many rows: about so many pairs of rows are compared for one joining."""

FULL = np.iinfo(np.uint16).max


class ProbeScratch(NamedTuple):
    """For the work on one row."""

    alive: NDArray[np.int64]  # (vectors,) those that can still be joined
    more: NDArray[np.int64]  # (vectors,) what that loses
    above: NDArray[np.uint64]  # (vectors,) the columns where they are above, as bits
    single: NDArray[np.int64]  # (vectors,) those that are above in one column only
    n_above: NDArray[np.uint16]  # (vectors,) in how many columns a vector is above
    sum_above: NDArray[np.uint32]  # (vectors,) the sum of these columns' numbers
    held: NDArray[np.int64]  # (columns, steps) rows covered, by their step
    gain: NDArray[np.int64]  # (columns, steps) rows gained
    kept: NDArray[np.int64]  # (columns, steps) rows gained though another column is lowered
    candidates: NDArray[np.int64]  # (candidates,)
    best: NDArray[np.int64]  # (7,) covered, weight, loss; column raised, its step; column lowered, its step
    trial: NDArray[np.int64]  # (7,) the same


@inner
def room_for(steps, near):
    """Room for the near rows of one row."""
    n = len(near.n_rows)
    return ProbeScratch(
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
        np.empty(7, np.int64),
        np.empty(7, np.int64),
    )


@inner
def is_better(covered, weight, loss, other_covered, other_weight, other_loss):
    """Less risk, or as much and less utility lost?"""
    left, right = weight * other_covered, other_weight * covered
    return left < right or (left == right and loss < other_loss)


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


@inner
def _fill_joinable(steps, across, x, budget, slack, loss, out):
    """The vectors that x may be able to cover within the slack: how many; all that it is are among them.

    across  (columns, vectors)  uint8   IN
    loss    (vectors,)          uint16  ROOM
    out     (vectors,)          int64   OUT
    """
    unit = budget // FULL + 1  # no vector loses more than the budget
    loss[:] = 0
    for a in range(len(x)):
        column, before = across[a], np.int64(0)
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
def _keep_joinable(steps, near, x, slack, alive, n_alive, more, above):
    """Keep those of the alive vectors that x does not cover but can, within the slack: how many.

    alive  (vectors,)                                        int64   IN+OUT
    more   (vectors,) what joining loses, in order of alive  int64   OUT
    above  (vectors,) the columns where they are above x     uint64  OUT
    """
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
            alive[n], more[n], above[n] = j, lost, columns
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
def _rows_joined(near, x, alive, n_alive, above, f):
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
def join(steps, near, across, budget, room, x):
    """Join the row that brings most rows per utility lost, while the budget allows: the work that it was.

    room  Room               ROOM
    x     (columns,)  uint8  IN+OUT
    """
    alive, more, above = room.alive, room.more, room.above
    lost = np.int64(0)
    for a in range(len(x)):
        lost += steps.loss[a, x[a]]
    n_alive = _fill_joinable(steps, across, x, budget, budget - lost, room.n_above, alive)
    work = 4 * len(alive)
    while True:
        work += 8 * n_alive
        n_alive = _keep_joinable(steps, near, x, budget - lost, alive, n_alive, more, above)
        if not n_alive:
            return work
        n = min(N_CANDIDATES, max(FEWEST_CANDIDATES, MOST_PAIRS // n_alive))
        candidates = room.candidates[:n]
        n = _fill_candidates(near, alive, n_alive, more, candidates)
        work += n * n_alive
        best, best_ratio = -1, -1.0
        for c in range(n):
            f = candidates[c]
            ratio = _per_loss(_rows_joined(near, x, alive, n_alive, above, f), more[f])
            if ratio > best_ratio:
                best, best_ratio = f, ratio
        lost += more[best]
        for a in range(len(x)):
            x[a] = max(x[a], near.vector[alive[best], a])


@inner
def _fill_breaks(across, x, n_above, sum_above):
    """In how many columns each vector is above x, and the sum of these columns' numbers.

    across     (columns, vectors)  uint8   IN
    n_above    (vectors,)          uint16  OUT
    sum_above  (vectors,)          uint32  OUT
    """
    n_above[:] = 0
    sum_above[:] = 0
    for a in range(len(x)):
        _raise_breaks(across[a], a, x[a], n_above, sum_above)


@inner
def _raise_breaks(column, a, step, n_above, sum_above):
    """Add the vectors that are above a step of column ``a``."""
    one, number = np.uint16(1), np.uint32(a)
    for j in range(len(column)):
        is_above = column[j] > step
        n_above[j] += one if is_above else np.uint16(0)
        sum_above[j] += number if is_above else np.uint32(0)


@inner
def _move(across, a, step, x, n_above, sum_above):
    """Column ``a`` of x moves to another step."""
    column, before, one, number = across[a], x[a], np.uint16(1), np.uint32(a)
    for j in range(len(column)):
        is_above = column[j] > before
        n_above[j] -= one if is_above else np.uint16(0)
        sum_above[j] -= number if is_above else np.uint32(0)
    x[a] = step
    _raise_breaks(column, a, x[a], n_above, sum_above)


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
def _best_raise(steps, x, skip, covered, weight, loss, budget, gain, best):
    """The best generalization that raises one column, if it is better than ``best``.

    gain  (columns, steps) rows more at this very step                          int64  IN
    best  covered, weight, loss; column raised and its step; column lowered, its step  int64  IN+OUT
    """
    found = False
    for a in range(len(x)):
        if a == skip:
            continue
        more = np.int64(0)
        for s in range(x[a] + 1, steps.n[a]):
            lost = loss + steps.loss[a, s] - steps.loss[a, x[a]]
            if lost > budget:
                break
            more += gain[a, s]
            heavy = weight + steps.weight[a, s] - steps.weight[a, x[a]]
            if is_better(covered + more, heavy, lost, best[0], best[1], best[2]):
                best[0], best[1], best[2], best[3], best[4] = covered + more, heavy, lost, a, s
                found = True
    return found


@inner
def _fill_gain(near, single, n_single, sum_above, column, step, out):
    """By column and step, the rows of vectors that are above x there only, and at most at ``step`` in ``column``.

    out  (columns, steps)  int64  OUT
    """
    out[:] = 0
    for f in range(n_single):
        j = single[f]
        if near.vector[j, column] <= step:
            a = sum_above[j]
            out[a, near.vector[j, a]] += near.n_rows[j]


@inner
def _best_exchange(steps, near, x, state, own, budget, n_single, room):
    """The best generalization that lowers at most one column and raises at most one other: is there a better one?

    state      (3,) covered, weight, loss of x  int64  IN
    room.best  as above                         int64  OUT
    """
    best, trial = room.best, room.trial
    for i in range(len(best)):
        best[i] = state[i] if i < len(state) else -1
    _fill_gain(near, room.single, n_single, room.sum_above, 0, 255, room.gain)
    found = _best_raise(steps, x, -1, state[0], state[1], state[2], budget, room.gain, best)
    for b in range(len(x)):
        kept = own
        for s in range(x[b]):
            kept += room.held[b, s]
            weight = state[1] + steps.weight[b, s] - steps.weight[b, x[b]]
            loss = state[2] + steps.loss[b, s] - steps.loss[b, x[b]]
            if is_better(kept, weight, loss, best[0], best[1], best[2]):
                best[0], best[1], best[2], best[3], best[4], best[5], best[6] = (
                    kept,
                    weight,
                    loss,
                    -1,
                    -1,
                    b,
                    s,
                )
                found = True
            copy_to(best, trial)
            if not _best_raise(steps, x, b, kept, weight, loss, budget, room.gain, trial):
                continue  # not even with all rows that column b may have lost
            _fill_gain(near, room.single, n_single, room.sum_above, b, s, room.kept)
            if _best_raise(steps, x, b, kept, weight, loss, budget, room.kept, best):
                best[5], best[6] = b, s
                found = True
    return found


@inner
def measure(steps, floor, x):
    """Weight and loss of a generalization."""
    weight, loss = floor, np.int64(0)
    for a in range(len(x)):
        weight += steps.weight[a, x[a]]
        loss += steps.loss[a, x[a]]
    return weight, loss


@inner
def _climb(steps, near, across, own, floor, budget, room, state, x):
    """Exchange while it helps: the work that it was.

    room   Room                                ROOM
    state  (3,) covered, weight, loss  int64   OUT
    x      (columns,)                  uint8   IN+OUT
    """
    n_above, sum_above, best = room.n_above, room.sum_above, room.best
    _fill_breaks(across, x, n_above, sum_above)
    state[1], state[2] = measure(steps, floor, x)
    work = 4 * len(n_above)
    while True:
        state[0] = own + _fill_covered(near, n_above, room.held)
        n_single = _fill_single(n_above, room.single)
        work += 2 * len(n_above) + 8 * n_single + 2_000
        if not _best_exchange(steps, near, x, state, own, budget, n_single, room):
            return work
        for place in (3, 5):
            if best[place] >= 0:
                _move(across, best[place], best[place + 1], x, n_above, sum_above)
        state[1], state[2] = best[1], best[2]


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
def _take_better(x, state, out, out_state):
    """The better of two generalizations; of equals the one of the least steps, the first column's first."""
    is_equal = state[1] * out_state[0] == out_state[1] * state[0] and state[2] == out_state[2]
    if is_equal:
        a = 0
        while a < len(x) - 1 and x[a] == out[a]:
            a += 1
        if x[a] >= out[a]:
            return
    elif not is_better(state[0], state[1], state[2], out_state[0], out_state[1], out_state[2]):
        return
    copy_to(x, out)
    copy_to(state, out_state)


@kernel
def probe(steps, near, own, floor, budget, n_seeds, most_work, out, out_state):
    """Row-join probing from the row itself and its nearest rows, with exchange.

    steps      Steps
    near       Near
    own        1 if the row counts itself                   int64  IN
    floor      added to every weight                        int64  IN
    budget     the utility that may be lost                 int64  IN
    n_seeds    nearest rows to start from                   int64  IN
    most_work  no further seed when this is spent           int64  IN
    out        (columns,) steps                             uint8  OUT
    out_state  (3,) rows covered, weight, utility lost      int64  OUT
    """
    n_columns = near.vector.shape[1]
    across = transpose_vectors(near.vector)
    room = room_for(steps, near)
    state = np.empty(3, np.int64)
    seeds, seen = np.empty(n_seeds, np.int64), np.empty((n_seeds + 1, n_columns), np.uint8)
    n_seeds = fill_nearest(near, seeds)
    x = np.zeros(n_columns, np.uint8)
    n_seen, work = 0, np.int64(0)
    for seed in range(-1, n_seeds):
        x[:] = 0
        if seed >= 0:
            copy_to(near.vector[seeds[seed]], x)
        work += join(steps, near, across, budget, room, x)
        if _is_seen(seen, n_seen, x):
            continue
        n_seen += 1
        work += _climb(steps, near, across, own, floor, budget, room, state, x)
        if n_seen == 1:
            copy_to(x, out)
            copy_to(state, out_state)
        else:
            _take_better(x, state, out, out_state)
        if work > most_work:
            break
    return work


__all__ = ["fill_nearest", "is_better", "join", "measure", "probe", "room_for"]
