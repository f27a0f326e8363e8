"""Top-down specialization for classification (TDS) [FWY05], the baseline of [LDR08, section 4.4].

Of the candidates that are valid (every group of the grid keeps at least k rows) and beneficial (its rows have
more than one class), the one of the best score is taken, until there is none:

.. math:: Score(v) = InfoGain(v) / (AnonyLoss(v) + 1)

InfoGain is over the rows at v, per row; AnonyLoss is by how much the smallest group of the grid would shrink. A
number is divided where InfoGain is greatest. Ties: the smaller largest part, the attribute, the order of codes.

Departs from the paper: a node of whose children only one has rows is replaced by them at once. It divides no group
and so costs nothing, and what lies below would otherwise wait for a score that is always 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato import encoding, tables
from sfumato.encoding import Codes, Domain
from sfumato.engines.memory import information_table
from sfumato.errors import RequirementUnreachable
from sfumato.kernels.compile import is_warm
from sfumato.kernels.cuts import best_threshold, gain_of_parts, lower_least, split_groups
from sfumato.partition import Partition, Progress, no_progress
from sfumato.policy import Policy
from sfumato.requirement import GroupStats, KAnonymity
from sfumato.schema import Schema
from sfumato.specialization.loop import Candidate, Grid, Piece, specialize
from sfumato.tables import Source
from sfumato.workload import Classify

FACTS = np.dtype(
    [("gain", np.float64), ("rows", np.int64), ("largest", np.int64), ("axis", np.int64), ("low", np.int64),
     ("is_free", np.bool_)],
    align=True,
)  # fmt: skip
"""What is known of a candidate from its own attribute alone."""


def partition(
    source: Source,
    policy: Policy,
    *,
    threads: int | None = None,  # noqa: ARG001 - every method takes it; this one has nothing to share out
    progress: Progress = no_progress,
) -> Partition:
    """Divide the rows into the groups of a grid of at least k rows each, as useful as possible for the classes."""
    progress("checking", 0, 1)
    k = _least_rows(source, policy)
    labels = Labels.of(source, policy)
    quasi = policy.schema.quasi_identifiers
    codes = np.empty((len(quasi), source.n_rows), dtype=np.uint32)
    domains: list[Domain] = []
    for a, attribute in enumerate(quasi):
        progress("encoding", a, len(quasi))
        domain, codes[a] = encoding.encode_axis(source, attribute)
        domains.append(domain)
    tables.give_back_memory()
    progress("specializing" if is_warm() else "compiling (once)", 0, source.n_rows)
    chooser = BestScore(codes, labels, [domain.n_codes for domain in domains], k=k, progress=progress)
    grid = Grid.of(specialize(domains, chooser), domains)
    start, end = chooser.start[: chooser.n_groups], chooser.end[: chooser.n_groups]
    places = grid.places(codes[:, chooser.rows[start]])
    order = np.lexsort(places.T[::-1])
    size = (end - start)[order]
    members = np.repeat(start[order] - (np.cumsum(size) - size), size) + np.arange(source.n_rows)
    recoding = grid.recoding(len(size), policy.output, policy.schema.left_out)
    return Partition(recoding, places[order], size, chooser.rows[members])


def _least_rows(source: Source, policy: Policy) -> int:
    """The largest k that is required; raises if the whole table is smaller."""
    least = 1
    for requirement in policy.requirements:
        assert isinstance(requirement, KAnonymity)  # the policy admits no other
        whole = GroupStats(np.array([source.n_rows]))
        if not requirement.holds(whole)[0]:
            best = requirement.describe(float(source.n_rows))
            raise RequirementUnreachable(requirement, best=best, n_rows=source.n_rows)
        least = max(least, requirement.k)
    return least


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The classes (rows, targets), how many each target has, and the weight of its gain."""

    codes: Codes
    n_classes: NDArray[np.int64]
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, source: Source, policy: Policy) -> Labels:
        columns, n_classes, weight = [], [], []
        for task in policy.workload:
            if not isinstance(task, Classify):
                continue
            for targets in [task.targets] if task.joint else [(name,) for name in task.targets]:
                codes, n = _joint_label(source, policy.schema, targets)
                columns.append(codes)
                n_classes.append(n)
                weight.append(task.weight)
        if len(weight) == 1:
            weight = [1.0]
        return cls(np.stack(columns, axis=1), np.array(n_classes, dtype=np.int64), np.array(weight))


def _joint_label(source: Source, schema: Schema, names: Sequence[str]) -> tuple[Codes, int]:
    """The vector of these labels as one, and how many there are."""
    combined, n = encoding.encode_label(source, schema[names[0]])
    for name in names[1:]:
        codes, n_values = encoding.encode_label(source, schema[name])
        distinct, combined = np.unique(combined * np.int64(n_values) + codes, return_inverse=True)
        n = len(distinct)
    return combined.astype(np.uint32), n


