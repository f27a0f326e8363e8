"""What ``verify --sql`` prints."""

import json
from dataclasses import replace
from typing import Any

import private_people
import pyarrow as pa
import pytest
import sqlglot
import tradeoff_releases

import sfumato as sf
from sfumato.cli import verify as cli_verify
from sfumato.errors import InputError, TableError
from sfumato.policy.document import Policy
from sfumato.verify.sql import DIALECTS, sql_of, sql_of_folder, sql_of_table, statements

ATTRIBUTES = {
    "age": {"role": "quasi-identifier", "type": "number"},
    'the "zip" code': {"role": "quasi-identifier"},
    "disease": {"role": "sensitive"},
    "charge": {"role": "sensitive", "type": "number", "passes": "unique"},
}
REQUIRE = [
    {"k-anonymity": 10},
    {"entropy-diversity": {"l": 2.5, "of": "disease"}},
    {"recursive-diversity": {"c": 0.5, "l": 2, "of": "disease"}},
    {"variance-diversity": {"at-least": 100, "of": "charge"}},
]


def policy_of(**changes):
    return Policy.of({"attributes": ATTRIBUTES, "require": REQUIRE, **changes})


def test_each_statement_stands_after_a_line_that_names_its_requirement():
    printed = sql_of(policy_of(), list(ATTRIBUTES), "duckdb")
    assert [line for line in printed.splitlines() if line.startswith("-- requirement")] == [
        "-- requirement: k-anonymity 10",
        '-- requirement: entropy-diversity l 2.5, of "disease"',
        '-- requirement: recursive-diversity c 0.5, l 2, of "disease"',
        '-- requirement: variance-diversity at-least 100, of "charge"',
    ]
    assert "no NFKC folding" in printed
    first = printed.split("-- requirement: k-anonymity 10\n")[1].split(";")[0]
    assert first == (
        'SELECT\n  "age",\n  "the ""zip"" code",\n  COUNT(*) AS "n_rows"\nFROM release\n'
        'GROUP BY\n  "age",\n  "the ""zip"" code"\nHAVING\n  COUNT(*) < 10'
    )


def test_statements_are_told_apart_by_semicolons_and_the_last_has_none():
    """So that a file of all of them runs, and one of them alone is a dbt test as it is."""
    printed = sql_of(policy_of(), list(ATTRIBUTES), "postgres")
    assert len(sqlglot.parse(printed, read="postgres")) == len(REQUIRE)
    assert not printed.endswith(";")


def test_the_command_offers_every_dialect():
    assert cli_verify.DIALECTS == DIALECTS


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_can_read_what_is_printed_for_it(dialect):
    found = list(statements(policy_of(), list(ATTRIBUTES), dialect))
    assert len(found) == len(REQUIRE)
    for _, text in found:
        [parsed] = sqlglot.parse(text, read=dialect)
        cells = {column.name for column in parsed.find_all(sqlglot.exp.Column)}
        assert {"age", 'the "zip" code'} <= cells
        assert [table.name for table in parsed.find_all(sqlglot.exp.Table) if table.name == "release"]


def test_bigquery_divides_no_rows_by_floats():
    found = dict(
        statements(policy_of(output={"values": "bounds"}), ["age_low", "age_high", *ATTRIBUTES], "bigquery")
    )
    assert all("PARTITION BY CAST(" in text for text in found.values() if "PARTITION BY" in text)


def test_a_column_cannot_end_the_comment_that_names_it():
    name = "ill\nness; DROP TABLE release; --"
    attributes = {"age": {"role": "quasi-identifier"}, name: {"role": "sensitive"}}
    require = [{"entropy-diversity": {"l": 2, "of": name}}]
    printed = sql_of(Policy.of({"attributes": attributes, "require": require}), list(attributes), "postgres")
    assert '-- requirement: entropy-diversity l 2, of "ill\\nness; DROP TABLE release; --"\n' in printed
    [parsed] = sqlglot.parse(printed, read="postgres")
    assert parsed.key == "select"


def test_texts_that_stand_for_missing_are_no_values():
    attributes = {
        "age": {"role": "quasi-identifier"},
        "ill": {"role": "sensitive", "missing-values": ["it's", "\\"]},
    }
    policy = Policy.of({"attributes": attributes, "require": [{"entropy-diversity": {"l": 2, "of": "ill"}}]})
    for dialect in DIALECTS:
        [(_, text)] = statements(policy, list(attributes), dialect)
        literals = [item.this for item in sqlglot.parse_one(text, read=dialect).find_all(sqlglot.exp.Literal)]
        assert {"", "it's", "\\"} <= set(literals)


@pytest.mark.parametrize(
    ("output", "cells"),
    [
        ("labels", ["age", 'the "zip" code']),
        ("bounds", ["age_low", "age_high", 'the "zip" code']),
        ("both", ["age", "age_low", "age_high", 'the "zip" code']),
    ],
)
def test_groups_are_those_of_all_published_cells(tmp_path, output, cells):
    rows = pa.table(
        {
            "age": [1, 2, 3, 4] * 5,
            'the "zip" code': ["a", "b"] * 10,
            "disease": ["x", "y"] * 10,
            "charge": range(20),
        }
    )
    policy = policy_of(output={"values": output}, require=[{"k-anonymity": 10}])
    sf.publish(rows, policy).write(tmp_path / "out")
    (tmp_path / "out/release.parquet").unlink()  # nothing of it is read
    printed = sql_of_folder(tmp_path / "out", "duckdb")
    [parsed] = sqlglot.parse(printed, read="duckdb")
    assert [column.name for column in parsed.args["group"].expressions] == cells


