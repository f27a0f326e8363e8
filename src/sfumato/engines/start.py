"""Starts the engine that was chosen, for rows that are about to be read."""

from __future__ import annotations

from sfumato.engines import protocol
from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.rows import MOST_FILES, RowLayout
from sfumato.progress import Progress, no_progress

HERE = Resources()
"""In memory, by this process."""

NO_COLUMNS = RowLayout(())


def start_engine(
    chosen: Resources = HERE,
    *,
    layout: RowLayout = NO_COLUMNS,
    count_bytes: int = 0,
    max_rows: int = 0,
    progress: Progress = no_progress,
) -> protocol.Engine:
    """The chosen engine.

    In memory there is room for everything. On disk, rows are stored in a ``layout``; ``count_bytes`` are for what is
    gathered in a pass, and half as many for rows on their way to files; ``max_rows`` are loaded at once.
    """
    if chosen.spill is None:
        return MemoryEngine(progress=progress)
    room = protocol.Room(count_bytes, max_rows, MOST_FILES)
    return DiskEngine(chosen.spill, layout, room, writer_bytes=count_bytes // 2, progress=progress)
