"""Opens published rows to be checked: in memory where they fit, batch by batch where they do not."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import InputError
from sfumato.machine import free_memory
from sfumato.policy.document import Policy
from sfumato.table.csv_file import open_own_csv
from sfumato.table.formulas import read_escaped
from sfumato.table.opening import open_table
from sfumato.table.source import Source

CSV_COPIES = 4
"""Memory for a CSV file that is read in one go, as a multiple of its size."""

MOST_ZIPPED = 1032
"""How much longer than its gzip-ed file a text can be."""


def allowed_memory(given: int | None) -> int:
    """Bytes that checking may take: half of what is free, unless said otherwise."""
    return free_memory() // 2 if given is None else given


def is_small(table: Any, memory: int) -> bool:
    """Whether a file of text may be read in one go; anything else says itself how large it is."""
    if isinstance(table, str | Path) and Path(table).is_file():
        longer = MOST_ZIPPED if _begins(Path(table), b"\x1f\x8b") else 1
        return CSV_COPIES * longer * Path(table).stat().st_size <= memory
    return True


def _begins(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:  # whoever reads it says why
        return False


def open_rows(path: Path, word: str, memory: int, policy: Policy) -> Source:
    """The rows of a release folder, as they were before cells like formulas were marked."""
    source = open_stored_rows(path, word, memory)
    return read_escaped(source) if policy.escapes_formulas else source


def open_stored_rows(path: Path, word: str, memory: int) -> Source:
    """The rows of a release folder; an InputError if they are not of the format that their name says."""
    source = open_own_csv(path, lazy=not is_small(path, memory)) if word == "csv" else open_table(path)
    if source.kind != word:
        raise InputError(f"{path.name} is not {word} inside.")
    return source


def stored_names(table: Any) -> list[str]:
    """The columns of a Parquet file, a folder of them or an Arrow table, the index of pandas included.

    Reading a table leaves an index out, so it must be looked for in the file itself.
    """
    if isinstance(table, pa.Table | pa.RecordBatch):
        return list(table.schema.names)
    if not isinstance(table, str | Path):
        return []
    path = Path(table)
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    return list(dict.fromkeys(name for file in files for name in _names_in_parquet(file)))


def _names_in_parquet(path: Path) -> list[str]:
    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):  # of another format
        return []


def read_header(path: Path) -> list[str]:
    """The columns of a CSV file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])
