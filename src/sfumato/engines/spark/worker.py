"""How a worker of the cluster does a task."""

from __future__ import annotations

import gc
import itertools
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa

from sfumato.engines.spark.file_pieces import cut_file, receive_files, write_parts
from sfumato.engines.spark.replies import (
    Reply,
    TaskFile,
    cut_reply,
    describe_failure,
    from_batches,
    merge_all,
    pack,
    to_batches,
)
from sfumato.kernels.compile import wanted_folder
from sfumato.release.certificate import this_version

Batches = Iterator[pa.RecordBatch]


def versions() -> tuple[str, ...]:
    """What driver and workers must have in common: sfumato, its kernels, what compiles them, and what they are handed."""
    return (
        f"sfumato {this_version()}",
        wanted_folder().name,
        f"numba {numba.__version__}",
        f"NumPy {np.__version__}",
        f"Arrow {pa.__version__}",
    )


def work_on(plan: str, number: int) -> Batches:
    """Do one task of a plan, and answer."""
    return _answer(_do(Path(plan), number))


def work_handed(plan: str, number: int, batches: Batches) -> Batches:
    """The same where the files of the run, the plan too, are handed over as rows; what the task writes goes back so."""
    return _answer(_do_handed(plan, number, batches))


def store_rows(names: list[str], number: int, batches: Batches) -> Batches:
    """Write rows of a DataFrame to files, with columns of these names, and send these."""
    return _answer(_store(number, (batch.rename_columns(names) for batch in batches)))


def merge_states(plan: str, batches: Batches) -> Batches:
    """Merge the states of each key as they come, and answer what is asked of them."""
    return _answer(_merge(Path(plan), from_batches(batches)))


def merge_handed(plan: str, batches: Batches) -> Batches:
    """The same where the plan, and files that states speak of, are handed over as rows."""
    return _answer(_merge_handed(plan, batches))


def _answer(replies: Iterable[Reply]) -> Batches:
    """Replies on their way to Spark; what goes wrong is an answer, too."""
    try:
        _freeze()
        yield from to_batches(replies)
    except Exception as error:  # noqa: BLE001 - whatever it is
        yield from to_batches([Reply(0, 0, 0, True, describe_failure(error))])


_is_frozen = False


def _freeze() -> None:
    """Make the collector quick, which runs after each task."""
    global _is_frozen  # noqa: PLW0603 - a worker is a process
    if not _is_frozen:
        gc.collect()
        gc.freeze()
        _is_frozen = True


def _do(plan: Path, number: int, *, sends: bool = False) -> Iterator[Reply]:
    """Who ``sends`` its files sends them along with what speaks of them."""
    work, argument = TaskFile(plan).read(number)
    before = {*plan.parent.iterdir()} if sends else set()
    for key, found in work(argument):
        packed = pack(found, plan.parent)
        if sends:
            yield from _send_files(packed.files - before, key, number)
        yield from cut_reply(key, number, packed.data)


def _send_files(paths: Iterable[Path], key: int, number: int) -> Iterator[Reply]:
    for path in sorted(paths):
        if path.exists():  # a part without rows has none
            yield from cut_file(path, key=key, task=number)


def _do_handed(plan: str, number: int, batches: Batches) -> Iterator[Reply]:
    with _own_folder() as folder:
        receive_files(from_batches(batches), folder)
        yield from _do(folder / plan, number, sends=True)


def _store(number: int, batches: Batches) -> Iterator[Reply]:
    with _own_folder() as folder:
        fresh = (folder / f"input-{uuid.uuid4().hex}" for _ in itertools.repeat(None))
        parts = []
        for part in write_parts(batches, fresh):
            parts.append(part)
            yield from cut_file(part.path, task=number)
            part.path.unlink()
        yield from cut_reply(0, number, pack(parts, folder).data)


def _merge(plan: Path, replies: Iterable[Reply], *, sends: bool = False) -> Iterator[Reply]:
    gathering, _ = TaskFile(plan).read(None)
    for key, state in merge_all(replies, plan.parent).items():
        answer = pack(gathering.plans[key].answer(state), plan.parent)
        if sends:
            yield from _send_files(answer.files, key, 0)
        yield from cut_reply(key, 0, answer.data)


def _merge_handed(plan: str, batches: Batches) -> Iterator[Reply]:
    with _own_folder() as folder:
        yield from _merge(folder / plan, receive_files(from_batches(batches), folder), sends=True)


@contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder of this machine for one task."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-task-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
