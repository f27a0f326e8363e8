"""A column of codes that any batch can be encoded to; several such columns as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.batches import Batch, Fed, Show
from sfumato.encoding.domain import Codes
from sfumato.errors import InputError
from sfumato.table.spill import size_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn:
    """Codes below ``n`` that can be made of any batch that has the columns ``names``.

    ``count`` is how many rows have each code, empty where nobody has counted.
    """

    names: tuple[str, ...]
    n: int
    codes: Callable[[Batch], Codes]
    count: Ints


def combine(columns: Sequence[CodedColumn], show: Show, memory: int, name: str) -> CodedColumn:
    """Several columns of codes as one: combinations that occur are numbered. An error calls them by ``name``.

    As many columns as fit into one whole number are combined at a time.
    """
    if len(columns) == 1 and len(columns[0].count):
        return columns[0]
    ahead, rest = [columns[0]], list(columns[1:])
    n = columns[0].n
    while rest and n * rest[0].n < 2**62:
        n *= rest[0].n
        ahead.append(rest.pop(0))

    names = tuple(dict.fromkeys(each for column in ahead for each in column.names))
    seen, combined = KeyCounts(memory, name), CombinedKeys(tuple(ahead))
    show(names, Fed(seen, combined))
    keys, count = seen.finish()
    one = CodedColumn(names, len(keys), KeyRanks(keys, combined), count)
    return combine([one, *rest], show, memory, name) if rest else one


@dataclass(frozen=True, slots=True, eq=False)
class CombinedKeys:
    """A whole number for each row, whose digits are the codes of several columns."""

    columns: tuple[CodedColumn, ...]

    def __call__(self, batch: Batch) -> tuple[Ints]:
        out = np.zeros(batch.n_rows, dtype=np.int64)
        for column in self.columns:
            out = out * column.n + column.codes(batch)
        return (out,)


@dataclass(frozen=True, slots=True, eq=False)
class KeyRanks:
    """The place of each row's key among all keys, which ascend."""

    keys: Ints
    of_rows: CombinedKeys

    def __call__(self, batch: Batch) -> Codes:
        (keys,) = self.of_rows(batch)
        return np.searchsorted(self.keys, keys).astype(np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class CodesOf:
    """The codes of several columns, side by side."""

    columns: tuple[CodedColumn, ...]

    def __call__(self, batch: Batch) -> tuple[Codes, ...]:
        return tuple(column.codes(batch) for column in self.columns)


class KeyCounts:
    """Distinct whole numbers and how often each occurs.

    >>> seen = KeyCounts(memory=1000, name="x")
    >>> seen.add(np.array([5, 2, 5]))
    >>> seen.add(np.array([2]))
    >>> seen.finish()
    (array([2, 5]), array([2, 2]))
    """

    def __init__(self, memory: int, name: str) -> None:
        self.memory, self.name = memory, name
        self._parts: list[tuple[Ints, Ints]] = []
        self._n_held = self._n_joined = 0

    def add(self, keys: Ints) -> None:
        """Look at some more."""
        self._hold([np.unique(keys, return_counts=True)])

    def merge(self, other: KeyCounts) -> None:
        """Look at the numbers that another one has seen."""
        self._hold(other._parts)

    def _hold(self, parts: Sequence[tuple[Ints, Ints]]) -> None:
        self._parts += parts
        self._n_held += sum(len(distinct) for distinct, _ in parts)
        if self._n_held > max(self.memory // 64, 2 * self._n_joined):
            self._join()

    def _join(self) -> None:
        """Each number once; an error if they are too many."""
        keys = np.concatenate([part for part, _ in self._parts])
        distinct, at = np.unique(keys, return_inverse=True)
        count = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(count, at, np.concatenate([part for _, part in self._parts]))
        self._parts, self._n_held, self._n_joined = [(distinct, count)], len(distinct), len(distinct)
        if 64 * len(distinct) > self.memory:
            raise InputError(
                f"Column {self.name!r} and those beside it make over {len(distinct):,} different combinations, "
                f"which need more than {size_of(4 * self.memory)}; allow more --memory, or fewer columns."
            )

    def finish(self) -> tuple[Ints, Ints]:
        """The numbers in ascending order, and how often each occurs."""
        self._join()
        return self._parts[0]
