"""What a partition-tree kernel is told, as named tuples of plain arrays.

The rows are one C-ordered ``uint32`` matrix, a row of the table per row:

    [ codes of the quasi-identifiers | extra columns: targets and sensitive values | row number ]

Rows are swapped in place and a node of the tree is a slice of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NO_NUMBER = np.uint32(0xFFFFFFFF)
"""Stands for a missing sensitive number: left out of its variance."""

FIXED_POINT = float(1 << 20)
"""Entropies are sums of whole multiples of 1 / FIXED_POINT bit, so that they never depend on order."""


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


class Targets(NamedTuple):
    """What the split should keep predictable. No target at all means Median."""

    class_column: NDArray[np.int64]  # (labels,) column of the row matrix
    n_classes: NDArray[np.int64]  # (labels,)
    class_weight: NDArray[np.float64]  # (labels,)
    number_column: NDArray[np.int64]  # (numbers,)
    number_weight: NDArray[np.float64]  # (numbers,)
    largest: int  # greatest value of a single target's column
    gain_scale: float  # makes a gain per row comparable with median_below_gain
    median_below_gain: float  # 0: never


class Rules(NamedTuple):
    """The requirement, compiled."""

    least_rows: int  # no group below this many rows can satisfy it
    count_only: bool  # least_rows says it all
    values_column: NDArray[np.int64]  # (attributes,) sensitive categories: column of the row matrix
    values_start: NDArray[np.int64]  # (attributes + 1,) their place in one array of counts
    entropy_of: NDArray[np.int64]  # (rules,) which sensitive attribute
    entropy_log: NDArray[np.float64]  # (rules,) ln l
    recursive_of: NDArray[np.int64]
    recursive_l: NDArray[np.int64]
    recursive_up: NDArray[np.int64]  # c = up / down, exactly
    recursive_down: NDArray[np.int64]
    variance_column: NDArray[np.int64]  # column of the row matrix
    variance_least: NDArray[np.float64]  # in squared units of that column


class Scratch(NamedTuple):
    """Working space of one thread, allocated once; pages that are never touched cost nothing."""

    bins: NDArray[np.int64]  # (bins * words,) frequency sets, all zero between uses
    listed: NDArray[np.uint64]  # (axes,) attributes whose frequency sets stand in the bins
    base: NDArray[np.uint64]  # (axes,) base + code is the line of a code
    code: NDArray[np.int64]  # (distinct,) the codes that occur, ascending
    total: NDArray[np.int64]  # (words, distinct) running totals up to each
    score: NDArray[np.float64]  # (distinct,)
    left_ok: NDArray[np.bool_]  # (distinct,)
    right_ok: NDArray[np.bool_]  # (distinct,)
    order: NDArray[np.int64]  # (rows,) row positions sorted by something
    key: NDArray[np.int64]  # (rows,)
    values: NDArray[np.int64]  # (sensitive values,) all zero between uses
    is_top: NDArray[np.bool_]  # (rules, sensitive values) all False between uses
    top: NDArray[np.int64]  # (rules, largest l)
