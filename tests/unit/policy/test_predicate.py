"""Predicates as texts: what they mean, and which are refused."""

from __future__ import annotations

import itertools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import PolicyError
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.predicate import MAX_RECTANGLES, parse
from sfumato.policy.rectangles import (
    ANY_NUMBER,
    GREATEST,
    LEAST,
    MISSING,
    MISSING_ALONE,
    Interval,
    Labels,
    Rectangle,
    find_outside,
    make_disjoint,
)
from sfumato.policy.schema import Schema

QUASI = {"role": "quasi-identifier"}
SCHEMA = Schema.of(
    age={**QUASI, "kind": "number"},
    born={**QUASI, "kind": "date"},
    sex={**QUASI, "missing_values": ("?",)},
    job={
        **QUASI,
        "hierarchy": Hierarchy.from_tree({"*": {"office": ["clerk", "typist"], "field": ["driver"]}}),
    },
    zip={**QUASI, "hierarchy": {"mask": 5}},
    ward={**QUASI, "values": ("north", "south")},
    disease="sensitive",
    name="identifier",
    **{"marital-status": QUASI, "in": QUASI, 'a "b"': QUASI},
)


def sides(where, name):
    return [rectangle.sides.get(name) for rectangle in parse(where, SCHEMA).rectangles]


def some(*labels):
    return Labels(frozenset(labels))


def all_but(*labels):
    return Labels(frozenset(labels), is_complement=True)


UP_40, DOWN_40 = math.nextafter(40, math.inf), math.nextafter(40, -math.inf)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("age = 40", [Interval(40, 40)]),
        ("age <= 40", [Interval(LEAST, 40)]),
        ("age < 40", [Interval(LEAST, DOWN_40)]),
        ("age > 40", [Interval(UP_40, GREATEST)]),
        ("age >= 4e1", [Interval(40, GREATEST)]),
        ("age >= -.5", [Interval(-0.5, GREATEST)]),
        ("age >= +1.", [Interval(1, GREATEST)]),
        ("40 <= age", [Interval(40, GREATEST)]),
        ("40 > age", [Interval(LEAST, DOWN_40)]),
        ("-1 = age", [Interval(-1, -1)]),
        ("age <> 40", [Interval(LEAST, DOWN_40), Interval(UP_40, GREATEST)]),
        ("age != 40", [Interval(LEAST, DOWN_40), Interval(UP_40, GREATEST)]),
        ("not age >= 40", [Interval(LEAST, DOWN_40)]),
        ("not not age >= 40", [Interval(40, GREATEST)]),
        ("age between 20 and 40", [Interval(20, 40)]),
        ("age between 40 and 20", []),
        ("age not between 40 and 20", [ANY_NUMBER]),
        ("age not between 0 and 40", [Interval(LEAST, -math.ulp(0)), Interval(UP_40, GREATEST)]),
        ("not age not between 20 and 40", [Interval(20, 40)]),
        ("age in (40, 20, 40)", [Interval(20, 20), Interval(40, 40)]),
        ("age is null", [MISSING_ALONE]),
        ("age is not null", [ANY_NUMBER]),
        ("not age is null", [ANY_NUMBER]),
        ("NOT age IS NOT NULL", [MISSING_ALONE]),
        ("age >= 40 and age <= 50", [Interval(40, 50)]),
        ("age >= 40 and age < 40", []),
        ("age is null and age > 0", []),
        ("age = 1 or age = 2 and age = 3", [Interval(1, 1)]),
        ("(age = 1 or age = 2) and age = 2", [Interval(2, 2)]),
        ("not (age < 40 or age > 50)", [Interval(40, 50)]),
        ("age = 1 or age = 1.0", [Interval(1, 1)]),
        ("age = -0.0", [Interval(0, 0)]),
    ],
)
def test_a_number_is_an_interval(where, expected):
    assert sides(where, "age") == expected


def test_not_in_leaves_the_gaps_between_numbers():
    found = sides("age not in (40, 20)", "age")
    assert [(side.low, side.high) for side in found] == [
        (LEAST, math.nextafter(20, 0)),
        (math.nextafter(20, 40), DOWN_40),
        (UP_40, GREATEST),
    ]


