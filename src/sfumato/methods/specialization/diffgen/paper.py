"""DiffGen as published [MCFY11, Algorithm 1]: which candidate is taken, and where a number is divided.

Every draw has the exponential law and costs the same share, epsilon' = epsilon / 2(|A_n| + 2h). Scores are of the
rows in a candidate's own piece, whatever the other attributes are, so counts of columns say it all.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato.encoding.domain import Domain, OrderedDomain
from sfumato.methods.specialization.column_counts import ColumnCounts
from sfumato.methods.specialization.diffgen.plan import CellLimit
from sfumato.methods.specialization.diffgen.scores import CandidateScore, Ints
from sfumato.methods.specialization.loop import Candidate, Piece
from sfumato.privacy.ledger import Draw, Ledger
from sfumato.privacy.mechanisms import EXPONENTIAL, Mechanisms
from sfumato.progress import Progress, no_progress

AT_ONCE = 1 << 18
"""Thresholds that are scored in one go."""

SPLIT_POINT, SPECIALIZATION = "split point", "specialization"


class PaperChooser:
    """The chooser of the paper.

    Each iteration may draw split points of new pieces. Where it does not, because a hierarchy was specialized or nothing
    will be specialized any more, that share stays unspent.
    """

    def __init__(
        self,
        counts: ColumnCounts,
        domains: Sequence[Domain],
        score: CandidateScore,
        *,
        specializations: int,
        limit: CellLimit,
        ledger: Ledger,
        mechanisms: Mechanisms,
        progress: Progress = no_progress,
    ) -> None:
        self.counts, self.domains, self.score = counts, domains, score
        self.specializations, self.limit, self.progress = specializations, limit, progress
        self.ledger, self.mechanisms = ledger, mechanisms
        n_ordered = sum(isinstance(domain, OrderedDomain) for domain in domains)
        self.share = share_of_draw(ledger.epsilon, n_ordered, specializations)
        self.scale = 2 * score.sensitivity / self.share
        self.open: dict[int, Candidate] = {}
        self.scores: dict[int, int] = {}
        self.n_taken = 0
        self.paid: tuple[Piece, ...] = ()
        """Pieces of disjoint rows whose split points have been charged together."""

    def threshold(self, piece: Piece) -> int | None:
        """Drawn from all points of the grid but the last [MCFY11, equations 6 and 7]; None if there is no such point."""
        if not self._has_threshold(piece):
            return None
        if piece not in self.paid:
            self._charge(SPLIT_POINT, piece)
        chosen = self.mechanisms.exponential(self._threshold_scores(piece), self.scale)
        return piece.low + chosen

    def offer(self, number: int, candidate: Candidate) -> None:
        self.open[number] = candidate
        piece = candidate.piece
        below = np.cumsum(self.counts.matrix(piece.axis, piece.low, piece.high), axis=0)
        ends = below[np.array(candidate.ends) - piece.low - 1]
        self.scores[number] = int(self.score.of(np.diff(ends, axis=0, prepend=0)[None])[0])

    def choose(self) -> int | None:
        """Drawn from the candidates whose parts are within the limit of cells [MCFY11, equation 5]."""
        self.progress("specializing", self.n_taken, self.specializations)
        if self.n_taken == self.specializations:
            return None
        admitted = [n for n, one in self.open.items() if self.limit.admits(one.piece.axis, len(one.parts))]
        if not admitted:
            return None
        self._charge(SPECIALIZATION)
        scores = np.array([self.scores[number] for number in admitted], dtype=np.int64)
        return admitted[self.mechanisms.exponential(scores, self.scale)]

    def take(self, number: int, candidate: Candidate) -> None:
        del self.open[number], self.scores[number]
        self.limit.take(candidate)
        self.n_taken += 1
        self.paid = tuple(part for part in candidate.parts if self._has_threshold(part))
        if self.paid:
            self._charge(SPLIT_POINT, candidate.piece)

    def _has_threshold(self, piece: Piece) -> bool:
        """Can a piece be divided at a threshold, and may it still be specialized?"""
        is_ordered = isinstance(self.domains[piece.axis], OrderedDomain)
        return is_ordered and piece.high - piece.low > 1 and self.n_taken < self.specializations

    def _charge(self, what: str, piece: Piece | None = None) -> None:
        of = "" if piece is None else self.domains[piece.axis].attribute.name
        self.ledger.charge(Draw(what, of, EXPONENTIAL, self.share, self.scale))

    def _threshold_scores(self, piece: Piece) -> Ints:
        below = np.cumsum(self.counts.matrix(piece.axis, piece.low, piece.high), axis=0)
        return np.concatenate(
            [
                self.score.of(np.stack([left, below[-1] - left], axis=1))
                for left in np.split(below[:-1], range(AT_ONCE, len(below) - 1, AT_ONCE))
            ]
        )


def share_of_draw(epsilon: Fraction, n_ordered: int, specializations: int) -> Fraction:
    """The share of one draw, epsilon' [MCFY11, Algorithm 1, line 3]; of no use where nothing is to be drawn.

    >>> share_of_draw(Fraction(1), 6, 10)
    Fraction(1, 52)
    """
    return epsilon / (2 * max(n_ordered + 2 * specializations, 1))
