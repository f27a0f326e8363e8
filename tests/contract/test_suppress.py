"""Rows that are left out, as users see them: publish, verify, apply, evaluate, compare, queries and the report."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from tampering import edit_certificate

import sfumato as sf

RARE = [f"rare{i}" for i in range(12)]
TOWNS = ["north"] * 100 + ["south"] * 80 + RARE
HEAD = """\
attributes:
  town: {role: quasi-identifier}
  age:  {role: quasi-identifier, type: number, bounds: [0, 99]}
  ill:  {role: sensitive}
require: [k-anonymity: 10]
"""
MEDIAN = HEAD + "method: {mondrian: {criterion: median}}\nsuppress: {at-most: 10%}\n"


@pytest.fixture
def towns(here):
    table = pa.table(
        {
            "town": TOWNS,
            "age": [7 * i % 100 for i in range(len(TOWNS))],
            "ill": ["yes" if i % 3 else "no" for i in range(len(TOWNS))],
        }
    )
    pa_csv.write_csv(table, here / "towns.csv")
    return table


@pytest.fixture
def left_out(sfumato, here, towns):
    """A release that leaves the rare towns out."""
    (here / "policy.yaml").write_text(MEDIAN, encoding="utf-8")
    done = sfumato("publish", "towns.csv", "--policy", "policy.yaml", "--out", "out", "--seed", 1)
    assert done.code == 0
    assert "left out: 12 of 192 rows (6.2%; at most 10% may be)" in done.out
    return here / "out"


def test_a_release_says_how_many_rows_were_left_out_and_never_which(sfumato, left_out):
    certificate = json.loads((left_out / "certificate.json").read_text(encoding="utf-8"))
    assert (certificate["claims"]["rows"], certificate["claims"]["suppressed"]) == (180, 12)
    assert certificate["policy"]["suppress"] == {"at-most": "10%"}
    whole = b"".join(path.read_bytes() for path in left_out.iterdir())
    assert b"north" in whole
    assert b"rare" not in whole
    rows = sf.Policy.of_release(left_out / "policy.yaml").suppress.most_rows(192)
    assert rows == 19
    done = sfumato("verify", left_out)
    assert done.code == 0
    assert "note  owner's word: 12 rows were left out: rows that are left out leave no trace\n" in done.out
    assert sfumato("verify", left_out, "--strict").code == 1


def test_with_the_raw_table_rows_that_were_left_out_are_counted_again(sfumato, left_out):
    done = sfumato("verify", left_out, "--table", "towns.csv", "--strict")
    assert "ok    12 of 192 rows were left out\n" in done.out
    assert "owner's word" not in done.out
    assert done.code == 0
    edit_certificate(left_out, lambda document: document["claims"].update(suppressed=11))
    done = sfumato("verify", left_out, "--table", "towns.csv")
    assert done.code == 1
    assert "FAIL  the rows of the raw table fall into the groups of the release" in done.out


def test_with_a_unit_no_more_people_lose_a_row_than_may(sfumato, here, towns):
    """The rare rows are those of 12 people; 8% of 160 people are 12, and 4% are 6."""
    people = [f"p{i % 148}" for i in range(180)] + [f"rare{i}" for i in range(12)]
    pa_csv.write_csv(towns.append_column("who", pa.array(people)), here / "towns.csv")
    text = MEDIAN.replace("  ill:", "  who:  {role: identifier}\n  ill:") + "unit: who\n"
    for share, most in (("8%", 12), ("4%", 6)):
        (here / "policy.yaml").write_text(text.replace("10%", share), encoding="utf-8")
        done = sfumato("publish", "towns.csv", "--policy", "policy.yaml", "--out", "out", "--overwrite")
        assert done.code == 0
        certificate = json.loads((here / "out" / "certificate.json").read_text(encoding="utf-8"))
        n_left = certificate["claims"]["suppressed"]
        assert n_left == most if share == "8%" else n_left <= most
        assert certificate["claims"]["people"] == 160 - n_left
        done = sfumato("verify", "out", "--table", "towns.csv")
        assert done.code == 0
        assert f"ok    {n_left} of 160 people lost a row\n" in done.out


def test_the_raw_table_is_only_for_releases_that_need_it(sfumato, here, towns):
    (here / "policy.yaml").write_text(HEAD, encoding="utf-8")
    assert sfumato("publish", "towns.csv", "--policy", "policy.yaml", "--out", "out").code == 0
    done = sfumato("verify", "out", "--table", "towns.csv")
    assert done.code == 2
    assert "groups count people, or that leaves rows out, and this one does neither" in " ".join(
        done.err.split()
    )


def test_rows_that_are_left_out_form_no_group(left_out):
    published = (left_out / "release.csv").read_text(encoding="utf-8").splitlines()[1:]
    groups: dict[str, int] = {}
    for line in published:
        labels = line.rsplit(",", 1)[0]
        groups[labels] = groups.get(labels, 0) + 1
    assert min(groups.values()) >= 10
    assert {label.split(",")[0] for label in groups} == {"north", "south"}


def test_a_row_that_is_left_out_counts_as_lost(left_out):
    loss = json.loads((left_out / "certificate.json").read_text(encoding="utf-8"))["figures"]["loss"]
    assert loss["columns"]["town"] == pytest.approx(12 / 192)


@pytest.mark.parametrize(("claimed", "found"), [(21, "the policy allows at most 20"), (19, None)])
def test_more_than_the_policy_allows_is_no_owners_word(sfumato, left_out, claimed, found):
    edit_certificate(left_out, lambda document: document["claims"].update(suppressed=claimed))
    done = sfumato("verify", left_out)
    if found is None:  # of 199 rows, 19 may be left out
        assert "note  owner's word: 19 rows were left out" in done.out
    else:
        assert done.code == 1
        assert f"FAIL  21 rows were left out: {found}" in done.out


def test_the_recoding_must_say_that_rows_are_left_out(sfumato, left_out):
    path = left_out / "recoding.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document.pop("leaves-rows-out") is True
    path.write_text(json.dumps(document), encoding="utf-8")
    done = sfumato("verify", left_out)
    assert done.code == 1
    assert "FAIL  the recoding can be read: it has fields that no recoding has, or lacks some" in done.out


def test_apply_leaves_out_what_no_part_takes_and_counts_it(sfumato, here, left_out):
    (here / "more.csv").write_text("town,age\nnorth,5\nrare1,5\nunheard of,9\nsouth,98\n", encoding="utf-8")
    done = sfumato("apply", left_out, "more.csv", "--out", "recoded.csv")
    assert done.code == 0
    assert "2 rows recoded, 2 rows left out" in done.out
    lines = (here / "recoded.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0].strip('"') for line in lines] == ["town", "north", "south"]


def test_applying_to_a_frame_keeps_the_index_of_the_rows_that_stay(towns):
    release = sf.publish(towns, sf.Policy.parse(MEDIAN))
    frame = pa.table({"town": ["rare1", "south"], "age": [3, 4]}).to_pandas().set_axis([7, 9], axis=0)
    assert release.recoding.apply(frame).index.tolist() == [9]


def test_counts_of_the_table_may_be_as_much_higher(towns):
    release = sf.publish(towns, sf.Policy.parse(MEDIAN))
    assert release.n_left_out == 12
    assert release.query("COUNT(*)") == (180, 180, 192)
    assert release.query("COUNT(*)", "town = 'north'") == (100, 100, 112)


def test_the_report_says_what_it_cost(left_out):
    report = (left_out / "report.html").read_text(encoding="utf-8")
    assert "<dt>rows left out</dt><dd>12</dd>" in report
    assert "12 rows of 192 (6.2 %) were left out" in report


def test_the_same_rows_are_left_out_each_time(sfumato, here, left_out):
    before = (left_out / "release.csv").read_bytes()
    sfumato("publish", "towns.csv", "--policy", "policy.yaml", "--out", "again", "--seed", 1)
    assert (here / "again" / "release.csv").read_bytes() == before


def test_evaluation_predicts_left_out_rows_and_counts_them(sfumato, here, towns):
    text = MEDIAN.replace("ill:  {role: sensitive}", "ill:  {role: other}") + "workload: [classify: ill]\n"
    (here / "policy.yaml").write_text(text, encoding="utf-8")
    done = sfumato(
        "evaluate", "towns.csv", "--policy", "policy.yaml", "--folds", 2, "--models", "decision-tree"
    )
    assert done.code == 0
    assert "test rows left out" in done.out


def test_an_evaluation_with_left_out_rows_goes_into_the_certificate(sfumato, here, towns):
    text = MEDIAN.replace("ill:  {role: sensitive}", "ill:  {role: other}") + "workload: [classify: ill]\n"
    (here / "policy.yaml").write_text(text, encoding="utf-8")
    given = ("towns.csv", "--policy", "policy.yaml")
    assert (
        sfumato(
            "evaluate", *given, "--folds", 2, "--models", "decision-tree", "--out", "found.json", "--quiet"
        ).code
        == 0
    )
    done = sfumato("publish", *given, "--evaluation", "found.json", "--out", "measured")
    assert (done.code, "verified" in done.out) == (0, True), done.err


def test_shares_are_compared(sfumato, here, towns):
    (here / "policy.yaml").write_text(MEDIAN, encoding="utf-8")
    done = sfumato(
        "compare", "towns.csv", "--policy", "policy.yaml", "--vary", "suppress=0,10%", "--out", "compared"
    )
    assert done.code == 0
    settings = json.loads((here / "compared" / "frontier.json").read_text(encoding="utf-8"))["settings"]
    left = [setting["measures"].get("rows left out", 0) for setting in settings]
    assert left[0] == 0 < left[1]
    wrong = sfumato("compare", "towns.csv", "--policy", "policy.yaml", "--vary", "suppress=200%")
    assert (wrong.code, "at most 100%" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("method: {mondrian: {scale: rothko-s}}", "use rothko-t"),
        ("method: {risk-utility: {side-table: voters.csv}}", "risk-utility leaves no row out"),
    ],
)
def test_methods_that_leave_no_row_out_say_so(sfumato, here, towns, method, words):
    text = f"{HEAD}suppress: {{at-most: 1%}}\n{method}\n"
    if "risk-utility" in method:
        text = text.replace("require: [k-anonymity: 10]\n", "")
    (here / "policy.yaml").write_text(text, encoding="utf-8")
    done = sfumato("publish", "towns.csv", "--policy", "policy.yaml", "--out", "out")
    assert done.code == 2
    assert words in done.err


def test_under_differential_privacy_it_would_tell_of_people(sfumato, here, towns):
    text = """\
