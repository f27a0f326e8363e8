r"""The greatest Lagrangian of one row by minimum cuts [FEB12, Theorem 2].

Dinkelbach's iteration: at :math:`\alpha`, the best value so far, the greatest

.. math:: g(x) = \lambda |\rho(x)| + \Phi(x) (u(x)^\kappa - \alpha)

is 0 exactly if nothing is better than :math:`\alpha`; otherwise its x is. Each step of a ladder asks one question:
does x stand below it? |rho| rewards a row of the side table if the answer is no for all steps that the row needs; for
:math:`\kappa = 1` the product of Phi and u rewards pairs of steps with the answer yes. Such a g has its maximum at a
minimum cut, whose nodes are steps and rows.

Departs from the paper: it searches :math:`\alpha` by halving an interval, with any algorithm for supermodular functions.

For :math:`\kappa > 1` utility to a power is bounded from above by chords. Every utility lies in the range of some chord,
which is exact at the ends of its range; where a chord promises more than there is, at a utility within its range, the
range is parted there.

Capacities are rounded to whole numbers, so a cut proves g only up to ``SLACK`` units. All cuts that are no worse than the
minimum by that much are listed (arcs that can carry more than that are in none of them) and compared in fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.risk_utility.paper.kernels.bracket import Standing, count_covered
from sfumato.methods.risk_utility.paper.kernels.flow import (
    ENDLESS,
    SINK,
    SOURCE,
    UNKNOWN,
    Network,
    fill_star,
    push_flow,
    spread_side,
)
from sfumato.methods.risk_utility.paper.kernels.marginal import Ladder
from sfumato.methods.risk_utility.problem import Lagrangian

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Steps = tuple[int, ...]

CAPACITY = 1 << 60
"""All capacities together, in units of a cut."""

SLACK = 1 << 26
"""Units by which g may be off: more than one for each capacity, and more than floats err in 2^60."""

MOST_CAPACITIES = 1 << 22
"""Beyond, rounding could reach the slack."""

MOST_CUTS = 256
"""Of those that are as good as the least one, as far as whole numbers tell."""

FROM, TO = 0, 1
"""Nodes of the source and the sink; steps follow, then rows."""


@dataclass(frozen=True, eq=False)
class Bracket:
    """Where the best generalization of a row must lie, and the rows of the side table that it may cover.

    ``low`` and ``high`` (columns,) are steps of the ladder. The first ``n`` rows of ``standing`` count; none of them
    stands below ``low`` or above ``high``.
    """

    ladder: Ladder
    low: Ints
    high: Ints
    standing: Standing
    n: int
    floor: int
    weight_unit: float
    utility_unit: float

    def measure(self, steps: Ints) -> tuple[int, int, int]:
        """Rows covered, weight, utility."""
        at = np.arange(len(steps)), steps
        is_high = np.array_equal(steps, self.high)
        count = self.standing.n_rows
        covered = int(count[: self.n].sum() if is_high else count_covered(self.standing, self.n, steps))
        return (covered, int(self.ladder.weight[at].sum()) + self.floor, int(self.ladder.utility[at].sum()))

    def worth(self, objective: Lagrangian, steps: Ints) -> Fraction:
        return worth_of(objective, *self.measure(steps), self.weight_unit, self.utility_unit)

    @property
    def n_free(self) -> int:
        """Columns with more than one step."""
        return int((self.low < self.high).sum())


def worth_of(
    objective: Lagrangian, covered: int, weight: int, utility: int, weight_unit: float, utility_unit: float
) -> Fraction:
    r""":math:`\lambda |\rho| / \Phi + u^\kappa`, exactly.

    >>> worth_of(Lagrangian(Fraction(1, 3), 2), 5, 2, 3, 0.5, 1.0)
    Fraction(32, 3)
    """
    risk = Fraction(weight) * Fraction(weight_unit) / max(covered, 1)
    return Fraction(objective.price) / risk + (Fraction(utility) * Fraction(utility_unit)) ** objective.power


def best_of(bracket: Bracket, objective: Lagrangian, steps: Ints) -> tuple[Ints, bool]:
    """The best steps within a bracket, and whether that is proved; ``steps`` are good ones to begin with.

    Best is the greatest value, then the most utility, then the least levels: the least of all that have the greatest
    value, for with two of these their meet has it, too.
    """
    graph = _Graph(bracket)
    best, alpha = steps, bracket.worth(objective, steps)
    if graph.n_capacities > MOST_CAPACITIES:
        return best, False
    unit = Fraction(bracket.utility_unit)
    ends = [bracket.measure(end)[2] * unit for end in (bracket.high, bracket.low)]
    chords, is_proved = [(ends[0], ends[1])], True
    while chords:
        chord = chords.pop()
        cut = graph.find_cut(objective, alpha, chord)
        found = bracket.worth(objective, cut.steps)
        if found > alpha:
            best, alpha = cut.steps, found
            chords.append(chord)
            continue
        covered, weight, utility = bracket.measure(cut.steps)
        if cut.bound(covered, weight, utility * unit) < -cut.slack:
            continue
        if objective.power > 1 and chord[0] < utility * unit < chord[1]:
            chords += [(chord[0], utility * unit), (utility * unit, chord[1])]
            continue
        candidates = cut.near()
        is_proved &= len(candidates) <= MOST_CUTS
        best = _least(bracket, objective, [best, *candidates])
        alpha = bracket.worth(objective, best)
    return best, is_proved


def _least(bracket: Bracket, objective: Lagrangian, candidates: list[Ints]) -> Ints:
    """The best of a few, by the definition."""

    def key(steps: Ints) -> tuple[Fraction, int, Steps]:
        covered, weight, utility = bracket.measure(steps)
        worth = worth_of(objective, covered, weight, utility, bracket.weight_unit, bracket.utility_unit)
        return worth, utility, tuple((-steps).tolist())

    return max(candidates, key=key)


class _Graph:
    """Nodes and arcs of the cuts of one bracket; only capacities depend on alpha and chord."""

    def __init__(self, bracket: Bracket) -> None:
        self.bracket = bracket
        low, high, ladder = bracket.low, bracket.high, bracket.ladder
        n_steps = high - low
        self.column = np.repeat(np.arange(len(low)), n_steps)
        self.first = TO + 1 + np.cumsum(n_steps) - n_steps  # the node of the step above low
        self.n_steps = len(self.column)
        step = np.arange(self.n_steps) - (self.first - TO - 1)[self.column] + low[self.column] + 1
        here, below = (self.column, step), (self.column, step - 1)
        self.weights = (ladder.weight[below] - ladder.weight[here]).astype(np.float64)
        self.utilities = (ladder.utility[below] - ladder.utility[here]) * bracket.utility_unit
        stands = bracket.standing.step
        needs = stands[:, : bracket.n] > low[:, None]
        rows = np.flatnonzero(needs.any(axis=0))
        self.supply = bracket.standing.n_rows[rows].astype(np.float64)
        column, row = np.nonzero(needs[:, rows])
        self._link(self.first[column] + stands[column, rows[row]] - low[column] - 1, row)

    def _link(self, step_of_need: Ints, row: Ints) -> None:
        """Arcs, in this order: steps to the sink, source to steps, pairs of steps, source to rows, endless ones."""
        nodes = np.arange(TO + 1, TO + 1 + self.n_steps)
        self.pairs = self._pairs()
        rows = TO + 1 + self.n_steps + np.arange(len(self.supply))
        chained = np.flatnonzero(self.column[1:] == self.column[:-1]) + 1  # a step needs the one below it
        ends = [
            (nodes, np.full(self.n_steps, TO)),
            (np.full(self.n_steps, FROM), nodes),
            (nodes[self.pairs[0]], nodes[self.pairs[1]]),
            (np.full(len(rows), FROM), rows),
            (nodes[chained], nodes[chained - 1]),
            (rows[row], step_of_need),
        ]
        self.n_capacities = sum(len(tail) for tail, _ in ends[:4])
        tail, head = (np.concatenate([end[i] for end in ends]).astype(np.int32) for i in (0, 1))
        self.n_nodes = TO + 1 + self.n_steps + len(rows)
        start, arcs = np.empty(self.n_nodes + 1, dtype=np.int64), np.empty(2 * len(tail), dtype=np.int32)
        self.network = Network(tail, head, start, arcs)
        fill_star(self.network)

    def _pairs(self) -> tuple[Ints, Ints]:
        """Steps of two columns that both give up weight for utility."""
        product = np.outer(self.weights, self.utilities)
        product = product + product.T
        product[self.column[:, None] >= self.column[None, :]] = 0
        self.product = product
        first, second = np.nonzero(product)
        return first, second

    @cached_property
    def own_product(self) -> Floats:
        """Products of weight and utility within a column: both steps are above x exactly if the lower one is."""
        out = np.zeros(self.n_steps)
        for column in np.unique(self.column):
            at = np.flatnonzero(self.column == column)
            weight, utility = self.weights[at], self.utilities[at]
            from_here = np.cumsum(utility[::-1])[::-1]
            above = np.cumsum(weight[::-1])[::-1] - weight
            out[at] = weight * from_here + utility * above
        return out

    def find_cut(self, objective: Lagrangian, alpha: Fraction, chord: tuple[Fraction, Fraction]) -> _Cut:
        """The least cut for one alpha and one range of utilities."""
        slope = slope_of(objective.power, *chord)
        _, weight, utility = self.bracket.measure(self.bracket.high)
        level = chord[0] ** objective.power + slope * (
            utility * Fraction(self.bracket.utility_unit) - chord[0]
        )
        spare, tilt = float(alpha - level), float(slope)
        price = objective.price / Fraction(self.bracket.weight_unit)
        pairs = tilt * self.product[self.pairs] / 2
        gain = tilt * (weight * self.utilities + self.own_product)
        gain += np.bincount(self.pairs[0], pairs, self.n_steps) + np.bincount(
            self.pairs[1], pairs, self.n_steps
        )
        loss, supply = spare * self.weights, float(price) * self.supply
        capacity = gain.sum() + loss.sum() + 2 * pairs.sum() + supply.sum()
        scale = CAPACITY / (capacity or 1.0)  # 0 where all of the bracket is alike
        capacities = np.zeros((len(self.network.tail), 2), dtype=np.int64)
        finite = np.concatenate([np.maximum(gain - loss, 0), np.maximum(loss - gain, 0), pairs, supply])
        capacities[: len(finite), 0] = np.rint(finite * scale)
        capacities[len(finite) :, 0] = ENDLESS
        both_ways = slice(2 * self.n_steps, 2 * self.n_steps + len(pairs))
        capacities[both_ways, 1] = capacities[both_ways, 0]
        residual = capacities.reshape(-1)
        push_flow(self.network, FROM, TO, residual)
        return _Cut(self, residual, price, alpha, chord, slope, objective.power, SLACK / scale)


def slope_of(power: int, low: Fraction, high: Fraction) -> Fraction:
    """Of the chord of a power between two utilities; that of the power itself where they are one.

    >>> slope_of(2, Fraction(1), Fraction(3)), slope_of(3, Fraction(2), Fraction(2))
    (Fraction(4, 1), Fraction(12, 1))
    """
    if low == high:
        return power * low ** (power - 1)
    return Fraction(high**power - low**power) / (high - low)


@dataclass(frozen=True, eq=False)
class _Cut:
    """A maximum flow, and what it proves."""

    graph: _Graph
    residual: Ints
    price: Fraction
    alpha: Fraction
    chord: tuple[Fraction, Fraction]
    slope: Fraction
    power: int
    slack: float

    def bound(self, covered: int, weight: int, utility: Fraction) -> Fraction:
        """What the cut promises: g with the chord in place of the power."""
        chord = self.chord[0] ** self.power + self.slope * (utility - self.chord[0])
        return self.price * covered + weight * (chord - self.alpha)

    def _spread(self, side: NDArray[np.uint8], node: int, to: int, at_least: int) -> None:
        spread_side(self.graph.network, self.residual, at_least, node, to, side)

    def _steps(self, side: NDArray[np.uint8]) -> Ints:
        graph = self.graph
        is_up = side[TO + 1 : TO + 1 + graph.n_steps] == SOURCE
        return graph.bracket.low + np.bincount(graph.column[is_up], minlength=len(graph.bracket.low))

    @cached_property
    def steps(self) -> Ints:
        """The least steps of a least cut."""
        side = np.zeros(self.graph.n_nodes, dtype=np.uint8)
        self._spread(side, FROM, SOURCE, 0)
        return self._steps(side)

    def near(self) -> list[Ints]:
        """The steps of all cuts that are as good, as far as whole numbers tell; more than MOST_CUTS are not listed."""
        side = np.zeros(self.graph.n_nodes, dtype=np.uint8)
        self._spread(side, FROM, SOURCE, SLACK)
        self._spread(side, TO, SINK, SLACK)
        open_, found = [side], list[Ints]()
        while open_ and len(found) <= MOST_CUTS:
            side = open_.pop()
            unknown = np.flatnonzero(side[: TO + 1 + self.graph.n_steps] == UNKNOWN)
            if not len(unknown):
                found.append(self._steps(side))
                continue
            other = side.copy()
            self._spread(side, int(unknown[0]), SOURCE, SLACK)
            self._spread(other, int(unknown[0]), SINK, SLACK)
            open_ += [side, other]
        return found


__all__ = ["Bracket", "best_of", "slope_of", "worth_of"]
