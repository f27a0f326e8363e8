"""How many rows of a side table each box covers, by narrowing the rows down column by column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

AT_ONCE = 1 << 18
"""So many pairs of a box and a row are compared in one go."""


def covered(low: Ints, high: Ints, codes: Ints, count: Ints) -> Ints:
    """The rows of a side table within each box: ``low[b, a] <= code < high[b, a]`` in every column.

    ``codes`` (rows, columns) are distinct rows, ``count`` how often each stands there. Boxes that share their first
    ranges share the search for the rows within them; memory is a few times that of the codes.

    >>> codes = np.array([[0, 0], [0, 1], [1, 1]])
    >>> covered(np.array([[0, 0], [0, 1]]), np.array([[1, 2], [2, 2]]), codes, np.array([5, 1, 2])).tolist()
    [6, 3]
    """
    n_boxes, n_columns = low.shape
    keys = [np.unique(low[:, a] * (high.max(initial=0) + 1) + high[:, a], return_inverse=True)[1]
            for a in range(n_columns)]  # fmt: skip
    by_column = sorted(range(n_columns), key=lambda a: int(keys[a].max(initial=0)))
    order = np.lexsort([keys[a] for a in reversed(by_column)])
    found = np.zeros(n_boxes, dtype=np.int64)
    if n_boxes:
        search = _Search(
            low[order][:, by_column],
            high[order][:, by_column],
            np.ascontiguousarray(codes[:, by_column].T),
            count,
        )
        search.visit(0, slice(0, n_boxes), np.arange(len(codes)))
        found[order] = search.found
    return found


class _Search:
    """Boxes in lexicographic order of their ranges, so that those with the same first ranges stand together."""

    def __init__(self, low: Ints, high: Ints, codes: Ints, count: Ints) -> None:
        self.low, self.high, self.codes, self.count = low, high, codes, count
        self.found = np.zeros(len(low), dtype=np.int64)

    def visit(self, depth: int, boxes: slice, rows: Ints) -> None:
        """Count for some boxes, given the rows that lie within all of them in the columns before ``depth``."""
        if not len(rows):
            return
        if depth == self.low.shape[1]:
            self.found[boxes] = self.count[rows].sum()
            return
        if (boxes.stop - boxes.start) * len(rows) <= AT_ONCE:
            self._compare(depth, boxes, rows)
            return
        low, high = self.low[boxes, depth], self.high[boxes, depth]
        starts = boxes.start + np.flatnonzero(
            np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))
        )
        codes = self.codes[depth][rows]
        for start, stop in zip(starts, np.append(starts[1:], boxes.stop), strict=True):
            is_within = (codes >= self.low[start, depth]) & (codes < self.high[start, depth])
            self.visit(depth + 1, slice(int(start), int(stop)), rows[is_within])

    def _compare(self, depth: int, boxes: slice, rows: Ints) -> None:
        is_within = np.ones((boxes.stop - boxes.start, len(rows)), dtype=np.bool_)
        for a in range(depth, self.low.shape[1]):
            codes = self.codes[a][rows]
            is_within &= (codes >= self.low[boxes, a, None]) & (codes < self.high[boxes, a, None])
        self.found[boxes] = is_within @ self.count[rows]


__all__ = ["covered"]
