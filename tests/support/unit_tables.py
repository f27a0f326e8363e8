"""The random tables of ``rest_tables`` with people who have several rows, and a judge who counts people by sets.

Nothing of sfumato is imported here.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from rest_tables import RandomTable, Row, random_table, satisfies

PERSON = "who"


@dataclass(frozen=True)
class PeopleTable(RandomTable):
    """A table of people with several rows each, and its policy."""

    people: Sequence[str] = ()

    @property
    def table(self) -> pa.Table:
        return super().table.append_column(PERSON, pa.array(self.people))

    @property
    def is_reachable(self) -> bool:
        return self.holds(self.rows)

    def holds(self, group: Sequence[Row], table: Sequence[Row] | None = None) -> bool:
        whole = self.rows if table is None else table
        return all(self.holds_of_people(group, required, whole) for required in self.require)

    def holds_of_people(
        self, group: Sequence[Row], required: Mapping[str, Any], table: Sequence[Row]
    ) -> bool:
        """Does a group satisfy a requirement, if a person counts once, and once for each of its values?"""
        ((word, given),) = required.items()
        if word == "k-anonymity":
            return len({self.people[row["row"]] for row in group}) >= given
        return satisfies(self.pairs(group, given["of"]), required, self.pairs(table, given["of"]))

    def policy_without_list(self, **options: Any) -> dict[str, Any]:
        """The policy with these options of Mondrian, and no list of cells: a list needs rows in memory."""
        mondrian = {**self.policy["method"]["mondrian"], **options}
        if mondrian.get("variant") != "paper" and "criterion" not in mondrian:
            mondrian["refine"] = "none"
        return {**self.policy, "method": {"mondrian": mondrian}}

    def pairs(self, group: Sequence[Row], name: str) -> list[Row]:
        return list({(self.people[row["row"]], row[name]): row for row in group}.values())


WAYS: Sequence[Mapping[str, Any]] = (
    {}, {}, {}, {"refine": "none"}, {"criterion": "median"}, {"variant": "paper"},
)  # fmt: skip


def people_table(number: int) -> PeopleTable:
    """The case of this number: people with rows that have something in common, or nothing."""
    case, chance = random_table(number, "list"), random.Random(f"people {number}")
    n_people = max(1, int(len(case.rows) * chance.choice([0.3, 0.5, 0.8])))
    people = [chance.randrange(n_people) for _ in case.rows]
    rows = [dict(row) for row in case.rows]
    if chance.random() < 0.5:  # the rows of a person are alike in a column
        name = chance.choice(case.quasi)
        first: dict[int, Any] = {}
        for person, row in zip(people, rows, strict=True):
            row[name] = first.setdefault(person, row[name])
    way = chance.choice(WAYS)
    workload = case.policy["workload"] if not way.keys() & {"criterion"} else []
    options = case.policy["method"]["mondrian"] if "rest" not in way and not way else way
    if workload and options.get("refine") == "list":
        options = {**options, "refine": "none"}
    attributes = {name: dict(declared) for name, declared in case.policy["attributes"].items()}
    if way.keys() & {"criterion", "variant"}:
        attributes = {
            name: {key: value for key, value in declared.items() if key != "weight"}
            for name, declared in attributes.items()
        }
    policy = {
        **case.policy,
        "attributes": {**attributes, PERSON: {"role": "identifier"}},
        "workload": workload,
        "method": {"mondrian": dict(options)},
        "unit": PERSON,
    }
    if "variant" in way:
        del policy["output"]
    return PeopleTable(rows, case.quasi, case.require, policy, [f"p{person}" for person in people])
