"""The numbers or days that each leaf of a hierarchy stands for.

Days are counted from 1970-01-01. A missing cell stands before all numbers, at -inf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.policy.hierarchy.declarations import NumberRanges
from sfumato.policy.hierarchy.grid import NumberGrid
from sfumato.policy.rectangles import MISSING
from sfumato.policy.schema import Attribute, Kind

Floats = NDArray[np.float64]


class Ranges(NamedTuple):
    """Ranges of numbers or days, both ends included; NaN where there is none."""

    first: Floats
    last: Floats


def read_leaf_ranges(attribute: Attribute, labels: Sequence[str | None]) -> Ranges:
    """The range of each leaf; ``labels`` are those of all leaves from left to right, None for missing."""
    is_missing = np.array([label is None for label in labels], dtype=np.bool_)
    ranges = Ranges(np.full(len(labels), MISSING), np.full(len(labels), MISSING))
    present = [label for label in labels if label is not None]
    if isinstance(attribute.hierarchy, NumberRanges):
        found = _grid_ranges(attribute.hierarchy.make_grid(attribute))
    else:
        found = _label_ranges(attribute, present)
    ranges.first[~is_missing], ranges.last[~is_missing] = found
    return ranges


def _grid_ranges(grid: NumberGrid) -> Ranges:
    if grid.step is not None:  # each leaf is a single number
        return Ranges(grid.edges, grid.edges)
    last = np.nextafter(grid.edges[1:], -np.inf)
    last[-1] = grid.edges[-1]  # only the last interval includes its upper edge
    return Ranges(grid.edges[:-1], last)


def _label_ranges(attribute: Attribute, labels: Sequence[str]) -> Ranges:
    read = read_period if attribute.kind is Kind.DATE else _read_number
    pairs = np.array([read(label) for label in labels], dtype=np.float64).reshape(-1, 2)
    return Ranges(pairs[:, 0], pairs[:, 1])


def _read_number(label: str) -> tuple[float, float]:
    try:
        value = math.nan if "_" in label else float(label)  # Python reads 1_000 as a number; a table does not
    except ValueError:
        value = math.nan
    return value, value


def read_period(label: str) -> tuple[float, float]:
    """First and last day of a day, month, quarter, year or decade; NaN if the label is none of these.

    >>> read_period("1970-01-02"), read_period("1970-Q1"), read_period("1970"), read_period("1970s")
    ((1.0, 1.0), (0.0, 89.0), (0.0, 364.0), (0.0, 3651.0))
    >>> read_period("unknown")
    (nan, nan)
    """
    try:
        start, end = _period_ends(label)
    except ValueError:
        return math.nan, math.nan
    return float(_count_days(start)), float(_count_days(end) - 1)


def _period_ends(label: str) -> tuple[np.datetime64, np.datetime64]:
    """The start of a period and the start of the next one."""
    year, rest = np.datetime64(label[:4], "Y"), label[4:]
    if rest == "":
        return year, year + 1
    if rest == "s":
        return year, year + 10
    if rest.startswith("-Q"):
        start = year.astype("datetime64[M]") + 3 * (int(rest[2:]) - 1)
        return start, start + 3
    start = np.datetime64(label)  # a month or a day: numpy takes the unit from the text
    return start, start + 1


def _count_days(moment: np.datetime64) -> int:
    return int(moment.astype("datetime64[D]").astype(np.int64))
