"""The private variant of risk-utility on Adult: one half of the rows is public, the other half is published.

``python reproduction/lab/private_tradeoff.py`` prints a line for each threshold and chance of a row to be drawn.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from lab.tradeoff_tables import adult
from sfumato.encoding.domain import Codes
from sfumato.methods.risk_utility.optimizers import exact
from sfumato.methods.risk_utility.private import draw
from sfumato.methods.risk_utility.problem import LatticeProblem, Solution, Threshold, problem_of
from sfumato.policy.options.risk_utility import Weights
from sfumato.policy.options.sampling_plan import Plan, plan
from sfumato.privacy.mechanisms import seeded
from sfumato.randomness import seeded_block

THRESHOLDS = tuple(Fraction(n, 17) for n in (4, 6, 9, 12))
CHANCES = (Fraction(1, 2), Fraction(1, 5))
EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
SEED = 2012
HEADER = "c       s     k0  delta      drawn  published  boxes  share of drawn  utility  foretold by the public half"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the drawn rows, and of the utility of those that are published.

    ``share`` is of the drawn rows, in boxes that are finer than the root; ``outlook`` is what the public half foretold.
    """

    plan: Plan
    at_least: Fraction
    drawn: int
    published: int
    boxes: int
    share: float
    utility: float
    outlook: float


def halves(n_columns: int = 8, seed: int = SEED) -> tuple[Codes, Codes]:
    """The rows that are published, and those that everybody knows."""
    _, codes = adult(n_columns)
    order = seeded_block(seed, 0).permutation(len(codes))
    return codes[order[: len(codes) // 2]], codes[order[len(codes) // 2 :]]


def outcomes(
    *,
    n_columns: int = 8,
    thresholds: tuple[Fraction, ...] = THRESHOLDS,
    chances: tuple[Fraction, ...] = CHANCES,
    epsilon: Fraction = EPSILON,
    delta: Fraction = DELTA,
    seed: int = SEED,
) -> Iterator[Outcome]:
    """One run for each threshold and chance, by the exact optimum with harmonic weights and utility by depth."""
    domains, _ = adult(n_columns)
    mine, public = halves(n_columns, seed)
    table, like_public = (
        problem_of(domains, rows, public, weights=Weights("harmonic")) for rows in (mine, public)
    )
    for at_least in thresholds:
        solution, foretold = (exact.solve(one, Threshold(at_least)) for one in (table, like_public))
        for chance in chances:
            chosen = plan(epsilon, delta, chance)
            found = draw.draw(table, solution, chosen, seeded(seed))
            drawn = int(seeded(seed).bernoulli(len(mine), chance).sum())
            yield Outcome(
                chosen,
                at_least,
                drawn,
                found.n_rows,
                len(found),
                _n_finer(table, found) / drawn,
                _mean_utility(table, solution, found),
                draw.outlook(like_public, foretold, chosen),
            )


def _n_finer(problem: LatticeProblem, found: draw.DrawnBoxes) -> int:
    """Published rows whose box is not all roots."""
    return int(found.count[np.any(found.nodes != problem.lattice.root, axis=1)].sum())


def _mean_utility(problem: LatticeProblem, solution: Solution, found: draw.DrawnBoxes) -> float:
    """Of the published rows, as a share of the greatest that there is."""
    utility = problem.lattice.utility[found.nodes].sum(axis=1)
    return float(
        (utility * found.count).sum() / max(found.n_rows, 1) / problem.raw_utility[solution.which].max()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    lines = (
        f"{one.at_least!s:<7} {float(one.plan.s):.2f}  {one.plan.k0:3}  {float(one.plan.delta):.2e}  {one.drawn:6}"
        f"  {one.published:9}  {one.boxes:5}  {one.share:14.1%}  {one.utility:7.2f}  {one.outlook:.1%}"
        for one in outcomes(n_columns=given.columns, seed=given.seed)
    )
    for line in itertools.chain([HEADER], lines):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
