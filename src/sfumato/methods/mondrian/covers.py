"""The hierarchy nodes that cover rows which are read block by block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes
from sfumato.methods.mondrian.kernels.grow import fill_covers
from sfumato.methods.mondrian.kernels.problem import pack_axes

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]


class CodeEnds:
    """The least and the greatest code of each attribute, of all rows that were added."""

    def __init__(self, n_axes: int) -> None:
        self.n_axes = n_axes
        self._ends: Codes | None = None

    def add(self, rows: Codes) -> None:
        codes = rows[:, : self.n_axes]
        seen = codes if self._ends is None else np.concatenate([self._ends, codes])
        self._ends = np.stack([seen.min(axis=0), seen.max(axis=0)])

    def get(self) -> Codes:
        """(2, axes) least and greatest code."""
        assert self._ends is not None
        return self._ends


def find_covers(axes: Axes, code_ends: Codes) -> Ints:
    """The lowest node of each hierarchy that covers these codes, -1 on ordered axes.

    A node covers a range of codes if it covers both ends, so two rows stand for all.
    """
    out = np.empty((1, len(axes.is_tree)), dtype=np.int64)
    fill_covers(np.ascontiguousarray(code_ends), np.array([0]), np.array([2]), pack_axes(axes), out)
    return np.asarray(out[0])
