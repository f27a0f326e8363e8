"""What a draft would leave of each column: a sample of the rows is divided into groups by it, as publishing does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import methods
from sfumato.policy.document import Policy
from sfumato.randomness import seeded
from sfumato.recoding.axis import Axis, DistinctBoxes, TreeAxis
from sfumato.recoding.loss import boxes_along, shares_of
from sfumato.table.source import Source

SAMPLED = 20_000
"""Rows of a trial: in all of them columns keep more detail, because groups find more like rows."""

Rows = NDArray[np.int64]


def choose_rows(n_rows: int, of_person: NDArray[np.integer[Any]] | None = None) -> Rows:
    """The rows of a trial, always the same ones; all rows of a person, where ``of_person`` numbers people."""
    if n_rows <= SAMPLED:
        return np.arange(n_rows)
    if of_person is None:
        return np.sort(seeded(0).choice(n_rows, SAMPLED, replace=False))
    people = seeded(0).permutation(int(of_person.max()) + 1)[of_person]  # people in random order
    return np.sort(np.argsort(people, kind="stable")[:SAMPLED])


def share_of_stars(sample: Source, policy: Policy) -> dict[str, float]:
    """The share of the rows in which each quasi-identifier would say nothing: ``*``, or the whole range of a number."""
    groups = methods.partition(sample, policy)
    boxes = boxes_along(groups.recoding.ends(groups.leaf))
    return {
        axis.attribute.name: float(
            groups.size[_says_nothing(axis, along)[along.which]].sum() / groups.size.sum()
        )
        for axis, along in zip(groups.recoding.axes, boxes, strict=True)
    }


def _says_nothing(axis: Axis, boxes: DistinctBoxes) -> NDArray[np.bool_]:
    """Which boxes leave all of a column open."""
    is_tree = isinstance(axis, TreeAxis)
    return np.asarray(boxes.low == 0 if is_tree else shares_of(axis, boxes, None).share >= 1)  # 0 is the root
