r"""Genetic search: Algorithm 2 of [FEB12, section 2.5], repaired, as printed, and improved. For the threshold form.

A solution is a frontier node: utility enough, and too little above it. A chromosome is a path to one, the columns that
are specialized one after the other from the greatest generalization down
(:mod:`sfumato.methods.risk_utility.paper.kernels.genes`). Its fitness is the risk of the node, and the fittest
survive. All begin with random paths, change one gene near the middle, exchange second halves, have the two special
cases of Figure 6 and immigrants.

- As printed (``variant="paper"``) a path ends at its first feasible node, which has "at least one infeasible immediate
  parent", and a parent is taken with a chance "in direct proportion to its utility" (Selection).
- Repaired (the default) a path goes back up while that is feasible, so that every node above is infeasible, and parents
  are taken by the rank of their risk.
- ``solve_improved`` is ours: it begins with near rows and rows joined to them (:mod:`probing`), no two members of its
  population lead to one node, and mutations are anywhere.

Departs from the paper: where it leaves Algorithm 2 open. "While accuracy is low" is a number of generations; a tenth of
the population are immigrants.

Nothing is promised of the risk. Random paths lead to nodes that cover hardly anybody else once columns are many: 50
members over 50 generations, repaired, are a few percent above the least risk on Adult with 8 columns, and several times
the least risk with 30.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.methods.risk_utility.kernels.neighbours import Measure
from sfumato.methods.risk_utility.optimizers.neighbours import Neighbours, need_of, search
from sfumato.methods.risk_utility.paper.kernels.genes import Evolution, Members, evolve
from sfumato.methods.risk_utility.problem import Ints, LatticeProblem, Levels, Objective, Solution
from sfumato.policy.options.risk_utility import PAPER, REPAIRED, GeneticOptions
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random, secret

N_MEMBERS = GeneticOptions().population
N_GENERATIONS = GeneticOptions().generations
IMMIGRANTS = 10
"""One in so many."""


def solve(
    problem: LatticeProblem,
    objective: Objective,
    *,
    which: Ints | None = None,
    random: Random | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
    n_members: int = N_MEMBERS,
    n_generations: int = N_GENERATIONS,
    n_probes: int | None = None,
    variant: str = REPAIRED,
    improved: bool = False,
) -> Solution:
    """The best node that a population of so many paths finds in so many generations, for each row.

    The first ``n_probes`` members begin as random paths (all, if it is not given), the others as copies of the first of
    them; with 1 there is no probing.
    The search of a row depends on the first number drawn from ``random``, on the row and its number, on nothing else.
    """
    seed = int((random or secret()).integers(1 << 63))
    longest = int((problem.lattice.n_levels - 1).sum())
    n_pool = 2 * (n_members // 2) + n_members + max(1, n_members // IMMIGRANTS)

    def search_row(neighbours: Neighbours, steps: Levels) -> tuple[Measure, bool]:
        how = Evolution(
            n_generations,
            n_members if n_probes is None else n_probes,
            improved,
            variant == PAPER,
            int(problem.raw_utility[neighbours.row]),
        )
        members, pool = (_no_members(n, longest, problem.n_columns) for n in (n_members, n_pool))
        counter = _counter(seed, int(problem.number[neighbours.row]))
        found = evolve(neighbours.problem, how, counter, members, pool, steps)
        return found, bool(found.weight == 0)

    which = np.arange(problem.n) if which is None else which
    return search(
        problem,
        need_of(problem, objective, which),
        search_row,
        which=which,
        threads=threads,
        progress=progress,
        stage="Genetic search",
    )


def solve_improved(problem: LatticeProblem, objective: Objective, **options: Any) -> Solution:
    """The improved search, with the same options."""
    return solve(problem, objective, improved=True, **options)


def _no_members(n_members: int, longest: int, n_columns: int) -> Members:
    return Members(
        np.empty((n_members, longest), dtype=np.uint16),
        np.zeros(n_members, dtype=np.int64),
        np.empty((n_members, n_columns), dtype=np.uint8),
        *(np.empty(n_members, dtype=np.int64) for _ in range(3)),
    )


def _counter(seed: int, row: int) -> Any:
    """Where the random numbers of a row begin: far from where those of any other do."""
    mixed = (seed + row * 0x9E3779B97F4A7C15) % (1 << 64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # as SplitMix64 does
        mixed = (mixed ^ (mixed >> shift)) * factor % (1 << 64)
    return np.array([mixed ^ (mixed >> 31) or 1], dtype=np.uint64)


__all__ = ["solve", "solve_improved"]
