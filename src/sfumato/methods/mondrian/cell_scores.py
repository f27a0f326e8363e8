"""Scores over the cells of features along one axis, from counts; see ``kernels.cells``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.mondrian.kernels.counted import (
    add_label_of_group,
    add_number_of_group,
    clear_label_of_group,
    information_of_ids,
    take_number_of_group,
    walk_label,
    walk_number,
)
from sfumato.methods.mondrian.node_counts import Ints, NodeCounts


class CellScores:
    """The scores of an axis: of its thresholds in ascending order, or of its division into groups."""

    def __init__(self, counts: NodeCounts, axis: int) -> None:
        self.counts, self.axis = counts, axis
        self.features, self.table = counts.criteria.features, counts.criteria.table
        known = counts.plan.known
        self.first, self.end = int(known.low[axis]), int(known.high[axis]) + 1
        self._ids = [self._count_ids(f) for f in range(len(self.features))]
        """(ids, 4) of each feature, as ``walk_information`` or ``walk_squares`` count them."""
        self._score = [
            0.0 if feature.is_number else information_of_ids(ids, self.table)
            for feature, ids in zip(self.features, self._ids, strict=True)
        ]

    def _count_ids(self, f: int) -> Ints:
        """Everything on the right."""
        feature = self.features[f]
        ids = np.zeros((feature.n_ids, 4), dtype=np.int64)
        for _, entries in self.counts.entries(self.axis, f, self.first, self.end):
            if feature.is_number:
                np.add.at(ids[:, 2], entries.of, entries.weight)
                np.add.at(ids[:, 3], entries.of, entries.total)
            else:
                np.add.at(ids[:, 1], entries.of, entries.weight)
                np.add.at(ids[:, 3], entries.cell, entries.weight)
        return ids

    def score_unsplit(self) -> float:
        """The score of the node as one part; before any threshold is scored."""
        return self._weigh(self._score)

    def score_thresholds(self, code: Ints) -> NDArray[Any]:
        """The score of the threshold at each of the next codes, all that occur there."""
        scores = np.zeros(len(code), dtype=self.counts.criteria.score_type)
        for f, feature in enumerate(self.features):
            for of, entries in self.counts.entries(self.axis, f, int(code[0]), int(code[-1]) + 1):
                first, last = np.searchsorted(code, [of[0], of[-1] + 1])
                ends, out = np.searchsorted(of, code[first:last], side="right"), scores[first:last]
                ids, score, weight = self._ids[f], self._score[f], feature.weight
                if feature.is_number:
                    self._score[f] = walk_number(entries, ends, weight, feature.scale, ids, score, out)
                else:
                    self._score[f] = walk_label(entries, ends, weight, ids, score, self.table, out)
        return scores

    def score_groups(self, ranges: Sequence[tuple[int, int]]) -> float:
        """The score of the division into groups, each the codes [first, last)."""
        scores = []
        for f, feature in enumerate(self.features):
            score, ids = 0, self._ids[f]
            for first, last in ranges:
                for _, entries in self.counts.entries(
                    self.axis, f, max(first, self.first), min(last, self.end)
                ):
                    if feature.is_number:
                        add_number_of_group(entries, ids)
                    else:
                        score += add_label_of_group(entries, ids, self.table)
                for _, entries in self.counts.entries(
                    self.axis, f, max(first, self.first), min(last, self.end)
                ):
                    if feature.is_number:
                        score += take_number_of_group(entries, feature.scale, ids)
                    else:
                        clear_label_of_group(entries, ids)
            scores.append(score)
        return self._weigh(scores)

    def _weigh(self, scores: Sequence[float]) -> float:
        total: float = 0  # whole numbers stay whole; sum() would add floats in another way than kernels do
        for feature, score in zip(self.features, scores, strict=True):
            total += feature.weight * score
        return total
