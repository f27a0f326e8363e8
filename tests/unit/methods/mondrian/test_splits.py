"""Counts of a node and splitters: passes, memory, merging, and what random tables of a few rows do not reach."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from growing import Prepared
from hypothesis import given, settings
from hypothesis import strategies as st
from level_growth import criteria_of, decide, leaves, leaves_in_memory, n_codes
from mondrian_cases import big_case

from sfumato.engines.counts import SortedCounts
from sfumato.engines.memory_plan import share_room
from sfumato.engines.protocol import Block
from sfumato.methods.mondrian import node_counts, splits, statistics
from sfumato.methods.mondrian.candidates import CANDIDATE, CandidatePlan
from sfumato.methods.mondrian.node_counts import CountPlan, NodeCounts, SplitCriteria
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.problem import SplitProblem
from sfumato.methods.mondrian.splits import Splitter
from sfumato.methods.mondrian.statistics import GroupStatistics
from sfumato.policy.requirements import EntropyDiversity, KAnonymity, VarianceDiversity
from sfumato.policy.workload import Classify, Regress
from sfumato.table.spill import Spill

PLENTY = 1 << 30


def asked(workload: list[Any], requirements: list[Any], **options: Any) -> tuple[Prepared, SplitCriteria]:
    problem = big_case(11, workload, requirements, **options).problem()
    return problem, criteria_of(problem)


def root(
    problem: Prepared, criteria: SplitCriteria, memory: int, spill: Spill | None = None
) -> tuple[Splitter, int]:
    state = criteria.whole(n_codes(problem.domains))
    return decide(criteria, state, problem.engine.rows[:, :-1].copy(), memory=memory, block=64, spill=spill)


def same_tree(problem: Prepared, criteria: SplitCriteria, memory: int = PLENTY) -> None:
    rows = problem.engine.rows.copy()
    expected = {leaf[0]: leaf for leaf in leaves_in_memory(problem)}
    state = criteria.whole(n_codes(problem.domains))
    assert {leaf[0]: leaf for leaf in leaves(criteria, state, rows, memory=memory, block=64)} == expected


WORKLOADS: list[list[Any]] = [
    [],
    [Classify("class")],
    [Regress("hours")],
    [Classify(["class", "job"])],
    [Classify("class", features=["colour"]), Regress("hours", features=["job"])],
]

# ---- passes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("requirement", [KAnonymity(5), EntropyDiversity(2, of="disease")])
def test_one_pass_is_enough_where_memory_is(workload, requirement):
    problem, criteria = asked(workload, [requirement])
    splitter, passes = root(problem, criteria, PLENTY)
    assert splitter.result is not None
    assert passes == 1


@pytest.mark.parametrize("memory", [1, 100, 400, 3000])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_one_pass_is_enough_however_little_memory_there_is(workload, memory):
    """What does not fit is counted by sorting, on disk."""
    problem, criteria = asked(workload, [KAnonymity(5)])
    expected, _ = root(problem, criteria, PLENTY)
    with Spill() as spill:
        splitter, passes = root(problem, criteria, memory, spill)
        assert spill.counters.bytes_written > 0 or memory >= 3000
        left = [path.name for path in spill.folder.iterdir() if path.name != "lock"]
        assert left == [], "runs are removed once the split is known"
    assert passes == 1
    assert splitter.result is not None
    assert expected.result is not None
    assert (splitter.result.axis, splitter.result.threshold, splitter.result.sizes) == (
        expected.result.axis,
        expected.result.threshold,
        expected.result.sizes,
    )


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_second_pass_checks_the_best_candidates_where_sensitive_values_do_not_fit_beside_the_rest(workload):
    problem, criteria = asked(workload, [EntropyDiversity(2, of="disease")])
    state = criteria.whole(n_codes(problem.domains))
    plan = Splitter(criteria, state, problem.engine.n_rows).plan
    assert plan is not None
    one, passes = root(problem, criteria, plan.n_bytes)
    assert passes == 2
    assert one.result is not None
    other, _ = root(problem, criteria, PLENTY)
    assert other.result is not None
    assert (one.result.axis, one.result.threshold) == (other.result.axis, other.result.threshold)


def test_candidates_are_listed_until_one_is_allowable_or_none_is_left(monkeypatch):
    problem, criteria = asked([Classify("class")], [EntropyDiversity(4.95, of="disease")])
    expected, _ = root(problem, criteria, PLENTY)
    monkeypatch.setattr(splits, "FIRST_LISTED", 2)
    monkeypatch.setattr(splits, "MORE", 2)
    monkeypatch.setattr(NodeCounts, "_make_statistics", lambda *_: {})
    found, passes = root(problem, criteria, PLENTY)
    assert passes > 3
    assert (found.result is None) == (expected.result is None)
    if found.result is not None and expected.result is not None:
        assert (found.result.axis, found.result.threshold) == (
            expected.result.axis,
            expected.result.threshold,
        )


def test_counts_take_what_they_say_and_no_more_than_they_may():
    problem, criteria = asked([Classify("class")], [EntropyDiversity(2, of="disease")])
    rows = problem.engine.rows[:, :-1].copy()
    for memory in (300, 1000, 5000, 20_000, PLENTY):
        splitter = Splitter(criteria, criteria.whole(n_codes(problem.domains)), problem.engine.n_rows)
        while splitter.plan is not None:
            state = splitter.plan.new(memory, None)
            assert state.n_bytes <= memory
            state.add(Block(rows, None))
            statistics = state.statistics.values()
            taken = sum(each.values.nbytes + each.moments.nbytes + each.n_rows.nbytes for each in statistics)
            if isinstance(state, NodeCounts):
                taken += state.lines.nbytes
                assert taken <= state.n_bytes
            splitter.take(state)
        assert splitter.result is not None


def test_a_node_too_small_to_split_is_a_leaf_and_only_the_ranges_of_its_trees_are_asked_for():
    problem, criteria = asked([Classify("class")], [KAnonymity(5)])
    rows = problem.engine.rows[:9, :-1].copy()
    state = criteria.whole(n_codes(problem.domains))
    splitter, passes = decide(criteria, state, rows, memory=10, block=4)
    assert (splitter.result, passes) == (None, 1)
    is_tree = problem.axes.is_tree
    assert (splitter.covers[is_tree] >= 0).all()
    assert (splitter.covers[~is_tree] == -1).all()
    assert splitter.low.tolist() == rows.min(axis=0)[: len(is_tree)].tolist()
    ordered = problem.axes._replace(is_tree=np.zeros_like(is_tree))
    plain = SplitCriteria(SplitProblem(ordered, problem.targets, problem.rules))
    assert Splitter(plain, state, 9).plan is None


def test_shares_give_everyone_what_it_wants_and_what_is_left_in_equal_parts():
    problem, criteria = asked([], [KAnonymity(5)])
    state = criteria.whole(n_codes(problem.domains))
    small = NodeRange.from_bounds(state.as_bounds() // 2)
    splitters = [Splitter(criteria, state, 200), Splitter(criteria, small, 60), Splitter(criteria, state, 9)]
    wanted = [0 if splitter.plan is None else splitter.plan.n_bytes for splitter in splitters]
    assert wanted[0] > wanted[1] > wanted[2] == 0
    assert splitters[0].plan is not None
    assert wanted[0] == splitters[0].plan.new(PLENTY, None).n_bytes
    assert share_room(wanted, sum(wanted) + 30) == [each + 10 for each in wanted]
    short = share_room(wanted, sum(wanted) // 2)
    assert sum(short) <= sum(wanted) // 2
    assert short[0] > short[1]


# ---- layouts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", [[Classify("class")], [Regress("salary")]])
@pytest.mark.parametrize("memory", [PLENTY, 500])
def test_words_that_do_not_fit_into_one_are_stored_apart(workload, memory, monkeypatch):
    problem, criteria = asked(workload, [KAnonymity(3)])
    monkeypatch.setattr(node_counts, "single_packing", lambda _n, _targets: 0)
    assert node_counts.choose_layout(criteria, 260).words == 2
    same_tree(problem, criteria, memory)


@pytest.mark.parametrize("workload", [WORKLOADS[1], WORKLOADS[3], WORKLOADS[4]])
def test_logarithms_beyond_the_table_are_those_of_a_longer_one(workload, monkeypatch):
    problem, _ = asked(workload, [KAnonymity(3)], below=0.02)
    monkeypatch.setattr(node_counts, "TABLE", 4)
    criteria = criteria_of(problem)
    assert len(criteria.table) == 5
    same_tree(problem, criteria)


# ---- pieces ----------------------------------------------------------------------------------------


def described(counts: NodeCounts) -> Any:
    """All that a splitter can read of the counts."""
    axes = counts.plan.axes
    entries = {
        (axis, f): [
            (codes.tolist(), *(column.tolist() for column in found))
            for codes, found in counts.entries(
                axis, f, int(counts.plan.known.low[axis]), int(counts.plan.known.high[axis]) + 1
            )
        ]
        for axis in axes
        for f in range(len(counts.criteria.features))
    }
    bins = {axis: counts.bins(axis) for axis in axes}
    return (
        {
            axis: [
                (code, words)
                for each in counts.stretches(axis)
                for code, words in zip(each.code.tolist(), each.words.tolist(), strict=True)
            ]
            for axis in axes
        },
        {key: [list(chain(*parts)) for parts in zip(*found, strict=True)] for key, found in entries.items()},
        {
            axis: None if found is None else [column.tolist() for column in found]
            for axis, found in bins.items()
        },
        None if counts.code_ends is None else counts.code_ends.get().tolist(),
    )


@given(
    st.sampled_from(WORKLOADS),
    st.sampled_from([100, 3000, 20_000, PLENTY]),
    st.lists(st.integers(1, 40), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
    st.booleans(),
)
@settings(max_examples=60)
def test_counts_are_the_same_however_rows_are_cut_and_merged(workload, memory, cuts, chance, has_spill):
    """Any chunking, any order and any tree of merges gives the same state."""
    problem, criteria = asked(
        workload, [EntropyDiversity(2, of="disease"), VarianceDiversity(1, of="salary")]
    )
    rows = problem.engine.rows[:80, :-1].copy()
    known = criteria.whole(n_codes(problem.domains))
    plan = CountPlan(criteria, known, len(rows), tuple(range(criteria.n_axes)), wants_ranges=True)
    whole = plan.new(memory, None)
    whole.add(Block(rows, None))
    with Spill() as spill:
        parts = np.split(rows, sorted(cut for cut in np.cumsum(cuts).tolist() if cut < len(rows)))
        chance.shuffle(parts)
        states = []
        for part in parts:
            state = plan.new(memory, spill if has_spill else None)
            state.add(Block(np.ascontiguousarray(part), None))
            states.append(state)
        while len(states) > 1:
            one = states.pop(chance.randrange(len(states)))
            states[chance.randrange(len(states))].merge(one)
            one.discard()
        if memory == 100:
            assert all(isinstance(counts, SortedCounts) for counts in states[0].sorted.values())
            assert states[0].sorted
        assert described(states[0]) == described(whole)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 200)), min_size=1, max_size=60), st.integers(1, 60)
)
def test_statistics_of_groups_add_up(lines, cut):
    problem, _ = asked([], [EntropyDiversity(2, of="disease"), VarianceDiversity(1, of="salary")])
    rows = problem.engine.rows[np.array([at for _, at in lines])][:, :-1].copy()
    group = np.array([g for g, _ in lines])
    whole, left, right = (GroupStatistics(5, problem.rules) for _ in range(3))
    whole.add(rows, group)
    left.add(rows[:cut], group[:cut])
    right.add(rows[cut:], group[cut:])
    right.merge(left)
    assert (whole.n_rows == right.n_rows).all()
    assert (whole.values == right.values).all()
    assert (whole.moments == right.moments).all()
    assert whole.n_rows.tolist() == np.bincount(group, minlength=5).tolist()


def test_counts_of_values_take_eight_bytes_where_four_would_overflow(monkeypatch):
    problem, _ = asked([], [EntropyDiversity(2, of="disease")])
    rows = problem.engine.rows[:100, :-1].copy()
    group = np.zeros(len(rows), dtype=np.int64)
    small, large, more = (GroupStatistics(1, problem.rules) for _ in range(3))
    small.add(rows, group)
    monkeypatch.setattr(statistics, "LARGE", 150)
    large.add(rows, group)
    assert large.values.dtype == np.uint32
    more.add(rows, group)
    large.merge(more)
    assert large.values.dtype == np.int64
    assert (large.values == 2 * small.values).all()
    assert (large.as_bins(np.zeros(0, dtype=np.int64)).values == 2 * small.values).all()
    assert large.hold().tolist() == small.hold().tolist() == [True]
    nearly = GroupStatistics(1, problem.rules)
    nearly.values[:] = np.iinfo(np.uint32).max
    nearly.merge(large)
    assert (nearly.values == 2 * small.values.astype(np.int64) + np.iinfo(np.uint32).max).all()


def test_candidates_go_on_where_the_last_list_ended(monkeypatch):
    """Listed two at a time, after the last one each time, they come in one order: score, balance, axis, code."""
    problem, criteria = asked([Regress("hours")], [KAnonymity(2)])
    state = criteria.whole(n_codes(problem.domains))
    splitter = Splitter(criteria, state, problem.engine.n_rows)
    assert isinstance(splitter.plan, CountPlan)
    counts = splitter.plan.new(PLENTY, None)
    counts.add(Block(problem.engine.rows[:, :-1].copy(), None))
    splitter._note(counts)
    axes = splitter._order_axes(splits.Purpose.SCORE, counts.plan.axes)
    everything, is_all = splitter._list_candidates(splits.Purpose.SCORE, axes, counts, None, 10**6)
    assert is_all
    keys = [(-c["score"], c["largest"], c["axis"], c["code"]) for c in everything]
    assert keys == sorted(keys)
    found, floor = [], None
    while True:
        listed, is_all = splitter._list_candidates(splits.Purpose.SCORE, axes, counts, floor, 50)
        found += listed.tolist()
        if is_all:
            break
        floor = listed[-1]
    assert found == everything.tolist()


def test_a_plan_of_candidates_takes_the_best_that_there_is_room_for():
    _, criteria = asked([], [EntropyDiversity(2, of="disease")])
    listed = np.zeros(100, dtype=CANDIDATE[np.int64])
    listed["code"] = np.arange(100)
    plan = CandidatePlan(criteria, listed, {}, is_all=True)
    assert plan.new(plan.n_bytes).is_all
    few = plan.new(plan.n_bytes // 2)
    assert 1 < len(few.listed) < 100
    assert not few.is_all
    assert few.listed.tolist() == listed[: len(few.listed)].tolist()
    assert len(plan.new(0).listed) == 1


def test_a_histogram_by_edges_is_that_by_codes_between_them():
    problem, _ = asked([], [EntropyDiversity(2, of="disease"), KAnonymity(2)])
    rows = problem.engine.rows[:, :-1].copy()
    n, codes = problem.domains[0].n_codes, rows[:, 0]
    edges = np.array([20, 90, 91, 300])
    by_code, by_edge = GroupStatistics(n, problem.rules), GroupStatistics(5, problem.rules)
    by_code.add(rows, codes)
    by_edge.add(rows, np.searchsorted(edges, codes, side="left"))
    fine, coarse = by_code.as_bins(np.arange(n - 1)), by_edge.as_bins(edges)
    assert (coarse.values == fine.values[[20, 90, 91, 300, n - 1]]).all()
    assert (coarse.n_rows == fine.n_rows[[20, 90, 91, 300, n - 1]]).all()
