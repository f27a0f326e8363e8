"""The quasi-identifiers of a table in arrays, as compiled loops read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NO_NUMBER = np.uint32(0xFFFFFFFF)
"""Stands for a missing sensitive number: left out of its variance."""


class Axes(NamedTuple):
    """The quasi-identifiers. A tree axis is split along its hierarchy, an ordered one by a threshold."""

    is_tree: NDArray[np.bool_]  # (axes,)
    may_split: NDArray[np.bool_]  # (axes,)
    root: NDArray[np.int64]  # (axes,) first node of the axis in the node arrays below
    node_low: NDArray[np.int64]  # (nodes,) a node covers the codes [low, high)
    node_high: NDArray[np.int64]  # (nodes,)
    child_start: NDArray[np.int64]  # (nodes,) its children are child[child_start : child_start + n_children]
    n_children: NDArray[np.int64]  # (nodes,)
    child: NDArray[np.int64]  # nodes, in the order of their codes
    position_start: NDArray[np.int64]  # (axes,) where position of code 0 stands; -1: the code is the position
    position: NDArray[np.float64]  # real position of a code of an ordered axis
    least_code: NDArray[np.int64]  # (axes,) the least code that is a value: 1 where code 0 is missing
    width: NDArray[np.float64]  # (axes,) width of the whole table on this axis, 1 where it has none
