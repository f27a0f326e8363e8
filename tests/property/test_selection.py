"""Selection Mondrian against its naive twin, and what must hold of its groups, on random small tables."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import naive_mondrian as naive
import numpy as np
import pyarrow as pa
import pytest
from growing import partition
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mondrian_cases import Case, big_case, groups_of, members_of, tree_recoding
from selection_cases import Selecting, selecting

from sfumato.methods.mondrian import memory
from sfumato.methods.mondrian.criteria import weights_as_integers
from sfumato.policy.document import Policy
from sfumato.policy.kinds import read_exactly
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.predicate import parse
from sfumato.policy.requirements import EntropyDiversity, KAnonymity, RecursiveDiversity, VarianceDiversity
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Classify, Regress, Select
from sfumato.release.query.select import imprecision
from sfumato.table.opening import open_table


@given(selecting())
@settings(max_examples=150)
def test_the_groups_and_their_boxes_are_those_of_the_naive_twin(table: Selecting):
    root = table.twin().grow()
    expected = {(tuple(leaf.box), frozenset(leaf.members)) for leaf in root.leaves()}
    event(f"groups: {min(len(expected), 5)}, selected first: {root.is_selecting}")
    assert groups_of(table.partition()) == expected


BIG_CASES = {
    "median": ([], [KAnonymity(3)]),
    "diverse": ([], [EntropyDiversity(2.2, of="disease"), RecursiveDiversity(3, 2, of="job")]),
    "spread": ([], [VarianceDiversity(40_000, of="salary")]),
    "one label": ([Classify("class")], [KAnonymity(2)]),
    "one number": ([Regress("hours")], [KAnonymity(4), RecursiveDiversity(2, 3, of="disease")]),
}


def big(name: str) -> Selecting:
    case = big_case(7, *BIG_CASES[name], n_rows=180)
    rng = np.random.default_rng(12)
    n_codes = [domain.n_codes for domain in Selecting(case, [], []).problem().domains]
    ranges = []
    for _ in range(6):
        everywhere = [(0, n) for n in n_codes]
        for axis in rng.choice(5, 3, replace=False):
            everywhere[axis] = tuple(sorted(rng.integers(0, n_codes[axis], 2).tolist()))
        ranges.append(everywhere)
    return Selecting(case, ranges, [3, 1, 1, 2, 1, 7])


@pytest.mark.parametrize("name", BIG_CASES)
def test_larger_tables_split_by_several_threads_give_the_twins_groups_too(name, monkeypatch):
    monkeypatch.setattr(memory, "SMALLEST_TASK", 16)
    table = big(name)
    root = table.twin().grow()
    expected = {(tuple(leaf.box), frozenset(leaf.members)) for leaf in root.leaves()}
    assert root.is_selecting
    assert len(expected) > 5
    assert groups_of(table.partition(threads=2)) == expected
    assert groups_of(table.partition(threads=1)) == expected


# ---- what must hold of every partition -------------------------------------------------------------


def returned(table: Selecting, groups: set[tuple[Any, frozenset[int]]]) -> Fraction:
    """What the queries return, weighted: all rows of each group that they overlap."""
    twin = table.twin()
    total = Fraction(0)
    for box, members in groups:
        node = naive.Node(tuple(sorted(members)), list(box))
        regions = [twin.region(node, i) for i in range(len(twin.axes))]
        for query in twin.queries:
            is_hit = all(query.overlaps(i, region) for i, region in enumerate(regions))
            total += len(members) * query.weight if is_hit else 0
    return total


@given(selecting())
@settings(max_examples=80)
def test_selections_return_no_more_than_without_any_split_and_every_promise_is_kept(table: Selecting):
    found = table.partition()
    groups = groups_of(found)
    twin = table.twin()
    root = naive.Node(tuple(range(len(table.case.rows))), [None] * len(twin.axes))
    whole = [(None, math.inf) if isinstance(axis, naive.Ordered) else twin.region(root, i)
             for i, axis in enumerate(twin.axes)]  # fmt: skip
    no_split = sum(
        len(table.case.rows) * query.weight
        for query in twin.queries
        if all(query.overlaps(i, region) for i, region in enumerate(whole))
    )
    assert returned(table, groups) <= no_split
    for members in members_of(found):
        assert twin.is_allowed(sorted(members))
        assert not any(twin.allowable(sorted(members), at) for at in twin.may_split)


def test_a_selection_alone_on_its_attribute_is_exact_where_the_requirement_allows_it():
    """Ages 20 to 59, one row each; the condition 30 <= age <= 39 becomes groups of its own."""
    case = big_case(1, [], [KAnonymity(5)], n_rows=40)
    rows = [{**row, "q0": 20 + i} for i, row in enumerate(case.rows)]
    case = Case(rows, case.quasi[:1], case.requirements, [], case.options)
    table = Selecting(case, [[(10, 19)]], [1])
    inside = set(range(10, 20))
    groups = members_of(table.partition())
    assert {row for group in groups if group & inside for row in group} == inside
    plain = members_of(Selecting(case, [[(10, 40)]], [1]).partition())  # never cut off at 39
    assert {row for group in plain if group & inside for row in group} > inside


AGRAWAL = Schema.of(
    age={"role": "quasi-identifier", "kind": "number"},
    salary={"role": "quasi-identifier", "kind": "number"},
    car="quasi-identifier",
)
C2 = (
    "age < 40 and salary between 50000 and 100000",
    "age >= 40 and age < 60 and salary between 75000 and 125000",
    "age >= 60 and salary between 25000 and 75000",
)
"""The class function C2 as three rectangles [LDR08, section 4.7]."""


@pytest.mark.parametrize("k", [10, 25, 50, 100])
def test_three_rectangles_are_selected_more_precisely_than_by_medians_of_the_same_attributes(k):
    rng = np.random.default_rng(k)
    table = pa.table(
        {
            "age": rng.integers(20, 81, 1000),
            "salary": rng.integers(20_000, 150_001, 1000),
            "car": rng.choice(["a", "b", "c"], 1000),
        }
    )
    source = open_table(table)

    def too_many(workload: list[Any], options: MondrianOptions | None = None) -> int:
        found = partition(source, AGRAWAL, [KAnonymity(k)], workload=workload, options=options)
        policy = Policy(AGRAWAL, (KAnonymity(k),), tuple(workload))
        whole = parse(" or ".join(f"({where})" for where in C2), AGRAWAL)
        rows = pa.table(found.columns())
        return imprecision(whole, source, AGRAWAL, rows, found.recoding, policy).imprecision

    by_median = too_many([], MondrianOptions(variant="paper", split_only=("age", "salary")))
    one_by_one = too_many([Select(where) for where in C2])
    assert one_by_one < by_median / 2
    assert too_many([Select(" or ".join(f"({where})" for where in C2))]) == one_by_one


def test_a_heavier_selection_is_served_first():
    """Eight rows of two attributes, groups of four: only one of the two selections can be exact."""
    table = pa.table({"x": [1, 1, 1, 1, 2, 2, 2, 2], "y": [1, 2, 1, 2, 1, 2, 1, 2]})
    schema = Schema.of(**{name: {"role": "quasi-identifier", "kind": "number"} for name in "xy"})

    def first_axis(x: float, y: float) -> int:
        workload = [Select("x = 1", weight=x), Select("y = 1", weight=y)]
        found = partition(open_table(table), schema, [KAnonymity(4)], workload=workload)
        return int(tree_recoding(found).tree.axis[0])

    assert first_axis(0.3, 0.2) == first_axis(1, 1) == first_axis(1e-9, 1e-10) == 0
    assert first_axis(0.1, 0.2) == first_axis(1, 1.0000001) == first_axis(1e-300, 1e300) == 1


@given(
    st.lists(st.tuples(st.floats(1e-6, 1e6), st.integers(1, 10**4)), min_size=1, max_size=8),
    st.sampled_from([10**5, 10**9, 2**62]),
)
def test_weights_become_whole_numbers_in_the_same_proportions(drawn, limit):
    weights, farthest = [read_exactly(weight) for weight, _ in drawn], [most for _, most in drawn]
    whole = weights_as_integers(weights, farthest, limit)
    assert min(whole) >= 1
    assert sum(w * most for w, most in zip(whole, farthest, strict=True)) <= limit
    heaviest = max(range(len(weights)), key=weights.__getitem__)
    unit = whole[heaviest] / float(weights[heaviest])
    assert whole == pytest.approx(
        [float(weight) * unit for weight in weights], abs=2, rel=2 / whole[heaviest]
    )


def test_weights_that_are_decimals_keep_their_proportions_exactly():
    decimals = [Fraction(1, 10), Fraction(2, 10), Fraction(7, 10)]
    assert weights_as_integers(decimals, [10**6] * 3, 10**7) == [1, 2, 7]
    assert weights_as_integers([Fraction(3), Fraction(3)], [1, 1], 2) == [1, 1]


KINDS = Schema.of(
    x={"role": "quasi-identifier", "kind": "number"},
    c={"role": "quasi-identifier", "values": ["a", "b", "c"]},
)


def axis_and_threshold(columns: dict[str, list[Any]], where: str, k: int) -> tuple[int, float]:
    found = partition(open_table(pa.table(columns)), KINDS, [KAnonymity(k)], workload=[Select(where)])
    return int(tree_recoding(found).tree.axis[0]), float(tree_recoding(found).tree.threshold[0])


@pytest.mark.parametrize(("values", "where"), [("ab", "c = 'a'"), ("ab", "c = 'b'"), ("bc", "c <> 'c'")])
def test_a_value_beside_the_selected_one_is_not_selected(values, where):
    """By medians x would be split: it is as wide as c and comes first. Only c can be split for the condition."""
    columns = {"x": [1, 2, 3, 4] * 2, "c": [value for value in values for _ in range(4)]}
    assert axis_and_threshold(columns, where, 4)[0] == 1
    assert axis_and_threshold(columns, "c in ('a', 'b', 'c')", 4) == (0, 2)


def test_a_selection_of_values_that_a_node_does_not_have_leaves_it_alone():
    """All rows are b: a part of the hierarchy that the condition on a does not reach, whatever it says of x."""
    columns = {"c": ["b"] * 8, "x": [1, 2, 3, 4, 5, 6, 7, 8]}
    assert axis_and_threshold(columns, "c = 'b' and x <= 2", 2) == (0, 2)
    assert axis_and_threshold(columns, "c = 'a' and x <= 2", 2) == (0, 4)


def test_selections_that_no_row_can_meet_change_nothing():
    case = big_case(5, [], [KAnonymity(4)], n_rows=60)
    plain = groups_of(case.partition())
    other = replace(case, workload=[Select("q0 > 5000"), Select("q2 = 'x'")])
    assert groups_of(other.partition()) == plain


@given(selecting(max_rows=60), st.integers(2, 3))
@settings(max_examples=30)
def test_the_number_of_threads_and_the_size_of_tasks_do_not_matter(table: Selecting, threads: int):
    whole = table.partition()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "SMALLEST_TASK", 2)
        assert groups_of(table.partition(threads)) == groups_of(whole)
