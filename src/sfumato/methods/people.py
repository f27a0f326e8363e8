"""People of finished groups, counted by sorting: a second opinion on what kernels have decided.

A person counts once in a group, and once for each of its values there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.targets import Columns, Label, sensitive_column
from sfumato.engines.protocol import Loaded
from sfumato.errors import PromiseError
from sfumato.kernels.axes import NO_NUMBER
from sfumato.policy.requirements import GroupStats, Reference, Requirement
from sfumato.recoding.recoder import Partition
from sfumato.release.certificate import RiskClaim, SmallGroups
from sfumato.table.combinations import number_combinations

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]

NO_COUNTS: Mapping[str, Ints] = {}
NOBODY = np.zeros(0, dtype=np.uint32)
CELLS_AT_ONCE = 1 << 18
"""Groups times values whose counts are looked at in one go."""


class CountedPeople(NamedTuple):
    """What groups of people reach: how many people there are, how many groups, and the figure of the worst of them."""

    n_people: int
    n_groups: int
    achieved: tuple[float, ...]
    """For each requirement."""
    risk: RiskClaim
    """Of people, each of whom counts once in every group with a row of theirs."""


class ReachedFigures(NamedTuple):
    """The figure of the worst of so many groups, for each requirement, and how many people they have."""

    achieved: tuple[float, ...]
    n_groups: int
    small: SmallGroups
    n_pairs: int
    left_out: Codes = NOBODY
    """Whose each row is that was left out beside them."""

    @classmethod
    def of(cls, achieved: tuple[float, ...], people: Ints, left_out: Codes = NOBODY) -> Self:
        """Of groups with so many people."""
        return cls(achieved, len(people), SmallGroups.of(people), int(people.sum()), left_out)


class _Asked(NamedTuple):
    """A requirement, and how its column is coded: its place, its number of codes, and the unit of a number."""

    requirement: Requirement
    column: int | None
    n_values: int = 0
    reference: Reference | None = None
    unit: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class PeopleMeter:
    """What is needed of a table to count the people of its groups; ``person`` is the place of the person's code."""

    person: int
    n_people: int
    asked: tuple[_Asked, ...]

    @classmethod
    def of(
        cls, columns: Columns, requirements: Sequence[Requirement], published: Mapping[str, Ints] = NO_COUNTS
    ) -> Self | None:
        """None if groups count rows.

        published   how many pairs of each sensitive value are published, where that is not as in the whole table
        """
        if columns.person is None:
            return None
        asked = tuple(_ask(item, columns, published) for item in requirements)
        return cls(columns.place(columns.person), columns.n_people, asked)

    def look_at(self, part: Loaded) -> PeopleCells:
        """The people and the sensitive values of rows, before somebody takes these away to find their groups."""
        places = {self.person, *(one.column for one in self.asked if one.column is not None)}
        return PeopleCells({place: part.rows[:, place].copy() for place in places}, part.numbers)

    def measure(self, cells: PeopleCells, groups: Partition) -> ReachedFigures:
        """What the worst of these groups reach."""
        rows = cells.find(groups)
        group = np.repeat(np.arange(len(groups.size)), groups.size)
        person = cells.codes[self.person][rows]
        achieved = tuple(_measure(one, group, person, cells.codes, rows) for one in self.asked)
        first = number_combinations([group, person], in_order=False).first_rows()
        n_people = np.bincount(group[first], minlength=len(groups.size))
        everyone = cells.codes[self.person]
        left_out = NOBODY if len(rows) == len(everyone) else np.delete(everyone, rows)
        return ReachedFigures.of(achieved, n_people, left_out)

    def measure_counts(self, n_people: Ints, values: Ints, moments: Ints) -> tuple[float, ...]:
        """What one group reaches: its people, its pairs by value, and the moments of its pairs of person and number.

        values   (1, sensitive values) and
        moments  (1, numbers, 4), both in the order in which requirements name their columns first
        """
        found: list[float] = []
        start: dict[int, int] = {}
        end = at = 0
        for one in self.asked:
            if one.column is not None and one.n_values and one.column not in start:
                start[one.column], end = end, end + one.n_values
        for one in self.asked:
            if one.column is None:
                stats = GroupStats(n_people)
            elif one.n_values:
                own = values[:, start[one.column] : start[one.column] + one.n_values]
                stats = GroupStats(own.sum(axis=1), values=own, reference=one.reference)
            else:
                n, total, high, low = moments[0, at].tolist()
                at += 1
                spread = Fraction(n * ((high << 32) + low) - total * total, max(n, 1) ** 2)
                stats = GroupStats(n_people, variance=np.array([float(spread) * one.unit**2]))
            found.append(one.requirement.worst(one.requirement.measure(stats)))
        return tuple(found)

    def join(
        self, parts: Sequence[ReachedFigures], left_out: Codes = NOBODY, n_rows: Ints | None = None
    ) -> CountedPeople:
        """What the groups of all parts reach; a PromiseError if one does not reach enough.

        left_out   whose each row is that was left out before there were parts
        n_rows     (people,) the rows of each; None if no row was left out
        """
        achieved = []
        for i, one in enumerate(self.asked):
            worst = one.requirement.worst(np.array([part.achieved[i] for part in parts]))
            if not one.requirement.is_met_by(worst):
                raise PromiseError(
                    f"{one.requirement} does not hold of people: "
                    f"{one.requirement.describe_worst_of_people(worst, digits=6)}. Ask for less, or publish fewer "
                    "columns."
                )
            achieved.append(worst)
        whole = [part for part in parts if part.n_groups]
        n_groups, n_pairs = sum(part.n_groups for part in whole), sum(part.n_pairs for part in whole)
        small = reduce(SmallGroups.join, (part.small for part in whole))
        risk = small.risk(rows=n_pairs, groups=n_groups)
        n_gone = 0
        if n_rows is not None:
            n_left = np.bincount(np.concatenate([left_out, *(part.left_out for part in parts)]))
            n_gone = int(((n_left > 0) & (n_left == n_rows[: len(n_left)])).sum())
        return CountedPeople(self.n_people - n_gone, n_groups, tuple(achieved), risk)


