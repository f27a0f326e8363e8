"""Releases and tables that are checked by Spark SQL: the lines are those of the usual check."""

from __future__ import annotations

import glob
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_people import ATTRIBUTES, DIFFGEN, METHODS, MONDRIAN, people

import sfumato as sf
from sfumato import cli
from sfumato.errors import InputError
from sfumato.publishing import Request, publish_to
from sfumato.verify.checks import Verification

EVERYTHING = """
attributes:
  age: {role: quasi-identifier, type: number}
  zip: {role: quasi-identifier, hierarchy: {mask: 3}}
  sex: {role: quasi-identifier}
  disease: {role: sensitive, hierarchy: {tree: {"*": {cough: [flu, cold, asthma], pain: [gout]}}}}
  ward: {role: sensitive}
  class: {role: other}
require:
  - k-anonymity: 10
  - distinct-diversity: {l: 2, of: disease}
  - entropy-diversity: {l: 1.5, of: disease}
  - recursive-diversity: {c: 4, l: 2, of: disease}
  - t-closeness: {t: 0.9, of: disease}
  - t-closeness: {t: 0.9, of: disease, distance: ordered}
  - t-closeness: {t: 0.9, of: disease, distance: hierarchical}
workload: [classify: class]
"""
NUMBERS = """
attributes:
  age: {role: quasi-identifier, type: number}
  zip: {role: drop}
  sex: {role: drop}
  disease: {role: drop}
  ward: {role: drop}
  class: {role: drop}
  charge: {role: sensitive, type: number}
  day: {role: sensitive, type: date}
require:
  - k-anonymity: 20
  - variance-diversity: {at-least: 1, of: charge}
  - t-closeness: {t: 0.9, of: charge, distance: ordered}
  - t-closeness: {t: 0.9, of: day, distance: ordered}
output: {values: both}
"""
UNSEEN = ("report", "recoding", "statistics")
"""What lines about these say, only the usual check can say."""


def with_numbers(rows: pa.Table) -> pa.Table:
    n = len(rows)
    charges = pa.array([i % 37 + 0.5 if i % 11 else None for i in range(n)])
    days = pa.array([f"2024-03-{i % 28 + 1:02}" for i in range(n)])
    return rows.append_column("charge", charges).append_column("day", days)


def lines(found: Verification) -> list[str]:
    said = [f"{check.mark} {check.claim}: {check.detail}" for check in found.checks]
    return [line for line in said if not any(word in line for word in UNSEEN)]


