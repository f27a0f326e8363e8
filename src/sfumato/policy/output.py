"""What is published: the form of the rows, what a cell looks like, and the names of the columns.

A number or a date may be published by its bounds, and a group by statistics of its values:

>>> bound_names("age"), range_names("age"), mean_name("age")
(('age_low', 'age_high'), ('age_min', 'age_max'), 'age_mean')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from sfumato.policy.model import Part
from sfumato.policy.rules import ChoiceRule, Flag

COUNTS, EXPANDED = "counts", "expanded"
"""Rows of DiffGen: one per cell and class with its count, or as many as were counted."""
KEEP, ESCAPE = "keep", "escape"
"""Text cells that spreadsheets would run as formulas: kept, or escaped in every file."""


class Output(StrEnum):
    """What the published cell of a number looks like: a label, its two bounds, or both.

    A summary is a label with statistics of the group beside it.
    """

    LABELS = "labels"
    BOUNDS = "bounds"
    BOTH = "both"
    SUMMARY = "summary"

    @property
    def has_labels(self) -> bool:
        return self is not Output.BOUNDS

    @property
    def has_bounds(self) -> bool:
        return self in (Output.BOUNDS, Output.BOTH)


@dataclass(frozen=True, slots=True)
class OutputForm(Part):
    """What a policy says under ``output``."""

    values: Annotated[
        str,
        ChoiceRule(
            "labels: one text per cell; bounds: low and high columns for a number; both: the label beside them; summary: "
            "labels, and min, max and mean of the group beside them.",
            words=tuple(map(str, Output)),
        ),
    ] = str(Output.LABELS)
    rows: Annotated[
        str,
        ChoiceRule(
            "DiffGen: one row per cell with its count, or as many rows as counted.", words=(COUNTS, EXPANDED)
        ),
    ] = COUNTS
    recoding: Annotated[
        bool, Flag("Whether the release says how further rows are recoded; false keeps no tree of splits.")
    ] = True
    formulas: Annotated[
        str,
        ChoiceRule(
            "Text cells that begin with =, @, +, - or a tab, which spreadsheets run as formulas: keep them, or escape "
            "them by ' before them. Numbers stay as they are.",
            words=(KEEP, ESCAPE),
        ),
    ] = KEEP
    meaning: ClassVar[str] = "What the published cells look like."
    says: ClassVar[str] = "must say what to publish, such as {values: bounds}."


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


class Form(StrEnum):
    """What the rows of a release are. Verifiers and pages of the report are found by it."""

    GROUPS = "groups"
    """Rows in groups, each with a box that its rows share."""
    COUNTS = "counts"
    """The cells of a grid, each with a noisy count."""
    BOXES = "boxes"
    """Rows, each with a box of its own."""
    SAMPLE = "sample"
    """The boxes of rows that were drawn."""
