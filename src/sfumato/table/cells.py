"""What the cells of a column mean: as texts, numbers and days, whatever Arrow type holds them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import TableError, number_of
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.table import objects

TEXTS = pa.dictionary(pa.int32(), pa.string())
"""How ``texts`` gives a column: small integers into a dictionary of distinct texts."""


NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
FLOAT_WORDS = r"[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])"
DATE = r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)?)?"

TEXT = ("string", "large_string")
OTHER_TEXT = ("binary", "large_binary", "fixed_size_binary", "string_view", "binary_view")
NUMERIC = ("integer", "floating", "decimal", "boolean", "null")


def texts(column: Any, attribute: Attribute, *, spelling: int = 0) -> pa.DictionaryArray:
    """Cells as text: ``dictionary<int32, string>`` of exactly the texts that occur; null is missing.

    Empty cells, NaN and the attribute's ``missing_values`` are missing. Whole numbers that are stored
    as floats (pandas does so beside a missing one) read as whole, and times at midnight as dates, unless the
    ``spelling`` of the whole column, of which these cells are some, is another.

    >>> texts(pa.array([5.0, None, 7.0]), Attribute("floor", role="other")).to_pylist()
    ['5', None, '7']
    """
    encoded = encode(plain(column, attribute))
    return _with_words(encoded, _words(encoded.dictionary, attribute, spelling), attribute)


def spelling_of(column: Any, attribute: Attribute) -> int:
    """How ``texts`` spells these cells: the greatest one of some parts is that of all of them.

    >>> [spelling_of(pa.array(cells), Attribute("floor", role="other")) for cells in ([5.0, None], [5.5])]
    [0, 1]
    """
    values = encode(plain(column, attribute)).dictionary
    forms, found = _simpler_types(values.type), _simplest(values).type
    return forms.index(found) if found in forms else len(forms)


def as_stored(column: Any, attribute: Attribute) -> pa.DictionaryArray:
    """Cells told apart by what is stored: an empty text, null and NaN are three values, 0.0 and -0.0 are two.

    Floats come as the integers that have their bits.

    >>> cells = as_stored(pa.array(["", None, "a", ""]), Attribute("zip", role="other"))
    >>> cells.indices.to_pylist(), cells.dictionary.to_pylist()
    ([0, None, 1, 0], ['', 'a'])
    """
    stored = plain(column, attribute)
    if pa.types.is_floating(value_type(stored.type)):
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[value_type(stored.type).bit_width]
        stored = pa.chunked_array([decode(chunk).view(bits) for chunk in stored.chunks], bits)
    encoded = encode(stored)
    is_given = pa.types.is_dictionary(stored.type)
    if not is_given or len({len(chunk.dictionary) for chunk in stored.chunks}) > 1:
        return encoded  # made here: of cells, or of several dictionaries
    # whoever wrote the dictionary may have put a value there twice
    merged = encoded.dictionary.dictionary_encode()
    if len(merged.dictionary) == len(encoded.dictionary):
        return encoded
    return pa.DictionaryArray.from_arrays(merged.indices.take(encoded.indices), merged.dictionary)


def lenient_texts(column: Any, attribute: Attribute) -> pa.DictionaryArray:
    """``texts`` of each cell by itself: none depends on another cell, and text that is not UTF-8 is missing.

    A whole number reads as whole and a time at midnight as a date whatever the other cells are.

    >>> lenient_texts(pa.array([5.0, 5.5, None]), Attribute("floor", role="other")).to_pylist()
    ['5', '5.5', None]
    """
    encoded = encode(lenient_plain(_choose_reading(column, Kind.CATEGORY), attribute))
    return _with_words(encoded, _lenient_words(encoded.dictionary, attribute), attribute)


def _with_words(encoded: pa.DictionaryArray, words: pa.Array, attribute: Attribute) -> pa.DictionaryArray:
    """The cells with these texts of their distinct values; those that stand for a missing one are null."""
    is_missing = pc.is_in(words, value_set=pa.array(["", *attribute.missing_values], pa.string()))
    merged = pc.if_else(is_missing, None, words).dictionary_encode()
    if merged.null_count or len(merged.dictionary) < len(words):
        return pa.DictionaryArray.from_arrays(merged.indices.take(encoded.indices), merged.dictionary)
    return pa.DictionaryArray.from_arrays(encoded.indices, words)


def numbers(column: Any, attribute: Attribute) -> pa.Array:
    """Cells as finite numbers: int64 if all are whole and fit, else float64; null is missing.

    Text is trimmed and read as ``12``, ``-0.5`` or ``1e5``; nothing else counts as a number.

    >>> numbers(pa.array([" 1", "+2e1", ""]), Attribute("hours", role="other")).to_pylist()
    [1, 20, None]
    """
    stored = plain(column, attribute)
    if _is_whole(stored.type, attribute):
        return _join_chunks(stored).cast(pa.int64())
    values, indices = _distinct(stored)
    found = _number_cells(values, attribute)
    _refuse(found.is_unreadable, indices, attribute, "without a readable number")
    _refuse(pc.is_inf(found.floats), indices, attribute, "with an infinite number")
    present = _present_numbers(found.floats, attribute)
    return _spread(pc.if_else(pc.is_null(present), None, _narrowest(found.exact, present)), indices)


def dates(column: Any, attribute: Attribute) -> pa.Array:
    """Cells as days (date32), from dates, times or ISO text such as 2024-03-05; null is missing.

    >>> dates(pa.array(["2024-03-05", "2024-03-05 10:30"]), Attribute("day", role="other"))[1]
    <pyarrow.Date32Scalar: datetime.date(2024, 3, 5)>
    """
    values, indices = _distinct(plain(column, attribute))
    days, is_unreadable = _day_cells(values, attribute)
    _refuse(is_unreadable, indices, attribute, "without a readable date such as 2024-03-05")
    return _spread(days, indices)


def ordered(column: Any, attribute: Attribute) -> pa.Array:
    """Cells of a number, or those of a date as days since 1970; null is missing."""
    if attribute.kind is Kind.DATE:
        return dates(column, attribute).cast(pa.int32()).cast(pa.int64())
    return numbers(column, attribute)


def lenient_ordered(column: Any, attribute: Attribute) -> pa.Array:
    """``ordered`` of each cell by itself: what is no finite number, or no date, is missing.

    >>> lenient_ordered(pa.array(["1", "one", "inf", "2.5"]), Attribute("hours", "other", Kind.NUMBER)).to_pylist()
    [1.0, None, None, 2.5]
    """
    stored = lenient_plain(_choose_reading(column, attribute.kind), attribute)
    if _is_whole(stored.type, attribute):
        return numbers(stored, attribute)
    values, indices = _distinct(stored)
    if attribute.kind is Kind.DATE:
        return _spread(_day_cells(values, attribute)[0], indices).cast(pa.int32()).cast(pa.int64())
    floats = _number_cells(values, attribute).floats
    return _spread(_present_numbers(pc.if_else(pc.is_inf(floats), None, floats), attribute), indices)


def _is_whole(kind: pa.DataType, attribute: Attribute) -> bool:
    """Is every cell a whole and finite number, or missing as it is stored?"""
    return (
        attribute.kind is not Kind.DATE and pa.types.is_signed_integer(kind) and not attribute.missing_values
    )


class _ReadNumbers(NamedTuple):
    """Numbers in the most exact form there is, as float64, and which cells are neither number nor missing."""

    exact: Any
    floats: Any
    is_unreadable: Any


def _number_cells(values: Any, attribute: Attribute) -> _ReadNumbers:
    """The numbers of cells that are stored as numbers or as text."""
    if is_one_of(values.type, *TEXT):
        return _read_numbers(values, attribute.missing_values)
    if pa.types.is_decimal(values.type):  # Arrow's own conversion makes 0.30000000000000004 of 0.3
        return _ReadNumbers(values, values.cast(pa.string()).cast(pa.float64()), None)
    if is_one_of(values.type, *NUMERIC):
        return _ReadNumbers(values, values.cast(pa.float64(), safe=False), None)
    raise _unfit(values.type, attribute, "which is not a number")


def _present_numbers(floats: Any, attribute: Attribute) -> Any:
    """The numbers without those that stand for a missing one."""
    floats = pc.if_else(pc.is_nan(floats), None, floats)
    absent = _read_numbers(pa.array(attribute.missing_values, pa.string()), ()).floats
    return pc.if_else(pc.is_in(floats, value_set=absent.drop_null()), None, floats)


def _day_cells(values: Any, attribute: Attribute) -> tuple[Any, Any]:
    """The days of cells, and which are neither date nor missing."""
    is_unreadable = None
    if is_one_of(values.type, *TEXT):
        days, is_unreadable = _read_dates(values, attribute.missing_values)
    elif pa.types.is_timestamp(values.type):
        days = (pc.local_timestamp(values) if values.type.tz else values).cast(pa.date32())
    elif pa.types.is_date64(values.type):
        days = values.cast(pa.timestamp("ms")).cast(pa.date32())
    elif pa.types.is_date(values.type) or pa.types.is_null(values.type):
        days = values.cast(pa.date32())
    else:
        raise _unfit(values.type, attribute, "which is not a date")
    absent, _ = _read_dates(pa.array(attribute.missing_values, pa.string()), ())
    return pc.if_else(pc.is_in(days, value_set=absent.drop_null()), None, days), is_unreadable


def _read_numbers(cells: Any, missing: Sequence[str]) -> _ReadNumbers:
    """The numbers of texts; the most exact form is the text."""
    trimmed = _trim(cells, missing)
    with suppress(pa.ArrowInvalid):  # some cell is no number, and Arrow does not say which
        floats = trimmed.cast(pa.float64())
        if not pc.any(pc.is_nan(floats)).as_py():  # Arrow also takes nan(text) for a number
            return _ReadNumbers(trimmed, floats, None)
    is_number = pc.match_substring_regex(trimmed, f"^({NUMBER}|{FLOAT_WORDS})$")
    readable = pc.replace_substring_regex(pc.if_else(is_number, trimmed, None), r"^\+", "")
    return _ReadNumbers(readable, readable.cast(pa.float64()), pc.fill_null(pc.invert(is_number), False))


def _read_dates(cells: Any, missing: Sequence[str]) -> tuple[Any, Any]:
    """The days of ISO texts, and which cells are neither date nor missing."""
    trimmed = _trim(cells, missing)
    is_shaped = pc.match_substring_regex(trimmed, f"^{DATE}$")
    text = pc.utf8_slice_codeunits(pc.if_else(is_shaped, trimmed, None), 0, 10)
    days = pc.strptime(text, format="%Y-%m-%d", unit="s", error_is_null=True).cast(pa.date32())
    is_real = pc.equal(days.cast(pa.string()), text)  # strptime reads 30 February as 1 March
    days = pc.if_else(is_real, days, None)
    return days, pc.and_not(pc.is_null(days), pc.is_null(trimmed))


def _trim(cells: Any, missing: Sequence[str]) -> Any:
    """Texts without blanks around them; null where they stand for a missing value."""
    text = pc.utf8_trim_whitespace(cells.cast(pa.string()))
    words = pa.array(["", *(word.strip() for word in missing)], pa.string())
    return pc.if_else(pc.is_in(text, value_set=words), None, text)


def _narrowest(exact: Any, floats: Any) -> Any:
    """int64 where that loses nothing: from the exact form, or from floats below 2**53, which are exact."""
    if not pc.all(pc.equal(pc.trunc(floats), floats), min_count=0).as_py():
        return floats
    with suppress(pa.ArrowInvalid):
        return exact.cast(pa.int64())
    is_small = pc.all(pc.less(pc.abs(floats), 2.0**53), min_count=0).as_py()
    return floats.cast(pa.int64()) if is_small else floats


def _refuse(is_bad: Any, indices: pa.Array | None, attribute: Attribute, what: str) -> None:
    """Raise if some values are bad; the error counts the rows that have them."""
    if is_bad is None or not pc.any(is_bad).as_py():
        return
    rows = pc.fill_null(_spread(is_bad, indices), False)
    raise UnreadableCells(attribute.name, what, np.flatnonzero(rows.to_numpy(zero_copy_only=False)))


class UnreadableCells(TableError):  # noqa: N818 - reads as a sentence
    """Cells that are not what their column is declared to be; ``at`` are their places, from 0.

    >>> fault = UnreadableCells("age", "without a readable number", np.array([6]))
    >>> str(fault)[:70]
    "Column 'age' has 1 cell without a readable number (the first in row 7)"
    >>> str(fault.after(1000))[:84]
    "Column 'age' has at least 1 cell without a readable number (the first in row 1,007);"
    """

    def __init__(
        self, name: str, what: str, at: NDArray[np.int64], *, n: int | None = None, first: int | None = None
    ) -> None:
        self.name, self.what, self.at = name, what, at
        self.n, self.first = len(at) if n is None else n, int(at[0]) if first is None else first
        super().__init__(self._sentence(""))

    def _sentence(self, at_least: str) -> str:
        return (
            f"Column {self.name!r} has {at_least}{number_of(self.n, 'cell')} {self.what} (the first in row "
            f"{self.first + 1:,}); mend them, or list the texts that stand for a missing value under missing-values."
        )

    def after(self, n_rows: int) -> TableError:
        """The same of a batch that comes after so many rows."""
        self.first += n_rows
        return TableError(self._sentence("at least "))

    def among(self, count: NDArray[np.int64], first: NDArray[np.int64]) -> TableError:
        """The same where the cells were distinct values: how many rows have each, and the first that has."""
        n, row = int(count[self.at].sum()), int(first[self.at].min())
        return UnreadableCells(self.name, self.what, self.at, n=n, first=row)


def _words(values: pa.Array, attribute: Attribute, spelling: int = 0) -> pa.Array:
    """The text of distinct values of any plain type."""
    try:
        return _simplest(values, spelling).cast(pa.string())
    except pa.ArrowException:
        raise _unfit(values.type, attribute, "which has no text") from None


def _choose_reading(column: Any, kind: Kind) -> Any:
    """Of a column of Python objects, what each says as a cell of this kind; any other column as it is."""
    if column.type != objects.READINGS:
        return column
    words = pc.struct_field(column, "words")
    if kind is Kind.CATEGORY:
        return pc.coalesce(words, pc.struct_field(column, "text"))
    anything = Attribute("", Role.OTHER, kind)
    if kind is Kind.DATE:
        return pc.coalesce(pc.struct_field(column, "day"), _day_cells(words, anything)[0])
    return pc.coalesce(pc.struct_field(column, "number"), _number_cells(words, anything).floats)


def _lenient_words(values: pa.Array, attribute: Attribute) -> pa.Array:
    """The text that each value has by itself."""
    if pa.types.is_decimal(values.type):  # zeros at the end tell of the other cells of the column
        words = pc.replace_substring_regex(values.cast(pa.string()), r"^(-?\d+\.\d*[1-9])0+$", r"\1")
        return pc.replace_substring_regex(words, r"^(-?\d+)\.0+$", r"\1")
    is_float = pa.types.is_floating(values.type)
    if not is_float and (not pa.types.is_timestamp(values.type) or values.type.tz):
        return _words(values, attribute)
    try:
        words = values.cast(pa.string())
        for simpler in (pa.int64(),) if is_float else (pa.timestamp("s"), pa.date32()):
            simple = values.cast(simpler, safe=False)
            is_same = pc.fill_null(pc.equal(simple.cast(values.type, safe=False), values), False)
            words = pc.if_else(is_same, simple.cast(pa.string()), words)
        return pc.if_else(pc.is_nan(values), None, words) if is_float else words
    except pa.ArrowException:
        raise _unfit(values.type, attribute, "which has no text") from None


def _simplest(values: pa.Array, spelling: int = 0) -> pa.Array:
    """Whole floats as integers, times at midnight as dates, where that holds of every value.

    A ``spelling`` leaves out so many of the simpler types.
    """
    simpler = _simpler_types(values.type)[spelling:]
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
        floats = pc.add(values, pa.scalar(0, values.type))  # -0.0 + 0 is 0.0
        return _narrowest(values, floats) if simpler else floats
    for kind in simpler:
        if values.cast(kind, safe=False).cast(values.type).equals(values):
            return values.cast(kind)
    return values


def _simpler_types(kind: pa.DataType) -> tuple[pa.DataType, ...]:
    """As which types values of a type may be spelled, the simplest first."""
    if pa.types.is_floating(kind):
        return (pa.int64(),)
    return (pa.date32(), pa.timestamp("s")) if pa.types.is_timestamp(kind) and not kind.tz else ()


def is_one_of(kind: pa.DataType, *words: str) -> bool:
    """Whether an Arrow type is one of those that ``pyarrow.types.is_<word>`` knows."""
    return any(getattr(pa.types, f"is_{word}")(kind) for word in words)


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of an Arrow type are text, in whichever way they are stored."""
    return is_one_of(value_type(kind), *TEXT, *OTHER_TEXT)


