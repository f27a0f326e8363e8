"""Published rows of any number, in portions that fit in memory and hold whole groups.

The rows are read once, batch by batch, and condensed. Rows that agree in every column that is checked become one
*line*, which says how many rows it stands for; numbers of which only ends, mean and variance are checked become
:class:`~sfumato.verify.groups.Moments`. A release in order of its groups is condensed to little more than its groups.
Lines that do not fit in memory are divided by a hash of their cells, written to files, and checked file by file.

A group is never divided: its rows agree in every cell that tells groups apart, so they have one hash. A collision does
no harm: groups of one hash come into one portion, and are told apart there cell by cell. The hash decides where a
group is checked, never what a group is. It has the key of Python's own hash of texts, so nobody can make cells that
all have the same.

One group with more distinct sensitive values than memory holds is checked in memory nevertheless.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError, TableError
from sfumato.policy.schema import Attribute, Role
from sfumato.table.cells import UnreadableCells, numbers, refuse_damaged, texts
from sfumato.table.opening import open_table
from sfumato.table.write import trim
from sfumato.verify.groups import (
    Combinations,
    GroupedRows,
    Moments,
    cells_of,
    group,
    is_fixed,
    stored_parts,
    sum_rows,
    with_missing,
)
from sfumato.verify.rows import CheckedColumns

Ints = NDArray[np.int64]

SHARE = 8
"""One part in so many of the memory holds lines; checking them takes the rest."""

FEWEST_ROWS, MOST_ROWS = 1 << 10, 1 << 18
N_FILES = 64
DEEPEST = 5
"""How often lines that do not fit are divided again."""

N_MOMENTS = sum(item.name != "is_whole" for item in fields(Moments))
"""Columns that the moments of one column of numbers take in a file."""

ODD = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xBF58476D1CE4E5B9)
MISSING = np.int64(-0x5FA1D2)


# ---- lines -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Rows that agree in every key, condensed to one line (or a few): how many there are, and moments of numbers."""

    keys: pa.Table
    n_rows: Ints
    moments: dict[str, Moments] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.keys.num_rows)

    @property
    def n_bytes(self) -> int:
        beside = 8 * len(self) * (1 + N_MOMENTS * len(self.moments))
        return int(self.keys.nbytes) + beside

    def condense(self) -> Lines:
        """One line for all that agree in their keys."""
        keys = trim(self.keys)  # all chunks in one
        found = group(
            cells_of(column, name) for name, column in zip(keys.column_names, keys.columns, strict=True)
        )
        return Lines(
            keys.take(pa.array(found.one_row)),
            sum_rows(self.n_rows, found.of_row, found.n),
            {name: moments.join(found.of_row, found.n) for name, moments in self.moments.items()},
        )

    def to_table(self) -> pa.Table:
        """Keys, numbers of rows and moments as columns of one table, to be written to a file."""
        arrays = [self.n_rows, *(column for m in self.moments.values() for column in m.columns())]
        columns = [*self.keys.columns, *map(pa.array, arrays)]
        return pa.Table.from_arrays(columns, names=[str(at) for at in range(len(columns))])

    @classmethod
    def of_table(cls, table: pa.Table, checked: CheckedColumns, is_whole: dict[str, bool]) -> Lines:
        """The lines that ``to_table`` wrote."""
        n_keys = len(checked.keys)
        keys = pa.Table.from_arrays(table.columns[:n_keys], names=checked.keys)
        arrays = [column.to_numpy() for column in table.columns[n_keys:]]
        moments = {
            attribute.name: Moments(
                *arrays[1 + N_MOMENTS * at : 1 + N_MOMENTS * (at + 1)], is_whole=is_whole[attribute.name]
            )
            for at, attribute in enumerate(checked.numbers)
        }
        return cls(keys, arrays[0], moments)


