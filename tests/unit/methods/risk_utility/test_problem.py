"""The problem of risk and utility: levels, measures, thresholds, in whole numbers."""

from __future__ import annotations

from fractions import Fraction

import naive_tradeoff as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tradeoff_cases import problems, shares

from sfumato.encoding.domain import TreeDomain
from sfumato.errors import PolicyError
from sfumato.methods.risk_utility import model
from sfumato.methods.risk_utility.problem import MostUtility, RiskLimit, Threshold, distinct_rows, problem_of
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import Weights
from sfumato.policy.schema import Attribute, Role

PLACES = Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}})
PLACE = Attribute("place", Role.QUASI_IDENTIFIER)


def places(*codes: int, side=None, **options):
    table = np.array(codes, dtype=np.uint32).reshape(-1, 1)
    others = None if side is None else np.array(side, dtype=np.uint32).reshape(-1, 1)
    return problem_of([TreeDomain(PLACE, PLACES, has_missing=False)], table, others, **options)


def test_a_leaf_of_less_depth_stays_as_it_is_for_some_levels():
    problem = places(0, 1, 2)
    labels = [[PLACES.labels[problem.nodes_of(np.array([row]), np.array([[level]], dtype=np.uint8))[0, 0]]
               for level in range(3)] for row in range(3)]  # fmt: skip
    assert labels == [["a", "North", "*"], ["b", "North", "*"], ["c", "c", "*"]]


@given(st.fractions(min_value=0, max_value=50, max_denominator=10**9), st.integers(1, 60))
@settings(max_examples=100)
def test_a_limit_of_risk_is_exact_for_every_number_of_rows(limit, most_covered):
    found = RiskLimit.of(limit, most_covered=most_covered)
    for covered in range(1, most_covered + 1):
        allowed = covered * found.whole + covered * found.part // found.parts
        assert allowed == covered * limit.numerator // limit.denominator


def test_a_limit_of_risk_needs_no_more_than_63_bits():
    found = RiskLimit.of(Fraction(2**40) + Fraction(1, 3), most_covered=2**28)
    assert found == RiskLimit(2**34, 0, 1)
    near = RiskLimit.of(Fraction(2**33) + Fraction(10**9, 10**9 + 7), most_covered=2**28)
    assert 2**28 * near.whole + 2**28 * near.part < 2**63


def test_a_suppressed_row_covers_all_rows_and_itself_if_the_side_table_lacks_it():
    problem = places(0, 2, side=[1, 1, 2], weights=Weights("model-2"))
    top = problem.suppressed(np.arange(2))
    again = problem.solution(top.levels)
    assert top.covered.tolist() == again.covered.tolist() == [4, 3]
    assert top.weight.tolist() == again.weight.tolist()
    assert top.utility.tolist() == again.utility.tolist()
    assert problem.allows(MostUtility(Fraction(1, 4)), top.covered, top.weight).tolist() == [True, False]
    assert problem.allows(MostUtility(Fraction(1, 3)), top.covered, top.weight).all()


def test_rows_covered_weight_and_utility_of_a_hand_counted_table():
    problem = places(0, 0, 1, 2)
    solution = problem.solution(np.array([[1], [0], [2]], dtype=np.uint8))
    assert solution.covered.tolist() == [3, 1, 4]
    assert solution.utility.tolist() == [1, 2, 0]
    assert problem.risk(solution).tolist() == pytest.approx([1 / 3, 1.0, 0.0])


def test_a_row_that_the_side_table_lacks_counts_itself():
    problem = places(0, 2, side=[0, 0, 1])
    assert problem.own.tolist() == [0, 1]
    solution = problem.solution(np.zeros((2, 1), dtype=np.uint8))
    assert solution.covered.tolist() == [2, 1]
    assert problem.solution(np.full((2, 1), 2, dtype=np.uint8)).covered.tolist() == [3, 4]


def test_the_threshold_is_a_share_of_the_way_of_each_row_itself():
    problem = places(0, 2)  # utilities 2 and 1
    assert problem.need(Fraction(1, 2)).tolist() == [1, 1]
    assert problem.need(Fraction(1)).tolist() == [2, 1]
    assert problem.need(Fraction(0)).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (Weights("model-1", {"place": 3.0}), [0, 3, 3, 3, 3]),
        (Weights("model-2"), [0.25] * 5),
        (Weights("harmonic"), [0, 0.5, 1, 1, 1]),
        (Weights("harmonic", {"place": {"a": 0.0}}), [0, 0, 0, 1, 1]),
        (Weights("harmonic", {"place": {"a": 0.25, "b": 0.5}}), [0, 1 / 6, 0.25, 0.5, 1]),
    ],
)
def test_weights_of_the_three_models(weights, expected):
    assert model.weights(PLACE, PLACES, weights, n_columns=4) == pytest.approx(expected)


