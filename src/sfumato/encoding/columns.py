"""The columns of the row matrix beside the quasi-identifiers: which there are, and what is known of them.

Targets and sensitive values become codes of 32 bits, too. What Mondrian must know of such a column before it
splits (how many rows have each code, exact sums) is a :class:`Columns`, whether the rows are in memory
(:class:`ColumnsInMemory`) or pass by in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding import discretize, encoders
from sfumato.encoding.cells import read_ordered
from sfumato.encoding.encoders import Measure, Scale, Sums
from sfumato.kernels.axes import NO_NUMBER
from sfumato.policy.requirements import Needs, Requirement
from sfumato.policy.schema import Kind, Role, Schema
from sfumato.policy.workload import Classify, Predict, Regress, Task
from sfumato.table.source import Source

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]

MOST_CELLS = 16
"""Into how many cells a feature that is a number is cut."""


# ---- which columns there are -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Label:
    """A category, missing being a value of its own."""

    name: str


@dataclass(frozen=True, slots=True)
class Joint:
    """The vector of several categories as one."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A number; missing is this code, or the mean."""

    name: str
    missing: int | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """The cell of a row by features that are no quasi-identifiers; numbers are cut so that they tell a target."""

    features: tuple[str, ...]
    target: Label | Joint | Number


@dataclass(frozen=True, slots=True)
class Pair:
    """Cell and class as one."""

    cell: Cell
    label: Label | Joint


@dataclass(frozen=True, slots=True)
class One:
    """The one cell of all rows."""


Target = Label | Joint | Number
Counted = Label | Joint | Cell | Pair | One
"""Codes that are numbered from 0 and all occur."""
Column = Counted | Number


def targets_of(task: Predict) -> list[Target]:
    """What a task predicts.

    >>> targets_of(Classify(["a", "b"])), targets_of(Classify(["a", "b"], joint=True))
    ([Label(name='a'), Label(name='b')], [Joint(names=('a', 'b'))])
    """
    if isinstance(task, Regress):
        return [Number(name) for name in task.targets]
    return [Joint(task.targets)] if task.joint else [Label(name) for name in task.targets]


def cell_of(task: Predict, target: Target, schema: Schema) -> Cell | None:
    """The cells that a target is judged within, None if nothing but quasi-identifiers predicts it."""
    features = [name for name in task.features or () if schema[name].role is not Role.QUASI_IDENTIFIER]
    return Cell(tuple(features), target) if features else None


def sensitive(requirement: Requirement) -> Label | Number | None:
    """The column that a requirement looks at, None if it only counts rows."""
    if requirement.of is None:
        return None
    if Needs.MOMENTS in requirement.needs:
        return Number(requirement.of, missing=int(NO_NUMBER))
    return Label(requirement.of)


def wanted(
    schema: Schema, requirements: Sequence[Requirement], workload: Sequence[Task]
) -> tuple[Column, ...]:
    """Every column that requirement and workload need, in the order of the row matrix."""
    return tuple(dict.fromkeys(_wanted(schema, requirements, workload)))


def _wanted(
    schema: Schema, requirements: Sequence[Requirement], workload: Sequence[Task]
) -> Iterator[Column]:
    yield from filter(None, map(sensitive, requirements))
    tasks = [task for task in workload if isinstance(task, Classify | Regress)]
    found = [(target, cell_of(task, target, schema)) for task in tasks for target in targets_of(task)]
    yield from (target for target, _ in found)
    if any(cell is not None for _, cell in found):
        yield One()
        for target, cell in found:
            if cell is not None:
                yield cell
                if not isinstance(target, Number):
                    yield Pair(cell, target)


# ---- what is known of them -------------------------------------------------------------------------


class Columns(Protocol):
    """What is known of the columns of all rows."""

    schema: Schema

    @property
    def n_rows(self) -> int: ...

    def place(self, column: Column) -> int:
        """Where it stands in the row matrix."""
        ...

    def count(self, column: Counted) -> Ints:
        """How many rows have each code."""
        ...

    def scale(self, column: Number) -> Scale:
        """What its codes mean."""
        ...

    def sums(self, column: Number) -> Sums:
        """Of all codes but ``NO_NUMBER``."""
        ...

    def sums_within(self, column: Number, cell: Cell) -> list[Sums]:
        """The same, cell by cell."""
        ...


