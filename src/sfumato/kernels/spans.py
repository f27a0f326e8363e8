"""What the rows of a leaf have along an axis, in one number.

Along a hierarchy it is the node that covers the rows. Along an ordered axis whose labels are narrowed it is a *span*: the
least and the greatest code, and whether a cell is missing. -1: the box says it all.

A leaf that is a cell of a list has also a *cell* along each axis: a level, and a key that says which cell of that level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BITS = 31
"""Codes of a span are below 2^31."""

NO_VALUE = (1 << BITS) - 1
"""The least code of rows that all lack a value."""

Ints = NDArray[np.int64]


class Spans(NamedTuple):
    """Spans, taken apart; where there is no value at all, the least code is above the greatest."""

    least: Ints
    greatest: Ints
    missing: NDArray[np.bool_]


def pack_spans(least: Ints, greatest: Ints, missing: NDArray[np.bool_]) -> Ints:
    """The spans as numbers.

    >>> unpack_spans(pack_spans(np.array([3]), np.array([7]), np.array([True])))
    Spans(least=array([3]), greatest=array([7]), missing=array([ True]))
    """
    return ((least << BITS | greatest) << 1) | missing


def unpack_spans(packed: Ints) -> Spans:
    """The spans of these numbers."""
    mask = (1 << BITS) - 1
    return Spans(packed >> (BITS + 1), (packed >> 1) & mask, (packed & 1).astype(np.bool_))


KEY_BITS = 48
"""Keys of cells are below 2^48, and at least -1."""


def pack_cells(levels: Ints, keys: Ints) -> Ints:
    """Cells as numbers, -1 where the level is -1: there is none.

    >>> unpack_cells(pack_cells(np.array([2, 0, -1]), np.array([5, -1, 7])))
    (array([ 2,  0, -1]), array([ 5, -1, -1]))
    """
    return np.where(levels < 0, -1, levels << KEY_BITS | (keys + 1))


def unpack_cells(packed: Ints) -> tuple[Ints, Ints]:
    """Levels and keys of these numbers, -1 and -1 where there is no cell."""
    is_cell = packed >= 0
    return (
        np.where(is_cell, packed >> KEY_BITS, -1),
        np.where(is_cell, (packed & ((1 << KEY_BITS) - 1)) - 1, -1),
    )
