"""The models that judge a release: each against a naive twin, a hand computation or scikit-learn itself."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, MissingExtra
from sfumato.evaluation import distinct, models
from sfumato.evaluation.distinct import distinct_rows
from sfumato.evaluation.features import Features
from sfumato.evaluation.metrics import score_classes
from sfumato.evaluation.models import CLASSIFIERS, REGRESSORS, make_learner
from sfumato.evaluation.naive_bayes import NaiveBayes
from sfumato.evaluation.pruning import leaf_after_pruning, mean_after_pruning, pessimistic_errors
from sfumato.evaluation.trees import _rank_values

seeds = st.integers(0, 2**32)


def features(numbers=None, categories=(), n_values=()):
    n_rows = len(categories[0]) if numbers is None else len(numbers)
    numbers = np.zeros((n_rows, 0)) if numbers is None else np.asarray(numbers, float)
    codes = tuple(np.asarray(column, np.int64) for column in categories)
    names = tuple(f"column {i}" for i in range(numbers.shape[1] + len(codes)))
    return Features(numbers, codes, tuple(n_values), names)


@pytest.fixture(scope="module")
def three_classes():
    """Two numbers and a category tell three classes apart but for a tenth of the rows."""
    random = np.random.default_rng(3)
    numbers, sex = random.uniform(0, 10, (600, 2)), random.integers(0, 3, 600)
    label = np.where(sex == 2, 5, np.where(numbers[:, 0] > 4, 9, 1))
    return features(numbers, [sex], [4]), np.where(random.random(600) < 0.1, 5, label)


# ---- the face -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_learns_and_answers_with_the_codes_it_was_given(name, three_classes):
    points, label = three_classes
    train, test = np.arange(400), np.arange(400, 600)
    model = make_learner(name, seed=1).fit(points.take(train), label[train])
    predicted = model.predict(points.take(test))
    assert predicted.dtype == np.int64
    assert set(predicted) <= {1, 5, 9}
    assert (predicted == label[test]).mean() > 0.85
    assert (model.predict(points.take(train)) == label[train]).mean() > 0.85


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_says_how_likely_each_class_is(name, three_classes):
    points, label = three_classes
    train, test = np.arange(400), np.arange(400, 600)
    guess = make_learner(name, seed=1).fit(points.take(train), label[train]).classify(points.take(test))
    assert guess.classes.tolist() == [1, 5, 9]
    assert guess.chances.shape == (200, 3)
    assert guess.chances.sum(axis=1) == pytest.approx(np.ones(200))
    assert guess.chances.min() >= 0
    most_likely = guess.classes[guess.chances.argmax(axis=1)]
    assert (most_likely == guess.label).mean() > 0.97  # machines vote by their sides, not by their chances
    found = score_classes(label[test], guess, n_classes=3)
    assert found["auc"] > 0.85
    assert found["brier"] < 0.35
    assert len(make_learner(name).fit(points, label).classify(points.take(np.zeros(0, int))).chances) == 0


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_learns(name):
    random = np.random.default_rng(4)
    numbers, sex = random.uniform(0, 10, (600, 2)), random.integers(0, 3, 600)
    y = 3 * numbers[:, 0] + np.array([0, 20, -5])[sex] + random.normal(0, 1, 600)
    points = features(numbers, [sex], [3])
    model = make_learner(name).fit(points.take(np.arange(400)), y[:400])
    assert np.abs(model.predict(points.take(np.arange(400, 600))) - y[400:]).mean() < 2.5


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_fits_repeat_and_do_not_depend_on_codes_of_classes(name, three_classes):
    points, label = three_classes
    once, again = (make_learner(name, seed=8).fit(points, label).predict(points) for _ in range(2))
    assert np.array_equal(once, again)
    renamed = make_learner(name, seed=8).fit(points, label * 3 + 1).predict(points)
    assert np.array_equal(renamed, once * 3 + 1)


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_missing_numbers_unseen_values_and_empty_columns_are_no_trouble(name):
    random = np.random.default_rng(5)
    numbers = np.column_stack([np.arange(60.0), np.full(60, np.nan), np.full(60, 7.0)])
    numbers[random.random(60) < 0.2, 0] = np.nan
    train = features(numbers, [np.arange(60) % 2], [3])
    y = (np.arange(60) > 30).astype(np.int64 if name in CLASSIFIERS else np.float64)
    test = features([[np.nan, 1, 7], [50, np.nan, np.nan], [-90, 2, 8]], [[2, 2, 2]], [3])
    model = make_learner(name).fit(train, y)
    assert np.isfinite(model.predict(test)).all()
    assert np.abs(model.predict(train) - y).mean() < 0.3


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class_is_all_there_is_to_say(name):
    train = features([[1.0], [2.0], [3.0]])
    assert make_learner(name).fit(train, np.array([6, 6, 6])).predict(train).tolist() == [6, 6, 6]


@pytest.mark.parametrize("name", ["decision-tree", "naive-bayes", "random-forest"])
def test_many_classes_on_few_points_are_no_reason_to_complain(name):
    """Warnings are errors here: scikit-learn takes so many classes for numbers."""
    label = np.arange(400) % 40
    model = make_learner(name).fit(features(np.zeros((400, 1))), label)
    assert model.predict(features(np.zeros((1, 1))))[0] in label


@pytest.mark.parametrize("name", REGRESSORS)
def test_without_any_difference_the_mean_is_all_there_is_to_say(name):
    train = features([[1.0], [1.0], [1.0]])
    predicted = make_learner(name).fit(train, np.array([1.0, 2, 6])).predict(train)
    assert predicted.tolist() == pytest.approx([3, 3, 3])


@pytest.mark.parametrize("learners", ["scikit-learn", "weka"])
def test_any_seed_will_do(learners, three_classes):
    points, label = three_classes
    model = make_learner("random-forest", learners=learners, seed=2**127 + 3).fit(points, label)
    assert (model.predict(points) == label).mean() > 0.9


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match=r"There is no model 'decison-tree'. Did you mean 'decision-tree'"):
        make_learner("decison-tree")
    with pytest.raises(
        InputError, match=r"Learners are scikit-learn or weka, not 'wekka'. Did you mean 'weka'"
    ):
        make_learner("naive-bayes", learners="wekka")


def test_a_missing_extra_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "sfumato\[evaluate\]"'):
        make_learner("naive-bayes")


@pytest.mark.parametrize(
    ("numbers", "categories", "n_values"),
    [
        ([[np.inf]], [], []),
        ([[-np.inf]], [], []),
        ([1.0], [], []),
        ([[1.0]], [[1]], [1]),
        ([[1.0]], [[-1]], [1]),
        ([[1.0]], [[0, 0]], [1]),
        ([[1.0]], [[0]], []),
    ],
)
def test_features_that_are_none_are_refused(numbers, categories, n_values):
    codes = tuple(np.array(column) for column in categories)
    with pytest.raises(ValueError):
        Features(np.array(numbers), codes, tuple(n_values), ("a", "b")[: 1 + len(codes)])


def test_there_must_be_something_to_learn_from():
    with pytest.raises(InputError, match="No column is left to learn from"):
        Features(np.zeros((3, 0)), (), (), ())


# ---- rows taken together --------------------------------------------------------------------------------


@given(seeds, st.integers(0, 40), st.integers(1, 4))
def test_distinct_rows_are_those_that_numpy_finds(seed, n_rows, n_columns):
    random = np.random.default_rng(seed)
    matrix = random.choice([0.0, -0.0, 1.5, np.nan, -np.nan], (n_rows, n_columns))
    first, which = distinct_rows(matrix)
    assert len(first) == len({tuple(row) for row in np.nan_to_num(matrix + 0.0, nan=-1).tolist()})
    assert np.array_equal(matrix[first][which], matrix, equal_nan=True)


def test_rows_that_are_scrambled_alike_are_told_apart(monkeypatch):
    honest = distinct._scramble
    tried = []

    def clumsy(words, salt):
        tried.append(salt)
        return np.zeros(words.shape[1], np.uint64) if salt == 0 else honest(words, salt)

    monkeypatch.setattr(distinct, "_scramble", clumsy)
    assert len(distinct_rows(np.array([[1.0], [2.0], [1.0]]))[0]) == 2
    assert tried == [0, 1]


@given(seeds)
def test_a_tree_of_rows_taken_together_is_the_tree_of_the_rows(seed):
    """One column: scikit-learn draws no order of columns, so that both trees are the same to the last test."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    random = np.random.default_rng(seed)
    points = random.integers(0, 12, (80, 1)).astype(float)
    label = random.integers(0, 3, 80)
    y = random.normal(points[:, 0], 2)
    grown: Any = make_learner("decision-tree").fit(features(points), label)
    ours = grown.tree_
    plain = DecisionTreeClassifier(
        criterion="entropy", min_samples_leaf=2, min_impurity_decrease=4 / 80, random_state=0
    ).fit(points, label)
    assert np.array_equal(ours.threshold, plain.tree_.threshold)
    grown = make_learner("regression-tree").fit(features(points), y)
    ours = grown.tree_
    plain = DecisionTreeRegressor(min_samples_leaf=4, random_state=0).fit(points, y)
    assert np.array_equal(ours.threshold, plain.tree_.threshold)


