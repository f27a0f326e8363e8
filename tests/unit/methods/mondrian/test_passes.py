"""What Rothko-S gathers can be gathered in parts and merged: samples, covers, statistics of leaves and of candidates."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from growing import Prepared
from hypothesis import given, settings
from hypothesis import strategies as st
from level_growth import criteria_of, n_codes
from merging import gather_merged, gather_whole
from mondrian_cases import big_case

from sfumato.engines.protocol import Block, Plan
from sfumato.methods.mondrian.candidates import CandidatePlan
from sfumato.methods.mondrian.kernels.descend import Descent
from sfumato.methods.mondrian.passes import CoverPlan, LeafPlan, SamplePlan, TreePlaces
from sfumato.methods.mondrian.splits import Splitter
from sfumato.methods.mondrian.statistics import GroupStatistics
from sfumato.policy.requirements import EntropyDiversity, VarianceDiversity
from sfumato.policy.workload import Classify
from sfumato.randomness import splitmix64

N_ROWS = 120
SIZE, SEED = 30, 5


@cache
def problem_with_rows() -> tuple[Prepared, Any]:
    """Rows of the table end with their numbers; sensitive are a category and a number."""
    requirements = [EntropyDiversity(2, of="disease"), VarianceDiversity(1000, of="salary")]
    problem = big_case(11, [Classify("class")], requirements, n_rows=N_ROWS).problem()
    return problem, problem.engine.rows.copy()


def sample_plan() -> SamplePlan:
    return SamplePlan(SIZE, SEED, N_ROWS, problem_with_rows()[0].axes)


def cover_plan() -> CoverPlan:
    return CoverPlan(problem_with_rows()[0].axes)


@cache
def leaf_plan() -> LeafPlan:
    """The leaves of the tree that is grown on all rows."""
    problem, _ = problem_with_rows()
    nodes = problem.engine.grow(problem)
    part = np.zeros(len(nodes.axis), dtype=np.int64)
    return LeafPlan(nodes, problem.rules, TreePlaces(Descent(nodes, problem.axes), part, 1))


@cache
def candidate_plan() -> CandidatePlan:
    """The candidates that a splitter asks for if there was no room for sensitive values of every code."""
    problem, rows = problem_with_rows()
    criteria = criteria_of(problem)
    splitter = Splitter(criteria, criteria.whole(n_codes(problem.domains)), N_ROWS)
    assert splitter.plan is not None
    counts = splitter.plan.new(splitter.plan.n_bytes, None)
    counts.add(Block(np.ascontiguousarray(rows[:, :-1]), None))
    splitter.take(counts)
    assert isinstance(splitter.plan, CandidatePlan)
    return splitter.plan


def spell_groups(groups: GroupStatistics) -> list[Any]:
    return [groups.n_rows.tolist(), groups.values.tolist(), groups.moments.tolist()]


def spell_sample(drawn: Any) -> list[Any]:
    return [drawn.sample.tolist(), drawn.covers.tolist()]


def spell_candidates(found: Any) -> list[Any]:
    bins = {axis: spell_groups(groups) for axis, groups in found.statistics.items()}
    return [found.listed.tolist(), found.is_all, bins]


PLANS: dict[str, tuple[Callable[[], Plan[Any, Any]], Callable[[Any], list[Any]]]] = {
    "sample": (sample_plan, spell_sample),
    "covers": (cover_plan, lambda covers: covers.tolist()),
    "leaves": (leaf_plan, lambda leaves: spell_groups(leaves.groups)),
    "candidates": (candidate_plan, spell_candidates),
}


@pytest.mark.parametrize("name", PLANS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_blocks_any_order_and_any_tree_of_merges_give_the_same_answer(name: str, data: Any):
    make, spell = PLANS[name]
    plan, (_, rows) = make(), problem_with_rows()
    n = data.draw(st.sampled_from([1, 2, 9, N_ROWS]))
    copied = pickle.loads(pickle.dumps(plan))
    assert spell(gather_merged(copied, rows[:n], data)) == spell(gather_whole(plan, rows[:n]))


def test_the_answers_are_those_of_all_rows():
    """So that the law is not kept by states that say nothing."""
    problem, rows = problem_with_rows()
    drawn = gather_whole(sample_plan(), rows)
    least = np.sort(np.argsort(splitmix64(SEED, np.arange(N_ROWS)))[:SIZE])
    assert drawn.sample.tolist() == rows[np.argsort(rows[:, -1])][least, :-1].tolist()
    is_tree = problem.axes.is_tree.tolist()
    assert [node >= 0 for node in drawn.covers.tolist()] == is_tree
    assert drawn.covers.tolist() == gather_whole(cover_plan(), rows).tolist()
    leaves = gather_whole(leaf_plan(), rows)
    nodes = leaf_plan().nodes
    is_leaf = nodes.axis < 0
    assert leaves.n_rows[leaves.place[is_leaf]].tolist() == (nodes.end - nodes.start)[is_leaf].tolist()
    assert len(leaves.n_rows) > 10
    found = gather_whole(candidate_plan(), rows)
    axes = set(found.statistics)
    assert {is_tree[axis] for axis in axes} == {True, False}
    for statistics in (leaves.groups, *found.statistics.values()):
        assert statistics.n_rows.sum() == N_ROWS
        assert statistics.values.sum() == N_ROWS
        assert statistics.moments[:, :, 0].any()


def test_places_are_pickled_without_the_rows_that_they_have_seen():
    _, rows = problem_with_rows()
    places = leaf_plan().places
    seen = TreePlaces(places.descent, places.part_of_node, places.n_parts)
    before = len(pickle.dumps(seen))
    expected = seen.of(rows[:, :-1].copy())
    assert len(pickle.dumps(seen)) == before
    assert pickle.loads(pickle.dumps(seen)).of(rows[:, :-1].copy()).tolist() == expected.tolist()
