"""The table as it is stored, in passes over its batches.

A pass shows some columns to a state, which adds batch after batch. A table in memory is one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from sfumato.encoding.batches import BLOCK_ROWS, Batch, BatchState, FileBatch, WholeTable
from sfumato.errors import TableError
from sfumato.policy.schema import Schema
from sfumato.progress import Progress, no_progress
from sfumato.table.source import UNKNOWN, Source, table_has_changed
from sfumato.table.spill import Counters


class RawTable(Protocol):
    """A table that is not encoded, wherever it lies."""

    @property
    def source(self) -> Source: ...

    @property
    def n_rows(self) -> int:
        """How many rows there are; UNKNOWN before the first pass, if nobody knows."""

    def show(self, names: Iterable[str], state: BatchState, *, stage: str = "reading again") -> None:
        """One pass over some columns: add their batches to a state, or to several that are merged into it."""

    def batches(self, names: Iterable[str], rows: int) -> Iterator[Batch]:
        """Some columns in batches of at most so many rows."""


class TableAtHand:
    """A table in memory: one batch, whose columns are read when they are asked for and kept until they are encoded."""

    def __init__(self, source: Source, schema: Schema) -> None:
        self.source, self.n_rows = source, source.n_rows
        self._whole = WholeTable(source, schema)

    def show(self, names: Iterable[str], state: BatchState, *, stage: str = "") -> None:  # noqa: ARG002 - it is quick
        if self.n_rows == 0:
            raise _has_no_rows(self.source)
        self._whole.show(names, state)

    def batches(self, names: Iterable[str], rows: int) -> Iterator[Batch]:  # noqa: ARG002 - all at once
        yield self._whole


class TableInBatches:
    """A table that is read batch by batch, each in ``memory`` bytes; ``first_row`` rows of a larger one come before."""

    def __init__(
        self,
        source: Source,
        schema: Schema,
        *,
        memory: int,
        counters: Counters,
        progress: Progress = no_progress,
        first_row: int = 0,
    ) -> None:
        self.source, self.schema, self.n_rows, self.first_row = source, schema, source.n_rows, first_row
        self.memory, self.counters, self.progress = memory, counters, progress

    def show(self, names: Iterable[str], state: BatchState, *, stage: str = "reading again") -> None:
        n_rows = 0
        for batch in self.batches(names, BLOCK_ROWS):
            state.add(batch)
            n_rows += batch.n_rows
            self.progress(stage, n_rows, max(self.n_rows, n_rows))
        self.check(n_rows)

    def batches(self, names: Iterable[str], rows: int) -> Iterator[Batch]:
        first_row = self.first_row
        for batch in self.source.batches(
            list(dict.fromkeys(names)), rows=rows, memory=self.memory, count=self._count
        ):
            yield FileBatch(batch, self.schema, first_row=first_row)
            first_row += batch.num_rows

    def check(self, n_rows: int) -> None:
        """A pass has seen so many rows: raise if there are none, or not as many as before."""
        if self.n_rows == UNKNOWN:
            self.n_rows = n_rows
        if n_rows != self.n_rows:
            raise table_has_changed(self.source.where)
        if n_rows == 0:
            raise _has_no_rows(self.source)

    def _count(self, n_bytes: int) -> None:
        self.counters.input_bytes += n_bytes


def _has_no_rows(source: Source) -> TableError:
    return TableError(f"{source.where} has no rows; a table needs at least one.")
