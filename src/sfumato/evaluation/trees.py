"""Decision trees, regression trees and forests: grown by scikit-learn on distinct rows, pruned as Weka prunes.

scikit-learn's trees take numbers only, so each value of a category becomes a number: the share of the class among its
rows, or the mean of the target if that is a number. At the root, one threshold then divides the values as well as the
best division into two sets could [BFOS84, section 9.4]. With more than two classes it is the first principal component
of the shares [CHH99].
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.distinct import distinct_rows
from sfumato.evaluation.features import Features
from sfumato.evaluation.metrics import Guess
from sfumato.evaluation.pruning import leaf_after_pruning, mean_after_pruning
from sfumato.randomness import seeded

Points = NDArray[np.float32]
"""(rows, columns): what scikit-learn's trees learn from, in the only type that they take"""


LEAST_BITS = 4
"""Bits that a split must save in describing the classes of its rows. J48 charges log2 of the number of distinct values
instead; without any charge, trees learn noise (measured: docs/decisions/0009)."""

LARGEST = float(np.finfo(np.float32).max)
"""scikit-learn's trees hold numbers in single precision: larger numbers are taken for this one."""


class DecisionTree:
    """Like J48: best information gain, at least 2 rows in a leaf, pessimistic pruning [Q93, chapter 4]."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, train: Features, y: NDArray[np.int64]) -> Self:
        from sklearn.tree import DecisionTreeClassifier

        self.classes_, label = np.unique(y, return_inverse=True)
        self.orders_ = _rank_categories(train, np.eye(len(self.classes_))[label])
        points, label, which = _merge_equal(_as_points(train, self.orders_), label)
        weight = np.bincount(which)
        model = DecisionTreeClassifier(
            criterion="entropy",
            min_impurity_decrease=LEAST_BITS / float(weight.sum()),
            min_weight_fraction_leaf=_as_share(2, weight),
            random_state=self.seed,
        )
        self.tree_ = _fit(model, points, label, weight).tree_
        counts = np.rint(self.tree_.value[:, 0, :] * self.tree_.weighted_n_node_samples[:, None])
        leaf = leaf_after_pruning(self.tree_.children_left, self.tree_.children_right, counts)
        self.class_ = counts.argmax(axis=1)[leaf]
        self.chances_ = (counts / counts.sum(axis=1, keepdims=True))[leaf]
        return self

    def predict(self, test: Features) -> NDArray[np.int64]:
        return self.classify(test).label

    def classify(self, test: Features) -> Guess:
        leaf = self.tree_.apply(_as_points(test, self.orders_))
        return Guess(self.classes_[self.class_[leaf]], self.classes_, self.chances_[leaf])


class RandomForest:
    """Like Weka's: 40 unpruned trees, each on as many rows as the table has, drawn with replacement.

    Each split is the best of log2(columns) + 1 random columns, and the mean of the trees' class shares decides. A tree
    learns from distinct rows, each weighted by how often it was drawn.
    """

    def __init__(self, *, seed: int = 0, n_trees: int = 40) -> None:
        self.seed, self.n_trees = seed, n_trees

    def fit(self, train: Features, y: NDArray[np.int64]) -> Self:
        from sklearn.tree import DecisionTreeClassifier

        self.classes_, label = np.unique(y, return_inverse=True)
        self.orders_ = _rank_categories(train, np.eye(len(self.classes_))[label])
        points, label, which = _merge_equal(_as_points(train, self.orders_), label)
        random = seeded(self.seed)
        n_columns = int(np.log2(points.shape[1])) + 1
        self.trees_ = []
        for _ in range(self.n_trees):
            drawn = np.bincount(which[random.integers(0, train.n_rows, train.n_rows)], minlength=len(points))
            is_drawn = drawn > 0
            model = DecisionTreeClassifier(max_features=n_columns, random_state=int(random.integers(2**31)))
            _fit(model, points[is_drawn], label[is_drawn], drawn[is_drawn])
            self.trees_.append((model.classes_, model.tree_))
        return self

    def predict(self, test: Features) -> NDArray[np.int64]:
        return self.classify(test).label

    def classify(self, test: Features) -> Guess:
        points = _as_points(test, self.orders_)
        first, which = distinct_rows(points.astype(np.float64))
        shares = np.zeros((len(first), len(self.classes_)))
        for classes, tree in self.trees_:
            shares[:, classes] += tree.predict(points[first]).reshape(len(first), len(classes))
        chances = shares / shares.sum(axis=1, keepdims=True)
        return Guess(self.classes_[shares.argmax(axis=1)[which]], self.classes_, chances[which])


class RegressionTree:
    """Least squares, at least 4 rows in a leaf, the mean in a leaf, pruned as M5 prunes [WW97]."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, train: Features, y: NDArray[np.float64]) -> Self:
        from sklearn.tree import DecisionTreeRegressor

        self.orders_ = _rank_categories(train, y[:, None])
        points = _as_points(train, self.orders_)
        first, which = distinct_rows(points.astype(np.float64))
        weight = np.bincount(which)
        mean = np.bincount(which, y) / weight
        model = DecisionTreeRegressor(min_weight_fraction_leaf=_as_share(4, weight), random_state=self.seed)
        self.tree_ = model.fit(points[first], mean, sample_weight=weight).tree_
        leaf = self.tree_.apply(points[first])[which]
        self.mean_ = mean_after_pruning(self.tree_.children_left, self.tree_.children_right, leaf, y)
        return self

    def predict(self, test: Features) -> NDArray[np.float64]:
        predicted: NDArray[np.float64] = self.mean_[self.tree_.apply(_as_points(test, self.orders_))]
        return predicted


