"""Rows in memory that are read in blocks, as rows on disk are, with every pass counted."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.encoding.batches import Block
from sfumato.encoding.domain import Domain
from sfumato.encoding.encoders import encode_axis
from sfumato.engines.rows import RowLayout
from sfumato.methods.mondrian.kernels.problem import TARGET, Targets, table
from sfumato.methods.specialization.tds import ClassLabels
from sfumato.policy.document import Policy
from sfumato.table.opening import open_table


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
        source = open_table(given)
        encoded = [encode_axis(source, attribute) for attribute in policy.schema.quasi_identifiers]
        domains: tuple[Domain, ...] = tuple(domain for domain, _ in encoded)
        labels = ClassLabels.of(source, policy)
        codes = np.stack([codes for _, codes in encoded], axis=1)
        super().__init__(
            np.concatenate([codes, labels.codes], axis=1),
            pa.table({"row": np.arange(source.n_rows)}),
            size=size,
        )
        of_target = zip(labels.n_classes, labels.weight.tolist(), strict=True)
        label = table(TARGET, [(len(domains) + t, *facts) for t, facts in enumerate(of_target)])
        self.problem = SimpleNamespace(
            domains=domains, targets=Targets(label, table(TARGET, []), 0, 1.0, 0.0)
        )
