"""A folder for what does not fit in memory, and counts of what is read and written there.

It is gone when the run is, however the run ends.

A run that ends in any ordinary way, Ctrl-C included, removes its folder itself. One that is killed cannot; its
lock is then free, and the next run beside it removes what it left.
"""

from __future__ import annotations

import atexit
import errno
import itertools
import math
import os
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from sfumato.errors import InputError
from sfumato.table.files import CAN_LOCK, open_plain, try_lock

PREFIX = ".sfumato-spill-"
LOCK = "lock"
YOUNG = 60.0
"""Seconds in which a folder without a lock may still be in the making."""


class Spill:
    """A folder of temporary files beside ``target``, or where temporary files belong.

    >>> with Spill() as spill:
    ...     spill.path("rows").write_bytes(b"1234")
    ...     folder = spill.folder
    4
    >>> folder.exists()
    False
    """

    def __init__(self, target: Path | None = None) -> None:
        self.target = Path(tempfile.gettempdir()) / "sfumato" if target is None else target
        self.parent = self.target.resolve().parent
        self.folder = self.parent / f"{PREFIX}{uuid.uuid4().hex}"
        self.counters = Counters()
        self._numbers = itertools.count()
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            remove_dead(self.parent)
            self.folder.mkdir(mode=0o700)
            fresh = self.folder / f"{LOCK}.new"
            self._lock = fresh.open("wb")
            try_lock(self._lock.fileno())
            fresh.rename(self.folder / LOCK)  # only now can it be found, and it is taken
        except OSError as error:
            self.__exit__(None, None, None)
            reason = os.strerror(error.errno or errno.EIO)
            raise InputError(f"{self.target} cannot be written: {reason}.") from None
        except BaseException:  # Ctrl-C
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        remove_folder(self.folder)
        if self._lock is not None:
            self._lock.close()

    def path(self, name: str) -> Path:
        """A fresh file name inside."""
        return self.folder / f"{name}-{next(self._numbers)}"

    def make_folder(self, name: str) -> Path:
        """A fresh folder inside."""
        folder = self.path(name)
        folder.mkdir()
        return folder

    def remove(self, path: Path) -> None:
        """Remove a file: nobody will read it again."""
        path.unlink(missing_ok=True)

    def check_room(self, n_bytes: int, what: str) -> None:
        """Raise unless the disk has that much room."""
        free = shutil.disk_usage(self.parent).free
        if free < n_bytes:
            raise InputError(
                f"{what} needs about {size_of(n_bytes)} of disk beside the release, and {self.parent} has "
                f"{size_of(free)} free; make room, or publish to another disk."
            )


def remove_folder(folder: Path) -> None:
    """Remove a folder, though somebody who was told to stop may still write a file there."""
    for seconds in WAITS:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(seconds)


WAITS = (0.01, 0.1, 0.5, 0.0)
"""Seconds after each try to remove a folder."""


class SharedSpill(Spill):
    """The folder of a run, for those who work for it elsewhere. It can be pickled, and names never come twice.

    A work may be done twice: what it no longer needs stays, and goes with the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.parent = folder, folder.parent
        self.counters = Counters()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The folder goes with the run."""

    def path(self, name: str) -> Path:
        return self.folder / f"{name}-{uuid.uuid4().hex}"

    def remove(self, path: Path) -> None:
        """Somebody may do the work again."""


_kept: list[Spill] = []


def keep_folder() -> Path:
    """A new folder of temporary files for the rest of the process."""
    _kept.append(Spill().__enter__())
    return _kept[-1].folder


@atexit.register
def remove_kept() -> None:
    """Remove the folders that were kept until now: the process ends."""
    while _kept:
        _kept.pop().__exit__(None, None, None)


def remove_dead(parent: Path) -> None:
    """Remove the folders of runs that were killed: those whose lock nobody holds.

    What another user made, and what only has the name of a lock (a link, a pipe), is left alone.
    """
    if not CAN_LOCK:  # folders of killed runs then stay
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            if not os.path.lexists(folder / LOCK):
                if time.time() - found.st_mtime > YOUNG:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            lock = open_plain(folder / LOCK)
            try:
                if try_lock(lock):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


@contextmanager
def while_spilling(where: Path) -> Iterator[None]:
    """Every way in which writing to the folder fails, as one sentence."""
    try:
        yield
    except OSError as error:
        number = error.errno or errno.EIO
        way_out = "make room there, or publish to another disk"
        if number == errno.EMFILE:
            way_out = "allow more open files (ulimit -n)"
        raise InputError(
            f"What does not fit in memory cannot be written to {where}: {os.strerror(number)}; {way_out}."
        ) from None


def size_of(n_bytes: float) -> str:
    """A size for people.

    >>> size_of(5e8), size_of(2.2e9)
    ('500 MB', '2.2 GB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"


def size_to_ask_for(n_bytes: float) -> str:
    """A size for people that is enough: rounded up.

    >>> size_to_ask_for(65_400_000), size_to_ask_for(2.21e9)
    ('66 MB', '2.3 GB')
    """
    unit = 10**8 if n_bytes >= 10**9 else 10**6
    return size_of(math.ceil(n_bytes / unit) * unit)


@dataclass(slots=True)
class Counters:
    """What a run outside memory did: passes, bytes, and how often something special happened.

    ``as_figures`` is what the certificate says of them: never how large the table was.

    >>> Counters(encoded_bytes=100, input_passes=2, bytes_read=100, bytes_written=100).as_figures()["reads"]
    3.0
    """

    input_passes: int = 0
    """How often the table itself was read, or at least its wide part."""
    input_bytes: int = 0
    encoded_bytes: int = 0
    """All rows once, encoded as they are spilled."""
    passes: int = 0
    """How often all or some of the spilled rows were read."""
    bytes_read: int = 0
    bytes_written: int = 0
    spills: int = 0
    """Files that were written."""
    repartitions: int = 0
    levels: int = 0
    """The most repartitions on the way from the root to a group."""
    frequency_groups: int = 0
    pieces: int = 0
    """Parts of the tree that were grown in memory."""
    pruned: int = 0
    stopped_by_tree: int = 0
    stopped_by_statistics: int = 0
    stopped_by_buffers: int = 0
    stopped_by_height: int = 0
    fallbacks: int = 0
    nonminimal: int = 0

    def as_figures(self) -> dict[str, int | float]:
        """By name, with reads and writes in units of all the encoded rows, as the paper counts [LDR08, 5.3]."""
        names = [field.name for field in fields(self) if field.name != "input_bytes"]
        counted = {name.replace("_", "-"): getattr(self, name) for name in names}
        once = max(self.encoded_bytes, 1)
        return {
            **counted,
            "reads": round(self.input_passes + self.bytes_read / once, 3),
            "writes": round(self.bytes_written / once, 3),
        }
