r"""How a candidate is scored, as a whole number, and by how much one row can change that number.

Of a candidate :math:`v` with parts :math:`c`, from the counts of classes in its parts [MCFY11, equations 3 and 4]:

.. math:: Max(v) = \sum_c \max_{cls} |D_c^{cls}|, \qquad InfoGain(v) = H_v - \sum_c \frac{|D_c|}{|D_v|} H_c
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

INFOGAIN_BITS = 20
"""InfoGain is a real number: it is counted in units of 2^-20, rounded down."""


class CandidateScore(Protocol):
    """The score of candidates, from their parts' counts of classes."""

    @property
    def sensitivity(self) -> Fraction:
        """By how much a score changes at most when one row comes or goes."""

    def of(self, parts: Ints) -> Ints:
        """The scores (candidates,) of parts (candidates, parts, classes)."""


class Max:
    """Rows of the most frequent class of each part.

    >>> Max().of(np.array([[[3, 1], [0, 4]]]))
    array([7])
    """

    sensitivity = Fraction(1)

    def of(self, parts: Ints) -> Ints:
        return np.asarray(parts.max(axis=2).sum(axis=1))


class InfoGain:
    """Bits per row, in units of 2^-20; 0 where there is no row.

    It lies between 0 and the logarithm of the number of classes, so no more than that can change; rounding down, and
    the last bits of the logarithms, add two units.

    >>> (InfoGain(2).of(np.array([[[4, 0], [0, 4]], [[0, 0], [0, 0]]])) / 2**20).tolist()
    [1.0, 0.0]
    """

    def __init__(self, n_classes: int) -> None:
        self.sensitivity = Fraction(math.ceil(2**INFOGAIN_BITS * math.log2(n_classes)) + 2)

    def of(self, parts: Ints) -> Ints:
        whole = parts.sum(axis=1)
        n = whole.sum(axis=1)
        gain = _information(parts).sum(axis=1) - _information(whole)
        bits: Ints = np.floor(2**INFOGAIN_BITS * np.maximum(gain, 0.0) / np.maximum(n, 1)).astype(np.int64)
        return bits


def _information(counts: Ints) -> NDArray[np.float64]:
    """Rows times bits: sum_c n_c log2 n_c - n log2 n, for counts of classes in the last axis."""
    return np.asarray(_times_log(counts).sum(axis=-1) - _times_log(counts.sum(axis=-1)))


def _times_log(counts: Ints) -> NDArray[np.float64]:
    return np.asarray(counts * np.log2(np.maximum(counts, 1)))
