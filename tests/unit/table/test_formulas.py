"""Cells that spreadsheets would run: marked in files, and read as they were."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato import cli
from sfumato.errors import PolicyError
from sfumato.publishing import Request, publish_to
from sfumato.table.formulas import columns_with_formulas, escape, read_escaped
from sfumato.table.opening import open_table

SIGNS = st.text(alphabet="'=@+-\t.5e", max_size=6)

POLICY = """
attributes:
  age:   {role: quasi-identifier, type: number}
  group: {role: quasi-identifier, hierarchy: {tree: {"=all": {"-low": ["@a", "+b"], "high": ["'=c", "d"]}}}}
  note:  {role: other}
  delta: {role: other, type: number}
require: [k-anonymity: 2]
"""
TABLE = pa.table(
    {
        "age": [30, 31, 32, 33, 60, 61],
        "group": ["@a", "@a", "+b", "+b", "'=c", "'=c"],
        "note": ["=cmd|'/c calc'!A1", "\tx", "-2.5", "'=quoted", None, "fine"],
        "delta": [-1, -2, -3, -4, -5, -6],
    }
)


@given(cells=st.lists(SIGNS | st.none()), as_dictionary=st.booleans())
def test_what_was_escaped_is_read_as_it_was(cells, as_dictionary):
    column = pa.chunked_array([pa.array(cells, pa.string())])
    table = pa.table({"c": column.dictionary_encode() if as_dictionary else column})
    written = escape(table)
    if cells:
        assert read_escaped(open_table(written)).column("c").to_pylist() == cells
    for cell in written.column("c").to_pylist():
        assert cell is None or cell[:1] not in {"=", "@", "\t"}
        if cell is not None and cell[:1] in {"+", "-"}:
            float(cell)


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"), ("@SUM(A1)", "'@SUM(A1)"), ("+49 30 1", "'+49 30 1"), ("-", "'-"), ("\tx", "'\tx"),
        ("-5", "-5"), ("+5.25", "+5.25"), ("-1e-3", "-1e-3"), ("-.5", "-.5"), ("[-5, 3]", "[-5, 3]"),
        ("-5 to 3", "'-5 to 3"), ("'=x", "''=x"), ("'x", "'x"), ("", ""), ("a=b", "a=b"), ("-1\n=x", "'-1\n=x"),
    ],
)  # fmt: skip
def test_text_is_marked_and_numbers_are_not(cell, written):
    assert escape(pa.table({"c": [cell]})).column("c").to_pylist() == [written]


def test_numbers_and_dates_of_other_types_are_never_touched():
    table = pa.table({"n": [-1, 2], "f": [-0.5, None], "d": pa.array([-1, 0], pa.date32())})
    assert escape(table).equals(table)
    assert columns_with_formulas([table]) == ()


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_release_is_escaped_in_its_file_verified_and_read_as_it_was(tmp_path, engine, format_):
    policy = sf.Policy.parse(POLICY + "output: {formulas: escape}\n")
    release = publish_to(tmp_path / "out", TABLE, policy, Request(seed=1, engine=engine, file_format=format_))
    path = tmp_path / "out" / f"release.{format_}"
    rows = pq.read_table(path) if format_ == "parquet" else pacsv.read_csv(path)
    notes = set(rows.column("note").cast(pa.string()).to_pylist())
    assert {"'=cmd|'/c calc'!A1", "'\tx", "-2.5", "''=quoted", "fine"} <= notes
    assert all(
        label.startswith(("'", "d", "high")) for label in rows.column("group").cast(pa.string()).to_pylist()
    )
    assert sorted(rows.column("delta").to_pylist()) == [-6, -5, -4, -3, -2, -1]
    assert sf.verify_folder(tmp_path / "out").ok
    read = sf.Release.read(tmp_path / "out")
    assert set(read.rows.column("note").to_pylist()) == {*TABLE.column("note").to_pylist()}
    assert release.select("age < 40").num_rows == read.select("age < 40").num_rows
    assert read.policy == policy


def test_apply_marks_what_it_writes(tmp_path, capsys):
    sf.publish(TABLE, sf.Policy.parse(POLICY + "output: {formulas: escape}\n")).write(tmp_path / "out")
    pacsv.write_csv(TABLE, tmp_path / "more.csv")
    paths = [str(tmp_path / name) for name in ("out", "more.csv", "recoded.csv")]
    assert cli.run(["apply", *paths[:2], "--out", paths[2]]) == 0
    notes = pacsv.read_csv(paths[2]).column("note").to_pylist()
    assert notes == ["'=cmd|'/c calc'!A1", "'\tx", "-2.5", "''=quoted", "", "fine"]


@pytest.mark.parametrize("way", ["keep", "escape"])
def test_publish_names_the_columns_with_formulas_and_no_cell(tmp_path, capsys, way):
    (tmp_path / "policy.yaml").write_text(POLICY + f"output: {{formulas: {way}}}\n")
    pacsv.write_csv(TABLE, tmp_path / "t.csv")
    arguments = ["publish", str(tmp_path / "t.csv"), "--policy", str(tmp_path / "policy.yaml"), "--out"]
    assert cli.run([*arguments, str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    if way == "escape":
        assert "formulas" not in said
        return
    assert "note: cells of 'group', 'note' begin with" in said
    assert "cmd" not in said
    assert cli.run([*arguments, str(tmp_path / "quiet"), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_nothing_is_said_under_differential_privacy(tmp_path, capsys):
    (tmp_path / "policy.yaml").write_text(
        "attributes: {job: {role: quasi-identifier, values: ['=a', b]}, c: {role: other, values: [x, z]}}\n"
        "workload: [classify: c]\nmethod: {diffgen: {epsilon: 1}}\n"
    )
    (tmp_path / "t.csv").write_text("job,c\n=a,x\nb,z\n")
    arguments = ["publish", str(tmp_path / "t.csv"), "--policy", str(tmp_path / "policy.yaml"), "--out"]
    assert cli.run([*arguments, str(tmp_path / "out")]) == 0
    assert "formulas" not in capsys.readouterr().err


def test_a_private_release_is_escaped_and_verified(tmp_path):
    policy = sf.Policy.parse(
        "attributes: {job: {role: quasi-identifier, values: ['=a', b]}, c: {role: other, values: ['-x', z]}}\n"
        "workload: [classify: c]\nmethod: {diffgen: {epsilon: 1, cuts: {job: ['=a', b]}}}\n"
        "output: {formulas: escape}\n"
    )
    table = pa.table({"job": ["=a", "b"] * 20, "c": ["-x", "z"] * 20})
    sf.publish(table, policy, file_format="csv").write(tmp_path / "out")
    assert "'=a,'-x," in (tmp_path / "out" / "release.csv").read_text()
    assert sf.verify_folder(tmp_path / "out").ok


def test_a_policy_keeps_its_word_and_refuses_others():
    assert sf.Policy.parse(POLICY).formulas == "keep"
    assert "formulas" not in sf.Policy.parse(POLICY).as_dict()["output"]
    policy = sf.Policy.parse(POLICY + "output: {formulas: escape}\n")
    assert sf.Policy.from_dict(policy.as_dict()) == policy
    with pytest.raises(PolicyError, match="keep"):
        sf.Policy.parse(POLICY + "output: {formulas: quote}\n")
