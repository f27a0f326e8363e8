"""The columns of the row matrix beside the quasi-identifiers: which there are, and what is known of them.

Targets and sensitive values become codes of 32 bits, too. What a method must know of such a column before it splits
(how many rows have each code, exact sums) is learned when it is first asked for, in a pass over its batches. A table in
memory is one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.encoding.batches import Batch, BatchState, Encoder, Fed, Observer, Show, learn
from sfumato.encoding.coded import CodedColumn, CodesOf, CombinedKeys, Ints, KeyCounts, combine
from sfumato.encoding.domain import Codes
from sfumato.encoding.encoders import UNBOUNDED, LabelEncoder, PersonEncoder
from sfumato.encoding.features import FeatureValues
from sfumato.encoding.numbers import NumberEncoder, NumberScale, Sums, SumsWithin
from sfumato.errors import InternalError
from sfumato.kernels.axes import NO_NUMBER
from sfumato.policy.requirements import Needs, Requirement
from sfumato.policy.schema import Kind, Role, Schema
from sfumato.policy.workload import Classify, Predict, Regress, Task

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


@dataclass(frozen=True, slots=True)
class Person:
    """The person that a row is about."""

    name: str


Target = Label | Joint | Number
Counted = Label | Joint | Cell | Pair | One | Person
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
    """The cells of features beside which a target is predicted; None if only quasi-identifiers predict it."""
    features = [name for name in task.features or () if schema[name].role is not Role.QUASI_IDENTIFIER]
    return Cell(tuple(features), target) if features else None


def sensitive_column(requirement: Requirement) -> Label | Number | None:
    """The column that a requirement looks at, None if it only counts rows."""
    if requirement.of is None:
        return None
    if Needs.MOMENTS in requirement.needs:
        return Number(requirement.of, missing=int(NO_NUMBER))
    return Label(requirement.of)


def columns_for(
    schema: Schema, requirements: Sequence[Requirement], workload: Sequence[Task], person: str | None = None
) -> tuple[Column, ...]:
    """Every column that requirement and workload need, in the order of the row matrix; people, if any, come last."""
    people = [] if person is None else [Person(person)]
    return tuple(dict.fromkeys([*_columns_for(schema, requirements, workload), *people]))


def _columns_for(
    schema: Schema, requirements: Sequence[Requirement], workload: Sequence[Task]
) -> Iterator[Column]:
    yield from filter(None, map(sensitive_column, requirements))
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


class Columns:
    """What is known of these columns, over all rows. ``show`` makes one pass over some columns of the table.

    A column is learned when it is first asked for. Whoever reads all columns in one pass of its own lets the
    ``encoders`` observe them, and then calls ``finish``.
    """

    def __init__(
        self,
        schema: Schema,
        columns: Sequence[Column],
        show: Show,
        *,
        n_axes: int,
        n_rows: int = 0,
        memory: int = UNBOUNDED,
    ) -> None:
        self.schema, self.columns, self.show, self.memory = schema, tuple(columns), show, memory
        self.n_rows = n_rows
        self._place = {column: n_axes + i for i, column in enumerate(columns)}
        features = [name for column in columns if isinstance(column, Cell) for name in column.features]
        labels = [
            *(column.name for column in columns if isinstance(column, Label)),
            *(name for column in columns if isinstance(column, Joint) for name in column.names),
            *(name for name in features if schema[name].kind is Kind.CATEGORY),
        ]
        self.labels = {name: LabelEncoder(schema[name], memory=memory) for name in dict.fromkeys(labels)}
        self.person = next((column for column in columns if isinstance(column, Person)), None)
        """Whom groups count, if not rows."""
        self.people = None if self.person is None else PersonEncoder(schema[self.person.name], memory=memory)
        self.numbers = {
            column: NumberEncoder(schema[column.name], missing=column.missing)
            for column in columns
            if isinstance(column, Number)
        }
        self.features = {
            name: FeatureValues(schema[name], memory=memory)
            for name in dict.fromkeys(features)
            if schema[name].kind is not Kind.CATEGORY
        }
        self._unseen: set[Observer] = set(self.encoders)
        self._coded: dict[Column, CodedColumn] = {}
        self._within: dict[tuple[Number, Cell], list[Sums]] = {}
        self._with_people: dict[Label, Ints] = {}
        self._sums_of_people: dict[Number, Sums] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Elsewhere, all columns have been learned."""
        return {**self.__dict__, "show": _show_nothing}

    @property
    def encoders(self) -> list[Observer]:
        """What must see every batch."""
        people = [] if self.people is None else [self.people]
        return [*self.labels.values(), *self.numbers.values(), *self.features.values(), *people]

    @property
    def names(self) -> list[str]:
        return [encoder.attribute.name for encoder in self.encoders]

    def finish(self, n_rows: int) -> None:
        """The encoders have observed, and finished, all rows: learn whatever else may be asked for."""
        self.n_rows = n_rows
        self._unseen.clear()
        for column in self.columns:
            self._code(column)
        for cell in [column for column in self.columns if isinstance(column, Cell)]:
            if isinstance(cell.target, Number):
                self.sums_within(cell.target, cell)

    # ---- what is known -----------------------------------------------------------------------------

    def place(self, column: Column) -> int:
        """Where it stands in the row matrix."""
        return self._place[column]

    def count(self, column: Counted) -> Ints:
        """How many rows have each code."""
        return self._code(column).count

    def scale(self, column: Number) -> NumberScale:
        """What its codes mean."""
        self._code(column)
        return self.numbers[column].scale

    def sums(self, column: Number) -> Sums:
        """Of all codes but ``NO_NUMBER``."""
        self._code(column)
        return self.numbers[column].sums

    def sums_within(self, column: Number, cell: Cell) -> list[Sums]:
        """The same, cell by cell."""
        if (column, cell) not in self._within:
            numbers, cells = self._code(column), self._code(cell)
            sums = SumsWithin(cells.n)
            self.show([*numbers.names, *cells.names], Fed(sums, CodesOf((numbers, cells))))
            self._within[column, cell] = sums.all()
        return self._within[column, cell]

    @property
    def n_people(self) -> int:
        """How many people there are; rows, if these are counted."""
        return self.n_rows if self.person is None else self._code(self.person).n

    def count_pairs(self, column: Label) -> Ints:
        """How many people have each code; rows, if these are counted."""
        if self.person is None:
            return self.count(column)
        if column not in self._with_people:
            pairs, n = self._pairs(column)
            self._with_people[column] = np.bincount(pairs % n, minlength=n)
        return self._with_people[column]

    def sums_of_pairs(self, column: Number) -> Sums:
        """``sums`` of the different numbers of each person; of rows, if these are counted."""
        if self.person is None:
            return self.sums(column)
        if column not in self._sums_of_people:
            pairs, n = self._pairs(column)
            numbers = pairs % n
            self._sums_of_people[column] = sums = Sums()
            sums.add(numbers[numbers != NO_NUMBER])
        return self._sums_of_people[column]

    def _pairs(self, column: Column) -> tuple[Ints, int]:
        """The different pairs of person and code, each as person * n + code, and n."""
        assert self.person is not None
        person, values = self._code(self.person), self._code(column)
        names = tuple(dict.fromkeys((*person.names, *values.names)))
        seen = KeyCounts(self.memory, person.names[0])
        self.show(names, Fed(seen, CombinedKeys((person, values))))
        return seen.finish()[0], values.n

    @property
    def greatest(self) -> list[int]:
        """The greatest code of each column."""
        return [self._code(column).n - 1 for column in self.columns]

    def codes(self, column: Column, batch: Batch) -> Codes:
        """The column itself, of some rows."""
        return self._code(column).codes(batch)

    # ---- how it is learned -------------------------------------------------------------------------

    def _code(self, column: Column) -> CodedColumn:
        if column not in self._coded:
            found = self._learn(column)
            self._coded[column] = replace(found, codes=_MadeOnce(column, found.codes))
        return self._coded[column]

    def _learn(self, column: Column) -> CodedColumn:
        if isinstance(column, Label):
            encoder = self.labels[column.name]
            self._show_to(encoder)
            return CodedColumn((column.name,), len(encoder.count), _CodesBy(encoder), encoder.count)
        if isinstance(column, Number):
            number = self.numbers[column]
            self._show_to(number)
            not_counted = np.zeros(0, dtype=np.int64)
            return CodedColumn((column.name,), number.greatest + 1, _CodesBy(number), not_counted)
        if isinstance(column, Joint):
            labels = [self._code(Label(name)) for name in column.names]
            return combine(labels, self.show, self.memory, column.names[0])
        if isinstance(column, Pair):
            cell, label = self._code(column.cell), self._code(column.label)
            return combine([cell, label], self.show, self.memory, label.names[0])
        if isinstance(column, Person):
            assert self.people is not None
            self._show_to(self.people)
            return CodedColumn(
                (column.name,), len(self.people.count), _CodesBy(self.people), self.people.count
            )
        if isinstance(column, Cell):
            features = [self._feature(name, column.target) for name in column.features]
            return combine(features, self.show, self.memory, column.features[0])
        return CodedColumn((), 1, _all_alike, np.array([self.n_rows]))

    def _feature(self, name: str, target: Target) -> CodedColumn:
        """Categories count as they are, missing being a value; numbers and dates are cut."""
        if self.schema[name].kind is Kind.CATEGORY:
            return self._code(Label(name))
        self._show_to(self.features[name])
        is_number = isinstance(target, Number)
        return self.features[name].cut(self._code(target), self.show, is_number=is_number)

    def _show_to(self, encoder: Observer) -> None:
        """Let an encoder learn its column, unless it has."""
        if encoder in self._unseen:
            learn(encoder, self.show)
            self._unseen.remove(encoder)


def _show_nothing(names: Iterable[str], _state: BatchState) -> None:
    raise InternalError(f"{len([*names])} columns are to be learned where the table is not.")


def _all_alike(batch: Batch) -> Codes:
    return np.zeros(batch.n_rows, dtype=np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class _CodesBy:
    """Makes the codes of a column of each batch; the batch may then forget the cells."""

    encoder: Encoder

    def __call__(self, batch: Batch) -> Codes:
        found = self.encoder.codes(batch.cells_for(self.encoder))
        batch.forget(self.encoder.attribute.name)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _MadeOnce:
    """Makes the codes of a column once of each batch."""

    column: Column
    codes: Callable[[Batch], Codes]

    def __call__(self, batch: Batch) -> Codes:
        if self.column not in batch.codes:
            batch.codes[self.column] = self.codes(batch)
        return batch.codes[self.column]
