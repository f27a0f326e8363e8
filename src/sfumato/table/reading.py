"""How the text of a table is written: its encoding, the decimal sign of its numbers, the format of its dates.

A :class:`Reading` says what cannot be seen from the table. :func:`open_as` opens a table by it, and by the schema that
says which columns are numbers and dates: their cells come as ``1.5`` and ``2024-03-05``, so that nobody else needs to
know how they were written. What a reading leaves open is recognized in the first rows where that is safe, and a
:class:`~sfumato.errors.Notice` says so. Under a differentially private method nothing is recognized: it is declared,
or the default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError, TableError, notice
from sfumato.policy.hierarchy.declarations import Mask
from sfumato.policy.schema import MISSING_TEXTS, Attribute, Kind, Role, Schema
from sfumato.table import cells as table_cells
from sfumato.table.cells import BATCH_ROWS, NUMBER
from sfumato.table.objects import READINGS
from sfumato.table.opening import open_table
from sfumato.table.source import Count, Source, Stream, slices_of
from sfumato.table.text_encoding import check_encoding

DOT, COMMA = ".", ","
GERMAN_DATES = "%d.%m.%Y"
ISO_DAY = "2001-02-03"
MIXED_KINDS = ("excel", "database")
"""Kinds of tables in which a column may hold numbers beside texts of numbers."""

LOOKED_AT = BATCH_ROWS
"""Rows from the beginning in which decimal signs, dates and lost zeros are looked for."""

_EXPONENT = r"([eE][+-]?\d+)?"
_NUMBER_LIKE = rf"^[+-]?[\d.,]+{_EXPONENT}$"
_WITH_COMMA = rf"^[+-]?(\d{{1,3}}(\.\d{{3}})+|\d+|)(,\d*)?{_EXPONENT}$"
_SURELY_COMMA = rf"^[+-]?(\d{{1,3}}(\.\d{{3}})+,\d+|\d+,(\d{{1,2}}|\d{{4,}})|0*,\d+){_EXPONENT}$"
_GERMAN_DAY = r"^\d{1,2}\.\d{1,2}\.\d{4}$"
_PLAIN_NUMBER = rf"^{NUMBER}$"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the text of a table is written: its ``encoding``, ``decimal`` sign ("." or ",") and the format of ``dates``.

    What is None is recognized, or as usual: UTF-8, a decimal point, dates such as 2024-03-05.

    >>> Reading(encoding="latin-1", decimal=",", dates="%d.%m.%Y").encoding
    'cp1252'
    """

    encoding: str | None = None
    decimal: str | None = None
    dates: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            object.__setattr__(self, "encoding", check_encoding(self.encoding))
        if self.decimal not in (None, DOT, COMMA):
            raise InputError("The decimal sign (--decimal) is . or , alone.")
        if self.dates is not None and not _is_date_format(self.dates):
            raise InputError(
                "The format of dates (--dates) names day, month and year, such as %d.%m.%Y or %m/%d/%Y."
            )

    @property
    def as_options(self) -> str:
        """The same on the command line.

        >>> Reading(decimal=",", dates="%d.%m.%Y").as_options
        ' --decimal , --dates "%d.%m.%Y"'
        """
        said = {"encoding": self.encoding, "decimal": self.decimal, "dates": self.dates and f'"{self.dates}"'}
        return "".join(f" --{word} {value}" for word, value in said.items() if value is not None)


AS_USUAL = Reading()

POSTCODES = "zip zipcode postcode postal plz postalcode postleitzahl codepostal codigopostal"
"""Words that name a column of postal codes."""


def _is_date_format(text: str) -> bool:
    """Whether a day that is written in a format is read back as the same day."""
    day = datetime(1987, 6, 5)  # noqa: DTZ001 - a day has no time zone
    try:
        return datetime.strptime(day.strftime(text), text).date() == day.date()  # noqa: DTZ007
    except (ValueError, TypeError, re.error):
        return False