def lines_of(batch: pa.RecordBatch, checked: CheckedColumns) -> Lines:
    """The rows of a batch as lines. Only neighbours are compared, which is fast where rows stand in order of groups."""
    columns = {name: _comparable(batch.column(name), name) for name in checked.keys}
    differs = np.zeros(batch.num_rows, dtype=np.bool_)
    differs[:1] = True
    for name in checked.cells:
        for part in stored_parts(columns[name]):
            differs[1:] |= part[1:] != part[:-1]
    starts = np.flatnonzero(differs)
    lengths = np.diff(starts, append=batch.num_rows)
    values = [name for name in checked.values if name not in checked.cells]
    if values:
        run = np.repeat(np.arange(len(starts)), lengths)
        found = Combinations.of([run, *(_encode(columns[name]) for name in values)])
        of_row, n = found.of_line, found.n
        one = np.empty(n, dtype=np.int64)
        one[of_row] = np.arange(len(of_row))
        size = np.bincount(of_row, minlength=n)
    else:
        one, size, n = starts, lengths, len(starts)
        of_row = np.repeat(np.arange(n), lengths) if checked.numbers else starts
    keys = pa.table(columns).take(pa.array(one))
    moments = {
        attribute.name: Moments.of(numbers(batch.column(attribute.name), attribute)).join(of_row, n)
        for attribute in checked.numbers
    }
    return Lines(trim(keys), size.astype(np.int64), moments)


def _comparable(column: pa.Array, name: str) -> pa.Array:
    """The column: numbers and times as they are, all else as dictionaries with 32-bit indices."""
    try:
        if pa.types.is_dictionary(column.type):
            refuse_damaged(column)
            if not _is_text(column.type.value_type):
                return _comparable(column.dictionary_decode(), name)
            return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), column.dictionary)
        if is_fixed(column.type):
            return column
        refuse_damaged(column)
        return (column if _is_text(column.type) else column.cast(pa.string())).dictionary_encode()
    except pa.ArrowException:
        texts(column, Attribute(name, Role.OTHER))  # which says what is wrong with it
        raise TableError(f"Column {name!r} is damaged; make or copy it again.") from None


def _is_text(kind: pa.DataType) -> bool:
    words = ("string", "large_string", "binary", "large_binary", "fixed_size_binary")
    return any(getattr(pa.types, f"is_{word}")(kind) for word in words)


def _encode(column: pa.Array) -> NDArray[np.integer[Any]]:
    """A number for each cell, equal where cells are."""
    encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    return with_missing(encoded).of_row


def group_lines(lines: Lines, checked: CheckedColumns) -> GroupedRows:
    """The groups of lines, with the moments of each."""
    found = GroupedRows.of(open_table(lines.keys), checked.cells, lines.n_rows)
    of_row, n = found.groups.of_row, found.groups.n
    moments = {name: item.join(of_row, n) for name, item in lines.moments.items()}
    return replace(found, moments=moments)


# ---- portions --------------------------------------------------------------------------------------


class Portions:
    """Collects lines and gives them back in portions of whole groups, each of about a share of ``memory``.

    Files lie in ``folder``. They have no name there, so that not even a killed run leaves any.
    """

    def __init__(self, checked: CheckedColumns, *, memory: int, folder: Path, depth: int = 0) -> None:
        self.checked, self.folder, self.depth = checked, folder, depth
        self.memory, self.most = memory, memory // SHARE
        self.is_whole = {attribute.name: True for attribute in checked.numbers}
        self._held: list[Lines] = []
        self._n_bytes = 0
        self._files: list[_File | None] = []

    @property
    def has_spilled(self) -> bool:
        return bool(self._files)

    def add(self, lines: Lines) -> None:
        self._held.append(lines)
        self._n_bytes += lines.n_bytes
        for name, moments in lines.moments.items():
            self.is_whole[name] &= moments.is_whole
        if self._n_bytes > self.most:
            self._make_room()

    def _make_room(self) -> None:
        """Condense what is held; where that is not enough, write it to files."""
        lines = self._join().condense()
        self._held, self._n_bytes = [lines], lines.n_bytes
        if self._n_bytes > self.most // 2 and self.depth < DEEPEST:
            self._spill(lines)
            self._held, self._n_bytes = [], 0

    def _join(self) -> Lines:
        """All that is held, as lines."""
        if len(self._held) == 1:
            return self._held[0]
        tables = [lines.to_table() for lines in self._held]
        return Lines.of_table(pa.concat_tables(tables), self.checked, self.is_whole)

    def _spill(self, lines: Lines) -> None:
        self._files = self._files or [None] * N_FILES
        at = hash_lines([lines.keys.column(name) for name in self.checked.cells], salt=self.depth) % N_FILES
        order = np.argsort(at, kind="stable")
        table = lines.to_table().take(pa.array(order))
        ends = np.cumsum(np.bincount(at.astype(np.int64), minlength=N_FILES))
        with _while_spilling(self.folder):
            for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
                if start < end:
                    file = self._files[number] = self._files[number] or _File(self.folder, table.schema)
                    file.append(trim(table.slice(start, end - start)))

    def __iter__(self) -> Iterator[Lines]:
        """Each portion once; what is read is gone."""
        if not self._files:
            if self._held:
                yield self._join()
            return
        if self._held:
            self._spill(self._join().condense())
            self._held = []
        for number, file in enumerate(self._files):
            if file is not None:
                yield from self._of_file(file)
                file.close()
                self._files[number] = None

    def _of_file(self, file: _File) -> Iterator[Lines]:
        """Lines of one file; if they are too many, divided again by another hash."""
        inner = Portions(self.checked, memory=self.memory, folder=self.folder, depth=self.depth + 1)
        inner.is_whole = dict(self.is_whole)
        try:
            with _while_spilling(self.folder):
                for table in file.tables():
                    inner.add(Lines.of_table(table, self.checked, self.is_whole))
            yield from inner
        finally:
            inner.close()

    def close(self) -> None:
        for file in self._files:
            if file is not None:
                file.close()
        self._files, self._held = [], []


