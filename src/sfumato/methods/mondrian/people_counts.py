"""People of parts of a node, counted by keys where its rows are not at hand (``people_keys``).

A plan answers with what these keys tell of the parts, so that they can stay where they were merged.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.memory_plan import share_room
from sfumato.engines.protocol import Block
from sfumato.errors import InputError
from sfumato.kernels.axes import NO_NUMBER
from sfumato.methods.mondrian.allowances import pays
from sfumato.methods.mondrian.kernels.problem import Leaving, Rules, SensitiveRules, table, work_of
from sfumato.methods.mondrian.kernels.statistics import fill_holds
from sfumato.methods.people_keys import BYTES_PER_KEY, PeopleKeys
from sfumato.table.combinations import LARGEST_KEY
from sfumato.table.spill import Spill

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MORE_AT_ONCE, MOST_AT_ONCE = 8, 64
"""One candidate is counted first, then eight times as many each time that none of them is allowable."""


class Parts(Protocol):
    """Parts of a node, numbered from 0."""

    @property
    def n_parts(self) -> int:
        """How many there are."""

    def of(self, rows: Codes) -> Ints:
        """The part of each row, -1: in none that is asked for."""


class AxisParts(NamedTuple):
    """Parts of a node by its codes on an axis: those up to ``edges[j]`` and above the edge before are in ``part[j]``."""

    axis: int
    edges: Ints  # ascending
    part: Ints  # (edges + 1,) -1: in none that is asked for

    @property
    def n_parts(self) -> int:
        return int(self.part.max(initial=0)) + 1

    def of(self, rows: Codes) -> Ints:
        """The part of each row."""
        return self.part[np.searchsorted(self.edges, rows[:, self.axis], side="left")]

    @classmethod
    def whole(cls) -> AxisParts:
        """All rows as one part."""
        return cls(0, np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class PeoplePlan:
    """Count the people, and the pairs of person and value, in parts of a node.

    greatest   the greatest code of each column of the row matrix
    n_rows     of the node
    """

    rules: Rules
    greatest: Sequence[int]
    n_rows: int
    asked: Sequence[Parts]

    @property
    def n_bytes(self) -> int:
        """Memory in which no key goes to a file."""
        return sum(map(self.bytes_of, self.key_ends))

    def bytes_of(self, n_keys: int) -> int:
        """Memory for keys below ``n_keys``: a table with a flag of each, or the key of each row."""
        return min(n_keys, BYTES_PER_KEY * self.n_rows)

    @property
    def columns(self) -> list[int | None]:
        """What is counted with people: nothing, and each column of values or numbers."""
        sensitive = self.rules.sensitive
        assert sensitive is not None
        return [None, *sensitive.values["column"].tolist(), *sensitive.variance["column"].tolist()]

    def n_codes(self, column: int | None) -> int:
        return 1 if column is None else int(self.greatest[column]) + 1

    @property
    def key_ends(self) -> list[int]:
        """One more than the greatest key, of each of the ``columns`` for each of the parts that are asked for."""
        ends = [n * parts.n_parts for parts, n in product(self.asked, self.n_units)]
        if max(ends) >= LARGEST_KEY:
            raise InputError(
                f"{self.n_people:,} people with so many different sensitive numbers cannot be told apart; publish fewer "
                "people, or round the numbers."
            )
        return ends

    @property
    def n_units(self) -> list[int]:
        """How many different people, or pairs of person and value, there may be: of each of the ``columns``."""
        return [self.n_people * self.n_codes(column) for column in self.columns]

    @property
    def n_people(self) -> int:
        sensitive = self.rules.sensitive
        assert sensitive is not None
        assert sensitive.people is not None
        return int(self.greatest[sensitive.people.column]) + 1

    def new(self, room: int, spill: Spill | None) -> PeopleStatistics:
        """Nobody yet."""
        return PeopleStatistics(self, room, spill)

    def answer(self, state: PeopleStatistics) -> Any:
        """What is told of the parts, once all rows have been added; the state is of no more use then."""
        told = self.tell(state)
        state.discard()
        return told

    def tell(self, state: PeopleStatistics) -> Any:
        """The counts of the parts that were asked for first."""
        return state.describe(0)


class FirstThatHolds(NamedTuple):
    """The place of a candidate, and which of its parts satisfy the requirement alone."""

    place: int
    stands: Flags


@dataclass(frozen=True, eq=False)
class FirstPlan(PeoplePlan):
    """Find the first of some candidates that is allowable, None if there is none.

    most_people   people who may have a row left out
    """

    candidates: Sequence[Candidate]
    most_people: int

    def tell(self, state: PeopleStatistics) -> FirstThatHolds | None:
        for place, one in enumerate(self.candidates):
            told = state.describe(place)
            alone = told.hold(self.rules)
            if self._is_allowable(one, told, alone, partial(state.describe, place)):
                return FirstThatHolds(place, alone)
        return None

    def _is_allowable(
        self, one: Candidate, told: PartsOfPeople, alone: Flags, join: Callable[[Ints], PartsOfPeople]
    ) -> bool:
        """Is a candidate allowable, of whose parts this is known?"""
        if one.leaves:
            return bool(alone[:-1].all()) and int(told.n_people[-1]) <= self.most_people
        if one.leaving is None or alone.all():
            return bool(alone.all())
        if not pays(one.leaving, one.sizes, alone):
            return False
        return int(join(np.where(alone, -1, 0)).n_people[0]) <= self.most_people


@dataclass(frozen=True, eq=False)
class StandingPlan(PeoplePlan):
    """Find which parts satisfy the requirement alone, and whether the others do together, if there are any.

    most_people   people who may have a row left out
    """

    most_people: int

    def tell(self, state: PeopleStatistics) -> list[Standing]:
        return [self._tell_one(state, number) for number in range(len(self.asked))]

    def _tell_one(self, state: PeopleStatistics, number: int) -> Standing:
        alone = state.describe(number).hold(self.rules)
        if alone.all():
            return Standing(alone, rest_holds=True)
        rest = state.describe(number, np.where(alone, -1, 0))
        may_go = int(rest.n_people[0]) <= self.most_people
        return Standing(alone, bool(rest.hold(self.rules)[0]), may_go)


class Standing(NamedTuple):
    """Which parts satisfy the requirement alone, and do the others together, if there are any?

    ``may_go``: have these few enough people to be left out, as far as people count?
    """

    alone: Flags
    rest_holds: bool
    may_go: bool = True


class PeopleStatistics:
    """The state of a ``PeoplePlan``."""

    def __init__(self, plan: PeoplePlan, room: int, spill: Spill | None) -> None:
        self.plan = plan
        sensitive = plan.rules.sensitive
        assert sensitive is not None
        assert sensitive.people is not None
        self.sensitive, self.people = sensitive, sensitive.people
        ends = plan.key_ends
        wanted = [plan.bytes_of(end) for end in ends]
        rooms = iter(map(min, share_room(wanted, room), wanted))
        self.keys = [
            [PeopleKeys(n, parts.n_parts, room=next(rooms), spill=spill) for n in plan.n_units]
            for parts in plan.asked
        ]

    def add(self, block: Block) -> None:
        """Add some rows of the node."""
        rows = block.rows
        person = rows[:, self.people.column].astype(np.int64)
        for parts, keys in zip(self.plan.asked, self.keys, strict=True):
            part = parts.of(rows)
            chosen = np.flatnonzero(part >= 0)
            for column, own in zip(self.plan.columns, keys, strict=True):
                unit = person[chosen]
                if column is not None:
                    unit = unit * self.plan.n_codes(column) + rows[chosen, column]
                own.add(unit, part[chosen])

    def merge(self, other: PeopleStatistics) -> None:
        """Add the rows of another state."""
        for mine, theirs in zip(self.keys, other.keys, strict=True):
            for own, more in zip(mine, theirs, strict=True):
                own.merge(more)

    def discard(self) -> None:
        """Nobody will look at them again."""
        for keys in self.keys:
            for own in keys:
                own.discard()

    def describe(self, number: int, group_of: Ints | None = None) -> PartsOfPeople:
        """What is known of the parts that were asked for as number so many.

        group_of   joins parts to groups, -1: none; None: each is one
        """
        people, *others = self.keys[number]
        n_people = people.count(group_of)
        n = len(n_people)
        found = PartsOfPeople(
            n_people,
            np.zeros((n, self.sensitive.n_values), dtype=np.int64),
            np.zeros((n, len(self.sensitive.variance), 4), dtype=np.int64),
        )
        n_values = len(self.sensitive.values)
        columns = self.plan.columns[1:]
        for s, own in enumerate(others):
            n_codes = self.plan.n_codes(columns[s])
            for group, pair in own.walk(group_of):
                code = pair % n_codes
                if s < n_values:
                    np.add.at(found.values, (group, int(self.sensitive.values["start"][s]) + code), 1)
                else:
                    _add_moments(found.moments[:, s - n_values], group, code)
        return found


def _add_moments(moments: Ints, group: Ints, code: Ints) -> None:
    """Add numbers to the moments of their groups, see ``kernels.statistics.add_rows``."""
    is_number = code != NO_NUMBER
    group, number = group[is_number], code[is_number]
    square = number.astype(np.uint64) ** np.uint64(2)
    for word, more in enumerate(
        (np.ones_like(number), number, (square >> np.uint64(32)).astype(np.int64),
         (square & np.uint64(0xFFFFFFFF)).astype(np.int64))
    ):  # fmt: skip
        np.add.at(moments[:, word], group, more)


@dataclass(frozen=True, slots=True, eq=False)
class PartsOfPeople:
    """What the requirement must know of parts: people, pairs of each value, and moments of the pairs' numbers."""

    n_people: Ints
    values: Ints
    moments: Ints

    def hold(self, rules: Rules) -> Flags:
        """Which parts satisfy the requirement; one without people does not."""
        sensitive = rules.sensitive
        assert sensitive is not None
        assert sensitive.people is not None
        holds = (self.n_people >= sensitive.people.least) & (self.n_people > 0)
        for n, own in self._one_by_one(sensitive):
            out = np.zeros(len(n), dtype=np.bool_)
            fill_holds(n, self.values, self.moments, Rules(1, 1, own), work_of(own), out)
            holds &= out
        return holds

    def _one_by_one(self, sensitive: SensitiveRules) -> Iterator[tuple[Ints, SensitiveRules]]:
        """The rules of each sensitive attribute with its number of pairs, then those of numbers."""
        of_values = {
            name: getattr(sensitive, name) for name in ("distinct", "closeness", "entropy", "recursive")
        }
        none: dict[str, Any] = {name: table(rules.dtype, []) for name, rules in of_values.items()}
        no_number = table(sensitive.variance.dtype, [])
        for s, (_, start, end) in enumerate(sensitive.values.tolist()):
            own: dict[str, Any] = {
                name: rules[rules["of"] == s].view(np.recarray) for name, rules in of_values.items()
            }
            n = self.values[:, start:end].sum(axis=1)
            yield n, sensitive._replace(people=None, variance=no_number, **own)
        if len(sensitive.variance):
            yield self.n_people, sensitive._replace(people=None, **none)


