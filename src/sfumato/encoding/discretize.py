"""Numbers cut into cells that tell a label apart: the minimum description length principle [FI93].

A range of values is cut where the two parts know most about the label, if that saves more bits than it
takes to say where the cut is; then each part likewise. The cuts are those of Weka's supervised ``Discretize``
to the last bit: the same sums in the same order, so that ties are broken alike.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

LOG_2 = math.log(2)


def mdl_cuts(
    values: NDArray[np.float64],
    labels: NDArray[np.int64] | NDArray[np.float64],
    *,
    at_most: int | None = None,
    is_number: bool = False,
) -> NDArray[np.float64]:
    """Thresholds in ascending order, each halfway between two values that occur; ``x <= cut`` goes left.

    With ``at_most``, the cuts that save most bits of the label come first, until there are that many cells.
    A label that is a number (``is_number``) is cut at its quartiles and told apart by those four parts.
    Rows whose value (or number to be told apart) is not finite are missing and left out.

    >>> mdl_cuts(np.array([1.0, 2, 3, 7, 8, 9]), np.array([0, 0, 0, 1, 1, 1]))
    array([5.])
    >>> mdl_cuts(np.array([1.0, 2, 3, 7, 8, 9]), np.array([0, 1, 0, 1, 0, 1]))
    array([], dtype=float64)
    """
    is_there = np.isfinite(values) & np.isfinite(labels)
    value, label = values[is_there], labels[is_there]
    if is_number and len(label):
        label = np.searchsorted(np.quantile(label, QUARTILES), label)
    distinct, place = np.unique(value, return_inverse=True)
    classes, label_of = np.unique(label, return_inverse=True)
    counts = np.bincount(place * len(classes) + label_of, minlength=len(distinct) * len(classes))
    return mdl_cuts_of(distinct, counts.reshape(len(distinct), len(classes)), at_most=at_most)


def mdl_cuts_of(
    distinct: NDArray[np.float64], counts: NDArray[np.int64], *, at_most: int | None = None
) -> NDArray[np.float64]:
    """``mdl_cuts`` of ascending values of which it is known how often each occurs with each label.

    >>> mdl_cuts_of(np.array([1.0, 9.0]), np.array([[20, 0], [0, 20]]))
    array([5.])
    """
    below = np.zeros((len(distinct) + 1, counts.shape[1]), np.int64)
    np.cumsum(counts, axis=0, out=below[1:])
    return _cut_range(distinct, below, math.inf if at_most is None else at_most)


QUARTILES = (0.25, 0.5, 0.75)


def quartiles_of(distinct: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``np.quantile`` of ascending numbers of which it is known how often each occurs.

    >>> quartiles_of(np.array([1, 2, 7]), np.array([2, 1, 1])).tolist()
    [1.0, 1.5, 3.25]
    """
    end = np.cumsum(counts)
    found = []
    for share in QUARTILES:
        at = share * (int(end[-1]) - 1)
        low = math.floor(at)
        pair = distinct[np.searchsorted(end, [low, min(low + 1, int(end[-1]) - 1)], side="right")]
        found.append(np.quantile(pair, at - low))
    return np.array(found, dtype=np.float64)


def cells(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.int64]:
    """The cell of each value, 0 to ``len(cuts)``; what is not finite is a cell of its own, ``len(cuts) + 1``.

    >>> cells(np.array([4.0, 5, 6, np.nan]), np.array([5.0])).tolist()
    [0, 0, 1, 2]
    """
    cell = np.searchsorted(cuts, values)
    return np.where(np.isfinite(values), cell, len(cuts) + 1)


@dataclass(frozen=True, slots=True)
class _BestCut:
    """The best cut of the distinct values from ``first`` up to, not including, ``end``: it is before ``at``."""

    first: int
    at: int
    end: int
    bits: float
    """saved in all rows together"""


