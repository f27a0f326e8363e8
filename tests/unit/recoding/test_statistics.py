"""Statistics of groups: against exact fractions, in any order of rows, with missing cells, and their names."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from merging import gather_in_parts, ways_to_gather

from sfumato.errors import InputError
from sfumato.methods import partition
from sfumato.policy.document import Policy
from sfumato.publishing import publish
from sfumato.recoding import statistics as summary
from sfumato.recoding.recoder import Partition
from sfumato.recoding.rows import published_rows
from sfumato.recoding.statistics import OneGroup
from sfumato.table.opening import open_table
from sfumato.verify.folder import verify_folder
from sfumato.verify.table import verify_table

WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**54), 2**54) | st.integers(-100, 100)
REAL = st.floats(allow_nan=False, allow_infinity=False)


def a_policy(*statistics, **columns) -> Policy:
    attributes = {name: {"role": "quasi-identifier", "type": kind} for name, kind in columns.items()}
    workload = [{"aggregate": list(statistics)}] if statistics else []
    return Policy.from_dict({"attributes": attributes, "require": [], "workload": workload})


def groups_of(*parts) -> Partition:
    """A partition of rows that have these numbers."""
    size = np.array([len(part) for part in parts])
    return Partition(SimpleNamespace(), np.arange(len(parts)), size, np.concatenate(parts).astype(np.uint32))


def statistics_of(cells, *parts, kind="number"):
    """(min, max, mean) of each part of one column, read back from the rows."""
    policy = a_policy("range", "mean", x=kind)
    found = summary.columns(open_table(pa.table({"x": cells})), policy, groups_of(*parts))
    assert list(found) == ["x_min", "x_max", "x_mean"]
    starts = np.cumsum([0, *(len(part) for part in parts)])[:-1].tolist()
    return [tuple(column[start].as_py() for column in found.values()) for start in starts]


# ---- what they are ---------------------------------------------------------------------------------


def test_statistics_by_hand():
    cells = [4, 1, 2, None, None, 7, None]
    assert statistics_of(cells, [0, 1, 2], [3, 5], [4, 6]) == [(1, 4, 7 / 3), (7, 7, 7.0), (None, None, None)]


def test_every_row_of_a_group_has_them():
    policy = a_policy("mean", x="number")
    found = summary.columns(open_table(pa.table({"x": [1, 2, 5, 5]})), policy, groups_of([3, 0], [1, 2]))
    assert found["x_mean"].to_pylist() == [3.0, 3.0, 3.5, 3.5]


def test_a_column_that_is_missing_throughout_has_missing_statistics():
    assert statistics_of(pa.nulls(2, pa.float64()), [0, 1]) == [(None, None, None)]
    assert statistics_of([None, None], [0], [1]) == [(None,) * 3] * 2
    assert statistics_of(["", ""], [0, 1], kind="date") == [(None,) * 3]


def test_texts_are_read_as_the_policy_says():
    (row,) = statistics_of([" 1.5", "2", ""], [0, 1, 2])
    assert row == (1.5, 2.0, 1.75)


def test_the_mean_of_large_whole_numbers_is_rounded_once():
    cells = [9098514825462993, 13428563649751945, 12600913328762692]
    assert float(sum(cells)) / 3 != sum(cells) / 3  # as a float, the sum is rounded before it is divided
    assert statistics_of(cells, [0, 1, 2])[0][2] == sum(cells) / 3
    assert statistics_of([2**63 - 1] * 4 + [-1], range(4), [4]) == [
        (2**63 - 1, 2**63 - 1, 2.0**63),
        (-1, -1, -1.0),
    ]


def test_minus_zero_does_not_depend_on_the_order_of_rows():
    for cells in ([0.0, -0.0, 0.5], [-0.0, 0.0, 0.5]):
        ((least, _, _),) = statistics_of(cells, [0, 1, 2])
        assert str(least) == "0.0"


def test_dates_have_days_and_the_mean_is_the_nearest_one():
    cells = ["2024-03-01", "2024-03-02", "2024-02-01", None]
    first, second, third = (dt.date.fromisoformat(cell) for cell in cells[:3])
    assert statistics_of(cells, [0, 1], [2, 3], kind="date") == [
        (first, second, second),  # the later one of two
        (third, third, third),
    ]
    assert statistics_of(["1969-12-30", "1969-12-29"], [0, 1], kind="date")[0][2] == dt.date(1969, 12, 30)


@given(st.lists(st.lists(st.none() | WHOLE, min_size=1, max_size=6), min_size=1, max_size=5))
def test_whole_numbers_are_summed_exactly(parts):
    check_against_fractions(parts, pa.int64())


@given(st.lists(st.lists(st.none() | REAL, min_size=1, max_size=6), min_size=1, max_size=5))
def test_other_numbers_lie_within_a_rounding_of_the_exact_mean(parts):
    check_against_fractions(parts, pa.float64())


def check_against_fractions(parts, kind):
    cells = [cell for part in parts for cell in part]
    rows = np.arange(len(cells))
    numbered = np.split(rows, np.cumsum([len(part) for part in parts])[:-1])
    found = statistics_of(pa.array(cells, kind), *numbered)
    for part, (least, most, mean) in zip(parts, found, strict=True):
        there = [cell for cell in part if cell is not None]
        if not there:
            assert (least, most, mean) == (None, None, None)
            continue
        assert (least, most) == (min(there), max(there))
        exact = sum(map(Fraction, there), Fraction(0)) / len(there)
        if kind == pa.int64():
            assert mean == float(exact)
        else:
            assert abs(Fraction(mean) - exact) <= abs(exact) * Fraction(2) ** -51 + Fraction(2) ** -1073
        assert float(least) <= mean <= float(most)


@given(st.lists(REAL, min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_no_statistic_depends_on_the_order_of_rows(cells, random):
    rows = list(range(len(cells)))
    shuffled = random.sample(rows, len(rows))
    assert repr(statistics_of(cells, rows)) == repr(statistics_of(cells, shuffled))
    moved = [cells[row] for row in shuffled]
    assert repr(statistics_of(cells, rows)) == repr(statistics_of(moved, rows))


@given(st.lists(st.integers(-700_000, 2_900_000), min_size=1, max_size=9))
def test_the_mean_day_is_the_nearest(days):
    cells = pa.array(days, pa.int32()).cast(pa.date32())
    found = summary.columns(
        open_table(pa.table({"x": cells})), a_policy("mean", x="date"), groups_of(range(len(days)))
    )
    mean = found["x_mean"].cast(pa.int32())[0].as_py()
    assert -Fraction(1, 2) <= Fraction(sum(days), len(days)) - mean < Fraction(1, 2)


# ---- which columns have them, and under which names ------------------------------------------------


def test_statistics_are_of_published_numbers_and_of_boxed_dates():
    policy = Policy.parse("""
    attributes:
      id:   {role: identifier, type: number}
      gone: {role: drop, type: number}
      age:  {role: quasi-identifier, type: number}
      born: {role: quasi-identifier, type: date, hierarchy: {dates: [month, year]}}
      zip:  {role: quasi-identifier}
      seen: {role: other, type: date}
      cost: {role: sensitive, type: number}
      job:  {role: other}
    require: []
    workload: [{aggregate: [mean]}]
    """)
    named = {attribute.name: summary.names_of(attribute, policy) for attribute in policy.schema}
    assert {name for name, names in named.items() if names} == {"age", "born", "cost"}
    assert named["age"] == ("age_mean",)


def test_only_what_is_asked_for_is_published():
    table = open_table(pa.table({"x": [1, 2]}))
    for asked, names in [
        (["range"], ["x_min", "x_max"]),
        (["mean"], ["x_mean"]),
        (["mean", "range"], ["x_min", "x_max", "x_mean"]),
        ([], []),
    ]:
        assert list(summary.columns(table, a_policy(*asked, x="number"), groups_of([0, 1]))) == names


def test_a_column_with_the_name_of_a_statistic_is_refused_before_the_work():
    summary.check_names(a_policy("mean", x="number", x_min="number"))
    with pytest.raises(InputError, match="'x_min' of the table has the name of a published statistic"):
        summary.check_names(a_policy("range", x="number", x_min="category"))


# ---- published and verified --------------------------------------------------------------------------

HIERARCHIES: dict[str, list[Any]] = {
    "number": [None, "flat", {"intervals": [5, 20]}, {"balanced": 2}],
    "date": [None, {"dates": ["day", "month", "quarter", "year", "decade"]}],
}


@st.composite
def tables_with_policies(draw):
    """A table whose columns are numbers and dates of every kind, some cells missing, and a policy for it."""
    n_rows = draw(st.integers(4, 30))
    attributes, columns = {}, {}
    for i in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["number", "date"]))
        declared = {"role": "quasi-identifier", "type": kind}
        if (hierarchy := draw(st.sampled_from(HIERARCHIES[kind]))) is not None:
            declared["hierarchy"] = hierarchy
        if kind == "date":
            cells: st.SearchStrategy[Any] = st.dates(dt.date(1965, 1, 1), dt.date(1985, 12, 31))
            arrow = pa.date32()
        elif draw(st.booleans()):
            cells, arrow = st.integers(0, 40), pa.int64()
        else:
            cells, arrow = st.decimals(0, 40, places=1).map(float), pa.float64()
        if kind == "number" and (hierarchy not in (None, "flat") or draw(st.booleans())):
            declared["bounds"] = [0, 40]
            if arrow == pa.float64() and hierarchy == {"balanced": 2}:
                declared["step"] = 0.1
        values = draw(st.lists(st.none() | cells, min_size=n_rows, max_size=n_rows))
        attributes[f"q{i}"] = declared
        columns[f"q{i}"] = pa.array(values, arrow)
    attributes["cost"] = {"role": "sensitive", "type": "number"}
    costs = st.none() | st.floats(-1e6, 1e6)
    columns["cost"] = pa.array(draw(st.lists(costs, min_size=n_rows, max_size=n_rows)), pa.float64())
    statistics = draw(st.sampled_from([["range"], ["mean"], ["range", "mean"]]))
    require = [{"k-anonymity": draw(st.integers(1, 4))}]
    document = {"attributes": attributes, "require": require, "workload": [{"aggregate": statistics}]}
    return pa.table(columns), Policy.from_dict(document)


@given(tables_with_policies())
def test_what_is_published_passes_verification(made):
    table, policy = made
    source = open_table(table)
    rows = published_rows(source, policy, partition(source, policy), np.zeros(source.n_rows))
    verify_table(rows, policy).raise_if_failed()
    as_text = pa.table({name: rows.column(name).cast(pa.string()) for name in rows.column_names})
    verify_table(as_text, policy).raise_if_failed()  # as a CSV file has it


@pytest.mark.parametrize("method", ["mondrian", "tds"])
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_summary_release_is_written_and_verified(tmp_path, method, file_format):
    policy = Policy.parse(f"""
    attributes:
      age:     {{role: quasi-identifier, type: number}}
      born:    {{role: quasi-identifier, type: date, hierarchy: {{dates: [month, year]}}}}
      sex:     {{role: quasi-identifier}}
      cost:    {{role: sensitive, type: number}}
      outcome: {{role: other}}
    require: [k-anonymity: 3]
    workload: [{{classify: outcome}}, {{aggregate: [mean, range]}}]
    method: {method}
    """)
    random = np.random.default_rng(5)
    table = pa.table(
        {
            "cost": random.integers(10, 99, 60),
            "age": random.integers(20, 60, 60),
            "born": np.datetime64("1990-01-01") + random.integers(0, 900, 60),
            "sex": random.choice(["f", "m"], 60),
            "outcome": random.choice(["good", "bad"], 60),
        }
    )
    release = publish(table, policy, seed=1, file_format=file_format)
    assert release.rows.column_names == [
        "cost", "cost_min", "cost_max", "cost_mean", "age", "age_min", "age_max", "age_mean",
        "born", "born_min", "born_max", "born_mean", "sex", "outcome",
    ]  # fmt: skip
    release.write(tmp_path / "out")
    verdict = verify_folder(tmp_path / "out")
    assert verdict.ok
    claims = {check.claim for check in verdict.checks}
    assert "the statistics of 'born' lie in the ranges beside them" in claims
    assert "the statistics of 'cost' are those of the rows" in claims
    assert release.rows.column("age_mean").to_numpy().mean() == pytest.approx(
        table.column("age").to_numpy().mean()
    )


@given(
    st.lists(
        st.one_of(st.none(), st.floats(-1e300, 1e300), st.integers(-(2**40), 2**40)), min_size=1, max_size=40
    ),
    st.integers(1, 7),
)
def test_a_group_in_batches_has_the_statistics_of_the_group_at_once(values, size):
    policy = Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: number}}, require: [], output: {values: summary}}"
    )
    column = pa.array(values, pa.float64())
    source = open_table(pa.table({"x": column}))
    everyone = Partition(
        None, np.array([0]), np.array([len(values)]), np.arange(len(values), dtype=np.uint32)
    )
    group = OneGroup(policy)
    for batch in pa.table({"x": column}).to_batches(max_chunksize=size):
        group.add(batch)
    expected = {name: cells[0].as_py() for name, cells in summary.columns(source, policy, everyone).items()}
    assert {name: cell.as_py() for name, cell in group.cells().items()} == expected


@given(st.lists(st.one_of(st.none(), st.dates()), min_size=1, max_size=30), st.integers(1, 7))
def test_so_has_a_group_of_dates(days, size):
    policy = Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: date}}, require: [], output: {values: summary}}"
    )
    column = pa.array(days, pa.date32())
    everyone = Partition(None, np.array([0]), np.array([len(days)]), np.arange(len(days), dtype=np.uint32))
    group = OneGroup(policy)
    for batch in pa.table({"x": column}).to_batches(max_chunksize=size):
        group.add(batch)
    expected = summary.columns(open_table(pa.table({"x": column})), policy, everyone)
    assert {n: c.as_py() for n, c in group.cells().items()} == {n: c[0].as_py() for n, c in expected.items()}


@given(
    st.data(),
    st.lists(st.one_of(st.none(), WHOLE), min_size=1, max_size=30),
    st.sampled_from(["number", "text", "date"]),
)
def test_a_group_has_the_same_statistics_in_any_blocks_and_order_and_by_any_merges(data, values, kind):
    if kind == "text":  # whole numbers in some blocks only
        column = pa.array([None if x is None else f"{x % 10}" if x % 3 else f"{x % 10}.5" for x in values])
    elif kind == "date":
        column = pa.array([None if x is None else x % 20_000 for x in values], pa.int32()).cast(pa.date32())
    else:
        column = pa.array(values, pa.int64())
    policy = a_policy("range", "mean", x="date" if kind == "date" else "number")

    def add(group: OneGroup, start: int, end: int) -> None:
        group.add(pa.record_batch({"x": column.slice(start, end - start)}))

    whole = OneGroup(policy)
    add(whole, 0, len(values))
    found = gather_in_parts(data.draw(ways_to_gather(len(values))), lambda: OneGroup(policy), add)
    assert found.cells() == whole.cells()
