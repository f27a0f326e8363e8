"""What models learn from differentially private releases: noisy counts, written out as rows.

Nothing is released here, so the randomness is seeded and the same evaluation can be had again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato import declared
from sfumato.cuts import Cuts
from sfumato.encoding import TreeDomain
from sfumato.evaluate import measures, points
from sfumato.evaluate.points import Categories, Column
from sfumato.hierarchy import Hierarchy
from sfumato.policy import DiffGenOptions, Policy
from sfumato.privacy import mechanisms
from sfumato.specialization import diffgen
from sfumato.tables import Source

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """A release in counts: the cuts, the place of each cell (cells, axes), and its counts (cells, classes)."""

    cuts: Cuts
    trees: Mapping[str, Hierarchy]
    places: Ints
    counts: Ints
    classes: tuple[str, ...]

    @classmethod
    def of(cls, source: Source, policy: Policy, *, seed: int) -> Lines:
        """What ``policy`` would publish of these rows, if the seed were chance."""
        assert isinstance(policy.method, DiffGenOptions)
        rows = declared.held(source, policy)
        drawn = diffgen.draw(
            rows, rows.domains, len(rows.class_values), policy.method, mechanisms.seeded(seed)
        )
        place = np.meshgrid(*drawn.grid.place, indexing="ij")
        return cls(
            drawn.grid.recoding(len(drawn.counts), policy.output, policy.schema.left_out),
            {d.attribute.name: d.hierarchy for d in rows.domains if isinstance(d, TreeDomain)},
            np.stack([axis.ravel() for axis in place], axis=1),
            drawn.counts,
            rows.class_values,
        )

    def boxes(self, *sources: Source) -> points.RowBoxes:
        """The boxes of the rows of these tables, and after them those of all cells."""
        ends = [self.cuts.box_ends(source) for source in sources]
        return points.boxes_between(self.cuts, [*ends, self.cuts.ends(self.places)], self.trees)

    def rows(self, target: Column) -> tuple[Ints, Ints]:
        """Every row that the counts stand for: its cell, and its class by the codes of ``target``.

        Where there is none, one of the first declared class: a guess that does not depend on the table.
        """
        assert isinstance(target, Categories)
        assert target.texts is not None
        known = {text: code for code, text in enumerate(target.texts.to_pylist())}
        codes = np.array([known.get(text, target.n_values + i) for i, text in enumerate(self.classes)])
        line = np.repeat(np.arange(self.counts.size), self.counts.ravel())
        line = line if len(line) else np.zeros(1, dtype=np.int64)
        return line // len(codes), codes[line % len(codes)]

    def measures(self, boxes: points.RowBoxes, n_rows: int) -> dict[str, float]:
        """What can be said without groups of rows; ``boxes`` begin with those of ``n_rows`` training rows."""
        return {
            "cells": float(len(self.counts)),
            "rows that the counts stand for": float(self.counts.sum()),
            "normalized certainty penalty": measures.certainty_penalty(boxes.widths()[:n_rows]),
        }
