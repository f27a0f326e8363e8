"""Encoded rows on disk: written to a file for each part, and read again block by block.

A file is an Arrow IPC stream. Codes are stored in the narrowest type that holds a column's greatest, and the payload
beside them as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.batches import BLOCK_ROWS, Block, Rows
from sfumato.encoding.domain import Codes
from sfumato.table.spill import Spill, while_spilling

MOST_FILES = 200
"""Files that are open at once: some systems allow a process no more than 256."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How rows are stored: the type of each column of codes. The last one may be the number of the row."""

    types: tuple[np.dtype[Any], ...]
    is_numbered: bool = False

    @classmethod
    def of(cls, greatest: Sequence[int], *, is_numbered: bool = False) -> RowLayout:
        """The narrowest types for columns with these greatest codes.

        >>> RowLayout.of([200, 70_000]).types
        (dtype('uint8'), dtype('uint32'))
        """
        return cls(tuple(np.dtype(np.min_scalar_type(code)) for code in greatest), is_numbered)

    @property
    def n_codes(self) -> int:
        """How many codes a row has, its number aside."""
        return len(self.types) - self.is_numbered

    @property
    def row_bytes(self) -> int:
        return sum(kind.itemsize for kind in self.types)


def count_own_bytes(batch: pa.RecordBatch | None) -> int:
    """The bytes of a batch without its dictionaries, which batches share."""
    if batch is None:
        return 0
    return sum(
        (column.indices if isinstance(column, pa.DictionaryArray) else column).nbytes
        for column in batch.columns
    )


class StoredRows:
    """The rows of one part in a few files, read in order and as often as needed."""

    def __init__(self, files: Sequence[tuple[Path, int]], spill: Spill) -> None:
        self.files = [(path, n) for path, n in files if n]
        self.spill = spill

    @property
    def n_rows(self) -> int:
        return sum(n for _, n in self.files)

    @classmethod
    def join(cls, parts: Sequence[StoredRows]) -> StoredRows:
        """The rows of several parts as those of one."""
        return cls([file for part in parts for file in part.files], parts[0].spill)

    def blocks(self, *, payload: bool = True) -> Iterator[Block]:
        """One pass over the rows."""
        for batch in self._batches():
            for start in range(0, batch.num_rows, BLOCK_ROWS):
                part = batch.slice(start, BLOCK_ROWS)
                n_codes = _count_codes(part)
                rows = np.empty((part.num_rows, n_codes), dtype=np.uint32)
                _fill_codes(rows, part)
                yield Block(rows, _take_payload(part, n_codes) if payload else None)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        self.spill.counters.passes += 1
        for path, _ in self.files:
            self.spill.counters.bytes_read += path.stat().st_size
            with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
                yield from stream

    def delete(self) -> None:
        """Remove the files: nobody will read these rows again."""
        for path, _ in self.files:
            path.unlink(missing_ok=True)
        self.files = []


def _count_codes(batch: pa.RecordBatch) -> int:
    return sum(name.startswith(_CODE) for name in batch.schema.names)


_CODE = "code:"
_CELL = "cell:"


def _fill_codes(rows: Codes, batch: pa.RecordBatch) -> None:
    for c in range(_count_codes(batch)):
        rows[:, c] = batch.column(c).to_numpy(zero_copy_only=False)


def _take_payload(batch: pa.RecordBatch, n_codes: int) -> pa.RecordBatch | None:
    columns = batch.columns[n_codes:]
    if not columns:
        return None
    return pa.RecordBatch.from_arrays(columns, [name[len(_CELL) :] for name in batch.schema.names[n_codes:]])


def load_rows(rows: Rows, layout: RowLayout, *, payload: bool = True) -> tuple[Codes, pa.Table | None]:
    """All rows in memory: a matrix of their codes, with a last column that is free, and their payload."""
    matrix = np.empty((rows.n_rows, layout.n_codes + 1), dtype=np.uint32)
    at, payloads = 0, []
    for block in rows.blocks(payload=payload):
        matrix[at : at + len(block.rows), :-1] = block.rows[:, : layout.n_codes]
        at += len(block.rows)
        if block.payload is not None:
            payloads.append(block.payload)
    return matrix, pa.Table.from_batches(payloads) if payloads else None