RELEASES = {name: METHODS[name] for name in ("mondrian", "summary", "tds")} | {
    "everything": EVERYTHING,
    "numbers": NUMBERS,
    "escaped": MONDRIAN + "output: {formulas: escape}\n",
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_has_the_lines_of_the_usual_check(name, spark, tmp_path):
    rows = with_numbers(people(900)) if name == "numbers" else people(900)
    request = Request(file_format="parquet", seed=1)
    publish_to(tmp_path / "out", rows, sf.Policy.parse(RELEASES[name]), request)
    found, usual = (sf.verify_folder(tmp_path / "out", engine=engine) for engine in ("spark", "auto"))
    assert found.ok
    assert lines(found) == lines(usual)
    notes = [check.claim for check in found.checks if check.is_note]
    assert "the recoding is not held against the rows" in notes
    assert ("the statistics of groups are not held against the rows" in notes) == (name == "summary")


@pytest.fixture(scope="module")
def release(spark, tmp_path_factory) -> Path:
    """A release in parts."""
    folder = tmp_path_factory.mktemp("releases") / "out"
    publish_to(folder, people(), sf.Policy.parse(METHODS["rothko-t"]), Request(engine="spark", seed=1))
    assert len(list((folder / "release.parquet").iterdir())) > 1
    return folder


def test_the_command_checks_a_folder_of_parts(spark, release, capsys):
    assert cli.run(["verify", str(release), "--engine", "spark"]) == 0
    said = capsys.readouterr().out
    assert "ok    10-anonymity holds: the smallest group is 10" in said
    assert "note  the recoding is not held against the rows: verify without --engine does" in said
    assert "note  the report is not checked" in said


def change_parts(release: Path, folder: Path, change) -> None:
    """A copy of a release, of which the rows of the first part are others."""
    for path in release.rglob("*"):
        if path.is_file():
            (folder / path.relative_to(release)).parent.mkdir(parents=True, exist_ok=True)
            (folder / path.relative_to(release)).write_bytes(path.read_bytes())
    part = folder / "release.parquet" / "part-00000.parquet"
    pq.write_table(change(pq.read_table(part)), part)


def without_first_row(rows: pa.Table) -> pa.Table:
    """Groups have 10 rows or a few more: those of the first one but one are gone."""
    names = ["age", "zip", "sex"]
    first = rows.slice(0, 1).to_pylist()[0]
    alike = [all(row[name] == first[name] for name in names) for row in rows.to_pylist()]
    kept = [at for at, is_alike in enumerate(alike) if not is_alike]
    return rows.take([*kept, alike.index(True)])


def one_disease(rows: pa.Table) -> pa.Table:
    at = rows.column_names.index("disease")
    return rows.set_column(at, "disease", pa.array(["flu"] * len(rows)))


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        (without_first_row, "FAIL  10-anonymity holds: the smallest group is 1, and 1 of"),
        (one_disease, "FAIL  2 different values of 'disease' in every group"),
    ],
)
def test_a_part_that_somebody_changed_fails(change, claim, spark, release, tmp_path, capsys):
    change_parts(release, tmp_path / "out", change)
    assert cli.run(["verify", str(tmp_path / "out"), "--engine", "spark"]) == 1
    said = capsys.readouterr().out
    assert "FAIL  the file release.parquet is as it was certified" in said
    assert claim.split(":")[0].partition("  ")[0] == "FAIL"
    found, usual = (sf.verify_folder(tmp_path / "out", engine=engine) for engine in ("spark", "auto"))
    assert lines(found) == lines(usual)
    assert any("holds" in check.claim for check in found.failures)


# ---- tables of other tools -------------------------------------------------------------------------------


