"""Candidates for a split, and what the requirement must know of them, gathered in a pass of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.protocol import Block
from sfumato.methods.mondrian.kernels.statistics import Bins
from sfumato.methods.mondrian.node_counts import Ints, SplitCriteria
from sfumato.methods.mondrian.statistics import GroupStatistics
from sfumato.table.spill import Spill

CANDIDATE = {
    score: np.dtype(
        [("rank", np.int64), ("score", score), ("largest", np.int64), ("axis", np.int64), ("code", np.int64),
         ("rows", np.int64)],
    )
    for score in (np.int64, np.float64)
}  # fmt: skip
"""A split that may be taken, by the type of scores. Along a hierarchy the code is -1; on an ordered axis ``rows`` go
left. All have rank 0, but for Median the widest axis comes first."""


def order_keys(listed: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """What candidates are ordered by, last to first: rank, score, balance, axis, code; see ``kernels.choose``."""
    return listed["code"], listed["axis"], listed["largest"], -listed["score"], listed["rank"]


def is_worse(listed: NDArray[Any], floor: Any) -> NDArray[np.bool_]:
    """Which candidates come after ``floor``."""
    after = np.zeros(len(listed), dtype=np.bool_)
    is_tie = np.ones(len(listed), dtype=np.bool_)
    for own, other in zip(reversed(order_keys(listed)), reversed(order_keys(floor)), strict=True):
        after |= is_tie & (own > other)
        is_tie &= own == other
    return after


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePlan:
    """Gather what the requirement must know of some candidates, best first."""

    criteria: SplitCriteria
    listed: NDArray[Any]  # CANDIDATE
    borders: dict[int, Ints]
    """For axes with a hierarchy: the last codes of the children."""
    is_all: bool
    """Are there no other candidates?"""

    @property
    def n_bytes(self) -> int:
        """Memory that it takes to check all of them in one pass."""
        return self._n_bins() * GroupStatistics.bytes_per_group(self.criteria.rules)

    def _n_bins(self) -> int:
        return len(self.listed) + sum(len(ends) + 1 for ends in self.borders.values()) + self.criteria.n_axes

    def new(self, room: int, _spill: Spill | None = None) -> CandidateStatistics:
        """Statistics of no row yet, of as many of the candidates as there is room for."""
        per_bin = GroupStatistics.bytes_per_group(self.criteria.rules)
        n = max(1, len(self.listed) - max(0, self._n_bins() - room // per_bin))
        return CandidateStatistics(self, self.listed[:n], is_all=self.is_all and n == len(self.listed))

    def answer(self, state: CandidateStatistics) -> CandidateStatistics:
        """The statistics themselves."""
        return state


class CandidateStatistics:
    """What the requirement must know of the bins between the thresholds of some candidates."""

    def __init__(self, plan: CandidatePlan, listed: NDArray[Any], *, is_all: bool) -> None:
        self.listed, self.is_all = listed, is_all
        self.edges: dict[int, Ints] = {
            axis: plan.borders[axis]
            if axis in plan.borders
            else np.sort(listed["code"][listed["axis"] == axis])
            for axis in np.unique(listed["axis"]).tolist()
        }
        rules = plan.criteria.rules
        self.statistics = {axis: GroupStatistics(len(ends) + 1, rules) for axis, ends in self.edges.items()}
        self.n_bytes = sum(map(len, self.edges.values())) * GroupStatistics.bytes_per_group(rules)

    def add(self, block: Block) -> None:
        """Add some rows of the node."""
        for axis, statistics in self.statistics.items():
            codes = block.rows[:, axis]
            statistics.add(block.rows, np.searchsorted(self.edges[axis], codes, side="left"))

    def merge(self, other: CandidateStatistics) -> None:
        """Add the statistics of other rows of the node."""
        for axis, statistics in self.statistics.items():
            statistics.merge(other.statistics[axis])

    def bins(self, axis: int) -> Bins:
        """Running totals over the bins of an axis; ask once."""
        return self.statistics[axis].as_bins(self.edges[axis])

    def discard(self) -> None:
        """Nobody will look at them again."""