class PartWriter:
    """Writes rows to files, at least one for each part, through one buffer of bounded size.

    >>> with Spill() as spill:
    ...     parts = PartWriter(spill, 2, RowLayout.of([9]), memory=1000)
    ...     parts.add(Block(np.array([[3], [1], [4]], dtype=np.uint32), None), np.array([1, 0, 1]))
    ...     [[block.rows.tolist() for block in rows.blocks()] for rows in parts.close()]
    [[[[1]]], [[[3], [4]]]]
    """

    def __init__(self, spill: Spill, n_parts: int, layout: RowLayout, *, memory: int) -> None:
        self.spill, self.layout = spill, layout
        self.capacity = max(memory // 3, 1 << 16)  # the buffer, its reordered copy, and what the writers hold
        self.n_parts = n_parts
        self._written: list[list[tuple[Path, int]]] = [[] for _ in range(n_parts)]
        """The files of each part: few parts have one, many are closed and opened again as a further one."""
        self._open: dict[int, tuple[Any, Any]] = {}
        self._columns: list[list[NDArray[Any]]] = [[] for _ in layout.types]
        self._parts: list[NDArray[Any]] = []
        self._payloads: list[pa.RecordBatch] = []
        self._held = 0

    def add(self, block: Block, part: NDArray[Any]) -> None:
        """Put each row to its part."""
        for c, kind in enumerate(self.layout.types):
            self._columns[c].append(block.rows[:, c].astype(kind))
        self._parts.append(part.astype(np.uint16 if self.n_parts <= 1 << 16 else np.uint32))
        if block.payload is not None:
            self._payloads.append(block.payload)
        self._held += len(part) * (self.layout.row_bytes + 2) + count_own_bytes(block.payload)
        if self._held >= self.capacity:
            self._flush()

    def close(self) -> list[StoredRows]:
        """What was written, part by part."""
        self._flush()
        self._close_files()
        counters = self.spill.counters
        written = [path for files in self._written for path, _ in files]
        counters.spills += len(written)
        counters.bytes_written += sum(path.stat().st_size for path in written)
        return [StoredRows(files, self.spill) for files in self._written]

    def _close_files(self) -> None:
        with while_spilling(self.spill.folder):
            for stream, file in self._open.values():
                stream.close()
                file.close()
        self._open = {}

    def _flush(self) -> None:
        if not self._parts:
            return
        part = np.concatenate(self._parts)
        order = np.argsort(part, kind="stable") if self.n_parts > 1 else None
        columns: list[pa.Array] = []
        names: list[str] = []
        for c in range(len(self._columns)):
            column = np.concatenate(self._columns[c])
            self._columns[c] = []
            columns.append(pa.array(column if order is None else column.take(order)))
            names.append(f"{_CODE}{c}")
        if self._payloads:
            table = pa.Table.from_batches(self._payloads).combine_chunks()
            if order is not None:
                table = table.take(pa.array(order))
            columns += [column.combine_chunks() for column in table.columns]
            names += [f"{_CELL}{name}" for name in table.column_names]
        batch = pa.RecordBatch.from_arrays(columns, names)
        counts = np.bincount(part, minlength=self.n_parts)
        self._parts, self._payloads, self._held = [], [], 0
        start = 0
        with while_spilling(self.spill.folder):
            for p in np.flatnonzero(counts):
                self._write(int(p), batch.slice(start, int(counts[p])))
                start += int(counts[p])

    def _write(self, p: int, batch: pa.RecordBatch) -> None:
        if p not in self._open:
            if len(self._open) >= MOST_FILES:
                self._close_files()
            path = self.spill.path("rows")
            file = pa.OSFile(str(path), "wb")
            self._open[p] = pa.ipc.new_stream(file, batch.schema), file
            self._written[p].append((path, 0))
        self._open[p][0].write_batch(batch)
        path, n_rows = self._written[p][-1]
        self._written[p][-1] = path, n_rows + batch.num_rows


class KeptRows:
    """Rows that are stored during the first pass over them, so that later passes need not encode them again.

    Without ``payload`` only their codes are stored, and only these are given.
    """

    def __init__(self, rows: Rows, parts: PartWriter, *, payload: bool = True) -> None:
        self.rows, self.has_payload = rows, payload
        self._parts = parts
        self._stored: StoredRows | None = None

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    def blocks(self, *, payload: bool = True) -> Iterator[Block]:
        """One pass over the rows."""
        if self._stored is not None:
            yield from self._stored.blocks(payload=payload and self.has_payload)
            return
        for block in self.rows.blocks(payload=self.has_payload):
            self._parts.add(block, np.zeros(len(block.rows), dtype=np.uint16))
            yield block
        (self._stored,) = self._parts.close()

    def delete(self) -> None:
        """Remove the file: nobody will read these rows again."""
        if self._stored is not None:
            self._stored.delete()
