"""Risk and utility from their definitions, in Python's own numbers: what the optimizers are compared with.

Nothing here knows codes, levels of kernels or units: a generalization is one node per column, a row is covered if each
of its leaves lies below the node.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from sfumato.methods.risk_utility.problem import (
    Lagrangian,
    LatticeProblem,
    LogRisk,
    MostUtility,
    Objective,
    Threshold,
)


def generalizations(problem: LatticeProblem, row: int):
    """All generalizations of a row: levels, without those that repeat a node."""
    lattice = problem.lattice
    chains = []
    for a in range(problem.n_columns):
        chain, last = [], None
        for level in range(int(lattice.n_levels[a])):
            node = node_of(problem, row, a, level)
            if node != last:
                chain.append(level)
            last = node
        chains.append(chain)
    return itertools.product(*chains)


def node_of(problem: LatticeProblem, row: int, a: int, level: int) -> int:
    lattice = problem.lattice
    node = int(lattice.node[lattice.start[a] + int(problem.rows[row, a]) * int(lattice.n_levels[a])])
    height = int(lattice.n_levels[a]) - 1
    while int(lattice.depth[node]) > height - level:
        node = int(lattice.parent[node])
    return node


PEOPLE = "_rows_of_people"


def name_people(problem: LatticeProblem, rows) -> None:
    """From now on a box covers the people who have a row in it, of these (codes, person)."""
    problem.__dict__[PEOPLE] = list(rows)


def measure(problem: LatticeProblem, row: int, levels) -> tuple[int, int, int]:
    """Rows covered (or people, if they have names), weight, utility."""
    lattice = problem.lattice
    nodes = [node_of(problem, row, a, level) for a, level in enumerate(levels)]
    weight, utility = problem.floor, 0
    for a, node in enumerate(nodes):
        own = int(lattice.weight[node])
        weight += round(float(problem.factor[row, a]) * own) if problem.is_personal else own
        utility += int(lattice.utility[node])

    def covers(codes) -> bool:
        return all(
            int(lattice.low[node]) <= code < int(lattice.high[node])
            for node, code in zip(nodes, codes, strict=True)
        )

    covered = int(problem.own[row])
    if PEOPLE in problem.__dict__:
        covered += len({person for codes, person in problem.__dict__[PEOPLE] if covers(codes)})
    else:
        side = zip(problem.side.tolist(), problem.side_count.tolist(), strict=True)
        covered += sum(count for codes, count in side if covers(codes))
    return covered, weight, utility


def is_feasible(problem: LatticeProblem, objective: Threshold, row: int, utility: int) -> bool:
    """u(x) >= u(top) + c (u(raw) - u(top)), with the rounding of utilities forgiven."""
    least = problem.least_utility
    raw = measure(problem, row, [0] * problem.n_columns)[2]
    slack = 0 if problem.utility_unit == 1 or objective.at_least == 1 else problem.n_columns
    return utility >= max(least, least + objective.at_least * (raw - least) - slack)


def risk(problem: LatticeProblem, covered: int, weight: int) -> Fraction:
    """Phi / |rho| in real units; who is covered by nobody counts as one."""
    return Fraction(weight) * Fraction(problem.weight_unit) / max(covered, 1)


def worth(problem: LatticeProblem, objective: Objective, covered: int, weight: int, utility: int):
    """What is best is greatest: an exact number, but for logarithms."""
    if isinstance(objective, Threshold):
        return -Fraction(weight, max(covered, 1))
    if isinstance(objective, MostUtility):
        return utility, -risk(problem, covered, weight)
    real_weight = Fraction(weight) * Fraction(problem.weight_unit)
    real_utility = Fraction(utility) * Fraction(problem.utility_unit)
    if isinstance(objective, Lagrangian):
        return objective.price * max(covered, 1) / real_weight + real_utility**objective.power
    assert isinstance(objective, LogRisk)
    return float(real_utility) - float(objective.price) * math.log(float(real_weight) / max(covered, 1))


def best(problem: LatticeProblem, objective: Objective, row: int):
    """(worth, utility, levels) of the best generalization: worth, then utility, then the least levels.

    None where a limit of risk allows none.
    """
    found = None
    for levels in generalizations(problem, row):
        covered, weight, utility = measure(problem, row, levels)
        if isinstance(objective, Threshold) and not is_feasible(problem, objective, row, utility):
            continue
        if isinstance(objective, MostUtility) and risk(problem, covered, weight) > objective.at_most:
            continue
        key = (
            worth(problem, objective, covered, weight, utility),
            utility,
            tuple(-level for level in levels),
        )
        if found is None or key > found:
            found = key
    if found is None:
        return None
    return found[0], found[1], tuple(-level for level in found[2])


# ---- orders ---------------------------------------------------------------------------------------------


def is_above(one, other) -> bool:
    """Does one generalize the other, level by level?"""
    return all(x >= y for x, y in zip(one, other, strict=True))


def parents(levels, heights):
    """The immediate generalizations, one step up in one column."""
    return [
        tuple(x + (i == a) for i, x in enumerate(levels))
        for a, height in enumerate(heights)
        if levels[a] < height
    ]


def is_supermodular(values) -> bool:
    """Equation (1) of the paper for all pairs, of values by levels."""
    return all(
        values[tuple(map(min, x, y))] + values[tuple(map(max, x, y))] >= values[x] + values[y]
        for x, y in itertools.combinations(values, 2)
    )
