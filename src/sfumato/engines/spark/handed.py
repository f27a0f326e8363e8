"""Jobs whose tasks cannot reach the run's folder: Spark, which can, hands them the files that they need.

A platform may keep functions from storage, as Databricks does on serverless compute. A file is then cut into rows of
bytes, which Spark keeps in Parquet files of the run's folder, and brings to the tasks that need them. Tasks have a
folder of their own for as long as they run, and what they write goes back the same way.
"""

from __future__ import annotations

import shutil
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.engines.spark import entries
from sfumato.engines.spark.file_pieces import cut_file, put_piece, write_parts
from sfumato.engines.spark.jobs import REPLY, Jobs, to_pattern, with_shown_times
from sfumato.engines.spark.replies import SCHEMA, Reply, from_batches, join_replies, to_batches
from sfumato.engines.spark.tasks import Gatherer, Keyed
from sfumato.table.arrow_files import ParquetPart, ParquetStream, read_column, source_of_parts
from sfumato.table.source import Count, Source, source_of

FEW = 8
"""Rows of bytes that are held at once."""


class HandedJobs(Jobs):
    """A Spark session that runs the tasks of one run, and hands them the files of the run."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._kept: dict[str, set[Path]] = {}
        """Where the rows of each file are."""
        self._names: dict[Path, set[str]] = {}
        """The files whose rows are there, and needed."""

    def do(
        self,
        work: Callable[[Any], Keyed],
        arguments: Sequence[object],
        *,
        stage: str = "",
        leaves_files: bool = False,
    ) -> list[Any]:
        """One job: the work on each argument, and what it answers."""
        handed, plan = self._plan_handed(work, arguments)
        work_on = entries.work_handed(plan.name)
        kept = self._keep(lambda: handed().groupBy("key").applyInArrow(work_on, REPLY), stage, len(arguments))
        found = {task: answer for _, task, answer in self._answers(kept)}
        files = self._note_files(kept)
        if not leaves_files:
            self.fetch_files(files)
        return [found[number] for number in range(len(arguments))]

    def gather(self, work: Gatherer, slices: Sequence[object], *, stage: str = "") -> list[Any]:
        """One job: the states of plans on each slice, merged, and what is asked of them."""
        handed, plan = self._plan_handed(work, slices)
        n_keys = len(work.plans)
        work_on, merge = entries.work_handed(plan.name), entries.merge_handed(plan.name)

        def merged() -> Any:
            states = handed().groupBy("key").applyInArrow(work_on, REPLY)
            plans = self._hand({plan.name: range(n_keys)})
            every = states.unionByName(plans).repartition(min(n_keys, self.n_slots), "key")
            return every.groupBy("key").applyInArrow(merge, REPLY)

        kept = self._keep(merged, stage, len(slices))
        found = {key: answer for key, _, answer in self._answers(kept)}
        self.fetch_files(self._note_files(kept))
        return [found[key] for key in range(n_keys)]

    def fetch_files(self, paths: Iterable[Path]) -> None:
        """Bring files to the driver that are not there yet."""
        missing = {path.name for path in paths if not path.exists()}
        for reply in _read_rows({file for name in missing for file in self._kept.get(name, ())}):
            if reply.name in missing:
                put_piece(self.folder, reply)

    def remove(self, path: Path) -> None:
        """Nobody will read this file again."""
        path.unlink(missing_ok=True)
        for kept in self._kept.pop(path.name, ()):
            self._names[kept].discard(path.name)
            if not self._names[kept]:
                kept.unlink(missing_ok=True)

    def store_frame(self, frame: Any) -> Source:
        """The rows of a DataFrame, in files that tasks are handed; they get their numbers by these."""

        def replies() -> Any:
            names = frame.columns  # dots and backticks in them confuse mapInArrow
            plain = with_shown_times(frame).toDF(*map(str, range(len(names))))
            return plain.mapInArrow(entries.store_rows(names), REPLY)

        kept = self._keep(replies, "reading", 1)
        parts = [part for _, _, of_task in sorted(self._answers(kept)) for part in of_task]
        self._note_files(kept)
        return self._source(parts) if parts else source_of(self.run(frame.limit(0).toArrow), "arrow", WHERE)

    def with_slices(self, source: Source) -> Source:
        """A copy of a table that only the driver can read, in files that tasks are handed."""
        fresh = (self.folder / f"input-{uuid.uuid4().hex}" for _ in iter(int, 1))
        copied = self._source([*write_parts(source.batches(source.names), fresh)])
        return replace(copied, kind=source.kind, where=source.where, encoding=source.encoding)

    def _source(self, parts: Sequence[ParquetPart]) -> Source:
        source = source_of_parts(parts, WHERE)
        assert isinstance(source.stream, ParquetStream)
        stream = FetchedStream(source.stream, self.fetch_files)
        return replace(source, stream=stream, read=partial(read_column, stream))

    # ---- files to tasks ----------------------------------------------------------------------------

    def _plan_handed(self, work: object, arguments: Sequence[object]) -> tuple[Callable[[], Any], Path]:
        """What gives each task its files as rows, and the plan, which is one of them."""
        plan, needed = self._plan(work, arguments)
        wanted: dict[str, Iterable[int]] = defaultdict(list)
        for path in (plan, *needed.by_all):
            wanted[path.name] = range(len(arguments))
        for number, paths in enumerate(needed.by_each):
            for path in paths - needed.by_all:
                wanted[path.name] = [*wanted[path.name], number]
        return lambda: self._hand(wanted).repartition(len(arguments), "key"), plan

    def _hand(self, wanted: dict[str, Iterable[int]]) -> Any:
        """The rows of files, each under the keys that want it."""
        from pyspark.sql import functions  # noqa: PLC0415 - it takes long

        pairs = [(name, key) for name, keys in wanted.items() for key in keys]
        path = self.folder / f"wanted-{uuid.uuid4().hex}.parquet"
        columns = {
            "name": [name for name, _ in pairs],
            "key": pa.array([key for _, key in pairs], pa.int64()),
        }
        pq.write_table(pa.table(columns), path)
        kept = sorted({file for name in wanted for file in self._rows_of(name)})
        rows = self.session.read.schema(REPLY).parquet(*map(to_pattern, kept))
        keys = self.session.read.schema("name string, key bigint").parquet(to_pattern(path))
        found = rows.drop("key").join(functions.broadcast(keys), "name")
        return found.select(*(column.split()[0] for column in REPLY.split(", ")))

    def _rows_of(self, name: str) -> set[Path]:
        """Where the rows of a file are; one that the driver has written is cut now."""
        if name not in self._kept and (path := self.folder / name).exists():
            kept = self.folder / f"cut-{name}.parquet"
            with pq.ParquetWriter(kept, SCHEMA) as writer:
                for batch in to_batches(cut_file(path)):
                    writer.write_batch(batch)
            self._note(name, kept)
        return self._kept.get(name, set())

    # ---- files from tasks --------------------------------------------------------------------------

    def _keep(self, frame: Callable[[], Any], stage: str, n_tasks: int) -> Path:
        """Let Spark keep the replies of a job in a folder: answers and files apart."""
        folder = self.folder / f"replies-{uuid.uuid4().hex}"

        def replies() -> Any:
            return frame().selectExpr("*", "name <> '' as is_file")

        self.write_frame(replies, folder, stage=stage, n_tasks=n_tasks, by=["is_file"])
        return folder

    def _answers(self, kept: Path) -> Iterator[tuple[int, int, Any]]:
        return join_replies(_read_rows((kept / "is_file=false").glob("*.parquet")), self.folder)

    def _note_files(self, kept: Path) -> list[Path]:
        """Know where the files are that tasks have sent."""
        found = []
        for rows in sorted((kept / "is_file=true").glob("*.parquet")):
            for name in pq.read_table(rows, columns=["name"]).column("name").unique().to_pylist():
                self._note(name, rows)
                found.append(self.folder / name)
        if not found:
            shutil.rmtree(kept, ignore_errors=True)
        return found

    def _note(self, name: str, kept: Path) -> None:
        self._kept.setdefault(name, set()).add(kept)
        self._names.setdefault(kept, set()).add(name)


@dataclass(frozen=True, slots=True, eq=False)
class FetchedStream:
    """Passes over Parquet files that the driver fetches when it reads them itself. Tasks are handed theirs."""

    stream: ParquetStream
    fetch: Callable[[Iterable[Path]], None]

    def __call__(self, names: Sequence[str], memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        for part in self.stream.parts:
            self.fetch([part.path])
            yield from replace(self.stream, parts=(part,))(names, memory, count)

    def slices(self, most: int) -> list[tuple[int, ParquetStream]]:
        """As those of the stream itself."""
        return self.stream.slices(most)


WHERE = "The DataFrame"


def _read_rows(files: Iterable[Path]) -> Iterator[Reply]:
    for path in sorted(files):
        with pq.ParquetFile(path) as file:
            yield from from_batches(file.iter_batches(FEW, columns=SCHEMA.names))
