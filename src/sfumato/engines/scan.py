"""From a file to blocks of codes, in bounded memory.

A table is *scanned* once: every column is observed, batch by batch, until its domain is known and with it what
the kernels must know beforehand. Then ``blocks`` gives its rows as codes, as often as needed. Domains and codes
are those of a table that is encoded in memory, which is one batch of the same encoders.

Some columns are read once more after the scan: those whose codes are ranks among values that had to be collected
first, numbers that need a scale of their own, and joint targets and features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.batches import BLOCK_ROWS, Batch, Block, Encoder, FileBatch, observe_again
from sfumato.encoding.domain import Codes, Domain, axes_of
from sfumato.encoding.encoders import LabelEncoder, OrderedEncoder, TreeEncoder, axis_encoder
from sfumato.encoding.targets import Columns, columns_for
from sfumato.engines.payload import Payload
from sfumato.engines.reservoir import Reservoir, sample_cells
from sfumato.engines.rows import RowLayout
from sfumato.errors import TableError
from sfumato.kernels.axes import Axes
from sfumato.policy import predicate
from sfumato.policy.document import Policy
from sfumato.policy.output import MEAN
from sfumato.policy.schema import Attribute
from sfumato.progress import Progress, no_progress
from sfumato.recoding import statistics
from sfumato.release.query import select
from sfumato.table import cells as table_cells
from sfumato.table.distinct import Dictionary, NumberFile, let_go
from sfumato.table.source import Source, table_has_changed
from sfumato.table.spill import Spill

LAST_NUMBER = 2**32 - 1
"""The last number that a row may have among its codes; those that follow are counted from 0 again."""

ROWS_TO_RANK = 1 << 18
"""Rows whose values are looked up in a file of ranks in one go: each time, most of the file is read."""


class Intake:
    """The rows of a table, encoded as they are read.

    ``memory`` is for everything here that grows with the table: a row group, dictionaries, values to be ranked. A
    sample comes on top.

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
        self._drawn: Reservoir[pa.RecordBatch] | None = None
        self.is_numbered = False
        self._ranks: NumberFile | None = None
        self._position: Any = None
        self._true_counts: list[int] | None = None

    # ---- the first pass ----------------------------------------------------------------------------

    def scan(self, *, sample: int = 0, seed: int = 0) -> None:
        """Read the table once, and learn what its codes are; keep a simple random ``sample`` of so many rows.

        Blocks then have the number of each row as a last column, so that samples of parts of them can be drawn, too.
        """
        encoders = [*self._encoders, *self.columns.encoders]
        names = [*self._axis_names, *self.columns.names]
        names_once = list(dict.fromkeys(names))
        drawn = self._drawn = sample_cells(sample, seed, self.n_rows) if sample else None
        self.is_numbered = drawn is not None

        def observe(batch: FileBatch) -> None:
            for encoder in encoders:
                encoder.observe(batch.cells_for(encoder), batch.first_row)
            self._payload.observe(batch)
            self._check_memory()
            if drawn is not None:
                drawn.add(batch.batch.select(names_once), batch.first_row)

        self.spill.counters.input_passes += 1
        n_rows = self._pass([*names, *self._payload.names], observe, "reading")
        if n_rows == 0:
            raise TableError(f"{self.source.where} has no rows; a table needs at least one.")
        self.n_rows = n_rows
        observe_again([*self.columns.encoders, *self._encoders], self._read_again)
        self._finish()
        self._payload.finish()
        self.columns.finish(n_rows)
        self.encoded_bytes = n_rows * self.layout.row_bytes + self._payload.n_bytes(n_rows)
        table_cells.give_back_memory()

    def _finish(self) -> None:
        if any(isinstance(encoder, OrderedEncoder) and encoder.is_large for encoder in self._encoders):
            self._ranks = NumberFile(self.spill)
        for encoder in self._encoders:
            if isinstance(encoder, OrderedEncoder):
                encoder.finish(self._ranks)
            else:
                encoder.finish()
        self.domains = tuple(encoder.domain for encoder in self._encoders)
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
        """How many codes a row has: quasi-identifiers, targets and sensitive values."""
        return len(self._encoders) + len(self.columns.columns)

    @property
    def greatest(self) -> list[int]:
        """The greatest code of each column."""
        return [*(domain.n_codes - 1 for domain in self.domains), *self.columns.greatest]

    @property
    def statistic_types(self) -> dict[str, pa.DataType]:
        """The types of the published statistics, for all groups alike: a mean that is whole in one is not in others."""
        return {
            name: pa.float64() if name.endswith(MEAN) and not pa.types.is_date(kind) else kind
            for column, kind in self._payload.kinds.items()
            for name in statistics.names_of(self.schema[column], self.policy)
        }

    @property
    def payload_bytes(self) -> int:
        """Bytes of a row that are published as they are."""
        return self._payload.decoded_bytes(self.n_rows)

    def take_sample(self, size: int | None = None) -> Codes:
        """Hand over the sample, or a smaller one of ``size`` rows; it is then no longer held here."""
        drawn, self._drawn = self._drawn, None
        if drawn is None:
            return np.zeros((0, self.n_columns), dtype=np.uint32)
        sample = self._codes(FileBatch(drawn.rows(size), self.schema))
        table_cells.give_back_memory()
        return sample

    @property
    def code_ends(self) -> Codes:
        """(2, axes) least and greatest code of the table, as far as that is known without another pass."""
        every = [encoder.ends or (0, domain.n_codes - 1)
                 for encoder, domain in zip(self._encoders, self.domains, strict=True)]  # fmt: skip
        return np.array(every, dtype=np.uint32).T

    @property
    def layout(self) -> RowLayout:
        """How the rows are stored most narrowly."""
        numbers = [min(self.n_rows - 1, LAST_NUMBER)] if self.is_numbered else []
        return RowLayout.of([*self.greatest, *numbers], is_numbered=self.is_numbered)

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
        """Give back the memory that looking up ranks in a file takes; call it now and then."""
        let_go(self._position)

    @property
    def true_counts(self) -> list[int]:
        """How many rows of the table satisfy each condition of the workload."""
        if self._true_counts is None:
            conditions = ConditionCounts(self.policy, self._encoders)
            self._pass(conditions.names, conditions.add, "counting")
            self._true_counts = conditions.counts
        return self._true_counts

    # ---- rows --------------------------------------------------------------------------------------

    def blocks(self, *, payload: bool = True) -> Iterator[Block]:
        """One pass over the table: its rows as codes, with their payload."""
        names = [*self._axis_names, *self.columns.names, *(self._payload.names if payload else ())]
        conditions = ConditionCounts(self.policy, self._encoders) if self._true_counts is None else None
        self.spill.counters.input_passes += 1
        n_rows = 0
        size = BLOCK_ROWS if self._ranks is None else ROWS_TO_RANK
        for batch in self._batches(names, size):
            n_rows += batch.n_rows
            if conditions is not None:
                conditions.add(batch)
            codes = self._codes(batch, is_numbered=self.is_numbered)
            beside = self._payload.take_from(batch) if payload else None
            for start in range(0, batch.n_rows, BLOCK_ROWS):
                end = start + BLOCK_ROWS
                yield Block(codes[start:end], None if beside is None else beside.slice(start, BLOCK_ROWS))
            self.progress("encoding", n_rows, self.n_rows)
        if n_rows != self.n_rows:
            raise table_has_changed(self.source.where)
        if conditions is not None:
            self._true_counts = conditions.counts

    def _codes(self, batch: Batch, *, is_numbered: bool = False) -> Codes:
        rows = np.empty((batch.n_rows, self.n_columns + is_numbered), dtype=np.uint32)
        if is_numbered:
            rows[:, -1] = np.arange(batch.first_row, batch.first_row + batch.n_rows) % (LAST_NUMBER + 1)
        for i, encoder in enumerate(self._encoders):
            rows[:, i] = encoder.codes(batch.cells_for(encoder))
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
        """One pass over these columns: call ``observe`` with each batch; returns how many rows there are."""
        n_rows = 0
        for batch in self._batches(names):
            observe(batch)
            n_rows += batch.n_rows
            self.progress(word, n_rows, max(self.n_rows, n_rows))
        if self.n_rows not in (n_rows, 0):
            raise table_has_changed(self.source.where)
        return n_rows


