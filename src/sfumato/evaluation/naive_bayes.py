"""Naive Bayes with numbers cut into cells: the same predictions as Weka's ``NaiveBayes -D``.

Numbers are cut by :func:`sfumato.encoding.discretize.mdl_cuts`, never into bins of equal width. 1 is added to every
count. Missing numbers are ignored.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.discretize import cells, mdl_cuts
from sfumato.evaluation.features import Features
from sfumato.evaluation.metrics import Guess


class NaiveBayes:
    """A class is as likely as its share, times the share of the row's cell within the class for each column.

    >>> train = Features(np.zeros((4, 0)), (np.array([0, 0, 1, 1]),), (2,), ("sex",))
    >>> NaiveBayes().fit(train, np.array([7, 7, 9, 7])).predict(train).tolist()
    [7, 7, 7, 7]
    """

    def fit(self, train: Features, y: NDArray[np.int64]) -> Self:
        self.classes_, label = np.unique(y, return_inverse=True)
        self.cuts_ = [mdl_cuts(numbers, label) for numbers in train.numbers.T]
        count = np.bincount(label, minlength=len(self.classes_))
        self.log_prior_ = np.log((count + 1) / (len(y) + len(self.classes_)))
        self.log_shares_ = [
            _log_shares(codes, n_values, label, len(self.classes_)) for codes, n_values in self._encode(train)
        ]
        return self

    def predict(self, test: Features) -> NDArray[np.int64]:
        return self.classify(test).label

    def classify(self, test: Features) -> Guess:
        likely = np.tile(self.log_prior_, (test.n_rows, 1))
        for (codes, _), shares in zip(self._encode(test), self.log_shares_, strict=True):
            likely += shares[codes]
        chances = np.exp(likely - likely.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        return Guess(self.classes_[likely.argmax(axis=1)], self.classes_, chances)

    def _encode(self, features: Features) -> list[tuple[NDArray[np.int64], int]]:
        """Every column as codes with the number of values; a missing number has the code after the last."""
        numbers = [
            (cells(values, cuts), len(cuts) + 1)
            for values, cuts in zip(features.numbers.T, self.cuts_, strict=True)
        ]
        return [*numbers, *zip(features.categories, features.n_values, strict=True)]


def _log_shares(
    codes: NDArray[np.int64], n_values: int, label: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64]:
    """(values, classes), with a last line of zeros for what is missing."""
    count = np.bincount(codes * n_classes + label, minlength=(n_values + 1) * n_classes)
    smoothed = count.reshape(n_values + 1, n_classes)[:n_values] + 1
    return np.vstack([np.log(smoothed / smoothed.sum(axis=0)), np.zeros(n_classes)])
