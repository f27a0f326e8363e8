"""Text files with delimiters as tables: how they are written is found out, then Arrow reads them.

Every cell is text: zip 02139 stays 02139.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv

from sfumato.errors import TableError, number_of
from sfumato.policy.schema import Attribute, Role
from sfumato.table.allowance import Gauge
from sfumato.table.cells import NUMBER, TEXTS, NotUtf8, decode, is_text, texts
from sfumato.table.source import (
    UNKNOWN,
    Count,
    How,
    Source,
    check_names,
    refuse_empty,
    signature_of,
    source_of,
    table_has_changed,
    while_reading,
    without_index,
)
from sfumato.table.text_encoding import (
    NAME_IT,
    UTF8,
    WESTERN,
    Utf8Stream,
    blocks_of,
    is_utf8,
    is_western,
    notice_western,
)

TO_ASCII = bytes(range(128)) + b"?" * 128
BOM = b"\xef\xbb\xbf"
NO_HEADER = "its first line looks like the rows below it; put a line with column names above it"
DELIMITERS = ",;\t|"
HEAD_BYTES = 1 << 20  # sniffed for delimiter and header
BLOCK_BYTES = 1 << 22  # read at a time; no row may be longer
SAMPLE_ROWS = 200


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the head of a CSV file shows: columns, delimiter, the byte where the rows begin, and if there are any.

    ``how`` it was opened says whether cells need be UTF-8, and what they are made UTF-8 from.
    """

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    delimiter: str
    offset: int
    has_rows: bool
    how: How


class _Body(io.RawIOBase):
    """Bytes already read and then the rest of their stream, in full blocks; the last two are kept.

    ``gauge`` looks, before each block, at what those before it have taken.
    """

    def __init__(
        self, head: bytes, rest: Any, *, translation: bytes | None = None, gauge: Gauge | None = None
    ) -> None:
        self._head, self._rest, self._translation = head, rest, translation
        self._gauge = gauge
        self._last = (b"", b"")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._gauge is not None:
            self._gauge.check()
        block, self._head = self._head[:size], self._head[size:]
        while len(block) < size and (more := self._rest.read(size - len(block))):
            block += more
        if block:
            self._last = (self._last[1], block)
        return block.translate(self._translation) if self._translation else block

    @property
    def tail(self) -> bytes:
        return b"".join(self._last)


def open_own_csv(path: Path, *, lazy: bool = False, may_be_empty: bool = False) -> Source:
    """A CSV file that ``write_table`` wrote: commas, and any header, taken as it stands."""
    with while_reading(str(path), "table"):
        how = How(is_own=True, lazy=lazy)
        source = open_csv(lambda: path.open("rb"), str(path), how, signature=lambda: signature_of(path))
    return source if may_be_empty else refuse_empty(source)


def open_csv(
    open_bytes: Callable[[], BinaryIO],
    where: str,
    how: How,
    *,
    signature: Callable[[], tuple[int, ...]] = tuple,
) -> Source:
    """A CSV file. If it is not UTF-8 and ``how`` names no encoding, it may be Western European.

    ``signature`` is what changes when the file does.
    """
    try:
        return _csv_source(open_bytes, where, how, signature)
    except NotUtf8:
        if not how.can_be_western:
            raise
    with while_reading(where, "gzip-ed CSV file"):
        western = is_western(blocks_of(open_bytes, _unzip))
    source = _csv_source(open_bytes, where, replace(how, encoding=WESTERN if western else UTF8), signature)
    if not western:
        return source
    notice_western(where)
    return replace(source, encoding=WESTERN)


def _csv_source(
    open_bytes: Callable[[], BinaryIO], where: str, how: How, signature: Callable[[], tuple[int, ...]]
) -> Source:
    with while_reading(where, "gzip-ed CSV file"):
        with open_bytes() as file:
            head, rest = _as_utf8_text(file, where, how)
            layout = _layout(head, where, how)
            if not layout.has_rows:
                schema = pa.schema(list(zip(layout.names, layout.types, strict=True)))
                return source_of(schema.empty_table(), "csv", where)
            if how.lazy:
                return _lazy_csv(open_bytes, layout, where, signature)
            gauge = Gauge(where)
            body = _Body(head[layout.offset :], rest, gauge=gauge)
            try:
                table = _parse(body, layout)
            except pa.ArrowInvalid:
                table = None
            gauge.check()  # blocks may have been read ahead, before cells were made of them
        if table is None:
            raise _fault(open_bytes, layout, where)
    if table.num_rows:
        _check_quotes(table.column(table.num_columns - 1)[-1], body.tail, layout, where)
    return source_of(table, "csv", where)