# ---- naive Bayes ----------------------------------------------------------------------------------------


def test_naive_bayes_by_hand():
    """Class 1: share (2+1)/(5+2); value 0 of 3 in it: (2+1)/(2+3). Class 0: (3+1)/(5+2) and (1+1)/(3+3)."""
    train = features(None, [[0, 1, 2, 0, 0]], [3])
    model = NaiveBayes().fit(train, np.array([0, 0, 0, 1, 1]))
    assert np.exp(model.log_prior_).tolist() == pytest.approx([4 / 7, 3 / 7])
    shares = np.exp(model.log_shares_[0])
    assert shares[:3, 0].tolist() == pytest.approx([2 / 6, 2 / 6, 2 / 6])
    assert shares[:3, 1].tolist() == pytest.approx([3 / 5, 1 / 5, 1 / 5])
    assert model.predict(features(None, [[0, 1, 2]], [3])).tolist() == [1, 0, 0]  # 9/35 against 8/42; 3/35


def test_a_missing_number_tells_naive_bayes_nothing():
    numbers = np.arange(40.0)[:, None]
    numbers[::5] = np.nan
    label = (np.arange(40) >= 25).astype(np.int64)
    model = NaiveBayes().fit(features(numbers), label)
    assert len(model.cuts_[0]) == 1
    assert model.predict(features([[np.nan], [39.0]])).tolist() == [0, 1]  # the larger class, then the cell's
    without = NaiveBayes().fit(features(numbers[~np.isnan(numbers[:, 0])]), label[~np.isnan(numbers[:, 0])])
    assert np.array_equal(model.log_shares_[0], without.log_shares_[0])


