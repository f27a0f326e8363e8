"""Decision lists in a recoding: its cells are cells, and the label of each lies inside.

A node of the tree may be divided by a list of cells: a row belongs to the first cell that contains it, else to the pool,
which is the last child if there is one. A cell has a level and a key along each axis:

hierarchy   the key is the node above the label that is ``height - level`` steps below the root, or the label itself if
            that is less deep
numbers     at level l the cell ``key`` has the steps from key * 2^l up to (key + 1) * 2^l - 1, from ``lower`` on. Below
            the top level missing cells have the key -1, and at the top level there is one cell for all
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.verify.checks import Unfit
from sfumato.verify.groups import Combinations
from sfumato.verify.tree_boxes import BoxEnds, StoredCells, StoredTree

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

HIGHEST = 1 << 40
"""More steps, or levels, than any column has."""

MISSING_KEY = -1


@dataclass(frozen=True, slots=True)
class NumberSteps:
    """The steps that the cells of a number are counted in."""

    lower: float
    step: float
    n_steps: int
    has_missing: bool

    @classmethod
    def of(
        cls, entry: Mapping[str, Any], low: float, high: float, has_missing: Any, *, has_slices: bool = False
    ) -> NumberSteps:
        """From the document; they hold everything that is published, from ``low`` to ``high``.

        A step of the finest slices of a column lies where the greatest value of its slice does.
        """
        lower, step, n_steps = float(entry["lower"]), float(entry["step"]), entry["steps"]
        if entry.keys() != {"lower", "step", "steps"} or type(n_steps) is not int:
            raise Unfit("it has fields that no recoding has, or lacks some")
        holds = math.isfinite(lower) and 0 < step < math.inf and 0 <= n_steps < HIGHEST
        slack = step / 2
        above = step * (1 + 1e-9) if has_slices else slack
        if not holds or (
            low <= high and (lower > low + above or lower + (n_steps + 1) * step < high - slack)
        ):
            raise Unfit("the levels of a number do not hold what is published")
        return cls(lower, step, n_steps, has_missing)

    @property
    def top(self) -> int:
        return self.n_steps.bit_length() + self.has_missing

    def contain(self, cells: StoredCells, ends: BoxEnds) -> Flags:
        """Does each cell contain its label?"""
        width = np.minimum(cells.level, self.n_steps.bit_length())
        first, last = cells.key << width, (cells.key + 1 << width) - 1
        slack = 1e-6 * self.step
        low = np.where(first == 0, -np.inf, self.lower + (first - 1) * self.step - slack)
        high = np.where(last >= self.n_steps, np.inf, self.lower + last * self.step + slack)
        is_missing = np.isneginf(ends.high)
        has_values = (ends.low >= low) & (ends.high <= high) & ~ends.missing & ~is_missing
        contains = np.where(cells.key == MISSING_KEY, is_missing, (cells.key >= 0) & has_values)
        return np.asarray(np.where(cells.level == self.top, cells.key == 0, contains))


@dataclass(frozen=True, slots=True, eq=False)
class NodeLevels:
    """The height of a whole hierarchy, and the part of it that boxes use."""

    height: int
    parent: Ints
    depth: Ints

    @classmethod
    def of(cls, entry: Mapping[str, Any], parent: Sequence[int]) -> NodeLevels:
        """From the document."""
        height, depth = entry["height"], [0]
        for above in parent[1:]:
            depth.append(depth[above] + 1)
        if entry.keys() != {"height"} or type(height) is not int or not max(depth) <= height < HIGHEST:
            raise Unfit("the levels of a hierarchy are not its own")
        return cls(height, np.array(parent, dtype=np.int64), np.array(depth, dtype=np.int64))

    @property
    def top(self) -> int:
        return self.height

    def contain(self, cells: StoredCells, ends: BoxEnds) -> Flags:
        """Is each key the node above its label at this level?"""
        node = ends.low.astype(np.int64)
        while (deep := self.depth[node] > self.height - cells.level).any():
            node[deep] = self.parent[node[deep]]
        return np.asarray(node == cells.key)


Levels = NumberSteps | NodeLevels


def check_lists(tree: StoredTree, levels: Sequence[Levels], ends: Sequence[BoxEnds]) -> None:
    """Raise Unfit unless the children of lists are cells that contain their labels, no two of a list the same.

    ends   of the boxes of leaves, along each axis
    """
    listed = tree.listed()
    is_cell = np.zeros(len(tree.axis), dtype=np.bool_)
    is_cell[listed.node] = np.any([own.level[listed.node] >= 0 for own in tree.cells], axis=0)
    if np.any(tree.axis[listed.node] >= 0) or np.any(~is_cell[listed.node] & ~listed.is_last):
        raise Unfit("a list has children that are no cells")
    leaves = np.flatnonzero(tree.axis < 0)
    is_listed = is_cell[leaves]
    for own, kind, along in zip(tree.cells, levels, ends, strict=True):
        if np.any((own.level < 0) == is_cell) or np.any((own.level < 0) & (own.key != -1)):
            raise Unfit("a cell stands where no list is, or has no level")
        cells = StoredCells(own.level[leaves][is_listed], own.key[leaves][is_listed])
        if np.any(cells.level > kind.top) or not np.all(kind.contain(cells, _take(along, is_listed))):
            raise Unfit("a cell of a list does not contain its label")
    chosen = is_cell[listed.node]
    columns = [part[listed.node[chosen]] for own in tree.cells for part in own]
    if Combinations.of([listed.of_list[chosen], *columns]).n < np.count_nonzero(chosen):
        raise Unfit("a cell stands in a list twice")


def _take(ends: BoxEnds, boxes: Flags) -> BoxEnds:
    """The ends of some boxes, one line for each."""
    low, high, missing = ends.low, ends.high, ends.missing
    if ends.of_box is not None:
        low, high = low[ends.of_box], high[ends.of_box]
        missing = None if missing is None else missing[ends.of_box]
    return BoxEnds(low[boxes], high[boxes], None, None if missing is None else missing[boxes])
