"""How much memory a table may take while it is read: counted as it grows, so that a small file cannot fill the machine.

A few megabytes of gzip or Parquet can hold gigabytes of the same cell again and again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import pyarrow as pa

from sfumato.errors import TableError
from sfumato.machine import free_memory
from sfumato.table.spill import size_of

LEAST = 64 << 20
"""Bytes that are allowed even where the machine has hardly any free."""

RESIDENT = Path("/proc/self/statm")
"""Where Linux says how many pages a process has."""

_GIVEN: ContextVar[int | None] = ContextVar("memory", default=None)


class TooLarge(TableError):  # noqa: N818 - reads as a sentence
    """A table takes more memory than is allowed."""

    def __init__(self, where: str, most: int, otherwise: str = "") -> None:
        self.where, self.most = where, most
        super().__init__(
            f"{where} takes more than {size_of(most)} of memory when it is read; allow more with --memory{otherwise}, "
            "or give it fewer rows or columns."
        )


@contextmanager
def allowing(memory: int | None) -> Iterator[None]:
    """Inside, a table may take so many bytes; None leaves what was allowed before.

    >>> with allowing(5_000_000):
    ...     memory_allowed()
    5000000
    """
    token = _GIVEN.set(_GIVEN.get() if memory is None else memory)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def memory_allowed() -> int:
    """The bytes that a table may take: as was said, or half of what the machine has free."""
    given = _GIVEN.get()
    return max(free_memory() // 2, LEAST) if given is None else given


class Gauge:
    """What reading one table takes, from here on.

    >>> with allowing(1000):
    ...     gauge = Gauge("t.csv")
    >>> gauge.foresee(900)
    >>> gauge.foresee(1100)
    Traceback (most recent call last):
    sfumato.table.allowance.TooLarge: t.csv takes more than 0 MB of memory when it is read; allow more ...
    """

    def __init__(self, where: str) -> None:
        self.where, self.most, self._before = where, memory_allowed(), _memory_in_use()

    def check(self) -> None:
        """Raise if more than is allowed has been taken."""
        self.foresee(max(now - before for now, before in zip(_memory_in_use(), self._before, strict=True)))

    def foresee(self, n_bytes: int) -> None:
        """Raise if so many bytes are more than is allowed."""
        if n_bytes > self.most:
            raise TooLarge(self.where, self.most)


def _memory_in_use() -> tuple[int, int]:
    """Bytes of memory that Arrow has, and that this process has, where the system says so.

    A process that has freed memory before takes from that first, and does not grow.
    """
    of_arrow = int(pa.total_allocated_bytes())
    with suppress(OSError, ValueError, IndexError):
        pages = RESIDENT.read_text(encoding="ascii").split()[1]
        return of_arrow, int(pages) * os.sysconf("SC_PAGE_SIZE")
    return of_arrow, of_arrow
