"""Levels of generalization of each quasi-identifier, as the decision list of ``refine`` uses them.

Every level divides the codes of an axis into cells, and each cell lies in one cell of the next level. Level 0 is the
finest; at the top level one cell holds all codes.

Hierarchy   The levels are counted from the deepest leaves upwards: at level l the cells are the nodes of depth
            height - l. A leaf that is less deep stands for itself, as in ``Hierarchy.as_levels``; so missing, which is
            a child of the root, stays apart at every level below the top. Nodes with one child count as any other:
            without them the levels of the branches would not match.
Number      At level j a cell is 2^j steps wide; cells begin at the lower bound. Missing is a cell of its own below the
            top, and at the top it is in the cell of all values. If the column can be missing there is therefore a level
            below the top at which one cell holds all values but not missing.

A cell has a key, ascending with its codes: its hierarchy node; or how many cells of numbers stand before it, and -1 if
it holds missing alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MISSING_KEY = -1
"""Key of the cell of missing numbers, and the position of their code."""


class GroupLabels(NamedTuple):
    """Published labels of groups.

    low       (groups, axes) hierarchy node, numbered as in ``Axes``; or the first step of a range of numbers
    high      (groups, axes) the last step; low - 1 if missing is alone, and -1 along a hierarchy
    missing   (groups, axes) whether missing numbers belong to it; False along a hierarchy
    """

    low: Ints
    high: Ints
    missing: Bools

    def take(self, groups: Any) -> GroupLabels:
        """The labels of some groups."""
        return GroupLabels(self.low[groups], self.high[groups], self.missing[groups])


@dataclass(frozen=True, eq=False)
class NumberLevels:
    """A column of numbers or dates, in steps from its lower bound.

    position      (codes,) the steps of each code, never descending; -1 for missing, which is code 0 then
    n_steps       upper minus lower bound
    slice_steps   width of the public slices that labels are made of: 1 for least to greatest value, and all of
                  n_steps + 1 if labels are not narrowed
    first, last   the block's own range: what the splits above it have left, both ends included
    """

    position: Ints
    n_steps: int
    slice_steps: int
    first: int
    last: int

    @property
    def has_missing(self) -> bool:
        return bool(self.position[0] == MISSING_KEY)

    @property
    def n_levels(self) -> int:
        """One for each width up to all steps, and one more if missing can stand beside all values.

        >>> NumberLevels(np.arange(9), 8, 1, 0, 8).n_levels, NumberLevels(np.arange(-1, 8), 7, 1, 0, 7).n_levels
        (5, 5)
        """
        return self.n_steps.bit_length() + 1 + self.has_missing

    @property
    def top(self) -> int:
        return self.n_levels - 1

    def levels_by_place(self, low: Ints, high: Ints, missing: Bools) -> Ints:
        """The least level with a cell that contains each label."""
        return self._levels(low ^ high, low, high, missing)

    def levels_by_width(self, low: Ints, high: Ints, missing: Bools) -> Ints:
        """The least level whose cells are as wide as each label, wherever they stand, and hold missing if it does."""
        return self._levels(high - low, low, high, missing)

    def _levels(self, differs: Ints, low: Ints, high: Ints, missing: Bools) -> Ints:
        is_alone = high < low
        n_bits = np.frexp(np.where(is_alone, 0, differs))[1].astype(np.int64)
        return np.where(missing & ~is_alone, self.top, n_bits)

    def keys(self, level: int, codes: NDArray[Any]) -> Ints:
        """The cell of each code."""
        if level == self.top:
            return np.zeros(len(codes), dtype=np.int64)
        return np.asarray(self.position[codes] >> level)  # -1 stays -1

    def cut(self, level: Any, key: Ints) -> tuple[Ints, Ints]:
        """First and last step of each cell, inside the block's range; nothing known of one that is missing alone."""
        width = np.left_shift(1, np.minimum(level, self.n_steps.bit_length()))
        return np.maximum(key * width, self.first), np.minimum((key + 1) * width - 1, self.last)

    def widths(self, level: int, codes: NDArray[Any]) -> Ints:
        """How many steps a row of each code loses at this level; missing together with values loses all."""
        key = self.keys(level, codes)
        first, last = self.cut(level, key)
        lost = self.n_steps if level == self.top else 0
        return np.where(self.position[codes] == MISSING_KEY, lost, last - first)

    def narrow(self, least: Ints, greatest: Ints, first: Any, last: Any) -> tuple[Ints, Ints]:
        """The public slices from the least to the greatest position, inside a range from ``first`` to ``last``."""
        q = self.slice_steps
        return np.maximum(least // q * q, first), np.minimum(greatest // q * q + q - 1, last)


@dataclass(frozen=True, eq=False)
class TreeLevels:
    """A column with a hierarchy: axis ``axis`` of ``axes``."""

    axes: Axes
    axis: int

    @cached_property
    def cuts(self) -> Sequence[Ints]:
        """The nodes of each depth, from the root to all leaves, in the order of their codes."""
        nodes = self.axes.root[self.axis : self.axis + 1]
        cuts = [nodes]
        while (self.axes.n_children[nodes] > 0).any():
            nodes = self._children_or_self(nodes)
            cuts.append(nodes)
        return cuts

    def _children_or_self(self, nodes: Ints) -> Ints:
        n_children = self.axes.n_children[nodes]
        times = np.maximum(n_children, 1)
        parent = np.repeat(nodes, times)
        nth = np.arange(len(parent)) - np.repeat(np.cumsum(times) - times, times)
        below = np.repeat(n_children > 0, times)
        out = parent.copy()
        out[below] = self.axes.child[(self.axes.child_start[parent] + nth)[below]]
        return out

    @property
    def n_levels(self) -> int:
        return len(self.cuts)

    @property
    def top(self) -> int:
        return self.n_levels - 1

    def levels_by_place(self, low: Ints, _high: Ints, _missing: Bools) -> Ints:
        """The least level with a cell that contains each label."""
        nodes, which = np.unique(low, return_inverse=True)
        levels = np.full(len(nodes), self.top)
        for level in reversed(range(self.top)):
            cell = self.keys(level, self.axes.node_low[nodes])
            levels[self.axes.node_high[cell] >= self.axes.node_high[nodes]] = level
        return levels[which]

    levels_by_width = levels_by_place

    def keys(self, level: int, codes: NDArray[Any]) -> Ints:
        """The cell of each code."""
        nodes = self.cuts[self.top - level]
        return nodes[np.searchsorted(self.axes.node_low[nodes], codes, side="right") - 1]

    def widths(self, level: int, codes: NDArray[Any]) -> Ints:
        """How many leaves a row of each code can no longer be told from at this level."""
        node = self.keys(level, codes)
        return self.axes.node_high[node] - self.axes.node_low[node] - 1


AxisLevels = NumberLevels | TreeLevels