def _lazy_csv(
    open_bytes: Callable[[], BinaryIO], opened: _Layout, where: str, signature: Callable[[], tuple[int, ...]]
) -> Source:
    """A CSV file that is read block by block."""
    known = signature()
    settled: list[_Layout] = []

    def batches(names: Sequence[str], _memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        settled[:] = settled or [_settle_encoding(open_bytes, opened, where)]
        layout = settled[0]
        last_column = layout.names[-1]  # its last cell tells whether the file ends inside quotes
        wanted = list(dict.fromkeys([*names, last_column]))
        last = None
        with while_reading(where, "gzip-ed CSV file"):
            with open_bytes() as file:
                count(file.seek(0, os.SEEK_END))
                file.seek(0)
                head, rest = _as_utf8_text(file, where, layout.how)
                body = _Body(head[layout.offset :], rest)
                try:
                    for batch in _reader(body, layout, names=wanted):
                        last = batch.column(last_column)[-1] if batch.num_rows else last
                        yield batch.select(list(names))
                    is_faulty = False
                except pa.ArrowInvalid:
                    is_faulty = True
            if is_faulty:
                raise _fault(open_bytes, layout, where)
        if last is not None:
            _check_quotes(last, body.tail, layout, where)
        if signature() != known:
            raise table_has_changed(where)

    def read(name: str) -> pa.ChunkedArray:
        found = [batch.column(0) for batch in batches([name], None, lambda _: None)]
        return pa.chunked_array(found, opened.types[opened.names.index(name)])

    return Source(without_index(opened.names), UNKNOWN, "csv", where, read, batches)


def _settle_encoding(open_bytes: Callable[[], BinaryIO], layout: _Layout, where: str) -> _Layout:
    """The layout with the encoding that the whole file has: its head may not show it."""
    if not layout.how.can_be_western:
        return layout
    with while_reading(where, "gzip-ed CSV file"):
        if not is_western(blocks_of(open_bytes, _unzip)):
            return layout
        how = replace(layout.how, encoding=WESTERN)
        with open_bytes() as file:
            found = _layout(_as_utf8_text(file, where, how)[0], where, how)
    if found.names != layout.names:
        return layout
    notice_western(where)
    return replace(found, types=layout.types)


def _unzip(file: BinaryIO) -> tuple[bytes, Any]:
    """The first bytes of the text, and the stream of those that follow."""
    head = file.read(HEAD_BYTES)
    if not head.startswith(b"\x1f\x8b"):
        return head, file
    rest = pa.CompressedInputStream(_Body(head, file), "gzip")
    return _Body(b"", rest).read(HEAD_BYTES), rest


def _as_utf8_text(file: BinaryIO, where: str, how: How) -> tuple[bytes, Any]:
    """What ``_unzip`` gives, as UTF-8."""
    head, rest = _unzip(file)
    if how.encoding in (None, UTF8):
        return head, rest
    text = Utf8Stream(_Body(head, rest), how.encoding, where, any_text=how.any_text)
    return _Body(b"", text).read(HEAD_BYTES), text


def _layout(head: bytes, where: str, how: How) -> _Layout:
    """What the head of a file shows; an error if that is no table, or one without a header."""
    is_own = how.is_own
    if not is_own:
        _check_is_text(head.partition(b"\n")[0] if how.any_text else head, where)
    if how.can_be_western and not is_utf8(head):
        raise NotUtf8(f"{where} is not UTF-8 text; {NAME_IT}.")
    bom = len(BOM) if head.startswith(BOM) else 0
    # Latin-1 has one character per byte, so that places in text and bytes agree.
    lines = io.StringIO(head[bom:].decode("latin-1"), newline="").readlines()
    is_whole = len(head) < HEAD_BYTES
    lines = lines if is_whole else lines[:-1]
    # where any text will do, no row has a say in how the others are read: the header alone decides
    fits = (lambda candidate: _agreement(lines, candidate)[1]) if how.any_text else partial(_agreement, lines)
    delimiter = "," if is_own else max(DELIMITERS, key=fits)
    (header, n_lines), *sample = _sample(lines, delimiter) or [([], 0)]
    is_closed = bool(_sample(lines[:n_lines], delimiter, strict=True))
    if not is_whole and n_lines in (0, len(lines)) and not is_closed:
        raise TableError(f"The header of {where} is over {HEAD_BYTES:,} bytes long; is a quote never closed?")
    try:
        spelled = [name.encode("latin-1").decode("utf-8") for name in header]
        names = tuple(spelled if is_own else [name.strip() for name in spelled])
    except UnicodeDecodeError:
        raise NotUtf8(f"The header of {where} is not UTF-8 text; {NAME_IT}.") from None
    if not is_own and all(re.fullmatch(NUMBER, name) for name in names):
        raise TableError(f"{where} begins with a line of numbers; put a header with column names above it.")
    if not is_own and not how.any_text and lacks_header(names, [row for row, _ in sample]):
        raise TableError(f"{where} has no header: {NO_HEADER}.")
    offset = bom + sum(map(len, lines[:n_lines]))
    check_names(names, where)
    has_rows = not is_whole or bool(head[offset:].strip(b"\r\n"))
    types = _types(len(names), [row for row, _ in sample])
    return _Layout(names, types, delimiter, offset, has_rows, how)


def _check_is_text(head: bytes, where: str) -> None:
    if not head.removeprefix(BOM).strip():
        raise TableError(f"{where} is empty; a table needs a header and rows.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{where} is UTF-16 text; say so (--encoding utf-16), or save it as UTF-8.")
    if head.startswith(b"PK\x03\x04"):
        raise TableError(
            f"{where} is a ZIP archive, or a spreadsheet other than .xlsx; save the table as CSV."
        )
    if looks_like_json(head):
        raise TableError(f"{where} is JSON, which is not read; save the table as CSV or Parquet.")
    if b"\0" in head:
        raise TableError(f"{where} is not a table: it holds neither text nor Parquet nor Arrow IPC.")


def _sample(lines: list[str], delimiter: str, *, strict: bool = False) -> list[tuple[list[str], int]]:
    """The first rows, each with the number of lines read so far; blank lines are passed over."""
    reader = csv.reader(lines, delimiter=delimiter, strict=strict)
    rows: list[tuple[list[str], int]] = []
    with suppress(csv.Error):  # the rows before a fault are sample enough; the full read reports it
        rows.extend((row, reader.line_num) for row in itertools.islice(reader, SAMPLE_ROWS) if row)
    return rows


def _agreement(lines: list[str], delimiter: str) -> tuple[float, int]:
    """How well a delimiter fits: the share of rows as wide as the header, then that width.

    >>> _agreement(["a;b", "1,5;2"], ";"), _agreement(["a;b", "1,5;2"], ",")
    ((1.0, 2), (0.0, 0))
    """
    widths = [len(row) for row, _ in _sample(lines, delimiter, strict=True)]
    if not widths or widths[0] < 2:
        return 0.0, 0
    return widths.count(widths[0]) / len(widths), widths[0]


def _types(n_columns: int, sample: list[list[str]]) -> tuple[pa.DataType, ...]:
    """The type of each column: a dictionary saves memory where cells repeat, and costs time where they do not."""
    rows = [row for row in sample if len(row) == n_columns]
    distinct = [len({row[column] for row in rows}) for column in range(n_columns)]
    return tuple(TEXTS if n <= max(20, len(rows) / 2) else pa.string() for n in distinct)


def _parse(body: _Body, layout: _Layout) -> pa.Table:
    return pacsv.read_csv(body, **_options(layout))


def _reader(body: _Body, layout: _Layout, **options: Any) -> Any:
    """What ``_parse`` gives, block by block."""
    return pacsv.open_csv(body, **_options(layout, **options))


def _options(
    layout: _Layout,
    *,
    names: Sequence[str] = (),
    use_threads: bool = True,
    on_ragged: Callable[[Any], str] | None = None,
) -> dict[str, Any]:
    types = dict(zip(layout.names, layout.types, strict=True))
    return {
        "read_options": pacsv.ReadOptions(
            column_names=layout.names, block_size=BLOCK_BYTES, use_threads=use_threads
        ),
        "parse_options": pacsv.ParseOptions(
            delimiter=layout.delimiter,
            newlines_in_values=True,
            ignore_empty_lines=len(types) > 1,  # in a table of one column it is a missing cell
            invalid_row_handler=on_ragged,
        ),
        "convert_options": pacsv.ConvertOptions(
            check_utf8=not layout.how.any_text,
            column_types=types,
            strings_can_be_null=False,
            include_columns=list(names),
        ),
    }


def _fault(open_bytes: Callable[[], BinaryIO], layout: _Layout, where: str) -> TableError:
    """What is wrong with a CSV file that Arrow refuses. Only in one thread does Arrow count rows."""
    ragged: list[Any] = []

    def remember(row: Any) -> str:
        ragged.append(row)
        return "error"

    def complaint(translation: bytes | None = None, **options: Any) -> str:
        with open_bytes() as file:
            head, rest = _as_utf8_text(file, where, layout.how)
            body = _Body(head[layout.offset :], rest, translation=translation)
            try:
                for _ in _reader(body, layout, use_threads=False, **options):
                    pass
            except pa.ArrowInvalid as error:
                return str(error)
        return ""

    complaint(TO_ASCII, on_ragged=remember)  # Arrow cannot hand over a ragged row that is not UTF-8
    if ragged:
        row = ragged[0]
        return TableError(
            f"Row {row.number} of {where} has {number_of(row.actual_columns, 'cell')} but the header has "
            f"{row.expected_columns}; mend the row, or quote cells that hold the delimiter."
        )
    message = complaint()
    if place := re.search(r"column #(\d+):(?: Row #(\d+):)?.*UTF8", message):
        name, row = layout.names[int(place[1])], f" in row {place[2]}" if place[2] else ""
        return NotUtf8(f"Column {name!r} of {where} holds text that is not UTF-8{row}; {NAME_IT}.")
    if "straddl" in message:
        return TableError(f"{where} has a row of more than {BLOCK_BYTES:,} bytes; is a quote never closed?")
    return TableError(f"{where} cannot be read as CSV; check its quotes and line ends.")


def _check_quotes(last: Any, tail: bytes, layout: _Layout, where: str) -> None:
    """Refuse a file where nothing closes the quote of the last cell: Arrow lets it swallow all rows that follow."""
    text = last.value if isinstance(last, pa.DictionaryScalar) else last
    cell, delimiter = text.as_buffer().to_pybytes(), layout.delimiter
    opened = b'"' + cell.replace(b'"', b'""')

    def ends_with_cell(text: bytes, raw: bytes) -> bool:
        return text.endswith(raw) and text[: -len(raw)][-1:] in (b"", b"\r", b"\n", delimiter.encode())

    if ends_with_cell(tail, opened) and not ends_with_cell(tail.rstrip(b"\r\n"), opened + b'"'):
        raise TableError(f"{where} ends inside a quoted cell: it is cut short, or a quote is never closed.")


def as_read_from_csv(table: pa.Table) -> pa.Table:
    """The table as it is read back from a CSV file: all cells are text, and empty ones are missing.

    >>> as_read_from_csv(pa.table({"ill": ["flu", ""], "charge": [1.5, 2.0]})).to_pylist()
    [{'ill': 'flu', 'charge': '1.5'}, {'ill': None, 'charge': '2'}]
    """
    columns = [
        texts(column if is_text(column.type) else _as_csv_text(column), Attribute(name, Role.OTHER))
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _as_csv_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([decode(chunk).cast(pa.string()) for chunk in column.chunks], pa.string())


_JSON = re.compile(rb'\s*(\{\s*(["}]|\Z)|\[\s*([{\["\]]|-?\d|true|false|null|\Z))')
_NUMBER_OR_DATE = re.compile(
    r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ][\d:.]+)?"
)


