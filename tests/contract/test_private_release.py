"""A differentially private release as its owner and its readers meet it: in Python, in the folder, by the command."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import names
from private_people import ATTRIBUTES, people, the_policy

import sfumato as sf
from sfumato.cli.promises import promises
from sfumato.errors import InputError, MissingExtra
from sfumato.evaluation.result import Evaluation
from sfumato.policy.document import Policy
from sfumato.privacy import mechanisms
from sfumato.publishing import Request, publish_to
from sfumato.release.release import Release
from sfumato.table.write import write_table
from sfumato.verify.folder import verify_folder

PEOPLE = people()
LITTLE = 4_000_000
SMALL = the_policy(columns=("age", "job"), cuts={"age": [40], "job": ["Professional", "Artist"]})


@pytest.fixture
def files(here):
    write_table(PEOPLE, here / "people.csv")
    (here / "private.yaml").write_text(the_policy(specializations=5).to_yaml(), encoding="utf-8")
    return here


# ---- what is published -----------------------------------------------------------------------------


def test_every_class_of_every_cell_is_there_in_the_order_of_the_grid():
    release = sf.publish(PEOPLE, SMALL, seed=1)
    assert release.rows.column_names == ["age", "income", "job", "count"]
    age, job = ("[18, 39] or missing", "[40, 65]"), ("Professional", "Artist or missing")
    cells = [(a, c, j) for a in age for j in job for c in ("low", "high")]
    lines = release.rows.select(["age", "income", "job"]).to_pylist()
    assert [tuple(line.values()) for line in lines] == cells
    assert release.rows.schema.field("count").type == pa.int64()


def test_without_noise_to_speak_of_the_counts_are_those_of_the_rows():
    """Cells out of bounds are moved to the bound, unknown ones are missing, undeclared classes are left out."""
    policy = the_policy(
        columns=("age", "job"), epsilon=10**6, cuts={"age": [40], "job": ["Professional", "Artist"]}
    )
    release = sf.publish(PEOPLE, policy, seed=1)
    rows = PEOPLE.to_pandas()
    rows = rows[rows["income"].isin(["low", "high"])]
    is_old = pd.to_numeric(rows["age"], errors="coerce") >= 40
    is_professional = rows["job"].isin(["Engineer", "Lawyer"])
    wanted = [
        int((side & kind & (rows["income"] == income)).sum())
        for side in (~is_old, is_old)
        for kind in (is_professional, ~is_professional)
        for income in ("low", "high")
    ]
    assert release.rows.column("count").to_pylist() == wanted
    assert sum(wanted) == len(rows) < len(PEOPLE)


@pytest.mark.parametrize("values", ["labels", "bounds", "both"])
def test_expanded_rows_repeat_each_line_as_often_as_it_is_counted(values):
    counts = sf.publish(PEOPLE, the_policy({"values": values}), seed=7).rows
    expanded = sf.publish(PEOPLE, the_policy({"values": values, "rows": "expanded"}), seed=7).rows
    assert expanded.column_names == counts.column_names[:-1]
    times = counts.column("count").to_numpy()
    wanted = counts.drop_columns(["count"]).take(np.repeat(np.arange(len(counts)), times))
    assert expanded.to_pylist() == wanted.to_pylist()


def test_bounds_are_two_columns_and_the_first_piece_has_no_low_end():
    release = sf.publish(
        PEOPLE, the_policy({"values": "both"}, columns=("age",), cuts={"age": [30, 50]}), seed=1
    )
    assert release.rows.column_names == ["age", "age_low", "age_high", "income", "count"]
    lines = release.rows.select(["age", "age_low", "age_high"]).to_pylist()[::2]
    assert lines == [
        {"age": "[18, 29] or missing", "age_low": None, "age_high": 29},
        {"age": "[30, 49]", "age_low": 30, "age_high": 49},
        {"age": "[50, 65]", "age_low": 50, "age_high": 65},
    ]


@pytest.mark.parametrize(
    ("frame", "kind"),
    [(PEOPLE, pa.Table), (PEOPLE.to_pandas(), pd.DataFrame), (pl.from_arrow(PEOPLE), pl.DataFrame)],
)
def test_the_release_is_of_the_kind_of_frame_that_came_in(frame, kind):
    release = sf.publish(frame, SMALL, seed=1)
    assert isinstance(release.table, kind)
    assert release.rows.equals(sf.publish(PEOPLE, SMALL, seed=1).rows)


@pytest.mark.parametrize("variant", ["paper", "tuned"])
@pytest.mark.parametrize("rows", ["counts", "expanded"])
def test_both_engines_give_the_same_release(variant, rows, tmp_path):
    policy = the_policy({"rows": rows}, variant=variant)
    write_table(PEOPLE, tmp_path / "people.csv")
    publish_to(tmp_path / "memory", tmp_path / "people.csv", policy, Request(seed=3, engine="memory"))
    publish_to(
        tmp_path / "disk", tmp_path / "people.csv", policy, Request(seed=3, engine="disk", memory=LITTLE)
    )
    assert names(tmp_path / "memory") == names(tmp_path / "disk")
    for name in names(tmp_path / "memory"):
        assert (tmp_path / "memory" / name).read_bytes() == (tmp_path / "disk" / name).read_bytes(), name


def test_a_release_on_disk_can_be_used_before_it_is_written(tmp_path):
    release = sf.publish(PEOPLE, the_policy(), seed=3, engine="disk", memory=LITTLE)
    assert release.table.num_rows == release.certificate.claims.rows
    release.write(tmp_path / "out")
    assert Release.read(tmp_path / "out").table.equals(release.table)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_questions_are_answered_by_the_counts(file_format, engine, tmp_path):
    """Whether rows are counts or written out, and whether they are in memory, on disk or read again."""
    answers = set()
    for rows in ("counts", "expanded"):
        policy = the_policy({"rows": rows})
        made = sf.publish(PEOPLE, policy, seed=1, file_format=file_format, engine=engine, memory=None)
        made.write(tmp_path / rows)
        for release in (made, Release.read(tmp_path / rows)):
            answers.add((release.query("COUNT(*)").value, release.query("COUNT(*) WHERE age >= 40").value))
    assert len(answers) == 1
    assert answers.pop()[0] == made.certificate.claims.counted


# ---- nothing else of the table ---------------------------------------------------------------------


def told(folder) -> str:
    return "\n".join((folder / name).read_text() for name in names(folder) if not name.startswith("release."))


def test_certificate_report_and_recoding_say_the_same_of_two_tables_but_for_what_was_drawn(tmp_path):
    """Numbers apart, which are counts: no word, line or key depends on the rows."""
    policy = the_policy(columns=("age",), cuts={"age": [40]})
    for name, table in (("one", PEOPLE), ("other", people(50, seed=2))):
        publish_to(tmp_path / name, table, policy, Request(seed=1))
    one, other = told(tmp_path / "one"), told(tmp_path / "other")
    numbers = re.compile(r"[0-9a-f]{64}|\d[\d,.]*")
    assert numbers.sub("0", one) == numbers.sub("0", other)
    for number in ("600", "593", "594"):  # rows, and rows with a declared class
        assert f">{number}<" not in one
        assert f": {number}," not in one
    assert "person 1" not in one
    certificate = json.loads((tmp_path / "one" / "certificate.json").read_text())
    assert certificate["figures"] == {}
    assert sorted(certificate["claims"]) == ["cells", "counted", "rows", "sha256"]
    assert "seed" not in json.dumps(certificate).replace("seeded, not private", "")


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("rows", ["counts", "expanded"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_a_table_without_rows_is_published_like_any_other(kind, engine, rows, tmp_path):
    empty = PEOPLE.slice(0, 0)
    source = empty
    if kind != "frame":
        source = tmp_path / f"none.{kind}"
        write_table(empty, source)
    policy = the_policy({"rows": rows}, epsilon=100, columns=("age", "job"), specializations=2)
    release = publish_to(tmp_path / "out", source, policy, Request(seed=1, engine=engine, memory=LITTLE))
    assert release.certificate.claims.counted == 0
    assert verify_folder(tmp_path / "out").ok
    read = Release.read(tmp_path / "out")
    assert len(read.table) == (0 if rows == "expanded" else release.certificate.claims.rows)
    assert "Not private" in read.report
    for made in (release, read):
        assert made.query("COUNT(*) WHERE age >= 40").value == 0
        assert made.query("AVG(age)").value is None
        assert len(made.select("age >= 40")) <= release.certificate.claims.rows


def test_no_cell_makes_an_error():
    strange = pa.table(
        {name: pa.array([None, "", "\x00", "1e400", "NaN", "9" * 400], pa.string()) for name in ATTRIBUTES}
    )
    release = sf.publish(strange, the_policy(epsilon=100, specializations=2), seed=1)
    assert release.certificate.claims.counted == 0


def test_an_evaluation_does_not_belong_into_a_private_release():
    evaluation = Evaluation(the_policy().as_dict(), {}, (), {}, ())
    with pytest.raises(InputError, match="holds no evaluation"):
        sf.publish(PEOPLE, the_policy(), evaluation=evaluation, seed=1)


def test_the_recoding_belongs_to_a_private_release():
    with pytest.raises(InputError, match=r"leave out recoding: false"):
        sf.publish(PEOPLE, the_policy({"recoding": False}), seed=1)


# ---- what is promised ------------------------------------------------------------------------------


def test_a_release_says_what_it_promises_and_what_it_cost():
    release = sf.publish(PEOPLE, the_policy(variant="paper", epsilon=0.5, specializations=4))
    privacy = release.certificate.privacy
    assert privacy.randomness.startswith("secret (OpenDP ")
    assert not release.certificate.promises_nothing
    assert privacy.epsilon == Fraction(1, 2) == privacy.spent + privacy.unspent
    cells = release.certificate.claims.groups
    assert repr(release) == f"<Release of counts in {cells:,} cells: epsilon 1/2, one row added or removed>"
    first, second = promises(release)
    assert (
        first == "epsilon-differential privacy: epsilon 1/2, one row added or removed (one person is one row)"
    )
    assert second.startswith(f"ledger: {privacy.spent} spent on {len(privacy.ledger)} draws")


def test_a_seeded_release_promises_nothing():
    release = sf.publish(PEOPLE, the_policy(), seed=1)
    assert release.certificate.promises_nothing
    assert "nothing is promised" in repr(release)
    assert next(promises(release)) == "Nothing is promised: seeded, not private."
    assert "Not private: the noise can be repeated." in release.report


def test_releases_without_a_seed_differ():
    one, other = (sf.publish(PEOPLE, SMALL).rows.column("count").to_pylist() for _ in range(2))
    assert one != other


def test_without_opendp_nothing_is_read_and_nothing_claims_privacy(monkeypatch, tmp_path):
    def none():
        raise MissingExtra("dp", "A differentially private release")

    monkeypatch.setattr(mechanisms, "secret", none)
    with pytest.raises(MissingExtra, match=r"sfumato\[dp\]"):
        publish_to(tmp_path / "out", PEOPLE, SMALL, Request(ledger=tmp_path / "spent.json"))
    assert names(tmp_path) == []  # and nothing was charged


# ---- the folder and the command --------------------------------------------------------------------


def test_the_command_publishes_and_verifies(sfumato, files):
    done = sfumato("publish", "people.csv", "--policy", "private.yaml", "--out", "out")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert re.fullmatch(r"out: counts in [\d,]+ cells that sum to [\d,]+, verified\.", lines[0])
    assert lines[1].startswith("  epsilon-differential privacy: epsilon 1, one row added or removed")
    assert lines[2].startswith("  ledger: 1 spent on ")
    assert names(files / "out") == [
        "certificate.json",
        "policy.yaml",
        "recoding.json",
        "release.csv",
        "report.html",
    ]
    checked = sfumato("verify", "out")
    assert checked.code == 0
    assert "note  owner's word: the randomness itself cannot be checked from an output: " in checked.out
    assert "FAIL" not in checked.out


def test_the_command_by_way_of_the_disk(sfumato, files):
    options = ("--policy", "private.yaml", "--seed", "5", "--format", "parquet", "--verbose")
    assert sfumato("publish", "people.csv", *options, "--out", "one").code == 0
    on_disk = sfumato(
        "publish", "people.csv", *options, "--out", "two", "--engine", "disk", "--memory", "64MB"
    )
    assert on_disk.code == 0
    assert "600" not in on_disk.out
    assert pq.read_table(files / "one" / "release.parquet").equals(
        pq.read_table(files / "two" / "release.parquet")
    )
    stdin = (files / "people.csv").read_bytes()
    piped = sfumato("publish", "-", *options, "--out", "three", "--engine", "disk", stdin=stdin)
    assert piped.code == 0
    assert (files / "one" / "release.parquet").read_bytes() == (
        files / "three" / "release.parquet"
    ).read_bytes()


def test_a_single_cell_and_a_single_row_are_said_in_the_singular(sfumato, files):
    (files / "one.yaml").write_text(the_policy(cuts={}).to_yaml(), encoding="utf-8")
    done = sfumato("publish", "people.csv", "--policy", "one.yaml", "--out", "out")
    assert done.out.startswith("out: counts in 1 cell that sum to ")
    lines = (files / "people.csv").read_text().splitlines(keepends=True)
    (files / "one.csv").write_text("".join(lines[:2]))
    assert sfumato("apply", "out", "one.csv", "--out", "r.csv").out.startswith("r.csv: 1 row recoded, ")


def test_a_seed_is_answered_with_a_plain_warning(sfumato, files):
    done = sfumato(
        "publish", "people.csv", "--policy", "private.yaml", "--out", "out", "--seed", "5", "--quiet"
    )
    assert (done.code, done.out) == (0, "")
    assert done.sentence == "out is seeded, not private: publish without --seed."
    assert "note  nothing is promised: the noise was not secret" in sfumato("verify", "out").out


def test_test_rows_are_recoded_with_the_cuts_of_a_release(sfumato, files):
    sfumato("publish", "people.csv", "--policy", "private.yaml", "--out", "out", "--seed", "5")
    done = sfumato("apply", "out", "people.csv", "--out", "recoded.csv")
    assert done.code == 0
    recoded = pd.read_csv(files / "recoded.csv", dtype=str, keep_default_na=False)
    assert list(recoded) == ["age", "income", "job", "sex", "rate", "born"]  # the class passes through
    assert recoded["income"].tolist() == PEOPLE["income"].to_pylist()
    published = pd.read_csv(files / "out" / "release.csv", dtype=str, keep_default_na=False)
    for name in ("age", "job", "sex", "rate", "born"):
        assert set(recoded[name]) <= set(published[name]), name
    kept = recoded[recoded["income"].isin(["low", "high"])]
    grid = kept.groupby(["age", "job", "sex", "rate", "born", "income"]).size()
    assert abs(int(published["count"].astype(int).sum()) - int(grid.sum())) < 60


def test_a_recoded_row_lies_in_the_cell_where_it_was_counted():
    """With next to no noise, counting recoded rows gives the published counts."""
    policy = the_policy(epsilon=10**6, specializations=5)
    release = sf.publish(PEOPLE, policy, seed=2)
    quasi = [attribute.name for attribute in policy.schema.quasi_identifiers]
    recoded = release.recoding.apply(PEOPLE).to_pandas()
    kept = recoded[recoded["income"].isin(["low", "high"])].astype(str)
    found = kept.groupby([*quasi, "income"]).size()
    lines = release.rows.to_pandas()
    lines[[*quasi, "income"]] = lines[[*quasi, "income"]].astype(str)
    published = lines.set_index([*quasi, "income"])["count"]
    assert found.to_dict() == published[published > 0].to_dict()


def test_a_table_is_not_judged_by_a_private_policy(sfumato, files):
    done = sfumato("verify", "people.csv", "--policy", "private.yaml")
    assert done.code == 2
    assert "No table shows by itself that it is differentially private" in done.sentence


def edited(change) -> str:
    document = the_policy().as_dict()
    change(document)
    return json.dumps(document)


def options(**changes):
    return lambda document: document["method"]["diffgen"].update(changes)


def column(name, **changes):
    return lambda document: document["attributes"][name].update(changes)


BAD = {
    "epsilon 0": (options(epsilon=0), "epsilon"),
    "epsilon below 0": (options(epsilon=-1), "epsilon"),
    "infinite epsilon": (options(epsilon=float("inf")), "epsilon"),
    "no bounds": (lambda d: d["attributes"]["age"].pop("bounds"), "bounds"),
    "no step": (lambda d: d["attributes"]["age"].pop("step"), "step"),
    "reversed bounds": (column("age", bounds=[65, 18]), "bounds"),
    "no values": (lambda d: d["attributes"]["sex"].pop("values"), "values"),
    "a number as class": (lambda d: d["attributes"].update(income={"role": "other", "type": "number"}), "income"),
    "one class": (column("income", values=["low"]), "at least two"),
    "a broken hierarchy": (column("job", hierarchy={"tree": {"Any": ["a", "a"]}}), "hierarchy"),
    "a raw column": (column("note", role="other"), "note"),
    "a sensitive column": (column("note", role="sensitive"), "note"),
    "a requirement": (lambda d: d.update(require=[{"k-anonymity": 5}]), "require"),
    "no task": (lambda d: d.update(workload=[]), "classify"),
    "a summary": (lambda d: d.update(output={"values": "summary"}), "output"),
    "a column named count": (
        lambda d: d["attributes"].update(count={"role": "quasi-identifier", "values": ["a", "b"]}), "count",
    ),
    "a cut off the grid": (options(cuts={"age": [30.5]}, variant="tuned"), "cuts"),
    "an unknown node": (options(cuts={"job": ["Pilots"]}, variant="tuned"), "cuts"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "words"), BAD.values(), ids=BAD)
def test_a_policy_that_is_not_private_is_refused_in_one_sentence(sfumato, files, change, words):
    text = edited(change).replace("Infinity", ".inf")
    (files / "bad.yaml").write_text(text, encoding="utf-8")
    done = sfumato("publish", "people.csv", "--policy", "bad.yaml", "--out", "out")
    assert done.code == 2, done
    assert words in done.sentence
    assert not (files / "out").exists()


def test_a_table_without_a_declared_column_is_refused(sfumato, files):
    write_table(PEOPLE.drop_columns(["sex"]), files / "less.csv")
    done = sfumato("publish", "less.csv", "--policy", "private.yaml", "--out", "out")
    assert done.code == 2
    assert "'sex'" in done.sentence


def test_progress_tells_nothing_of_the_table():
    """The same steps, out of the same number, whatever the rows."""

    def steps(table):
        seen = []
        sf.publish(table, SMALL, seed=1, progress=lambda *step: seen.append(step))
        return seen

    assert steps(PEOPLE) == steps(people(50, seed=5))


def test_the_policy_in_the_folder_is_complete(tmp_path):
    publish_to(tmp_path / "out", PEOPLE, SMALL, Request(seed=1))
    assert Policy.read(tmp_path / "out" / "policy.yaml") == SMALL
