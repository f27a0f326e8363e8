"""Columns as codes: offsets, ranks and leaves; missing; what does not fit is refused without its value."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.encoding.cells import look_of
from sfumato.encoding.domain import OrderedDomain, TreeDomain, axes_of
from sfumato.encoding.encoders import encode_axis, encode_label
from sfumato.encoding.numbers import encode_number
from sfumato.errors import HierarchyError, TableError
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.table.opening import open_table

QUASI = Role.QUASI_IDENTIFIER
PLACES = {"*": {"North": ["a", "b"], "South": {"Isles": ["c"], "d": None}}}


def number(**options):
    return Attribute("x", QUASI, Kind.NUMBER, **options)


def category(**options):
    return Attribute("x", QUASI, **options)


def source(cells, kind=None):
    return open_table(pa.table({"x": pa.array(cells, kind)}))


def encoded(cells, attribute, kind=None):
    domain, codes = encode_axis(source(cells, kind), attribute)
    assert codes.dtype == np.uint32
    return domain, codes.tolist()


# ---- ordered ---------------------------------------------------------------------------------------


def test_close_whole_numbers_are_coded_by_their_distance_from_the_least():
    domain, codes = encoded([23, 20, 25, 20], number())
    assert (codes, domain.values, domain.n_codes) == ([3, 0, 5, 0], None, 6)
    assert domain.value([0, 3, 5]).tolist() == [20, 23, 25]
    assert (domain.low, domain.high, domain.grid) == (20, 25, 1)


def test_scattered_whole_numbers_are_coded_by_their_rank():
    domain, codes = encoded([1000, -7, 30, 1000], number())
    assert (codes, domain.n_codes) == ([2, 0, 1, 2], 3)
    assert domain.values.tolist() == [-7, 30, 1000]
    assert domain.grid == 1


@given(st.lists(st.one_of(st.integers(-50, 50), st.none()), min_size=1), st.integers(1, 10_000))
def test_offsets_and_ranks_order_the_cells_alike_and_give_every_value_back(cells, factor):
    cells = [None if cell is None else cell * factor for cell in cells]
    domain, codes = encoded(cells, number(), pa.int64())
    expected = [-np.inf if cell is None else cell for cell in cells]
    assert domain.value(np.array(codes)).tolist() == expected
    assert np.argsort(codes, kind="stable").tolist() == np.argsort(expected, kind="stable").tolist()
    assert max(codes) < domain.n_codes
    assert domain.has_missing == (None in cells)


def test_a_declared_step_is_the_distance_of_neighbours():
    domain, codes = encoded([10, 30, 20], number(bounds=(0, 100), step=10))
    assert (codes, domain.values, domain.grid) == ([0, 2, 1], None, 10)
    assert (domain.low, domain.high) == (0, 100)


def test_a_decimal_step_keeps_the_values_as_the_cells_have_them():
    cells = [round(i / 10, 1) for i in range(1, 40)]
    domain, codes = encoded(cells, number(step=0.1))
    assert domain.value(np.array(codes)).tolist() == cells
    assert domain.grid == 0.1


def test_fractions_are_ranked_and_any_number_may_lie_between():
    domain, codes = encoded([0.5, 0.25, 0.5], number())
    assert (codes, domain.values.tolist(), domain.grid) == ([1, 0, 1], [0.25, 0.5], None)


def test_whole_numbers_within_declared_bounds_that_are_not_whole_have_no_grid():
    assert encoded([1, 2], number(bounds=(0.5, 9.5)))[0].grid is None


def test_missing_is_the_lowest_code_of_an_ordered_column():
    domain, codes = encoded([7, None, 5], number())
    assert (codes, domain.has_missing) == ([3, 0, 1], True)
    assert domain.value([0, 1, 3]).tolist() == [-np.inf, 5, 7]
    domain, codes = encoded([7.5, None, 5.5], number())
    assert (codes, domain.value([0, 1]).tolist()) == ([2, 0, 1], [-np.inf, 5.5])


def test_dates_are_coded_by_days():
    domain, codes = encoded([date(2024, 3, 1), date(2024, 2, 28)], Attribute("x", QUASI, Kind.DATE))
    assert (codes, domain.grid) == ([2, 0], 1)
    assert domain.value(0) == (date(2024, 2, 28) - date(1970, 1, 1)).days


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
def test_a_number_column_of_missing_cells_alone_has_no_range(kind):
    domain, codes = encoded([None, None], number(), kind)
    assert (codes, domain.n_codes, domain.has_missing) == ([0, 0], 1, True)
    assert domain.low > domain.high
    assert axes_of((domain,)).width.tolist() == [1]


def test_declared_bounds_stand_even_if_every_cell_is_missing():
    domain, _ = encoded([None], number(bounds=(0, 9)), pa.int64())
    assert (domain.low, domain.high) == (0, 9)


def test_cells_outside_declared_bounds_are_counted_and_not_shown():
    with pytest.raises(TableError) as caught:
        encoded([1, 777, 5, -888], number(bounds=(0, 110)))
    assert str(caught.value) == (
        "Column 'x' has 2 cells outside its declared bounds; widen the bounds, or mend the cells."
    )


def test_cells_off_the_declared_step_are_counted_and_not_shown():
    with pytest.raises(TableError) as caught:
        encoded([0, 5, 777, 778, 10], number(bounds=(0, 1000), step=5))
    assert str(caught.value) == (
        "Column 'x' has 2 cells off its declared step; leave the step out, or mend the cells."
    )


def test_the_declared_step_counts_from_the_lower_bound():
    assert encoded([3, 13], number(bounds=(3, 23), step=10))[1] == [0, 1]
    with pytest.raises(TableError, match="2 cells off its declared step"):
        encoded([10, 20], number(bounds=(3, 23), step=10))


def test_numbers_that_floats_cannot_tell_apart_are_refused():
    with pytest.raises(
        TableError, match=r"^Column 'x' holds numbers of 2\^53 or beyond, which are not exact; "
    ):
        encoded([2**60, 2**60 + 1], number())


# ---- trees -----------------------------------------------------------------------------------------


def test_codes_number_the_leaves_of_the_hierarchy_from_left_to_right():
    domain, codes = encoded(["d", "a", "c", "a"], category(hierarchy={"tree": PLACES}))
    assert (codes, domain.n_codes, domain.has_missing) == ([3, 0, 2, 0], 4, False)


def test_missing_is_the_last_leaf_under_the_root():
    domain, codes = encoded(["d", None, "a"], category(hierarchy={"tree": PLACES}))
    assert (codes, domain.n_codes) == ([3, 4, 0], 5)
    tree = domain.hierarchy
    assert (tree.labels[-1], tree.parent[-1]) == (None, 0)


def test_a_hierarchy_that_has_a_leaf_for_missing_keeps_it():
    domain, codes = encoded(
        ["a", None, "b"], category(hierarchy=Hierarchy.from_tree({"*": ["a", "b", None]}))
    )
    assert (codes, domain.n_codes) == ([0, 2, 1], 3)


def test_declared_missing_values_are_missing():
    domain, codes = encoded(["?", "a", ""], category(values=("a", "b"), missing_values=("?",)))
    assert (codes, domain.has_missing) == ([2, 0, 2], True)


def test_a_flat_hierarchy_is_sorted_whatever_the_order_of_the_rows():
    assert encoded(["b", "c", "a"], category())[1] == [1, 2, 0]
    assert encoded(["b", "c", "a"], category(values=("c", "b", "a")))[1] == [1, 0, 2]


def test_a_text_column_of_missing_cells_alone_is_one_leaf():
    domain, codes = encoded([None, None], category(), pa.string())
    assert domain.has_missing
    assert codes == [domain.n_codes - 1] * 2
    assert domain.hierarchy.labels[domain.hierarchy.leaf_nodes[codes[0]]] is None


def test_intervals_take_the_end_they_begin_with():
    attribute = number(bounds=(0, 30), hierarchy={"intervals": [5, 10]})
    domain, codes = encoded([24.9, 25, 30, 0], attribute)
    leaves = [domain.hierarchy.labels[domain.hierarchy.leaf_nodes[code]] for code in codes]
    assert leaves == ["[20, 25)", "[25, 30]", "[25, 30]", "[0, 5)"]


def test_intervals_without_bounds_take_the_range_of_the_table():
    domain, _ = encoded([3, 9], number(hierarchy={"intervals": [2]}))
    assert domain.attribute.bounds == (3, 9)
    domain, _ = encoded([3, 3], number(hierarchy={"intervals": [2]}))
    assert domain.attribute.bounds == (3, 4)


def test_numbers_outside_the_bounds_of_a_hierarchy_are_counted_and_not_shown():
    with pytest.raises(TableError) as caught:
        encoded([3, 777, 777], number(bounds=(0, 30), hierarchy={"intervals": [5]}))
    assert "'x' has 2 cells outside its declared bounds" in str(caught.value)
    assert "777" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "what"),
    [({"hierarchy": {"tree": PLACES}}, "hierarchy lacks"), ({"values": ("a", "b")}, "declared values lack")],
)
def test_unknown_categories_are_counted_and_not_shown(options, what):
    with pytest.raises(HierarchyError) as caught:
        encoded(["a", "secret", "secret", None, "other secret"], category(**options))
    assert str(caught.value) == (
        f"Column 'x' has 3 cells (2 distinct values) that its {what}; "
        "add them, or declare them under missing-values."
    )


# ---- labels and measures ---------------------------------------------------------------------------


def test_labels_are_numbered_in_order_with_missing_last():
    codes, known = encode_label(source(["b", None, "a", "b"]), Attribute("x", Role.SENSITIVE))
    assert (codes.tolist(), len(known.count)) == ([1, 2, 0, 1], 3)
    codes, known = encode_label(source([None, None], pa.string()), Attribute("x", Role.SENSITIVE))
    assert (codes.tolist(), len(known.count)) == ([0, 0], 1)


def test_a_number_as_a_label_is_one_value_however_it_is_spelled():
    codes, known = encode_label(source(["1", "1.0", "2"]), Attribute("x", Role.OTHER, Kind.NUMBER))
    assert (codes.tolist(), len(known.count)) == ([0, 0, 1], 2)


def measure(cells, kind=None, **options):
    scale, codes = encode_number(source(cells, kind), Attribute("x", Role.SENSITIVE, Kind.NUMBER), **options)
    return SimpleNamespace(**asdict(scale), exact_unit=scale.exact_unit, codes=codes)


@given(st.lists(st.integers(-10_000, 10_000), min_size=1), st.integers(0, 6))
def test_a_measure_of_a_few_decimals_is_exact(cells, digits):
    found = measure([cell / 10**digits for cell in cells])
    assert found.is_exact
    assert 1 / found.exact_unit in [10**d for d in range(7)]
    back = [Fraction(str(found.origin)) + int(code) * found.exact_unit for code in found.codes]
    assert back == [Fraction(cell, 10**digits) for cell in cells]


def test_a_measure_of_whole_numbers_is_exact_beyond_what_floats_can_hold():
    found = measure([2**60 + 100, 2**60 + 156])
    assert (found.codes.tolist(), found.unit, found.is_exact) == ([0, 56], 1, True)


@given(st.lists(st.floats(-1e12, 1e12), min_size=2).filter(lambda cells: len(set(cells)) > 1))
def test_any_other_measure_is_off_by_half_a_unit_at_most(cells):
    found = measure(cells)
    if not found.is_exact:
        back = found.origin + found.codes * found.unit
        assert np.abs(back - cells).max() <= found.unit * 0.5001


def test_a_missing_measure_stands_for_the_mean_or_as_the_caller_says():
    assert measure([1, None, 5, 4], pa.int64()).codes.tolist() == [0, 2, 4, 3]
    assert measure([1, None], pa.int64(), missing=99).codes.tolist() == [0, 99]
    assert measure([None], pa.int64(), missing=99).codes.tolist() == [99]
    assert measure([None], pa.int64()).codes.tolist() == [0]


# ---- axes ------------------------------------------------------------------------------------------


def test_axes_lay_all_hierarchies_end_to_end_with_children_in_the_order_of_their_codes():
    domains = (
        encoded([1, 5], number())[0],
        encoded(["a"], category(hierarchy={"tree": PLACES}))[0],
        TreeDomain(category(), Hierarchy.flat(["u", "v"]), has_missing=False),
    )
    axes = axes_of(domains, split_only=("x",))
    assert axes.is_tree.tolist() == [False, True, True]
    assert axes.may_split.all()
    assert axes.root.tolist() == [0, 0, 8]
    labels = [*domains[1].hierarchy.labels, *domains[2].hierarchy.labels]
    for node in range(len(labels)):
        first, n = axes.child_start[node], axes.n_children[node]
        below = axes.child[first : first + n].tolist()
        covered = [code for child in below for code in range(axes.node_low[child], axes.node_high[child])]
        assert covered == (list(range(axes.node_low[node], axes.node_high[node])) if below else [])


def test_split_only_names_the_axes_that_may_be_split():
    domains = tuple(
        OrderedDomain(Attribute(name, QUASI, Kind.NUMBER), 0, 1, 1.0, False, 2, None) for name in "abc"
    )
    assert axes_of(domains, split_only=("b",)).may_split.tolist() == [False, True, False]
    assert axes_of(domains).may_split.all()


@pytest.mark.parametrize("cells", [[0, 7, None, 4], [0, 1000, None, 400]])
def test_missing_is_no_wider_than_the_least_value_by_offset_as_by_rank(cells):
    domain, _ = encoded(cells, number())
    axes = axes_of((domain,))
    assert axes.width.tolist() == [max(filter(None, cells))]
    assert axes.least_code.tolist() == [1]
    assert axes.position.tolist() == ([] if domain.values is None else [0, 0, 400, 1000])


# ---- what looks alike ----

FLU = [
    "flu",
    " flu",
    "f\u200blu",
    "\ufb02u",
    "flu\ufeff",
    "\uff46lu",
    "fl\u00adu",
    "\u202aflu\u202c",
    "flu\u00a0",
]


def test_sensitive_values_that_look_alike_are_one_value():
    """Nobody who reads them sees more than one, so that they make no diversity."""
    table = open_table(pa.table({"x": [*FLU, "Flu", "cold", None]}))
    codes, known = encode_label(table, Attribute("x", role="sensitive"))
    assert len(set(codes[: len(FLU)].tolist())) == 1
    assert len(known.count) == 4


def test_a_class_is_told_apart_as_it_is_spelled():
    _, known = encode_label(open_table(pa.table({"x": FLU})), Attribute("x", role="other"))
    assert len(known.count) == len(FLU)


@given(st.text())
def test_what_a_text_looks_like_looks_like_itself(text):
    once = look_of(pa.array([text]))
    assert look_of(once).equals(once)