class NoRoom(InputError):  # noqa: N818 - reads as a sentence
    """What does not fit in memory cannot be written to a file."""


@contextmanager
def _while_spilling(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno or errno.EIO)
        raise NoRoom(
            f"What does not fit in memory cannot be written to {folder}: {why}; make room there."
        ) from None


class _File:
    """Tables in an Arrow stream, in a file without a name."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by close
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_stream(self._file, schema, options=options)

    def append(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def tables(self) -> Iterator[pa.Table]:
        self._writer.close()
        self._file.seek(0)
        for batch in pa.ipc.open_stream(self._file):
            yield pa.Table.from_batches([batch])

    def close(self) -> None:
        with suppress(OSError, pa.ArrowException):  # of a full disk
            self._writer.close()
        self._file.close()


def rows_at_once(memory: int, n_columns: int) -> int:
    """Rows of a batch: enough to be fast, few enough to be a small part of the memory."""
    return int(min(max(memory // (16 * 8 * max(n_columns, 1)), FEWEST_ROWS), MOST_ROWS))


def collect(batches: Iterable[pa.RecordBatch], portions: Portions) -> int:
    """Read all batches into the portions; returns the number of rows."""
    n_rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        try:
            portions.add(lines_of(batch, portions.checked))
        except UnreadableCells as error:
            raise error.after(n_rows) from None
        n_rows += batch.num_rows
    return n_rows


def hash_lines(
    columns: Sequence[pa.ChunkedArray], *, salt: int, of_text: Callable[[Any], int] = hash
) -> NDArray[np.uint64]:
    """A number for each line, equal where all cells are equal; missing, empty and NaN have the same."""
    out = np.full(len(columns[0]), salt, dtype=np.uint64)
    for column in columns:
        parts = [_hash_cells(chunk, of_text) for chunk in column.chunks]
        out = (out + np.concatenate(parts)) * ODD
        out ^= out >> np.uint64(31)
    out *= MIX
    return out ^ (out >> np.uint64(29))


def _hash_cells(chunk: pa.Array, of_text: Callable[[Any], int]) -> NDArray[np.uint64]:
    if not is_fixed(chunk.type):
        encoded = chunk if isinstance(chunk, pa.DictionaryArray) else chunk.dictionary_encode()
        labels = [*encoded.dictionary.to_pylist(), None]
        of_label = np.fromiter((of_text(label or "") for label in labels), np.int64, len(labels))
        at = pc.fill_null(encoded.indices, len(labels) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(of_label[at]).view(np.uint64)
    if pa.types.is_floating(chunk.type):
        chunk = pc.add(chunk.cast(pa.float64()), 0.0)  # -0.0 is 0.0
        chunk = pc.if_else(pc.is_nan(chunk), None, chunk)
    bits, *is_there = stored_parts(chunk)
    out = bits.astype(np.int64)
    return (np.where(is_there[0], out, MISSING) if is_there else out).view(np.uint64)
