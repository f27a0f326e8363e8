"""Rows that live in memory: one matrix, and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.encoding.batches import Rows
from sfumato.engines.engine import MEMORY
from sfumato.engines.local import Gathering, LocalEngine
from sfumato.engines.protocol import NOTHING, A, Asked, Divided, EncodedTable, Flags, Loaded, Places, Room
from sfumato.engines.sinks import MemorySink
from sfumato.progress import Progress, no_progress
from sfumato.recoding.tree_file import HeldTree
from sfumato.table.cells import give_back_memory
from sfumato.table.spill import Counters

FIGURES = (
    "repartitions", "levels", "pruned", "stopped-by-tree", "stopped-by-statistics", "stopped-by-height", "fallbacks",
    "nonminimal",
)  # fmt: skip
"""What a run in memory tells of itself, where it is not 0: that it worked on samples, or in parts."""


class MemoryEngine(LocalEngine):
    """Rows in matrices. By default there is room for everything; a policy or a test may ask for small parts."""

    def __init__(
        self, room: Room | None = None, *, threads: int | None = None, progress: Progress = no_progress
    ) -> None:
        super().__init__(room or Room(), counters=Counters(), threads=threads, progress=progress)

    def open(self, table: EncodedTable) -> Rows:
        """All rows at once."""
        return self.load(table)

    def divide(self, rows: Rows, places: Places, *, also: Asked[A] = NOTHING, stage: str = "") -> Divided[A]:
        """The rows of each part, in the order that they had."""
        gathering, of_block = Gathering(also, self.room.count_bytes, None), []
        for block in self.read(rows, stage, payload=False):
            of_block.append(places.of(block.rows))
            gathering.add(block)
        loaded = self.load(rows)
        if places.n_parts == 1:
            return Divided([loaded], gathering.answers())
        part = np.concatenate([np.zeros(0, dtype=np.int64), *of_block])
        order = np.argsort(part, kind="stable")
        ends = np.cumsum(np.bincount(part, minlength=places.n_parts))
        parts: list[Rows] = [
            Loaded(loaded.rows[own], numbers=loaded.number(own)) for own in np.split(order, ends[:-1])
        ]
        return Divided(parts, gathering.answers())

    def load(self, rows: Rows, *, payload: bool = True) -> Loaded:  # noqa: ARG002 - the table itself has it
        if isinstance(rows, Loaded):
            return rows
        blocks = [block.rows for block in rows.blocks(payload=False)]
        give_back_memory()
        if len(blocks) == 1:
            return Loaded(blocks[0])
        return Loaded(np.concatenate(blocks) if blocks else np.empty((0, 0), dtype=np.uint32))

    def keep(self, rows: Rows, *, payload: bool = True) -> Rows:
        return self.load(rows, payload=payload)

    def join(self, parts: Sequence[Rows]) -> Rows:
        if len(parts) == 1:
            return parts[0]
        loaded = [self.load(part) for part in parts]
        numbers = [part.number(np.arange(part.n_rows)) for part in loaded]
        return Loaded(np.concatenate([part.rows for part in loaded]), numbers=np.concatenate(numbers))

    def discard(self, rows: Rows) -> None:
        """Memory goes with the last who knows them."""

    def sink(self, file_format: str, *, escapes: bool) -> MemorySink:  # noqa: ARG002 - there is no file yet
        return MemorySink()

    def grow_tree(self, is_tree: Flags, *, is_kept: bool) -> HeldTree:  # noqa: ARG002 - it costs nothing to keep it
        return HeldTree()

    def describe(self, method: str) -> dict[str, Any]:
        found = self.counters.as_figures()
        told = {name: found[name] for name in FIGURES if found[name]}
        return {"engine": MEMORY, "method": method, **told} if told else {}
