"""Private releases under evaluation: what models learn from, what is found, and what nothing is made of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato import evaluate
from sfumato.errors import InputError, PolicyError
from sfumato.evaluation import private, show
from sfumato.evaluation.experiment import Setup, prepare
from sfumato.evaluation.points import VALUES
from sfumato.evaluation.result import NOTHING, OUTSIDE_THE_BUDGET, RELEASE, Evaluation
from sfumato.policy.document import Policy
from sfumato.randomness import seeded
from sfumato.table.opening import open_table

POLICY = """
attributes:
  id:   {role: identifier}
  age:  {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  town: {role: quasi-identifier, hierarchy: {tree: {North: [a, b], South: [c]}}}
  ill:  {role: sensitive, values: ["yes", "no", never]}
workload: [classify: ill]
method: {diffgen: {epsilon: EPSILON}}
"""
FAST = {"folds": 3, "models": ["decision-tree"]}


def policy_of(epsilon=5, **method):
    policy = Policy.parse(POLICY.replace("EPSILON", str(epsilon))).as_dict()
    options = {"epsilon": epsilon} if "cuts" in method else policy["method"]["diffgen"]
    return Policy.from_dict({**policy, "method": {"diffgen": {**options, **method}}})


def people(n_rows=600, seed=1):
    """Ill from 40 on, all but one in ten."""
    random = seeded(seed)
    age = random.integers(20, 60, n_rows)
    is_ill = (age >= 40) ^ (random.random(n_rows) < 0.1)
    return pa.table(
        {
            "id": np.arange(n_rows).astype(str),
            "age": age,
            "town": np.array(["a", "b", "c"])[random.integers(0, 3, n_rows)],
            "ill": np.where(is_ill, "yes", "no"),
        }
    )


def with_column(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def counts_of(table, policy, seed=3):
    source = open_table(table).hold()
    return private.NoisyRows.of(source, source, policy, seed=seed)


# ---- what is learned from ----------------------------------------------------------------------------------


def test_models_learn_from_counts_and_are_judged_on_held_out_rows():
    found = evaluate(people(), policy_of(), folds=5, models=["decision-tree", "naive-bayes"])
    assert found.protocol["learn_from"] == VALUES
    for model in ("decision-tree", "naive-bayes"):
        assert 0.8 < found.score("ill", model, RELEASE).mean < 0.95
    assert set(found.measures) == {
        "cells", "rows that the counts stand for", "ncp", "ncp of age", "ncp of town",
    }  # fmt: skip


def test_the_counts_of_exact_cuts_are_those_of_the_rows():
    """With so much epsilon that there is hardly any noise, rows in equal cells out."""
    table = people()
    counts = counts_of(table, policy_of(1e6, cuts={"age": [40], "town": ["North", "South"]}))
    column = prepare(table, policy_of(), Setup(**FAST)).cells["ill"]
    cell, label = counts.rows("ill", column)
    age, town, ill = (table[name].to_numpy() for name in ("age", "town", "ill"))
    true_cell = 2 * (age >= 40) + (town == "c")
    assert np.array_equal(np.sort(3 * cell + label), np.sort(3 * true_cell + (ill == "yes")))


def test_rows_and_cells_share_the_codes_of_their_boxes():
    table = people(90)
    counts = counts_of(table, policy_of(1e6, cuts={"age": [40], "town": ["North", "South"]}))
    columns = counts.boxes.columns(VALUES, seeded(0))
    age = columns["age"]["age"].codes
    assert age[:180].tolist() == np.tile((table["age"].to_numpy() >= 40).astype(int), 2).tolist()
    assert age[180:].tolist() == [0, 0, 1, 1]
    assert columns["town"]["town"].codes[180:].tolist() == [0, 1, 0, 1]


def test_cells_that_are_not_declared_are_missing_and_no_error():
    table = with_column(people(), "town", ["a", "nowhere", None] * 200)
    found = evaluate(table, policy_of(), **FAST)
    assert found.score("ill", "decision-tree", RELEASE).mean > 0.7


def test_a_class_that_is_not_declared_is_never_guessed_right():
    table = people()
    table = with_column(table, "ill", ["perhaps"] * 300 + table["ill"].to_pylist()[300:])
    found = evaluate(table, policy_of(), **FAST)
    assert found.score("ill", "decision-tree", RELEASE).mean < 0.5
    assert found.score("ill", "majority", NOTHING).mean == pytest.approx(0.5)


def test_noise_costs_utility():
    loud, quiet = (
        evaluate(people(), policy_of(epsilon), folds=5, models=["decision-tree"]).score(
            "ill", "decision-tree", RELEASE
        )
        for epsilon in (0.01, 10)
    )
    assert quiet.mean > loud.mean + 0.1


# ---- releases that say nothing -----------------------------------------------------------------------------


def all_zero(monkeypatch, keep=()):
    """Every count becomes 0, except in these columns of classes."""
    original = private.draw_release

    def emptied(*given, **options):
        drawn = original(*given, **options)
        drawn.counts[:, [c for c in range(drawn.counts.shape[1]) if c not in keep]] = 0
        return drawn

    monkeypatch.setattr(private, "draw_release", emptied)


@pytest.mark.parametrize("model", ["decision-tree", "naive-bayes", "random-forest", "linear-svm"])
def test_a_release_of_zeros_guesses_the_first_declared_class(monkeypatch, model):
    all_zero(monkeypatch)
    table = people()
    found = evaluate(table, policy_of(), folds=3, models=[model])
    is_yes = np.mean(table["ill"].to_numpy() == "yes")
    assert found.score("ill", model, RELEASE).mean == pytest.approx(is_yes)
    Evaluation.from_json(found.to_json())


def test_a_release_of_one_class_guesses_it(monkeypatch):
    all_zero(monkeypatch, keep=[1])
    table = people()
    found = evaluate(table, policy_of(), **FAST)
    is_no = np.mean(table["ill"].to_numpy() == "no")
    assert found.score("ill", "decision-tree", RELEASE).mean == pytest.approx(is_no)


# ---- randomness and words ----------------------------------------------------------------------------------


def test_the_seed_decides_and_folds_have_noise_of_their_own(monkeypatch):
    seeds, original = [], private.mechanisms.seeded

    def spy(seed):
        seeds.append(seed)
        return original(seed)

    monkeypatch.setattr(private.mechanisms, "seeded", spy)
    one, same, other = (evaluate(people(), policy_of(0.1), **FAST, seed=seed) for seed in (1, 1, 2))
    assert one.to_json() == same.to_json()
    assert one.measures != other.measures
    assert seeds[:3] == seeds[3:6]
    assert len(set(seeds)) == 6


def test_the_text_says_that_figures_are_outside_the_budget():
    found = evaluate(people(), policy_of(), **FAST)
    assert found.is_private
    assert show.as_text(found).endswith(OUTSIDE_THE_BUDGET)


def test_boxes_are_not_made_into_points():
    with pytest.raises(InputError, match="diffgen gives each column one set of values"):
        evaluate(people(), policy_of(), **FAST, learn_from="corners")


def test_a_policy_without_declarations_is_refused_before_the_table_is_read():
    with pytest.raises(PolicyError):
        Policy.parse(POLICY.replace("EPSILON", "1").replace(", step: 1", ""))
