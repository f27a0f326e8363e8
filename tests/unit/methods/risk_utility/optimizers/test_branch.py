"""Branch and bound: what it claims to have proved is what brute force finds."""

from __future__ import annotations

from fractions import Fraction

import naive_tradeoff as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tradeoff_cases import check_search, problems, risk_limits, thresholds, wide_problem

from sfumato.errors import InternalError
from sfumato.methods.risk_utility.optimizers import branch, neighbours, probing
from sfumato.methods.risk_utility.problem import LogRisk, Threshold
from sfumato.policy.options.risk_utility import Weights


def risks(problem, solution):
    return [Fraction(int(w), int(c)) for w, c in zip(solution.weight, solution.covered, strict=True)]


@given(problems(), thresholds, st.sampled_from([1, 3, 10**6]))
@settings(max_examples=100, deadline=None)
def test_what_is_proved_is_what_brute_force_finds(problem, objective, most_boxes):
    solution = branch.solve(problem, objective, threads=1, most_boxes=most_boxes)
    measured = problem.solution(solution.levels)
    for name in ("covered", "weight", "utility"):
        assert getattr(solution, name).tolist() == getattr(measured, name).tolist()
    assert np.all(solution.utility >= problem.need(objective.at_least))
    for row, risk in enumerate(risks(problem, solution)):
        best = -naive.best(problem, objective, row)[0]
        assert risk == best if solution.is_proved[row] else risk >= best
    assert solution.is_proved.all() or most_boxes < 10**6


@given(problems(utilities=("depth",)), st.data())
@settings(max_examples=60, deadline=None)
def test_most_utility_within_a_limit_of_risk_is_proved_where_utilities_are_whole(problem, data):
    objective = data.draw(risk_limits(problem))
    solution = branch.solve(problem, objective, threads=1, most_boxes=10**6)
    check_search(problem, objective, solution)
    assert solution.is_proved.all()


@given(problems(), thresholds)
@settings(max_examples=100, deadline=None)
def test_whatever_it_starts_from_it_ends_at_the_least_risk(problem, objective):
    raw = problem.solution(np.zeros((problem.n, problem.n_columns), dtype=np.uint8))
    solution = branch.prove(problem, objective, raw, threads=1, most_boxes=10**6)
    assert solution.is_proved.all()
    for row, risk in enumerate(risks(problem, solution)):
        assert risk == -naive.best(problem, objective, row)[0]


@pytest.mark.parametrize("utility", ["depth", "log", "inverse"])
def test_many_columns_are_proved_and_never_worse_than_probing(utility):
    problem = wide_problem(64, n_rows=150, n_columns=12, utility=utility)
    objective = Threshold(Fraction(7, 10))
    probed = probing.solve(problem, objective)
    proved = branch.prove(problem, objective, probed)
    assert proved.is_proved.mean() > 0.9
    for before, after in zip(risks(problem, probed), risks(problem, proved), strict=True):
        assert after <= before
    assert np.all(proved.utility >= problem.need(objective.at_least))


def test_what_was_proved_before_stays_as_it_is():
    problem = wide_problem(27, n_rows=20, n_columns=3, branches=3)
    raw = problem.solution(np.zeros((problem.n, 3), dtype=np.uint8), is_proved=True)
    assert not branch.prove(problem, Threshold(Fraction(1, 2)), raw).levels.any()


def test_too_many_boxes_prove_nothing():
    problem = wide_problem(64, n_rows=150, n_columns=12)
    raw = problem.solution(np.zeros((problem.n, 12), dtype=np.uint8))
    solution = branch.prove(problem, Threshold(Fraction(1, 2)), raw, most_boxes=1)
    assert not solution.is_proved.all()


def test_where_not_all_near_rows_are_seen_nothing_is_proved(monkeypatch):
    problem = wide_problem(64, n_rows=150, n_columns=6, weights=Weights("model-2"))
    monkeypatch.setattr(neighbours, "MOST_VECTORS", 4)
    solution = branch.solve(problem, Threshold(Fraction(0)))
    assert not solution.is_proved.any()


def test_other_objectives_are_not_for_it():
    problem = wide_problem(27, n_rows=20, n_columns=3, branches=3, floor=1.0)
    with pytest.raises(InternalError, match="least risk"):
        branch.solve(problem, LogRisk(Fraction(1)))
