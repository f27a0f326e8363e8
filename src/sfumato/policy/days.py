"""Dates as days since 1970-01-01, which is how Arrow and numpy count them.

>>> read_day("1970-01-31"), as_date(30).isoformat()
(30, '1970-01-31')
"""

from __future__ import annotations

from datetime import date, timedelta

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
