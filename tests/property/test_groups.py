"""Decisions from frequency sets, gathered block by block, are those made where all rows are at hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from growing import Prepared
from hypothesis import given, settings
from hypothesis import strategies as st
from level_growth import criteria_of, leaves, leaves_in_memory, n_codes
from mondrian_cases import BIG_CASES, FEATURE_WORKLOADS, Case, big_case, reachable_cases
from selection_cases import Selecting, selecting

from sfumato.methods.mondrian import node_counts, splits
from sfumato.policy.requirements import KAnonymity
from sfumato.policy.workload import Classify, Regress

MEMORY = st.sampled_from([1, 40, 150, 600, 2500, 1 << 40])
FEW = st.sampled_from([1, 2, 5, 64])
"""Candidates that are kept, codes that are walked in one go."""


@contextmanager
def few_at_a_time(few: int) -> Iterator[None]:
    """Shortlists that run out, and walks in many steps, on tables of a few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "FIRST_LISTED", few)
        patch.setattr(splits, "MORE", 1 + few)
        patch.setattr(node_counts, "STRETCH", 3 * few)
        yield


def same_tree(problem: Prepared, *, memory: int, block: int, queries: Any = None) -> None:
    """The tree grown from splitters is the one grown in memory, node by node."""
    criteria = criteria_of(problem, queries)
    rows = problem.engine.rows.copy()
    expected = {leaf[0]: leaf for leaf in leaves_in_memory(problem, queries)}
    found = leaves(criteria, criteria.whole(n_codes(problem.domains)), rows, memory=memory, block=block)
    assert {leaf[0]: leaf for leaf in found} == expected
    assert len(found) == len(expected)


@given(reachable_cases(), MEMORY, st.integers(1, 30), FEW)
@settings(max_examples=120)
def test_decisions_grow_the_tree_that_is_grown_in_memory(case: Case, memory: int, block: int, few: int):
    with few_at_a_time(few):
        same_tree(case.problem(), memory=memory, block=block)


@given(reachable_cases(workloads=FEATURE_WORKLOADS), MEMORY, st.integers(1, 30), FEW)
@settings(max_examples=80)
def test_decisions_over_the_feature_space_grow_the_same_tree(case: Case, memory: int, block: int, few: int):
    with few_at_a_time(few):
        same_tree(case.problem(), memory=memory, block=block)


@given(selecting(), MEMORY, st.integers(1, 30), FEW)
@settings(max_examples=80)
def test_decisions_for_selections_grow_the_same_tree(case: Selecting, memory: int, block: int, few: int):
    with few_at_a_time(few):
        same_tree(case.problem(), memory=memory, block=block, queries=case.queries())


@pytest.mark.parametrize("memory", [1 << 30, 20_000, 3000, 200])
@pytest.mark.parametrize("name", BIG_CASES)
def test_decisions_on_larger_tables_grow_the_same_tree_too(name, memory):
    same_tree(big_case(7, *BIG_CASES[name]).problem(), memory=memory, block=50)


def test_a_gain_that_is_rounded_below_zero_is_no_reason_for_median(monkeypatch):
    monkeypatch.setattr(splits, "is_gain_too_little", lambda *_: True)
    same_tree(big_case(7, *BIG_CASES["one label"]).problem(), memory=1 << 30, block=50)


@pytest.mark.parametrize("features", [None, ["colour"]])
def test_a_gain_at_the_limit_is_left_to_median_by_neither_and_one_below_it_by_both(monkeypatch, features):
    """Scores of labels with a number are floats: the sum of three labels must be rounded alike for both."""
    workload = [Classify(["class", "job", "disease"], features=features), Regress("hours")]
    gains = set()

    def note(score: float, unsplit: float, n: int, scale: float, _least: float) -> bool:
        gains.add((score - unsplit) * scale / n)
        return False

    def grow(below: float) -> None:
        same_tree(big_case(7, workload, [KAnonymity(9)], below).problem(), memory=1 << 30, block=50)

    with monkeypatch.context() as patch:
        patch.setattr(splits, "is_gain_too_little", note)
        grow(1e-9)
    assert len(gains) > 10
    for gain in sorted(gains):
        grow(gain)
        grow(math.nextafter(gain, math.inf))
