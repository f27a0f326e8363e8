"""What the private variant of risk-utility gives away: nothing beyond the delta that it states.

In closed form: every output of tiny tables and of all their neighbours, with its exact chance, where boxes are what the
optimizer chose for each table anew. There are no false alarms. Mutants (k0 - 1; a larger chance of a row to be drawn)
must exceed the statement.

By sampling: 20,000 runs, whose outputs must follow the exact law by a chi-square test at a level of 1e-6: that is the
rate of false alarms, were draws not seeded. Wrong laws must be rejected at the same level.
"""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import naive_sampling as naive
import numpy as np
import pytest
from scipy import stats

from sfumato.encoding.domain import TreeDomain
from sfumato.methods.risk_utility.optimizers import exact
from sfumato.methods.risk_utility.private import draw
from sfumato.methods.risk_utility.problem import Lagrangian, LogRisk, Threshold, problem_of
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import Weights
from sfumato.policy.options.sampling_plan import Plan, delta_of, is_allowed
from sfumato.policy.schema import Attribute
from sfumato.privacy.mechanisms import seeded

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "reproduction"))

FALSE_ALARM = 1e-6
N_DATABASES = 420
TREES = (
    Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c", "d"]}}),
    Hierarchy.from_tree({"*": ["x", "y", "z"]}),
)
DOMAINS = [
    TreeDomain(Attribute(f"c{i}", "quasi-identifier"), tree, has_missing=False)
    for i, tree in enumerate(TREES)
]
PLANS = [
    (Fraction(e), Fraction(s), k0)
    for e in ("0.3", "0.7", "1", "2")
    for s in ("0.1", "0.25", "0.5", "0.6")
    for k0 in (1, 2, 3)
    if is_allowed(Fraction(e), Fraction(s))
]
OBJECTIVES = [
    Threshold(Fraction(1, 3)),
    Threshold(Fraction(2, 3)),
    Threshold(Fraction(1)),
    Lagrangian(Fraction(1, 2)),
    LogRisk(Fraction(1)),
]

pytestmark = pytest.mark.slow


def boxes(rows, side, objective):
    """The box of each row, chosen by the optimizer of the release."""
    problem = problem_of(DOMAINS, rows, side, weights=Weights("harmonic"), floor=0.5)
    nodes = problem.nodes_of(np.arange(problem.n), exact.solve(problem, objective).levels)
    return [tuple(nodes[at].tolist()) for at in problem.of_row]


def random_rows(random, n, skew):
    return np.stack(
        [(domain.n_codes * random.random(n) ** skew).astype(np.uint32) for domain in DOMAINS], axis=1
    )


def databases(n, *, seed=20120101):
    """Tables of up to seven rows with their boxes and those of every neighbour that has one row less, and a plan."""
    random = np.random.default_rng(seed)
    for at in range(n):
        objective, plan = OBJECTIVES[at % len(OBJECTIVES)], PLANS[random.integers(len(PLANS))]
        side = random_rows(random, random.integers(1, 12), 2)
        rows = random_rows(random, random.integers(1, 8), random.choice([1, 4, 12]))
        here = boxes(rows, side, objective)
        neighbours = []
        for away in range(len(rows)):
            others = np.delete(rows, away, axis=0)
            there = boxes(others, side, objective) if len(others) else []
            assert there == here[:away] + here[away + 1 :]  # a box depends on its row and the side table
            neighbours.append(there)
        yield here, neighbours, plan


def greatest_ratio(*, s_too_large=Fraction(0), k0_too_small=0):
    """The greatest true delta of all pairs of neighbours, as a share of the one that is stated."""
    worst = Fraction(0)
    for here, neighbours, (epsilon, s, k0) in databases(N_DATABASES):
        if k0 <= k0_too_small:
            continue
        stated = delta_of(epsilon, s, k0)
        law = naive.repaired(here, s + s_too_large, k0 - k0_too_small)
        for there in {tuple(sorted(there)): there for there in neighbours}.values():
            other = naive.repaired(there, s + s_too_large, k0 - k0_too_small)
            worst = max(worst, naive.true_delta(law, other, epsilon)[1] / stated)
    return float(worst)


def test_no_tiny_database_exceeds_what_is_stated():
    worst = greatest_ratio()
    print(f"{N_DATABASES} tables: true delta at most {worst:.6f} of the stated one")
    assert worst <= 1
    assert worst > 0.99999  # the tables are not all harmless


def test_one_drawn_row_less_is_found():
    assert greatest_ratio(k0_too_small=1) > 1.5


def test_a_larger_chance_is_found():
    assert greatest_ratio(s_too_large=Fraction(1, 50)) > 1.05


