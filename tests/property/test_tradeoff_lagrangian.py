"""The Lagrangian optimum: equal to brute force by every stage, and to the paper's way on a ring family.

Propositions 1 and 2, corollary 1, the misprint in definition 2 and that f itself is supermodular are in tests/paper.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import naive_minimum_norm as ring
import naive_tradeoff as naive
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lagrangian_cases import interior
from tradeoff_cases import lagrangians, problems

from sfumato.methods.risk_utility.paper.lagrangian import STAGES, solve, solve_in_stages
from sfumato.methods.risk_utility.problem import Lagrangian, LatticeProblem


def compare_with_brute_force(
    problem: LatticeProblem, objective: Lagrangian, stages=STAGES, *, all_proved: bool
) -> None:
    solution, counted = solve_in_stages(problem, objective, stages=stages, threads=1)
    for row in range(problem.n):
        levels = tuple(solution.levels[row].tolist())
        measured = naive.measure(problem, row, levels)
        assert (solution.covered[row], solution.weight[row], solution.utility[row]) == measured
        worth, _, best = naive.best(problem, objective, row)
        assert naive.worth(problem, objective, *measured) <= worth
        if solution.is_proved[row]:
            assert levels == best
        else:
            assert not all_proved
    assert counted.open == int((~solution.is_proved).sum())


# ---- the whole, and each stage alone --------------------------------------------------------------------


@given(st.data())
@settings(max_examples=150)
def test_every_row_gets_the_best_generalization_and_it_is_proved(data):
    problem = data.draw(problems(floor=True))
    compare_with_brute_force(problem, data.draw(lagrangians(problem)), all_proved=True)


@given(interior())
@settings(max_examples=60)
def test_interior_optima_are_found_and_proved(case):
    compare_with_brute_force(*case, all_proved=True)


@pytest.mark.parametrize("stages", [("cut",), ("bracket", "cut")])
@given(interior(max_rows=40))
@settings(max_examples=40)
def test_minimum_cuts_alone_find_every_optimum(stages, case):
    problem, objective = case
    compare_with_brute_force(problem, objective, stages, all_proved=True)


@pytest.mark.parametrize(
    "stages",
    [("marginal",), ("bracket",), ("scan",), ("transport",), ("bracket", "transport"), ("bracket", "scan")],
)
@given(st.data())
@settings(max_examples=40)
def test_a_certificate_that_is_given_is_right(stages, data):
    if data.draw(st.booleans()):
        problem, objective = data.draw(interior(max_rows=40))
    else:
        problem = data.draw(problems(floor=True))
        objective = data.draw(lagrangians(problem))
    compare_with_brute_force(problem, objective, stages, all_proved=False)


@given(interior(max_rows=30))
@settings(max_examples=25)
def test_threads_and_the_choice_of_rows_change_nothing(case):
    problem, objective = case
    whole = solve(problem, objective, threads=1)
    which = np.arange(problem.n)[::-2].copy()
    part = solve(problem, objective, which=which, threads=3)
    for name in ("levels", "covered", "weight", "utility", "is_proved"):
        assert np.array_equal(getattr(whole, name)[which], getattr(part, name))


@given(problems(floor=True))
@settings(max_examples=60)
def test_without_utility_everything_is_suppressed(problem):
    solution = solve(problem, Lagrangian(Fraction(1, 1000), power=0), threads=1)
    assert solution.is_proved.all()
    assert np.array_equal(solution.covered, problem.n_side + problem.own)
    top = np.broadcast_to(problem.top(), solution.levels.shape)
    assert np.array_equal(solution.weight, problem.weight_of(solution.which, top))
    compare_with_brute_force(problem, Lagrangian(Fraction(1, 1000), power=0), all_proved=True)


@given(problems(floor=True), st.integers(0, 3))
@settings(max_examples=40)
def test_without_a_price_nothing_is_generalized(problem, power):
    solution = solve(problem, Lagrangian(Fraction(0), power), threads=1)
    assert not solution.levels.any()
    compare_with_brute_force(problem, Lagrangian(Fraction(0), power), all_proved=True)


# ---- the paper's way on the ring family -----------------------------------------------------------------


def chain(problem: LatticeProblem, row: int) -> tuple[tuple[int, ...], list[list[int]]]:
    """The heights of a row's chain product, and the levels that its elements stand for."""
    columns = [
        sorted({levels[a] for levels in naive.generalizations(problem, row)})
        for a in range(problem.n_columns)
    ]
    return tuple(len(levels) - 1 for levels in columns), columns


