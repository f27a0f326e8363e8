"""What is published: the form of the rows, what a cell looks like, and the names of the columns.

A number or a date may be published by its bounds, and a group by statistics of its values:

>>> bound_names("age"), missing_name("age"), range_names("age"), mean_name("age")
(('age_low', 'age_high'), 'age_missing', ('age_min', 'age_max'), 'age_mean')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from sfumato.errors import PolicyError, number_of
from sfumato.policy.model import OneOf, Part
from sfumato.policy.rules import ChoiceRule, Either, Flag, Whole, refuse

COUNTS, EXPANDED = "counts", "expanded"
"""Rows of DiffGen: one per cell and class with its count, or as many as were counted."""
KEEP, ESCAPE = "keep", "escape"
"""Text cells that spreadsheets would run as formulas: kept, or escaped in every file."""


GRID, BOXES, RANGE = "grid", "boxes", "range"
"""Numbers of Mondrian: narrowed to public slices, the box of the tree, or from the least to the greatest value."""
SLICES = 32
"""Slices of the bounds that numbers are narrowed to where a policy gives no other number."""
COVERING, EXCLUDING = "covering", "excluding"
"""Labels of a rest: the node that covers its values, or that node with the nodes that were told apart from it."""


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


_SLICES = Whole(
    "How many slices of the bounds.",
    least=1,
    says="must be how many slices the bounds have, a whole number of at least 1, such as 64.",
)
_NUMBERS = "must be grid, boxes or range, or a grid with its number of slices, such as {grid: 64}."


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a published range of numbers is narrowed to; only a grid has ``slices``.

    >>> Narrowing.of("grid"), Narrowing.of({"grid": 64}), Narrowing.of("boxes").slices
    (Narrowing(kind='grid', slices=32), Narrowing(kind='grid', slices=64), None)
    >>> Narrowing("grid").as_policy(), Narrowing("grid", 64).as_policy()
    ('grid', {'grid': 64})
    """

    kind: str
    slices: int | None = None

    def __post_init__(self) -> None:
        if self.kind == GRID and self.slices is None:
            object.__setattr__(self, "slices", SLICES)
        fits = _SLICES.fits(self.slices) if self.kind == GRID else self.slices is None
        if self.kind not in (GRID, BOXES, RANGE) or not fits:
            raise PolicyError(f"Numbers {_NUMBERS}")

    @classmethod
    def of(cls, given: Narrowing | str | Mapping[str, int]) -> Narrowing:
        """From what a policy says."""
        if isinstance(given, Narrowing):
            return given
        if isinstance(given, str):
            return cls(given)
        ((kind, slices),) = given.items()
        return cls(kind, int(slices))

    def as_policy(self) -> str | dict[str, int]:
        """How a policy writes it."""
        return self.kind if self.slices in (None, SLICES) else {self.kind: self.slices}


@dataclass(frozen=True, eq=False)
class _NumbersRule(Either):
    """A word, or a grid with its number of slices."""

    def read(self, given: Any, read_other: Callable[[Any], Any]) -> Any:
        if isinstance(given, Narrowing):
            return given
        if isinstance(given, list | tuple):
            refuse(self.says)
        return Narrowing.of(Either.read(self, given, read_other))


_EXCLUSION = re.compile(r".+ \(not .+\)", re.DOTALL)


def object_to_exclusions(labels: Iterable[str | None]) -> str | None:
    """What is wrong with labels that look like those of a rest that says what it excludes; None if none does.

    >>> object_to_exclusions(["*", "* (not US)", "Not stated (other)", None])[:28]
    '1 label of the form X (not Y'
    """
    found = sum(label is not None and _EXCLUSION.fullmatch(label) is not None for label in labels)
    if not found:
        return None
    return (
        f"{number_of(found, 'label')} of the form X (not Y), which rest-labels: excluding writes itself; "
        "rename them, or use covering."
    )


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
    numbers: Annotated[
        Narrowing | None,
        _NumbersRule(
            "Mondrian: what ranges of numbers are narrowed to. grid: 32 public slices of the bounds, or as many as "
            "{grid: 64} says; boxes: the box of the tree; range: the least and the greatest value of the group.",
            says=_NUMBERS,
            one=ChoiceRule(words=(GRID, BOXES, RANGE)),
            other=OneOf(says=_NUMBERS, keys={GRID: _SLICES}),
        ),
    ] = None
    rest_labels: Annotated[
        str | None,
        ChoiceRule(
            "Mondrian: the label of rows that are left where others are told apart. covering: the node that covers them, "
            "such as *; excluding: it says what is not among them, such as * (not US).",
            words=(COVERING, EXCLUDING),
        ),
    ] = None
    meaning: ClassVar[str] = "What the published cells look like."
    says: ClassVar[str] = "must say what to publish, such as {values: bounds}."


COUNT = "count"
"""The column of a differentially private release that says how many rows a row stands for."""

LOW, HIGH, MISSING = "_low", "_high", "_missing"
MIN, MAX, MEAN = "_min", "_max", "_mean"
STATISTIC_SUFFIXES = {"range": (MIN, MAX), "mean": (MEAN,)}
"""What each statistic of an ``aggregate`` task adds to the name of its column."""

SUFFIXES = (LOW, HIGH, MISSING, MIN, MAX, MEAN)
"""Endings of the columns that may stand beside an attribute, or for it."""


def bound_names(name: str) -> tuple[str, str]:
    """The columns of the lower and the upper bound."""
    return name + LOW, name + HIGH


def missing_name(name: str) -> str:
    """The column that says whether missing is among the values between two bounds."""
    return name + MISSING


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
