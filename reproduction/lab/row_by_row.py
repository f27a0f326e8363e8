"""The optimum of one row at a time, as ARUBA searches it [FLB08]: every generalization of the row that is useful enough.

Two ways to count what generalizations cover: a look at the whole side table for each of them
(``LatticeProblem.measures``), or prefix sums over the levels at which the rows of the side table join the row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.methods.risk_utility.kernels.lattice import node_at, weight_at
from sfumato.methods.risk_utility.problem import Ints, LatticeProblem, Levels, Solution, Threshold
from sfumato.randomness import Random

MOST_GENERALIZATIONS = 20_000_000
"""Of one row, held in memory at a time."""


def n_generalizations(problem: LatticeProblem) -> float:
    """Of each row, useful or not."""
    return float(np.prod(problem.lattice.n_levels.astype(np.float64)))


def n_useful(problem: LatticeProblem, objective: Threshold, row: int) -> float:
    """Generalizations of a row whose utility reaches the threshold, without looking at each."""
    need = int(problem.need(objective.at_least)[row])
    ways: dict[int, float] = {0: 1.0}
    for a in range(problem.n_columns):
        more: dict[int, float] = {}
        for so_far, n in ways.items():
            for value in problem.lattice.utility[_nodes(problem, row, a)].tolist():
                more[so_far + value] = more.get(so_far + value, 0.0) + n
        ways = more
    return sum(n for utility, n in ways.items() if utility >= need)


def some_useful(problem: LatticeProblem, objective: Threshold, row: int, n: int, random: Random) -> Levels:
    """Useful generalizations of a row, to see what counting one of them costs: drawn, then lowered where need be."""
    need = int(problem.need(objective.at_least)[row])
    drawn = random.integers(0, problem.lattice.n_levels, size=(n, problem.n_columns)).astype(np.uint8)
    for a in random.permutation(problem.n_columns).tolist():
        drawn[problem.utility_of(np.full(n, row), drawn) < need, a] = 0
    return drawn


def by_prefix_sums(problem: LatticeProblem, objective: Threshold, which: Ints) -> Solution:
    """Least risk, then most utility, then least levels, from an array of all generalizations of each row."""
    if n_generalizations(problem) > MOST_GENERALIZATIONS:
        raise ValueError("There are too many generalizations of a row.")
    levels = np.empty((len(which), problem.n_columns), dtype=np.uint8)
    measures = np.empty((len(which), 3), dtype=np.int64)
    _fill_best(
        problem.lattice, problem.rows, problem.factor, np.int64(problem.floor), problem.own, problem.side,
        problem.side_count, problem.need(objective.at_least), which, levels, measures,
    )  # fmt: skip
    covered, weight, utility = measures.T
    return Solution(which, levels, covered, weight, utility, np.ones(len(which), dtype=np.bool_))


@njit(cache=True, nogil=True)
def _fill_best(lattice, rows, factor, floor, own, side, side_count, need, which, out, out_measures):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """For each row: where the side table joins it, prefix sums along each column, and the best of all."""
    n_columns = rows.shape[1]
    stride = np.ones(n_columns + 1, dtype=np.int64)  # the last column moves fastest
    for a in range(n_columns - 1, -1, -1):
        stride[a] = stride[a + 1] * lattice.n_levels[a]
    covered = np.empty(stride[0], dtype=np.int64)
    first = np.zeros(n_columns + 1, dtype=np.int64)
    for a in range(n_columns):
        first[a + 1] = first[a] + lattice.high[lattice.root[a]]
    step = np.empty(first[n_columns], dtype=np.int64)  # of a code of a column: where it joins the row
    now = np.empty(n_columns, dtype=np.uint8)
    weights = np.zeros((n_columns, lattice.n_levels.max()), dtype=np.int64)
    utilities = np.zeros_like(weights)
    for i in range(len(which)):
        row = which[i]
        covered[:] = 0
        for a in range(n_columns):
            step[first[a] : first[a + 1]] = -1
            for level in range(lattice.n_levels[a]):
                node = node_at(lattice, a, rows[row, a], level)
                for code in range(lattice.low[node], lattice.high[node]):
                    if step[first[a] + code] < 0:
                        step[first[a] + code] = level * stride[a + 1]
        for t in range(side.shape[0]):
            at = np.int64(0)
            for a in range(n_columns):
                at += step[first[a] + side[t, a]]
            covered[at] += side_count[t]
        for a in range(n_columns):
            for block in range(0, stride[0], stride[a]):
                for at in range(block + stride[a + 1], block + stride[a]):
                    covered[at] += covered[at - stride[a + 1]]
        for a in range(n_columns):
            for level in range(lattice.n_levels[a]):
                node = node_at(lattice, a, rows[row, a], level)
                weights[a, level] = weight_at(lattice, factor, row, a, node)
                utilities[a, level] = lattice.utility[node]
        now[:] = 0
        weight, utility = floor + weights[:, 0].sum(), utilities[:, 0].sum()
        least, least_covered, most = np.int64(-1), np.int64(1), np.int64(0)
        for at in range(stride[0]):
            if utility >= need[row]:
                n = covered[at] + own[row]
                ahead = least * n - weight * least_covered if least >= 0 else np.int64(1)
                if ahead > 0 or (ahead == 0 and utility > most):
                    least, least_covered, most = weight, n, utility
                    out[i] = now
            # The next generalization, as one counts: the last digit moves first.
            for a in range(n_columns - 1, -1, -1):
                weight -= weights[a, now[a]]
                utility -= utilities[a, now[a]]
                now[a] = now[a] + 1 if now[a] + 1 < lattice.n_levels[a] else 0
                weight += weights[a, now[a]]
                utility += utilities[a, now[a]]
                if now[a]:
                    break
        out_measures[i, 0], out_measures[i, 1], out_measures[i, 2] = least_covered, least, most


def _nodes(problem: LatticeProblem, row: int, a: int) -> Ints:
    """The nodes above a row's value, from itself to the root."""
    lattice = problem.lattice
    first = int(lattice.start[a]) + int(problem.rows[row, a]) * int(lattice.n_levels[a])
    return lattice.node[first : first + int(lattice.n_levels[a])].astype(np.int64)
