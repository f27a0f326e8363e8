"""Requirements on people by their definitions, with sets: a person counts once, and once for each of its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import naive_mondrian as naive

from sfumato.policy.requirements import KAnonymity

Row = Mapping[str, Any]


def people_satisfy(
    members: Iterable[int],
    rows: Sequence[Row],
    people: Sequence[Any],
    requirement: Any,
    among: Iterable[int] | None = None,
) -> bool:
    """Do these rows of a table, as one group beside others or all, satisfy the requirement by their people?"""
    members = list(members)
    if isinstance(requirement, KAnonymity):
        return len({people[i] for i in members}) >= requirement.k
    table = once_for_each_value(among or range(len(rows)), rows, people, requirement.of)
    return naive.satisfies(once_for_each_value(members, rows, people, requirement.of), requirement, table)


def once_for_each_value(
    members: Iterable[int], rows: Sequence[Row], people: Sequence[Any], name: str
) -> list[Row]:
    """One row for each pair of person and value among these."""
    return list({(people[i], rows[i][name]): rows[i] for i in members}.values())


class MondrianOfPeople(naive.Mondrian):
    """The naive twin of Mondrian, whose groups count people."""

    def __init__(self, people: Sequence[Any], *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.people = people

    def is_allowed(self, members: Sequence[int], table: Iterable[int] | None = None) -> bool:
        return all(people_satisfy(members, self.rows, self.people, item, table) for item in self.requirements)
