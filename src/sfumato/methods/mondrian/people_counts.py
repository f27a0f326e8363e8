"""People of parts of a node, counted where its rows are not at hand.

Rows are counted by keys: a number for each person, or pair of person and value, with the part behind it. Keys that were
met in several blocks are one key once they are added up, so blocks may divide a person's rows as they like. Parts may be
joined afterwards: whoever is in several of them is still one person.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.counts import Counts
from sfumato.engines.protocol import Block
from sfumato.errors import InputError
from sfumato.kernels.axes import NO_NUMBER
from sfumato.methods.mondrian.allowances import pays
from sfumato.methods.mondrian.kernels.problem import Leaving, Rules, SensitiveRules, table, work_of
from sfumato.methods.mondrian.kernels.statistics import fill_holds
from sfumato.table.combinations import LARGEST_KEY
from sfumato.table.spill import Spill

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

BYTES_PER_KEY = 16
"""Memory for the key of a row."""

MORE_AT_ONCE, MOST_AT_ONCE = 8, 64
"""One candidate is counted first, then eight times as many each time that none of them is allowable."""


class AxisParts(NamedTuple):
    """Parts of a node by its codes on an axis: those up to ``edges[j]`` and above the edge before are in ``part[j]``."""

    axis: int
    edges: Ints  # ascending
    part: Ints  # (edges + 1,) -1: in none that is asked for

    @property
    def n_parts(self) -> int:
        return int(self.part.max(initial=0)) + 1

    @classmethod
    def whole(cls) -> AxisParts:
        """All rows as one part."""
        return cls(0, np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class PeoplePlan:
    """Count the people, and the pairs of person and value, in parts of a node.

    greatest   the greatest code of each column of the row matrix
    n_rows     of the node
    """

    rules: Rules
    greatest: Sequence[int]
    n_rows: int
    asked: Sequence[AxisParts]

    @property
    def n_bytes(self) -> int:
        """Memory in which no key goes to a file."""
        return BYTES_PER_KEY * self.n_rows * len(self.asked) * len(self.columns)

    @property
    def columns(self) -> list[int | None]:
        """What is counted with people: nothing, and each column of values or numbers."""
        sensitive = self.rules.sensitive
        assert sensitive is not None
        return [None, *sensitive.values["column"].tolist(), *sensitive.variance["column"].tolist()]

    def n_codes(self, column: int | None) -> int:
        return 1 if column is None else int(self.greatest[column]) + 1

    def new(self, room: int, spill: Spill | None) -> PeopleStatistics:
        """Nobody yet."""
        return PeopleStatistics(self, room, spill)

    def answer(self, state: PeopleStatistics) -> PeopleStatistics:
        """The counts themselves."""
        return state


class PeopleStatistics:
    """The state of a ``PeoplePlan``."""

    def __init__(self, plan: PeoplePlan, room: int, spill: Spill | None) -> None:
        self.plan, self.rules = plan, plan.rules
        sensitive = plan.rules.sensitive
        assert sensitive is not None
        assert sensitive.people is not None
        self.sensitive, self.people = sensitive, sensitive.people
        n_people = int(plan.greatest[self.people.column]) + 1
        share = min(room // max(1, len(plan.asked) * len(plan.columns)), BYTES_PER_KEY * plan.n_rows)
        self.counts: list[list[Counts]] = []
        for parts in plan.asked:
            n_keys = [n_people * plan.n_codes(column) * parts.n_parts for column in plan.columns]
            if max(n_keys) >= LARGEST_KEY:
                raise InputError(
                    f"{n_people:,} people with so many different sensitive numbers cannot be told apart; publish fewer "
                    "people, or round the numbers."
                )
            self.counts.append([Counts.new(n, room=share, spill=spill) for n in n_keys])

    def add(self, block: Block) -> None:
        """Add some rows of the node."""
        rows = block.rows
        person = rows[:, self.people.column].astype(np.int64)
        for parts, counts in zip(self.plan.asked, self.counts, strict=True):
            part = parts.part[np.searchsorted(parts.edges, rows[:, parts.axis], side="left")]
            chosen = np.flatnonzero(part >= 0)
            for column, own in zip(self.plan.columns, counts, strict=True):
                unit = person[chosen]
                if column is not None:
                    unit = unit * self.plan.n_codes(column) + rows[chosen, column]
                own.add((unit * parts.n_parts + part[chosen]).astype(np.uint64))

    def merge(self, other: PeopleStatistics) -> None:
        """Add the rows of another state."""
        for mine, theirs in zip(self.counts, other.counts, strict=True):
            for own, more in zip(mine, theirs, strict=True):
                own.merge(more)

    def discard(self) -> None:
        """Nobody will look at them again."""
        for counts in self.counts:
            for own in counts:
                own.discard()

    def describe(self, number: int, group_of: Ints | None = None) -> PartsOfPeople:
        """What is known of the parts that were asked for as number so many.

        group_of   joins parts to groups, -1: none; None: each is one
        """
        parts, counts = self.plan.asked[number], self.counts[number]
        groups = np.arange(parts.n_parts) if group_of is None else group_of
        n = int(groups.max(initial=0)) + 1
        found = PartsOfPeople(
            np.zeros(n, dtype=np.int64),
            np.zeros((n, self.sensitive.n_values), dtype=np.int64),
            np.zeros((n, len(self.sensitive.variance), 4), dtype=np.int64),
        )
        people, *others = counts
        for group, _ in self._walk(people, groups, parts.n_parts, 1):
            found.n_people[:] += np.bincount(group, minlength=n)
        n_values = len(self.sensitive.values)
        for s, own in enumerate(others[:n_values]):
            start = int(self.sensitive.values["start"][s])
            for group, code in self._walk(
                own, groups, parts.n_parts, self.plan.n_codes(self.plan.columns[1 + s])
            ):
                np.add.at(found.values, (group, start + code), 1)
        for r, own in enumerate(others[n_values:]):
            n_codes = self.plan.n_codes(self.plan.columns[1 + n_values + r])
            for group, code in self._walk(own, groups, parts.n_parts, n_codes):
                _add_moments(found.moments[:, r], group, code)
        return found

    def count(self, number: int, parts: Flags) -> int:
        """The people of some of the parts that were asked for as number so many, together."""
        asked = self.plan.asked[number]
        group_of = np.where(parts, 0, -1)
        walked = self._walk(self.counts[number][0], group_of, asked.n_parts, 1)
        return sum(len(group) for group, _ in walked)

    @staticmethod
    def _walk(counts: Counts, group_of: Ints, n_parts: int, n_codes: int) -> Iterator[tuple[Ints, Ints]]:
        """The group and the code of each person, or pair, some at a time: once in each group."""
        for keys, _ in counts.chunks(together=n_parts):
            unit, part = np.divmod(keys.astype(np.int64), n_parts)
            group = group_of[part]
            unit, group = unit[group >= 0], group[group >= 0]
            is_new = np.ones(len(unit), dtype=np.bool_)
            order = np.lexsort((group, unit))
            unit, group = unit[order], group[order]
            is_new[1:] = (unit[1:] != unit[:-1]) | (group[1:] != group[:-1])
            yield group[is_new], unit[is_new] % n_codes


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


class Standing(NamedTuple):
    """Which children satisfy the requirement alone, and do the others together, if there are any?

    ``may_go``: have these few enough people to be left out, as far as people count?
    """

    stands: Flags
    rest_holds: bool
    may_go: bool = True


class Candidate(NamedTuple):
    """A split that may be taken: its parts, and the rows of each; no parts if it is known that they hold.

    leaves    the last part is left out, and so its people must be few
    leaving   parts that fail may be left out if that pays; which of them stand is written there
    """

    parts: AxisParts | None
    sizes: Ints
    leaves: bool = False
    leaving: Leaving | None = None


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
        if not self.are_told_by_rows(one.sizes):
            return False
        if one.leaving is not None:
            one.leaving.stands[:] = True
        return True

    def holds(self, one: Candidate, found: PeopleStatistics, number: int) -> bool:
        """Is a candidate allowable, by the people of its parts?"""
        told = found.describe(number)
        alone = told.hold(self.rules)
        if one.leaves:
            return bool(alone[:-1].all()) and int(told.n_people[-1]) <= self.most_people
        if one.leaving is None:
            return bool(alone.all())
        one.leaving.stands[:] = alone
        if alone.all():
            return True
        return pays(one.leaving, one.sizes) and found.count(number, ~alone) <= self.most_people

    def first_that_holds(
        self, candidates: Sequence[Candidate]
    ) -> Generator[PeoplePlan, PeopleStatistics, int | None]:
        """The place of the first candidate whose parts all satisfy the requirement; None if there is none."""
        at, n = 0, 1
        while at < len(candidates):
            some = candidates[at : at + n]
            asked: list[AxisParts] = []
            for one in some:  # up to the first that is known to hold
                if one.parts is None or self.is_known_to_hold(one):
                    break
                asked.append(one.parts)
            if asked:
                found = yield self.plan(asked)
                first = next((i for i in range(len(asked)) if self.holds(some[i], found, i)), None)
                found.discard()
                if first is not None:
                    return at + first
            if len(asked) < len(some):
                return at + len(asked)
            at, n = at + n, min(MORE_AT_ONCE * n, MOST_AT_ONCE)
        return None

    def plan(self, asked: Sequence[AxisParts]) -> PeoplePlan:
        """Count the people in these parts."""
        return PeoplePlan(self.rules, self.greatest, self.n_rows, asked)

    def plan_of_people(self, parts: AxisParts) -> PeoplePlan:
        """Count nothing but the people in these parts."""
        sensitive = self.rules.sensitive
        assert sensitive is not None
        none = sensitive._replace(values=sensitive.values[:0], variance=sensitive.variance[:0])
        return PeoplePlan(self.rules._replace(sensitive=none), self.greatest, self.n_rows, [parts])

    def find_standing(
        self, children: Sequence[tuple[AxisParts, Ints]]
    ) -> Generator[PeoplePlan, PeopleStatistics, list[Standing]]:
        """Which children of each axis satisfy the requirement.

        children   of each axis, the part of each child being its place, and their rows
        """
        stands: list[Standing | None] = [
            Standing(np.ones(len(rows), dtype=np.bool_), True) if self.are_told_by_rows(rows) else None
            for _, rows in children
        ]
        open_ones = [i for i, own in enumerate(stands) if own is None]
        if open_ones:
            asked = [children[i][0] for i in open_ones]
            found = yield self.plan(asked)
            for number, i in enumerate(open_ones):
                alone = found.describe(number).hold(self.rules)
                if alone.all():
                    stands[i] = Standing(alone, True)
                    continue
                rest = found.describe(number, np.where(alone, -1, 0))
                stands[i] = Standing(
                    alone, bool(rest.hold(self.rules)[0]), int(rest.n_people[0]) <= self.most_people
                )
            found.discard()
        return [own for own in stands if own is not None]
