"""The hierarchy nodes that cover rows which are read block by block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.protocol import Block
from sfumato.kernels.axes import Axes
from sfumato.methods.mondrian.kernels.frequency import fill_ranges
from sfumato.methods.mondrian.kernels.grow import fill_covers
from sfumato.methods.mondrian.kernels.problem import pack_axes

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]


class CodeEnds:
    """The least and the greatest code of each attribute, of all rows that were added."""

    def __init__(self, n_axes: int) -> None:
        self.n_axes = n_axes
        self.low: Ints | None = None  # (axes,)
        self.high: Ints | None = None

    def add(self, block: Block) -> None:
        """Add some rows."""
        low, high = np.empty((2, block.rows.shape[1]), dtype=np.int64)
        if len(block.rows):
            fill_ranges(block.rows, low, high)
            self.widen(low[: self.n_axes], high[: self.n_axes])

    def merge(self, other: CodeEnds) -> None:
        """Add the rows that another one has seen."""
        if other.low is not None and other.high is not None:
            self.widen(other.low, other.high)

    def widen(self, low: Ints, high: Ints) -> None:
        """Add rows that have these codes, and none outside."""
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)

    def get(self) -> Codes:
        """(2, axes) least and greatest code."""
        assert self.low is not None
        assert self.high is not None
        return np.stack([self.low, self.high]).astype(np.uint32)


def find_covers(axes: Axes, code_ends: Codes) -> Ints:
    """The lowest node of each hierarchy that covers these codes, -1 on ordered axes.

    A node covers a range of codes if it covers both ends, so two rows stand for all.
    """
    out = np.empty((1, len(axes.is_tree)), dtype=np.int64)
    fill_covers(np.ascontiguousarray(code_ends), np.array([0]), np.array([2]), pack_axes(axes), False, out)
    return np.asarray(out[0])
