"""Cells that spreadsheets would run as formulas: text that begins with =, @, +, - or a tab, but is no number.

Where the policy says ``output: {formulas: escape}``, files hold such cells with ' before them, and whoever reads the
files takes it away again. Cells that begin with ' before such a sign get one more, so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.table.source import Source

MARK = "'"
BEGINS_FORMULA = r"^'*[=@+\-\t]"
NO_FORMULA = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def escape(rows: pa.Table) -> pa.Table:
    """The rows as a file holds them.

    >>> escape(pa.table({"note": ["=1+1", "-2.5", "'@x", "fine", None]})).column("note").to_pylist()
    ["'=1+1", '-2.5', "''@x", 'fine', None]
    """
    return pa.table([_with_texts(column, _escape) for column in rows.columns], rows.column_names)


def read_escaped(source: Source) -> Source:
    """The table that a file with escaped cells stands for.

    >>> from sfumato.table.opening import open_table
    >>> read_escaped(open_table(escape(pa.table({"note": ["=1+1", "'@x", "'fine"]})))).column("note").to_pylist()
    ['=1+1', "'@x", "'fine"]
    """
    stream = source.stream

    def read(name: str) -> pa.ChunkedArray:
        return _with_texts(source.read(name), _unescape)

    def batches(*options: Any) -> Iterator[pa.RecordBatch]:
        assert stream is not None
        for batch in stream(*options):
            columns = [_with_texts(column, _unescape) for column in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    return replace(source, read=read, stream=None if stream is None else batches)


def columns_with_formulas(parts: Iterable[pa.Table]) -> tuple[str, ...]:
    """The columns that hold at least one cell which a spreadsheet would run.

    >>> columns_with_formulas([pa.table({"note": ["fine", "=1+1"], "change": ["-2", "+3"]})])
    ('note',)
    """
    found: dict[str, None] = {}
    for part in parts:
        for name, column in zip(part.column_names, part.columns, strict=True):
            if name not in found and any(_has_formula(chunk) for chunk in column.chunks):
                found[name] = None
    return tuple(found)


def _has_formula(chunk: pa.Array) -> bool:
    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary.take(chunk.indices.unique().drop_null())
    return _is_text(chunk.type) and bool(pc.any(_is_formula(chunk)).as_py())


def _with_texts(column: Any, change: Any) -> Any:
    """A column with other texts; numbers, dates and everything else stay as they are."""
    if isinstance(column, pa.ChunkedArray):
        chunks = [_with_texts(chunk, change) for chunk in column.chunks]
        return pa.chunked_array(chunks, column.type)
    if pa.types.is_dictionary(column.type):
        if not _is_text(column.type.value_type):
            return column
        return pa.DictionaryArray.from_arrays(
            column.indices, change(column.dictionary), ordered=column.type.ordered
        )
    return change(column) if _is_text(column.type) else column


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_formula(texts: pa.Array) -> pa.Array:
    """Which texts are to be escaped."""
    begins = pc.match_substring_regex(texts, BEGINS_FORMULA)
    is_number = pc.match_substring_regex(texts, NO_FORMULA)
    return pc.fill_null(pc.and_not(begins, is_number), False)


def _escape(texts: pa.Array) -> pa.Array:
    marked = pc.binary_join_element_wise(pa.scalar(MARK, texts.type), texts, pa.scalar("", texts.type))
    return pc.if_else(_is_formula(texts), marked, texts)


def _unescape(texts: pa.Array) -> pa.Array:
    rest = pc.utf8_slice_codeunits(texts, 1)
    is_marked = pc.fill_null(pc.and_(pc.starts_with(texts, MARK), _is_formula(rest)), False)
    return pc.if_else(is_marked, rest, texts)


__all__ = ["columns_with_formulas", "escape", "read_escaped"]