def test_minus_zero_is_zero():
    assert math.copysign(1, sides("age = -0", "age")[0].low) == 1


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("sex = 'Male'", some("Male")),
        ("'Male' = sex", some("Male")),
        ("sex <> 'Male'", all_but("Male", None)),
        ("not sex = 'Male'", all_but("Male", None)),
        ("not sex <> 'Male'", some("Male")),
        ("sex in ('a', 'b')", some("a", "b")),
        ("sex not in ('a', 'b')", all_but("a", "b", None)),
        ("sex is null", some(None)),
        ("sex is not null", all_but(None)),
        ("sex = 'it''s'", some("it's")),
        ("sex in ('a', 'b') and sex <> 'a'", some("b")),
        ("sex <> 'a' and sex <> 'b'", all_but("a", "b", None)),
        ("job = 'clerk'", some("clerk")),
        ("job = 'office'", some("clerk", "typist")),
        ("job <> 'office'", all_but("clerk", "typist", None)),
        ("job = '*'", some("clerk", "typist", "driver")),
        ("zip = '53715'", some("53715")),
        ("zip = '53715 and longer'", some("53715 and longer")),
        ("ward = 'north'", some("north")),
    ],
)
def test_a_category_is_a_set_of_labels(where, expected):
    (name,) = parse(where, SCHEMA).names
    assert sides(where, name) == [expected]


def test_a_label_that_is_a_leaf_and_an_inner_node_is_the_leaf():
    tree = Hierarchy.from_tree({"*": {"x": ["x", "y"], "z": None}})
    schema = Schema.of(job={**QUASI, "hierarchy": tree})
    assert parse("job = 'x'", schema).rectangles[0].sides["job"] == some("x")


def test_missing_is_no_leaf_under_a_node():
    tree = Hierarchy.from_tree({"*": ["x", "y"]}).with_missing()
    schema = Schema.of(job={**QUASI, "hierarchy": tree})
    assert parse("job = '*'", schema).rectangles[0].sides["job"] == some("x", "y")


def test_a_date_is_days_since_1970():
    assert sides("born between '1970-01-01' and '1970-02-01'", "born") == [Interval(0, 31)]


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("marital-status = 'x'", "marital-status"),
        ("\"marital-status\" = 'x'", "marital-status"),
        ("\"in\" in ('x')", "in"),
        ('"a ""b""" = \'x\'', 'a "b"'),
    ],
)
def test_names_are_bare_or_in_double_quotes(where, name):
    assert parse(where, SCHEMA).names == (name,)


def test_and_intersects_across_columns():
    (rectangle,) = parse("age >= 40 and sex = 'Male'", SCHEMA).rectangles
    assert rectangle.sides == {"age": Interval(40, GREATEST), "sex": some("Male")}
    assert parse("age >= 40 and sex = 'Male'", SCHEMA).text == "age >= 40 and sex = 'Male'"


def test_or_makes_rectangles_and_spreads_over_and():
    found = parse("(age < 1 or age > 2) and (sex = 'a' or sex = 'b')", SCHEMA).rectangles
    assert len(found) == 4


# ---- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("age < born", "compares two columns, which draws no rectangle (character 7)"),
        ("age = disease", "compares two columns"),
        ("age + 1 > 2", "does arithmetic, which draws no rectangle (character 5)"),
        ("age > 1 + 2", "does arithmetic"),
        ("age > 2 * 3", "does arithmetic"),
        ("age > 2 and 5 - 3 = age", "does arithmetic"),
        ("2 * age > 3", "does arithmetic"),
        ("age > -born", "does arithmetic"),
        ("- > age", "does arithmetic"),
        ("sex || 'x' = 'y'", "does arithmetic"),
        ("abs(age) > 2", "calls a function, which draws no rectangle (character 1)"),
        (
            "sex like 'M%'",
            "asks for a pattern, which draws no rectangle (character 5); list the values with IN",
        ),
        ("sex NOT LIKE 'M%'", "asks for a pattern"),
        ("age in (select 1)", "holds a query of its own"),
        ("exists (select 1)", "holds a query of its own"),
        ("age > any (select 1)", "holds a query of its own"),
        ("age = null", "compares with NULL, which is never true (character 7); write IS NULL"),
        ("age in (1, null)", "compares with NULL"),
        ("1 = 1", "compares two values"),
        ("1 = 2 - 1", "compares two values"),
        ("age", "ends too early"),
        ("age >=", "ends too early"),
        ("(age > 1", "ends too early (character 9); write ) there"),
        ("age > 1)", "cannot be read (character 8); write the end, AND or OR there"),
        ("age between 1 or 2", "cannot be read (character 15); write AND there"),
        ("age between 1", "ends too early (character 14); write AND there"),
        ("age in 1", "cannot be read (character 8); write ( there"),
        ("age in ()", "cannot be read"),
        ("age is 5", "cannot be read (character 8); write NULL there"),
        ("age is not", "ends too early (character 11); write NULL there"),
        ("age > 1 < 5", "cannot be read"),
        ("1 < age < 5", "cannot be read (character 9)"),
        ("and age > 1", "cannot be read"),
        ("age ~ 5", "cannot be read (character 5); write a comparison such as = there"),
        ("age > 12abc", "cannot be read"),
        ("true", "which the policy does not name"),
        ("sex = 'Male", "has a quote that is never closed (character 7)"),
        (
            'sex = "Male"',
            "has a name where a value must stand (character 7); write a text in 'single quotes'",
        ),
        ("sex = Male", "has a name where a value must stand"),
        ("", "is empty"),
        ("  \n", "is empty"),
        (
            "disease = 'flu'",
            "column 'disease' (character 1), which has the role sensitive; only quasi-identifiers",
        ),
        ("name = 'x'", "which has the role identifier"),
        ("aeg > 5", "does not name. Did you mean 'age'?"),
        ("AGE > 5", "does not name. Did you mean 'age'?"),
        ("disaese = 'x'", "does not name."),
        ("age > '5'", "compares the number 'age' with a text (character 7); write a number without quotes"),
        ("sex = 5", "compares the category 'sex' with a number"),
        ("sex < 'M'", "puts column 'sex' in an order, and a category has none"),
        ("sex between 'a' and 'b'", "puts column 'sex' in an order"),
        ("born > 5", "compares the date 'born' with what is no date"),
        ("born > '2020-02-30'", "what is no date"),
        ("born > '20200101'", "what is no date"),
        ("sex = '?'", "a text that stands for a missing value (character 7); write IS NULL"),
        ("sex = ''", "a text that stands for a missing value"),
        ("job = 'pilot'", "names a value that column 'job' does not declare (character 7)"),
        ("ward = 'west'", "names a value that column 'ward' does not declare"),
        ("zip = '537**'", "a label of several values, which only the table knows"),
        ("age > 1e999", "has a number that is too large"),
        ("(" * 200 + "age > 1" + ")" * 200, "is nested more than 100 deep"),
    ],
)
def test_what_draws_no_rectangle_is_refused_with_the_reason(where, reason):
    with pytest.raises(PolicyError, match=re.escape(reason)):
        parse(where, SCHEMA)


