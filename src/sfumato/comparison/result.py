"""The result of a comparison, as plain values that are written to JSON and CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sfumato.errors import number_of
from sfumato.evaluation.loss import NCP, OF_LOSS
from sfumato.evaluation.result import ModelScore, PairedTest
from sfumato.policy.kinds import read_exactly
from sfumato.policy.unit import Unit

FORMAT = 1

MEASURE = NCP
"""What stands for utility where the workload has no target: the share of its range that a cell covers."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination of choices: its risk and its utility, or the problem why there is neither.

    A differentially private one has its epsilon among its choices, and no groups whose risk could be told.
    """

    choices: Mapping[str, str]
    largest_risk: float = math.nan
    mean_risk: float = math.nan
    groups: int = 0
    scores: tuple[ModelScore, ...] = ()
    measures: Mapping[str, float] | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        return ", ".join(f"{word}={choice}" for word, choice in self.choices.items())

    @property
    def is_private(self) -> bool:
        return "epsilon" in self.choices

    @property
    def exposure(self) -> float:
        """What should be small for privacy: epsilon, or else the largest risk."""
        return float(read_exactly(self.choices["epsilon"])) if self.is_private else self.largest_risk

    def score(self, target: str, model: str, metric: str | None = None) -> ModelScore:
        """Of this model by this metric, or by the leading one."""
        return _score_of(self.scores, target, metric, model)

    @property
    def risks(self) -> dict[str, Any]:
        """What groups risk."""
        names = ("largest_risk", "mean_risk", "groups")
        return {} if self.is_private else {name: getattr(self, name) for name in names}

    @property
    def losses(self) -> dict[str, float]:
        """What the labels lose over all columns, as far as it was measured."""
        known = self.measures or {}
        return {name: known[name] for name in OF_LOSS if name in known}

    def as_dict(self) -> dict[str, Any]:
        if self.problem is not None:
            return {"choices": dict(self.choices), "problem": self.problem}
        return {
            "choices": dict(self.choices),
            **self.risks,
            "scores": [score.model_dump(mode="json") for score in self.scores],
            "measures": dict(self.measures or {}),
        }


def _score_of(
    scores: Sequence[ModelScore], target: str, metric: str | None, model: str | None = None
) -> ModelScore:
    """The score of a target (and a model) by a metric, or by the leading one."""
    return next(
        score
        for score in scores
        if score.target == target
        and model in (None, score.model)
        and (score.is_leading if metric is None else score.metric == metric)
    )


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """All settings, and what the raw data and publishing nothing reach on the same folds.

    ``page`` makes the HTML that a notebook shows of it.
    """

    policy: Mapping[str, Any]
    protocol: Mapping[str, Any]
    varied: tuple[str, ...]
    settings: tuple[Setting, ...]
    raw: tuple[ModelScore, ...] = ()
    nothing: tuple[ModelScore, ...] = ()
    tests: tuple[PairedTest, ...] = ()
    page: Callable[[Comparison], str] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        varied = ", ".join(self.varied)
        return f"<Comparison of {number_of(len(self.settings), 'setting')} of {varied}: {len(self.met):,} can be met>"

    def _repr_html_(self) -> str | None:
        return self.page(self) if self.page else None

    @property
    def met(self) -> tuple[Setting, ...]:
        """The settings that can be met."""
        return tuple(setting for setting in self.settings if setting.problem is None)

    def of_kind(self, setting: Setting) -> tuple[Setting, ...]:
        """Those of them that are differentially private, or are not, as this one is."""
        return tuple(other for other in self.met if other.is_private == setting.is_private)

    @property
    def leading(self) -> tuple[ModelScore, ...]:
        """The scores of the raw data by the metric that pictures and advice are about: one for each target and model."""
        return tuple(score for score in self.raw if score.is_leading)

    @property
    def counts_people(self) -> bool:
        """Do groups count people, so that their risk is of people?"""
        unit = self.policy.get("unit")
        return unit is not None and Unit.of(unit).is_person

    def of_raw(self, target: str, model: str, metric: str | None = None) -> ModelScore:
        return _score_of(self.raw, target, metric, model)

    def of_nothing(self, target: str, metric: str | None = None) -> ModelScore:
        return _score_of(self.nothing, target, metric)

    def is_on_frontier(self, setting: Setting, target: str, model: str, metric: str | None = None) -> bool:
        """No other setting is at least as useful at less risk, or more useful at no more risk.

        Epsilon is compared with epsilon alone, and risk with risk.
        """

        def place(one: Setting) -> tuple[float, float]:
            score = one.score(target, model, metric)
            return -score.mean if score.more_is_better else score.mean, one.exposure

        loss, risk = place(setting)
        return not any(
            (other_loss <= loss and other_risk < risk) or (other_loss < loss and other_risk <= risk)
            for other_loss, other_risk in map(place, self.of_kind(setting))
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "policy": dict(self.policy),
            "protocol": dict(self.protocol),
            "varied": list(self.varied),
            "settings": [setting.as_dict() for setting in self.settings],
            "raw": [score.model_dump(mode="json") for score in self.raw],
            "nothing": [score.model_dump(mode="json") for score in self.nothing],
            "tests": [test.model_dump(mode="json") for test in self.tests],
        }

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_table(self) -> pa.Table:
        """A line for each setting, target, model and metric."""
        return pa.Table.from_pylist(list(self._lines()), self._arrow_schema())

    def _arrow_schema(self) -> pa.Schema:
        texts = (*self.varied, "target", "model", "metric", "problem")
        numbers = (
            "largest_risk",
            "mean_risk",
            "mean",
            "half_width",
            "train_mean",
            "raw_mean",
            "nothing_mean",
            *OF_LOSS,
        )
        order = (
            *self.varied, "largest_risk", "mean_risk", "groups", "target", "model", "metric", "mean", "half_width",
            "train_mean", "raw_mean", "nothing_mean", *OF_LOSS, "on_frontier", "problem",
        )  # fmt: skip
        kinds: dict[str, Any] = {"groups": pa.int64(), "on_frontier": pa.bool_()}
        kinds |= dict.fromkeys(texts, pa.string()) | dict.fromkeys(numbers, pa.float64())
        return pa.schema([(name, kinds[name]) for name in order])

    def _lines(self) -> Iterator[dict[str, Any]]:
        for setting in self.settings:
            if setting.problem is not None:
                yield {**setting.choices, "problem": setting.problem}
                continue
            common = {**setting.choices, **setting.risks, **setting.losses}
            if not setting.scores:
                yield common
            for score in setting.scores:
                yield {
                    **common,
                    "target": score.target,
                    "model": score.model,
                    "metric": score.metric,
                    "mean": score.mean,
                    "half_width": score.half_width,
                    "train_mean": score.train_mean,
                    "raw_mean": self.of_raw(score.target, score.model, score.metric).mean,
                    "nothing_mean": self.of_nothing(score.target, score.metric).mean,
                    "on_frontier": self.is_on_frontier(setting, score.target, score.model, score.metric),
                }
