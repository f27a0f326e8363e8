"""Noisy counts of a differentially private release, written out as rows that models can learn from.

Nothing is released here, so the randomness is seeded and the same evaluation can be had again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation import loss, points
from sfumato.evaluation.points import CategoryColumn, Column
from sfumato.methods.specialization.diffgen.release import DrawnCounts, draw_release
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.declared import with_missing
from sfumato.privacy import mechanisms
from sfumato.recoding.axis import TreeAxis
from sfumato.recoding.cuts import Cuts
from sfumato.table.source import Source

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyRows:
    """A private release of a training part; boxes of the training rows, the test rows, and all cells of the grid."""

    drawn: DrawnCounts
    boxes: points.RowBoxes
    train: Source

    @classmethod
    def of(cls, train: Source, test: Source, policy: Policy, *, seed: int) -> NoisyRows:
        drawn = draw_release(train, policy, chance=mechanisms.seeded(seed))
        cuts = drawn.recoding
        trees = {
            axis.attribute.name: with_missing(axis.attribute.build_declared_hierarchy())
            for axis in cuts.axes
            if isinstance(axis, TreeAxis)
        }
        ends = [cuts.box_ends(train), cuts.box_ends(test), cuts.ends(_list_cells(cuts))]
        return cls(drawn, points.boxes_from_ends(cuts, ends, trees), train)

    def rows(self, name: str, target: Column) -> tuple[Ints, Ints]:
        """The rows that the counts stand for: the cell of each, and its class as a code of the ``target`` of that name.

        If all counts are 0, one row of the first declared class: a guess that does not depend on the table.
        """
        assert isinstance(target, CategoryColumn)
        assert target.texts is not None
        _, classes = self.drawn.lines.columns[name]
        known = {text: code for code, text in enumerate(target.texts.to_pylist())}
        codes = np.array([known.get(text, target.n_values + i) for i, text in enumerate(classes.to_pylist())])
        line = np.repeat(np.arange(self.drawn.counts.size), self.drawn.counts.ravel())
        line = line if len(line) else np.zeros(1, dtype=np.int64)
        return line // len(codes), codes[line % len(codes)]

    def measures(self) -> dict[str, float]:
        """The measures that need no groups of rows."""
        return {
            "cells": float(len(self.drawn.counts)),
            "rows that the counts stand for": float(self.drawn.counts.sum()),
            **loss.measure_rows(self.drawn.recoding, self.train, self.boxes.trees),
        }


def _list_cells(cuts: Cuts) -> Ints:
    """The place of each cell of the grid, in the order of its counts."""
    pieces = [
        axis.nodes.leaf_nodes.astype(np.int64)
        if isinstance(axis, TreeAxis)
        else np.arange(len(thresholds) + 1)
        for axis, thresholds in zip(cuts.axes, cuts.thresholds, strict=True)
    ]
    return np.stack([place.ravel() for place in np.meshgrid(*pieces, indexing="ij")], axis=1)
