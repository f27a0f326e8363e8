r"""Branch and bound: proves that a generalization has the least risk, or finds one that has. Row by row, ours.

For the threshold form [FEB12, section 2.1], at any number of columns: only rows near enough matter
(:mod:`sfumato.methods.risk_utility.kernels.neighbours`), and a knapsack problem bounds what a box of generalizations
can reach (:mod:`sfumato.methods.risk_utility.kernels.branch`). Problem 1 is hard, so some rows need more boxes than
there is time for.

Cost per row, measured on one core, beside the scan: Adult, 8 columns: some 20 boxes and 1.5 ms, every row proved. 400,000
rows, 30 columns: at a share of .8 nine rows of ten within 20,000 boxes, the median 70 boxes, the mean 100 ms; at .7 one
row of three, the mean 500 ms. A box costs some 10 to 50 microseconds.

For most utility with a limited risk the same is done by halves (:func:`probing.most_utility`), ``most_boxes`` each time.

"Proved" says that nothing has less risk, to the last bit. Of generalizations of the same risk another may tell more.
"""

from __future__ import annotations

import numpy as np

from sfumato.methods.risk_utility.kernels.branch import prove_least
from sfumato.methods.risk_utility.kernels.neighbours import Measure, RowProblem
from sfumato.methods.risk_utility.optimizers.neighbours import Neighbours, need_of, search
from sfumato.methods.risk_utility.optimizers.probing import most_utility, probe_row
from sfumato.methods.risk_utility.problem import (
    Ints,
    LatticeProblem,
    Levels,
    MostUtility,
    Objective,
    Solution,
)
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random

MOST_BOXES = 2_000
"""Per row."""

MOST_UNITS = 128
"""Of utility, in the table of the knapsack problem."""

MOST_PARTS = 64
"""Shares that one row's count is divided into, where whole numbers allow it."""

STAGE = "Branch and bound"


def solve(
    problem: LatticeProblem,
    objective: Objective,
    *,
    which: Ints | None = None,
    random: Random | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
    most_boxes: int = MOST_BOXES,
) -> Solution:
    """Row-join probing, then branch and bound. Nothing in it is random."""
    del random
    which = np.arange(problem.n) if which is None else which

    def search_row(neighbours: Neighbours, steps: Levels) -> tuple[Measure, bool]:
        return prove_row(neighbours, probe_row(neighbours, steps), steps, most_boxes=most_boxes)

    def least_risk(rows: Ints, need: Ints) -> Solution:
        return search(problem, need, search_row, which=rows, threads=threads, progress=progress, stage=STAGE)

    if isinstance(objective, MostUtility):
        return most_utility(problem, objective, which, least_risk)
    return least_risk(which, need_of(problem, objective, which))


def prove(
    problem: LatticeProblem,
    objective: Objective,
    solution: Solution,
    *,
    threads: int | None = None,
    progress: Progress = no_progress,
    most_boxes: int = MOST_BOXES,
) -> Solution:
    """The same generalizations or better ones; ``is_proved`` where nothing has less risk."""
    at = {int(row): i for i, row in enumerate(solution.which)}

    def search_row(neighbours: Neighbours, steps: Levels) -> tuple[Measure, bool]:
        i = at[neighbours.row]
        steps[:] = neighbours.steps_of(solution.levels[i])
        loss = int(problem.raw_utility[neighbours.row] - solution.utility[i])
        known = Measure(int(solution.covered[i]), int(solution.weight[i]), loss)
        if solution.is_proved[i]:
            return known, True
        return prove_row(neighbours, known, steps, most_boxes=most_boxes)

    need = need_of(problem, objective, solution.which)
    return search(
        problem, need, search_row, which=solution.which, threads=threads, progress=progress, stage=STAGE
    )


def prove_row(
    neighbours: Neighbours, known: Measure, steps: Levels, *, most_boxes: int
) -> tuple[Measure, bool]:
    """Is this generalization of a row, or the better one that it is replaced by, the one of least risk?

    ``steps`` and ``known`` are the generalization and its measure; a better one is written into ``steps``.
    """
    row = neighbours.problem
    if known.weight == 0:
        return known, True
    if not neighbours.is_whole:
        return known, False
    n_rows = int(row.near.n_rows.sum()) + row.own
    greatest = max(n_rows * _greatest_weight(row), 1)
    parts = max(1, min(MOST_PARTS, (1 << 61) // greatest))
    unit = row.budget // MOST_UNITS + 1
    found, n_boxes = prove_least(row, known, unit, parts, most_boxes, steps)
    return found, bool(n_boxes >= 0)


def _greatest_weight(row: RowProblem) -> int:
    """Of any generalization."""
    steps = row.steps
    return row.floor + sum(
        int(weight[:n].max()) for weight, n in zip(steps.weight, steps.n.tolist(), strict=True)
    )


__all__ = ["prove", "prove_row", "solve"]
