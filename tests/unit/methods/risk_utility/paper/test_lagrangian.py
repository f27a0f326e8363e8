"""The Lagrangian optimum: tables counted by hand, ties, sizes of cuts, generated tables, Adult; and its kernels."""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction
from pathlib import Path

import naive_tradeoff as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lagrangian_cases import domains, interior
from lagrangian_cases import table as skewed_columns
from tradeoff_cases import problems, table

from sfumato.errors import InternalError
from sfumato.methods.risk_utility.kernels.lattice import SideRows
from sfumato.methods.risk_utility.optimizers import exact
from sfumato.methods.risk_utility.paper.cut import MOST_CUTS, Bracket, best_of, worth_of
from sfumato.methods.risk_utility.paper.kernels import bracket, flow, marginal
from sfumato.methods.risk_utility.paper.kernels.bracket import Standing
from sfumato.methods.risk_utility.paper.kernels.marginal import BoundScratch, Ladder
from sfumato.methods.risk_utility.paper.lagrangian import (
    STAGES,
    Stages,
    share_interior,
    solve,
    solve_in_stages,
)
from sfumato.methods.risk_utility.problem import Lagrangian, LatticeProblem, LogRisk, Threshold, problem_of
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options.risk_utility import Weights

SEXES = Hierarchy.from_tree({"*": ["f", "m"]})
PLACES = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c", "d"]}})
MODEL_2 = Weights("model-2")


def one(problem: LatticeProblem, price, power: int = 1, **options):
    return solve_in_stages(problem, Lagrangian(Fraction(price), power), threads=1, **options)


# ---- small tables ---------------------------------------------------------------------------------------


def test_an_interior_optimum_counted_by_hand():
    case = table([PLACES, SEXES], *[[0, 0]] * 2, *[[1, 0]] * 3, *[[3, 0]] * 2, [2, 1], weights=MODEL_2)
    # Phi is 1. (a, f) covers 2, (North, f) 5, (*, f) 7 and (*, *) 8 rows; utilities are 3, 2, 1 and 0.
    for price, levels in (
        ("1/4", [0, 0]), ("1/3", [0, 0]), ("2/5", [1, 0]), ("1/2", [1, 0]), ("3/4", [2, 0]), (1, [2, 0]), (2, [2, 1]),
    ):  # fmt: skip
        found, _ = one(case, price)
        worth = {x: Fraction(price) * naive.measure(case, 0, x)[0] + naive.measure(case, 0, x)[2]
                 for x in itertools.product(range(3), range(2))}  # fmt: skip
        assert found.levels[0].tolist() == levels
        assert worth[levels[0], levels[1]] == max(worth.values())
        assert found.is_proved.all()


def test_of_a_row_that_is_worth_as_much_raw_as_suppressed_nothing_is_hidden():
    case = table([SEXES], [0], [1], weights=MODEL_2)  # raw: p + 1, suppressed: 2 p
    assert one(case, 1)[0].levels.tolist() == [[0], [0]]
    assert one(case, Fraction(10**15 + 1, 10**15))[0].levels.tolist() == [[1], [1]]
    assert one(case, 1, stages=("cut",))[0].levels.tolist() == [[0], [0]]
    assert one(case, Fraction(10**15 + 1, 10**15), stages=("cut",))[0].levels.tolist() == [[1], [1]]


def test_a_column_with_one_value_is_never_hidden_for_nothing():
    case = table([SEXES, SEXES], [0, 0], [0, 1], [0, 1], weights=MODEL_2)
    found, _ = one(case, 100)
    assert found.levels.tolist() == [[0, 1], [0, 1]]
    assert share_interior(case, found) == 0.0  # it hides each row among all of them


def test_a_row_that_the_side_table_lacks_counts_itself():
    case = table([SEXES, PLACES], [0, 0], [1, 3], side=[[0, 0], [0, 1]], weights=MODEL_2)
    for price in (Fraction(1, 10), 1, 3):
        found, _ = one(case, price)
        assert found.covered.tolist() == [naive.measure(case, row, found.levels[row])[0] for row in range(2)]
        assert [tuple(levels) for levels in found.levels.tolist()] == [
            naive.best(case, Lagrangian(Fraction(price)), row)[2] for row in range(2)
        ]


