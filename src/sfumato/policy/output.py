"""What the published cells and rows look like."""

from __future__ import annotations

from enum import StrEnum

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
