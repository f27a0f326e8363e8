"""People of parts of some rows, counted where the rows are not at hand.

Rows are counted by keys: a number for each person, or pair of person and value, with the part behind it. Keys that were
met in several blocks are one key once they are added up, so blocks may divide a person's rows as they like. Parts may be
joined afterwards: whoever is in several of them is still one person.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.met_keys import MetKeys
from sfumato.table.spill import Spill

Ints = NDArray[np.int64]

BYTES_PER_KEY = 16
"""Memory for the key of a row."""


class PeopleKeys:
    """Who has rows in which part: the units below ``n_units``, people or pairs of person and value.

    >>> keys = PeopleKeys(10, 3, room=0, spill=None)
    >>> keys.add(np.array([7, 4, 7, 4]), np.array([0, 0, 0, 2]))
    >>> keys.count().tolist(), keys.count(np.array([0, -1, 0])).tolist()
    ([2, 0, 1], [2])
    """

    def __init__(self, n_units: int, n_parts: int, *, room: int, spill: Spill | None) -> None:
        self.n_parts = n_parts
        self._keys = MetKeys(n_units * n_parts, room=room, spill=spill)

    def add(self, unit: NDArray[Any], part: Ints) -> None:
        """Add rows of these units in these parts."""
        self._keys.add((unit.astype(np.int64) * self.n_parts + part).astype(np.uint64))

    def merge(self, other: PeopleKeys) -> None:
        """Add the rows of other keys."""
        self._keys.merge(other._keys)

    def discard(self) -> None:
        """Nobody will look at them again."""
        self._keys.discard()

    def walk(self, group_of: Ints | None = None) -> Iterator[tuple[Ints, Ints]]:
        """The group and the number of each unit, some at a time: once in each group.

        group_of   joins parts to groups, -1: none; None: each is one
        """
        in_order = group_of is None or bool((np.diff(group_of[group_of >= 0]) >= 0).all())
        for keys in self._keys.chunks(together=self.n_parts):
            unit, part = np.divmod(keys.astype(np.int64), self.n_parts)
            if group_of is None:
                yield part, unit
                continue
            group = group_of[part]
            unit, group = unit[group >= 0], group[group >= 0]
            if not in_order:
                order = np.lexsort((group, unit))
                unit, group = unit[order], group[order]
            is_new = np.ones(len(unit), dtype=np.bool_)
            is_new[1:] = (unit[1:] != unit[:-1]) | (group[1:] != group[:-1])
            yield group[is_new], unit[is_new]

    def count(self, group_of: Ints | None = None) -> Ints:
        """How many units each group has."""
        groups = np.arange(self.n_parts) if group_of is None else group_of
        found = np.zeros(int(groups.max(initial=0)) + 1, dtype=np.int64)
        for group, _ in self.walk(group_of):
            found += np.bincount(group, minlength=len(found))
        return found


def rows_with_enough_people(n_rows: Ints, least: int) -> int:
    """Any so many rows of the table have ``least`` people; ``n_rows`` are those of each person.

    >>> rows_with_enough_people(np.array([1, 5, 2]), 2), rows_with_enough_people(np.array([1, 5, 2]), 1)
    (6, 1)
    """
    busiest = np.sort(n_rows)[len(n_rows) - least + 1 :]
    return 1 + int(busiest.sum())
