"""Files as rows of bytes, for machines that cannot reach each other's storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.engines.spark.replies import Reply
from sfumato.table.arrow_files import ParquetPart

PIECE = 1 << 22
"""Bytes of a file in one row."""

FILE_ROWS = 1 << 19
"""Rows of the table in one file: a task that needs some of them is handed all."""

GROUP_ROWS = 1 << 17
"""Rows of the table in one row group of such a file."""


def cut_file(path: Path, *, key: int = 0, task: int = 0) -> Iterator[Reply]:
    """The rows of a file; one that is empty has one."""
    with path.open("rb") as file:
        start, data = 0, file.read(PIECE)
        while data or not start:
            yield Reply(key, task, start, False, data, path.name)
            start += PIECE
            data = file.read(PIECE)


def put_piece(folder: Path, reply: Reply) -> None:
    """Write one row of a file to a folder. Rows may come in any order, and more than once."""
    path = folder / reply.name
    with path.open("r+b" if path.exists() else "wb") as file:
        file.seek(reply.piece)
        file.write(reply.data)


def receive_files(replies: Iterable[Reply], folder: Path) -> list[Reply]:
    """Write the files among replies to a folder; the others come back."""
    others = []
    for reply in replies:
        if reply.name:
            put_piece(folder, reply)
        else:
            others.append(reply)
    return others


def write_parts(batches: Iterable[pa.RecordBatch], fresh: Iterator[Path]) -> Iterator[ParquetPart]:
    """A table in Parquet files of some rows each, whose paths are those that come next."""
    held: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        held.append(batch)
        n_rows += batch.num_rows
        if n_rows >= FILE_ROWS:
            yield _write_part(held, next(fresh))
            held, n_rows = [], 0
    if n_rows:
        yield _write_part(held, next(fresh))


def _write_part(held: Sequence[pa.RecordBatch], path: Path) -> ParquetPart:
    pq.write_table(pa.Table.from_batches(held), path, row_group_size=GROUP_ROWS)
    with pq.ParquetFile(path) as file:
        footer, schema = file.metadata, file.schema_arrow
    return ParquetPart(path, footer, schema, None, range(footer.num_row_groups))