def test_statistics_tell_groups_apart_too():
    policy = policy_of(output={"values": "summary"}, require=[{"k-anonymity": 2}])
    names = ["age", "age_min", "age_max", "age_mean", 'the "zip" code', "disease", "charge", "charge_mean"]
    [(_, text)] = statements(policy, names, "duckdb")
    found = [column.name for column in sqlglot.parse_one(text, read="duckdb").args["group"].expressions]
    assert found == ["age", 'the "zip" code', "age_min", "age_max", "age_mean", "charge_mean"]


def test_a_policy_that_requires_nothing_has_a_comment_only():
    printed = sql_of(policy_of(require=[]), list(ATTRIBUTES), "spark")
    assert all(line.startswith("--") for line in printed.splitlines())
    assert "requires nothing" in printed


@pytest.mark.parametrize(
    ("policy", "what"),
    [
        (private_people.the_policy(), "differential privacy"),
        (Policy.parse(tradeoff_releases.POLICY), "risk and utility of single rows"),
    ],
)
def test_claims_without_sql_have_a_comment_that_says_so(policy, what):
    printed = sql_of(policy, list(policy.schema.names()), "duckdb")
    assert f"-- The claims of this policy ({what}) have no SQL" in printed
    assert all(line.startswith("--") for line in printed.splitlines())


def closeness(distance: str, **disease: Any) -> Policy:
    """A policy that asks for t-closeness of the disease beside all else."""
    asked = {"t-closeness": {"t": 0.2, "of": "disease", "distance": distance}}
    attributes = {**ATTRIBUTES, "disease": {"role": "sensitive", **disease}}
    return policy_of(attributes=attributes, require=[*REQUIRE, asked])


TREE = {"*": {"Infection": ["flu", "it's"], "{braces}": None}}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("distance", ["ordered", "hierarchical"])
def test_every_dialect_can_read_the_distances_that_are_printed_for_it(dialect, distance):
    policy = closeness(distance, hierarchy={"tree": TREE})
    words, text = list(statements(policy, list(ATTRIBUTES), dialect))[-1]
    assert words == f't-closeness t 0.2, of "disease", distance "{distance}"'
    parsed = sqlglot.parse_one(text, read=dialect)
    literals = {item.this for item in parsed.find_all(sqlglot.exp.Literal)}
    assert {"flu", "it's", "{braces}"} <= literals


def test_an_order_of_numbers_lists_no_value():
    asked = {"t-closeness": {"t": 0.2, "of": "charge", "distance": "ordered"}}
    [*_, (_, text)] = statements(policy_of(require=[*REQUIRE, asked]), list(ATTRIBUTES), "duckdb")
    assert "VALUES" not in text
    assert "DENSE_RANK() OVER (ORDER BY" in text


@pytest.mark.parametrize("distance", ["ordered", "hierarchical"])
def test_a_distance_by_values_that_are_not_listed_has_a_comment_before_the_statements(distance):
    """A mask makes its hierarchy of the values of the table, which nobody here has seen."""
    policy = closeness(distance, hierarchy={"mask": 3})
    printed = sql_of(policy, list(ATTRIBUTES), "duckdb")
    words = f'-- requirement: t-closeness t 0.2, of "disease", distance "{distance}"\n-- It has no SQL'
    assert printed.index(words) < printed.index("-- requirement: k-anonymity 10")
    assert len(sqlglot.parse(printed, read="duckdb")) == len(REQUIRE)
    alone = sql_of(replace(policy, requirements=policy.requirements[-1:]), list(ATTRIBUTES), "duckdb")
    assert all(line.startswith("--") or not line for line in alone.splitlines())
    policy = closeness(distance, hierarchy={"mask": 3}, values=["abc", "abd"])
    assert len(list(statements(policy, list(ATTRIBUTES), "duckdb"))) == len(REQUIRE) + 1


def test_what_is_no_release_is_said(tmp_path):
    with pytest.raises(InputError, match="certificate"):
        sql_of_folder(tmp_path, "duckdb")


def test_a_table_is_asked_for_its_columns_only(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('age,"the ""zip"" code",disease,charge\n1,a,flu,no number\n', encoding="utf-8")
    assert '"age"' in sql_of_table(path, policy_of(), "duckdb")
    path.write_text("age,disease,charge\n1,a,5\n", encoding="utf-8")
    with pytest.raises((InputError, TableError), match="zip"):
        sql_of_table(path, policy_of(), "duckdb")


def test_patterns_stand_for_columns_of_the_table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("lab_1,lab_2_low,lab_2_high\n1,2,3\n", encoding="utf-8")
    attributes = {"lab_*": {"role": "quasi-identifier", "type": "number"}}
    policy = Policy.of({"attributes": attributes, "require": [{"k-anonymity": 2}]})
    printed = sql_of_table(path, policy, "duckdb")
    for name in ("lab_1", "lab_2_low", "lab_2_high"):
        assert json.dumps(name) in printed
