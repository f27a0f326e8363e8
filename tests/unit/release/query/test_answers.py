"""Selections and aggregates answered from releases."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_releases import ORDERED, published, releases

import sfumato as sf
from sfumato.encoding.cells import read_ordered
from sfumato.errors import InputError, PolicyError
from sfumato.policy.predicate import parse
from sfumato.release.query import answers
from sfumato.release.query.select import matches
from sfumato.release.release import Release
from sfumato.table import stored
from sfumato.table.opening import open_table
from sfumato.table.stored import FiledRows
from sfumato.table.write import write_table

POLICY = """
attributes:
  age: {{role: quasi-identifier, type: number}}
  sex: {{role: quasi-identifier}}
  born: {{role: quasi-identifier, type: date}}
  hours: {{role: other, type: number}}
  seen: {{role: other, type: date, passes: unique}}
  disease: {{role: sensitive}}
  name: {{role: identifier}}
require: [k-anonymity: {k}]
output: {{values: {output}}}
method: {method}
"""


def a_policy(k=5, output="labels", method="mondrian"):
    task = "\nworkload: [classify: disease]" if method == "tds" else ""
    return sf.Policy.parse(POLICY.format(k=k, output=output, method=method + task))


def a_table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    days = np.datetime64("1960-01-01") + rng.integers(0, 15_000, n)
    return pa.table(
        {
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "born": pa.array(days),
            "hours": rng.integers(0, 60, n),
            "seen": pa.array(days + 9_000),
            "disease": rng.choice(["flu", "cold", "gout"], n),
            "name": [f"n{i}" for i in range(n)],
        }
    )


TABLE = a_table()
AGE, SEX, HOURS = (TABLE[name].to_numpy() for name in ("age", "sex", "hours"))
OUTPUTS = ("labels", "bounds", "both", "summary")


@pytest.fixture(scope="module", params=[(o, m) for o in OUTPUTS for m in ("mondrian", "tds")], ids=str)
def release(request):
    output, method = request.param
    return sf.publish(TABLE, a_policy(output=output, method=method), seed=1)


# ---- select ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where", ["age >= 40 and sex = 'm'", "age < 30 or born > '1990-01-01'", "age is null"]
)
def test_a_selection_returns_the_rows_whose_boxes_overlap(release, where, tmp_path):
    true = int(matches(parse(where, release.policy.schema), open_table(TABLE), release.policy.schema).sum())
    found = release.select(where)
    assert true <= found.num_rows <= len(AGE)
    assert found.column_names == release.rows.column_names
    for file_format in ("csv", "parquet"):
        folder = tmp_path / file_format
        Release(
            release.rows, release.certificate, release.policy, release.recoding, format=file_format
        ).write(folder)
        back = Release.read(folder)
        assert back.select(where).num_rows == found.num_rows
        assert back.query("COUNT(*)", where) == release.query("COUNT(*)", where)


def test_a_selection_holds_every_row_that_matches(release):
    kept = release.select("age >= 40")
    assert not Counter(HOURS[AGE >= 40].tolist()) - Counter(kept["hours"].to_pylist())


def test_a_selection_leaves_out_the_boxes_elsewhere():
    kept = sf.publish(TABLE, a_policy()).select("age >= 60")
    lows = [int(re.findall(r"\d+", label)[-1]) for label in kept["age"].to_pylist()]
    assert min(lows) >= 60
    assert len(lows) < len(AGE)


def test_a_selection_is_a_frame_of_the_kind_that_came_in():
    policy = a_policy()
    assert isinstance(sf.publish(TABLE.to_pandas(), policy).select("age > 1000"), pd.DataFrame)
    assert isinstance(sf.publish(pl.from_arrow(TABLE), policy).select("age > 50"), pl.DataFrame)


def test_a_predicate_is_checked_by_the_policy():
    release = sf.publish(TABLE, a_policy())
    with pytest.raises(PolicyError, match="has the role sensitive"):
        release.select("disease = 'flu'")
    with pytest.raises(PolicyError, match="Did you mean 'age'"):
        release.query("COUNT(*) where agee > 5")


def test_a_release_without_its_recoding_cannot_be_asked(tmp_path):
    release = sf.publish(TABLE, a_policy())
    bare = Release(release.rows, release.certificate, release.policy)
    bare.write(tmp_path / "out")
    for one in (bare, Release.read(tmp_path / "out")):
        with pytest.raises(InputError, match="The release has no recoding"):
            one.select("age > 5")
        with pytest.raises(InputError, match="The release has no recoding"):
            one.query("AVG(age)")
        assert one.query("COUNT(*)").value == len(AGE)
        assert one.query("SUM(hours)").value == HOURS.sum()


# ---- query: exact where it can be ------------------------------------------------------------------


def test_all_rows_need_no_estimate(release):
    assert release.query("COUNT(*)") == (400, 400, 400)
    assert release.query("SUM(hours)") == (HOURS.sum(),) * 3
    assert release.query("avg( hours )").value == pytest.approx(HOURS.mean())
    assert release.query("MIN(hours)") == (HOURS.min(),) * 3
    assert release.query("MAX(hours)") == (HOURS.max(),) * 3
    assert release.query("MAX(seen)").value == TABLE["seen"].to_pandas().max()


def test_a_predicate_that_is_a_union_of_boxes_is_answered_exactly():
    policy = sf.Policy.parse("""
