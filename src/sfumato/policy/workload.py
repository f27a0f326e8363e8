"""What a release is for: the tasks whose answers it should preserve [LDR08, section 3]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from sfumato.errors import PolicyError
from sfumato.policy.model import OneOf, Part
from sfumato.policy.rules import ChoiceRule, ColumnName, ColumnNames, Either, Flag, ListOf, NumberRule, Text

STATISTICS = ("range", "mean")
"""What can be published of a column in each group: its least and greatest value, and its mean."""


WEIGHT = NumberRule("How much this task counts beside the others.", above=0, says="must be a number above 0.")


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _check(targets: tuple[str, ...], features: tuple[str, ...] | None, weight: float) -> None:
    if not targets:
        raise PolicyError("A task of the workload needs at least one target.")
    if features is not None:
        if not features:
            raise PolicyError(
                f"The features of the task on {targets[0]!r} are an empty list; leave them out."
            )
        if set(features) & set(targets):
            raise PolicyError(
                f"The target {targets[0]!r} cannot be predicted from itself; drop it from features."
            )
    _check_weight(weight, f"on {targets[0]!r}")


def _check_weight(weight: float, which: str) -> None:
    if not WEIGHT.fits(weight):
        raise PolicyError(f"The weight of the task {which} must be a number above 0.")


@dataclass(frozen=True, slots=True, init=False)
class Classify:
    """Keep class labels predictable: minimize their entropy within groups [LDR08, equations 3 and 5].

    Entropies of several targets are summed (equation 5); with ``joint`` the targets together are one label.
    ``features`` are the columns that the labels will be predicted from, the quasi-identifiers if not given. Other
    columns among them are published as they are, and entropy is measured within what they tell apart (section 3.1.3).

    >>> Classify("income").targets, Classify("income", features=["age", "hours"]).features
    (('income',), ('age', 'hours'))
    """

    targets: tuple[str, ...]
    joint: bool
    features: tuple[str, ...] | None
    weight: float
    word: ClassVar[str] = "classify"

    def __init__(
        self,
        targets: str | Sequence[str],
        *,
        joint: bool = False,
        features: str | Sequence[str] | None = None,
        weight: float = 1.0,
    ) -> None:
        object.__setattr__(self, "targets", _names(targets))
        object.__setattr__(self, "joint", joint)
        object.__setattr__(self, "features", None if features is None else _names(features))
        object.__setattr__(self, "weight", float(weight))
        _check(self.targets, self.features, self.weight)

    def as_policy(self) -> dict[str, Any]:
        return {self.word: {"targets": list(self.targets), "joint": self.joint, **_features_and_weight(self)}}


@dataclass(frozen=True, slots=True, init=False)
class Regress:
    """Keep numbers predictable: minimize their squared error within groups [LDR08, equations 4 and 6].

    >>> Regress(["hours", "wage"], weight=2).targets
    ('hours', 'wage')
    """

    targets: tuple[str, ...]
    features: tuple[str, ...] | None
    weight: float
    word: ClassVar[str] = "regress"

    def __init__(
        self,
        targets: str | Sequence[str],
        *,
        features: str | Sequence[str] | None = None,
        weight: float = 1.0,
    ) -> None:
        object.__setattr__(self, "targets", _names(targets))
        object.__setattr__(self, "features", None if features is None else _names(features))
        object.__setattr__(self, "weight", float(weight))
        _check(self.targets, self.features, self.weight)

    def as_policy(self) -> dict[str, Any]:
        return {self.word: {"targets": list(self.targets), **_features_and_weight(self)}}


def _features_and_weight(task: Classify | Regress) -> dict[str, Any]:
    features = {} if task.features is None else {"features": list(task.features)}
    return {**features, "weight": task.weight}


@dataclass(frozen=True, slots=True, init=False)
class Select:
    """Keep a selection precise: few rows beside those that a condition asks for [LDR08, equation 7].

    The condition is one that SQL's WHERE knows, on quasi-identifiers; see :mod:`sfumato.policy.predicate`.

    >>> Select("age >= 40 and sex = 'Male'").weight
    1.0
    """

    where: str
    weight: float
    word: ClassVar[str] = "select"

    def __init__(self, where: str, *, weight: float = 1.0) -> None:
        object.__setattr__(self, "where", where)
        object.__setattr__(self, "weight", float(weight))
        if not where.strip():
            raise PolicyError("A select task needs a condition, such as age >= 40.")
        _check_weight(self.weight, f"to select {where!r}")

    def as_policy(self) -> dict[str, Any]:
        return {self.word: {"where": self.where, "weight": self.weight}}


@dataclass(frozen=True, slots=True, init=False)
class Aggregate:
    """Publish summary statistics of each group beside its rows [LDR08, section 3.3].

    >>> Aggregate(["mean"]).statistics
    ('mean',)
    """

    statistics: tuple[str, ...]
    word: ClassVar[str] = "aggregate"

    def __init__(self, statistics: str | Sequence[str] = STATISTICS) -> None:
        given = _names(statistics)
        object.__setattr__(self, "statistics", tuple(word for word in STATISTICS if word in given))
        if not given or set(given) - set(STATISTICS):
            raise PolicyError(f"An aggregate task names some of {', '.join(STATISTICS)}.")

    def as_policy(self) -> dict[str, Any]:
        return {self.word: list(self.statistics)}


Predict = Classify | Regress
"""A task with targets."""

Task = Classify | Regress | Select | Aggregate

# --- how tasks are written --------------------------------------------------------------------------------

_FEATURES = "The columns that a model will learn from; the quasi-identifiers if not given."
_TARGET = "must be the name of the target, {target: income} or {targets: [income, sex]}."
_EITHER_TARGET = (
    "must hold either target, such as {target: income, weight: 2}, or targets, such as "
    "{targets: [income, sex]}."
)
_CONDITION = 'must be a condition in quotes, or a mapping such as {where: "age >= 40", weight: 2}.'


def _count_targets(given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    if ("target" in given) == ("targets" in given):
        yield (), _EITHER_TARGET


@dataclass(frozen=True, slots=True)
class ClassifyForm(Part):
    """What a policy says of a class to keep predictable."""

    target: Annotated[str | None, ColumnName("The class label.")] = None
    targets: Annotated[tuple[str, ...] | None, ColumnNames("Several class labels.")] = None
    joint: Annotated[
        bool, Flag("Judge the labels as one, the vector of them all, instead of one by one.")
    ] = False
    features: Annotated[tuple[str, ...] | None, ColumnNames(_FEATURES)] = None
    weight: Annotated[float, WEIGHT] = 1
    meaning: ClassVar[str] = "Target or targets, and how they are predicted."
    says: ClassVar[str] = _TARGET

    @classmethod
    def complain(cls, given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        return _count_targets(given)


@dataclass(frozen=True, slots=True)
class RegressForm(Part):
    """What a policy says of a number to keep predictable."""

    target: Annotated[str | None, ColumnName("The number.")] = None
    targets: Annotated[tuple[str, ...] | None, ColumnNames("Several numbers.")] = None
    features: Annotated[tuple[str, ...] | None, ColumnNames(_FEATURES)] = None
    weight: Annotated[float, WEIGHT] = 1
    meaning: ClassVar[str] = "Target or targets, and how they are predicted."
    says: ClassVar[str] = _TARGET

    @classmethod
    def complain(cls, given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        return _count_targets(given)


@dataclass(frozen=True, slots=True)
class SelectForm(Part):
    """What a policy says of rows to keep apart."""

    where: Annotated[
        str,
        Text(
            "The condition on quasi-identifiers, such as age >= 40 and sex = 'Male'.",
            says="must be a condition in quotes, such as \"age >= 40 and sex = 'Male'\".",
            is_empty_text_legal=False,
        ),
    ]
    weight: Annotated[float, WEIGHT] = 1
    meaning: ClassVar[str] = "The condition, and how much it counts."
    says: ClassVar[str] = _CONDITION


TASK = OneOf(
    "One task of the workload, by its name.",
    says="must be one task with its target, such as classify: income, with a dash before each.",
    keys={
        Classify.word: Either(
            "Keep a class label predictable.", says=_TARGET, one=ColumnName(), other=ClassifyForm
        ),
        Regress.word: Either("Keep a number predictable.", says=_TARGET, one=ColumnName(), other=RegressForm),
        Select.word: Either(
            "Keep the rows that answer a condition apart from the others.",
            says=_CONDITION,
            one=Text(says=_CONDITION, is_empty_text_legal=False),
            other=SelectForm,
        ),
        Aggregate.word: ListOf(
            "Publish summaries of the numbers of a group; implies output summary.",
            says="must be a list of range (the least and the greatest value), mean, or both, such as [range, mean].",
            item=ChoiceRule(words=STATISTICS),
            is_unique=True,
        ),
    },
)
"""One item of a policy's ``workload``."""
