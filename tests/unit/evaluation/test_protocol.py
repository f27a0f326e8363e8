"""The protocol: what is held out, what is learned from, what is compared, and what is refused."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import evaluate, methods
from sfumato.errors import InputError, PolicyError, PromiseError, TableError
from sfumato.evaluation import measures, protocol, show
from sfumato.evaluation.experiment import Setup, fold_of_rows, goals_of, prepare
from sfumato.evaluation.metrics import ACCURACY, ERROR
from sfumato.evaluation.result import NOTHING, RAW, RELEASE, Evaluation
from sfumato.examples.agrawal import agrawal
from sfumato.policy.document import Policy
from sfumato.randomness import seeded

POLICY = """
attributes:
  id:   {role: identifier}
  age:  {role: quasi-identifier, type: number}
  town: {role: quasi-identifier}
  wage: {role: other, type: number}
  ill:  {role: sensitive}
require: [k-anonymity: 5]
workload: [classify: ill]
"""
FAST = {"folds": 3, "models": ["decision-tree"]}


def people(n_rows=120, seed=1):
    """Ill from 40 on, all but one in ten; the wage rises with age."""
    random = seeded(seed)
    age = random.integers(20, 60, n_rows)
    is_ill = (age >= 40) ^ (random.random(n_rows) < 0.1)
    return pa.table(
        {
            "id": np.arange(n_rows).astype(str),
            "age": age,
            "town": np.array(["a", "b", "c"])[random.integers(0, 3, n_rows)],
            "wage": 100.0 * age + random.integers(0, 100, n_rows),
            "ill": np.where(is_ill, "yes", "no"),
        }
    )


def policy_with(**changes):
    return Policy.from_dict({**Policy.parse(POLICY).as_dict(), **changes})


def with_column(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values))


# ---- held out ------------------------------------------------------------------------------------------


@given(st.integers(2, 200), st.integers(2, 10), st.integers(0, 99))
def test_folds_and_strata_are_as_even_as_can_be(n_rows, folds, seed):
    strata = seeded(seed).integers(0, 3, n_rows)
    of_row = fold_of_rows(n_rows, folds, seed, strata)
    for rows in (slice(None), *(strata == label for label in range(3))):
        sizes = np.bincount(of_row[rows], minlength=folds)
        assert sizes.max() - sizes.min() <= 1


def with_people(table, n_people):
    """The table with a column of people, each of whom has several rows, and its policy."""
    person = [f"p{i * 7 % n_people}" for i in range(table.num_rows)]
    policy = policy_with(
        attributes={**Policy.parse(POLICY).as_dict()["attributes"], "who": {"role": "identifier"}}, unit="who"
    )
    return table.append_column("who", pa.array(person)), policy


def test_a_person_is_never_in_training_and_test_at_once():
    table, policy = with_people(people(90), 20)
    held_out = []
    for division in prepare(table, policy, Setup(**FAST)).divisions:
        train, test = (set(part.column("who").to_pylist()) for part in (division.train, division.test))
        assert not train & test
        held_out += division.test.column("id").to_pylist()
    assert sorted(held_out) == sorted(table.column("id").to_pylist())


def test_people_who_are_in_both_tables_are_refused():
    table, policy = with_people(people(90), 20)
    with pytest.raises(InputError, match="20 people of 'who' are in both tables"):
        prepare(table, policy, Setup(**{**FAST, "test": table}))


def test_a_release_of_people_can_be_evaluated():
    table, policy = with_people(people(90), 20)
    assert evaluate(table, policy, **FAST).scores


def test_recodings_are_fitted_to_the_training_part_alone(monkeypatch):
    fitted, original = [], methods.partition

    def spy(source, policy, **options):
        fitted.append(set(source.column("id").to_pylist()))
        return original(source, policy, **options)

    monkeypatch.setattr(methods, "partition", spy)
    table, policy = people(60), Policy.parse(POLICY)
    evaluate(table, policy, **FAST)
    divisions = prepare(table, policy, Setup(**FAST)).divisions
    assert fitted == [set(division.train.column("id").to_pylist()) for division in divisions]
    held_out = [division.test.column("id").to_pylist() for division in divisions]
    assert sorted(row for rows in held_out for row in rows) == sorted(table.column("id").to_pylist())
    assert all(not ids & set(rows) for ids, rows in zip(fitted, held_out, strict=True))


def test_what_cannot_be_learned_is_not_learned():
    """Labels by the toss of a coin: perfect in training, no better than chance on held-out rows."""
    table = people(400)
    coin = np.where(seeded(5).random(400) < 0.5, "yes", "no")
    table = with_column(with_column(table, "ill", coin), "age", np.arange(400))
    found = evaluate(table, policy_with(require=[{"k-anonymity": 1}]), folds=5, models=["random-forest"])
    for data in (RELEASE, RAW):
        score = found.score("ill", "random-forest", data)
        assert score.train_mean > 0.9
        assert 0.4 < score.mean < 0.6


def test_what_can_be_learned_is_learned():
    found = evaluate(people(400), Policy.parse(POLICY), folds=5, models=["decision-tree"])
    release, raw = (found.score("ill", "decision-tree", data) for data in (RELEASE, RAW))
    nothing = found.score("ill", "majority", NOTHING)
    assert nothing.mean < 0.6
    assert 0.8 < release.mean < 0.95
    assert 0.8 < raw.mean < 0.95
    test = next(test for test in found.tests if test.second == NOTHING)
    assert test.one_sided
    assert test.p < 0.001
    assert test.difference == pytest.approx(release.mean - nothing.mean)


def test_a_release_of_one_group_is_worth_nothing():
    found = evaluate(people(), policy_with(require=[{"k-anonymity": 80}]), **FAST)
    release, nothing = found.score("ill", "decision-tree", RELEASE), found.score("ill", "majority", NOTHING)
    assert release.test == nothing.test
    assert release.train == nothing.train
    assert found.measures["average group size"] == 80
    lost = {name: value for name, value in found.measures.items() if name.startswith(("ncp", "entropy loss"))}
    assert list(lost.values()) == pytest.approx([1.0] * 6)
    assert found.measures["query error"] > 0


def test_the_workload_pays_off():
    """InfoGain Mondrian beats Median Mondrian on Agrawal's C2 [LDR08, section 4.4]."""
    table = pa.Table.from_batches(agrawal(2000, function="C2", seed=7))
    names = [name for name in table.column_names if name != "class"]
    attributes = {name: {"role": "quasi-identifier", "type": "number"} for name in names}
    given_policy = {
        "attributes": {**attributes, "class": {"role": "other"}},
        "require": [{"k-anonymity": 25}],
        "workload": [{"classify": "class"}],
    }
    informed = Policy.from_dict(given_policy)
    experiment = prepare(table, informed, Setup(folds=5, models=["decision-tree"]))
    with_gain, _ = protocol.score_release(experiment, informed, lambda: None)
    median, _ = protocol.score_release(experiment, replace(informed, workload=()), lambda: None)
    assert with_gain[0].mean > median[0].mean + 0.05


