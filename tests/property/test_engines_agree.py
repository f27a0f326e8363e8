"""One driver of Mondrian on every engine: the same boxes in memory, level by level in memory, and on disk.

The fourteen cases are fixed, and so are digests of their boxes: a change of the boxes cannot go unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from blocks import read_by
from elsewhere import Elsewhere
from growing import UncheckedPolicy
from mondrian_cases import BIG_CASES, Case, big_case, boxes_of, members_of

from sfumato.engines import protocol
from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
from sfumato.engines.scan import Intake
from sfumato.engines.start import scan_table
from sfumato.methods.groups import find_chunks
from sfumato.methods.mondrian.tree_run import TreeRun
from sfumato.policy.document import Policy
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.randomness import seeded
from sfumato.table.opening import open_table
from sfumato.table.source import Source
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

Groups = list[tuple[Any, list[int]]]


def ordered(found: Iterator[tuple[Any, frozenset[int]]]) -> Groups:
    """Groups as (box, row numbers), in the order of their rows."""
    return sorted(((box, sorted(members)) for box, members in found), key=lambda group: group[1])


def grown_whole(case: Case) -> Groups:
    """The groups of growth in memory, depth first."""
    found = case.partition()
    return ordered(zip(boxes_of(found), members_of(found), strict=True))


def with_numbers(case: Case) -> tuple[Source, Policy]:
    """The table and policy of a case, with the number of each row as a column that is published."""
    table, quasi = case.table(), case.schema()
    table = table.append_column("row", pa.array(np.arange(table.num_rows)))
    schema = Schema((*quasi, Attribute("row", Role.OTHER)))
    policy = UncheckedPolicy(schema, tuple(case.requirements), tuple(case.workload), case.options)
    return open_table(table), policy


def grown_by_run(table: Intake, policy: Policy, engine: protocol.Engine) -> Groups:
    """The groups that a run finds on an engine; rows are numbered by their payload, or else by the engine."""
    run = TreeRun(engine, table, policy, random=seeded(1))
    found: dict[Any, list[int]] = {}
    for chunk in find_chunks(run, engine):
        names = None if chunk.payload is None else chunk.payload["row"].to_numpy()
        for box, members in zip(boxes_of(chunk.groups), members_of(chunk.groups), strict=True):
            numbers = list(members) if names is None else names[list(members)].tolist()
            found.setdefault(box, []).extend(numbers)  # a group that does not fit comes in parts
    return ordered((box, frozenset(members)) for box, members in found.items())


def grown_in_memory(case: Case, room: Room | None = None) -> Groups:
    source, policy = with_numbers(case)
    return grown_by_run(scan_table(source, policy), policy, MemoryEngine(room, threads=1))


def grown_elsewhere(case: Case, room: Room) -> Groups:
    """As a cluster would: all that an engine is told goes through pickle, and states are merged."""
    source, policy = with_numbers(case)
    return grown_by_run(scan_table(source, policy), policy, Elsewhere(room))


def grown_on_disk(case: Case, room: Room) -> Groups:
    source, policy = with_numbers(case)
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        read_by(patch, 50)
        table = scan_table(source, policy, Resources(spill=spill, memory=1 << 24))
        engine = DiskEngine(spill, table.layout, room, writer_bytes=1 << 12, threads=1)
        return grown_by_run(table, policy, engine)


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
    assert grown_in_memory(case) == expected
    assert grown_in_memory(case, ROOMS[room]) == expected
    assert grown_on_disk(case, ROOMS[room]) == expected
    assert grown_elsewhere(case, ROOMS[room]) == expected


@pytest.mark.parametrize("name", BIG_CASES)
def test_boxes_are_those_that_they_have_always_been(name):
    found = grown_whole(big_case(7, *BIG_CASES[name]))
    assert hashlib.sha256(repr(found).encode()).hexdigest()[:16] == DIGESTS[name]