# ---- categories in trees --------------------------------------------------------------------------------


def bits(labels):
    count = np.bincount(labels)
    count = count[count > 0]
    return -(count * np.log2(count / count.sum())).sum() if len(labels) else 0.0


@given(seeds, st.integers(2, 6))
def test_one_threshold_parts_a_category_as_well_as_any_two_sets(seed, n_values):
    random = np.random.default_rng(seed)
    codes = random.integers(0, n_values, 40)
    label = (random.random(40) < random.random(n_values)[codes]).astype(np.int64)
    target = np.eye(2)[label]
    order = _rank_values(codes, n_values, target, target.mean(axis=0))[codes]
    by_threshold = min(bits(label[order <= t]) + bits(label[order > t]) for t in order)
    by_any_set = min(
        bits(label[np.isin(codes, some)]) + bits(label[~np.isin(codes, some)])
        for size in range(n_values)
        for some in itertools.combinations(range(n_values), size)
    )
    assert by_threshold == pytest.approx(by_any_set)


def test_three_classes_are_ordered_by_what_differs_most():
    codes = np.repeat(np.arange(4), 30)
    label = np.concatenate([np.repeat([0, 1, 2], [c, 25 - c, 5]) for c in (25, 17, 8, 0)])
    order = _rank_values(np.repeat(np.arange(4), 30), 5, np.eye(3)[label], np.eye(3)[label].mean(axis=0))
    assert np.all(np.diff(order[:4]) > 0) or np.all(np.diff(order[:4]) < 0)
    assert order[4] == 0  # does not occur: in the middle
    assert len(codes) == len(label)


