r"""Algorithm 3 of the paper, for study: **no privacy is claimed** [FEB12, section 3.3].

Each row is drawn with chance 1 - beta, and gets a generalization x that covers at least t rows of the table itself, with
a chance that is proportional to

.. math:: e^{\epsilon' f(x) / |D|} \quad \text{or} \quad e^{-\epsilon' r(x) / |D|}             [equation 9]

(the Lagrangian form; the threshold form, C1' and C3', among those with utility at least c). t is what equation (10) asks
for. Which generalizations are frequent, and how good they are, depends on the table, so that a single row more can make
an output possible that was not: ``tests/paper/test_cerias2012_section_3.py`` has the neighbours. What is private:
:mod:`sfumato.methods.risk_utility.private.draw`.

Departs from the paper: h in equation (10) is the number of levels of the highest hierarchy, the root among them, and
h^kappa reads h^k. Chances are normalized over the generalizations that may be drawn, not over all of them. A row that has
none is suppressed, where the paper has no answer. Where personal weights differ, phi_l and phi_u are those of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.methods.risk_utility.problem import (
    Ints,
    Lagrangian,
    LatticeProblem,
    Levels,
    MostUtility,
    Objective,
    Threshold,
    values_of,
)
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random

Floats = NDArray[np.float64]

TAUS = tuple(n / 100 for n in range(5, 96))
"""Values of tau_1 that are tried: the one that asks for the least t is taken."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What Algorithm 3 is run with.

    ``eta`` is eta(k), ``working`` is epsilon', ``spread`` the greatest difference of two exponents that it allows, in
    nats. ``t`` is None where no t that is at most the number of rows satisfies equation (10); then ``bound`` says what
    the equation asks for.
    """

    beta: float
    tau_1: float
    t: int | None
    bound: float
    eta: float
    working: float
    spread: float


@dataclass(frozen=True, slots=True)
class Extremes:
    """phi_l, phi_u and nu: the least and greatest weight, and the greatest utility, of any generalization."""

    least_weight: float
    greatest_weight: float
    utility: float

    @classmethod
    def of(cls, problem: LatticeProblem) -> Extremes:
        least, greatest = (bound * problem.weight_unit for bound in problem.weight_bounds())
        utility = np.maximum.reduceat(problem.lattice.utility, problem.lattice.root).sum()
        return cls(least, greatest, float(utility) * problem.utility_unit)


def parameters(
    problem: LatticeProblem,
    objective: Objective,
    *,
    epsilon: float,
    delta: float,
    beta: float,
    tau_1: float | None = None,
) -> Parameters:
    """The parameters for a table; of all tau_1 the one with the least t, unless it is given."""
    if not math.exp(-epsilon) <= beta < 1:
        raise InternalError("beta is at least exp(-epsilon), and below 1.")
    ends, m = Extremes.of(problem), len(problem.of_row)
    if ends.least_weight <= 0:
        raise InternalError(
            "Algorithm 3 divides by the weight of a row that is suppressed; it needs a floor."
        )
    k, h = problem.n_columns, int(problem.lattice.n_levels.max())
    budget = (epsilon + math.log(beta)) / (3 * (1 - beta))
    found = []
    for tau in TAUS if tau_1 is None else (tau_1,):
        if isinstance(objective, Lagrangian):
            eta = eta_of_utility(objective, ends, m)
            spread = budget / 2  # f is at most eta / 2 times |D|
            bound = equation_10(delta=delta, beta=beta, tau_1=tau, k=k, h=h, spread=spread)
        else:
            bound = _threshold_bound(ends, m, budget, delta=delta, beta=beta, tau_1=tau, k=k, h=h)
            t = max(math.floor(bound) + 1, 2) if math.isfinite(bound) else 2
            eta = eta_of_risk(ends, m, t)
            spread = budget / eta * ends.greatest_weight / m if math.isfinite(bound) else math.inf
        t_ = math.floor(bound) + 1 if bound < m else None
        found.append(Parameters(beta, tau, t_, bound, eta, budget / eta, spread))
    return min(found, key=lambda one: one.bound)


def eta_of_utility(objective: Lagrangian, ends: Extremes, m: int) -> float:
    r""":math:`\eta(k) = 2 (\lambda / \phi_l + \nu^\kappa / |D|)`, the sensitivity of Lemma 2."""
    return 2 * (float(objective.price) / ends.least_weight + ends.utility**objective.power / m)


def eta_of_risk(ends: Extremes, m: int, t: int) -> float:
    r""":math:`\eta(k) = \phi_u (1 / (t (t - 1)) + 1 / ((|D| - 1)(t - 1)))`."""
    return ends.greatest_weight * (1 / (t * (t - 1)) + 1 / (max(m - 1, 1) * (t - 1)))


def equation_10(*, delta: float, beta: float, tau_1: float, k: int, h: int, spread: float) -> float:
    r"""What t must exceed.

    .. math:: \max \left\{ \frac{2}{\beta \tau_1^2} \left(\ln \frac{2}{\delta} + k \ln h\right),
              \frac{\beta h^k e^{\epsilon' t_f(k)}}{(1 - \beta)(1 - \tau_1)} \right\}

    ``spread`` is epsilon' t_f(k).

    >>> spread = (1 + math.log(0.5)) / (6 * (1 - 0.5))
    >>> int(equation_10(delta=1e-6, beta=0.5, tau_1=0.05, k=8, h=5, spread=spread)) + 1
    455469
    """
    draws = 2 / (beta * tau_1**2) * (math.log(2 / delta) + k * math.log(h))
    try:
        outputs = beta * float(h) ** k * math.exp(spread) / ((1 - beta) * (1 - tau_1))
    except OverflowError:
        return math.inf
    return max(draws, float(outputs))


def _threshold_bound(ends: Extremes, m: int, budget: float, **given: Any) -> float:
    """The least number above which equation (10) holds in the threshold form, where epsilon' grows with t."""
    bound = equation_10(spread=0.0, **given)
    while bound < m:
        t = max(math.floor(bound) + 1, 2)
        again = equation_10(spread=budget / eta_of_risk(ends, m, t) * ends.greatest_weight / m, **given)
        if again < t:
            return bound
        bound = again
    return bound


# ---- all generalizations of a row ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Generalizations:
    """All generalizations of a row; those that differ in levels alone and not in nodes stand there once.

    ``levels`` are of each column those that change its node. ``covered``, ``weight`` and ``utility`` (one axis for each
    column) are of all choices of one of them for each.
    """

    levels: tuple[Ints, ...]
    covered: Ints
    weight: Floats
    utility: Floats

    @classmethod
    def of(cls, problem: LatticeProblem, row: int) -> Generalizations:
        lattice = problem.lattice
        chains = [
            lattice.node[start + int(code) * n : start + (int(code) + 1) * n]
            for start, n, code in zip(lattice.start, lattice.n_levels, problem.rows[row], strict=True)
        ]
        levels = tuple(np.flatnonzero(np.diff(chain, prepend=-1)) for chain in chains)
        nodes = [chain[at] for chain, at in zip(chains, levels, strict=True)]
        weight = np.full([1] * len(nodes), problem.floor, dtype=np.float64)
        utility = np.zeros([1] * len(nodes))
        for a, own in enumerate(nodes):
            shape = [-1 if b == a else 1 for b in range(len(nodes))]
            factor = problem.factor[row, a] if problem.is_personal else 1.0
            weight = weight + np.rint(factor * lattice.weight[own]).reshape(shape)
            utility = utility + lattice.utility[own].reshape(shape)
        covered = _count_covered(problem, nodes) + problem.own[row]
        return cls(levels, covered, weight * problem.weight_unit, utility * problem.utility_unit)

    def levels_at(self, at: Ints) -> Levels:
        """The levels of some of them, given by their places among all."""
        places = np.unravel_index(at, self.covered.shape)
        return np.stack([own[place] for own, place in zip(self.levels, places, strict=True)], axis=1).astype(
            np.uint8
        )


def _count_covered(problem: LatticeProblem, nodes: list[Any]) -> Ints:
    """|rho| of all of them: count rows of the side table at the least places that cover them, then add up."""
    lattice, shape = problem.lattice, [len(own) for own in nodes]
    least = []
    for a, own in enumerate(nodes):
        side = problem.side[:, a].astype(np.int64)[:, None]
        is_below = (lattice.low[own] <= side) & (side < lattice.high[own])
        least.append(np.argmax(is_below, axis=1))
    flat = np.ravel_multi_index(least, shape)
    found = (
        np.bincount(flat, weights=problem.side_count, minlength=math.prod(shape))
        .astype(np.int64)
        .reshape(shape)
    )
    for axis in range(len(shape)):
        found = np.cumsum(found, axis=axis)
    return found


def chances(
    problem: LatticeProblem,
    row: int,
    objective: Objective,
    found: Generalizations,
    *,
    t: float,
    working: float,
) -> Floats:
    """The chance of each generalization of a row (equation 9); all are 0 if none may be drawn."""
    m = len(problem.of_row)
    is_open = found.covered >= t
    if isinstance(objective, Threshold):
        need = int(problem.need(objective.at_least)[row])
        is_open = is_open & (np.rint(found.utility / problem.utility_unit) >= need)
        exponent = -working / m * found.weight / np.maximum(found.covered, 1)
    else:
        assert not isinstance(objective, MostUtility)  # which the policy refuses here
        exponent = working / m * values_of(objective, found.covered, found.weight, found.utility)
    if not is_open.any():
        return np.zeros(found.covered.shape)
    weights = np.where(is_open, np.exp(exponent - exponent[is_open].max()), 0.0)
    return np.asarray(weights / weights.sum())


# ---- the algorithm -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class DrawnRows:
    """One generalization for each drawn row, and which rows of the table they are of; suppressed rows are not there."""

    row: Ints
    levels: Levels
    n_drawn: int


Sampler = Callable[[int, int], Levels]
"""The levels (draws, columns) of so many generalizations of a row of the problem; no draws if it has none to draw."""


def sample_by_enumeration(
    problem: LatticeProblem, objective: Objective, given: Parameters, random: Random
) -> Sampler:
    """Draws by the law itself (equation 9): exact but for floating point. Without a t, none is frequent."""

    def sample(row: int, n: int) -> Levels:
        found = Generalizations.of(problem, row)
        t = math.inf if given.t is None else given.t
        law = chances(problem, row, objective, found, t=t, working=given.working).ravel()
        n_possible = n if law.any() else 0
        return found.levels_at(random.choice(len(law), size=n_possible, p=law if n_possible else None))

    return sample


def draw(
    problem: LatticeProblem,
    objective: Objective,
    given: Parameters,
    random: Random,
    *,
    sample: Sampler | None = None,
    progress: Progress = no_progress,
) -> DrawnRows:
    """Algorithm 3: each row is drawn with chance 1 - beta, and then its generalization, by default by enumeration."""
    sample = sample or sample_by_enumeration(problem, objective, given, random)
    row = np.flatnonzero(random.random(len(problem.of_row)) < 1 - given.beta)
    levels = np.zeros((len(row), problem.n_columns), dtype=np.uint8)
    is_there = np.zeros(len(row), dtype=np.bool_)
    order = np.argsort(problem.of_row[row], kind="stable")
    distinct, starts = np.unique(problem.of_row[row][order], return_index=True)
    parts = np.split(order, starts[1:]) if len(row) else []
    for done, (one, mine) in enumerate(zip(distinct.tolist(), parts, strict=True)):
        progress("generalizing", done, len(distinct))
        drawn = sample(one, len(mine))
        if len(drawn):
            levels[mine], is_there[mine] = drawn, True
    return DrawnRows(row[is_there], levels[is_there], len(row))


__all__ = [
    "DrawnRows",
    "Extremes",
    "Generalizations",
    "Parameters",
    "Sampler",
    "chances",
    "draw",
    "equation_10",
    "eta_of_risk",
    "eta_of_utility",
    "parameters",
    "sample_by_enumeration",
]
