"""Rows that live in files of a spill folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.encoding.batches import Rows
from sfumato.engines.engine import DISK
from sfumato.engines.local import Gathering, LocalEngine
from sfumato.engines.protocol import NOTHING, A, Asked, Divided, EncodedTable, Flags, Loaded, Places, Room
from sfumato.engines.rows import KeptRows, PartWriter, RowLayout, StoredRows, load_rows
from sfumato.engines.sinks import FileSink
from sfumato.progress import Progress, no_progress
from sfumato.recoding.tree_file import NoTree, TreeWriter
from sfumato.table.cells import give_back_memory
from sfumato.table.spill import Spill
from sfumato.table.write import ROW_GROUP

LEAST_ROW_GROUP = 1 << 14
"""Rows of a Parquet row group at least, however little memory there is."""


class DiskEngine(LocalEngine):
    """Rows in files; ``writer_bytes`` is the memory for rows on their way there, ``tree_bytes`` for a recoding."""

    spill: Spill

    def __init__(
        self,
        spill: Spill,
        layout: RowLayout,
        room: Room,
        *,
        writer_bytes: int,
        tree_bytes: int | None = None,
        threads: int | None = None,
        progress: Progress = no_progress,
    ) -> None:
        super().__init__(room, counters=spill.counters, spill=spill, threads=threads, progress=progress)
        self.layout, self.writer_bytes, self.tree_bytes = layout, writer_bytes, tree_bytes

    def open(self, table: EncodedTable) -> Rows:
        """The rows are encoded whenever they are read."""
        return table

    def divide(self, rows: Rows, places: Places, *, also: Asked[A] = NOTHING, stage: str = "") -> Divided[A]:
        """The rows of each part in files, in the order that they had."""
        gathering, files = Gathering(also, self.room.count_bytes, self.spill), self.open_parts(places.n_parts)
        for block in self.read(rows, stage):
            gathering.add(block)
            files.add(block, places.of(block.rows))
        return Divided([*files.close()], gathering.answers())

    def open_parts(self, n_parts: int) -> PartWriter:
        """Files for so many parts, to be written."""
        return PartWriter(self.spill, n_parts, self.layout, memory=self.writer_bytes)

    def load(self, rows: Rows, *, payload: bool = True) -> Loaded:
        matrix, cells = load_rows(rows, self.layout, payload=payload)
        return Loaded(matrix, cells)

    def keep(self, rows: Rows, *, payload: bool = True) -> Rows:
        return KeptRows(rows, self.open_parts(1), payload=payload)

    def join(self, parts: Sequence[Rows]) -> Rows:
        stored = [part for part in parts if isinstance(part, StoredRows)]
        assert len(stored) == len(parts)  # they were divided
        return StoredRows.join(stored)

    def discard(self, rows: Rows) -> None:
        """Remove the files; rows that are not in files stay where they are."""
        if isinstance(rows, StoredRows | KeptRows):
            rows.delete()
        give_back_memory()

    def sink(self, file_format: str, *, escapes: bool) -> FileSink:
        row_group = min(ROW_GROUP, max(self.room.rows, LEAST_ROW_GROUP))  # the writer holds one
        return FileSink(self.spill, file_format, row_group=row_group, escapes=escapes)

    def grow_tree(self, is_tree: Flags, *, is_kept: bool) -> TreeWriter | NoTree:
        if not is_kept:
            return NoTree()
        return TreeWriter(self.spill.make_folder("tree"), is_tree, memory=self.tree_bytes)

    def describe(self, method: str) -> dict[str, Any]:
        told = self.counters.as_figures()
        return {"engine": DISK, "method": method, "rows-in-memory": self.room.rows, **told}
