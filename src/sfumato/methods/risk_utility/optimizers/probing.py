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

The least risk rises with the utility that is asked for. So for most utility the threshold form is solved again and again,
at half of the way between the utility that is known to be allowed and the one that is known not to be.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from sfumato.methods.risk_utility.kernels.neighbours import Measure
from sfumato.methods.risk_utility.kernels.probe import probe
from sfumato.methods.risk_utility.optimizers.neighbours import Neighbours, need_of, search
from sfumato.methods.risk_utility.problem import (
    Ints,
    Lagrangian,
    LatticeProblem,
    Levels,
    LogRisk,
    MostUtility,
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

HALVINGS = 12
"""Utilities that are tried for a row whose risk is limited. With utilities of whole numbers it takes fewer."""

LeastRisk = Callable[[Ints, Ints], Solution]
"""A generalization of small risk for each of some rows, with at least as much utility as each of them needs."""

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
    which = np.arange(problem.n) if which is None else which

    def search_row(neighbours: Neighbours, steps: Levels) -> tuple[Measure, bool]:
        found = probe_row(neighbours, steps)
        return found, bool(found.weight == 0)

    def least_risk(rows: Ints, need: Ints) -> Solution:
        return search(
            problem, need, search_row, which=rows, threads=threads, progress=progress, stage="Joining rows"
        )

    if isinstance(objective, Threshold):
        return least_risk(which, need_of(problem, objective, which))
    if isinstance(objective, MostUtility):
        return most_utility(problem, objective, which, least_risk)
    found = [least_risk(which, need_of(problem, Threshold(share), which)) for share in SHARES]
    return best_of(problem, objective, found)


def most_utility(
    problem: LatticeProblem, objective: MostUtility, which: Ints, least_risk: LeastRisk
) -> Solution:
    """The most utility of each row with a risk that is allowed, by halves; every row may be suppressed.

    It is proved where of all utilities above it is proved that their least risk is not allowed.
    """
    best = problem.suppressed(which)
    low, high = best.utility.copy(), problem.raw_utility[which]
    is_proved = np.ones(len(which), dtype=np.bool_)
    for _ in range(HALVINGS):
        at = np.flatnonzero(low < high)
        if not len(at):
            break
        need = high[at] - (high[at] - low[at]) // 2
        found = least_risk(which[at], need)
        fits = problem.allows(objective, found.covered, found.weight)
        best.put(at[fits], found.take(fits))
        low[at[fits]] = found.utility[fits]
        high[at[~fits]] = need[~fits] - 1
        is_proved[at[~fits]] &= found.is_proved[~fits]
    best.is_proved[:] = is_proved & (low >= high)
    return best


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


__all__ = ["HALVINGS", "best_of", "most_utility", "probe_row", "solve"]
