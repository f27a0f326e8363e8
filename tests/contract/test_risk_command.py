"""``sfumato risk``: of releases and tables of any tool, what it writes, and what it refuses."""

from __future__ import annotations

import importlib
import json
import math
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import POLICY, people

import sfumato as sf
from sfumato.release.release import Release
from sfumato.risk.minimal_uniques import SCORES

KEYS = [
    *(
        "format",
        "of",
        "unit",
        "quasi-identifiers",
        "rows",
        "people",
        "groups",
        "prosecutor",
        "journalist",
        "marketer",
    ),
    *("individual", "uniques", "suda", "attacks", "together"),
]

SMALL = """
attributes:
  age: {role: quasi-identifier, type: number}
  zip: {role: quasi-identifier}
  who: {role: identifier}
  weight: {role: other}
require: []
"""
ROWS = "age,zip,who,weight\n31,a,p1,2\n31,a,p2,3\n44,b,p3,10.5\n44,b,p3,10.5\n"


@pytest.fixture
def small(here):
    (here / "small.yaml").write_text(SMALL, encoding="utf-8")
    (here / "unit.yaml").write_text(f"{SMALL}unit: who\n", encoding="utf-8")
    (here / "small.csv").write_text(ROWS, encoding="utf-8")
    return ("risk", "small.csv", "--policy", "small.yaml")


def found_by(sfumato, here, *arguments):
    done = sfumato(*arguments, "--out", "risk.json", "--overwrite")
    assert done.code == 0, done.err
    return json.loads((here / "risk.json").read_text(encoding="utf-8"))


# ---- what it finds -------------------------------------------------------------------------------------


def test_the_risk_of_a_release_is_what_its_certificate_claims(sfumato, here, release):
    found = found_by(sfumato, here, "risk", release)
    claims = json.loads((release / "certificate.json").read_text(encoding="utf-8"))["claims"]
    assert list(found) == KEYS
    assert (found["format"], found["of"], found["unit"], found["people"]) == (1, "release", None, None)
    assert (found["rows"], found["groups"]) == (claims["rows"], claims["groups"])
    assert found["quasi-identifiers"] == ["age", "sex", "zip"]
    assert found["prosecutor"] == claims["risk"]
    assert found["uniques"] == {"sample": 0, "population": None}
    for key in ("journalist", "marketer", "individual", "suda", "attacks", "together"):
        assert found[key] is None


def test_it_is_said_in_words(sfumato, here, small):
    done = sfumato(*small)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "The table has 4 rows in 2 groups by age and zip."
    assert "1 in 2 at most, 1 in 2 on average; above 1/5: 100%" in done.out
    assert sfumato(*small, "--quiet").out == ""
    by_stdin = sfumato("risk", "-", "--policy", "small.yaml", stdin=ROWS.encode())
    assert (by_stdin.code, by_stdin.out) == (0, done.out)


def test_people_are_counted_where_the_policy_has_a_unit(sfumato, here, small):
    found = found_by(sfumato, here, "risk", "small.csv", "--policy", "unit.yaml", "--weight", "weight")
    assert (found["unit"], found["people"], found["rows"], found["uniques"]["sample"]) == ("who", 3, 4, 1)
    assert found["prosecutor"]["largest"] == 1.0
    # two of five: p^2 (1/p + ln p / q) / q with p = .4; and one of 10.5, once: -p ln p / q
    two = 0.4**2 * (1 / 0.4 + math.log(0.4) / 0.6) / 0.6
    one = math.log(10.5) / 10.5 / (1 - 1 / 10.5)
    assert found["individual"] == pytest.approx({"largest": two, "mean": (2 * two + one) / 3})
    assert found["journalist"]["population"] == "weights"


def test_without_the_column_of_the_unit_rows_are_counted_and_it_is_said(sfumato, here, small):
    (here / "bare.csv").write_text("age,zip\n31,a\n31,a\n", encoding="utf-8")
    done = sfumato("risk", "bare.csv", "--policy", "unit.yaml")
    assert "note: Groups count rows: the table has no column 'who'" in done.out


