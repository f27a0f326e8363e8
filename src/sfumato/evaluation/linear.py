"""Linear models on numbers scaled to [0, 1] and on one column of 0 and 1 for each value of a category."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.distinct import distinct_rows
from sfumato.evaluation.features import Features
from sfumato.evaluation.metrics import Guess


class _Scale:
    """Scales numbers by the range of the training rows; a missing number becomes their mean."""

    def __init__(self, train: Features) -> None:
        is_there = ~np.isnan(train.numbers)
        some = is_there.any(axis=0)
        numbers = np.where(some, train.numbers, 0)
        self.low = np.nanmin(numbers, axis=0, initial=np.inf)
        span = np.nanmax(numbers, axis=0, initial=-np.inf) - self.low
        self.span = np.where(span > 0, span, 1)
        self.mean = np.where(is_there, numbers, 0).sum(axis=0) / np.maximum(is_there.sum(axis=0), 1)

    def columns(self, features: Features) -> Any:
        """A sparse matrix: a wide category costs no more than a narrow one."""
        from scipy.sparse import csr_array, hstack

        numbers = np.where(np.isnan(features.numbers), self.mean, features.numbers)
        every = np.arange(features.n_rows, dtype=np.int32)  # liblinear's type of index
        ones = np.ones(features.n_rows)
        return hstack(
            [
                csr_array((numbers - self.low) / self.span),
                *(
                    csr_array((ones, (every, codes.astype(np.int32))), shape=(features.n_rows, n_values))
                    for codes, n_values in zip(features.categories, features.n_values, strict=True)
                ),
            ],
            format="csr",
        )


class LinearSvm:
    """Like Weka's SMO: C = 1, one machine for each pair of classes, and the machines vote.

    Departs from SMO: errors cost their square, which one Newton method solves in a fraction of a second. A row's place in
    front of a machine becomes a chance by a logistic curve that is fitted to the training rows [PLA99]; of more than two
    classes, each has the mean of its chances against the others.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, train: Features, y: NDArray[np.int64]) -> Self:
        self.classes_, label = np.unique(y, return_inverse=True)
        self.scale_ = _Scale(train)
        first, which = distinct_rows(
            np.column_stack([train.numbers, *(codes.astype(np.float64) for codes in train.categories), label])
        )
        columns, label, weight = self.scale_.columns(train.take(first)), label[first], np.bincount(which)
        self.machines_ = [
            (one, other, self._machine(columns, label, weight, one, other))
            for one, other in combinations(range(len(self.classes_)), 2)
        ]
        return self

    def _machine(
        self, columns: Any, label: NDArray[np.int64], weight: NDArray[np.int64], one: int, other: int
    ) -> tuple[NDArray[np.float64], float, Any]:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        pair = np.flatnonzero((label == one) | (label == other))
        model = LinearSVC(C=1.0, dual=False, intercept_scaling=10.0, random_state=self.seed)
        model.fit(columns[pair], label[pair] == other, sample_weight=weight[pair])
        slope, intercept = model.coef_[0], float(model.intercept_[0])
        place = columns[pair] @ slope + intercept
        curve = LogisticRegression().fit(place[:, None], label[pair] == other, sample_weight=weight[pair])
        return slope, intercept, curve

    def predict(self, test: Features) -> NDArray[np.int64]:
        return self.classify(test).label

    def classify(self, test: Features) -> Guess:
        columns = self.scale_.columns(test)
        votes = np.zeros((test.n_rows, len(self.classes_)), np.int64)
        chances = np.zeros(votes.shape) if self.machines_ else np.ones(votes.shape)
        for one, other, (slope, intercept, curve) in self.machines_:
            place = columns @ slope + intercept
            is_other = place > 0
            votes[:, one] += ~is_other
            votes[:, other] += is_other
            if test.n_rows:
                chances[:, [one, other]] += curve.predict_proba(place[:, None])
        chances /= max(len(self.machines_), 1)
        return Guess(self.classes_[votes.argmax(axis=1)], self.classes_, chances)


class LinearRegression:
    """Least squares; of all solutions that are equally good, the shortest.

    By the normal equations: memory for columns times columns, however many rows.
    """

    def fit(self, train: Features, y: NDArray[np.float64]) -> Self:
        self.scale_ = _Scale(train)
        columns = self.scale_.columns(train)
        middle, mean = np.asarray(columns.mean(axis=0)), float(y.mean())
        products = (columns.T @ columns).toarray() / train.n_rows - np.outer(middle, middle)
        moments = columns.T @ (y - mean) / train.n_rows
        self.slope_ = np.linalg.lstsq(products, moments, rcond=1e-10)[0]
        self.intercept_ = mean - float(middle @ self.slope_)
        return self

    def predict(self, test: Features) -> NDArray[np.float64]:
        return np.asarray(self.scale_.columns(test) @ self.slope_ + self.intercept_)