def test_utilities_of_the_paper_and_of_a_user():
    found = {word: model.utilities(PLACE, PLACES, word) for word in ("depth", "inverse", "log")}
    assert found["depth"].tolist() == [0, 1, 2, 2, 1]
    assert found["inverse"] == pytest.approx([1 / 3, 1 / 2, 1, 1, 1])
    assert found["log"] == pytest.approx([0, np.log(1.5), np.log(3), np.log(3), np.log(3)])
    assert model.utilities(PLACE, PLACES, {"place": (0.0, 5.0)}).tolist() == [0, 5, 5, 5, 5]
    assert model.utilities(PLACE, PLACES, lambda _, tree: (tree.depth**2).tolist()).tolist() == [
        0,
        1,
        4,
        4,
        1,
    ]


def test_a_utility_that_rises_towards_the_root_is_refused():
    with pytest.raises(PolicyError, match="rises towards the root"):
        model.utilities(PLACE, PLACES, {"place": (5.0, 1.0)})
    with pytest.raises(PolicyError, match="at least 0"):
        model.utilities(PLACE, PLACES, {"place": (-5.0, 1.0)})


@given(problems())
@settings(max_examples=150, deadline=None)
def test_measures_are_those_of_the_definition(problem):
    for row in range(problem.n):
        for levels in list(naive.generalizations(problem, row))[:40]:
            found = problem.solution(np.array([levels], dtype=np.uint8), which=np.array([row]))
            counted = naive.measure(problem, row, levels)
            assert (found.covered[0], found.weight[0], found.utility[0]) == counted
            assert problem.weight_of(found.which, found.levels)[0] == counted[1]
            assert problem.utility_of(found.which, found.levels)[0] == counted[2]


@given(problems(), shares)
@settings(max_examples=150, deadline=None)
def test_what_is_needed_is_the_threshold_of_the_definition(problem, at_least):
    need = problem.need(at_least)
    for row in range(problem.n):
        for levels in list(naive.generalizations(problem, row))[:40]:
            utility = naive.measure(problem, row, levels)[2]
            is_feasible = naive.is_feasible(problem, Threshold(at_least), row, utility)
            assert (utility >= need[row]) == is_feasible


@given(problems())
@settings(max_examples=60, deadline=None)
def test_products_of_weights_and_counts_fit_in_63_bits(problem):
    assert problem.weight_of(np.arange(problem.n), np.zeros_like(problem.rows, dtype=np.uint8)).max() < 2**34


def test_great_personal_factors_leave_weights_as_exact_as_small_ones():
    factor = np.array([[1e6], [3.0]])
    problem = places(0, 1, weights=Weights("harmonic"), factor=factor)
    level = np.ones((2, 1), dtype=np.uint8)
    found = problem.weight_of(np.arange(2), level) * problem.weight_unit
    assert found[0] == pytest.approx(0.5e6, rel=1e-9)
    assert found[1] == pytest.approx(1.5, abs=1e6 * 2**-31)
    third = Hierarchy.from_tree({"*": {"North": ["a", "b", "c"], "South": ["d"]}})
    problem = problem_of(
        [TreeDomain(PLACE, third, has_missing=False)],
        np.array([[0], [3]], dtype=np.uint32),
        weights=Weights("harmonic"),
        factor=factor,
    )
    assert problem.weight_of(np.arange(2), level)[0] * problem.weight_unit == pytest.approx(1e6 / 3, rel=1e-9)


def test_a_floor_counts_beside_personal_factors():
    problem = places(0, 1, floor=0.5, factor=np.array([[5.0], [0.0]]))
    weight = problem.weight_of(np.arange(2), np.zeros((2, 1), dtype=np.uint8)) * problem.weight_unit
    assert weight.tolist() == pytest.approx([5.5, 0.5])


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"weights": Weights("harmonic", {"place": {"a": 1e9, "b": 0.01}})}, "weight of column 'place'"),
        ({"floor": 1e-13}, "floor"),
    ],
)
def test_a_weight_that_would_be_rounded_to_nothing_is_refused(options, what):
    with pytest.raises(PolicyError, match=f"A {what} is above 0, but not 1e-10 of all weights together"):
        places(0, 1, **options)


def test_great_utilities_that_are_not_whole_do_not_overflow():
    domains = [TreeDomain(PLACE, PLACES, has_missing=False)] * 30
    rows = np.zeros((1, 30), dtype=np.uint32)
    for great in (1.0, 1e9):
        problem = problem_of(domains, rows, utility={"place": (0.0, 0.5, great)})
        assert problem.raw_utility[0] * problem.utility_unit == pytest.approx(30 * great, rel=1e-12)
        assert problem.need(Fraction(1))[0] == problem.raw_utility[0] < 2**62
    assert problem_of(domains, rows, utility={"place": (0.0, 0.5, 1.0)}).utility_unit == 2.0**-40


def test_distinct_rows_are_in_order_and_counted():
    rows, at, count = distinct_rows(np.array([[1, 0], [0, 5], [1, 0]], dtype=np.uint32))
    assert rows.tolist() == [[0, 5], [1, 0]]
    assert (at.tolist(), count.tolist()) == ([1, 0, 1], [1, 2])