class ColumnsInMemory:
    """The columns of a table in memory, each encoded when it is first asked for."""

    def __init__(self, source: Source, schema: Schema, columns: Sequence[Column], *, n_axes: int) -> None:
        self.source, self.schema, self.n_axes = source, schema, n_axes
        self._place = {column: n_axes + i for i, column in enumerate(columns)}
        self._codes: dict[Column, Codes] = {}
        self._measures: dict[Number, Measure] = {}

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    def place(self, column: Column) -> int:
        return self._place[column]

    def codes(self, column: Column) -> Codes:
        """The column itself."""
        if column not in self._codes:
            self._codes[column] = self._encoded(column)
        return self._codes[column]

    def _encoded(self, column: Column) -> Codes:
        if isinstance(column, Label):
            return encoders.encode_label(self.source, self.schema[column.name])[0]
        if isinstance(column, Joint):
            return combined([self._label(name) for name in column.names])
        if isinstance(column, Number):
            return self._measure(column).codes
        if isinstance(column, Pair):
            return combined([self.codes(column.cell), self.codes(column.label)])
        if isinstance(column, Cell):
            return combined([self._feature(name, column.target) for name in column.features])
        return np.zeros(self.n_rows, dtype=np.uint32)

    def _label(self, name: str) -> Codes:
        kept = self._codes.get(Label(name))
        return self._encoded(Label(name)) if kept is None else kept

    def _measure(self, column: Number) -> Measure:
        if column not in self._measures:
            attribute = self.schema[column.name]
            self._measures[column] = encoders.encode_number(self.source, attribute, missing=column.missing)
        return self._measures[column]

    def _feature(self, name: str, target: Target) -> Codes:
        """Categories count as they are, missing being a value; numbers and dates are cut [FI93], missing apart."""
        attribute = self.schema[name]
        if attribute.kind is Kind.CATEGORY:
            return self._label(name)
        values = read_ordered(attribute, self.source.column(name))
        label, is_number = self.codes(target).astype(np.int64), isinstance(target, Number)
        cuts = discretize.mdl_cuts(values, label, at_most=MOST_CELLS, is_number=is_number)
        return discretize.cells(values, cuts).astype(np.uint32)

    def count(self, column: Counted) -> Ints:
        return np.bincount(self.codes(column))

    def scale(self, column: Number) -> Scale:
        return self._measure(column)

    def sums(self, column: Number) -> Sums:
        codes, sums = self.codes(column), Sums()
        sums.add(codes[codes != NO_NUMBER] if column.missing == NO_NUMBER else codes)
        return sums

    def sums_within(self, column: Number, cell: Cell) -> list[Sums]:
        sums = SumsWithin(len(self.count(cell)))
        sums.add(self.codes(column), self.codes(cell))
        return sums.all()

    def matrix(self) -> Codes:
        """All columns side by side."""
        out = np.empty((self.n_rows, len(self._place)), dtype=np.uint32)
        for i, column in enumerate(self._place):
            out[:, i] = self.codes(column)
        return out


def combined(parts: Sequence[Codes]) -> Codes:
    """Rows that have all codes alike get the same number.

    >>> combined([np.array([1, 0, 1], dtype=np.uint32), np.array([2, 2, 2], dtype=np.uint32)]).tolist()
    [1, 0, 1]
    """
    out = np.zeros(len(parts[0]), dtype=np.int64)
    for codes in parts:
        _, out = np.unique(out * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    return out.astype(np.uint32)


class SumsWithin:
    """The exact sums of each of n groups.

    >>> sums = SumsWithin(2)
    >>> sums.add(np.array([5, 2, 1], dtype=np.uint32), np.array([1, 0, 1], dtype=np.uint32))
    >>> sums.all()[1]
    Sums(n=2, total=6, squares=26, greatest=5)
    """

    def __init__(self, n: int) -> None:
        self.sums = np.zeros((4, n), dtype=np.uint64)  # how many, their sum, and squares in two halves
        self.greatest = np.zeros(n, dtype=np.uint64)

    def add(self, codes: Codes, group: Codes) -> None:
        """Look at some more codes, and the group of each."""
        wide = codes.astype(np.uint64)
        squares = wide * wide
        one = np.ones(1, dtype=np.uint64)
        parts = (one, wide, squares >> encoders.HALF, squares & encoders.LOW_HALF)
        for sums, part in zip(self.sums, parts, strict=True):
            np.add.at(sums, group, part)
        np.maximum.at(self.greatest, group, wide)

    def all(self) -> list[Sums]:
        """Those of each group."""
        rows = zip(*self.sums.tolist(), self.greatest.tolist(), strict=True)
        return [Sums(n, total, (high << 32) + low, most) for n, total, high, low, most in rows]
