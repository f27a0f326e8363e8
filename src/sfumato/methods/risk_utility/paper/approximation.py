r"""Algorithm 1 of [FEB12, section 2.4] by linear programs, repaired and as printed: least risk with utility at least c.

One variable per column and level j > 0 says how far "x is at j or above" holds: 0, 1, or between. Then utility and weight
are linear, and the Lovász extension of the number of covered rows is

.. math:: \hat T(y) = \sum_t count_t \min_i y_{i, l_i(t)}

where l(t) are the least levels at which the row covers t too. For each bound tau on the weight, (5) maximizes it with
utility at least c; the level sets of the solution are generalizations again.

As printed (``variant="paper"``) one level set is drawn until it is accepted: it may lack utility down to sigma_1 c.
Repaired (the default) it is another algorithm: it drops the rows that no allowed generalization covers, looks at all
level sets, keeps the best that reaches c and improves it by exchanges. Theorem 3 is false (docs/risk-utility-paper.md),
so neither promises anything about the risk. Both are a study: exact optima and probing are faster and better.

Departs from the paper in both: utility is counted from the row suppressed, and a row that may be published with a
weight of 0, for which the paper has no bound, is solved at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, InternalError, MissingExtra, number_of
from sfumato.methods.risk_utility.problem import (
    Floats,
    Ints,
    LatticeProblem,
    Levels,
    Objective,
    Solution,
    Threshold,
    distinct_rows,
)
from sfumato.policy.options.risk_utility import (
    DEFAULT_SIGMA_1,
    PAPER,
    REPAIRED,
    VARIANTS,
    Absolute,
    ApproximationOptions,
    AtLeast,
    least_acceptance,
)
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random, secret, seeded_block

STAGE = "generalizing"

EPSILON = float(ApproximationOptions().epsilon)
SIGMA_1 = float(DEFAULT_SIGMA_1)

N_JOINS = 64
"""Least levels of so many groups of rows are looked at beside the level sets."""

_DIGITS = 9
"""Variables that differ by less are one level set: a linear program is solved to about this."""


def solve(
    problem: LatticeProblem,
    objective: Objective,
    *,
    which: Ints | None = None,
    random: Random | None = None,
    threads: int | None = None,  # noqa: ARG001 - one linear program after the other
    progress: Progress = no_progress,
    variant: str = REPAIRED,
    epsilon: float = EPSILON,
    sigma_1: float = SIGMA_1,
    sigma_2: float | None = None,
) -> Solution:
    """A generalization of each row. Only risks of 0 are proved to be least.

    Every row of the repaired variant reaches the threshold c; of the paper's, as Theorem 3 says, only ``sigma_1`` of the
    way to it: see ``Solution.utility``. Consecutive bounds on the weight differ by the factor 1 + ``epsilon``; without
    ``sigma_2`` it is chosen for the share that each row is asked for (:func:`slack_of`). What is drawn for a row depends
    on the first number drawn from ``random``, on the row and its number, on nothing else.
    """
    if not isinstance(objective, Threshold):
        raise InternalError("Algorithm 1 serves the threshold alone.")
    if variant not in VARIANTS or not (epsilon > 0 and 0 < sigma_1 < 1):
        raise InternalError("Algorithm 1 needs a known variant, epsilon above 0 and sigma_1 between 0 and 1.")
    if not find_spec("scipy"):
        raise MissingExtra("optimize", "Algorithm 1 as linear programs")
    which = np.arange(problem.n) if which is None else which
    shares = _shares(problem, objective.at_least, which)
    if np.any(_are_endless(shares, sigma_1, sigma_2)):
        raise InternalError("Algorithm 1 needs (1 - theta) / (1 - theta sigma_1) + 1 / sigma_2 below 1.")
    seed = int((random or secret()).integers(1 << 63))
    need = problem.need(objective.at_least) - problem.least_utility
    levels = np.zeros((len(which), problem.n_columns), dtype=np.uint8)
    is_proved = np.zeros(len(which), dtype=np.bool_)
    for i, row in enumerate(which.tolist()):
        progress(STAGE, i, len(which))
        chains = chains_of(problem, row)
        c = int(need[row])
        harmless = chains.best_weightless()
        if harmless is not None and chains.utility_of(harmless) >= c:
            levels[i], is_proved[i] = harmless, True
        elif variant == PAPER:
            slack = slack_of(shares[i], sigma_1) if sigma_2 is None else sigma_2
            own = seeded_block(seed, int(problem.number[row]))
            levels[i] = _draw_levels(chains, c, own, epsilon=epsilon, sigma_1=sigma_1, sigma_2=slack)
        else:
            levels[i] = _search_repaired(chains.presolve(c), c, epsilon=epsilon)
    progress(STAGE, len(which), len(which))
    return problem.solution(levels, which=which, is_proved=is_proved)


def slack_of(at_least: Fraction, sigma_1: float = SIGMA_1) -> float:
    r"""A sigma_2 at which half of the chance to be accepted that the utility leaves is lost to the weight.

    .. math:: \sigma_2 = 2 (1 - \theta \sigma_1) / (\theta (1 - \sigma_1))

    which satisfies (1 - theta) / (1 - theta sigma_1) + 1 / sigma_2 < 1 [FEB12, theorem 3] for every share theta > 0.

    >>> round(slack_of(Fraction(3, 5)), 3), least_acceptance(Fraction(3, 5), 0.5, slack_of(Fraction(3, 5))) > 0.2
    (4.667, True)
    """
    share = float(at_least)
    return 2 * (1 - share * sigma_1) / (share * (1 - sigma_1)) if share else math.inf


def _shares(problem: LatticeProblem, at_least: AtLeast, which: Ints) -> list[Fraction]:
    """Theta of some rows: which part of the way from the row suppressed to the row as it is they are asked for."""
    if not isinstance(at_least, Absolute):
        return [at_least] * len(which)
    gained = problem.need(at_least)[which] - problem.least_utility
    whole = problem.raw_utility[which] - problem.least_utility
    return [Fraction(part, max(all_, 1)) for part, all_ in zip(gained.tolist(), whole.tolist(), strict=True)]


def check_acceptance(
    problem: LatticeProblem, at_least: AtLeast, *, sigma_1: float, sigma_2: float | None
) -> None:
    """Raise if rows may wait for ever until a level set is accepted: theorem 3 excludes these parameters."""
    shares = _shares(problem, at_least, np.arange(problem.n))
    if n_rows := int(problem.n_alike[_are_endless(shares, sigma_1, sigma_2)].sum()):
        raise InputError(
            f"Theorem 3 excludes sigma for {number_of(n_rows, 'row')}: utility-at-least is too small a share of their "
            "utility. Raise sigma_2 (the second number), or leave sigma out."
        )


def _are_endless(shares: Sequence[Fraction], sigma_1: float, sigma_2: float | None) -> NDArray[np.bool_]:
    """Which rows, of these shares, have no chance that a level set is accepted?"""
    return np.array(
        [
            sigma_2 is not None and share > 0 and least_acceptance(share, sigma_1, sigma_2) <= 0
            for share in shares
        ],
        dtype=np.bool_,
    )


# ---- one row --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """One row's generalizations, and the rows of the side table by the least levels that cover them.

    Utility is counted from the row suppressed. Only levels at which the node changes are *steps*, each a variable.
    """

    utility: Ints  # (columns, levels)
    weight: Ints  # (columns, levels)
    floor: int
    column: Ints  # (steps,)
    level: Ints  # (steps,) ascending within a column
    needed: Levels  # (distinct, columns) the least levels that cover some rows
    count: Ints  # (distinct,) how many rows
    own: int  # 1 where the side table lacks the row

    @property
    def n_columns(self) -> int:
        return len(self.utility)

    def utility_of(self, levels: Any) -> int:
        return int(self.utility[np.arange(self.n_columns), levels].sum())

    def weight_of(self, levels: Any) -> int:
        return int(self.weight[np.arange(self.n_columns), levels].sum()) + self.floor

    def covered_by(self, levels: Any) -> int:
        return int(self.count[np.all(self.needed <= levels, axis=1)].sum()) + self.own

    def distinct_levels(self, column: int) -> list[int]:
        return [0, *self.level[self.column == column].tolist()]

    def presolve(self, need: int) -> Chains:
        """Without the rows that no generalization of utility ``need`` covers."""
        at = self.utility[np.arange(self.n_columns), self.needed].sum(axis=1) >= need
        return replace(self, needed=self.needed[at], count=self.count[at])

    def best_weightless(self) -> Levels | None:
        """The generalization of most utility that weighs nothing, if there is one."""
        harmless = self.weight == 0
        if self.floor or not np.all(harmless.any(axis=1)):
            return None
        return np.asarray(harmless.argmax(axis=1), dtype=np.uint8)

    def weight_bounds(self) -> tuple[float, float]:
        """The least weight above 0 of a generalization, and the greatest (phi_l and phi_u)."""
        least = self.floor + int(self.weight.min(axis=1).sum())
        if not least:
            least = int(self.weight[self.weight > 0].min())
        return float(least), float(self.floor + self.weight.max(axis=1).sum())

    def spread(self, variables: Floats) -> Floats:
        """The variables by column and level; "at level 0 or above" always holds."""
        out = np.zeros(self.utility.shape)
        out[:, 0] = 1
        out[self.column, self.level] = variables
        return out

    def extension(self, variables: Floats) -> float:
        """The Lovász extension of the number of covered rows."""
        by_level = self.spread(variables)
        return float(self.count @ by_level[np.arange(self.n_columns), self.needed].min(axis=1)) + self.own

    def slopes(self, values: Ints) -> Ints:
        """What each step adds to the sum of ``values`` (columns, levels)."""
        return values[self.column, self.level] - values[self.column, self.level - 1]


def chains_of(problem: LatticeProblem, row: int) -> Chains:
    """The generalizations of one row of a problem."""
    lattice, n_columns = problem.lattice, problem.n_columns
    n_levels = int(lattice.n_levels.max())
    utility = np.zeros((n_columns, n_levels), dtype=np.int64)
    weight = np.zeros_like(utility)
    needed = np.zeros(problem.side.shape, dtype=np.uint32)
    column: list[int] = []
    level: list[int] = []
    for a in range(n_columns):
        levels = np.minimum(np.arange(n_levels), lattice.n_levels[a] - 1)
        node = lattice.node[lattice.start[a] + int(problem.rows[row, a]) * lattice.n_levels[a] + levels]
        utility[a] = lattice.utility[node] - lattice.utility[lattice.root[a]]
        weight[a] = lattice.weight[node]
        changes = np.flatnonzero(node[1:] != node[:-1]) + 1
        column += [a] * len(changes)
        level += changes.tolist()
        last = 0
        for step in changes.tolist():
            lies_outside = (problem.side[:, a] < lattice.low[node[last]]) | (
                problem.side[:, a] >= lattice.high[node[last]]
            )
            needed[lies_outside, a] = step
            last = step
    if problem.is_personal:
        weight = np.rint(problem.factor[row][:, None] * weight).astype(np.int64)
    distinct, where, _ = distinct_rows(needed)
    count = np.bincount(where, weights=problem.side_count, minlength=len(distinct)).astype(np.int64)
    return Chains(
        utility, weight, problem.floor, np.array(column, dtype=np.int64), np.array(level, dtype=np.int64),
        distinct.astype(np.uint8), count, int(problem.own[row]),
    )  # fmt: skip


# ---- the linear programs --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """The solution of (5) at one bound on the weight: variables of the steps, and rows covered at them."""

    bound: float
    variables: Floats
    value: float


def relaxations(chains: Chains, need: int, *, epsilon: float = EPSILON) -> Iterator[Relaxation]:
    """Solutions of (5) at all bounds tau_i = phi_l (1 + epsilon)^i that allow one, the greatest first.

    A solution that weighs no more than the next bound is that one's solution, too.
    """
    least, greatest = chains.weight_bounds()
    n_bounds = math.ceil(math.log(greatest / least) / math.log1p(epsilon) - 1e-9)
    program = _Program(chains, need)
    found: Relaxation | None = None
    for i in range(n_bounds, -1, -1):
        bound = least * (1 + epsilon) ** i
        if found is not None and program.weight_at(found.variables) <= bound:
            found = replace(found, bound=bound)
        else:
            found = program.solve(bound)
        if found is None:
            return
        yield found


class _Program:
    """(5) for one row: maximize the covered rows; utility at least c, weight at most tau.

    Variables are those of the steps, then one for each group of rows: how far it is covered. All is scaled to about 1.
    """

    def __init__(self, chains: Chains, need: int) -> None:
        self.own = chains.own
        self.n_steps = len(chains.column)
        self.raw_weight = chains.weight_of(0)
        self.weight_slope = chains.slopes(chains.weight).astype(np.float64)
        self.weight_scale = max(float(self.raw_weight), 1.0)
        self.count_scale = float(chains.count.max(initial=1))
        raw = chains.utility_of(0)
        scale = max(raw, 1)
        self.cost = np.concatenate([np.zeros(self.n_steps), -chains.count / self.count_scale])
        self.matrix = _constraints(
            chains, -chains.slopes(chains.utility) / scale, self.weight_slope / self.weight_scale
        )
        self.right = np.zeros(self.matrix.shape[0])
        self.right[-2] = (raw - need) / scale

    def weight_at(self, variables: Floats) -> float:
        return float(self.raw_weight + self.weight_slope @ variables)

    def solve(self, bound: float) -> Relaxation | None:
        """None where no mixture of generalizations has the utility at this bound."""
        from scipy.optimize import linprog  # noqa: PLC0415 - an extra

        right = self.right.copy()
        right[-1] = (bound - self.raw_weight) / self.weight_scale
        found = linprog(self.cost, A_ub=self.matrix, b_ub=right, bounds=(0, 1), method="highs")
        if found.status == 2:
            return None
        if found.status != 0:
            raise InternalError(f"A linear program of Algorithm 1 was not solved (status {found.status}).")
        variables = np.clip(np.round(found.x[: self.n_steps], _DIGITS), 0, 1)
        return Relaxation(bound, variables, -float(found.fun) * self.count_scale + self.own)


def _constraints(chains: Chains, utility_lost: Floats, weight_added: Floats) -> Any:
    """The left sides of the constraints, each at most its right side: groups of rows, chains, then utility and weight.

    A group of rows is covered no further than each of its levels holds; a level holds no further than the one below.
    """
    from scipy.sparse import coo_array  # noqa: PLC0415 - an extra

    n_steps = len(chains.column)
    number = np.zeros(chains.utility.shape, dtype=np.int64)
    number[chains.column, chains.level] = np.arange(n_steps)
    group, a = np.nonzero(chains.needed)
    later = np.flatnonzero(np.diff(chains.column, prepend=-1) == 0)
    every, no_less = np.arange(n_steps), np.concatenate([n_steps + group, later])
    no_more = np.concatenate([number[a, chains.needed[group, a]], later - 1])
    pair, last = np.arange(len(no_less)), len(no_less)
    ones, flat = np.ones(len(no_less)), np.zeros(n_steps, dtype=np.int64)
    at = np.concatenate([pair, pair, flat + last, flat + last + 1])
    of = np.concatenate([no_less, no_more, every, every])
    value = np.concatenate([ones, -ones, utility_lost, weight_added])
    return coo_array((value, (at, of)), shape=(last + 2, n_steps + len(chains.count))).tocsr()


# ---- rounding to generalizations -------------------------------------------------------------------------


def level_sets(chains: Chains, variables: Floats) -> tuple[Levels, Floats]:
    """All generalizations that rounding can give, and the chance of each [FEB12, "Randomized rounding"].

    The first is the row as it is, then those of ever more levels.
    """
    cuts = np.unique(variables[variables > 0])[::-1]
    levels = np.zeros((len(cuts) + 1, chains.n_columns), dtype=np.uint8)
    for i, cut in enumerate(cuts.tolist()):
        for a in range(chains.n_columns):
            chain = chains.column == a
            n = int(np.minimum.accumulate(variables[chain] >= cut).sum())
            levels[i + 1, a] = chains.level[chain][n - 1] if n else 0
    edges = np.concatenate([[1.0], cuts, [0.0]])
    return levels, edges[:-1] - edges[1:]


def _draw_levels(
    chains: Chains, need: int, random: Random, *, epsilon: float, sigma_1: float, sigma_2: float
) -> Levels:
    """Algorithm 1 as printed. A row's own threshold of 0 accepts everything."""
    best: Levels | None = None
    for relaxed in relaxations(chains, need, epsilon=epsilon):
        sets, chance = level_sets(chains, relaxed.variables)
        accepted = is_accepted(chains, sets, need, relaxed.bound, sigma_1=sigma_1, sigma_2=sigma_2)
        if not np.any(accepted & (chance > 0)):
            raise InternalError("No level set of a linear program can be accepted.")
        while not accepted[drawn := int(random.choice(len(sets), p=chance))]:
            pass
        best = _better(chains, best, sets[drawn])
    assert best is not None
    return best


