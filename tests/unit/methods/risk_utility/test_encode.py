"""From a table and a policy to a problem, and from levels back to published cells."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from sfumato import publish
from sfumato.errors import InputError, PolicyError, TableError
from sfumato.methods.risk_utility.encode import Encoded, close_policy, encode_tables
from sfumato.methods.risk_utility.publish import publish_rows
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.declarations import Balanced, Dates
from sfumato.policy.options.risk_utility import RiskUtilityOptions, Weights
from sfumato.policy.schema import Schema
from sfumato.randomness import seeded
from sfumato.table import opening
from sfumato.table.source import Source

NUMBER = {"role": "quasi-identifier", "kind": "number"}
CATEGORY = {"role": "quasi-identifier"}
DAY = {"role": "quasi-identifier", "kind": "date"}


def source(**columns) -> Source:
    return opening.open_table(pa.table(columns))


def encoded(schema, table, side=None, **options) -> Encoded:
    return encode_tables(table, schema, RiskUtilityOptions(**options), side)


def labels(found: Encoded, a: int = 0) -> list:
    """The leaf that each row of the table is, by its label."""
    tree = found.domains[a].hierarchy
    codes = found.problem.rows[found.problem.of_row, a]
    return [tree.labels[node] for node in tree.leaf_nodes[codes].tolist()]


# ---- hierarchies of columns that have none -----------------------------------------------------------------


def test_a_number_is_halved_over_the_range_of_both_tables():
    schema = Schema.of(age=NUMBER)
    found = encoded(schema, source(age=[20, 23]), source(age=[25, 18]))
    age = found.schema["age"]
    assert (age.bounds, age.hierarchy) == ((18.0, 25.0), Balanced(2))
    assert labels(found) == ["20", "23"]
    assert found.problem.n_side == 2
    assert found.problem.own.tolist() == [1, 1]
    assert encoded(schema, source(age=[20, 23])).schema["age"].bounds == (20.0, 23.0)


def test_declared_bounds_stay():
    schema = Schema.of(age={**NUMBER, "bounds": (0, 110)})
    assert encoded(schema, source(age=[20, 23])).schema["age"].bounds == (0, 110)


@pytest.mark.parametrize(
    ("bounds", "ages", "hierarchy"),
    [
        (None, [20.5, 23.0], {"balanced": 2}),
        ((0, 100), [20.5, 23.0], {"intervals": [2, 4, 8, 16, 32, 64]}),
        ((0, 1), [0.25, 0.5], {"intervals": [0.02, 0.04, 0.08, 0.16, 0.32, 0.64]}),
        (None, [0, 65_535], {"balanced": 2}),
        (None, [0, 65_536], {"intervals": [2_000, 4_000, 8_000, 16_000, 32_000, 64_000]}),
        (None, [-5_000_000, 5_000_000], {"intervals": [200_000 * 2**i for i in range(6)]}),
    ],
)
def test_numbers_whose_single_values_are_no_leaves_get_intervals(bounds, ages, hierarchy):
    found = encoded(Schema.of(age={**NUMBER, "bounds": bounds}), source(age=ages))
    assert found.schema["age"].hierarchy.as_policy() == hierarchy
    assert found.problem.lattice.n_levels[0] <= 18


def test_a_date_has_days_months_and_years_over_all_days_of_the_range():
    days = [date(2024, 1, 31), date(2023, 12, 30)]
    found = encoded(Schema.of(day=DAY), source(day=pa.array(days)))
    assert found.schema["day"].hierarchy == Dates(("day", "month", "year"))
    assert found.schema["day"].bounds == (19721, 19753)
    assert found.domains[0].n_codes == 33
    assert labels(found) == ["2024-01-31", "2023-12-30"]


def test_a_column_of_one_value_works():
    found = encoded(
        Schema.of(age=NUMBER, day=DAY, sex=CATEGORY),
        source(age=[7], day=pa.array([date(2024, 1, 31)]), sex=["f"]),
    )
    assert [labels(found, a) for a in range(3)] == [["7"], ["2024-01-31"], ["f"]]


def test_missing_is_a_leaf_of_its_own_wherever_it_occurs():
    schema = Schema.of(age=NUMBER, sex=CATEGORY, day=DAY)
    days = pa.array([date(2024, 1, 31), None])
    table = source(age=[7, None], sex=["f", "m"], day=days)
    found = encoded(schema, table)
    assert found.with_missing == ("age", "day")
    assert [labels(found, a)[1] for a in range(3)] == [None, "m", None]
    for domain in found.domains:
        assert domain.hierarchy.parent[-1] == 0
    side = source(age=[7, 8], sex=["f", None], day=days.take(pa.array([0, 0])))
    assert encoded(schema, table, side).with_missing == ("age", "sex", "day")


def test_a_column_that_is_missing_everywhere_works():
    schema = Schema.of(age=NUMBER, day=DAY)
    table = source(age=pa.nulls(2, pa.int64()), day=pa.nulls(2, pa.date32()))
    found = encoded(schema, table)
    assert [labels(found, a) for a in range(2)] == [[None, None]] * 2


def test_the_closed_policy_encodes_as_the_open_one():
    policy = Policy.parse("{attributes: {age: {role: quasi-identifier, type: number}}, method: risk-utility}")
    table, side = source(age=[20, 23]), source(age=[18, 25])
    closed = close_policy(policy, table, side)
    assert Policy.from_dict(closed.as_dict()) == closed
    assert close_policy(closed, table, side) == closed
    one, other = (encoded(each.schema, table, side) for each in (policy, closed))
    np.testing.assert_array_equal(one.problem.rows, other.problem.rows)
    assert one.domains[0].hierarchy == other.domains[0].hierarchy


def test_both_tables_are_spelled_alike():
    schema = Schema.of(floor=CATEGORY)
    found = encoded(schema, source(floor=[5.0, 7.0]), source(floor=[5.0, 5.5]))
    assert found.problem.own.tolist() == [0, 1]
    found = encoded(schema, source(floor=["5", "7"]), source(floor=[5, 7]))
    assert found.problem.own.tolist() == [0, 0]


# ---- what is wrong with a side table -------------------------------------------------------------------------


def test_a_side_table_needs_every_quasi_identifier_and_no_other_column():
    schema = Schema.of(age=NUMBER, sex=CATEGORY, zip=CATEGORY, job="other")
    table = source(age=[7], sex=["f"], zip=["1"], job=["x"])
    with pytest.raises(TableError, match=r"^The side table has no column 'sex' and 1 more, and it needs"):
        encoded(schema, table, source(age=[7], job=["x"]))
    assert encoded(schema, table, source(zip=["1"], sex=["f"], age=[7])).problem.own.tolist() == [0]


@pytest.mark.parametrize(
    ("declared", "of_table", "of_side", "sentence"),
    [
        ({**CATEGORY, "values": ("a", "b")}, ["a"], ["c", "d", "d"], "'x' has 3 cells (2 distinct values)"),
        ({**CATEGORY, "hierarchy": {"mask": 2}}, ["ab"], ["abc"], "'x': Values longer than the 2 characters"),
        ({**NUMBER, "bounds": (0, 9)}, [1], [10, 11, 2], "'x' has 2 cells outside its declared bounds"),
        (NUMBER, [1], ["secret"], "'x' has 1 cell without a readable number"),
        (DAY, ["2024-01-01"], ["secret"], "'x' has 1 cell without a readable date"),
    ],
)  # fmt: skip
def test_cells_of_a_side_table_that_do_not_fit_are_told_as_its(declared, of_table, of_side, sentence):
    schema = Schema.of(x=declared)
    with pytest.raises(TableError) as caught:
        encoded(schema, source(x=of_table), source(x=of_side))
    assert str(caught.value).startswith("In the side table: ")
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError) as caught_in_table:
        encoded(schema, source(x=of_side), source(x=of_table))
    assert "side table" not in str(caught_in_table.value)


# ---- weights -------------------------------------------------------------------------------------------------


def test_personal_weights_come_from_a_column_for_all_or_for_each():
    schema = Schema.of(
        a=CATEGORY, b=CATEGORY, c={"role": "drop", "kind": "number"}, d={"role": "other", "kind": "number"}
    )
    table = source(a=["x", "x"], b=["y", "y"], c=[1, 0.5], d=["2", "0"])
    assert encoded(schema, table).problem.factor.shape == (1, 0)
    assert encoded(schema, table, weights=Weights(column="c")).problem.factor.tolist() == [[1, 1], [0.5, 0.5]]
    both = Weights(column={"a": "c", "b": "d"})
    assert encoded(schema, table, weights=both).problem.factor.tolist() == [[0.5, 1], [0.25, 0]]
    of_rows = Weights(column=lambda rows: np.arange(rows.num_rows))
    assert encoded(schema, table, weights=of_rows).problem.factor.tolist() == [[0, 0], [1, 1]]
    of_cells = Weights(column=lambda _: [[1, 2], [3, 4]])
    assert encoded(schema, table, weights=of_cells).problem.factor.tolist() == [[0.25, 0.5], [0.75, 1]]


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1, None, None], "Column 'w' holds personal weights and is missing in 2 rows"),
        ([1, -2, -3], "Column 'w' holds personal weights, and 2 of them are below 0"),
        ([1, 2, "secret"], "Column 'w' has 1 cell without a readable number"),
        ([1, 2, 2e9], "Column 'w' holds personal weights above 1e9"),
    ],
)
def test_personal_weights_that_are_none_are_counted(weights, sentence):
    schema = Schema.of(a=CATEGORY, w={"role": "drop", "kind": "number"})
    column = pa.array([None if w is None else str(w) for w in weights])
    with pytest.raises(TableError) as caught:
        encoded(schema, source(a=["x", "y", "z"], w=column), weights=Weights(column="w"))
    assert str(caught.value).startswith(sentence)


def test_a_function_of_personal_weights_must_give_as_many_as_there_are():
    schema, table = Schema.of(a=CATEGORY), source(a=["x", "y"])
    with pytest.raises(InputError, match="a number for each row"):
        encoded(schema, table, weights=Weights(column=lambda _: [1, 2, 3]))
    with pytest.raises(InputError, match="finite numbers of at least 0"):
        encoded(schema, table, weights=Weights(column=lambda _: [1, -1]))


def test_rows_without_any_weight_need_a_floor_where_one_divides_by_risk():
    schema = Schema.of(a=CATEGORY, w={"role": "drop", "kind": "number"})
    table = source(a=["x", "y"], w=[0, 1])
    options = {"objective": "log-risk", "price": Fraction(1), "weights": Weights("model-2", column="w")}
    with pytest.raises(InputError, match=r"1 row has only weights of 0"):
        encoded(schema, table, **options)
    assert encoded(schema, table, **options, floor=Fraction(1, 10)).problem.floor > 0


def test_weights_of_labels_that_no_leaf_has_are_counted():
    weights = Weights("harmonic", {"a": {"x": 2.0, "q": 1.0, "r": 1.0}})
    with pytest.raises(
        PolicyError, match=r"^2 of the labels that are given weights are no values of column 'a'"
    ):
        encoded(Schema.of(a=CATEGORY), source(a=["x", "y"]), weights=weights)


# ---- published cells -----------------------------------------------------------------------------------------


def published(text: str, table: Source, level: int) -> pa.Table:
    """All rows with all columns at one level (or their root, where that is lower)."""
    policy = Policy.parse(text)
    found = encoded(policy.schema, table)
    levels = np.minimum(level, found.problem.top())[None].repeat(found.problem.n, axis=0)
    return publish_rows(table, policy, found, levels, seeded(1))


AGES = (
    "{attributes: {id: {role: identifier}, age: {role: quasi-identifier, type: number}, job: {role: other}}"
)
PEOPLE = source(id=["1", "2", "3", "4"], age=[20, 23, 21, None], job=list("abcd"))


def test_published_rows_are_generalized_and_the_rest_passes_through():
    found = published(AGES + ", method: risk-utility}", PEOPLE, 1).to_pydict()
    assert sorted(zip(found["job"], found["age"], strict=True)) == [
        ("a", "[20, 22)"), ("b", "[22, 23]"), ("c", "[20, 22)"), ("d", None)
    ]  # fmt: skip
    assert list(found) == ["age", "job"]


@pytest.mark.parametrize(
    ("level", "rows"),
    [
        (0, [(20, 20), (23, 23), (21, 21), (None, None)]),
        (1, [(20, 21), (22, 23), (20, 21), (None, None)]),
        (2, [(None, 23)] * 4),
    ],
)
def test_bounds_are_the_first_and_the_last_value_of_a_node(level, rows):
    found = published(AGES + ", method: risk-utility, output: {values: bounds}}", PEOPLE, level).to_pydict()
    assert list(found) == ["age_low", "age_high", "job"]
    cells = zip(found["job"], zip(found["age_low"], found["age_high"], strict=True), strict=True)
    assert [cell for _, cell in sorted(cells)] == rows


def test_both_are_the_label_beside_its_bounds():
    text = """
    attributes:
      day: {role: quasi-identifier, type: date}
      size: {role: quasi-identifier, type: number, hierarchy: {intervals: [0.5, 1]}, bounds: [0, 1.75]}
      zip: {role: quasi-identifier, hierarchy: {mask: 3}}
    method: risk-utility
    output: {values: both}
    """
    days = pa.array([date(2023, 12, 30), date(2024, 1, 31)])
    found = published(text, source(day=days, size=[0.6, 1.75], zip=["123", "124"]), 1)
    assert found.column_names == ["day", "day_low", "day_high", "size", "size_low", "size_high", "zip"]
    rows = sorted(tuple(row.values()) for row in found.to_pylist())
    assert rows == [
        ("2023-12", date(2023, 12, 30), date(2023, 12, 31), "[0, 1)", 0.0, 1.0, "12*"),
        ("2024-01", date(2024, 1, 1), date(2024, 1, 31), "[1, 1.75]", 1.0, 1.75, "12*"),
    ]


def test_labels_that_nobody_shows_stand_nowhere():
    found = published("{attributes: {zip: {role: quasi-identifier, hierarchy: {mask: 3}}}, method: risk-utility}",
                      source(zip=["123", "124"]), 1)  # fmt: skip
    (column,) = found.column("zip").chunks
    assert not {"123", "124"} & set(column.dictionary.to_pylist())


def test_rows_are_not_in_the_order_of_the_table():
    table = source(id=["x"] * 50, age=[20] * 50, job=[str(i) for i in range(50)])
    found = published(AGES + ", method: risk-utility}", table, 0).column("job").to_pylist()
    assert found != [str(i) for i in range(50)]
    assert sorted(found, key=int) == [str(i) for i in range(50)]


@pytest.mark.parametrize(
    ("hierarchy", "values", "words"),
    [
        ("flat", ["*", "A", "A", "12*"], "has 3 cells that read '[*]'"),
        ("flat", ["*", "A", None, "*"], "has 6 cells that read '[*]'"),
        ({"mask": 3}, ["12*", "123", "1**", "*"], "has 9 cells that end in '[*]'"),
    ],
)
def test_a_value_that_looks_generalized_is_declared_or_refused(hierarchy, values, words):
    """The folder would not tell whether it is one."""
    table = pa.table({"code": values * 3, "sex": ["m", "f"] * 6})
    code = {"role": "quasi-identifier", "hierarchy": hierarchy}
    rules = {
        "attributes": {"code": code, "sex": {"role": "quasi-identifier"}},
        "method": {"risk-utility": {"utility-at-least": 0.5}},
    }
    with pytest.raises(TableError, match=words):
        publish(table, Policy.from_dict(rules))
    code["values"] = sorted({value for value in values if value is not None})
    assert publish(table, Policy.from_dict(rules)).rows.num_rows == 12


@pytest.mark.parametrize("objective", ["lagrangian", "log-risk"])
@pytest.mark.parametrize(
    ("caution", "attributes"), [([0.0, 1.0, 0.0], {"a": 0}), ([1e-12, 1e9, 1e-12], {"a": 0})]
)
def test_rows_that_weigh_nothing_need_a_floor_where_one_divides_by_weights(objective, caution, attributes):
    table = pa.table({"a": ["x", "y", "y"], "b": ["u", "v", "v"], "caution": caution})
    quasi = {"role": "quasi-identifier"}
    rules = {
        "attributes": {"a": quasi, "b": quasi, "caution": {"role": "drop", "type": "number"}},
        "method": {
            "risk-utility": {
                "objective": objective,
                "lambda": 1,
                "weights": {"model": "model-2", "attributes": attributes, "column": {"b": "caution"}},
            }
        },
    }
    with pytest.raises(InputError, match=r"2 rows have only weights of 0 \(or too small to count\)"):
        publish(table, Policy.from_dict(rules))
    rules["method"]["risk-utility"]["floor"] = 10
    assert publish(table, Policy.from_dict(rules)).rows.num_rows == 3
