"""The verbs of the protocol on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from sfumato.encoding.batches import BatchState, Rows
from sfumato.engines.engine import SPARK, Resources
from sfumato.engines.memory_plan import MemoryPlan
from sfumato.engines.protocol import (
    NOTHING,
    UNLIMITED,
    A,
    Asked,
    D,
    Divided,
    EncodedTable,
    Flags,
    Loaded,
    Places,
    Published,
    Room,
    Sink,
    Work,
)
from sfumato.engines.raw import TableInBatches
from sfumato.engines.rows import RowLayout, load_rows
from sfumato.engines.scan import Intake
from sfumato.engines.scatter import RandomPlaces
from sfumato.engines.spark.files import FilePart, FileRows, slice_rows, slice_source
from sfumato.engines.spark.jobs import Jobs
from sfumato.engines.spark.replies import TaskFile
from sfumato.engines.spark.tasks import (
    DivideSlice,
    FinishPart,
    GatherSlice,
    Keyed,
    MergeFiles,
    PublishPart,
    ShowSlice,
)
from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.policy.schema import Schema
from sfumato.progress import Progress, no_progress
from sfumato.recoding.tree_file import NoTree, TreeWriter
from sfumato.table import formulas
from sfumato.table.source import Source
from sfumato.table.spill import Counters, SharedSpill, Spill
from sfumato.table.stored import FiledRows
from sfumato.table.write import ROW_GROUP, TableWriter

MOST_ROWS = 20_000
"""Rows of a part whose memory nobody has planned: each is optimized by itself, which takes some 50 microseconds."""


class SlicedTable(TableInBatches):
    """A table whose slices are read by the tasks of a cluster, each in ``memory`` bytes."""

    def __init__(self, jobs: Jobs, source: Source, schema: Schema, *, memory: int) -> None:
        super().__init__(source, schema, memory=memory, counters=Counters())
        self.jobs = jobs

    def show(self, names: Iterable[str], state: BatchState, *, stage: str = "reading again") -> None:
        """One pass over some columns: each task shows its slice to a copy of the state."""
        tasks = [
            TableInBatches(source, self.schema, memory=self.memory, counters=Counters(), first_row=first_row)
            for source, first_row in slice_source(self.source, self.jobs.count_tasks(self.source.n_rows))
        ]
        work = ShowSlice(list(dict.fromkeys(names)), state)
        (found,) = self.jobs.gather(work, tasks, stage=stage)
        state.merge(found)
        self.check(sum(task.n_rows for task in tasks))


def open_slices(chosen: Resources, source: Source, policy: Policy, *, memory: int) -> SlicedTable:
    """A table whose slices are read by the tasks of a cluster."""
    return SlicedTable(chosen.jobs, source, policy.schema, memory=memory // 4)


def open_intake(
    chosen: Resources, source: Source, policy: Policy, *, memory: int, progress: Progress = no_progress
) -> Intake:
    """A table of any size, whose slices are read by the tasks of a cluster."""
    raw = open_slices(chosen, source, policy, memory=memory)
    return Intake(raw, policy, spill=SharedSpill(chosen.jobs.folder), memory=memory, progress=progress)


def start_spark(chosen: Resources, layout: RowLayout, plan: MemoryPlan) -> SparkEngine:
    """The engine; ``plan`` is what a task has room for."""
    rows = MOST_ROWS if plan.room.rows == UNLIMITED else plan.room.rows
    room = replace(plan.room, rows=rows, keeps_counts=False)
    return SparkEngine(
        chosen.jobs, layout, room, writer_bytes=plan.writer_bytes, tree_bytes=chosen.memory // 4
    )


class SparkEngine:
    """Rows in files that all machines of a cluster reach, worked on by tasks."""

    threads: int | None = 1

    def __init__(
        self, jobs: Jobs, layout: RowLayout, room: Room, *, writer_bytes: int, tree_bytes: int | None = None
    ) -> None:
        self.jobs, self.layout, self.room = jobs, layout, room
        self.writer_bytes, self.tree_bytes = writer_bytes, tree_bytes
        self.spill = SharedSpill(jobs.folder)
        self.counters = self.spill.counters
        self._needed: dict[Path, set[FilePart]] = {}
        """What is still needed of each file."""

    def open(self, table: EncodedTable) -> Rows:
        """The rows are encoded whenever they are read."""
        return table

    def gather(self, rows: Rows, asked: Asked[A], *, stage: str = "") -> list[A]:
        """One pass: the answer of each plan."""
        work = GatherSlice(asked, self.room.count_bytes, self.spill)
        self.counters.passes += 1
        return self.jobs.gather(work, self._slice(rows), stage=stage)

    def divide(self, rows: Rows, places: Places, *, also: Asked[A] = NOTHING, stage: str = "") -> Divided[A]:
        """One pass: each task writes one file, and a part is some batches of all of them."""
        return self._divide(rows, places, also, stage)

    def _divide(
        self, rows: Rows, places: Places | None, also: Asked[A], stage: str, *, payload: bool = True
    ) -> Divided[A]:
        slices = self._slice(rows)
        apart: Sequence[Places | None] = [None] * len(slices)
        if isinstance(places, RandomPlaces):
            apart = places.apart(len(slices))
        work = DivideSlice(
            places, also, self.room.count_bytes, self.layout, self.writer_bytes, self.spill, payload
        )
        found = self.jobs.do(work, list(zip(slices, apart, strict=True)), stage=stage, leaves_files=True)
        self.counters.passes += 1
        self.counters.spills += len(found)
        parts: list[Rows] = [
            FileRows(tuple(part for part in of_part if part.n_rows))
            for of_part in zip(*(each for each, _ in found), strict=True)
        ]
        for part in (part for of_task, _ in found for part in of_task if part.n_rows):
            self._needed.setdefault(part.path, set()).add(part)
        answers: list[A] = []
        if also.plans:
            states = [paths for _, paths in found]
            answers = self.jobs.do(MergeFiles(also), [(number, states) for number in range(len(also.plans))])
        return Divided(parts, answers)

    def finish(self, parts: Iterable[tuple[Rows, Work[D]]]) -> Iterator[D]:
        """Do the work of each part, a task each."""
        yield from self._do_all(FinishPart(self.layout), parts)

    def publish(self, parts: Iterable[tuple[Rows, Work[Published[D]]]], sink: Sink) -> Iterator[D]:
        """Do the work of each part, a task each, which writes a part of the release."""
        assert isinstance(sink, PartsSink)
        work = PublishPart(self.layout, self.spill, sink.row_group, sink.escapes)
        for path, n_rows, beside in self._do_all(work, parts):
            sink.take(path, n_rows)
            told, _ = TaskFile(beside).read(None)
            self.jobs.remove(beside)
            yield told

    def _do_all(self, work: Callable[[Any], Keyed], parts: Iterable[tuple[Rows, Any]]) -> list[Any]:
        given = [(rows, own) for part, own in parts for rows in slice_rows(part, 1)]
        found = self.jobs.do(work, given, stage="splitting")
        for rows, _ in given:
            self.discard(rows)
        return found

    def _slice(self, rows: Rows) -> list[Rows]:
        """Rows in slices that are worth a task each."""
        return slice_rows(rows, self.jobs.count_tasks(rows.n_rows))

    def load(self, rows: Rows, *, payload: bool = True) -> Loaded:
        """Rows that fit in memory, all at once, on the driver."""
        if isinstance(rows, Loaded):
            return rows
        if isinstance(rows, FileRows):
            self.jobs.fetch_files(part.path for part in rows.files)
        return Loaded(*load_rows(rows, self.layout, payload=payload))

    def keep(self, rows: Rows, *, payload: bool = True) -> Rows:
        """The same rows as codes in files."""
        return self._divide(rows, None, NOTHING, "encoding", payload=payload).parts[0]

    def join(self, parts: Sequence[Rows]) -> Rows:
        return FileRows(tuple(file for part in parts if isinstance(part, FileRows) for file in part.files))

    def discard(self, rows: Rows) -> None:
        """Remove the files that no other part has rows in."""
        for part in rows.files if isinstance(rows, FileRows) else ():
            needed = self._needed[part.path]
            needed.discard(part)
            if not needed:
                self.jobs.remove(part.path)

    def sink(self, file_format: str, *, escapes: bool) -> PartsSink:
        if file_format != "parquet":
            raise InputError("On Spark a release is a folder of Parquet parts; leave out --format csv.")
        return PartsSink(self.spill, row_group=ROW_GROUP, escapes=escapes)

    def grow_tree(self, is_tree: Flags, *, is_kept: bool) -> TreeWriter | NoTree:
        if not is_kept:
            return NoTree()
        return TreeWriter(self.spill.make_folder("tree"), is_tree, memory=self.tree_bytes)

    def describe(self, method: str) -> dict[str, Any]:
        told = self.counters.as_figures()
        return {"engine": SPARK, "method": method, "rows-in-memory": self.room.rows, **told}


class PartsSink:
    """Published rows in a folder of parts, which tasks have written one by one."""

    def __init__(self, spill: Spill, *, row_group: int, escapes: bool) -> None:
        self.spill, self.row_group, self.escapes = spill, row_group, escapes
        self.folder = spill.path("release").with_suffix(".parquet")
        self._parts: list[Path] = []
        self._n_rows = 0

    def __enter__(self) -> Self:
        self.folder.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        """Each part is complete."""

    def append(self, rows: pa.Table) -> None:
        """Publish further rows, from the driver."""
        path = self.spill.path("published").with_suffix(".parquet")
        with TableWriter(path, row_group=self.row_group) as writer:
            writer.append(formulas.escape(rows) if self.escapes else rows)
        self.take(path, writer.n_rows)

    def take(self, path: Path, n_rows: int) -> None:
        """Take a part that was written."""
        path.rename(self.folder / f"part-{len(self._parts):05}.parquet")
        self._parts.append(path)
        self._n_rows += n_rows

    def rows(self) -> FiledRows:
        return FiledRows(self.folder, "parquet", n_rows=self._n_rows, is_escaped=self.escapes)
