"""How the memory of a run on disk is divided.

The phases of a run follow each other, so each may take most of the memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.engines.rows import MOST_FILES

NODE_BYTES = 64
"""Bytes of one tree node."""

LABEL_BYTES = 400
"""Bytes of one published label with all that leads to it: tree node, box, text and copies."""

BLOCK_BYTES = 1 << 16
"""The least that is worth writing to a file at once."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The share of each phase.

    max_rows         rows that are grown in memory at once
    count_bytes      frequency sets that are gathered in one pass
    writer_bytes     rows on their way into files
    max_files        files written at once, so that each still gets blocks worth writing
    """

    max_rows: int
    count_bytes: int
    writer_bytes: int
    max_files: int

    @classmethod
    def of(cls, memory: int, *, row_bytes: int, max_rows: int | None = None) -> MemoryPlan:
        """Divide ``memory`` bytes; the policy may fix ``max_rows``."""
        return cls(
            max_rows=max_rows or max(memory // row_bytes, 100),
            count_bytes=memory // 2,
            writer_bytes=memory // 2,
            max_files=int(np.clip(memory // 2 // (4 * BLOCK_BYTES), 2, MOST_FILES)),
        )


def estimate_row_bytes(
    *, n_axes: int, n_extra: int, n_published: int, payload_bytes: int = 0, min_group: int = 1
) -> int:
    """Memory for one row while its group is found and published.

    n_extra         columns of targets and sensitive values
    payload_bytes   bytes of a row that are published as they are
    min_group       rows of the smallest group, which share the labels of their box
    """
    codes = 4 * (2 * n_axes + n_extra + 1)
    orders = 40
    published = 20 * n_published + 3 * payload_bytes  # the columns, and a copy on their way out
    return codes + orders + published + LABEL_BYTES * n_axes // min_group
