"""How the cells of a column are read."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """How the cells of a column are read: the ``type`` of a policy."""

    CATEGORY = "category"
    NUMBER = "number"
    DATE = "date"
