"""Algorithms 3 and 4 of the risk-utility paper: their laws, against enumeration."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import naive_sampling
import naive_tradeoff as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tradeoff_cases import problems

from sfumato.encoding.domain import TreeDomain
from sfumato.methods.risk_utility.paper import exponential, polytope
from sfumato.methods.risk_utility.paper.exponential import Generalizations, Parameters
from sfumato.methods.risk_utility.problem import Lagrangian, Threshold, problem_of
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import Weights
from sfumato.policy.schema import Attribute
from sfumato.randomness import seeded

TREES = (
    Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c", "d"]}}),
    Hierarchy.from_tree({"*": ["x", "y"]}),
)
PARENTS = (
    {"*": None, "North": "*", "South": "*", "a": "North", "b": "North", "c": "South", "d": "South"},
    {"*": None, "x": "*", "y": "*"},
)
DOMAINS = [
    TreeDomain(Attribute(f"c{i}", "quasi-identifier"), tree, has_missing=False)
    for i, tree in enumerate(TREES)
]
ROWS = np.array([[0, 0], [0, 0], [0, 1], [1, 0], [1, 1], [2, 1], [3, 1], [3, 1]], dtype=np.uint32)
PRICE = Lagrangian(Fraction(2))


def tiny(floor=1.0):
    return problem_of(DOMAINS, ROWS, weights=Weights("harmonic"), floor=floor)


# ---- all generalizations of a row ----------------------------------------------------------------------


@given(problems(floor=True), st.data())
@settings(max_examples=60, deadline=None)
def test_all_generalizations_of_a_row_are_what_the_definition_says(problem, data):
    row = data.draw(st.integers(0, problem.n - 1))
    found = Generalizations.of(problem, row)
    levels = found.levels_at(np.arange(found.covered.size))
    assert sorted(map(tuple, levels.tolist())) == sorted(naive.generalizations(problem, row))
    for at, own in enumerate(levels.tolist()):
        covered, weight, utility = naive.measure(problem, row, own)
        assert found.covered.ravel()[at] == covered
        assert found.weight.ravel()[at] == pytest.approx(weight * problem.weight_unit)
        assert found.utility.ravel()[at] == pytest.approx(utility * problem.utility_unit)


# ---- Algorithm 3 -----------------------------------------------------------------------------------------


def naive_law(problem, objective, t, working, beta):
    """The law of the output by enumeration, with the weights of equation (9) as floats."""
    labels = [(tree.labels, [tree.labels[n] for n in tree.leaf_nodes.tolist()]) for tree in TREES]
    rows = [
        tuple(leaves[code] for (_, leaves), code in zip(labels, row, strict=True)) for row in ROWS.tolist()
    ]

    def parts(row, x):
        at = int(problem.of_row[rows.index(row)])
        levels = [
            naive_sampling.chain(tree, leaf).index(label)
            for tree, leaf, label in zip(PARENTS, row, x, strict=True)
        ]
        return naive.measure(problem, at, levels)

    def weight(_rows, row, x):
        covered, own, utility = parts(row, x)
        risk = own * problem.weight_unit / covered
        score = -risk if isinstance(objective, Threshold) else float(objective.price) / risk + utility
        return math.exp(working * score / len(rows))

    def is_feasible(row, x):
        at = int(problem.of_row[rows.index(row)])
        return not isinstance(objective, Threshold) or naive.is_feasible(
            problem, objective, at, parts(row, x)[2]
        )

    return naive_sampling.algorithm_3(
        PARENTS, rows, t=t, beta=float(beta), weight=weight, is_feasible=is_feasible
    )


@pytest.mark.parametrize(
    ("objective", "t", "working"),
    [
        (PRICE, 3, 4.0),
        (PRICE, 2, 0.5),
        (Threshold(Fraction(1, 3)), 3, 20.0),
        (Threshold(Fraction(1)), 3, 1.0),
    ],
    ids=["lagrangian", "lagrangian, most frequent", "threshold", "threshold, some suppressed"],
)
def test_algorithm_3_follows_its_law_and_no_other(objective, t, working):
    """2,000 runs, by a chi-square test of whole outputs at a level of 1e-6."""
    problem, beta, random = tiny(), Fraction(2, 3), seeded(20120101)
    parameters = Parameters(float(beta), 0.5, t, 0.0, 1.0, working, 0.0)
    labels = np.array([label for tree in TREES for label in tree.labels])
    seen: Counter[tuple[Any, ...]] = Counter()
    for _ in range(2000):
        found = exponential.draw(problem, objective, parameters, random)
        nodes = labels[problem.nodes_of(problem.of_row[found.row], found.levels)]
        boxes: Counter[tuple[Any, ...] | None] = Counter(map(tuple, nodes.tolist()))
        if found.n_drawn > len(found.row):
            boxes[None] = found.n_drawn - len(found.row)
        seen[tuple(sorted(boxes.items(), key=repr))] += 1
    law = naive_law(problem, objective, t, working, beta)
    assert sum(law.values()) == pytest.approx(1)
    assert not set(seen) - set(law)
    assert fit(seen, law) >= 1e-6
    assert fit(seen, naive_law(problem, objective, t, working, beta + Fraction(1, 12))) < 1e-6
    if t == 3 and working > 1:
        assert fit(seen, naive_law(problem, objective, t, -4 * working, beta)) < 1e-6


def fit(seen, law):
    n = sum(seen.values())
    common = [output for output, chance in law.items() if n * chance >= 5]
    observed = np.array([*(seen[output] for output in common), 0])
    observed[-1] = n - observed.sum()
    expected = np.array([*(float(law[output]) for output in common), 0.0]) * n
    expected[-1] = max(n - expected.sum(), 1e-9)
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def test_without_a_t_nothing_is_drawn():
    parameters = exponential.parameters(tiny(), PRICE, epsilon=1.0, delta=1e-6, beta=0.5)
    assert parameters.t is None
    assert parameters.bound > len(ROWS)
    found = exponential.draw(tiny(), PRICE, parameters, seeded(1))
    assert len(found.row) == 0
    assert found.n_drawn > 0


@given(problems(floor=True, external=False))
@settings(max_examples=40, deadline=None)
def test_the_extreme_weights_are_those_of_all_generalizations_of_all_rows(problem):
    """phi_l and phi_u bound Phi; where weights are personal they are those of the rows that there are."""
    ends = exponential.Extremes.of(problem)
    every = np.concatenate([Generalizations.of(problem, row).weight.ravel() for row in range(problem.n)])
    slack = (problem.n_columns + 1) * problem.weight_unit
    assert ends.least_weight == pytest.approx(every.min(), abs=slack)
    assert ends.greatest_weight >= every.max() - slack


def test_parameters_of_a_larger_table():
    problem = problem_of(DOMAINS, np.tile(ROWS, (200, 1)), floor=1.0)
    parameters = exponential.parameters(problem, PRICE, epsilon=1.0, delta=1e-6, beta=0.5)
    assert parameters.t is not None
    assert parameters.bound < parameters.t <= parameters.bound + 1
    assert parameters.working == pytest.approx((1 + math.log(0.5)) / (3 * parameters.eta * 0.5))
    threshold = exponential.parameters(problem, Threshold(Fraction(1, 3)), epsilon=1.0, delta=1e-6, beta=0.9)
    assert threshold.t is None or threshold.t > threshold.bound


# ---- Algorithm 4 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", range(4))
def test_the_lovasz_extension_is_the_mean_over_level_sets(row):
    body = polytope.Polytope.of(tiny(), row, PRICE)
    random = np.random.default_rng(row)
    points = random.random((50, len(body.column)))
    for column in range(2):
        points[:, body.column == column] = -np.sort(-points[:, body.column == column], axis=1)
    for values in (body.covered, body.score, body.weight):
        evenly = np.linspace(0, 1, 4001)[:-1] + 1 / 8000
        places = ((points[:, None, :] > evenly[:, None]) * body.step).sum(axis=2)
        assert body.extension(values, points) == pytest.approx(
            values[places].mean(axis=1), abs=0.02 * values.max()
        )
    assert body.weight[0] + points @ body.rise == pytest.approx(body.extension(body.weight, points))
    places = np.arange(len(body.covered))
    assert body.extension(body.covered, body.vertices(places)).tolist() == body.covered[places].tolist()


def test_walks_stay_within_the_layer_and_cover_enough_rows():
    problem, walk = tiny(), polytope.Walk(t=3, working=2.0, steps=20)
    body = polytope.Polytope.of(problem, 0, PRICE)
    n = 0
    for layer in polytope.layers_of(problem, walk.width):
        start = polytope._start(body, layer, walk.t)
        if start is None:
            continue
        n += 1
        points = polytope._walk(body, layer, np.tile(start, (200, 1)), problem, walk, seeded(3))
        assert polytope._is_within(body, layer, points, walk.t - 1e-6).all()
        assert points.std(axis=0).min() > 0.01  # and they do walk
        for column in range(2):
            assert (np.diff(points[:, body.column == column], axis=1) <= 1e-12).all()
    assert n >= 2


def test_sample_point_covers_sigma_t_rows():
    walk = polytope.Walk(t=4, working=2.0, sigma=0.5, steps=30)
    places = polytope.sample_points(tiny(), 0, PRICE, walk, 500, seeded(5))
    assert (Generalizations.of(tiny(), 0).covered.ravel()[places] >= 2).all()
    assert (
        polytope.sample_points(tiny(), 0, PRICE, polytope.Walk(t=9, working=2.0), 5, seeded(5)).tolist() == []
    )


def test_algorithm_4_is_far_from_the_law_that_it_stands_for():
    """The total variation to equation (9), enumerated: 2,000 points of each row, far beyond what chance explains."""
    walk = polytope.Walk(t=2, working=1.0, steps=40)
    found = [polytope.total_variation(tiny(), row, PRICE, walk, 2000, seeded(row)) for row in range(3)]
    for row, one in enumerate(found):
        print(
            f"row {row}: total variation {one.total_variation:.3f}, of which chance explains {one.noise:.3f}"
        )
        assert one.noise < 0.05
        assert 0.1 < one.total_variation < 1


def test_exact_draws_show_no_more_than_their_noise():
    """The same measure of points that do follow equation (9)."""
    found = Generalizations.of(tiny(), 0)
    law = exponential.chances(tiny(), 0, PRICE, found, t=2, working=1.0).ravel()
    seen = np.bincount(seeded(1).choice(len(law), size=4000, p=law), minlength=len(law)) / 4000
    noise = np.sqrt(2 * law * (1 - law) / (np.pi * 4000)).sum() / 2
    assert np.abs(seen - law).sum() / 2 < 3 * noise


def test_a_longer_walk_changes_nothing():
    """Walks of 40 and of 160 steps come to the same law, by a chi-square test: 40 are enough."""
    counts = []
    for steps in (40, 160):
        walk = polytope.Walk(t=2, working=1.0, steps=steps)
        places = polytope.sample_points(tiny(), 1, PRICE, walk, 1500, seeded(steps))
        counts.append(np.bincount(places, minlength=6))
    table = np.array(counts)
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > 1e-6
