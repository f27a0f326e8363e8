"""What columns lost and why, against the naive twin and by hand."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from commandline import POLICY as PEOPLE_POLICY
from commandline import people
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_lost import NaiveNumber, NaiveTree, take_apart

import sfumato as sf
from sfumato.errors import RequirementUnreachable
from sfumato.methods import partition
from sfumato.methods.lost.divisions import MOST_DIVISIONS, Divisions, _choose
from sfumato.methods.lost.reasons import GroupedRows, LostColumn, Part, explain_losses
from sfumato.policy.document import Policy
from sfumato.recoding.recoder import Partition
from sfumato.table.opening import open_table

TREE = {"*": {"North": {"Kiel": None, "Coast": ["Husum", "Jever"]}, "South": ["Passau", "Ulm"], "Bonn": None}}
TOWNS = ["Kiel", "Husum", "Jever", "Passau", "Ulm", "Bonn"]
ATTRIBUTES = """
attributes:
  age: {role: quasi-identifier, type: number, bounds: [0, 20]}
  town: {role: quasi-identifier, hierarchy: {tree: {"*": {North: {Kiel: null, Coast: [Husum, Jever]},
         South: [Passau, Ulm], Bonn: null}}}}
  ill: {role: sensitive}
  pay: {role: sensitive}
