"""The result of an evaluation: values that are written to JSON and read back, without any extra.

``sfumato evaluate`` writes one, ``sfumato publish --evaluation`` takes it into the certificate's figures,
and the report draws it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, field_validator

from sfumato import notebook
from sfumato.errors import InputError, number_of
from sfumato.evaluation.metrics import (
    ACCURACY,
    AUC,
    BRIER,
    LEADING,
    LESS_IS_BETTER,
    METRICS,
    NAMES,
    OLD_NAMES,
)
from sfumato.policy.document import Policy
from sfumato.policy.options import kinds_in
from sfumato.release.strict_json import (
    ABSENT,
    DocumentError,
    StrictDocument,
    check,
    dump,
    parse,
    wrong,
    wrong_as_a_whole,
)
from sfumato.verify.risk_utility.claims import WEIGHTED, is_above_one

FORMAT = 1

RELEASE, RAW, NOTHING = "release", "raw", "nothing"
"""What a model learned from: recoded rows, the rows themselves, or the targets alone."""

RISKS = ("mean risk before", "mean risk", "greatest risk before", "greatest risk")
"""Measures of boxes that are chosen row by row."""

LARGEST_SCORE = 1e140
"""The squares of such scores can still be summed."""

OUTSIDE_THE_BUDGET = (
    "Figures computed on the real data are outside the privacy budget of a differentially private method: "
    "keep them to yourself. They are never stored in a release."
)
"""Said wherever such a method is evaluated or compared."""


def _check_data(data: str) -> str:
    if data not in (RELEASE, RAW, NOTHING):
        raise wrong(f"must be {RELEASE}, {RAW} or {NOTHING}")
    return data


def _check_metric(metric: str) -> str:
    metric = OLD_NAMES.get(metric, metric)
    if metric not in METRICS:
        raise wrong(f"must be {', '.join(METRICS[:-1])} or {METRICS[-1]}")
    return metric


def _check_finite(value: float) -> float:
    if not math.isfinite(value):
        raise wrong("must hold finite numbers")
    return value


def _check_score(value: float) -> float:
    if not -LARGEST_SCORE <= value <= LARGEST_SCORE:
        raise wrong(f"must hold numbers of at most {LARGEST_SCORE:g}")
    return value


Finite = Annotated[float, AfterValidator(_check_finite)]
Folds = Annotated[tuple[Annotated[float, AfterValidator(_check_score)], ...], Field(strict=False)]
"""A number for each fold."""


class ModelScore(StrictDocument):
    """How well one model predicts one target by one metric: a number per fold, on held-out rows and on others.

    ``half_width`` is that of the 95% interval of the mean by Student's t. It is None for a single test set, which shows
    no spread, and in evaluations of versions that did not store it.

    >>> score = ModelScore(
    ...     target="y", model="m", data=RELEASE, metric=ACCURACY, test=(0.8, 0.9), train=(1.0, 1.0), half_width=0.6
    ... )
    >>> round(score.mean, 3), score.train_mean
    (0.85, 1.0)
    """

    target: str
    model: str
    data: Annotated[str, AfterValidator(_check_data)]
    metric: Annotated[str, AfterValidator(_check_metric)]
    test: Annotated[Folds, Field(min_length=1)]
    train: Folds
    half_width: Finite | None = None

    @property
    def mean(self) -> float:
        """Over the folds, on held-out rows."""
        return mean_of(self.test)

    @property
    def train_mean(self) -> float:
        return mean_of(self.train)

    @property
    def lacks_interval(self) -> bool:
        """Is it of several folds, and of a version that stored no interval?"""
        return len(self.test) > 1 and self.half_width is None

    @property
    def more_is_better(self) -> bool:
        return self.metric not in LESS_IS_BETTER

    @property
    def is_leading(self) -> bool:
        """Is it of the metric that pictures and advice are about?"""
        return self.metric in LEADING


class PairedTest(StrictDocument):
    """A paired t-test over the folds: ``difference`` is the mean of ``first`` less ``second``.

    ``one_sided`` asks whether ``first`` is better, else whether the two differ at all. ``t`` is None where
    the difference is the same in every fold.
    """

    target: str
    model: str
    metric: str
    first: str
    second: str
    difference: Finite
    t: Finite | None
    p: Finite
    one_sided: bool


class ProtocolDocument(StrictDocument):
    """How an evaluation was made: what is known of it has its type, and more may be said."""

    model_config = ConfigDict(extra="allow")

    folds: int = ABSENT
    test_rows: int = ABSENT
    rows: int = ABSENT
    seed: int = ABSENT
    learners: str = ABSENT
    learn_from: str = ABSENT


class EvaluationDocument(StrictDocument):
    """An evaluation as it is written."""

    format: int
    policy: dict[str, Any]
    protocol: ProtocolDocument
    scores: Annotated[tuple[ModelScore, ...], Field(strict=False)]
    measures: dict[str, Finite]
    tests: Annotated[tuple[PairedTest, ...], Field(strict=False)]

    @field_validator("format")
    @classmethod
    def _check_format(cls, number: int) -> int:
        if number != FORMAT:
            raise wrong_as_a_whole(f"format is {number}, and this version reads {FORMAT} only")
        return number


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """What releases by a policy are worth for its workload, measured on held-out rows: what :func:`evaluate` returns.

    ``protocol`` says how it was measured (folds or test rows, seed, learners, how boxes became points),
    ``measures`` are means over the folds of figures of the training releases.
    """

    policy: Mapping[str, Any]
    protocol: Mapping[str, Any]
    scores: tuple[ModelScore, ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)
    tests: tuple[PairedTest, ...] = ()

    def __repr__(self) -> str:
        targets = ", ".join(self.targets) or "no target"
        return f"<Evaluation of {targets}: {number_of(len(self.scores), 'score')}, {self.held_out}>"

    def _repr_html_(self) -> str:
        lines = [
            (
                score.target,
                f"{score.model}: {NAMES[score.metric]}",
                *(
                    format_with_interval(self.score(score.target, score.model, data, score.metric))
                    for data in (RELEASE, RAW)
                ),
                *(format_with_interval(other) for other in self.scores
                  if (other.target, other.data, other.metric) == (score.target, NOTHING, score.metric)),
            )
            for score in self.scores
            if score.data == RELEASE
        ]  # fmt: skip
        names = ("Target", "Model", "Release", "Raw data", "Nothing")
        measures = [(name, f"{value:,.4g}") for name, value in self.measures.items()]
        return notebook.card(
            "An evaluation",
            " ".join(self.remarks) or f"Models learned from releases, {self.held_out}.",
            [("rows", f"{self.protocol['rows']:,}")] if "rows" in self.protocol else [],
            notebook.table(names, lines) if lines else "",
            notebook.table(("Of the training releases", ""), measures) if measures else "",
        )

    @property
    def held_out(self) -> str:
        """Which rows it was tested on, in a few words."""
        how = self.protocol
        if "folds" in how:
            return f"tested on {how['folds']} folds"
        return (
            f"tested on {number_of(how['test_rows'], 'further row')}" if "test_rows" in how else "not tested"
        )

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(score.target for score in self.scores))

    @property
    def is_private(self) -> bool:
        """Is it of a differentially private method? Then its figures are outside the privacy budget."""
        return any(options.spends_epsilon for options in kinds_in(self.policy.get("method")))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be known to read its figures."""
        is_weighted = is_above_one(*(self.measures.get(name, 0.0) for name in RISKS))
        return (WEIGHTED,) * is_weighted + (OUTSIDE_THE_BUDGET,) * self.is_private

    def score(self, target: str, model: str, data: str, metric: str | None = None) -> ModelScore:
        """The one score of these names; without a metric, of the leading one."""
        for score in self.scores:
            if (score.target, score.model, score.data) == (target, model, data) and (
                score.metric == metric or (metric is None and score.is_leading)
            ):
                return score
        raise KeyError((target, model, data, metric))

    def check_policy(self, policy: Policy) -> None:
        """Raise if a release by that policy may not hold these figures."""
        if policy.is_private:
            raise InputError(
                "A differentially private release holds no evaluation: it is computed from rows outside epsilon. "
                "Leave it out, and keep it to yourself."
            )
        if Policy.from_dict(self.policy, None) != policy:
            raise InputError(
                "The evaluation was made with another policy than this release; evaluate with this one first."
            )

    def check_rows(self, n_rows: int) -> None:
        """Raise if it was made of a table with another number of rows."""
        if "folds" in self.protocol and n_rows != self.protocol.get("rows", n_rows):
            raise InputError(
                "The evaluation was made of another table than this release; evaluate this one first."
            )

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "policy": dict(self.policy),
            "protocol": dict(self.protocol),
            "scores": [score.model_dump(mode="json") for score in self.scores],
            "measures": dict(self.measures),
            "tests": [test.model_dump(mode="json") for test in self.tests],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """The evaluation in plain mappings and lists; an InputError says what is wrong with other ones.

        >>> Evaluation.from_dict(Evaluation({}, {"folds": 10}).as_dict())
        <Evaluation of no target: 0 scores, tested on 10 folds>
        """
        try:
            read = check(EvaluationDocument, data)
        except DocumentError as error:
            raise _no_evaluation(error) from None
        return cls(read.policy, dump(read.protocol), read.scores, read.measures, read.tests)

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Evaluation:
        try:
            data = parse(text)
        except DocumentError as error:
            raise _no_evaluation(error) from None
        return cls.from_dict(data)


def _no_evaluation(why: DocumentError) -> InputError:
    return InputError(f"This is no evaluation that sfumato evaluate wrote: {why}.")


def format_with_interval(score: ModelScore) -> str:
    """A mean and half the width of its interval.

    >>> score = ModelScore(target="y", model="m", data=RELEASE, metric=ACCURACY, test=(0.8, 0.9), train=())
    >>> format_with_interval(score), format_with_interval(score.model_copy(update={"half_width": 0.635}))
    ('85.0%', '85.0% ± 63.5')
    """
    half = score.half_width
    if half is None:
        return format_score(score.mean, score.metric)
    spread = f"{100 * half:.1f}" if score.metric == ACCURACY else f"{half:.3g}"
    if score.metric in (AUC, BRIER):
        spread = f"{half:.3f}"
    return f"{format_score(score.mean, score.metric)} ± {spread}"


def format_score(value: float, metric: str) -> str:
    if metric == ACCURACY:
        return f"{100 * value:.1f}%"
    return f"{value:.3f}" if metric in (AUC, BRIER) else f"{value:,.4g}"


def mean_of(values: Iterable[float]) -> float:
    held = tuple(values)
    return math.fsum(held) / len(held) if held else math.nan
