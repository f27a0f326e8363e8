"""Decisions from frequency sets, gathered block by block, are those made where all rows are at hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from level_growth import judge_of, leaves, leaves_in_memory, n_codes
from mondrian_cases import Case, big_case, cases

from sfumato.mondrian.grow import Problem, prepare
from sfumato.requirement import KAnonymity
from sfumato.tables import open_table
from sfumato.workload import Classify, Regress

MEMORY = st.sampled_from([1, 40, 150, 600, 1 << 40])


def problem_of(case: Case) -> Problem:
    return prepare(
        open_table(case.table()),
        case.schema(),
        case.requirements,
        workload=case.workload,
        options=case.options,
        threads=1,
    )


def same_tree(problem: Problem, *, memory: int, block: int, queries: Any = None) -> None:
    """The tree grown from decisions is the one grown in memory, node by node."""
    judge = judge_of(problem, queries)
    rows = problem.engine.rows.copy()
    expected = {leaf[0]: leaf for leaf in leaves_in_memory(problem, queries)}
    found = leaves(judge, judge.whole(n_codes(problem.domains)), rows, memory=memory, block=block)
    assert {leaf[0]: leaf for leaf in found} == expected
    assert len(found) == len(expected)


@given(
    cases().map(lambda case: case.asking([r for r in case.requirements if isinstance(r, KAnonymity)])),
    MEMORY,
    st.integers(1, 30),
)
@settings(max_examples=150)
def test_decisions_grow_the_tree_that_is_grown_in_memory(case: Case, memory: int, block: int):
    if case.is_reachable():
        same_tree(problem_of(case), memory=memory, block=block)


BIG_CASES = {
    "median": ([], [KAnonymity(3)]),
    "one label": ([Classify("class")], [KAnonymity(2)]),
    "one number": ([Regress("hours")], [KAnonymity(4)]),
    "several": ([Classify(["class", "job"]), Regress(["hours", "salary"])], [KAnonymity(3)]),
    "often median": ([Classify("class")], [KAnonymity(2)], 0.3),
    "median at last": ([Regress(["hours", "salary"])], [KAnonymity(2)], 0.05),
}


@pytest.mark.parametrize("memory", [1 << 30, 3000, 200])
@pytest.mark.parametrize("name", BIG_CASES)
def test_decisions_on_larger_tables_grow_the_same_tree_too(name, memory):
    same_tree(problem_of(big_case(7, *BIG_CASES[name])), memory=memory, block=50)
