"""The choice among all optimizers.

``auto`` takes the cube of all generalizations wherever it is affordable: what it would cost is counted on a sample of
level vectors. Else the Lagrangian is proved by certificates and cuts, and the other objectives are probed; a threshold
or a limit of risk is then proved by branch and bound for as many boxes per row as the number of rows allows. Nothing
depends on a clock: the same problem has the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.engines.protocol import Engine, Loaded
from sfumato.errors import InputError, InternalError, number_of
from sfumato.methods.risk_utility.optimizers import branch, exact, probing
from sfumato.methods.risk_utility.optimizers.tuples import fits_any_rows
from sfumato.methods.risk_utility.paper import approximation, genetic, lagrangian
from sfumato.methods.risk_utility.problem import (
    Lagrangian,
    LatticeProblem,
    MostUtility,
    Objective,
    Solution,
    Threshold,
    objective_of,
)
from sfumato.policy.options.risk_utility import (
    APPROXIMATION,
    AUTO,
    CUT,
    EXACT,
    GENETIC,
    PAPER,
    PROBING,
    RiskUtilityOptions,
)
from sfumato.progress import Progress, no_progress
from sfumato.randomness import seeded

AFFORDABLE = 1e9
"""Tuples of a cube that take about half a minute on one core."""

ENDLESS = 1e11
"""Tuples that nobody waits for."""

MOST_BOXES = 2_000_000
LEAST_BOXES = 20
"""Boxes of branch and bound for all rows together; and the fewest for one row that make it worth while."""

SEED = 7
"""Of searches that draw: the same rows get the same boxes, whoever asks."""

BRANCH = "branch and bound"
SOLVERS: Mapping[str, Callable[..., Solution]] = {
    EXACT: exact.solve,
    CUT: lagrangian.solve,
    APPROXIMATION: approximation.solve,
    GENETIC: genetic.solve,
    PROBING: probing.solve,
    BRANCH: branch.solve,
}


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The generalization of each row of a problem, which optimizer found it, and why that one."""

    solution: Solution
    optimizer: str
    reason: str


@dataclass(frozen=True, slots=True)
class OptimizerChoice:
    """The solver, the optimizer that a policy would call it, the reason for it, and limits of the solver.

    Every row gets at least ``part`` of what a threshold asks for: 1, but for Algorithm 1 as printed.
    """

    solver: str
    optimizer: str
    reason: str
    limits: Mapping[str, Any] = field(default_factory=dict)
    part: Fraction = Fraction(1)

    def solve(
        self,
        problem: LatticeProblem,
        objective: Objective,
        *,
        engine: Engine,
        progress: Progress = no_progress,
    ) -> Solution:
        """The generalization of every row, of as many rows at once as the engine has room for."""
        rows, at_once = problem.pack_rows(), engine.room.rows
        parts = [Loaded(rows[at : at + at_once]) for at in range(0, max(len(rows), 1), at_once)]
        work = RowOptimizer(problem.of_packed(rows[:0]), objective, self, engine.threads, progress)
        return Solution.join([*engine.finish((part, work) for part in parts)])