def levels_at(columns: list[list[int]], x) -> list[int]:
    return [levels[j] for levels, j in zip(columns, x, strict=True)]


def lagrangian(problem: LatticeProblem, objective: Lagrangian, row: int):
    """Heights, and f on the chain product, exactly."""
    heights, columns = chain(problem, row)
    return heights, {
        x: naive.worth(problem, objective, *naive.measure(problem, row, levels_at(columns, x)))
        for x in ring.points(heights)
    }


small = problems(floor=True, max_columns=3, max_height=2, max_rows=8)


@given(small, st.data())
@settings(max_examples=40)
def test_the_point_of_least_norm_on_the_ring_family_is_the_cut_and_brute_force(problem, data):
    if data.draw(st.booleans()):
        problem, objective = data.draw(interior(max_columns=2, max_rows=20))
    else:
        objective = data.draw(lagrangians(problem, powers=(1, 2, 3)))
    row = data.draw(st.integers(0, problem.n - 1))
    heights, f = lagrangian(problem, objective, row)
    assume(sum(heights) > 0)
    ordered = sorted(f.values(), reverse=True)
    assume(
        len(ordered) > 1 and float((ordered[0] - ordered[1]) / ordered[0]) > 1e-6
    )  # floats tell them apart
    found = ring.maximizer(ring.extended(f.__getitem__, heights), ring.irreducibles(heights))
    best = ring.point_of(found, len(heights))
    assert f[best] == ordered[0] == naive.best(problem, objective, row)[0]
    _, columns = chain(problem, row)
    by_cut, _ = solve_in_stages(problem, objective, which=np.array([row]), stages=("cut",), threads=1)
    assert by_cut.levels[0].tolist() == levels_at(columns, best)


@given(small, st.data())
@settings(max_examples=40)
def test_the_extension_of_the_paper_is_supermodular_and_has_the_same_maximum(problem, data):
    objective = data.draw(lagrangians(problem))
    heights, f = lagrangian(problem, objective, 0)
    ground = ring.irreducibles(heights)
    assume(len(ground) <= 6)
    g_bar = ring.extended(f.__getitem__, heights)
    sets = [frozenset(chosen) for n in range(len(ground) + 1) for chosen in itertools.combinations(ground, n)]
    value = {chosen: g_bar(chosen) for chosen in sets}
    assert all(value[x & y] + value[x | y] >= value[x] + value[y] for x, y in itertools.combinations(sets, 2))
    assert naive.is_supermodular(f)
    assert all(f[ring.point_of(x, len(heights))] >= value[x] for x in sets)
    assert max(value.values()) == max(f.values())


@given(st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple), st.data())
@settings(max_examples=60)
def test_the_chain_product_is_a_ring_family_of_sets_of_join_irreducibles(heights, data):
    n, ground = len(heights), ring.irreducibles(heights)
    family = {ring.below(x): x for x in ring.points(heights)}
    assert len(family) == len(list(ring.points(heights)))
    for (x_set, x), (y_set, y) in itertools.combinations(family.items(), 2):
        assert family[x_set & y_set] == ring.meet(x, y)
        assert family[x_set | y_set] == ring.join(x, y)
    chosen = frozenset(data.draw(st.lists(st.sampled_from(ground), max_size=4))) if ground else frozenset()
    holding = [member for member in family if chosen <= member]
    assert ring.closure(chosen, n) == frozenset.intersection(*holding)
    assert ring.closure(chosen, n) == frozenset().union(*(ring.closure({v}, n) for v in chosen))
    for v in ground:
        without = [member for member in family if v not in member]
        assert ring.largest_without(v, heights) == frozenset().union(*without)
