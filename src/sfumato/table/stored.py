"""Published rows in a file, for releases larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.table.csv_file import as_read_from_csv, open_own_csv
from sfumato.table.formulas import read_escaped
from sfumato.table.opening import open_table
from sfumato.table.source import Source

Ints = NDArray[np.int64]

ROWS_AT_ONCE = 1 << 17
MOST_LINES = 1 << 21
"""Distinct rows of batches that may wait until equal ones become one."""

N_ROWS, FIRST = "\0rows", "\0first"


class FiledRows:
    r"""The rows of a release in a file, csv or parquet.

    ``path`` is where the file lies now: a release that is written may take it along. ``sha256`` is that of the
    file, once somebody has computed it. ``is_escaped`` says that cells which are like formulas are marked in it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "release.csv")
    >>> _ = path.write_text("zip,job\n5371*,\n5371*,nurse\n")
    >>> rows = FiledRows(path, "csv")
    >>> rows.n_rows, rows.column_names, rows.load().column("job").to_pylist()
    (2, ['zip', 'job'], [None, 'nurse'])
    """

    def __init__(
        self, path: Path, format_: str, *, n_rows: int | None = None, is_escaped: bool = False
    ) -> None:
        self.path, self.format, self.is_escaped = Path(path), format_, is_escaped
        self.sha256 = ""
        self._n_rows = n_rows

    def __repr__(self) -> str:
        return f"<FiledRows in {self.path}>"

    def source(self) -> Source:
        """The file, to be read batch by batch."""
        return self._open(lazy=True)

    def _open(self, *, lazy: bool = False) -> Source:
        if self.format == "csv":
            source = open_own_csv(self.path, lazy=lazy, may_be_empty=True)
        else:
            source = open_table(self.path, may_be_empty=True)
        return read_escaped(source) if self.is_escaped else source

    @property
    def column_names(self) -> list[str]:
        return list(self.source().names)

    @property
    def n_rows(self) -> int:
        if self._n_rows is None:
            source = self.source()
            known = source.n_rows
            n_rows = (batch.num_rows for batch in source.batches(source.names[:1]))
            self._n_rows = sum(n_rows) if known < 0 else known
        return self._n_rows

    def tables(self, names: Sequence[str] | None = None, *, rows: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
        """All rows in their order, some at a time; as in a release that was read, empty cells of CSV are missing.

        There is one table at least, without rows if the file has none.
        """
        source = self.source()
        if source.n_rows == 0:
            yield self.load(names)
            return
        wanted = list(source.names if names is None else names)
        for batch in source.batches(wanted, rows=rows or ROWS_AT_ONCE):
            yield self._as_read(pa.Table.from_arrays(batch.columns, names=wanted))

    def load(self, names: Sequence[str] | None = None) -> pa.Table:
        """All rows in memory."""
        source = self._open()
        wanted = list(source.names if names is None else names)
        return self._as_read(pa.Table.from_arrays([source.column(name) for name in wanted], names=wanted))

    def _as_read(self, table: pa.Table) -> pa.Table:
        return as_read_from_csv(table) if self.format == "csv" else table

    def distinct(self, names: Sequence[str]) -> tuple[pa.Table, Ints]:
        """The distinct rows of some columns, and how many rows each stands for; of no columns there is one."""
        if not names:
            return pa.table({N_ROWS: [0]}), np.array([self.n_rows])
        held: list[pa.Table] = []
        most = MOST_LINES
        for table in self.tables(names):
            held.append(
                _count_lines(table.append_column(N_ROWS, pa.array(np.ones(len(table), dtype=np.int64))))
            )
            if sum(lines.num_rows for lines in held) > most:
                held = [_count_lines(pa.concat_tables(held))]
                most = max(MOST_LINES, 2 * held[0].num_rows)
        found = _count_lines(pa.concat_tables(held))
        return found.drop_columns([N_ROWS]), found.column(N_ROWS).to_numpy()


def distinct_lines(rows: pa.Table | FiledRows, names: Sequence[str]) -> tuple[pa.Table, Ints]:
    """The distinct rows of some columns in the order of their first ones, and how many rows each stands for."""
    if isinstance(rows, FiledRows):
        return rows.distinct(names)
    ones = pa.array(np.ones(rows.num_rows, dtype=np.int64))
    found = _count_lines(rows.select(list(names)).append_column(N_ROWS, ones))
    return found.drop_columns([N_ROWS]), found.column(N_ROWS).to_numpy()


def _count_lines(lines: pa.Table) -> pa.Table:
    """One line for all that are alike, with plain columns: dictionaries differ from batch to batch.

    They stand in the order of their first ones. Arrow's own order of groups is nearly that, but not always.
    """
    names = [name for name in lines.column_names if name != N_ROWS]
    with suppress(pa.ArrowNotImplementedError):  # keys that Arrow cannot compare
        placed = lines.append_column(FIRST, pa.array(np.arange(lines.num_rows)))
        found = placed.group_by(names, use_threads=False).aggregate([(N_ROWS, "sum"), (FIRST, "min")])
        found = found.rename_columns([*names, N_ROWS, FIRST])
        lines = found.take(pc.array_sort_indices(found.column(FIRST))).drop_columns([FIRST])
    return pa.Table.from_arrays([_plain(column) for column in lines.columns], names=lines.column_names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_dictionary = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_dictionary else column
