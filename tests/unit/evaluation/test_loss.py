"""Entropy loss and the error of COUNT queries: by hand, against labels read as text, against COUNT itself."""

from __future__ import annotations

import random

import naive_loss
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import methods
from sfumato.evaluation import loss, show
from sfumato.evaluation.loss import ReleasedGroups, measure_groups, query_errors
from sfumato.evaluation.result import Evaluation
from sfumato.policy.rectangles import Rectangle
from sfumato.randomness import seeded
from sfumato.recoding.recoder import Partition
from sfumato.release.query.overlap import AxisOverlap
from sfumato.table.opening import open_table
from sfumato.table.source import Source

POLICY = """
attributes:
  age:  {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  dose: {role: quasi-identifier, type: number}
  town: {role: quasi-identifier, hierarchy: {tree: {'*': {ab: [a, b], cde: [c, d, e]}}}}
  sex:  {role: quasi-identifier, values: [f, m]}
  ill:  {role: other}
require: [k-anonymity: K]
"""
TREE = {"ab": ["a", "b"], "cde": ["c", "d", "e"]}


def people(n: int, seed: int = 1, missing: float = 0.0) -> pa.Table:
    chance = random.Random(seed)

    def cell(value):
        return None if chance.random() < missing else value

    return pa.table(
        {
            "age": [cell(chance.randrange(100)) for _ in range(n)],
            "dose": [cell(chance.randrange(40) / 8) for _ in range(n)],
            "town": [cell(chance.choice("abcde")) for _ in range(n)],
            "sex": [chance.choice("fm") for _ in range(n)],
            "ill": [chance.choice(["yes", "no"]) for _ in range(n)],
        }
    )


def policy_of(k: int, more: str = "") -> sf.Policy:
    return sf.Policy.parse(POLICY.replace("K", str(k)) + more)


def released(table, policy) -> tuple[Partition, Source]:
    source = open_table(table)
    return methods.partition(source, policy), source


# ---- by hand -------------------------------------------------------------------------------------------


def test_a_label_costs_the_bits_that_it_leaves_open():
    """Ages 1 1 1 9 9 in one group with 2-anonymity refused: all in [1, 9].

    Bits: 3 log2(5/3) + 2 log2(5/2) of as many if they were stars: everything is lost. The town is told: nothing is.
    """
    table = pa.table({"age": [1, 1, 1, 9, 9], "town": ["a"] * 5})
    policy = sf.Policy.parse(
        "{attributes: {age: {role: quasi-identifier, type: number}, town: {role: quasi-identifier}}, "
        "require: [k-anonymity: 5]}"
    )
    found = measure_groups(*released(table, policy), seeded(1))
    assert found["entropy loss"] == found["entropy loss of age"] == pytest.approx(1)
    assert found["entropy loss of town"] == found["ncp of town"] == 0
    assert (found["ncp"], found["ncp of age"]) == (0.5, 1.0)
    assert [name for name in found if name.startswith("ncp of")] == ["ncp of age", "ncp of town"]


def test_half_a_bit_of_two():
    """Four towns of one row each, published as two nodes of two: 1 of 2 bits of each row is lost."""
    table = pa.table({"town": ["a", "b", "c", "d"]})
    policy = sf.Policy.parse(
        "{attributes: {town: {role: quasi-identifier, hierarchy: {tree: {'*': {n: [a, b], s: [c, d]}}}}}, "
        "require: [k-anonymity: 2]}"
    )
    found = measure_groups(*released(table, policy), seeded(1))
    assert (found["entropy loss"], found["ncp"]) == (0.5, 0.5)
    assert found["query error"] == pytest.approx(found["query error of town"])


def test_the_error_of_one_query_by_hand():
    """Ages 0 .. 99 once each but 0 .. 9 twice, one group of all: age <= 9 is estimated as 110 * 10 / 100, true are 20."""
    ages = [*range(100), *range(10)]
    policy = sf.Policy.parse(
        "{attributes: {age: {role: quasi-identifier, type: number}}, require: [k-anonymity: 110]}"
    )
    groups, source = released(pa.table({"age": ages}), policy)
    rows = loss.published_boxes(ReleasedGroups.of(groups, source))
    asked = loss.AskedColumn.of(source, policy.schema["age"])
    side = loss.Interval(0, 9)
    assert asked.test(side).sum() == 20
    assert rows.size @ rows.overlap_one(Rectangle({"age": side})).share == pytest.approx(11)


# ---- against the labels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["mondrian", "tds"])
@pytest.mark.parametrize(("k", "missing"), [(2, 0.0), (4, 0.2), (9, 0.1)])
def test_losses_are_those_of_the_labels(method, k, missing):
    table = people(90, seed=k, missing=missing)
    policy = policy_of(k, f"workload: [classify: ill]\nmethod: {method}\n")
    groups, source = released(table, policy)
    found = measure_groups(groups, source, seeded(1))
    order = np.argsort(groups.row_numbers)
    labels = {
        name: column.cast(pa.string()).take(pa.array(order)).to_pylist()
        for name, column in groups.columns().items()
    }
    columns = {
        "age": naive_loss.NumberColumn(table["age"].to_pylist(), (0.0, 99.0)),
        "dose": naive_loss.NumberColumn(table["dose"].to_pylist(), rounded=method == "mondrian"),
        "town": naive_loss.in_tree(table["town"].to_pylist(), TREE),
        "sex": naive_loss.declared(table["sex"].to_pylist(), "fm"),
    }
    total, each = naive_loss.entropy_loss(columns, labels)
    assert found["entropy loss"] == pytest.approx(total)
    assert loss.by_column(found, "entropy loss") == pytest.approx(each)
    ncp = naive_loss.ncp(columns, labels)
    assert loss.by_column(found, "ncp") == pytest.approx({name: float(value) for name, value in ncp.items()})
    assert 0 < found["entropy loss"] < 1


