"""Python objects as cells: each is read by itself, whatever stands beside it.

Arrow infers one type from all objects of a column: a single ``Decimal("1.5")`` among whole numbers makes "1.0" of
every 1. Under differential privacy that would be one row changing all others, so that no object is ever handed to
that inference there. What an object says follows from the object alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.policy.kinds import count_days

READINGS = pa.struct({"words": pa.string(), "text": pa.string(), "number": pa.float64(), "day": pa.date32()})
"""What each object says: its words if it is text, else its text, its number and its day, if it has them."""

MISSING_TYPES = ("NoneType", "NAType", "NaTType")  # those of pandas are known by name, without importing it
MOST_DIGITS = 60
"""Digits of a decimal that are spelled out; 1E+999999 keeps its own spelling."""

NUMBERS = {int, float, np.int64, np.float64}
"""Types of objects that Arrow joins in one column as they should be joined."""


class ObjectReading(NamedTuple):
    """What one object says."""

    words: str | None = None
    text: str | None = None
    number: float | None = None
    day: int | None = None


NOTHING = ObjectReading()


def readings_of(cells: Iterable[object]) -> pa.StructArray:
    """The readings of all objects of a column.

    >>> readings_of([True, Decimal("1.50")]).field("text").to_pylist()
    ['true', '1.5']
    """
    found = [_read(cell) for cell in cells]
    columns = list(zip(*found, strict=True)) if found else [(), (), (), ()]
    words, texts, numbers, days = (list(column) for column in columns)
    return pa.StructArray.from_arrays(
        [
            pa.array(words, pa.string()),
            pa.array(texts, pa.string()),
            pa.array(numbers, pa.float64()),
            pa.array(days, pa.int32()).cast(pa.date32()),
        ],
        fields=list(READINGS),
    )


def texts_of(cells: Iterable[object]) -> pa.Array:
    """The text of each object; null where there is none.

    >>> texts_of([5.0, 2.5, None, b"a"]).to_pylist()
    ['5', '2.5', None, 'a']
    """
    readings = readings_of(cells)
    return pc.coalesce(readings.field("words"), readings.field("text"))


def are_alike(cells: Sequence[object]) -> bool:
    """Can Arrow make one column of these objects, apart from missing ones?

    It makes [1, 2] of ``np.float16(1.5)`` and 2, and ends the process where a NumPy number follows a NumPy date:
    so mixed objects are not given to it, but for ``NUMBERS`` and for texts beside NaN.

    >>> are_alike([1, 2.5, None]), are_alike([1, "a"])
    (True, False)
    """
    kinds = {type(cell) for cell in cells if type(cell).__name__ not in MISSING_TYPES}
    return len(kinds) <= 1 or kinds <= NUMBERS or (kinds == {str, float} and _has_no_number(cells))


def _has_no_number(cells: Sequence[object]) -> bool:
    """Is every float the NaN that pandas puts for a missing text?"""
    return all(type(cell) is not float or cell != cell for cell in cells)  # noqa: PLR0124 - only NaN is not itself


def _is_missing(cell: object) -> bool:
    if type(cell).__name__ in MISSING_TYPES:
        return True
    return isinstance(cell, float | np.floating | Decimal | np.datetime64) and bool(cell != cell)  # noqa: PLR0124 - NaN and NaT


def _read(cell: object) -> ObjectReading:
    """What an object says; nothing if that cannot be found out, since an error would tell something of it."""
    if type(cell) is str:
        return ObjectReading(words=_as_utf8(cell.encode("utf-8", "surrogatepass")))
    try:
        return NOTHING if _is_missing(cell) else _read_present(cell)
    except Exception:  # noqa: BLE001 - an object may raise anything when it is asked for its text
        return NOTHING


def _read_present(cell: Any) -> ObjectReading:
    if isinstance(cell, str):
        return _read(str.__str__(cell)[:])
    if isinstance(cell, bytes | bytearray | memoryview):
        return ObjectReading(words=_as_utf8(bytes(cell)))
    if isinstance(cell, bool | np.bool_):
        return ObjectReading(text="true" if cell else "false", number=float(cell))
    if isinstance(cell, int | np.integer):
        return ObjectReading(text=str(int(cell)), number=float(cell))
    if isinstance(cell, float | np.floating):
        return ObjectReading(text=_float_text(float(str(cell))), number=float(cell))
    if isinstance(cell, Decimal):
        return ObjectReading(text=_decimal_text(cell), number=float(cell))
    if isinstance(cell, np.datetime64):
        moment = cell.astype("datetime64[us]").item()
        return _of_day(moment) if isinstance(moment, date) else ObjectReading(words=str(cell))
    if isinstance(cell, date):
        return _of_day(cell)
    return ObjectReading(words=_as_utf8(str(cell).encode("utf-8", "surrogatepass")))


def _as_utf8(text: bytes) -> str | None:
    """The text of bytes, or of characters, unless it is none: half a character would be none when read again."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _float_text(number: float) -> str:
    """As Arrow spells it, so that a float says the same in a column of floats."""
    if number.is_integer() and abs(number) < 2.0**63:
        return str(int(number))
    return str(pa.scalar(number, pa.float64()).cast(pa.string()).as_py())


def _decimal_text(number: Decimal) -> str:
    """Without zeros at the end: how many there are may be the doing of other cells of the column it comes from.

    >>> _decimal_text(Decimal("1.50")), _decimal_text(Decimal("2E+2")), _decimal_text(Decimal("-0.0"))
    ('1.5', '200', '0')
    """
    if not number.is_finite() or max(abs(number.adjusted()), len(number.as_tuple().digits)) > MOST_DIGITS:
        return str(number)
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _of_day(moment: date) -> ObjectReading:
    day = count_days(moment)
    if not isinstance(moment, datetime):
        return ObjectReading(text=moment.isoformat(), day=day)
    midnight = (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0)
    if midnight and moment.tzinfo is None and not getattr(moment, "nanosecond", 0):
        return ObjectReading(text=moment.date().isoformat(), day=day)
    return ObjectReading(text=moment.isoformat(sep=" "), day=day)
