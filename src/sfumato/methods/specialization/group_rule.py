"""What the groups of a grid must satisfy, and how much may be left out so that they do.

A group with fewer than k rows, or people, is left out of the release. A grid is valid if all its groups that are left
out have no more rows than may be, and no more people; each person counts once, wherever their rows are. Groups only
ever get smaller, so a grid that is not valid never becomes valid by further cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Codes
from sfumato.encoding.targets import Columns
from sfumato.engines.protocol import Asked, Block, Engine, Rows
from sfumato.methods.people_keys import BYTES_PER_KEY, PeopleKeys, rows_with_enough_people
from sfumato.methods.specialization.mesh import CellCounts
from sfumato.methods.whole_table import check_whole_table
from sfumato.policy.document import Policy
from sfumato.policy.requirements import KAnonymity
from sfumato.table.spill import Spill

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_AT_ONCE = 64
"""Candidates whose people are counted in one pass."""


@dataclass(frozen=True, slots=True)
class GroupRule:
    """At least k rows, or people, in every group that is published.

    person     where the number of a row's person stands; None: rows count
    enough     any so many rows have k people
    most_rows, most_people  that may be left out
    n_rows, n_people        of the table
    """

    k: int
    n_rows: int
    person: int | None = None
    n_people: int = 0
    enough: int = 0
    most_rows: int = 0
    most_people: int = 0

    @classmethod
    def of(cls, policy: Policy, columns: Columns, *, keeps_all: bool) -> GroupRule:
        """The largest k that is required; raises if the whole table has fewer rows, or people."""
        k = 1
        for requirement in policy.requirements:
            assert isinstance(requirement, KAnonymity)  # the policy admits no other
            check_whole_table(requirement, columns)
            k = max(k, requirement.k)
        share = 0 if keeps_all or policy.suppress is None else policy.suppress.at_most
        person, n_rows, n_people = columns.person, columns.n_rows, columns.n_people
        return cls(
            k,
            n_rows,
            None if person is None else columns.place(person),
            n_people,
            k if person is None else rows_with_enough_people(columns.count(person), k),
            int(share * n_rows),
            int(share * n_people),
        )

    @property
    def leaves_rows_out(self) -> bool:
        """May any group be left out?"""
        return self.k > 1 and self.most_rows > 0

    @property
    def fewest_rows(self) -> int:
        """A part with fewer rows makes its candidate invalid."""
        return 1 if self.leaves_rows_out else self.k

    @property
    def is_told_by_rows(self) -> bool:
        """Is a grid valid if no group has fewer rows than ``fewest_rows``?"""
        return self.k == 1 or (self.person is None and not self.leaves_rows_out)

    def clip(self, least: Any) -> Any:
        """The rows of the smallest group, one that is left out counting as k."""
        return np.maximum(least, self.k) if self.leaves_rows_out else least

    def may_leave_out(self, n_rows: int, n_people: int) -> bool:
        """May so many rows, and people, be left out? Some must stay."""
        return n_rows <= self.most_rows and n_people <= self.most_people and n_rows < self.n_rows

    def check_parts(
        self, parts: Sequence[Parts], count: CountPeople | None, note: Flags | None = None
    ) -> list[CheckedParts]:
        """Which of these parts fail, and what is left out with them; ``note`` marks whose rows these are."""
        fails = [own.size < self.k for own in parts]
        if count is None:
            return [CheckedParts(own, failing, 0) for own, failing in zip(parts, fails, strict=True)]
        counted = [
            (own.size < self.enough) & (True if self.leaves_rows_out else ~failing)
            for own, failing in zip(parts, fails, strict=True)
        ]
        asked = [own.only(is_counted) for own, is_counted in zip(parts, counted, strict=True)]
        if not any(len(own.rows) for own in asked):
            return [CheckedParts(own, failing, 0) for own, failing in zip(parts, fails, strict=True)]
        found = []
        for own, failing, is_counted, keys in zip(parts, fails, counted, count(asked), strict=True):
            at = np.flatnonzero(is_counted)
            failing[at] |= keys.count()[: len(at)] < self.k
            out = np.where(np.append(failing[at], True), 0, -1)  # with those that are left out already
            found.append(
                CheckedParts(own, failing, int(keys.count(out).sum()) if self.leaves_rows_out else 0)
            )
            if note is not None:
                for _, person in keys.walk(out):
                    note[person] = True
            keys.discard()
        return found


class Parts(NamedTuple):
    """Rows in parts: those that stand, and apart from them those that are ``gone``, left out already.

    rows    the places of rows, or of cells that stand for rows
    part    the part of each of them
    size    the rows of each part
    gone    the places of what is left out already
    n_gone  its rows
    """

    rows: NDArray[np.integer]
    part: Ints
    size: Ints
    gone: NDArray[np.integer]
    n_gone: int

    @property
    def n(self) -> int:
        """How many people are counted in: one for each part, and one for all that are gone."""
        return len(self.size) + 1

    def only(self, is_kept: Flags) -> Parts:
        """Some of the parts, numbered anew, with all that is gone."""
        number = np.where(is_kept, np.cumsum(is_kept) - 1, -1)[self.part]
        at = number >= 0
        return Parts(self.rows[at], number[at], self.size[is_kept], self.gone, self.n_gone)


class CheckedParts(NamedTuple):
    """What becomes of parts: which of them fail, and the people with a row that is left out."""

    parts: Parts
    fails: Flags
    n_people: int

    def holds(self, rule: GroupRule) -> bool:
        """Do all parts satisfy the rule, but for what may be left out?"""
        return not self.fails.any() or rule.may_leave_out(self.n_rows, self.n_people)

    @property
    def n_rows(self) -> int:
        """How many rows are left out."""
        return self.parts.n_gone + int(self.parts.size[self.fails].sum())

    def failing(self) -> NDArray[np.integer]:
        """The places of what is left out by these parts."""
        return self.parts.rows[self.fails[self.parts.part]]


class CountPeople(Protocol):
    """Counts the people of several divisions of the rows at once; what is gone is the last part of each."""

    def __call__(self, asked: Sequence[Parts]) -> list[PeopleKeys]: ...


@dataclass(frozen=True, slots=True, eq=False)
class HeldPeople:
    """People of rows in memory: ``person`` is that of each row."""

    person: Codes
    n_people: int

    def __call__(self, asked: Sequence[Parts]) -> list[PeopleKeys]:
        found = []
        for parts in asked:
            room = BYTES_PER_KEY * (len(parts.rows) + len(parts.gone))
            keys = PeopleKeys(self.n_people, parts.n, room=room, spill=None)
            keys.add(self.person[parts.rows], parts.part)
            keys.add(self.person[parts.gone], np.full(len(parts.gone), parts.n - 1))
            found.append(keys)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class CellPeople:
    """People of rows that are not at hand, by the cells that were counted of them: one pass."""

    engine: Engine
    rows: Rows
    counts: CellCounts
    rule: GroupRule

    def __call__(self, asked: Sequence[Parts]) -> list[PeopleKeys]:
        part_of_cell, n_bytes = [], 0
        for parts in asked:
            part = np.full(self.counts.n + 1, -1, dtype=np.int64)  # a cell that is not counted is the last
            part[parts.rows] = parts.part
            part[parts.gone] = parts.n - 1
            part_of_cell.append(part)
            n_bytes += BYTES_PER_KEY * (int(parts.size.sum()) + parts.n_gone)
        assert self.rule.person is not None
        plan = CellPeoplePlan(
            self.counts,
            part_of_cell,
            [parts.n for parts in asked],
            self.rule.person,
            self.rule.n_people,
            n_bytes,
        )
        (found,) = self.engine.gather(self.rows, Asked([plan]))
        return found.keys


@dataclass(frozen=True, slots=True, eq=False)
class CellPeoplePlan:
    """Gather the people of parts that are made of cells, for several divisions into parts.

    part_of_cell   the part of each cell that was counted, and then of all others, -1: none
    """

    counts: CellCounts
    part_of_cell: Sequence[Ints]
    n_parts: Sequence[int]
    person: int
    n_people: int
    n_bytes: int

    def new(self, room: int, spill: Spill | None) -> CellPeopleState:
        return CellPeopleState(self, room, spill)

    def answer(self, state: CellPeopleState) -> CellPeopleState:
        """The counts themselves."""
        return state


class CellPeopleState:
    """The state of a ``CellPeoplePlan``."""

    def __init__(self, plan: CellPeoplePlan, room: int, spill: Spill | None) -> None:
        self.plan = plan
        share = min(room, plan.n_bytes) // len(plan.n_parts)
        self.keys = [PeopleKeys(plan.n_people, n, room=share, spill=spill) for n in plan.n_parts]

    def add(self, block: Block) -> None:
        """Add some rows."""
        plan = self.plan
        cell = plan.counts.find(plan.counts.mesh.cells(block.rows))  # -1: the last
        person = block.rows[:, plan.person]
        for part_of_cell, keys in zip(plan.part_of_cell, self.keys, strict=True):
            part = part_of_cell[cell]
            at = np.flatnonzero(part >= 0)
            keys.add(person[at], part[at])

    def merge(self, other: CellPeopleState) -> None:
        """Add the rows of another state."""
        for own, more in zip(self.keys, other.keys, strict=True):
            own.merge(more)
