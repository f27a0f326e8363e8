"""A decision list in plain Python: slow, short and obviously right. The tests compare the fast one with it.

Nothing is imported from sfumato. A node of a hierarchy is its path, the names from the root down. A number is its
position in steps, None if it is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Path = tuple[Any, ...]
Row = tuple[Any, ...]
Interval = tuple[int, int, bool]
"""First and last step and whether missing belongs to it; missing alone is (0, -1, True)."""


@dataclass(frozen=True)
class Tree:
    """A hierarchy: the paths of all its leaves, from left to right."""

    leaves: tuple[Path, ...]
    price: int

    @property
    def height(self) -> int:
        return max(map(len, self.leaves)) - 1

    @property
    def top(self) -> int:
        return self.height

    def key(self, value: Path, level: int) -> Path:
        return value[: self.height - level + 1]

    def place(self, key: Path) -> int:
        """Where a cell stands among the others of its level."""
        return min(i for i, leaf in enumerate(self.leaves) if leaf[: len(key)] == key)

    def label(self, values: Sequence[Path], _cell: tuple[int, Any] | None) -> Path:
        """The longest path that all values begin with."""
        return common(values)

    def loss(self, _value: Path, label: Path) -> int:
        return sum(leaf[: len(label)] == label for leaf in self.leaves) - 1

    def cell_loss(self, value: Path, level: int) -> int:
        return self.loss(value, self.key(value, level))

    def levels(self, label: Path) -> tuple[int, int]:
        inside = [leaf for leaf in self.leaves if leaf[: len(label)] == label]
        level = next(i for i in range(self.top + 1) if len({self.key(leaf, i) for leaf in inside}) == 1)
        return level, level


def common(paths: Sequence[Path]) -> Path:
    """The longest path that all begin with."""
    return max((path[:n] for path in paths for n in range(len(path) + 1)
                if all(other[:n] == path[:n] for other in paths)), key=len)  # fmt: skip


@dataclass(frozen=True)
class Number:
    """Numbers of 0 to ``n_steps`` steps; the block has those from ``first`` to ``last``."""

    n_steps: int
    slice_steps: int
    first: int
    last: int
    has_missing: bool
    price: int

    @property
    def top(self) -> int:
        widest = next(j for j in range(99) if 2**j >= self.n_steps + 1)
        return widest + 1 if self.has_missing else widest

    def key(self, value: int | None, level: int) -> int:
        if level == self.top:
            return 0
        return -1 if value is None else value // 2**level

    def place(self, key: int) -> int:
        return key

    def cell(self, level: int, key: int) -> tuple[int, int]:
        return max(key * 2**level, self.first), min((key + 1) * 2**level - 1, self.last)

    def label(self, values: Sequence[int | None], cell: tuple[int, int] | None) -> Interval:
        known = [value for value in values if value is not None]
        if not known:
            return 0, -1, True
        q = self.slice_steps
        low, high = max(min(known) // q * q, self.first), min(max(known) // q * q + q - 1, self.last)
        if cell is not None:
            first, last = self.cell(*cell)
            low, high = max(low, first), min(high, last)
        return low, high, len(known) < len(values)

    def loss(self, value: int | None, label: Interval) -> int:
        low, high, _ = label
        if value is None:
            return self.n_steps if high >= low else 0
        return high - low

    def cell_loss(self, value: int | None, level: int) -> int:
        if value is None:
            return self.n_steps if level == self.top else 0
        low, high = self.cell(level, self.key(value, level))
        return high - low

    def levels(self, label: Interval) -> tuple[int, int]:
        """By place, by width."""
        low, high, missing = label
        if high < low:
            return 0, 0
        if missing:
            return self.top, self.top
        levels = range(self.top + 1)
        by_place = next(j for j in levels if low // 2**j == high // 2**j)
        return by_place, next(j for j in levels if 2**j >= high - low + 1)


Axis = Tree | Number
Holds = Callable[[Sequence[int]], bool]


@dataclass(frozen=True)
class Published:
    """A published cell, or the pool, which has no levels and no keys."""

    levels: tuple[int, ...] | None
    keys: tuple[Any, ...] | None
    rows: tuple[int, ...]
    labels: tuple[Any, ...]


def label_rows(rows: Sequence[Row], of: Iterable[int], axes: Sequence[Axis]) -> tuple[Any, ...]:
    """The labels of some rows as the tree has them."""
    members = list(of)
    return tuple(axis.label([rows[i][a] for i in members], None) for a, axis in enumerate(axes))


def price(
    rows: Sequence[Row], groups: Iterable[tuple[Sequence[int], Sequence[Any]]], axes: Sequence[Axis]
) -> int:
    """What labels cost: of each group its rows and its labels are given."""
    return sum(
        axis.price * axis.loss(rows[i][a], labels[a])
        for members, labels in groups
        for i in members
        for a, axis in enumerate(axes)
    )


def vectors_of(
    rows: Sequence[Row], labels: Iterable[Sequence[Any]], axes: Sequence[Axis]
) -> list[tuple[int, ...]]:
    """Level vectors, the cheapest first."""
    found = {tuple(axis.top for axis in axes)}
    for label in labels:
        both = [axis.levels(one) for axis, one in zip(axes, label, strict=True)]
        found |= {tuple(levels[way] for levels in both) for way in (0, 1)}

    def cost(vector: tuple[int, ...]) -> int:
        return sum(
            axis.price * axis.cell_loss(row[a], vector[a]) for row in rows for a, axis in enumerate(axes)
        )

    return sorted(found, key=lambda vector: (cost(vector), vector))


def make_list(
    rows: Sequence[Row], labels: Iterable[Sequence[Any]], axes: Sequence[Axis], holds: Holds
) -> tuple[list[Published], Published | None]:
    """The published cells and the pool, None if nobody is left over."""
    left, cells = list(range(len(rows))), []
    for vector in vectors_of(rows, labels, axes):
        groups = defaultdict(list)
        for i in left:
            groups[tuple(axis.key(rows[i][a], vector[a]) for a, axis in enumerate(axes))].append(i)
        for key in sorted(
            groups, key=lambda key: [axis.place(one) for axis, one in zip(axes, key, strict=True)]
        ):
            if holds(groups[key]):
                cells.append((vector, key, groups[key]))
                left = [i for i in left if i not in groups[key]]
    while left and not holds(left):
        left += cells.pop()[2]
    published = [
        Published(
            vector,
            key,
            tuple(members),
            tuple(
                axis.label([rows[i][a] for i in members], (vector[a], key[a])) for a, axis in enumerate(axes)
            ),
        )
        for vector, key, members in cells
    ]
    pool = Published(None, None, tuple(sorted(left)), label_rows(rows, left, axes)) if left else None
    return published, pool