def open_as(
    table: Any, schema: Schema, reading: Reading = AS_USUAL, *, is_private: bool = False, **options: Any
) -> Source:
    """The table behind a path or a frame, its numbers and dates in the usual notation.

    Under a differentially private method nothing depends on what the cells look like: nothing is recognized, and
    neither a table without rows nor text that cannot be read is an error. ``options`` are those of ``open_table``.
    """
    if is_private:
        options = {"may_be_empty": True, "any_text": True, **options}
    source = open_table(table, encoding=reading.encoding, **options)
    schema = schema.expand(source.names)
    if not is_private:
        reading = recognize(source, schema, reading)
        notice_lost_zeros(source, schema)
    return in_usual_notation(source, schema, reading, is_private=is_private)


# ---- the usual notation ----------------------------------------------------------------------------


def in_usual_notation(
    source: Source, schema: Schema, reading: Reading, *, is_private: bool = False
) -> Source:
    """The same table with numbers as 1.5 and dates as 2024-03-05, where they are text and columns are such.

    >>> from sfumato.table.opening import open_table
    >>> schema = Schema.of(bmi={"role": "other", "kind": "number"}, zip="other")
    >>> rows = open_table(pa.table({"bmi": ["21,5", "1.023,5"], "zip": ["1,5", "2"]}))
    >>> read = in_usual_notation(rows, schema, Reading(decimal=","))
    >>> read.column("bmi").to_pylist(), read.column("zip").to_pylist()
    (['21.5', '1023.5'], ['1,5', '2'])
    """
    rewrite = {
        attribute.name: partial(_rewrite, attribute=attribute, change=change, is_private=is_private)
        for attribute in schema.expand(source.names)
        if attribute.name in source.names and (change := _change(attribute, reading, source.kind))
    }
    if not rewrite:
        return source

    def read(name: str) -> pa.ChunkedArray:
        column = source.read(name)
        return rewrite[name](column) if name in rewrite else column

    stream = None if source.stream is None else RewrittenStream(source.stream, rewrite)
    return replace(source, read=read, stream=stream)


