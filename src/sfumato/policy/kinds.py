"""The kinds of column, and their values as a policy writes them: exact decimals, dates as days, periods of days.

Days are counted from 1970-01-01, as Arrow and numpy count them.

>>> read_day("1970-01-31"), as_date(30).isoformat()
(30, '1970-01-31')
"""

from __future__ import annotations

from datetime import date, timedelta
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Kind(StrEnum):
    """How the cells of a column are read: the ``type`` of a policy."""

    CATEGORY = "category"
    NUMBER = "number"
    DATE = "date"


def read_exactly(number: float | str) -> Fraction:
    """The number that is written: a decimal, or a fraction.

    >>> read_exactly(0.1), read_exactly("6/17"), 10 * read_exactly(0.1) == 1
    (Fraction(1, 10), Fraction(6, 17), True)
    """
    return Fraction(str(number))


def as_plain(number: Fraction) -> int | float | str:
    """A number as a policy writes it: a decimal where it is one.

    >>> as_plain(Fraction(2)), as_plain(Fraction(1, 10)), as_plain(Fraction(6, 17))
    (2, 0.1, '6/17')
    """
    if number.denominator == 1:
        return int(number)
    near = float(number)
    return near if read_exactly(near) == number else f"{number.numerator}/{number.denominator}"


_FIRST = date(1970, 1, 1)


def count_days(day: date) -> int:
    """Days from 1970-01-01 to ``day``; the time of day does not count."""
    return day.toordinal() - _FIRST.toordinal()


def read_day(text: str) -> int:
    """The day that an ISO date such as ``2020-01-31`` names; ValueError if it names none."""
    return count_days(date.fromisoformat(text))


def as_date(day: float) -> date:
    """The date of a day; a fraction of a day is cut off."""
    return _FIRST + timedelta(days=int(day))


DATE_LEVELS = ("day", "month", "quarter", "year", "decade")
"""The levels of a hierarchy of dates, finest first."""


def sort_days(values: Any) -> NDArray[np.datetime64]:
    """The distinct days, in order; missing ones are left out."""
    days: NDArray[np.datetime64] = np.unique(np.asarray(values, dtype="datetime64[D]"))
    return days[~np.isnat(days)]


def name_periods(values: Any, level: str) -> list[str]:
    """The period of this level that each day falls in.

    >>> days = np.array(["2024-03-31", "2024-04-01"], dtype="datetime64[D]")
    >>> [name_periods(days, level) for level in ("month", "quarter", "decade")]
    [['2024-03', '2024-04'], ['2024-Q1', '2024-Q2'], ['2020s', '2020s']]
    """
    days = np.asarray(values, dtype="datetime64[D]")
    if level in ("day", "month"):
        return [str(label) for label in np.datetime_as_string(days, unit="D" if level == "day" else "M")]
    years = (days.astype("datetime64[Y]").astype(np.int64) + 1970).tolist()
    if level == "year":
        return [f"{year:04}" for year in years]
    if level == "decade":
        return [f"{year // 10 * 10:04}s" for year in years]
    quarters = (days.astype("datetime64[M]").astype(np.int64) % 12 // 3 + 1).tolist()
    return [f"{year:04}-Q{quarter}" for year, quarter in zip(years, quarters, strict=True)]