def test_a_release_that_counts_people_says_whose_word_is_missing_until_the_raw_table_is_named(sfumato, here):
    lines = [f"p{i % 20},{20 + i % 20},{['flu', 'cold'][i % 2]}" for i in range(60)]
    (here / "stays.csv").write_text("patient,age,disease\n" + "\n".join(lines) + "\n", encoding="utf-8")
    (here / "unit.yaml").write_text(
        "attributes:\n  patient: {role: identifier}\n  age: {role: quasi-identifier, type: number, bounds: [20, 51]}\n"
        "  disease: {role: sensitive}\nrequire: [k-anonymity: 3]\nunit: patient\n",
        encoding="utf-8",
    )
    assert sfumato("publish", "stays.csv", "--policy", "unit.yaml", "--out", "out").code == 0
    claims = json.loads((here / "out" / "certificate.json").read_text(encoding="utf-8"))["claims"]
    by_rows = sfumato("risk", "out")
    assert (
        "note: Groups count rows: the release does not say whose they are. Name the raw table" in by_rows.out
    )
    found = found_by(sfumato, here, "risk", "out", "--table", "stays.csv")
    assert (found["unit"], found["people"], found["rows"]) == ("patient", 20, 60)
    assert found["prosecutor"] == claims["risk"]
    (here / "other.csv").write_text("patient,age,disease\n" + "\n".join(lines[:-1]) + "\n", encoding="utf-8")
    assert "are not those of the release" in sfumato("risk", "out", "--table", "other.csv").sentence


def test_people_of_a_population_belong_to_the_group_that_the_recoding_sends_them_to():
    """Under a rest label, ``*``, only those count who are of no country that was told apart: by label all would."""
    rows = pa.table({"country": ["US"] * 60 + ["PE", "PE", "CL"], "ill": ["flu"] * 63})
    policy = {
        "attributes": {"country": {"role": "quasi-identifier"}, "ill": {"role": "sensitive"}},
        "require": [{"k-anonymity": 3}],
    }
    release = sf.publish(rows, policy)
    assert set(release.table["country"].to_pylist()) == {"US", "*"}
    population = pa.table({"country": ["US"] * 100 + ["PE"] * 3 + ["CL"]})
    found = sf.risk(release, population=population)
    assert found.journalist.largest == pytest.approx(1 / 4)
    assert found.marketer == pytest.approx((60 / 100 + 3 / 4) / 63)
    assert found.journalist.mean == pytest.approx(found.marketer)


def test_a_population_is_compared_by_values_whatever_it_is_stored_in(sfumato, here, small):
    pq.write_table(
        pa.table({"age": [31.0, 31, 31, 44, 44, 50.5], "zip": ["a", "a", "a", "b", "b", "c"]}),
        here / "all.parquet",
    )
    found = found_by(sfumato, here, *small, "--population", "all.parquet")
    assert found["journalist"]["population"] == "table"
    assert found["journalist"]["largest"] == 1 / 2
    assert found["marketer"]["mean"] == pytest.approx((2 / 3 + 2 / 2) / 4)


def test_tables_of_other_tools_are_read_as_they_are(sfumato, here, small):
    """ARX writes intervals and suppresses whole rows; others write the two ends of a range."""
    (here / "arx.csv").write_text("age;zip\n[20, 30[;a\n[20, 30[;a\n*;*\n", encoding="utf-8")
    done = sfumato("risk", "arx.csv", "--policy", "small.yaml")
    assert "in 2 groups by age and zip" in done.out
    assert "note: Column 'age' holds cells that are no numbers, so they are compared as texts." in done.out
    (here / "ends.csv").write_text("age_low,age_high,zip\n20,29,a\n20,29,a\n20,39,a\n", encoding="utf-8")
    found = found_by(sfumato, here, "risk", "ends.csv", "--policy", "small.yaml")
    assert (found["groups"], found["uniques"]["sample"], found["quasi-identifiers"]) == (2, 1, ["age", "zip"])


def test_columns_of_minimal_sample_uniques_are_told(sfumato, here, small):
    (here / "t.csv").write_text("age,zip\n1,a\n2,a\n2,b\n2,b\n", encoding="utf-8")
    arguments = ("risk", "t.csv", "--policy", "small.yaml", "--suda", 3)
    found = found_by(sfumato, here, *arguments)
    # row 1 by its age, row 2 by age and zip: scores of 1 and 1, both with age
    assert found["suda"] == {
        "definition": "elliot",
        "sizes": {"1": 1, "2": 1},
        "columns": {"age": 1.0, "zip": 0.5},
    }
    found = found_by(sfumato, here, *arguments, "--suda-scores", "ihsn")
    assert found["suda"]["definition"] == "ihsn"
    assert found["suda"]["columns"] == {"age": 1.0, "zip": 0.0}  # a set of all columns has no score
    assert "1 of 1 column, 1 of 2 columns" in sfumato(*arguments).out
    found = found_by(sfumato, here, *small, "--suda", 2)  # nobody is alone
    assert found["suda"] == {
        "definition": "elliot",
        "sizes": {"1": 0, "2": 0},
        "columns": {"age": None, "zip": None},
    }


