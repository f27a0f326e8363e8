"""One driver of Mondrian on every engine: the same boxes in memory, level by level in memory, and on disk.

The fourteen cases are fixed, and so are digests of their boxes: a change of the boxes cannot go unnoticed.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from blocks import read_by
from elsewhere import Elsewhere
from growing import partition
from mondrian_cases import BIG_CASES, Case, big_case, groups_of, members_of, tree_recoding
from tree_runs import Groups, grown_by_run, grown_in_memory, grown_whole, sampled, scan, with_numbers

from sfumato.engines import protocol
from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
from sfumato.methods.mondrian import node_counts
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.requirements import KAnonymity, RecursiveDiversity, VarianceDiversity
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Classify, Regress, Select
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill

DIGESTS = {
    "median": "1b7a09b7c6837bea",
    "median, diverse": "ab6133b300e8a099",
    "median, distinct": "46cbb9ac0366797e",
    "median, close": "ab09353aa71a7ca3",
    "one label, close": "e1654eca85814028",
    "median, spread": "dee333ec67387f27",
    "one label": "c1d4263679f067d5",
    "one number": "becd6a1100add2a0",
    "several": "a988747cb38091d2",
    "often median": "b87f1aa15416f99d",
    "several numbers": "73da91efc073f570",
    "median at last": "b5167614ee57bf27",
    "cells": "8f65f543e88c7c1d",
    "select": "50033314bcfa3e86",
}


def grown_here(case: Case, room: Room | None = None) -> Groups:
    return grown_in_memory(case, MemoryEngine(room, threads=1))


def grown_elsewhere(case: Case, room: Room) -> Groups:
    """As a cluster would: all that an engine is told goes through pickle, and states are merged."""
    engine = Elsewhere(room)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "BLOCK_ROWS", 20)
        found = grown_in_memory(case, engine)
    assert engine.n_filled > 1, "what one worker has gathered was never merged with what another has"
    return found


def grown_on_disk(case: Case, room: Room) -> Groups:
    table, policy = with_numbers(case)
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        read_by(patch, 50)
        encoded = scan(open_table(table), policy, room, Resources(spill=spill, memory=1 << 24))
        engine = DiskEngine(spill, encoded.layout, room, writer_bytes=1 << 12, threads=1)
        return grown_by_run(encoded, policy, engine)


ROOMS = {
    "plenty": Room(1 << 30, 40, 200),
    "few rows": Room(1 << 30, 12, 200),
    "little memory": Room(2000, 25, 5),
}


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("name", BIG_CASES)
def test_boxes_are_the_same_in_memory_level_by_level_and_on_disk(name, room):
    case = big_case(7, *BIG_CASES[name])
    expected = grown_whole(case)
    assert grown_here(case) == expected
    assert grown_here(case, ROOMS[room]) == expected
    assert grown_on_disk(case, ROOMS[room]) == expected
    assert grown_elsewhere(case, ROOMS[room]) == expected


SELECTIONS = [
    Select("q0 between 20 and 70 or q3 < 1000"),
    Select("q2 in ('a', 'c') and q0 > 100", weight=0.3),
    Select("q4 = '003' or q1 < '2021-01-01'"),
]
TUNED: dict[str, Any] = {
    "select": (SELECTIONS, [KAnonymity(4)]),
    "select and classify": ([*SELECTIONS, Classify("class")], [KAnonymity(3)], {"loss_weight": 0.1}),
    "select, diverse": (
        [*SELECTIONS, Classify("class", weight=2), Regress("hours")],
        [RecursiveDiversity(3, 2, of="job"), VarianceDiversity(30_000, of="salary")],
        {"loss_weight": 0.2},
    ),
    "joint": ([Classify(["class", "job"], joint=True)], [KAnonymity(3)]),
    "joint, with loss": ([Classify(["class", "job"], joint=True)], [KAnonymity(3)], {"loss_weight": 0.2}),
    "several numbers": (
        [Regress("hours", weight=0.3), Regress(["wage", "salary"])],
        [KAnonymity(3)],
        {"chance": False},
    ),
    "task alone": ([Classify("class")], [KAnonymity(3)], {"loss_weight": 0}),
    "cells": ([Classify("class", features=["colour"]), *SELECTIONS], [KAnonymity(3)]),
}
"""Workloads as Mondrian serves them by default or with options; selections come first."""


def tuned_case(workload: Any, requirements: Any, options: dict[str, Any] | None = None) -> Case:
    return replace(big_case(7, workload, requirements), options=MondrianOptions(**(options or {})))


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("name", TUNED)
def test_purposes_are_served_by_the_same_boxes_on_every_engine(name, room):
    case = tuned_case(*TUNED[name])
    expected = grown_whole(case)
    assert len(expected) > 1
    assert grown_here(case, ROOMS[room]) == expected
    assert grown_on_disk(case, ROOMS[room]) == expected
    assert grown_elsewhere(case, ROOMS[room]) == expected


def test_boxes_are_the_same_if_the_requirement_is_asked_in_a_pass_of_its_own(monkeypatch):
    """As in large tables with many sensitive values: counts come back, and do not stay for the children."""
    monkeypatch.setattr(node_counts, "EAGER", 0)
    monkeypatch.setattr(node_counts, "ALWAYS", 0)
    case = tuned_case([Classify("class")], [RecursiveDiversity(3, 2, of="job")])
    expected = grown_whole(case)
    assert len(expected) > 8
    assert grown_here(case, ROOMS["plenty"]) == expected
    assert grown_elsewhere(case, ROOMS["plenty"]) == expected


def test_selections_come_first_and_what_is_below_them_goes_by_loss():
    """The splits for selections are those of the published criterion: no group crosses the parts they leave."""
    ages = [20 + i for i in range(40)] * 3
    rows: dict[str, list[Any]] = {
        "age": [None, None, None, *ages],
        "town": (["a"] * 40 + ["b"] * 40 + ["c", "d"] * 20 + ["a"] * 3),
    }
    schema = Schema.of(age={"role": "quasi-identifier", "kind": "number"}, town="quasi-identifier")

    def grown(options: MondrianOptions) -> tuple[Any, list[set[int]]]:
        table = open_table(pa.table(rows))
        found = partition(
            table, schema, [KAnonymity(5)], workload=[Select("age between 30 and 39")], options=options
        )
        return found, [set(members) for members in members_of(found)]

    inside = {i for i, age in enumerate(rows["age"]) if age is not None and 30 <= age <= 39}
    found, groups = grown(MondrianOptions())
    assert {row for group in groups if group & inside for row in group} == inside
    tree = tree_recoding(found).tree
    assert tree.axis[0] == 0
    assert (tree.otherwise[tree.axis == 0] >= 0).all()
    assert (tree.branch < 0).any(), "below the selection nothing was told apart from a rest"
    missing = [box[0][2] for box, members in groups_of(found) if members & {0, 1, 2}]
    assert all(missing), "a label does not say that ages are missing"
    _, published = grown(MondrianOptions(variant="paper"))
    assert {row for group in published if group & inside for row in group} == inside


def test_classes_of_more_than_two_values_go_by_the_task_alone_unless_loss_has_a_weight():
    """Without missing cells, whose place differs, the groups are those of InfoGain; a column of two classes is mixed."""
    case = big_case(7, [Classify("job")], [KAnonymity(3)])
    case = replace(case, rows=[row for row in case.rows if row["q0"] is not None])

    def members(options: MondrianOptions) -> set[frozenset[int]]:
        return set(members_of(replace(case, options=options).partition()))

    published = members(MondrianOptions(variant="paper"))
    assert members(MondrianOptions()) == published
    assert members(MondrianOptions(loss_weight=0.1)) != published


SAMPLED: dict[str, tuple[str, Room, dict[str, Any], str]] = {
    "one sample": ("one label", Room(1 << 30, 150, 200), {}, "repartitions"),
    "samples of parts": ("one number", Room(1 << 30, 60, 200), {}, "repartitions"),
    "little memory": ("several", Room(4000, 60, 5), {}, "frequency_groups"),
    "splits are undone": ("median", Room(1 << 30, 20, 200), {}, "pruned"),
    "counts go on": ("one number", Room(1 << 30, 40, 200), {}, "fallbacks"),
    "groups stay whole": ("one number", Room(1 << 30, 40, 200), {"fallback": "none"}, "nonminimal"),
}
"""A case, the room, what else is asked for, and the counter which tells that it came to what the name says."""


@pytest.mark.parametrize("name", SAMPLED)
def test_boxes_are_the_same_wherever_a_sample_decides_first(name):
    """How large a sample is depends on the room, and so do the boxes, but not on where the rows are."""
    of, room, options, counter = SAMPLED[name]
    case, engine = sampled(big_case(7, *BIG_CASES[of]), **options), MemoryEngine(room, threads=1)
    expected = grown_in_memory(case, engine)
    assert getattr(engine.counters, counter) > 0
    assert grown_on_disk(case, room) == expected
    assert grown_elsewhere(case, room) == expected


@pytest.mark.parametrize("name", BIG_CASES)
def test_boxes_are_those_that_they_have_always_been(name):
    found = grown_whole(big_case(7, *BIG_CASES[name]))
    assert hashlib.sha256(repr(found).encode()).hexdigest()[:16] == DIGESTS[name]
