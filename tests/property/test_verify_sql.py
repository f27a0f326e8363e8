"""What ``verify --sql`` prints finds the failing groups that ``verify`` finds, on DuckDB and PostgreSQL."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_releases import published, releases
from sql_engines import databases

from sfumato.errors import HierarchyError
from sfumato.policy.document import Policy
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.verify.measure import measure
from sfumato.verify.sql import statements

ANY = settings(deadline=None, max_examples=25)
NAMES = [
    'a "quoted" name',
    "it's",
    "two words",
    "größe",
    "select",
    "n_rows",
    "{cells}",
    "%s",
    "tail",
    "a;b--c",
]


@pytest.fixture(scope="module")
def engines():
    with databases() as found:
        yield found


def cells_of(*values):
    return st.sampled_from([*values, None])


COLUMNS = {
    "text": (pa.string(), cells_of("[0, 9]", "[10, 19]", "*", "")),
    "float": (pa.float64(), cells_of(0.5, 10.0, math.nan)),
    "whole": (pa.int64(), cells_of(0, 10)),
}


@st.composite
def tables(draw):
    """Published rows of any tool with names of all sorts, and a policy that requires something of each kind."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=5, unique=True))
    boxes, (disease, charge) = names[:-2], names[-2:]
    n = draw(st.integers(1, 24))
    columns = {}
    for name in boxes:
        kind, cell = COLUMNS[draw(st.sampled_from(sorted(COLUMNS)))]
        columns[name] = pa.array(draw(st.lists(cell, min_size=n, max_size=n)), kind)
    values = draw(st.lists(cells_of("flu", "hiv", "cold", "", "NA", "it's"), min_size=n, max_size=n))
    columns[disease] = pa.array(values, pa.string())
    kind, number = draw(
        st.sampled_from(
            [
                (pa.int64(), cells_of(0, 1, 2, 5, 2**40, -1)),
                (pa.float64(), cells_of(0.0, 0.1, 0.2, 1e9, 1e9 + 1, math.nan, -1.0)),
                (pa.string(), cells_of("0", "1", "1.0", "2e1", "", "NaN", "-1", " 5 ")),
            ]
        )
    )
    columns[charge] = pa.array(draw(st.lists(number, min_size=n, max_size=n)), kind)
    schema = Schema(
        (
            *(Attribute(name, Role.QUASI_IDENTIFIER) for name in boxes),
            Attribute(disease, Role.SENSITIVE, missing_values=draw(st.sampled_from([(), ("NA", "it's")]))),
            Attribute(
                charge, Role.SENSITIVE, Kind.NUMBER, missing_values=draw(st.sampled_from([(), ("-1",)]))
            ),
        )
    )
    return pa.table(columns), policy_with(draw, schema, disease, charge)


def policy_with(draw, schema, category, number):
    """Every requirement that has SQL, with parameters that small groups meet exactly, or just do not."""
    of = st.sampled_from([category, number])
    require = [
        {"k-anonymity": draw(st.integers(1, 5))},
        {"entropy-diversity": {"l": draw(st.sampled_from([1, 1.5, 2, 2.0000001, 3])), "of": draw(of)}},
        {"distinct-diversity": {"l": draw(st.integers(1, 4)), "of": draw(of)}},
        {"t-closeness": {"t": draw(st.sampled_from([0, 0.1, 0.25, 0.5, 2 / 3, 1])), "of": draw(of)}},
        {
            "recursive-diversity": {
                "c": draw(st.sampled_from([0.1, 0.5, 1, 1.5, 2, 3, 1e-3, 1e12])),
                "l": draw(st.integers(1, 4)),
                "of": draw(of),
            }
        },
        {
            "variance-diversity": {
                "at-least": draw(st.sampled_from([0, 0.25, 2 / 9, 1, 0.0025, 1e9])),
                "of": number,
            }
        },
    ]
    roles = {"a box": "quasi-identifier", category: "sensitive", number: "sensitive"}
    attributes = {name: {"role": role} for name, role in roles.items()}
    attributes[number]["type"] = "number"
    return replace(Policy.of({"attributes": attributes, "require": require}), schema=schema)


def assert_same(rows, policy, engines):
    found = [item.n_failing for item in measure(rows, policy).requirements]
    for engine in engines:
        engine.load(rows)
        printed = statements(policy, rows.column_names, engine.dialect)
        failing = [len(engine.run(statement)) for _, statement in printed]
        assert failing == found, (engine.dialect, [str(item) for item in policy.requirements])


@ANY
@given(case=tables())
def test_sql_finds_the_failing_groups_of_any_table(case, engines):
    rows, policy = case
    assert_same(rows, policy, engines)


JOBS = {"*": {"Art": ["dancer", "writer"], "Law": {"Court": ["clerk", "it's"], "notary": None}, "NA": None}}
GRADES = ["good", "fair", "bad", "worst"]
DAYS = ["2024-03-05", "2023-12-31", "1999-01-01", "2024-03-06"]


