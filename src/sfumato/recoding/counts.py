"""The counts of a grid as they are published: every class of every cell, the empty ones too [MCFY11, section 4].

A *line* is one class of one cell. Lines stand in the order of the grid: the pieces of the first quasi-identifier's
cut from left to right, within each those of the second, and so on; within a cell the classes as they were declared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import class_values, target_of
from sfumato.policy.output import COUNT, EXPANDED
from sfumato.recoding.cuts import Cuts
from sfumato.table.stored import FiledRows

Ints = NDArray[np.int64]

ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class GridLines:
    """What the lines of a release say.

    shape    how many pieces each cut has, in the order of the policy, and how many classes there are
    columns  of each published column: to which of these it belongs, and its cells piece by piece, or class by class
    """

    shape: tuple[int, ...]
    columns: dict[str, tuple[int, pa.Array]]
    target: str
    classes: tuple[str, ...]
    is_expanded: bool

    @classmethod
    def of(cls, recoding: Cuts, policy: Policy) -> GridLines:
        """The lines that these cuts make; the columns stand in the order of the policy."""
        target = policy.schema[target_of(policy.workload)]
        classes = class_values(target)
        at = {axis.attribute.name: a for a, axis in enumerate(recoding.axes)}
        columns: dict[str, tuple[int, pa.Array]] = {}
        shape = [0] * len(at)
        for attribute in policy.schema.published:
            if attribute.name in at:
                a = at[attribute.name]
                pieces = recoding.piece_columns(a)
                columns |= {name: (a, cells) for name, cells in pieces.items()}
                shape[a] = len(next(iter(pieces.values())))
            else:  # no other column is published
                columns[attribute.name] = (len(at), pa.array(classes, pa.string()).dictionary_encode())
        return cls((*shape, len(classes)), columns, target.name, classes, policy.rows == EXPANDED)

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape[:-1])

    @property
    def n(self) -> int:
        return math.prod(self.shape)

    def tables(self, counts: Ints) -> Iterator[pa.Table]:
        """The published rows of these counts (cells, classes), some at a time; a table without rows if there is none."""
        of_line = counts.reshape(-1)
        ends = np.cumsum(of_line) if self.is_expanded else None
        n_rows = self.n if ends is None else int(ends[-1])
        for start in range(0, max(n_rows, 1), ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, n_rows))
            yield (
                self._table(rows, of_line)
                if ends is None
                else self._table(np.searchsorted(ends, rows, side="right"), None)
            )

    def _table(self, lines: Ints, of_line: Ints | None) -> pa.Table:
        digits = [pa.array(digit) for digit in np.unravel_index(lines, self.shape)]
        out = {name: cells.take(digits[place]) for name, (place, cells) in self.columns.items()}
        return pa.table(out if of_line is None else {**out, COUNT: of_line[lines]})

    def counts(self, rows: pa.Table | FiledRows) -> Ints:
        """The counts (cells, classes) that published rows say."""
        if self.is_expanded:
            found = np.zeros(self.n, dtype=np.int64)
            for part in rows.tables() if isinstance(rows, FiledRows) else _slices(rows):
                np.add.at(found, self._lines(part), 1)
        else:
            column = (rows.load([COUNT]) if isinstance(rows, FiledRows) else rows).column(COUNT)
            found = _plain(column, pa.int64()).to_numpy()
        if len(found) != self.n:
            raise _strange()
        return found.reshape(self.n_cells, -1)

    def _lines(self, part: pa.Table) -> Ints:
        """The line that each row repeats; pieces of one label are all taken for the first of them."""
        digits: dict[int, Ints] = {}
        for name, (place, cells) in self.columns.items():
            if place not in digits:
                digits[place] = _places(part.column(name), _plain(cells, cells.type))
        return np.ravel_multi_index([digits[place] for place in range(len(self.shape))], self.shape)


def _slices(rows: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows.slice(start, ROWS_AT_ONCE)


def _places(column: pa.ChunkedArray, known: pa.Array) -> Ints:
    """Which of the known cells each row has, the first of those that are alike."""
    cells = column.combine_chunks()
    cells = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
    values = pa.concat_arrays([cells.dictionary.cast(known.type), pa.nulls(1, known.type)])
    place = pc.index_in(values, value_set=known).fill_null(-1).to_numpy()
    found = place[cells.indices.fill_null(len(values) - 1).to_numpy()]
    if (found < 0).any():
        raise _strange()
    return np.asarray(found, dtype=np.int64)


def _strange() -> InputError:
    return InputError("The rows are not those of the grid that the recoding says; verify the release.")


def _plain(column: Any, kind: pa.DataType) -> Any:
    """The cells as values of this type, whether they are in a dictionary or are text."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(value)
