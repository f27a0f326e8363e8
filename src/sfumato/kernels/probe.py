"""Row-join probing: a generalization of one row that covers many near rows, by joining them one by one; then exchange.

A generalization is its steps (:mod:`sfumato.kernels.near`), and what is known of it three whole numbers: the rows that
it covers, its weight and the utility that it loses. Risks are compared by cross-multiplication.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel

N_CANDIDATES = 64
"""Rows whose joining is tried at a time: those that bring most rows of their own per utility lost."""


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
        if not np.any(near.vector[j]):
            continue
        at = min(n, len(out) - 1)
        while at > 0 and near.loss[out[at - 1]] > loss:
            out[at] = out[at - 1]
            at -= 1
        out[at] = j
        n = min(n + 1, len(out))
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
def _fill_candidates(near, alive, n_alive, more, out):
    """The alive vectors with most rows per utility lost: how many.

    out  (candidates,) places in alive  int64  OUT
    """
    n = 0
    for f in range(n_alive):
        ratio = near.n_rows[alive[f]] / more[f]
        if n == len(out) and ratio <= near.n_rows[alive[out[n - 1]]] / more[out[n - 1]]:
            continue
        at = min(n, len(out) - 1)
        while at > 0 and near.n_rows[alive[out[at - 1]]] / more[out[at - 1]] < ratio:
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
def join(steps, near, budget, lost, alive, more, above, candidates, x):
    """Join the row that brings most rows per utility lost, while the budget allows: the work that it was.

    x  (columns,)  uint8  IN+OUT
    """
    n_alive, work = len(near.n_rows), 0
    for j in range(n_alive):
        alive[j] = j
    while True:
        work += 8 * n_alive
        n_alive = _keep_joinable(steps, near, x, budget - lost, alive, n_alive, more, above)
        if not n_alive:
            return work
        n = _fill_candidates(near, alive, n_alive, more, candidates)
        work += n * n_alive
        best, best_ratio = -1, -1.0
        for c in range(n):
            f = candidates[c]
            ratio = _rows_joined(near, x, alive, n_alive, above, f) / more[f]
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
        _move_breaks(across, a, np.int64(255), np.int64(x[a]), n_above, sum_above)


@inner
def _move_breaks(across, a, before, after, n_above, sum_above):
    """The same, when column ``a`` moves from one step to another; step 255 is above all."""
    column = across[a]
    low, high = np.uint8(min(before, after)), np.uint8(max(before, after))
    if after < before:
        for j in range(len(column)):
            crosses = low < column[j] <= high
            n_above[j] += np.uint16(crosses)
            sum_above[j] += np.uint32(a if crosses else 0)
    else:
        for j in range(len(column)):
            crosses = low < column[j] <= high
            n_above[j] -= np.uint16(crosses)
            sum_above[j] -= np.uint32(a if crosses else 0)


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
def _best_exchange(steps, near, x, state, own, budget, single, n_single, sum_above, held, gain, best):
    """The best generalization that lowers at most one column and raises at most one other: is there a better one?

    state  covered, weight, loss of x  int64  IN
    best   as above                    int64  OUT
    """
    best[:3] = state[:3]
    best[3:] = -1
    gain[:] = 0
    for f in range(n_single):
        j = single[f]
        a = sum_above[j]
        gain[a, near.vector[j, a]] += near.n_rows[j]
    found = _best_raise(steps, x, -1, state[0], state[1], state[2], budget, gain, best)
    for b in range(len(x)):
        kept = own
        for s in range(x[b]):
            kept += held[b, s]
            weight = state[1] + steps.weight[b, s] - steps.weight[b, x[b]]
            loss = state[2] + steps.loss[b, s] - steps.loss[b, x[b]]
            gain[:] = 0
            for f in range(n_single):
                j = single[f]
                a = sum_above[j]
                if near.vector[j, b] <= s:
                    gain[a, near.vector[j, a]] += near.n_rows[j]
            is_lower = is_better(kept, weight, loss, best[0], best[1], best[2])
            if is_lower:
                best[0], best[1], best[2], best[3], best[4] = kept, weight, loss, -1, -1
            is_pair = _best_raise(steps, x, b, kept, weight, loss, budget, gain, best)
            if is_lower or is_pair:
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
def _climb(steps, near, across, own, floor, budget, n_above, sum_above, single, held, gain, best, state, x):
    """Exchange while it helps: the work that it was.

    state  (3,) covered, weight, loss  int64  OUT
    x      (columns,)                  uint8  IN+OUT
    """
    _fill_breaks(across, x, n_above, sum_above)
    state[1], state[2] = measure(steps, floor, x)
    work = len(x) * len(n_above)
    while True:
        state[0] = own + _fill_covered(near, n_above, held)
        n_single = _fill_single(n_above, single)
        n_steps = np.int64(0)
        for a in range(len(x)):
            n_steps += x[a]
        work += 4 * len(n_above) + (1 + n_steps) * (n_single + 2 * len(x))
        if not _best_exchange(
            steps, near, x, state, own, budget, single, n_single, sum_above, held, gain, best
        ):
            return work
        for place in (3, 5):
            if best[place] >= 0:
                a, s = best[place], best[place + 1]
                _move_breaks(across, a, np.int64(x[a]), s, n_above, sum_above)
                x[a] = s
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
    seen[n_seen] = x
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
    out[:] = x
    out_state[:] = state


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
    n, n_columns = near.vector.shape
    across = near.vector.T.copy()
    alive, more, single = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    above, n_above, sum_above = np.empty(n, np.uint64), np.empty(n, np.uint16), np.empty(n, np.uint32)
    held, gain = np.empty_like(steps.loss), np.empty_like(steps.loss)
    candidates, best, state = np.empty(N_CANDIDATES, np.int64), np.empty(7, np.int64), np.empty(3, np.int64)
    seeds, seen = np.empty(n_seeds, np.int64), np.empty((n_seeds + 1, n_columns), np.uint8)
    n_seeds = fill_nearest(near, seeds)
    x = np.zeros(n_columns, np.uint8)
    n_seen, work = 0, np.int64(0)
    for seed in range(-1, n_seeds):
        x[:] = 0
        if seed >= 0:
            x[:] = near.vector[seeds[seed]]
        work += join(
            steps, near, budget, near.loss[seeds[seed]] if seed >= 0 else 0, alive, more, above, candidates, x
        )
        if _is_seen(seen, n_seen, x):
            continue
        n_seen += 1
        work += _climb(
            steps, near, across, own, floor, budget, n_above, sum_above, single, held, gain, best, state, x
        )
        if n_seen == 1:
            out[:] = x
            out_state[:] = state
        else:
            _take_better(x, state, out, out_state)
        if work > most_work:
            break
    return work


__all__ = ["N_CANDIDATES", "fill_nearest", "is_better", "join", "measure", "probe"]
