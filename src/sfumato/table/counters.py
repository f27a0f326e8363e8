"""What a run outside memory did: passes, bytes, and how often something special happened."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class Counters:
    """Counts of one run. ``as_figures`` is what the certificate says of them: never how large the table was.

    >>> Counters(encoded_bytes=100, input_passes=2, bytes_read=100, bytes_written=100).as_figures()["reads"]
    3.0
    """

    input_passes: int = 0
    """How often the table itself was read, or at least its wide part."""
    input_bytes: int = 0
    encoded_bytes: int = 0
    """All rows once, encoded as they are spilled."""
    passes: int = 0
    """How often all or some of the spilled rows were read."""
    bytes_read: int = 0
    bytes_written: int = 0
    spills: int = 0
    """Files that were written."""
    repartitions: int = 0
    levels: int = 0
    """The most repartitions on the way from the root to a group."""
    frequency_groups: int = 0
    pieces: int = 0
    """Parts of the tree that were grown in memory."""
    pruned: int = 0
    stopped_by_tree: int = 0
    stopped_by_statistics: int = 0
    stopped_by_buffers: int = 0
    stopped_by_height: int = 0
    fallbacks: int = 0
    nonminimal: int = 0

    def as_figures(self) -> dict[str, int | float]:
        """By name, with reads and writes in units of all the encoded rows, as the paper counts [LDR08, 5.3]."""
        names = [field.name for field in fields(self) if field.name != "input_bytes"]
        counted = {name.replace("_", "-"): getattr(self, name) for name in names}
        once = max(self.encoded_bytes, 1)
        return {
            **counted,
            "reads": round(self.input_passes + self.bytes_read / once, 3),
            "writes": round(self.bytes_written / once, 3),
        }
