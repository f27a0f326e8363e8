"""``sfumato query`` and ``sfumato select``: answers and rows from a release folder."""

from __future__ import annotations

import json
import re

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from commandline import POLICY, names, people
from private_people import people as private_people
from private_people import the_policy

import sfumato as sf
from sfumato.release.release import Release

TABLE = people()
AGES = [age for age in TABLE["age"].to_pylist() if age is not None]
N_OLD = sum(age >= 50 for age in AGES)
RISK_UTILITY = POLICY.partition("require")[0] + "method: {risk-utility: {utility-at-least: 0.5}}\n"


def figures(out: str) -> dict[str, str]:
    """The lines below the question, by their first word."""
    return dict(line.split(maxsplit=1) for line in out.splitlines()[1:])


def number(text: str) -> float:
    return float(text.replace(",", ""))


@pytest.fixture
def tradeoff(here, table):
    sf.publish(TABLE, sf.Policy.parse(RISK_UTILITY), file_format="csv").write(here / "tradeoff")
    return here / "tradeoff"


def test_a_count_stands_between_its_bounds(sfumato, release):
    done = sfumato("query", release, "COUNT(*) WHERE age >= 50")
    assert (done.code, done.err) == (0, "")
    found = figures(done.out)
    assert done.out.splitlines()[0] == "COUNT(*) WHERE age >= 50"
    assert list(found) == ["value", "least", "most", "how"]
    assert number(found["least"]) <= N_OLD <= number(found["most"])
    assert number(found["least"]) <= number(found["value"]) <= number(found["most"])


def test_the_command_gives_the_answer_that_python_gives(sfumato, release):
    for question in ("SUM(charge)", "mean(charge) where age < 50", "MIN(age)", "MAX(charge) where age < 50"):
        answer = Release.read(release).query(question)
        found = figures(sfumato("query", release, question).out)
        given = [number(found[word]) for word in ("value", "least", "most")]
        assert given == pytest.approx(list(answer), rel=1e-4, abs=0.01)


def test_a_risk_utility_release_answers_by_its_labels(sfumato, tradeoff):
    found = figures(sfumato("query", tradeoff, "COUNT(*) WHERE age >= 50").out)
    assert number(found["least"]) <= N_OLD <= number(found["most"]) <= len(TABLE)
    done = sfumato("select", tradeoff, "age >= 50", "--out", "old.csv")
    assert (done.code, done.err) == (0, "")
    assert len(pa_csv.read_csv("old.csv")) == number(found["most"])


def test_a_private_release_answers_without_bounds(sfumato, here):
    policy = the_policy(variant="paper", epsilon=2, specializations=2)
    sf.publish(private_people(), policy, seed=1).write(here / "private")
    done = sfumato("query", "private", "COUNT(*) WHERE age >= 40")
    assert list(figures(done.out)) == ["value", "how"]
    assert "nothing is certain" in done.out
    assert "MIN hangs on single rows" in sfumato("query", "private", "MIN(age)").sentence
    done = sfumato("select", "private", "age >= 40", "--out", "old.csv")
    assert re.fullmatch(r"old\.csv: \d+ rows that may match\.\n", done.out)
    assert "count" in pa_csv.read_csv("old.csv").column_names


@pytest.mark.parametrize("name", ["a.json", "a.csv", "a.parquet"])
def test_an_answer_is_written_to_a_file_too(sfumato, here, release, name):
    question = "AVG(charge) WHERE age >= 50"
    done = sfumato("query", release, question, "--out", name)
    assert (done.code, done.err) == (0, "")
    answer = Release.read(release).query(question)
    if name.endswith(".json"):
        found = json.loads((here / name).read_text(encoding="utf-8"))
        assert (found["format"], found["question"]) == (1, question)
        assert {*found["rows"]} == {"value", "least", "most"}
    else:
        read = pa_csv.read_csv if name.endswith(".csv") else pq.read_table
        (found,) = read(here / name).to_pylist()
    assert [found[word] for word in ("value", "least", "most")] == pytest.approx(list(answer))
    assert found["left-out"] == 0
    assert "already exists" in sfumato("query", release, question, "--out", name).sentence
    assert sfumato("query", release, question, "--out", name, "--overwrite").code == 0