def value_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type of the cells themselves, with a dictionary or without."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_plain(kind: pa.DataType) -> bool:
    """Whether a cell of an Arrow type holds one value."""
    value = value_type(kind)
    return not pa.types.is_nested(value) and not isinstance(value, pa.BaseExtensionType)


def plain(column: Any, attribute: Attribute) -> pa.ChunkedArray:
    """The column as chunks of single values; text that is stored in other ways as plain text."""
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if not is_plain(column.type):
        raise _unfit(column.type, attribute, "where a cell must hold one value")
    kind = value_type(column.type)
    try:
        if is_one_of(kind, *OTHER_TEXT):
            return pa.chunked_array([decode(chunk) for chunk in column.chunks], kind).cast(pa.string())
        for chunk in column.chunks if is_one_of(column.type, "dictionary", *TEXT) else ():
            refuse_damaged(chunk)
    except pa.ArrowException as error:
        not_utf8, damaged = (
            "holds text that is not UTF-8; save it as UTF-8",
            "is damaged; make or copy it again",
        )
        if "UTF8" in str(error):
            raise NotUtf8(f"Column {attribute.name!r} {not_utf8}.") from None
        raise TableError(f"Column {attribute.name!r} {damaged}.") from None
    return column


def refuse_damaged(cells: pa.Array) -> None:
    """Raise ``pa.ArrowInvalid`` if cells are damaged: Parquet checks neither text nor indices.

    It is Arrow's own full validation, which looks at the indices of a dictionary ten times as long.
    """
    if not isinstance(cells, pa.DictionaryArray):
        cells.validate(full=True)
        return
    cells.validate()
    cells.indices.validate(full=True)
    cells.dictionary.validate(full=True)
    least, greatest = pc.min_max(cells.indices).as_py().values()
    if least is not None and not 0 <= least <= greatest < len(cells.dictionary):
        raise pa.ArrowInvalid("An index is outside the dictionary.")