@st.composite
def closeness(draw):
    """Published rows with sensitive values of every kind that has an order or a hierarchy, and all distances of them.

    A limit is half the time the distance that the worst group has: a tie.
    """
    n = draw(st.integers(1, 20))
    kinds = {
        "job": (pa.string(), cells_of("dancer", "writer", "clerk", "it's", "notary", "NA", "")),
        "grade": (pa.string(), cells_of(*GRADES, "")),
        "born": (pa.string(), cells_of(*DAYS, "")),
        "charge": (pa.float64(), cells_of(-1.5, 0.0, -0.0, 2.0, 10.0, 9.0, math.nan)),
    }
    columns = {
        name: pa.array(draw(st.lists(cell, min_size=n, max_size=n)), kind)
        for name, (kind, cell) in {"age": COLUMNS["text"], "zip": COLUMNS["float"], **kinds}.items()
    }
    rows = pa.table(columns)
    missing = draw(st.sampled_from([[], ["NA"]]))
    job = {"role": "sensitive", "hierarchy": {"tree": JOBS}, "missing-values": missing}
    attributes = {
        "age": {"role": "quasi-identifier"},
        "zip": {"role": "quasi-identifier"},
        "job": job,
        "grade": {"role": "sensitive", "values": GRADES},
        "born": {"role": "sensitive", "type": "date"},
        "charge": {"role": "sensitive", "type": "number"},
    }
    asked = [("job", "ordered"), ("job", "hierarchical")]
    asked += [(name, "ordered") for name in ("grade", "born", "charge")]

    def policy(limits):
        require = [
            {"t-closeness": {"t": t, "of": of, "distance": distance}}
            for t, (of, distance) in zip(limits, asked, strict=True)
        ]
        return Policy.of({"attributes": attributes, "require": require})

    worst = [item.achieved for item in measure(rows, policy([0] * len(asked))).requirements]
    limits = [
        draw(st.sampled_from([figure, figure, max(figure - 1e-9, 0), 0.1, 0.25, 0.5])) for figure in worst
    ]
    return rows, policy(limits)


@ANY
@given(case=closeness())
def test_sql_finds_the_groups_that_are_too_far_from_the_table_by_every_distance(case, engines):
    rows, policy = case
    assert_same(rows, policy, engines)


@pytest.mark.parametrize(("t", "n_failing"), [(0.375, 0), (0.3749999999, 1), (0.2, 2), (0, 3)])
def test_a_group_at_the_very_distance_holds_in_sql_too(t, n_failing, engines):
    """The paper's example: salaries of 3k to 11k, of which the first group has 3k, 4k and 5k [LLV07, section 4.1]."""
    salaries = [3, 4, 5, 6, 8, 11, 7, 9, 10]
    rows = pa.table({"zip": ["a"] * 3 + ["b"] * 3 + ["c"] * 3, "salary": salaries})
    attributes = {"zip": {"role": "quasi-identifier"}, "salary": {"role": "sensitive", "type": "number"}}
    require = [{"t-closeness": {"t": t, "of": "salary", "distance": "ordered"}}]
    policy = Policy.of({"attributes": attributes, "require": require})
    assert measure(rows, policy).requirements[0].n_failing == n_failing
    assert_same(rows, policy, engines)


@pytest.mark.parametrize("distance", ["ordered", "hierarchical"])
def test_a_group_with_a_value_that_is_not_listed_fails(distance, engines):
    """``verify`` refuses such a table; a statement can only return the group."""
    rows = pa.table({"zip": ["a", "a", "b", "b"], "job": ["dancer", "pilot", "dancer", "dancer"]})
    attributes = {
        "zip": {"role": "quasi-identifier"},
        "job": {"role": "sensitive", "hierarchy": {"tree": JOBS}},
    }
    require = [{"t-closeness": {"t": 1, "of": "job", "distance": distance}}]
    policy = Policy.of({"attributes": attributes, "require": require})
    with pytest.raises(HierarchyError, match="1 sensitive value"):
        measure(rows, policy)
    for engine in engines:
        engine.load(rows)
        [(_, statement)] = statements(policy, rows.column_names, engine.dialect)
        assert [line[0] for line in engine.run(statement)] == ["a"]


@ANY
@given(case=releases(), data=st.data())
def test_sql_finds_the_failing_groups_of_releases_as_they_are_and_tampered_with(case, data, engines):
    table, policy, _ = case
    _, rows, _ = published(table, policy)
    schema = Schema(
        tuple(replace(a, role=Role.SENSITIVE) if a.name in ("size", "kind") else a for a in policy.schema)
    )
    policy = replace(policy_with(data.draw, schema, "kind", "size"), output=policy.output)
    assert_same(rows, policy, engines)
    name = data.draw(st.sampled_from([name for name in rows.column_names if name not in ("size", "kind")]))
    at, other = (data.draw(st.integers(0, rows.num_rows - 1)) for _ in range(2))
    order = np.arange(rows.num_rows)
    order[at] = other
    column = rows.column(name).take(pa.array(order))  # one cell is that of another row
    assert_same(rows.set_column(rows.column_names.index(name), name, column), policy, engines)
