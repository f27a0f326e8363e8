"""Further rows that are recoded on Spark are those that one process recodes, in their order."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import tradeoff_releases
from spark_people import METHODS, MONDRIAN, people

import sfumato as sf
from sfumato import cli
from sfumato.engines.spark import apply as spark_apply
from sfumato.publishing import Request, publish_to
from sfumato.recoding.recoder import Spelling

KINDS = """
attributes:
  age: {role: quasi-identifier, type: number}
  born: {role: quasi-identifier, type: date}
  floor: {role: quasi-identifier}
  seen: {role: quasi-identifier}
  job: {role: quasi-identifier, hierarchy: {tree: {"*": {Art: [dancer, writer], Law: [clerk, judge]}}}}
  name: {role: identifier}
  disease: {role: sensitive}
require: [k-anonymity: 4]
output: {values: both}
"""


def kinds(n: int, seed: int) -> pa.Table:
    """Columns of every kind; the first half has whole floors and times at midnight alone, unlike the rest."""
    random = np.random.default_rng(seed)
    is_late = np.arange(n) >= n // 2
    floor = random.integers(1, 4, n) + np.where(is_late & (random.random(n) < 0.5), 0.5, 0)
    seen = [
        dt.datetime(2024, 3, 1 + i % 3, 10 if late and i % 2 else 0)  # noqa: DTZ001 - as a table has it
        for i, late in enumerate(is_late)
    ]
    return pa.table(
        {
            "age": random.integers(0, 100, n),
            "born": pa.array(random.integers(0, 20_000, n).astype("int32")).cast(pa.date32()),
            "floor": floor,
            "seen": seen,
            "job": random.choice(["dancer", "writer", "clerk", "judge"], n),
            "name": [f"name {i}" for i in range(n)],
            "disease": random.choice(["flu", "cold"], n),
        }
    )


CASES = {
    "mondrian": (MONDRIAN, people(900), people(1500)),
    "tds": (METHODS["tds"], people(900), people(1500)),
    "kinds": (KINDS, kinds(400, 1), kinds(300, 2)),
    "escaped": (MONDRIAN + "output: {formulas: escape}\n", people(900), people(400)),
}


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """A release of each policy, and further rows in row groups of their own."""

    def make(name: str) -> tuple[Path, Path]:
        folder = tmp_path_factory.getbasetemp() / f"made-{name}"
        policy, known, further = CASES[name]
        if not folder.exists():
            folder.mkdir()
            publish_to(folder / "out", known, sf.Policy.parse(policy), Request(file_format="parquet", seed=1))
            pq.write_table(further, folder / "further.parquet", row_group_size=50)
        return folder / "out", folder / "further.parquet"

    return make


@pytest.mark.parametrize("name", CASES)
def test_rows_are_recoded_as_by_one_process(name, made, tmp_path, capsys):
    release, further = made(name)
    assert cli.run(["apply", str(release), str(further), "--out", str(tmp_path / "one.parquet")]) == 0
    given = [str(release), str(further), "--out", str(tmp_path / "parts.parquet"), "--engine", "spark"]
    assert cli.run(["apply", *given]) == 0
    assert "rows recoded, without a promise." in capsys.readouterr().out
    parts = sorted((tmp_path / "parts.parquet").iterdir())
    assert [part.name for part in parts] == ["part-00000.parquet", "part-00001.parquet"]
    found = [row for part in parts for row in pq.read_table(part).to_pylist()]
    assert found == pq.read_table(tmp_path / "one.parquet").to_pylist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.parquet", "parts.parquet"]


def test_slices_that_are_spelled_each_for_itself_would_differ(made, tmp_path, monkeypatch):
    """What the first job gathers is needed: without it the rows are others."""
    release, further = made("kinds")
    monkeypatch.setattr(Spelling, "merge", lambda _own, _other: None)
    cli.run(["apply", str(release), str(further), "--out", str(tmp_path / "one.parquet")])
    cli.run(["apply", str(release), str(further), "--out", str(tmp_path / "p.parquet"), "--engine", "spark"])
    found = [
        row for part in sorted((tmp_path / "p.parquet").iterdir()) for row in pq.read_table(part).to_pylist()
    ]
    assert found != pq.read_table(tmp_path / "one.parquet").to_pylist()


def test_text_is_recoded_as_by_one_process(made, tmp_path):
    release, _ = made("mondrian")
    pc.write_csv(people(300), tmp_path / "further.csv")
    given = [str(release), str(tmp_path / "further.csv")]
    assert cli.run(["apply", *given, "--out", str(tmp_path / "one.parquet")]) == 0
    assert cli.run(["apply", *given, "--out", str(tmp_path / "parts.parquet"), "--engine", "spark"]) == 0
    assert (
        pq.read_table(tmp_path / "parts.parquet").to_pylist()
        == pq.read_table(tmp_path / "one.parquet").to_pylist()
    )


def test_what_is_there_is_replaced_only_if_that_is_allowed_and_it_is_parts(made, tmp_path, capsys):
    release, further = made("escaped")
    given = ["apply", str(release), str(further), "--engine", "spark", "--out"]
    out = tmp_path / "parts.parquet"
    out.mkdir()
    (out / "part-00007.parquet").write_bytes(b"")
    assert cli.run([*given, str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert cli.run([*given, str(out), "--overwrite"]) == 0
    assert not (out / "part-00007.parquet").exists()
    (out / "mine.txt").write_bytes(b"")
    assert cli.run([*given, str(out), "--overwrite"]) == 2
    assert "is no folder of Parquet parts" in capsys.readouterr().err
    assert cli.run([*given, str(tmp_path / "rows.csv")]) == 2
    assert "its name ends in .parquet" in capsys.readouterr().err
    assert cli.run([*given, str(tmp_path / "none" / "rows.parquet")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_where_folders_cannot_be_exchanged_the_old_one_goes_first(made, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_apply, "exchange", lambda *_: False)
    release, further = made("escaped")
    out = tmp_path / "parts.parquet"
    out.mkdir()
    given = ["apply", str(release), str(further), "--engine", "spark", "--out", str(out), "--overwrite"]
    assert cli.run(given) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["parts.parquet"]


def test_a_folder_that_appears_meanwhile_stays_as_it_is(made, tmp_path, monkeypatch, capsys):
    release, further = made("escaped")
    out = tmp_path / "parts.parquet"
    usual = spark_apply.Spelling.of

    def of(*given):
        out.mkdir()
        return usual(*given)

    monkeypatch.setattr(spark_apply.Spelling, "of", of)
    given = ["apply", str(release), str(further), "--engine", "spark", "--out", str(out)]
    assert cli.run(given) == 2
    assert "appeared while this run was at work" in capsys.readouterr().err
    assert not list(out.iterdir())


def test_a_faulty_cell_is_told_by_its_row_in_the_table(made, tmp_path, capsys):
    release, _ = made("mondrian")
    rows = people(300).to_pylist()
    rows[231]["age"] = "secret"
    texts = pa.table({name: [str(row[name]) for row in rows] for name in rows[0]})
    pq.write_table(texts, tmp_path / "rows.parquet", row_group_size=100)
    given = ["apply", str(release), str(tmp_path / "rows.parquet"), "--out", str(tmp_path / "out.parquet")]
    assert cli.run(given) == 2
    expected = capsys.readouterr().err
    assert cli.run([*given, "--engine", "spark"]) == 2
    assert capsys.readouterr().err == expected
    assert "row 232" in expected
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_rows_that_are_optimized_anew_are_not_spread(tmp_path, capsys):
    policy = sf.Policy.parse(tradeoff_releases.POLICY)
    publish_to(tmp_path / "out", tradeoff_releases.people(), policy, Request(seed=1))
    pq.write_table(tradeoff_releases.people(), tmp_path / "rows.parquet")
    given = [
        "apply",
        str(tmp_path / "out"),
        str(tmp_path / "rows.parquet"),
        "--out",
        str(tmp_path / "x.parquet"),
    ]
    assert cli.run([*given, "--engine", "spark"]) == 2
    assert "Rows are optimized by this process; leave out --engine." in capsys.readouterr().err
