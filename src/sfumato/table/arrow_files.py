"""Parquet and Arrow files as tables, read column by column."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import TableError
from sfumato.table.allowance import Gauge
from sfumato.table.cells import BATCH_ROWS, TEXT, decode, is_one_of, value_type
from sfumato.table.source import (
    FEW_ROWS,
    PIECE_ROWS,
    UNKNOWN,
    Count,
    Source,
    Stream,
    shared_signature,
    signature_of,
    source_of,
    table_has_changed,
    while_reading,
    without_index,
)


def open_ipc(path: Path, *, is_file: bool) -> Source:
    """An Arrow IPC file, or stream, that is read at once."""
    with while_reading(str(path), "Arrow IPC file"), pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        gauge, batches = Gauge(str(path)), []
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
            batches.append(batch)
            gauge.check()  # a compressed batch takes memory of its own, not that of the mapped file
        table = pa.Table.from_batches(batches, reader.schema)
        table.validate(full=True)  # a forged offset would otherwise read foreign memory
    return source_of(table, "arrow", str(path))


def open_ipc_lazily(path: Path, *, is_file: bool) -> Source:
    """An Arrow IPC file that is read batch by batch; a stream does not say how many rows it has."""
    known = signature_of(path)

    def batches(names: Sequence[str], _memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        at = [schema.get_field_index(name) for name in names]
        with while_reading(str(path), "Arrow IPC file"), pa.OSFile(str(path)) as file:
            for batch in _ipc_batches(file, sorted(set(at)), is_file=is_file):
                batch.validate(full=True)  # a forged offset would otherwise read foreign memory
                yield batch.select(list(names))
            count(file.size())
        if signature_of(path) != known:
            raise table_has_changed(str(path))

    def read(name: str) -> pa.ChunkedArray:
        found = [batch.column(0) for batch in batches([name], None, lambda _: None)]
        return pa.chunked_array(found, schema.field(name).type)

    with while_reading(str(path), "Arrow IPC file"), pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        schema = reader.schema
        n_rows = UNKNOWN
        if is_file:
            n_rows = sum(batch.num_rows for batch in _ipc_batches(file, [0], is_file=True))
    return Source(without_index(schema.names), n_rows, "arrow", str(path), read, batches)


def _ipc_batches(file: Any, fields: list[int], *, is_file: bool) -> Iterator[pa.RecordBatch]:
    options = pa.ipc.IpcReadOptions(included_fields=fields)
    if is_file:
        reader = pa.ipc.open_file(file, options=options)
        yield from map(reader.get_batch, range(reader.num_record_batches))
    else:
        yield from pa.ipc.open_stream(file, options=options)


def open_parquet(paths: Sequence[Path], where: str) -> Source:
    """Parquet files that are the parts of one table; columns are read when they are asked for."""
    signatures = [signature_of(path) for path in paths]
    footers, schemas = [], []
    for path in paths:
        with while_reading(str(path), "Parquet file"), pq.ParquetFile(path) as file:
            footers.append(file.metadata)
            schemas.append(file.schema_arrow)
    for path, schema in zip(paths, schemas, strict=True):
        if sorted(schema.names) != sorted(schemas[0].names):
            raise TableError(f"{path} has other columns than {paths[0]}, so they are not parts of one table.")

    def read(name: str) -> pa.ChunkedArray:
        chunks: list[pa.Array] = []
        gauge = Gauge(where)
        gauge.foresee(sum(map(partial(_decoded_size, name), footers, schemas)))
        for path, footer, schema in zip(paths, footers, schemas, strict=True):
            # text comes as a dictionary straight from the file's own, without a copy per row
            as_dictionary = [name] if is_one_of(schema.field(name).type, *TEXT) else None
            with pq.ParquetFile(path, metadata=footer, read_dictionary=as_dictionary) as file:
                if as_dictionary or is_one_of(schema.field(name).type, "primitive", "dictionary"):
                    chunks += file.read(columns=[name]).column(name).chunks
                    continue
                for batch in file.iter_batches(FEW_ROWS, columns=[name]):  # cells of any size, stored once
                    chunks.append(batch.column(0))
                    gauge.check()
        return _join(chunks, schemas[0].field(name).type, name, where)

    parts = [
        ParquetPart(path, footer, schema, signature, range(footer.num_row_groups))
        for path, footer, schema, signature in zip(paths, footers, schemas, signatures, strict=True)
    ]
    return replace(source_of_parts(parts, where), read=read)


def source_of_parts(parts: Sequence[ParquetPart], where: str) -> Source:
    """Whole Parquet files as a table that is read batch by batch."""
    schemas = tuple(part.schema for part in parts)
    no_texts = frozenset(
        name
        for name in schemas[0].names
        if is_one_of(schemas[0].field(name).type, "primitive")
        and all(schema.field(name).type == schemas[0].field(name).type for schema in schemas)
    )
    n_rows = sum(part.footer.num_rows for part in parts)
    stream = ParquetStream(tuple(parts), schemas, where)
    names = without_index(schemas[0].names)
    return Source(names, n_rows, "parquet", where, partial(read_column, stream), stream, no_texts=no_texts)


def read_column(stream: Stream, name: str) -> pa.ChunkedArray:
    """A whole column, read batch by batch."""
    return pa.Table.from_batches(stream([name], None, lambda _: None)).column(name)


@dataclass(frozen=True, slots=True, eq=False)
class ParquetPart:
    """Some row groups of a Parquet file that was looked at before."""

    path: Path
    footer: Any
    schema: pa.Schema
    signature: tuple[int, ...] | None
    """What changes when the file does; None if nobody else can write to it."""
    groups: Sequence[int]
    is_shared: bool = False
    """Whether other machines read it."""

    def check_unchanged(self) -> None:
        """Raise if the file is another than it was when it was opened, as far as can be seen."""
        if self.signature is None:
            return
        with while_reading(str(self.path), "Parquet file"):
            found, known = signature_of(self.path), self.signature
        if self.is_shared:
            found, known = shared_signature(found), shared_signature(known)
        if found != known:
            raise table_has_changed(str(self.path))


@dataclass(frozen=True, slots=True, eq=False)
class ParquetStream:
    """Makes passes over some columns of Parquet files, or of some of their row groups. It can be pickled.

    ``schemas`` are those of all files of the table: a column has one type in all of them.
    """

    parts: tuple[ParquetPart, ...]
    schemas: tuple[pa.Schema, ...]
    where: str

    def __call__(self, names: Sequence[str], memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        wanted = [
            _common_type([schema.field(name).type for schema in self.schemas], name, self.where)
            for name in names
        ]
        for part in self.parts:
            for batch in _row_groups(part, names, memory, count):
                columns = [
                    column if _is_as_wanted(column.type, kind) else decode(column).cast(kind)
                    for column, kind in zip(batch.columns, wanted, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, list(names))
            part.check_unchanged()

    def slices(self, most: int) -> list[tuple[int, ParquetStream]]:
        """The rows in at most so many slices of about the same size, in order: how many each has, and it.

        A row group is in one slice. Other machines may read it, so less of a file is compared.
        """
        every = [(part, group) for part in self.parts for group in part.groups]
        n_rows = np.array([part.footer.row_group(group).num_rows for part, group in every], dtype=np.int64)
        middle = np.cumsum(n_rows) - n_rows / 2
        place = (middle * most / max(int(n_rows.sum()), 1)).astype(np.int64)
        found = []
        for own in np.unique(place).tolist():
            inside = [every[at] for at in np.flatnonzero(place == own).tolist()]
            parts = tuple(
                replace(part, groups=tuple(group for _, group in groups), is_shared=True)
                for part, groups in itertools.groupby(inside, key=itemgetter(0))
            )
            found.append((int(n_rows[place == own].sum()), replace(self, parts=parts)))
        return found


def _row_groups(
    part: ParquetPart, names: Sequence[str], memory: int | None, count: Count
) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, row group by row group."""
    path, footer, schema = part.path, part.footer, part.schema
    as_dictionary = [name for name in names if is_one_of(schema.field(name).type, *TEXT)]
    with (
        while_reading(str(path), "Parquet file"),
        pq.ParquetFile(path, metadata=footer, read_dictionary=as_dictionary, pre_buffer=False) as file,
    ):
        for g in part.groups:
            stored, decoded = _sizes(footer.row_group(g), schema, names)
            count(stored)
            is_small = memory is None or decoded * PIECE_ROWS <= memory * footer.row_group(g).num_rows
            size = PIECE_ROWS if is_small else BATCH_ROWS
            try:  # a row group at once takes five times the memory, and not less time
                yield from file.iter_batches(size, row_groups=[g], columns=list(names))
            except (OSError, pa.ArrowException):
                which = f"row group {g + 1:,} of {footer.num_row_groups:,}"
                raise TableError(f"{path} is damaged in {which}; make or copy it again.") from None


