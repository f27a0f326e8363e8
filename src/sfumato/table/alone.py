"""Rows that are alone by a value: how many have one that nobody else has, in a column that is seen batch by batch.

Values and people are told apart by numbers of 64 bits. Of each value it is kept whose it is as long as it is one
person's alone; what does not fit in memory goes to a file as sorted runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.policy.schema import Attribute
from sfumato.table.cells import decode, is_one_of, lenient_texts, plain
from sfumato.table.sorted_runs import SortedRun, merge
from sfumato.table.spill import Spill

Keys = NDArray[np.uint64]
Records = NDArray[Any]

RECORD = np.dtype([("key", np.uint64), ("owner", np.uint64), ("rows", np.int64)])
"""A value, the person who has it, and in how many rows; 0 rows where several people have it."""

FIXED = ("integer", "floating", "date", "timestamp", "time", "duration")
"""Types of cells that are equal where their bits are."""

COPIES = 6
"""Memory for a record while records are put in order, as a multiple of its size."""

SMALLEST = 1 << 12
"""Records that are held at least: below this, files are not worth their while."""


class Found(NamedTuple):
    """How many rows are alone by a column, and how many different values it has."""

    alone: int
    values: int


class AloneRows:
    """Counts the rows whose value no other person has.

    >>> found = AloneRows()
    >>> found.add(np.array([5, 5, 7, 8], np.uint64), np.array([1, 1, 1, 2], np.uint64))
    >>> found.add(np.array([7], np.uint64), np.array([3], np.uint64))
    >>> found.count()
    Found(alone=3, values=3)
    """

    def __init__(self, spill: Spill | None = None, memory: int = 1 << 62) -> None:
        self.spill = spill
        self.most = max(memory // (COPIES * RECORD.itemsize), SMALLEST)
        self._held: list[Records] = []
        self._n_held = 0
        self._runs: list[SortedRun] = []

    def add(self, values: Keys, owners: Keys) -> None:
        """Look at rows: the value of each, and whose it is."""
        records = np.empty(len(values), dtype=RECORD)
        records["key"], records["owner"], records["rows"] = values, owners, 1
        self._hold([_join(records)])

    def merge(self, other: AloneRows) -> None:
        """Look at the rows that another one has seen, whose files are then these ones' own."""
        self._runs += other._runs
        self._hold(other._held)
        other._held, other._runs, other._n_held = [], [], 0

    def _hold(self, parts: Sequence[Records]) -> None:
        self._held += parts
        self._n_held += sum(map(len, parts))
        if self._n_held <= self.most:
            return
        self._held = [_join(np.concatenate(self._held))]
        self._n_held = len(self._held[0])
        if self.spill is not None and self._n_held > self.most // 2:
            self._write_run(self.spill)

    def _write_run(self, spill: Spill) -> None:
        run = SortedRun(spill, RECORD)
        run.append(_join(np.concatenate(self._held)))
        self._runs.append(run)
        spill.counters.spills += 1
        self._held, self._n_held = [], 0

    def count(self) -> Found:
        """What was found. Nothing is left afterwards."""
        alone = values = 0
        for part in self._parts():
            joined = _join(part)
            alone, values = alone + int(joined["rows"].sum()), values + len(joined)
        for run in self._runs:
            run.delete()
        self._held, self._n_held, self._runs = [], 0, []
        return Found(alone, values)

    def _parts(self) -> Iterator[Records]:
        """All records; those of one value are in one part."""
        if not self._runs or self.spill is None:
            yield np.concatenate([np.empty(0, dtype=RECORD), *self._held])
            return
        if self._held:
            self._write_run(self.spill)
        yield from merge(self._runs, max(self.most // len(self._runs), SMALLEST))


def _join(records: Records) -> Records:
    """One record for each value, in their order."""
    if not len(records):
        return records
    ordered = records[np.argsort(records["key"], kind="stable")]
    key = ordered["key"]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    owner = ordered["owner"]
    low, high = np.minimum.reduceat(owner, starts), np.maximum.reduceat(owner, starts)
    is_one = (low == high) & (np.minimum.reduceat(ordered["rows"], starts) > 0)
    joined = ordered[starts]
    joined["rows"] = np.where(is_one, np.add.reduceat(ordered["rows"], starts), 0)
    return joined


def number_cells(column: Any, attribute: Attribute) -> tuple[Keys, NDArray[np.bool_]]:
    """A number for each cell, equal where cells are, in every process; and which cells are there.

    Numbers and times are told apart by their bits, texts by 64 bits of a hash.

    >>> numbers, is_there = number_cells(pa.array(["a", None, "a", "b", ""]), Attribute("job", role="other"))
    >>> len(set(numbers[is_there].tolist())), is_there.tolist()
    (2, [True, False, True, True, False])
    """
    stored = plain(column, attribute)
    if is_one_of(stored.type, *FIXED) and not attribute.missing_values:
        return _number_bits(stored)
    encoded = lenient_texts(stored, attribute)
    words = encoded.dictionary.to_pylist()
    of_word = np.fromiter(map(_hash, words), dtype=np.uint64, count=len(words))
    is_there = encoded.is_valid().to_numpy(zero_copy_only=False)
    at = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    return (of_word[at] if len(words) else np.zeros(len(at), dtype=np.uint64)), is_there


def _number_bits(stored: pa.ChunkedArray) -> tuple[Keys, NDArray[np.bool_]]:
    cells = pa.concat_arrays([pa.array([], stored.type), *map(decode, stored.chunks)])
    if is_one_of(cells.type, "floating"):
        floats = pc.add(cells.cast(pa.float64()), 0.0)  # -0.0 is 0.0
        cells = pc.if_else(pc.is_nan(floats), None, floats)
    is_there = cells.is_valid().to_numpy(zero_copy_only=False)
    width = {16: pa.int16(), 32: pa.int32(), 64: pa.int64(), 8: pa.int8()}[cells.type.bit_width]
    bits = pc.fill_null(cells.view(width), 0).to_numpy(zero_copy_only=False)
    return bits.astype(np.int64).view(np.uint64), is_there


def _hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
