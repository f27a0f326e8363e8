"""Where the rows of a table live while a method works on them: in memory if they fit there, else on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import InputError
from sfumato.table.allowance import memory_allowed
from sfumato.table.source import UNKNOWN, Source
from sfumato.table.spill import Spill, size_of

AUTO, MEMORY, DISK = "auto", "memory", "disk"

BYTES_PER_CELL = 4
COPIES = 3
"""Memory that publishing takes, in encoded tables."""
TEXT_COPIES = 4
"""Memory that publishing takes for text, in bytes of its file."""
ZIPPED = 6
"""How much longer text is than its gzip-ed file."""
UNFORESEEN = 3
"""How much more than its text made expect the rows of a table that was read may take: cells can be short."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Rows in memory; or, with a ``spill``, in files of that folder."""

    threads: int | None = None
    """All cores if not given."""
    spill: Spill | None = None
    memory: int = 0
    """Bytes that rows on disk may take of memory."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine that was chosen: with a ``budget`` of memory on disk, and else in memory up to a ``limit``."""

    budget: int | None
    limit: int | None
    only_in_memory: str = ""
    """The method, if it has no other engine."""

    @property
    def way_out(self) -> str:
        """What else to try with a table that is too large, for a sentence."""
        return "" if self.only_in_memory else f", let the rows live on disk (--engine {DISK})"

    def check(self, needed: int) -> None:
        """Raise if a table that was read turns out to be much larger than its file looked."""
        if self.limit is not None and needed > UNFORESEEN * self.limit:
            raise _too_large(needed, self.limit, self.only_in_memory)


def choose(
    asked: str,
    memory: int | None,
    needed: Callable[[], int],
    *,
    is_endless: bool = False,
    only_in_memory: str = "",
) -> EngineChoice:
    """The engine for a table that takes about ``needed`` bytes in memory, of which nobody knows if it ``is_endless``.

    >>> choose("auto", 1000, lambda: 2000)
    EngineChoice(budget=1000, limit=1000, only_in_memory='')
    >>> choose("auto", 1000, lambda: 500).budget
    """
    if only_in_memory and asked not in (AUTO, MEMORY):
        raise InputError(
            f"{only_in_memory} compares all rows with each other, in memory; leave out --engine."
        )
    if asked not in (AUTO, MEMORY, DISK):
        raise InputError("The engine is auto, memory or disk.")
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