class NotUtf8(TableError):  # noqa: N818 - what it is
    """A cell of text is not UTF-8."""


def lenient_plain(column: Any, attribute: Attribute) -> pa.ChunkedArray:
    """``plain``, but text that is not UTF-8 is missing."""
    try:
        return plain(column, attribute)
    except NotUtf8:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        cells = [decode(chunk).cast(pa.binary()).to_pylist() for chunk in chunks]
        return pa.chunked_array([[_as_utf8(cell) for cell in chunk] for chunk in cells], pa.string())


def _as_utf8(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _unfit(kind: pa.DataType, attribute: Attribute, why: str) -> TableError:
    return TableError(f"Column {attribute.name!r} is stored as {kind}, {why}; convert it, or drop it.")


def encode(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """One dictionary with 32-bit indices for the whole column, without values that no row has."""
    join = pa.DictionaryArray.from_arrays
    if not pa.types.is_dictionary(column.type):
        chunks = column.dictionary_encode().chunks or [pa.array([], pa.dictionary(pa.int32(), column.type))]
        return join(pa.concat_arrays([chunk.indices for chunk in chunks]), chunks[0].dictionary)
    chunks = [join(chunk.indices.cast(pa.int32()), chunk.dictionary) for chunk in column.chunks]
    whole = pa.chunked_array(chunks, pa.dictionary(pa.int32(), column.type.value_type))
    try:
        whole = whole.unify_dictionaries()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a null inside a dictionary
        return encode(pa.chunked_array([decode(chunk) for chunk in chunks]))
    if not whole.num_chunks:
        return whole.combine_chunks()
    indices = pa.concat_arrays([chunk.indices for chunk in whole.chunks])
    return _drop_unused(join(indices, whole.chunk(0).dictionary))


def _drop_unused(encoded: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same cells, with a dictionary of the values that occur and no others."""
    indices = encoded.indices.drop_null() if encoded.null_count else encoded.indices
    is_used = which_occur(indices.to_numpy(), len(encoded.dictionary))
    if is_used.all():
        return encoded
    return reorder(encoded, np.flatnonzero(is_used))


def which_occur(codes: NDArray[Any], n: int) -> NDArray[np.bool_]:
    """Which of ``n`` codes occur.

    If all do in the first rows, the others are not looked at; else one row of each stretch of equal codes is.

    >>> which_occur(np.array([2, 2, 0]), 3).tolist()
    [True, False, True]
    """
    is_there: NDArray[np.bool_] = np.bincount(codes[:BATCH_ROWS], minlength=n) > 0
    if len(codes) > BATCH_ROWS and not is_there.all():
        one_of_each = np.append(codes[np.flatnonzero(codes[1:] != codes[:-1])], codes[-1])
        is_there = np.bincount(one_of_each, minlength=n) > 0
    return is_there


def reorder(encoded: pa.DictionaryArray, kept: Any) -> pa.DictionaryArray:
    """The same cells, with these values of the dictionary in this order."""
    place = np.zeros(len(encoded.dictionary), dtype=np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    indices = pa.array(place).take(encoded.indices)
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary.take(pa.array(kept)))


def decode(chunk: pa.Array) -> pa.Array:
    """The same cells without a dictionary."""
    return chunk.dictionary_decode() if isinstance(chunk, pa.DictionaryArray) else chunk


def _distinct(column: pa.ChunkedArray) -> tuple[Any, pa.Array | None]:
    """The distinct values and each row's index into them; of a column without a dictionary all values, and None."""
    if not pa.types.is_dictionary(column.type):
        return column, None
    encoded = encode(column)
    return encoded.dictionary, encoded.indices


def _spread(values: Any, indices: pa.Array | None) -> pa.Array:
    """The value of each row: the way back from ``_distinct``."""
    if indices is not None:
        return values.take(indices)
    return _join_chunks(values) if isinstance(values, pa.ChunkedArray) else values


def _join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """The cells in one chunk; Arrow would copy also those that are."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def give_back_memory() -> None:
    """Hand freed memory back to the system: Arrow and glibc keep what a stage no longer needs."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)


BATCH_ROWS = 1 << 16
"""Rows that are looked at in one go."""
