"""Counts of columns: how many rows each value of an attribute has of each class, gathered in one pass.

Methods of shared cuts score a specialization by these alone, wherever the rows are. Each column has counts of its own
(``engines.counts``), so that what is held is bounded whatever the column; they are walked as :class:`AxisEntries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.batches import BLOCK_ROWS, Block
from sfumato.engines.counts import Counts
from sfumato.engines.protocol import UNLIMITED
from sfumato.methods.specialization.kernels.cuts import AxisEntries
from sfumato.table.spill import Spill

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

    ``labels`` are the columns of the targets; those of the axes come first.

    >>> rows = np.array([[0, 1], [2, 0], [2, 1], [2, 1]], dtype=np.uint32)
    >>> counts = ColumnCounts(ColumnPlan([3], labels=[1], n_classes=[2]), memory=1000)
    >>> counts.add(Block(rows, None))
    >>> counts.matrix(0, 1, 3).tolist(), counts.totals(0, 0, 3).tolist()
    ([[0, 0], [1, 2]], [1, 3])
    """

    def __init__(self, plan: ColumnPlan, *, memory: int, spill: Spill | None = None) -> None:
        self.labels, self.classes, self.n_rows = list(plan.labels), Classes(plan.n_classes), 0
        n_keys = np.array([n << self.classes.n_bits for n in plan.n_codes], dtype=np.int64)
        is_table = np.zeros(len(n_keys), dtype=np.bool_)
        is_table[np.argsort(n_keys, kind="stable")[8 * np.cumsum(np.sort(n_keys)) <= memory // 2]] = True
        is_table &= n_keys <= max(min(SPARSE * plan.most_rows * len(self.labels), UNLIMITED), BLOCK_ROWS)
        share = max(memory // 2 // max(1, int((~is_table).sum())), LEAST_ROOM)
        self.columns = [
            Counts.new(n, room=8 * n if fits else min(share, 8 * n - 1), spill=spill)
            for n, fits in zip(n_keys.tolist(), is_table.tolist(), strict=True)
        ]

    def add(self, block: Block) -> None:
        bits, of_row = np.uint64(self.classes.n_bits), block.rows[:, self.labels] + self.classes.start
        of_target = np.ascontiguousarray(of_row.T, dtype=np.uint64)
        for axis, column in enumerate(self.columns):
            code = block.rows[:, axis].astype(np.uint64) << bits
            for of_class in of_target:
                column.add(code | of_class)
        self.n_rows += len(block.rows)

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


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPlan:
    """Gather the counts of columns: narrow ones in tables, in half of the memory; the others share the rest.

    ``most_rows`` is known of some rows: a column of many more possible counts than that is not counted in a table.
    """

    n_codes: Sequence[int]
    labels: Sequence[int]
    n_classes: Sequence[int]
    most_rows: int = UNLIMITED
    most_bytes: int = UNLIMITED
    n_bytes: int = 0

    def new(self, room: int, spill: Spill | None) -> ColumnCounts:
        return ColumnCounts(self, memory=min(room, self.most_bytes), spill=spill)

    def answer(self, state: ColumnCounts) -> ColumnCounts:
        """The counts themselves; they will be walked often."""
        state.join()
        return state
