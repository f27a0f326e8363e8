"""What the rows of a release are. Verifiers and pages of the report are found by it."""

from __future__ import annotations

from enum import StrEnum


class Form(StrEnum):
    """What a method publishes."""

    GROUPS = "groups"
    """Rows in groups, each with a box that its rows share."""
    COUNTS = "counts"
    """The cells of a grid, each with a noisy count."""
    BOXES = "boxes"
    """Rows, each with a box of its own."""
    SAMPLE = "sample"
    """The boxes of rows that were drawn."""
