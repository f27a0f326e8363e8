"""Published rows on their way out: they stay in memory, or go to a file where they need not fit there."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import pyarrow as pa

from sfumato.table import formulas
from sfumato.table.spill import Spill
from sfumato.table.stored import FiledRows
from sfumato.table.write import TableWriter


class MemorySink:
    """Published rows that stay in memory."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""

    def append(self, rows: pa.Table) -> None:
        self._parts.append(rows)

    def rows(self) -> pa.Table:
        """All of them as one table."""
        return pa.concat_tables(self._parts)


class FileSink:
    """Published rows on their way to a file of the spill folder."""

    def __init__(self, spill: Spill, file_format: str, *, row_group: int, escapes: bool) -> None:
        self.path, self.format = spill.path("release").with_suffix(f".{file_format}"), file_format
        self.escapes = escapes
        self._writer = TableWriter(self.path, row_group=row_group)

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)

    def append(self, rows: pa.Table) -> None:
        self._writer.append(formulas.escape(rows) if self.escapes else rows)

    def rows(self) -> FiledRows:
        """The file."""
        return FiledRows(self.path, self.format, n_rows=self._writer.n_rows, is_escaped=self.escapes)