@pytest.mark.parametrize("name", ["decision-tree", "random-forest"])
def test_numbers_beyond_single_precision_are_as_large_as_can_be(name):
    train = features(np.repeat([[-1e300], [0.0], [1e300]], 20, axis=0))
    label = np.repeat([0, 1, 0], 20)
    assert np.array_equal(make_learner(name).fit(train, label).predict(train), label)


# ---- pruning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "expected"), [(6, 0.206), (9, 0.143), (1, 0.750)])
def test_pessimistic_errors_are_those_of_the_book(n_rows, expected):
    """[Q93, page 42]: U25%(0, 6) = 0.206, U25%(0, 9) = 0.143, U25%(0, 1) = 0.750."""
    assert pessimistic_errors(np.array([n_rows]), np.array([0]))[0] / n_rows == pytest.approx(
        expected, abs=5e-4
    )


def test_with_some_errors_the_approximation_is_close_to_the_binomial_law():
    from scipy.stats import beta

    for n_rows, n_errors in [(16, 1), (100, 7), (1000, 400), (50, 48)]:
        exact = beta.ppf(0.75, n_errors + 1, n_rows - n_errors)
        found = pessimistic_errors(np.array([float(n_rows)]), np.array([float(n_errors)]))[0] / n_rows
        assert found == pytest.approx(exact, abs=0.012)
    assert pessimistic_errors(np.array([4.0]), np.array([4.0]))[0] == 4  # never more than all


def random_tree(random, n_splits):
    """Children as scikit-learn numbers them, parents first, with counts of two classes in every node."""
    left, right, rows = [-1], [-1], [random.integers(0, 2, 60)]
    for _ in range(n_splits):
        leaves = [node for node in range(len(left)) if left[node] < 0 and len(rows[node]) > 1]
        node = int(random.choice(leaves))
        at = int(random.integers(1, len(rows[node])))
        ordered = np.sort(rows[node]) if random.random() < 0.5 else rows[node]
        left[node], right[node] = len(left), len(left) + 1
        left, right = [*left, -1, -1], [*right, -1, -1]
        rows += [ordered[:at], ordered[at:]]
    return np.array(left), np.array(right), rows


@given(seeds, st.integers(0, 12))
def test_pruning_by_classes_is_the_recursion_written_out(seed, n_splits):
    left, right, rows = random_tree(np.random.default_rng(seed), n_splits)
    counts = np.array([np.bincount(labels, minlength=2) for labels in rows], float)

    def prune(node, imposed=None):
        """(errors, {node: class}); ``imposed`` is the class of a leaf above."""
        label = int(counts[node].argmax()) if imposed is None else imposed
        n = counts[node].sum()
        as_leaf = pessimistic_errors(np.array([n]), np.array([n - counts[node].max()]))[0]
        if left[node] < 0:
            return as_leaf, {node: label}
        parts = [prune(child, imposed) for child in (left[node], right[node])]
        below = parts[0][0] + parts[1][0]
        if as_leaf <= below + 0.1:
            return as_leaf, {node: label} | prune(left[node], label)[1] | prune(right[node], label)[1]
        return below, {node: label} | parts[0][1] | parts[1][1]

    assert (
        dict(enumerate(counts.argmax(axis=1)[leaf_after_pruning(left, right, counts)].tolist()))
        == prune(0)[1]
    )


@given(seeds, st.integers(0, 12))
def test_pruning_by_means_is_the_recursion_written_out(seed, n_splits):
    random = np.random.default_rng(seed)
    left, right, rows = random_tree(random, n_splits)
    leaves = [node for node in range(len(left)) if left[node] < 0]
    leaf = np.concatenate([np.full(len(rows[node]), node) for node in leaves])
    y = random.normal(random.normal(0, 3, len(left))[leaf], 1)

    def below(node):
        return [node] if left[node] < 0 else below(left[node]) + below(right[node])

    def error(values):
        return ((values - values.mean()) ** 2).sum()

    def pessimistic(squares, n, v):
        return math.sqrt(squares / n) * ((n + 2 * v) / (n - v) if n > v else 10)

    def prune(node, imposed=None):
        """(squared error, parameters, {node: mean})"""
        own = y[np.isin(leaf, below(node))]
        mean = own.mean() if imposed is None else imposed
        if left[node] < 0:
            return error(own), 1, {node: mean}
        one, other = (prune(child, imposed) for child in (left[node], right[node]))
        squares, v = one[0] + other[0], one[1] + other[1] + 1
        if pessimistic(error(own), len(own), 1) <= pessimistic(squares, len(own), v) + 1e-12:
            return error(own), 1, {node: mean} | prune(left[node], mean)[2] | prune(right[node], mean)[2]
        return squares, v, {node: mean} | one[2] | other[2]

    found = dict(enumerate(mean_after_pruning(left, right, leaf, y).tolist()))
    assert found == pytest.approx(prune(0)[2])


