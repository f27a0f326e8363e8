"""What an evaluation found: plain values that go to JSON and back, and need no extra to be read.

``sfumato evaluate`` writes one, ``sfumato publish --evaluation`` takes it into the certificate's figures,
and the report draws it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato import notebook
from sfumato.errors import InputError, number_of
from sfumato.evaluation import student

FORMAT = 1

RELEASE, RAW, NOTHING = "release", "raw", "nothing"
"""What a model learned from: recoded rows, the rows themselves, or the targets alone."""

ACCURACY, ERROR = "accuracy", "mean absolute error"

LARGEST_SCORE = 1e140
"""The squares of such scores can still be summed."""

OUTSIDE_THE_BUDGET = (
    "Figures computed on the real data are outside the privacy budget of a differentially private method: "
    "keep them to yourself. They are never stored in a release."
)
"""Said wherever such a method is evaluated or compared."""


@dataclass(frozen=True, slots=True)
class Score:
    """How well one model predicts one target: a number per fold, on rows held out and on those learned from.

    >>> score = Score("income", "decision-tree", RELEASE, ACCURACY, test=(0.8, 0.9), train=(0.9, 1.0))
    >>> round(score.mean, 3), round(score.half_width, 3)
    (0.85, 0.635)
    """

    target: str
    model: str
    data: str
    metric: str
    test: tuple[float, ...]
    train: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the folds, on held-out rows."""
        return _mean(self.test)

    @property
    def train_mean(self) -> float:
        return _mean(self.train)

    @property
    def half_width(self) -> float | None:
        """Of the 95% interval of the mean by Student's t; None for a single test set, which shows no spread."""
        return student.half_width(self.test)

    @property
    def more_is_better(self) -> bool:
        return self.metric == ACCURACY

    def as_dict(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "model": self.model,
            "data": self.data,
            "metric": self.metric,
            "test": list(self.test),
            "train": list(self.train),
        }


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A paired t-test over the folds: ``difference`` is the mean of ``first`` less ``second``.

    ``one_sided`` asks whether ``first`` is better, else whether the two differ at all. ``t`` is None where
    the difference is the same in every fold.
    """

    target: str
    model: str
    metric: str
    first: str
    second: str
    difference: float
    t: float | None
    p: float
    one_sided: bool

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def paired_test(first: Score, second: Score, *, names: tuple[str, str], one_sided: bool) -> PairedTest | None:
    """Does ``first`` differ from (one-sided: beat) ``second``, fold by fold? None with fewer than two folds.

    >>> high = Score("y", "m", RELEASE, ACCURACY, (0.9, 0.8, 0.9), ())
    >>> low = Score("y", "m", NOTHING, ACCURACY, (0.5, 0.6, 0.6), ())
    >>> round(paired_test(high, low, names=("release", "nothing"), one_sided=True).p, 4)
    0.0175
    """
    differences = [a - b for a, b in zip(first.test, second.test, strict=True)]
    if len(differences) < 2:
        return None
    difference, spread = _mean(differences), student.standard_error(differences)
    t = None if spread == 0 else difference / spread
    limit = math.copysign(math.inf, difference) if difference else 0.0
    p = student.two_sided(limit if t is None else t, freedom=len(differences) - 1)
    if one_sided:
        is_ahead = difference > 0 if first.more_is_better else difference < 0
        p = p / 2 if is_ahead else 1 - p / 2
    return PairedTest(first.target, first.model, first.metric, *names, difference, t, p, one_sided=one_sided)


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """How useful releases by a policy are for its workload, measured on held-out rows.

    ``protocol`` says how it was measured (folds or test rows, seed, learners, how boxes became points),
    ``measures`` are means over the folds of figures of the training releases.
    """

    policy: Mapping[str, Any]
    protocol: Mapping[str, Any]
    scores: tuple[Score, ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)
    tests: tuple[PairedTest, ...] = ()

    def __repr__(self) -> str:
        targets = ", ".join(self.targets) or "no target"
        return f"<Evaluation of {targets}: {number_of(len(self.scores), 'score')}, {self.held_out}>"

    def _repr_html_(self) -> str:
        by_model = {(score.target, score.model, score.data): score for score in self.scores}
        lines = [
            (
                score.target,
                f"{score.model}: {score.metric}",
                *(with_interval(by_model[score.target, score.model, data]) for data in (RELEASE, RAW)),
                *(with_interval(other) for other in self.scores
                  if (other.target, other.data) == (score.target, NOTHING)),
            )
            for score in self.scores
            if score.data == RELEASE
        ]  # fmt: skip
        names = ("Target", "Model", "Release", "Raw data", "Nothing")
        measures = [(name, f"{value:,.4g}") for name, value in self.measures.items()]
        return notebook.card(
            "An evaluation",
            OUTSIDE_THE_BUDGET if self.is_private else f"Models learned from releases, {self.held_out}.",
            [("rows", f"{self.protocol['rows']:,}")] if "rows" in self.protocol else [],
            notebook.table(names, lines) if lines else "",
            notebook.table(("Of the training releases", ""), measures) if measures else "",
        )

    @property
    def held_out(self) -> str:
        """Which rows it was judged by, in a few words."""
        how = self.protocol
        if "folds" in how:
            return f"judged on {how['folds']} folds"
        return (
            f"judged on {number_of(how['test_rows'], 'further row')}" if "test_rows" in how else "not judged"
        )

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(score.target for score in self.scores))

    @property
    def is_private(self) -> bool:
        """Is it of a differentially private method? Then its figures are outside the privacy budget."""
        return "diffgen" in self.policy.get("method", {})

    def score(self, target: str, model: str, data: str) -> Score:
        """The one score of these names."""
        for score in self.scores:
            if (score.target, score.model, score.data) == (target, model, data):
                return score
        raise KeyError((target, model, data))

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "policy": dict(self.policy),
            "protocol": dict(self.protocol),
            "scores": [score.as_dict() for score in self.scores],
            "measures": dict(self.measures),
            "tests": [test.as_dict() for test in self.tests],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """The evaluation in plain mappings and lists; an InputError says what is wrong with other ones.

        >>> Evaluation.from_dict(Evaluation({}, {"folds": 10}).as_dict())
        <Evaluation of no target: 0 scores, judged on 10 folds>
        """
        _check_fields(data, "it", _EVALUATION)
        if data["format"] != FORMAT:
            raise _rubbish(f"format is {data['format']}, and this version reads {FORMAT} only")
        for name, kind in _PROTOCOL.items():
            if type(data["protocol"].get(name, kind())) is not kind:
                raise _rubbish(f"{name!r} is of the wrong kind")
        for item in data["measures"].values():
            _check_number(item, "measures")
        return cls(
            policy=data["policy"],
            protocol=data["protocol"],
            scores=tuple(map(_score, data["scores"])),
            measures=data["measures"],
            tests=tuple(map(_paired_test, data["tests"])),
        )

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Evaluation:
        try:
            data = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
            raise _rubbish("it is no JSON text in UTF-8") from None
        return cls.from_dict(data)


def with_interval(score: Score) -> str:
    """A mean and half the width of its interval.

    >>> with_interval(Score("y", "m", RELEASE, ACCURACY, (0.8, 0.9), ()))
    '85.0% ± 63.5'
    """
    half = score.half_width
    if half is None:
        return number(score.mean, score.metric)
    spread = f"{100 * half:.1f}" if score.metric == ACCURACY else f"{half:.3g}"
    return f"{number(score.mean, score.metric)} ± {spread}"


def number(value: float, metric: str) -> str:
    return f"{100 * value:.1f}%" if metric == ACCURACY else f"{value:,.4g}"


def _mean(values: Iterable[float]) -> float:
    held = tuple(values)
    return math.fsum(held) / len(held) if held else math.nan


# ---- reading -----------------------------------------------------------------------------------------

_NUMBER = (int, float)
_EVALUATION: dict[str, tuple[type, ...]] = {
    "format": (int,),
    "policy": (dict,),
    "protocol": (dict,),
    "scores": (list,),
    "measures": (dict,),
    "tests": (list,),
}
_PROTOCOL: dict[str, type] = {
    "folds": int, "test_rows": int, "rows": int, "seed": int, "learners": str, "learn_from": str,
}  # fmt: skip
_SCORE: dict[str, tuple[type, ...]] = {
    "target": (str,),
    "model": (str,),
    "data": (str,),
    "metric": (str,),
    "test": (list,),
    "train": (list,),
}
_TEST: dict[str, tuple[type, ...]] = {
    "target": (str,),
    "model": (str,),
    "metric": (str,),
    "first": (str,),
    "second": (str,),
    "difference": _NUMBER,
    "t": (*_NUMBER, type(None)),
    "p": _NUMBER,
    "one_sided": (bool,),
}


def _rubbish(what: str) -> InputError:
    return InputError(f"This is no evaluation that sfumato evaluate wrote: {what}.")


def _refuse_constant(_word: str) -> float:
    raise ValueError


def _check_fields(value: Any, place: str, kinds: Mapping[str, tuple[type, ...]]) -> None:
    if type(value) is not dict:
        raise _rubbish(f"{place} must be a mapping")
    for name, allowed in kinds.items():
        if name not in value:
            raise _rubbish(f"{place} lacks {name!r}")
        if type(value[name]) not in allowed:
            raise _rubbish(f"{name!r} is of the wrong kind")
    if value.keys() - kinds.keys():
        raise _rubbish(f"{place} has keys that do not belong there")


def _check_number(value: Any, name: str, *, largest: float = sys.float_info.max) -> float:
    if type(value) not in _NUMBER or not -largest <= value <= largest:
        raise _rubbish(f"{name!r} must hold numbers of at most {largest:g}")
    return float(value)


def _score(item: Any) -> Score:
    _check_fields(item, "an item of 'scores'", _SCORE)
    if item["data"] not in (RELEASE, RAW, NOTHING) or item["metric"] not in (ACCURACY, ERROR):
        raise _rubbish("a score is of unknown data or metric")
    folds = {
        name: tuple(_check_number(value, name, largest=LARGEST_SCORE) for value in item[name])
        for name in ("test", "train")
    }
    if not folds["test"]:
        raise _rubbish("a score has no fold")
    return Score(item["target"], item["model"], item["data"], item["metric"], **folds)


def _paired_test(item: Any) -> PairedTest:
    _check_fields(item, "an item of 'tests'", _TEST)
    for name in ("difference", "t", "p"):
        if item[name] is not None:
            _check_number(item[name], name)
    return PairedTest(**item)