def test_estimates_stand_side_by_side_and_say_that_they_are_too_high(sfumato, here, table, policy):
    arguments = ("risk", table, "--policy", policy, "--sampling-fraction", 0.05)
    found = found_by(sfumato, here, *arguments)
    estimates = found["uniques"]["population"]
    assert set(estimates) == {"pitman", "snb", "zayatz", "rule"}
    for name in ("pitman", "snb", "zayatz"):
        own = estimates[name]
        assert own["converged"] == (own["estimate"] is not None)
        assert own["estimate"] is None or 0 < own["estimate"] <= 60 / 0.05
    assert found["journalist"]["population"] == "fraction"
    assert found["individual"] is None
    done = sfumato(*arguments)
    assert "all of them were 1.03 to 6.4 times the truth" in done.out


def test_an_estimate_that_does_not_converge_is_null_and_has_a_sentence(sfumato, here, small):
    found = found_by(sfumato, here, *small, "--sampling-fraction", 0.5)
    none = {"estimate": None, "converged": False}
    assert found["uniques"] == {
        "sample": 0, "population": {"pitman": none, "snb": none, "zayatz": none, "rule": None},
    }  # fmt: skip
    done = sfumato(*small, "--sampling-fraction", 0.5)
    assert "The estimate of Pitman did not converge: no row of the sample is alone." in done.out


def test_a_limit_is_held_against_the_largest_risk(sfumato, here, small):
    done = sfumato(*small, "--at-most", 0.09)
    assert (done.code, done.sentence) == (1, "The largest risk is 0.5, above the limit of 0.09 (--at-most).")
    assert done.out.startswith("The table has 4 rows")
    assert sfumato(*small, "--at-most", 0.49).code == 1
    assert sfumato(*small, "--at-most", 0.5).code == 0
    (here / "all.csv").write_text("age,zip\n" + "31,a\n" * 20 + "44,b\n" * 20, encoding="utf-8")
    assert sfumato(*small, "--population", "all.csv", "--at-most", 0.09).code == 0


def test_the_page_shows_the_figures_and_runs_nothing(sfumato, here, small):
    assert sfumato(*small, "--suda", 2, "--out", "risk.html").code == 0
    page = (here / "risk.html").read_text(encoding="utf-8")
    assert "Largest risk, the prosecutor&#39;s: 1 in 2" in page
    assert "Which columns do it" in page
    assert "<script" not in page


# ---- Python --------------------------------------------------------------------------------------------


def test_python_returns_what_the_command_writes(sfumato, here, small):
    assert sfumato(*small, "--suda", 2, "--out", "risk.json").code == 0
    found = sf.risk("small.csv", "small.yaml", suda=2)
    assert found.to_json() == (here / "risk.json").read_text(encoding="utf-8")
    assert found.suda.scores.tolist() == [0, 0, 0, 0]
    assert str(found).startswith("The table has 4 rows")
    assert "<table" in found._repr_html_()
    assert repr(found).startswith("<Risk of 2 groups: 1 in 2 at most")


def test_a_release_in_memory_and_its_folder_have_the_same_risk(here):
    release = sf.publish(people(), sf.Policy.parse(POLICY))
    release.write("out")
    assert sf.risk(release).as_dict() == sf.risk("out").as_dict()
    in_file = Release.read("out", is_lazy=True)
    population = pa.concat_tables([people(), people(90)])
    assert (
        sf.risk(in_file, population=population).as_dict() == sf.risk(release, population=population).as_dict()
    )


def test_the_function_stays_what_it_is_whatever_is_imported():
    importlib.import_module("sfumato.risk.measures")
    assert callable(sf.risk)
    assert list(SCORES) == list(sys.modules["sfumato.cli.risk"].SCORES)