def test_no_message_holds_the_value_of_a_cell():
    for where in ("job = 'secret'", "age > 'secret'", "born = 'secret'", "zip = 'secret*'", "sex > 'secret'"):
        with pytest.raises(PolicyError) as refused:
            parse(where, SCHEMA)
        assert "secret" not in str(refused.value)


def test_what_is_no_text_is_refused():
    with pytest.raises(PolicyError, match="must be a text such as"):
        parse(5, SCHEMA)


def test_too_many_rectangles_are_refused():
    fits = " or ".join(f"age = {i}" for i in range(MAX_RECTANGLES))
    assert len(parse(fits, SCHEMA).rectangles) == MAX_RECTANGLES
    with pytest.raises(PolicyError, match="more than 1,000 rectangles"):
        parse(f"{fits} or age = -1", SCHEMA)
    with pytest.raises(PolicyError, match="more than 1,000 rectangles"):
        parse(f"({fits}) and ({fits} or sex is null)", SCHEMA)


# ---- disjoint rectangles ---------------------------------------------------------------------------

NUMBERS = (MISSING, 0.0, 1.0, 2.0, 3.0)
LETTERS = (None, "a", "b", "c")
POINTS = list(itertools.product(NUMBERS, LETTERS))

intervals = st.one_of(
    st.just(MISSING_ALONE),
    st.tuples(st.sampled_from(NUMBERS[1:]), st.sampled_from(NUMBERS[1:])).map(
        lambda ends: Interval(min(ends), max(ends))
    ),
)
labels = st.builds(Labels, st.frozensets(st.sampled_from(LETTERS)), st.booleans()).filter(bool)
rectangles = st.builds(
    lambda x, y: Rectangle(({"x": x} if x else {}) | ({"y": y} if y else {})),
    st.none() | intervals,
    st.none() | labels,
)


def holds(rectangle, point):
    x, y = rectangle.sides.get("x"), rectangle.sides.get("y")
    return (x is None or x.low <= point[0] <= x.high) and (y is None or point[1] in y)


@given(st.lists(rectangles, max_size=5))
def test_disjoint_rectangles_cover_each_point_once(given_ones):
    found = make_disjoint(given_ones, at_most=10_000)
    for point in POINTS:
        assert sum(holds(r, point) for r in found) == any(holds(r, point) for r in given_ones)


@given(st.lists(rectangles, max_size=5))
def test_outside_is_every_other_point_once(given_ones):
    found = find_outside(given_ones, at_most=10_000)
    for point in POINTS:
        assert sum(holds(r, point) for r in found) == (not any(holds(r, point) for r in given_ones))


def test_too_many_disjoint_pieces_are_none():
    given_ones = [Rectangle({"x": Interval(i, i)}) for i in range(10)]
    assert len(make_disjoint(given_ones, at_most=10)) == 10
    assert make_disjoint(given_ones, at_most=9) is None
    assert find_outside(given_ones, at_most=3) is None
    crossing = [Rectangle({"x": Interval(i, i)}) for i in range(10)] + [Rectangle({"y": some("a")})]
    assert make_disjoint(crossing, at_most=15) is None
