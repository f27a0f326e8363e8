"""What the tasks of a job are told and what they answer, as bytes.

A path inside the run's folder is told by its name: who is told has a folder of the run, too, though perhaps another.
"""

from __future__ import annotations

import errno
import io
import pickle
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from sfumato.encoding.domain import OrderedDomain, TreeDomain
from sfumato.encoding.targets import Columns
from sfumato.errors import InputError, InternalError, PromiseError, SfumatoError, TableError
from sfumato.policy.document import Policy
from sfumato.table.source import UnreadableFile

MESSAGE = 1 << 25
"""Bytes of one row of an answer; longer ones are cut."""

LARGE = 1 << 12
"""Bytes from which an array that several tasks need is worth a place of its own."""

SHARED = Policy, TreeDomain, OrderedDomain, Columns
"""What is, too: all tasks of a job hold the same; columns know every person."""


MORE_MEMORY = "give executors more memory (spark.executor.memoryOverhead), or each task less (--memory)."
"""What to do where memory is full."""


class StorageError(InputError):
    """A worker cannot use a file or folder."""


class Reply(NamedTuple):
    """Some bytes of what a task answers under a key, or of a file that it has written."""

    key: int
    task: int
    piece: int
    """Which of an answer; of a file, where the bytes begin."""
    is_failure: bool
    data: bytes
    name: str = ""
    """Of the file."""


SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("task", pa.int64()),
        ("piece", pa.int64()),
        ("is_failure", pa.bool_()),
        ("data", pa.binary()),
        ("name", pa.string()),
    ]
)
"""Answers as Arrow has them."""


