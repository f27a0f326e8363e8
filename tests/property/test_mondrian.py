"""Mondrian against its naive twin, and what must hold of every partition, on random small tables."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import naive_mondrian as naive
import numpy as np
import pyarrow as pa
import pytest
from growing import partition
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mondrian_cases import (
    BIG_CASES,
    EPOCH,
    Case,
    Quasi,
    big_case,
    boxes_of,
    cases,
    groups_of,
    members_of,
    number,
    reachable_cases,
    tree_recoding,
)

from sfumato.errors import RequirementUnreachable
from sfumato.methods.mondrian import memory
from sfumato.policy.output import Output
from sfumato.policy.requirements import KAnonymity, RecursiveDiversity
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import Classify, Regress
from sfumato.recoding import tree as recoding_module
from sfumato.recoding.tree import Recoding
from sfumato.table.opening import open_table

# ---- the twin --------------------------------------------------------------------------------------


@given(cases())
@settings(max_examples=150)
def test_the_groups_and_their_boxes_are_those_of_the_naive_twin(case: Case):
    if not case.is_reachable():
        with pytest.raises(RequirementUnreachable):
            case.partition()
        return
    found = case.partition()
    expected = {(tuple(leaf.box), frozenset(leaf.members)) for leaf in case.twin().grow().leaves()}
    event(f"groups: {min(len(expected), 5)}")
    assert groups_of(found) == expected


AGAINST_THE_TWIN = [
    "median", "median, diverse", "median, spread", "one label", "one number", "several", "often median",
    "several numbers", "median at last",
]  # fmt: skip


@pytest.mark.parametrize("name", AGAINST_THE_TWIN)
def test_larger_tables_split_into_many_tasks_give_the_twins_groups_too(name, monkeypatch):
    monkeypatch.setattr(memory, "SMALLEST_TASK", 16)
    case = big_case(7, *BIG_CASES[name])
    expected = {(tuple(leaf.box), frozenset(leaf.members)) for leaf in case.twin().grow().leaves()}
    assert len(expected) > 10
    assert groups_of(case.partition(threads=2)) == expected


@pytest.mark.parametrize("workload", [[], [Classify("class")], [Regress("hours")]])
def test_a_column_of_one_value_is_never_split_however_deep_its_hierarchy(workload):
    """A node with one child is no split; many of them once wrote beyond the end of the tree."""
    chain = Attribute(
        "chain", Role.QUASI_IDENTIFIER, hierarchy={"tree": {"*": {"a": {"b": ["c"]}, "d": None}}}
    )
    same = [Attribute(f"same{i}", Role.QUASI_IDENTIFIER, values=("v", "w")) for i in range(20)]
    others = [Attribute("class", Role.OTHER), Attribute("hours", Role.OTHER, Kind.NUMBER)]
    columns = {attribute.name: ["v"] * 5 for attribute in same} | {
        "class": list("abaab"),
        "hours": [1, 2, 3, 4, 5],
    }
    table = pa.table({"chain": ["c"] * 5, **columns})
    found = partition(open_table(table), Schema((chain, *same, *others)), [KAnonymity(2)], workload=workload)
    assert tree_recoding(found).tree.axis.tolist() == [-1]
    assert {name: column.to_pylist() for name, column in found.recoding.columns(found.leaf).items()} == {
        "chain": ["c"],
        **{attribute.name: ["v"] for attribute in same},
    }


def test_median_takes_the_best_balanced_threshold_that_is_allowable_not_only_one_beside_the_median():
    """x < 3 divides 4 | 7 and fails, x <= 3 divides 9 | 2; x <= 1 divides 3 | 8 and is better than that."""
    table = pa.table({"x": [1, 1, 1, 2, 3, 3, 3, 3, 3, 4, 4], "disease": list("abaaabababa")})
    schema = Schema((number("x"), Attribute("disease", Role.SENSITIVE)))
    found = partition(open_table(table), schema, [RecursiveDiversity(2.5, 2, of="disease")])
    assert tree_recoding(found).tree.threshold[0] == 1


TASKS = {
    "two classes": [Classify("two")],
    "four classes": [Classify("four")],
    "a number": [Regress("hours")],
    "several": [Classify(["two", "four"]), Regress("hours")],
}


def first_split(workload: list[Any], **columns: list[Any]) -> tuple[str, float]:
    """Attribute and threshold of the first split; four rows of each value, so that no split scores better."""
    n_values = len(next(iter(columns.values())))
    table = {name: [value for value in values for _ in range(4)] for name, values in columns.items()}
    targets: dict[str, list[Any]] = {"two": list("+-+-"), "four": list("abcd"), "hours": [0, 0, 4, 4]}
    table |= {name: values * n_values for name, values in targets.items()}
    quasi = [
        number(name) if isinstance(values[0], int) else Attribute(name, Role.QUASI_IDENTIFIER)
        for name, values in columns.items()
    ]
    others = [
        Attribute("two", Role.OTHER),
        Attribute("four", Role.OTHER),
        Attribute("hours", Role.OTHER, Kind.NUMBER),
    ]
    schema = Schema((*quasi, *others))
    tree = tree_recoding(
        partition(open_table(pa.table(table)), schema, [KAnonymity(1)], workload=workload)
    ).tree
    return schema.quasi_identifiers[tree.axis[0]].name, tree.threshold[0]


@pytest.mark.parametrize("name", TASKS)
def test_ties_go_to_the_better_balanced_split_then_to_the_first_attribute_then_to_the_lower_threshold(name):
    task = TASKS[name]
    assert first_split(task, x=[1, 2, 3, 4]) == ("x", 2)
    assert first_split(task, x=[1, 2, 3]) == ("x", 1)
    assert first_split(task, x=[1, 1, 1, 2], y=[1, 1, 2, 2]) == ("y", 1)
    assert first_split(task, x=[1, 2, 2, 2], y=[5, 6, 6, 6]) == ("x", 1)
    assert first_split(task, x=["a", "a", "a", "b"], y=[1, 1, 2, 2])[0] == "y"
    assert first_split(task, y=[1, 1, 1, 2], x=["a", "a", "b", "b"])[0] == "x"
    assert first_split(task, x=["a", "a", "b", "b"], y=[1, 1, 2, 2])[0] == "x"
    assert first_split(task, y=[1, 1, 2, 2], x=["a", "a", "b", "b"])[0] == "y"
    assert first_split(task, x=["a", "a", "b", "b"], y=["d", "c", "c", "d"])[0] == "x"


@pytest.mark.parametrize("names", list(itertools.permutations("abc")))
def test_the_roundoff_of_a_score_does_not_depend_on_the_order_of_the_children(names):
    """Both columns divide the rows alike, so the first is taken, whatever its values are called."""
    groups = [0, 0, 1, 2, 2]
    table = pa.table(
        {"x": [names[g] for g in groups], "y": ["uvw"[g] for g in groups], "hours": [4, 1, 2, 8, 2]}
    )
    schema = Schema(
        (*(Attribute(n, Role.QUASI_IDENTIFIER) for n in "xy"), Attribute("hours", Role.OTHER, Kind.NUMBER))
    )
    found = partition(open_table(table), schema, [KAnonymity(1)], workload=[Regress("hours")])
    assert tree_recoding(found).tree.axis[0] == 0


# ---- what must hold of every partition -------------------------------------------------------------


@given(reachable_cases())
@settings(max_examples=80)
def test_every_group_keeps_every_promise_and_none_can_be_split_further(case: Case):
    groups = members_of(case.partition())
    twin = case.twin()
    assert sorted(i for members in groups for i in members) == list(range(len(case.rows)))
    for members in groups:
        assert all(
            naive.satisfies([case.rows[i] for i in members], requirement) for requirement in case.requirements
        )
        assert not any(twin.allowable(sorted(members), at) for at in twin.may_split)


# ---- what must not matter --------------------------------------------------------------------------


@given(reachable_cases(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_the_rows_does_not_matter(case: Case, random: Any):
    order = list(range(len(case.rows)))
    random.shuffle(order)
    shuffled = case.partition(case.table([case.rows[i] for i in order]))
    back = {(box, frozenset(order[i] for i in members)) for box, members in groups_of(shuffled)}
    assert back == groups_of(case.partition())


@given(reachable_cases())
@settings(max_examples=60)
def test_the_names_of_categories_and_the_order_they_sort_in_do_not_matter(case: Case):
    flipped: dict[str | None, str | None] = {
        letter: f"{25 - i:02}" for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz")
    }
    flipped |= {"yes": "a no", "no": "a yes", None: None}
    rename = {quasi.attribute.name: quasi.rename for quasi in case.quasi if quasi.renamed}
    rename |= dict.fromkeys(("disease", "job", "class"), flipped.get)
    keep = lambda cell: cell  # noqa: E731
    rows = [{name: rename.get(name, keep)(cell) for name, cell in row.items()} for row in case.rows]
    other = replace(
        case, rows=rows, quasi=[replace(q, attribute=q.renamed or q.attribute) for q in case.quasi]
    )
    expected = {
        (
            tuple(
                tuple(map(quasi.renamed_label, side)) if isinstance(quasi.axis, naive.Tree) else side
                for quasi, side in zip(case.quasi, box, strict=True)
            ),
            members,
        )
        for box, members in groups_of(case.partition())
    }
    assert groups_of(other.partition()) == expected


@given(reachable_cases(), st.data())
@settings(max_examples=40)
def test_how_the_input_is_cut_into_chunks_does_not_matter(case: Case, data: Any):
    table = case.table()

    def cut(column: pa.ChunkedArray) -> pa.ChunkedArray:
        ends = data.draw(st.lists(st.integers(0, len(case.rows)), max_size=3).map(sorted))
        whole = column.combine_chunks()
        parts = [whole.slice(a, b - a) for a, b in zip([0, *ends], [*ends, len(case.rows)], strict=True)]
        if pa.types.is_string(column.type) and data.draw(st.booleans()):
            parts = [part.dictionary_encode() for part in parts]
        return pa.chunked_array(parts)

    chunked = pa.table({name: cut(table.column(name)) for name in table.column_names})
    assert groups_of(case.partition(chunked)) == groups_of(case.partition(table))


@given(reachable_cases(max_rows=60), st.integers(1, 3))
@settings(max_examples=40)
def test_the_number_of_threads_and_the_size_of_tasks_do_not_matter(case: Case, threads: int):
    whole = case.partition()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "SMALLEST_TASK", 2)
        tasks = case.partition(threads=threads)
    assert groups_of(tasks) == groups_of(whole)
    assert boxes_of(tasks) == boxes_of(whole)  # in the same order, too


def test_the_reported_progress_counts_every_row_once(monkeypatch):
    monkeypatch.setattr(memory, "SMALLEST_TASK", 16)
    case = big_case(3, [], [KAnonymity(5)])
    seen: list[tuple[str, int, int]] = []
    case.partition(progress=lambda stage, done, total: seen.append((stage, done, total)))
    splitting = [(done, total) for stage, done, total in seen if stage == "splitting"]
    assert len(splitting) > 5
    assert splitting[-1] == (260, 260)
    assert [done for done, _ in splitting] == sorted(done for done, _ in splitting)


@given(reachable_cases(), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_shuffled_rows_stay_in_their_groups(case: Case, seed: int):
    found = case.partition()
    order = found.shuffle(np.random.default_rng(seed).random(len(case.rows)))
    parts = [frozenset(part.tolist()) for part in np.split(order, np.cumsum(found.size)[:-1])]
    assert parts == members_of(found)


# ---- the recoding ----------------------------------------------------------------------------------


@given(reachable_cases(), st.sampled_from(Output))
@settings(max_examples=50)
def test_applied_to_the_rows_it_was_made_from_the_recoding_gives_the_published_boxes(
    case: Case, output: Output
):
    found = case.partition(output=output)
    place = np.empty(len(case.rows), dtype=np.int64)
    for leaf, members in zip(found.leaf.tolist(), members_of(found), strict=True):
        place[sorted(members)] = leaf
    applied = found.recoding.apply_to(open_table(case.table()))
    for name, column in found.recoding.columns(place).items():
        assert applied.column(name).to_pylist() == column.to_pylist(), name


@given(reachable_cases(), st.data())
@settings(max_examples=70)
def test_any_row_at_all_gets_the_box_that_the_rules_for_strangers_say(case: Case, data: Any):
    tree = case.twin().grow()
    rows = [
        {**row, **{q.attribute.name: data.draw(st.one_of(q.strangers, st.none())) for q in case.quasi}}
        for row in case.rows[:6]
    ]
    recoding = case.partition().recoding
    applied = recoding.apply_to(open_table(case.table(rows))).to_pylist()
    for row, published in zip(rows, applied, strict=True):
        box = stranger_box(case, tree, row)
        for a, quasi in enumerate(case.quasi):
            name = quasi.attribute.name
            assert published[name] == label_of(case, quasi, box[a], row[name]), name


def stranger_box(case: Case, node: naive.Node, row: dict[str, Any]) -> list[Any]:
    """The box of the deepest node that surely covers the row, from the documentation of ``sfumato.recoding.tree``.

    A row that falls between the branches of a split along a hierarchy is still near the node that was split.
    """
    while node.split is not None:
        quasi = case.quasi[node.split.axis]
        name = quasi.attribute.name
        if isinstance(quasi.axis, naive.Ordered):
            if row[name] is None and not any(row[name] is None for row in case.rows):
                break
            node = node.children[0 if quasi.axis.value(row) <= node.split.threshold else 1]
            continue
        path = quasi.axis.node(row)
        branches = zip(node.split.branches, node.children, strict=True)
        matches = [child for branch, child in branches if path[: len(branch)] == branch]
        if not matches:
            split = node.split
            return [split.branches[0][:-1] if a == split.axis else side for a, side in enumerate(node.box)]
        (node,) = matches
    return node.box


def label_of(case: Case, quasi: Quasi, side: Any, cell: Any) -> str | None:
    """What is published of a box on one attribute for a row with this cell."""
    axis, name = quasi.axis, quasi.attribute.name
    if isinstance(axis, naive.Tree):
        return naive.common([side, axis.node({name: cell})])[-1]
    seen = [axis.value(row) for row in case.rows]
    values = [value for value in seen if value != naive.MISSING]
    if cell is None and naive.MISSING not in seen:
        return "*"
    low, high = side
    if high == naive.MISSING or not (values or quasi.attribute.bounds):
        return None
    bounds = quasi.attribute.bounds or (min(values), max(values))
    grid = quasi.attribute.step or (1 if all(float(value).is_integer() for value in values) else None)
    is_outer = low in (None, naive.MISSING)
    first = bounds[0] if is_outer else float(naive.exact(float(low)) + naive.exact(grid)) if grid else low
    last = bounds[1] if high == math.inf else high
    opening = "[" if is_outer or grid else "("
    text = (
        written(quasi, first)
        if first == last
        else f"{opening}{written(quasi, first)}, {written(quasi, last)}]"
    )
    return text + (" or missing" if low is None and naive.MISSING in seen else "")


def written(quasi: Quasi, value: float) -> str:
    if quasi.attribute.kind is Kind.DATE:
        return str(EPOCH + timedelta(int(value)))
    return str(int(value)) if float(value).is_integer() else repr(float(value))


@given(case=reachable_cases(), output=st.sampled_from(Output), is_large=st.booleans(), data=st.data())
@settings(max_examples=40)
def test_a_recoding_that_was_written_and_read_back_recodes_alike(
    tmp_path_factory, case, output, is_large, data
):
    rows = [
        {**row, **{q.attribute.name: data.draw(st.one_of(q.strangers, st.none())) for q in case.quasi}}
        for row in case.rows[:4]
    ]
    recoding = case.partition(output=output).recoding
    folder: Path = tmp_path_factory.mktemp("release")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recoding_module, "LARGE", 0 if is_large else 10_000)
        recoding.write(folder)
    assert (folder / "recoding.parquet").exists() == is_large
    again = Recoding.read(folder, case.schema())
    table = case.table([*case.rows, *rows])
    assert again.apply(table).equals(recoding.apply(table))