def looks_like_json(head: bytes) -> bool:
    r"""Whether a text begins as JSON does.

    >>> looks_like_json(b'[{"age": 30}]'), looks_like_json(b'{"age": 30}\n'), looks_like_json(b"[id],[age]\n")
    (True, True, False)
    """
    return _JSON.match(head) is not None


def lacks_header(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line is a row like those below it.

    Where some columns are numbers or dates, it is one if they all begin with a number or date, unless these ascend as
    years do and no text comes again below itself. In a table of text alone, it is one if most texts come again.

    >>> lacks_header(["39", "Private"], [["50", "Private"], ["38", "Private"]])
    True
    >>> lacks_header(["country", "2019", "2020"], [["Chad", "1", "2"], ["Mali", "3", "4"]])
    False
    """
    names = [name.strip() for name in header]
    columns = [
        [cell.strip() for cell in column]
        for column in zip(*(r for r in rows if len(r) == len(names)), strict=True)
    ]
    if not columns:
        return False
    each = list(zip(names, columns, strict=True))
    telling = [name for name, column in each if _are_numbers_or_dates(column)]
    if not all(map(_is_number_or_date, telling)):
        return False
    texts = [(name, column) for name, column in each if not _are_numbers_or_dates(column)]
    n_again = sum(bool(name) and column.count(name) > 1 for name, column in texts)
    if telling:
        return n_again > 0 or not _ascend(telling)
    return len(texts) > 1 and 2 * n_again > len(texts)


def _is_number_or_date(text: str) -> bool:
    return _NUMBER_OR_DATE.fullmatch(text) is not None


def _are_numbers_or_dates(cells: Sequence[str]) -> bool:
    present = [cell for cell in cells if cell]
    return bool(present) and all(map(_is_number_or_date, present))


def _ascend(names: Sequence[str]) -> bool:
    """Whether names are whole numbers that ascend, as those of years do."""
    if not all(name.isdecimal() for name in names):
        return False
    numbers = list(map(int, names))
    return all(first < second for first, second in itertools.pairwise(numbers))
