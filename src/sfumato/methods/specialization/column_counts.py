"""Counts of columns: how many rows each value of an attribute has of each class, gathered in one pass.

Methods of shared cuts score a specialization by these alone, wherever the rows are. A column of few values is
counted in a matrix. One of too many is counted by sorting, if need be outside memory, so that what is held is
bounded whatever the column; either way counts come as :class:`AxisEntries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.batches import Rows
from sfumato.methods.specialization.kernels.cuts import CLASS_BITS, CLASS_MASK, AxisEntries, add_counts
from sfumato.table.sorted_runs import SortedRun, merge
from sfumato.table.spill import Spill

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
CHUNK = 65_536
"""AxisEntries that are looked at in one go where they are not all in memory."""

COUNTED = np.dtype([("key", np.uint64), ("n", np.int64)])
"""An entry as it is stored."""

FEWEST_KEYS = 16_384
"""Keys that are sorted at once, however little memory there is."""

MOST_RUNS = 32
"""Sorted files that are merged at once."""

SORT_BYTES = 48
"""Memory of a key while it is sorted: the key, a copy of it, and its count."""


class Classes:
    """The classes of all targets in one numbering.

    >>> Classes([2, 3]).target
    array([0, 0, 1, 1, 1])
    """

    def __init__(self, n_classes: Sequence[int]) -> None:
        self.start: Ints = np.cumsum([0, *n_classes], dtype=np.int64)[:-1]
        self.target: Ints = np.repeat(np.arange(len(n_classes)), n_classes)

    @property
    def n(self) -> int:
        return len(self.target)


class _Column(Protocol):
    """The counts of one column."""

    def add(self, codes: Codes, labels: Codes) -> None: ...

    def close(self) -> None:
        """All rows have been added."""

    def between(self, low: int, high: int) -> Iterator[AxisEntries]: ...


class ColumnCounts:
    """How many rows of each class each code of each axis has.

    >>> codes, labels = np.array([[0, 2, 2, 2]], dtype=np.uint32), np.array([[1], [0], [1], [1]], dtype=np.uint32)
    >>> counts = ColumnCounts.of(codes, labels, n_codes=[3], n_classes=[2])
    >>> [(int(key) >> 32, int(key) & 1, int(n)) for keys, rows in counts.between(0, 1, 3)
    ...  for key, n in zip(keys, rows)]
    [(2, 0, 1), (2, 1, 2)]
    """

    def __init__(self, columns: Sequence[_Column], classes: Classes, n_rows: int) -> None:
        self.columns, self.classes, self.n_rows = columns, classes, n_rows

    @classmethod
    def of(
        cls, codes: Codes, labels: Codes, *, n_codes: Sequence[int], n_classes: Sequence[int]
    ) -> ColumnCounts:
        """Counts of rows in memory: codes (axes, rows) and labels (rows, targets)."""
        classes = Classes(n_classes)
        columns: list[_Column] = []
        for n, column in zip(n_codes, codes, strict=True):
            is_narrow = n * classes.n <= max(4 * labels.size, CHUNK)
            counted: _Column = _Matrix(n, classes) if is_narrow else _Sorted(classes, None, labels.size)
            counted.add(column, labels)
            counted.close()
            columns.append(counted)
        return cls(columns, classes, len(labels))

    @classmethod
    def gather(
        cls,
        rows: Rows,
        *,
        n_codes: Sequence[int],
        labels: Sequence[int],
        n_classes: Sequence[int],
        spill: Spill | None,
        memory: int,
    ) -> ColumnCounts:
        """One pass over rows anywhere; ``labels`` are the columns of the targets. Narrow columns come first."""
        classes = Classes(n_classes)
        needed = np.array([4 * n * classes.n for n in n_codes])
        narrow = np.cumsum(np.sort(needed)) <= memory // 2
        is_matrix = np.zeros(len(needed), dtype=np.bool_)
        is_matrix[np.argsort(needed, kind="stable")[narrow]] = True
        most = memory // 2 // SORT_BYTES // max(1, int((~is_matrix).sum()))
        columns: list[_Column] = [
            _Matrix(n, classes) if small else _Sorted(classes, spill, max(most, FEWEST_KEYS))
            for n, small in zip(n_codes, is_matrix.tolist(), strict=True)
        ]
        n_rows = 0
        for block in rows.blocks(payload=False):
            of_row = np.ascontiguousarray(block.rows[:, list(labels)])
            n_rows += len(of_row)
            for a, column in enumerate(columns):
                column.add(np.ascontiguousarray(block.rows[:, a]), of_row)
        for column in columns:
            column.close()
        return cls(columns, classes, n_rows)

    def between(self, axis: int, low: int, high: int) -> Iterator[AxisEntries]:
        """The entries of the codes [low, high) of an axis, in order; those of a code come together."""
        return self.columns[axis].between(low, high)

    def matrix(self, axis: int, low: int, high: int) -> Ints:
        """The rows of each of the codes [low, high) of an axis and each class."""
        out = np.zeros((high - low, self.classes.n), dtype=np.int64)
        for key, n in self.between(axis, low, high):
            code = (key >> np.uint64(CLASS_BITS)).astype(np.int64)
            out[code - low, (key & np.uint64(CLASS_MASK)).astype(np.int64)] = n
        return out

    def totals(self, axis: int, low: int, high: int) -> Ints:
        """The rows of each class among the codes [low, high) of an axis."""
        total = np.zeros(self.classes.n, dtype=np.int64)
        for key, n in self.between(axis, low, high):
            np.add.at(total, (key & np.uint64(CLASS_MASK)).astype(np.int64), n)
        return total


class _Matrix:
    """A column of few values: a line of counts for each."""

    def __init__(self, n_codes: int, classes: Classes) -> None:
        self.counts = np.zeros((n_codes, classes.n), dtype=np.uint32)
        self.start = classes.start

    def add(self, codes: Codes, labels: Codes) -> None:
        add_counts(codes, labels, self.start, self.counts)

    def close(self) -> None:
        pass

    def between(self, low: int, high: int) -> Iterator[AxisEntries]:
        step = max(1, 16 * CHUNK // self.counts.shape[1])
        for first in range(low, high, step):
            part = self.counts[first : min(first + step, high)]
            code, of_class = np.nonzero(part)
            key = (code + first).astype(np.uint64) << np.uint64(CLASS_BITS) | of_class.astype(np.uint64)
            yield AxisEntries(key, part[code, of_class].astype(np.int64))


class _Sorted:
    """A column of many values: sorted runs of keys, merged into one. Without a spill folder all is in memory."""

    def __init__(self, classes: Classes, spill: Spill | None, most: int) -> None:
        self.start, self.spill, self.most = classes.start.astype(np.uint64), spill, most
        self.keys: list[NDArray[np.uint64]] = []
        self.n_held = 0
        self.runs: list[SortedRun] = []
        self.counted: NDArray[Any] = np.zeros(0, dtype=COUNTED)
        """All records, if they are in memory."""

    def add(self, codes: Codes, labels: Codes) -> None:
        high = codes.astype(np.uint64) << np.uint64(CLASS_BITS)
        key = (high[:, None] | (labels + self.start)).ravel()
        for first in range(0, len(key), self.most):
            part = key[first : first + self.most]
            if self.spill is not None and self.n_held + len(part) > self.most:
                self._end_run(self.spill)
            self.keys.append(part)
            self.n_held += len(part)

    def close(self) -> None:
        if self.spill is None:
            self.counted = self._count_held()
            return
        self._end_run(self.spill)
        if len(self.runs) > 1:
            self._merge(self.spill)
        if sum(run.n_bytes for run in self.runs) <= self.most * SORT_BYTES:
            for run in self.runs:  # there is one, or none; sorting is over, so its memory is free
                self.counted = run.read(0, run.n)
                run.delete()
            self.runs = []

    def between(self, low: int, high: int) -> Iterator[AxisEntries]:
        """Chunks of entries, cut between codes: what begins a code at the end of one is kept for the next."""
        kept = AxisEntries(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))
        first, last = (np.uint64(code << CLASS_BITS) for code in (low, high))
        for found in self.runs[0].around(first, last) if self.runs else [self.counted]:
            begin, end = np.searchsorted(found["key"], np.array([first, last]))
            new = found["key"][begin:end], found["n"][begin:end]
            key, n = (np.concatenate(pair) for pair in zip(kept, new, strict=True))
            if len(key):
                whole = np.searchsorted(key, key[-1] >> np.uint64(CLASS_BITS) << np.uint64(CLASS_BITS))
                kept = AxisEntries(key[whole:], n[whole:])
                if whole:
                    yield AxisEntries(key[:whole], n[:whole])
        if len(kept.key):
            yield kept

    def _count_held(self) -> NDArray[Any]:
        """The keys at hand with their numbers; they are not held any more."""
        held = np.concatenate([np.zeros(0, dtype=np.uint64), *self.keys])
        self.keys, self.n_held = [], 0
        key, n = np.unique(held, return_counts=True)
        return _pack(key, n)

    def _end_run(self, spill: Spill) -> None:
        if not self.keys:
            return
        run = SortedRun(spill, COUNTED, "counts")
        run.append(self._count_held())
        self.runs.append(run)
        if len(self.runs) == MOST_RUNS:
            self._merge(spill)

    def _merge(self, spill: Spill) -> None:
        """All runs as one, equal keys added up."""
        merged = SortedRun(spill, COUNTED, "counts")
        for part in merge(self.runs, max(self.most // (len(self.runs) + 1), 1)):
            key, place = np.unique(part["key"], return_inverse=True)
            n = np.zeros(len(key), dtype=np.int64)
            np.add.at(n, place, part["n"])
            merged.append(_pack(key, n))
        for run in self.runs:
            run.delete()
        self.runs = [merged]


def _pack(key: NDArray[np.uint64], n: Ints) -> NDArray[Any]:
    out = np.empty(len(key), dtype=COUNTED)
    out["key"], out["n"] = key, n
    return out
