"""The hierarchy nodes that cover rows that pass by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes
from sfumato.methods.mondrian.begun_tree import make_leaf
from sfumato.methods.mondrian.memory import MemoryEngine

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]


class CodeEnds:
    """The least and the greatest code of each attribute among rows that pass by."""

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
    n_axes = len(axes.is_tree)
    two_rows = np.zeros((2, n_axes + 1), dtype=np.uint32)
    two_rows[:, :-1] = code_ends
    engine = MemoryEngine.of_rows(two_rows, n_axes, threads=1)
    return np.asarray(engine.covers(make_leaf(2), axes)[0])