@dataclass(frozen=True, slots=True, eq=False)
class RewrittenStream:
    """A stream in which the cells of some columns are written anew. It can be pickled if the stream can."""

    stream: Stream
    rewrite: Mapping[str, Callable[[pa.ChunkedArray], pa.ChunkedArray]]

    def __call__(self, names: Sequence[str], memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        for batch in self.stream(names, memory, count):
            columns = [
                self.rewrite[name](pa.chunked_array([column])).combine_chunks()
                if name in self.rewrite
                else column
                for name, column in zip(names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, list(names))

    def slices(self, most: int) -> list[tuple[int, RewrittenStream]]:
        """As those of the stream itself."""
        return [(n_rows, replace(self, stream=own)) for n_rows, own in slices_of(self.stream, most)]


Change = Callable[[pa.Array], pa.Array]


def _change(attribute: Attribute, reading: Reading, source_kind: str) -> Change | None:
    """How the texts of a column become the usual ones."""
    if attribute.kind is Kind.NUMBER and reading.decimal == COMMA:
        return _with_decimal_point_beside_numbers if source_kind in MIXED_KINDS else _with_decimal_point
    if attribute.kind is Kind.DATE and reading.dates is not None:
        return partial(_as_iso, form=reading.dates)
    return None


def _rewrite(
    column: pa.ChunkedArray, *, attribute: Attribute, change: Change, is_private: bool
) -> pa.ChunkedArray:
    """A column with its texts changed, but for those that stand for a missing value; other types stay."""
    if column.type == READINGS:
        objects = [_rewrite_objects(chunk, change, attribute.missing_values) for chunk in column.chunks]
        return pa.chunked_array(objects, READINGS)
    if not table_cells.is_text(column.type):
        return column
    cells = (table_cells.lenient_plain if is_private else table_cells.plain)(column, attribute)
    chunks = [_rewrite_texts(chunk, change, attribute.missing_values) for chunk in cells.chunks]
    return pa.chunked_array(chunks, cells.type)


def _rewrite_objects(chunk: pa.StructArray, change: Change, missing: Iterable[str]) -> pa.StructArray:
    """Python objects with the words of those that are text changed."""
    words, *others = chunk.flatten()
    return pa.StructArray.from_arrays(
        [_rewrite_texts(words, change, missing), *others], fields=list(READINGS)
    )


def _rewrite_texts(chunk: pa.Array, change: Change, missing: Iterable[str]) -> pa.Array:
    """Texts changed, each distinct one once; those that stand for a missing value stay."""
    encoded = chunk if isinstance(chunk, pa.DictionaryArray) else chunk.dictionary_encode()
    words = encoded.dictionary.cast(pa.string())
    trimmed = pc.utf8_trim_whitespace(words)
    changed = pc.if_else(_is_missing(trimmed, missing), words, change(trimmed)).cast(encoded.dictionary.type)
    if not isinstance(chunk, pa.DictionaryArray):
        return changed.take(encoded.indices)
    merged = changed.dictionary_encode()  # 1,5 and 1,50 stay two texts, 1.000 and 1000 become one
    indices = merged.indices.take(encoded.indices).cast(chunk.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, merged.dictionary)


def _with_decimal_point(words: pa.Array) -> pa.Array:
    """1.234,5 as 1234.5; a number that is written otherwise is made unreadable: 1.5 is none with a decimal comma."""
    is_number = pc.match_substring_regex(words, _NUMBER_LIKE)
    is_right = pc.match_substring_regex(words, _WITH_COMMA)
    right = pc.replace_substring(pc.replace_substring(words, DOT, ""), COMMA, DOT)
    wrong = pc.replace_substring(words, DOT, COMMA)
    return pc.if_else(is_number, pc.if_else(is_right, right, wrong), words)


def _with_decimal_point_beside_numbers(words: pa.Array) -> pa.Array:
    """The same where some cells were stored as numbers: what has no comma is one of those, 1.234 too."""
    return pc.if_else(pc.match_substring(words, COMMA), _with_decimal_point(words), words)


def _as_iso(words: pa.Array, *, form: str) -> pa.Array:
    """Days as 2024-03-05. What is not written in this format stays as it is, or unreadable.

    It must not be read as another day: where the format is %Y-%d-%m, 2024-03-25 was refused, and becomes 2024/03/25.
    """
    clashes = _day_of(ISO_DAY, form) not in (None, ISO_DAY)  # as in %Y-%d-%m
    days = []
    for word in words.to_pylist():
        day = None if word is None else _day_of(word, form)
        kept = word.replace("-", "/") if clashes and word is not None else word
        days.append(kept if day is None else day)
    return pa.array(days, pa.string())


@lru_cache(1 << 16)
def _day_of(word: str, form: str) -> str | None:
    """A day as 2024-03-05; None if the word is not written in this format."""
    try:
        return datetime.strptime(word, form).date().isoformat()  # noqa: DTZ007 - days have no time zone
    except ValueError:
        return None


def open_undeclared(table: Any, reading: Reading = AS_USUAL) -> tuple[Source, Reading]:
    """``open_as`` without a schema, and how the text is written: columns that look like numbers or dates are such."""
    source = open_table(table, encoding=reading.encoding)
    reading = replace(reading, encoding=source.encoding or reading.encoding)
    schema = _as_it_looks(source, reading)
    reading = recognize(source, schema, reading)
    return in_usual_notation(source, schema, reading), reading


# ---- what the first rows show ----------------------------------------------------------------------


def recognize(source: Source, schema: Schema, reading: Reading) -> Reading:
    """The reading with a decimal comma and German dates where the first rows show them; a notice says so of each.

    Nothing is recognized that could also mean something else: 1,234 may be a thousand, 03/05/2024 a day in March.

    >>> from sfumato.table.opening import open_table
    >>> import warnings
    >>> rows = open_table(pa.table({"born": ["31.12.1980", "1.2.1999"]}))
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     recognize(rows, Schema.of(born={"role": "other", "kind": "date"}), Reading()).dates
    '%d.%m.%Y'
    """
    open_kinds = [
        kind for kind, said in ((Kind.NUMBER, reading.decimal), (Kind.DATE, reading.dates)) if said is None
    ]
    names = [a.name for a in schema if a.kind in open_kinds and a.name in source.names]
    texts = {name: cells for name, cells in first_texts(source, names).items() if cells is not None}
    texts = {name: _without(cells, schema[name].missing_values) for name, cells in texts.items()}
    numbers = {name: cells for name, cells in texts.items() if schema[name].kind is Kind.NUMBER}
    if source.kind in MIXED_KINDS:
        numbers = {name: cells.filter(pc.match_substring(cells, COMMA)) for name, cells in numbers.items()}
    days = {name: cells for name, cells in texts.items() if schema[name].kind is Kind.DATE}
    return _with_dates(_with_decimal(reading, numbers, source.where), days, source.where)


def _as_it_looks(source: Source, reading: Reading) -> Schema:
    """A schema of the columns that hold nothing but numbers or dates, however they are written."""
    found = []
    for name, cells in first_texts(source, source.names).items():
        if cells is None:
            continue
        words = _without(cells, MISSING_TEXTS)
        if not len(words):
            continue
        if _are_days(words, reading.dates):
            found.append(Attribute(name, Role.OTHER, Kind.DATE, missing_values=MISSING_TEXTS))
        elif _all(words, f"{_PLAIN_NUMBER}|{_WITH_COMMA}"):
            found.append(Attribute(name, Role.OTHER, Kind.NUMBER, missing_values=MISSING_TEXTS))
    return Schema(tuple(found))


def _are_days(words: pa.Array, form: str | None) -> bool:
    if form is None:
        return has_german_dates(words)
    return all(_day_of(word, form) is not None for word in words.to_pylist())


def first_texts(source: Source, names: Sequence[str]) -> dict[str, pa.Array | None]:
    """The distinct texts of columns in the first rows, trimmed; None where cells are no text."""
    cells = _first_cells(source, [name for name in names if name not in source.no_texts])
    return {name: _distinct_texts(cells[name].chunks) if name in cells else None for name in names}


def _first_cells(source: Source, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """The cells of columns in the first rows."""
    if not names:
        return {}
    parts: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in source.batches(names, rows=LOOKED_AT):
        parts.append(batch.slice(0, LOOKED_AT - n_rows))
        n_rows += parts[-1].num_rows
        if n_rows >= LOOKED_AT:
            break
    return {name: pa.chunked_array([part.column(name) for part in parts]) for name in names} if parts else {}


def _without(words: pa.Array, missing: Iterable[str]) -> pa.Array:
    """The words that stand for no missing value."""
    return words.filter(pc.invert(_is_missing(words, missing)))


def _is_missing(words: pa.Array, missing: Iterable[str]) -> pa.Array:
    return pc.is_in(words, value_set=pa.array(["", *(word.strip() for word in missing)]))


def _distinct_texts(chunks: list[pa.Array]) -> pa.Array | None:
    if not chunks or not all(table_cells.is_text(chunk.type) for chunk in chunks):
        return None
    attribute = Attribute("", Role.OTHER)
    words = [table_cells.lenient_plain(chunk, attribute).unique() for chunk in chunks]
    plain = [word.dictionary_decode() if isinstance(word, pa.DictionaryArray) else word for word in words]
    return pc.utf8_trim_whitespace(
        pa.concat_arrays([word.cast(pa.string()) for word in plain]).drop_null()
    ).unique()


def _with_decimal(reading: Reading, columns: dict[str, pa.Array], where: str) -> Reading:
    shown = [name for name, cells in columns.items() if has_decimal_commas(cells)]
    if not shown or any(_contradicts_comma(cells) for cells in columns.values()):
        return reading
    notice(
        f"{where}: numbers with a decimal comma, such as those of {_some(shown)}, are read as such. "
        "If that is wrong, say --decimal ."
    )
    return replace(reading, decimal=COMMA)


def has_decimal_commas(cells: pa.Array) -> bool:
    """Whether some texts are numbers with a decimal comma, and cannot be anything else.

    >>> [has_decimal_commas(pa.array([text])) for text in ("1,5", "0,125", "1,234", "1.5", "a,b")]
    [True, True, False, False, False]
    """
    return _any(cells, _SURELY_COMMA) and not _contradicts_comma(cells)


def _contradicts_comma(cells: pa.Array) -> bool:
    """Whether a text is a number, but none with a decimal comma."""
    numbers = cells.filter(pc.match_substring_regex(cells, _NUMBER_LIKE))
    return not _all(numbers, _WITH_COMMA)


def _with_dates(reading: Reading, columns: dict[str, pa.Array], where: str) -> Reading:
    shown = [name for name, cells in columns.items() if has_german_dates(cells)]
    if not shown:
        return reading
    notice(
        f"{where}: dates written as day.month.year, such as those of {_some(shown)}, are read as such. "
        "If that is wrong, name their format (--dates)."
    )
    return replace(reading, dates=GERMAN_DATES)


def has_german_dates(cells: pa.Array) -> bool:
    """Whether all texts are days such as 31.12.2024.

    >>> has_german_dates(pa.array(["31.12.2024", "1.2.1999"])), has_german_dates(pa.array(["31.13.2024"]))
    (True, False)
    """
    return bool(len(cells)) and _all(cells, _GERMAN_DAY) and _are_days(cells, GERMAN_DATES)


def _any(cells: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(cells, pattern), min_count=0).as_py())


def _all(cells: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells, pattern), min_count=0).as_py())


