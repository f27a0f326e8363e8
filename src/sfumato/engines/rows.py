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

PART_BYTES = 1 << 20
"""Rows of a part that wait to be written, on average: enough for one go, and still in the processor's cache."""


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
            yield from to_blocks(batch, payload=payload)

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


def _to_batch(rows: Codes, payload: pa.RecordBatch | None, layout: RowLayout) -> pa.RecordBatch:
    columns = [pa.array(rows[:, c].astype(kind)) for c, kind in enumerate(layout.types)]
    names = [f"{_CODE}{c}" for c in range(len(columns))]
    if payload is not None:
        columns += payload.columns
        names += [f"{_CELL}{name}" for name in payload.schema.names]
    return pa.RecordBatch.from_arrays(columns, names)


def to_blocks(batch: pa.RecordBatch, *, payload: bool = True) -> Iterator[Block]:
    """The rows of a stored batch."""
    for start in range(0, batch.num_rows, BLOCK_ROWS):
        part = batch.slice(start, BLOCK_ROWS)
        n_codes = _count_codes(part)
        rows = np.empty((part.num_rows, n_codes), dtype=np.uint32)
        _fill_codes(rows, part)
        yield Block(rows, _take_payload(part, n_codes) if payload else None)


def _fill_codes(rows: Codes, batch: pa.RecordBatch) -> None:
    for c in range(_count_codes(batch)):
        rows[:, c] = batch.column(c).to_numpy(zero_copy_only=False)


def _take_payload(batch: pa.RecordBatch, n_codes: int) -> pa.RecordBatch | None:
    columns = batch.columns[n_codes:]
    if not columns:
        return None
    return pa.RecordBatch.from_arrays(columns, [name[len(_CELL) :] for name in batch.schema.names[n_codes:]])


def load_rows(rows: Rows, layout: RowLayout, *, payload: bool = True) -> tuple[Codes, pa.Table | None]:
    """All rows in memory: a matrix of their codes, row after row, and their payload."""
    matrix = np.empty((rows.n_rows, layout.n_codes), dtype=np.uint32)
    at, payloads = 0, []
    for block in rows.blocks(payload=payload):
        matrix[at : at + len(block.rows)] = block.rows[:, : layout.n_codes]
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
        most = max(memory // 3, 1 << 16)  # rows that wait, a part in one piece, and what the writers hold
        self.capacity = min(most, n_parts * PART_BYTES)
        self.n_parts = n_parts
        self._written: list[list[tuple[Path, int]]] = [[] for _ in range(n_parts)]
        """The files of each part: few parts have one, many are closed and opened again as a further one."""
        self._open: dict[int, tuple[Any, Any]] = {}
        self._waiting: list[tuple[pa.RecordBatch, list[int]]] = []
        """Blocks of rows as they will be stored, by part, and where the rows of each part end."""
        self._held = 0

    def add(self, block: Block, part: NDArray[Any]) -> None:
        """Put each row to its part."""
        rows, payload = block.rows, block.payload
        if self.n_parts > 1:
            order = np.argsort(part.astype(np.min_scalar_type(self.n_parts)), kind="stable")  # by counting
            rows = rows.take(order, axis=0)
            payload = None if payload is None else payload.take(pa.array(order))
        ends = np.cumsum(np.bincount(part, minlength=self.n_parts)).tolist()
        self._waiting.append((_to_batch(rows, payload, self.layout), ends))
        self._held += len(part) * self.layout.row_bytes + count_own_bytes(payload)
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
        waiting, self._waiting, self._held = self._waiting, [], 0
        starts = [0] * len(waiting)
        with while_spilling(self.spill.folder):
            for p in range(self.n_parts):
                ends = [each[p] for _, each in waiting]
                pieces = [
                    batch.slice(start, end - start)
                    for (batch, _), start, end in zip(waiting, starts, ends, strict=True)
                    if end > start
                ]
                if pieces:
                    self._write(p, pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces))
                starts = ends

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