attributes:
  town: {role: drop}
  age:  {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  ill:  {role: other, values: ["yes", "no"]}
workload: [classify: ill]
method: {diffgen: {epsilon: 1}}
suppress: {at-most: 1%}
"""
    (here / "policy.yaml").write_text(text, encoding="utf-8")
    done = sfumato("publish", "towns.csv", "--policy", "policy.yaml", "--out", "out")
    assert done.code == 2
    assert "which rows are left out would tell of the people in them" in done.err


@pytest.mark.parametrize("workload", ["", "workload: [classify: ill]\n"])
def test_on_disk_the_same_rows_are_left_out(sfumato, here, towns, workload):
    """With 20 rows in memory, splits are chosen from counts, and a group may come in parts."""
    method = "{variant: paper, rows-in-memory: 20}"
    text = (
        HEAD.replace("sensitive}", "other}")
        + f"method: {{mondrian: {method}}}\nsuppress: {{at-most: 10%}}\n{workload}"
    )
    (here / "policy.yaml").write_text(text, encoding="utf-8")
    rows = {}
    for engine in ("memory", "disk"):
        done = sfumato("publish", "towns.csv", "--policy", "policy.yaml", "--out", engine, "--engine", engine)
        assert done.code == 0
        assert "left out: 12 of 192 rows" in done.out
        rows[engine] = sorted((here / engine / "release.csv").read_text(encoding="utf-8").splitlines())
        assert sfumato("verify", engine).code == 0
    assert rows["memory"] == rows["disk"]
    more = sfumato("apply", "disk", "towns.csv", "--out", "more.csv")
    assert "180 rows recoded, 12 rows left out" in more.out