def test_a_table_to_test_on_takes_the_place_of_folds():
    found = evaluate(people(120), Policy.parse(POLICY), test=people(50, seed=2), models=["decision-tree"])
    assert found.protocol["test_rows"] == 50
    assert "folds" not in found.protocol
    score = found.score("ill", "decision-tree", RELEASE)
    assert (len(score.test), score.half_width, found.tests) == (1, None, ())
    assert score.test[0] * 50 == pytest.approx(round(score.test[0] * 50))
    assert "± half" not in show.as_text(found)


def test_test_rows_outside_of_what_was_fitted_are_judged_too():
    test = with_column(with_column(people(50, seed=2), "age", [300] * 50), "town", ["elsewhere"] * 50)
    found = evaluate(people(120), Policy.parse(POLICY), test=test, models=["decision-tree", "naive-bayes"])
    assert len(found.scores) == 15


def test_the_same_seed_gives_the_same_evaluation_and_another_seed_other_folds():
    policy = Policy.parse(POLICY)
    one, same, other = (evaluate(people(), policy, **FAST, seed=seed) for seed in (1, 1, 2))
    assert one.to_json() == same.to_json()
    assert one.scores != other.scores


# ---- what is learned from ------------------------------------------------------------------------------


@pytest.mark.parametrize("learn_from", ["corners", "midpoint", "sample"])
def test_boxes_become_points_in_every_way(learn_from):
    found = evaluate(people(400), Policy.parse(POLICY), **FAST, learn_from=learn_from)
    assert found.protocol["learn_from"] == learn_from
    assert found.score("ill", "decision-tree", RELEASE).mean > 0.7