@pytest.mark.parametrize(("epsilon", "s", "k0"), PLANS, ids=str)
def test_the_stated_delta_is_reached(epsilon, s, k0):
    gamma = 1 - (1 - s) / naive.exp_below_and_above(epsilon)[0]
    n = int((k0 - 1) / gamma) + 1
    here, there = (naive.repaired([(0,)] * rows, s, k0) for rows in (n, n - 1))
    assert naive.true_delta(here, there, epsilon)[0] >= delta_of(epsilon, s, k0) * (1 - Fraction(1, 10**5))


def test_the_stated_delta_of_a_real_plan_is_reached_and_one_less_exceeds_it():
    """Epsilon 1, delta 1e-6, half of the rows: k0 is 35, and the worst box has 42 rows."""
    epsilon, s, k0 = Fraction(1), Fraction(1, 2), 35
    stated = delta_of(epsilon, s, k0)
    worst = max(
        naive.true_delta(naive.repaired_counts(n, s, k0), naive.repaired_counts(n - 1, s, k0), epsilon)[0]
        for n in (41, 42, 43)
    )
    assert worst <= stated <= worst * (1 + Fraction(1, 10**5))
    less = naive.repaired_counts(41, s, k0 - 1), naive.repaired_counts(40, s, k0 - 1)
    assert naive.true_delta(*less, epsilon)[0] > stated
    more = (
        naive.repaired_counts(42, s + Fraction(1, 100), k0),
        naive.repaired_counts(41, s + Fraction(1, 100), k0),
    )
    assert naive.true_delta(*more, epsilon)[0] > stated


# ---- by sampling -----------------------------------------------------------------------------------

N_RUNS = 20_000
ROWS = np.array([[0, 0], [0, 0], [0, 1], [1, 0], [1, 1], [2, 2], [3, 2], [3, 2]], dtype=np.uint32)
SIDE = np.array([[0, 0], [0, 0], [1, 0], [0, 1], [2, 2], [3, 2], [3, 1]], dtype=np.uint32)
OBJECTIVE = Threshold(Fraction(1, 3))


def runs(s, k0):
    """The outputs of the sampler, in the words of the naive law."""
    problem = problem_of(DOMAINS, ROWS, SIDE, weights=Weights("harmonic"))
    solution = exact.solve(problem, OBJECTIVE)
    coins, plan = seeded(20120101), Plan(Fraction(1), s, k0, Fraction(1))
    seen: Counter[tuple[Any, ...]] = Counter()
    for _ in range(N_RUNS):
        found = draw.draw(problem, solution, plan, coins)
        seen[tuple(zip(map(tuple, found.nodes.tolist()), found.count.tolist(), strict=True))] += 1
    return seen


def fit(seen, law):
    """The p-value of a chi-square test; what the law does not know has no chance."""
    if set(seen) - set(law):
        return 0.0
    common = [output for output, chance in law.items() if N_RUNS * chance >= 5]
    observed = np.array([*(seen[output] for output in common), 0])
    observed[-1] = N_RUNS - observed.sum()
    expected = np.array([*(float(law[output]) for output in common), 0.0]) * N_RUNS
    expected[-1] = N_RUNS - expected.sum()
    if expected[-1] < 5:
        observed, expected = observed[:-1], expected[:-1]
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


@pytest.mark.parametrize(
    ("s", "k0"), [(Fraction(1, 2), 2), (Fraction(3, 5), 3), (Fraction(1, 5), 1)], ids=str
)
def test_what_is_published_follows_the_exact_law_and_no_other(s, k0):
    of_rows = boxes(ROWS, SIDE, OBJECTIVE)
    assert 1 < len(set(of_rows)) < len(ROWS)
    seen = runs(s, k0)
    found = fit(seen, naive.repaired(of_rows, s, k0))
    print(f"s {s}, k0 {k0}: {len(seen)} outputs, p = {found:.3g}")
    assert found >= FALSE_ALARM
    for wrong_s, wrong_k0 in ((s + Fraction(1, 20), k0), (s - Fraction(1, 20), k0), (s, k0 + 1)):
        assert fit(seen, naive.repaired(of_rows, wrong_s, wrong_k0)) < FALSE_ALARM
    assert fit(seen, naive.repaired([*of_rows, of_rows[0]], s, k0)) < FALSE_ALARM


# ---- is it of use? -----------------------------------------------------------------------------------


def test_nine_of_ten_drawn_rows_of_adult_are_published(data_folder):
    """One half is public, 8 columns, epsilon 1, delta 1e-6, at 6/17 of the utility: in boxes finer than the root."""
    from lab import private_tradeoff

    found = list(private_tradeoff.outcomes(thresholds=(Fraction(6, 17),)))
    for one in found:
        print(
            f"s {one.plan.s}, k0 {one.plan.k0}: {one.share:.1%} of {one.drawn} drawn rows in {one.boxes} boxes"
        )
        assert one.share >= 0.9
        assert abs(one.share - one.outlook) < 0.02
    assert [one.plan.k0 for one in found] == [35, 12]
