"""A simple random sample of rows that are read once, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.randomness import Random

Rows = TypeVar("Rows")
Ints = NDArray[np.int64]


class Reservoir(Generic[Rows]):
    """A simple random sample without replacement: each row gets a random key, and those with the least keys are kept.

    They stay in the order in which they came. ``take`` picks rows of a portion, and ``join`` makes one portion of
    several. If it is known beforehand that ``n_rows`` will come, rows whose keys are surely too great are skipped at
    once. The bound leaves too few rows only beyond six standard deviations; the sample is then smaller.

    >>> from sfumato.randomness import seeded
    >>> sample = Reservoir(2, seeded(1), take=np.take, join=np.concatenate)
    >>> sample.add(np.arange(10), 10)
    >>> sample.rows()
    array([2, 9])
    """

    def __init__(
        self,
        size: int,
        random: Random,
        *,
        take: Callable[[Rows, Ints], Rows],
        join: Callable[[list[Rows]], Rows],
        n_rows: int = 0,
    ) -> None:
        self.size, self.random, self.take, self.join = size, random, take, join
        self._keys: list[NDArray[np.uint64]] = []
        self._portions: list[Rows] = []
        self._n_held = 0
        enough = size + 6 * math.sqrt(size) + 6
        self._bound = int(enough / n_rows * 2**64) if enough < n_rows else None

    def add(self, rows: Rows, n_rows: int) -> None:
        """Let ``n_rows`` more rows take part."""
        keys = self.random.integers(0, 2**64, size=n_rows, dtype=np.uint64)
        at = np.arange(n_rows) if self._bound is None else np.flatnonzero(keys < self._bound)
        self._keys.append(keys[at])
        self._portions.append(self.take(rows, at))
        self._n_held += len(at)
        if self._n_held > self.size + self.size // 2:
            self._throw_out()

    def rows(self) -> Rows:
        """The sampled rows; ``add`` must have been called."""
        self._throw_out()
        return self._portions[0]

    def _throw_out(self) -> None:
        """Keep no more rows than are wanted."""
        keys, rows = np.concatenate(self._keys), self.join(self._portions)
        if len(keys) > self.size:
            at = np.sort(np.argpartition(keys, self.size - 1)[: self.size])
            keys, rows = keys[at], self.take(rows, at)
            self._bound = int(keys.max())
        self._keys, self._portions, self._n_held = [keys], [rows], len(keys)


def sample_codes(size: int, random: Random) -> Reservoir[NDArray[np.uint32]]:
    """A sample of encoded rows (rows, columns)."""
    return Reservoir(size, random, take=lambda rows, at: rows[at], join=np.concatenate)


def sample_cells(size: int, random: Random, n_rows: int) -> Reservoir[pa.RecordBatch]:
    """A sample of rows as they are stored, of a table of ``n_rows``; 0 if nobody knows how many."""
    return Reservoir(size, random, take=_take_cells, join=_join_cells, n_rows=n_rows)


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