attributes: {age: {role: quasi-identifier, type: number}, hours: {role: other, type: number}}
require: [k-anonymity: 2]
method: {mondrian: {refine: none}}
output: {numbers: boxes}
""")
    table = pa.table({"age": [20, 21, 30, 31, 40, 41, 50, 51], "hours": [1, 2, 3, 4, 5, 6, 7, 8]})
    release = sf.publish(table, policy)
    assert sorted(set(release.table["age"].to_pylist())) == ["[20, 21]", "[22, 31]", "[32, 41]", "[42, 51]"]
    where = "age between 22 and 31 or age > 41"
    assert release.query("COUNT(*)", where) == (4, 4, 4)
    assert release.query("SUM(hours)", where) == (22, 22, 22)
    assert release.query("AVG(hours)", where) == (5.5, 5.5, 5.5)
    assert release.query("MIN(hours)", where) == (3, 3, 3)
    assert release.query("MAX(hours) WHERE " + where) == (8, 8, 8)
    half = release.query("COUNT(*)", "age >= 27")  # 5 of the 10 values of [22, 31]
    assert half == (2 * 0.5 + 4, 4, 6)
    assert release.query("SUM(hours)", "age >= 27") == (3.5 + 26, 26, 33)
    assert release.query("AVG(age)", "age >= 47") == (49, 47, 51)
    assert release.query("MIN(age)", "age >= 47").low == 47
    assert release.query("SUM(age)", "age between 20 and 21") == (41, 40, 42)


@pytest.mark.parametrize("method", ["mondrian", "tds"])
def test_statistics_make_aggregates_of_whole_groups_exact(method):
    release = sf.publish(TABLE, a_policy(output="summary", method=method))
    assert release.query("MIN(age)") == (AGE.min(),) * 3
    assert release.query("MAX(age)") == (AGE.max(),) * 3
    for answer, true in ((release.query("SUM(age)"), AGE.sum()), (release.query("AVG(age)"), AGE.mean())):
        assert list(answer) == pytest.approx([true] * 3)
    born = TABLE["born"].to_pandas()
    assert release.query("MIN(born)") == (born.min(),) * 3
    average = pd.to_datetime(born).mean().date()
    low, high = release.query("AVG(born)").low, release.query("AVG(born)").high
    assert low <= average <= high
    assert (high - low).days <= 1


def test_labels_alone_bound_the_least_and_the_greatest():
    answer = sf.publish(TABLE, a_policy()).query("MIN(age)")
    assert answer.low == AGE.min() <= answer.value <= answer.high


# ---- query: never wrong ----------------------------------------------------------------------------


def truth(function, values, inside):
    chosen = values[inside & np.isfinite(values)]
    if function == "SUM":
        return chosen.sum()
    if not len(chosen):
        return None
    return {"AVG": np.mean, "MIN": np.min, "MAX": np.max}[function](chosen)


def as_number(value):
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


@settings(max_examples=80, deadline=None)
@given(releases(), st.data())
def test_the_bounds_hold_the_truth(case, data):
    table, policy, where = case
    source, rows, recoding = published(table, policy)
    release = SimpleNamespace(rows=rows, recoding=recoding, policy=policy, n_left_out=0)
    where = data.draw(st.sampled_from([where, None]))
    inside = np.ones(source.n_rows, dtype=bool)
    if where is not None:
        inside = matches(parse(where, policy.schema), source, policy.schema)
    count = answers.query(release, "COUNT(*)", where)
    assert count.low <= inside.sum() <= count.high
    assert count.low <= count.value <= count.high
    for name in [name for name in source.names if name in (*ORDERED, "size")]:
        is_date = policy.schema[name].kind == "date"
        values = read_ordered(policy.schema[name], source.column(name))
        for function in ("AVG", "MIN", "MAX") if is_date else ("SUM", "AVG", "MIN", "MAX"):
            true = truth(function, values, inside)
            try:
                answer = answers.query(release, f"{function}({name})", where)
            except InputError as refused:
                assert "does not show where the values" in str(refused)  # noqa: PT017 - only sometimes
                continue
            low, value, high = (as_number(x) for x in (answer.low, answer.value, answer.high))
            if true is None:
                assert value is None or count.low < count.high or not np.isfinite(values[inside]).any()
                continue
            slack = 0.5 if is_date and function == "AVG" else 1e-9 * (1 + abs(true))
            assert low - slack <= true <= high + slack
            assert low <= value <= high


QUESTIONS = (
    "COUNT(*)",
    "SUM(age)",
    "AVG(age)",
    "MIN(age)",
    "MAX(hours)",
    "AVG(hours)",
    "MIN(seen)",
    "AVG(born)",
)


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_rows_in_a_file_answer_as_rows_in_memory_do(release, format_, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "ROWS_AT_ONCE", 37)
    monkeypatch.setattr(stored, "MOST_LINES", 50)
    write_table(release.rows, tmp_path / f"rows.{format_}")
    rows = FiledRows(tmp_path / f"rows.{format_}", format_)
    large = replace(release, rows=rows, format=format_)
    for where in (None, "age >= 40 and sex = 'm'", "age < 30 or born > '1990-01-01'", "age is null"):
        for question in QUESTIONS:
            ours, theirs = large.query(question, where), release.query(question, where)
            pairs = zip(ours, theirs, strict=True)
            assert all(a == b or as_number(a) == pytest.approx(as_number(b), rel=1e-9) for a, b in pairs)
        if where is not None:
            assert cells(large.select(where)) == cells(release.select(where))


def cells(table):
    return [[str(cell).removesuffix(".0") for cell in line.values()] for line in table.to_pylist()]


def test_a_uniform_spread_estimates_uniform_numbers_well():
    rng = np.random.default_rng(4)
    x, y = rng.uniform(0, 1, 20_000), rng.uniform(0, 1, 20_000)
    policy = sf.Policy.parse("""