def test_other_objectives_and_weights_of_nothing_are_refused():
    case = table([SEXES], [0], [1], weights=MODEL_2)
    for objective in (Threshold(Fraction(1, 2)), LogRisk(Fraction(1))):
        with pytest.raises(InternalError, match="Lagrangian objective only"):
            solve(case, objective)
    with pytest.raises(InternalError, match="weight above 0"):
        one(table([SEXES], [0], [1]), 1)
    with pytest.raises(InternalError, match="weight above 0"):
        one(table([SEXES], [0], [1], weights=MODEL_2, factor=np.array([[1.0], [0.0]])), 1)


def test_no_rows_have_no_optimum():
    case = table([SEXES], [0], [1], weights=MODEL_2)
    found, stages = solve_in_stages(case, Lagrangian(Fraction(1)), which=np.zeros(0, dtype=np.int64))
    assert len(found) == 0
    assert stages == Stages()


# ---- stages and sizes -----------------------------------------------------------------------------------


def hard() -> tuple[LatticeProblem, Lagrangian]:
    """Rows that nothing but a cut proves: weights that hardly change, at the price where raw and suppressed tie."""
    case = problem_of(domains(5), skewed_columns(400, 5, 3), weights=Weights("harmonic"), floor=30.0)
    return case, Lagrangian(Fraction(case.lambda_0()).limit_denominator(10**6))


def test_a_cut_beyond_the_largest_is_not_made_and_the_row_not_proved():
    case, objective = hard()
    exactly, stages = solve_in_stages(case, objective, threads=1)
    assert stages.cut > 0
    assert stages.open == 0
    at_most, less = solve_in_stages(case, objective, threads=1, largest_cut=10)
    assert less.open == int((~at_most.is_proved).sum()) == stages.cut
    assert less.marginal == stages.marginal
    value, best = case.value(objective, at_most), case.value(objective, exactly)
    assert np.all(value <= best * (1 + 1e-12))
    assert np.array_equal(value[at_most.is_proved], best[at_most.is_proved])


@pytest.mark.parametrize(
    ("model", "floor", "power", "some"),
    [("harmonic", 30.0, 1, False), ("model-2", 0.0, 1, True), ("model-2", 0.0, 3, False)],
)
def test_cuts_on_more_columns_agree_with_the_cube(model, floor, power, some):
    case = problem_of(domains(5), skewed_columns(400, 5, 8), weights=Weights(model), floor=floor)
    price = Fraction(case.lambda_0() * 1.1 * 15 ** (power - 1)).limit_denominator(10**6)
    found, _ = one(case, price, power, stages=("cut",))
    cube = exact.solve(case, Lagrangian(price, power), threads=1)
    assert np.array_equal(found.levels, cube.levels)
    assert (share_interior(case, found) > 0.1) == some


def test_more_cuts_alike_than_are_looked_at_prove_nothing():
    """All steps of a bracket are alike: no capacity tells them apart."""
    n_columns = 9
    same = np.zeros((n_columns, 2), dtype=np.int64)
    ladder = Ladder(np.full(n_columns, 2), level=same, n_rows=same, weight=same + 1, utility=same)
    alike = Bracket(
        ladder, np.zeros(n_columns, dtype=np.int64), np.ones(n_columns, dtype=np.int64),
        Standing(np.zeros((n_columns, 1), dtype=np.uint8), np.ones(1, dtype=np.int64)), 1, 0, 1.0, 1.0,
    )  # fmt: skip
    assert 2**n_columns > MOST_CUTS
    steps, is_proved = best_of(alike, Lagrangian(Fraction(1)), alike.high)
    assert not is_proved
    assert worth_of(Lagrangian(Fraction(1)), *alike.measure(steps), 1.0, 1.0) == Fraction(1, n_columns)


def test_progress_is_told_of_all_rows():
    case, objective = hard()
    told = []
    solve(case, objective, threads=1, progress=lambda *what: told.append(what))
    assert ("single columns", case.n, case.n) in told
    last = [done for stage, done, _ in told if stage == "proofs"]
    assert last == list(range(1, len(last) + 1))
    assert told[-1][1] == told[-1][2] == len(last)


def test_every_row_is_in_the_count_of_one_stage():
    case, objective = hard()
    for stages in (STAGES, ("marginal",), ("cut",), ()):
        _, counted = solve_in_stages(case, objective, stages=stages, threads=1)
        n = sum(getattr(counted, name) for name in Stages.__dataclass_fields__)
        assert n == case.n


