"""Any table, opened: a path, the address of a table in a database, a stream, a frame.

A path is CSV, gzip-ed CSV, Parquet, Arrow IPC or .xlsx, told apart by content, not by name; ``"-"`` is CSV on stdin.
"""

from __future__ import annotations

import errno
import glob
import io
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from sfumato.errors import TableError
from sfumato.table import databases, spreadsheets
from sfumato.table.allowance import Gauge
from sfumato.table.arrow_files import open_ipc, open_ipc_lazily, open_parquet
from sfumato.table.csv_file import BLOCK_BYTES, NO_HEADER, SAMPLE_ROWS, lacks_header, open_csv
from sfumato.table.files import while_writing
from sfumato.table.frames import frame_kind, frame_name, is_stream, open_frame, open_stream
from sfumato.table.source import (
    BINARY_NAMES,
    PARQUET_NAMES,
    Count,
    How,
    Source,
    check_names,
    refuse_empty,
    signature_of,
    source_of_batches,
    while_reading,
)
from sfumato.table.text_encoding import check_encoding


def open_table(
    source: Any,
    *,
    lazy: bool = False,
    spool: Path | None = None,
    may_be_empty: bool = False,
    any_text: bool = False,
    encoding: str | None = None,
) -> Source:
    """The table behind a path, ``"-"`` (CSV on stdin) or a frame; one that is open already.

    A path may name a file, a folder of Parquet parts, or a glob of them. A ``lazy`` file is not read when it
    is opened, but batch by batch; what can be read only once, stdin and streams of Arrow, goes to the file ``spool``
    first. A table without rows is an error unless it ``may_be_empty``, and so is a CSV file with cells that are not
    UTF-8 unless ``any_text`` will do: they come as they are then, each Python object of a frame by itself, and
    ``lenient_texts`` and its like know what to make of them.
    A CSV file that is not UTF-8 has the ``encoding`` that is named, or else, unless ``any_text`` will do, the Western
    European one if it looks like that; a :class:`Notice` says so.
    """
    known = None if encoding is None else check_encoding(encoding)
    found = _open(source, spool=spool, how=How(lazy=lazy, any_text=any_text, encoding=known))
    return found if may_be_empty else refuse_empty(found)


def _open(source: Any, *, spool: Path | None, how: How) -> Source:
    if isinstance(source, Source):
        return source
    if isinstance(source, str) and source == "-":
        if spool is not None:
            return open_csv(_spool(sys.stdin.buffer, spool), "stdin", how)
        data = _read_stdin(sys.stdin.buffer)  # a faulty row is looked for in a second pass
        return open_csv(lambda: io.BytesIO(data), "stdin", replace(how, lazy=False))
    if isinstance(source, str) and databases.is_address(source):
        return _open_database(source, spool, how)
    if isinstance(source, str | os.PathLike):
        path, sheet = spreadsheets.split_sheet(os.fsdecode(source))
        with while_reading(databases.without_secrets(str(path)), "table"):
            return _open_path(path, how) if sheet is None else _open_spreadsheet(path, how, sheet)
    if how.lazy and spool is not None and is_stream(source):
        kind = frame_kind(source)
        assert kind is not None
        return _keep_batches(*open_stream(source), spool, kind=kind, where=frame_name(source))
    return open_frame(source, any_text=how.any_text)


def _read_stdin(stream: BinaryIO) -> bytes:
    """All bytes of stdin, as far as memory allows."""
    gauge, blocks = Gauge("stdin"), []
    while block := stream.read(BLOCK_BYTES):
        blocks.append(block)
        gauge.check()
    return b"".join(blocks)


def _open_database(address: str, spool: Path | None, how: How) -> Source:
    """A table of a database. It is read by one query: into memory, or into the file ``spool`` if it is read lazily."""
    table = databases.look(address)
    where = table.address.shown
    if how.lazy and spool is None:
        return Source(
            table.names,
            table.n_rows,
            "database",
            where,
            partial(_database_column, table),
            _database_batches(table),
        )
    batches = table.batches()
    if how.lazy and spool is not None and (first := next(batches, None)) is not None:
        batches = itertools.chain([first], batches)
        return _keep_batches(first.schema, batches, spool, kind="database", where=where)
    return source_of_batches(table.names, batches, "database", where)


