"""Do the files of a release hold what they show, and nothing beside it?

Whatever lies in the folder is published with it. A file can hold more than its rows: metadata, values that no row has,
bytes that no reader looks at, quotes that need not be there. Each such place is looked into here; what belongs in a
release is in the file once.
"""

from __future__ import annotations

import base64
import binascii
import json
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfumato.errors import number_of
from sfumato.policy.schema import Attribute, Role
from sfumato.release.folder import CERTIFICATE, CERTIFIED, RELEASES
from sfumato.table.cells import as_stored, plain, which_occur
from sfumato.table.source import Source
from sfumato.table.write import cells_as_csv, header_as_csv
from sfumato.verify.checks import Check

SCHEMA = b"ARROW:schema"
"""The one key of a Parquet file's metadata: how Arrow reads the columns."""

FIELD_ID = b"PARQUET:field_id"
LONGEST_WRITER = 100
"""Characters of the name of the program that wrote a file."""

MAGIC, LENGTH = 4, 4
"""Bytes at both ends of a Parquet file, and those that say how long its footer is."""

QUOTE, RETURN = '"', "\r"
MARKS = [b'"', b",", b"\r", b"\n"]
"""A cell of CSV stands in quotes if it has one of them."""

BESIDE_QUOTES = [*b",\n"]
"""What stands before the quote that opens a cell, and after the one that closes it."""

ROWS_AT_ONCE = 1 << 18
BYTES_AT_ONCE = 1 << 24


class Hidden(Exception):  # noqa: N818 - reads as a sentence, and never leaves verify
    """What a file holds that its rows do not show."""


# ---- the folder ------------------------------------------------------------------------------------


def find_others(folder: Path) -> list[str]:
    """What lies in a release folder and is no piece of a release: other files, folders, links, by their paths."""
    found = []
    for path in sorted(folder.iterdir()):
        mode = path.lstat().st_mode
        if path.name == RELEASES["parquet"] and stat.S_ISDIR(mode):
            found += [f"{path.name}/{part.name}" for part in sorted(path.iterdir()) if not _is_part(part)]
        elif path.name not in {*CERTIFIED, CERTIFICATE} or not stat.S_ISREG(mode):
            found.append(path.name)
    return found


def _is_part(path: Path) -> bool:
    is_named = path.suffix == ".parquet" and not path.name.startswith((".", "_"))
    return is_named and stat.S_ISREG(path.lstat().st_mode)


def check_nothing_else(strangers: Sequence[str]) -> Check:
    n = len(strangers)
    detail = ""
    if n:
        first = strangers[0] if len(strangers[0]) <= 60 else strangers[0][:57] + "..."
        others = number_of(n, "other file, folder or link", "other files, folders or links")
        detail = f"{others}, the first {first!r}"
    return Check("the folder holds the files of a release and nothing else", not n, detail)


def read_json(text: bytes) -> Any:
    """A JSON document without a key that stands twice, of which a reader would see one; ValueError if it is none."""
    return json.loads(text.decode("utf-8"), object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse)


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _refuse(_: str) -> float:
    raise ValueError


# ---- rows as CSV -----------------------------------------------------------------------------------


def check_csv(path: Path, source: Source) -> None:
    """Hidden unless the file is what its cells are written as: quotes where they must be, one line end, no blank line.

    Without a quote or a carriage return in any cell, whatever is written in another way makes the file longer, or has
    one of them where none belongs; so its length and the places of its quotes tell.
    """
    header = header_as_csv(source.names)
    length, is_plain = len(header), len(source.names) > 1
    for batch in source.batches(source.names, rows=ROWS_AT_ONCE):
        written = [_measure_as_written(column) for column in batch.columns]
        length += sum(n for n, _ in written) + len(written) * batch.num_rows
        is_plain &= not any(has_quotes for _, has_quotes in written)
    if is_plain:
        is_same = path.stat().st_size == length and _has_quotes_at_ends(path, header)
    else:
        is_same = _is_as_written(path, source)
    if not is_same:
        raise Hidden("quotes, line ends or blank lines that its cells do not need")


def _measure_as_written(cells: pa.Array) -> tuple[int, bool]:
    """How many bytes the cells of a column take, and whether one holds a quote or a carriage return."""
    values = cells.dictionary if isinstance(cells, pa.DictionaryArray) else cells
    text = values.buffers()[-1]  # all cells, one after the other; looked through far faster than cell by cell
    marks = {mark for mark in MARKS if text is not None and mark in text.to_pybytes()}
    n_bytes = pc.binary_length(cells_as_csv(values) if marks else values).fill_null(0)
    if values is not cells:
        n_bytes = n_bytes.take(cells.indices)
    has_quotes = any(
        mark.encode() in marks and pc.any(pc.match_substring(values, mark)).as_py()
        for mark in (QUOTE, RETURN)
    )
    return pc.sum(n_bytes).as_py() or 0, has_quotes


