"""Generalizations of single rows: levels of each column's hierarchy, and what a choice of them costs and covers.

A *level* of a column is how far its values are generalized: 0 is the value itself, the last is the root. At a level all
values below one node stand for that node, so leaves of less depth than others stay as they are for some levels: at
level l of a hierarchy of height h a value stands for its lowest ancestor (or itself) of depth h - l at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class Lattice(NamedTuple):
    """The hierarchies of all columns. Nodes are numbered through all columns, each column's root first, in preorder."""

    n_levels: NDArray[np.int64]  # (columns,) levels of a column, the raw value and the root included
    root: NDArray[np.int64]  # (columns,) its first node
    start: NDArray[np.int64]  # (columns,) where its codes begin in ``node``
    node: NDArray[np.int32]  # node[start[a] + code * n_levels[a] + level]
    parent: NDArray[np.int32]  # (nodes,) of a root itself
    depth: NDArray[np.int32]  # (nodes,)
    low: NDArray[np.int64]  # (nodes,) a node covers the codes [low, high) of its column
    high: NDArray[np.int64]  # (nodes,)
    utility: NDArray[np.int64]  # (nodes,) in units of the problem
    weight: NDArray[np.int64]  # (nodes,) in units of the problem


@njit(cache=True, nogil=True)
def node_at(lattice, a, code, level):
    """The node that a code of column ``a`` stands for at a level."""
    return lattice.node[lattice.start[a] + np.int64(code) * lattice.n_levels[a] + level]


@njit(cache=True, nogil=True)
def weight_at(lattice, factor, row, a, node):
    """The weight of a node for one row; ``factor`` (rows, columns) is empty where weights are not personal."""
    if factor.shape[0] == 0:
        return lattice.weight[node]
    return np.int64(np.rint(factor[row, a] * lattice.weight[node]))


@njit(cache=True, nogil=True)
def fill_measures(lattice, rows, factor, floor, own, levels, side, side_count, which, out):
    """What generalizations cost and cover, by looking at every row of the side table: the definition itself.

    rows        (rows, columns) codes                         uint32   IN
    factor      (rows or 0, columns) personal factors         float64  IN
    floor       added to every weight                         int64    IN
    own         (rows,) 1 where the side table lacks the row  int64    IN
    levels      (which, columns)                              uint8    IN
    side        (distinct rows of the side table, columns)    uint32   IN
    side_count  (distinct rows of the side table,)            int64    IN
    which       (which,) the rows that are generalized        int64    IN
    out         (which, 3) rows covered, weight, utility      int64    OUT
    """
    n_columns = rows.shape[1]
    node = np.empty(n_columns, dtype=np.int64)
    for i in range(len(which)):
        row = which[i]
        weight, utility = floor, np.int64(0)
        for a in range(n_columns):
            node[a] = node_at(lattice, a, rows[row, a], levels[i, a])
            weight += weight_at(lattice, factor, row, a, node[a])
            utility += lattice.utility[node[a]]
        covered = own[row]
        for t in range(side.shape[0]):
            for a in range(n_columns):
                if not lattice.low[node[a]] <= side[t, a] < lattice.high[node[a]]:
                    break
            else:
                covered += side_count[t]
        out[i, 0], out[i, 1], out[i, 2] = covered, weight, utility


__all__ = ["Lattice", "fill_measures", "node_at", "weight_at"]
