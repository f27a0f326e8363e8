"""A grown partition tree in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Nodes(NamedTuple):
    """A finished tree, one entry per node. Children stand after their parent, next to each other.

    axis                      the attribute that the node is split on, -1 for a leaf; the number of attributes if the rows
                              are divided by a list of cells, which are its children
    threshold                 ordered attribute: the last code (of the whole table) that goes left; tree attribute: the
                              hierarchy node whose children the split leads to
    first_child, n_children   its children
    branch                    which child of its parent it is: 0 left, 1 right, or the hierarchy node; the rest, which has
                              all rows that no other child takes, is the last child and has -1; so have cells of a list
    otherwise                 which of its children takes missing numbers, and values that no child is for; -1: none does,
                              and missing is the lowest number
    start, end                its rows, in the order of the leaves
    """

    axis: NDArray[np.int32]
    threshold: NDArray[np.int64]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    branch: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    otherwise: NDArray[np.int32]