def _has_quotes_at_ends(path: Path, header: bytes) -> bool:
    """Whether quotes below the header stand at both ends of a cell alone, and lines end in line feeds.

    Readers also take ``"[17, "24]`` for a cell, and a carriage return for the end of a line.
    """
    text, n_quotes = np.asarray(np.memmap(path, np.uint8, "r")), 0
    if text[: len(header)].tobytes() != header or text[-1] != MARKS[-1][0]:
        return False
    for start in range(len(header), len(text), BYTES_AT_ONCE):
        block = text[start : start + BYTES_AT_ONCE]
        at = start + np.flatnonzero(block == ord(QUOTE))
        opens = np.arange(n_quotes, n_quotes + len(at)) % 2 == 0
        beside = text[np.where(opens, at - 1, at + 1)]
        if np.any(block == ord(RETURN)) or not np.isin(beside, BESIDE_QUOTES).all():
            return False
        n_quotes += len(at)
    return True


def _is_as_written(path: Path, source: Source) -> bool:
    """Whether the file has the very bytes that its cells are written as."""
    empty = QUOTE * 2 if len(source.names) == 1 else ""
    with path.open("rb") as file:
        header = header_as_csv(source.names)
        if file.read(len(header)) != header:
            return False
        for batch in source.batches(source.names):
            cells = [pc.fill_null(cells_as_csv(_texts(column)), empty) for column in batch.columns]
            if empty:
                cells = [pc.if_else(pc.equal(column, ""), empty, column) for column in cells]
            lines = pc.binary_join_element_wise(*cells, ",")
            expected = ("\n".join(lines.to_pylist()) + "\n").encode()
            if file.read(len(expected)) != expected:
                return False
        return not file.read(1)


