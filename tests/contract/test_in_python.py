"""What the command line does, in Python: drafts, comparisons, progress, and what a notebook shows."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.examples.demo import patients
from sfumato.kernels.watch import tell
from sfumato.progress import showing
from sfumato.table.write import write_table

POLICY = {
    "title": "Stays & <charges>",
    "attributes": {
        "age": {"role": "quasi-identifier", "type": "number"},
        "sex": {"role": "quasi-identifier"},
        "diagnosis": {"role": "sensitive"},
        "readmitted": {"role": "other"},
        "*": {"role": "drop"},
    },
    "require": [{"k-anonymity": 5}],
    "workload": [{"classify": "readmitted"}],
}
PRIVATE = {
    "attributes": {
        "age": {"role": "quasi-identifier", "type": "number", "bounds": [0, 110], "step": 1},
        "readmitted": {"role": "other", "values": ["no", "yes"]},
        "*": {"role": "drop"},
    },
    "workload": [{"classify": "readmitted"}],
    "method": {"diffgen": {"epsilon": 1, "cuts": {"age": [50]}}},
}
TABLE = patients(300, seed=3)
EASY = {"folds": 2, "models": ["decision-tree"]}


# ---- the same as on the command line --------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--private"]], ids=["draft", "private"])
def test_profile_drafts_what_the_command_drafts(sfumato, tmp_path, options):
    write_table(TABLE, tmp_path / "t.csv")
    draft = sf.profile(tmp_path / "t.csv", private=bool(options))
    assert sfumato("profile", str(tmp_path / "t.csv"), *options).out == draft.to_yaml()
    assert draft.policy() == sf.Policy.parse(draft.to_yaml())


def test_compare_finds_what_the_command_finds(sfumato, tmp_path):
    write_table(TABLE, tmp_path / "t.csv")
    policy = sf.Policy.from_dict(POLICY)
    (tmp_path / "policy.yaml").write_text(policy.to_yaml(), encoding="utf-8")
    out = tmp_path / "frontier"
    done = sfumato(
        "compare", str(tmp_path / "t.csv"), "--policy", str(tmp_path / "policy.yaml"), "--vary", "k=5,50",
        "--folds", "2", "--models", "decision-tree", "--out", str(out),
    )  # fmt: skip
    assert done.code == 0
    found = sf.compare(tmp_path / "t.csv", policy, {"k": [5, 50]}, **EASY)
    assert (out / "frontier.json").read_text(encoding="utf-8") == found.to_json()
    assert found == sf.compare(tmp_path / "t.csv", policy, ["k=5,50"], **EASY)


def test_what_is_varied_is_checked_as_on_the_command_line():
    mistakes: tuple[Any, ...] = ({"q": [1]}, {"k": []}, {"k": ["many"]}, {}, ["k"], "k=")
    for wrong in mistakes:
        with pytest.raises(InputError):
            sf.compare(TABLE, POLICY, wrong, **EASY)


# ---- progress -------------------------------------------------------------------------------------------

RUNS = {
    "publish": (lambda **how: sf.publish(TABLE, POLICY, **how), "splitting"),
    "evaluate": (lambda **how: sf.evaluate(TABLE, POLICY, **EASY, **how), "evaluating"),
    "compare": (lambda **how: sf.compare(TABLE, POLICY, {"k": [5]}, **EASY, **how), "comparing"),
    "profile": (lambda **how: sf.profile(TABLE, **how), "profiling"),
}


@pytest.mark.parametrize("name", RUNS)
def test_progress_is_shown_told_or_neither(name, capsys):
    run, stage = RUNS[name]
    seen = []
    run(progress=lambda *told: seen.append(told))
    assert stage in {told[0] for told in seen}
    run()
    run(progress=False)
    assert capsys.readouterr() == ("", "")
    run(progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert f"sfumato: {stage}\n" in err
    with pytest.raises(InputError, match="progress is True, False, or a function"):
        run(progress="yes")


def test_progress_tells_that_inner_loops_are_compiled(capsys, monkeypatch):
    monkeypatch.setattr("sfumato.kernels.compile.cache_folder", lambda: None)
    with showing(progress=True) as told:
        tell(0, 4)
        tell(4, 4)
        told("splitting", 0, 1)
    err = capsys.readouterr().err
    assert err.startswith("Compiling the inner loops: in every run")
    assert err.endswith("Compiled 100% of all that could be needed.\nsfumato: splitting\n")


def test_progress_is_a_bar_on_a_terminal():
    program = """
