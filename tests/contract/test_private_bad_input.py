"""Bad input under differential privacy: what is wrong with a policy or a file is said, what is in a cell never is."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from commandline import names

SECRET = "SECRET-CELL"  # a cell that no message may quote, and no file of a release may hold

POLICY = """\
attributes:
  id:     {role: identifier}
  age:    {role: quasi-identifier, type: number, bounds: [18, 65], step: 1}
  rate:   {role: quasi-identifier, type: number, bounds: [0, 1], hierarchy: {intervals: [0.25]}}
  born:   {role: quasi-identifier, type: date, bounds: [1950-01-01, 2010-12-31], hierarchy: {dates: [year, decade]}}
  job:    {role: quasi-identifier, hierarchy: {tree: {Any: {Professional: [Engineer, Lawyer], Artist: [Dancer, Writer]}}}}
  income: {role: other, values: [low, high]}
workload:
  - classify: income
method: {diffgen: {epsilon: 1.0, cuts: {age: [40], rate: leaves, job: [Professional, Artist]}}}
"""
N_CELLS = 2 * 5 * 1 * 2

JOBS = "{Any: {Professional: [Engineer, Lawyer], Artist: [Dancer, Writer]}}"
AGE = "{role: quasi-identifier, type: number, bounds: [18, 65], step: 1}"
INCOME = "{role: other, values: [low, high]}"
CUTS = ", cuts: {age: [40], rate: leaves, job: [Professional, Artist]}"

BAD_POLICIES = {
    # what is replaced, by what, and words of the sentence
    "epsilon 0": ("epsilon: 1.0", "epsilon: 0", "method diffgen epsilon: must be a number from 1e-9 to 1e12"),
    "epsilon negative": ("epsilon: 1.0", "epsilon: -1", "method diffgen epsilon: must be a number from 1e-9"),
    "epsilon infinite": ("epsilon: 1.0", "epsilon: .inf", "method diffgen epsilon: a number must be finite"),
    "epsilon not a number": ("epsilon: 1.0", "epsilon: .nan", "method diffgen epsilon: a number must be finite"),
    "epsilon as text": ("epsilon: 1.0", "epsilon: much", "method diffgen epsilon: must be a number"),
    "no epsilon": (f"epsilon: 1.0{CUTS}", "", "needs the privacy budget epsilon"),
    "no bounds": (AGE, "{role: quasi-identifier, type: number}", "declare bounds and step"),
    "no step": (AGE, "{role: quasi-identifier, type: number, bounds: [18, 65]}", "declare bounds and step"),
    "bounds reversed": (AGE, AGE.replace("[18, 65]", "[65, 18]"), "the first must be below the second"),
    "no values": (AGE, "{role: quasi-identifier}", "declare values"),
    "class numeric": (INCOME, "{role: other, type: number, bounds: [0, 1], step: 1}", "is a category, not a number"),
    "class of one value": (INCOME, "{role: other, values: [low]}", "at least two declared values"),
    "class not declared": (INCOME, "{role: other}", "declare its values"),
    "raw column": ("id:     {role: identifier}", "id: {role: other}", "publishes no column as it is but the class"),
    "sensitive column": ("id:     {role: identifier}", "id: {role: sensitive}", "publishes no column as it is"),
    "broken taxonomy": ("Artist: [Dancer, Writer]", "Artist: [Dancer, Lawyer]", "Leaf labels that stand more than once"),
    "taxonomy of labels alike": ("Artist: [Dancer, Writer]", "Artist: [Dancer], Lawyer: [Writer], Other: [Else]",
                                 "labels stand in several places"),
    "taxonomy file missing": (f"{{tree: {JOBS}}}", "jobs.csv", "there is no file"),
    "no task": ("workload:\n  - classify: income\n", "", "needs a task to classify"),
    "a second task": ("  - classify: income\n", "  - classify: income\n  - regress: age\n", "serves one task"),
    "require": ("workload:", "require: [k-anonymity: 2]\nworkload:", "promises differential privacy"),
    "summary": ("workload:", "output: {values: summary}\nworkload:", "publishes no statistics of groups"),
    "cuts off the grid": ("age: [40]", "age: [40.5]", "not a whole number of steps"),
    "cuts that lack values": ("[Professional, Artist]", "[Artist]", "lack 2 of its values"),
    "too many cells": ("epsilon: 1.0", "epsilon: 1.0, max-cells: 19", "they make 20 cells, and max-cells is 19"),
}  # fmt: skip

CLEAN = {
    "id": ["1", "2", "3"],
    "age": ["20", "40", "65"],
    "rate": ["0", "0.5", "1"],
    "born": ["1960-01-01", "1980-05-05", "2010-12-31"],
    "job": ["Engineer", "Dancer", "Writer"],
    "income": ["low", "high", "low"],
}


def write(here, columns, policy: str = POLICY, name: str = "t.csv") -> None:
    (here / "policy.yaml").write_text(policy, encoding="utf-8")
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    if name.endswith(".parquet"):
        pq.write_table(table, here / name)
    else:
        pacsv.write_csv(table, here / name)


def cells_of(path, columns) -> set[tuple[str, ...]]:
    with path.open(encoding="utf-8", newline="") as file:
        return {tuple(row[name] for name in columns) for row in csv.DictReader(file)}


@pytest.mark.parametrize("case", BAD_POLICIES)
def test_a_bad_policy_is_refused_in_one_sentence(sfumato, here, case):
    old, new, words = BAD_POLICIES[case]
    assert old in POLICY
    write(here, CLEAN | {"id": [SECRET] * 3}, POLICY.replace(old, new))
    done = sfumato("publish", "t.csv", "--policy", "policy.yaml", "--out", "out", "--seed", "1")
    assert done.code == 2
    assert words in done.sentence
    assert SECRET not in done.err
    assert names(here) == ["policy.yaml", "t.csv"]


NAN, INF = float("nan"), float("inf")
QUASI = ("age", "rate", "born", "job")
ODD_TABLES = {
    "no rows": {name: pa.array([], pa.string()) for name in CLEAN},
    "missing everywhere": {name: pa.nulls(3, pa.string()) for name in CLEAN},
    "rubbish everywhere": {name: [SECRET] * 3 for name in CLEAN},
    "rubbish beside good rows": {name: [*cells, SECRET] for name, cells in CLEAN.items()},
    "an undeclared class": CLEAN | {"income": ["low", SECRET, "high"]},
    "numbers out of bounds": CLEAN | {"age": ["-1e300", "1e300", "40.5"], "rate": ["-5", "7", "1e999"]},
    "numbers that are none": CLEAN | {"age": ["nan", "inf", "20 years"], "rate": ["", "?", "0,5"]},
    "dates that are none": CLEAN | {"born": ["2001-02-30", "1/1/1970", "9999-12-31"]},
    "unknown categories": CLEAN | {"job": [SECRET, "engineer", "Artist"]},
    "line ends and quotes": CLEAN | {"job": ['a"b', "a\nb", "a,b"]},
}
STORED_ODDLY = {
    "floats": CLEAN | {"age": [NAN, INF, -INF], "rate": [NAN, 0.5, 1e308]},
    "whole numbers": CLEAN | {"age": [2**62, -(2**62), 40], "rate": pa.array([True, False, None])},
    "nothing": CLEAN | {"age": pa.nulls(3), "born": pa.nulls(3), "job": pa.nulls(3), "income": pa.nulls(3)},
    "bytes": CLEAN | {"job": [b"Engineer", b"\xff\xfe", None], "income": [b"\xff", b"low", b"high"]},
    "moments": CLEAN | {"born": pa.array([0, -(2**62), 2**62], pa.timestamp("us"))},
    "dictionaries": CLEAN | {"job": pa.array(["Engineer", SECRET, None]).dictionary_encode()},
}


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("case", [*ODD_TABLES, *STORED_ODDLY])
def test_no_cell_makes_an_error_or_shows(sfumato, here, case, engine):
    """Whatever the cells, there is a release of all cells of the grid, it verifies, and its recoding takes the rows."""
    name, table = "t.csv" if case in ODD_TABLES else "t.parquet", pa.table((ODD_TABLES | STORED_ODDLY)[case])
    write(here, table, name=name)
    given = ("--policy", "policy.yaml", "--out", "out", "--format", "csv", "--engine", engine, "--seed", "1")
    done = sfumato("publish", name, *given)
    assert done.code == 0, done.err
    lines = (here / "out" / "release.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 2 * N_CELLS
    assert sfumato("verify", "out").code == 0
    said = done.out + done.err
    assert SECRET not in said
    assert all(SECRET not in path.read_text(encoding="utf-8") for path in (here / "out").iterdir())
    if table.num_rows:
        write(here, table.drop_columns(["id", "income"]), name="more.parquet")
        done = sfumato("apply", "out", "more.parquet", "--out", "more.csv")
        assert done.code == 0, done.err
        assert cells_of(here / "more.csv", QUASI) <= cells_of(here / "out" / "release.csv", QUASI)


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize(
    "rest", [b"1,1,2,3,4,low\xe9", b"Jos\xe9,20,0,1960-01-01,\xff,low\n", b"\0,\0,\0,\0,\0,\0\n"]
)
def test_no_bytes_of_a_cell_make_an_error(sfumato, here, rest, engine):
    write(here, CLEAN)
    (here / "t.csv").write_bytes((here / "t.csv").read_bytes() + rest)
    given = ("--policy", "policy.yaml", "--out", "out", "--engine", engine, "--seed", "1")
    done = sfumato("publish", "t.csv", *given)
    assert done.code == 0, done.err
    assert sfumato("verify", "out").code == 0


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_no_cell_is_too_long_for_a_first_row(sfumato, here, engine):
    write(here, CLEAN | {"job": ["x" * (1 << 20), "Dancer", "Writer"]})
    done = sfumato(
        "publish", "t.csv", "--policy", "policy.yaml", "--out", "out", "--engine", engine, "--seed", "1"
    )
    assert done.code == 0, done.err


def test_no_row_has_a_say_in_what_the_delimiter_is(sfumato, here):
    """The header could be divided at commas or at semicolons; each row fits one of them."""
    policy = POLICY.replace("  id:     {role: identifier}\n", "").replace(
        "  age:", "  age;more: {role: drop}\n  age:"
    )
    header = "age;more,age,rate,born,job,income\n"
    said = []
    for row in ("1,20,0,1960-01-01,Dancer,low\n", "1,20,0,1960-01-01,Dancer;low\n" * 3, "a;b\n" * 3):
        write(here, CLEAN, policy)
        (here / "t.csv").write_text(header + row)
        done = sfumato(
            "publish", "t.csv", "--policy", "policy.yaml", "--out", "out", "--seed", "1", "--overwrite"
        )
        said.append("Row 1 of t.csv has" in done.err if done.code else "released")
    assert said == ["released", True, True]


def test_a_row_that_is_longer_than_the_guide_allows_is_said_without_its_cells(sfumato, here):
    write(here, CLEAN | {"job": [SECRET * 900_000, "Dancer", "Writer"]})
    done = sfumato("publish", "t.csv", "--policy", "policy.yaml", "--out", "out", "--seed", "1")
    assert (done.code, SECRET in done.err) == (2, False)
    assert "has a row of more than 4,194,304 bytes" in done.sentence


def test_cells_out_of_the_domain_count_where_they_should(sfumato, here):
    """With hardly any noise: what is unknown or unreadable is missing, numbers are clamped, classes left out."""
    precise = POLICY.replace("epsilon: 1.0", "epsilon: 1.0e+6").replace("rate: leaves, ", "")
    ages = ["39", "40", "900", "-3", "x", "", "40", "39.5"]
    jobs = ["Lawyer", "Lawyer", "Pilot", "Dancer", "", "Writer", "Lawyer", "Engineer"]
    columns = {
        "id": ["1"] * 8,
        "age": ages,
        "rate": ["0"] * 8,
        "born": [""] * 8,
        "job": jobs,
        "income": ["low"] * 6 + ["medium", "high"],
    }
    write(here, columns, precise)
    assert sfumato("publish", "t.csv", "--policy", "policy.yaml", "--out", "out", "--seed", "1").code == 0
    table = pacsv.read_csv(here / "out" / "release.csv").to_pylist()
    counted = {(row["age"], row["job"], row["income"]): row["count"] for row in table}
    young, old = "[18, 39] or missing", "[40, 65]"
    assert counted == {
        (young, "Professional", "low"): 1,
        (young, "Professional", "high"): 0,
        (young, "Artist or missing", "low"): 3,
        (young, "Artist or missing", "high"): 0,
        (old, "Professional", "low"): 1,
        (old, "Professional", "high"): 1,
        (old, "Artist or missing", "low"): 1,
        (old, "Artist or missing", "high"): 0,
    }
    assert json.loads((here / "out" / "certificate.json").read_text())["claims"]["counted"] == 7


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"id,age,rate,born,job\n1,2,3,4,5\n", "has no column 'income'"),
        (b"id,age,rate,born,job,income,more\n", "has column 'more', which the policy does not name"),
        (b"id,age,rate,born,job,income\n1,2\n", "Row 1 of t.csv has 2 cells but the header has 6"),
        (b"PK\x03\x04", "is a ZIP archive"),
    ],
)
def test_what_is_wrong_with_the_file_itself_is_said(sfumato, here, content, words):
    write(here, CLEAN)
    (here / "t.csv").write_bytes(content)
    done = sfumato("publish", "t.csv", "--policy", "policy.yaml", "--out", "out", "--seed", "1")
    assert done.code == 2
    assert words in done.sentence
    assert not (here / "out").exists()
