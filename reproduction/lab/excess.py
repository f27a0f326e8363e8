"""How far above the least risk searches end: [FEB12, section 4.2], whose claim is 7% at worst.

The least risk of a row is known from the cube of all generalizations where that is affordable (Adult, 8 columns), and
where branch and bound proved it (30 columns): there the rows measured are the easier ones, which is said by their number.

    PYTHONPATH=src:reproduction python -m lab.excess --table adult --share 9/17 --rows 150
    PYTHONPATH=src:reproduction python -m lab.excess --table products --share 8/10 --rows 60
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.products import products
from lab.tradeoff_tables import adult
from sfumato.methods.risk_utility.optimizers import branch, exact, probing
from sfumato.methods.risk_utility.paper import genetic
from sfumato.methods.risk_utility.problem import Ints, LatticeProblem, Solution, Threshold, problem_of
from sfumato.policy.options.risk_utility import HARMONIC, Weights
from sfumato.randomness import seeded

WITHIN = 0.07
"""The excess that the paper allows itself."""

MOST_BOXES = 20_000
"""Of branch and bound per row, where the least risk must be proved."""

Searcher = Callable[..., Solution]
SEARCHES: Mapping[str, Searcher] = {
    "genetic, 20 x 20": partial(genetic.solve, n_members=20, n_generations=20),
    "genetic, 50 x 50": genetic.solve,
    "genetic improved, 50 x 50": genetic.solve_improved,
    "probing": probing.solve,
}


@dataclass(frozen=True, slots=True)
class Excess:
    """The excess risk of one search over the least, as a share of it: mean, worst, and how many rows are within 7%."""

    search: str
    rows: int
    mean: float
    worst: float
    within: float
    milliseconds: float
    """Of processor time for each row, its scan of the side table included."""


def excess_of(problem: LatticeProblem, found: Solution, least: Solution) -> NDArray[np.float64]:
    """How far the risk of each row is above the least, as a share of it; 0 where both are 0."""
    risk, lowest = problem.risk(found), problem.risk(least)
    return np.where(risk == lowest, 0.0, risk / np.where(lowest > 0, lowest, np.nan) - 1)


def measure(
    problem: LatticeProblem,
    objective: Threshold,
    least: Solution,
    *,
    searches: Mapping[str, Searcher] = SEARCHES,
    seed: int = 1,
) -> Iterator[Excess]:
    """Each search on the rows whose least risk is known, on one thread; kernels are compiled before the clock runs."""
    for name, searcher in searches.items():
        searcher(problem, objective, which=least.which[:1], threads=1, random=seeded(seed))
        begin = time.process_time()
        found = searcher(problem, objective, which=least.which, threads=1, random=seeded(seed))
        seconds = time.process_time() - begin
        over = excess_of(problem, found, least)
        yield Excess(
            name, len(over), float(over.mean()), float(over.max()), float((over <= WITHIN).mean()),
            1000 * seconds / len(over),
        )  # fmt: skip


def sampled(problem: LatticeProblem, n_rows: int, *, seed: int = 1) -> Ints:
    """Some rows of a problem, without repetition."""
    return np.sort(seeded(seed).choice(problem.n, min(n_rows, problem.n), replace=False))


def proved(
    problem: LatticeProblem,
    objective: Threshold,
    which: Ints,
    *,
    most_boxes: int = MOST_BOXES,
    **options: Any,
) -> Solution:
    """The least risk of those rows for which branch and bound proves it; its ``which`` says which they are."""
    found = branch.solve(problem, objective, which=which, most_boxes=most_boxes, **options)
    return found.take(found.is_proved)


def adult_problem(n_columns: int = 8) -> LatticeProblem:
    """Adult with harmonic weights and depth as utility, as [FEB12, section 4.1] has them."""
    domains, codes = adult(n_columns)
    return problem_of(domains, codes, weights=Weights(HARMONIC))


def products_problem(n_rows: int = 400_000, n_columns: int = 30, *, skewed: bool = False) -> LatticeProblem:
    """The generated product table, likewise."""
    table = products(n_rows, n_columns, skewed=skewed)
    return problem_of(table.domains, table.codes, weights=Weights(HARMONIC))


def main(arguments: list[str] | None = None) -> None:
    """Print one line for each search."""
    parser = argparse.ArgumentParser(description="Excess risk of searches over the least.")
    parser.add_argument("--table", choices=("adult", "products", "skewed"), default="adult")
    parser.add_argument("--share", type=Fraction, default=Fraction(9, 17))
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--boxes", type=int, default=MOST_BOXES)
    given = parser.parse_args(arguments)
    objective = Threshold(given.share)
    if given.table == "adult":
        problem = adult_problem()
        least = exact.solve(problem, objective, which=sampled(problem, given.rows, seed=given.seed))
    else:
        problem = products_problem(skewed=given.table == "skewed")
        rows = sampled(problem, given.rows, seed=given.seed)
        least = proved(problem, objective, rows, most_boxes=given.boxes)
    for found in measure(problem, objective, least):
        line = {"table": given.table, "share": str(given.share), "tried": given.rows, **asdict(found)}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
