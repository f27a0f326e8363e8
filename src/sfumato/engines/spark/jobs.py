"""Jobs of a cluster: many tasks at once, and what they answer."""

from __future__ import annotations

import itertools
import re
import signal
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import pyarrow.parquet as pq

from sfumato.engines.spark import entries
from sfumato.engines.spark.replies import (
    MORE_MEMORY,
    Needed,
    Reply,
    TaskFile,
    from_batches,
    join_replies,
    merge_all,
)
from sfumato.engines.spark.tasks import Gatherer, Keyed
from sfumato.errors import InputError, SfumatoError, TableError
from sfumato.progress import Progress, no_progress
from sfumato.table.arrow_files import open_parquet
from sfumato.table.source import Source

T = TypeVar("T")

TASK_ROWS = 5_000_000
"""Most rows of a task."""

LEAST_ROWS = 1_000_000
"""Rows of a task that are worth one: starting it costs about 0.1 CPU seconds, so it should have a second of work."""

SMALL = 1 << 22
"""Bytes of states that come to the driver and are merged there: a further stage would cost more."""

COPY_ROWS = 1 << 17
"""Rows of a row group in a copy of the table."""

POLL = 0.2
"""Seconds between two looks at how far a job is."""

PANDAS = "PySpark does not yet fully support pandas"
"""A warning that is about functions which nobody calls here."""

REPLY = "key bigint, task bigint, piece bigint, is_failure boolean, data binary, name string"
"""Answers as Spark has them."""


