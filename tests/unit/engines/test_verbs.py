"""The verbs of engines: the same answers, parts and work wherever rows live, and however small the room is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from blocks import BlockRows
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.encoding.batches import Block
from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.memory_plan import MemoryPlan, share_room
from sfumato.engines.protocol import Asked, Loaded, Room
from sfumato.engines.rows import RowLayout
from sfumato.engines.start import start_engine
from sfumato.randomness import seeded
from sfumato.table.spill import Spill

KINDS = ("memory", "disk")


@dataclass
class Listed:
    """A state that lists its rows."""

    rows: list[list[int]]
    room: int

    def add(self, block: Block) -> None:
        self.rows += block.rows.tolist()

    def merge(self, other: Listed) -> None:
        self.rows += other.rows


@dataclass(frozen=True)
class ListPlan:
    n_bytes: int = 0

    def new(self, room: int, spill: Any) -> Listed:
        return Listed([], room)

    def answer(self, state: Listed) -> Listed:
        return state


@dataclass(frozen=True)
class ByRest:
    """The part of a row is its first code's rest."""

    n_parts: int

    def of(self, rows: Any) -> Any:
        return rows[:, 0] % self.n_parts


@contextmanager
def engine_of(kind: str, rows: BlockRows, room: Room | None = None) -> Iterator[Any]:
    """An engine, and the rows as it has them."""
    with Spill() as spill:
        if kind == "memory":
            yield MemoryEngine(room), Loaded(rows.rows)
        else:
            yield DiskEngine(spill, rows.layout, room or Room(), writer_bytes=100), rows


def rows_of(n: int, size: int = 7) -> BlockRows:
    codes = seeded(n).integers(0, 50, (n, 3))
    return BlockRows(codes, pa.table({"row": np.arange(n)}), size=size)


@pytest.mark.parametrize("kind", KINDS)
def test_every_plan_is_shown_every_row_once(kind):
    rows = rows_of(40)
    with engine_of(kind, rows) as (engine, held):
        one, two = engine.gather(held, Asked([ListPlan(), ListPlan()]))
    assert one.rows == two.rows == rows.rows.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_goes_to_the_plan_of_its_place_or_to_none(kind):
    rows = rows_of(40)
    with engine_of(kind, rows) as (engine, held):
        found = engine.gather(held, Asked([ListPlan(), ListPlan()], to=ByRest(3)))
    for part, state in enumerate(found):
        assert state.rows == [row for row in rows.rows.tolist() if row[0] % 3 == part]


@dataclass
class SeenCells:
    """A state, and its own plan, that lists the cells which come with its rows."""

    n_bytes: int = 0

    def new(self, room: int, spill: Any) -> SeenCells:
        self.cells: list[Any] = []
        return self

    def add(self, block: Block) -> None:
        self.cells += [None] if block.payload is None else block.payload["row"].to_pylist()

    def answer(self, state: SeenCells) -> list[Any]:
        return state.cells


def test_cells_come_with_the_rows_if_a_plan_asks_for_them():
    rows = rows_of(40)
    with engine_of("disk", rows) as (engine, held):
        (part,) = engine.divide(held, ByRest(1)).parts
        for each in (held, part):
            assert engine.gather(each, Asked([SeenCells()], payload=True)) == [[*range(40)]]
            assert {*engine.gather(each, Asked([SeenCells()]))[0]} == {None}


@pytest.mark.parametrize(
    ("wanted", "room", "shares"), [([10, 30], 60, [20, 40]), ([10, 30], 20, [5, 15]), ([], 9, [])]
)
def test_states_share_the_room_of_a_pass(wanted, room, shares):
    assert share_room(wanted, room) == shares
    engine = MemoryEngine(Room(room))
    found = engine.gather(Loaded(rows_of(3).rows), Asked([ListPlan(n) for n in wanted]))
    assert [state.room for state in found] == shares


@settings(max_examples=60)
@given(st.integers(0, 60), st.integers(1, 5), st.integers(1, 20), st.sampled_from(KINDS))
def test_rows_are_divided_in_their_order_and_what_is_asked_also_is_gathered(
    n: int, n_parts: int, size: int, kind: str
):
    rows = rows_of(n, size)
    with engine_of(kind, rows) as (engine, held):
        parts, (seen,) = engine.divide(held, ByRest(n_parts), also=Asked([ListPlan()]))
        assert seen.rows == rows.rows.tolist()
        assert len(parts) == n_parts
        for part, own in enumerate(parts):
            numbers = [i for i, row in enumerate(rows.rows.tolist()) if row[0] % n_parts == part]
            loaded = engine.load(own)
            assert loaded.rows[:, :3].tolist() == rows.rows[numbers].tolist()
            in_table = loaded.number(np.arange(len(numbers)))
            if kind == "disk" and numbers:
                in_table = loaded.payload.column("row").to_numpy()[in_table]
            assert in_table.tolist() == numbers


@pytest.mark.parametrize("kind", KINDS)
def test_work_is_done_part_by_part_and_their_files_are_gone(kind):
    rows = rows_of(50)
    with engine_of(kind, rows) as (engine, held):
        parts = engine.divide(held, ByRest(4)).parts
        sums = []
        work = ((part, lambda loaded: int(loaded.rows[:, 1].sum())) for part in parts)
        for number, done in enumerate(engine.finish(work)):
            sums.append(done)
            if kind == "disk":
                assert len(list(engine.spill.folder.glob("rows-*"))) == 3 - number
    own = [rows.rows[rows.rows[:, 0] % 4 == part] for part in range(4)]
    assert sums == [int(part[:, 1].sum()) for part in own]


@pytest.mark.parametrize("kind", KINDS)
def test_kept_rows_are_encoded_once(kind):
    rows = rows_of(30)
    with engine_of(kind, rows) as (engine, _):
        kept = engine.keep(rows, payload=False)
        for _ in range(3):
            (seen,) = engine.gather(kept, Asked([ListPlan()]))
            assert seen.rows == rows.rows.tolist()
        assert rows.passes == 1
        engine.discard(kept)


@pytest.mark.parametrize("kind", KINDS)
def test_progress_is_told_of_passes_that_have_a_name(kind):
    rows, told = rows_of(20), []
    with engine_of(kind, rows) as (engine, held):
        engine.progress = lambda *what: told.append(what)
        engine.gather(held, Asked([ListPlan()]))
        assert told == []
        engine.gather(held, Asked([ListPlan()]), stage="counting")
        engine.divide(held, ByRest(2), stage="dividing")
    assert [stage for stage, _ in itertools.groupby(what[0] for what in told)] == ["counting", "dividing"]
    assert told[-1] == ("dividing", 20, 20)


def test_the_engine_that_is_started_is_the_chosen_one():
    assert isinstance(start_engine(), MemoryEngine)
    with Spill() as spill:
        found = start_engine(
            Resources(spill=spill, memory=1000), layout=RowLayout.of([300]), plan=MemoryPlan(1000, 70, 500)
        )
    assert isinstance(found, DiskEngine)
    assert (found.room.count_bytes, found.room.rows, found.layout.row_bytes) == (500, 70, 2)
    assert (start_engine().room.bytes_or(9), found.room.bytes_or(9)) == (9, 500)