def _sizes(group: Any, schema: pa.Schema, names: Sequence[str]) -> tuple[int, int]:
    """Of some columns of a row group: bytes in the file, and about as many in memory."""
    wanted, stored, decoded = set(names), 0, 0
    for c in range(group.num_columns):
        column = group.column(c)
        if column.path_in_schema in wanted or column.path_in_schema.partition(".")[0] in wanted:
            stored += column.total_compressed_size
            decoded += column.total_uncompressed_size
    for name in names:
        kind = schema.field(name).type
        decoded += group.num_rows * (kind.bit_width if is_one_of(kind, "primitive") else 64) // 8
    return stored, decoded


def _decoded_size(name: str, footer: Any, schema: pa.Schema) -> int:
    """Of a column of a Parquet file, bytes in memory, about."""
    return sum(_sizes(footer.row_group(g), schema, [name])[1] for g in range(footer.num_row_groups))


def _is_as_wanted(kind: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(kind == wanted or (pa.types.is_dictionary(kind) and kind.value_type == wanted))


def _common_type(kinds: Sequence[pa.DataType], name: str, where: str) -> pa.DataType:
    """The type of a column whose parts may be stored in several ways."""
    if len(set(kinds)) == 1:
        return kinds[0]
    parts = [pa.schema([pa.field(name, value_type(kind))]) for kind in kinds]
    try:
        return pa.unify_schemas(parts, promote_options="permissive").field(name).type
    except pa.ArrowException:
        raise TableError(f"Column {name!r} has different types in different parts of {where}.") from None


def _join(chunks: list[pa.Array], stored: pa.DataType, name: str, where: str) -> pa.ChunkedArray:
    if len({chunk.type for chunk in chunks}) <= 1:
        return pa.chunked_array(chunks, type=chunks[0].type if chunks else stored)
    tables = [pa.table({name: decode(chunk)}) for chunk in chunks]
    try:
        return pa.concat_tables(tables, promote_options="permissive").column(name)
    except pa.ArrowException:
        raise TableError(f"Column {name!r} has different types in different parts of {where}.") from None