# ---- raw or suppressed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [0.03, 0.3, 0.9, 1.0, 1.1, 3.0, 30.0])
@pytest.mark.parametrize(("model", "floor"), [("harmonic", 0.1), ("model-1", 1.0)])
def test_optima_of_a_generated_table_are_raw_or_suppressed_and_proved_by_single_columns(times, model, floor):
    sys.path.insert(0, str(Path(__file__).resolve().parents[5] / "reproduction"))
    from lab.products import products

    made = products(3_000, 30)
    case = problem_of(made.domains, made.codes, weights=Weights(model), floor=floor)
    found, stages = one(case, Fraction(case.lambda_0() * times))
    assert share_interior(case, found) == 0.0
    assert stages.marginal == case.n
    assert found.is_proved.all()


def test_the_share_of_interior_optima_counts_rows_of_the_table():
    case = table([PLACES], [0], [0], [1], [2], [3], [3], weights=MODEL_2)
    levels = np.array([[0], [1], [2], [1]], dtype=np.uint8)
    assert share_interior(case, case.solution(levels)) == 3 / 6  # row 1 once, row 3 twice


# ---- kernels against their naive twins ------------------------------------------------------------------


def capacity_of(cut: frozenset[int], tail, head, room) -> int:
    """What leads out of the source's side, arcs in both directions."""
    return sum(
        int(room[2 * q + back])
        for q, ends in enumerate(zip(tail.tolist(), head.tolist(), strict=True))
        for back in (0, 1)
        if ends[back] in cut and ends[1 - back] not in cut
    )


@st.composite
def graphs(draw):
    n = draw(st.integers(2, 7))
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=16))
    tail, head = (np.array([end[i] for end in ends], dtype=np.int32) for i in (0, 1))
    room = np.array(
        draw(st.lists(st.sampled_from([0, 1, 2, 5, 9]), min_size=2 * len(ends), max_size=2 * len(ends))),
        dtype=np.int64,
    )
    return n, tail, head, room


@given(graphs(), st.integers(0, 4))
@settings(max_examples=150)
def test_a_maximum_flow_is_a_minimum_cut_and_near_ones_are_closed_under_roomy_arcs(graph, slack):
    n, tail, head, room = graph
    cuts = {
        frozenset(cut): capacity_of(frozenset(cut), tail, head, room)
        for k in range(n)
        for cut in itertools.combinations(range(n), k)
        if 0 in cut and 1 not in cut
    }
    start, arcs = np.empty(n + 1, dtype=np.int64), np.empty(len(room), dtype=np.int32)
    network = flow.Network(tail, head, start, arcs)
    flow.fill_star(network)
    left = room.copy()
    pushed = flow.push_flow(network, 0, 1, left)
    assert pushed == min(cuts.values())
    assert np.all(left >= 0)
    assert np.array_equal(left[::2] + left[1::2], room[::2] + room[1::2])
    side = np.zeros(n, dtype=np.uint8)
    flow.spread_side(network, left, slack, 0, flow.SOURCE, side)
    flow.spread_side(network, left, slack, 1, flow.SINK, side)
    for cut, capacity in cuts.items():
        if capacity <= pushed + slack:
            assert all(node in cut for node in np.flatnonzero(side == flow.SOURCE))
            assert all(node not in cut for node in np.flatnonzero(side == flow.SINK))
    least = np.zeros(n, dtype=np.uint8)
    flow.spread_side(network, left, 0, 0, flow.SOURCE, least)
    best = [cut for cut, capacity in cuts.items() if capacity == pushed]
    assert frozenset(np.flatnonzero(least == flow.SOURCE).tolist()) == frozenset.intersection(*best)


def ladders(case: LatticeProblem, row: int):
    counts = []
    for node, (low, high) in enumerate(zip(case.lattice.low, case.lattice.high, strict=True)):
        column = case.side[:, np.searchsorted(case.lattice.root, node, side="right") - 1]
        counts.append(int(case.side_count[(low <= column) & (column < high)].sum()))
    node_count = np.array(counts)
    shape = case.n_columns, int(case.lattice.n_levels.max())
    ladder = Ladder(
        np.empty(case.n_columns, dtype=np.int64), *(np.empty(shape, dtype=np.int64) for _ in range(4))
    )
    marginal.fill_ladder(case.lattice, node_count, case.table_rows, row, ladder)
    return ladder.size, ladder


