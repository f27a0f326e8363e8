"""Predicates against rows, codes and boxes, each with an obviously right twin."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
import sqlite3
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_releases import ATTRIBUTES, WORDS, conditions_on, published, quoted, releases

from sfumato.encoding.encoders import encode_axis
from sfumato.errors import InputError, PolicyError
from sfumato.policy.document import Policy
from sfumato.policy.predicate import parse
from sfumato.policy.rectangles import Interval
from sfumato.release.query import select
from sfumato.release.query.overlap import snap_to_grid
from sfumato.release.query.select import code_ranges, group_rows, imprecision, matches, overlap, overlaps
from sfumato.table.opening import open_table

# ---- raw rows: SQLite is the twin ------------------------------------------------------------------

RAW = Policy.parse("""
attributes:
  age: {role: quasi-identifier, type: number}
  born: {role: quasi-identifier, type: date}
  sex: {role: quasi-identifier}
require: []
""")
AGES, BORN, SEXES = (None, -1.5, 0.0, 1.0, 2.0), (None, "1969-12-31", "1970-01-02"), (None, "m", "f", "x'y")
CELLS = list(itertools.product(AGES, BORN, SEXES))
TABLE = open_table(pa.table({name: [c[i] for c in CELLS] for i, name in enumerate(("age", "born", "sex"))}))


@st.composite
def comparisons(draw):
    name, values = draw(
        st.sampled_from([("age", (*AGES[1:], 1.5)), ("born", BORN[1:]), ("sex", (*SEXES[1:], "z"))])
    )
    value = st.sampled_from(values).map(quoted)
    shape = draw(
        st.sampled_from(["=", "<>", "!=", "null", "not null", "in", "not in", "order", "between", "flip"])
    )
    if name == "sex" and shape in ("order", "between", "flip"):
        shape = "="
    if shape in ("in", "not in"):
        return f"{name} {shape} ({', '.join(draw(st.lists(value, min_size=1, max_size=3)))})"
    if shape in ("null", "not null"):
        return f"{name} is {shape}"
    if shape == "between":
        return f"{name} {draw(st.sampled_from(['', 'not ']))}between {draw(value)} and {draw(value)}"
    if shape == "order":
        return f"{name} {draw(st.sampled_from(['<', '<=', '>', '>=']))} {draw(value)}"
    if shape == "flip":
        return f"{draw(value)} {draw(st.sampled_from(['<', '<=', '>', '>=', '=', '<>']))} {name}"
    return f"{name} {shape} {draw(value)}"


conditions = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda x: f"{x[0]} {x[1]} {x[2]}"),
        inner.map(lambda x: f"not ({x})"),
        comparisons().map(lambda x: f"not {x}"),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def database():
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (age real, born text, sex text)")
    connection.executemany("insert into t values (?, ?, ?)", CELLS)
    yield connection
    connection.close()


@settings(max_examples=400, deadline=None)
@given(conditions)
def test_rows_match_as_they_do_in_sqlite(database, where):
    found = matches(parse(where, RAW.schema), TABLE, RAW.schema)
    expected = [row[0] for row in database.execute(f"select coalesce({where}, 0) from t order by rowid")]
    assert found.tolist() == [bool(x) for x in expected]


def test_missing_values_of_the_policy_are_missing():
    policy = Policy.parse("""