# ---- against COUNT -----------------------------------------------------------------------------------------


def spell(name, side) -> str:
    if isinstance(side, loss.Labels):
        return f"{name} in ({', '.join(repr(label) for label in sorted(map(str, side.labels)))})"
    return f"{name} between {side.low} and {side.high}"


def fits(side, cell) -> bool:
    if isinstance(side, loss.Labels):
        return cell in side.labels
    return cell is not None and side.low <= cell <= side.high


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_answers_are_those_of_count(missing):
    """Where the policy declares every value, who knows all values knows what a reader of the release knows."""
    table, policy = people(200, missing=missing), policy_of(4)
    groups, source = released(table, policy)
    labels = ReleasedGroups.of(groups, source)
    rows, chance = loss.published_boxes(labels), seeded(5)
    release = sf.publish(table, policy)
    asked = [loss.AskedColumn.of(source, axis.attribute) for axis in labels.axes]
    raw = table.to_pylist()
    for _ in range(60):
        query = loss.draw_query(asked, chance)
        assert len(query) == 3
        sides = {column.name: side for column, side in query}
        where = " and ".join(spell(name, side) for name, side in sides.items())
        estimate = float(rows.size @ rows.overlap_one(Rectangle(sides)).share)
        assert estimate == pytest.approx(release.query("COUNT(*)", where).value), where
        inside = np.logical_and.reduce([column.test(side) for column, side in query])
        assert inside.tolist() == [all(fits(side, row[name]) for name, side in sides.items()) for row in raw]


def test_queries_select_from_one_to_fifty_per_cent(monkeypatch):
    """All that are kept: the true counts that errors are divided by."""
    table, policy = people(300), policy_of(5)
    groups, source = released(table, policy)
    labels, counts = ReleasedGroups.of(groups, source), []
    monkeypatch.setattr(loss.AlikeRows, "overlap_one", lambda _rows, _rectangle: _all_of(len(groups.size)))
    for one in query_errors(labels, source, seeded(2), 100):
        counts.append(300 / (1 + one.error))  # every answer is 300
    assert len(counts) == 100
    assert min(counts) >= 3 - 1e-9
    assert max(counts) <= 150 + 1e-9
    assert max(counts) > 5 * min(counts)


def _all_of(n):
    return AxisOverlap(np.ones(n), np.ones(n, dtype=np.bool_))


def test_queries_are_repeated_by_their_seed_alone():
    groups, source = released(people(150), policy_of(3))
    labels = ReleasedGroups.of(groups, source)
    first, again, other = (query_errors(labels, source, seeded(seed), 50) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_table_whose_rows_cannot_be_told_apart_has_no_query():
    table = pa.table({"town": ["a"] * 40})
    policy = sf.Policy.parse("{attributes: {town: {role: quasi-identifier}}, require: [k-anonymity: 2]}")
    found = measure_groups(*released(table, policy), seeded(1))
    assert found == {"ncp": 0.0, "ncp of town": 0.0, "entropy loss": 0.0, "entropy loss of town": 0.0}


def test_exact_cells_answer_exactly_and_stars_do_not():
    chance = random.Random(4)
    table = pa.table(
        {name: [chance.choice("aaaabbc") for _ in range(300)] for name in ("town", "job", "sex", "home")}
    )
    attributes = "{town: Q, job: Q, sex: Q, home: Q}".replace("Q", "{role: quasi-identifier}")
    for k, is_exact in ((1, True), (300, False)):
        policy = sf.Policy.parse(f"{{attributes: {attributes}, require: [k-anonymity: {k}]}}")
        found = measure_groups(*released(table, policy), seeded(1))
        assert (found["query error"] == 0) == is_exact
        assert (found["entropy loss"] < 1e-12) == is_exact


# ---- what is printed -----------------------------------------------------------------------------------------


def test_an_evaluation_prints_the_columns_that_lost_most_first():
    found = sf.evaluate(people(120), policy_of(6, "workload: []\n"), folds=3)
    ncp = loss.by_column(found.measures, "ncp")
    assert sorted(ncp) == ["age", "dose", "sex", "town"]
    assert [name for name in found.measures if name.startswith("ncp of")] == [
        f"ncp of {name}" for name in ncp
    ]
    lines = show.as_text(found).splitlines()
    at = lines.index("What each column lost, most first:")
    assert lines[at + 1].split("  ")[-1] == "query error"
    assert [line.split()[0] for line in lines[at + 2 : at + 6]] == list(ncp)
    assert sum("entropy loss" in line for line in lines[:at]) == 1  # those of columns stand below
    assert Evaluation.from_json(found.to_json()).measures == found.measures