def is_accepted(
    chains: Chains, sets: Levels, need: int, bound: float, *, sigma_1: float, sigma_2: float
) -> NDArray[np.bool_]:
    """Step 5 of Algorithm 1: utility at least sigma_1 c, weight at most sigma_2 tau."""
    return np.array(
        [chains.utility_of(x) >= sigma_1 * need and chains.weight_of(x) <= sigma_2 * bound for x in sets]
    )


def _search_repaired(chains: Chains, need: int, *, epsilon: float) -> Levels:
    """The best of the level sets that reach ``need``, of the levels that cover many rows, and of exchanges."""
    commonest = chains.needed[np.argsort(-chains.count, kind="stable")[:N_JOINS]]
    candidates = {(0,) * chains.n_columns, *map(tuple, commonest.tolist())}
    for relaxed in relaxations(chains, need, epsilon=epsilon):
        candidates |= set(map(tuple, level_sets(chains, relaxed.variables)[0].tolist()))
    best: Levels | None = None
    for levels in sorted(candidates):
        if chains.utility_of(levels) >= need:
            best = _better(chains, best, np.array(levels, dtype=np.uint8))
    assert best is not None
    return _exchange(chains, best, need)


def _better(chains: Chains, one: Levels | None, other: Levels) -> Levels:
    return other if one is None or _rank(chains, other) < _rank(chains, one) else one