class Jobs:
    """A Spark session that runs the tasks of one run, whose files are in a folder that all machines reach."""

    def __init__(self, session: Any, folder: Path, *, progress: Progress = no_progress) -> None:
        self.session, self.folder, self.progress = session, folder, progress
        self.tag = f"sfumato-{uuid.uuid4().hex}"
        self.context = getattr(session, "_sc", None)
        """None for Spark Connect."""
        self.n_slots = count_slots(session)
        self.n_jobs = 0
        self._n_done = 0
        self._on_interrupt: Any = None

    def __enter__(self) -> Self:
        if self.context is None:
            self.session.registerProgressHandler(self._note_progress)
        elif threading.current_thread() is threading.main_thread():
            # Spark would answer Ctrl-C by ending the jobs of everybody who shares the session
            self._on_interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
        return self

    def __exit__(self, *_: object) -> None:
        if self.context is None:
            self.session.removeProgressHandler(self._note_progress)
        elif self._on_interrupt is not None:
            signal.signal(signal.SIGINT, self._on_interrupt)

    def _note_progress(self, stages: Any, **_: Any) -> None:
        """Told by Spark Connect while a job runs."""
        self._n_done = sum(stage.num_completed_tasks for stage in stages or ())

    def count_tasks(self, n_rows: int) -> int:
        """How many tasks so many rows are worth: one for each slot, unless they would have too few rows or too many."""
        return max(-(-n_rows // TASK_ROWS), min(self.n_slots, n_rows // LEAST_ROWS), 1)

    def do(
        self,
        work: Callable[[Any], Keyed],
        arguments: Sequence[object],
        *,
        stage: str = "",
        leaves_files: bool = False,  # noqa: ARG002 - all files are in the folder
    ) -> list[Any]:
        """One job: the work on each argument, and what it answers.

        The driver reads the files that tasks have written, unless the job ``leaves_files`` for other tasks alone.
        """
        plan, _ = self._plan(work, arguments)
        n_tasks = len(arguments)
        replies = self._collect(partial(self._tasks, plan, n_tasks), stage, n_tasks)
        found = {task: answer for _, task, answer in join_replies(replies, self.folder)}
        return [found[number] for number in range(n_tasks)]

    def gather(self, work: Gatherer, slices: Sequence[object], *, stage: str = "") -> list[Any]:
        """One job: the states of plans on each slice, merged, and what is asked of them."""
        plan, _ = self._plan(work, slices)
        plans, n_tasks = work.plans, len(slices)
        if sum(each.n_bytes for each in plans) * n_tasks <= SMALL:
            merged = merge_all(
                self._collect(partial(self._tasks, plan, n_tasks), stage, n_tasks), self.folder
            )
            return [each.answer(merged[key]) for key, each in enumerate(plans)]
        replies = self._collect(partial(self._merged, plan, n_tasks, len(plans)), stage, n_tasks)
        found = {key: answer for key, _, answer in join_replies(replies, self.folder)}
        return [found[key] for key in range(len(plans))]

    def store_frame(self, frame: Any) -> Path | Source:
        """The rows of a DataFrame, in files that tasks can read; they get their numbers by these."""
        path = self.folder / f"input-{uuid.uuid4().hex}"
        self.write_frame(lambda: with_shown_times(frame), path, stage="reading")
        return path

    def write_frame(
        self, frame: Callable[[], Any], path: Path, *, stage: str, n_tasks: int = 1, by: Sequence[str] = ()
    ) -> None:
        """Let Spark write a DataFrame to Parquet files; raise unless all of its rows are here then.

        Where a path is one of each machine's own, Spark writes some rows to each, and says nothing.
        """
        from pyspark.sql import Observation, functions  # noqa: PLC0415 - it takes long

        seen = Observation()

        def write() -> int:
            counted = frame().observe(seen, functions.expr("count(1)").alias("n_rows"))
            (counted.write.partitionBy(*by) if by else counted.write).parquet(to_uri(path))
            return int(seen.get.get("n_rows", 0))

        n_rows = self.run(write, stage, n_tasks)
        if n_rows != sum(pq.read_metadata(file).num_rows for file in path.rglob("*.parquet")):
            raise InputError(
                f"Spark has written rows below {self.folder.parent}, and this machine does not find all of them there; "
                "publish to a folder that all machines reach under the same path."
            )

    def with_slices(self, source: Source) -> Source:
        """A table if tasks can read slices of it; else a copy in a Parquet file, of which they can."""
        if source.slices(1) or source.n_rows == 0:
            return source
        batches = source.batches(source.names)
        first = next(batches, None)
        if first is None:
            return source
        path = self.folder / f"input-{uuid.uuid4().hex}.parquet"
        with pq.ParquetWriter(path, first.schema) as writer:
            for batch in itertools.chain([first], batches):
                writer.write_batch(batch, row_group_size=COPY_ROWS)
        return replace(open_parquet([path], source.where), kind=source.kind, encoding=source.encoding)

    def fetch_files(self, paths: Iterable[Path]) -> None:
        """Let the driver read files that tasks have written."""

    def remove(self, path: Path) -> None:
        """Nobody will read this file again."""
        path.unlink(missing_ok=True)

    def _plan(self, work: object, arguments: Sequence[object]) -> tuple[Path, Needed]:
        path = self.folder / f"plan-{uuid.uuid4().hex}"
        return path, TaskFile(path).write(work, arguments)

    def _tasks(self, plan: Path, n_tasks: int) -> Any:
        """The replies of the tasks of a plan, as a DataFrame: each task gets one number."""
        return self.session.range(0, n_tasks, 1, n_tasks).mapInArrow(entries.work_on(str(plan)), REPLY)

    def _merged(self, plan: Path, n_tasks: int, n_keys: int) -> Any:
        """The same, with all states of a key brought to one task, which merges them."""
        keyed = self._tasks(plan, n_tasks).repartition(min(n_keys, self.n_slots), "key").groupBy("key")
        return keyed.applyInArrow(entries.merge_states(str(plan)), REPLY)

    def _collect(self, frame: Callable[[], Any], stage: str, n_tasks: int) -> Iterator[Reply]:
        """The replies of a job."""
        return from_batches(self.run(lambda: frame().toArrow(), stage, n_tasks).to_batches())

    def run(self, action: Callable[[], T], stage: str = "", n_tasks: int = 1) -> T:
        """Let Spark do the work in a thread of its own, so that Ctrl-C ends the jobs of this run, and no others."""
        self.n_jobs, self._n_done = self.n_jobs + 1, 0
        done: list[T] = []
        failed: list[BaseException] = []

        def act() -> None:
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", PANDAS, FutureWarning)
                    self._tag()
                    done.append(action())
            except BaseException as error:  # noqa: BLE001 - raised again by the one who waits
                failed.append(error)

        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(POLL)
                if stage:
                    self.progress(stage, min(self._count_done(), n_tasks), n_tasks)
        except BaseException:
            self._cancel()
            thread.join(10)
            raise
        if failed:
            raise explain(failed[0]) from None
        (found,) = done
        return found

    def _tag(self) -> None:
        if self.context is None:
            self.session.addTag(self.tag)
        else:
            self.context.addJobTag(self.tag)

    def _cancel(self) -> None:
        if self.context is None:
            self.session.interruptTag(self.tag)
        else:
            self.context.cancelJobsWithTag(self.tag)

    def _count_done(self) -> int:
        """Tasks of the running stages that are done, as far as Spark tells."""
        if self.context is None:
            return self._n_done
        tracker = self.context.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        return sum(info.numCompletedTasks for info in stages if info is not None)


def with_shown_times(frame: Any) -> Any:
    """A DataFrame with its times as Spark shows them, in the session's time zone.

    As they are, files would have them in UTC and Arrow in that zone: another day.
    """
    from pyspark.sql import functions  # noqa: PLC0415 - it takes long

    names = [field.name for field in frame.schema.fields if field.dataType.typeName() == "timestamp"]
    quoted = {name: "`" + name.replace("`", "``") + "`" for name in names}
    shown = {name: functions.col(quoted[name]).cast("timestamp_ntz") for name in names}
    return frame.withColumns(shown) if shown else frame


def to_uri(path: Path) -> str:
    """A path as Spark writes it: without escapes, unlike other addresses."""
    return f"file://{path}"


def to_pattern(path: Path) -> str:
    """A path as Spark reads it, where it may be a pattern: brackets and stars are escaped."""
    return re.sub(r"[][{}*?\\]", r"\\\g<0>", to_uri(path))


def count_slots(session: Any) -> int:
    """How many tasks run at once, as far as Spark tells: into how many parts it cuts rows by itself."""
    context = getattr(session, "_sc", None)
    if context is not None:
        return int(context.defaultParallelism)
    numbers = session.range(1 << 12).selectExpr("spark_partition_id() as part")
    try:
        return max(int(numbers.distinct().count()), 1)
    except Exception as error:  # noqa: BLE001 - whatever Spark raises, in other words
        raise explain(error) from None


def explain(error: BaseException) -> BaseException:
    """What went wrong, in a sentence; of Spark's own words only the name of the error: they may hold a cell."""
    if isinstance(error, KeyboardInterrupt | SfumatoError):
        return error
    said = str(error)
    if "spark.driver.maxResultSize" in said:
        return InputError(
            "The answers of the tasks are larger than Spark's driver takes; raise spark.driver.maxResultSize, "
            "and spark.driver.memory with it."
        )
    if any(sign in said for sign in SIGNS_OF_DEATH):
        return InputError(f"A worker of the cluster died, perhaps because its memory was full; {MORE_MEMORY}")
    if any(sign in said for sign in SIGNS_OF_ABSENCE):
        return InputError(f"{NO_SERVER}.")
    name = name_of(error)
    if name == "JAVA_GATEWAY_EXITED":
        return InputError(
            "Spark could not start Java: what JAVA_HOME or the PATH name is no Java, or an old one. Install "
            "version 17 or newer (Debian: openjdk-17-jre-headless), and let JAVA_HOME name it."
        )
    if name in UNREADABLE:
        return TableError(f"A cell is not the number or date that its column should hold ({name}).")
    return InputError(f"Spark could not do the work: {name}. Its log says more.")


UNREADABLE = ("CAST_INVALID_INPUT", "CAST_OVERFLOW")
"""What Spark calls a cell that is not what its column should hold."""


SIGNS_OF_DEATH = (
    "Python worker exited unexpectedly",
    "ExecutorLostFailure",
    "OutOfMemoryError",
    "Container killed",
)
"""What Spark says of a worker or an executor that is no more."""


SIGNS_OF_ABSENCE = ("StatusCode.UNAVAILABLE", "failed to connect to all addresses")
"""What a client of Spark Connect says of a server that does not answer."""

NO_SERVER = "No server of Spark Connect answers; start it, or mend its address"


def name_of(error: BaseException) -> str:
    """An error of Spark by its condition, or else by the classes of it and of its first cause in Java."""
    with suppress(Exception):  # Spark may be gone, and cannot be asked
        condition = error.getCondition() if hasattr(error, "getCondition") else None
        condition = condition or (CONDITION.match(str(error)) or [None, None])[1]
        if condition:
            return str(condition)
        if hasattr(error, "java_exception"):
            cause = error.java_exception
            while cause.getCause() is not None:
                cause = cause.getCause()
            return f"{type(error).__name__}, {cause.getClass().getSimpleName()}"
    return type(error).__name__


CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] ")
"""How a message of Spark begins."""