attributes:
  x: {role: quasi-identifier, type: number, bounds: [0, 1.0]}
  y: {role: quasi-identifier, type: number, bounds: [0, 1.0]}
  z: {role: other, type: number, passes: unique}
require: [k-anonymity: 500]
""")
    release = sf.publish(pa.table({"x": x, "y": y, "z": x + y}), policy)
    inside = (x > 0.3) & (y < 0.55)
    where = "x > 0.3 and y < 0.55"
    count = release.query("COUNT(*)", where)
    assert count.value == pytest.approx(inside.sum(), rel=0.02)
    assert count.high - count.low > 0.1 * inside.sum()  # the bounds alone would not do
    assert release.query("AVG(x)", where).value == pytest.approx(x[inside].mean(), rel=0.01)
    assert release.query("SUM(x)", where).value == pytest.approx(x[inside].sum(), rel=0.02)
    assert release.query("AVG(z)", where).value == pytest.approx((x + y)[inside].mean(), rel=0.05)
    assert release.query("MAX(x)", where).value == pytest.approx(1, abs=0.01)
    assert release.query("MIN(x)", where).value == pytest.approx(0.3, abs=0.01)


def test_a_selection_of_nothing():
    release = sf.publish(TABLE, a_policy())
    assert release.query("COUNT(*)", "age > 1000") == (0, 0, 0)
    assert release.query("SUM(hours)", "age > 1000") == (0, 0, 0)
    assert release.query("SUM(age)", "age > 1000") == (0, 0, 0)
    for function in ("AVG", "MIN", "MAX"):
        for name in ("age", "hours", "born"):
            assert release.query(f"{function}({name})", "age > 1000") == (None, None, None)


def test_missing_numbers_count_for_nothing():
    policy = sf.Policy.parse("""
attributes: {age: {role: quasi-identifier, type: number}, hours: {role: other, type: number}}
require: [k-anonymity: 2]
output: {values: summary}
""")
    table = pa.table({"age": [20, 21, None, None], "hours": [None, 2, 9, None]})
    release = sf.publish(table, policy)
    assert release.query("SUM(hours)", "age <= 21") == (2, 2, 2)
    assert release.query("AVG(hours)") == (5.5, 5.5, 5.5)
    assert release.query("AVG(age)") == (20.5, 20.5, 20.5)
    assert release.query("MIN(age)", "age is null") == (None, None, None)
    assert release.query("COUNT(*)", "age is null") == (2, 2, 2)


def test_a_single_number_of_many_is_a_touch():
    policy = sf.Policy.parse("""
