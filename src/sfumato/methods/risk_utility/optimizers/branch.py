r"""Branch and bound: proves that a generalization has the least risk, or finds one that has. Row by row, ours.

For the threshold form [FEB12, section 2.1], at any number of columns: only rows near enough matter
(:mod:`sfumato.methods.risk_utility.kernels.neighbours`), and a knapsack problem bounds what a box of generalizations
can reach (:mod:`sfumato.methods.risk_utility.kernels.branch`). Problem 1 is hard, so some rows need more boxes than
there is time for.

Cost per row, measured on one core, beside the scan: Adult, 8 columns: some 20 boxes and 1.5 ms, every row proved. 400,000
rows, 30 columns: at a share of .8 nine rows of ten within 20,000 boxes, the median 70 boxes, the mean 100 ms; at .7 one
row of three, the mean 500 ms. A box costs some 10 to 50 microseconds.

"Proved" says that nothing has less risk, to the last bit. Of generalizations of the same risk another may tell more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.methods.risk_utility.kernels.branch import prove_least
from sfumato.methods.risk_utility.optimizers.neighbours import Neighbours, search, steps_of
from sfumato.methods.risk_utility.optimizers.probing import probe_row
from sfumato.methods.risk_utility.problem import Ints, LatticeProblem, Objective, Solution
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random

MOST_BOXES = 2_000
"""Per row."""

MOST_UNITS = 128
"""Of utility, in the table of the knapsack problem."""

MOST_PARTS = 64
"""Shares that one row's count is divided into, where whole numbers allow it."""


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

    def one(neighbours: Neighbours, steps: Any, state: Ints) -> bool:
        probe_row(problem, neighbours, steps, state)
        return prove_row(problem, neighbours, steps, state, most_boxes=most_boxes)

    return search(
        problem, objective, one, which=which, threads=threads, progress=progress, stage="Branch and bound",
    )  # fmt: skip


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

    def one(neighbours: Neighbours, steps: Any, state: Ints) -> bool:
        i = at[neighbours.row]
        steps[:] = steps_of(neighbours, solution.levels[i])
        state[:] = solution.covered[i], solution.weight[i], neighbours.loss_of(steps)
        return bool(solution.is_proved[i]) or prove_row(
            problem, neighbours, steps, state, most_boxes=most_boxes
        )

    return search(
        problem, objective, one, which=solution.which, threads=threads, progress=progress, stage="Branch and bound",
    )  # fmt: skip


def prove_row(
    problem: LatticeProblem, neighbours: Neighbours, steps: Any, state: Ints, *, most_boxes: int
) -> bool:
    """Is this generalization of a row, or the better one that it is replaced by, the one of least risk?"""
    if state[1] == 0:
        return True
    if not neighbours.is_whole:
        return False
    n_rows = int(neighbours.near.n_rows.sum()) + neighbours.own
    greatest = max(n_rows * _greatest_weight(problem, neighbours), 1)
    parts = max(1, min(MOST_PARTS, (1 << 61) // greatest))
    n_boxes = prove_least(
        neighbours.steps, neighbours.near, np.int64(neighbours.own), np.int64(problem.floor),
        np.int64(neighbours.budget), np.int64(neighbours.budget // MOST_UNITS + 1), np.int64(parts),
        np.int64(most_boxes), steps, state,
    )  # fmt: skip
    return int(n_boxes) >= 0


def _greatest_weight(problem: LatticeProblem, neighbours: Neighbours) -> int:
    """Of any generalization."""
    steps = neighbours.steps
    return problem.floor + sum(
        int(weight[:n].max()) for weight, n in zip(steps.weight, steps.n.tolist(), strict=True)
    )


__all__ = ["prove", "prove_row", "solve"]
