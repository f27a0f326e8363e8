"""How much a release tells: the cells of its quasi-identifiers, and rows that share one sensitive value."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import people as small_people
import private_people
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.cli import run
from sfumato.errors import InputError
from sfumato.machine import day_of_making
from sfumato.policy.schema import Attribute, Kind
from sfumato.release.certificate import CellsClaim, Certificate
from sfumato.table.stored import FiledRows
from sfumato.verify.cells import EXACT, MISSING, NARROWED, NOTHING, Detail, DistinctCells, level_of
from sfumato.verify.measure import examine, measure

QUASI = "quasi-identifier"


def detail(attribute: Attribute, *columns: list[str | None], rows: list[int] | None = None) -> Detail:
    counts = np.array(rows or [1] * len(columns[0]))
    return DistinctCells.of([pa.array(column, pa.string()) for column in columns], counts).detail(attribute)


# ---- what a cell tells -------------------------------------------------------------------------------


def test_a_number_is_exact_narrowed_or_nothing_by_the_declared_bounds():
    age = Attribute("age", QUASI, Kind.NUMBER, bounds=(0, 110), step=1)
    labels = ["25", "[0, 24]", "[0, 110]", None, "[0, 110] or missing", "[1, 110]", "25 or missing", "*"]
    assert detail(age, labels) == Detail(exact=1, narrowed=3, nothing=3, missing=1)


def test_without_bounds_a_range_over_all_that_is_published_tells_nothing():
    age = Attribute("age", QUASI, Kind.NUMBER)
    assert detail(age, ["[17, 90]", "[17, 40]", "(40, 90]"]) == Detail(0, 2, 1, 0)
    assert detail(age, ["[17, 40]", "(40, 90]"]) == Detail(0, 2, 0, 0)
    assert detail(age, ["5"]) == Detail(1, 0, 0, 0)


def test_bounds_tell_what_labels_tell():
    age = Attribute("age", QUASI, Kind.NUMBER)
    lows, highs = ["17", "17", "41", "25", None, None], ["90", "40", "90", "25", None, "90"]
    assert detail(age, lows, highs) == Detail(exact=1, narrowed=2, nothing=2, missing=1)


def test_a_date_is_read_as_a_day():
    born = Attribute("born", QUASI, Kind.DATE)
    labels = ["1970-01-01", "[1970-01-01, 1999-12-31]", "[1970-01-01, 1980-01-01]"]
    assert detail(born, labels) == Detail(1, 1, 1, 0)


TREE = {"tree": {"Anything": {"North": ["Kiel"], "Middle": ["Bonn", "Jena"]}}}


@pytest.mark.parametrize(
    ("given_as", "label", "level"),
    [
        ({}, "Kiel", EXACT),
        ({}, "*", NOTHING),
        ({}, None, MISSING),
        ({"hierarchy": {"mask": 5}}, "53***", NARROWED),
        ({"hierarchy": {"mask": 5}}, "*****", NOTHING),
        ({"hierarchy": TREE}, "Anything", NOTHING),
        ({"hierarchy": TREE}, "Middle", NARROWED),
        ({"hierarchy": TREE}, "North", NARROWED),  # whoever reads it must know that one value lies below it
        ({"hierarchy": TREE}, "Jena", EXACT),
        ({"hierarchy": {"dates": ["day", "year"]}, "kind": Kind.DATE}, "2024-03-05", EXACT),
        ({"hierarchy": {"dates": ["day", "year"]}, "kind": Kind.DATE}, "2024", NARROWED),
        ({"hierarchy": {"dates": ["month", "year"]}, "kind": Kind.DATE}, "2024-03", NARROWED),
        ({"hierarchy": {"intervals": [5, 10]}, "kind": Kind.NUMBER, "bounds": (0, 30)}, "[5, 10)", NARROWED),
        ({"hierarchy": {"balanced": 2}, "kind": Kind.NUMBER, "bounds": (0, 3)}, "2", EXACT),
    ],
)
def test_labels_of_hierarchies_tell_by_what_lies_below_them(given_as, label, level):
    assert level_of(Attribute("x", QUASI, **given_as))(label) == level


def naive_detail(cells: list[str | None]) -> Detail:
    """Of a column of cities: counted cell by cell."""
    words = {None: MISSING, "*": NOTHING, "Middle": NARROWED, "North": NARROWED}
    levels = [words.get(cell, EXACT) for cell in cells]
    return Detail(*(levels.count(level) for level in (EXACT, NARROWED, NOTHING, MISSING)))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(["Kiel", "Bonn", "North", "Middle", "*", None]), min_size=1), st.integers(1, 4)
)
def test_details_do_not_depend_on_how_rows_are_portioned(cells, n_parts):
    city = Attribute(
        "city", QUASI, hierarchy={"tree": {"*": {"North": ["Kiel"], "Middle": ["Bonn", "Jena"]}}}
    )
    parts = [part for part in (cells[i::n_parts] for i in range(n_parts)) if part]
    each = [DistinctCells.of([pa.array(part, pa.string())], np.ones(len(part), int)) for part in parts]
    assert DistinctCells.join(each).detail(city) == naive_detail(cells)


# ---- what a release claims ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release() -> sf.Release:
    return sf.publish(small_people.PEOPLE, small_people.the_policy("mondrian", "nothing", "k"), seed=1)


def test_the_certificate_counts_cells_as_they_are_published(release):
    rows, cells = release.rows, release.certificate.claims.cells
    labels = rows.column("city").cast(pa.string()).to_pylist()
    assert measure(rows, release.policy).details["city"] == naive_detail(labels)
    assert cells.all == 4 * rows.num_rows
    assert cells.exact + cells.narrowed + cells.nothing == cells.all
    written = json.loads(release.certificate.to_json())["claims"]["cells"]
    assert written == {"exact": cells.exact, "narrowed": cells.narrowed, "all": cells.all}


def test_rows_that_share_one_value_are_counted_where_no_diversity_is_required(release):
    rows = release.rows.to_pandas()
    groups = rows.groupby(["age", "sex", "city", "born"], dropna=False, observed=True)
    expected = {
        name: int(groups[name].transform(lambda own: own.nunique(dropna=False) == 1).sum())
        for name in ("disease", "hours")
    }
    assert dict(release.certificate.claims.one_value) == expected


def test_a_class_counts_like_a_sensitive_column_and_a_diverse_one_does_not():
    policy = small_people.the_policy("mondrian", "classify", "k and l")
    claims = sf.publish(small_people.PEOPLE, policy, seed=1).certificate.claims
    assert list(claims.one_value) == ["hours", "income"]


def test_rows_in_portions_give_the_same_claims(release, tmp_path):
    release.write(tmp_path / "out")
    path = tmp_path / "out" / "release.parquet"
    in_portions = examine(FiledRows(path, "parquet"), release.policy, memory=1, scratch=tmp_path).measures
    whole = measure(release.rows, release.policy)
    assert (in_portions.details, in_portions.one_value) == (whole.details, whole.one_value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cells": CellsClaim(5, 5, 1600)}, "the cells of the quasi-identifiers are"),
        ({"one_value": {"disease": 1}}, "rows in groups that share one value of 'disease' is 1"),
        ({"one_value": {"age": 1}}, "no such column"),
    ],
)
def test_verify_finds_a_false_claim_of_what_is_left(release, tmp_path, change, said):
    certificate = release.certificate
    forged = replace(certificate, claims=replace(certificate.claims, **change))
    replace(release, certificate=forged, check=None).write(tmp_path / "out")
    failures = [str(check) for check in sf.verify_folder(tmp_path / "out").failures]
    assert any(said in failure for failure in failures), failures


def test_a_certificate_of_an_older_version_claims_nothing_of_it(release, tmp_path):
    claims = replace(release.certificate.claims, cells=None, one_value={})
    older = replace(release, certificate=replace(release.certificate, claims=claims), check=None)
    older.write(tmp_path / "out")
    assert sf.verify_folder(tmp_path / "out").ok


# ---- what is said ------------------------------------------------------------------------------------


ONE_GROUP = """
attributes:
  sex:    {role: quasi-identifier}
  age:    {role: quasi-identifier, type: number}
  answer: {role: sensitive}