class BestScore:
    """The chooser of TDS. It keeps the groups of the grid, and of each candidate the smallest part it would make.

    Groups only ever get smaller, and a finer grid cuts a candidate's parts finer: that smallest part sinks and
    never rises. So it is lowered by the groups that the last specialization touched, nothing else is looked
    at again, and a candidate that is not valid never becomes so.
    """

    def __init__(
        self,
        codes: Codes,
        labels: Labels,
        n_codes: Sequence[int],
        *,
        k: int,
        progress: Progress = no_progress,
    ) -> None:
        n_rows = codes.shape[1]
        self.codes, self.labels, self.k, self.progress = codes, labels, k, progress
        self.table = information_table(n_rows)
        self.by_code = [_ByCode.of(column, labels) for column in codes]
        self.first = np.cumsum([0, *n_codes], dtype=np.int64)
        self.candidate = np.full(sum(n_codes), -1, dtype=np.int64)
        self.part = np.zeros(sum(n_codes), dtype=np.int64)
        self.rows = np.arange(n_rows, dtype=np.uint32)
        self.start, self.end, self.group, self.touched = np.zeros((4, n_rows), dtype=np.int64)
        self.end[0] = n_rows
        self.n_groups = self.n_touched = 1
        self.most_parts = 0
        self.anonymity = n_rows
        self.facts = np.zeros(64, dtype=FACTS)
        self.least = np.zeros(64, dtype=np.int64)
        self.open = np.zeros(0, dtype=np.int64)
        self.at_thresholds: dict[Piece, tuple[float, int]] = {}

    def threshold(self, piece: Piece) -> int | None:
        """Where the gain is greatest, whatever becomes of the groups [FWY05, section 4]."""
        rows = self.by_code[piece.axis].between(piece.low, piece.high)
        if not rows.is_beneficial:
            return None
        last, gain, largest = best_threshold(
            rows.codes, rows.labels, self.labels.n_classes, self.labels.weight, self.table
        )
        if last < 0:
            return None
        self.at_thresholds[piece] = gain, largest
        return int(last)

    def offer(self, number: int, candidate: Candidate) -> None:
        """Note a candidate, if it is beneficial."""
        piece = candidate.piece
        rows = self.by_code[piece.axis].between(piece.low, piece.high)
        if not rows.is_beneficial:
            return
        if piece in self.at_thresholds:
            (gain, largest), n_filled = self.at_thresholds.pop(piece), 2
        else:
            ends = np.searchsorted(rows.codes, np.array(candidate.ends, dtype=np.uint32))
            gain, largest, n_filled = gain_of_parts(
                rows.labels, ends, self.labels.n_classes, self.labels.weight, self.table
            )
        if number >= len(self.facts):
            self.facts = np.resize(self.facts, 2 * number)
            self.least = np.resize(self.least, 2 * number)
        self.facts[number] = max(gain, 0.0), len(rows.codes), largest, piece.axis, piece.low, n_filled == 1
        self.least[number] = len(self.rows)
        self.open = np.append(self.open, number)
        self.most_parts = max(self.most_parts, len(candidate.parts))
        first = self.first[piece.axis]
        for p, part in enumerate(candidate.parts):
            self.candidate[first + part.low : first + part.high] = number
            self.part[first + part.low : first + part.high] = p

    def choose(self) -> int | None:
        """The valid candidate of the best score."""
        lower_least(
            self.codes, self.first, self.candidate, self.part, self.most_parts, self.rows, self.start, self.end,
            self.touched[: self.n_touched], self.least,
        )  # fmt: skip
        self.open = self.open[self.least[self.open] >= self.k]
        if len(self.open) == 0:
            return None
        if self.k == 1:  # all are valid and will be taken, so their order does not matter
            return int(self.open[-1])
        facts, least = self.facts[self.open], self.least[self.open]
        loss = self.anonymity - np.minimum(least, self.anonymity)
        score = np.where(facts["is_free"], np.inf, facts["gain"] / (facts["rows"] * (loss + 1)))
        best = np.flatnonzero(score == score.max())
        ties = facts[best]
        first = np.lexsort((ties["low"], ties["axis"], ties["largest"]))[0]
        return int(self.open[best[first]])

    def take(self, number: int, candidate: Candidate) -> None:
        """Divide the groups that lie in its piece."""
        a, piece = candidate.piece.axis, candidate.piece
        self.n_groups, self.n_touched = split_groups(
            self.by_code[a].between(piece.low, piece.high).rows, self.codes[a],
            self.part[self.first[a] : self.first[a + 1]], len(candidate.parts), self.n_groups,
            self.rows, self.start, self.end, self.group, self.touched,
        )  # fmt: skip
        self.anonymity = min(self.anonymity, int(self.least[number]))
        self.open = self.open[self.open != number]
        self.candidate[self.first[a] + piece.low : self.first[a] + piece.high] = -1
        self.progress("specializing", self.n_groups, len(self.rows) // self.k)


@dataclass(frozen=True, slots=True, eq=False)
class _ByCode:
    """Rows in the order of their codes on one axis, with their labels and numbers."""

    codes: Codes
    labels: Codes
    rows: NDArray[np.uint32]

    @classmethod
    def of(cls, codes: Codes, labels: Labels) -> _ByCode:
        order = np.argsort(codes, kind="stable").astype(np.uint32)
        return cls(codes[order], labels.codes[order], order)

    def between(self, low: int, high: int) -> _ByCode:
        """Those with codes in [low, high)."""
        start, end = np.searchsorted(self.codes, np.array([low, high], dtype=np.uint32))
        return _ByCode(self.codes[start:end], self.labels[start:end], self.rows[start:end])

    @property
    def is_beneficial(self) -> bool:
        """Have they more than one class of some target?"""
        return len(self.codes) > 0 and bool((self.labels != self.labels[0]).any())


__all__ = ["partition"]
