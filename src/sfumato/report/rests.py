"""What a label means that stands for a rest, shown by one of the release's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.recoding.axis import TreeAxis
from sfumato.recoding.tree import Recoding

MOST_TRIED = 1_000
"""Rests that are looked at for an example; nearly always the first will do."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A ``label`` of the column ``name`` that is published of rows from which ``told_apart`` was taken away."""

    name: str
    label: str
    told_apart: str


def rest_of(recoding: Recoding) -> Rest | None:
    """The first rest of a recoding whose label covers what was told apart from it; None if there is none."""
    return next(_rests(recoding), None)


def _rests(recoding: Recoding) -> Iterator[Rest]:
    tree = recoding.tree
    above = tree.above()
    parents = np.flatnonzero((tree.axis >= 0) & (tree.n_children > 0))
    last = tree.first_child[parents] + tree.n_children[parents] - 1
    is_rest = (tree.branch[last] < 0) & _is_hierarchy(recoding, above[last])
    for parent, rest in zip(parents[is_rest][:MOST_TRIED].tolist(), last[is_rest].tolist(), strict=False):
        axis = recoding.axes[above[rest]]
        assert isinstance(axis, TreeAxis)
        node = int(tree.cover[_some_leaf(recoding, rest), above[rest]])
        taken = int(tree.branch[tree.first_child[parent]])
        low, high = axis.nodes.low, axis.nodes.high
        label, told_apart = axis.nodes.labels[node], axis.nodes.labels[taken]
        if node != taken and low[node] <= low[taken] and high[taken] <= high[node] and label and told_apart:
            yield Rest(axis.attribute.name, label, told_apart)


def _is_hierarchy(recoding: Recoding, axis: NDArray[np.int32]) -> NDArray[np.bool_]:
    is_tree = np.array([isinstance(own, TreeAxis) for own in recoding.axes])
    return np.asarray((axis < len(is_tree)) & is_tree[np.minimum(axis, len(is_tree) - 1)])


def _some_leaf(recoding: Recoding, node: int) -> int:
    """A group below a node: where splits send what they do not name."""
    tree = recoding.tree
    while tree.axis[node] >= 0:
        node = int(tree.first_child[node]) + max(int(tree.otherwise[node]), 0)
    return node