class Candidate(NamedTuple):
    """A split that may be taken: its parts, and the rows of each; no parts if it is known that they hold.

    leaves    the last part is left out, and so its people must be few
    leaving   parts that fail may be left out if that pays
    """

    parts: AxisParts | None
    sizes: Ints
    leaves: bool = False
    leaving: Leaving | None = None

    def note(self, stands: Flags) -> None:
        """Write down which parts stay, where some need not."""
        if self.leaving is not None:
            self.leaving.stands[:] = stands


@dataclass(frozen=True, slots=True, eq=False)
class PeopleAsker:
    """Decides whether the parts of a node satisfy the requirement by their people, and asks for as little as it can."""

    rules: Rules
    greatest: Sequence[int]
    n_rows: int
    most_people: int = 0
    """People who may have a row left out."""

    def are_told_by_rows(self, sizes: Ints) -> bool:
        """Do parts of so many rows each satisfy the requirement, whoever is in them? No parts do."""
        if len(sizes) == 0:
            return True
        sensitive = self.rules.sensitive
        assert sensitive is not None
        assert sensitive.people is not None
        counts_values = len(sensitive.values) or len(sensitive.variance)
        return not counts_values and bool(np.all(sizes >= sensitive.people.enough))

    def is_known_to_hold(self, one: Candidate) -> bool:
        """Is a candidate allowable, as far as its rows tell?"""
        if one.parts is None:
            return True
        if one.leaves:
            return int(one.sizes[-1]) <= self.most_people and self.are_told_by_rows(one.sizes[:-1])
        return self.are_told_by_rows(one.sizes)

    def first_that_holds(self, candidates: Sequence[Candidate]) -> Generator[PeoplePlan, Any, int | None]:
        """The place of the first candidate that is allowable by its people; None if there is none."""
        """The place of the first candidate whose parts all satisfy the requirement; None if there is none."""
        at, n = 0, 1
        while at < len(candidates):
            some = candidates[at : at + n]
            known = next((i for i, one in enumerate(some) if self.is_known_to_hold(one)), len(some))
            found = (yield self._plan_first(some[:known])) if known else None
            if found is not None:
                some[found.place].note(found.stands)
                return at + int(found.place)
            if known < len(some):
                some[known].note(np.ones(len(some[known].sizes), dtype=np.bool_))
                return at + known
            at, n = at + n, min(MORE_AT_ONCE * n, MOST_AT_ONCE)
        return None

    def _plan_first(self, some: Sequence[Candidate]) -> FirstPlan:
        asked = [one.parts for one in some if one.parts is not None]
        return FirstPlan(self.rules, self.greatest, self.n_rows, asked, some, self.most_people)

    def plan(self, asked: Parts) -> PeoplePlan:
        """Count the people in these parts."""
        return PeoplePlan(self.rules, self.greatest, self.n_rows, [asked])

    def plan_of_people(self, parts: AxisParts) -> PeoplePlan:
        """Count nothing but the people in these parts."""
        sensitive = self.rules.sensitive
        assert sensitive is not None
        none = sensitive._replace(values=sensitive.values[:0], variance=sensitive.variance[:0])
        return PeoplePlan(self.rules._replace(sensitive=none), self.greatest, self.n_rows, [parts])

    def find_standing(
        self, children: Sequence[tuple[AxisParts, Ints]]
    ) -> Generator[PeoplePlan, Any, list[Standing]]:
        """For each axis: which children satisfy the requirement alone, and do the others together?

        children   of each axis, the part of each child being its place, and their rows
        """
        told = [self.are_told_by_rows(rows) for _, rows in children]
        asked = [parts for (parts, _), is_told in zip(children, told, strict=True) if not is_told]
        found: list[Standing] = []
        if asked:
            found = yield StandingPlan(self.rules, self.greatest, self.n_rows, asked, self.most_people)
        counted = iter(found)
        return [
            Standing(np.ones(len(rows), dtype=np.bool_), rest_holds=True) if is_told else next(counted)
            for (_, rows), is_told in zip(children, told, strict=True)
        ]
