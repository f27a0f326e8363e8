"""What a specialization gains, from the counts of its own attribute alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.information import information_table
from sfumato.methods.specialization.column_counts import ColumnCounts
from sfumato.methods.specialization.kernels.cuts import (
    AxisEntries,
    PartCounts,
    PartScan,
    Sides,
    ThresholdScan,
    fill_whole,
    scan_parts,
    scan_thresholds,
)
from sfumato.methods.specialization.loop import Candidate, Piece

MOST_LISTED = 1 << 20
"""Numbers whose x log2 x is looked up. The same for every engine, so that gains are the same to the last bit."""


NOTHING = AxisEntries(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64), 0)


class CandidateFacts(NamedTuple):
    """What is known of a candidate from its own attribute alone."""

    gain: float  # InfoGain times its rows
    rows: int
    largest: int  # rows of its largest part,
    smallest: int  # of its smallest that has any
    n_filled: int  # and how many parts have rows

    @property
    def is_free(self) -> bool:
        """Does it divide nothing, since all rows are in one part?"""
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
        target = self.counts.classes.target
        right = self.counts.totals(piece.axis, piece.low, piece.high)
        n = self._n_rows(right)
        if not self._is_beneficial(right):
            return
        in_left, in_right, in_all = np.zeros((3, len(self.weight)), dtype=np.int64)
        fill_whole(right, target, n, self.table, in_right, in_all)
        sides = Sides(np.zeros_like(right), right, in_left, in_right, in_all)
        scan = ThresholdScan(0, -1, 0, 0.0)
        for entries in self.counts.between(piece.axis, piece.low, piece.high):
            scan = scan_thresholds(entries, target, self.weight, self.table, n, sides, scan)
        if scan.last >= 0:
            self._last[piece] = scan.last
            self._facts[piece] = CandidateFacts(max(scan.gain, 0.0), n, scan.larger, n - scan.larger, 2)

    def _scan_parts(self, candidate: Candidate) -> None:
        piece, target = candidate.piece, self.counts.classes.target
        whole = self.counts.totals(piece.axis, piece.low, piece.high)
        n = self._n_rows(whole)
        if not self._is_beneficial(whole):
            return
        n_targets = len(self.weight)
        in_classes, in_all, in_parts = np.zeros((3, n_targets), dtype=np.int64)
        fill_whole(whole, target, n, self.table, in_classes, in_all)
        counts = PartCounts(np.zeros_like(whole), np.zeros_like(whole), in_parts)
        scan, ends = PartScan(0, 0, 0, 0, n, 0), np.array(candidate.ends)
        for entries in self.counts.between(piece.axis, piece.low, piece.high):
            scan = scan_parts(entries, ends, False, target, self.table, counts, scan)
        scan = scan_parts(NOTHING, ends, True, target, self.table, counts, scan)
        gain = 0.0
        for weight, inside, before in zip(
            self.weight.tolist(), counts.information.tolist(), in_all.tolist(), strict=True
        ):
            gain += weight * (inside - before)
        self._facts[piece] = CandidateFacts(max(gain, 0.0), n, scan.largest, scan.smallest, scan.n_filled)

    def _n_rows(self, of_class: NDArray[np.int64]) -> int:
        return int(of_class[self.counts.classes.target == 0].sum())

    def _is_beneficial(self, of_class: NDArray[np.int64]) -> bool:
        """Have the rows more than one class of some target?"""
        return bool((np.bincount(self.counts.classes.target, of_class > 0) > 1).any())