POLICY = """
attributes:
  age: {role: quasi-identifier}
  disease: {role: sensitive, missing-values: [NA]}
  charge: {role: sensitive, type: number}
  name: {role: identifier}
require:
  - k-anonymity: 2
  - distinct-diversity: {l: 2, of: disease}
  - variance-diversity: {at-least: 0.25, of: charge}
"""
FINE = {"age": ["a", "a", "b", "b"], "disease": ["flu", "cold", "flu", "NA"], "charge": [1.0, 2.0, 1.0, 5.0]}
TABLES = {
    "fine": {},
    "small groups": {"age": ["a", "a", "b", "c"]},
    "lookalikes": {"disease": ["flu", "flu\u200b", "ﬂu", "cold"]},
    "blank and missing": {"disease": [" ", "NA", "it's \\n", "it's"]},
    "too many spellings of one": {"disease": ["flu ", " flu", "flu", "flu\n"]},
    "two zeros": {"age": pa.array([0.0, 0.0, -0.0, 0.0])},
    "nan is no null": {"age": pa.array([math.nan, math.nan, None, None])},
    "values that are nan": {"disease": pa.array([math.nan, None, 1.0, 2.0])},
    "numbers as text": {"charge": ["1", " 2.0", "1e0", "5"]},
    "an identifier that tells": {"name": ["x", "x", "y", "x"]},
    "an identifier that does not": {"name": ["*"] * 4},
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_lines_of_the_usual_check(name, spark, tmp_path):
    rows = pa.table({**FINE, **TABLES[name]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    policy = sf.Policy.parse(POLICY)
    usual = lines(sf.verify_table(tmp_path / "rows.parquet", policy))
    assert lines(sf.verify_table(tmp_path / "rows.parquet", policy, engine="spark")) == usual
    assert lines(sf.verify_table(spark.read.parquet(str(tmp_path / "rows.parquet")), policy)) == usual


def test_the_command_checks_a_table(spark, tmp_path, capsys):
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    for changes, code in (({}, 0), (TABLES["small groups"], 1)):
        pq.write_table(pa.table({**FINE, **changes}), tmp_path / "rows.parquet")
        given = [str(tmp_path / "rows.parquet"), "--policy", str(tmp_path / "policy.yaml")]
        assert cli.run(["verify", *given, "--engine", "spark"]) == code
    assert (
        "FAIL  2-anonymity holds: the smallest group is 1, and 2 of 3 groups fail" in capsys.readouterr().out
    )


@pytest.mark.parametrize("which", ["", "*.parquet", "**/part-[01].parquet", "part-0.parquet"])
def test_the_command_checks_folders_and_globs_of_files(which, spark, tmp_path, capsys):
    rows, folder = pa.table({**FINE, "age": ["a", "a", "b", "c"]}), tmp_path / "lake [1]"
    folder.mkdir()
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    for number in (0, 1):
        pq.write_table(rows.slice(2 * number, 2), folder / f"part-{number}.parquet")
    (folder / "_SUCCESS").touch()
    table = glob.escape(str(folder)) + f"/{which}" if "*" in which else str(folder / which)
    command = ["verify", table, "--policy", str(tmp_path / "policy.yaml")]
    said = []
    for engine in ("auto", "spark"):
        code = cli.run([*command, "--engine", engine])
        said.append([code, *capsys.readouterr().out.splitlines()])
    assert said[0] == said[1]
    assert said[0][0] == (0 if which == "part-0.parquet" else 1)


def test_a_cell_that_cannot_be_read_is_not_quoted(spark, tmp_path):
    pq.write_table(pa.table({**FINE, "charge": ["1", "secret", "2", "3"]}), tmp_path / "rows.parquet")
    with pytest.raises(
        InputError, match=r"^A cell is not the number or date that its column should hold"
    ) as told:
        sf.verify_table(tmp_path / "rows.parquet", sf.Policy.parse(POLICY), engine="spark")
    assert "secret" not in str(told.value)


def test_an_infinite_number_is_refused(spark, tmp_path):
    rows = pa.table({**FINE, "charge": [1.0, math.inf, 2.0, 3.0]})
    with pytest.raises(InputError, match="Column 'charge' has 1 row with an infinite number"):
        sf.verify_table(spark.createDataFrame(rows), sf.Policy.parse(POLICY))


def test_a_table_without_rows_is_refused(spark):
    with pytest.raises(InputError, match="has no rows"):
        sf.verify_table(spark.createDataFrame(pa.table(FINE)).limit(0), sf.Policy.parse(POLICY))


def test_what_has_no_sql_is_refused_and_not_passed(spark, tmp_path):
    publish_to(tmp_path / "private", people(300), sf.Policy.parse(DIFFGEN), Request(seed=1))
    with pytest.raises(InputError, match=r"\(differential privacy\) have no SQL; leave out --engine"):
        sf.verify_folder(tmp_path / "private", engine="spark")
    ordered = ATTRIBUTES.replace(
        "disease: {role: sensitive}", "disease: {role: sensitive, hierarchy: {mask: 3}}"
    )
    ordered += "require: [t-closeness: {t: 1, of: disease, distance: hierarchical}]\n"
    with pytest.raises(InputError, match="has no SQL, as the policy does not list the values"):
        sf.verify_table(spark.createDataFrame(people(20)), sf.Policy.parse(ordered))
    publish_to(tmp_path / "csv", people(300), sf.Policy.parse(MONDRIAN), Request(file_format="csv"))
    with pytest.raises(InputError, match="Spark checks Parquet files or a DataFrame of its own"):
        sf.verify_folder(tmp_path / "csv", engine="spark")


def test_the_session_is_left_as_it_was(spark):
    spark.createDataFrame([("mine",)], ["cell"]).createOrReplaceTempView("release")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert sf.verify_table(spark.createDataFrame(pa.table(FINE)), sf.Policy.parse(POLICY)).ok
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
        assert [row.cell for row in spark.table("release").collect()] == ["mine"]
        assert [table.name for table in spark.catalog.listTables()] == ["release"]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
        spark.catalog.dropTempView("release")
