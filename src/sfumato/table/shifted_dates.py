"""A table whose dates are shifted: all dates of a person by the same number of days, which only a secret key tells.

The days of a person are those that HMAC-SHA-256 of the person gives, modulo the number of allowed shifts; 128 bits of it
make all of them equally likely to 2^-110. So whoever reads a slice of the table shifts it as all others do.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import TableError, number_of
from sfumato.policy.schema import Attribute, Schema
from sfumato.table.alone import number_cells
from sfumato.table.cells import UnreadableCells, dates, decode, is_one_of, is_text, plain
from sfumato.table.source import Count, Source, Stream, slices_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DateShift:
    """How the dates of a column are shifted."""

    attribute: Attribute
    person: Attribute
    within: int
    key: bytes

    def apply(self, column: Any, person: Any) -> pa.ChunkedArray:
        """The cells of a column, shifted; times keep their time of day, and what is missing stays as it is."""
        stored = plain(column, self.attribute)
        days = dates(stored, self.attribute)
        is_date = days.is_valid().to_numpy(zero_copy_only=False)
        who, is_known = number_cells(person, self.person)
        if n := int((is_date & ~is_known).sum()):
            raise TableError(
                f"Column {self.attribute.name!r} is shifted per {self.person.name!r}, which is missing in "
                f"{number_of(n, 'row')} at least; fill it in, or drop the dates."
            )
        people, of_row = np.unique(who[is_date], return_inverse=True)
        drawn = np.fromiter(map(self._days_of, people.tolist()), dtype=np.int64, count=len(people))
        shift = np.zeros(len(days), dtype=np.int64)
        shift[is_date] = drawn[of_row]
        cells = pa.concat_arrays([pa.array([], stored.type), *stored.chunks]) if stored.num_chunks else days
        return pa.chunked_array([_shifted(decode(cells), days, shift)])

    def _days_of(self, person: int) -> int:
        drawn = hmac.digest(self.key, b"sfumato shift" + person.to_bytes(8, "big"), "sha256")
        return int.from_bytes(drawn[:16], "big") % (2 * self.within + 1) - self.within


def _shifted(cells: pa.Array, days: pa.Array, shift: Ints) -> pa.Array:
    """Cells of any type that holds dates, so many days later."""
    kind = cells.type
    if is_text(kind):
        later = (
            pc.add(days.cast(pa.int32()), pa.array(shift.astype(np.int32)))
            .cast(pa.date32())
            .cast(pa.string())
        )
        rest = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(cells.cast(pa.string())), 10)
        moved = pc.binary_join_element_wise(later, rest, "")
        return pc.if_else(days.is_valid(), moved, cells.cast(pa.string()))
    if pa.types.is_timestamp(kind):
        local = pc.local_timestamp(cells) if kind.tz else cells
        by_unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit] * 86_400
        moved = pc.add(local, pa.array(shift * by_unit).cast(pa.duration(kind.unit)))
        moved = (
            pc.assume_timezone(moved, kind.tz, ambiguous="earliest", nonexistent="latest")
            if kind.tz
            else moved
        )
        return pc.if_else(days.is_valid(), moved, cells)
    if is_one_of(kind, "date32", "date64"):
        unit, number = (1, pa.int32()) if pa.types.is_date32(kind) else (86_400_000, pa.int64())
        moved = pc.add(cells.cast(number), pa.array(shift * unit).cast(number)).cast(kind)
        return pc.if_else(days.is_valid(), moved, cells)
    return cells  # all are missing


@dataclass(frozen=True, slots=True, eq=False)
class ShiftedStream:
    """A stream in which dates are shifted. It can be pickled if the stream can."""

    stream: Stream
    shifts: Mapping[str, DateShift]

    def __call__(self, names: Sequence[str], memory: int | None, count: Count) -> Iterator[pa.RecordBatch]:
        beside = [self.shifts[name].person.name for name in names if name in self.shifts]
        asked = list(dict.fromkeys([*names, *beside]))
        n_rows = 0
        for batch in self.stream(asked, memory, count):
            try:
                columns = [self._column(batch, name) for name in names]
            except UnreadableCells as fault:
                raise fault.after(n_rows) from None
            n_rows += batch.num_rows
            yield pa.RecordBatch.from_arrays(columns, list(names))

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        if name not in self.shifts:
            return batch.column(name)
        shift = self.shifts[name]
        return shift.apply(batch.column(name), batch.column(shift.person.name)).combine_chunks()

    def slices(self, most: int) -> list[tuple[int, ShiftedStream]]:
        """As those of the stream itself."""
        return [(n_rows, replace(self, stream=own)) for n_rows, own in slices_of(self.stream, most)]


def shift_dates(source: Source, schema: Schema, key: bytes) -> Source:
    """The same table, with the dates shifted that the schema says.

    >>> from sfumato.table.opening import open_table
    >>> schema = Schema.of(id="identifier", seen={"role": "other", "type": "date", "shift": {"within": 3, "per": "id"}})
    >>> table = pa.table({"id": ["a", "a"], "seen": ["2024-03-05", "2024-03-09 10:30"]})
    >>> shift_dates(open_table(table), schema, b"my key").column("seen").to_pylist()
    ['2024-03-08', '2024-03-12 10:30']
    """
    shifts = {
        attribute.name: DateShift(attribute, schema[attribute.shift.per], attribute.shift.within, key)
        for attribute in schema
        if attribute.shift is not None
    }
    if not shifts:
        return source

    def read(name: str) -> pa.ChunkedArray:
        if name not in shifts:
            return source.read(name)
        return shifts[name].apply(source.read(name), source.read(shifts[name].person.name))

    stream = None if source.stream is None else ShiftedStream(source.stream, shifts)
    return replace(source, read=read, stream=stream)