"""
DISTINCT = "distinct-diversity: {l: 2, of: ill}"
OTHER = "distinct-diversity: {l: 2, of: pay}"
METHODS = (
    "mondrian",
    "{mondrian: {criterion: median}}",
    "{mondrian: {refine: none}}",
    "{mondrian: {variant: paper}}",
    "tds",
)
COLUMNS = {"age": NaiveNumber(0, 20), "town": NaiveTree(TREE)}
RULES = {
    "distinct 2-diversity of 'ill'": lambda rows: len({row["ill"] for row in rows}) >= 2,
    "distinct 2-diversity of 'pay'": lambda rows: len({row["pay"] for row in rows}) >= 2,
}


def explained(table: pa.Table, policy: Policy) -> tuple[list[LostColumn], GroupedRows, Partition]:
    source = open_table(table)
    found = partition(source, policy, threads=1)
    groups = GroupedRows.of_partition(found, table.num_rows)
    return explain_losses(source, policy, groups), groups, found


def parts_of(column: LostColumn) -> dict[str, float]:
    """The parts by their kind; those of requirements by what refuses."""
    refused = "because (.*) refuses"
    return {
        re.sub(refused, r"\1", part.words) if part.kind == "requirement" else part.kind: part.share
        for part in column.parts
    }


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 20)), st.sampled_from(TOWNS), st.sampled_from("ab"), st.sampled_from("xy")
        ),
        min_size=4,
        max_size=18,
    ),
    k=st.integers(1, 4),
    rules=st.sets(st.sampled_from(range(2))),
    method=st.sampled_from(METHODS),
)  # fmt: skip
def test_the_parts_are_those_of_the_naive_twin_and_add_up_to_the_ncp(rows, k, rules, method):
    table = pa.table(
        dict(zip(("age", "town", "ill", "pay"), map(list, zip(*rows, strict=True)), strict=True))
    )
    table = table.set_column(0, "age", pa.array(table["age"].to_pylist(), pa.int64()))
    asked = [
        f"k-anonymity: {k}",
        *([] if method == "tds" else [[DISTINCT, OTHER][at] for at in sorted(rules)]),
    ]
    workload = "workload: [classify: ill]\n" if method == "tds" else ""
    policy = Policy.parse(f"{ATTRIBUTES}require: [{', '.join(asked)}]\nmethod: {method}\n{workload}")
    try:
        found, groups, published = explained(table, policy)
    except RequirementUnreachable:
        return
    cells = {
        name: column.to_pylist()
        for name, column in published.recoding.recode_columns(open_table(table)).items()
    }
    members = defaultdict(list)
    for row, group in zip(groups.rows.tolist(), groups.group.tolist(), strict=True):
        members[group].append(row)
    lines = table.to_pylist()
    chosen = {str(item): RULES[str(item)] for item in policy.requirements if str(item) in RULES}
    least = max(item.fewest_rows for item in policy.requirements)
    for column in found:
        name = column.name
        rows_of_groups = [[(lines[row], cells[name][row]) for row in each] for each in members.values()]
        expected = take_apart(COLUMNS[name], name, lines, rows_of_groups, least, chosen)
        assert parts_of(column) == pytest.approx({kind: float(part) for kind, part in expected.items()})
        assert column.ncp == pytest.approx(float(sum(expected.values())))


@pytest.mark.parametrize("method", METHODS)
def test_the_parts_add_up_to_the_loss_that_the_certificate_states(method):
    workload = "\nworkload: [classify: disease]" if method == "tds" else ""
    policy = Policy.parse(f"{PEOPLE_POLICY}method: {method}{workload}")
    table = people(300)
    columns, _, _ = explained(table, policy)
    stated = sf.publish(table, policy, seed=1).certificate.figures["loss"]["columns"]
    assert {column.name: column.ncp for column in columns} == pytest.approx(stated)
    assert [column.ncp for column in columns] == sorted((column.ncp for column in columns), reverse=True)


# ---- by hand ---------------------------------------------------------------------------------------------


def town_policy(*requirements: str, more: str = "") -> Policy:
    return Policy.parse(
        "attributes: {town: {role: quasi-identifier, values: [a, b, c, d]}, ill: {role: sensitive}, "
        "pay: {role: sensitive}}\n"
        f"require: [{', '.join(requirements)}]\nmethod: {{mondrian: {{criterion: median}}}}\n{more}"
    )


def towns(text: str, ill: str = "", pay: str = "") -> pa.Table:
    return pa.table(
        {"town": list(text), "ill": list(ill or "x" * len(text)), "pay": list(pay or "x" * len(text))}
    )


def only(table: pa.Table, policy: Policy) -> LostColumn:
    ((column,), _, _) = explained(table, policy)
    return column


def test_a_value_of_fewer_than_k_rows_could_not_be_told_whatever_the_splits():
    column = only(towns("aaab"), town_policy("k-anonymity: 2"))
    assert parts_of(column) == {"rare": 0.25, "few": 0.75}  # b needs company; the others are kept by it
    assert (column.n_rare, column.n_values, column.rare_rows) == (1, 2, 0.25)
    assert (
        column.tell_rare()
        == "1 of 2 values, with 25.0% of the rows, has fewer than 2 rows in the whole table"
    )


def test_a_requirement_that_refuses_is_named():
    column = only(towns("aabb", ill="xyxx"), town_policy("k-anonymity: 2", DISTINCT))
    assert parts_of(column) == {"distinct 2-diversity of 'ill'": 1.0}
    assert "because distinct 2-diversity of 'ill' refuses" in str(column)


def test_requirements_that_refuse_only_together_are_told_apart_from_one_that_does():
    """Illnesses allow to divide off a or c, and pays b or d."""
    table = towns("aabbccdd", ill="xyxxxyxx", pay="xxxyxxxy")
    assert parts_of(only(table, town_policy("k-anonymity: 2", DISTINCT, OTHER))) == {"together": 1.0}
    assert parts_of(only(table, town_policy("k-anonymity: 2", DISTINCT))) == {"undone": 1.0}


def test_a_division_that_the_criterion_does_not_make_is_told():
    """Median makes all parts at once, and d is too rare for that."""
    column = only(towns("aaaabbbbd"), town_policy("k-anonymity: 2"))
    assert parts_of(column) == pytest.approx({"undone": 8 / 9, "rare": 1 / 9})


def test_rows_that_were_left_out_lose_everything():
    table = towns("aabb")
    policy = town_policy("k-anonymity: 2")
    source = open_table(table)
    whole = GroupedRows.of_partition(partition(source, policy, threads=1), 4)
    kept = whole.rows != 3
    some = GroupedRows(whole.axes, whole.rows[kept], whole.group[kept], whole.boxes, 4)
    (column,) = explain_losses(source, policy, some)
    assert parts_of(column) == {"left out": 0.25}


def test_nothing_lost_is_nothing_explained():
    column = only(towns("aabb"), town_policy("k-anonymity: 2"))
    assert (column.parts, str(column)) == ((), "town 0")


def test_the_line_has_the_largest_part_first_and_leaves_out_what_is_next_to_nothing():
    parts = (
        Part("rare", 0.02, "because A"),
        Part("few", 0.479, "because B"),
        Part("wide", 0.001, "because C"),
    )
    column = LostColumn("age", 0.5, parts, 5, 0.0002, 3, 1200)
    assert str(column) == (
        "age .5 (.48 because B, .02 because A); 3 of 1,200 values, with under 0.1% of the rows, have fewer than "
        "5 rows in the whole table"
    )


def test_of_many_divisions_some_are_tried_evenly():
    group = np.repeat([3, 7], [100, 5])
    tried, of_group = _choose(Divisions(group, np.arange(105), np.arange(105)))
    assert of_group.tolist() == [3, 7]
    assert np.bincount(tried.group).tolist() == [MOST_DIVISIONS, 5]
    chosen = tried.low[tried.group == 0]
    assert chosen[0] == 0
    assert set(np.diff(chosen).tolist()) == {6, 7}


def test_a_long_number_that_no_threshold_can_divide():
    """One person alone has another illness."""
    n = 200
    table = pa.table({"age": list(range(n)), "ill": ["y"] + ["x"] * (n - 1)})
    policy = Policy.parse(
        "attributes: {age: {role: quasi-identifier, type: number, bounds: [0, 199]}, ill: {role: sensitive}}\n"
        f"require: [k-anonymity: 2, {DISTINCT}]"
    )
    ((column,), _, _) = explained(table, policy)
    assert parts_of(column) == pytest.approx(
        {"rare": 1 / (n - 1), "distinct 2-diversity of 'ill'": 1 - 1 / (n - 1)}
    )