def test_shared_cuts_are_learned_from_as_they_are():
    policy = policy_with(method="tds")
    found = evaluate(people(400), policy, **FAST)
    assert found.protocol["learn_from"] == "values"
    assert found.score("ill", "decision-tree", RELEASE).mean > 0.7
    with pytest.raises(InputError, match="corners is for boxes"):
        evaluate(people(), policy, **FAST, learn_from="corners")


def test_features_beyond_the_quasi_identifier_enter_as_they_are():
    """One group of all rows tells nothing, but the wage beside it gives the age away."""
    blind = policy_with(require=[{"k-anonymity": 250}], workload=[{"classify": "ill"}])
    seeing = policy_with(
        require=[{"k-anonymity": 250}],
        workload=[{"classify": {"target": "ill", "features": ["town", "wage"]}}],
    )
    found = [
        evaluate(people(400), policy, **FAST).score("ill", "decision-tree", RELEASE)
        for policy in (blind, seeing)
    ]
    assert found[0].mean < 0.6
    assert found[1].mean > 0.8
    assert goals_of(seeing, None)[0].features == ("town", "wage")


def test_targets_are_never_among_the_features():
    policy = policy_with(workload=[{"classify": "ill"}, {"regress": "wage"}])
    goals = goals_of(policy, None)
    assert [(goal.target, goal.features, goal.metric) for goal in goals] == [
        ("ill", ("age", "town"), ACCURACY),
        ("wage", ("age", "town"), ERROR),
    ]


def test_every_target_of_a_task_is_judged_by_the_models_of_its_kind():
    policy = policy_with(
        attributes={
            **Policy.parse(POLICY).as_dict()["attributes"],
            "ill": {"role": "other"},
            "id": {"role": "other"},
        },
        workload=[
            {"classify": {"targets": ["ill", "id"], "joint": True}},
            {"regress": "wage"},
            {"classify": "ill"},
        ],
    )
    goals = goals_of(policy, ["naive-bayes", "regression-tree"])
    assert [(goal.target, goal.models) for goal in goals] == [
        ("ill", ("naive-bayes",)),
        ("id", ("naive-bayes",)),
        ("wage", ("regression-tree",)),
    ]


def test_two_tasks_on_one_column_are_judged_apart():
    """A class is compared with the most frequent one and a number with the mean, each task with its own raw rows."""
    tasks = [
        {"classify": "wage"},
        {"regress": "wage"},
        {"classify": {"target": "wage", "features": ["town"]}},
    ]
    table = with_column(people(), "wage", np.tile([100, 300, 100, 900], 30))
    found = evaluate(
        table, policy_with(workload=tasks), folds=2, models=["decision-tree", "linear-regression"]
    )
    names = ("wage as a class from age, town", "wage as a number", "wage as a class from town")
    assert found.targets == names
    for test in found.tests:
        nothing = next(
            s for s in found.scores if (s.target, s.data, s.metric) == (test.target, NOTHING, test.metric)
        )
        raw = found.score(test.target, test.model, RAW, test.metric)
        second = nothing if test.second == NOTHING else raw
        expected = found.score(test.target, test.model, RELEASE, test.metric).mean - second.mean
        assert test.difference == pytest.approx(expected)
    assert all(name in show.as_text(found) for name in names)


@pytest.mark.parametrize("kind", [pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.large_string()])
def test_texts_are_held_out_however_arrow_stores_them(kind):
    table = people()
    stored = table.set_column(2, "town", table.column("town").cast(kind))
    assert evaluate(stored, Policy.parse(POLICY), **FAST) == evaluate(table, Policy.parse(POLICY), **FAST)