attributes: {age: {role: quasi-identifier, type: number, missing-values: ["-9"]}}
require: []
""")
    source = open_table(pa.table({"age": ["-9", "5", ""]}))
    assert matches(parse("age < 10", policy.schema), source, policy.schema).tolist() == [False, True, False]
    assert matches(parse("age is null", policy.schema), source, policy.schema).tolist() == [True, False, True]


# ---- codes -----------------------------------------------------------------------------------------


def domain_of(column, **declared):
    name = "x"
    text = ", ".join(f"{key}: {value}" for key, value in declared.items())
    policy = Policy.parse(f"{{attributes: {{{name}: {{role: quasi-identifier, {text}}}}}, require: []}}")
    domain, _ = encode_axis(open_table(pa.table({name: column})), policy.schema[name])
    return domain, policy.schema


def ranges(where, column, **declared):
    domain, schema = domain_of(column, **declared)
    return code_ranges(parse(where, schema), (domain,))[:, 0].tolist()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("x >= 30", [[1, 2]]),
        ("x > 30", [[2, 2]]),
        ("x <= 30", [[0, 1]]),
        ("x < 30", [[0, 1]]),  # 29 lies above 20: the region (20, ...] holds it
        ("x < 21", [[0, 0]]),
        ("x between 21 and 29", [[1, 1]]),
        ("x between 20.2 and 20.8", []),
        ("x = 25", [[1, 1]]),
        ("x is null", []),
        ("x is not null", [[0, 2]]),
        ("x > 40", []),
        ("x < 20", []),
    ],
)
def test_the_codes_of_whole_numbers(where, expected):
    assert ranges(where, [20, 30, 40], type="number") == expected


def test_bounds_let_boxes_reach_further_than_the_values():
    assert ranges("x > 40", [20, 30, 40], type="number", bounds="[0, 100]") == [[2, 2]]
    assert ranges("x < 20", [20, 30, 40], type="number", bounds="[0, 100]") == [[0, 0]]
    assert ranges("x > 100", [20, 30, 40], type="number", bounds="[0, 100]") == []


def test_missing_is_the_first_code():
    cells = [20, None, 30]
    assert ranges("x is null", cells, type="number") == [[0, 0]]
    assert ranges("x <= 20", cells, type="number") == [[1, 1]]
    for dense in ([20, None, 30], [20, None, 21, 22]):  # codes by rank, and codes by steps
        last = 2 if len(dense) == 3 else 3
        assert ranges("x < 20", dense, type="number", bounds="[0, 100]") == [[1, 1]]
        assert ranges("x > 30", dense, type="number", bounds="[0, 100]") == [[last, last]]
    assert ranges("x is null", [None, None], type="number") == [[0, 0]]
    assert ranges("x >= 0", [None, None], type="number") == []


def test_the_codes_of_a_category_fall_into_runs():
    cells = ["d", "a", "b", "c", None]
    assert ranges("x in ('a', 'b', 'd')", cells) == [[0, 1], [3, 3]]
    assert ranges("x <> 'b'", cells) == [[0, 0], [2, 3]]
    assert ranges("x is null", cells) == [[4, 4]]
    assert ranges("x is null", ["a"]) == []
    assert ranges("x = 'unheard of'", cells) == []


def test_the_codes_of_a_number_with_a_hierarchy_are_leaves():
    declared = {"type": "number", "bounds": "[0, 20]", "hierarchy": "{intervals: [5]}"}
    assert ranges("x >= 5", [1, 6, None], **declared) == [[1, 3]]
    assert ranges("x > 4", [1, 6, None], **declared) == [[0, 3]]
    assert ranges("x < 5", [1, 6, None], **declared) == [[0, 0]]
    assert ranges("x = 20", [1, 6, None], **declared) == [[3, 3]]
    assert ranges("x is null", [1, 6, None], **declared) == [[4, 4]]
    assert ranges(
        "x between 3 and 4", [1, 6], type="number", bounds="[0, 20]", hierarchy="{balanced: 3}"
    ) == [[3, 4]]
    assert ranges("x between 2 and 6", [1, 6, 9], type="number", hierarchy="flat") == [[1, 1]]
    days = ["2020-01-31", "2020-02-01", "2021-06-01"]
    assert ranges("x >= '2020-01-15'", days, type="date", hierarchy="{dates: [month, year]}") == [[0, 2]]
    assert ranges("x > '2020-01-31'", days, type="date", hierarchy="{dates: [month, year]}") == [[1, 2]]
    assert ranges("x > '2020-01-31'", days, type="date", hierarchy="flat") == [[1, 2]]


def test_axes_that_no_side_names_are_whole():
    one, schema = domain_of([20, 30], type="number")
    other, _ = domain_of(["a", "b", "c"])
    found = code_ranges(parse("x = 20 or x = 30", schema), (one, _renamed(other, "y")))
    assert found.tolist() == [[[0, 0], [0, 2]], [[1, 1], [0, 2]]]
    assert found.dtype == np.int64
    assert code_ranges(parse("x = 20 and x = 30", schema), (one,)).shape == (0, 1, 2)


def _renamed(domain, name):
    from dataclasses import replace

    return replace(domain, attribute=replace(domain.attribute, name=name))


def test_too_many_runs_are_refused():
    letters = [f"{i:03}" for i in range(250)]
    domain, _ = domain_of(letters)
    policy = Policy.parse(
        "{attributes: {x: {role: quasi-identifier}, y: {role: quasi-identifier}}, require: []}"
    )
    odd = ", ".join(f"'{letter}'" for letter in letters[::2])
    both = parse(f"x in ({odd}) and y in ({odd})", policy.schema)
    with pytest.raises(PolicyError, match="more than 10,000 ranges of values"):
        code_ranges(both, (domain, _renamed(domain, "y")))


numbers = st.lists(st.sampled_from([None, 0.0, 0.5, 1.0, 2.5, 4.0]), min_size=1, max_size=6)
ends = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0])


@given(numbers, ends, ends, st.sampled_from([{}, {"bounds": "[0, 4]", "step": 0.5}, {"bounds": "[-1, 9.5]"}]))
def test_codes_up_to_a_threshold_overlap_as_their_regions_do(cells, low, high, declared):
    domain, schema = domain_of(pa.array(cells, pa.float64()), type="number", **declared)
    found = code_ranges(parse(f"x between {low} and {high}", schema), (domain,))[:, 0]
    grid = domain.grid if domain.low <= domain.high else None
    values = np.arange(-8, 80) * 0.125 if grid is None else domain.low + np.arange(64) * grid
    values = values[(values >= max(domain.low, low)) & (values <= min(domain.high, high))]
    assert len(found) == bool(len(values))
    for t in range(domain.n_codes - 1):
        threshold = domain.value(t)
        left, right = (values <= threshold).any(), (values > threshold).any()
        for first, last in found:
            assert (first <= t, last > t) == (left, right)


@given(st.integers(-50, 50), st.integers(-50, 50), st.sampled_from([0.1, 0.2, 0.25, 1.0, 7.0]), st.booleans())
def test_an_interval_snaps_to_the_decimals_of_its_grid(i, j, grid, strict):
    from decimal import Decimal

    step = Decimal(str(grid))
    low, high = float(i * step), float(j * step)
    given_one = Interval(math.nextafter(low, math.inf), high) if strict else Interval(low, high)
    found = snap_to_grid(given_one, 0.0, grid)
    if given_one:
        assert (found.low, found.high) == (float((i + strict) * step), high)
    else:
        assert not found


# ---- published rows --------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(releases())
def test_a_row_that_matches_overlaps_and_a_row_in_a_sure_box_matches(case):
    table, policy, where = case
    source, rows, recoding = published(table, policy)
    predicate = parse(where, policy.schema)
    true = matches(predicate, source, policy.schema)
    for with_ranges in (False, True):
        groups = group_rows(predicate.names, rows, recoding, policy, with_ranges=with_ranges)
        found = groups.overlap(predicate.rectangles)
        may, surely = found.touches[groups.of_row], found.is_inside[groups.of_row]
        share = found.share[groups.of_row]
        assert (may | ~true).all()
        assert (true | ~surely).all()
        assert (~surely | (share == 1)).all()
        assert (may | (share == 0)).all()
        assert ((share >= 0) & (share <= 1)).all()
    touched = overlap(predicate, rows, recoding, policy)
    assert ((touched > 0) == overlaps(predicate, rows, recoding, policy).touches).all()
    returned, n_true, surplus = imprecision(predicate, source, policy.schema, rows, recoding, policy)
    assert (returned, n_true, surplus) == ((touched > 0).sum(), true.sum(), (touched > 0).sum() - true.sum())


POSSIBLE: dict[str, list[Any]] = {
    "whole": [float(x) for x in range(-2, 12)],
    "bounded": [float(x) for x in range(10)],
    "day": [(dt.date(2020, 1, 25) + dt.timedelta(days=i)).isoformat() for i in range(20)],
    "declared": list("abcdef"),
    "tree": list("abcde"),
}


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_share_is_that_of_the_values_that_a_box_can_hold(data):
    """Twin: list every combination of values in each box, and count those that match."""
    names = data.draw(st.lists(st.sampled_from(sorted(POSSIBLE)), min_size=1, max_size=2, unique=True))
    n = data.draw(st.integers(1, 10))
    text = "\n".join(f"  {name}: {{role: quasi-identifier, {ATTRIBUTES[name]}}}" for name in names)
    policy = Policy.parse(
        f"attributes:\n{text}\nrequire: [k-anonymity: {data.draw(st.integers(1, min(n, 4)))}]"
    )
    cells = {
        name: data.draw(st.lists(st.sampled_from(WORDS[name]) | st.none(), min_size=n, max_size=n))
        for name in names
    }
    types = {name: pa.string() if isinstance(WORDS[name][0], str) else pa.float64() for name in names}
    _source, rows, recoding = published(
        pa.table({name: pa.array(cells[name], types[name]) for name in names}), policy
    )
    predicate = parse(data.draw(conditions_on(names)), policy.schema)
    found = overlaps(predicate, rows, recoding, policy)
    for i in range(n):
        values = [_values_in(rows.column(name)[i].as_py(), name, recoding) for name in names]
        every = list(itertools.product(*values))
        columns = {name: pa.array([row[j] for row in every], types[name]) for j, name in enumerate(names)}
        inside = matches(predicate, open_table(pa.table(columns)), policy.schema)
        assert found.share[i] == pytest.approx(inside.mean())
        assert (found.touches[i], found.is_inside[i]) == (inside.any(), inside.all())


def _values_in(label, name, recoding):
    """What a published label says, read as a person would."""
    if label is None:
        return [None]
    (axis,) = [axis for axis in recoding.axes if axis.attribute.name == name]
    if name in {"declared", "tree"}:
        nodes = {"*": POSSIBLE[name], "ab": ["a", "b"], "cd": ["c", "d", "e"]}
        return [*nodes.get(label, [label]), *([None] if label == "*" and axis.has_missing else [])]
    label, _, missing = label.partition(" or ")
    low, high = (label.strip("[]").split(", ") * 2)[:2]
    inside = [
        v for v in POSSIBLE[name] if (low <= v <= high if name == "day" else float(low) <= v <= float(high))
    ]
    return [*inside, *([None] if missing else [])]


def rows_of(policy, columns, where):
    _source, rows, recoding = published(pa.table(columns), policy)
    return overlaps(parse(where, policy.schema), rows, recoding, policy)


REAL = Policy.parse(
    "{attributes: {x: {role: quasi-identifier, type: number}}, require: [k-anonymity: 2], "
    "method: {mondrian: {refine: none}}, output: {numbers: boxes}}"
)


def test_the_share_of_numbers_without_a_grid_is_a_length():
    columns = {"x": [0.5, 1.0, 2.0, 10.5]}  # boxes [0.5, 1] and (1, 10.5]
    assert rows_of(REAL, columns, "x between 1.5 and 3.4").share.tolist() == pytest.approx([0, 0, 0.2, 0.2])
    at_the_edge = rows_of(REAL, columns, "x = 1")
    assert (at_the_edge.share.tolist(), at_the_edge.touches.tolist()) == ([0] * 4, [True, True, False, False])
    assert rows_of(REAL, columns, "x > 1").is_inside.tolist() == [False, False, True, True]
    assert rows_of(REAL, columns, "x >= 1").touches.all()


def test_a_hierarchy_made_from_the_table_hides_what_it_does_not_show():
    policy = Policy.parse("{attributes: {x: {role: quasi-identifier}}, require: [k-anonymity: 4]}")
    columns = {"x": ["m", "f", "f", "m"]}  # published as *
    found = rows_of(policy, columns, "x = 'm'")
    assert found.share.tolist() == [0.5] * 4
    assert not found.is_inside.any()
    assert not rows_of(policy, columns, "x in ('m', 'f')").is_inside.any()
    assert rows_of(policy, columns, "x is not null").is_inside.all()
    assert not rows_of(policy, columns, "x is null").touches.any()
    zips = Policy.parse(
        "{attributes: {x: {role: quasi-identifier, hierarchy: {mask: 2}}}, require: [k-anonymity: 2]}"
    )
    found = rows_of(zips, {"x": ["11", "12", "21", "22"]}, "x = '13'")
    assert found.touches.tolist() == [True, True, False, False]
    assert found.share.tolist() == [0.1, 0.1, 0, 0]  # one of the ten digits
    found = rows_of(zips, {"x": ["11", "12", "21", "22"]}, "x <> '13'")
    assert found.share.tolist() == [0.9, 0.9, 1, 1]


def test_periods_are_counted_in_days():
    policy = Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: date, hierarchy: {dates: [month, year]}}}, "
        "require: [k-anonymity: 2]}"
    )
    found = rows_of(
        policy, {"x": ["2021-02-01", "2021-02-09", "2022-01-01", "2022-03-01"]}, "x >= '2021-02-15'"
    )
    assert found.share.tolist() == pytest.approx([0.5, 0.5, 1, 1])
    assert found.is_inside.tolist() == [False, False, True, True]


def test_a_foreign_cell_is_refused_without_its_value():
    _source, rows, recoding = published(pa.table({"x": [0.5, 1.0, 2.0, 10.5]}), REAL)
    foreign = pa.table({"x": ["[0.5, 1]", "secret", "secret", "(1, 10.5]"]})
    with pytest.raises(InputError, match=re.escape("Column 'x' has 2 cells that the recoding")) as refused:
        overlaps(parse("x > 1", REAL.schema), foreign, recoding, REAL)
    assert "secret" not in str(refused.value)
    with pytest.raises(InputError, match="has no column 'x'"):
        overlaps(parse("x > 1", REAL.schema), rows.rename_columns(["y"]), recoding, REAL)


def test_a_predicate_that_contradicts_itself_selects_nothing():
    found = rows_of(REAL, {"x": [0.5, 1.0, 2.0, 10.5]}, "x > 1 and x < 1")
    assert not found.touches.any()
    assert not found.is_inside.any()


def test_many_crossing_rectangles_still_bound_the_share(monkeypatch):
    """Where disjoint rectangles are too many, shares are no less and sure rows no more than with them."""
    policy = Policy.parse(
        "{attributes: {x: {role: quasi-identifier, type: number}, y: {role: quasi-identifier, type: number}}, "
        "require: [k-anonymity: 2]}"
    )
    columns = {"x": list(range(12)), "y": [(7 * i) % 12 for i in range(12)]}
    where = "x between -5 and 8 or y between 3 and 6 or y > 10"
    exact = rows_of(policy, columns, where)
    monkeypatch.setattr(select, "MAX_PIECES", 2)
    rough = rows_of(policy, columns, where)
    assert (rough.touches == exact.touches).all()
    assert (rough.share >= exact.share - 1e-12).all()
    assert (exact.is_inside | ~rough.is_inside).all()
    assert rough.is_inside.any()
