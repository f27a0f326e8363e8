r"""Row-join probing: good generalizations of single rows, however many columns there are. Ours.

For the threshold form [FEB12, section 2.1]. A generalization that covers another row is at least as general, in every
column, as the lowest common ancestor with it. So we start from the ancestors with a near row, and join to them the row
not yet covered that brings most rows per utility lost, as long as the utility allows. What utility is left is spent, and
then levels are exchanged: one column lowered, another raised as far as the utility allows, by the exchange that leaves
least risk, until none helps. This is done from the row as it is and from each of its nearest rows; the best counts.

Nothing is promised of the risk (:mod:`branch` proves that of single rows). On Adult with 8 columns it was at most 0.03%
above the least on average; with 30 columns, on rows whose least is proved, 0.04 to 0.7% (shares .8 and .7).

The Lagrangian and log-risk are greatest at some utility u, and there the risk is least among all generalizations of
utility u at least. So for them the threshold form is solved at several shares of utility, and the best counts.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.methods.risk_utility.kernels.neighbours import Measure
from sfumato.methods.risk_utility.kernels.probe import probe
from sfumato.methods.risk_utility.optimizers.neighbours import Neighbours, search
from sfumato.methods.risk_utility.problem import (
    Ints,
    Lagrangian,
    LatticeProblem,
    Levels,
    LogRisk,
    Objective,
    Solution,
    Threshold,
)
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random

N_SEEDS = 20
"""Nearest rows that are started from."""

MOST_WORK = 2_000_000
"""No further seed once so many comparisons have been made: some 5 milliseconds."""

SHARES = tuple(Fraction(i, 10) for i in range(11))
"""Shares of utility that are tried for objectives without one."""


def solve(
    problem: LatticeProblem,
    objective: Objective,
    *,
    which: Ints | None = None,
    random: Random | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Solution:
    """A generalization of each row; proved where it weighs nothing. Nothing in it is random."""
    del random
    if isinstance(objective, Threshold):
        return _solve_threshold(problem, objective, which, threads, progress)
    found = [_solve_threshold(problem, Threshold(share), which, threads, progress) for share in SHARES]
    return best_of(problem, objective, found)


def _solve_threshold(
    problem: LatticeProblem, objective: Threshold, which: Ints | None, threads: int | None, progress: Progress
) -> Solution:
    def search_row(neighbours: Neighbours, steps: Levels) -> tuple[Measure, bool]:
        found = probe_row(neighbours, steps)
        return found, bool(found.weight == 0)

    return search(
        problem, objective, search_row, which=which, threads=threads, progress=progress, stage="Joining rows"
    )


def probe_row(neighbours: Neighbours, out: Levels) -> Measure:
    """Row-join probing of one row: writes the steps of what it finds."""
    found: Measure = probe(neighbours.problem, N_SEEDS, MOST_WORK, out)
    return found


def best_of(problem: LatticeProblem, objective: Lagrangian | LogRisk, solutions: list[Solution]) -> Solution:
    """Of each row the generalization that is worth most; of equals that of the greatest share, the last."""
    values = np.stack([problem.value(objective, solution) for solution in solutions])
    best = len(solutions) - 1 - values[::-1].argmax(axis=0)
    levels, covered, weight, utility = (
        np.stack([getattr(solution, name) for solution in solutions])[best, np.arange(len(best))]
        for name in ("levels", "covered", "weight", "utility")
    )
    nothing = np.zeros(len(best), dtype=np.bool_)
    return Solution(solutions[0].which, levels, covered, weight, utility, nothing)


__all__ = ["best_of", "probe_row", "solve"]
