"""Tables in and out, as Arrow.

``open_table`` takes a path (CSV, gzip-ed CSV, Parquet, Arrow IPC, .xlsx; told apart by content, not by name), ``"-"``
for CSV on stdin, the address of a table in a database, or a frame, and gives a :class:`Source` that is read column by
column, or by batches of rows where the table is larger than memory. ``texts``, ``numbers`` and ``dates`` give the cells
of a column a meaning; ``write_table`` and ``hand_back`` are the way out.

Every cell of a CSV file is text (zip 02139 stays 02139). Arrow's own messages quote cells, so none of
them is passed on or chained: a :class:`TableError` names columns, counts and row numbers only. Rows
count from 1, the header not included.
"""

from __future__ import annotations

import csv
import ctypes
import errno
import glob
import gzip
import importlib
import io
import itertools
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.errors import InternalError, TableError, did_you_mean
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.table import databases, objects, spreadsheets
from sfumato.table.allowance import Gauge
from sfumato.table.csv_header import lacks_header, looks_like_json
from sfumato.table.renames import rename_new
from sfumato.table.text_encoding import (
    NAME_IT,
    UTF8,
    WESTERN,
    Utf8Stream,
    blocks_of,
    check_encoding,
    is_utf8,
    is_western,
    notice_western,
)

TEXTS = pa.dictionary(pa.int32(), pa.string())
"""How ``texts`` gives a column: small integers into a dictionary of distinct texts."""

TO_ASCII = bytes(range(128)) + b"?" * 128
BOM = b"\xef\xbb\xbf"
NO_HEADER = "its first line looks like the rows below it; put a line with column names above it"
DELIMITERS = ",;\t|"
HEAD_BYTES = 1 << 20  # sniffed for delimiter and header
BLOCK_BYTES = 1 << 22  # read at a time; no row may be longer
SAMPLE_ROWS = 200

NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
FLOAT_WORDS = r"[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])"
DATE = r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)?)?"

TEXT = ("string", "large_string")
OTHER_TEXT = ("binary", "large_binary", "fixed_size_binary", "string_view", "binary_view")
NUMERIC = ("integer", "floating", "decimal", "boolean", "null")

PARQUET_NAMES = (".parquet", ".pq")
BINARY_NAMES = (*PARQUET_NAMES, ".arrow", ".feather", ".ipc")
ROW_GROUP = 1 << 19
"""Rows of a Parquet row group: a writer holds one of them in memory."""

TEXT_KINDS = ("csv", "excel", "database")
"""Kinds of tables whose cells are text, or may be."""

BATCH_ROWS = 1 << 16
"""Rows that are looked at in one go."""

FEW_ROWS = 1 << 10
"""Rows of a Parquet file that are read in one go where nobody knows how large a cell is."""

PIECE_ROWS = 1 << 18
"""Rows of a Parquet file that are read in one go, if memory allows."""

UNKNOWN = -1
"""The number of rows of a table that nobody has read yet."""

Count = Callable[[int], None]
"""Told how many bytes of the input were read."""

INDEX_OF_PANDAS = re.compile(r"__index_level_\d+__")
FRAMES = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("duckdb", "DuckDBPyRelation"))


# ---- a table, column by column ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """Any table, read column by column, with unique column names.

    ``kind`` says what came in: csv, excel, database, parquet, arrow (IPC, or an unknown Arrow exporter), pyarrow,
    pandas, polars, duckdb or numpy. ``where`` is what an error message calls the table. ``n_rows`` is ``UNKNOWN``
    where a table was opened without reading it and does not say itself. ``encoding`` is the recognized one, if
    any. ``index`` is that of a pandas frame: it is no column, and goes to frames of the same rows only.

    >>> source = open_table(pa.table({"zip": ["02139", "53715"]}))
    >>> source.names, source.n_rows, source.kind
    (('zip',), 2, 'pyarrow')
    """

    names: tuple[str, ...]
    n_rows: int
    kind: str
    where: str
    read: Callable[[str], pa.ChunkedArray] = field(repr=False)
    stream: Callable[[Sequence[str], int | None, Count], Iterator[pa.RecordBatch]] | None = field(
        repr=False, default=None
    )
    encoding: str | None = field(repr=False, default=None)
    index: Any = field(repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        _check_names(self.names, self.where)

    def column(self, name: str) -> pa.ChunkedArray:
        """One column as it is stored. Parquet and pandas columns are read only now: drop each after use."""
        self._check_has(name)
        with _reading(self.where, "table"):
            column = self.read(name)
        if self.n_rows not in (len(column), UNKNOWN):
            raise changed(self.where)
        # Arrow cannot join an empty chunk of a slice that came through the C stream interface
        return pa.chunked_array([chunk for chunk in column.chunks if len(chunk)], column.type)

    def _check_has(self, name: str) -> None:
        if name not in self.names:
            raise TableError(f"{self.where} has no column {name!r}.{did_you_mean(name, self.names)}")

    def batches(
        self,
        names: Sequence[str],
        *,
        rows: int = BATCH_ROWS,
        memory: int | None = None,
        count: Count = lambda _: None,
    ) -> Iterator[pa.RecordBatch]:
        """One pass over these columns as they are stored, in batches of at most ``rows`` rows.

        A file is read piece by piece: parts of row groups of Parquet (smaller ones where those would take more
        than ``memory`` bytes), blocks of CSV. ``count`` is told how many of its bytes are read.

        >>> source = open_table(pa.table({"zip": ["02139", "53715", "53703"]}))
        >>> [batch.num_rows for batch in source.batches(["zip"], rows=2)]
        [2, 1]
        """
        for name in names:
            self._check_has(name)
        n_rows = 0
        pieces = self._columns(names, count) if self.stream is None else self.stream(names, memory, count)
        for piece in pieces:
            n_rows += piece.num_rows
            for start in range(0, piece.num_rows, rows):
                yield piece.slice(start, rows)
        if self.n_rows not in (n_rows, UNKNOWN):
            raise changed(self.where)

    def _columns(self, names: Sequence[str], count: Count) -> Iterator[pa.RecordBatch]:
        table = pa.table({name: _movable(self.column(name)) for name in names})
        count(table.nbytes)
        yield from table.to_batches()

    def held(self) -> Source:
        """The same table, all of it in memory: for those who read its columns again and again."""
        columns = [_movable(self.column(name)).unify_dictionaries().combine_chunks() for name in self.names]
        return replace(self, read=pa.table(columns, self.names).column, stream=None)

    def take(self, rows: NDArray[np.int64]) -> Source:
        """These rows, in this order, as a table of its own.

        >>> open_table(pa.table({"zip": ["02139", "53715"]})).take(np.array([1])).column("zip").to_pylist()
        ['53715']
        """
        at = pa.array(rows)
        return replace(
            self,
            n_rows=len(rows),
            read=lambda name: _movable(self.column(name)).take(at),
            stream=None,
            index=None,
        )


def changed(where: str) -> TableError:
    """A table that is not what it was when it was read before."""
    return TableError(f"{where} changed while it was being read; read it again.")


def _movable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow takes no rows out of a column of views."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_binary_view(column.type) else column


def _check_names(names: Sequence[str], where: str) -> None:
    if not names:
        raise TableError(f"{where} has no columns.")
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise TableError(f"Column {position} of {where} has no name; name it, or leave the index out.")
        if first.setdefault(name, position) != position:
            both = f"Columns {first[name]} and {position}"
            raise TableError(f"{both} of {where} have the same name; rename one of them.")


def _with_rows(source: Source) -> Source:
    if source.n_rows == 0:
        raise TableError(f"{source.where} has no rows; a table needs at least one.")
    return source


def open_table(
    source: Any,
    *,
    lazy: bool = False,
    spool: Path | None = None,
    may_be_empty: bool = False,
    any_text: bool = False,
    encoding: str | None = None,
) -> Source:
    """The table behind a path, ``"-"`` (CSV on stdin) or a frame.

    A path may name a file, a folder of Parquet parts, or a glob of them. A ``lazy`` file is not read when it
    is opened, but batch by batch; stdin, which can be read only once, goes to the file ``spool`` first. A table
    without rows is an error unless it ``may_be_empty``, and so is a CSV file with cells that are not UTF-8 unless
    ``any_text`` will do: they come as they are then, each Python object of a frame by itself, and ``lenient_texts``
    and its like know what to make of them.
    A CSV file that is not UTF-8 has the ``encoding`` that is named, or else, unless ``any_text`` will do, the Western
    European one if it looks like that; a :class:`Notice` says so.
    """
    known = None if encoding is None else check_encoding(encoding)
    found = _open(source, spool=spool, how=_How(lazy=lazy, any_text=any_text, encoding=known))
    return found if may_be_empty else _with_rows(found)


@dataclass(frozen=True, slots=True)
class _How:
    """How a file is opened: batch by batch or at once, whatever its text is like, in which encoding."""

    lazy: bool = False
    any_text: bool = False
    encoding: str | None = None
    is_own: bool = False

    @property
    def can_be_western(self) -> bool:
        """Whether text that is not UTF-8 may be taken for Western European."""
        return self.encoding is None and not self.any_text and not self.is_own


def _open(source: Any, *, spool: Path | None, how: _How) -> Source:
    if isinstance(source, str) and source == "-":
        if spool is not None:
            return _open_csv(_spooled(sys.stdin.buffer, spool), "stdin", how)
        data = _whole(sys.stdin.buffer)  # a faulty row is looked for in a second pass
        return _open_csv(lambda: io.BytesIO(data), "stdin", replace(how, lazy=False))
    if isinstance(source, str) and databases.is_address(source):
        return _open_database(source, spool, how)
    if isinstance(source, str | os.PathLike):
        path, sheet = spreadsheets.split_sheet(os.fsdecode(source))
        with _reading(databases.without_secrets(str(path)), "table"):
            return _open_path(path, how) if sheet is None else _open_spreadsheet(path, how, sheet)
    return _open_frame(source, any_text=how.any_text)


def _whole(stream: BinaryIO) -> bytes:
    gauge, blocks = Gauge("stdin"), []
    while block := stream.read(BLOCK_BYTES):
        blocks.append(block)
        gauge.check()
    return b"".join(blocks)


def _open_database(address: str, spool: Path | None, how: _How) -> Source:
    """A table of a database. It is read by one query: into memory, or into the file ``spool`` if it is read lazily."""
    table = databases.look(address)
    where = table.address.shown
    if how.lazy and spool is None:
        return Source(
            table.names, table.n_rows, "database", where, partial(_database_column, table), _streamed(table)
        )
    batches = table.batches()
    if how.lazy and spool is not None and (first := next(batches, None)) is not None:
        n_rows = 0
        with (
            _writing(spool),
            pa.OSFile(str(spool), "wb") as file,
            pa.ipc.new_stream(file, first.schema) as writer,
        ):
            for batch in itertools.chain([first], batches):
                writer.write_batch(batch)
                n_rows += batch.num_rows
        return replace(_open_ipc_lazily(spool, is_file=False), kind="database", where=where, n_rows=n_rows)
    return _of_batches(table.names, batches, "database", where)


def _streamed(table: databases.DatabaseTable) -> Callable[..., Iterator[pa.RecordBatch]]:
    def batches(names: Sequence[str], _memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        for batch in table.batches(names):
            count(batch.nbytes)
            yield batch

    return batches


def _database_column(table: databases.DatabaseTable, name: str) -> pa.ChunkedArray:
    return _of_batches((name,), table.batches([name]), "database", table.address.shown).column(name)


def _open_spreadsheet(path: Path, how: _How, sheet: str | None = None) -> Source:
    names, batches = spreadsheets.read_sheet(path, sheet, any_width=how.any_text)
    where = str(path) if sheet is None else f"{path}#{sheet}"
    _check_names(names, where)
    source = _of_batches(names, batches, "excel", where)
    rows = zip(
        *([cell or "" for cell in source.column(name)[:SAMPLE_ROWS].to_pylist()] for name in names),
        strict=True,
    )
    if not how.any_text and lacks_header(names, list(rows)):
        raise TableError(f"{where} has no header: {NO_HEADER}.")
    return source


def _of_batches(names: Sequence[str], batches: Iterable[pa.RecordBatch], kind: str, where: str) -> Source:
    """A table that is read whole."""
    gauge, held = Gauge(where), []
    for batch in batches:
        held.append(batch)
        gauge.check()
    schema = held[0].schema if held else pa.schema([(name, pa.string()) for name in names])
    return _of_table(pa.Table.from_batches(held, schema), kind, where)


def _spooled(stream: BinaryIO, path: Path) -> Callable[[], BinaryIO]:
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file, BLOCK_BYTES)
    except OSError as error:
        raise TableError(f"stdin cannot be kept: {os.strerror(error.errno or errno.EIO)}.") from None
    return lambda: path.open("rb")


def release_format(source: Source) -> str:
    """The format of a release unless the user says otherwise: csv for CSV and spreadsheets, else parquet."""
    return "csv" if source.kind in ("csv", "excel") else "parquet"


@contextmanager
def _reading(where: str, what: str) -> Iterator[None]:
    """Every way in which reading fails, as one sentence; what Arrow says may quote cells and is dropped."""
    try:
        yield
    except MemoryError:
        raise TableError(f"{where} is damaged, or does not fit in memory.") from None
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        if number := getattr(error, "errno", None):
            raise TableError(f"{where} cannot be read: {os.strerror(number)}.") from None
        raise TableError(
            f"{where} is no {what}, or a damaged or cut-off one; make or copy it again."
        ) from None


# ---- paths -----------------------------------------------------------------------------------------


def _open_path(path: Path, how: _How) -> Source:
    if path.is_dir():
        return _open_parquet(_parts(path), str(path))
    if path.exists():
        return _open_file(path, how)
    found = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    matches = list(map(Path, found))
    if not matches:
        missing = "No file matches" if glob.has_magic(str(path)) else "There is no file or folder"
        raise TableError(f"{missing} {databases.without_secrets(str(path))}; check the path.")
    if len(matches) > 1:
        return _open_parquet(matches, str(path))
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


def _open_file(path: Path, how: _How) -> Source:
    with path.open("rb") as file:
        magic = file.read(8)
    if magic.startswith(b"PAR1"):
        return _open_parquet([path], str(path))
    if magic.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        is_file = magic.startswith(b"ARROW1")
        return _open_ipc_lazily(path, is_file=is_file) if how.lazy else _open_ipc(path, is_file=is_file)
    if magic.startswith(b"PK\x03\x04") and spreadsheets.is_spreadsheet(path):
        return _open_spreadsheet(path, how)
    if magic and path.suffix.lower() in BINARY_NAMES:
        raise TableError(
            f"{path} is no {path.suffix[1:]} file inside, or a damaged one; make or copy it again."
        )
    return _open_csv(lambda: path.open("rb"), str(path), how, signature=lambda: _signature(path))


def _signature(path: Path) -> tuple[int, ...]:
    """What changes when a file does."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _open_ipc(path: Path, *, is_file: bool) -> Source:
    with _reading(str(path), "Arrow IPC file"), pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        gauge, batches = Gauge(str(path)), []
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
            batches.append(batch)
            gauge.check()  # a compressed batch is not of the file any more
        table = pa.Table.from_batches(batches, reader.schema)
        table.validate(full=True)  # a forged offset would otherwise read foreign memory
    return _of_table(table, "arrow", str(path))