require: [k-anonymity: 2, entropy-diversity: {l: 1.9, of: answer}]
"""


RISK_OF_40 = (
    "risk of re-identification: 1 in 40 at most, 1 in 40 on average; "
    "above 1/5: 0%, above 1/11: 0%, above 1/20: 0% of the rows"
)


def one_group(n: int = 40) -> pa.Table:
    """Women say yes, men say no, and so do the young and the old: any split tells the answer."""
    is_first = np.arange(n) < n // 2
    return pa.table(
        {
            "sex": np.where(is_first, "f", "m"),
            "age": np.where(is_first, 20, 60) + np.arange(n) % 5,
            "answer": np.where(is_first, "yes", "no"),
        }
    )


def test_a_release_of_one_group_says_what_keeps_it_there_and_only_to_the_owner(tmp_path):
    release = sf.publish(one_group(), sf.Policy.parse(ONE_GROUP), seed=1)
    first, sex, age, advice = release.notices
    assert first == "All 40 rows are one group: the quasi-identifiers tell nobody apart."
    for name, notice in (("sex", sex), ("age", age)):
        assert notice.startswith(
            f"'{name}' is * in 100% of the rows: entropy 1.9-diversity of 'answer' refuses"
        )
        assert "2-anonymity" not in notice
    assert advice.startswith("To keep more of them, ask for less")
    assert release.remarks == (
        RISK_OF_40,
        "cells of the quasi-identifiers: 0% exact, 0% narrowed, 100% *",
        "* nearly everywhere (share of the rows): sex 100%, age 100%",
        "0 rows (0%) are alone by the column that is published as it is: no other row has the same there",
    )
    release.write(tmp_path / "out")
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
    assert b"refuses" not in written


def test_a_split_is_refused_by_k_where_k_is_too_large():
    policy = ONE_GROUP.replace("k-anonymity: 2, entropy-diversity: {l: 1.9, of: answer}", "k-anonymity: 30")
    _, sex, _, _ = sf.publish(one_group(), sf.Policy.parse(policy), seed=1).notices
    assert "30-anonymity refuses every split of it (the best leaves a part with 20 rows)" in sex


def test_a_column_that_tells_something_is_not_warned_of(release):
    assert release.notices == ()


def test_nothing_of_it_is_said_under_differential_privacy(tmp_path):
    pytest.importorskip("opendp")
    release = sf.publish(private_people.people(50), private_people.the_policy(), seed=1)
    assert (release.remarks, release.notices) == ((), ())
    claims = json.loads(release.certificate.to_json())["claims"]
    assert claims.keys() == {"rows", "cells", "counted", "sha256"}


# ---- the day -----------------------------------------------------------------------------------------


def test_the_day_is_that_of_the_source_date_epoch_or_today_and_none_with_a_seed(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert day_of_making(seed=3) is None
    assert day_of_making(seed=None) == datetime.now(UTC).date()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1217548800")
    assert str(day_of_making(seed=None)) == "2008-08-01"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(InputError, match="SOURCE_DATE_EPOCH"):
        day_of_making(seed=None)
    with pytest.raises(
        InputError, match="SOURCE_DATE_EPOCH"
    ):  # before anything is compiled, which reads it, too
        sf.publish(one_group(), sf.Policy.parse(ONE_GROUP))


def test_the_day_stands_in_certificate_and_report_and_verifies(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1217548800")
    release = sf.publish(one_group(), sf.Policy.parse(ONE_GROUP))
    release.write(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "certificate.json").read_text())["made"] == "2008-08-01"
    assert "2008-08-01" in release.report.split("<main>")[0]
    assert sf.verify_folder(tmp_path / "out").ok


def test_a_certificate_with_a_day_that_is_none_or_of_a_private_release_is_refused(release):
    pytest.importorskip("opendp")
    document = json.loads(release.certificate.to_json())
    with pytest.raises(InputError, match="must be a day"):
        Certificate.from_json(json.dumps({**document, "made": "20240305"}))
    private = json.loads(
        sf.publish(private_people.people(50), private_people.the_policy(), seed=1).certificate.to_json()
    )
    with pytest.raises(InputError, match="differentially private"):
        Certificate.from_json(json.dumps({**private, "made": "2024-03-05"}))


def test_a_private_release_has_no_day(monkeypatch):
    pytest.importorskip("opendp")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1217548800")
    release = sf.publish(private_people.people(50), private_people.the_policy(), seed=1)
    assert "made" not in json.loads(release.certificate.to_json())
    assert "2008-08-01" not in release.report


# ---- on the command line -----------------------------------------------------------------------------


def test_publish_warns_on_stderr_and_ends_well(tmp_path: Path, capfd):
    policy, table = tmp_path / "policy.yaml", tmp_path / "table.csv"
    policy.write_text(ONE_GROUP, encoding="utf-8")
    one_group().to_pandas().to_csv(table, index=False)
    assert (
        run(["publish", str(table), "--policy", str(policy), "--out", str(tmp_path / "out"), "--seed", "1"])
        == 0
    )
    said = capfd.readouterr()
    assert "40 rows in 1 group, verified." in said.out
    assert "cells of the quasi-identifiers: 0% exact, 0% narrowed, 100% *" in said.out
    warnings = [line for line in said.err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 4
    assert "refuses" not in said.out
