"""The decision list of a block in a recoding: which published cell a row belongs to.

A row belongs to the first published cell that contains it, else to the pool. A cell is given by a level and a key for
each axis: at level l of a hierarchy the key is the row's ancestor ``height - l`` steps below the root, or its leaf if
that is less deep; at level j of numbers it is the number of cells of 2^j steps between the lower bound and the row.
Missing is the cell -1 below the top level, and at the top everything is in cell 0.

In the tree of a recoding a list is a node whose children are its cells, in order, and the pool last, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.slices import count_steps
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.table.combinations import number_combinations

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MISSING_CELL, NO_CELL = -1, -2

NO_LEVEL = -1
"""The level of a node that is no cell."""


class CellKeys(NamedTuple):
    """The nodes of a tree as cells of lists, by level and key, (nodes, axes) each; a node that is none has NO_LEVEL."""

    levels: NDArray[np.integer[Any]]
    keys: Ints

    @classmethod
    def nowhere(cls, shape: tuple[int, ...]) -> CellKeys:
        """Nodes that are no cells."""
        return cls(np.full(shape, NO_LEVEL, dtype=np.int8), np.full(shape, NO_LEVEL, dtype=np.int64))

    def cells_of(self, first: int, n_children: int, axes: Sequence[AxisCells]) -> tuple[CellList, bool]:
        """The list whose children begin at ``first``, and whether a pool comes after its cells."""
        nodes = slice(first, first + n_children)
        levels, keys = self.levels[nodes].astype(np.int64), np.asarray(self.keys[nodes])
        has_pool = bool((levels[-1] == NO_LEVEL).any())
        n_cells = n_children - has_pool
        return CellList(tuple(axes), levels[:n_cells], keys[:n_cells]), has_pool


@dataclass(frozen=True, slots=True)
class NumberCells:
    """The cells of a column of numbers or dates: values in steps from the lower bound, see ``count_steps``."""

    lower: float
    step: float
    n_steps: int
    has_missing: bool
    is_stepped: bool = True

    @property
    def top(self) -> int:
        return self.n_steps.bit_length() + self.has_missing

    def keys(self, level: int, values: Floats) -> Ints:
        """The cell of each value; -inf is missing, NaN a missing value where none was known, which is in no cell.

        >>> NumberCells(17, 1, 73, has_missing=True).keys(3, np.array([16, 17, 25, 200, -np.inf, np.nan])).tolist()
        [0, 0, 1, 9, -1, -2]
        """
        if level == self.top:
            return np.zeros(len(values), dtype=np.int64)
        is_number = np.isfinite(values)
        known = np.where(is_number, values, self.lower)
        steps = count_steps(known, self.lower, self.step, is_stepped=self.is_stepped)
        cells = np.clip(steps, 0, self.n_steps) >> level
        return np.where(is_number, cells, np.where(np.isnan(values), NO_CELL, MISSING_CELL))


@dataclass(frozen=True, slots=True)
class TreeCells:
    """The cells of a column with a hierarchy; ``nodes`` may lack what no cell uses, ``height`` is that of all of it."""

    nodes: Hierarchy
    height: int

    @property
    def top(self) -> int:
        return self.height

    def keys(self, level: int, known: NDArray[Any]) -> Ints:
        """The cell of each row, given the deepest node that is known of it.

        A node that is less deep than the level is its own key: the cell of a leaf, and of no cell if there is more below
        it, as no cell has such a key.

        >>> places = Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}})
        >>> TreeCells(places, 2).keys(1, np.array([2, 3, 4, 0])).tolist()
        [1, 1, 4, 0]
        """
        node = np.array(known, dtype=np.int64)
        while (deep := self.nodes.depth[node] > self.height - level).any():
            node[deep] = self.nodes.parent[node[deep]]
        return node


AxisCells = NumberCells | TreeCells


@dataclass(frozen=True, slots=True, eq=False)
class CellList:
    """The published cells of a block, in order.

    levels, keys   (cells, axes)

    >>> ages = CellList((NumberCells(0, 1, 15, has_missing=False),), np.array([[0], [2]]), np.array([[9], [2]]))
    >>> ages.locate([np.array([9.0, 10.0, 3.0])]).tolist()
    [0, 1, 2]
    """

    axes: tuple[AxisCells, ...]
    levels: Ints
    keys: Ints

    def __len__(self) -> int:
        return len(self.levels)

    def locate(self, columns: Sequence[NDArray[Any]]) -> Ints:
        """The cell of each row, by values and known nodes; rows in none have the number after the last: the pool."""
        out = np.full(len(columns[0]), len(self), dtype=np.int64)
        left = np.arange(len(out))
        for start, end in self._vectors():
            if not len(left):
                break
            keys = [
                axis.keys(level, column[left])
                for axis, level, column in zip(self.axes, self.levels[start].tolist(), columns, strict=True)
            ]
            found = _find(keys, self.keys[start:end])
            out[left[found >= 0]] = start + found[found >= 0]
            left = left[found < 0]
        return out

    def _vectors(self) -> Iterator[tuple[int, int]]:
        """From where to where the cells have one level vector: these exclude each other."""
        changes = np.flatnonzero((np.diff(self.levels, axis=0) != 0).any(axis=1)) + 1
        ends = [*changes.tolist(), len(self)] if len(self) else []
        yield from zip([0, *changes.tolist()], ends, strict=False)


def _find(keys: Sequence[Ints], cells: Ints) -> Ints:
    """Which of the cells each row has, -1 if none."""
    together = [np.append(cells[:, a], key) for a, key in enumerate(keys)]
    numbered = number_combinations(together, in_order=False)
    cell = np.full(numbered.n, -1, dtype=np.int64)
    cell[numbered.number[: len(cells)]] = np.arange(len(cells))
    return cell[numbered.number[len(cells) :]]
