"""The verbs by which an algorithm works on rows, wherever they live.

An algorithm says *what* to gather of the rows (a plan), *where* each row belongs (places) and *what to do* with a part
that fits in memory (work). An engine makes the passes: it owns memory, files, progress and, one day, other machines.
What is gathered is a state that can be merged with another, so blocks may be added anywhere, in any order.

An algorithm may ask what an engine has room for, but never which engine it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.batches import BLOCK_ROWS, Block, Rows
from sfumato.encoding.domain import Codes, Domain
from sfumato.encoding.targets import Columns
from sfumato.table.spill import Spill

S = TypeVar("S", bound="State")
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
D_co = TypeVar("D_co", covariant=True)
D = TypeVar("D")

UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Room:
    """What an engine has room for.

    count_bytes  bytes of what is gathered in one pass
    rows         rows of a part that are loaded at once
    parts        parts that rows are divided into at once
    """

    count_bytes: int = UNLIMITED
    rows: int = UNLIMITED
    parts: int = UNLIMITED

    def bytes_or(self, otherwise: int) -> int:
        """Bytes of what is gathered, or so many ``otherwise`` if nothing limits them."""
        return self.count_bytes if self.count_bytes < UNLIMITED else otherwise


class EncodedTable(Rows, Protocol):
    """The rows of a table as codes, and what is known of its columns."""

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Those of the quasi-identifiers, whose codes come first."""

    @property
    def columns(self) -> Columns:
        """Targets and sensitive values, whose codes come next."""


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
    """What to gather in one pass: all rows go to every plan; with ``to`` each goes to one, or to none of them."""

    plans: Sequence[Plan[Any, A]]
    to: Places | None = None


NOTHING: Asked[Any] = Asked(())


class Divided(NamedTuple, Generic[A]):
    """The rows of each part, and the answers to what was gathered on the way."""

    parts: list[Rows]
    answers: list[A]


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """The rows of a part in memory.

    rows     (n, columns or more) uint32: their codes, row after row or column after column
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

    def as_matrix(self, n_columns: int) -> Codes:
        """So many columns in C order, and a further one that is free; it may be these rows themselves."""
        if self.rows.shape[1] > n_columns and self.rows.flags.c_contiguous:
            return self.rows
        matrix = np.empty((self.n_rows, n_columns + 1), dtype=np.uint32)
        matrix[:, :n_columns] = self.rows[:, :n_columns]
        return matrix

    def number(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
        """The numbers of some of these rows, by which their payload is found."""
        return rows.astype(np.uint32) if self.numbers is None else self.numbers[rows]


class Work(Protocol[D_co]):
    """What is done with a part that fits in memory. It can be pickled."""

    def __call__(self, part: Loaded) -> D_co: ...


class Engine(Protocol):
    """Where the rows live."""

    @property
    def room(self) -> Room: ...

    def gather(self, rows: Rows, asked: Asked[A], *, stage: str = "") -> list[A]:
        """One pass: the answer of each plan. ``stage`` names the pass for those who are told of progress."""

    def divide(self, rows: Rows, places: Places, *, also: Asked[A] = NOTHING, stage: str = "") -> Divided[A]:
        """One pass: the rows of each part, in the order that they had, and what is gathered ``also``.

        The undivided rows stay until they are discarded.
        """

    def finish(self, parts: Iterable[Rows], work: Work[D]) -> Iterator[D]:
        """Do the work on each part, in their order. A part that is done is gone."""

    def load(self, rows: Rows, *, payload: bool = True) -> Loaded:
        """Rows that fit in memory, all at once."""

    def keep(self, rows: Rows, *, payload: bool = True) -> Rows:
        """The same rows, to be read often: the first pass keeps them as codes. Without ``payload`` these are all."""

    def join(self, parts: Sequence[Rows]) -> Rows:
        """The rows of several parts as those of one."""

    def discard(self, rows: Rows) -> None:
        """Nobody will read these rows again."""


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
    "Room",
    "Rows",
    "State",
    "Work",
]
