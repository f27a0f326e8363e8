"""Rows in memory that are read in blocks, as rows on disk are, with every pass counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.encoding.batches import Block
from sfumato.engines import raw, scan
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.rows import RowLayout
from sfumato.engines.start import scan_table
from sfumato.policy.document import Policy
from sfumato.table.opening import open_table


def read_by(patch: pytest.MonkeyPatch, n_rows: int) -> None:
    """Tables are read and encoded by blocks of so many rows."""
    for module in (raw, scan):
        patch.setattr(module, "BLOCK_ROWS", n_rows)


class BlockRows:
    """Codes in C order, then extra columns; ``payload`` has as many rows."""

    def __init__(self, rows: Any, payload: pa.Table | None = None, *, size: int = 65_536) -> None:
        self.rows, self.payload, self.size = np.ascontiguousarray(rows, dtype=np.uint32), payload, size
        self.passes = 0

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    @property
    def layout(self) -> RowLayout:
        return RowLayout.of(self.rows.max(axis=0, initial=0).tolist())

    def blocks(self, *, payload: bool = True) -> Iterator[Block]:
        self.passes += 1
        for first in range(0, self.n_rows, self.size):
            part = None
            if payload and self.payload is not None:
                part = self.payload.slice(first, self.size).combine_chunks().to_batches()[0]
            yield Block(self.rows[first : first + self.size], part)


class EncodedRows(BlockRows):
    """A table as an intake would hand it to top-down specialization; its payload numbers the rows."""

    def __init__(self, given: Any, policy: Policy, *, size: int = 65_536) -> None:
        table = scan_table(open_table(given), policy)
        super().__init__(
            MemoryEngine().load(table).rows, pa.table({"row": np.arange(table.n_rows)}), size=size
        )
        self.domains, self.columns = table.domains, table.columns
