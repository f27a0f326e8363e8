"""Tasks that do not end as they should, as code may that nobody foresaw. They are sent to workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil


class Broken:
    """Fails, and says what it should not."""

    plans = ()

    def __call__(self, _given: Any) -> Iterator[Any]:
        raise ValueError("secret")
        yield


@dataclass(frozen=True)
class Slow:
    """Works for so many seconds; two files say that it began, and that it came to its end."""

    folder: Path
    name: str
    seconds: float

    def __call__(self, _given: Any) -> Iterator[Any]:
        (self.folder / f"{self.name}-began").touch()
        for _ in range(int(20 * self.seconds)):
            time.sleep(0.05)
        (self.folder / f"{self.name}-ended").touch()
        yield 0, self.name


@dataclass(frozen=True)
class SlowPlaces:
    """Rows by the last bit of their first code. Of all attempts the first waits; files say which began and ended."""

    folder: Path
    seconds: float
    n_parts: int = 2

    def of(self, rows: Any) -> Any:
        if (rows[:, 0] == 0).any():  # the task that has this row
            try:
                (self.folder / "first-began").touch(exist_ok=False)
            except FileExistsError:
                (self.folder / "second-began").touch()
            else:
                time.sleep(self.seconds)
                (self.folder / "first-ended").touch()
        return rows[:, 0] % 2


@dataclass(frozen=True)
class KillsExecutor:
    """Does a work. Of all attempts the first then kills the executor above it, and never answers."""

    work: Any
    folder: Path

    def __call__(self, given: Any) -> Iterator[Any]:
        found = list(self.work(given))
        try:
            (self.folder / "killed").touch(exist_ok=False)
        except FileExistsError:
            yield from found
        else:
            executor = next(
                above
                for above in psutil.Process().parents()
                if "CoarseGrainedExecutorBackend" in " ".join(above.cmdline())
            )
            executor.kill()
            time.sleep(600)  # until Spark's daemon of workers ends, and this worker with it


class Dies:
    """Dies as by the kernel's hand when memory is full."""

    def __call__(self, _given: Any) -> Iterator[Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield


@dataclass(frozen=True)
class Talks:
    """Answers with so many bytes."""

    n_bytes: int

    def __call__(self, _given: Any) -> Iterator[Any]:
        yield 0, os.urandom(self.n_bytes)


class FillsMemory:
    """Asks for more memory than there is."""

    plans = ()

    def __call__(self, _given: Any) -> Iterator[Any]:
        yield 0, bytearray(1 << 62)
