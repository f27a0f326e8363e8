"""What the published cells and rows look like."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from sfumato.policy.model import ChoiceRule, Flag, Part

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