def test_noise_is_pruned_and_a_step_is_kept():
    random = np.random.default_rng(6)
    points = features(random.uniform(0, 1, (800, 3)))
    noise: Any = make_learner("decision-tree").fit(points, (random.random(800) < 0.2).astype(np.int64))
    assert len(set(noise.class_)) <= 2
    assert (noise.predict(points) == 0).mean() > 0.95
    step = np.where(points.numbers[:, 1] > 0.5, 10.0, 0.0) + random.normal(0, 1, 800)
    tree: Any = make_learner("regression-tree").fit(points, step)
    assert np.abs(tree.predict(points) - np.where(points.numbers[:, 1] > 0.5, 10, 0)).mean() < 0.5
    assert len(set(tree.predict(points))) < 40 < len(set(tree.tree_.value[:, 0, 0]))


# ---- the forest and linear models -----------------------------------------------------------------------


def test_the_forest_is_as_good_as_scikit_learns_own():
    from sklearn.ensemble import RandomForestClassifier

    random = np.random.default_rng(7)
    numbers = np.round(random.uniform(0, 10, (3000, 4)))
    label = ((numbers[:, 0] > numbers[:, 1]) ^ (random.random(3000) < 0.15)).astype(np.int64)
    points, train, test = features(numbers), np.arange(2000), np.arange(2000, 3000)
    ours = make_learner("random-forest").fit(points.take(train), label[train]).predict(points.take(test))
    plain = RandomForestClassifier(40, max_features=3, random_state=0).fit(numbers[train], label[train])
    assert (ours == label[test]).mean() == pytest.approx(plain.score(numbers[test], label[test]), abs=0.025)


def test_the_seed_of_a_forest_matters(three_classes):
    points, label = three_classes
    test = features(np.random.default_rng(1).uniform(0, 10, (500, 2)), [np.arange(500) % 3], [4])
    one, other = (
        make_learner("random-forest", seed=seed).fit(points, label).predict(test) for seed in (1, 2)
    )
    assert not np.array_equal(one, other)


def test_linear_regression_is_least_squares():
    random = np.random.default_rng(9)
    numbers = random.normal(50, 20, (200, 2))
    numbers = np.column_stack([numbers, numbers @ [1, -2]])  # the third says nothing new
    sex = random.integers(0, 3, 200)
    y = random.normal(0, 1, 200) + numbers[:, 0] * 4 + sex
    train = features(numbers, [sex], [3])
    design = np.column_stack([numbers, np.eye(3)[sex], np.ones(200)])
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert np.allclose(make_learner("linear-regression").fit(train, y).predict(train), expected, atol=1e-6)


def test_linear_svm_counts_rows_taken_together():
    """Twice the rows is twice the cost of errors: not what one copy of each row gives."""
    random = np.random.default_rng(10)
    numbers = random.normal(0, 1, (60, 2))
    label = (numbers[:, 0] + random.normal(0, 1, 60) > 0).astype(np.int64)
    thrice = np.repeat(np.arange(60), 3)
    one: Any = make_learner("linear-svm").fit(features(numbers), label)
    more: Any = make_learner("linear-svm").fit(features(numbers[thrice]), label[thrice])
    from sklearn.svm import LinearSVC

    scaled = (numbers - numbers.min(axis=0)) / np.ptp(numbers, axis=0)
    plain = LinearSVC(dual=False, intercept_scaling=10).fit(scaled[thrice], label[thrice])
    assert more.machines_[0][2][0] == pytest.approx(plain.coef_[0], rel=1e-3)
    assert one.machines_[0][2][0] != pytest.approx(plain.coef_[0], rel=1e-3)
