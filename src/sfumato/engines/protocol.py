"""The verbs by which an algorithm works on rows, wherever they live.

An algorithm says *what* to gather of the rows (a plan), *where* each row belongs (places) and *what to do* with a part
that fits in memory (work). An engine makes the passes: it owns memory, files, progress and, one day, other machines.
What is gathered is a state that can be merged with another, so blocks may be added anywhere, in any order.

An algorithm may ask what an engine has room for, but never which engine it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.batches import BLOCK_ROWS, Block, Rows
from sfumato.encoding.domain import Codes, Domain
from sfumato.encoding.targets import Columns
from sfumato.kernels.axes import Axes
from sfumato.recoding.tree_file import AnyTree
from sfumato.table.spill import Counters, Spill
from sfumato.table.stored import FiledRows

S = TypeVar("S", bound="State")
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
D_co = TypeVar("D_co", covariant=True)
D = TypeVar("D")

Flags = NDArray[np.bool_]

UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Room:
    """What an engine has room for.

    count_bytes   bytes of what is gathered in one pass
    rows          rows of a part that are loaded at once
    row_bytes     what one of them takes while its group is found and published
    parts         parts that rows are divided into at once
    keeps_counts  what is gathered may come back as it is, and stay until the next pass; else answers should be small
    """

    count_bytes: int = UNLIMITED
    rows: int = UNLIMITED
    parts: int = UNLIMITED
    keeps_counts: bool = True
    row_bytes: int = 0

    def bytes_or(self, otherwise: int) -> int:
        """Bytes of what is gathered, or so many ``otherwise`` if nothing limits them."""
        return self.count_bytes if self.count_bytes < UNLIMITED else otherwise


class EncodedTable(Rows, Protocol):
    """The rows of a table as codes, and what is known of its columns. An engine opens it."""

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Those of the quasi-identifiers, whose codes come first."""

    @property
    def columns(self) -> Columns:
        """Targets and sensitive values, whose codes come next."""

    @property
    def n_columns(self) -> int:
        """How many codes a row has. Where samples may be drawn, the number of the row comes after them."""

    @property
    def code_ends(self) -> Codes:
        """(2, axes) least and greatest code of the table, as far as that is known."""

    def axes(self, split_only: tuple[str, ...] | None = None) -> Axes:
        """The quasi-identifiers as kernels see them."""

    def take_sample(self, size: int) -> Codes | None:
        """The sample of so many rows that was drawn when the table was read first, if one was."""


class State(Protocol):
    """What is gathered: rows may be added in any blocks and order, on any number of states that are then merged."""

    def add(self, block: Block) -> None:
        """Add some rows."""

    def merge(self, other: Self) -> None:
        """Add the rows of another state of the same plan."""


class Plan(Protocol[S, A_co]):
    """What to gather, and what the gathered state answers. It can be pickled, and holds no rows."""

    @property
    def n_bytes(self) -> int:
        """Memory that the state would like to have."""

    def new(self, room: int, spill: Spill | None) -> S:
        """A state of no rows, in about so many bytes of memory; ``spill`` is for what does not fit."""

    def answer(self, state: S) -> A_co:
        """What the algorithm wants to know, once all rows have been added."""


