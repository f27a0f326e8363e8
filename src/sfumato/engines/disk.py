"""Rows that live in files of a spill folder."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.encoding.batches import Rows
from sfumato.engines.local import Gathering, LocalEngine
from sfumato.engines.protocol import NOTHING, A, Asked, Divided, Loaded, Places, Room
from sfumato.engines.rows import KeptRows, PartWriter, RowLayout, StoredRows, load_rows
from sfumato.progress import Progress, no_progress
from sfumato.table.cells import give_back_memory
from sfumato.table.spill import Spill


class DiskEngine(LocalEngine):
    """Rows in files; ``writer_bytes`` is the memory for rows on their way there."""

    def __init__(
        self,
        spill: Spill,
        layout: RowLayout,
        room: Room,
        *,
        writer_bytes: int,
        progress: Progress = no_progress,
    ) -> None:
        super().__init__(room, spill=spill, progress=progress)
        self.folder, self.layout, self.writer_bytes = spill, layout, writer_bytes

    def divide(self, rows: Rows, places: Places, *, also: Asked[A] = NOTHING, stage: str = "") -> Divided[A]:
        """The rows of each part in files, in the order that they had."""
        gathering, files = Gathering(also, self.room.count_bytes, self.spill), self.open_parts(places.n_parts)
        for block in self.read(rows, stage):
            gathering.add(block)
            files.add(block, places.of(block.rows))
        return Divided([*files.close()], gathering.answers())

    def open_parts(self, n_parts: int) -> PartWriter:
        """Files for so many parts, to be written."""
        return PartWriter(self.folder, n_parts, self.layout, memory=self.writer_bytes)

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
