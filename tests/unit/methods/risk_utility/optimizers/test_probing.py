"""Row-join probing and the scan below it, against their definitions."""

from __future__ import annotations

from fractions import Fraction

import naive_tradeoff as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tradeoff_cases import check_search, log_risks, problems, risk_limits, shares, thresholds, wide_problem

from sfumato.methods.risk_utility.optimizers import neighbours as near
from sfumato.methods.risk_utility.optimizers import probing
from sfumato.methods.risk_utility.optimizers.neighbours import NeighbourFinder, SideColumns
from sfumato.methods.risk_utility.problem import Lagrangian, Threshold


def near_rows(problem, row, budget):
    """The twin of the scan: the rows whose common ancestors with a row lose no more than the budget, by vector."""
    raw = naive.measure(problem, row, [0] * problem.n_columns)[2]
    found: dict[tuple[int, ...], int] = {}
    for t, count in zip(problem.side.tolist(), problem.side_count.tolist(), strict=True):
        levels = []
        for a, code in enumerate(t):
            level = 0
            while not covers(problem, naive.node_of(problem, row, a, level), code):
                level += 1
            levels.append(level)
        if raw - naive.measure(problem, row, levels)[2] <= budget:
            found[tuple(levels)] = found.get(tuple(levels), 0) + count
    return found


def covers(problem, node, code):
    return int(problem.lattice.low[node]) <= code < int(problem.lattice.high[node])


def found_near(problem, row, budget, **options):
    neighbours = NeighbourFinder(SideColumns(problem), **options).find(row, budget)
    near = neighbours.problem.near
    vectors = [tuple(neighbours.levels_of(vector).tolist()) for vector in near.vector]
    assert len(set(vectors)) == len(vectors)
    return dict(zip(vectors, near.n_rows.tolist(), strict=True)), neighbours.stride


@given(problems(), shares)
@settings(max_examples=80, deadline=None)
def test_the_scan_finds_the_rows_near_enough_and_no_others(problem, at_least):
    need = problem.need(at_least)
    for row in range(problem.n):
        budget = int(problem.raw_utility[row] - need[row])
        assert found_near(problem, row, budget) == (near_rows(problem, row, budget), 1)


@pytest.mark.parametrize(("n_codes", "width", "shift"), [(200, 8, 0), (300, 16, 0), (70_000, 16, 1)])
def test_the_scan_reads_codes_of_any_width(n_codes, width, shift):
    problem = wide_problem(n_codes)
    side = SideColumns(problem)
    assert (np.iinfo(side.dtype).bits, side.shift[0]) == (width, shift)
    for row in range(problem.n):
        for budget in (0, 1, 2, 4):
            assert found_near(problem, row, budget)[0] == near_rows(problem, row, budget)


def test_beyond_the_room_every_second_or_later_row_is_taken_and_counts_for_so_many():
    problem = wide_problem(200, n_columns=6)
    everything, _ = found_near(problem, 0, 100)
    some, stride = found_near(problem, 0, 100, most_vectors=8)
    assert stride > 1
    assert set(some) <= set(everything)
    assert sum(some.values()) == pytest.approx(sum(everything.values()), abs=stride)


@given(problems(), st.data())
@settings(max_examples=60, deadline=None)
def test_what_probing_finds_within_a_limit_of_risk_is_allowed_and_measured(problem, data):
    objective = data.draw(risk_limits(problem))
    check_search(problem, objective, probing.solve(problem, objective, threads=1))


@given(problems(), thresholds)
@settings(max_examples=80, deadline=None)
def test_what_probing_finds_is_allowed_measured_and_never_better_than_the_best(problem, objective):
    solution = probing.solve(problem, objective, threads=1)
    check_search(problem, objective, solution)


def test_probing_finds_nearly_always_the_best_of_small_problems():
    n_best = n_rows = 0
    for problem in small_problems(5):
        solution = probing.solve(problem, Threshold(Fraction(1, 2)), threads=1)
        for i in range(problem.n):
            best = naive.best(problem, Threshold(Fraction(1, 2)), i)[0]
            n_best += best == -Fraction(int(solution.weight[i]), int(solution.covered[i]))
            n_rows += 1
    assert n_best / n_rows > 0.97


def small_problems(n):
    return [wide_problem(27, n_rows=30, n_columns=3, seed=seed, branches=3) for seed in range(n)]


def test_neither_threads_nor_the_other_rows_matter():
    problem = wide_problem(64, n_rows=120, n_columns=6)
    whole = probing.solve(problem, Threshold(Fraction(3, 5)), threads=1)
    other = probing.solve(problem, Threshold(Fraction(3, 5)), threads=3)
    assert np.array_equal(whole.levels, other.levels)
    which = np.array([90, 3, 57])
    some = probing.solve(problem, Threshold(Fraction(3, 5)), which=which)
    assert np.array_equal(some.levels, whole.levels[which])
    assert some.which.tolist() == [90, 3, 57]


def test_with_less_room_than_near_rows_the_answer_is_allowed_and_measured_exactly(monkeypatch):
    problem = wide_problem(64, n_rows=200, n_columns=4)
    objective = Threshold(Fraction(1, 4))
    full = problem.risk(probing.solve(problem, objective))
    monkeypatch.setattr(near, "MOST_VECTORS", 8)
    solution = probing.solve(problem, objective)
    measured = problem.solution(solution.levels)
    assert solution.covered.tolist() == measured.covered.tolist()
    assert np.all(solution.utility >= problem.need(objective.at_least))
    assert problem.risk(solution).mean() < 3 * full.mean()


def test_a_row_that_may_lose_everything_is_suppressed_and_that_is_proved():
    problem = wide_problem(27, n_rows=20, n_columns=3, branches=3)
    solution = probing.solve(problem, Threshold(Fraction(0)))
    assert not solution.weight.any()
    assert solution.is_proved.all()


def test_a_row_that_may_lose_nothing_stays_as_it_is():
    problem = wide_problem(27, n_rows=20, n_columns=3, branches=3)
    assert not probing.solve(problem, Threshold(Fraction(1))).levels.any()


@given(problems(floor=True), st.data())
@settings(max_examples=60, deadline=None)
def test_other_objectives_are_the_best_of_several_thresholds(problem, data):
    objective = data.draw(st.one_of(log_risks, st.just(Lagrangian(Fraction(1)))))
    solution = probing.solve(problem, objective, threads=1)
    values = problem.value(objective, solution)
    assert not solution.is_proved.any()
    for row in range(problem.n):
        best = float(naive.best(problem, objective, row)[0])
        assert values[row] <= best + 1e-9 * (1 + abs(best))
    for levels in (np.zeros_like(solution.levels), np.tile(problem.top(), (problem.n, 1))):
        worth = problem.value(objective, problem.solution(levels))
        assert np.all(values >= worth - 1e-9 * (1 + np.abs(worth)))


def test_progress_is_told_to_the_end():
    told = []
    problem = wide_problem(27, n_rows=80, n_columns=3, branches=3)
    probing.solve(problem, Threshold(Fraction(1, 2)), progress=lambda *args: told.append(args))
    assert told[-1] == ("Joining rows", problem.n, problem.n)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
