"""The choice of TDS: of the valid and beneficial candidates the one of the best score [FWY05]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.specialization.gains import Gains
from sfumato.methods.specialization.group_rule import GroupRule
from sfumato.methods.specialization.groups import SpecializedGroups
from sfumato.methods.specialization.loop import Candidate, Piece
from sfumato.progress import Progress, no_progress

FACTS = np.dtype(
    [("gain", np.float64), ("rows", np.int64), ("largest", np.int64), ("axis", np.int64), ("low", np.int64),
     ("is_free", np.bool_)],
    align=True,
)  # fmt: skip
"""What is known of a candidate from its own attribute alone (:class:`CandidateFacts`), and where it stands."""


MORE_AT_ONCE = 8
"""One candidate is tested first, then eight times as many each time that the best fails."""


class BestScore:
    """The chooser of TDS. Gains come from counts of columns, the smallest parts from ``groups``.

    Groups only ever get smaller, so the smallest part that a candidate would make (``least``) never grows. A candidate
    that is not valid never becomes valid, and a ``least`` of an earlier grid is an upper bound, also of the score. It is
    made exact only for the best candidate by these bounds: if that one is exact already, it is the best.

    Where rows do not tell whether it is valid (they count people, or some may be left out), it is tested then.
    """

    def __init__(
        self, gains: Gains, groups: SpecializedGroups, *, rule: GroupRule, progress: Progress = no_progress
    ) -> None:
        self.gains, self.groups, self.rule, self.progress = gains, groups, rule, progress
        self.anonymity = rule.n_rows
        self.facts = np.zeros(64, dtype=FACTS)
        self.least = np.zeros(64, dtype=np.int64)
        self.open = np.zeros(0, dtype=np.int64)
        self.candidates: dict[int, Candidate] = {}
        """Those that have to be tested."""
        self.n_at_once = 1

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
        if not self.rule.is_told_by_rows:
            self.candidates[number] = candidate
        self.groups.offer(number, candidate)

    def choose(self) -> int | None:
        """The valid candidate of the best score."""
        while True:
            self.open = self.open[self.least[self.open] >= self.rule.fewest_rows]
            if len(self.open) == 0:
                return None
            if self.rule.k == 1:  # all are valid and will be taken, so their order does not matter
                return int(self.open[-1])
            best = self._best()
            if not self.groups.is_exact(best):
                self.groups.lower(best, self.least, self.open, self.anonymity)
            elif self._is_allowable(best):
                return best

    def _is_allowable(self, best: int) -> bool:
        """Would the groups satisfy the rule with this candidate? Those that fail beside it are dropped, too."""
        if self.rule.is_told_by_rows or self.facts["is_free"][best]:
            return True
        others = self.open[np.argsort(-self._scores(), kind="stable")[: self.n_at_once]].tolist()
        numbers = dict.fromkeys([best, *others][: self.n_at_once])
        found = self.groups.hold({number: self.candidates[number] for number in numbers})
        failed = [number for number, holds in found.items() if not holds]
        self.open = self.open[~np.isin(self.open, failed)]
        self.n_at_once = 1 if found[best] else min(MORE_AT_ONCE * self.n_at_once, self.groups.most_at_once)
        return found[best]

    def _scores(self) -> NDArray[np.float64]:
        """The scores of the open candidates, by ``least`` as far as it is known."""
        facts, least = self.facts[self.open], self.rule.clip(self.least[self.open])
        loss = self.anonymity - np.minimum(least, self.anonymity)
        return np.where(facts["is_free"], np.inf, facts["gain"] / (facts["rows"] * (loss + 1)))

    def _best(self) -> int:
        """The candidate of the best score, by ``least`` as far as it is known."""
        facts, score = self.facts[self.open], self._scores()
        best = np.flatnonzero(score == score.max())
        ties = facts[best]
        first = np.lexsort((ties["low"], ties["axis"], ties["largest"]))[0]
        return int(self.open[best[first]])

    def take(self, number: int, candidate: Candidate) -> None:
        """Divide the groups that lie in its piece."""
        self.groups.take(number, candidate)
        self.gains.forget(candidate.piece)
        self.candidates.pop(number, None)
        self.anonymity = min(self.anonymity, int(self.rule.clip(self.least[number])))
        self.open = self.open[self.open != number]
        self.progress("specializing", self.groups.n_groups, self.rule.n_rows // self.rule.k)
