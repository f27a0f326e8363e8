"""The choice of TDS: of the valid and beneficial candidates the one of the best score [FWY05]."""

from __future__ import annotations

import numpy as np

from sfumato.methods.specialization.gains import Gains
from sfumato.methods.specialization.groups import SpecializedGroups
from sfumato.methods.specialization.loop import Candidate, Piece
from sfumato.progress import Progress, no_progress

FACTS = np.dtype(
    [("gain", np.float64), ("rows", np.int64), ("largest", np.int64), ("axis", np.int64), ("low", np.int64),
     ("is_free", np.bool_)],
    align=True,
)  # fmt: skip
"""What is known of a candidate from its own attribute alone (:class:`CandidateFacts`), and where it stands."""


class BestScore:
    """The chooser of TDS. Gains come from counts of columns, the smallest parts from ``groups``.

    Groups only ever get smaller, so the smallest part that a candidate would make (``least``) never grows. A candidate
    that is not valid never becomes valid, and a ``least`` of an earlier grid is an upper bound, also of the score. It is
    made exact only for the best candidate by these bounds: if that one is exact already, it is the best.
    """

    def __init__(
        self,
        gains: Gains,
        groups: SpecializedGroups,
        *,
        k: int,
        n_rows: int,
        progress: Progress = no_progress,
    ) -> None:
        self.gains, self.groups, self.k, self.n_rows, self.progress = gains, groups, k, n_rows, progress
        self.anonymity = n_rows
        self.facts = np.zeros(64, dtype=FACTS)
        self.least = np.zeros(64, dtype=np.int64)
        self.open = np.zeros(0, dtype=np.int64)

    def threshold(self, piece: Piece) -> int | None:
        return self.gains.threshold(piece)

    def offer(self, number: int, candidate: Candidate) -> None:
        """Consider a candidate, if it is beneficial."""
        facts = self.gains.of(candidate)
        if facts is None:
            return
        piece = candidate.piece
        if number >= len(self.facts):
            self.facts = np.resize(self.facts, 2 * number)
            self.least = np.resize(self.least, 2 * number)
        self.facts[number] = facts.gain, facts.rows, facts.largest, piece.axis, piece.low, facts.is_free
        self.least[number] = facts.smallest
        self.open = np.append(self.open, number)
        self.groups.offer(number, candidate)

    def choose(self) -> int | None:
        """The valid candidate of the best score."""
        while True:
            self.open = self.open[self.least[self.open] >= self.k]
            if len(self.open) == 0:
                return None
            if self.k == 1:  # all are valid and will be taken, so their order does not matter
                return int(self.open[-1])
            best = self._best()
            if self.groups.is_exact(best):
                return best
            self.groups.lower(best, self.least, self.open, self.anonymity)

    def _best(self) -> int:
        """The candidate of the best score, by ``least`` as far as it is known."""
        facts, least = self.facts[self.open], self.least[self.open]
        loss = self.anonymity - np.minimum(least, self.anonymity)
        score = np.where(facts["is_free"], np.inf, facts["gain"] / (facts["rows"] * (loss + 1)))
        best = np.flatnonzero(score == score.max())
        ties = facts[best]
        first = np.lexsort((ties["low"], ties["axis"], ties["largest"]))[0]
        return int(self.open[best[first]])

    def take(self, number: int, candidate: Candidate) -> None:
        """Divide the groups that lie in its piece."""
        self.groups.take(number, candidate)
        self.gains.forget(candidate.piece)
        self.anonymity = min(self.anonymity, int(self.least[number]))
        self.open = self.open[self.open != number]
        self.progress("specializing", self.groups.n_groups, self.n_rows // self.k)
