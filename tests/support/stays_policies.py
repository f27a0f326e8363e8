"""Random policies for the demo's stays of patients, and a judge of what was published, who counts people by sets.

The judge looks up whose each published row is by its number in the raw table. Nothing of sfumato is imported here.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rest_tables import satisfies

Row = Mapping[str, Any]

PERSON, NUMBER = "patient_id", "row"

QUASI: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "age": ({"type": "number", "bounds": [0, 110], "step": 1}, {"type": "number"}),
    "sex": ({}, {"values": ["Female", "Male"]}),
    "zip": ({"hierarchy": {"mask": 5}}, {}),
    "smoker": ({"values": ["yes", "no"]},),
    "admitted": (
        {"type": "date", "hierarchy": {"dates": ["day", "month", "quarter", "year"]}},
        {"type": "date"},
    ),
}
REST: Mapping[str, Mapping[str, Any]] = {
    "diagnosis": {"role": "sensitive"},
    "length_of_stay": {"role": "sensitive", "type": "number", "passes": "unique"},
    PERSON: {"role": "identifier"},
    NUMBER: {"role": "other", "type": "number", "passes": "unique"},
}

DIVERSE: Sequence[Mapping[str, Any]] = (
    *({"distinct-diversity": {"l": each, "of": "diagnosis"}} for each in (2, 3)),
    *({"entropy-diversity": {"l": each, "of": "diagnosis"}} for each in (1.5, 2, 3)),
    *({"recursive-diversity": {"c": c, "l": 2, "of": "diagnosis"}} for c in (0.5, 2)),
    *({"variance-diversity": {"at-least": least, "of": "length_of_stay"}} for least in (1, 4)),
    {"t-closeness": {"t": 0.5, "of": "diagnosis", "distance": "equal"}},
    {"t-closeness": {"t": 0.2, "of": "length_of_stay", "distance": "ordered"}},
)
GROWN_FOR: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]] = (
    ({}, ()),
    ({"refine": "none"}, ()),
    ({"refine": "none", "rest": False}, ()),
    ({"criterion": "median"}, ()),
    ({"variant": "paper"}, ()),
    ({"refine": "none"}, ({"classify": "diagnosis"},)),
    ({"refine": "none", "rest": False}, ({"regress": "length_of_stay"},)),
    ({"variant": "paper"}, ({"classify": "diagnosis"}, {"regress": "length_of_stay"})),
    ({"refine": "none"}, ({"select": "age >= 65"},)),
)
"""Options of Mondrian, and a workload."""


def random_policy(number: int) -> dict[str, Any]:
    """The policy of this number."""
    chance = random.Random(f"stays {number}")
    quasi = chance.sample([*QUASI], chance.randint(2, len(QUASI)))
    options, workload = chance.choice(GROWN_FOR)
    if any("select" in task for task in workload) and "age" not in quasi:
        quasi.append("age")
    attributes = {
        name: {"role": "quasi-identifier", **chance.choice(QUASI[name])}
        if name in quasi
        else {"role": "drop"}
        for name in QUASI
    }
    return {
        "attributes": {**attributes, **REST},
        "unit": PERSON,
        "require": [
            {"k-anonymity": chance.randint(2, 8)},
            *chance.sample(DIVERSE, chance.choice([0, 1, 1, 2])),
        ],
        "workload": list(workload),
        "method": {"mondrian": dict(options)},
    }


def holds(group: Sequence[Row], require: Sequence[Mapping[str, Any]], table: Sequence[Row]) -> bool:
    """Does a group satisfy all that is required, if a person counts once, and once for each of its values?"""
    for required in require:
        ((word, given),) = required.items()
        if word == "k-anonymity":
            is_fine = len({row[PERSON] for row in group}) >= given
        else:
            is_fine = satisfies(pairs(group, given["of"]), required, pairs(table, given["of"]))
        if not is_fine:
            return False
    return True


def pairs(rows: Sequence[Row], name: str) -> list[Row]:
    return list({(row[PERSON], row[name]): row for row in rows}.values())


def judge(published: Sequence[Row], table: Sequence[Row], policy: Mapping[str, Any]) -> int:
    """Raise unless every row is published once, in a group of equal labels that holds; returns the number of groups."""
    quasi = [name for name, given in policy["attributes"].items() if given["role"] == "quasi-identifier"]
    groups = defaultdict(list)
    for line in published:
        groups[tuple(line[name] for name in quasi)].append(table[line[NUMBER]])
    assert sorted(line[NUMBER] for line in published) == [*range(len(table))]
    assert all(PERSON not in line for line in published)
    for labels, group in groups.items():
        assert holds(group, policy["require"], table), labels
    return len(groups)
