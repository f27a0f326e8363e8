"""Draw rows at random, and publish the boxes that enough of them have: differentially private [LQS12].

The box of a row is any function of the row and of a *public* side table: the best generalization that an optimizer
finds. Each row is drawn with chance s, by itself. A box is published as often as it was drawn, if that is at least k0
times, and not at all otherwise; nothing else is. Why that is (epsilon, delta)-differentially private, and for which
delta: ``proof.md``, beside this file, and :mod:`sfumato.policy.options.sampling_plan`.

Departs from the paper: Algorithm 3 [FEB12, section 3.3] lets the table itself say which boxes may be published, and
how good they are. That is not private, for two reasons (:mod:`sfumato.methods.risk_utility.paper.exponential` is that
algorithm, for study).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.risk_utility.problem import Ints, LatticeProblem, Solution, distinct_rows
from sfumato.policy.options.sampling_plan import Plan
from sfumato.privacy.mechanisms import Coins

Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class DrawnBoxes:
    """Distinct boxes in the order of their nodes, and how often each is published."""

    nodes: Nodes  # (boxes, columns) numbered through all columns, as in the lattice
    count: Ints  # (boxes,)

    @property
    def n_rows(self) -> int:
        return int(self.count.sum())

    def __len__(self) -> int:
        return len(self.count)

    def rows(self) -> Nodes:
        """The box of each published row."""
        return np.repeat(self.nodes, self.count, axis=0)


def draw(problem: LatticeProblem, solution: Solution, plan: Plan, coins: Coins) -> DrawnBoxes:
    """What is published of a table, given the box of each of its (distinct) rows."""
    nodes, of_row = _boxes(problem, solution)
    is_drawn = coins.bernoulli(len(of_row), plan.s)
    drawn = np.bincount(of_row[is_drawn], minlength=len(nodes))
    return _frequent(nodes, drawn, plan.k0)


def _boxes(problem: LatticeProblem, solution: Solution) -> tuple[Nodes, Ints]:
    """The distinct boxes, in the order of their nodes, and which of them each row of the table has."""
    chosen = problem.nodes_of(solution.which, solution.levels)
    nodes, at, _ = distinct_rows(chosen.astype(np.uint32))
    of_distinct = np.empty(problem.n, dtype=np.int64)
    of_distinct[solution.which] = at
    return nodes.astype(np.int64), of_distinct[problem.of_row]


def _frequent(nodes: Nodes, drawn: Ints, k0: int) -> DrawnBoxes:
    """The boxes that were drawn at least k0 times."""
    is_published = drawn >= k0
    return DrawnBoxes(nodes[is_published], drawn[is_published])


def outlook(problem: LatticeProblem, solution: Solution, plan: Plan) -> float:
    """Of the rows of a table, the share whose box is expected to be drawn at least k0 times.

    Asked of the side table, as if it were the table, it depends on nothing secret, and says whether a table of its kind
    and size can be published in these boxes.
    """
    _, of_row = _boxes(problem, solution)
    n_alike = np.bincount(of_row)
    is_enough = n_alike >= math.ceil(plan.k0 / plan.s)
    return float(n_alike[is_enough].sum() / max(len(of_row), 1))


__all__ = ["DrawnBoxes", "draw", "outlook"]
