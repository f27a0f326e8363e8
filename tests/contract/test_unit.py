"""Groups of people on the command line: what publish and verify say, and what is refused."""

from __future__ import annotations

import json

import pytest

POLICY = """
attributes:
  patient: {role: identifier}
  age: {role: quasi-identifier, type: number, bounds: [20, 51], step: 1}
  disease: {role: sensitive}
require: [k-anonymity: 3]
unit: patient
"""


@pytest.fixture
def stays(tmp_path):
    """Sixty stays of twenty people, of whom each is always as old."""
    lines = [f"p{i % 20},{20 + i % 20},{['flu', 'cold'][i % 2]}" for i in range(60)]
    path = tmp_path / "stays.csv"
    path.write_text("patient,age,disease\n" + "\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return path


def test_publish_says_people_and_verify_counts_them_again(sfumato, stays, tmp_path):
    out = tmp_path / "release"
    done = sfumato("publish", stays, "--policy", tmp_path / "policy.yaml", "--out", out)
    assert done.code == 0, done.err
    assert "60 rows of 20 people in " in done.out
    assert "3-anonymity: holds; the smallest group has 5 people" in done.out
    assert (out / "release.csv").read_text(encoding="utf-8").startswith("age,disease")
    claims = json.loads((out / "certificate.json").read_text(encoding="utf-8"))["claims"]
    assert (claims["unit"], claims["people"], claims["requirements"][0]["achieved"]) == ("patient", 20, 5.0)
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "for all 20 people" in report
    head = report.split("<main>")[0]
    assert "<dt>people</dt><dd>20</dd>" in head
    assert "<dt>people in the smallest group</dt><dd>5</dd>" in head
    assert head.index("The risk of re-identification is <strong>1 in 5</strong>") < head.index(
        "How much is left"
    )
    assert "Of the people, each counted once in a group, " in head
    counted = sfumato("query", out, "COUNT(*)").out
    assert "  value  60\n" in counted
    assert "  note   rows are counted, not people\n" in counted
    assert "at least 3 people" in report

    alone = sfumato("verify", out)
    assert alone.code == 0, alone.err
    assert "note  owner's word: 3-anonymity holds of people: the rows do not say whose they are" in alone.out
    assert "ok    the report is what the release is rendered as" in alone.out
    assert sfumato("verify", out, "--strict").code == 1
    again = sfumato("verify", out, "--table", stays)
    assert again.code == 0, again.err
    assert "ok    3-anonymity holds of people: the smallest group has 5 people" in again.out


def test_rows_without_a_person_are_refused_and_no_cell_is_told(sfumato, stays, tmp_path):
    text = stays.read_text(encoding="utf-8").replace("p7,", ",")
    stays.write_text(text, encoding="utf-8")
    done = sfumato("publish", stays, "--policy", tmp_path / "policy.yaml", "--out", tmp_path / "release")
    assert done.code == 2
    assert "Column 'patient', the unit, is missing in 3 rows" in done.err
    assert "p7" not in done.err
    assert not (tmp_path / "release").exists()


def test_too_few_people_are_said_to_be_too_few(sfumato, stays, tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY.replace("anonymity: 3", "anonymity: 21"), encoding="utf-8")
    done = sfumato("publish", stays, "--policy", tmp_path / "policy.yaml", "--out", tmp_path / "release")
    assert done.code == 1
    assert "has only 20 people" in done.err


def test_the_raw_table_is_for_a_folder_alone(sfumato, stays, tmp_path):
    done = sfumato("verify", stays, "--policy", tmp_path / "policy.yaml", "--table", stays)
    assert done.code == 2
    assert "leave out --policy" in done.err
