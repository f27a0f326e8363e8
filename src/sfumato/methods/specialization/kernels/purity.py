"""Shared cuts scored by the whole grid: rows counted by bin, cell and class, and what each candidate would gain.

A *bin* is a range of codes of one axis that no candidate divides. A candidate's score is the purity of all cells
after it, a sum of whole numbers over cells; what is given here is that sum less the purity as it is, which is the
same for all candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel


class PieceBins(NamedTuple):
    """The pieces that candidates divide, their bins, and where their candidates stand among all."""

    begin: NDArray[np.int64]  # (pieces,) the first bin of each
    end: NDArray[np.int64]  # (pieces,) the bin after its last
    is_tree: NDArray[np.bool_]  # (pieces,) all bins at once, or a threshold after any but the last
    axis: NDArray[np.int64]  # (pieces,)
    place: NDArray[np.int64]  # (pieces,) which piece of its axis it is
    start: NDArray[np.int64]  # (pieces,) its first candidate


MAX, GINI = -1, -2
"""Purity of a cell: rows of its most frequent class; or less its Gini impurity, times its rows. Any other score is a
number of 16ths, from 0 to 8: Max smoothed by so much, which with 8 is as Gini is."""

BITS = 20
"""Purity that is no whole number is counted in units of 2^-20, rounded down."""

FULL = np.uint32(2**32 - 1)
"""Where a count ends: above what ``purity`` takes for the most, so that no score sees that it does."""


@kernel
def add_cell_counts(rows, cells, out):
    """Count the rows of each cell and class.

    rows   (n, axes + 1) uint32, the last column is the class   IN
    cells  (n,) uint64                                          IN
    out    (cells, classes) int64                               IN+OUT
    """
    of_class = rows.shape[1] - 1
    for i in range(rows.shape[0]):
        out[cells[i], rows[i, of_class]] += 1


@kernel
def add_bin_counts(rows, cells, number, first, bin_of_code, out):
    """Count the rows of each bin, cell and class, of all axes.

    rows         (n, axes + 1) uint32, the last column is the class               IN
    cells        (n,) uint64                                                      IN
    number       (cells,) int32: the place of each cell in ``out``; -1: in none   IN
    first        (axes,) int64: where the codes of each axis begin                IN
    bin_of_code  (codes of all axes,) int32; -1: in none                          IN
    out          (bins of all axes, cells, classes) uint32, which stays FULL      IN+OUT
    """
    n_axes = rows.shape[1] - 1
    for i in range(rows.shape[0]):
        cell = number[cells[i]]
        if cell < 0:
            continue
        of_class = rows[i, n_axes]
        for a in range(n_axes):
            b = bin_of_code[first[a] + rows[i, a]]
            if b >= 0 and out[b, cell, of_class] < FULL:
                out[b, cell, of_class] += np.uint32(1)


@inner
def in_units(numerator, denominator):
    """The quotient in units of 2^-20, rounded down: exact, for a denominator below 2^43."""
    return ((numerator // denominator) << BITS) + ((numerator % denominator) << BITS) // denominator


@inner
def impurity(counts):
    """Rows less sum_c n_c^2 / n."""
    n, same = np.int64(0), np.int64(0)
    for c in range(counts.shape[0]):
        n += counts[c]
        same += counts[c] * counts[c]
    return in_units(n * n - same, n) if n > 0 else np.int64(0)


@inner
def smooth_max(counts, a):
    """Max over shares q of classes of sum_c q_c n_c + n (1 - sum_c q_c^2) a / 16; orders ``counts``.

    At the best q the m most frequent classes have shares above 0. With s the sum of their counts and s2 that of
    squares it is (16 a n s + 64 (m s2 - s^2) + (m - 1) (a n)^2) / (16 m a n).
    """
    n = np.int64(0)
    for c in range(counts.shape[0]):  # most frequent first
        n += counts[c]
        x, i = counts[c], c
        while i > 0 and counts[i - 1] < x:
            counts[i] = counts[i - 1]
            i -= 1
        counts[i] = x
    if n == 0 or a == 0:
        return counts[0] << BITS
    m, total, squares = np.int64(0), np.int64(0), np.int64(0)
    while m < counts.shape[0] and 8 * (m + 1) * counts[m] > 8 * (total + counts[m]) - a * n:
        total += counts[m]
        squares += counts[m] * counts[m]
        m += 1
    return in_units(
        16 * a * n * total + 64 * (m * squares - total * total) + (m - 1) * a * a * n * n, 16 * m * a * n
    )


@inner
def purity(counts, score, most, work):
    """Of a cell. Counts are taken for ``most`` at most, so that no product overflows."""
    for c in range(counts.shape[0]):
        work[c] = min(np.int64(counts[c]), most)
    if score == GINI:
        return -impurity(work)
    if score >= 0:
        return smooth_max(work, score)
    highest = np.int64(0)
    for c in range(work.shape[0]):
        highest = max(highest, work[c])
    return highest


@kernel
def add_gains(counts, place, pieces, score, most, out):
    """Add what each candidate would gain in these cells.

    counts  (bins, cells, classes) uint32                                    IN
    place   (cells, axes) int64: the piece of each axis that a cell lies in  IN
    pieces  PieceBins                                                        IN
    score   MAX, GINI or a number of 16ths                                   IN
    most    rows of a class in a cell that count, see ``purity``             IN
    out     (candidates,) int64                                              IN+OUT
    """
    begin, end, is_tree, axis, piece, start = pieces
    n_cells, n_classes = counts.shape[1], counts.shape[2]
    whole = np.zeros(n_classes, dtype=np.int64)
    left = np.zeros(n_classes, dtype=np.int64)
    work = np.zeros(n_classes, dtype=np.int64)
    for p in range(begin.shape[0]):
        for cell in range(n_cells):
            if place[cell, axis[p]] != piece[p]:
                continue
            whole[:] = 0
            for b in range(begin[p], end[p]):
                for c in range(n_classes):
                    whole[c] += np.int64(counts[b, cell, c])
            before = purity(whole, score, most, work)
            if is_tree[p]:
                gain = -before
                for b in range(begin[p], end[p]):
                    for c in range(n_classes):
                        left[c] = np.int64(counts[b, cell, c])
                    gain += purity(left, score, most, work)
                out[start[p]] += gain
                continue
            left[:] = 0
            for b in range(begin[p], end[p] - 1):
                for c in range(n_classes):
                    left[c] += np.int64(counts[b, cell, c])
                    whole[c] -= np.int64(counts[b, cell, c])
                out[start[p] + b - begin[p]] += (
                    purity(left, score, most, work) + purity(whole, score, most, work) - before
                )
