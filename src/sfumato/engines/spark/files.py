"""Rows in files that every machine can read, and rows in slices for tasks."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.encoding.batches import Block, Rows
from sfumato.encoding.declared import DeclaredRows
from sfumato.engines.rows import PartWriter, RowLayout, to_blocks
from sfumato.engines.scan import Intake
from sfumato.table.source import Source
from sfumato.table.spill import Spill


@dataclass(frozen=True, slots=True)
class FilePart:
    """The rows of a part that are in one file: some of its batches."""

    path: Path
    batches: tuple[int, ...]
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    """The rows of a part, in files that every machine can read."""

    files: tuple[FilePart, ...]

    @property
    def n_rows(self) -> int:
        return sum(file.n_rows for file in self.files)

    def blocks(self, *, payload: bool = True) -> Iterator[Block]:
        """One pass over the rows."""
        for part in self.files:
            with pa.OSFile(str(part.path)) as file, pa.ipc.open_file(file) as stored:
                for at in part.batches:
                    yield from to_blocks(stored.get_batch(at), payload=payload)

    def slices(self, most: int) -> list[FileRows]:
        """At most so many with some of the files each, of about the same size."""
        ends = np.cumsum([file.n_rows for file in self.files])
        place = ((ends - 0.5) * most / max(self.n_rows, 1)).astype(np.int64)
        return [
            FileRows(tuple(self.files[at] for at in np.flatnonzero(place == own).tolist()))
            for own in np.unique(place).tolist()
        ]


class SliceWriter(PartWriter):
    """Writes rows to one file, part after part each time that the buffer is full, and knows where each part is."""

    def __init__(self, spill: Spill, n_parts: int, layout: RowLayout, *, memory: int) -> None:
        super().__init__(spill, n_parts, layout, memory=memory)
        self.path = spill.path("rows")
        self._batches: list[list[int]] = [[] for _ in range(n_parts)]
        self._n_rows = [0] * n_parts
        self._n_written = 0
        self._file: Any = None

    def close_parts(self) -> list[FilePart]:
        """Where the rows of each part are."""
        self._flush()
        if self._file is not None:
            stream, file = self._file
            stream.close()
            file.close()
        parts = zip(self._batches, self._n_rows, strict=True)
        return [FilePart(self.path, tuple(batches), n_rows) for batches, n_rows in parts]

    def _write(self, p: int, batch: pa.RecordBatch) -> None:
        if self._file is None:
            file = pa.OSFile(str(self.path), "wb")
            self._file = pa.ipc.new_file(file, batch.schema), file
        self._file[0].write_batch(batch)
        self._batches[p].append(self._n_written)
        self._n_rows[p] += batch.num_rows
        self._n_written += 1


def slice_source(source: Source, most: int) -> list[tuple[Source, int]]:
    """The table in at most so many slices, and how many rows come before each."""
    found = source.slices(most)
    before = np.cumsum([0, *(each.n_rows for each in found)]).tolist()
    return list(zip(found, before[:-1], strict=True))


def slice_rows(rows: Rows, most: int) -> list[Rows]:
    """Rows in at most so many slices; each can be pickled."""
    if isinstance(rows, Intake):
        return [rows.on_slice(source, first) for source, first in slice_source(rows.source, most)]
    if isinstance(rows, DeclaredRows):
        return [_declared_slice(rows, source, first) for source, first in slice_source(rows.source, most)]
    return [*rows.slices(most)] if isinstance(rows, FileRows) else [rows]


def _declared_slice(rows: DeclaredRows, source: Source, first: int) -> DeclaredRows:
    own = copy(rows)
    own.source = source
    own.kept = None if rows.kept is None else rows.kept[first : first + source.n_rows]
    return own