import sfumato as sf, pyarrow as pa
sf.publish(pa.table({"age": [1, 2, 3, 4]}), {"attributes": {"age": {"role": "quasi-identifier", "type": "number"}},
"require": [{"k-anonymity": 2}]}, progress=True)
"""
    script = ["script", "-qec", f"{sys.executable} -c '{program}'", "/dev/null"]
    try:
        done = subprocess.run(script, capture_output=True, check=True)
    except FileNotFoundError:
        pytest.skip("there is no script(1) here to make a terminal")
    assert "━".encode() in done.stdout
    assert b"\x1b[?25h" in done.stdout  # the cursor is back


# ---- what is shown --------------------------------------------------------------------------------------


def all_values() -> dict[str, object]:
    release = sf.publish(TABLE, POLICY, seed=1)
    return {
        "release": release,
        "certificate": release.certificate,
        "policy": sf.Policy.from_dict(POLICY),
        "evaluation": sf.evaluate(TABLE, POLICY, **EASY),
        "comparison": sf.compare(TABLE, POLICY, {"k": [5, 1000]}, **EASY),
        "draft": sf.profile(TABLE),
        "private draft": sf.profile(TABLE, private=True),
        "private release": sf.publish(TABLE, PRIVATE, seed=1),
        "private policy": sf.Policy.from_dict(PRIVATE),
    }


@pytest.fixture(scope="module")
def values():
    return all_values()


REPRS = {
    "release": r"<Release of 300 rows in \d+ groups: 5-anonymity>",
    "certificate": r"<Certificate of 300 rows in \d+ groups: k-anonymity: 5>",
    "policy": r"<Policy for 5 columns: 5-anonymity, by mondrian>",
    "evaluation": r"<Evaluation of readmitted: 9 scores, tested on 2 folds>",
    "comparison": r"<Comparison of 2 settings of k: 1 can be met>",
    "draft": r"<Draft of a policy for 300 rows: \d+ quasi-identifiers, .*>",
    "private draft": r"<Draft of a private policy for 300 rows: \d+ quasi-identifiers, .*>",
    "private release": r"<Release of counts in \d+ cells: nothing is promised>",
    "private policy": r"<Policy for 3 columns: epsilon 1, by diffgen>",
}


@pytest.mark.parametrize("name", REPRS)
def test_a_repr_is_one_short_line(values, name):
    assert re.fullmatch(REPRS[name], repr(values[name]))


SHOWN = {
    "release": ("Promised: k-anonymity: 5.", "<strong>300</strong> rows", "data:image/svg+xml", "exact"),
    "certificate": ("Promised: k-anonymity: 5.", "<strong>300</strong> rows", "smallest group"),
    "policy": ("Stays &amp; &lt;charges&gt;", "5-anonymity", "quasi-identifier", "Made for: classify"),
    "evaluation": ("decision-tree: accuracy", "Raw data", "average group size"),
    "comparison": ("data:image/svg+xml", "k=5", "k=1000 cannot be published", "For the owner&#39;s eyes"),
    "draft": ("it is a guess", "Others may know it of a person"),
    "private draft": ("Keep it to yourself", "REPLACE what was read from the table"),
    "private release": ("Nothing is promised.", "cells", "data:image/svg+xml"),
    "private policy": ("epsilon 1", "drop"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_shows_the_promise_the_counts_and_the_picture(values, name):
    page = values[name]._repr_html_()
    for words in SHOWN[name]:
        assert words in page
    ET.fromstring(page)  # every element is closed
    assert "<script" not in page


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_shows_no_cell_of_the_table(values, name):
    """Of what is published, too: labels of groups and rows are in the release, and not in the card."""
    page = values[name]._repr_html_() + repr(values[name])
    for column in ("patient_id", "insurance_number", "diagnosis", "zip"):
        cells = set(map(str, TABLE.column(column).to_pylist()))
        assert not [cell for cell in cells if cell in page and len(cell) > 4]


@pytest.mark.parametrize("name", ["release", "comparison", "private release"])
def test_a_picture_is_an_image_that_can_run_nothing(values, name):
    (code,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', values[name]._repr_html_())
    picture = base64.b64decode(code).decode()
    assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"


def test_names_of_columns_are_escaped():
    table = pa.table({"<b>age": [1, 2, 3, 4]})
    policy = sf.Policy.from_dict(
        {
            "attributes": {"<b>age": {"role": "quasi-identifier", "type": "number"}},
            "require": [{"k-anonymity": 2}],
        }
    )
    for value in (policy, sf.publish(table, policy), sf.profile(table)):
        assert "<b>" not in value._repr_html_()


def test_a_release_that_is_read_shows_its_picture_and_a_hostile_report_shows_none_of_its_own(
    values, tmp_path
):
    release = values["release"]
    release.write(tmp_path / "out")
    read = sf.Release.read(tmp_path / "out")
    assert "data:image/svg+xml" in read._repr_html_()
    hostile = '<section id="picture"><svg><script>alert(1)</script></svg></section>'
    for report in (hostile, "<svg", '<section id="picture">', ""):
        assert "<script" not in replace(read, report=report)._repr_html_()