def _open_ipc_lazily(path: Path, *, is_file: bool) -> Source:
    """An Arrow IPC file that is read batch by batch; a stream does not say how many rows it has."""
    known = _signature(path)

    def batches(names: Sequence[str], _memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        at = [schema.get_field_index(name) for name in names]
        with _reading(str(path), "Arrow IPC file"), pa.OSFile(str(path)) as file:
            for batch in _ipc_batches(file, sorted(set(at)), is_file=is_file):
                batch.validate(full=True)  # a forged offset would otherwise read foreign memory
                yield batch.select(list(names))
            count(file.size())
        if _signature(path) != known:
            raise changed(str(path))

    def read(name: str) -> pa.ChunkedArray:
        found = [batch.column(0) for batch in batches([name], None, lambda _: None)]
        return pa.chunked_array(found, schema.field(name).type)

    with _reading(str(path), "Arrow IPC file"), pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        schema = reader.schema
        n_rows = UNKNOWN
        if is_file:
            n_rows = sum(batch.num_rows for batch in _ipc_batches(file, [0], is_file=True))
    return Source(_without_index(schema.names), n_rows, "arrow", str(path), read, batches)


def _ipc_batches(file: Any, fields: list[int], *, is_file: bool) -> Iterator[pa.RecordBatch]:
    options = pa.ipc.IpcReadOptions(included_fields=fields)
    if is_file:
        reader = pa.ipc.open_file(file, options=options)
        yield from map(reader.get_batch, range(reader.num_record_batches))
    else:
        yield from pa.ipc.open_stream(file, options=options)


def _open_parquet(paths: Sequence[Path], where: str) -> Source:
    signatures = [_signature(path) for path in paths]
    footers, schemas = [], []
    for path in paths:
        with _reading(str(path), "Parquet file"), pq.ParquetFile(path) as file:
            footers.append(file.metadata)
            schemas.append(file.schema_arrow)
    for path, schema in zip(paths, schemas, strict=True):
        if sorted(schema.names) != sorted(schemas[0].names):
            raise TableError(f"{path} has other columns than {paths[0]}, so they are not parts of one table.")

    def read(name: str) -> pa.ChunkedArray:
        chunks: list[pa.Array] = []
        gauge = Gauge(where)
        gauge.foresee(sum(map(partial(_decoded_size, name), footers, schemas)))
        for path, footer, schema in zip(paths, footers, schemas, strict=True):
            # text comes as a dictionary straight from the file's own, without a copy per row
            as_dictionary = [name] if _is(schema.field(name).type, *TEXT) else None
            with pq.ParquetFile(path, metadata=footer, read_dictionary=as_dictionary) as file:
                if as_dictionary or _is(schema.field(name).type, "primitive", "dictionary"):
                    chunks += file.read(columns=[name]).column(name).chunks
                    continue
                for batch in file.iter_batches(FEW_ROWS, columns=[name]):  # cells of any size, stored once
                    chunks.append(batch.column(0))
                    gauge.check()
        return _joined(chunks, schemas[0].field(name).type, name, where)

    def batches(names: Sequence[str], memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        wanted = [
            _joined_type([schema.field(name).type for schema in schemas], name, where) for name in names
        ]
        for path, footer, schema, known in zip(paths, footers, schemas, signatures, strict=True):
            for batch in _row_groups(path, footer, schema, names, memory, count):
                columns = [
                    column if _is_as_wanted(column.type, kind) else _decoded(column).cast(kind)
                    for column, kind in zip(batch.columns, wanted, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, list(names))
            if _signature(path) != known:
                raise changed(str(path))

    n_rows = sum(footer.num_rows for footer in footers)
    return Source(_without_index(schemas[0].names), n_rows, "parquet", where, read, batches)


def _row_groups(
    path: Path, footer: Any, schema: pa.Schema, names: Sequence[str], memory: int | None, count: Count
) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, row group by row group."""
    as_dictionary = [name for name in names if _is(schema.field(name).type, *TEXT)]
    with (
        _reading(str(path), "Parquet file"),
        pq.ParquetFile(path, metadata=footer, read_dictionary=as_dictionary, pre_buffer=False) as file,
    ):
        for g in range(footer.num_row_groups):
            stored, decoded = _sizes(footer.row_group(g), schema, names)
            count(stored)
            is_small = memory is None or decoded * PIECE_ROWS <= memory * footer.row_group(g).num_rows
            size = PIECE_ROWS if is_small else BATCH_ROWS
            try:  # a row group at once takes five times the memory, and not less time
                yield from file.iter_batches(size, row_groups=[g], columns=list(names))
            except (OSError, pa.ArrowException):
                which = f"row group {g + 1:,} of {footer.num_row_groups:,}"
                raise TableError(f"{path} is damaged in {which}; make or copy it again.") from None


def _sizes(group: Any, schema: pa.Schema, names: Sequence[str]) -> tuple[int, int]:
    """Of some columns of a row group: bytes in the file, and about as many in memory."""
    wanted, stored, decoded = set(names), 0, 0
    for c in range(group.num_columns):
        column = group.column(c)
        if column.path_in_schema in wanted or column.path_in_schema.partition(".")[0] in wanted:
            stored += column.total_compressed_size
            decoded += column.total_uncompressed_size
    for name in names:
        kind = schema.field(name).type
        decoded += group.num_rows * (kind.bit_width if _is(kind, "primitive") else 64) // 8
    return stored, decoded


def _decoded_size(name: str, footer: Any, schema: pa.Schema) -> int:
    """Of a column of a Parquet file, bytes in memory, about."""
    return sum(_sizes(footer.row_group(g), schema, [name])[1] for g in range(footer.num_row_groups))


def _is_as_wanted(kind: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(kind == wanted or (pa.types.is_dictionary(kind) and kind.value_type == wanted))


def _joined_type(kinds: Sequence[pa.DataType], name: str, where: str) -> pa.DataType:
    """The type of a column whose parts may be stored in several ways."""
    if len(set(kinds)) == 1:
        return kinds[0]
    parts = [pa.schema([pa.field(name, _value_type(kind))]) for kind in kinds]
    try:
        return pa.unify_schemas(parts, promote_options="permissive").field(name).type
    except pa.ArrowException:
        raise TableError(f"Column {name!r} has different types in different parts of {where}.") from None


def _joined(chunks: list[pa.Array], stored: pa.DataType, name: str, where: str) -> pa.ChunkedArray:
    if len({chunk.type for chunk in chunks}) <= 1:
        return pa.chunked_array(chunks, type=chunks[0].type if chunks else stored)
    tables = [pa.table({name: _decoded(chunk)}) for chunk in chunks]
    try:
        return pa.concat_tables(tables, promote_options="permissive").column(name)
    except pa.ArrowException:
        raise TableError(f"Column {name!r} has different types in different parts of {where}.") from None


def _of_table(table: pa.Table, kind: str, where: str) -> Source:
    return Source(_without_index(table.column_names), table.num_rows, kind, where, table.column)


def _without_index(names: Sequence[str]) -> tuple[str, ...]:
    """A row number that pandas stored along is no column: published, it would link back."""
    return tuple(name for name in names if not INDEX_OF_PANDAS.fullmatch(name))


# ---- frames ----------------------------------------------------------------------------------------


def _open_frame(source: Any, *, any_text: bool) -> Source:
    kind = frame_kind(source)
    where = f"{_library(type(source))}.{type(source).__name__}"
    if kind is None:
        raise TableError(f"A table is a path or a frame (pandas, Polars, Arrow or DuckDB), not a {where}.")
    if kind == "pandas":
        names = tuple(map(str, source.columns))
        read = partial(_pandas_column, source, names, any_text=any_text)
        return Source(names, len(source), kind, where, read, index=source.index)
    if kind == "numpy":
        names = array_names(source.shape[1])
        read = partial(_numpy_column, source, names, any_text=any_text)
        return Source(names, len(source), kind, where, read)
    if kind == "polars":
        read = partial(_polars_column, source, any_text=any_text)
        return Source(tuple(source.columns), source.height, kind, where, read)
    try:
        table = pa.table(source)
    except Exception:  # noqa: BLE001 - a query fails with its engine's own errors, and they quote cells
        raise TableError(f"{where} cannot be read as an Arrow table; does its query run?") from None
    return _of_table(table, kind, where)


def _library(kind: type) -> str:
    return kind.__module__.partition(".")[0].lstrip("_")


def frame_kind(source: Any) -> str | None:
    """Which library made a frame, found without importing any."""
    if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return "pyarrow"
    if isinstance(source, np.ndarray) and source.ndim == 2:
        return "numpy"
    for base in type(source).__mro__:
        if (_library(base), base.__name__) in FRAMES:
            return _library(base)
    return "arrow" if hasattr(source, "__arrow_c_stream__") else None


def array_names(n_columns: int) -> tuple[str, ...]:
    """What the columns of an array are called: x0, x1 and so on, as in scikit-learn."""
    return tuple(f"x{i}" for i in range(n_columns))


def _numpy_column(
    array: NDArray[Any], names: tuple[str, ...], name: str, *, any_text: bool
) -> pa.ChunkedArray:
    """A column of an array; NaN is missing, as in pandas."""
    cells: Any = np.ascontiguousarray(array[:, names.index(name)])
    column = _arrow_or_none(cells) if cells.dtype.kind != "O" else None
    return _object_column(cells, any_text=any_text) if column is None else pa.chunked_array([column])


def _polars_column(frame: Any, name: str, *, any_text: bool) -> pa.ChunkedArray:
    """A column; of Python objects Polars would give their addresses."""
    series = frame.get_column(name)
    if str(series.dtype) == "Object":
        return _object_column(series.to_list(), any_text=any_text)
    return pa.chunked_array([series.to_arrow()])


def _pandas_column(frame: Any, names: tuple[str, ...], name: str, *, any_text: bool) -> pa.ChunkedArray:
    """A column without the index; objects of mixed types, intervals and periods as their text."""
    series = frame.iloc[:, names.index(name)]
    if hasattr(series.dtype, "categories"):
        return _pandas_categories(series, any_text=any_text)
    column = _arrow_or_none(series) if _has_a_type(series.dtype) else None
    if column is None:
        return _object_column(series.to_numpy(dtype=object), any_text=any_text)
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _has_a_type(dtype: Any) -> bool:
    """Does a column of pandas say what its cells are? Else they are Python objects, each of a type of its own."""
    if isinstance(dtype, np.dtype):
        return dtype.kind != "O"
    return _library(type(dtype)) == "pandas" and not hasattr(
        dtype, "fill_value"
    )  # a sparse one may be of objects


def _pandas_categories(series: Any, *, any_text: bool) -> pa.ChunkedArray:
    """Categories are read as a column of their own: an object among them changes none of the others."""
    categories = series.cat.categories.to_frame(name="")
    known = _pandas_column(categories, ("",), "", any_text=any_text)
    codes = series.cat.codes.to_numpy()
    indices = pa.array(codes, pa.int32(), mask=codes < 0)
    is_told_apart = _has_a_type(categories.iloc[:, 0].dtype) and known.type != objects.READINGS
    if not is_told_apart:  # several may have the same text, or none
        return known.take(indices)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, known.combine_chunks())])


def _arrow_or_none(cells: Any) -> Any:
    """What Arrow makes of cells, if that is a column of single values."""
    try:
        column = pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return column if _is_plain(column.type) else None


def _object_column(cells: Sequence[object], *, any_text: bool) -> pa.ChunkedArray:
    """Python objects: one column of theirs where they are alike; else, and for ``any_text``, each by itself."""
    if not any_text and objects.are_alike(cells) and (column := _arrow_or_none(cells)) is not None:
        return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    read, kind = (objects.readings_of, objects.READINGS) if any_text else (objects.texts_of, pa.string())
    parts = [read(cells[start : start + BATCH_ROWS]) for start in range(0, len(cells), BATCH_ROWS)]
    return pa.chunked_array(parts, kind)


# ---- CSV in ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the head of a CSV file shows: columns, delimiter, the byte where the rows begin, and if there are any.

    ``how`` it was opened says whether cells need be UTF-8, and what they are made UTF-8 from.
    """

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    delimiter: str
    offset: int
    has_rows: bool
    how: _How


class _Body(io.RawIOBase):
    """Bytes already read and then the rest of their stream, in full blocks; the last two are kept.

    ``gauge`` looks, before each block, at what those before it have taken.
    """

    def __init__(
        self, head: bytes, rest: Any, *, translation: bytes | None = None, gauge: Gauge | None = None
    ) -> None:
        self._head, self._rest, self._translation = head, rest, translation
        self._gauge = gauge
        self._last = (b"", b"")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._gauge is not None:
            self._gauge.check()
        block, self._head = self._head[:size], self._head[size:]
        while len(block) < size and (more := self._rest.read(size - len(block))):
            block += more
        if block:
            self._last = (self._last[1], block)
        return block.translate(self._translation) if self._translation else block

    @property
    def tail(self) -> bytes:
        return b"".join(self._last)


def open_own_csv(path: Path, *, lazy: bool = False, may_be_empty: bool = False) -> Source:
    """A CSV file that ``write_table`` wrote: commas, and any header, taken as it stands."""
    with _reading(str(path), "table"):
        how = _How(is_own=True, lazy=lazy)
        source = _open_csv(lambda: path.open("rb"), str(path), how, signature=lambda: _signature(path))
    return source if may_be_empty else _with_rows(source)


def _open_csv(
    open_bytes: Callable[[], BinaryIO],
    where: str,
    how: _How,
    *,
    signature: Callable[[], tuple[int, ...]] = tuple,
) -> Source:
    try:
        return _csv_source(open_bytes, where, how, signature)
    except _NotUtf8:
        if not how.can_be_western:
            raise
    with _reading(where, "gzip-ed CSV file"):
        western = is_western(blocks_of(open_bytes, _unzipped))
    source = _csv_source(open_bytes, where, replace(how, encoding=WESTERN if western else UTF8), signature)
    if not western:
        return source
    notice_western(where)
    return replace(source, encoding=WESTERN)


def _csv_source(
    open_bytes: Callable[[], BinaryIO], where: str, how: _How, signature: Callable[[], tuple[int, ...]]
) -> Source:
    with _reading(where, "gzip-ed CSV file"):
        with open_bytes() as file:
            head, rest = _as_utf8_text(file, where, how)
            layout = _layout(head, where, how)
            if not layout.has_rows:
                schema = pa.schema(list(zip(layout.names, layout.types, strict=True)))
                return _of_table(schema.empty_table(), "csv", where)
            if how.lazy:
                return _lazy_csv(open_bytes, layout, where, signature)
            body = _Body(head[layout.offset :], rest, gauge=Gauge(where))
            try:
                table = _parsed(body, layout)
            except pa.ArrowInvalid:
                table = None
        if table is None:
            raise _fault(open_bytes, layout, where)
    if table.num_rows:
        _check_quotes(table.column(table.num_columns - 1)[-1], body.tail, layout, where)
    return _of_table(table, "csv", where)


def _lazy_csv(
    open_bytes: Callable[[], BinaryIO], opened: _Layout, where: str, signature: Callable[[], tuple[int, ...]]
) -> Source:
    """A CSV file that is read block by block."""
    known = signature()
    settled: list[_Layout] = []

    def batches(names: Sequence[str], _memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        settled[:] = settled or [_settled(open_bytes, opened, where)]
        layout = settled[0]
        last_column = layout.names[-1]  # its last cell tells whether the file ends inside quotes
        wanted = list(dict.fromkeys([*names, last_column]))
        last = None
        with _reading(where, "gzip-ed CSV file"):
            with open_bytes() as file:
                count(file.seek(0, os.SEEK_END))
                file.seek(0)
                head, rest = _as_utf8_text(file, where, layout.how)
                body = _Body(head[layout.offset :], rest)
                try:
                    for batch in _reader(body, layout, names=wanted):
                        last = batch.column(last_column)[-1] if batch.num_rows else last
                        yield batch.select(list(names))
                    is_faulty = False
                except pa.ArrowInvalid:
                    is_faulty = True
            if is_faulty:
                raise _fault(open_bytes, layout, where)
        if last is not None:
            _check_quotes(last, body.tail, layout, where)
        if signature() != known:
            raise changed(where)

    def read(name: str) -> pa.ChunkedArray:
        found = [batch.column(0) for batch in batches([name], None, lambda _: None)]
        return pa.chunked_array(found, opened.types[opened.names.index(name)])

    return Source(_without_index(opened.names), UNKNOWN, "csv", where, read, batches)


def _settled(open_bytes: Callable[[], BinaryIO], layout: _Layout, where: str) -> _Layout:
    """The layout with the encoding that the whole file has: its head may not show it."""
    if not layout.how.can_be_western:
        return layout
    with _reading(where, "gzip-ed CSV file"):
        if not is_western(blocks_of(open_bytes, _unzipped)):
            return layout
        how = replace(layout.how, encoding=WESTERN)
        with open_bytes() as file:
            found = _layout(_as_utf8_text(file, where, how)[0], where, how)
    if found.names != layout.names:
        return layout
    notice_western(where)
    return replace(found, types=layout.types)


def _unzipped(file: BinaryIO) -> tuple[bytes, Any]:
    """The first bytes of the text, and the stream of those that follow."""
    head = file.read(HEAD_BYTES)
    if not head.startswith(b"\x1f\x8b"):
        return head, file
    rest = pa.CompressedInputStream(_Body(head, file), "gzip")
    return _Body(b"", rest).read(HEAD_BYTES), rest


def _as_utf8_text(file: BinaryIO, where: str, how: _How) -> tuple[bytes, Any]:
    """What ``_unzipped`` gives, as UTF-8."""
    head, rest = _unzipped(file)
    if how.encoding in (None, UTF8):
        return head, rest
    text = Utf8Stream(_Body(head, rest), how.encoding, where, any_text=how.any_text)
    return _Body(b"", text).read(HEAD_BYTES), text


def _layout(head: bytes, where: str, how: _How) -> _Layout:
    is_own = how.is_own
    if not is_own:
        _check_is_text(head.partition(b"\n")[0] if how.any_text else head, where)
    if how.can_be_western and not is_utf8(head):
        raise _NotUtf8(f"{where} is not UTF-8 text; {NAME_IT}.")
    bom = len(BOM) if head.startswith(BOM) else 0
    # Latin-1 has one character per byte, so that places in text and bytes agree.
    lines = io.StringIO(head[bom:].decode("latin-1"), newline="").readlines()
    is_whole = len(head) < HEAD_BYTES
    lines = lines if is_whole else lines[:-1]
    # where any text will do, no row has a say in how the others are read: the header alone decides
    fits = (lambda candidate: _agreement(lines, candidate)[1]) if how.any_text else partial(_agreement, lines)
    delimiter = "," if is_own else max(DELIMITERS, key=fits)
    (header, n_lines), *sample = _sample(lines, delimiter) or [([], 0)]
    is_closed = bool(_sample(lines[:n_lines], delimiter, strict=True))
    if not is_whole and n_lines in (0, len(lines)) and not is_closed:
        raise TableError(f"The header of {where} is over {HEAD_BYTES:,} bytes long; is a quote never closed?")
    try:
        spelled = [name.encode("latin-1").decode("utf-8") for name in header]
        names = tuple(spelled if is_own else [name.strip() for name in spelled])
    except UnicodeDecodeError:
        raise _NotUtf8(f"The header of {where} is not UTF-8 text; {NAME_IT}.") from None
    if not is_own and all(re.fullmatch(NUMBER, name) for name in names):
        raise TableError(f"{where} begins with a line of numbers; put a header with column names above it.")
    if not is_own and not how.any_text and lacks_header(names, [row for row, _ in sample]):
        raise TableError(f"{where} has no header: {NO_HEADER}.")
    offset = bom + sum(map(len, lines[:n_lines]))
    _check_names(names, where)
    has_rows = not is_whole or bool(head[offset:].strip(b"\r\n"))
    types = _types(len(names), [row for row, _ in sample])
    return _Layout(names, types, delimiter, offset, has_rows, how)


def _check_is_text(head: bytes, where: str) -> None:
    if not head.removeprefix(BOM).strip():
        raise TableError(f"{where} is empty; a table needs a header and rows.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{where} is UTF-16 text; say so (--encoding utf-16), or save it as UTF-8.")
    if head.startswith(b"PK\x03\x04"):
        raise TableError(
            f"{where} is a ZIP archive, or a spreadsheet other than .xlsx; save the table as CSV."
        )
    if looks_like_json(head):
        raise TableError(f"{where} is JSON, which is not read; save the table as CSV or Parquet.")
    if b"\0" in head:
        raise TableError(f"{where} is not a table: it holds neither text nor Parquet nor Arrow IPC.")


def _sample(lines: list[str], delimiter: str, *, strict: bool = False) -> list[tuple[list[str], int]]:
    """The first rows, each with the number of lines read so far; blank lines are passed over."""
    reader = csv.reader(lines, delimiter=delimiter, strict=strict)
    rows: list[tuple[list[str], int]] = []
    with suppress(csv.Error):  # the rows before a fault are sample enough; the full read reports it
        rows.extend((row, reader.line_num) for row in itertools.islice(reader, SAMPLE_ROWS) if row)
    return rows


def _agreement(lines: list[str], delimiter: str) -> tuple[float, int]:
    """How well a delimiter fits: the share of rows as wide as the header, then that width.

    >>> _agreement(["a;b", "1,5;2"], ";"), _agreement(["a;b", "1,5;2"], ",")
    ((1.0, 2), (0.0, 0))
    """
    widths = [len(row) for row, _ in _sample(lines, delimiter, strict=True)]
    if not widths or widths[0] < 2:
        return 0.0, 0
    return widths.count(widths[0]) / len(widths), widths[0]


def _types(n_columns: int, sample: list[list[str]]) -> tuple[pa.DataType, ...]:
    """A dictionary for a column that repeats itself saves memory; for one that does not it costs time."""
    rows = [row for row in sample if len(row) == n_columns]
    distinct = [len({row[column] for row in rows}) for column in range(n_columns)]
    return tuple(TEXTS if n <= max(20, len(rows) / 2) else pa.string() for n in distinct)


def _parsed(body: _Body, layout: _Layout) -> pa.Table:
    return pacsv.read_csv(body, **_options(layout))


def _reader(body: _Body, layout: _Layout, **options: Any) -> Any:
    """What ``_parsed`` gives, block by block."""
    return pacsv.open_csv(body, **_options(layout, **options))


def _options(
    layout: _Layout,
    *,
    names: Sequence[str] = (),
    use_threads: bool = True,
    on_ragged: Callable[[Any], str] | None = None,
) -> dict[str, Any]:
    types = dict(zip(layout.names, layout.types, strict=True))
    return {
        "read_options": pacsv.ReadOptions(
            column_names=layout.names, block_size=BLOCK_BYTES, use_threads=use_threads
        ),
        "parse_options": pacsv.ParseOptions(
            delimiter=layout.delimiter,
            newlines_in_values=True,
            ignore_empty_lines=len(types) > 1,  # in a table of one column it is a missing cell
            invalid_row_handler=on_ragged,
        ),
        "convert_options": pacsv.ConvertOptions(
            check_utf8=not layout.how.any_text,
            column_types=types,
            strings_can_be_null=False,
            include_columns=list(names),
        ),
    }


def _fault(open_bytes: Callable[[], BinaryIO], layout: _Layout, where: str) -> TableError:
    """What is wrong with a CSV file that Arrow refuses. Only in one thread does Arrow count rows."""
    ragged: list[Any] = []

    def remember(row: Any) -> str:
        ragged.append(row)
        return "error"

    def complaint(translation: bytes | None = None, **options: Any) -> str:
        with open_bytes() as file:
            head, rest = _as_utf8_text(file, where, layout.how)
            body = _Body(head[layout.offset :], rest, translation=translation)
            try:
                for _ in _reader(body, layout, use_threads=False, **options):
                    pass
            except pa.ArrowInvalid as error:
                return str(error)
        return ""

    complaint(TO_ASCII, on_ragged=remember)  # Arrow cannot hand over a ragged row that is not UTF-8
    if ragged:
        row = ragged[0]
        return TableError(
            f"Row {row.number} of {where} has {_count(row.actual_columns, 'cell')} but the header has "
            f"{row.expected_columns}; mend the row, or quote cells that hold the delimiter."
        )
    message = complaint()
    if place := re.search(r"column #(\d+):(?: Row #(\d+):)?.*UTF8", message):
        name, row = layout.names[int(place[1])], f" in row {place[2]}" if place[2] else ""
        return _NotUtf8(f"Column {name!r} of {where} holds text that is not UTF-8{row}; {NAME_IT}.")
    if "straddl" in message:
        return TableError(f"{where} has a row of more than {BLOCK_BYTES:,} bytes; is a quote never closed?")
    return TableError(f"{where} cannot be read as CSV; check its quotes and line ends.")


def _check_quotes(last: Any, tail: bytes, layout: _Layout, where: str) -> None:
    """Refuse a file where nothing closes the quote of the last cell: Arrow lets it swallow all rows that follow."""
    text = last.value if isinstance(last, pa.DictionaryScalar) else last
    cell, delimiter = text.as_buffer().to_pybytes(), layout.delimiter
    opened = b'"' + cell.replace(b'"', b'""')

    def ends_with_cell(text: bytes, raw: bytes) -> bool:
        return text.endswith(raw) and text[: -len(raw)][-1:] in (b"", b"\r", b"\n", delimiter.encode())

    if ends_with_cell(tail, opened) and not ends_with_cell(tail.rstrip(b"\r\n"), opened + b'"'):
        raise TableError(f"{where} ends inside a quoted cell: it is cut short, or a quote is never closed.")


# ---- what cells mean -------------------------------------------------------------------------------


def texts(column: Any, attribute: Attribute) -> pa.DictionaryArray:
    """Cells as text: ``dictionary<int32, string>`` of exactly the texts that occur; null is missing.

    Empty cells, NaN and the attribute's ``missing_values`` are missing. Whole numbers that are stored
    as floats (pandas does so beside a missing one) read as whole, and times at midnight as dates.

    >>> texts(pa.array([5.0, None, 7.0]), Attribute("floor", role="other")).to_pylist()
    ['5', None, '7']
    """
    encoded = _encoded(plain(column, attribute))
    return _with_words(encoded, _words(encoded.dictionary, attribute), attribute)


def as_read_from_csv(table: pa.Table) -> pa.Table:
    """The table as it is read back from a CSV file: all cells are text, and empty ones are missing.

    >>> as_read_from_csv(pa.table({"ill": ["flu", ""], "charge": [1.5, 2.0]})).to_pylist()
    [{'ill': 'flu', 'charge': '1.5'}, {'ill': None, 'charge': '2'}]
    """
    columns = [
        texts(column if is_text(column.type) else _as_csv_text(column), Attribute(name, Role.OTHER))
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _as_csv_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([_decoded(chunk).cast(pa.string()) for chunk in column.chunks], pa.string())


def as_stored(column: Any, attribute: Attribute) -> pa.DictionaryArray:
    """Cells told apart by what is stored: an empty text, null and NaN are three values, 0.0 and -0.0 are two.

    Floats come as the integers that have their bits.

    >>> cells = as_stored(pa.array(["", None, "a", ""]), Attribute("zip", role="other"))
    >>> cells.indices.to_pylist(), cells.dictionary.to_pylist()
    ([0, None, 1, 0], ['', 'a'])
    """
    stored = plain(column, attribute)
    if pa.types.is_floating(_value_type(stored.type)):
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[_value_type(stored.type).bit_width]
        stored = pa.chunked_array([_decoded(chunk).view(bits) for chunk in stored.chunks], bits)
    encoded = _encoded(stored)
    is_given = pa.types.is_dictionary(stored.type)
    if not is_given or len({len(chunk.dictionary) for chunk in stored.chunks}) > 1:
        return encoded  # made here: of cells, or of several dictionaries
    merged = (
        encoded.dictionary.dictionary_encode()
    )  # whoever wrote a dictionary may have put a value there twice
    if len(merged.dictionary) == len(encoded.dictionary):
        return encoded
    return pa.DictionaryArray.from_arrays(merged.indices.take(encoded.indices), merged.dictionary)


def lenient_texts(column: Any, attribute: Attribute) -> pa.DictionaryArray:
    """``texts`` of each cell by itself: none depends on another cell, and text that is not UTF-8 is missing.

    A whole number reads as whole and a time at midnight as a date whatever the other cells are.

    >>> lenient_texts(pa.array([5.0, 5.5, None]), Attribute("floor", role="other")).to_pylist()
    ['5', '5.5', None]
    """
    encoded = _encoded(lenient_plain(_said(column, Kind.CATEGORY), attribute))
    return _with_words(encoded, _lenient_words(encoded.dictionary, attribute), attribute)


def _with_words(encoded: pa.DictionaryArray, words: pa.Array, attribute: Attribute) -> pa.DictionaryArray:
    """The cells with these texts of their distinct values; those that stand for a missing one are null."""
    is_missing = pc.is_in(words, value_set=pa.array(["", *attribute.missing_values], pa.string()))
    merged = pc.if_else(is_missing, None, words).dictionary_encode()
    if merged.null_count or len(merged.dictionary) < len(words):
        return pa.DictionaryArray.from_arrays(merged.indices.take(encoded.indices), merged.dictionary)
    return pa.DictionaryArray.from_arrays(encoded.indices, words)


def numbers(column: Any, attribute: Attribute) -> pa.Array:
    """Cells as finite numbers: int64 if all are whole and fit, else float64; null is missing.

    Text is trimmed and read as ``12``, ``-0.5`` or ``1e5``; nothing else counts as a number.

    >>> numbers(pa.array([" 1", "+2e1", ""]), Attribute("hours", role="other")).to_pylist()
    [1, 20, None]
    """
    stored = plain(column, attribute)
    if _is_whole(stored.type, attribute):
        return stored.combine_chunks().cast(pa.int64())
    values, indices = _distinct(stored)
    exact, floats, is_unreadable = _number_cells(values, attribute)
    _refuse(is_unreadable, indices, attribute, "without a readable number")
    _refuse(pc.is_inf(floats), indices, attribute, "with an infinite number")
    present = _present_numbers(floats, attribute)
    return _spread(pc.if_else(pc.is_null(present), None, _narrowest(exact, present)), indices)


def dates(column: Any, attribute: Attribute) -> pa.Array:
    """Cells as days (date32), from dates, times or ISO text such as 2024-03-05; null is missing.

    >>> dates(pa.array(["2024-03-05", "2024-03-05 10:30"]), Attribute("day", role="other"))[1]
    <pyarrow.Date32Scalar: datetime.date(2024, 3, 5)>
    """
    values, indices = _distinct(plain(column, attribute))
    days, is_unreadable = _day_cells(values, attribute)
    _refuse(is_unreadable, indices, attribute, "without a readable date such as 2024-03-05")
    return _spread(days, indices)


def ordered(column: Any, attribute: Attribute) -> pa.Array:
    """Cells of a number, or those of a date as days since 1970; null is missing."""
    if attribute.kind is Kind.DATE:
        return dates(column, attribute).cast(pa.int32()).cast(pa.int64())
    return numbers(column, attribute)


def lenient_ordered(column: Any, attribute: Attribute) -> pa.Array:
    """``ordered`` of each cell by itself: what is no finite number, or no date, is missing.

    >>> lenient_ordered(pa.array(["1", "one", "inf", "2.5"]), Attribute("hours", "other", Kind.NUMBER)).to_pylist()
    [1.0, None, None, 2.5]
    """
    stored = lenient_plain(_said(column, attribute.kind), attribute)
    if _is_whole(stored.type, attribute):
        return numbers(stored, attribute)
    values, indices = _distinct(stored)
    if attribute.kind is Kind.DATE:
        return _spread(_day_cells(values, attribute)[0], indices).cast(pa.int32()).cast(pa.int64())
    _, floats, _ = _number_cells(values, attribute)
    return _spread(_present_numbers(pc.if_else(pc.is_inf(floats), None, floats), attribute), indices)


def _is_whole(kind: pa.DataType, attribute: Attribute) -> bool:
    """Is every cell a whole and finite number, or missing as it is stored?"""
    return (
        attribute.kind is not Kind.DATE and pa.types.is_signed_integer(kind) and not attribute.missing_values
    )


def _number_cells(values: Any, attribute: Attribute) -> tuple[Any, Any, Any]:
    """Numbers in the most exact form there is, as float64, and which cells are neither number nor missing."""
    if _is(values.type, *TEXT):
        return _read_numbers(values, attribute.missing_values)
    if pa.types.is_decimal(values.type):  # Arrow's own conversion makes 0.30000000000000004 of 0.3
        return values, values.cast(pa.string()).cast(pa.float64()), None
    if _is(values.type, *NUMERIC):
        return values, values.cast(pa.float64(), safe=False), None
    raise _unfit(values.type, attribute, "which is not a number")


def _present_numbers(floats: Any, attribute: Attribute) -> Any:
    """The numbers without those that stand for a missing one."""
    floats = pc.if_else(pc.is_nan(floats), None, floats)
    _, absent, _ = _read_numbers(pa.array(attribute.missing_values, pa.string()), ())
    return pc.if_else(pc.is_in(floats, value_set=absent.drop_null()), None, floats)


def _day_cells(values: Any, attribute: Attribute) -> tuple[Any, Any]:
    """The days of cells, and which are neither date nor missing."""
    is_unreadable = None
    if _is(values.type, *TEXT):
        days, is_unreadable = _read_dates(values, attribute.missing_values)
    elif pa.types.is_timestamp(values.type):
        days = (pc.local_timestamp(values) if values.type.tz else values).cast(pa.date32())
    elif pa.types.is_date64(values.type):
        days = values.cast(pa.timestamp("ms")).cast(pa.date32())
    elif pa.types.is_date(values.type) or pa.types.is_null(values.type):
        days = values.cast(pa.date32())
    else:
        raise _unfit(values.type, attribute, "which is not a date")
    absent, _ = _read_dates(pa.array(attribute.missing_values, pa.string()), ())
    return pc.if_else(pc.is_in(days, value_set=absent.drop_null()), None, days), is_unreadable


def _read_numbers(cells: Any, missing: Sequence[str]) -> tuple[Any, Any, Any]:
    """The text of each number, its value as float64, and which cells are neither number nor missing."""
    trimmed = _trimmed(cells, missing)
    with suppress(pa.ArrowInvalid):  # some cell is no number, and Arrow does not say which
        floats = trimmed.cast(pa.float64())
        if not pc.any(pc.is_nan(floats)).as_py():  # Arrow also takes nan(text) for a number
            return trimmed, floats, None
    is_number = pc.match_substring_regex(trimmed, f"^({NUMBER}|{FLOAT_WORDS})$")
    readable = pc.replace_substring_regex(pc.if_else(is_number, trimmed, None), r"^\+", "")
    return readable, readable.cast(pa.float64()), pc.fill_null(pc.invert(is_number), False)


def _read_dates(cells: Any, missing: Sequence[str]) -> tuple[Any, Any]:
    """The days of ISO texts, and which cells are neither date nor missing."""
    trimmed = _trimmed(cells, missing)
    is_shaped = pc.match_substring_regex(trimmed, f"^{DATE}$")
    text = pc.utf8_slice_codeunits(pc.if_else(is_shaped, trimmed, None), 0, 10)
    days = pc.strptime(text, format="%Y-%m-%d", unit="s", error_is_null=True).cast(pa.date32())
    is_real = pc.equal(days.cast(pa.string()), text)  # strptime reads 30 February as 1 March
    days = pc.if_else(is_real, days, None)
    return days, pc.and_not(pc.is_null(days), pc.is_null(trimmed))


def _trimmed(cells: Any, missing: Sequence[str]) -> Any:
    text = pc.utf8_trim_whitespace(cells.cast(pa.string()))
    words = pa.array(["", *(word.strip() for word in missing)], pa.string())
    return pc.if_else(pc.is_in(text, value_set=words), None, text)


def _narrowest(exact: Any, floats: Any) -> Any:
    """int64 where that loses nothing: from the exact form, or from floats below 2**53, which are exact."""
    if not pc.all(pc.equal(pc.trunc(floats), floats), min_count=0).as_py():
        return floats
    with suppress(pa.ArrowInvalid):
        return exact.cast(pa.int64())
    is_small = pc.all(pc.less(pc.abs(floats), 2.0**53), min_count=0).as_py()
    return floats.cast(pa.int64()) if is_small else floats


def _refuse(is_bad: Any, indices: pa.Array | None, attribute: Attribute, what: str) -> None:
    if is_bad is None or not pc.any(is_bad).as_py():
        return
    rows = pc.fill_null(_spread(is_bad, indices), False)
    raise UnreadableCells(attribute.name, what, np.flatnonzero(rows.to_numpy(zero_copy_only=False)))


class UnreadableCells(TableError):  # noqa: N818 - reads as a sentence
    """Cells that are not what their column is declared to be; ``at`` are their places, from 0.

    >>> fault = UnreadableCells("age", "without a readable number", np.array([6]))
    >>> str(fault)[:70]
    "Column 'age' has 1 cell without a readable number (the first in row 7)"
    >>> str(fault.after(1000))[:84]
    "Column 'age' has at least 1 cell without a readable number (the first in row 1,007);"
    """

    def __init__(
        self, name: str, what: str, at: NDArray[np.int64], *, n: int | None = None, first: int | None = None
    ) -> None:
        self.name, self.what, self.at = name, what, at
        self.n, self.first = len(at) if n is None else n, int(at[0]) if first is None else first
        super().__init__(self._sentence(""))

    def _sentence(self, at_least: str) -> str:
        return (
            f"Column {self.name!r} has {at_least}{_count(self.n, 'cell')} {self.what} (the first in row "
            f"{self.first + 1:,}); mend them, or list the texts that stand for a missing value under missing-values."
        )

    def after(self, n_rows: int) -> TableError:
        """The same of a batch that comes after so many rows."""
        self.first += n_rows
        return TableError(self._sentence("at least "))

    def among(self, count: NDArray[np.int64], first: NDArray[np.int64]) -> TableError:
        """The same where the cells were distinct values: how many rows have each, and the first that has."""
        n, row = int(count[self.at].sum()), int(first[self.at].min())
        return UnreadableCells(self.name, self.what, self.at, n=n, first=row)


def _count(n: int, noun: str) -> str:
    return f"1 {noun}" if n == 1 else f"{n:,} {noun}s"


def _words(values: pa.Array, attribute: Attribute) -> pa.Array:
    """The text of distinct values of any plain type."""
    try:
        return _simplest(values).cast(pa.string())
    except pa.ArrowException:
        raise _unfit(values.type, attribute, "which has no text") from None


def _said(column: Any, kind: Kind) -> Any:
    """What Python objects say as cells of this kind; any other column as it is."""
    if column.type != objects.READINGS:
        return column
    words = pc.struct_field(column, "words")
    if kind is Kind.CATEGORY:
        return pc.coalesce(words, pc.struct_field(column, "text"))
    anything = Attribute("", Role.OTHER, kind)
    if kind is Kind.DATE:
        return pc.coalesce(pc.struct_field(column, "day"), _day_cells(words, anything)[0])
    return pc.coalesce(pc.struct_field(column, "number"), _number_cells(words, anything)[1])


def _lenient_words(values: pa.Array, attribute: Attribute) -> pa.Array:
    """The text that each value has by itself."""
    if pa.types.is_decimal(values.type):  # zeros at the end tell of the other cells of the column
        words = pc.replace_substring_regex(values.cast(pa.string()), r"^(-?\d+\.\d*[1-9])0+$", r"\1")
        return pc.replace_substring_regex(words, r"^(-?\d+)\.0+$", r"\1")
    is_float = pa.types.is_floating(values.type)
    if not is_float and (not pa.types.is_timestamp(values.type) or values.type.tz):
        return _words(values, attribute)
    try:
        words = values.cast(pa.string())
        for simpler in (pa.int64(),) if is_float else (pa.timestamp("s"), pa.date32()):
            simple = values.cast(simpler, safe=False)
            is_same = pc.fill_null(pc.equal(simple.cast(values.type, safe=False), values), False)
            words = pc.if_else(is_same, simple.cast(pa.string()), words)
        return pc.if_else(pc.is_nan(values), None, words) if is_float else words
    except pa.ArrowException:
        raise _unfit(values.type, attribute, "which has no text") from None


def _simplest(values: pa.Array) -> pa.Array:
    """Whole floats as integers, times at midnight as dates, where that holds of every value."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
        return _narrowest(values, pc.add(values, pa.scalar(0, values.type)))  # -0.0 + 0 is 0.0
    if pa.types.is_timestamp(values.type):
        for simpler in (pa.date32(), pa.timestamp("s")):
            if not values.type.tz and values.cast(simpler, safe=False).cast(values.type).equals(values):
                return values.cast(simpler)
    return values


# ---- columns as Arrow stores them ------------------------------------------------------------------


def _is(kind: pa.DataType, *words: str) -> bool:
    """Whether an Arrow type is one of those that ``pyarrow.types.is_<word>`` knows."""
    return any(getattr(pa.types, f"is_{word}")(kind) for word in words)


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of an Arrow type are text, in whichever way they are stored."""
    return _is(_value_type(kind), *TEXT, *OTHER_TEXT)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_plain(kind: pa.DataType) -> bool:
    value = _value_type(kind)
    return not pa.types.is_nested(value) and not isinstance(value, pa.BaseExtensionType)


def plain(column: Any, attribute: Attribute) -> pa.ChunkedArray:
    """The column as chunks of single values; text that is stored in other ways as plain text."""
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if not _is_plain(column.type):
        raise _unfit(column.type, attribute, "where a cell must hold one value")
    kind = _value_type(column.type)
    try:
        if _is(kind, *OTHER_TEXT):
            return pa.chunked_array([_decoded(chunk) for chunk in column.chunks], kind).cast(pa.string())
        for chunk in column.chunks if _is(column.type, "dictionary", *TEXT) else ():
            chunk.validate(full=True)  # Parquet checks neither text nor indices
    except pa.ArrowException as error:
        not_utf8, damaged = (
            "holds text that is not UTF-8; save it as UTF-8",
            "is damaged; make or copy it again",
        )
        if "UTF8" in str(error):
            raise _NotUtf8(f"Column {attribute.name!r} {not_utf8}.") from None
        raise TableError(f"Column {attribute.name!r} {damaged}.") from None
    return column


class _NotUtf8(TableError):  # noqa: N818 - what it is
    """A cell of text is not UTF-8."""


def lenient_plain(column: Any, attribute: Attribute) -> pa.ChunkedArray:
    """``plain``, but text that is not UTF-8 is missing."""
    try:
        return plain(column, attribute)
    except _NotUtf8:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        cells = [_decoded(chunk).cast(pa.binary()).to_pylist() for chunk in chunks]
        return pa.chunked_array([[_as_utf8(cell) for cell in chunk] for chunk in cells], pa.string())


def _as_utf8(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _unfit(kind: pa.DataType, attribute: Attribute, why: str) -> TableError:
    return TableError(f"Column {attribute.name!r} is stored as {kind}, {why}; convert it, or drop it.")


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """One dictionary with 32-bit indices for the whole column, without values that no row has."""
    join = pa.DictionaryArray.from_arrays
    if not pa.types.is_dictionary(column.type):
        chunks = column.dictionary_encode().chunks or [pa.array([], pa.dictionary(pa.int32(), column.type))]
        return join(pa.concat_arrays([chunk.indices for chunk in chunks]), chunks[0].dictionary)
    chunks = [join(chunk.indices.cast(pa.int32()), chunk.dictionary) for chunk in column.chunks]
    whole = pa.chunked_array(chunks, pa.dictionary(pa.int32(), column.type.value_type))
    try:
        whole = whole.unify_dictionaries()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a null inside a dictionary
        return _encoded(pa.chunked_array([_decoded(chunk) for chunk in chunks]))
    if not whole.num_chunks:
        return whole.combine_chunks()
    indices = pa.concat_arrays([chunk.indices for chunk in whole.chunks])
    return _used(join(indices, whole.chunk(0).dictionary))


def _used(encoded: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same cells, with a dictionary of the values that occur and no others."""
    indices = encoded.indices.drop_null() if encoded.null_count else encoded.indices
    is_used = occurring(indices.to_numpy(), len(encoded.dictionary))
    if is_used.all():
        return encoded
    return _reordered(encoded, np.flatnonzero(is_used))


def occurring(codes: NDArray[Any], n: int) -> NDArray[np.bool_]:
    """Which of ``n`` codes occur; looks no further than the first rows if all are there, or at one row of each stretch.

    >>> occurring(np.array([2, 2, 0]), 3).tolist()
    [True, False, True]
    """
    is_there: NDArray[np.bool_] = np.bincount(codes[:BATCH_ROWS], minlength=n) > 0
    if len(codes) > BATCH_ROWS and not is_there.all():
        one_of_each = np.append(codes[np.flatnonzero(codes[1:] != codes[:-1])], codes[-1])
        is_there = np.bincount(one_of_each, minlength=n) > 0
    return is_there


def _reordered(encoded: pa.DictionaryArray, kept: Any) -> pa.DictionaryArray:
    """The same cells, with these values of the dictionary in this order."""
    place = np.zeros(len(encoded.dictionary), dtype=np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    indices = pa.array(place).take(encoded.indices)
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary.take(pa.array(kept)))


def _decoded(chunk: pa.Array) -> pa.Array:
    return chunk.dictionary_decode() if isinstance(chunk, pa.DictionaryArray) else chunk


def _distinct(column: pa.ChunkedArray) -> tuple[Any, pa.Array | None]:
    """The distinct values and each row's index into them, where the column already is a dictionary."""
    if not pa.types.is_dictionary(column.type):
        return column, None
    encoded = _encoded(column)
    return encoded.dictionary, encoded.indices


def _spread(values: Any, indices: pa.Array | None) -> pa.Array:
    if indices is not None:
        return values.take(indices)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def give_back_memory() -> None:
    """Hand freed memory back to the system: Arrow and glibc keep what a stage no longer needs."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)


# ---- the way out -----------------------------------------------------------------------------------


def compact(table: pa.Table) -> pa.Table:
    """The same cells without what rides along: metadata, and the dictionaries' history.

    A dictionary may hold raw values that no published row has, and values in the order of the input's
    rows, which would undo the shuffling of the release. Whatever leaves sfumato goes through here.

    >>> column = pa.DictionaryArray.from_arrays(pa.array([2, 1]), ["raw", "b", "a"])
    >>> compact(pa.table({"x": column})).column("x").chunk(0).dictionary.to_pylist()
    ['a', 'b']
    """
    columns = [
        _without_history(column) if _is(column.type, "dictionary") else column for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def trimmed(table: pa.Table) -> pa.Table:
    """The same cells, each column in one chunk with a dictionary of the values that occur, in any order.

    For what stays inside: it is cheaper than ``compact``.
    """
    columns = [
        _without_history(column, is_sorted=False)
        if _is(column.type, "dictionary")
        else column.combine_chunks()
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _without_history(column: pa.ChunkedArray, *, is_sorted: bool = True) -> pa.DictionaryArray:
    """The same cells, with a dictionary of the values that occur."""
    if any(chunk.dictionary.null_count for chunk in column.chunks) or not column.num_chunks:
        encoded = _encoded(column)
        return _reordered(encoded, pc.sort_indices(encoded.dictionary).to_numpy())
    used = [_used_places(chunk) for chunk in column.chunks]
    if column.num_chunks == 1 and not is_sorted:
        return _reordered(column.chunk(0), used[0])
    values = [chunk.dictionary.take(pa.array(at)) for chunk, at in zip(column.chunks, used, strict=True)]
    known = pa.concat_arrays(values).unique()
    known = known.take(pc.sort_indices(known)) if is_sorted else known
    parts = []
    for chunk, at, own in zip(column.chunks, used, values, strict=True):
        place = np.zeros(len(chunk.dictionary), dtype=np.int32)
        place[at] = pc.index_in(own, value_set=known).to_numpy()
        parts.append(pa.array(place).take(chunk.indices))
    return pa.DictionaryArray.from_arrays(pa.concat_arrays(parts), known)


def _used_places(chunk: pa.DictionaryArray) -> NDArray[np.int64]:
    """Which values of the dictionary some cell has."""
    indices = chunk.indices.drop_null() if chunk.null_count else chunk.indices
    return np.flatnonzero(np.bincount(indices.to_numpy(), minlength=len(chunk.dictionary)))


def hand_back(table: pa.Table, source: Source) -> Any:
    """The table as the kind of frame that came in; a ``pyarrow.Table`` for files and other Arrow data.

    As many rows as a pandas frame had are its own, and have the index that it had.
    """
    table = compact(table)
    if source.kind == "pandas":
        frame, index = table.to_pandas(), source.index
        return frame if index is None or len(index) != len(frame) else frame.set_axis(index, axis=0)
    if source.kind == "numpy":
        return _array_of(table)
    if source.kind in ("polars", "duckdb"):
        return importlib.import_module(source.kind).from_arrow(table)
    return table


def _array_of(table: pa.Table) -> NDArray[Any]:
    """The cells as an array: of numbers if all of them are, of objects otherwise."""
    columns = [_decoded(column.combine_chunks()).to_numpy(zero_copy_only=False) for column in table.columns]
    are_numbers = all(column.dtype.kind in "biuf" for column in columns)
    return np.column_stack(columns if are_numbers else [column.astype(object) for column in columns])


def write_table(table: pa.Table, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Write .csv, .csv.gz or .parquet; the file appears whole or not at all."""
    with TableWriter(path, overwrite=overwrite) as writer:
        writer.append(table)


class TableWriter:
    r"""A table written chunk by chunk as .csv, .csv.gz or .parquet; the file appears whole or not at all.

    Chunks have the same columns; each may have dictionaries of its own. The first chunk says what the types
    are, unless ``schema`` does. Parquet gathers small chunks: a row group has ``row_group`` rows (the last one
    fewer), and that much is held in memory. A file that is there is replaced, unless ``overwrite`` is False.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "t.csv")
    >>> with TableWriter(path) as writer:
    ...     for zip in ("02139", "53715"):
    ...         writer.append(pa.table({"zip": [zip]}))
    >>> path.read_text(), writer.n_rows
    ('zip\n02139\n53715\n', 2)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema | None = None,
        *,
        row_group: int = ROW_GROUP,
        overwrite: bool = True,
    ) -> None:
        self.path, self.n_rows, self.overwrite = Path(path), 0, overwrite
        self._row_group = row_group
        self._schema = None if schema is None else compact(schema.empty_table()).schema
        self._name = self.path.name.lower()
        if not self._name.endswith((".csv", ".csv.gz", ".parquet")):
            raise TableError(
                f"{path} has an unknown extension; a table is written as .csv, .csv.gz or .parquet."
            )
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0
        self._writer: pq.ParquetWriter | None = None
        self._has_begun = False

    def __enter__(self) -> Self:
        self._target = check_file_target(self.path, overwrite=self.overwrite)
        self._temporary = _beside(self._target)
        try:
            with _writing(self.path):
                self._file: Any = self._temporary.open("wb")
                self._stream: Any = self._file
                if self._name.endswith(".gz"):
                    self._stream = gzip.GzipFile("", "wb", compresslevel=6, fileobj=self._file, mtime=0)
        except BaseException:
            self._temporary.unlink(missing_ok=True)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                with _writing(self.path):
                    self._finish()
        finally:
            self._close()
            self._temporary.unlink(missing_ok=True)

    def append(self, chunk: pa.Table | pa.RecordBatch) -> None:
        """Add rows at the end."""
        table = pa.Table.from_batches([chunk]) if isinstance(chunk, pa.RecordBatch) else chunk
        table = self._as_declared(table)
        self.n_rows += table.num_rows
        with _writing(self.path):
            if not self._name.endswith(".parquet"):
                _write_csv(compact(table), self._stream)
                return
            self._waiting.append(table)
            self._n_waiting += table.num_rows
            while self._n_waiting >= self._row_group:
                self._write_row_group()

    def _as_declared(self, table: pa.Table) -> pa.Table:
        """The chunk with the columns and types of the file, which the first one begins."""
        if self._schema is None:
            self._schema = compact(table.slice(0, 0)).schema
        if not self._has_begun:
            self._begin(self._schema)
        if table.column_names != self._schema.names:
            raise InternalError("A chunk of a table has other columns than those before it.")
        columns = [_as_type(table.column(at), field.type) for at, field in enumerate(self._schema)]
        return pa.Table.from_arrays(columns, names=self._schema.names)

    def _begin(self, schema: pa.Schema) -> None:
        self._has_begun = True
        with _writing(self.path):
            if self._name.endswith(".parquet"):
                with_dictionary = [field.name for field in schema if _is(field.type, "dictionary")]
                self._writer = pq.ParquetWriter(
                    self._file, schema, use_dictionary=with_dictionary or False, write_statistics=False
                )
            else:
                self._stream.write(header_as_csv(schema.names))

    def _write_row_group(self) -> None:
        """The first rows that wait, with dictionaries of their own: Parquet has one per row group."""
        assert self._writer is not None
        waiting = pa.concat_tables(self._waiting)
        self._writer.write_table(compact(waiting.slice(0, self._row_group)), row_group_size=self._row_group)
        self._n_waiting = max(waiting.num_rows - self._row_group, 0)
        self._waiting = [waiting.slice(self._row_group)] if self._n_waiting else []

    def _finish(self) -> None:
        if self._schema is None:
            raise InternalError("A table without columns was to be written.")
        if self.n_rows == 0:
            self.append(self._schema.empty_table())
        if self._n_waiting:
            self._write_row_group()
        if self._writer is not None:
            self._writer.close()
        if self._stream is not self._file:
            self._stream.close()
        _sync(self._file)
        self._file.close()
        _take_place(self._temporary, self._target, self.path, overwrite=self.overwrite)

    def _close(self) -> None:
        """Whatever is still open, whether or not it can still be written."""
        for part in (self._writer, self._stream, self._file):
            if part is not None:
                with suppress(Exception):
                    part.close()
        if self._writer is not None:
            self._writer.is_open = False  # or it would try once more when it is collected


def _as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The same cells, stored as in the chunks before; dictionaries may differ."""
    if column.type == kind:
        return column
    try:
        cells = pa.chunked_array([_decoded(chunk) for chunk in column.chunks], _value_type(column.type))
        cells = cells.cast(_value_type(kind))
        return cells.dictionary_encode() if _is(kind, "dictionary") else cells
    except pa.ArrowException:
        raise InternalError("A chunk of a table has other types than those before it.") from None


def check_file_target(path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
    """Where ``path`` leads; raise if no file can be there. Ask before long work."""
    target = Path(path).resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        raise TableError(f"{path} cannot be written: it is not a file.")
    if target.exists() and not overwrite:
        raise _in_the_way(path)
    if not target.parent.is_dir():
        raise TableError(f"{path} cannot be written: there is no folder {target.parent}; make it first.")
    return target


def _in_the_way(path: str | os.PathLike[str]) -> TableError:
    return TableError(f"{path} already exists; name another file, or allow it to be replaced (--overwrite).")


def _take_place(temporary: Path, target: Path, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Give a complete file its name. Without ``overwrite`` one that appeared meanwhile stays as it is."""
    if overwrite:
        temporary.replace(target)
        return
    try:
        rename_new(temporary, target)
    except FileExistsError:
        raise _in_the_way(path) from None


@contextmanager
def replace_atomically(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary name beside ``path``; rename it on success, remove it on any failure or Ctrl-C.

    A file that is there already is replaced, or refused without ``overwrite``.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replace_atomically(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> [path.name for path in folder.iterdir()]
    ['a.txt']
    """
    target = check_file_target(path, overwrite=overwrite)
    temporary = _beside(target)
    try:
        with _writing(path):
            yield temporary
            with temporary.open("rb+") as file:
                _sync(file)
            _take_place(temporary, target, path, overwrite=overwrite)
    finally:
        temporary.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".sfumato-{uuid.uuid4().hex}.tmp")


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Every way in which writing fails, a full disk included, as one sentence."""
    try:
        yield
    except OSError as error:
        raise TableError(f"{path} cannot be written: {os.strerror(error.errno or errno.EIO)}.") from None


def _write_csv(table: pa.Table, file: Any) -> None:
    """Rows as UTF-8, comma, quotes only where RFC 4180 needs them (Arrow's own writer quotes every text)."""
    empty = '""' if table.num_columns == 1 else ""  # a blank line would be no row at all
    table = pa.Table.from_arrays([_with_quoted_dictionary(c) for c in table.columns], table.column_names)
    for batch in filter(len, table.to_batches(max_chunksize=1 << 16)):  # no rows, and Arrow gives no bytes
        cells = [_csv_cells(column, empty) for column in batch.columns]
        cells[-1] = pc.binary_join_element_wise(cells[-1], "\n", "")
        file.write(pc.binary_join_element_wise(*cells, ",").buffers()[2])


def _with_quoted_dictionary(column: pa.ChunkedArray) -> Any:
    if not pa.types.is_dictionary(column.type):
        return column
    encoded = column.combine_chunks()
    return pa.DictionaryArray.from_arrays(encoded.indices, cells_as_csv(encoded.dictionary.cast(pa.string())))


def _csv_cells(column: pa.Array, empty: str) -> pa.Array:
    cells = _decoded(column).cast(pa.string())
    cells = pc.fill_null(cells_as_csv(cells) if _is(column.type, *TEXT) else cells, empty)
    return pc.if_else(pc.equal(cells, ""), empty, cells) if empty else cells


def header_as_csv(names: Sequence[str]) -> bytes:
    """The first line of a CSV file with these columns."""
    return (",".join(cells_as_csv(pa.array(names, pa.string())).to_pylist()) + "\n").encode()


def cells_as_csv(cells: pa.Array) -> pa.Array:
    """Texts as they stand in CSV: in quotes only where RFC 4180 needs them."""
    needs_quotes = pc.match_substring_regex(cells, '[",\r\n]')
    if not pc.any(needs_quotes).as_py():
        return cells
    doubled = pc.replace_substring(cells, '"', '""')
    return pc.if_else(needs_quotes, pc.binary_join_element_wise('"', doubled, '"', ""), cells)
