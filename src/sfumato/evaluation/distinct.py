"""Distinct rows of a matrix. A release has few of them: models learn from each once, weighted by its number of rows."""

from __future__ import annotations

from itertools import count

import numpy as np
from numpy.typing import NDArray


def distinct_rows(matrix: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One row number for each distinct row of ``matrix``, and for every row which of these it equals.

    NaN equals NaN, and 0 equals -0.

    >>> first, which = distinct_rows(np.array([[1.0, 2], [3, 4], [1, 2]]))
    >>> sorted(first.tolist()), bool(which[0] == which[2] != which[1])
    ([0, 1], True)
    """
    words = np.ascontiguousarray((matrix + 0.0).T).view(np.uint64)
    words[np.isnan(matrix.T)] = np.array(np.nan).view(np.uint64)
    for salt in count():
        _, first, which = np.unique(_scramble(words, salt), return_index=True, return_inverse=True)
        if all(np.array_equal(column[first][which], column) for column in words):
            return first, which
    raise AssertionError  # count() does not end


def _scramble(words: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """One word per row, equal for equal rows and all but surely different for others."""
    word = np.full(words.shape[1], salt, np.uint64)
    for column in words:
        word = (word ^ column) * np.uint64(0x9E3779B97F4A7C15)
        word ^= word >> np.uint64(29)
    return word