def _some(names: Sequence[str]) -> str:
    """Names of columns in a sentence: three of them, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:3])
    return shown + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


# ---- codes that lost their zeros ---------------------------------------------------------------------


def notice_lost_zeros(source: Source, schema: Schema) -> None:
    """Say of codes that are stored as numbers of several lengths that zeros may be lost: 2139 was 02139.

    >>> from sfumato.table.opening import open_table
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     notice_lost_zeros(open_table(pa.table({"zip": [2139, 53715]})), Schema.of(zip="other"))
    >>> str(said[0].message)[:62]
    "pyarrow.Table: column 'zip' holds numbers of 4 to 5 digits whe"
    """
    names = [a.name for a in schema if _is_code(a) and a.name in source.names]
    for name, column in _first_cells(source, names).items():
        lengths = _lengths_of_numbers(column)
        if len(lengths) > 1:
            notice(
                f"{source.where}: column {name!r} holds numbers of {lengths[0]} to {lengths[-1]} digits where codes have "
                "one length: leading zeros seem to be lost. Read it as text from the start (pandas: "
                f"read_csv(..., dtype={{{name!r}: str}}))."
            )


def _is_code(attribute: Attribute) -> bool:
    """Whether a category is a postal code by its name, or masked digit by digit."""
    if attribute.kind is not Kind.CATEGORY or not attribute.role.is_published:
        return False
    is_masked = isinstance(attribute.hierarchy, Mask)
    return is_masked or not {*re.split(r"[^a-z]+", attribute.name.lower())}.isdisjoint(POSTCODES.split())


def _lengths_of_numbers(column: pa.ChunkedArray) -> list[int]:
    """The lengths of whole numbers; none where cells are no such, or where some begin with a zero."""
    if not (
        table_cells.is_text(column.type)
        or pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
    ):
        return []
    try:
        words = table_cells.texts(column, Attribute("", Role.OTHER)).dictionary
    except TableError:
        return []
    present = _without(pc.utf8_trim_whitespace(words), MISSING_TEXTS)
    if not _all(present, r"^[1-9]\d*$"):
        return []
    return sorted(pc.utf8_length(present).unique().to_pylist())
