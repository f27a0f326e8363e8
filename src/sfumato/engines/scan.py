"""From a table to blocks of codes.

A table is *scanned* once: every column is observed, batch by batch, until its domain is known and with it what
the kernels must know beforehand. Then ``blocks`` gives its rows as codes, as often as needed. A table in memory is one
batch and one block; domains and codes do not depend on the batches.

Some columns are read once more after the scan: those whose codes are ranks among values that had to be collected
first, numbers that need a scale of their own, and joint targets and features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.batches import BLOCK_ROWS, Batch, Block, Encoder, FileBatch, Observed, observe_again
from sfumato.encoding.domain import Codes, Domain, axes_of
from sfumato.encoding.encoders import UNBOUNDED, LabelEncoder, OrderedEncoder, TreeEncoder, axis_encoder
from sfumato.encoding.targets import Columns, columns_for
from sfumato.engines.payload import Payload
from sfumato.engines.raw import RawTable, TableAtHand, TableInBatches
from sfumato.engines.reservoir import Reservoir, sample_cells
from sfumato.engines.rows import RowLayout
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
from sfumato.table.spill import Counters, Spill

LAST_NUMBER = 2**32 - 1
"""The last number that a row may have among its codes; those that follow are counted from 0 again."""

ROWS_TO_RANK = 1 << 18
"""Rows whose values are looked up in a file of ranks in one go: each time, most of the file is read."""


class Intake:
    """The rows of a table, encoded as they are read.

    ``memory`` is for everything here that grows with the table: a row group, dictionaries, values to be ranked, which may
    go to a ``spill`` folder. A sample comes on top.

    >>> from sfumato.table.opening import open_table
    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier, type: number}}, require: []}")
    >>> intake = Intake.at_hand(open_table(pa.table({"age": [30, 20, 40]})), policy)
    >>> intake.scan()
    >>> [block.rows.tolist() for block in intake.blocks()]
    [[[1], [0], [2]]]
    """

    def __init__(
        self,
        raw: RawTable,
        policy: Policy,
        *,
        spill: Spill | None = None,
        memory: int = UNBOUNDED,
        progress: Progress = no_progress,
    ) -> None:
        self.raw, self.source, self.policy, self.schema = raw, raw.source, policy, policy.schema
        self.spill, self.memory, self.progress = spill, memory, progress
        self.counters = Counters() if spill is None else spill.counters
        self.is_at_hand = isinstance(raw, TableAtHand)
        self.domains: tuple[Domain, ...] = ()
        self.encoded_bytes = 0
        quasi = self.schema.quasi_identifiers
        n_ordered = sum(attribute.is_ordered for attribute in quasi)
        self._encoders = [
            axis_encoder(
                attribute,
                n_rows=raw.n_rows,
                spill=spill,
                memory=memory // (4 * (n_ordered if attribute.is_ordered else 1)),
            )
            for attribute in quasi
        ]
        self.columns = Columns(
            self.schema,
            columns_for(self.schema, policy.requirements, policy.workload, policy.person),
            raw.show,
            n_axes=len(quasi),
            memory=memory // 4,
        )
        self._payload = Payload(raw.source, policy, is_stored=not self.is_at_hand)
        self._drawn: Reservoir[pa.RecordBatch] | None = None
        self.is_numbered = False
        self._ranks: NumberFile | None = None
        self._position: Any = None
        self._true_counts: list[int] | None = None

    @classmethod
    def at_hand(cls, source: Source, policy: Policy, *, progress: Progress = no_progress) -> Intake:
        """A table that fits in memory."""
        return cls(TableAtHand(source, policy.schema), policy, progress=progress)

    @classmethod
    def in_batches(
        cls, source: Source, policy: Policy, *, spill: Spill, memory: int, progress: Progress = no_progress
    ) -> Intake:
        """A table of any size."""
        raw = TableInBatches(
            source, policy.schema, memory=memory // 4, counters=spill.counters, progress=progress
        )
        return cls(raw, policy, spill=spill, memory=memory, progress=progress)

    def on_slice(self, source: Source, first_row: int) -> Intake:
        """The same codes for some of the rows, before which ``first_row`` others come. It can be pickled."""
        own, counters = copy(self), Counters()
        raw = TableInBatches(
            source, self.schema, memory=self.memory // 4, counters=counters, first_row=first_row
        )
        vars(own).update(raw=raw, source=source, counters=counters, progress=no_progress)
        vars(own).update(_drawn=None, _position=None, _true_counts=[])  # nobody asks for these there
        return own

    # ---- the first pass ----------------------------------------------------------------------------

    def scan(self, *, sample: int = 0, seed: int = 0) -> None:
        """Read the table once, and learn what its codes are; keep a simple random ``sample`` of so many rows.

        Blocks then have the number of each row as a last column, so that samples of parts of them can be drawn, too. In
        memory these are all: who has the rows at hand draws a sample of their codes. So are samples of people, of whom
        this pass learns.
        """
        encoders = [*self._encoders, *self.columns.encoders]
        names = [*self._axis_names, *self.columns.names]
        self.is_numbered = sample > 0
        if sample and not self.is_at_hand and self.policy.person is None:
            self._drawn = sample_cells(sample, seed, max(self.raw.n_rows, 0))
        self.counters.input_passes += 1
        seen = FirstPass(Observed(encoders), self._payload, self._drawn, names, self.memory)
        self.raw.show([*names, *self._payload.names], seen, stage="reading")
        n_rows = self.n_rows
        observe_again([*self.columns.encoders, *self._encoders], self.raw.show)
        self._finish()
        self._payload.finish()
        self.columns.finish(n_rows)
        self.encoded_bytes = n_rows * self.layout.row_bytes + self._payload.n_bytes(n_rows)
        table_cells.give_back_memory()

    def _finish(self) -> None:
        if any(isinstance(encoder, OrderedEncoder) and encoder.is_large for encoder in self._encoders):
            assert self.spill is not None  # only values that were spilled are large
            self._ranks = NumberFile(self.spill)
        for encoder in self._encoders:
            if isinstance(encoder, OrderedEncoder):
                encoder.finish(self._ranks)
            else:
                encoder.finish()
        self.domains = tuple(encoder.domain for encoder in self._encoders)
        for target in self.columns.encoders:
            target.finish()

    # ---- what was learned --------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """How many rows the table has; known after the first pass."""
        return self.raw.n_rows

    @property
    def n_columns(self) -> int:
        """How many codes a row has: quasi-identifiers, targets and sensitive values, and its person."""
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

    def take_sample(self, size: int | None = None) -> Codes | None:
        """Hand over the sample, or a smaller one of ``size`` rows; it is then no longer held here. None: no sample."""
        drawn, self._drawn = self._drawn, None
        if drawn is None:
            return None
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
            if conditions.names:
                self.raw.show(conditions.names, conditions, stage="counting")
            self._true_counts = conditions.counts
        return self._true_counts

    # ---- rows --------------------------------------------------------------------------------------

    def blocks(self, *, payload: bool = True) -> Iterator[Block]:
        """One pass over the table: its rows as codes, with their payload; in memory these are one block."""
        names = [*self._axis_names, *self.columns.names, *(self._payload.names if payload else ())]
        conditions = ConditionCounts(self.policy, self._encoders) if self._true_counts is None else None
        self.counters.input_passes += 1
        n_rows = 0
        size = BLOCK_ROWS if self._ranks is None else ROWS_TO_RANK
        self.progress("encoding", 0, self.n_rows)
        for batch in self.raw.batches(names, size):
            n_rows += batch.n_rows
            if conditions is not None:
                conditions.add(batch)
            codes = self._codes(batch, is_numbered=self.is_numbered)
            beside = self._payload.take_from(batch) if payload and not self.is_at_hand else None
            most = batch.n_rows if self.is_at_hand else BLOCK_ROWS
            for start in range(0, batch.n_rows, most):
                yield Block(
                    codes[start : start + most], None if beside is None else beside.slice(start, most)
                )
            self.progress("encoding", n_rows, self.n_rows)
        if n_rows != self.n_rows:
            raise table_has_changed(self.source.where)
        if conditions is not None:
            self._true_counts = conditions.counts

    def _codes(self, batch: Batch, *, is_numbered: bool = False) -> Codes:
        shape = batch.n_rows, self.n_columns + is_numbered
        rows = np.empty(shape, dtype=np.uint32, order="F" if self.is_at_hand else "C")
        if is_numbered:
            rows[:, -1] = np.arange(batch.first_row, batch.first_row + batch.n_rows) % (LAST_NUMBER + 1)
        for i, encoder in enumerate(self._encoders):
            rows[:, i] = encoder.codes(batch.cells_for(encoder))
            batch.forget(encoder.attribute.name)
        for i, column in enumerate(self.columns.columns, start=len(self._encoders)):
            rows[:, i] = self.columns.codes(column, batch)
        return rows

    @property
    def _axis_names(self) -> list[str]:
        return [encoder.attribute.name for encoder in self._encoders]


class FirstPass:
    """What the first pass over a table learns of columns that become codes and of those that come along, and a sample."""

    def __init__(
        self,
        observed: Observed,
        payload: Payload,
        drawn: Reservoir[pa.RecordBatch] | None,
        names: Sequence[str],
        memory: int,
    ) -> None:
        self.observed, self.payload, self.drawn, self.memory = observed, payload, drawn, memory
        self.names = list(dict.fromkeys(names))
        """The columns of the sample."""

    def add(self, batch: Batch) -> None:
        """Look at a batch."""
        self.observed.add(batch)
        self.payload.observe(batch)
        self._check_memory()
        if self.drawn is not None:
            cells = pa.RecordBatch.from_arrays([batch.raw(name) for name in self.names], self.names)
            self.drawn.add(cells, batch.first_row)

    def merge(self, other: FirstPass) -> None:
        """Look at the batches that another one has seen."""
        self.observed.merge(other.observed)
        self.payload.merge(other.payload)
        self._check_memory()
        if self.drawn is not None and other.drawn is not None:
            self.drawn.merge(other.drawn)

    def _check_memory(self) -> None:
        """Dictionaries may take half of the memory in all."""
        dictionaries = [
            encoder.dictionary
            for encoder in self.observed.observers
            if isinstance(encoder, TreeEncoder | LabelEncoder)
        ]
        held = sum(each.held for each in dictionaries)
        if held > self.memory // 2:
            raise max(dictionaries, key=lambda each: each.held).too_large(self.memory // 2)


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