class Places(Protocol):
    """The part that each row belongs to. It can be pickled, and holds no rows."""

    @property
    def n_parts(self) -> int: ...

    def of(self, rows: Codes) -> NDArray[np.integer[Any]]:
        """The part of each of some rows (n, columns): 0 up to ``n_parts``."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked(Generic[A]):
    """What to gather in one pass: all rows go to every plan; with ``to`` each goes to one, or to none of them.

    ``payload`` if plans look at what is published as it is; without ``to``, and not while rows are divided.
    """

    plans: Sequence[Plan[Any, A]]
    to: Places | None = None
    payload: bool = False


NOTHING: Asked[Any] = Asked(())


class Divided(NamedTuple, Generic[A]):
    """The rows of each part, and the answers to what was gathered on the way."""

    parts: list[Rows]
    answers: list[A]


@dataclass(slots=True, eq=False)
class Loaded:
    """The rows of a part in memory.

    rows     (n, columns) uint32: their codes, row after row or column after column
    payload  the cells that are published as they are; None if there are none, or the table itself has them
    numbers  their numbers in that table; None: they are numbered from 0, as the payload is
    """

    rows: Codes
    payload: pa.Table | None = None
    numbers: NDArray[np.uint32] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def blocks(self, *, payload: bool = True) -> Iterator[Block]:  # noqa: ARG002 - it is at hand
        """One pass over the rows, as over any others."""
        for start in range(0, len(self.rows), BLOCK_ROWS):
            yield Block(np.ascontiguousarray(self.rows[start : start + BLOCK_ROWS]), None)

    def hand_over(self) -> Codes:
        """The codes, which only the caller has from now on: what nobody needs any more is memory for others."""
        rows, self.rows = self.rows, np.empty((0, self.rows.shape[1]), dtype=np.uint32)
        return rows

    def number(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
        """The numbers of some of these rows, by which their payload is found."""
        return rows.astype(np.uint32) if self.numbers is None else self.numbers[rows]


class Work(Protocol[D_co]):
    """What is done with a part that fits in memory. It can be pickled."""

    def __call__(self, part: Loaded) -> D_co: ...


class Published(NamedTuple, Generic[D]):
    """Rows of a part that are published, and what else is to be known of them."""

    rows: pa.Table
    told: D


class Sink(Protocol):
    """Published rows on their way out, some at a time; a context in which they are appended."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def append(self, rows: pa.Table) -> None:
        """Publish further rows."""

    def rows(self) -> pa.Table | FiledRows:
        """All of them, after the last was appended."""


class Engine(Protocol):
    """Where the rows live."""

    @property
    def room(self) -> Room: ...

    @property
    def threads(self) -> int | None:
        """How many threads a work may use; all cores if None."""

    @property
    def counters(self) -> Counters:
        """What the run did so far."""

    def open(self, table: EncodedTable) -> Rows:
        """The rows of a table: all at hand, or encoded whenever they are read."""

    def gather(self, rows: Rows, asked: Asked[A], *, stage: str = "") -> list[A]:
        """One pass: the answer of each plan. ``stage`` names the pass for those who are told of progress."""

    def divide(self, rows: Rows, places: Places, *, also: Asked[A] = NOTHING, stage: str = "") -> Divided[A]:
        """One pass: the rows of each part, in the order that they had, and what is gathered ``also``.

        The undivided rows stay until they are discarded.
        """

    def finish(self, parts: Iterable[tuple[Rows, Work[D]]]) -> Iterator[D]:
        """Do the work of each part on its rows; results come in the order of parts. A part that is done is gone."""

    def publish(self, parts: Iterable[tuple[Rows, Work[Published[D]]]], sink: Sink) -> Iterator[D]:
        """``finish``, where each work finds rows to publish: these go to a sink, and the rest comes back."""

    def load(self, rows: Rows, *, payload: bool = True) -> Loaded:
        """Rows that fit in memory, all at once."""

    def keep(self, rows: Rows, *, payload: bool = True) -> Rows:
        """The same rows, to be read often: the first pass keeps them as codes. Without ``payload`` these are all."""

    def join(self, parts: Sequence[Rows]) -> Rows:
        """The rows of several parts as those of one."""

    def discard(self, rows: Rows) -> None:
        """Nobody will read these rows again."""

    def sink(self, file_format: str, *, escapes: bool) -> Sink:
        """For published rows; if they go to a file, it has this format, and cells like formulas are escaped if asked."""

    def grow_tree(self, is_tree: Flags, *, is_kept: bool) -> AnyTree:
        """For the pieces of a tree that becomes a recoding, if one ``is_kept``."""

    def describe(self, method: str) -> dict[str, Any]:
        """What the certificate says of the run, if anything."""


__all__ = [
    "NOTHING",
    "Asked",
    "Block",
    "Divided",
    "EncodedTable",
    "Engine",
    "Loaded",
    "Places",
    "Plan",
    "Published",
    "Room",
    "Rows",
    "Sink",
    "State",
    "Work",
]
