"""One driver of Mondrian on every engine: the same boxes in memory, level by level in memory, and on disk.

The fourteen cases are fixed, and so are digests of their boxes: a change of the boxes cannot go unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from mondrian_cases import BIG_CASES, Case, big_case, boxes_of, members_of

from sfumato.engines import protocol
from sfumato.engines.disk import DiskEngine
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Loaded, Room
from sfumato.engines.rows import RowLayout
from sfumato.methods.mondrian.rothko import Chance, Rothko, ScannedTable
from sfumato.policy.document import Policy
from sfumato.randomness import seeded
from sfumato.recoding.tree_file import NoTree
from sfumato.table.spill import Counters, Spill

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


def grown_by_driver(case: Case, engine: protocol.Engine) -> Groups:
    """The groups that the driver finds on an engine; the rows are numbered by their payload or by the engine."""
    problem = case.problem()
    rows = problem.engine.rows[:, :-1].copy()
    policy = Policy(case.schema(), tuple(case.requirements), tuple(case.workload), case.options)
    run = Rothko(
        ScannedTable(Numbered(rows), rows.shape[1]),
        problem,
        policy,
        engine=engine,
        chance=Chance(sampling=0, shuffling=seeded(1)),
        tree=NoTree(),
        counters=Counters(),
        threads=1,
    )
    found: dict[Any, list[int]] = {}
    for chunk in run.chunks():
        names = None if chunk.payload is None else chunk.payload["row"].to_numpy()
        for box, members in zip(boxes_of(chunk.groups), members_of(chunk.groups), strict=True):
            numbers = list(members) if names is None else names[list(members)].tolist()
            found.setdefault(box, []).extend(numbers)  # a group that does not fit comes in parts
    return ordered((box, frozenset(members)) for box, members in found.items())


class Numbered(Loaded):
    """Rows of a table in memory whose payload is their number."""

    def blocks(self, *, payload: bool = True) -> Iterator[protocol.Block]:

        for start in range(0, len(self.rows), 50):
            own = np.ascontiguousarray(self.rows[start : start + 50])
            numbers = pa.array(np.arange(start, start + len(own)))
            yield protocol.Block(own, pa.record_batch({"row": numbers}) if payload else None)


@contextmanager
def on_disk(case: Case, room: Room) -> Iterator[DiskEngine]:
    greatest = case.problem().engine.rows[:, :-1].max(axis=0).tolist()
    with Spill() as spill:
        yield DiskEngine(spill, RowLayout.of(greatest), room, writer_bytes=1 << 12)


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
    assert grown_by_driver(case, MemoryEngine()) == expected
    assert grown_by_driver(case, MemoryEngine(ROOMS[room])) == expected
    with on_disk(case, ROOMS[room]) as engine:
        assert grown_by_driver(case, engine) == expected


@pytest.mark.parametrize("name", BIG_CASES)
def test_boxes_are_those_that_they_have_always_been(name):
    found = grown_whole(big_case(7, *BIG_CASES[name]))
    assert hashlib.sha256(repr(found).encode()).hexdigest()[:16] == DIGESTS[name]
