"""The names of published columns: those that stand beside an attribute, or for it.

A number or a date may be published by its bounds, and a group by statistics of its values:

>>> bound_names("age"), range_names("age"), mean_name("age")
(('age_low', 'age_high'), ('age_min', 'age_max'), 'age_mean')
"""

from __future__ import annotations

from collections.abc import Sequence

COUNT = "count"
"""The column of a differentially private release that says how many rows a row stands for."""

LOW, HIGH = "_low", "_high"
MIN, MAX, MEAN = "_min", "_max", "_mean"
STATISTIC_SUFFIXES = {"range": (MIN, MAX), "mean": (MEAN,)}
"""What each statistic of an ``aggregate`` task adds to the name of its column."""

SUFFIXES = (LOW, HIGH, MIN, MAX, MEAN)
"""Endings of the columns that may stand beside an attribute, or for it."""


def bound_names(name: str) -> tuple[str, str]:
    """The columns of the lower and the upper bound."""
    return name + LOW, name + HIGH


def range_names(name: str) -> tuple[str, str]:
    """The columns of the least and the greatest value of a group."""
    return name + MIN, name + MAX


def mean_name(name: str) -> str:
    """The column of the mean of a group."""
    return name + MEAN


def statistic_names(name: str, statistics: Sequence[str]) -> tuple[str, ...]:
    """The columns of these statistics, in order.

    >>> statistic_names("age", ("mean", "range"))
    ('age_mean', 'age_min', 'age_max')
    """
    return tuple(name + suffix for statistic in statistics for suffix in STATISTIC_SUFFIXES[statistic])
