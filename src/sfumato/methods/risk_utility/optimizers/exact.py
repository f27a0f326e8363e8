r"""The exact optimum for all rows by one cube of all generalizations (:mod:`sfumato.methods.risk_utility.kernels.cube`).

Every objective, with and without personal weights. What it costs is the number of tuples that it makes
(:func:`estimate_tuples`), 30 nanoseconds each, and 60 where memory is slow because there are hundreds of thousands of
distinct rows: with 1e9 of them half a minute or a minute on one core.

Memory: each thread holds 28 bytes for each tuple (distinct row of both tables) and 56 for each seeker (at most one for
each row), for each column, whatever the height of the hierarchies; with personal weights all threads share 8 bytes more
for each row and level of a column. Fewer threads work where memory would not hold them all. The answer does not depend
on their number: the work is shared out by the levels of the first columns, always in the same way, and put together in
the same order.

Ties: Threshold and MostUtility compare risks in whole numbers. Objectives in floating point are tied where they differ
by less than 1e-12 of the larger. Then most utility wins (of MostUtility least risk), then the least levels, the first
column's first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.machine import free_memory, n_cores
from sfumato.methods.risk_utility.kernels.cube import Best, CubeScratch, count_at, keep_better, search
from sfumato.methods.risk_utility.optimizers.tuples import Tuples, first_line, tuples_of
from sfumato.methods.risk_utility.problem import (
    Ints,
    Lagrangian,
    LatticeProblem,
    LogRisk,
    Objective,
    Solution,
)
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random

STAGE = "generalizing"

LEAST_TASKS = 16

COUNTED = 5_000_000
"""Rows that are looked at to estimate the number of tuples, about: at 50 to 200 level vectors."""

BINS = 1024
"""Bins of the utility that a row can spare, when its level vectors are counted."""


def solve(
    problem: LatticeProblem,
    objective: Objective,
    *,
    which: Ints | None = None,
    random: Random | None = None,  # noqa: ARG001 - every optimizer takes it; this one has nothing to draw
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Solution:
    """The best generalization of each row, proved."""
    which = np.arange(problem.n) if which is None else which
    if not len(which):
        return problem.solution(np.zeros((0, problem.n_columns), dtype=np.uint8), which=which)
    tuples = tuples_of(problem, objective, which)
    if tuples is None:
        raise InternalError("The columns have too many values for one cube of all generalizations.")
    if isinstance(objective, Lagrangian | LogRisk) and problem.weight_bounds()[0] <= 0:
        raise InternalError("An objective that divides by weights needs a floor.")
    best = _best(tuples, n_cores() if threads is None else threads, progress)
    covered, weight, utility, levels = (
        part[0][tuples.seeker].astype(np.int64)
        for part in (best.covered, best.weight, best.utility, best.levels)
    )
    proved = np.ones(len(which), dtype=np.bool_)
    return Solution(which, tuples.levels(levels), covered, weight, utility, proved)


def _best(tuples: Tuples, threads: int, progress: Progress) -> Best:
    """The best of all tasks. They are compared in their order, whichever thread is first."""
    tasks = list(_tasks(tuples.cube.n_levels))
    threads = max(1, min(threads, len(tasks), free_memory() // 2 // tuples.n_bytes()))
    idle: SimpleQueue[tuple[CubeScratch, Best]] = SimpleQueue()
    for _ in range(threads):
        idle.put((tuples.scratch(), tuples.best()))

    def work(fixed: Ints) -> Best:
        scratch, best = idle.get()
        search(tuples.cube, tuples.aim, tuples.seeking, tuples.mode, scratch, best, fixed)
        found = first_line(best)
        idle.put((scratch, best))
        return found

    progress(STAGE, 0, len(tasks))
    with ThreadPoolExecutor(max_workers=threads) as pool:
        found = pool.map(work, tasks)
        out = next(found)
        for done, other in enumerate(found, start=1):
            progress(STAGE, done, len(tasks))
            keep_better(tuples.aim, out, other)
    progress(STAGE, len(tasks), len(tasks))
    return out


def _tasks(n_levels: Ints) -> Iterator[Ints]:
    """Levels of the first columns, in lexicographic order: of so many columns that there are enough tasks."""
    n = np.cumprod(n_levels)
    n_fixed = min(int(np.searchsorted(n, LEAST_TASKS)) + 1, len(n_levels))
    for fixed in itertools.product(*map(range, n_levels[:n_fixed].tolist())):
        yield np.array(fixed, dtype=np.int64)


# ---- what it would cost ---------------------------------------------------------------------------------


def estimate_tuples(problem: LatticeProblem, objective: Objective) -> float:
    r"""About how many tuples (and seekers) the cube of all rows would make; infinite where keys would not fit 63 bits.

    .. math:: \frac{S}{m} \sum_{(s, x)} V_s \frac{n(x)}{f(x)}

    m pairs are looked at: seekers s, evenly spread over all S of them, each with one of the V_s level vectors x at which
    it has enough utility, evenly spread over their lexicographic order. All rows are counted there: n(x) tuples are made,
    f(x) seekers have enough utility. So each level vector counts once, whichever seekers it serves.
    """
    if not problem.n:
        return 0.0
    tuples = tuples_of(problem, objective, np.arange(problem.n))
    if tuples is None:
        return math.inf
    n_seekers, total = len(tuples.at), 0.0
    scratch, counted = tuples.scratch(lines=2), np.zeros(2, dtype=np.int64)
    m = min(max(COUNTED // len(tuples.key), 50), 200)
    for seeker, share in zip(_spread(m, math.sqrt(2)), _spread(m, math.sqrt(5)), strict=True):
        lost, budget = _losses(tuples, int(seeker * n_seekers))
        n_choices = _count_choices(lost, budget)
        vector = _vector_at(share * n_choices[0][budget], lost, n_choices, budget)
        count_at(tuples.cube, tuples.seeking, tuples.mode, scratch, vector, counted)
        total += n_choices[0][budget] * counted[0] / max(int(counted[1]), 1)
    return n_seekers * float(total) / m


def _spread(m: int, by: float) -> Iterator[float]:
    """Numbers from 0 to 1, evenly spread; those of different steps ``by`` do not repeat together."""
    return ((0.5 + by * j) % 1 for j in range(m))


def _losses(tuples: Tuples, seeker: int) -> tuple[tuple[tuple[int, ...], ...], int]:
    """The utility that each level of each column costs a seeker, and all that it can spare, in bins; rounded down."""
    cube, t = tuples.cube, tuples.at[seeker]
    spare = int(tuples.utility[t] - tuples.seeking.need[tuples.who[seeker]])
    unit = max(1, -(-spare // BINS))
    out = []
    for a in range(tuples.n_columns):
        node = (tuples.key[t] >> cube.shift[a]) & cube.field[a]
        lost, column = 0, []
        for level in range(int(cube.n_levels[a])):
            if cube.depth[cube.first[a] + node] > cube.n_levels[a] - 1 - level:
                lost -= int(cube.up_utility[cube.first[a] + node])
                node += cube.up_key[cube.first[a] + node] >> cube.shift[a]
            column.append(lost // unit)
        out.append(tuple(column))
    return tuple(out), spare // unit


@lru_cache(maxsize=64)
def _count_choices(lost: tuple[tuple[int, ...], ...], budget: int) -> list[NDArray[np.float64]]:
    """How many choices of levels, of a column and all later ones, lose at most 0, 1, ... bins: a line for each column.

    The last line is for no column at all.

    >>> [n_choices.tolist() for n_choices in _count_choices(((0, 1), (0, 1, 2)), 2)]
    [[1.0, 3.0, 5.0], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]
    """
    found = [np.ones(budget + 1)]
    for column in reversed(lost):
        here = np.zeros(budget + 1)
        for d in column:
            if d <= budget:
                here[d:] += found[-1][: budget + 1 - d]
        found.append(here)
    return found[::-1]


def _vector_at(
    rank: float, lost: tuple[tuple[int, ...], ...], n_choices: list[NDArray[np.float64]], budget: int
) -> Ints:
    """The level vector of a rank in lexicographic order, of those that lose no more than the budget.

    >>> lost = ((0, 1), (0, 1, 2))
    >>> [_vector_at(rank, lost, _count_choices(lost, 2), 2).tolist() for rank in range(5)]
    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]]
    """
    out = []
    for column, later in zip(lost, n_choices[1:], strict=True):
        allowed = [(level, float(later[budget - d])) for level, d in enumerate(column) if d <= budget]
        level = allowed[-1][0]  # should a rank be rounded beyond the last
        for here, n in allowed:
            if rank < n:
                level = here
                break
            rank -= n
        out.append(level)
        budget -= column[level]
    return np.array(out, dtype=np.int64)


__all__ = ["estimate_tuples", "solve"]
