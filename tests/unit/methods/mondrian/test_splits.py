"""Frequency sets and splitters: passes, memory, and what random tables of a few rows do not reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from level_growth import criteria_of, decide, leaves, leaves_in_memory, n_codes
from mondrian_cases import Case, big_case

from sfumato.methods.mondrian import frequency_sets, splits
from sfumato.methods.mondrian.frequency_sets import (
    CellTarget,
    Histogram,
    SparseCells,
    SplitCriteria,
    Stretches,
    Window,
    lay_out_windows,
)
from sfumato.methods.mondrian.grow import Prepared, prepare
from sfumato.methods.mondrian.node_range import NodeRange
from sfumato.methods.mondrian.problem import SplitProblem
from sfumato.methods.mondrian.splits import BestThresholds, Splitter
from sfumato.policy.requirements import EntropyDiversity, KAnonymity
from sfumato.policy.workload import Classify, Regress
from sfumato.table.opening import open_table

PLENTY = 1 << 30


def problem_of(case: Case) -> Prepared:
    return prepare(
        open_table(case.table()),
        case.schema(),
        case.requirements,
        workload=case.workload,
        options=case.options,
        threads=1,
    )


def asked(workload: list[Any], requirements: list[Any], **options: Any) -> tuple[Prepared, SplitCriteria]:
    problem = problem_of(big_case(11, workload, requirements, **options))
    return problem, criteria_of(problem)


def root(problem: Prepared, criteria: SplitCriteria, memory: int) -> tuple[Splitter, int]:
    state = criteria.whole(n_codes(problem.domains))
    return decide(criteria, state, problem.engine.rows[:, :-1].copy(), memory=memory, block=64)


def same_tree(problem: Prepared, criteria: SplitCriteria, memory: int = PLENTY) -> None:
    rows = problem.engine.rows.copy()
    expected = {leaf[0]: leaf for leaf in leaves_in_memory(problem)}
    state = criteria.whole(n_codes(problem.domains))
    assert {leaf[0]: leaf for leaf in leaves(criteria, state, rows, memory=memory, block=64)} == expected


# ---- passes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "workload", [[], [Classify("class")], [Regress("hours")], [Classify(["class", "job"])]]
)
@pytest.mark.parametrize("requirement", [KAnonymity(5), EntropyDiversity(2, of="disease")])
def test_one_pass_is_enough_where_memory_is(workload, requirement):
    problem, criteria = asked(workload, [requirement])
    splitter, passes = root(problem, criteria, PLENTY)
    assert splitter.result is not None
    assert passes == 1


def test_a_second_pass_tries_the_best_candidates_where_their_counts_do_not_fit_beside_the_rest():
    problem, criteria = asked([Classify("class")], [EntropyDiversity(2, of="disease")])
    state = criteria.whole(n_codes(problem.domains))
    wanted = Splitter(criteria, state, problem.engine.n_rows).wanted
    one, passes = root(problem, criteria, wanted)
    assert passes == 2
    assert one.result is not None
    other, _ = root(problem, criteria, PLENTY)
    assert other.result is not None
    assert (one.result.axis, one.result.threshold) == (other.result.axis, other.result.threshold)


@pytest.mark.parametrize("memory", [1, 100, 400])
def test_median_needs_few_passes_however_little_memory_there_is(memory):
    """Ranges, then ever finer stretches of the widest axis: each at least halves the codes."""
    problem, criteria = asked([], [KAnonymity(5)])
    splitter, passes = root(problem, criteria, memory)
    assert splitter.result is not None
    assert passes <= 2 + np.log2(900)
    assert passes <= 4 or memory < 400


def test_codes_are_walked_in_as_many_slices_as_they_need():
    problem, criteria = asked([Classify("class")], [KAnonymity(5)])
    wide = [domain.n_codes for domain in problem.domains]
    _, passes = root(problem, criteria, 8 * 100)
    assert passes <= 2 + sum(-(-n // 100) for n in wide)
    assert passes >= sum(wide) // 100


def test_a_collector_takes_what_it_says_and_no_more_than_it_may():
    problem, criteria = asked([Classify("class")], [EntropyDiversity(2, of="disease")])
    for memory in (300, 1000, 5000, 20_000, PLENTY):
        splitter = Splitter(criteria, criteria.whole(n_codes(problem.domains)), problem.engine.n_rows)
        while (collector := splitter.next(memory)) is not None:
            assert collector.n_bytes <= memory
            again = splitter.next(memory)
            assert again is not None
            assert again.n_bytes == collector.n_bytes
            collector.add(problem.engine.rows[:, :-1].copy())
            taken = sum(each.counts.nbytes + each.moments.nbytes for each in collector.histograms.values())
            assert taken + collector.lines.nbytes <= collector.n_bytes
            splitter.take(collector)
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
    assert Splitter(plain, state, 9).next(10) is None


def test_shares_give_everyone_what_it_wants_and_what_is_left_in_equal_parts():
    problem, criteria = asked([], [KAnonymity(5)])
    state = criteria.whole(n_codes(problem.domains))
    small = NodeRange.from_bounds(state.as_bounds() // 2)
    splitters = [Splitter(criteria, state, 200), Splitter(criteria, small, 60), Splitter(criteria, state, 9)]
    wanted = [splitter.wanted for splitter in splitters]
    assert wanted[0] > wanted[1] > wanted[2] == 0
    assert wanted[0] == splitters[0].next(PLENTY).n_bytes
    assert splits.divide_memory(splitters, sum(wanted) + 30) == [each + 10 for each in wanted]
    short = splits.divide_memory(splitters, sum(wanted) // 2)
    assert sum(short) <= sum(wanted) // 2
    assert short[0] > short[1]


# ---- layouts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", [[Classify("class")], [Regress("salary")]])
@pytest.mark.parametrize("memory", [PLENTY, 500])
def test_words_that_do_not_fit_into_one_are_stored_apart(workload, memory, monkeypatch):
    problem, criteria = asked(workload, [KAnonymity(3)])
    monkeypatch.setattr(frequency_sets, "packing", lambda _n, _largest: 0)
    assert frequency_sets.choose_layout(criteria, 260).words == 2
    same_tree(problem, criteria, memory)


@pytest.mark.parametrize(
    "workload",
    [
        [Classify("class")],
        [Classify(["class", "job"])],
        [Classify("class", features=["colour"]), Regress("hours", features=["job"])],
    ],
)
def test_logarithms_beyond_the_table_are_those_of_a_longer_one(workload, monkeypatch):
    problem, _ = asked(workload, [KAnonymity(3)], below=0.02)
    monkeypatch.setattr(frequency_sets, "TABLE", 4)
    criteria = criteria_of(problem)
    assert len(criteria.table) == 5
    same_tree(problem, criteria)


# ---- pieces ----------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(2, 30), st.integers(0, 5), st.integers(0, 100)), min_size=1, max_size=60),
    st.integers(1, 40),
    st.integers(1, 9),
    st.booleans(),
)
def test_a_sparse_set_holds_the_first_codes_that_there_is_room_for(lines, room, block, is_number):
    rows = np.array(lines, dtype=np.uint32)
    feature = CellTarget(is_number, 1, 2, 1.0, 1.0, 6)
    window = lay_out_windows([(0, 2, 30)])[0]
    cells = SparseCells(feature, window, np.zeros(0, dtype=np.uint32), 6, room)
    for start in range(0, len(rows), block):
        cells.add(rows[start : start + block])
    cells.close()
    kept = rows[rows[:, 0] <= cells.high]
    codes = np.unique(kept[:, 0]).astype(np.int64)
    found = cells.entries(codes)
    n = 0
    for code, end in zip(codes.tolist(), found.end.tolist(), strict=True):
        here = kept[kept[:, 0] == code]
        assert found.of[n:end].tolist() == np.unique(here[:, 1]).tolist()
        for e in range(n, end):
            of = here[here[:, 1] == found.of[e]]
            assert found.weight[e] == len(of)
            assert found.total[e] == (of[:, 2].sum() if is_number else 0)
        n = end
    assert n <= room or len(codes) == 1
    assert len(codes) > 0
    n_all = len(np.unique(rows[:, :2], axis=0))
    assert cells.high == 30 or n_all > room


def test_a_shortlist_goes_on_where_the_last_one_ended():
    code = np.arange(10)
    rows = 10 * np.arange(1, 11)
    score = np.array([1.0, 5, 5, 2, 5, 2, 7, 1, 2, 1])
    expected = sorted(range(10), key=lambda t: (-score[t], max(rows[t], 120 - rows[t]), t))
    thresholds_kept = BestThresholds()
    found = []
    while True:
        for at in range(0, 10, 4):
            here = slice(at, at + 4)
            thresholds_kept.add(code[here], rows[here], score[here], 120, keep=3)
        found += thresholds_kept.code.tolist()
        if not thresholds_kept.is_cut:
            break
        thresholds_kept.is_cut = False
        thresholds_kept.drop(len(thresholds_kept.code), 120)
    assert found == expected


@given(st.lists(st.integers(0, 200), min_size=1, max_size=50), st.integers(0, 100), st.integers(0, 6))
def test_stretches_count_the_codes_in_them_and_know_the_last_one_below(codes, low, by):
    rows = np.array(codes, dtype=np.uint32)[:, None]
    found = Stretches(0, low, 150, by)
    for start in range(0, len(rows), 7):
        found.add(rows[start : start + 7])
    ends = [min(150, low + ((i + 1) << by) - 1) for i in range(len(found.counts))]
    assert ends[-1] == 150
    assert np.cumsum(found.counts).tolist() == [sum(low <= c <= end for c in codes) for end in ends]
    assert found.last_below == max((c for c in codes if c < low), default=-1)


def test_a_histogram_by_edges_is_that_by_codes_between_them():
    problem, criteria = asked([], [EntropyDiversity(2, of="disease"), KAnonymity(2)])
    rows = problem.engine.rows[:, :-1].copy()
    n = problem.domains[0].n_codes
    edges = np.array([20, 90, 91, 300])
    by_code, by_edge = Histogram(criteria, 0, n, low=0), Histogram(criteria, 0, 5, edges=edges)
    for each in (by_code, by_edge):
        each.add(rows[:100])
        each.add(rows[100:])
        each.close()
    assert (by_edge.counts == by_code.counts[[20, 90, 91, 300, n - 1]]).all()


def test_windows_stand_one_after_the_other():
    assert lay_out_windows([(2, 5, 9), (0, 0, 3)]) == [Window(2, 5, 9, 0), Window(0, 0, 3, 5)]