def _cut_range(
    distinct: NDArray[np.float64], below: NDArray[np.int64], at_most: float
) -> NDArray[np.float64]:
    """The cuts of all values; ``below`` has, for each value, how many rows of each label lie below it."""
    information = _Information(int(below[-1].sum()))
    cuts: list[float] = []
    # `first` is unique among the parts that wait, so that no tie ever goes beyond it
    queue: list[tuple[float, int, _BestCut]] = []

    def consider(first: int, end: int) -> None:
        if cut := _best_cut(first, end, below, information):
            heapq.heappush(queue, (-cut.bits, first, cut))

    consider(0, len(distinct))
    while queue and len(cuts) + 1 < at_most:
        cut = heapq.heappop(queue)[2]
        cuts.append((distinct[cut.at - 1] + distinct[cut.at]) / 2)
        consider(cut.first, cut.at)
        consider(cut.at, cut.end)
    return np.array(sorted(cuts), np.float64)


class _Information:
    """n ln n of any count n: from a table, not computed anew for every cut; ``math.log`` rounds as Java's does."""

    def __init__(self, n_rows: int) -> None:
        self.known = _information_table(min(n_rows, LARGEST_TABLE))

    def __getitem__(self, counts: NDArray[np.int64] | np.int64) -> NDArray[np.float64]:
        if np.max(counts, initial=0) < len(self.known):
            return np.asarray(self.known[counts])
        distinct, at = np.unique(counts, return_inverse=True)
        found = np.array([n * math.log(n) if n else 0.0 for n in distinct.tolist()])
        return np.asarray(found[at].reshape(np.shape(counts)))


LARGEST_TABLE = 1 << 20


@lru_cache(maxsize=4)
def _information_table(n_rows: int) -> NDArray[np.float64]:
    return np.array([0.0, *(n * math.log(n) for n in range(1, n_rows + 1))])


def _best_cut(first: int, end: int, below: NDArray[np.int64], information: _Information) -> _BestCut | None:
    """The cut of least conditional entropy, the leftmost of equals, if it pays for its own description."""
    if end - first < 2:
        return None
    whole = below[end] - below[first]
    left = below[first + 1 : end] - below[first]
    after = _conditional_entropy(left, whole - left, information)
    at = int(after.argmin())
    before = float(_entropy(whole, information))
    gain = before - float(after[at])
    if gain <= 0 or not _pays(whole, left[at], whole - left[at], gain, before, information):
        return None
    return _BestCut(first, first + 1 + at, end, gain * float(whole.sum()))


def _pays(
    whole: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    gain: float,
    entropy: float,
    information: _Information,
) -> bool:
    r"""Is the gain above the cost of naming one of the n - 1 gaps between rows and the classes of both parts?

    .. math:: \text{gain} > \frac{\log_2 (n-1) + \Delta}{n},\quad
        \Delta = \log_2(3^c - 2) - (c H - c_1 H_1 - c_2 H_2)                     [FI93, section 3]

    with c classes and entropy H of the whole, the left (1) and the right part (2).
    """
    n_rows = int(whole.sum())
    n_classes, n_left, n_right = (int(np.count_nonzero(part)) for part in (whole, left, right))
    apart = float(n_right * _entropy(right, information)), float(n_left * _entropy(left, information))
    power = math.log(3.0**n_classes - 2) / LOG_2 if n_classes < 600 else n_classes * math.log2(3)
    delta = power - ((n_classes * entropy) - apart[0] - apart[1])
    return gain > (math.log(n_rows - 1) / LOG_2 + delta) / n_rows


def _entropy(counts: NDArray[np.int64], information: _Information) -> NDArray[np.float64]:
    """In bits, of counts along the last axis."""
    total = np.zeros(counts.shape[:-1])
    for c in range(counts.shape[-1]):
        total -= information[counts[..., c]]
    n = counts.sum(axis=-1)
    bits: NDArray[np.float64] = (total + information[n]) / (n * LOG_2)
    return bits


def _conditional_entropy(
    left: NDArray[np.int64], right: NDArray[np.int64], information: _Information
) -> NDArray[np.float64]:
    """In bits, of the label in the two parts of every cut."""
    total = np.zeros(len(left))
    for part in (left, right):
        for c in range(part.shape[1]):
            total += information[part[:, c]]
        total -= information[part.sum(axis=1)]
    bits: NDArray[np.float64] = -total / ((left[0] + right[0]).sum() * LOG_2)
    return bits
