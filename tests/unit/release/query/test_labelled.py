"""Answers from releases without a recoding: the labels of each row say what its box is."""

from __future__ import annotations

import numpy as np
import pytest
from tradeoff_releases import POLICY, people, release_of

from sfumato.policy.predicate import parse
from sfumato.release.query.select import matches
from sfumato.release.release import Release
from sfumato.table.opening import open_table

TABLE = people(80, seed=3)
CONDITIONS = (
    "age >= 31",
    "age is null",
    "age is not null",
    "age between 25 and 38 and job = 'Office'",
    "job = 'farmer' or zip in ('531', '5b')",
    "job <> 'boss'",
    "admitted >= '2024-02-01'",
    "not (age >= 31 or admitted = '2024-01-31')",
)


def policy_of(values: str) -> str:
    return f"{POLICY}output: {{values: {values}}}\n"


@pytest.fixture(
    scope="module", params=[(v, f) for v in ("labels", "bounds", "both") for f in ("csv", "parquet")]
)
def release(request, tmp_path_factory) -> Release:
    """A release as it stands in a folder, by what cells look like and how the file is written."""
    values, file_format = request.param
    folder = tmp_path_factory.mktemp("release") / "out"
    release_of(TABLE, policy_of(values), file_format=file_format).write(folder)
    return Release.read(folder)


@pytest.mark.parametrize("where", CONDITIONS)
def test_bounds_hold_the_true_count_and_the_selection_is_as_large_as_the_upper_one(release, where):
    predicate = parse(where, release.policy.schema)
    true = int(np.count_nonzero(matches(predicate, open_table(TABLE), release.policy.schema)))
    answer = release.query("COUNT(*)", where)
    assert answer.low <= true <= answer.high
    assert answer.low <= answer.value <= answer.high
    assert release.select(where).num_rows == answer.high


@pytest.mark.parametrize("question", ["SUM(age)", "AVG(age)", "MIN(age)", "MAX(age)"])
def test_bounds_of_a_quasi_identifier_hold_the_true_figure(release, question):
    ages = TABLE["age"].drop_null().to_numpy()
    true = {"SUM": ages.sum(), "AVG": ages.mean(), "MIN": ages.min(), "MAX": ages.max()}[question[:3]]
    answer = release.query(question)
    assert answer.low <= true <= answer.high


def test_the_mean_of_a_column_has_two_names(release):
    assert release.query("MEAN(age)") == release.query("AVG(age)")


def test_labels_and_bounds_of_the_same_boxes_give_the_same_answers():
    made = [release_of(TABLE, policy_of(values)) for values in ("labels", "bounds", "both")]
    for where in CONDITIONS:
        first, *others = (release.query("COUNT(*)", where) for release in made)
        for other in others:
            assert (other.low, other.high) == (first.low, first.high)


def test_a_label_that_may_be_missing_is_never_certain_to_be_a_value():
    release = release_of(TABLE)
    n_hidden = sum(label == "*" for label in release.rows.column("age").to_pylist())
    assert n_hidden
    answer = release.query("COUNT(*)", "age >= 0")
    n_missing = TABLE["age"].null_count
    assert answer.high - answer.low >= n_hidden
    assert answer.low <= len(TABLE) - n_missing <= answer.high
    whole = release_of(people(80, seed=3, missing=False))
    assert whole.query("COUNT(*)", "age >= 0") == (80, 80, 80)


@pytest.mark.parametrize("values", ["labels", "bounds", "both"])
def test_a_cell_that_is_published_as_missing_is_missing_for_certain(values):
    """Nothing may be lost, so that all rows are published as they are."""
    whole = policy_of(values).replace("utility-at-least: 0.5", "utility-at-least: 1")
    release = release_of(TABLE, whole)
    assert release.query("COUNT(*)", "age is null") == (1, 1, 1)
    assert release.query("COUNT(*)", "zip is null") == (1, 1, 1)
    assert release.query("COUNT(*)", "age >= 31").low == release.query("COUNT(*)", "age >= 31").high
