"""A simple random sample of rows that are read once, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sized
from typing import Generic, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.randomness import splitmix64

Rows = TypeVar("Rows", bound=Sized)
Ints = NDArray[np.int64]


class Reservoir(Generic[Rows]):
    """A simple random sample without replacement: the rows with the least keys, in the order of the table.

    The key of a row comes from the seed and the row's number. So the sample is the same in whatever blocks and in
    whatever order the rows come, and however samples of parts of them are merged. No two rows have the same key, unless
    their ``owners`` are given: then it comes from the owner's number, and an owner is in the sample with all rows, or not
    at all. There are as many owners as have no more than ``size`` rows together.

    ``take`` picks rows of a portion, and ``join`` makes one portion of several. If it is known beforehand that
    ``n_rows`` will come, rows whose keys are surely too great are skipped at once. The bound leaves too few rows only
    beyond six standard deviations; the sample is then smaller.

    >>> sample = Reservoir(2, 1, take=np.take, join=np.concatenate)
    >>> sample.add(np.arange(6), 0)
    >>> sample.add(np.arange(6, 10), 6)
    >>> sample.rows()
    array([4, 8])
    """

    def __init__(
        self,
        size: int,
        seed: int,
        *,
        take: Callable[[Rows, Ints], Rows],
        join: Callable[[list[Rows]], Rows],
        n_rows: int = 0,
    ) -> None:
        self.size, self.seed, self.take, self.join = size, seed, take, join
        self._keys: list[NDArray[np.uint64]] = []
        self._numbers: list[Ints] = []
        self._portions: list[Rows] = []
        self._n_held = 0
        enough = size + 6 * math.sqrt(size) + 6
        self._bound = int(enough / n_rows * 2**64) if enough < n_rows else 2**64 - 1
        """No row with a greater key is in the sample."""

    def add(self, rows: Rows, first_row: int) -> None:
        """Let further rows take part, which are numbered from ``first_row`` on."""
        self.add_numbered(rows, np.arange(first_row, first_row + len(rows)))

    def add_numbered(self, rows: Rows, numbers: Ints, owners: Ints | None = None) -> None:
        """Let further rows take part, which have these numbers, and these owners if owners are drawn."""
        keys = splitmix64(self.seed, numbers if owners is None else owners)
        at = np.flatnonzero(keys <= np.uint64(self._bound))
        self._hold(keys[at], numbers[at], self.take(rows, at))

    def merge(self, other: Self) -> None:
        """Let the rows of another sample take part, which has the same size and seed and no row of this one."""
        self._bound = min(self._bound, other._bound)
        for keys, numbers, rows in zip(other._keys, other._numbers, other._portions, strict=True):
            self._hold(keys, numbers, rows)

    def rows(self, size: int | None = None) -> Rows:
        """The sampled rows, or the smaller sample of ``size`` rows; ``add`` must have been called."""
        self._throw_out()
        keys, rows = self._keys[0], self._portions[0]
        if size is None or size >= len(keys):
            return rows
        return self.take(rows, np.flatnonzero(keys < _first_too_great(keys, size)))

    def _hold(self, keys: NDArray[np.uint64], numbers: Ints, rows: Rows) -> None:
        self._keys.append(keys)
        self._numbers.append(numbers)
        self._portions.append(rows)
        self._n_held += len(keys)
        if self._n_held > self.size + self.size // 2:
            self._throw_out()

    def _throw_out(self) -> None:
        """Keep no more rows than are wanted, in the order of their numbers."""
        keys, numbers = np.concatenate(self._keys), np.concatenate(self._numbers)
        if len(keys) > self.size:
            self._bound = min(self._bound, max(int(_first_too_great(keys, self.size)), 1) - 1)
        kept = np.flatnonzero(
            keys <= np.uint64(self._bound)
        )  # who had too many rows in another sample is out
        if len(kept) < len(keys):
            keys, numbers = keys[kept], numbers[kept]
            self._keep(kept)
        rows = self.join(self._portions)
        if (numbers[1:] < numbers[:-1]).any():
            at = np.argsort(numbers)
            keys, numbers, rows = keys[at], numbers[at], self.take(rows, at)
        self._keys, self._numbers, self._portions, self._n_held = [keys], [numbers], [rows], len(keys)

    def _keep(self, kept: Ints) -> None:
        """Take these rows out of the portions, one by one: there is never a second copy of all."""
        start = 0
        for i, portion in enumerate(self._portions):
            first, last = np.searchsorted(kept, [start, start + len(portion)])
            self._portions[i] = self.take(portion, kept[first:last] - start)
            start += len(portion)


def _first_too_great(keys: NDArray[np.uint64], size: int) -> np.uint64:
    """The least key of these that is not in a sample of ``size`` rows; there are more keys."""
    return np.uint64(np.partition(keys, size)[size])


def sample_codes(size: int, seed: int, n_rows: int = 0) -> Reservoir[NDArray[np.uint32]]:
    """A sample of encoded rows (rows, columns), of which there are ``n_rows``; 0 if nobody knows how many."""
    return Reservoir(size, seed, take=_take_codes, join=np.concatenate, n_rows=n_rows)


def sample_cells(size: int, seed: int, n_rows: int) -> Reservoir[pa.RecordBatch]:
    """A sample of rows as they are stored, of a table of ``n_rows``; 0 if nobody knows how many."""
    return Reservoir(size, seed, take=_take_cells, join=_join_cells, n_rows=n_rows)


def seed_of_part(seed: int, n_rows: int) -> int:
    """The seed for a sample of a part of so many rows of a table; 0 stands for the whole table.

    The part that it was divided from is larger, so has another seed: a row that was in the sample there is no likelier
    than others to be in this one.
    """
    return int(splitmix64(seed, np.array([n_rows]))[0])


def _take_codes(rows: NDArray[np.uint32], at: Ints) -> NDArray[np.uint32]:
    return rows[at]


def _take_cells(rows: pa.RecordBatch, at: Ints) -> pa.RecordBatch:
    """These rows, without dictionaries, which may be those of a whole row group."""
    taken = rows.take(pa.array(at))
    columns = [
        column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
        for column in taken.columns
    ]
    return pa.RecordBatch.from_arrays(columns, taken.schema.names)


def _join_cells(portions: list[pa.RecordBatch]) -> pa.RecordBatch:
    whole = pa.Table.from_batches(portions).combine_chunks()
    return whole.to_batches()[0] if whole.num_rows else portions[0]
