"""What the certificate says of the use of a release: how well its targets are predicted, what conditions return.

These are figures of the run. They were computed from the table that went in, and cannot be recomputed from
the release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InputError, enumerate_names, number_of
from sfumato.evaluation.result import ACCURACY, NOTHING, RAW, RELEASE, Evaluation, ModelScore, PairedTest
from sfumato.policy.workload import Aggregate, Classify, Select, Task

# ---- what it is for --------------------------------------------------------------------------------


def purpose(task: Task) -> str:
    """A task, as the end of "made ...".

    >>> purpose(Classify("income", weight=2)), purpose(Select("age >= 40"))
    ('to predict the class income (weight 2)', 'to select the rows where age >= 40')
    >>> purpose(Classify(["income", "smoker"]))
    'to predict the classes income and smoker'
    """
    if isinstance(task, Aggregate):
        return f"to answer {' and '.join(_ANSWERS[word] for word in task.statistics)}"
    weight = "" if task.weight == 1 else f" (weight {task.weight:g})"
    if isinstance(task, Select):
        return f"to select the rows where {task.where}{weight}"
    names = enumerate_names(task.targets)
    jointly = " jointly" if isinstance(task, Classify) and task.joint and len(task.targets) > 1 else ""
    features = f" from {', '.join(task.features)}" if task.features else ""
    kind = ("class", "classes") if isinstance(task, Classify) else ("number", "numbers")
    return f"to predict the {kind[len(task.targets) > 1]} {names}{jointly}{features}{weight}"


_ANSWERS = {"range": "least and greatest values", "mean": "sums and averages"}

# ---- conditions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """A condition: the rows that fulfil it, and those that the release returns for it."""

    where: str
    true: int
    returned: int

    @property
    def surplus(self) -> int:
        return self.returned - self.true


def selections_of(figures: Mapping[str, Any]) -> list[Selection]:
    """The conditions that the certificate has figures of; none if they are not of this kind."""
    try:
        return [
            Selection(str(item["where"]), int(item["true"]), int(item["returned"]))
            for item in figures.get("imprecision", ())
        ]
    except (KeyError, TypeError, ValueError):
        return []


# ---- targets ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One model: its scores from the release and from the raw table, and what the target alone gives."""

    model: str
    release: ModelScore
    raw: ModelScore | None
    nothing: ModelScore | None
    against_raw: PairedTest | None
    against_nothing: PairedTest | None

    @property
    def scores(self) -> tuple[ModelScore, ...]:
        return (self.release,) if self.raw is None else (self.raw, self.release)

    @property
    def kept(self) -> float | None:
        """The share of what raw rows gain over nothing that the release keeps.

        None if they gain no more than the width of their own interval: a share of noise says nothing.
        """
        if self.raw is None or self.nothing is None:
            return None
        sign = 1 if self.release.more_is_better else -1
        gain = sign * (self.raw.mean - self.nothing.mean)
        if self.raw.lacks_interval or gain <= (self.raw.half_width or 0.0):
            return None
        return sign * (self.release.mean - self.nothing.mean) / gain


@dataclass(frozen=True, slots=True)
class TargetUtility:
    """The models of one target; ``nothing`` is the score of a guess that looks at no column."""

    target: str
    metric: str
    lines: tuple[ModelLine, ...]
    nothing: ModelScore | None

    @property
    def is_accuracy(self) -> bool:
        return self.metric == ACCURACY

    def text(self, value: float) -> str:
        """A score for people: accuracy in per cent."""
        return f"{100 * value:.1f} %" if self.is_accuracy else f"{value:,.4g}"

    def with_spread(self, score: ModelScore | None) -> str:
        if score is None:
            return "–"
        spread = score.half_width
        if spread is None:
            return self.text(score.mean)
        return (
            f"{self.text(score.mean)} ± {100 * spread:.1f}"
            if self.is_accuracy
            else f"{self.text(score.mean)} ± {spread:,.2g}"
        )

    @property
    def best(self) -> ModelLine:
        """The model that does best from the release."""
        sign = 1 if self.is_accuracy else -1
        return max(self.lines, key=lambda line: sign * line.release.mean)

    @property
    def sentence(self) -> str:
        """The best model in words."""
        line = self.best
        what = "predicts right in" if self.is_accuracy else "is off by"
        of_rows = " of the rows held out" if self.is_accuracy else " on average, on rows held out"
        parts = [f"From the release, {_article(line.model)} {what} {self.text(line.release.mean)}{of_rows}"]
        if line.raw is not None:
            parts.append(f"from raw rows {self.text(line.raw.mean)}")
        if self.nothing is not None:
            guess = "always saying the most frequent class" if self.is_accuracy else "always saying the mean"
            parts.append(f"{guess} {self.text(self.nothing.mean)}")
        return "; ".join(parts) + "."


