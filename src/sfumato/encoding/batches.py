"""Rows on their way: batches of stored cells to an encoder, and blocks of encoded rows from it.

A table in memory is one batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.cells import as_floats
from sfumato.encoding.domain import Codes
from sfumato.policy.schema import Attribute, Schema
from sfumato.table import cells as table_cells
from sfumato.table.cells import UnreadableCells
from sfumato.table.source import Source


class Observer(Protocol):
    """Whoever learns about one column from all its batches: observe, settle, perhaps observe again, finish.

    ``is_raw`` if it looks at cells as they are stored; otherwise it looks at numbers or days. Batches may come in any
    order. Several observers may share them, each with some: these are merged before ``settle``, and again before
    ``finish`` if copies of the settled one have shared the batches once more.
    """

    attribute: Attribute
    is_raw: bool

    def observe(self, cells: pa.Array, first_row: int) -> None:
        """Look at a batch, which begins at that row."""
        ...

    def merge(self, other: Self) -> None:
        """Look at what another one has observed."""
        ...

    def settle(self) -> bool:
        """All batches have been seen: must they be observed again?"""
        ...

    def observe_again(self, cells: pa.Array) -> None:
        """Look at a batch once more."""
        ...

    def merge_again(self, other: Self) -> None:
        """Look at what another one has observed again."""
        ...

    def finish(self) -> None:
        """Decide."""
        ...


class Encoder(Observer, Protocol):
    """An observer that then knows the codes of its column."""

    def codes(self, cells: pa.Array) -> Codes:
        """Encode a batch."""
        ...


class OnePass:
    """An observer that looks at each batch once."""

    def settle(self) -> bool:
        return False

    def observe_again(self, cells: pa.Array) -> None:
        """Not asked for."""

    def merge_again(self, other: Self) -> None:
        """Not asked for."""


class Batch(ABC):
    """Some rows of a table as they are stored; the cells of a number or date are read once.

    ``first_row`` rows come before them. ``codes`` keeps columns of codes that were made of them, to make none twice.
    """

    def __init__(self, n_rows: int, schema: Schema, *, first_row: int = 0) -> None:
        self.n_rows, self.schema, self.first_row = n_rows, schema, first_row
        self.codes: dict[Hashable, Codes] = {}
        self._cells: dict[str, pa.Array] = {}

    @abstractmethod
    def raw(self, name: str) -> Any:
        """Cells as they are stored."""

    @abstractmethod
    def _read(self, name: str) -> pa.Array:
        """Numbers, or days; raises if a cell is neither."""

    def cells(self, name: str) -> pa.Array:
        """Numbers, or days."""
        if name not in self._cells:
            self._cells[name] = self._read(name)
        return self._cells[name]

    def floats(self, name: str) -> NDArray[np.float64]:
        """Numbers, or days; missing is -inf."""
        return as_floats(self.cells(name))

    def cells_for(self, observer: Observer) -> Any:
        """The cells that an observer looks at: as they are stored, or as numbers or days."""
        name = observer.attribute.name
        return self.raw(name) if observer.is_raw else self.cells(name)

    @abstractmethod
    def forget(self, name: str) -> None:
        """The codes of a column are known: its cells may go."""


class FileBatch(Batch):
    """Some rows of a table that is read piece by piece."""

    def __init__(self, batch: pa.RecordBatch, schema: Schema, *, first_row: int = 0) -> None:
        super().__init__(batch.num_rows, schema, first_row=first_row)
        self.batch = batch

    def raw(self, name: str) -> Any:
        return self.batch.column(name)

    def _read(self, name: str) -> pa.Array:
        try:
            return table_cells.ordered(self.raw(name), self.schema[name])
        except UnreadableCells as fault:
            raise fault.after(self.first_row) from None

    def forget(self, name: str) -> None:
        """Keep them: the batch itself goes soon, and somebody may yet look at them."""


class WholeTable(Batch):
    """A table in memory, as the one batch that it is.

    A column is read when it is asked for, and held until ``forget``. No row comes after these, so unreadable cells
    are counted to the last.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        super().__init__(source.n_rows, schema)
        self.source = source
        self._raw: dict[str, pa.ChunkedArray] = {}

    def raw(self, name: str) -> Any:
        if name not in self._raw:
            self._raw[name] = self.source.column(name)
        return self._raw[name]

    def _read(self, name: str) -> pa.Array:
        return table_cells.ordered(self.source.column(name), self.schema[name])

    def forget(self, name: str) -> None:
        self._raw.pop(name, None)
        self._cells.pop(name, None)

    def show(self, _names: Iterable[str], state: BatchState) -> None:
        """One pass over the table."""
        state.add(self)


# ---- passes over a table that is not encoded yet ---------------------------------------------------


class BatchState(Protocol):
    """What is gathered of a table: batches may be added in any order, on any number of states that are then merged."""

    def add(self, batch: Batch) -> None:
        """Look at a batch."""

    def merge(self, other: Self) -> None:
        """Look at the batches that another one has seen."""


Show = Callable[[Iterable[str], BatchState], None]
"""One pass over some columns: their batches are added to a state, or to states that are merged into it."""


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Observers that look at every batch."""

    observers: Sequence[Observer]

    def add(self, batch: Batch) -> None:
        for observer in self.observers:
            observer.observe(batch.cells_for(observer), batch.first_row)

    def merge(self, other: Observed) -> None:
        for mine, theirs in zip(self.observers, other.observers, strict=True):
            mine.merge(theirs)


@dataclass(frozen=True, slots=True, eq=False)
class ObservedAgain:
    """Observers that look at every batch once more."""

    observers: Sequence[Observer]

    def add(self, batch: Batch) -> None:
        for observer in self.observers:
            observer.observe_again(batch.cells_for(observer))

    def merge(self, other: ObservedAgain) -> None:
        for mine, theirs in zip(self.observers, other.observers, strict=True):
            mine.merge_again(theirs)


@dataclass(frozen=True, slots=True, eq=False)
class Fed:
    """A state that is fed with what ``read`` makes of each batch: the arguments of its ``add``."""

    state: Any
    read: Callable[[Batch], tuple[Any, ...]]

    def add(self, batch: Batch) -> None:
        self.state.add(*self.read(batch))

    def merge(self, other: Fed) -> None:
        self.state.merge(other.state)


def observe_again(observers: Iterable[Observer], show: Show) -> None:
    """All batches have been observed: show them once more to those who ask for it."""
    again = [observer for observer in observers if observer.settle()]
    if again:
        show([observer.attribute.name for observer in again], ObservedAgain(again))


def learn(observer: Observer, show: Show) -> None:
    """Show an observer all that it needs to see, and let it decide."""
    show([observer.attribute.name], Observed([observer]))
    observe_again([observer], show)
    observer.finish()


def encode_whole(encoder: Encoder, table: WholeTable) -> Codes:
    """The codes of a column of a table in memory, by an encoder that has seen nothing yet."""
    learn(encoder, table.show)
    codes = encoder.codes(table.cells_for(encoder))
    table.forget(encoder.attribute.name)
    return codes


BLOCK_ROWS = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some encoded rows.

    rows      (n, axes + extra) uint32, C order   codes of the quasi-identifiers, then targets and sensitive values
    payload   what is published of them as it is; None where nobody asks for it
    """

    rows: Codes
    payload: pa.RecordBatch | None


class Rows(Protocol):
    """The rows of one node, wherever they are."""

    @property
    def n_rows(self) -> int: ...

    def blocks(self, *, payload: bool = True) -> Iterator[Block]:
        """One pass over them, by blocks of at most 65,536 rows."""
        ...