attributes: {x: {role: quasi-identifier, type: number}, y: {role: other, type: number}}
require: [k-anonymity: 4]
""")
    release = sf.publish(pa.table({"x": [0.5, 1.5, 2.5, 4.0], "y": [1, 2, 3, 4]}), policy)
    assert release.query("COUNT(*)", "x = 2") == (0, 0, 4)
    assert release.query("AVG(y)", "x = 2") == (2.5, 1, 4)
    assert release.query("AVG(x)", "x = 2") == (2, 2, 2)


# ---- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("MEDIAN(hours)", "MEDIAN depends on how values lie within a group"),
        ("median(hours) where age > 5", "[LDR08, footnote 4]; ask for COUNT, SUM, AVG, MIN or MAX."),
        ("STDDEV(hours)", "A release answers no 'STDDEV'; ask for COUNT, SUM, AVG, MIN or MAX."),
        ("AVGE(hours)", "Did you mean 'AVG'?"),
        ("hours", "A query must be a text such as COUNT(*)"),
        ("AVG(hours) + 1", "A query must be a text"),
        ("AVG(hours) GROUP BY sex", "A query must be a text"),
        ("AVG(abs(hours))", "A query must be a text"),
        (5, "A query must be a text"),
        ("COUNT(hours)", "COUNT is of rows: write COUNT(*)."),
        ("COUNT(distinct sex)", "COUNT is of rows"),
        ("AVG(*)", "AVG is of a column, such as AVG(hours)."),
        ("AVG(sex)", "AVG is of numbers, and column 'sex' is a category."),
        ("SUM(born)", "have no sum; ask for AVG, MIN or MAX."),
        ("AVG(name)", "The release has no column 'name'."),
        ("AVG(hour)", "The release has no column 'hour'. Did you mean 'hours'?"),
    ],
)
def test_a_question_without_an_answer_is_refused(question, reason):
    release = sf.publish(TABLE, a_policy())
    with pytest.raises(InputError, match=re.escape(reason)):
        release.query(question)


def test_one_condition_is_enough():
    with pytest.raises(InputError, match="has a condition of its own"):
        sf.publish(TABLE, a_policy()).query("COUNT(*) where age > 5", "age > 6")


def test_names_in_double_quotes():
    policy = sf.Policy.parse("""
attributes: {age: {role: quasi-identifier, type: number}, "hours (a week)": {role: other, type: number}}
require: [k-anonymity: 2]
""")
    release = sf.publish(pa.table({"age": [1, 2], "hours (a week)": [3, 4]}), policy)
    assert release.query('SUM("hours (a week)") where age > 0').value == 7


def test_ends_that_a_release_does_not_show_are_asked_for():
    declared = "role: quasi-identifier, type: date, hierarchy: {dates: [month, year]}"
    table = pa.table({"x": ["2020-01-01", "2021-01-01"]})
    policy = sf.Policy.parse(f"{{attributes: {{x: {{{declared}}}}}, require: [k-anonymity: 2]}}")
    release = sf.publish(table, policy)
    with pytest.raises(
        InputError, match="does not show where the values of column 'x' end; declare its bounds"
    ):
        release.query("AVG(x)")
    assert release.query("COUNT(*)", "x > '2020-05-05'") == (1, 0, 2)
    bounded = f"{declared}, bounds: [2020-01-01, 2021-12-31]"
    policy = sf.Policy.parse(f"{{attributes: {{x: {{{bounded}}}}}, require: [k-anonymity: 2]}}")
    assert sf.publish(table, policy).query("MAX(x)").high == date(2021, 12, 31)


def test_statistics_are_attained_even_where_some_cells_are_missing():
    policy = sf.Policy.parse(
        "{attributes: {age: {role: quasi-identifier, type: number}}, require: [k-anonymity: 4], "
        "output: {values: summary}}"
    )
    release = sf.publish(pa.table({"age": [20, 30, 40, None]}), policy)
    assert release.query("MIN(age)") == answers.Answer(20.0, 20.0, 20.0)
    assert release.query("MAX(age)", "age >= 10") == answers.Answer(40.0, 40.0, 40.0)
    assert release.query("MAX(age)", "age < 35").high < 35


@pytest.mark.parametrize("kind", ["number", "date"])
def test_a_flat_column_without_any_value_can_be_asked(kind):
    nulls = pa.nulls(5, pa.float64() if kind == "number" else pa.date32())
    policy = sf.Policy.parse(
        f"attributes: {{x: {{role: quasi-identifier, type: {kind}, hierarchy: flat}}, kind: {{role: other}}}}\n"
        "require: [k-anonymity: 1]\nworkload: [classify: kind]\nmethod: tds\n"
    )
    release = sf.publish(pa.table({"x": nulls, "kind": list("++++-")}), policy)
    value = "1.0" if kind == "number" else "'2020-01-30'"
    assert release.query("COUNT(*)", f"x = {value}") == answers.Answer(0, 0, 0)
    assert release.query("COUNT(*)", "x is null") == answers.Answer(5, 5, 5)
