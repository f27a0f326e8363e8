"""Starts the engine that was chosen, for rows that are about to be read."""

from __future__ import annotations

from sfumato.engines import protocol
from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.rows import RowLayout
from sfumato.progress import Progress, no_progress

HERE = Resources()
"""In memory, by this process."""

NO_COLUMNS = RowLayout(())
EVERYTHING = protocol.Room()


def start_engine(
    chosen: Resources = HERE,
    *,
    layout: RowLayout = NO_COLUMNS,
    room: protocol.Room = EVERYTHING,
    writer_bytes: int = 0,
    progress: Progress = no_progress,
) -> protocol.Engine:
    """The chosen engine.

    In memory there is room for everything. On disk, rows are stored in a ``layout``, and ``writer_bytes`` are for those
    on their way to files.
    """
    if chosen.spill is None:
        return MemoryEngine(progress=progress)
    return DiskEngine(chosen.spill, layout, room, writer_bytes=writer_bytes, progress=progress)
