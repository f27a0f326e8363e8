r"""How well predictions meet the truth: a number for each metric, of one model in one part of the rows.

Of classes:

- **accuracy**: the share of rows whose class is predicted right;
- **auc**: the area under the ROC curve, the chance that a row of a class is given a higher chance of it than a row of
  another class, half of that if both are equal. Of several classes it is the mean over the classes, each against all
  others (macro one-vs-rest). A part with one class alone has nothing to tell apart: 1/2;
- **brier**: the mean squared distance of the chances from the truth, :math:`(p - y)^2` of two classes, and
  :math:`\sum_c (p_c - y_c)^2` of several [BRI50]. It is 0 at best, and 1 at worst of two classes (2 of several).

Of numbers:

- **mae**: the mean absolute error;
- **r2**: the share of the squared distance from the mean that predictions explain, below 0 if the mean does better.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ACCURACY, AUC, BRIER, ERROR, R2 = "accuracy", "auc", "brier", "mae", "r2"
OF_CLASSES, OF_NUMBERS = (ACCURACY, AUC, BRIER), (ERROR, R2)
"""The metrics of a target; the first leads: pictures and advice are about it."""
METRICS = (*OF_CLASSES, *OF_NUMBERS)
LEADING = (ACCURACY, ERROR)
LESS_IS_BETTER = (BRIER, ERROR)

NAMES = {
    ACCURACY: "accuracy",
    AUC: "area under the ROC curve",
    BRIER: "Brier score",
    ERROR: "mean absolute error",
    R2: "R²",
}
"""The metrics as people call them."""

OLD_NAMES = {"mean absolute error": ERROR}
"""What evaluations of earlier versions call a metric."""


class Guess(NamedTuple):
    """A class for each row (or one for all), and the chance of each of some ``classes`` (or the same for all rows)."""

    label: Ints
    classes: Ints
    chances: Floats  # (rows, classes) or (classes,)

    def replace_where(self, chosen: NDArray[np.bool_], other: Guess) -> Guess:
        """A guess for each row, but for those ``chosen``, for which the ``other`` is made."""
        classes = np.union1d(self.classes, other.classes)
        chances = np.zeros((len(chosen), len(classes)))
        for guess, rows in ((self, ~chosen), (other, chosen)):
            of_row = np.broadcast_to(guess.chances, (len(chosen), len(guess.classes)))[rows]
            chances[np.ix_(rows, np.searchsorted(classes, guess.classes))] = of_row
        return Guess(np.where(chosen, other.label, self.label), classes, chances)


def score_classes(truth: Ints, guess: Guess, *, n_classes: int) -> dict[str, float]:
    """The metrics of predicted classes, codes of which the target has ``n_classes``.

    >>> truth, chances = np.array([0, 1, 1, 0]), np.array([[0.9, 0.1], [0.4, 0.6], [0.6, 0.4], [0.8, 0.2]])
    >>> found = score_classes(truth, Guess(np.array([0, 1, 0, 0]), np.array([0, 1]), chances), n_classes=2)
    >>> found["accuracy"], found["auc"], round(found["brier"], 4)
    (0.75, 1.0, 0.1425)
    """
    known, column = np.unique(np.append(truth, guess.classes), return_inverse=True)
    chances = np.zeros((len(truth), len(known)))
    chances[:, column[len(truth) :]] = guess.chances
    is_class = column[: len(truth), None] == np.arange(len(known))
    halves = 2 if n_classes <= 2 else 1
    return {
        ACCURACY: float(np.mean(truth == guess.label)),
        AUC: mean_auc(is_class, chances),
        BRIER: math.fsum(((chances - is_class) ** 2).sum(axis=1)) / len(truth) / halves,
    }


def mean_auc(is_class: NDArray[np.bool_], chances: Floats) -> float:
    """The mean over the classes of which there are rows and others; 1/2 if there are none."""
    areas = [
        auc(own, column)
        for own, column in zip(is_class.T, chances.T, strict=True)
        if 0 < own.sum() < len(own)
    ]
    return math.fsum(areas) / len(areas) if areas else 0.5


def auc(is_class: NDArray[np.bool_], chance: Floats) -> float:
    """The chance that a row of a class has a higher number than one of the others, half of that if they are equal.

    By ranks: the sum of those of the class, less what it would be if they were the lowest.

    >>> auc(np.array([True, False, False]), np.array([0.5, 0.5, 0.1]))
    0.75
    """
    _, at, count = np.unique(chance, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2
    n = int(is_class.sum())
    return float((rank[at[is_class]].sum() - n * (n + 1) / 2) / (n * (len(is_class) - n)))


def score_numbers(truth: Floats, guess: Any) -> dict[str, float]:
    """The metrics of predicted numbers. R² of numbers that are all the same is 0.

    >>> score_numbers(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    {'mae': 0.3333333333333333, 'r2': 0.5}
    """
    away = math.fsum((truth - guess) ** 2)
    spread = math.fsum((truth - truth.mean()) ** 2)
    return {ERROR: float(np.mean(np.abs(truth - guess))), R2: 1 - away / spread if spread > 0 else 0.0}
