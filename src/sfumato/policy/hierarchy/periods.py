"""Periods of days: months, quarters, years, decades, and what they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
