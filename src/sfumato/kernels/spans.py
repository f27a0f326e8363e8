"""What the rows of a leaf have along an axis, in one number.

Along a hierarchy it is the node that covers the rows. Along an ordered axis whose labels are narrowed it is a *span*: the
least and the greatest code, and whether a cell is missing. -1: the box says it all.
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