def test_regression_is_judged_by_the_mean_absolute_error():
    found = evaluate(people(400), policy_with(workload=[{"regress": "wage"}]), folds=4)
    assert [(score.model, score.metric) for score in found.scores if score.data == RELEASE] == [
        ("linear-regression", "mae"),
        ("linear-regression", "r2"),
        ("regression-tree", "mae"),
        ("regression-tree", "r2"),
    ]
    assert -0.1 < found.score("wage", "mean", NOTHING, "r2").mean <= 0
    assert 0 < found.score("wage", "linear-regression", RELEASE, "r2").mean < 1
    nothing, raw = found.score("wage", "mean", NOTHING), found.score("wage", "linear-regression", RAW)
    release = found.score("wage", "linear-regression", RELEASE)
    assert raw.mean == pytest.approx(25, rel=0.2)  # what is left is uniform from 0 to 100
    assert raw.mean < release.mean < nothing.mean
    ages = people(400).column("wage").to_numpy()
    assert nothing.mean == pytest.approx(np.abs(ages - ages.mean()).mean(), rel=0.02)


def test_rows_whose_target_is_missing_are_neither_learned_from_nor_judged():
    table = people(90)
    labels = table.column("ill").to_pylist()
    holes = with_column(table, "ill", [None if i % 3 == 0 else label for i, label in enumerate(labels)])
    policy = policy_with(
        attributes={**Policy.parse(POLICY).as_dict()["attributes"], "ill": {"role": "other"}},
        workload=[{"classify": "ill"}],
    )
    experiment = prepare(holes, policy, Setup(folds=3, models=["decision-tree"]))
    is_missing = experiment.cells["ill"].is_missing
    assert sum((~is_missing[division.test_rows]).sum() for division in experiment.divisions) == 60
    found = evaluate(holes, policy, **FAST)
    assert {round(20 * value, 9) % 1 for value in found.score("ill", "decision-tree", RAW).test} == {0.0}


def test_classes_are_judged_by_three_metrics_and_nothing_is_a_guess_by_shares():
    found = evaluate(people(400), Policy.parse(POLICY), **FAST)
    metrics = [score.metric for score in found.scores if score.data == RELEASE]
    assert metrics == ["accuracy", "auc", "brier"]
    assert set(found.score("ill", "majority", NOTHING, "auc").test) == {0.5}
    share = np.mean(np.array(people(400).column("ill").to_pylist()) == "yes")
    brier = found.score("ill", "majority", NOTHING, "brier").mean
    assert brier == pytest.approx(share * (1 - share), abs=0.01)
    for data in (RELEASE, RAW):
        assert found.score("ill", "decision-tree", data, "auc").mean > 0.6
        assert found.score("ill", "decision-tree", data, "brier").mean < brier
    with pytest.raises(KeyError):
        found.score("ill", "decision-tree", RAW, "mae")


def test_a_passed_column_is_learned_from_where_the_workload_says_so():
    tells = people(400).append_column("hint", people(400).column("ill"))
    attributes = {**Policy.parse(POLICY).as_dict()["attributes"], "hint": {"role": "other"}}
    told = [{"classify": {"target": "ill", "features": ["age", "hint"]}}]
    found = evaluate(tells, policy_with(attributes=attributes, workload=told), **FAST)
    assert found.score("ill", "decision-tree", RELEASE).mean == 1.0
    alone = [{"classify": "ill"}]
    found = evaluate(tells, policy_with(attributes=attributes, workload=alone), **FAST)
    assert found.score("ill", "decision-tree", RELEASE).mean < 1.0


# ---- general measures ----------------------------------------------------------------------------------


def test_dates_that_pass_are_learned_from_as_they_are_shifted():
    """The day tells who is ill; shifted by up to 1,000 days it tells little."""
    table = people(240)
    days = [10 if ill == "yes" else 0 for ill in table["ill"].to_pylist()]
    table = table.append_column("seen", pa.array(days, pa.int32()).cast(pa.date32()))
    document = Policy.parse(POLICY).as_dict()
    document["workload"] = [{"classify": {"target": "ill", "features": ["seen"]}}]
    document["attributes"]["seen"] = {"role": "other", "type": "date"}
    plain = evaluate(table, Policy.from_dict(document), **FAST)
    document["attributes"]["seen"]["shift"] = {"within": 1000, "per": "id"}
    shifted = evaluate(table, Policy.from_dict(document), **FAST)
    for found in (plain, shifted):
        assert found.score("ill", "decision-tree", RAW).mean == 1
    assert plain.score("ill", "decision-tree", RELEASE).mean == 1
    assert shifted.score("ill", "decision-tree", RELEASE).mean < 0.9