def _rank(chains: Chains, levels: Levels) -> tuple[Fraction, int, tuple[int, ...]]:
    """Least risk, then most utility, then the least levels."""
    risk = Fraction(chains.weight_of(levels), max(chains.covered_by(levels), 1))
    return risk, -chains.utility_of(levels), tuple(levels.tolist())


def _exchange(chains: Chains, levels: Levels, need: int) -> Levels:
    """Lower at most one column and raise another as far as the utility allows, while that is better."""
    while True:
        best = levels
        for other in _exchanges(chains, levels, need):
            best = _better(chains, best, other)
        if best is levels:
            return levels
        levels = best


def _exchanges(chains: Chains, levels: Levels, need: int) -> Iterator[Levels]:
    for start in (levels, *_lower(chains, levels)):
        spare = chains.utility_of(start) - need
        for a in np.flatnonzero(start == levels).tolist():
            utility = chains.utility[a]
            allowed = [x for x in chains.distinct_levels(a) if utility[start[a]] - utility[x] <= spare]
            if allowed[-1] > start[a]:
                yield _with(start, a, allowed[-1])


def _lower(chains: Chains, levels: Levels) -> Iterator[Levels]:
    for a in range(chains.n_columns):
        for level in chains.distinct_levels(a):
            if level < levels[a]:
                yield _with(levels, a, level)


def _with(levels: Levels, column: int, level: int) -> Levels:
    out = levels.copy()
    out[column] = level
    return out


__all__ = [
    "Chains",
    "Relaxation",
    "chains_of",
    "check_acceptance",
    "is_accepted",
    "least_acceptance",
    "level_sets",
    "relaxations",
    "slack_of",
    "solve",
]
