"""Rows may be optimized in any parts, wherever: each row finds what it finds among all."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from elsewhere import Elsewhere
from hypothesis import given, settings
from hypothesis import strategies as st
from tradeoff_cases import lagrangians, log_risks, problems, thresholds, wide_problem

from sfumato.engines.disk import DiskEngine
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
from sfumato.engines.rows import RowLayout
from sfumato.methods.risk_utility.optimize import BRANCH, SEED, SOLVERS, OptimizerChoice
from sfumato.methods.risk_utility.problem import Solution, Threshold
from sfumato.policy.options.risk_utility import APPROXIMATION, CUT, EXACT, GENETIC, PAPER, PROBING, REPAIRED
from sfumato.randomness import seeded
from sfumato.table.spill import Spill


def choice(solver: str, **limits) -> OptimizerChoice:
    """An optimizer of which nothing is asked: as printed, Algorithm 1 may miss the threshold."""
    return OptimizerChoice(solver, solver, "", limits, Fraction(0))


def genetic(variant: str) -> OptimizerChoice:
    return choice(GENETIC, variant=variant, n_members=4, n_generations=2)


BY_THRESHOLD = {
    "exact": choice(EXACT),
    "probing": choice(PROBING),
    "branch and bound": choice(BRANCH, most_boxes=3),
    "Algorithm 1": choice(APPROXIMATION),
    "Algorithm 1 as printed": choice(APPROXIMATION, variant=PAPER),
    "Algorithm 2": genetic(REPAIRED),
    "Algorithm 2 as printed": genetic(PAPER),
}


def assert_same(one: Solution, other: Solution) -> None:
    for name in Solution.__slots__:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def assert_parts_do_not_matter(problem, objective, optimizer) -> None:
    solve = SOLVERS[optimizer.solver]
    whole = solve(problem, objective, random=seeded(SEED), threads=1, **optimizer.limits)
    for n_parts in (1, 2, 5):
        engine = Elsewhere(Room(rows=-(-problem.n // n_parts)))
        assert_same(optimizer.solve(problem, objective, engine=engine), whole)
        assert engine.n_parts == -(-problem.n // engine.room.rows)


@pytest.mark.parametrize("optimizer", BY_THRESHOLD.values(), ids=BY_THRESHOLD)
@given(problem=problems(), objective=thresholds)
@settings(max_examples=15)
def test_a_threshold_is_met_alike_in_any_parts(optimizer, problem, objective):
    assert_parts_do_not_matter(problem, objective, optimizer)


@pytest.mark.parametrize("optimizer", [EXACT, CUT, PROBING])
@given(data=st.data())
@settings(max_examples=15)
def test_a_lagrangian_is_as_great_in_any_parts(optimizer, data):
    problem = data.draw(problems(floor=True))
    assert_parts_do_not_matter(problem, data.draw(lagrangians(problem)), choice(optimizer))


@pytest.mark.parametrize("optimizer", [EXACT, PROBING])
@given(problem=problems(floor=True), objective=log_risks)
@settings(max_examples=15)
def test_log_risk_is_as_great_in_any_parts(optimizer, problem, objective):
    assert_parts_do_not_matter(problem, objective, choice(optimizer))


@given(problem=problems(), objective=thresholds)
@settings(max_examples=10)
def test_an_engine_on_disk_hands_on_all_that_is_known_of_a_row(problem, objective):
    layout = RowLayout((np.dtype(np.uint32),) * problem.pack_rows().shape[1])
    with Spill() as spill:
        engine = DiskEngine(spill, layout, Room(rows=3), writer_bytes=1 << 16, threads=1)
        found = choice(EXACT).solve(problem, objective, engine=engine)
    assert_same(found, choice(EXACT).solve(problem, objective, engine=MemoryEngine(threads=1)))


def test_no_rows_have_no_generalizations():
    somebody = wide_problem(6)
    nobody = somebody.of_packed(somebody.pack_rows()[:0])
    found = choice(EXACT).solve(nobody, Threshold(Fraction(3, 5)), engine=MemoryEngine())
    assert len(found) == 0
    assert found.levels.shape == (0, nobody.n_columns)
