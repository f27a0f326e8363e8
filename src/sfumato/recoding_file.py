"""Recodings that are larger than memory: streamed to disk while the tree is grown, applied by a merge.

Each path from the root to a leaf is a rule, and the set of all rules need never be in memory [LDR08, section
5.1.2]. The tree is grown in *pieces*, each below a leaf of the *top tree*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding import Domain, OrderedDomain
from sfumato.kernels.grow import Nodes
from sfumato.policy import Output
from sfumato.recoding import Recoding, recoding_of


class PathStep(NamedTuple):
    """One split on the way from the root to a piece, in codes as ``Nodes`` has them."""

    axis: int
    threshold: int
    branches: Sequence[int]  # of all children
    taken: int  # which of them leads to the piece


def spine(
    path: Sequence[PathStep],
    nodes: Nodes,
    covers: NDArray[np.int64],
    domains: Sequence[Domain],
    roots: NDArray[np.int64],
    output: Output,
    left_out: frozenset[str],
) -> tuple[Recoding, NDArray[np.int64]]:
    """A recoding for the leaves of one piece, and their places in it, in the order of ``covers``.

    It has the splits of the path and below them the piece. The boxes of the piece's leaves are those of the
    whole tree; what lies beside the path is left out, so rows must not be sent down.
    """
    head, end = _path_nodes(path, domains)
    whole = _hang(nodes, head, end)
    places = np.flatnonzero(nodes.axis < 0)
    places = np.where(places == 0, end, places + len(head.axis) - 1)
    leaves = np.flatnonzero(whole.axis < 0)
    with_others = np.full((len(leaves), covers.shape[1]), -1, dtype=np.int64)
    with_others[np.searchsorted(leaves, places)] = covers
    return recoding_of(whole, with_others, domains, roots, output, left_out), places


def _path_nodes(path: Sequence[PathStep], domains: Sequence[Domain]) -> tuple[Nodes, int]:
    """The splits of a path, with no more children than boxes need, and the node where the path ends.

    The box below a split of a hierarchy is the branch taken; that below a threshold is one of its two sides.
    """
    axis, threshold, first_child, n_children, branch = [-1], [0], [-1], [0], [-1]
    at = 0
    for step in path:
        is_ordered = isinstance(domains[step.axis], OrderedDomain)
        kept = [int(x) for x in step.branches] if is_ordered else [int(step.branches[step.taken])]
        axis[at], threshold[at] = step.axis, step.threshold
        first_child[at], n_children[at] = len(axis), len(kept)
        at = len(axis) + (step.taken if is_ordered else 0)
        axis += [-1] * len(kept)
        threshold += [0] * len(kept)
        first_child += [-1] * len(kept)
        n_children += [0] * len(kept)
        branch += kept
    small = [np.array(column, dtype=np.int32) for column in (axis, first_child, n_children)]
    wide = [np.array(column, dtype=np.int64) for column in (threshold, branch)]
    no_rows = np.zeros(len(axis), dtype=np.int64)
    return Nodes(small[0], wide[0], small[1], small[2], wide[1], no_rows, no_rows), at


def _hang(piece: Nodes, top: Nodes, at: int) -> Nodes:
    """The tree with a piece in place of its leaf ``at``, whose branch stays; the rest of the piece comes last."""
    offset = np.int32(len(top.axis) - 1)
    piece = piece._replace(
        first_child=np.where(piece.first_child >= 0, piece.first_child + offset, np.int32(-1))
    )
    whole = Nodes(*(np.concatenate([getattr(top, name), getattr(piece, name)[1:]]) for name in Nodes._fields))
    for name in Nodes._fields:
        if name != "branch":
            getattr(whole, name)[at] = getattr(piece, name)[0]
    return whole
