"""Scores over the cells of features, from counts that were gathered block by block.

``kernels.cells`` computes the same scores where all rows of the node are in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.mondrian.frequency_sets import CellTarget, Codes, Entries, Ints
from sfumato.methods.mondrian.kernels.sets import (
    group_information,
    group_squares,
    information_within,
    walk_information,
    walk_squares,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class NodeIds:
    """The cells of one target in a node, each with a number (id); a label has an id for each cell and class."""

    feature: CellTarget
    n_ids: int
    rank: Codes  # the number of an id among those in use; of no length: the id itself
    line: Ints  # label: (ids, 2) -, rows; number: (ids, 4) -, -, rows, sum; the dashes are for the left part
    cell_of: Ints  # label: the cell of each id
    cell: Ints  # label: (cells, 2) -, rows

    def score_unsplit(self, table: Floats) -> float:
        """The score of the whole node as one part."""
        return (
            0.0
            if self.feature.is_number
            else float(information_within(self.line[:, 1].copy(), self.cell[:, 1].copy(), table))
        )


def number_ids(feature: CellTarget, totals: Ints, *, compact: bool) -> NodeIds:
    """The ids of a node from the totals of ``add_ids``; ``compact`` gives new numbers to those in use."""
    rank = np.zeros(0, dtype=np.uint32)
    if compact:
        used = np.flatnonzero(totals[:, 0])
        rank = np.zeros(len(totals), dtype=np.uint32)
        rank[used] = np.arange(len(used), dtype=np.uint32)
        totals = totals[used]
    n_ids = len(totals)
    if feature.is_number:
        line = np.zeros((n_ids, 4), dtype=np.int64)
        line[:, 2:] = totals
        return NodeIds(feature, n_ids, rank, line, totals[:0, 1], line[:0])
    line = np.zeros((n_ids, 2), dtype=np.int64)
    line[:, 1] = totals[:, 0]
    cells, cell_of = np.unique(totals[:, 1], return_inverse=True)
    cell = np.zeros((len(cells), 2), dtype=np.int64)
    np.add.at(cell[:, 1], cell_of, totals[:, 0])
    return NodeIds(feature, n_ids, rank, line, cell_of.astype(np.int64), cell)


class CellWalk:
    """A walk over the codes of one axis, in ascending order, that keeps the score of what was walked."""

    def __init__(self, ids: Sequence[NodeIds], table: Floats) -> None:
        self.ids, self.table = ids, table
        self.line = [each.line.copy() for each in ids]
        self.cell = [each.cell.copy() for each in ids]
        self.score = [each.score_unsplit(table) for each in ids]
        self.touched = [np.zeros(1, dtype=np.int64) for _ in ids]
        self.group = [np.full(1, -1, dtype=np.int64) for _ in ids]

    def score_thresholds(self, entries: Sequence[Entries], n_codes: int) -> Floats:
        """The score of the threshold at each of the next codes."""
        out = np.zeros(n_codes)
        for f, (ids, each) in enumerate(zip(self.ids, entries, strict=True)):
            scores = np.empty(n_codes)
            if ids.feature.is_number:
                self.score[f] = walk_squares(
                    each.end, each.of, each.weight, each.total, ids.feature.scale,
                    self.line[f], self.score[f], scores,
                )  # fmt: skip
            else:
                self.score[f] = walk_information(
                    each.end, each.of, each.weight, ids.cell_of,
                    self.line[f], self.cell[f], self.score[f], self.table, scores,
                )  # fmt: skip
            out += ids.feature.weight * scores
        return out

    def add_groups(self, entries: Sequence[Entries], group: Ints) -> None:
        """Walk on: the next codes belong to these groups, which follow one another."""
        for f, (ids, each) in enumerate(zip(self.ids, entries, strict=True)):
            if len(self.touched[f]) == 1:  # the first codes
                self.touched[f] = np.zeros(1 + ids.n_ids, dtype=np.int64)
                self.score[f] = 0.0
            of_entry = np.repeat(group, np.diff(each.end, prepend=0))
            if ids.feature.is_number:
                self.score[f] = group_squares(
                    of_entry, each.of, each.weight, each.total, ids.feature.scale,
                    self.line[f], self.touched[f], self.group[f], self.score[f],
                )  # fmt: skip
            else:
                self.score[f] = group_information(
                    of_entry, each.of, each.weight, ids.cell_of,
                    self.line[f], self.cell[f], self.touched[f], self.group[f], self.score[f], self.table,
                )  # fmt: skip

    def score_of_groups(self) -> float:
        """The score of the split into the groups that were added."""
        score = 0.0
        for ids, each in zip(self.ids, self.score, strict=True):
            score += ids.feature.weight * each
        return score