@dataclass(frozen=True, slots=True)
class Utility:
    targets: tuple[TargetUtility, ...]
    protocol: str
    measures: tuple[tuple[str, str], ...]

    @property
    def has_intervals(self) -> bool:
        """One table to test on shows no spread."""
        return any(line.release.half_width is not None for target in self.targets for line in target.lines)

    @property
    def lacks_intervals(self) -> bool:
        """Was it measured by a version that stored none?"""
        return any(line.release.lacks_interval for target in self.targets for line in target.lines)


def utility_of(figures: Mapping[str, Any]) -> Utility | None:
    """The evaluation in the certificate; None if there is none, or none that this version reads."""
    if "utility" not in figures:
        return None
    try:
        found = Evaluation.from_dict({**figures["utility"], "policy": {}})
    except (InputError, TypeError):
        return None
    goals = dict.fromkeys((score.target, score.metric) for score in found.scores)
    targets = tuple(_target(found, *goal) for goal in goals)
    measures = tuple((name, f"{value:,.5g}") for name, value in found.measures.items())
    return Utility(tuple(filter(None, targets)), _protocol(found.protocol), measures)


def _target(found: Evaluation, target: str, metric: str) -> TargetUtility | None:
    scores = [score for score in found.scores if (score.target, score.metric) == (target, metric)]
    raw = {score.model: score for score in scores if score.data == RAW}
    nothing = next((score for score in scores if score.data == NOTHING), None)
    tests = {
        (test.model, test.second): test
        for test in found.tests
        if (test.target, test.metric, test.first) == (target, metric, RELEASE)
    }
    lines = tuple(
        ModelLine(
            score.model,
            score,
            raw.get(score.model),
            nothing,
            tests.get((score.model, RAW)),
            tests.get((score.model, NOTHING)),
        )
        for score in scores
        if score.data == RELEASE
    )
    return TargetUtility(target, metric, lines, nothing) if lines else None


def _protocol(protocol: Mapping[str, Any]) -> str:
    """How it was measured, in words.

    >>> _protocol({"folds": 10, "learners": "weka", "rows": 500})
    'Measured by 10-fold cross-validation on 500 rows with models of weka.'
    """
    folds, test_rows, rows = (protocol.get(key) for key in ("folds", "test_rows", "rows"))
    how = f"by {folds}-fold cross-validation" if folds else "on a test table"
    many = f" of {number_of(int(test_rows), 'row')}" if test_rows and not folds else ""
    of_rows = f" on {number_of(int(rows), 'row')}" if rows and folds else ""
    models = f" with models of {protocol['learners']}" if protocol.get("learners") else ""
    return f"Measured {how}{many}{of_rows}{models}."


def _article(model: str) -> str:
    """A model in a sentence.

    >>> _article("decision-tree"), _article("naive-bayes"), _article("linear-svm")
    ('a decision tree', 'naive Bayes', 'a linear SVM')
    """
    words = name_of(model)
    return words if words.startswith(("naive", "linear regression")) else f"a {words}"


def name_of(model: str) -> str:
    """A model by name, for people."""
    return model.replace("-", " ").replace("bayes", "Bayes").replace("svm", "SVM")


def significance(test: PairedTest | None) -> str:
    """A paired test for people."""
    if test is None:
        return "–"
    return "p < .001" if test.p < 0.001 else f"p = {test.p:.3f}".replace("0.", ".", 1)


def published_statistics(statistics: Sequence[str]) -> str:
    """The statistics of groups, in words.

    >>> published_statistics(["range", "mean"])
    'the least and the greatest value and the mean'
    """
    return " and ".join(_STATISTICS[word] for word in statistics)


_STATISTICS = {"range": "the least and the greatest value", "mean": "the mean"}
