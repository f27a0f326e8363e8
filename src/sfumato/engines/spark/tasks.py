"""What a task does with its slice or part of the rows. Each can be pickled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from sfumato.encoding.batches import BatchState, Rows
from sfumato.engines.local import Gathering
from sfumato.engines.protocol import Asked, Loaded, Places, Plan, Published, Work
from sfumato.engines.raw import TableInBatches
from sfumato.engines.rows import RowLayout, load_rows
from sfumato.engines.spark.files import SliceWriter
from sfumato.engines.spark.replies import TaskFile
from sfumato.table import formulas
from sfumato.table.spill import SharedSpill
from sfumato.table.write import TableWriter

Keyed = Iterator[tuple[int, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class TouchFolder:
    """Write to the run's folder, and read what was written."""

    spill: SharedSpill

    def __call__(self, _number: int) -> Keyed:
        path = self.spill.path("touched")
        path.write_bytes(b"1")
        path.read_bytes()
        yield 0, path


class Gatherer(Protocol):
    """A work on slices that answers with states, which are merged; its plans say what is then asked of them."""

    @property
    def plans(self) -> Sequence[Any]: ...

    def __call__(self, given: Any, /) -> Keyed: ...


class WholeState:
    """A state that is wanted as it is. Its size, that of dictionaries of cells, is known to nobody before."""

    n_bytes = 1 << 19

    def answer(self, state: Any) -> Any:
        return state


@dataclass(frozen=True, slots=True, eq=False)
class ShowSlice:
    """Show some columns of a slice of the table to a copy of a state."""

    names: list[str]
    state: BatchState
    plans: ClassVar[Sequence[WholeState]] = (WholeState(),)

    def __call__(self, raw: TableInBatches) -> Keyed:
        raw.show(self.names, self.state)
        yield 0, self.state


@dataclass(frozen=True, slots=True, eq=False)
class GatherSlice:
    """Add the rows of a slice to the states of plans."""

    asked: Asked[Any]
    room: int
    spill: SharedSpill

    @property
    def plans(self) -> Sequence[Plan[Any, Any]]:
        return self.asked.plans

    def __call__(self, rows: Rows) -> Keyed:
        gathering = Gathering(self.asked, self.room, self.spill)
        for block in rows.blocks(payload=self.asked.payload):
            gathering.add(block)
        return iter(enumerate(gathering.states))


@dataclass(frozen=True, slots=True, eq=False)
class DivideSlice:
    """Write the rows of a slice to one file, part by part; what is gathered on the way goes to another."""

    places: Places | None
    also: Asked[Any]
    room: int
    layout: RowLayout
    writer_bytes: int
    spill: SharedSpill
    payload: bool

    def __call__(self, given: tuple[Rows, Places | None]) -> Keyed:
        rows, own_places = given
        places = own_places or self.places
        n_parts = 1 if places is None else places.n_parts
        gathering = Gathering(self.also, self.room, self.spill)
        writer = SliceWriter(self.spill, n_parts, self.layout, memory=self.writer_bytes)
        for block in rows.blocks(payload=self.payload):
            gathering.add(block)
            part = np.zeros(len(block.rows), dtype=np.uint8) if places is None else places.of(block.rows)
            writer.add(block, part)
        yield 0, (writer.close_parts(), self._store(gathering.states))

    def _store(self, states: list[Any]) -> tuple[Path, ...]:
        """Write states to a file, the first of these; the others are what it speaks of."""
        if not states:
            return ()
        path = self.spill.path("states")
        needed = TaskFile(path).write(states, ())
        return path, *sorted(needed.by_all)


@dataclass(frozen=True, slots=True, eq=False)
class MergeFiles:
    """Merge the states that divisions have left in files, and answer what is asked of them."""

    also: Asked[Any]

    def __call__(self, given: tuple[int, Sequence[Sequence[Path]]]) -> Keyed:
        number, of_tasks = given
        merged = None
        for path, *_ in of_tasks:
            state = TaskFile(path).read(None)[0][number]
            if merged is None:
                merged = state
            else:
                merged.merge(state)
        yield 0, self.also.plans[number].answer(merged)


@dataclass(frozen=True, slots=True, eq=False)
class FinishPart:
    """Do the work of a part on its rows."""

    layout: RowLayout

    def __call__(self, given: tuple[Rows, Work[Any]]) -> Keyed:
        rows, work = given
        yield 0, work(load_part(rows, self.layout))


@dataclass(frozen=True, slots=True, eq=False)
class PublishPart:
    """Do the work of a part on its rows, and write the rows that it publishes.

    What else is to be known of them goes to a file, too: the driver need not hold that of all parts at once.
    """

    layout: RowLayout
    spill: SharedSpill
    row_group: int
    escapes: bool

    def __call__(self, given: tuple[Rows, Work[Published[Any]]]) -> Keyed:
        rows, work = given
        published, told = work(load_part(rows, self.layout))
        path = self.spill.path("published").with_suffix(".parquet")
        with TableWriter(path, row_group=self.row_group) as writer:
            writer.append(formulas.escape(published) if self.escapes else published)
        beside = self.spill.path("told")
        TaskFile(beside).write(told, ())
        yield 0, (path, writer.n_rows, beside)


def load_part(rows: Rows, layout: RowLayout) -> Loaded:
    """Rows that fit in memory, all at once."""
    return rows if isinstance(rows, Loaded) else Loaded(*load_rows(rows, layout))