class PeopleCells(NamedTuple):
    """Columns of codes of the rows of a part, by place; ``numbers`` are those of ``Loaded``."""

    codes: Mapping[int, Codes]
    numbers: NDArray[np.uint32] | None

    def find(self, groups: Partition) -> NDArray[np.integer]:
        """Where the rows of these groups stand."""
        if self.numbers is None:
            return groups.row_numbers
        order = np.argsort(self.numbers)
        return order[np.searchsorted(self.numbers, groups.row_numbers, sorter=order)]


def _ask(requirement: Requirement, columns: Columns, published: Mapping[str, Ints]) -> _Asked:
    column = sensitive_column(requirement)
    if column is None:
        return _Asked(requirement, None)
    place = columns.place(column)
    if not isinstance(column, Label):
        return _Asked(requirement, place, unit=columns.scale(column).unit)
    counts = published.get(column.name, columns.count_pairs(column))
    reference = columns.labels[column.name].reference_for(requirement, counts)
    return _Asked(requirement, place, len(counts), reference)


def _measure(
    one: _Asked, group: Ints, person: Codes, codes: Mapping[int, Codes], rows: NDArray[np.integer]
) -> float:
    """The figure of the worst of these groups."""
    requirement, n_groups = one.requirement, int(group[-1]) + 1
    if one.column is None:
        first = number_combinations([group, person], in_order=False).first_rows()
        count = np.bincount(group[first], minlength=n_groups)
        return requirement.worst(requirement.measure(GroupStats(count)))
    value = codes[one.column][rows]
    first = np.sort(number_combinations([group, person, value], in_order=False).first_rows())
    group, value = group[first], value[first]
    if not one.n_values:
        return requirement.worst(requirement.measure(_with_variance(group, value, one.unit, n_groups)))
    figures, step = [], max(1, CELLS_AT_ONCE // one.n_values)
    for start in range(0, n_groups, step):
        n_here = min(step, n_groups - start)
        own = slice(*np.searchsorted(group, [start, start + n_here]))
        at = (group[own] - start) * one.n_values + value[own]
        values = np.bincount(at, minlength=n_here * one.n_values).reshape(n_here, one.n_values)
        stats = GroupStats(values.sum(axis=1), values=values, reference=one.reference)
        figures.append(requirement.worst(requirement.measure(stats)))
    return requirement.worst(np.array(figures))


def _with_variance(group: Ints, value: Codes, unit: float, n_groups: int) -> GroupStats:
    """The variance of the different numbers of each person, group by group; without a number it is 0."""
    is_number = value != NO_NUMBER
    group, number = group[is_number], value[is_number].astype(np.float64)
    least = np.full(n_groups, np.inf)
    np.minimum.at(least, group, number)
    above = number - least[group]
    count = np.bincount(group, minlength=n_groups)
    mean = np.bincount(group, above, minlength=n_groups) / np.maximum(count, 1)
    spread = np.bincount(group, (above - mean[group]) ** 2, minlength=n_groups)
    return GroupStats(count, variance=spread / np.maximum(count, 1) * unit**2)
