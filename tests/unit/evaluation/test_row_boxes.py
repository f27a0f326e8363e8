"""Risk-utility under evaluation: boxes of rows to learn from and of held-out ones, and what they lose."""

from __future__ import annotations

import datetime as dt
import html

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.evaluation.protocol import evaluate
from sfumato.evaluation.result import Evaluation
from sfumato.evaluation.row_boxes import GeneralizedParts
from sfumato.evaluation.show import as_text
from sfumato.methods.risk_utility.apply import generalize_rows
from sfumato.methods.risk_utility.together import count_alike
from sfumato.policy.document import Policy
from sfumato.table.opening import open_table
from sfumato.verify.risk_utility.claims import WEIGHTED

POLICY = """
attributes:
  age:  {role: quasi-identifier, type: number, bounds: [0, 40], hierarchy: {intervals: [5, 10, 20]}}
  town: {role: quasi-identifier, hierarchy: {tree: {North: [a, b], South: [c, d]}}}
  day:  {role: quasi-identifier, type: date, hierarchy: {dates: [day, month]}}
  ill:  {role: other}
method: {risk-utility: {utility-at-least: 0.5}}
workload: [classify: ill]
"""


def people(n=60, seed=1) -> pa.Table:
    random = np.random.default_rng(seed)
    age = random.integers(0, 40, n)
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(i)) for i in random.integers(0, 50, n)]
    return pa.table(
        {
            "age": age,
            "town": random.choice(["a", "b", "c", "d"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "day": pa.array(days),
            "ill": np.where((age >= 20) ^ (random.random(n) < 0.1), "yes", "no"),
        }
    )


def parts_of(train: pa.Table, test: pa.Table, policy: str = POLICY) -> GeneralizedParts:
    return GeneralizedParts.of(open_table(train), open_table(test), Policy.parse(policy), threads=1)


def share(name: str, label: str) -> float:
    """The NCP of a label, by hand."""
    if name == "town":
        return {"North": 0.5, "South": 0.5, "*": 1.0}.get(label, 0.0)
    if name == "age":
        low, high = (0, 40) if label == "*" else map(int, label.strip("[]()").split(", "))
        return (high - low) / 40
    raise AssertionError(name)


def test_what_is_lost_is_what_the_published_cells_say():
    table = people()
    measures = parts_of(table, people(20, seed=2)).measures()
    release = sf.publish(table, Policy.parse(POLICY), seed=1)
    for name in ("age", "town"):
        lost = [share(name, label) for label in release.rows.column(name).to_pylist()]
        assert measures[f"ncp of {name}"] == pytest.approx(np.mean(lost))
    figures = release.certificate.figures["tradeoff"]
    assert measures["mean risk"] == figures["risk"]["mean"]
    assert measures["greatest risk"] == figures["risk"]["greatest"]
    before = figures["raw risk"]
    assert (measures["mean risk before"], measures["greatest risk before"]) == (
        before["mean"],
        before["greatest"],
    )
    assert measures["mean share of utility"] == figures["share"]["mean"]


def test_entropy_loss_counts_the_rows_below_each_label():
    table = people()
    measures = parts_of(table, people(20, seed=2)).measures()
    labels = generalize_rows(table, Policy.parse(POLICY), table).column("town").to_pylist()
    towns = table.column("town").to_pylist()
    covers = {"North": "ab", "South": "cd", "*": "abcd"}
    lost = sum(
        np.log2(sum(other in covers.get(label, label) for other in towns) / towns.count(town))
        for label, town in zip(labels, towns, strict=True)
    )
    most = sum(np.log2(len(towns) / towns.count(town)) for town in towns)
    assert measures["entropy loss of town"] == pytest.approx(lost / most)


def test_held_out_rows_are_generalized_anew_against_the_rows_to_learn_from():
    train, test = people(), people(25, seed=2)
    parts = parts_of(train, test)
    for table, rows in ((train, slice(0, 60)), (test, slice(60, 85))):
        labels = generalize_rows(table, Policy.parse(POLICY), train).column("age").to_pylist()
        ends = [
            (0, 40) if label == "*" else tuple(map(int, label.strip("[]()").split(", "))) for label in labels
        ]
        found = zip(parts.boxes.first[rows, 0].tolist(), parts.boxes.last[rows, 0].tolist(), strict=True)
        assert list(found) == ends


def test_codes_of_categories_are_common_to_both_parts_though_each_has_its_own_values():
    policy = """
    attributes: {town: {role: quasi-identifier}, age: {role: quasi-identifier, type: number}}
    method: {risk-utility: {utility-at-least: 1}}
    """
    train = pa.table({"town": ["b", "d", None], "age": [1, 2, 3]})
    test = pa.table({"town": ["a", "d", "c"], "age": [4, -7, 9]})
    boxes = parts_of(train, test, policy).boxes
    assert boxes.first[:, 0].tolist() == boxes.last[:, 0].tolist() == [1, 3, 4, 0, 3, 2]
    assert boxes.first[:, 1].tolist() == boxes.last[:, 1].tolist() == [1, 2, 3, 4, -7, 9]


def test_missing_numbers_and_whole_columns_have_their_places():
    policy = """
    attributes: {age: {role: quasi-identifier, type: number, bounds: [0, 7]}}
    method: {risk-utility: {utility-at-least: %s}}
    """
    table = pa.table({"age": [1, None, 5]})
    raw, hidden = (parts_of(table, table, policy % share).boxes for share in (1, 0))
    assert raw.first[:, 0].tolist()[:3:2] == [1, 5]
    assert np.isnan(raw.first[1, 0])
    assert (hidden.first[:, 0].tolist(), hidden.last[:, 0].tolist()) == ([0] * 6, [7] * 6)


def test_rows_that_fit_a_box_are_counted_whatever_the_weights():
    table = people()
    found = []
    for more in ("", ", weights: {attributes: {age: 1, town: 1, day: 1}}, floor: 3"):
        policy = Policy.parse(POLICY.replace("0.5}", f"1{more}}}"))
        alike, n_boxes = count_alike(open_table(table), policy, threads=1)
        found.append(alike.tolist())
        assert n_boxes == len({tuple(row.values())[:3] for row in table.to_pylist()})
    rows = [tuple(row.values())[:3] for row in table.to_pylist()]
    ages = [(row[0] // 5, *row[1:]) for row in rows]
    assert found[0] == found[1] == [ages.count(row) for row in ages]


def test_models_learn_from_boxes_of_single_rows():
    found = evaluate(people(240), Policy.parse(POLICY), folds=2, models=["decision-tree"])
    assert found.score("ill", "decision-tree", "release").mean > 0.75
    assert found.measures["mean share of utility"] >= 0.5
    assert "conditional entropy of ill" in found.measures
    sampled = evaluate(
        people(240), Policy.parse(POLICY), folds=2, models=["decision-tree"], learn_from="sample"
    )
    assert sampled.score("ill", "decision-tree", "release").mean > 0.6


def test_a_risk_above_one_is_never_told_without_a_word_on_weights():
    found = evaluate(people(), Policy.parse(POLICY), folds=2, models=["decision-tree"])
    assert found.measures["greatest risk before"] > 1
    assert WEIGHTED in as_text(found)
    assert WEIGHTED in html.unescape(found._repr_html_())
    plain = Policy.parse(POLICY.replace("0.5}", "0.5, weights: model-2}"))
    found = evaluate(people(), plain, folds=2, models=["decision-tree"])
    assert found.measures["greatest risk before"] == pytest.approx(1)
    assert WEIGHTED not in as_text(found)


def test_an_evaluation_goes_into_the_certificate_and_the_report():
    policy = Policy.parse(POLICY)
    found = evaluate(people(), policy, folds=2, models=["decision-tree"])
    release = sf.publish(people(), policy, evaluation=Evaluation.from_json(found.to_json()))
    assert release.certificate.figures["utility"]["measures"] == found.measures
    assert '<section id="predictions"' in release.report
    assert "held-out rows get boxes of their own against the same table" in release.report


def test_without_a_task_only_measures_are_taken():
    found = evaluate(people(), Policy.parse(POLICY.replace("workload: [classify: ill]", "")), folds=2)
    assert found.scores == ()
    assert {"mean risk", "ncp", "ncp of town", "entropy loss"} <= set(found.measures)


@pytest.mark.parametrize("more", ["", ", variant: paper"])
def test_what_is_drawn_at_random_is_not_evaluated(more):
    side = "" if more else "side-table: v.csv, "
    policy = Policy.parse(
        "attributes: {age: {role: quasi-identifier, type: number, bounds: [0, 40], step: 1}}\n"
        f"method: {{risk-utility: {{{side}floor: 1, private: {{epsilon: 1.0, delta: 1.0e-6{more}}}}}}}"
    )
    with pytest.raises(InputError, match="no held-out row has one for certain"):
        evaluate(people(), policy)
