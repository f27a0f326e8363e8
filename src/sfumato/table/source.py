"""A table, read column by column, or by batches of rows where it is larger than memory.

Arrow's own messages quote cells, so none of them is passed on or chained: a :class:`TableError` names columns, counts
and row numbers only. Rows count from 1, the header not included.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InternalError, TableError, did_you_mean
from sfumato.table.allowance import Gauge
from sfumato.table.cells import BATCH_ROWS

PARQUET_NAMES = (".parquet", ".pq")
BINARY_NAMES = (*PARQUET_NAMES, ".arrow", ".feather", ".ipc")

TEXT_KINDS = ("csv", "excel", "database")
"""Kinds of tables whose cells are text, or may be."""


FEW_ROWS = 1 << 10
"""Rows of a Parquet file that are read in one go where nobody knows how large a cell is."""

PIECE_ROWS = 1 << 18
"""Rows of a Parquet file that are read in one go, if memory allows."""

UNKNOWN = -1
"""The number of rows of a table that nobody has read yet."""

Count = Callable[[int], None]
"""Told how many bytes of the input were read."""

Stream = Callable[[Sequence[str], int | None, Count], Iterator[pa.RecordBatch]]
"""One pass over some columns: their names, the memory that a piece may take, and who is told of the bytes."""

INDEX_OF_PANDAS = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True, slots=True)
class Source:
    """Any table, read column by column, with unique column names.

    ``read`` gives a column. ``stream`` is one pass over some columns, batch by batch, where the table is not in memory.
    ``kind`` says what came in: csv, excel, database, parquet, arrow (IPC, or an unknown Arrow exporter), pyarrow,
    pandas, polars, duckdb or numpy. ``where`` is what an error message calls the table. ``n_rows`` is ``UNKNOWN``
    where a table was opened without reading it and does not say itself. ``encoding`` is the recognized one, if
    any. ``index`` is that of a pandas frame: it is no column, and goes to frames of the same rows only.

    >>> from sfumato.table.opening import open_table
    >>> source = open_table(pa.table({"zip": ["02139", "53715"]}))
    >>> source.names, source.n_rows, source.kind
    (('zip',), 2, 'pyarrow')
    """

    names: tuple[str, ...]
    n_rows: int
    kind: str
    where: str
    read: Callable[[str], pa.ChunkedArray] = field(repr=False)
    stream: Stream | None = field(repr=False, default=None)
    encoding: str | None = field(repr=False, default=None)
    index: Any = field(repr=False, compare=False, default=None)
    no_texts: frozenset[str] = field(repr=False, default=frozenset())
    """Columns whose cells are known to be no text before any is read."""

    def __post_init__(self) -> None:
        check_names(self.names, self.where)

    def column(self, name: str) -> pa.ChunkedArray:
        """One column as it is stored. Parquet and pandas columns are read only now: drop each after use."""
        self._check_has(name)
        with while_reading(self.where, "table"):
            column = self.read(name)
        if self.n_rows not in (len(column), UNKNOWN):
            raise table_has_changed(self.where)
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

        >>> from sfumato.table.opening import open_table
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
            raise table_has_changed(self.where)

    def _columns(self, names: Sequence[str], count: Count) -> Iterator[pa.RecordBatch]:
        table = pa.table({name: _movable(self.column(name)) for name in names})
        count(table.nbytes)
        yield from table.to_batches()

    def slices(self, most: int) -> list[Source]:
        """At most so many tables that have some of the rows each, and can be pickled; none if it cannot be cut so."""
        if self.stream is None:
            return []
        return [
            replace(self, n_rows=n_rows, read=_reads_no_column, stream=own, index=None)
            for n_rows, own in slices_of(self.stream, most)
        ]

    def hold(self) -> Source:
        """The same table, all of it in memory: for those who read its columns again and again."""
        columns = [_movable(self.column(name)).unify_dictionaries().combine_chunks() for name in self.names]
        return replace(self, read=pa.table(columns, self.names).column, stream=None)

    def take(self, rows: NDArray[np.int64]) -> Source:
        """These rows, in this order, as a table of its own.

        >>> from sfumato.table.opening import open_table
        >>> open_table(pa.table({"zip": ["02139", "53715"]})).take(np.array([1])).column("zip").to_pylist()
        ['53715']
        """
        at = pa.array(rows)
        return replace(
            self,
            n_rows=len(rows),
            read=lambda name: _movable(self.column(name)).take(at),
            stream=None,
            index=None if self.index is None else self.index[rows],
        )


def slices_of(stream: Stream, most: int) -> list[tuple[int, Stream]]:
    """A stream in slices, if it can be cut: how many rows each has, and it."""
    cut = getattr(stream, "slices", None)
    return [] if cut is None else cut(most)


def _reads_no_column(name: str) -> pa.ChunkedArray:
    raise InternalError(f"Column {name!r} of a slice was asked for, which is read in batches.")


def table_has_changed(where: str) -> TableError:
    """A table that is not what it was when it was read before."""
    return TableError(f"{where} changed while it was being read; read it again.")


def _movable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with views as plain text or bytes: Arrow takes no rows out of a column of views."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_binary_view(column.type) else column


def check_names(names: Sequence[str], where: str) -> None:
    """Raise unless there are columns, and each has a name of its own."""
    if not names:
        raise TableError(f"{where} has no columns.")
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise TableError(f"Column {position} of {where} has no name; name it, or leave the index out.")
        if first.setdefault(name, position) != position:
            both = f"Columns {first[name]} and {position}"
            raise TableError(f"{both} of {where} have the same name; rename one of them.")


def refuse_empty(source: Source) -> Source:
    """The table itself; an error if it has no rows."""
    if source.n_rows == 0:
        raise TableError(f"{source.where} has no rows; a table needs at least one.")
    return source


class UnreadableFile(TableError):  # noqa: N818 - reads as a sentence
    """The system refuses to read a file, or does not have it."""


@dataclass(frozen=True, slots=True)
class How:
    """How a file is opened.

    A ``lazy`` one is read batch by batch, any other at once. With ``any_text`` no cell is an error, whatever it holds.
    ``encoding`` is the one that was named, if any. A file that ``is_own`` was written by sfumato.
    """

    lazy: bool = False
    any_text: bool = False
    encoding: str | None = None
    is_own: bool = False

    @property
    def can_be_western(self) -> bool:
        """Whether text that is not UTF-8 may be taken for Western European."""
        return self.encoding is None and not self.any_text and not self.is_own


def source_of_batches(
    names: Sequence[str], batches: Iterable[pa.RecordBatch], kind: str, where: str
) -> Source:
    """A table that is read whole."""
    gauge, held = Gauge(where), []
    for batch in batches:
        held.append(batch)
        gauge.check()
    schema = held[0].schema if held else pa.schema([(name, pa.string()) for name in names])
    return source_of(pa.Table.from_batches(held, schema), kind, where)


def release_format(source: Source) -> str:
    """The format of a release unless the user says otherwise: csv for CSV and spreadsheets, else parquet."""
    return "csv" if source.kind in ("csv", "excel") else "parquet"


@contextmanager
def while_reading(where: str, what: str) -> Iterator[None]:
    """Every way in which reading fails, as one sentence; what Arrow says may quote cells and is dropped."""
    try:
        yield
    except MemoryError:
        raise TableError(f"{where} is damaged, or does not fit in memory.") from None
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        if number := getattr(error, "errno", None):
            raise UnreadableFile(f"{where} cannot be read: {os.strerror(number)}.") from None
        raise TableError(
            f"{where} is no {what}, or a damaged or cut-off one; make or copy it again."
        ) from None


def signature_of(path: Path) -> tuple[int, ...]:
    """Size, time and number of a file: what changes when the file does."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def shared_signature(signature: tuple[int, ...]) -> tuple[int, ...]:
    """What all machines agree on: mounts of object storage number files by themselves, and may round times."""
    size, time, *_ = signature
    return size, time // 10**9


def source_of(table: pa.Table, kind: str, where: str) -> Source:
    """An Arrow table as a source."""
    return Source(without_index(table.column_names), table.num_rows, kind, where, table.column)


def without_index(names: Sequence[str]) -> tuple[str, ...]:
    """The columns without the row numbers that pandas stores: published, they would lead back to the input's rows."""
    return tuple(name for name in names if not INDEX_OF_PANDAS.fullmatch(name))