def _texts(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


# ---- Parquet ---------------------------------------------------------------------------------------


def check_parquet(path: Path, keep: Collection[str] = ()) -> dict[str, pa.ChunkedArray]:
    """Hidden if a file, or a part in a folder, holds more than its rows.

    Gives back those columns of a file, among the ones to ``keep``, that were read on the way.
    """
    kept: dict[str, list[pa.Array]] = {}
    is_folder = path.is_dir()
    for part in sorted(path.iterdir()) if is_folder else [path]:
        with pq.ParquetFile(part) as file:
            _check_footer(part, file.metadata)
            schema = file.schema_arrow
        _check_schema(schema)
        for name, column in _check_values(part, schema):
            if name in keep and not is_folder:
                kept.setdefault(name, []).extend(column.chunks)
        n_rows = file.metadata.num_rows
    whole = {name: pa.chunked_array(chunks) for name, chunks in kept.items()}
    return {name: column for name, column in whole.items() if len(column) == n_rows}


def _check_footer(path: Path, metadata: Any) -> None:
    stored = metadata.metadata or {}
    if stored.keys() - {SCHEMA} or not _is_plain_schema(stored.get(SCHEMA)):
        raise Hidden("metadata beside its columns")
    if len(metadata.created_by or "") > LONGEST_WRITER:
        raise Hidden("a long text in place of the program that wrote it")
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(size - MAGIC - LENGTH)
        footer = int.from_bytes(file.read(LENGTH), "little")
    chunks = list(_chunks(metadata))
    if sum(chunk.total_compressed_size for chunk in chunks) + footer + 2 * MAGIC + LENGTH != size:
        raise Hidden("bytes that belong to no column")
    if any(getattr(chunk, "metadata", None) or chunk.file_path for chunk in chunks):
        raise Hidden("metadata of a column")
    again = pa.BufferOutputStream()
    metadata.write_metadata_file(again)
    if len(again.getvalue()) < footer + 2 * MAGIC + LENGTH:
        raise Hidden("a footer with more in it than its columns need")


def _chunks(metadata: Any) -> Iterator[Any]:
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        yield from (group.column(c) for c in range(group.num_columns))


def _is_plain_schema(stored: bytes | None) -> bool:
    """Whether Arrow's description of the columns has nothing in it but that."""
    if stored is None:
        return True
    try:
        message = base64.b64decode(stored, validate=True)
        schema = pa.ipc.read_schema(pa.py_buffer(message))
    except (binascii.Error, pa.ArrowException, OSError):
        return False
    bare = pa.schema([pa.field(field.name, field.type, field.nullable) for field in schema])
    return len(bare.serialize()) == len(message)


def _check_schema(schema: pa.Schema) -> None:
    for field in schema:
        if (field.metadata or {}).keys() - {FIELD_ID}:
            raise Hidden("metadata of a column")
        plain(
            pa.nulls(0, field.type), Attribute(field.name, Role.OTHER)
        )  # a cell holds one value, or a TableError


def _check_values(path: Path, schema: pa.Schema) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Every value that a row group stores for a column, in a dictionary or in its statistics, is one of its cells.

    Gives the columns of each row group that could hold others.
    """
    names = [field.name for field in schema if _is_text(field.type)]
    with pq.ParquetFile(path, read_dictionary=names) as file:
        metadata = file.metadata
        for i in range(metadata.num_row_groups):
            group = metadata.row_group(i)
            by_name = {group.column(c).path_in_schema: group.column(c) for c in range(group.num_columns)}
            telling = [
                name for name, chunk in by_name.items() if chunk.has_dictionary_page or chunk.is_stats_set
            ]
            for name in telling:  # one by one: together they take three times the memory
                column = file.read_row_group(i, [name], use_threads=False).column(0)
                _check_chunk(path, by_name[name], column, Attribute(name, Role.OTHER))
                yield name, column


def _check_chunk(path: Path, chunk: Any, column: pa.ChunkedArray, attribute: Attribute) -> None:
    if chunk.has_dictionary_page and _has_unused(path, chunk, column, attribute):
        raise Hidden(f"values of column {attribute.name!r} that no row has")
    if chunk.is_stats_set and chunk.statistics.has_min_max:
        try:
            is_there = _has_both(column, [chunk.statistics.min, chunk.statistics.max])
        except (pa.ArrowException, TypeError, ValueError):
            is_there = False
        if not is_there:
            raise Hidden(f"statistics of column {attribute.name!r} that are not those of its cells")


def _has_both(column: pa.ChunkedArray, ends: list[Any]) -> bool:
    """Whether both ends are cells of a column; its dictionaries, if it has any, are known to hold cells alone."""
    parts = [part.dictionary if _is_dictionary(part.type) else part for part in column.chunks]
    kind = parts[0].type
    return all(any(pc.any(pc.equal(part, end)).as_py() for part in parts) for end in pa.array(ends, kind))


def _has_unused(path: Path, chunk: Any, column: pa.ChunkedArray, attribute: Attribute) -> bool:
    """Whether the dictionary of a column has a value that is none of its cells."""
    if not _is_text(column.type):
        n = _dictionary_length(path, chunk.dictionary_page_offset)
        return _n_distinct(column.slice(0, 2 * n), attribute) < n and _n_distinct(column, attribute) < n
    if column.num_chunks == 1:
        encoded = column.chunk(0)
        return not which_occur(encoded.indices.drop_null().to_numpy(), len(encoded.dictionary)).all()
    stored = pa.concat_arrays([part.dictionary for part in column.chunks]).unique()
    return len(stored) > len(as_stored(column, attribute).dictionary)


def _n_distinct(column: pa.ChunkedArray, attribute: Attribute) -> int:
    """How many different values the cells of a column have, a missing one not counted."""
    if pa.types.is_integer(column.type) or pa.types.is_float64(column.type):
        bits = column.drop_null().combine_chunks().view(f"int{column.type.bit_width}").to_numpy()
        return int(np.count_nonzero(np.diff(np.sort(bits)))) + min(len(bits), 1)
    return len(as_stored(column, attribute).dictionary)


def _is_dictionary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def _is_text(kind: pa.DataType) -> bool:
    """Whether Parquet can give a column with the dictionary that it is stored with."""
    kind = kind.value_type if _is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


def _dictionary_length(path: Path, offset: int) -> int:
    """How many values a dictionary page says that it has: Parquet's header of a page, in Thrift's compact form."""
    with path.open("rb") as file:
        file.seek(offset)
        return _Header(file.read(256)).dictionary_length()


class _Header:
    """The fields of a page header: whole numbers, and one structure of whole numbers for its kind of page."""

    WHOLE, STRUCTURE = (4, 5, 6), 12
    DICTIONARY = 7
    """The number of the field that describes a dictionary; its first field is how many values it has."""

    def __init__(self, text: bytes) -> None:
        self._text, self._at = text, 0

    def dictionary_length(self) -> int:
        try:
            for number, kind in self._fields():
                if kind == self.STRUCTURE and number == self.DICTIONARY:
                    return next(self._number() for _, inner in self._fields() if inner in self.WHOLE)
                if kind not in self.WHOLE:
                    break
                self._number()
        except (IndexError, StopIteration):
            pass
        raise Hidden("a dictionary that cannot be read")

    def _fields(self) -> Iterator[tuple[int, int]]:
        number = 0
        while byte := self._byte():
            number += byte >> 4
            yield number, byte & 15

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return (value >> 1) ^ -(value & 1)

    def _byte(self) -> int:
        self._at += 1
        return self._text[self._at - 1]
