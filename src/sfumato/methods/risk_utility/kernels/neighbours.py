"""The rows of a side table that a generalization of one row can cover without losing too much utility.

A generalization x of a row covers a row t if, in every column, it is at least as general as the lowest common ancestor
of the two. So u(x) <= u(LCA), and only rows t with u(LCA) >= c matter where u(x) >= c is asked [FEB12, section 2.2].

A column of one row has *steps*: the distinct nodes from its value (step 0) up to the root. A generalization of the row is
one step for each column. Its *loss* is the utility that it lacks of the row as it is. A near row is described by its
*vector*, the step of the common ancestor in each column: x covers it if no step of the vector is above that of x.

:class:`RowProblem` is all that a search for the least risk of one row looks at; :class:`Measure` is what it compares.
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


class RowProblem(NamedTuple):
    """What is optimized for one row: the least risk among generalizations that lose no more than the budget."""

    steps: Steps
    near: Near
    own: int  # 1 if the row counts itself: the side table lacks it
    floor: int  # added to every weight
    budget: int  # the utility that may be lost


class Measure(NamedTuple):
    """What is known of a generalization. Its risk is weight / covered; risks are compared by cross-multiplication."""

    covered: int  # rows of the side table, the row itself included if it counts itself
    weight: int
    loss: int


class SideScan(NamedTuple):
    """The side table, in two forms: narrow columns, which are fast to scan, and whole codes row by row."""

    column: NDArray[np.uint8]  # (columns, distinct rows) the first bits of codes, uint8 or uint16
    shift: NDArray[np.int64]  # (columns,) bits that codes lack there
    unit: int  # of losses, when columns are scanned
    code: NDArray[np.uint32]  # (distinct rows, columns)
    n_rows: NDArray[np.int64]  # (distinct rows,) how many rows are the same


class NeighbourScratch(NamedTuple):
    """Working memory for one row."""

    loss: NDArray[np.uint8]  # (block,) of the dtype of ``SideScan.column``
    found: NDArray[np.int64]  # (distinct rows of the side table,) positions
    slot: NDArray[np.int64]  # (a power of two,) where vectors are found again


@inner
def is_better(one, other):
    """Has one :class:`Measure` less risk than another, or as much and loses less?"""
    left, right = one.weight * other.covered, other.weight * one.covered
    return left < right or (left == right and one.loss < other.loss)


@inner
def measure(problem, covered, x):
    """The measure of a generalization that covers so many rows, itself included.

    x  (columns,) steps  uint8  IN
    """
    weight, loss = np.int64(problem.floor), np.int64(0)
    for a in range(len(x)):
        weight += problem.steps.weight[a, x[a]]
        loss += problem.steps.loss[a, x[a]]
    return Measure(np.int64(covered), weight, loss)


@inner
def covers(x, vectors, j):
    """Is no step of vector ``j`` above that of x?"""
    a = 0
    while a < len(x) and vectors[j, a] <= x[a]:
        a += 1
    return a == len(x)


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
def _fill_steps(lattice, rows, row, out):
    """The steps of a row.

    out  Steps  OUT
    """
    for a in range(rows.code.shape[1]):
        last, n = -1, 0
        for level in range(lattice.n_levels[a]):
            node = node_at(lattice, a, rows.code[row, a], level)
            if node == last:
                continue
            last = node
            out.level[a, n] = level
            out.loss[a, n] = lattice.utility[node]
            out.weight[a, n] = weight_at(lattice, rows.factor, row, a, node)
            out.low[a, n], out.high[a, n] = lattice.low[node], lattice.high[node]
            n += 1
        out.n[a] = n
        raw = out.loss[a, 0]
        for s in range(n):
            out.loss[a, s] = raw - out.loss[a, s]


@inner
def _scan(side, steps, budget, scratch):
    """How many rows of the side table lose no more than the budget, in whole units; ``scratch.found`` says which.

    Losses are rounded down to units and codes to multiples of 2^shift, so no row is missed; some that lose a little more
    may be among them.
    """
    n_columns, n_side = side.column.shape
    unit, shift = side.unit, side.shift
    short = scratch.loss.dtype.type
    most = short(budget // unit)
    zero = short(0)
    n_found = 0
    for start in range(0, n_side, len(scratch.loss)):
        size = min(len(scratch.loss), n_side - start)
        loss = scratch.loss[:size]
        for j in range(size):
            loss[j] = zero
        for a in range(n_columns):
            column = side.column[a, start : start + size]
            for s in range(steps.n[a] - 1):
                more = short(steps.loss[a, s + 1] // unit - steps.loss[a, s] // unit)
                if more == zero:
                    continue
                low, last = short(steps.low[a, s] >> shift[a]), short((steps.high[a, s] - 1) >> shift[a])
                for j in range(size):
                    loss[j] += zero if (column[j] >= low) & (column[j] <= last) else more
        for j in range(size):
            if loss[j] <= most:
                scratch.found[n_found] = start + j
                n_found += 1
    return n_found


@inner
def _fill_vector(steps, codes, t, out):
    """The vector of row ``t`` of the side table; returns the utility that is lost at it.

    out  (columns,)  uint8  OUT
    """
    lost = np.int64(0)
    for a in range(codes.shape[1]):
        code, s = np.int64(codes[t, a]), 0
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
def _fill_near(steps, side, budget, n_found, stride, scratch, out):
    """The distinct vectors of one in ``stride`` rows found: how many, or -1 if ``out`` has no space for them."""
    scratch.slot[:] = -1
    n = 0
    for f in range(0, n_found, stride):
        if n == len(out.vector):
            return -1
        t = scratch.found[f]
        lost = _fill_vector(steps, side.code, t, out.vector[n])
        if lost > budget:
            continue
        at = _slot_of(out.vector, n, scratch.slot)
        if scratch.slot[at] < 0:
            scratch.slot[at] = n
            out.n_rows[n], out.loss[n] = 0, lost
            n += 1
        out.n_rows[scratch.slot[at]] += stride * side.n_rows[t]
    return n


@kernel
def gather_near(lattice, rows, row, side, budget, scratch, steps, out):
    """The steps of a row, and the vectors of the rows near it: (one of how many rows was taken, vectors).

    Where more rows are found than can be looked at, or more vectors than ``out`` can hold, every second, third, ...
    row is taken, and counts for so many.

    lattice  Lattice                                   IN
    rows     TableRows                                 IN
    row      whose neighbours are asked for     int64  IN
    side     SideScan                                  IN
    budget   the utility that may be lost       int64  IN
    scratch  NeighbourScratch                          SCRATCH
    steps    Steps                                     OUT
    out      Near                                      OUT
    """
    _fill_steps(lattice, rows, row, steps)
    n_found = _scan(side, steps, budget, scratch)
    stride = max(1, -(-n_found * rows.code.shape[1] // MOST_LOOKUPS))
    n = _fill_near(steps, side, budget, n_found, stride, scratch, out)
    while n < 0:
        stride *= 2
        n = _fill_near(steps, side, budget, n_found, stride, scratch, out)
    return stride, n


__all__ = [
    "Measure",
    "Near",
    "NeighbourScratch",
    "RowProblem",
    "SideScan",
    "Steps",
    "copy_to",
    "covers",
    "gather_near",
    "is_better",
    "measure",
    "transpose_vectors",
]
