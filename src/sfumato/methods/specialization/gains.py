"""What a specialization gains: known from the counts of its own attribute, wherever the rows are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.information import information_table
from sfumato.methods.specialization.column_counts import ColumnCounts
from sfumato.methods.specialization.kernels.cuts import fill_whole, scan_parts, scan_thresholds
from sfumato.methods.specialization.loop import Candidate, Piece

MOST_LISTED = 1 << 20
"""Numbers whose x log2 x is looked up. The same for every engine, so that gains are the same to the last bit."""


class CandidateFacts(NamedTuple):
    """Of a candidate: InfoGain times its rows, its rows, its largest and smallest part that has rows, and how many
    parts have any. No other attribute has a say in them.
    """

    gain: float
    rows: int
    largest: int
    smallest: int
    n_filled: int

    @property
    def is_free(self) -> bool:
        """Does it divide nothing?"""
        return self.n_filled == 1


class Gains:
    """The facts of every piece that is asked for; ``weight`` is that of each target."""

    def __init__(self, counts: ColumnCounts, weight: NDArray[np.float64]) -> None:
        self.counts, self.weight = counts, weight
        self.table = information_table(min(counts.n_rows, MOST_LISTED))
        self._last: dict[Piece, int] = {}
        self._facts: dict[Piece, CandidateFacts] = {}

    def threshold(self, piece: Piece) -> int | None:
        """The last code that goes left where the gain is greatest, whatever becomes of the groups [FWY05, section 4].

        None if nothing can be gained: all rows have one code, or one class of each target.
        """
        if piece not in self._last:
            self._scan_thresholds(piece)
        return self._last.get(piece)

    def of(self, candidate: Candidate) -> CandidateFacts | None:
        """None if its rows have no more than one class of any target: then it is not beneficial."""
        if candidate.piece not in self._facts:
            self._scan_parts(candidate)
        return self._facts.get(candidate.piece)

    def forget(self, piece: Piece) -> None:
        """Nobody will ask for it again."""
        self._last.pop(piece, None)
        self._facts.pop(piece, None)

    def _scan_thresholds(self, piece: Piece) -> None:
        right = self.counts.totals(piece.axis, piece.low, piece.high)
        n = self._n_rows(right)
        if not self._is_beneficial(right):
            return
        inside = np.zeros((3, len(self.weight)))
        fill_whole(right, self.counts.classes.target, n, self.table, inside[1:])
        found, highest = np.array([0, n, -1, 0]), np.zeros(1)
        left = np.zeros_like(right)
        for key, count in self.counts.between(piece.axis, piece.low, piece.high):
            scan_thresholds(
                key, count, self.counts.classes.target, self.weight, self.table, left, right, inside, found, highest
            )  # fmt: skip
        if found[2] >= 0:
            larger = int(found[3])
            self._last[piece] = int(found[2])
            self._facts[piece] = CandidateFacts(max(float(highest[0]), 0.0), n, larger, n - larger, 2)

    def _scan_parts(self, candidate: Candidate) -> None:
        piece = candidate.piece
        whole = self.counts.totals(piece.axis, piece.low, piece.high)
        n = self._n_rows(whole)
        if not self._is_beneficial(whole):
            return
        information = np.zeros((2, len(self.weight)))
        fill_whole(whole, self.counts.classes.target, n, self.table, information)
        part, listed = np.zeros((2, len(whole)), dtype=np.int64)
        found, total = np.array([0, 0, 0, 0, n, 0]), np.zeros(len(self.weight))
        ends = np.array(candidate.ends)
        nothing = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        for is_last, entries in (
            *((False, entries) for entries in self.counts.between(piece.axis, piece.low, piece.high)),
            (True, nothing),
        ):
            scan_parts(
                *entries, ends, is_last, self.counts.classes.target, self.table, part, listed, total, found
            )
        gain = 0.0
        for t, weight in enumerate(self.weight.tolist()):
            gain += weight * (float(total[t]) - float(information[1, t]))
        self._facts[piece] = CandidateFacts(max(gain, 0.0), n, int(found[3]), int(found[4]), int(found[5]))

    def _n_rows(self, of_class: NDArray[np.int64]) -> int:
        return int(of_class[self.counts.classes.target == 0].sum())

    def _is_beneficial(self, of_class: NDArray[np.int64]) -> bool:
        """Have the rows more than one class of some target?"""
        return bool((np.bincount(self.counts.classes.target, of_class > 0) > 1).any())
