"""Where the rows of a table live while a method works on them: in memory if they fit there, else on disk, or on Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.table.allowance import memory_allowed
from sfumato.table.source import UNKNOWN, Source
from sfumato.table.spill import Spill, size_of

AUTO, MEMORY, DISK, SPARK = "auto", "memory", "disk", "spark"

TASK_MEMORY = 1_000_000_000
"""Bytes of memory for a task on Spark, if nobody says otherwise: about that of one core of an executor."""

BYTES_PER_CELL = 4
COPIES = 4
"""Publishing in memory takes about as much as this many encoded tables (4.1 were measured, see decision 20)."""
TEXT_COPIES = 4
"""Publishing a text file in memory takes about this many times its size."""
ZIPPED = 6
"""Text is about this many times as long as its gzip-ed file."""
UNFORESEEN = 3
"""A table that was read is refused only if it needs this many times the limit: short cells need more than their text."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a run may use, and with it where the rows live.

    They live on Spark if it runs the jobs, on disk if there is only a folder for them, else in memory.
    """

    threads: int | None = None
    """All cores if not given."""
    spill: Spill | None = None
    """The folder for rows on disk; without it they are in memory."""
    memory: int = 0
    """With a ``spill``: bytes of memory for all that grows with the rows; on Spark for each task."""
    jobs: Any = None
    """Who runs tasks on Spark, where they find the folder."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Memory, disk or Spark, and how much memory a run may take."""

    budget: int | None
    """Bytes of memory that rows on disk may take; None if the rows live in memory."""
    limit: int | None
    """Bytes of memory that a run may take; None if nobody limits it."""
    only_in_memory: str = ""
    """The method, if it has no other engine."""
    is_spark: bool = field(default=False, repr=False)

    @property
    def way_out(self) -> str:
        """What else to try with a table that is too large, for a sentence."""
        return "" if self.only_in_memory else f", let the rows live on disk (--engine {DISK})"

    def check(self, needed: int) -> None:
        """Raise if a table that was read turns out to be much larger than its file looked."""
        if self.limit is not None and needed > UNFORESEEN * self.limit:
            raise _too_large(needed, self.limit, self.only_in_memory)


def choose_engine(
    asked: str,
    memory: int | None,
    needed: Callable[[], int],
    *,
    is_endless: bool = False,
    only_in_memory: str = "",
) -> EngineChoice:
    """Choose the engine for a table that takes about ``needed()`` bytes in memory.

    ``asked`` is ``--engine`` and ``memory`` is ``--memory``. A table that ``is_endless`` comes as a stream, so that
    nobody knows its size. ``only_in_memory`` names the method if it has no other engine.

    >>> choose_engine("auto", 1000, lambda: 2000)
    EngineChoice(budget=1000, limit=1000, only_in_memory='')
    >>> choose_engine("auto", 1000, lambda: 500).budget
    """
    if asked not in (AUTO, MEMORY, DISK, SPARK):
        raise InputError("The engine is auto, memory, disk or spark.")
    if asked == SPARK:
        return EngineChoice(memory or TASK_MEMORY, None, is_spark=True)
    if only_in_memory and asked == DISK:
        raise InputError(f"{only_in_memory} works in memory or on Spark, not on disk; leave out --engine.")
    if memory is None and (only_in_memory or asked == MEMORY):
        return EngineChoice(None, None, only_in_memory)
    limit = memory or memory_allowed()
    if asked == DISK or (is_endless and asked == AUTO and memory is not None and not only_in_memory):
        return EngineChoice(limit, limit)
    if (size := needed()) <= limit:
        return EngineChoice(None, limit, only_in_memory)
    if asked == MEMORY or only_in_memory:
        raise _too_large(size, limit, only_in_memory)
    return EngineChoice(limit, limit)


def is_frame_of_spark(table: object) -> bool:
    """Is it a DataFrame of Spark, classic or Connect?"""
    return type(table).__module__.startswith("pyspark.sql.") and type(table).__name__ == "DataFrame"


def bytes_needed(n_rows: int, n_columns: int) -> int:
    """About how much memory publishing takes for so many rows and published columns."""
    return n_rows * (n_columns + 1) * BYTES_PER_CELL * COPIES


def estimate_bytes(source: Source, n_columns: int) -> int:
    """About how much memory publishing takes for a table that was not read yet."""
    if source.n_rows != UNKNOWN:
        return bytes_needed(source.n_rows, n_columns)
    path = Path(source.where)  # of text, which is longer than its codes
    n_bytes = path.stat().st_size if path.is_file() else 0
    return TEXT_COPIES * n_bytes * (ZIPPED if path.suffix.lower() == ".gz" else 1)


def _too_large(needed: int, limit: int, only_in_memory: str) -> InputError:
    if only_in_memory:
        return InputError(
            f"Publishing by {only_in_memory} takes about {size_of(needed)} of memory, and --memory allows "
            f"{size_of(limit)}; allow more, or give it fewer rows."
        )
    return InputError(
        f"Publishing in memory takes about {size_of(needed)}, and --memory allows {size_of(limit)}; "
        "allow more, or let the rows live on disk (--engine disk)."
    )
