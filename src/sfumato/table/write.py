"""Tables on their way out: to a file, or back as the kind of frame that came in."""

from __future__ import annotations

import gzip
import importlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.errors import InternalError, TableError
from sfumato.table.cells import TEXT, decode, encode, is_one_of, reorder, value_type, which_occur
from sfumato.table.files import check_file_target, place_beside, sync_file, take_place, while_writing
from sfumato.table.source import Source

ROW_GROUP = 1 << 19
"""Rows of a Parquet row group: a writer holds one of them in memory."""


def compact(table: pa.Table) -> pa.Table:
    """The same cells without what rides along: metadata, and the dictionaries' history.

    A dictionary may hold raw values that no published row has, and values in the order of the input's
    rows, which would undo the shuffling of the release. Whatever leaves sfumato goes through here.

    >>> column = pa.DictionaryArray.from_arrays(pa.array([2, 1]), ["raw", "b", "a"])
    >>> compact(pa.table({"x": column})).column("x").chunk(0).dictionary.to_pylist()
    ['a', 'b']
    """
    columns = [
        _without_history(column) if is_one_of(column.type, "dictionary") else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def trim(table: pa.Table) -> pa.Table:
    """The same cells, each column in one chunk with a dictionary of the values that occur, in any order.

    For what stays inside: it is cheaper than ``compact``.
    """
    columns = [
        _without_history(column, is_sorted=False)
        if is_one_of(column.type, "dictionary")
        else column.combine_chunks()
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _without_history(column: pa.ChunkedArray, *, is_sorted: bool = True) -> pa.DictionaryArray:
    """The same cells, with a dictionary of the values that occur."""
    if any(chunk.dictionary.null_count for chunk in column.chunks) or not column.num_chunks:
        encoded = encode(column)
        return reorder(encoded, pc.sort_indices(encoded.dictionary).to_numpy())
    used = [_used_places(chunk) for chunk in column.chunks]
    if column.num_chunks == 1:
        (only,) = column.chunks
        if not is_sorted or _is_ascending(only.dictionary):
            if len(used[0]) < len(only.dictionary) or only.null_count:
                return reorder(only, used[0])
            # copies, as everywhere: what a slice was cut from lies beside it
            codes = only.indices.to_numpy().astype(np.int32)
            return pa.DictionaryArray.from_arrays(pa.array(codes), only.dictionary.take(pa.array(used[0])))
    values = [chunk.dictionary.take(pa.array(at)) for chunk, at in zip(column.chunks, used, strict=True)]
    known = pa.concat_arrays(values).unique()
    known = known.take(pc.sort_indices(known)) if is_sorted else known
    parts = []
    for chunk, at, own in zip(column.chunks, used, values, strict=True):
        place = np.zeros(len(chunk.dictionary), dtype=np.int32)
        place[at] = pc.index_in(own, value_set=known).to_numpy()
        parts.append(pa.array(place).take(chunk.indices))
    return pa.DictionaryArray.from_arrays(parts[0] if len(parts) == 1 else pa.concat_arrays(parts), known)


def _used_places(chunk: pa.DictionaryArray) -> NDArray[np.int64]:
    """Which values of the dictionary some cell has."""
    indices = chunk.indices.drop_null() if chunk.null_count else chunk.indices
    return np.flatnonzero(which_occur(indices.to_numpy(), len(chunk.dictionary)))


def _is_ascending(values: pa.Array) -> bool:
    """Whether values are texts, each of which comes after the one before it, and so is there once."""
    return is_one_of(values.type, *TEXT) and bool(pc.all(pc.less(values[:-1], values[1:])).as_py())


def hand_back(table: pa.Table, source: Source) -> Any:
    """The table as the kind of frame that came in; a ``pyarrow.Table`` for files and other Arrow data.

    As many rows as a pandas frame had are its own, and have the index that it had.
    """
    table = compact(table)
    if source.kind == "pandas":
        frame, index = table.to_pandas(), source.index
        return frame if index is None or len(index) != len(frame) else frame.set_axis(index, axis=0)
    if source.kind == "numpy":
        return _array_of(table)
    if source.kind in ("polars", "duckdb"):
        return importlib.import_module(source.kind).from_arrow(table)
    return table


def _array_of(table: pa.Table) -> NDArray[Any]:
    """The cells as an array: of numbers if all of them are, of objects otherwise."""
    columns = [decode(column.combine_chunks()).to_numpy(zero_copy_only=False) for column in table.columns]
    are_numbers = all(column.dtype.kind in "biuf" for column in columns)
    return np.column_stack(columns if are_numbers else [column.astype(object) for column in columns])


def write_table(table: pa.Table, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Write .csv, .csv.gz or .parquet; the file appears whole or not at all."""
    with TableWriter(path, overwrite=overwrite) as writer:
        writer.append(table)


class TableWriter:
    r"""A table written chunk by chunk as .csv, .csv.gz or .parquet; the file appears whole or not at all.

    Chunks have the same columns; each may have dictionaries of its own. The first chunk says what the types
    are, unless ``schema`` does. Parquet gathers small chunks: a row group has ``row_group`` rows (the last one
    fewer), and that much is held in memory. A file that is there is replaced, unless ``overwrite`` is False.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "t.csv")
    >>> with TableWriter(path) as writer:
    ...     for zip in ("02139", "53715"):
    ...         writer.append(pa.table({"zip": [zip]}))
    >>> path.read_text(), writer.n_rows
    ('zip\n02139\n53715\n', 2)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema | None = None,
        *,
        row_group: int = ROW_GROUP,
        overwrite: bool = True,
    ) -> None:
        self.path, self.n_rows, self.overwrite = Path(path), 0, overwrite
        self._row_group = row_group
        self._schema = None if schema is None else compact(schema.empty_table()).schema
        self._name = self.path.name.lower()
        if not self._name.endswith((".csv", ".csv.gz", ".parquet")):
            raise TableError(
                f"{path} has an unknown extension; a table is written as .csv, .csv.gz or .parquet."
            )
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0
        self._writer: pq.ParquetWriter | None = None
        self._has_begun = False

    def __enter__(self) -> Self:
        self._target = check_file_target(self.path, overwrite=self.overwrite)
        self._temporary = place_beside(self._target)
        try:
            with while_writing(self.path):
                self._file: Any = self._temporary.open("wb")
                self._stream: Any = self._file
                if self._name.endswith(".gz"):
                    self._stream = gzip.GzipFile("", "wb", compresslevel=6, fileobj=self._file, mtime=0)
        except BaseException:
            self._temporary.unlink(missing_ok=True)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                with while_writing(self.path):
                    self._finish()
        finally:
            self._close()
            self._temporary.unlink(missing_ok=True)

    def append(self, chunk: pa.Table | pa.RecordBatch) -> None:
        """Add rows at the end."""
        table = pa.Table.from_batches([chunk]) if isinstance(chunk, pa.RecordBatch) else chunk
        table = self._as_declared(table)
        self.n_rows += table.num_rows
        with while_writing(self.path):
            if not self._name.endswith(".parquet"):
                _write_csv(compact(table), self._stream)
                return
            self._waiting.append(table)
            self._n_waiting += table.num_rows
            while self._n_waiting >= self._row_group:
                self._write_row_group()

    def _as_declared(self, table: pa.Table) -> pa.Table:
        """The chunk with the columns and types of the file, which the first one begins."""
        if self._schema is None:
            self._schema = compact(table.slice(0, 0)).schema
        if not self._has_begun:
            self._begin(self._schema)
        if table.column_names != self._schema.names:
            raise InternalError("A chunk of a table has other columns than those before it.")
        columns = [_as_type(table.column(at), field.type) for at, field in enumerate(self._schema)]
        return pa.Table.from_arrays(columns, names=self._schema.names)

    def _begin(self, schema: pa.Schema) -> None:
        self._has_begun = True
        with while_writing(self.path):
            if self._name.endswith(".parquet"):
                with_dictionary = [field.name for field in schema if is_one_of(field.type, "dictionary")]
                self._writer = pq.ParquetWriter(
                    self._file, schema, use_dictionary=with_dictionary or False, write_statistics=False
                )
            else:
                self._stream.write(header_as_csv(schema.names))

    def _write_row_group(self) -> None:
        """The first rows that wait, with dictionaries of their own: Parquet has one per row group."""
        assert self._writer is not None
        waiting = pa.concat_tables(self._waiting)
        self._writer.write_table(compact(waiting.slice(0, self._row_group)), row_group_size=self._row_group)
        self._n_waiting = max(waiting.num_rows - self._row_group, 0)
        self._waiting = [waiting.slice(self._row_group)] if self._n_waiting else []

    def _finish(self) -> None:
        if self._schema is None:
            raise InternalError("A table without columns was to be written.")
        if self.n_rows == 0:
            self.append(self._schema.empty_table())
        if self._n_waiting:
            self._write_row_group()
        if self._writer is not None:
            self._writer.close()
        if self._stream is not self._file:
            self._stream.close()
        sync_file(self._file)
        self._file.close()
        take_place(self._temporary, self._target, self.path, overwrite=self.overwrite)

    def _close(self) -> None:
        """Whatever is still open, whether or not it can still be written."""
        for part in (self._writer, self._stream, self._file):
            if part is not None:
                with suppress(Exception):
                    part.close()
        if self._writer is not None:
            self._writer.is_open = False  # or it would try once more when it is collected


def _as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The same cells, stored as in the chunks before; dictionaries may differ."""
    if column.type == kind:
        return column
    try:
        if value_type(column.type) == value_type(kind) and column.type != value_type(kind) != kind:
            return column.cast(kind)  # dictionaries both, with indices of other types
        cells = pa.chunked_array([decode(chunk) for chunk in column.chunks], value_type(column.type))
        cells = cells.cast(value_type(kind))
        return cells.dictionary_encode() if is_one_of(kind, "dictionary") else cells
    except pa.ArrowException:
        raise InternalError("A chunk of a table has other types than those before it.") from None


def _write_csv(table: pa.Table, file: Any) -> None:
    """Rows as UTF-8, comma, quotes only where RFC 4180 needs them (Arrow's own writer quotes every text)."""
    empty = '""' if table.num_columns == 1 else ""  # a blank line would be no row at all
    table = pa.Table.from_arrays([_with_quoted_dictionary(c) for c in table.columns], table.column_names)
    for batch in filter(len, table.to_batches(max_chunksize=1 << 16)):  # no rows, and Arrow gives no bytes
        cells = [_csv_cells(column, empty) for column in batch.columns]
        cells[-1] = pc.binary_join_element_wise(cells[-1], "\n", "")
        file.write(pc.binary_join_element_wise(*cells, ",").buffers()[2])


def _with_quoted_dictionary(column: pa.ChunkedArray) -> Any:
    if not pa.types.is_dictionary(column.type):
        return column
    encoded = column.combine_chunks()
    return pa.DictionaryArray.from_arrays(encoded.indices, cells_as_csv(encoded.dictionary.cast(pa.string())))


def _csv_cells(column: pa.Array, empty: str) -> pa.Array:
    cells = decode(column).cast(pa.string())
    cells = pc.fill_null(cells_as_csv(cells) if is_one_of(column.type, *TEXT) else cells, empty)
    return pc.if_else(pc.equal(cells, ""), empty, cells) if empty else cells


def header_as_csv(names: Sequence[str]) -> bytes:
    """The first line of a CSV file with these columns."""
    return (",".join(cells_as_csv(pa.array(names, pa.string())).to_pylist()) + "\n").encode()


def cells_as_csv(cells: pa.Array) -> pa.Array:
    """Texts as they stand in CSV: in quotes only where RFC 4180 needs them."""
    needs_quotes = pc.match_substring_regex(cells, '[",\r\n]')
    if not pc.any(needs_quotes).as_py():
        return cells
    doubled = pc.replace_substring(cells, '"', '""')
    return pc.if_else(needs_quotes, pc.binary_join_element_wise('"', doubled, '"', ""), cells)
