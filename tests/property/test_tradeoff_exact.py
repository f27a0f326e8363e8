"""The cube against brute force: every objective, model, utility, side table and shape of hierarchies."""

from __future__ import annotations

import naive_tradeoff as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tradeoff_cases import lagrangians, log_risks, problems, risk_limits, thresholds

from sfumato.methods.risk_utility.optimizers import exact, tuples

EXAMPLES = settings(max_examples=80)


def assert_consistent(problem, solution):
    """What a solution says of its levels is so, by the definition."""
    again = problem.solution(solution.levels, which=solution.which)
    assert solution.covered.tolist() == again.covered.tolist()
    assert solution.weight.tolist() == again.weight.tolist()
    assert solution.utility.tolist() == again.utility.tolist()
    assert solution.is_proved.all()


def assert_exact(problem, objective, solution):
    """What is asked for, then the least of what breaks ties, then the least levels: nothing else will do."""
    assert_consistent(problem, solution)
    for row, levels in zip(solution.which.tolist(), solution.levels.tolist(), strict=True):
        assert tuple(levels) == naive.best(problem, objective, row)[2]


def assert_greatest(problem, objective, solution):
    assert_consistent(problem, solution)
    for row, levels in zip(solution.which.tolist(), solution.levels.tolist(), strict=True):
        greatest, _, _ = naive.best(problem, objective, row)
        found = naive.worth(problem, objective, *naive.measure(problem, row, levels))
        assert float(found) == pytest.approx(float(greatest), rel=1e-9)


@given(problems(), thresholds)
@EXAMPLES
def test_a_threshold_is_met_with_the_least_risk_there_is(problem, objective):
    assert_exact(problem, objective, exact.solve(problem, objective, threads=1))


@given(st.data())
@EXAMPLES
def test_most_utility_is_as_much_as_a_limit_of_risk_allows(data):
    problem = data.draw(problems())
    objective = data.draw(risk_limits(problem))
    assert_exact(problem, objective, exact.solve(problem, objective, threads=1))


@given(problems(personal=False), st.data())
@settings(max_examples=30)
def test_rows_that_seek_one_by_one_find_the_same_utility_within_a_limit(problem, data):
    objective = data.draw(risk_limits(problem))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuples, "MOST_CLASSES", 0)
        assert_exact(problem, objective, exact.solve(problem, objective, threads=1))


@given(st.data())
@EXAMPLES
def test_a_lagrangian_is_as_great_as_there_is(data):
    problem = data.draw(problems(floor=True))
    objective = data.draw(lagrangians(problem))
    assert_greatest(problem, objective, exact.solve(problem, objective, threads=1))


@given(problems(floor=True), log_risks)
@EXAMPLES
def test_log_risk_is_as_great_as_there_is(problem, objective):
    assert_greatest(problem, objective, exact.solve(problem, objective, threads=1))


@given(problems(personal=False), thresholds)
@settings(max_examples=40)
def test_rows_of_many_kinds_seek_one_by_one_and_find_the_same(problem, objective):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuples, "MOST_CLASSES", 0)
        assert_exact(problem, objective, exact.solve(problem, objective, threads=1))


@given(problems(), thresholds, st.data())
@settings(max_examples=40)
def test_some_rows_find_what_they_find_among_all_in_any_order(problem, objective, data):
    which = np.array(data.draw(st.lists(st.integers(0, problem.n - 1), max_size=6)), dtype=np.int64)
    whole = exact.solve(problem, objective, threads=1)
    some = exact.solve(problem, objective, which=which, threads=1)
    assert some.which.tolist() == which.tolist()
    for name in ("levels", "covered", "weight", "utility"):
        assert getattr(some, name).tolist() == getattr(whole.take(which), name).tolist()


@given(st.data())
@settings(max_examples=40)
def test_threads_and_tasks_change_nothing(data):
    problem = data.draw(problems(floor=True))
    objective = data.draw(st.one_of(thresholds, log_risks, lagrangians(problem)))
    one = exact.solve(problem, objective, threads=1)
    three = exact.solve(problem, objective, threads=3)
    assert one.levels.tolist() == three.levels.tolist()


@given(st.data())
@settings(max_examples=40)
def test_the_work_may_be_shared_out_by_any_number_of_columns(data):
    problem = data.draw(problems())
    objective = data.draw(thresholds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "LEAST_TASKS", data.draw(st.sampled_from([1, 3, 10**6])))
        assert_exact(problem, objective, exact.solve(problem, objective, threads=2))


# ---- people ----------------------------------------------------------------------------------------------


@given(problems(people=True), thresholds)
@settings(max_examples=150)
def test_people_with_several_rows_count_once_in_every_box(problem, objective):
    assert_exact(problem, objective, exact.solve(problem, objective, threads=1))
    for row in range(problem.n):
        for levels in naive.generalizations(problem, row):
            found = problem.measure(np.array([row]), np.array([levels], dtype=np.uint8))
            assert int(found.covered[0]) == naive.measure(problem, row, levels)[0]


@given(st.data())
@EXAMPLES
def test_a_limit_of_risk_counts_people(data):
    problem = data.draw(problems(people=True))
    objective = data.draw(risk_limits(problem))
    assert_exact(problem, objective, exact.solve(problem, objective, threads=1))


@given(problems(floor=True, people=True), log_risks)
@settings(max_examples=40)
def test_log_risk_counts_people(problem, objective):
    assert_greatest(problem, objective, exact.solve(problem, objective, threads=1))
