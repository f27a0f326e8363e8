"""One driver of Mondrian on every engine: the same boxes in memory, level by level in memory, and on disk.

The fourteen cases are fixed, and so are digests of their boxes: a change of the boxes cannot go unnoticed.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from blocks import read_by
from elsewhere import Elsewhere
from mondrian_cases import BIG_CASES, Case, big_case
from tree_runs import Groups, grown_by_run, grown_in_memory, grown_whole, sampled, scan, with_numbers

from sfumato.engines import protocol
from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
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
