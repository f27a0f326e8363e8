"""Mondrian in a policy: how it splits, and how a table larger than memory is divided [LDR08]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from sfumato.policy.file import declared_column, is_number
from sfumato.policy.mistakes import Misfit, Mistake, Mistakes
from sfumato.policy.options.rest import RestOfPolicy
from sfumato.policy.schema import Role, Schema
from sfumato.policy.yaml import Where, short

ROTHKO_T, ROTHKO_S, NO_FALLBACK = "rothko-t", "rothko-s", "none"
METHOD: Where = ("method", "mondrian")


@dataclass(frozen=True, slots=True)
class MondrianOptions:
    """How Mondrian splits, and from ``scale`` on how a table larger than memory is divided [LDR08, section 5].

    A ``sample`` below 1 is a share of the rows.

    >>> MondrianOptions(median_below_gain=0.01).as_policy()
    {'mondrian': {'median-below-gain': 0.01, 'standardize': False}}
    >>> MondrianOptions(scale="rothko-s", sample=0.1).as_policy()
    {'mondrian': {'standardize': False, 'scale': 'rothko-s', 'sample': 0.1}}
    """

    split_only: tuple[str, ...] | None = None
    median_below_gain: float | None = None
    standardize: bool = False
    scale: str = ROTHKO_T
    rows_in_memory: int | None = None
    frequency_groups: int | None = None
    sample: float | None = None
    alpha: float = 0.05
    tests: bool = True
    max_height: int | None = None
    fallback: str = ROTHKO_T
    name: ClassVar[str] = "mondrian"
    is_private: ClassVar[bool] = False
    publishes_counts: ClassVar[bool] = False
    reads_workload: ClassVar[bool] = False
    promise: ClassVar[str | None] = None

    @classmethod
    def of(cls, given: Mapping[str, Any], _schema: Schema, _folder: str | None) -> MondrianOptions:
        """From what a policy says."""
        options = {name.replace("-", "_"): option for name, option in given.items()}
        if options.get("split_only") is not None:
            options["split_only"] = tuple(options["split_only"])
        for name in ("rows_in_memory", "frequency_groups"):
            if name in options:
                options[name] = int(options[name])
        return cls(**options)

    @classmethod
    def keep_sound(cls, given: Mapping[str, Any], broken: Collection[str | int]) -> Mapping[str, Any] | None:
        """The options that fit."""
        return {key: value for key, value in given.items() if key not in broken}

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for option in fields(self):
            given = getattr(self, option.name)
            if option.name == "standardize" or given != option.default:
                options[option.name.replace("_", "-")] = list(given) if isinstance(given, tuple) else given
        return {self.name: options}

    def check(self, policy: RestOfPolicy, mistakes: Mistakes) -> None:
        """Every option makes sense, and only quasi-identifiers are split."""
        for name in self.split_only or ():
            with mistakes.collect():
                _check_splittable(name, policy.schema)
        mistakes.found += [Mistake((*METHOD, word), sentence) for word, sentence in self._wrong().items()]

    def _wrong(self) -> dict[str, str]:
        """A sentence for each option that makes no sense."""
        gain, sample = self.median_below_gain, self.sample
        wrong: dict[str, str] = {}
        if gain is not None and not (is_number(gain) and 0 <= gain <= 1e9):
            wrong["median-below-gain"] = "must be a number from 0 to 1e9, such as 0.01."
        for word, number in (("rows-in-memory", self.rows_in_memory), ("max-height", self.max_height),
                             ("frequency-groups", self.frequency_groups)):  # fmt: skip
            if number is not None and not (is_number(number) and number >= 1):
                wrong[word] = "must be a whole number of at least 1."
        if sample is not None and not (
            is_number(sample) and sample > 0 and (sample < 1 or sample == int(sample))
        ):
            wrong["sample"] = (
                "must be a number of rows, such as 100000, or a share of them below 1, such as 0.1."
            )
        if not (is_number(self.alpha) and 0 < self.alpha < 1):
            wrong["alpha"] = "must be between 0 and 1, such as 0.05."
        for word, choice, choices in (("scale", self.scale, (ROTHKO_T, ROTHKO_S)),
                                      ("fallback", self.fallback, (ROTHKO_T, NO_FALLBACK))):  # fmt: skip
            if choice not in choices:
                wrong[word] = f"must be {' or '.join(choices)}."
        return wrong


def _check_splittable(name: str, schema: Schema) -> None:
    path: Where = (*METHOD, "split-only")
    attribute = declared_column(name, schema, path)
    if attribute.role is not Role.QUASI_IDENTIFIER:
        raise Misfit(
            path,
            f"column {short(name)} has the role {attribute.role}, and only quasi-identifiers are split; "
            "leave it out.",
        )