class ConditionCounts:
    """How many rows of the table satisfy each condition of the workload."""

    def __init__(self, policy: Policy, encoders: Sequence[Encoder]) -> None:
        self.conditions = [predicate.parse(task.where, policy.schema) for task in policy.selections]
        self.names = list(dict.fromkeys(name for each in self.conditions for name in each.names))
        self.counts = [0] * len(self.conditions)
        self.texts = {
            encoder.attribute.name: CategoryTexts(encoder.dictionary, encoder.attribute)
            for encoder in encoders
            if isinstance(encoder, TreeEncoder) and encoder.attribute.name in self.names
        }

    def add(self, batch: Batch) -> None:
        """Count the rows of a batch that satisfy each condition."""
        tests: dict[str, Any] = {}
        for name in self.names:
            if name in self.texts:
                tests[name] = self.texts[name].test(batch.raw(name))
            else:
                tests[name] = select.number_test(batch.floats(name))
        for i, condition in enumerate(self.conditions):
            self.counts[i] += int(select.find_satisfying(condition, tests, batch.n_rows).sum())

    def merge(self, other: ConditionCounts) -> None:
        """Count the rows of another one's batches."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]


class CategoryTexts:
    """The texts of a category, from the dictionary of the whole table: what a cell is called may depend on others."""

    def __init__(self, dictionary: Dictionary, attribute: Attribute) -> None:
        self.dictionary = dictionary
        self.labels = table_cells.texts(dictionary.column(), attribute).to_pylist()

    def test(self, column: pa.Array) -> Callable[[Any], NDArray[np.bool_]]:
        def is_inside(side: Any) -> NDArray[np.bool_]:
            inside = np.array([label in side for label in self.labels], dtype=np.uint32)
            return self.dictionary.codes(column, inside).astype(np.bool_)

        return is_inside


__all__ = ["Intake"]
