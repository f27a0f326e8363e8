"""The boxes of a tree of splits, read off a level at a time.

Along each axis a node has a *piece*: its two ends. A node has the pieces of its parent, but for one end of one of them,
so it brings one new piece, which gets the node's number. All pieces of the root have number 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

NO_END = -1
"""Nothing limits the piece."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """How the piece of each node along one ``axis`` differs from its parent's: by its low end, or its high one.

    The root is its own parent, and changes nothing.
    """

    parent: Ints
    axis: Ints
    is_high: NDArray[np.bool_]
    end: Ints


@dataclass(frozen=True, slots=True, eq=False)
class LeafPieces:
    """The pieces of a tree's leaves, in their order: ``low`` and ``high`` end by number, and the numbers by axis."""

    low: NDArray[np.integer[Any]]
    high: NDArray[np.integer[Any]]
    of_leaf: NDArray[np.integer[Any]]


def leaf_pieces(changes: Changes, inner: Ints, leaves: Ints, n_axes: int) -> LeafPieces:
    """Pieces are numbered anew, level by level, so that those of a level stand side by side.

    >>> a, b = np.array([0, 0, 0]), np.array([NO_END, 7, 7])
    >>> found = leaf_pieces(Changes(a, a, np.array([False, True, False]), b), np.array([0]), np.array([1, 2]), 1)
    >>> found.low[found.of_leaf].tolist(), found.high[found.of_leaf].tolist()
    ([[-1, 7]], [[7, -1]])
    """
    n = len(inner) + len(leaves)
    inner, levels = _by_level(inner, changes.parent)
    nodes, numbers = np.concatenate([inner, leaves]), np.arange(n)
    number = np.empty(n, dtype=np.int64)
    number[nodes] = numbers
    above, end, first = number[changes.parent[nodes]], changes.end[nodes], changes.axis[nodes] * n
    own, changed, end_at = first + numbers, first + above, changes.is_high[nodes] * n + numbers
    pieces, ends = np.zeros((n_axes, n), dtype=np.int32), np.full((2, n), NO_END, dtype=np.int32)
    for here in levels if n > 1 else ():
        before = pieces.take(changed[here])
        for row in ends:
            row.take(before, out=row[here], mode="clip")  # the only mode that writes in place
        ends.put(end_at[here], end[here])
        for row in pieces:
            row.take(above[here], out=row[here], mode="clip")
        pieces.put(own[here], numbers[here])
    low, high = ends
    return LeafPieces(low, high, pieces[:, len(inner) :])


def _by_level(inner: Ints, parent: Ints) -> tuple[Ints, Iterator[slice]]:
    """The nodes that are split, those next to the root first; where each level below it begins and ends, leaves last."""
    place = np.zeros(len(parent), dtype=np.int64)
    place[inner] = np.arange(len(inner))
    above = place[parent[inner]]
    depth = np.ones(len(inner), dtype=np.int64)
    depth[:1] = 0
    while above.any():  # of each node, as far up as twice the steps of the round before
        depth += depth[above]
        above = above[above]
    size = np.bincount(depth)
    order = np.argsort(depth.astype(np.min_scalar_type(len(size))), kind="stable")  # of few bits it is faster
    ends = [*np.cumsum(size).tolist(), len(parent)]
    return inner[order], map(slice, ends[:-1], ends[1:])


__all__ = ["NO_END", "Changes", "LeafPieces", "leaf_pieces"]
