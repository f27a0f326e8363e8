"""Splits that are undone after growth, and cells of a list that are taken back; ``own_reference`` says when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.nodes import Nodes
from sfumato.methods.mondrian.sample import keep_splits
from sfumato.recoding.tree_file import PathStep

Ints = NDArray[np.int64]
Way = tuple[tuple[int, int, int], ...]
"""The splits on the way to a node of the top, each with the branch that is taken."""


def way_of(path: Sequence[PathStep]) -> Way:
    """A path as a key.

    >>> way_of([PathStep(0, 7, [0, 1], 1)])
    ((0, 7, 1),)
    """
    return tuple((step.axis, step.threshold, int(step.branches[step.taken])) for step in path)


class TakenBack(NamedTuple):
    """What is undone below a leaf of the top: nodes of its tree that stay whole, or all cells of its list but the first.

    ``cells`` is None where no cell was taken back.
    """

    whole: frozenset[int] = frozenset()
    cells: int | None = None


NO_SPLIT = TakenBack()


@dataclass(frozen=True, slots=True)
class Undone:
    """What is undone in all: splits of the ``top``, by the ways to them, and what lies below each of its leaves.

    ``published`` says how often each sensitive value counts in what is published, where some of it was left out.
    """

    top: frozenset[Way] = frozenset()
    below: Mapping[Way, TakenBack] = field(default_factory=dict)
    published: Mapping[str, Ints] = field(default_factory=dict)


NOTHING_UNDONE = Undone()


def keep_whole(nodes: Nodes, whole: Iterable[int]) -> tuple[Nodes, Ints]:
    """The tree in which these nodes are leaves, with all their rows, and which node of the old tree each one was."""
    is_split = nodes.axis >= 0
    is_split[list(whole)] = False
    return keep_splits(nodes, is_split=is_split, is_there=np.ones_like(is_split))
