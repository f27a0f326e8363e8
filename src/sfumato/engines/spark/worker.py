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
from sfumato.errors import InputError
from sfumato.kernels.compile import wanted_folder
from sfumato.release.certificate import this_version

Batches = Iterable[pa.RecordBatch]


def versions() -> tuple[str, ...]:
    """What driver and workers must have in common: sfumato, its kernels, and what they are handed."""
    return this_version(), wanted_folder().name, np.__version__, pa.__version__


_is_frozen = False


def work_on(plan: str, number: int, wanted: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Do one task of a plan, and answer."""
    return to_batches(_do(Path(plan), number, wanted))


def work_handed(
    plan: str, number: int, batches: Batches, wanted: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """The same where the files of the run, the plan too, are handed over as rows; what the task writes goes back so."""
    return to_batches(_do_handed(plan, number, batches, wanted))


def _do(plan: Path, number: int, wanted: tuple[str, ...], *, sends: bool = False) -> Iterator[Reply]:
    """What goes wrong is an answer, too. Who ``sends`` its files sends them along with what speaks of them."""
    try:
        _prepare_worker(wanted)
        work, argument = TaskFile(plan).read(number)
        before = {*plan.parent.iterdir()} if sends else set()
        for key, found in work(argument):
            packed = pack(found, plan.parent)
            if sends:
                yield from _send_files(packed.files - before, key, number)
            yield from cut_reply(key, number, packed.data)
    except Exception as error:  # noqa: BLE001 - whatever it is
        yield Reply(0, number, 0, True, describe_failure(error))


def _send_files(paths: Iterable[Path], key: int, number: int) -> Iterator[Reply]:
    for path in sorted(paths):
        if path.exists():  # a part without rows has none
            yield from cut_file(path, key=key, task=number)


def _do_handed(plan: str, number: int, batches: Batches, wanted: tuple[str, ...]) -> Iterator[Reply]:
    with _own_folder() as folder:
        receive_files(from_batches(batches), folder)
        yield from _do(folder / plan, number, wanted, sends=True)


def store_rows(batches: Batches, number: int, wanted: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Write rows of a DataFrame to files, and send these."""
    return to_batches(_store(batches, number, wanted))


def _store(batches: Batches, number: int, wanted: tuple[str, ...]) -> Iterator[Reply]:
    with _own_folder() as folder:
        try:
            _prepare_worker(wanted)
            fresh = (folder / f"input-{uuid.uuid4().hex}" for _ in itertools.repeat(None))
            parts = []
            for part in write_parts(batches, fresh):
                parts.append(part)
                yield from cut_file(part.path, task=number)
                part.path.unlink()
            yield from cut_reply(0, number, pack(parts, folder).data)
        except Exception as error:  # noqa: BLE001 - whatever it is
            yield Reply(0, number, 0, True, describe_failure(error))


@contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder of this machine for one task."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-task-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prepare_worker(wanted: tuple[str, ...]) -> None:
    """Raise if this worker runs other versions than the driver; make the collector quick, which runs after each task."""
    global _is_frozen  # noqa: PLW0603 - a worker is a process
    if versions() != wanted:
        raise InputError(
            "A worker of the cluster has another sfumato, NumPy or Arrow than this machine "
            f"({' '.join(versions())} there, {' '.join(wanted)} here); install the same on both."
        )
    if not _is_frozen:
        gc.collect()
        gc.freeze()
        _is_frozen = True


def merge_states(plan: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Merge the states of each key as they come, and answer what is asked of them."""
    return to_batches(_merge(Path(plan), from_batches(batches)))


def merge_handed(plan: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The same where the plan, and files that states speak of, are handed over as rows."""
    return to_batches(_merge_handed(plan, batches))


def _merge(plan: Path, replies: Iterable[Reply], *, sends: bool = False) -> Iterator[Reply]:
    try:
        gathering, _ = TaskFile(plan).read(None)
        for key, state in merge_all(replies, plan.parent).items():
            answer = pack(gathering.plans[key].answer(state), plan.parent)
            if sends:
                yield from _send_files(answer.files, key, 0)
            yield from cut_reply(key, 0, answer.data)
    except Exception as error:  # noqa: BLE001 - whatever it is
        yield Reply(0, 0, 0, True, describe_failure(error))


def _merge_handed(plan: str, batches: Batches) -> Iterator[Reply]:
    with _own_folder() as folder:
        yield from _merge(folder / plan, receive_files(from_batches(batches), folder), sends=True)