def _fit(model: Any, points: Points, label: NDArray[np.int64], weight: NDArray[np.int64]) -> Any:
    """Fit without scikit-learn's warning about many classes: a release has few points, and each stands for many rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The number of unique classes", category=UserWarning)
        return model.fit(points, label, sample_weight=weight)


def _as_share(n_rows: int, weight: NDArray[np.int64]) -> float:
    """``n_rows`` of all as a share, a hair less so that rounding never asks for one row more; at most one half."""
    return min(0.5, (n_rows - 0.001) / float(weight.sum()))


def _merge_equal(
    points: Points, label: NDArray[np.int64]
) -> tuple[Points, NDArray[np.int64], NDArray[np.int64]]:
    """Each pair of a point and a label once, and for every row which pair it is."""
    first, which = distinct_rows(np.column_stack([points, label]))
    return points[first], label[first], which


def _as_points(features: Features, orders: list[NDArray[np.float64]]) -> Points:
    ordered = [order[codes] for order, codes in zip(orders, features.categories, strict=True)]
    return np.column_stack([features.numbers, *ordered]).clip(-LARGEST, LARGEST).astype(np.float32)


def _rank_categories(train: Features, target: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """For each category, the number that stands for each of its values; ``target`` (rows, 1 or classes)."""
    middle = target.mean(axis=0)
    return [
        _rank_values(codes, n_values, target, middle)
        for codes, n_values in zip(train.categories, train.n_values, strict=True)
    ]


def _rank_values(
    codes: NDArray[np.int64], n_values: int, target: NDArray[np.float64], middle: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A value that does not occur stands in the middle."""
    n_rows = np.bincount(codes, minlength=n_values)
    sums = np.column_stack([np.bincount(codes, column, n_values) for column in target.T])
    away = sums / np.maximum(n_rows, 1)[:, None] - (n_rows > 0)[:, None] * middle
    if away.shape[1] <= 2:
        return away[:, -1]
    _, directions = np.linalg.eigh((away * n_rows[:, None]).T @ away)
    first_component: NDArray[np.float64] = away @ directions[:, -1]
    return first_component
