"""The models that learn from a release, each by its name, all with the same two verbs: ``fit`` and ``predict``.

>>> import numpy as np
>>> train = Features(np.array([[1.0], [2.0], [8.0], [9.0]]), (), (), ("age",))
>>> model = make_learner("naive-bayes").fit(train, np.array([0, 0, 1, 1]))
>>> model.predict(train).tolist()
[0, 0, 1, 1]

They are scikit-learn's, made to resemble the models of Weka that [LDR08, section 4] used, and fast enough to be
fitted in every fold; with ``learners="weka"`` they are Weka's own.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol, Self

from numpy.typing import NDArray

from sfumato.errors import InputError, MissingExtra, did_you_mean
from sfumato.evaluation.features import Features
from sfumato.evaluation.linear import LinearRegression, LinearSvm
from sfumato.evaluation.metrics import Guess
from sfumato.evaluation.naive_bayes import NaiveBayes
from sfumato.evaluation.trees import DecisionTree, RandomForest, RegressionTree
from sfumato.evaluation.weka import WekaLearner

CLASSIFIERS = ("decision-tree", "naive-bayes", "random-forest", "linear-svm")
REGRESSORS = ("linear-regression", "regression-tree")
LEARNERS = ("scikit-learn", "weka")


class Learner(Protocol):
    """A model: it is fitted once, and then predicts.

    ``y`` of a classifier is int64 codes of classes (any that occur), of a regressor float64 numbers; predictions
    are of the same kind. No row of ``y`` may be missing.
    """

    def fit(self, train: Features, y: NDArray[Any]) -> Self: ...
    def predict(self, test: Features) -> NDArray[Any]: ...


class Classifier(Learner, Protocol):
    """A model of classes, which also says how likely it takes each class to be."""

    def classify(self, test: Features) -> Guess: ...


_MAKERS: dict[str, Callable[[int], Any]] = {
    "decision-tree": lambda seed: DecisionTree(seed=seed),
    "naive-bayes": lambda _: NaiveBayes(),
    "random-forest": lambda seed: RandomForest(seed=seed),
    "linear-svm": lambda seed: LinearSvm(seed=seed),
    "linear-regression": lambda _: LinearRegression(),
    "regression-tree": lambda seed: RegressionTree(seed=seed),
}


def make_learner(name: str, *, learners: str = "scikit-learn", seed: int = 0) -> Any:
    """The model of that name, not fitted yet: a learner or a classifier; ``learners`` says whose it is."""
    if name not in _MAKERS:
        raise InputError(
            f"There is no model {name!r}.{did_you_mean(name, _MAKERS)} There are: {', '.join(_MAKERS)}."
        )
    if learners not in LEARNERS:
        raise InputError(
            f"Learners are {' or '.join(LEARNERS)}, not {learners!r}.{did_you_mean(learners, LEARNERS)}"
        )
    seed %= 2**31  # as large as either library takes
    if learners == "weka":
        return WekaLearner(name, seed=seed)
    if not (find_spec("sklearn") and find_spec("scipy")):
        raise MissingExtra("evaluate", "Learning from a release")
    return _MAKERS[name](seed)
