"""Rows as they are read, batch by batch, and the columns beside the quasi-identifiers that are known from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding import discretize
from sfumato.encoding.cells import read_ordered
from sfumato.encoding.columns import (
    MOST_CELLS,
    Cell,
    Column,
    Counted,
    Joint,
    Label,
    Number,
    Pair,
    SumsWithin,
    Target,
)
from sfumato.encoding.encoders import LabelEncoder, NumberEncoder, Scale, Sums
from sfumato.errors import InputError
from sfumato.policy.schema import Attribute, Kind, Schema
from sfumato.table.cells import UnreadableCells, ordered
from sfumato.table.distinct import Numbers
from sfumato.table.spill import size_of

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]


class Batch:
    """Some rows as they are stored; the cells of a number or date are read once."""

    def __init__(self, batch: pa.RecordBatch, first_row: int, schema: Schema) -> None:
        self.batch, self.first_row, self.schema = batch, first_row, schema
        self.n_rows: int = batch.num_rows
        self._cells: dict[str, pa.Array] = {}

    def raw(self, name: str) -> pa.Array:
        return self.batch.column(name)

    def cells(self, name: str) -> pa.Array:
        """Numbers, or days."""
        if name not in self._cells:
            try:
                self._cells[name] = ordered(self.raw(name), self.schema[name])
            except UnreadableCells as fault:
                raise fault.after(self.first_row) from None
        return self._cells[name]

    def of(self, encoder: Any) -> pa.Array:
        """What an encoder looks at."""
        name = encoder.attribute.name
        return self.raw(name) if encoder.is_raw else self.cells(name)


# ---- targets and sensitive values ------------------------------------------------------------------


Show = Callable[[Iterable[str], Callable[[Batch], None]], int]
"""One more pass over some columns."""


class StreamedColumns:
    """The columns beside the quasi-identifiers, known from batches."""

    def __init__(self, schema: Schema, columns: Sequence[Column], *, n_axes: int, memory: int) -> None:
        self.schema, self.columns, self.memory = schema, tuple(columns), memory
        self.n_rows = 0
        self._place = {column: n_axes + i for i, column in enumerate(columns)}
        cells = [column for column in columns if isinstance(column, Cell)]
        features = [name for cell in cells for name in cell.features]
        labels = [
            *(column.name for column in columns if isinstance(column, Label)),
            *(name for column in columns if isinstance(column, Joint) for name in column.names),
            *(name for name in features if schema[name].kind is Kind.CATEGORY),
        ]
        self.labels = {name: LabelEncoder(schema[name], memory=memory) for name in dict.fromkeys(labels)}
        self.numbers = {
            column: NumberEncoder(schema[column.name], missing=column.missing)
            for column in columns
            if isinstance(column, Number)
        }
        self.features = {
            name: Feature(schema[name], memory=memory)
            for name in dict.fromkeys(features)
            if schema[name].kind is not Kind.CATEGORY
        }
        self._parts: dict[Column, Part] = {}
        self._within: dict[tuple[Number, Cell], list[Sums]] = {}

    @property
    def encoders(self) -> list[Any]:
        """What must see every batch."""
        return [*self.labels.values(), *self.numbers.values(), *self.features.values()]

    @property
    def names(self) -> list[str]:
        return [encoder.attribute.name for encoder in self.encoders]

    def finish(self, show: Show) -> None:
        """All base columns are known; combine them."""
        for column in self.columns:
            self._part(column, show)
        for cell in [column for column in self.columns if isinstance(column, Cell)]:
            if isinstance(cell.target, Number):
                self._within[cell.target, cell] = self._sums_within(cell.target, cell, show)

    def _part(self, column: Column, show: Show) -> Part:
        if column not in self._parts:
            self._parts[column] = self._made(column, show)
        return self._parts[column]

    def _made(self, column: Column, show: Show) -> Part:
        if isinstance(column, Label):
            return self._label(column.name)
        if isinstance(column, Number):
            encoder = self.numbers[column]
            codes = partial(_codes_of, encoder)
            return Part([column.name], encoder.greatest + 1, codes, np.zeros(0, dtype=np.int64))
        if isinstance(column, Joint):
            return combined([self._label(name) for name in column.names], show, self.memory, column.names[0])
        if isinstance(column, Pair):
            parts = [self._part(column.cell, show), self._part(column.label, show)]
            return combined(parts, show, self.memory, parts[1].names[0])
        if isinstance(column, Cell):
            parts = [self._feature(name, column.target, show) for name in column.features]
            return combined(parts, show, self.memory, column.features[0])
        return Part([], 1, lambda batch: np.zeros(batch.n_rows, dtype=np.uint32), np.array([self.n_rows]))

    def _label(self, name: str) -> Part:
        encoder = self.labels[name]
        return Part([name], len(encoder.count), partial(_codes_of, encoder), encoder.count)

    def _feature(self, name: str, target: Target, show: Show) -> Part:
        if self.schema[name].kind is Kind.CATEGORY:
            return self._label(name)
        cuts = self.features[name].cuts(self._part(target, show), show, is_number=isinstance(target, Number))

        def codes(batch: Batch) -> Codes:
            values = read_ordered(self.schema[name], batch.raw(name))
            return discretize.cells(values, cuts).astype(np.uint32)

        return Part([name], len(cuts) + 2, codes, np.zeros(0, dtype=np.int64))

    def _sums_within(self, number: Number, cell: Cell, show: Show) -> list[Sums]:
        numbers, cells = self._parts[number], self._parts[cell]
        sums = SumsWithin(cells.n)
        show([*numbers.names, *cells.names], lambda batch: sums.add(numbers.codes(batch), cells.codes(batch)))
        return sums.all()

    # ---- what is known -----------------------------------------------------------------------------

    def place(self, column: Column) -> int:
        return self._place[column]

    def count(self, column: Counted) -> Ints:
        return self._parts[column].count

    def scale(self, column: Number) -> Scale:
        return self.numbers[column].scale

    def sums(self, column: Number) -> Sums:
        return self.numbers[column].sums

    def sums_within(self, column: Number, cell: Cell) -> list[Sums]:
        return self._within[column, cell]

    @property
    def greatest(self) -> list[int]:
        return [self._parts[column].n - 1 for column in self.columns]

    def codes(self, column: Column, batch: Batch) -> Codes:
        return self._parts[column].codes(batch)


def _codes_of(encoder: Any, batch: Batch) -> Codes:
    return np.asarray(encoder.codes(batch.of(encoder)))


class Part:
    """A column of codes below n that can be made of any batch."""

    def __init__(self, names: Sequence[str], n: int, codes: Callable[[Batch], Codes], count: Ints) -> None:
        self.names, self.n, self.codes, self.count = list(names), n, codes, count


def combined(parts: Sequence[Part], show: Show, memory: int, name: str) -> Part:
    """Several columns of codes as one, numbered by what occurs."""
    if len(parts) == 1 and len(parts[0].count):
        return parts[0]
    ahead, rest = [parts[0]], list(parts[1:])
    n = parts[0].n
    while rest and n * rest[0].n < 2**62:
        n *= rest[0].n
        ahead.append(rest.pop(0))
    names = list(dict.fromkeys(name for part in ahead for name in part.names))

    def key(batch: Batch) -> Ints:
        out = np.zeros(batch.n_rows, dtype=np.int64)
        for part in ahead:
            out = out * part.n + part.codes(batch)
        return out

    seen = Keys(memory, name)
    show(names, lambda batch: seen.add(key(batch)))
    keys, count = seen.finish()

    def codes(batch: Batch) -> Codes:
        return np.searchsorted(keys, key(batch)).astype(np.uint32)

    one = Part(names, len(keys), codes, count)
    return combined([one, *rest], show, memory, name) if rest else one


class Keys:
    """Distinct whole numbers and how often each occurs."""

    def __init__(self, memory: int, name: str) -> None:
        self.memory, self.name = memory, name
        self._parts: list[tuple[Ints, Ints]] = []
        self._held = 0

    def add(self, keys: Ints) -> None:
        """Look at some more."""
        distinct, count = np.unique(keys, return_counts=True)
        self._parts.append((distinct, count))
        self._held += len(distinct)
        if 64 * self._held > self.memory:
            self._join()
            if 128 * self._held > self.memory:
                raise InputError(
                    f"Column {self.name!r} and those beside it make over {self._held:,} different combinations, "
                    f"which need more than {size_of(4 * self.memory)}; allow more --memory, or fewer columns."
                )

    def _join(self) -> None:
        keys = np.concatenate([part for part, _ in self._parts])
        distinct, at = np.unique(keys, return_inverse=True)
        count = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(count, at, np.concatenate([part for _, part in self._parts]))
        self._parts, self._held = [(distinct, count)], len(distinct)

    def finish(self) -> tuple[Ints, Ints]:
        """The numbers in ascending order, and how often each occurs."""
        self._join()
        return self._parts[0]


class Feature:
    """A number or date that helps to predict a target; it is cut into cells that tell the target apart [FI93]."""

    is_raw = False

    def __init__(self, attribute: Attribute, *, memory: int) -> None:
        self.attribute, self.memory = attribute, memory
        self.numbers = Numbers()

    def observe(self, cells: pa.Array, _first_row: int) -> None:
        """Look at a batch."""
        self.numbers.add((cells.drop_null() if cells.null_count else cells).to_numpy(zero_copy_only=False))
        if 32 * self.numbers.n_held > self.memory and 32 * len(self.numbers.values()) > self.memory:
            raise self._too_large(32 * self.numbers.n_held)

    def finish(self) -> None:
        """Nothing is left to do."""

    def _too_large(self, needed: int) -> InputError:
        return InputError(
            f"The feature {self.attribute.name!r} has too many different values to be cut in this memory: that takes "
            f"over {size_of(4 * needed)}; allow as much (--memory), or leave it out of features."
        )

    def cuts(self, target: Part, show: Show, *, is_number: bool) -> NDArray[np.float64]:
        """Where it is cut."""
        distinct = self.numbers.values()
        quartiles = self._quartiles(target, show) if is_number else None
        n_classes = target.n if quartiles is None else len(quartiles) + 1
        if 16 * n_classes * len(distinct) > self.memory:
            raise self._too_large(16 * n_classes * len(distinct))
        counts = np.zeros(len(distinct) * n_classes, dtype=np.int64)

        def add(batch: Batch) -> None:
            values, label = self._rows(batch, target)
            if quartiles is not None:
                label = np.searchsorted(quartiles, label)
            at = np.searchsorted(distinct, values) * n_classes + label
            np.add.at(counts, at, 1)

        if quartiles is None or len(quartiles):
            show([self.attribute.name, *target.names], add)
        return discretize.mdl_cuts_of(distinct, counts.reshape(len(distinct), n_classes), at_most=MOST_CELLS)

    def _quartiles(self, target: Part, show: Show) -> NDArray[np.float64]:
        seen = Keys(self.memory, self.attribute.name)
        show([self.attribute.name, *target.names], lambda batch: seen.add(self._rows(batch, target)[1]))
        codes, count = seen.finish()
        return discretize.quartiles_of(codes, count) if len(codes) else np.zeros(0)

    def _rows(self, batch: Batch, target: Part) -> tuple[NDArray[np.float64], Ints]:
        """Of the rows whose feature is there: its values, and their target."""
        values = read_ordered(self.attribute, batch.raw(self.attribute.name))
        is_there = np.isfinite(values)
        return values[is_there], target.codes(batch)[is_there].astype(np.int64)


__all__ = ["Batch", "StreamedColumns"]
