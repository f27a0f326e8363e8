"""Data frames, arrays and streams as tables: pandas, Polars, DuckDB, NumPy, Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import TableError
from sfumato.table import objects
from sfumato.table.cells import BATCH_ROWS, is_plain
from sfumato.table.source import Source, source_of


def open_frame(source: Any, *, any_text: bool) -> Source:
    """A data frame or array of any library. With ``any_text`` each Python object is read by itself."""
    kind, where = frame_kind(source), frame_name(source)
    if kind is None:
        raise TableError(f"A table is a path or a frame (pandas, Polars, Arrow or DuckDB), not a {where}.")
    if kind == "pandas":
        names = tuple(map(str, source.columns))
        read = partial(_pandas_column, source, names, any_text=any_text)
        return Source(names, len(source), kind, where, read, index=source.index)
    if kind == "numpy":
        names = array_names(source.shape[1])
        read = partial(_numpy_column, source, names, any_text=any_text)
        return Source(names, len(source), kind, where, read)
    if kind == "polars":
        read = partial(_polars_column, source, any_text=any_text)
        return Source(tuple(source.columns), source.height, kind, where, read)
    with _while_querying(where):
        table = pa.table(source)
    return source_of(table, kind, where)


def is_stream(source: Any) -> bool:
    """May a frame be one that comes batch by batch, and only once? Any Arrow exporter that nobody knows may."""
    return isinstance(source, pa.RecordBatchReader) or frame_kind(source) == "arrow"


def open_stream(source: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a stream, and its batches one by one."""
    where = frame_name(source)
    with _while_querying(where):
        reader = pa.RecordBatchReader.from_stream(source)
    return reader.schema, _batches(reader, where)


def _batches(reader: pa.RecordBatchReader, where: str) -> Iterator[pa.RecordBatch]:
    while True:
        with _while_querying(where):
            batch = next(reader, None)
        if batch is None:
            return
        yield batch


@contextmanager
def _while_querying(where: str) -> Iterator[None]:
    """A query fails with its engine's own errors, and they quote cells."""
    try:
        yield
    except Exception:  # noqa: BLE001 - whatever it is
        raise TableError(f"{where} cannot be read as an Arrow table; does its query run?") from None


def frame_name(source: Any) -> str:
    """What an error message calls a frame."""
    return f"{_library(type(source))}.{type(source).__name__}"


def _library(kind: type) -> str:
    return kind.__module__.partition(".")[0].lstrip("_")


def frame_kind(source: Any) -> str | None:
    """Which library made a frame, found without importing any."""
    if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return "pyarrow"
    if isinstance(source, np.ndarray) and source.ndim == 2:
        return "numpy"
    for base in type(source).__mro__:
        if (_library(base), base.__name__) in FRAMES:
            return _library(base)
    return "arrow" if hasattr(source, "__arrow_c_stream__") else None


def array_names(n_columns: int) -> tuple[str, ...]:
    """What the columns of an array are called: x0, x1 and so on, as in scikit-learn."""
    return tuple(f"x{i}" for i in range(n_columns))


def _numpy_column(
    array: NDArray[Any], names: tuple[str, ...], name: str, *, any_text: bool
) -> pa.ChunkedArray:
    """A column of an array; NaN is missing, as in pandas."""
    cells: Any = np.ascontiguousarray(array[:, names.index(name)])
    column = _arrow_or_none(cells) if cells.dtype.kind != "O" else None
    return _object_column(cells, any_text=any_text) if column is None else pa.chunked_array([column])


def _polars_column(frame: Any, name: str, *, any_text: bool) -> pa.ChunkedArray:
    """A column; of Python objects Polars would give their addresses."""
    series = frame.get_column(name)
    if str(series.dtype) == "Object":
        return _object_column(series.to_list(), any_text=any_text)
    return pa.chunked_array([series.to_arrow()])


def _pandas_column(frame: Any, names: tuple[str, ...], name: str, *, any_text: bool) -> pa.ChunkedArray:
    """A column without the index; objects of mixed types, intervals and periods as their text."""
    series = frame.iloc[:, names.index(name)]
    if hasattr(series.dtype, "categories"):
        return _pandas_categories(series, any_text=any_text)
    column = _arrow_or_none(series) if _has_a_type(series.dtype) else None
    if column is None:
        return _object_column(series.to_numpy(dtype=object), any_text=any_text)
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _has_a_type(dtype: Any) -> bool:
    """Does a column of pandas say what its cells are? Else they are Python objects, each of a type of its own."""
    if isinstance(dtype, np.dtype):
        return dtype.kind != "O"
    is_sparse = hasattr(dtype, "fill_value")  # and may be of objects
    return _library(type(dtype)) == "pandas" and not is_sparse


def _pandas_categories(series: Any, *, any_text: bool) -> pa.ChunkedArray:
    """Categories are read as a column of their own: an object among them changes none of the others."""
    categories = series.cat.categories.to_frame(name="")
    known = _pandas_column(categories, ("",), "", any_text=any_text)
    codes = series.cat.codes.to_numpy()
    indices = pa.array(codes, pa.int32(), mask=codes < 0)
    is_told_apart = _has_a_type(categories.iloc[:, 0].dtype) and known.type != objects.READINGS
    if not is_told_apart:  # several may have the same text, or none
        return known.take(indices)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, known.combine_chunks())])


def _arrow_or_none(cells: Any) -> Any:
    """What Arrow makes of cells, if that is a column of single values."""
    try:
        column = pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return column if is_plain(column.type) else None


def _object_column(cells: Sequence[object], *, any_text: bool) -> pa.ChunkedArray:
    """Python objects: one column of theirs where they are alike; else, and for ``any_text``, each by itself."""
    if not any_text and objects.are_alike(cells) and (column := _arrow_or_none(cells)) is not None:
        return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    read, kind = (objects.readings_of, objects.READINGS) if any_text else (objects.texts_of, pa.string())
    parts = [read(cells[start : start + BATCH_ROWS]) for start in range(0, len(cells), BATCH_ROWS)]
    return pa.chunked_array(parts, kind)


FRAMES = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("duckdb", "DuckDBPyRelation"))