def to_batches(replies: Iterable[Reply]) -> Iterator[pa.RecordBatch]:
    """Answers on their way to Spark, each by itself: they may be large."""
    for reply in replies:
        columns = [pa.array([cell], field.type) for cell, field in zip(reply, SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def from_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[Reply]:
    """Answers as they come from Spark."""
    for batch in batches:
        yield from map(Reply, *(column.to_pylist() for column in batch.columns))


class Packed(NamedTuple):
    """An object as bytes, and the files of the run that it speaks of."""

    data: bytes
    files: frozenset[Path]


def pack(found: object, folder: Path) -> Packed:
    """An object as bytes; ``folder`` is that of the run."""
    buffer = io.BytesIO()
    packer = _Packer(buffer, folder)
    packer.dump(found)
    return Packed(buffer.getvalue(), frozenset(packer.files))


def unpack(data: bytes, folder: Path) -> Any:
    """What was packed by this run, on this machine or another; ``folder`` is that of the run here."""
    return _Unpacker(io.BytesIO(data), folder).load()


def cut_reply(key: int, task: int, data: bytes) -> Iterator[Reply]:
    """An answer in pieces that fit into a row; the last one has its number below 0."""
    starts = range(0, max(len(data), 1), MESSAGE)
    for piece, start in enumerate(starts):
        is_last = piece == len(starts) - 1
        yield Reply(key, task, -piece - 1 if is_last else piece, False, data[start : start + MESSAGE])


def join_replies(replies: Iterable[Reply], folder: Path) -> Iterator[tuple[int, int, Any]]:
    """What was answered, key, task and object, each when all its pieces are there; raises what a task has raised."""
    held: dict[tuple[int, int], dict[int, bytes]] = {}
    for key, task, piece, is_failure, data, _ in replies:
        if is_failure:
            failure = unpack(data, folder)
            raise InputError(failure) if isinstance(failure, str) else failure
        pieces = held.setdefault((key, task), {})
        pieces[piece] = data
        n = next((-each for each in pieces if each < 0), 0)
        if n == len(pieces):
            del held[key, task]
            yield key, task, unpack(b"".join(pieces[-n if at == n - 1 else at] for at in range(n)), folder)


def merge_all(replies: Iterable[Reply], folder: Path) -> dict[int, Any]:
    """The states of each key, merged as they come."""
    merged: dict[int, Any] = {}
    for key, _, state in join_replies(replies, folder):
        if key in merged:
            merged[key].merge(state)
        else:
            merged[key] = state
    return merged


def describe_failure(error: Exception) -> bytes:
    """An error that the driver can raise: our own as they are, of others what and where, and never what they say."""
    if isinstance(error, UnreadableFile):
        return pickle.dumps(
            TableError(
                f"On a worker of the cluster {error} Put the table where all machines reach it under the same path, "
                "or publish a DataFrame, which Spark reads itself."
            )
        )
    if isinstance(error, SfumatoError):
        data = pickle.dumps(error)
        try:
            pickle.loads(data)  # noqa: S301 - our own
        except TypeError:  # it is made from more than its sentence
            kind = PromiseError if isinstance(error, PromiseError) else InputError
            return pickle.dumps(kind(str(error)))
        return data
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return pickle.dumps(InputError(f"The memory of a task on the cluster was full; {MORE_MEMORY}"))
    if isinstance(error, OSError) and error.strerror:
        return pickle.dumps(
            StorageError(f"A worker of the cluster cannot use the run's folder: {error.strerror}.")
        )
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(where.filename).name}, line {where.lineno}"
    return pickle.dumps(InternalError(f"A task on the cluster failed with {type(error).__name__} ({place})."))


class Needed(NamedTuple):
    """The files of the run that tasks need: all of them, and each for itself."""

    by_all: frozenset[Path]
    by_each: tuple[frozenset[Path], ...]


class TaskFile:
    """What a job does, in a file of the run: the work that all tasks share, and the argument of each.

    It is read in parts. What many arguments hold, such as the policy and large arrays, is in the file once.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.folder = path, path.parent

    def write(self, work: object, arguments: Sequence[object]) -> Needed:
        """Write the file; the answer is which other files of the run the tasks will need."""
        shared = _Shared(self.folder)
        packed = [shared.pack(each) for each in (work, *arguments)]
        every = [*packed, *shared.packed]
        ends = np.cumsum([len(each.data) for each in every], dtype=np.int64)
        with self.path.open("xb") as file:
            file.write(np.array([len(packed), len(every)], dtype=np.int64).tobytes() + ends.tobytes())
            for each in every:
                file.write(each.data)
        by_all = packed[0].files.union(*(each.files for each in shared.packed))
        return Needed(by_all, tuple(each.files for each in packed[1:]))

    def read(self, number: int | None) -> tuple[Any, Any]:
        """The work, and the argument of one task if it is asked for."""
        with self.path.open("rb") as file:
            found = _Blobs(file, self.folder)
            return found.get(0), None if number is None else found.get(1 + number)


class _Shared:
    """Objects that are packed once, however many others hold them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packed: list[Packed] = []
        self._known: dict[int, tuple[int, object]] = {}  # an object that is held keeps its id

    def pack(self, given: object) -> Packed:
        buffer = io.BytesIO()
        packer = _SharingPacker(buffer, given, self)
        packer.dump(given)
        return Packed(buffer.getvalue(), frozenset(packer.files))

    def number(self, given: object) -> int:
        if id(given) not in self._known:
            at = len(self.packed)
            self._known[id(given)] = at, given
            self.packed.append(Packed(b"", frozenset()))
            self.packed[at] = self.pack(given)
        return self._known[id(given)][0]


class _Packer(pickle.Pickler):
    """Packs an object, with names in place of paths inside the run's folder."""

    def __init__(self, buffer: io.BytesIO, folder: Path) -> None:
        super().__init__(buffer, protocol=5)
        self.folder, self.files = folder, set[Path]()

    def persistent_id(self, pid: Any) -> int | str | None:
        if not isinstance(pid, Path) or not pid.is_relative_to(self.folder):
            return None
        if pid != self.folder:
            self.files.add(pid)
        return str(pid.relative_to(self.folder))


class _SharingPacker(_Packer):
    """The same, with numbers in place of what is shared."""

    def __init__(self, buffer: io.BytesIO, given: object, shared: _Shared) -> None:
        super().__init__(buffer, shared.folder)
        self.given, self.shared = given, shared

    def persistent_id(self, pid: Any) -> int | str | None:
        is_large = isinstance(pid, np.ndarray) and pid.nbytes > LARGE
        if pid is not self.given and (is_large or isinstance(pid, SHARED)):
            return self.shared.number(pid)
        return super().persistent_id(pid)


class _Unpacker(pickle.Unpickler):
    """Unpacks what this run has packed: nobody else can write to its folder, or answer in its place."""

    def __init__(self, buffer: io.BytesIO, folder: Path, blobs: _Blobs | None = None) -> None:
        super().__init__(buffer)
        self.folder, self.blobs = folder, blobs

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, str):
            return self.folder / pid
        assert self.blobs is not None  # only files of tasks share
        return self.blobs.shared(pid)


class _Blobs:
    """The objects in a file of tasks, read when they are asked for."""

    def __init__(self, file: BinaryIO, folder: Path) -> None:
        self.file, self.folder = file, folder
        self.n_tasks, n = np.frombuffer(file.read(16), dtype=np.int64).tolist()
        starts = 16 + 8 * n
        self._ends = [starts, *(starts + np.frombuffer(file.read(8 * n), dtype=np.int64)).tolist()]
        self._shared: dict[int, Any] = {}

    def get(self, at: int) -> Any:
        self.file.seek(self._ends[at])
        buffer = io.BytesIO(self.file.read(self._ends[at + 1] - self._ends[at]))
        return _Unpacker(buffer, self.folder, self).load()

    def shared(self, number: int) -> Any:
        if number not in self._shared:
            self._shared[number] = self.get(self.n_tasks + number)
        return self._shared[number]
