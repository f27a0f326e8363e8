"""Features beyond the quasi-identifier [LDR08, 3.1.3] against the naive twin, on random small tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from growing import prepare
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mondrian_cases import FEATURE_WORKLOADS, Case, big_case, boxes_of, groups_of, members_of, reachable_cases

from sfumato.methods.mondrian import memory
from sfumato.policy.requirements import EntropyDiversity, KAnonymity, RecursiveDiversity, VarianceDiversity
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Classify, Regress
from sfumato.table.opening import open_table

CASES = reachable_cases(workloads=FEATURE_WORKLOADS)


@given(CASES)
@settings(max_examples=100)
def test_the_groups_and_their_boxes_are_those_of_the_naive_twin(case: Case):
    twin = case.twin()
    expected = {(tuple(leaf.box), frozenset(leaf.members)) for leaf in twin.grow().leaves()}
    has_cells = any(target.cells is not None for target in twin.targets)
    event(f"cells: {has_cells}, groups: {min(len(expected), 3)}")
    assert groups_of(case.partition()) == expected


BIG_CASES = {
    "one label": ([Classify("class", features=["q0", "colour"])], [KAnonymity(2)]),
    "many classes": ([Classify("disease", features=["colour", "height", "job"])], [KAnonymity(5)]),
    "diverse": ([Classify("disease", features="colour")], [EntropyDiversity(2.7, of="disease")]),
    "one number": (
        [Regress("hours", features=["colour", "height"])],
        [KAnonymity(4), RecursiveDiversity(2, 3, of="disease")],
    ),
    "several": (
        [
            Classify(["class", "job"], features="colour"),
            Regress(["hours", "salary"], features="height"),
            Classify("disease"),
        ],
        [VarianceDiversity(20_000, of="salary")],
    ),
    "often median": ([Classify("class", features=["colour"])], [KAnonymity(2)], 0.2),
    "median at last": ([Regress("hours", features=["height", "class"])], [KAnonymity(2)], 0.02),
}  # fmt: skip


@pytest.mark.parametrize("name", BIG_CASES)
def test_larger_tables_split_into_many_tasks_give_the_twins_groups_too(name, monkeypatch):
    monkeypatch.setattr(memory, "SMALLEST_TASK", 16)
    case = big_case(7, *BIG_CASES[name], n_rows=150)
    expected = {(tuple(leaf.box), frozenset(leaf.members)) for leaf in case.twin().grow().leaves()}
    assert len(expected) > 5
    assert groups_of(case.partition(threads=2)) == expected


@given(CASES, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_the_rows_does_not_matter(case: Case, random: Any):
    order = list(range(len(case.rows)))
    random.shuffle(order)
    shuffled = case.partition(case.table([case.rows[i] for i in order]))
    back = {(box, frozenset(order[i] for i in members)) for box, members in groups_of(shuffled)}
    assert back == groups_of(case.partition())


@given(reachable_cases(max_rows=60, workloads=FEATURE_WORKLOADS), st.integers(1, 3))
@settings(max_examples=40)
def test_the_number_of_threads_and_the_size_of_tasks_do_not_matter(case: Case, threads: int):
    whole = case.partition()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "SMALLEST_TASK", 2)
        assert boxes_of(case.partition(threads=threads)) == boxes_of(whole)


@given(CASES)
@settings(max_examples=40)
def test_every_group_keeps_every_promise_and_none_can_be_split_further(case: Case):
    twin = case.twin()
    for members in members_of(case.partition()):
        assert twin.is_allowed(sorted(members))
        assert not any(twin.allowable(sorted(members), at) for at in twin.may_split)


@given(reachable_cases(workloads=st.just([Classify("class", features=["q0"]), Regress("hours")])))
@settings(max_examples=30)
def test_features_that_are_quasi_identifiers_change_nothing(case: Case):
    plain = Case(
        case.rows, case.quasi, case.requirements, [Classify("class"), Regress("hours")], case.options
    )
    assert groups_of(case.partition()) == groups_of(plain.partition())


def test_a_mixture_divides_each_target_by_what_is_unknown_of_it_within_its_cells():
    """Half of the rows are of colour r and all of class a; of the others half are a and half b: H = 1/2 bit."""
    table = pa.table({"x": [1] * 8, "c": list("aaaaaabb"), "t": [0, 2] * 4, "colour": list("rrrrgggg")})
    schema = Schema.of(
        x={"role": "quasi-identifier", "kind": "number"},
        c="other",
        t={"role": "other", "kind": "number"},
        colour="other",
    )
    workload = [Classify("c", features="colour"), Regress("t", features="colour", weight=3)]
    cells = prepare(open_table(table), schema, [KAnonymity(2)], workload=workload).cells
    assert cells.label.weight.tolist() == [1 / (0.5 * 2**20)]
    assert (cells.number.weight * cells.number.scale).tolist() == [3 / 1.0]  # 1: variance of 0 and 2
    assert float(cells.number.scale[0] * 8 * 1.0) in (2.0**50, 2.0**51)
