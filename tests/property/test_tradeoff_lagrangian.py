"""The Lagrangian optimum: equal to brute force by every stage; and the paper's statements that it rests on."""

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

from sfumato.tradeoff.lagrangian import STAGES, solve, solve_in_stages
from sfumato.tradeoff.problem import Lagrangian, Problem


def compare_with_brute_force(
    problem: Problem, objective: Lagrangian, stages=STAGES, *, all_proved: bool
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
    compare_with_brute_force(*case, stages, all_proved=True)


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


def chain(problem: Problem, row: int) -> tuple[tuple[int, ...], list[list[int]]]:
    """The heights of a row's chain product, and the levels that its elements stand for."""
    columns = [
        sorted({levels[a] for levels in naive.generalizations(problem, row)})
        for a in range(problem.n_columns)
    ]
    return tuple(len(levels) - 1 for levels in columns), columns


def functions(problem: Problem, objective: Lagrangian, row: int):
    """Heights, and rho, Phi, u and f on the chain product, exactly."""
    heights, columns = chain(problem, row)
    measured = {
        x: naive.measure(problem, row, [levels[j] for levels, j in zip(columns, x, strict=True)])
        for x in ring.points(heights)
    }
    unit = Fraction(problem.utility_unit)
    rho = {x: Fraction(max(found[0], 1)) for x, found in measured.items()}
    phi = {x: Fraction(found[1]) * Fraction(problem.weight_unit) for x, found in measured.items()}
    u = {x: found[2] * unit for x, found in measured.items()}
    f = {x: objective.price * rho[x] / phi[x] + u[x] ** objective.power for x in rho}
    return heights, rho, phi, u, f


def is_supermodular(f) -> bool:
    """By definition [FEB12, equation 1]."""
    return all(
        f[ring.meet(x, y)] + f[ring.join(x, y)] >= f[x] + f[y] for x, y in itertools.combinations(f, 2)
    )


def differences_rise(f, heights) -> bool:
    """Proposition 1: one more level of a column adds the more, the higher the others stand."""

    def up(x, i):
        return tuple(level + (i == column) for column, level in enumerate(x))

    return all(
        f[up(up(x, i), j)] - f[up(x, j)] >= f[up(x, i)] - f[x]
        for x in f
        for i, j in itertools.permutations(range(len(heights)), 2)
        if x[i] < heights[i] and x[j] < heights[j]
    )


def rises(f, *, sign: int = 1) -> bool:
    """Increasing: f(x) >= f(y) for x above y. Definition 2 of the paper prints the same inequality for both cases."""
    return all(
        sign * f[x] >= sign * f[y] for x, y in itertools.permutations(f, 2) if all(map(int.__ge__, x, y))
    )


small = problems(floor=True, max_columns=3, max_height=2, max_rows=8)


@given(small, st.data())
@settings(max_examples=40)
def test_the_point_of_least_norm_on_the_ring_family_is_the_cut_and_brute_force(problem, data):
    if data.draw(st.booleans()):
        problem, objective = data.draw(interior(max_columns=2, max_rows=20))
    else:
        objective = data.draw(lagrangians(problem, powers=(1, 2, 3)))
    row = data.draw(st.integers(0, problem.n - 1))
    heights, *_, f = functions(problem, objective, row)
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
    assert by_cut.levels[0].tolist() == [levels[j] for levels, j in zip(columns, best, strict=True)]


@given(small, st.data())
@settings(max_examples=40)
def test_the_extension_of_the_paper_is_supermodular_and_has_the_same_maximum(problem, data):
    objective = data.draw(lagrangians(problem))
    heights, *_, f = functions(problem, objective, 0)
    ground = ring.irreducibles(heights)
    assume(len(ground) <= 6)
    g_bar = ring.extended(f.__getitem__, heights)
    sets = [frozenset(chosen) for n in range(len(ground) + 1) for chosen in itertools.combinations(ground, n)]
    value = {chosen: g_bar(chosen) for chosen in sets}
    assert all(value[x & y] + value[x | y] >= value[x] + value[y] for x, y in itertools.combinations(sets, 2))
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


@given(small, st.data())
@settings(max_examples=60)
def test_propositions_1_and_2_and_corollary_1(problem, data):
    objective = data.draw(lagrangians(problem))
    heights, rho, phi, u, _ = functions(problem, objective, data.draw(st.integers(0, problem.n - 1)))
    assert rises(rho)
    assert rises(u, sign=-1)
    assert rises(phi, sign=-1)
    assert is_supermodular(rho)  # proposition 2 (i)
    product = dict(u)
    for _ in range(3):  # proposition 2 (ii), again and again: corollary 1
        product = {x: value * phi[x] for x, value in product.items()}
        assert is_supermodular(product)
        assert rises(product, sign=-1)
    power = {x: phi[x] * u[x] ** objective.power for x in u}
    assert is_supermodular(power)
    assert differences_rise(power, heights)


@given(small, st.data())
@settings(max_examples=60)
def test_the_lagrangian_itself_is_supermodular(problem, data):
    objective = data.draw(lagrangians(problem))
    heights, _, phi, _, f = functions(problem, objective, data.draw(st.integers(0, problem.n - 1)))
    inverse = {x: 1 / weight for x, weight in phi.items()}
    assert rises(inverse)
    assert is_supermodular(inverse)
    assert is_supermodular(f)
    assert differences_rise(f, heights)


@given(st.lists(st.integers(1, 2), min_size=2, max_size=3).map(tuple), st.data())
@settings(max_examples=60)
def test_differences_rise_exactly_if_a_function_is_supermodular(heights, data):
    f = {x: data.draw(st.integers(0, 3)) for x in ring.points(heights)}
    if data.draw(st.booleans()):
        f = {x: value + sum(x) ** 2 * 3 for x, value in f.items()}
    assert differences_rise(f, heights) == is_supermodular(f)
