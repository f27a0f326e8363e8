"""Spreadsheets (.xlsx) as tables: one sheet, its first row the header, each cell as its own text.

As in a CSV file every cell is text: 30 is ``30``, a day is ``2024-03-05``, and a zip code that is stored as text keeps
its zeros. What a formula gave when the file was saved is its cell.
"""

from __future__ import annotations

import importlib
import itertools
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import MissingExtra, TableError, did_you_mean
from sfumato.table.allowance import Gauge

NAMES = (".xlsx", ".xlsm")
WORKBOOK = "xl/workbook.xml"
BATCH_ROWS = 1 << 14
BLOCK_BYTES = 1 << 20


def is_spreadsheet(path: Path) -> bool:
    """Whether a file is a workbook of Excel inside."""
    try:
        with zipfile.ZipFile(path) as archive:
            return WORKBOOK in archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


def split_sheet(text: str) -> tuple[Path, str | None]:
    """The path of a workbook and the sheet that is named after a ``#``.

    >>> split_sheet("people.xlsx#2024"), split_sheet("a#b.csv")
    ((PosixPath('people.xlsx'), '2024'), (PosixPath('a#b.csv'), None))
    """
    before, _, sheet = text.rpartition("#")
    if before.lower().endswith(NAMES) and not Path(text).exists():
        return Path(before), sheet
    return Path(text), None


def _check_size(path: Path) -> None:
    """Raise if a workbook takes more memory than is allowed, or is damaged: it is read whole."""
    gauge = Gauge(str(path))
    with zipfile.ZipFile(path) as archive:
        gauge.foresee(sum(part.file_size for part in archive.infolist()))
        for part in archive.infolist():
            with archive.open(part) as file:
                while file.read(BLOCK_BYTES):  # a size that is not the true one fails the checksum at the end
                    pass


def read_sheet(
    path: Path, sheet: str | None, *, any_width: bool = False
) -> tuple[tuple[str, ...], Iterator[pa.RecordBatch]]:
    """The columns of a sheet, and its rows as text, some at a time; rows without any cell are passed over.

    Cells beyond the header are an error, unless ``any_width`` will do: they are left out then.
    """
    try:
        calamine = importlib.import_module("python_calamine")
    except ImportError:
        raise MissingExtra("excel", f"Reading the spreadsheet {path}") from None
    try:
        _check_size(path)
        with calamine.CalamineWorkbook.from_path(path) as book:
            rows = _choose_sheet(book, path, sheet).iter_rows()
    except (
        calamine.CalamineError,
        OSError,
        zipfile.BadZipFile,
        zlib.error,
        RuntimeError,
        NotImplementedError,
    ) as error:
        reason = (
            "has a password" if isinstance(error, calamine.PasswordError) else "is damaged, or no spreadsheet"
        )
        raise TableError(f"{path} {reason}; save it again.") from None
    filled = (texts for row in rows if any(texts := [_text(cell) for cell in row]))
    header = next(filled, None)
    if header is None:
        raise TableError(f"{path} is empty; a table needs a header and rows.")
    while header and not header[-1]:
        header.pop()
    names = tuple((name or "").strip() for name in header)
    return names, _batches(filled, names, path, any_width=any_width)


def _choose_sheet(book: Any, path: Path, sheet: str | None) -> Any:
    """The sheet that is named, or else the only one that has cells."""
    names = book.sheet_names
    if sheet is not None:
        if sheet not in names:
            raise TableError(f"{path} has no sheet {sheet!r}.{did_you_mean(sheet, names)}")
        return book.get_sheet_by_name(sheet)
    sheets = [book.get_sheet_by_name(meta.name) for meta in book.sheets_metadata if "Work" in str(meta.typ)]
    filled = [each for each in sheets if each.height] or sheets[:1]
    if len(filled) > 1:
        listed = ", ".join(each.name for each in filled)
        raise TableError(
            f"{path} has {len(filled)} sheets; say which one to read, as in {path}#NAME: {listed}."
        )
    if not filled:
        raise TableError(f"{path} has no sheet of cells.")
    return filled[0]


def _batches(
    rows: Iterator[list[str | None]], names: tuple[str, ...], path: Path, *, any_width: bool
) -> Iterator[pa.RecordBatch]:
    first_row, n = 1, len(names)
    while part := list(itertools.islice(rows, BATCH_ROWS)):
        for number, row in enumerate(part, start=first_row):
            if any(row[n:]) and not any_width:
                raise TableError(f"Row {number:,} of {path} has cells beyond the header; name their columns.")
        columns = [
            pa.array([row[i] if i < len(row) else None for row in part], pa.string()) for i in range(n)
        ]
        yield pa.RecordBatch.from_arrays(columns, list(names))
        first_row += len(part)


def _text(cell: object) -> str | None:
    """What a cell says; None where it is empty.

    >>> [_text(cell) for cell in ("02139", 30.0, 0.5, datetime(2024, 3, 5), True, "")]
    ['02139', '30', '0.5', '2024-03-05', 'true', None]
    """
    if cell is None or cell == "":
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ") if cell.time() != time() else cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)
