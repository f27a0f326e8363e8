"""Counts of columns: how many rows each value of an attribute has of each class, gathered in one pass.

Methods of shared cuts score a specialization by these alone, wherever the rows are. Each column has counts of its own
(``engines.counts``), so that what is held is bounded whatever the column; they are walked as :class:`AxisEntries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.batches import BLOCK_ROWS, Rows
from sfumato.engines.counts import Counts
from sfumato.methods.specialization.kernels.cuts import AxisEntries
from sfumato.table.spill import Spill

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]

LEAST_ROOM = 1 << 18
"""Bytes of memory for a column, however little there is."""

SPARSE = 4
"""A column of more than so many possible counts for each row is not counted in a table, even in memory."""


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

    @property
    def n_bits(self) -> int:
        """Bits of a class."""
        return (self.n - 1).bit_length()


class ColumnCounts:
    """How many rows of each class each code of each axis has. A key is a code, then a class.

    >>> codes, labels = np.array([[0, 2, 2, 2]], dtype=np.uint32), np.array([[1], [0], [1], [1]], dtype=np.uint32)
    >>> counts = ColumnCounts.of(codes, labels, n_codes=[3], n_classes=[2])
    >>> [(int(key) >> 1, int(key) & 1, int(n)) for keys, rows, _ in counts.between(0, 1, 3)
    ...  for key, n in zip(keys, rows)]
    [(2, 0, 1), (2, 1, 2)]
    """

    def __init__(self, columns: Sequence[Counts], classes: Classes) -> None:
        self.columns, self.classes, self.n_rows = columns, classes, 0

    @classmethod
    def of(
        cls, codes: Codes, labels: Codes, *, n_codes: Sequence[int], n_classes: Sequence[int]
    ) -> ColumnCounts:
        """Counts of rows in memory: codes (axes, rows) and labels (rows, targets)."""
        classes = Classes(n_classes)
        room = 8 * max(SPARSE * labels.size, BLOCK_ROWS)
        counts = cls([Counts.new(n << classes.n_bits, room=room, spill=None) for n in n_codes], classes)
        for first in range(0, len(labels), BLOCK_ROWS):
            rows = slice(first, first + BLOCK_ROWS)
            counts.add(codes[:, rows], labels[rows])
        return counts

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
        """One pass over rows anywhere; ``labels`` are the columns of the targets."""
        counts = cls.new(n_codes, Classes(n_classes), memory=memory, spill=spill)
        for block in rows.blocks(payload=False):
            counts.add(block.rows.T[: len(n_codes)], np.ascontiguousarray(block.rows[:, list(labels)]))
        counts.join()
        return counts

    @classmethod
    def new(
        cls, n_codes: Sequence[int], classes: Classes, *, memory: int, spill: Spill | None
    ) -> ColumnCounts:
        """No counts yet: the narrow columns have half of the memory for tables, the others share the rest."""
        n_keys = np.array([n << classes.n_bits for n in n_codes], dtype=np.int64)
        is_narrow = np.zeros(len(n_keys), dtype=np.bool_)
        is_narrow[np.argsort(n_keys, kind="stable")[8 * np.cumsum(np.sort(n_keys)) <= memory // 2]] = True
        share = max(memory // 2 // max(1, int((~is_narrow).sum())), LEAST_ROOM)
        room = np.where(is_narrow, 8 * n_keys, share)
        columns = [
            Counts.new(n, room=size, spill=spill)
            for n, size in zip(n_keys.tolist(), room.tolist(), strict=True)
        ]
        return cls(columns, classes)

    def add(self, codes: Sequence[Codes] | Codes, labels: Codes) -> None:
        """Add some rows: their codes axis by axis, and labels (rows, targets)."""
        bits = np.uint64(self.classes.n_bits)
        of_row = labels + self.classes.start.astype(np.uint64)
        for column, here in zip(self.columns, codes, strict=True):
            high = here.astype(np.uint64) << bits
            for of_target in of_row.T:
                column.add(high | of_target)
        self.n_rows += len(labels)

    def merge(self, other: ColumnCounts) -> None:
        """Add the counts of other rows."""
        for column, its in zip(self.columns, other.columns, strict=True):
            column.merge(its)
        self.n_rows += other.n_rows

    def join(self) -> None:
        """All rows have been added: columns will be walked often, and in small parts."""
        for column in self.columns:
            column.join()

    def between(self, axis: int, low: int, high: int) -> Iterator[AxisEntries]:
        """The entries of the codes [low, high) of an axis, in order; those of a code come together."""
        bits = self.classes.n_bits
        for keys, words in self.columns[axis].chunks(low << bits, high << bits, together=1 << bits):
            yield AxisEntries(keys, words[:, 0], bits)

    def matrix(self, axis: int, low: int, high: int) -> Ints:
        """The rows of each of the codes [low, high) of an axis and each class."""
        out = np.zeros((high - low, self.classes.n), dtype=np.int64)
        for entries in self.between(axis, low, high):
            out[entries.codes() - low, entries.classes()] = entries.n_rows
        return out

    def totals(self, axis: int, low: int, high: int) -> Ints:
        """The rows of each class among the codes [low, high) of an axis."""
        total = np.zeros(self.classes.n, dtype=np.int64)
        for entries in self.between(axis, low, high):
            np.add.at(total, entries.classes(), entries.n_rows)
        return total