# ---- what it refuses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("risk", "small.csv"), "To judge a table give its --policy too"),
        (("risk", "nowhere.csv", "--policy", "small.yaml"), "nowhere.csv"),
        (("--sampling-fraction", 0), "above 0, and at most 1"),
        (("--sampling-fraction", 1.5), "above 0, and at most 1"),
        (("--sampling-fraction", "nan"), "above 0, and at most 1"),
        (("--sampling-fraction", 0.5, "--weight", "weight"), "The population is known in one way"),
        (("--weight", "wieght"), "small.csv has no column 'wieght'. Did you mean 'weight'?"),
        (("--weight", "zip"), "zip"),
        (("--weight", "low"), "Column 'low' has weights below 1 in 2 rows"),
        (("--weight", "gap"), "Column 'gap' lacks the weight of 1 row"),
        (("--weight", "torn", "--policy", "more-unit.yaml"), "Column 'torn' gives people several weights, in 1 row"),
        (("--population", "part.csv"), "The population lacks rows of the table: in 1 group of 2 it has fewer"),
        (("--population", "part.csv", "--policy", "more-unit.yaml"), "The population lacks people of the table"),
        (("--population", "bare.csv"), "In the population: bare.csv has no column 'zip'."),
        (("--population", "odd.csv"), "In the population: "),
        (("--table", "small.csv"), "--table is for a release folder; leave it out."),
        (("--suda", 0), "--suda"),
        (("--suda-scores", "other"), "--suda-scores"),
        (("--at-most", 0), "--at-most is a risk: above 0, and at most 1."),
        (("--out", "risk.txt"), "--out writes .json or .html."),
        (("--out", "no/risk.json"), "there is no folder"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence_without_a_cell(sfumato, here, small, arguments, sentence):
    rows = "age,zip,who,weight,low,gap,torn\n31,a,p1,2,0.5,1,1\n31,a,p2,3,0,,2\n44,b,p3,9,1,1,3\n44,b,p3,9,1,1,4\n"
    (here / "small.csv").write_text(rows, encoding="utf-8")
    declared = SMALL.replace(
        "require", "  low: {role: other}\n  gap: {role: other}\n  torn: {role: other}\nrequire"
    )
    (here / "small.yaml").write_text(declared, encoding="utf-8")
    (here / "more-unit.yaml").write_text(f"{declared}unit: who\n", encoding="utf-8")
    (here / "part.csv").write_text("age,zip,who\n31,a,p1\n44,b,p3\n44,b,p3\n", encoding="utf-8")
    (here / "bare.csv").write_text("age\n31\n44\n", encoding="utf-8")
    (here / "odd.csv").write_text("age,zip\n31,a\nsecret,b\n", encoding="utf-8")
    done = sfumato(*arguments) if arguments[0] == "risk" else sfumato(*small, *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.sentence
    assert "secret" not in done.err
    assert not (here / "risk.txt").exists()


def test_a_column_that_the_policy_does_not_name_is_refused(sfumato, here, small):
    (here / "small.csv").write_text("age,zip,income\n31,a,5\n", encoding="utf-8")
    assert "income" in sfumato(*small).sentence


def test_a_release_has_its_own_policy_and_counts_rows_itself(sfumato, here, release, table, policy):
    assert "leave out --policy" in sfumato("risk", release, "--policy", policy).sentence
    assert "this one counts rows; leave it out" in sfumato("risk", release, "--table", table).sentence


def test_noisy_counts_are_no_people(sfumato, here, table):
    (here / "private.yaml").write_text(
        "attributes:\n  age: {role: quasi-identifier, type: number, bounds: [0, 110], step: 1}\n"
        "  sex: {role: other, values: [Male, Female]}\n"
        + "".join(f"  {name}: {{role: drop}}\n" for name in ("id", "zip", "disease", "charge", "note"))
        + "workload: [classify: sex]\nmethod: {diffgen: {epsilon: 1}}\n",
        encoding="utf-8",
    )
    pytest.importorskip("opendp")
    done = sfumato("publish", table, "--policy", "private.yaml", "--out", "private", "--quiet")
    assert done.code == 0, done.err
    done = sfumato("risk", "private")
    assert done.code == 2
    assert "its epsilon bounds the risk of everybody" in done.sentence


def test_rows_with_boxes_of_their_own_send_nobody_else_to_a_group(sfumato, here, table, policy):
    text = POLICY.replace(
        "require:\n  - k-anonymity: 5\n", "method: {risk-utility: {utility-at-least: 0.5}}\n"
    )
    (here / "own.yaml").write_text(text, encoding="utf-8")
    done = sfumato("publish", table, "--policy", "own.yaml", "--out", "own", "--quiet")
    assert done.code == 0, done.err
    assert "note: Each row has a box of its own." in sfumato("risk", "own").out
    assert "have boxes of their own" in sfumato("risk", "own", "--population", table).sentence


def test_without_scipy_only_the_population_is_out_of_reach(sfumato, here, small, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert sfumato(*small, "--suda", 2).code == 0
    for how in (("--sampling-fraction", 0.5), ("--weight", "weight")):
        done = sfumato(*small, *how)
        assert done.code == 2
        assert 'pip install "sfumato[optimize]"' in done.err
