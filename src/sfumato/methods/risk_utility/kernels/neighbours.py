"""The rows of a side table that a generalization of one row can cover without losing too much utility.

A generalization x of a row covers a row t if, in every column, it is at least as general as the lowest common ancestor
of the two. So u(x) <= u(LCA), and only rows t with u(LCA) >= c matter where u(x) >= c is asked [FEB12, section 2.2].

A column of one row has *steps*: the distinct nodes on the way from its value (step 0) to the root. Utility is counted
as what is lost of the row's own. A near row is told by its *vector*, the step of the common ancestor in each column:
x covers it if no step of the vector is above that of x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel
from sfumato.methods.risk_utility.kernels.lattice import node_at, weight_at

MOST_LOOKUPS = 1 << 20
"""Cells of near rows that are looked at; beyond, every second, third, ... row is taken."""


FIRST_KEY, KEY_FACTOR, KEY_MASK = 2166136261, 16777619, (1 << 32) - 1
"""Of the hash of a vector: FNV-1a."""


class Steps(NamedTuple):
    """The steps of one row, column by column."""

    n: NDArray[np.int64]  # (columns,) how many
    level: NDArray[np.uint8]  # (columns, steps) the least level of the node
    loss: NDArray[np.int64]  # (columns, steps) utility lost
    weight: NDArray[np.int64]  # (columns, steps)
    low: NDArray[np.int64]  # (columns, steps) the node covers the codes [low, high)
    high: NDArray[np.int64]  # (columns, steps)


class Near(NamedTuple):
    """The distinct vectors of the rows near one row."""

    vector: NDArray[np.uint8]  # (vectors, columns) steps
    n_rows: NDArray[np.int64]  # (vectors,) rows of the side table
    loss: NDArray[np.int64]  # (vectors,) utility lost at the vector


class NeighbourScratch(NamedTuple):
    """Room for the work on one row."""

    loss: NDArray[np.uint8]  # (block,) of the dtype of the side table's columns
    found: NDArray[np.int64]  # (rows of the side table,) positions
    slot: NDArray[np.int64]  # (a power of two,) where vectors are found again


@inner
def copy_to(source, out):
    """Copy an array; an assignment of slices takes a second to compile."""
    for i in range(len(source)):
        out[i] = source[i]


@inner
def transpose_vectors(vectors):
    """Vectors column by column: (columns, vectors)."""
    out = np.empty((vectors.shape[1], vectors.shape[0]), np.uint8)
    for j in range(vectors.shape[0]):
        for a in range(vectors.shape[1]):
            out[a, j] = vectors[j, a]
    return out


@inner
def _fill_steps(lattice, rows, factor, row, out):
    """The steps of a row.

    out  Steps  OUT
    """
    for a in range(rows.shape[1]):
        last, n = -1, 0
        for level in range(lattice.n_levels[a]):
            node = node_at(lattice, a, rows[row, a], level)
            if node == last:
                continue
            last = node
            out.level[a, n] = level
            out.loss[a, n] = lattice.utility[node]
            out.weight[a, n] = weight_at(lattice, factor, row, a, node)
            out.low[a, n], out.high[a, n] = lattice.low[node], lattice.high[node]
            n += 1
        out.n[a] = n
        raw = out.loss[a, 0]
        for s in range(n):
            out.loss[a, s] = raw - out.loss[a, s]


@inner
def _scan(columns, shift, steps, budget, unit, space):
    """How many rows of the side table lose no more than the budget, in whole units; ``space.found`` says which.

    Losses are rounded down to units and codes to multiples of 2^shift, so no row is missed; some that lose a little more
    may be among them.
    """
    n_columns, n_side = columns.shape
    short = space.loss.dtype.type
    most = short(budget // unit)
    zero = short(0)
    n_found = 0
    for start in range(0, n_side, len(space.loss)):
        size = min(len(space.loss), n_side - start)
        loss = space.loss[:size]
        for j in range(size):
            loss[j] = zero
        for a in range(n_columns):
            column = columns[a, start : start + size]
            for s in range(steps.n[a] - 1):
                more = short(steps.loss[a, s + 1] // unit - steps.loss[a, s] // unit)
                if more == zero:
                    continue
                low, last = short(steps.low[a, s] >> shift[a]), short((steps.high[a, s] - 1) >> shift[a])
                for j in range(size):
                    loss[j] += zero if (column[j] >= low) & (column[j] <= last) else more
        for j in range(size):
            if loss[j] <= most:
                space.found[n_found] = start + j
                n_found += 1
    return n_found


@inner
def _fill_vector(steps, side, t, out):
    """The vector of row ``t`` of the side table, and the utility that is lost at it.

    out  (columns,)  uint8  OUT
    """
    lost = np.int64(0)
    for a in range(side.shape[1]):
        code, s = np.int64(side[t, a]), 0
        while not steps.low[a, s] <= code < steps.high[a, s]:
            s += 1
        out[a] = s
        lost += steps.loss[a, s]
    return lost


@inner
def _slot_of(vectors, n, slot):
    """The slot of vector ``n``: that of an equal one before it, or an empty one."""
    mask = len(slot) - 1
    key = FIRST_KEY
    for a in range(vectors.shape[1]):
        key = (key ^ np.int64(vectors[n, a])) * KEY_FACTOR & KEY_MASK
    at = (key ^ (key >> 15)) & mask
    while slot[at] >= 0:
        other, a = slot[at], 0
        while a < vectors.shape[1] and vectors[other, a] == vectors[n, a]:
            a += 1
        if a == vectors.shape[1]:
            break
        at = (at + 1) & mask
    return at


@inner
def _fill_near(steps, side, side_count, budget, n_found, stride, space, out):
    """The distinct vectors of every first, second, ... row found: how many, or -1 if there is no room for them."""
    space.slot[:] = -1
    n = 0
    for f in range(0, n_found, stride):
        if n == len(out.vector):
            return -1
        t = space.found[f]
        lost = _fill_vector(steps, side, t, out.vector[n])
        if lost > budget:
            continue
        at = _slot_of(out.vector, n, space.slot)
        if space.slot[at] < 0:
            space.slot[at] = n
            out.n_rows[n], out.loss[n] = 0, lost
            n += 1
        out.n_rows[space.slot[at]] += stride * side_count[t]
    return n


@kernel
def gather_near(
    lattice, rows, factor, row, columns, shift, side, side_count, budget, unit, space, steps, out
):
    """The steps of a row, and the vectors of the rows near it: (rows found, one of how many was taken, vectors).

    Where more rows are found than can be looked at, or more vectors than there is room for, every second, third, ...
    row is taken, and counts for so many.

    lattice     Lattice
    rows        (rows, columns) codes                       uint32   IN
    factor      (rows or 0, columns) personal factors       float64  IN
    row         whose neighbours are asked for              int64    IN
    columns     (columns, rows of the side table) codes     uint8 or uint16      IN
    shift       (columns,) bits that codes lack there       int64    IN
    side        (rows of the side table, columns) codes     uint32   IN
    side_count  (rows of the side table,)                   int64    IN
    budget      the utility that may be lost                int64    IN
    unit        of losses, when rows are scanned            int64    IN
    space       Space                                       ROOM
    steps       Steps                                       OUT
    out         Near                                        OUT
    """
    _fill_steps(lattice, rows, factor, row, steps)
    n_found = _scan(columns, shift, steps, budget, unit, space)
    stride = max(1, -(-n_found * rows.shape[1] // MOST_LOOKUPS))
    n = _fill_near(steps, side, side_count, budget, n_found, stride, space, out)
    while n < 0:
        stride *= 2
        n = _fill_near(steps, side, side_count, budget, n_found, stride, space, out)
    return n_found, stride, n


__all__ = ["Near", "NeighbourScratch", "Steps", "copy_to", "gather_near", "transpose_vectors"]