@dataclass(frozen=True, slots=True, eq=False)
class RowOptimizer:
    """The work on a part of the rows: a generalization of each, which depends on that row and the side table alone.

    ``problem`` has no rows of its own.
    """

    problem: LatticeProblem
    objective: Objective
    choice: OptimizerChoice
    threads: int | None = None
    progress: Progress = no_progress

    def __call__(self, part: Loaded) -> Solution:
        problem, choice = self.problem.of_packed(part.rows), self.choice
        found = SOLVERS[choice.solver](
            problem,
            self.objective,
            random=seeded(SEED),
            threads=self.threads,
            progress=self.progress,
            **choice.limits,
        )
        _check(problem, self.objective, found, choice.part)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Who works elsewhere cannot tell this process how far it is."""
        return RowOptimizer, (self.problem, self.objective, self.choice, self.threads)


def optimize(
    problem: LatticeProblem, options: RiskUtilityOptions, *, engine: Engine, progress: Progress = no_progress
) -> Optimum:
    """The generalization of every row that is best by the objective of the options."""
    objective = objective_of(options)
    _check_adds_up(problem, options.optimizer)
    choice = _choose_printed(problem, options) or choose_optimizer(problem, objective, options.optimizer)
    found = choice.solve(problem, objective, engine=engine, progress=progress)
    return Optimum(found, choice.optimizer, choice.reason)


def _check_adds_up(problem: LatticeProblem, asked: str) -> None:
    """Raise if people have several rows, which only the cube can count, and another optimizer is asked for."""
    if asked not in (AUTO, EXACT) and problem.people is not None and problem.people.n_several:
        n_people = number_of(problem.people.n_several, "person", "people")
        raise InputError(
            f"optimizer: {asked} adds up rows, and {n_people} of the side table have several different ones, so that "
            "people do not add up; say optimizer: auto, or unit: row."
        )


def _choose_printed(problem: LatticeProblem, options: RiskUtilityOptions) -> OptimizerChoice | None:
    """Algorithm 1 or 2, as repaired or as the paper prints it; None if another optimizer is asked for."""
    is_paper = options.variant == PAPER
    if options.optimizer == GENETIC:
        how = (
            "as printed: parents by their utility, for study"
            if is_paper
            else "repaired: parents by their risk"
        )
        limits: dict[str, Any] = {
            "n_members": options.genetic.population,
            "n_generations": options.genetic.generations,
        }
        part = Fraction(1)
        number = 2
    elif options.optimizer == APPROXIMATION:
        own = options.approximation
        how = "as printed: level sets are drawn, for study" if is_paper else "repaired: all level sets"
        sigma_1, sigma_2 = float(own.sigma_1), None if own.sigma is None else float(own.sigma[1])
        approximation.check_acceptance(problem, options.utility_at_least, sigma_1=sigma_1, sigma_2=sigma_2)
        limits = {"epsilon": float(own.epsilon), "sigma_1": sigma_1, "sigma_2": sigma_2}
        part = own.sigma_1 if is_paper else Fraction(1)
        number = 1
    else:
        return None
    reason = f"Algorithm {number} of the paper, {how}"
    return OptimizerChoice(
        options.optimizer, options.optimizer, reason, {**limits, "variant": options.variant}, part
    )


def choose_optimizer(
    problem: LatticeProblem, objective: Objective, asked: str, *, for_any_rows: bool = False
) -> OptimizerChoice:
    """The optimizer that a problem is solved by, if this one is asked for.

    With ``for_any_rows`` the choice does not depend on the rows: it can solve any others with the same side table.
    """
    if asked not in (AUTO, EXACT):
        return OptimizerChoice(asked, asked, "as asked")
    is_possible = not for_any_rows or fits_any_rows(problem)
    n_tuples = exact.estimate_tuples(problem, objective) if is_possible else math.inf
    why = (
        f"the cube of all generalizations has about {n_tuples:.1e} generalized rows"
        if math.isfinite(n_tuples)
        else "the columns have too many values for one cube of all generalizations"
    )
    if asked == EXACT:
        if n_tuples > ENDLESS:
            raise InputError(
                f"The exact optimum of all rows is out of reach: {why}; "
                "say optimizer: auto, or give fewer quasi-identifiers."
            )
        return OptimizerChoice(EXACT, EXACT, "as asked")
    if problem.people is not None and problem.people.n_several:
        if n_tuples > ENDLESS:
            raise InputError(
                f"Only a cube of all generalizations counts people with several different rows, and {why}; "
                "give fewer quasi-identifiers, or say unit: row."
            )
        return OptimizerChoice(EXACT, EXACT, f"{why}, and people with several rows do not add up elsewhere")
    if n_tuples <= AFFORDABLE:
        return OptimizerChoice(EXACT, EXACT, f"{why}, which is affordable")
    if isinstance(objective, Lagrangian):
        return OptimizerChoice(CUT, CUT, f"{why}; certificates and cuts prove single rows")
    n_searches = probing.HALVINGS if isinstance(objective, MostUtility) else 1
    n_boxes = MOST_BOXES // max(problem.n * n_searches, 1)
    if isinstance(objective, Threshold | MostUtility) and n_boxes >= LEAST_BOXES:
        reason = f"{why}; row-join probing, then branch and bound of at most {n_boxes:,} boxes for each row"
        return OptimizerChoice(BRANCH, PROBING, reason, {"most_boxes": n_boxes})
    return OptimizerChoice(PROBING, PROBING, f"{why}; row-join probing")


def _check(problem: LatticeProblem, objective: Objective, found: Solution, part: Fraction) -> None:
    """Raise if an optimizer left out rows, or did not give one what was asked for: that must not be published."""
    if not np.array_equal(found.which, np.arange(problem.n)):
        raise InternalError("An optimizer left out rows.")
    if isinstance(objective, Threshold):
        gained = problem.utility_of(found.which, found.levels) - problem.least_utility
        needed = problem.need(objective.at_least) - problem.least_utility
        least = needed if part == 1 else np.floor(float(part) * needed * (1 - 1e-12)).astype(np.int64)
        if np.any(gained < least):
            raise InternalError("An optimizer gave a row less utility than was asked for.")
    if (
        isinstance(objective, MostUtility)
        and not problem.allows(objective, found.covered, found.weight).all()
    ):
        raise InternalError("An optimizer gave a row more risk than is allowed.")


__all__ = ["OptimizerChoice", "Optimum", "RowOptimizer", "choose_optimizer", "optimize"]
