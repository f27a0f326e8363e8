"""From a file to blocks of codes, in bounded memory.

A table is *scanned* once: every column is observed, batch by batch, until its domain is known and with it what
the kernels must know beforehand. Then ``blocks`` gives its rows as codes, as often as needed. Domains and codes
are those of a table that is encoded in memory; the codes of labels may be numbered in another order.

Only where values are ranks that nobody foresaw, where a number needs a scale of its own, and for joint targets
and features, some columns are read once more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.encoding.batches import Batch, FileBatch, observe_again
from sfumato.encoding.blocks import BLOCK_ROWS, Block
from sfumato.encoding.domain import Codes, Domain, axes_of
from sfumato.encoding.encoders import LabelEncoder, OrderedEncoder, TreeEncoder, axis_encoder
from sfumato.encoding.extent import Extent
from sfumato.encoding.targets import Columns, columns_for
from sfumato.engines.rows import Layout
from sfumato.errors import TableError
from sfumato.kernels.axes import Axes
from sfumato.policy import predicate
from sfumato.policy.column_names import MEAN
from sfumato.policy.document import Policy
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.progress import Progress, no_progress
from sfumato.randomness import Random
from sfumato.recoding import statistics
from sfumato.recoding.recoder import passed_on
from sfumato.release.query import select
from sfumato.table import cells as table_cells
from sfumato.table.distinct import Dictionary, NumberFile, let_go
from sfumato.table.source import Source, table_has_changed
from sfumato.table.spill import Spill

MOST_TEXT = 1 << 18
"""Bytes of these texts up to which that pays."""

FEW_TEXTS = 1 << 16
"""Different texts of a published column up to which it is kept by a dictionary."""


ROWS_TO_RANK = 1 << 18
"""Rows whose values are looked for in a file of ranks in one go: each time, most of it is read."""


class Intake:
    """The rows of a table, encoded as they are read.

    ``memory`` is what everything that grows with the table may take here: a row group, dictionaries, values to
    be ranked. A sample comes on top.

    >>> from sfumato.table.opening import open_table
    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier, type: number}}, require: []}")
    >>> with Spill() as spill:
    ...     intake = Intake(open_table(pa.table({"age": [30, 20, 40]})), policy, spill=spill, memory=10**8)
    ...     intake.scan()
    ...     [block.rows.tolist() for block in intake.blocks()]
    [[[1], [0], [2]]]
    """

    def __init__(
        self, source: Source, policy: Policy, *, spill: Spill, memory: int, progress: Progress = no_progress
    ) -> None:
        self.source, self.policy, self.schema = source, policy, policy.schema
        self.spill, self.memory, self.progress = spill, memory, progress
        self.n_rows = max(source.n_rows, 0)
        self.domains: tuple[Domain, ...] = ()
        self.sample: Codes = np.zeros((0, 0), dtype=np.uint32)
        self.encoded_bytes = 0
        quasi = self.schema.quasi_identifiers
        n_ordered = sum(attribute.is_ordered for attribute in quasi)
        self._encoders = [
            axis_encoder(
                attribute,
                n_rows=source.n_rows,
                spill=spill,
                memory=memory // (4 * (n_ordered if attribute.is_ordered else 1)),
            )
            for attribute in quasi
        ]
        self.columns = Columns(
            self.schema,
            columns_for(self.schema, policy.requirements, policy.workload),
            self._read_again,
            n_axes=len(quasi),
            memory=memory // 4,
        )
        self._payload = Payload(source, policy)
        self._ranks: NumberFile | None = None
        self._position: Any = None
        self._true_counts: list[int] | None = None

    # ---- the first pass ----------------------------------------------------------------------------

    def scan(self, *, sample: int = 0, random: Random | None = None) -> None:
        """Read the table once, and learn what its codes are; keep a simple random sample of so many rows."""
        encoders = [*self._encoders, *self.columns.encoders]
        names = [*self._axis_names, *self.columns.names]
        reservoir = Reservoir(sample, random, names, self.n_rows) if sample and random is not None else None

        def observe(batch: FileBatch) -> None:
            for encoder in encoders:
                encoder.observe(batch.of(encoder), batch.first_row)
            self._payload.observe(batch)
            self._check_memory()
            if reservoir is not None:
                reservoir.add(batch)

        self.spill.counters.input_passes += 1
        n_rows = self._pass([*names, *self._payload.observed], observe, "reading")
        if n_rows == 0:
            raise TableError(f"{self.source.where} has no rows; a table needs at least one.")
        self.n_rows = n_rows
        observe_again([*self.columns.encoders, *self._encoders], self._read_again)
        self._finish()
        self._payload.finish()
        self.columns.finish(n_rows)
        layout = Layout.of(self.greatest)
        self.encoded_bytes = n_rows * layout.row_bytes + self._payload.n_bytes(n_rows)
        if reservoir is not None:
            self.sample = self._codes(reservoir.batch(self.schema))
        table_cells.give_back_memory()

    def _finish(self) -> None:
        if any(isinstance(encoder, OrderedEncoder) and encoder.is_large for encoder in self._encoders):
            self._ranks = NumberFile(self.spill)
        for encoder in self._encoders:
            if isinstance(encoder, OrderedEncoder):
                encoder.finish(self._ranks)
            else:
                encoder.finish()
        self.domains = tuple(encoder.domain for encoder in self._encoders if encoder.domain is not None)
        for target in self.columns.encoders:
            target.finish()

    def _check_memory(self) -> None:
        """Dictionaries may take half of the memory in all."""
        dictionaries = [
            encoder.dictionary
            for encoder in (*self._encoders, *self.columns.encoders)
            if isinstance(encoder, TreeEncoder | LabelEncoder)
        ]
        held = sum(each.held for each in dictionaries)
        if held > self.memory // 2:
            raise max(dictionaries, key=lambda each: each.held).too_large(self.memory // 2)

    # ---- what was learned --------------------------------------------------------------------------

    @property
    def n_columns(self) -> int:
        """Codes of a row."""
        return len(self._encoders) + len(self.columns.columns)

    @property
    def greatest(self) -> list[int]:
        """The greatest code of each column."""
        return [*(domain.n_codes - 1 for domain in self.domains), *self.columns.greatest]

    @property
    def statistic_types(self) -> dict[str, pa.DataType]:
        """The types of the published statistics: what is whole in one group need not be so in all."""
        return {
            name: pa.float64() if name.endswith(MEAN) and not pa.types.is_date(kind) else kind
            for column, kind in self._payload.kinds.items()
            for name in statistics.names_of(self.schema[column], self.policy)
        }

    @property
    def payload_bytes(self) -> int:
        """Of a row, what is published as it is."""
        return self._payload.decoded_bytes(self.n_rows)

    def take_sample(self) -> Codes:
        """The sample; it is not held any longer."""
        sample, self.sample = self.sample, np.zeros((0, 0), dtype=np.uint32)
        return sample

    @property
    def ends(self) -> Codes:
        """(2, axes) least and greatest code of the table, as far as that is known without another pass."""
        every = [encoder.ends or (0, domain.n_codes - 1)
                 for encoder, domain in zip(self._encoders, self.domains, strict=True)]  # fmt: skip
        return np.array(every, dtype=np.uint32).T

    @property
    def layout(self) -> Layout:
        """How the rows are stored most narrowly."""
        return Layout.of(self.greatest)

    def axes(self, split_only: tuple[str, ...] | None = None) -> Axes:
        """The quasi-identifiers as the kernels see them."""
        ranks = None
        if self._ranks is not None:
            places = [
                encoder.place if isinstance(encoder, OrderedEncoder) else None for encoder in self._encoders
            ]
            starts = np.array([-1 if place is None else place.start for place in places], dtype=np.int64)
            self._position = self._ranks.map()
            ranks = np.asarray(self._position), starts
        return axes_of(self.domains, split_only=split_only, ranks=ranks)

    def let_go(self) -> None:
        """Give back the memory that looking at ranks in a file took; call it now and then."""
        let_go(self._position)

    @property
    def true_counts(self) -> list[int]:
        """How many rows of the table satisfy each condition of the workload."""
        if self._true_counts is None:
            tally = Tally(self)
            self._pass(tally.names, tally.add, "counting")
            self._true_counts = tally.counts
        return self._true_counts

    # ---- rows --------------------------------------------------------------------------------------

    def blocks(self, *, payload: bool = True) -> Iterator[Block]:
        """One pass over the table: its rows as codes, and what is published of them as it is."""
        names = [*self._axis_names, *self.columns.names, *(self._payload.names if payload else ())]
        tally = Tally(self) if self._true_counts is None else None
        self.spill.counters.input_passes += 1
        n_rows = 0
        size = BLOCK_ROWS if self._ranks is None else ROWS_TO_RANK
        for batch in self._batches(names, size):
            n_rows += batch.n_rows
            if tally is not None:
                tally.add(batch)
            codes, beside = self._codes(batch), self._payload.of(batch) if payload else None
            for start in range(0, batch.n_rows, BLOCK_ROWS):
                end = start + BLOCK_ROWS
                yield Block(codes[start:end], None if beside is None else beside.slice(start, BLOCK_ROWS))
            self.progress("encoding", n_rows, self.n_rows)
        if n_rows != self.n_rows:
            raise table_has_changed(self.source.where)
        if tally is not None:
            self._true_counts = tally.counts

    def _codes(self, batch: Batch) -> Codes:
        rows = np.empty((batch.n_rows, self.n_columns), dtype=np.uint32)
        for i, encoder in enumerate(self._encoders):
            rows[:, i] = encoder.codes(batch.of(encoder))
        for i, column in enumerate(self.columns.columns, start=len(self._encoders)):
            rows[:, i] = self.columns.codes(column, batch)
        return rows

    @property
    def _axis_names(self) -> list[str]:
        return [encoder.attribute.name for encoder in self._encoders]

    def _batches(self, names: Iterable[str], rows: int | None = None) -> Iterator[FileBatch]:
        first_row = 0
        for batch in self.source.batches(
            list(dict.fromkeys(names)), rows=rows or BLOCK_ROWS, memory=self.memory // 4, count=self._count
        ):
            yield FileBatch(batch, self.schema, first_row=first_row)
            first_row += batch.num_rows

    def _count(self, n_bytes: int) -> None:
        self.spill.counters.input_bytes += n_bytes

    def _read_again(self, names: Iterable[str], observe: Callable[[Batch], None]) -> int:
        return self._pass(names, observe, "reading again")

    def _pass(self, names: Iterable[str], observe: Callable[[FileBatch], None], word: str) -> int:
        """Show all batches of these columns; returns how many rows there are."""
        n_rows = 0
        for batch in self._batches(names):
            observe(batch)
            n_rows += batch.n_rows
            self.progress(word, n_rows, max(self.n_rows, n_rows))
        if self.n_rows not in (n_rows, 0):
            raise table_has_changed(self.source.where)
        return n_rows


class Reservoir:
    """A simple random sample without replacement: the rows with the least of random keys.

    Where it is known how many rows will come, those with greater keys than the sample can have are not even
    looked at. Should fewer be left than were wanted, which is six standard deviations away, the sample is smaller.
    """

    def __init__(self, size: int, random: Random, names: Sequence[str], n_rows: int = 0) -> None:
        self.size, self.random, self.names = size, random, list(dict.fromkeys(names))
        self._keys: list[NDArray[np.uint64]] = []
        self._rows: list[pa.RecordBatch] = []
        self._held = 0
        enough = size + 6 * math.sqrt(size) + 6
        self._bound = int(enough / n_rows * 2**64) if enough < n_rows else None

    def add(self, batch: FileBatch) -> None:
        """Look at some more rows."""
        keys = self.random.integers(0, 2**64, size=batch.n_rows, dtype=np.uint64)
        rows = batch.batch.select(self.names)
        if self._bound is not None:
            at = np.flatnonzero(keys < self._bound)
            keys, rows = keys[at], rows.take(pa.array(at))
        self._keys.append(keys)
        self._rows.append(_plain_batch(rows))
        self._held += len(keys)
        if self._held > self.size + max(self.size // 2, BLOCK_ROWS):
            self._shrink()

    def _shrink(self) -> None:
        keys = np.concatenate(self._keys)
        rows = pa.Table.from_batches(self._rows).combine_chunks()
        if len(keys) > self.size:
            at = np.sort(np.argpartition(keys, self.size - 1)[: self.size])
            keys, rows = keys[at], rows.take(pa.array(at))
            self._bound = int(keys.max())
        self._keys, self._held = [keys], len(keys)
        self._rows = rows.combine_chunks().to_batches()

    def batch(self, schema: Schema) -> Batch:
        """The sampled rows."""
        self._shrink()
        return FileBatch(pa.Table.from_batches(self._rows).combine_chunks().to_batches()[0], schema)


def _plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows without dictionaries, which may be those of a whole row group."""
    columns = [
        column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


# ---- what is published as it is --------------------------------------------------------------------


class Payload:
    """Columns that come along with the codes: published as they are, or needed for statistics of each group.

    ``kinds`` are the types of the numbers and dates that statistics are taken of: those of the whole column.
    """

    def __init__(self, source: Source, policy: Policy) -> None:
        schema = policy.schema
        self.schema = schema
        self.published = [
            name
            for name in source.names
            if schema[name].role.is_published and schema[name].role is not Role.QUASI_IDENTIFIER
        ]
        measured = [name for name in source.names if statistics.names_of(schema[name], policy)]
        self.measured = [name for name in measured if name not in self.published]
        self.names = [*self.published, *self.measured]
        self._extents = {name: Extent(_free(schema[name])) for name in measured}
        self._texts = {
            name: Dictionary(Attribute(name, Role.OTHER), at_most=FEW_TEXTS) for name in self.published
        }
        self._bytes = dict.fromkeys(self.names, 0)
        self._code: dict[str, Codes] = {}
        self._dictionary: dict[str, pa.Array] = {}

    @property
    def observed(self) -> list[str]:
        """What must be looked at beforehand."""
        return self.names

    @property
    def kinds(self) -> dict[str, pa.DataType]:
        return {name: _kind(extent) for name, extent in self._extents.items()}

    def observe(self, batch: Batch) -> None:
        for name in self.published:
            column = batch.raw(name)
            if not _is_text(column.type):
                self._texts.pop(name, None)
            if name in self._texts:
                self._texts[name].add(_passed_on(column, name), batch.first_row)
                if self._texts[name].is_full or self._texts[name].held > MOST_TEXT:
                    del self._texts[name]
            self._bytes[name] += _decoded_bytes(column)
        for name, extent in self._extents.items():
            extent.add_cells(batch.cells(name))

    def finish(self) -> None:
        for name in list(self._texts):
            texts = self._texts[name]
            texts.finish()
            if texts.held > MOST_TEXT:  # every file of rows would hold it
                del self._texts[name]
                continue
            order = pc.sort_indices(texts.values).to_numpy()
            rank = np.empty(len(order) + 1, dtype=np.uint32)
            rank[order] = np.arange(len(order))
            rank[-1] = len(order)  # missing
            self._code[name] = rank
            self._dictionary[name] = texts.values.take(pa.array(order))
            texts.n_missing = 1  # so that the last code is that of missing

    def n_bytes(self, n_rows: int) -> int:
        """Of all rows, about."""
        width = {name: _index_type(len(self._dictionary[name])).bit_width // 8 for name in self._code}
        return sum(
            n_rows * width[name] if name in width else self._bytes[name] or 8 * n_rows for name in self.names
        )

    def decoded_bytes(self, n_rows: int) -> int:
        """Of a row once its texts are spelled out, about."""
        return sum(self._bytes[name] or 8 * n_rows for name in self.names) // max(n_rows, 1)

    def of(self, batch: Batch) -> pa.RecordBatch | None:
        """The payload of some rows, None if there is none."""
        if not self.names:
            return None
        columns = [self._column(name, batch) for name in self.names]
        return pa.RecordBatch.from_arrays(columns, self.names)

    def _column(self, name: str, batch: Batch) -> pa.Array:
        if name in self.measured:
            kind = self.kinds[name]
            cells = batch.cells(name)
            return cells.cast(pa.int32()).cast(kind) if pa.types.is_date(kind) else cells.cast(kind)
        column = _passed_on(batch.raw(name), name)
        if name not in self._code:
            return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
        codes = self._texts[name].codes(column, self._code[name])
        dictionary = self._dictionary[name]
        is_missing = codes == len(dictionary)
        kind = _index_type(len(dictionary))
        indices = pa.array(codes, mask=is_missing if is_missing.any() else None).cast(kind, safe=False)
        return pa.DictionaryArray.from_arrays(indices, dictionary)


def _decoded_bytes(column: pa.Array) -> int:
    """Bytes of a column, its texts spelled out."""
    if not isinstance(column, pa.DictionaryArray):
        return int(column.nbytes)
    if not _is_text(column.type) or len(column.dictionary) == 0:
        return int(column.indices.nbytes)
    return int(column.indices.nbytes + len(column) * column.dictionary.nbytes // len(column.dictionary))


def _free(attribute: Attribute) -> Attribute:
    return Attribute(attribute.name, attribute.role, attribute.kind)


def _kind(extent: Extent) -> pa.DataType:
    if extent.attribute.kind is Kind.DATE:
        return pa.date32()
    return pa.int64() if extent.is_int else pa.float64()


def _index_type(n: int) -> pa.DataType:
    return pa.int8() if n <= 1 << 7 else pa.int16() if n <= 1 << 15 else pa.int32()


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _passed_on(column: pa.Array, name: str) -> pa.Array:
    return passed_on(pa.chunked_array([column]), name).chunk(0)


class Tally:
    """How many rows of the table satisfy each condition of the workload."""

    def __init__(self, intake: Intake) -> None:
        schema = intake.schema
        self.conditions = [predicate.parse(task.where, schema) for task in intake.policy.selections]
        self.names = list(dict.fromkeys(name for each in self.conditions for name in each.names))
        self.counts = [0] * len(self.conditions)
        self.schema = schema
        self.texts = {
            encoder.attribute.name: Words(encoder.dictionary, encoder.attribute)
            for encoder in intake._encoders  # noqa: SLF001 - a part of it
            if isinstance(encoder, TreeEncoder) and encoder.attribute.name in self.names
        }

    def add(self, batch: Batch) -> None:
        """Look at some more rows."""
        tests: dict[str, Any] = {}
        for name in self.names:
            if name in self.texts:
                tests[name] = self.texts[name].test(batch.raw(name))
            else:
                tests[name] = select.number_test(batch.floats(name))
        for i, condition in enumerate(self.conditions):
            self.counts[i] += int(select.satisfied(condition, tests, batch.n_rows).sum())


class Words:
    """The texts of a category, known from its dictionary: what a cell is called may depend on the others."""

    def __init__(self, dictionary: Dictionary, attribute: Attribute) -> None:
        self.dictionary = dictionary
        self.labels = table_cells.texts(dictionary.column(), attribute).to_pylist()

    def test(self, column: pa.Array) -> Callable[[Any], NDArray[np.bool_]]:
        def is_inside(side: Any) -> NDArray[np.bool_]:
            inside = np.array([label in side for label in self.labels], dtype=np.uint32)
            return self.dictionary.codes(column, inside).astype(np.bool_)

        return is_inside


__all__ = ["Intake", "Payload"]
