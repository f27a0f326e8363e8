"""Generalizations of single rows: levels of each column's hierarchy, and what a choice of them costs and covers.

A *level* of a column is how far its values are generalized: 0 is the value itself, the last is the root. At a level all
values below one node stand for that node, so leaves of less depth than others stay as they are for some levels: at
level l of a hierarchy of height h a value stands for its lowest ancestor (or itself) of depth h - l at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel


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


class TableRows(NamedTuple):
    """The rows to be generalized."""

    code: NDArray[np.uint32]  # (rows, columns)
    factor: NDArray[np.float64]  # (rows, columns) of personal weights; (rows, 0) if weights are not personal
    own: NDArray[np.int64]  # (rows,) 1 where the side table lacks the row, which then counts itself
    floor: int  # added to every weight


class SideRows(NamedTuple):
    """The distinct rows of the side table."""

    code: NDArray[np.uint32]  # (distinct rows, columns), or (columns, distinct rows) where that is said
    n_rows: NDArray[np.int64]  # (distinct rows,) how many rows are the same


class Joins(NamedTuple):
    """What makes people count once who have several rows in the side table, see ``people``."""

    node: NDArray[np.int32]  # (joins, columns)
    n_people: NDArray[
        np.int64
    ]  # (joins,) counted by whatever covers it; below 0 where people would count twice


class LatticeMeasures(NamedTuple):
    """What generalizations cover, weigh and tell, each (generalizations,)."""

    covered: NDArray[np.int64]
    weight: NDArray[np.int64]
    utility: NDArray[np.int64]


@inner
def node_at(lattice, a, code, level):
    """The node that a code of column ``a`` stands for at a level."""
    return lattice.node[lattice.start[a] + np.int64(code) * lattice.n_levels[a] + level]


@inner
def weight_at(lattice, factor, row, a, node):
    """The weight of a node for one row; ``factor`` is that of :class:`TableRows`."""
    if factor.shape[1] == 0:
        return lattice.weight[node]
    return np.int64(np.rint(factor[row, a] * lattice.weight[node]))


@kernel
def fill_measures(lattice, rows, side, joins, which, levels, out):
    """What generalizations cost and cover, by looking at every row of the side table: the definition itself.

    lattice  Lattice                                           IN
    rows     TableRows                                         IN
    side     SideRows                                          IN
    joins    Joins                                             IN
    which    (generalizations,) the row of each         int64  IN
    levels   (generalizations, columns)                 uint8  IN
    out      LatticeMeasures                                          OUT
    """
    n_columns = rows.code.shape[1]
    node = np.empty(n_columns, dtype=np.int64)
    for i in range(len(which)):
        row = which[i]
        weight, utility = np.int64(rows.floor), np.int64(0)
        for a in range(n_columns):
            node[a] = node_at(lattice, a, rows.code[row, a], levels[i, a])
            weight += weight_at(lattice, rows.factor, row, a, node[a])
            utility += lattice.utility[node[a]]
        covered = rows.own[row]
        for t in range(side.code.shape[0]):
            for a in range(n_columns):
                if not lattice.low[node[a]] <= side.code[t, a] < lattice.high[node[a]]:
                    break
            else:
                covered += side.n_rows[t]
        for j in range(joins.node.shape[0]):
            for a in range(n_columns):
                below = joins.node[j, a]
                if lattice.low[below] < lattice.low[node[a]] or lattice.high[below] > lattice.high[node[a]]:
                    break
            else:
                covered += joins.n_people[j]
        out.covered[i], out.weight[i], out.utility[i] = covered, weight, utility


__all__ = [
    "Joins",
    "Lattice",
    "LatticeMeasures",
    "SideRows",
    "TableRows",
    "fill_measures",
    "node_at",
    "weight_at",
]
