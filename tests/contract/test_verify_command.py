"""``sfumato verify`` with --sql, --strict and --out, as a user would type it."""

import json

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.table.opening import open_table

REQUIRE = """
  - entropy-diversity: {l: 1.5, of: disease}
  - recursive-diversity: {c: 4, l: 2, of: disease}
"""


@pytest.fixture
def release(sfumato, here, table, policy):
    policy.write_text(policy.read_text(encoding="utf-8").rstrip() + REQUIRE, encoding="utf-8")
    assert sfumato("publish", table, "--policy", policy, "--out", "out").code == 0
    return here / "out"


def statements(text):
    return ["\n".join(part.splitlines()[1:]) for part in text.split("-- requirement: ")[1:]]


def failing(printed, rows):
    with duckdb.connect() as base:
        base.register("release", rows)
        return [len(base.execute(statement).fetchall()) for statement in statements(printed)]


@pytest.mark.parametrize("dialect", ["duckdb", "spark", "snowflake", "bigquery", "postgres"])
def test_sql_of_a_release_names_each_requirement(sfumato, release, dialect):
    done = sfumato("verify", release, "--sql", dialect)
    assert (done.code, done.err) == (0, "")
    named = [line for line in done.out.splitlines() if line.startswith("-- requirement: ")]
    assert named[0] == "-- requirement: k-anonymity 5"
    assert len(named) == 3


def test_sql_returns_the_failing_groups_of_a_release_and_of_a_table(sfumato, here, release, policy):
    printed = sfumato("verify", release, "--sql", "duckdb").out
    source = open_table(release / "release.csv")
    rows = pa.table({name: source.column(name) for name in source.names})
    assert failing(printed, rows) == [0, 0, 0]
    one = rows.slice(0, 1)
    assert failing(printed, one)[0] == 1
    pq.write_table(one, here / "one.parquet")
    again = sfumato("verify", here / "one.parquet", "--policy", policy, "--sql", "duckdb")
    assert again.code == 0
    assert statements(again.out) == statements(printed)
    assert sfumato("verify", here / "one.parquet", "--policy", policy).code == 1


def test_sql_reads_no_row(sfumato, release):
    (release / "release.csv").unlink()
    assert sfumato("verify", release, "--sql", "postgres").code == 0


def test_sql_goes_with_none_of_the_options_of_a_check(sfumato, release):
    for option in (["--strict"], ["--out", "checks.json"], ["--side-table", "voters.csv"]):
        done = sfumato("verify", release, "--sql", "duckdb", *option)
        assert done.code == 2
        assert "--sql runs nothing" in done.err


def test_an_unknown_dialect_is_refused_with_those_that_are_known(sfumato, release):
    done = sfumato("verify", release, "--sql", "oracle")
    assert done.code == 2
    assert "snowflake" in done.err


def test_strict_takes_no_owners_word(sfumato, release):
    assert sfumato("verify", release).code == 0
    done = sfumato("verify", release, "--strict")
    assert done.code == 1
    assert "note  owner's word: no row was suppressed" in done.out
    assert "no row was suppressed" in done.err


def test_checks_are_written_as_json(sfumato, here, release):
    done = sfumato("verify", release, "--out", "checks.json")
    found = json.loads((here / "checks.json").read_text(encoding="utf-8"))
    assert (done.code, found["format"], found["ok"]) == (0, 1, True)
    printed = [line for line in done.out.splitlines() if line]
    lines = [f"{check['mark']:<4}  {check['claim']}: {check['detail']}" for check in found["checks"]]
    assert [line.removesuffix(": ") for line in lines] == printed
    assert sfumato("verify", release, "--out", "checks.json").code == 2  # it is there already
    strict = sfumato("verify", release, "--out", "checks.json", "--overwrite", "--strict")
    found = json.loads((here / "checks.json").read_text(encoding="utf-8"))
    assert (strict.code, found["ok"]) == (1, False)


def test_a_release_that_fails_is_written_as_such(sfumato, here, release):
    path = release / "release.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("\n", "\n\n", 1), encoding="utf-8")
    assert sfumato("verify", release, "--out", "checks.json").code == 1
    found = json.loads((here / "checks.json").read_text(encoding="utf-8"))
    assert not found["ok"]
    assert "FAIL" in {check["mark"] for check in found["checks"]}


def test_checks_are_written_to_json_files_outside_of_releases_only(sfumato, release):
    assert "json" in sfumato("verify", release, "--out", "checks.txt").err
    assert sfumato("verify", release, "--out", release / "checks.json").code == 2