@given(problems(floor=True), st.data())
@settings(max_examples=60)
def test_a_ladder_leaves_out_only_steps_that_are_never_best(case, data):
    row = data.draw(st.integers(0, case.n - 1))
    size, ladder = ladders(case, row)
    for power, price in ((1, Fraction(1, 7)), (2, Fraction(5))):
        levels = naive.best(case, Lagrangian(price, power), row)[2]
        for a, level in enumerate(levels):
            assert level in ladder.level[a, : size[a]]
    top = [int(ladder.level[a, size[a] - 1]) for a in range(case.n_columns)]
    assert naive.measure(case, row, top)[0] == case.n_side + case.own[row]
    for a in range(case.n_columns):
        for step in range(size[a]):
            alone = [int(ladder.level[a, step]) if b == a else top[b] for b in range(case.n_columns)]
            assert naive.measure(case, row, alone)[0] == ladder.n_rows[a, step]


@given(problems(floor=True), st.data())
@settings(max_examples=60)
def test_the_bounds_of_single_columns_hold_for_every_generalization(case, data):
    row = data.draw(st.integers(0, case.n - 1))
    size, ladder = ladders(case, row)
    low, high = np.zeros_like(size), size - 1
    n_bins = marginal.N_BINS
    bounds = BoundScratch(
        np.empty(n_bins), np.zeros(n_bins, dtype=np.int64), np.empty(n_bins), np.empty_like(low)
    )
    width, last = marginal.fill_bounds(ladder, low, high, case.floor, bounds)
    least = np.full(last + 1, np.inf)
    for steps in itertools.product(*(range(n) for n in size)):
        levels = [int(ladder.level[a, step]) for a, step in enumerate(steps)]
        covered, weight, _ = naive.measure(case, row, levels)
        b = sum(
            int(ladder.utility[a, 0] - ladder.utility[a, step]) // int(width) for a, step in enumerate(steps)
        )
        least[b] = min(least[b], weight)
        assert covered <= bounds.most[b]
    assert np.array_equal(bounds.lightest[: last + 1], least)  # the knapsack is exact


@given(interior(max_rows=20), st.data())
@settings(max_examples=40)
def test_rows_stand_where_they_are_first_covered(drawn, data):
    case, _ = drawn
    row = data.draw(st.integers(0, case.n - 1))
    size, ladder = ladders(case, row)
    high = np.array([data.draw(st.integers(0, int(n) - 1)) for n in size])
    n_side = len(case.side)
    standing = Standing(
        np.empty((case.n_columns, n_side + 1), dtype=np.uint8), np.empty(n_side + 1, dtype=np.int64)
    )
    side = SideRows(np.ascontiguousarray(case.side.T), case.side_count)
    n = bracket.fill_standing(case.lattice, side, case.table_rows, row, ladder, high, standing)
    for merged in (False, True):
        n = bracket.merge_alike(standing, n) if merged else n
        for steps in itertools.product(*(range(top + 1) for top in high)):
            levels = [int(ladder.level[a, step]) for a, step in enumerate(steps)]
            found = bracket.count_covered(standing, n, np.array(steps))
            assert found == naive.measure(case, row, levels)[0]
    assert len({tuple(column) for column in standing.step[:, :n].T.tolist()}) == n


# ---- Adult ----------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.slow
def test_certificates_of_single_columns_agree_with_the_cube_on_all_of_adult(data_folder):
    sys.path.insert(0, str(Path(__file__).resolve().parents[5] / "reproduction"))
    from lab.tradeoff_tables import adult

    columns, codes = adult()
    n_proved = []
    for model, floor, times in (("harmonic", 1.0, 1.0), ("model-1", 1.0, 3.0), ("model-2", 0.0, 0.9)):
        case = problem_of(columns, codes, weights=Weights(model), floor=floor)
        objective = Lagrangian(Fraction(case.lambda_0() * times).limit_denominator(10**9))
        found, stages = solve_in_stages(case, objective, stages=("marginal",))
        cube = exact.solve(case, objective)
        proved = found.is_proved
        assert np.array_equal(found.levels[proved], cube.levels[proved])
        assert np.array_equal(found.covered[proved], cube.covered[proved])
        n_proved.append(stages.marginal / case.n)
    assert n_proved[:2] == [1.0, 1.0]
