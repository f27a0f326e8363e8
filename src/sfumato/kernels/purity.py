"""Shared cuts scored by the whole grid: rows counted by bin, cell and class, and what each candidate would gain.

A *bin* is a range of codes of one axis that no candidate divides. A candidate's score is the purity of all cells
after it, a sum of whole numbers over cells; what is given here is that sum less the purity as it is, which is the
same for all candidates.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.compile import inner, kernel

MAX, GINI = 0, 1
"""Purity of a cell: rows of its most frequent class; or less its Gini impurity, times its rows."""

GINI_BITS = 20
"""Impurity is counted in units of 2^-20, rounded down."""


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
    out          (bins of all axes, cells, classes) uint32                        IN+OUT
    """
    n_axes = rows.shape[1] - 1
    for i in range(rows.shape[0]):
        cell = number[cells[i]]
        if cell < 0:
            continue
        of_class = rows[i, n_axes]
        for a in range(n_axes):
            b = bin_of_code[first[a] + rows[i, a]]
            if b >= 0:
                out[b, cell, of_class] += np.uint32(1)


@inner
def impurity(counts):
    """Rows less sum_c n_c^2 / n in units of 2^-20, rounded down; exact up to 2^31 rows."""
    n, same = np.int64(0), np.int64(0)
    for c in range(counts.shape[0]):
        n += counts[c]
        same += counts[c] * counts[c]
    if n == 0:
        return np.int64(0)
    mixed = n * n - same
    return ((mixed // n) << GINI_BITS) + ((mixed % n) << GINI_BITS) // n


@inner
def purity(counts, score):
    if score == GINI:
        return -impurity(counts)
    most = np.int64(0)
    for c in range(counts.shape[0]):
        most = max(most, counts[c])
    return most


@kernel
def add_gains(counts, begin, end, is_tree, place, axis, piece, score, start, out):
    """Add what each candidate would gain in these cells.

    counts       (bins, cells, classes) uint32                                            IN
    begin, end   (pieces,) int64: the bins of each piece                                  IN
    is_tree      (pieces,) bool: all bins at once, or a threshold after any but the last  IN
    place        (cells, axes) int64: the piece of each axis that a cell lies in          IN
    axis, piece  (pieces,) int64: which piece of which axis it is                         IN
    score        MAX or GINI                                                              IN
    start        (pieces,) int64: where the candidates of each piece begin                IN
    out          (candidates,) int64                                                      IN+OUT
    """
    n_cells, n_classes = counts.shape[1], counts.shape[2]
    whole = np.zeros(n_classes, dtype=np.int64)
    left = np.zeros(n_classes, dtype=np.int64)
    for p in range(begin.shape[0]):
        for cell in range(n_cells):
            if place[cell, axis[p]] != piece[p]:
                continue
            whole[:] = 0
            for b in range(begin[p], end[p]):
                for c in range(n_classes):
                    whole[c] += np.int64(counts[b, cell, c])
            before = purity(whole, score)
            if is_tree[p]:
                gain = -before
                for b in range(begin[p], end[p]):
                    for c in range(n_classes):
                        left[c] = np.int64(counts[b, cell, c])
                    gain += purity(left, score)
                out[start[p]] += gain
                continue
            left[:] = 0
            for b in range(begin[p], end[p] - 1):
                for c in range(n_classes):
                    left[c] += np.int64(counts[b, cell, c])
                    whole[c] -= np.int64(counts[b, cell, c])
                out[start[p] + b - begin[p]] += purity(left, score) + purity(whole, score) - before
