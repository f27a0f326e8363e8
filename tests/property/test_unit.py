"""Groups that count people: each holds by its people, and the boxes are those of a twin that counts them with sets."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from elsewhere import Elsewhere
from growing import UncheckedPolicy
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mondrian_cases import BIG_CASES, Case, big_case, cases, cut, groups_of
from naive_people import MondrianOfPeople, people_satisfy
from tree_runs import grown_by_run, scan
from unit_tables import people_table

import sfumato as sf
from sfumato.engines import protocol
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
from sfumato.errors import PromiseError, RequirementUnreachable
from sfumato.methods.mondrian import memory, method
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.policy.unit import Unit
from sfumato.recoding.recoder import Partition
from sfumato.table.opening import open_table

WHO = "who"

# ---- every release ---------------------------------------------------------------------------------


@pytest.mark.parametrize("start", range(0, 500, 50))
def test_every_group_of_equal_labels_holds_by_its_people(start):
    n_groups = 0
    for number in range(start, start + 50):
        case = people_table(number)
        if not case.is_reachable:
            with pytest.raises(PromiseError):
                sf.publish(case.table, case.policy)
            continue
        release = sf.publish(case.table, case.policy)
        groups = case.groups(release.table)
        case.judge(groups)
        n_groups += len(groups)
        assert release.certificate.claims.people == len({*case.people})
        assert "who" not in release.table.column_names
    assert n_groups > 100


@pytest.mark.parametrize("number", range(0, 500, 8))
def test_verify_counts_the_people_of_every_release_again(number, tmp_path):
    case = people_table(number)
    if not case.is_reachable:
        return
    sf.publish(case.table, case.policy).write(tmp_path / "release")
    found = sf.verify_folder(tmp_path / "release", table=case.table)
    assert not found.failures
    assert sum("holds of people" in check.claim and not check.is_note for check in found.checks) == len(
        case.require
    )


@pytest.mark.parametrize("number", range(0, 120, 4))
def test_the_boxes_do_not_depend_on_threads_or_on_the_order_of_rows(number):
    case = people_table(number)
    if not case.is_reachable:
        return
    turned = case.table.take(pa.array(range(len(case.rows) - 1, -1, -1)))
    alone = case.groups(sf.publish(case.table, case.policy, threads=1).table)
    assert case.groups(sf.publish(turned, case.policy, threads=4).table) == alone


@pytest.mark.parametrize("number", range(1, 500, 5))
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_people_that_are_counted_block_by_block_make_the_same_boxes(number, engine, tmp_path):
    case = people_table(number)
    if not case.is_reachable:
        return
    alone = sf.publish(case.table, case.policy_without_list())
    options = {"rows-in-memory": random.Random(number).choice([1, 5, 12])}
    pq.write_table(case.table, tmp_path / "rows.parquet")
    table = tmp_path / "rows.parquet" if engine == "disk" else case.table
    found = sf.publish(table, case.policy_without_list(**options), engine=engine, memory=1 << 26)
    groups = case.groups(found.table)
    assert groups == case.groups(alone.table)
    assert found.certificate.claims.requirements == alone.certificate.claims.requirements
    assert found.certificate.claims.people == len({*case.people})


@pytest.mark.parametrize("number", range(0, 500, 20))
def test_people_that_are_counted_elsewhere_make_the_same_boxes(number, monkeypatch):
    """Counts are merged by workers, and do not stay from one pass to the next; more than twelve rows are counted."""
    case = people_table(number)
    if not case.is_reachable:
        return
    policy, here = sf.Policy.of(case.policy_without_list()), MemoryEngine(threads=1)
    expected = grown_by_run(scan(open_table(case.table), policy, here.room), policy, here)
    monkeypatch.setattr(protocol, "BLOCK_ROWS", 5)
    room = Room(1 << 30, 12, 200)
    assert grown_by_run(scan(open_table(case.table), policy, room), policy, Elsewhere(room)) == expected


# ---- the naive twin --------------------------------------------------------------------------------


@st.composite
def people_of(draw: Any, case: Case) -> list[int]:
    """Whose each row is."""
    n_people = draw(st.integers(1, len(case.rows)))
    return draw(st.lists(st.integers(0, n_people - 1), min_size=len(case.rows), max_size=len(case.rows)))


def partition_of(case: Case, people: list[int], **options: Any) -> Partition:
    """The groups of the program, by people."""
    schema = Schema((*case.schema(), Attribute(WHO, Role.IDENTIFIER)))
    policy = UncheckedPolicy(
        schema, tuple(case.requirements), tuple(case.workload), case.options, unit=Unit(WHO)
    )
    table = case.table().append_column(WHO, pa.array([f"p{person}" for person in people]))
    return method.partition(open_table(table), policy, **{"threads": 1, **options})


def twin_of(case: Case, people: list[int]) -> MondrianOfPeople:
    return MondrianOfPeople(
        people,
        case.rows,
        [quasi.axis for quasi in case.quasi],
        case.requirements,
        case.workload,
        cut=cut,
        split_only=case.options.split_only,
        median_below_gain=case.options.median_below_gain,
        standardize=case.options.standardize,
    )


@given(st.data())
@settings(max_examples=100)
def test_the_groups_and_their_boxes_are_those_of_the_naive_twin(data: st.DataObject):
    case = data.draw(cases())
    people = data.draw(people_of(case))
    everyone = range(len(case.rows))
    if not all(people_satisfy(everyone, case.rows, people, item) for item in case.requirements):
        with pytest.raises(RequirementUnreachable):
            partition_of(case, people)
        return
    expected = {(tuple(leaf.box), frozenset(leaf.members)) for leaf in twin_of(case, people).grow().leaves()}
    event(f"groups: {min(len(expected), 5)}")
    assert groups_of(partition_of(case, people)) == expected


@pytest.mark.parametrize("name", ["median", "median, diverse", "median, spread", "one label", "often median"])
def test_larger_tables_split_into_many_tasks_give_the_twins_groups_too(name, monkeypatch):
    monkeypatch.setattr(memory, "SMALLEST_TASK", 16)
    case = big_case(7, *BIG_CASES[name])
    people = [i * 7 % 11 + i // 3 * 11 for i in range(len(case.rows))]
    people = [person % (len(case.rows) // 2) for person in people]
    expected = {(tuple(leaf.box), frozenset(leaf.members)) for leaf in twin_of(case, people).grow().leaves()}
    assert len(expected) > 5
    assert groups_of(partition_of(case, people, threads=2)) == expected