def test_measures_are_of_the_training_release():
    table = people(120)
    policy = policy_with(
        workload=[{"classify": "ill"}, {"regress": "wage"}, {"select": {"where": "age >= 40 and town = 'a'"}}]
    )
    found = evaluate(table, policy, test=people(40, seed=9), models=["decision-tree"])
    groups = methods.partition(prepare(table, policy, Setup()).source, policy)
    group = groups.of_row()
    ill = (table.column("ill").to_numpy(zero_copy_only=False) == "yes").astype(int)
    assert found.measures["average group size"] == 120 / len(groups.size)
    assert found.measures["conditional entropy of ill"] == measures.conditional_entropy(group, ill)
    assert found.measures["imprecision of age >= 40 and town = 'a'"] >= 0
    assert set(found.measures) == {
        "average group size",
        "discernibility",
        *(
            f"{what}{of}"
            for what in ("ncp", "entropy loss", "query error")
            for of in ("", " of age", " of town")
        ),
        "conditional entropy of ill",
        "imprecision of age >= 40 and town = 'a'",
    }
    both = evaluate(table, policy, test=people(40, seed=9), models=["decision-tree", "regression-tree"])
    expected = measures.mean_squared_error(group, table.column("wage").to_numpy())
    assert both.measures["weighted mean squared error of wage"] == pytest.approx(expected)


def test_without_a_target_there_are_measures_and_no_model():
    found = evaluate(people(), policy_with(workload=[]), folds=3)
    assert (found.scores, found.tests) == ((), ())
    assert found.measures["average group size"] >= 5
    assert "no target to predict" in show.as_text(found)


def test_the_core_install_reads_an_evaluation_and_measures_without_learners():
    """No scikit-learn, no scipy, no matplotlib: a target is refused in one sentence, the rest works."""
    text = """
import sys
for name in ("sklearn", "scipy", "matplotlib"):
    sys.modules[name] = None
import pyarrow as pa
from sfumato.evaluation.protocol import evaluate
from sfumato.errors import MissingExtra
from sfumato.policy.document import Policy
rows = pa.table({"age": list(range(30)), "ill": ["no", "yes"] * 15})
text = "{attributes: {age: {role: quasi-identifier, type: number}, ill: {role: other}}, require: [], workload: %s}"
assert evaluate(rows, Policy.parse(text % "[]"), folds=2).measures
try:
    evaluate(rows, Policy.parse(text % "[classify: ill]"), folds=2, models=["random-forest"])
except MissingExtra as error:
    print(error)
"""
    assert importlib.util.find_spec("sklearn")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert 'pip install "sfumato[evaluate]"' in done.stdout