def _keep_batches(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path, *, kind: str, where: str
) -> Source:
    """Batches that can be read only once, in a file."""
    n_rows = 0
    with while_writing(path), pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            n_rows += batch.num_rows
    return replace(open_ipc_lazily(path, is_file=False), kind=kind, where=where, n_rows=n_rows)


def _database_batches(table: databases.DatabaseTable) -> Callable[..., Iterator[pa.RecordBatch]]:
    """What makes one pass over some columns, as ``Source.stream`` does."""

    def batches(names: Sequence[str], _memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        for batch in table.batches(names):
            count(batch.nbytes)
            yield batch

    return batches


def _database_column(table: databases.DatabaseTable, name: str) -> pa.ChunkedArray:
    return source_of_batches((name,), table.batches([name]), "database", table.address.shown).column(name)


def _open_spreadsheet(path: Path, how: How, sheet: str | None = None) -> Source:
    names, batches = spreadsheets.read_sheet(path, sheet, any_width=how.any_text)
    where = str(path) if sheet is None else f"{path}#{sheet}"
    check_names(names, where)
    source = source_of_batches(names, batches, "excel", where)
    rows = zip(
        *([cell or "" for cell in source.column(name)[:SAMPLE_ROWS].to_pylist()] for name in names),
        strict=True,
    )
    if not how.any_text and lacks_header(names, list(rows)):
        raise TableError(f"{where} has no header: {NO_HEADER}.")
    return source


def _spool(stream: BinaryIO, path: Path) -> Callable[[], BinaryIO]:
    """Copy stdin to a file; returns what opens that."""
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file, BLOCK_BYTES)
    except OSError as error:
        raise TableError(f"stdin cannot be kept: {os.strerror(error.errno or errno.EIO)}.") from None
    return lambda: path.open("rb")


def _open_path(path: Path, how: How) -> Source:
    if path.is_dir():
        return open_parquet(_parts(path), str(path))
    if path.exists():
        return _open_file(path, how)
    found = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    matches = list(map(Path, found))
    if not matches:
        missing = "No file matches" if glob.has_magic(str(path)) else "There is no file or folder"
        raise TableError(f"{missing} {databases.without_secrets(str(path))}; check the path.")
    if len(matches) > 1:
        return open_parquet(matches, str(path))
    return _open_file(matches[0], how)


def _parts(folder: Path) -> list[Path]:
    """The Parquet files of a folder in order of name, without hidden ones and Spark's ``_SUCCESS``."""
    inside = [path.relative_to(folder) for path in folder.rglob("*") if path.suffix.lower() in PARQUET_NAMES]
    inside = [path for path in inside if not any(part.startswith((".", "_")) for part in path.parts)]
    if not inside:
        raise TableError(f"The folder {folder} holds no Parquet files (*.parquet).")
    if any("=" in part for path in inside for part in path.parts[:-1]):
        raise TableError(
            f"The folder {folder} is partitioned by a column (column=value), so its files lack that column; "
            "write it as plain parts."
        )
    return [folder / path for path in sorted(inside)]


def _open_file(path: Path, how: How) -> Source:
    """A file of any format, told by its first bytes."""
    with path.open("rb") as file:
        magic = file.read(8)
    if magic.startswith(b"PAR1"):
        return open_parquet([path], str(path))
    if magic.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        is_file = magic.startswith(b"ARROW1")
        return open_ipc_lazily(path, is_file=is_file) if how.lazy else open_ipc(path, is_file=is_file)
    if magic.startswith(b"PK\x03\x04") and spreadsheets.is_spreadsheet(path):
        return _open_spreadsheet(path, how)
    if magic and path.suffix.lower() in BINARY_NAMES:
        raise TableError(
            f"{path} is no {path.suffix[1:]} file inside, or a damaged one; make or copy it again."
        )
    return open_csv(lambda: path.open("rb"), str(path), how, signature=lambda: signature_of(path))
