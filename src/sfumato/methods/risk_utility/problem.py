r"""What is optimized: for each row the levels of its generalization, in whole numbers.

A *generalization* of a row is one level per column (:mod:`sfumato.methods.risk_utility.kernels.lattice`). It has

- utility u(x), the sum of the utilities of its nodes;
- weight Phi(x), the sum of their weights and of the floor;
- |rho(x)|, the rows of the side table that it covers. A row that the side table lacks counts itself as one more.

Its risk is Phi(x) / |rho(x)| [FEB12, section 2.1.2]. Utilities and weights are rounded once to whole multiples of a unit
(``utility_unit``, ``weight_unit``), so that every comparison of two risks is one of whole numbers: products of weights
and counts stay below 2^63.

Rows that are alike are optimized once: a problem holds distinct rows, unless weights are personal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Codes, TreeDomain
from sfumato.errors import InternalError, PolicyError
from sfumato.methods.risk_utility import model
from sfumato.methods.risk_utility.kernels.lattice import (
    Joins,
    Lattice,
    LatticeMeasures,
    SideRows,
    TableRows,
    fill_measures,
)
from sfumato.methods.risk_utility.people import SidePeople, count_people
from sfumato.policy.options.risk_utility import (
    LAGRANGIAN,
    MOST_UTILITY,
    THRESHOLD,
    Absolute,
    AtLeast,
    RiskUtilityOptions,
    Utility,
    Weights,
)
from sfumato.table.combinations import number_combinations

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Levels = NDArray[np.uint8]

GREATEST_WEIGHT = 1 << 34
GREATEST_COUNT = 1 << 28
"""Their product fits in 63 bits."""

UTILITY_SCALE = 1 << 40
"""Units of a utility that is not made of whole numbers; fewer where utilities exceed 2^20."""

GREATEST_UTILITY = 1 << 60


# ---- objectives -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Threshold:
    """Least risk with at least a given utility [FEB12, definition 1], or a share of that of the row as it is.

    A share is part of the way from the utility of the row suppressed to that of the row as it is.
    Ties: least risk, then most utility, then the least levels, the first column's first.
    """

    at_least: AtLeast


@dataclass(frozen=True, slots=True)
class Lagrangian:
    r"""The greatest :math:`\lambda / r(x) + u(x)^\kappa` [FEB12, equation 4]."""

    price: Fraction
    power: int = 1


@dataclass(frozen=True, slots=True)
class LogRisk:
    r"""The greatest :math:`u(x) - \lambda \ln r(x)`. Ours: the Lagrangian is nearly always raw or suppressed."""

    price: Fraction


@dataclass(frozen=True, slots=True)
class MostUtility:
    """Most utility with a given risk at most. Ours: what an owner asks who was told how much risk is allowed.

    Ties: most utility, then least risk, then the least levels, the first column's first.
    """

    at_most: Fraction


Objective = Threshold | Lagrangian | LogRisk | MostUtility


def objective_of(options: RiskUtilityOptions) -> Objective:
    """What the options ask for.

    >>> objective_of(RiskUtilityOptions())
    Threshold(at_least=Fraction(3, 5))
    """
    if options.objective == THRESHOLD:
        return Threshold(options.utility_at_least)
    if options.objective == MOST_UTILITY:
        if options.risk_at_most is None:
            raise InternalError(f"The objective {options.objective} has no limit of risk.")
        return MostUtility(options.risk_at_most)
    if options.price is None:
        raise InternalError(f"The objective {options.objective} has no price.")
    if options.objective == LAGRANGIAN:
        return Lagrangian(options.price, options.kappa)
    return LogRisk(options.price)


# ---- the problem ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LatticeProblem:
    """Rows to be generalized, the rows of the side table, and what generalizations are worth.

    ``of_row`` says which of the (distinct) ``rows`` each row of the table is, ``n_alike`` how many rows of the table are
    the same, ``own`` is 1 where the side table lacks a row. ``factor`` has no columns unless weights are personal; it
    multiplies the weights of the lattice, which are then in smaller units than ``weight_unit``. ``number`` is for
    searches that draw: of a part of the rows, each keeps the number that it has among all.
    """

    lattice: Lattice
    rows: Codes  # (rows, columns)
    of_row: Ints  # (rows of the table,)
    side: Codes  # (distinct rows of the side table, columns)
    side_count: Ints  # (distinct rows of the side table,)
    own: Ints  # (rows,)
    floor: int
    utility_unit: float
    weight_unit: float
    factor: Floats  # (rows, columns or none)
    number: Ints  # (rows,)
    people: SidePeople | None = None
    """Those of the side table, if they count; ``side_count`` then counts them, too."""

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def n_columns(self) -> int:
        return int(self.rows.shape[1])

    @property
    def n_side(self) -> int:
        """Rows of the side table, or people: all of them."""
        return int(self.side_count.sum()) if self.people is None else self.people.n

    @property
    def joins(self) -> Joins:
        """What else is counted beside the rows of the side table, since people do not add up."""
        if self.people is None:
            return Joins(np.zeros((0, self.n_columns), dtype=np.int32), np.zeros(0, dtype=np.int64))
        return self.people.joins

    @property
    def is_personal(self) -> bool:
        return bool(self.factor.shape[1])

    @cached_property
    def n_alike(self) -> Ints:
        return np.bincount(self.of_row, minlength=self.n)

    @cached_property
    def raw_utility(self) -> Ints:
        """Of each row as it is."""
        return self.utility_of(np.arange(self.n), np.zeros((self.n, self.n_columns), dtype=np.uint8))

    @cached_property
    def least_utility(self) -> int:
        """Of a row that is suppressed: the sum of the roots'."""
        return int(self.lattice.utility[self.lattice.root].sum())

    def need(self, at_least: AtLeast) -> Ints:
        """The least whole utility that reaches the threshold, for each row, in exact arithmetic.

        Where utilities are not whole by nature, half a unit per column is left for rounding. If the threshold is a
        utility, a row may need more than it has as it is.
        """
        slack = 0 if self.utility_unit == 1 else self.n_columns
        if isinstance(at_least, Absolute):
            whole = math.ceil(at_least.value / Fraction(self.utility_unit)) - slack
            return np.full(self.n, min(max(whole, self.least_utility), GREATEST_UTILITY), dtype=np.int64)
        p, q = at_least.numerator, at_least.denominator
        least = self.least_utility
        distinct, at = np.unique(self.raw_utility, return_inverse=True)
        found = [
            least + max(0, -(-p * (raw - least) // q) - (slack if p < q else 0)) for raw in distinct.tolist()
        ]
        return np.array(found, dtype=np.int64)[at]

    def limit(self, objective: MostUtility) -> RiskLimit:
        """What a generalization may weigh by the rows that it covers."""
        return RiskLimit.of(objective.at_most / Fraction(self.weight_unit), most_covered=self.n_side + 1)

    def allows(self, objective: MostUtility, covered: Ints, weight: Ints) -> NDArray[np.bool_]:
        """Is the risk of generalizations as small as is asked for? In exact arithmetic."""
        limit = self.limit(objective)
        covered = np.maximum(covered, 1)
        return np.asarray(weight <= covered * limit.whole + covered * limit.part // limit.parts)

    def weight_bounds(self) -> tuple[int, int]:
        """No generalization of any row weighs less than the first, or more than the second."""
        least, greatest = (
            end.reduceat(self.lattice.weight, self.lattice.root) for end in (np.minimum, np.maximum)
        )
        if not self.is_personal:
            return int(least.sum()) + self.floor, int(greatest.sum()) + self.floor
        each = [np.rint(self.factor * by_column).sum(axis=1) for by_column in (least, greatest)]
        return int(each[0].min()) + self.floor, int(each[1].max()) + self.floor

    def top(self) -> Levels:
        """The levels of total suppression."""
        return (self.lattice.n_levels - 1).astype(np.uint8)

    def suppressed(self, which: Ints) -> Solution:
        """Some rows with nothing told of them: the least risk that there is, which covers every row."""
        levels = np.tile(self.top(), (len(which), 1))
        weight, utility = self.weight_of(which, levels), self.utility_of(which, levels)
        nothing = np.zeros(len(which), dtype=np.bool_)
        return Solution(which, levels, self.n_side + self.own[which], weight, utility, nothing)

    def nodes_of(self, which: Ints, levels: Levels) -> NDArray[np.int32]:
        """The nodes (which, columns) of generalizations of some rows."""
        lattice = self.lattice
        at = lattice.start + self.rows[which].astype(np.int64) * lattice.n_levels + levels
        return lattice.node[at]

    def utility_of(self, which: Ints, levels: Levels) -> Ints:
        return np.asarray(self.lattice.utility[self.nodes_of(which, levels)].sum(axis=1))

    def weight_of(self, which: Ints, levels: Levels) -> Ints:
        weight = self.lattice.weight[self.nodes_of(which, levels)]
        if self.is_personal:
            weight = np.rint(self.factor[which] * weight).astype(np.int64)
        return np.asarray(weight.sum(axis=1) + self.floor)

    def pack_rows(self) -> Codes:
        """All that is known of each row, as an engine hands rows on: whole numbers of 32 bits."""
        beside = np.stack([self.own, self.number], axis=1).astype(np.uint32)
        return np.concatenate([self.rows, beside, self.factor.view(np.uint32)], axis=1)

    def of_packed(self, packed: Codes) -> LatticeProblem:
        """The same problem with rows that were packed, each of them once; this one's own are not looked at."""
        at, n_words = self.n_columns + 2, 2 * self.factor.shape[1]
        own, number = (packed[:, column].astype(np.int64) for column in (at - 2, at - 1))
        return replace(
            self,
            rows=np.ascontiguousarray(packed[:, : self.n_columns]),
            of_row=np.arange(len(packed)),
            own=own,
            factor=np.ascontiguousarray(packed[:, at : at + n_words]).view(np.float64),
            number=number,
        )

    @cached_property
    def table_rows(self) -> TableRows:
        """The rows to be generalized, as kernels take them."""
        return TableRows(self.rows, self.factor, self.own, self.floor)

    def measure(self, which: Ints, levels: Levels) -> LatticeMeasures:
        """What generalizations of some rows cover, weigh and tell, by looking at the whole side table."""
        out = LatticeMeasures(*(np.empty(len(which), dtype=np.int64) for _ in LatticeMeasures._fields))
        side = SideRows(self.side, self.side_count)
        fill_measures(self.lattice, self.table_rows, side, self.joins, which, levels, out)
        return out

    def solution(self, levels: Levels, *, which: Ints | None = None, is_proved: Any = False) -> Solution:
        """A solution of these levels, measured by the definition."""
        which = np.arange(self.n) if which is None else which
        proved = np.broadcast_to(np.asarray(is_proved, dtype=np.bool_), (len(which),)).copy()
        return Solution(which, levels, *self.measure(which, levels), proved)

    def risk(self, solution: Solution) -> Floats:
        """Phi / |rho| in real units; a generalization that covers nobody counts one row."""
        return solution.weight * self.weight_unit / np.maximum(solution.covered, 1)

    def value(self, objective: Lagrangian | LogRisk, solution: Solution) -> Floats:
        """The objective at a solution, as floats."""
        return values_of(
            objective,
            solution.covered,
            solution.weight * self.weight_unit,
            solution.utility * self.utility_unit,
        )

    def lambda_0(self) -> float:
        """The price at which the row as it is and the row suppressed are worth about the same: u_max Phi(top) / N."""
        top = float(self.lattice.weight[self.lattice.root].sum() + self.floor) * self.weight_unit
        u_max = float(self.raw_utility.max(initial=0) - self.least_utility) * self.utility_unit
        return u_max * top / max(self.n_side, 1)


@dataclass(frozen=True, slots=True)
class RiskLimit:
    """The greatest weight w with a risk w / c below a limit, for every number c of rows covered, in whole numbers.

    It is c ``whole`` + floor(c ``part`` / ``parts``): exact, though no product needs more than 63 bits.
    """

    whole: int
    part: int
    parts: int

    @classmethod
    def of(cls, limit: Fraction, *, most_covered: int) -> RiskLimit:
        """A limit in units of weight; nothing weighs more than ``GREATEST_WEIGHT``.

        A risk is a fraction with a denominator of at most ``most_covered``, so the greatest such fraction that is not
        above the limit serves as well.

        >>> RiskLimit.of(Fraction(7, 20), most_covered=10)
        RiskLimit(whole=0, part=1, parts=3)
        >>> RiskLimit.of(Fraction(13, 4), most_covered=10)
        RiskLimit(whole=3, part=1, parts=4)
        """
        near = min(limit, Fraction(GREATEST_WEIGHT)).limit_denominator(most_covered)
        if near > limit:  # the one before it, of all fractions with such denominators
            p, q = near.numerator, near.denominator
            inverse = pow(p, -1, q)
            parts = inverse + (most_covered - inverse) // q * q
            near = Fraction((p * parts - 1) // q, parts)
        whole, part = divmod(near.numerator, near.denominator)
        return cls(whole, part, near.denominator)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Generalizations of some rows of a problem: what each covers, weighs and tells, and whether it is proved best."""

    which: Ints
    levels: Levels  # (which, columns)
    covered: Ints
    weight: Ints
    utility: Ints
    is_proved: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.which)

    @classmethod
    def join(cls, parts: Sequence[Solution]) -> Solution:
        """Those of all rows, of which each part has some: it numbers them from 0."""
        joined = [np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__[1:]]
        return cls(np.arange(len(joined[0])), *joined)

    def take(self, at: Any) -> Solution:
        """Some of the generalizations."""
        return Solution(*(getattr(self, name)[at] for name in self.__slots__))

    def put(self, at: Ints, other: Solution) -> None:
        """Put the generalizations of another solution in the place of those at ``at``."""
        for name in self.__slots__:
            getattr(self, name)[at] = getattr(other, name)


def values_of(objective: Lagrangian | LogRisk, covered: Any, weight: Any, utility: Any) -> Floats:
    """An objective by its definition: counts, and weights and utilities in real units.

    >>> float(values_of(Lagrangian(Fraction(2), power=2), 3, 0.5, 4.0)), float(values_of(LogRisk(Fraction(1)), 1, 1, 4))
    (28.0, 4.0)
    """
    price = float(objective.price)
    covered = np.maximum(covered, 1)
    if isinstance(objective, Lagrangian):
        return np.asarray(price * covered / weight + np.asarray(utility, dtype=np.float64) ** objective.power)
    return np.asarray(utility - price * np.log(weight / covered))


# ---- how it is made -------------------------------------------------------------------------------------


def lattice_of(
    domains: Sequence[TreeDomain], utility: Utility, weights: Weights, *, floor: float = 0.0
) -> tuple[Lattice, int, float, float]:
    """Hierarchies, utilities and weights as whole numbers: (lattice, floor, unit of utility, unit of weight).

    A weight that would be rounded to 0 is an error: what it protects would be published as it is.
    """
    trees = [domain.hierarchy for domain in domains]
    values = [
        model.utilities(domain.attribute, tree, utility) for domain, tree in zip(domains, trees, strict=True)
    ]
    sensitivities = [
        model.weights(domain.attribute, tree, weights, n_columns=len(trees))
        for domain, tree in zip(domains, trees, strict=True)
    ]
    utility_unit = _utility_unit(values)
    greatest = sum(float(part.max()) for part in sensitivities) + floor
    weight_unit = 2.0 ** (math.ceil(math.log2(greatest)) + 1) / GREATEST_WEIGHT if greatest > 0 else 1.0
    for domain, own in zip(domains, sensitivities, strict=True):
        _check_some(own, weight_unit, f"weight of column {domain.attribute.name!r}")
    _check_some(np.array([floor]), weight_unit, "floor")
    root = np.cumsum([0, *(tree.n_nodes for tree in trees)])
    n_levels = np.array([tree.height + 1 for tree in trees], dtype=np.int64)
    sizes = [tree.n_leaves * (tree.height + 1) for tree in trees]
    parent = [
        np.maximum(tree.parent, 0) + first for tree, first in zip(trees, root[:-1].tolist(), strict=True)
    ]
    lattice = Lattice(
        n_levels,
        root[:-1].astype(np.int64),
        np.cumsum([0, *sizes])[:-1].astype(np.int64),
        np.concatenate(
            [_chains(tree) + first for tree, first in zip(trees, root[:-1].tolist(), strict=True)]
        ).astype(np.int32),
        np.concatenate(parent).astype(np.int32),
        np.concatenate([tree.depth for tree in trees]).astype(np.int32),
        np.concatenate([tree.low for tree in trees]).astype(np.int64),
        np.concatenate([tree.high for tree in trees]).astype(np.int64),
        np.rint(np.concatenate(values) / utility_unit).astype(np.int64),
        np.rint(np.concatenate(sensitivities) / weight_unit).astype(np.int64),
    )
    return lattice, round(floor / weight_unit), utility_unit, weight_unit


def _check_some(numbers: Floats, unit: float, what: str) -> None:
    """Raise if a number above 0 would be rounded to 0."""
    if np.any((numbers > 0) & (np.rint(numbers / unit) == 0)):
        raise PolicyError(
            f"A {what} is above 0, but not {2 / GREATEST_WEIGHT:.0e} of all weights together, and would count for "
            "nothing; bring them nearer to each other."
        )


def _utility_unit(values: Sequence[Floats]) -> float:
    """1 where all utilities are whole; else so small a power of 2 that their sums just fit.

    >>> _utility_unit([np.array([0.0, 2.0])]), _utility_unit([np.array([0.0, 0.5])]) == 2.0**-40
    (1.0, True)
    """
    greatest = sum(float(part.max()) for part in values)
    if greatest < GREATEST_UTILITY and all(np.all(part == np.rint(part)) for part in values):
        return 1.0
    return max(1.0, 2.0 ** math.ceil(math.log2(greatest)) * UTILITY_SCALE / GREATEST_UTILITY) / UTILITY_SCALE


def _chains(tree: Any) -> Ints:
    """node[code * n_levels + level]: the lowest ancestor whose depth is at most height - level."""
    node = tree.leaf_nodes.astype(np.int64)
    parent, depth = np.maximum(tree.parent, 0).astype(np.int64), tree.depth
    out = np.empty((tree.n_leaves, tree.height + 1), dtype=np.int64)
    for level in range(tree.height + 1):
        node = np.where(depth[node] > tree.height - level, parent[node], node)
        out[:, level] = node
    return out.ravel()


def problem_of(
    domains: Sequence[TreeDomain],
    codes: Codes,
    side: Codes | None = None,
    *,
    utility: Utility = "depth",
    weights: Weights = Weights(),  # noqa: B008 - frozen
    floor: float = 0.0,
    factor: Floats | None = None,
    person: Ints | None = None,
) -> LatticeProblem:
    """The problem of rows of codes (rows, columns); without a ``side`` table they are their own.

    ``person`` is whose each row of the side table is, if people count.

    ``factor`` (rows, columns) are personal factors of the weights: then no two rows are alike. They are divided by a
    power of 2, so that none is above 1, and the unit of weight is multiplied by it.
    """
    scale = 1.0 if factor is None else 2.0 ** math.ceil(math.log2(factor.max(initial=1.0)))
    lattice, floor_, utility_unit, weight_unit = lattice_of(domains, utility, weights, floor=floor / scale)
    weight_unit *= scale
    distinct, at, count = distinct_rows(codes)
    others, others_count = (distinct, count) if side is None else distinct_rows(side)[::2]
    people = None
    if person is not None:
        people = count_people(codes if side is None else side, person, lattice)
        others, others_count = people.rows, people.n_alike
    if int(others_count.sum()) >= GREATEST_COUNT:
        raise InternalError("The side table has more rows than risks can be compared with.")
    own = np.zeros(len(distinct), dtype=np.int64) if side is None else _find_lacking(distinct, others)
    if factor is None:
        factor = np.zeros((len(distinct), 0))
    else:
        distinct, own, at = codes, own[at], np.arange(len(codes))
    return LatticeProblem(
        lattice, distinct, at, others, others_count, own, floor_, utility_unit, weight_unit,
        np.ascontiguousarray(factor / scale, dtype=np.float64), np.arange(len(distinct)),
        people,
    )  # fmt: skip


def distinct_rows(codes: Codes) -> tuple[Codes, Ints, Ints]:
    """Distinct rows in lexicographic order, which of them each row is, and how many there are of each."""
    found = number_combinations(list(codes.T))
    distinct = np.ascontiguousarray(codes[found.first_rows()], dtype=np.uint32)
    return distinct, found.number, found.count_rows()


def _find_lacking(rows: Codes, side: Codes) -> Ints:
    """1 for each (distinct) row that no (distinct) row of the side table equals."""
    both, at, _ = distinct_rows(np.concatenate([rows, side]))
    has = np.zeros(len(both), dtype=np.int64)
    has[at[len(rows) :]] = 1
    return 1 - has[at[: len(rows)]]


__all__ = [
    "Lagrangian",
    "LatticeProblem",
    "LogRisk",
    "MostUtility",
    "Objective",
    "RiskLimit",
    "Solution",
    "Threshold",
    "distinct_rows",
    "lattice_of",
    "objective_of",
    "problem_of",
    "values_of",
]