# ---- refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "options", "error", "sentence"),
    [
        ({}, {"folds": 1}, InputError, "at least 2 folds"),
        ({}, {"folds": 121}, InputError, "120 rows cannot be divided into 121 folds"),
        ({}, {"models": ["desicion-tree"]}, InputError, "Did you mean 'decision-tree'?"),
        ({}, {"seed": -1}, InputError, "at least 0"),
        ({}, {"models": []}, InputError, "No model is named"),
        ({}, {"models": ["linear-regression"]}, InputError, "regress, but no task"),
        ({}, {"learn_from": "middle"}, InputError, "not 'middle'"),
        ({}, {"learners": "wecka"}, InputError, "Did you mean 'weka'?"),
        ({"require": [{"k-anonymity": 70}]}, {"folds": 2}, PromiseError, "60 of 120 rows"),
        ({"require": [{"k-anonymity": 70}]}, {"folds": 2}, PromiseError, "70-anonymity"),
        ({"workload": [{"classify": "town"}]}, {}, PolicyError, "'town' is both target and quasi-identifier"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(changes, options, error, sentence):
    with pytest.raises(error) as refused:
        evaluate(people(), policy_with(**changes), **options)
    assert sentence in str(refused.value)


def test_an_identifier_is_no_target():
    with pytest.raises(PolicyError, match="role identifier and is not published"):
        policy_with(workload=[{"classify": "id"}])


@pytest.mark.parametrize("value", ["yes", None])
def test_a_class_with_one_value_is_no_target(value):
    table = with_column(people(), "ill", pa.array([value] * 120, pa.string()))
    with pytest.raises(TableError, match="'ill' is a target, but all its cells hold one value"):
        evaluate(table, Policy.parse(POLICY), **FAST)


@pytest.mark.parametrize("largest", [1e200, 1.7e308, -1.7e308])
def test_numbers_that_no_model_can_learn_from_are_refused(largest):
    wages = [*people().column("wage").to_pylist()[1:], largest]
    policy = policy_with(workload=[{"regress": "wage"}])
    with pytest.raises(TableError, match="'wage' holds numbers beyond"):
        evaluate(with_column(people(), "wage", wages), policy, folds=2)


def test_a_target_that_a_part_lacks_is_refused():
    test = with_column(people(10), "ill", pa.array([None] * 10, pa.string()))
    with pytest.raises(TableError, match="missing in all 10 rows"):
        evaluate(people(), Policy.parse(POLICY), test=test)


def test_a_class_that_a_training_part_has_only_one_value_of_is_guessed():
    labels = ["yes"] + ["no"] * 119
    found = evaluate(with_column(people(), "ill", labels), policy_with(require=[{"k-anonymity": 5}]), folds=2)
    assert min(found.score("ill", "linear-svm", RAW).test) >= 0.9


def test_a_table_to_test_on_needs_the_columns():
    with pytest.raises(TableError, match="has no column 'town'"):
        evaluate(people(), Policy.parse(POLICY), test=people(20).drop_columns(["town"]))


# ---- shown ---------------------------------------------------------------------------------------------


def test_the_text_shows_every_mean_and_the_table_every_fold():
    found = evaluate(people(400), policy_with(workload=[{"classify": "ill"}, {"regress": "wage"}]), folds=3)
    text = show.as_text(found)
    assert text.startswith(
        "3 folds of 400 rows; learned from corners by scikit-learn; seed 0.\n\nill: accuracy"
    )
    for score in found.scores:
        assert show.format_with_interval(score) in text
    assert "wage: mean absolute error on held-out rows ± half of the 95% interval; lower is better" in text
    table = show.as_table(found)
    assert table.num_rows == 3 * len(found.scores) + len(found.measures)
    assert table.slice(0, 3).column("test").to_pylist() == list(found.scores[0].test)


def test_progress_counts_every_model():
    told = []
    evaluate(people(), Policy.parse(POLICY), **FAST, progress=lambda *step: told.append(step))
    assert told == [("evaluating", i, 6) for i in range(7)]


def test_numbers_of_numpy_are_plain_in_the_protocol():
    found = evaluate(
        people(), Policy.parse(POLICY), models=["naive-bayes"], folds=np.int64(3), seed=np.int64(1)
    )
    assert Evaluation.from_json(found.to_json()) == found


def test_evaluations_of_real_policies_survive_json():
    found = evaluate(people(), Policy.parse(POLICY), **FAST)
    assert Evaluation.from_json(found.to_json()) == found


@pytest.mark.data
@pytest.mark.slow
def test_adult_lies_between_nothing_and_the_raw_data(data_folder):
    policy = Policy.parse(
        """
attributes:
  age: {role: quasi-identifier, type: number}
  workclass: {role: quasi-identifier, missing-values: ["?"]}
  fnlwgt: {role: drop}
  education: {role: quasi-identifier}
  education-num: {role: drop}
  marital-status: {role: quasi-identifier}
  occupation: {role: quasi-identifier, missing-values: ["?"]}
  relationship: {role: drop}
  race: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  capital-gain: {role: quasi-identifier, type: number}
  capital-loss: {role: drop}
  hours-per-week: {role: quasi-identifier, type: number}
  native-country: {role: drop}
  salary-class: {role: other}
require: [k-anonymity: 10]
workload: [classify: salary-class]
"""
    )
    found = evaluate(data_folder / "adult" / "adult.csv.gz", policy, folds=3, models=["decision-tree"])
    release, raw = (found.score("salary-class", "decision-tree", data).mean for data in (RELEASE, RAW))
    assert found.score("salary-class", "majority", NOTHING).mean == pytest.approx(0.7607, abs=0.001)
    assert 0.80 < release < raw < 0.87