@pytest.mark.parametrize("name", ["old.csv", "old.csv.gz", "old.parquet"])
def test_a_selection_writes_the_rows_that_may_match(sfumato, here, release, name):
    before = names(release)
    done = sfumato("select", release, "age >= 50 and charge is not null or age >= 60", "--out", name)
    assert done.code == 2  # the charge is no quasi-identifier
    done = sfumato("select", release, "age >= 50", "--out", name)
    assert (done.code, done.err) == (0, "")
    answer = Release.read(release).query("COUNT(*) WHERE age >= 50")
    assert done.out == f"{name}: {answer.high} rows that may match, {answer.low} of them for certain.\n"
    rows = pq.read_table(here / name) if name.endswith("parquet") else pa_csv.read_csv(here / name)
    assert len(rows) == answer.high >= N_OLD
    assert rows.column_names == Release.read(release).rows.column_names
    assert "already exists" in sfumato("select", release, "age >= 50", "--out", name).sentence
    assert sfumato("select", release, "age >= 50", "--out", name, "--overwrite").code == 0
    assert names(release) == before


def test_a_selection_of_nobody_is_a_table_without_rows(sfumato, here, release):
    done = sfumato("select", release, "age > 109", "--out", "none.csv")
    assert (done.code, done.out) == (0, "none.csv: 0 rows that may match, 0 of them for certain.\n")
    assert (here / "none.csv").read_text(encoding="utf-8").count("\n") == 1


def test_formulas_stay_escaped_in_what_is_selected(sfumato, here):
    table = TABLE.set_column(5, "charge", [["=1+1"] * len(TABLE)])
    text = POLICY.replace("charge:  {role: other, type: number, passes: unique}", "charge: {role: other}")
    policy = sf.Policy.parse(text + "output: {formulas: escape}\n")
    sf.publish(table, policy, file_format="csv").write(here / "out")
    assert sfumato("select", "out", "age >= 0", "--out", "rows.csv").code == 0
    written = (here / "rows.csv").read_text(encoding="utf-8")
    assert "'=1+1" in written
    assert ",=1+1" not in written


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("AVG(chrage)", "Did you mean 'charge'"),
        ("COUNT(*) WHERE agee > 5", "Did you mean 'age'"),
        ("MEDIAN(age)", "MEDIAN depends on how values lie within a group"),
        ("AVG(disease)", "is a category"),
        ("COUNT(*) WHERE disease = 'flu'", "has the role sensitive"),
        ("the average age", "A query must be a text such as"),
    ],
)
def test_a_question_without_an_answer_is_one_sentence(sfumato, release, question, sentence):
    done = sfumato("query", release, question)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.sentence


@pytest.mark.parametrize("command", ["query", "select"])
def test_files_and_folders_that_do_not_fit_are_refused(sfumato, here, release, command):
    asked = "COUNT(*)" if command == "query" else "age > 50"
    assert "is it a release folder" in sfumato(command, "nowhere", asked, "--out", "a.csv").sentence
    assert "--out" in sfumato(command, release, asked, "--out", release / "a.csv").sentence
    done = sfumato(command, release, asked, "--out", "a.txt")
    assert done.code == 2
    assert ".csv" in done.sentence
    assert not (here / "a.txt").exists()


def test_a_release_without_its_recoding_says_why_it_has_no_answer(sfumato, release):
    (release / "recoding.json").unlink()
    assert "The release has no recoding" in sfumato("query", release, "COUNT(*) WHERE age > 50").sentence
    assert figures(sfumato("query", release, "COUNT(*)").out)["value"] == str(len(TABLE))
