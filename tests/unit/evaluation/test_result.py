"""Evaluations as values: the statistics in them, and the way to JSON and back."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.errors import InputError, MissingExtra
from sfumato.evaluation import intervals
from sfumato.evaluation.intervals import make_score, paired_test
from sfumato.evaluation.metrics import ACCURACY, ERROR
from sfumato.evaluation.result import (
    LARGEST_SCORE,
    NOTHING,
    RAW,
    RELEASE,
    Evaluation,
    EvaluationDocument,
    format_with_interval,
)

shares = st.lists(st.floats(0, 1), min_size=2, max_size=12)


def score(test, *, metric=ACCURACY, data=RELEASE, model="decision-tree"):
    return make_score("income", model, data, metric, tuple(test), tuple(test))


FOUND = Evaluation(
    policy={"require": [{"k-anonymity": 5}]},
    protocol={"folds": 2, "seed": 0},
    scores=(score((0.5, 0.75)), score((0.75, 1.0), data=RAW)),
    measures={"average group size": 7.5},
    tests=(
        paired_test(score((0.5, 0.75)), score((0.75, 0.9)), names=(RELEASE, RAW), one_sided=False),
        paired_test(score((0.5, 0.75)), score((0.25, 0.5)), names=(RELEASE, NOTHING), one_sided=True),
    ),
)


@given(st.floats(-60, 60), st.integers(1, 200))
def test_tails_of_students_t_are_scipys(t, freedom):
    assert intervals.two_sided(t, freedom=freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-9)


@given(st.integers(1, 400), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_quantiles_of_students_t_are_scipys(freedom, level):
    assert intervals.quantile(freedom, level=level) == pytest.approx(
        stats.t.ppf((1 + level) / 2, freedom), rel=1e-9
    )


@given(shares)
def test_the_interval_of_a_mean_is_scipys(values):
    half = score(values).half_width
    assert half == pytest.approx(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values), abs=1e-12)


def test_one_test_set_has_no_interval_and_no_test():
    one = score([0.8])
    assert one.half_width is None
    assert paired_test(one, score([0.7]), names=("a", "b"), one_sided=True) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=10))
def test_paired_tests_are_scipys(pairs):
    first, second = zip(*pairs, strict=True)
    differences = [a - b for a, b in pairs]
    if len(set(differences)) == 1 or stats.sem(differences) < 1e-9:
        return
    found = paired_test(score(first), score(second), names=("a", "b"), one_sided=False)
    known = stats.ttest_rel(first, second)
    assert (found.t, found.p) == pytest.approx((known.statistic, known.pvalue), rel=1e-6)
    ahead = paired_test(score(first), score(second), names=("a", "b"), one_sided=True)
    assert ahead.p == pytest.approx(stats.ttest_rel(first, second, alternative="greater").pvalue, rel=1e-6)


def test_one_sided_means_better_whichever_way_the_metric_goes():
    less, more = score((1.0, 2.1), metric=ERROR), score((3.0, 4.0), metric=ERROR)
    assert paired_test(less, more, names=("a", "b"), one_sided=True).p < 0.05
    assert paired_test(more, less, names=("a", "b"), one_sided=True).p > 0.95


def test_a_difference_without_spread_is_certain_and_none_is_no_difference():
    same = paired_test(score((0.5, 0.75)), score((0.25, 0.5)), names=("a", "b"), one_sided=True)
    assert (same.t, same.p, same.difference) == (None, 0.0, 0.25)
    none = paired_test(score((0.5, 0.75)), score((0.5, 0.75)), names=("a", "b"), one_sided=False)
    assert (none.t, none.p, none.difference) == (None, 1.0, 0.0)


def test_an_evaluation_survives_json():
    assert Evaluation.from_json(FOUND.to_json()) == FOUND
    assert Evaluation.from_json(FOUND.to_json().encode()) == FOUND


def test_the_interval_is_stored_and_needs_no_scipy_to_be_read(monkeypatch):
    written = FOUND.to_json()
    monkeypatch.setattr(intervals, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra):
        intervals.half_width((0.5, 0.75))
    assert Evaluation.from_json(written).scores[0].half_width == FOUND.scores[0].half_width > 0


def test_an_evaluation_of_an_earlier_version_is_read_without_its_intervals():
    old = Evaluation.from_dict(without(["scores", 0, "half_width"]))
    first, second = old.scores
    assert (first.half_width, first.lacks_interval, second.lacks_interval) == (None, True, False)
    assert format_with_interval(first) == "62.5%"
    assert not score([0.8]).lacks_interval


def test_the_schema_of_an_evaluation_is_generated():
    schema = EvaluationDocument.model_json_schema()
    assert schema["required"] == ["format", "policy", "protocol", "scores", "measures", "tests"]
    assert schema["$defs"]["ModelScore"]["additionalProperties"] is False


def test_scores_are_found_by_name():
    assert FOUND.score("income", "decision-tree", RAW).mean == 0.875
    assert FOUND.targets == ("income",)
    with pytest.raises(KeyError):
        FOUND.score("income", "decision-tree", NOTHING)


def without(path):
    document = FOUND.as_dict()
    *inner, last = path
    place = document
    for step in inner:
        place = place[step]
    del place[last]
    return document


def with_value(path, value):
    document = json.loads(FOUND.to_json())
    *inner, last = path
    place = document
    for step in inner:
        place = place[step]
    place[last] = value
    return document


@pytest.mark.parametrize(
    "document",
    [
        [],
        without(["protocol"]),
        without(["scores", 0, "test"]),
        without(["tests", 0, "p"]),
        with_value(["format"], 2),
        with_value(["protocol", "rows"], "many"),
        with_value(["protocol", "learners"], {}),
        with_value(["tests", 0, "p"], float("inf")),
        with_value(["tests", 0, "t"], float("-inf")),
        with_value(["more"], 1),
        with_value(["scores", 0, "data"], "elsewhere"),
        with_value(["scores", 0, "metric"], "luck"),
        with_value(["scores", 0, "test"], []),
        with_value(["scores", 0, "test"], ["high"]),
        with_value(["scores", 0, "test"], [True]),
        with_value(["scores", 0, "train"], [math.inf]),
        with_value(["scores", 0, "test"], [1e308, 0.5]),
        with_value(["scores", 0, "train"], [10**400]),
        with_value(["measures", "average group size"], 10**400),
        with_value(["measures", "average group size"], "large"),
        with_value(["tests", 0, "one_sided"], 1),
    ],
)
def test_what_is_no_evaluation_is_refused_in_one_sentence(document):
    with pytest.raises(InputError, match=r"^This is no evaluation that sfumato evaluate wrote: .*\.$"):
        Evaluation.from_dict(document)


@pytest.mark.parametrize("largest", [LARGEST_SCORE, -LARGEST_SCORE])
def test_the_largest_scores_that_are_read_have_an_interval(largest):
    found = Evaluation.from_dict(with_value(["scores", 0, "test"], [largest, 0.5, -largest]))
    assert math.isfinite(found.scores[0].mean)
    assert math.isfinite(intervals.half_width(found.scores[0].test))


@pytest.mark.parametrize("text", [b"\xff", "{", '{"format": NaN}', "[" * 100_000])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(InputError, match="no evaluation"):
        Evaluation.from_json(text)


def test_metrics_of_earlier_versions_are_read_by_their_new_names():
    document = FOUND.as_dict()
    for each in document["scores"]:
        each["metric"] = "mean absolute error"
    assert {each.metric for each in Evaluation.from_dict(document).scores} == {ERROR}
    document["scores"][0]["metric"] = "luck"
    with pytest.raises(InputError, match="must be accuracy, auc, brier, mae or r2"):
        Evaluation.from_dict(document)
