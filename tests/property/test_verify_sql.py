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

from sfumato.policy.document import Policy
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.verify.measure import measure
from sfumato.verify.sql import statements

ANY = settings(deadline=None, max_examples=40)
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
