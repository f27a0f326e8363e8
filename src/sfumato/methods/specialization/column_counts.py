"""Counts of columns: how many rows of each class each value of an attribute has, gathered in one pass.

Methods of shared cuts score a specialization by these alone, wherever the rows are. A column of few values is
counted in a matrix. One of too many is counted by sorting, if need be outside memory, so that what is held is
bounded whatever the column; either way counts come as *entries*, see :mod:`sfumato.methods.specialization.kernels.cuts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.blocks import Rows
from sfumato.methods.specialization.kernels.cuts import CLASS_BITS, add_counts
from sfumato.table.spill import Spill, spilling

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
Entries = tuple[NDArray[np.uint64], Ints]
"""Keys, ascending, and their numbers of rows."""

CHUNK = 65_536
"""Entries that are looked at in one go where they are not all in memory."""

MARK = 1024
"""Every so manieth entry of a file is known by its key."""

FEWEST_KEYS = 16_384
"""That are sorted at once, however little memory there is."""

MOST_RUNS = 32
"""Sorted files that are merged at once."""

SORT_BYTES = 48
"""Of a key while it is sorted: the key, a copy of it, and its count."""


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

    def between(self, low: int, high: int) -> Iterator[Entries]: ...


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

    def between(self, axis: int, low: int, high: int) -> Iterator[Entries]:
        """The entries of the codes [low, high) of an axis, in order; those of a code come together."""
        return self.columns[axis].between(low, high)

    def matrix(self, axis: int, low: int, high: int) -> Ints:
        """The rows of each of the codes [low, high) of an axis and each class."""
        out = np.zeros((high - low, self.classes.n), dtype=np.int64)
        for key, n in self.between(axis, low, high):
            code = (key >> np.uint64(CLASS_BITS)).astype(np.int64)
            out[code - low, (key & np.uint64(2**CLASS_BITS - 1)).astype(np.int64)] = n
        return out

    def totals(self, axis: int, low: int, high: int) -> Ints:
        """The rows of each class among the codes [low, high) of an axis."""
        total = np.zeros(self.classes.n, dtype=np.int64)
        for key, n in self.between(axis, low, high):
            np.add.at(total, (key & np.uint64(2**CLASS_BITS - 1)).astype(np.int64), n)
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

    def between(self, low: int, high: int) -> Iterator[Entries]:
        step = max(1, 16 * CHUNK // self.counts.shape[1])
        for first in range(low, high, step):
            part = self.counts[first : min(first + step, high)]
            code, of_class = np.nonzero(part)
            key = (code + first).astype(np.uint64) << np.uint64(CLASS_BITS) | of_class.astype(np.uint64)
            yield key, part[code, of_class].astype(np.int64)


class _Sorted:
    """A column of many values: sorted runs of keys, merged into one. Without a spill folder all is in memory."""

    def __init__(self, classes: Classes, spill: Spill | None, most: int) -> None:
        self.start, self.spill, self.most = classes.start.astype(np.uint64), spill, most
        self.keys: list[NDArray[np.uint64]] = []
        self.n_held = 0
        self.runs: list[_Run] = []

    def add(self, codes: Codes, labels: Codes) -> None:
        high = codes.astype(np.uint64) << np.uint64(CLASS_BITS)
        key = (high[:, None] | (labels + self.start)).ravel()
        for first in range(0, len(key), self.most):
            part = key[first : first + self.most]
            if self.n_held + len(part) > self.most:
                self._end_run()
            self.keys.append(part)
            self.n_held += len(part)

    def close(self) -> None:
        self._end_run()
        if len(self.runs) != 1:
            self._merge()
        (run,) = self.runs
        if isinstance(run, _StoredRun) and run.n * run.LINE <= self.most * SORT_BYTES:
            self.runs = [_Run([run.read(0, run.n)])]  # nothing is sorted any more, so there is room
            run.delete()

    def between(self, low: int, high: int) -> Iterator[Entries]:
        """Chunks of entries, cut between codes: what begins a code at the end of one is kept for the next."""
        kept: Entries = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        first, last = (np.uint64(code << CLASS_BITS) for code in (low, high))
        for found in self.runs[0].around(first, last):
            begin, end = np.searchsorted(found[0], np.array([first, last]))
            key, n = (np.concatenate([old, new[begin:end]]) for old, new in zip(kept, found, strict=True))
            if len(key):
                whole = np.searchsorted(key, key[-1] >> np.uint64(CLASS_BITS) << np.uint64(CLASS_BITS))
                kept = key[whole:], n[whole:]
                if whole:
                    yield key[:whole], n[:whole]
        if len(kept[0]):
            yield kept

    def _end_run(self) -> None:
        if not self.keys:
            return
        key, n = np.unique(np.concatenate(self.keys), return_counts=True)
        self.keys, self.n_held = [], 0
        run = self._new_run()
        run.append((key, n.astype(np.int64)))
        self.runs.append(run)
        if len(self.runs) == MOST_RUNS:
            self._merge()

    def _merge(self) -> None:
        """All runs as one."""
        merged = self._new_run()
        for entries in _merged(self.runs, max(self.most // (len(self.runs) + 1), 1)):
            merged.append(entries)
        for run in self.runs:
            run.delete()
        self.runs = [merged]

    def _new_run(self) -> _Run:
        return _Run() if self.spill is None else _StoredRun(self.spill)


@dataclass(slots=True)
class _Run:
    """Entries in memory."""

    parts: list[Entries] = field(default_factory=list)

    def append(self, entries: Entries) -> None:
        self.parts.append(entries)

    def around(self, first: np.uint64, last: np.uint64) -> Iterator[Entries]:  # noqa: ARG002 - no matter in memory
        """The entries in order that have keys in [first, last), and perhaps some others."""
        yield from self.parts

    def read(self, begin: int, end: int) -> Entries:
        (key, n) = self.parts[0] if self.parts else (np.zeros(0, np.uint64), np.zeros(0, np.int64))
        return key[begin:end], n[begin:end]

    def delete(self) -> None:
        self.parts = []


class _StoredRun(_Run):
    """Entries in a file, in lines of two numbers of 64 bits, and where to find them."""

    LINE = 16

    def __init__(self, spill: Spill) -> None:
        self.spill, self.path = spill, spill.path("counts")
        self.marks = np.zeros(0, dtype=np.uint64)
        self.n = 0

    def append(self, entries: Entries) -> None:
        lines = np.stack([entries[0], entries[1].astype(np.uint64)], axis=1)
        self.marks = np.append(self.marks, entries[0][-self.n % MARK :: MARK])
        self.n += len(lines)
        with spilling(self.spill.folder), self.path.open("ab") as file:
            lines.tofile(file)
        self.spill.counters.bytes_written += lines.nbytes

    def around(self, first: np.uint64, last: np.uint64) -> Iterator[Entries]:
        begin = max(int(np.searchsorted(self.marks, first, side="right")) - 1, 0) * MARK
        end = min(int(np.searchsorted(self.marks, last)) * MARK, self.n)
        for at in range(begin, end, CHUNK):
            yield self.read(at, min(at + CHUNK, end))

    def read(self, begin: int, end: int) -> Entries:
        n = min(end, self.n) - begin
        lines = np.fromfile(self.path, dtype=np.uint64, count=2 * n, offset=begin * self.LINE).reshape(-1, 2)
        self.spill.counters.bytes_read += lines.nbytes
        return lines[:, 0].copy(), lines[:, 1].astype(np.int64)

    def delete(self) -> None:
        Path(self.path).unlink(missing_ok=True)


def _merged(runs: Sequence[_Run], step: int) -> Iterator[Entries]:
    """The entries of all runs in order, equal keys added up; ``step`` entries of each are held."""
    at = [0] * len(runs)
    held = [run.read(0, step) for run in runs]
    while any(len(key) for key, _ in held):
        # keys up to the least of the last ones held cannot come again
        last = min(key[-1] for key, _ in held if len(key))
        ends = [int(np.searchsorted(key, last, side="right")) for key, _ in held]
        key, place = np.unique(
            np.concatenate([key[:end] for (key, _), end in zip(held, ends, strict=True)]), return_inverse=True
        )
        n = np.zeros(len(key), dtype=np.int64)
        np.add.at(n, place, np.concatenate([n[:end] for (_, n), end in zip(held, ends, strict=True)]))
        yield key, n
        for r, end in enumerate(ends):
            if end:
                at[r] += end
                held[r] = runs[r].read(at[r], at[r] + step)
