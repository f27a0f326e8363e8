"""Genetic search, repaired, as printed and improved: allowed, repeatable, never better than the best."""

from __future__ import annotations

import json
from fractions import Fraction

import naive_tradeoff as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tradeoff_cases import check_search, problems, run_plainly, thresholds, wide_problem

from sfumato.errors import InternalError
from sfumato.methods.risk_utility.optimizers import branch
from sfumato.methods.risk_utility.paper import genetic
from sfumato.methods.risk_utility.problem import LogRisk, Threshold
from sfumato.randomness import seeded

HALF = Threshold(Fraction(1, 2))


@given(problems(), thresholds, st.booleans(), st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_what_evolves_is_allowed_measured_and_never_better_than_the_best(problem, objective, improved, seed):
    solution = genetic.solve(
        problem, objective, random=seeded(seed), threads=1, n_members=6, n_generations=3, improved=improved
    )
    check_search(problem, objective, solution)


@given(problems(max_rows=6), thresholds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_what_evolves_is_a_frontier_node(problem, objective, improved):
    solution = genetic.solve(
        problem, objective, random=seeded(1), threads=1, n_members=4, n_generations=2, improved=improved
    )
    need = problem.need(objective.at_least)
    for row in range(problem.n):
        levels = solution.levels[row].tolist()
        for a in range(problem.n_columns):
            above = next_level(problem, row, a, levels[a])
            if above is not None:
                parent = [*levels[:a], above, *levels[a + 1 :]]
                assert naive.measure(problem, row, parent)[2] < need[row]


def next_level(problem, row, a, level):
    """The level of the node above, or None at the root."""
    node = naive.node_of(problem, row, a, level)
    levels = range(level + 1, int(problem.lattice.n_levels[a]))
    return next((other for other in levels if naive.node_of(problem, row, a, other) != node), None)


@pytest.mark.parametrize("improved", [False, True])
def test_seeds_repeat_whatever_the_threads_and_the_other_rows(improved):
    problem = wide_problem(64, n_rows=100, n_columns=6)
    whole = genetic.solve(problem, HALF, random=seeded(5), threads=1, improved=improved, n_generations=5)
    other = genetic.solve(problem, HALF, random=seeded(5), threads=3, improved=improved, n_generations=5)
    assert np.array_equal(whole.levels, other.levels)
    which = np.array([70, 2, 41])
    some = genetic.solve(
        problem, HALF, which=which, random=seeded(5), threads=2, improved=improved, n_generations=5
    )
    assert np.array_equal(some.levels, whole.levels[which])


def test_another_seed_is_another_search():
    problem = wide_problem(64, n_rows=100, n_columns=8)
    one, two = (
        genetic.solve(problem, HALF, random=seeded(seed), n_members=6, n_generations=1) for seed in (1, 2)
    )
    assert not np.array_equal(one.levels, two.levels)


def test_more_members_and_generations_find_less_risk_and_the_improved_search_the_least():
    problem = wide_problem(64, n_rows=150, n_columns=8)
    least = branch.solve(problem, HALF)
    assert least.is_proved.mean() > 0.9
    few, many, improved = (
        problem.risk(genetic.solve(problem, HALF, random=seeded(3), **options)).mean()
        for options in (
            {"n_members": 4, "n_generations": 1},
            {"n_members": 20, "n_generations": 20},
            {"n_members": 20, "n_generations": 20, "improved": True},
        )
    )
    best = problem.risk(least).mean()
    assert best <= improved < many < few
    assert improved < 1.05 * best


def test_as_printed_other_parents_have_children():
    """Where every step is worth 1, paths end at the same nodes in both variants, and parents alone differ."""
    problem = wide_problem(64, n_rows=100, n_columns=8)

    def levels(n_generations, variant):
        options = {"n_members": 10, "n_generations": n_generations, "variant": variant}
        return genetic.solve(problem, HALF, random=seeded(5), threads=1, **options)

    assert np.array_equal(levels(0, "paper").levels, levels(0, "repaired").levels)
    printed, repaired = levels(20, "paper"), levels(20, "repaired")
    assert not np.array_equal(printed.levels, repaired.levels)


def test_the_improved_search_goes_by_its_own_name_too():
    problem = wide_problem(27, n_rows=20, n_columns=3, branches=3)
    one = genetic.solve_improved(problem, HALF, random=seeded(1), n_generations=2)
    two = genetic.solve(problem, HALF, random=seeded(1), n_generations=2, improved=True)
    assert np.array_equal(one.levels, two.levels)


def test_without_a_generator_it_draws_its_own():
    problem = wide_problem(27, n_rows=20, n_columns=3, branches=3)
    solution = genetic.solve(problem, HALF)
    assert np.all(solution.utility >= problem.need(HALF.at_least))


def test_other_objectives_are_not_for_it():
    problem = wide_problem(27, n_rows=20, n_columns=3, branches=3, floor=1.0)
    with pytest.raises(InternalError, match="least risk"):
        genetic.solve(problem, LogRisk(Fraction(1)))


def test_without_probing_all_members_begin_as_one_random_path():
    problem = wide_problem(64, n_rows=100, n_columns=8)
    one, alone, probed = (
        genetic.solve(problem, HALF, random=seeded(3), threads=1, n_generations=0, **options)
        for options in ({"n_members": 30, "n_probes": 1}, {"n_members": 1}, {"n_members": 30})
    )
    assert np.array_equal(one.levels, alone.levels)
    assert problem.risk(probed).mean() < problem.risk(alone).mean()


SMALL = """
import json
from fractions import Fraction
from tradeoff_cases import wide_problem
from sfumato.randomness import seeded
from sfumato.methods.risk_utility.optimizers import branch, probing
from sfumato.methods.risk_utility.paper import genetic
from sfumato.methods.risk_utility.problem import Threshold

found = []
for utility in ("depth", "log"):
    case = wide_problem(16, n_rows=8, n_columns=3, utility=utility)
    for at_least in (Fraction(1, 3), Fraction(3, 5)):
        objective = Threshold(at_least)
        found.append(probing.solve(case, objective, threads=1).levels.tolist())
        proved = branch.solve(case, objective, threads=1)
        found.append([proved.levels.tolist(), proved.is_proved.tolist()])
        for improved in (False, True):
            evolved = genetic.solve(
                case, objective, threads=1, random=seeded(1), n_members=4, n_generations=2, improved=improved
            )
            found.append(evolved.levels.tolist())
print(json.dumps(found))
"""


def test_the_searches_are_plain_python_too_with_the_same_results(capsys):
    exec(SMALL, {})
    compiled = json.loads(capsys.readouterr().out)
    assert json.loads(run_plainly(SMALL)) == compiled
