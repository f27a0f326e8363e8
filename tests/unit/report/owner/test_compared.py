"""Before and after, counted row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commandline import POLICY, people
from private_people import people as private_people
from private_people import the_policy
from tradeoff_releases import people as tradeoff_people
from tradeoff_releases import release_of

import sfumato as sf
from sfumato.policy.document import Policy
from sfumato.release.release import Release
from sfumato.report.owner.compared import MOST_BARS, ComparedNodes, compare_columns
from sfumato.report.owner.pictures import draw_before, draw_nodes
from sfumato.table.opening import open_table

PEOPLE = people(300)


def compared(release: Release, table: pa.Table) -> dict[str, Any]:
    return {each.attribute.name: each for each in compare_columns(release, open_table(table))}


@pytest.fixture(
    scope="module",
    params=["mondrian", "{mondrian: {criterion: median}}", "tds", "bounds", "summary", "excluding"],
)
def release(request) -> Release:
    more = {
        "tds": "method: tds\nworkload: [classify: disease]\n",
        "bounds": "output: {values: bounds}\n",
        "summary": "output: {values: summary}\n",
        "excluding": "output: {rest-labels: excluding}\n",
    }.get(request.param, f"method: {request.param}\n")
    return sf.publish(PEOPLE, Policy.parse(POLICY + more), seed=1)


def test_before_is_the_raw_table_and_after_adds_up_to_the_published_rows(release):
    found = compared(release, PEOPLE)
    assert [*found] == ["age", "sex", "zip"]
    for name in ("sex", "zip"):
        nodes = found[name].nodes
        assert sum(node.before for node in nodes) == len(PEOPLE)
        assert sum(node.expected for node in nodes) == pytest.approx(len(PEOPLE))
        assert all(0 <= node.certain <= node.expected + 1e-9 for node in nodes)
        assert sum(share for _, share in found[name].levels) == pytest.approx(1)
    ages = found["age"]
    assert ages.before.n_missing == PEOPLE["age"].null_count
    assert ages.before.rows.sum() + ages.before.n_missing == len(PEOPLE)
    assert ages.after.rows.sum() + ages.after.n_missing + ages.after.n_far == pytest.approx(
        len(PEOPLE), abs=2
    )
    assert np.array_equal(ages.before.edges, ages.after.edges)


def test_certain_rows_are_those_whose_label_lies_within():
    release = sf.publish(PEOPLE, Policy.parse(POLICY + "method: {mondrian: {criterion: median}}\n"), seed=1)
    zips = PEOPLE["zip"].to_pylist()
    labels = release.table["zip"].to_pylist()
    nodes = compared(release, PEOPLE)["zip"].nodes
    assert len(nodes) <= MOST_BARS
    for node in nodes:
        if node.label is None or not node.label.endswith("**"):
            continue
        assert node.before == sum(each[:3] == node.label[:3] for each in zips)
        assert node.certain == sum(each[:3] == node.label[:3] for each in labels)


def test_a_column_that_is_published_as_it_is_is_the_same_before_and_after():
    policy = Policy.parse("attributes: {sex: {role: quasi-identifier}}\nrequire: [k-anonymity: 2]")
    table = PEOPLE.select(["sex"])
    (column,) = compared(sf.publish(table, policy), table).values()
    assert [(node.before, node.certain, node.expected) for node in column.nodes] == [
        (n, n, float(n)) for n in (node.before for node in column.nodes)
    ]
    assert column.levels == (("single values", 1.0),)


def test_rows_that_were_left_out_are_counted_in_each_column(release):
    """Of the raw table the first rows, say, are not published."""
    gone = PEOPLE.slice(0, 40)
    found = {
        each.attribute.name: each
        for each in compare_columns(release, open_table(PEOPLE), np.arange(len(gone)))
    }
    sexes = gone["sex"].to_pylist()
    assert {node.label: node.left_out for node in found["sex"].nodes} == {
        node.label: sexes.count(node.label) for node in found["sex"].nodes
    }
    ages = found["age"]
    n_shown = sum(
        age is not None and ages.before.edges[0] <= age <= ages.before.edges[-1]
        for age in gone["age"].to_pylist()
    )
    assert ages.left_out is not None
    assert (ages.left_out.sum(), n_shown > 0) == (n_shown, True)
    assert (ages.left_out <= ages.before.rows).all()
    assert "bar gone" in draw_before(ages)
    node = max(found["sex"].nodes, key=lambda node: node.left_out)
    assert f"{node.before:,} − {node.left_out:,}" in draw_nodes(found["sex"])
    assert all(not node.left_out for node in compared(release, PEOPLE)["sex"].nodes)


def test_levels_are_counted_from_the_values_up_as_finest_counts_them():
    table = pa.table({"zip": ["12345", "12346", "12399", "12398"]})
    text = "attributes: {zip: {role: quasi-identifier, hierarchy: {mask: 5}, finest: 2}}\nrequire: [k-anonymity: 2]"
    column = compared(sf.publish(table, Policy.parse(text.replace(", finest: 2", ""))), table)["zip"]
    assert column.levels == (("level 1", 1.0),)  # 1234*, 1239*
    (coarse,) = set(sf.publish(table, Policy.parse(text)).table["zip"].to_pylist())
    assert coarse == "123**"


def test_of_many_values_those_with_most_rows_are_shown_and_the_others_together():
    towns = [f"t{i:02}" for i in range(30) for _ in range(i + 1)]
    table = pa.table({"town": towns})
    policy = Policy.parse("attributes: {town: {role: quasi-identifier}}\nrequire: [k-anonymity: 1]")
    (column,) = compared(sf.publish(table, policy), table).values()
    *largest, others = column.nodes
    assert [node.label for node in largest] == [f"t{i}" for i in range(19, 30)]
    assert (others.label, others.before, others.certain) == ("19 others", 190, 190)
    assert sum(node.expected for node in column.nodes) == pytest.approx(len(towns))


def test_rows_with_a_box_each_are_read_by_their_labels():
    table = tradeoff_people(60)
    found = compared(release_of(table), table)
    for name in ("zip", "job"):
        assert sum(node.before for node in found[name].nodes) == 60
        assert sum(node.expected for node in found[name].nodes) == pytest.approx(60)
    for name in ("age", "admitted"):
        after = found[name].after
        assert after.rows.sum() + after.n_missing + after.n_far == pytest.approx(60, abs=2)


def test_counts_with_noise_are_certain_of_nothing():
    table = private_people()
    release = sf.publish(table, the_policy(), seed=1)
    found = compared(release, table)
    total = sum(release.table["count"].to_pylist())
    for column in found.values():
        if isinstance(column, ComparedNodes):
            assert sum(node.before for node in column.nodes) == len(table)
            assert sum(node.expected for node in column.nodes) == pytest.approx(total)
            assert {node.certain for node in column.nodes} == {0}


def test_a_number_that_is_missing_everywhere_has_one_bar():
    table = pa.table({"age": pa.nulls(4, pa.int64()), "sex": list("aabb")})
    policy = Policy.parse(
        "attributes: {age: {role: quasi-identifier, type: number}, sex: {role: quasi-identifier}}\n"
        "require: [k-anonymity: 2]"
    )
    column = compared(sf.publish(table, policy), table)["age"]
    assert [(node.label, node.before, node.expected) for node in column.nodes] == [(None, 4, 4.0)]
