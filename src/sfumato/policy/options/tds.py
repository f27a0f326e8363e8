"""Top-down specialization in a policy: it has no options, and asks for a class to keep predictable."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sfumato.policy.mistakes import Misfit, Mistakes
from sfumato.policy.model import read
from sfumato.policy.options.method import MethodOptions, RestOfPolicy
from sfumato.policy.requirements.k_anonymity import KAnonymity
from sfumato.policy.schema import Schema
from sfumato.policy.unit import Unit
from sfumato.policy.workload import Classify, Regress


@dataclass(frozen=True, slots=True)
class TdsOptions(MethodOptions):
    """Top-down specialization has no options.

    >>> TdsOptions().as_policy()
    {'tds': {}}
    """

    meaning: ClassVar[str] = "One shared cut per attribute, pushed down greedily (k-anonymity; a baseline)."
    name: ClassVar[str] = "tds"
    shares_cuts: ClassVar[bool] = True
    may_leave_rows_out: ClassVar[bool] = True

    def object_to_unit(self, unit: Unit) -> str | None:  # noqa: ARG002 - every method is asked
        return None

    @classmethod
    def of(cls, given: Mapping[str, Any], _schema: Schema, _folder: str | None) -> TdsOptions:
        return read(cls, given, ("method", cls.name))

    @classmethod
    def keep_sound(cls, _given: Mapping[str, Any], _broken: Collection[str | int]) -> None:
        """There is nothing to keep."""

    def as_policy(self) -> dict[str, Any]:
        return {self.name: {}}

    def check(self, policy: RestOfPolicy, mistakes: Mistakes) -> None:
        """Top-down specialization serves k-anonymity and classes alone."""
        for position, requirement in enumerate(policy.requirements):
            with mistakes.collect():
                if not isinstance(requirement, KAnonymity):
                    raise Misfit(
                        ("require", position, requirement.word),
                        "top-down specialization (tds) keeps k-anonymity only; leave this out, or use mondrian.",
                    )
        with mistakes.collect():
            if not any(isinstance(task, Classify) for task in policy.workload):
                raise Misfit(
                    ("workload",),
                    "top-down specialization (tds) needs a task to classify, such as classify: income; "
                    "without one use mondrian.",
                )
        with mistakes.collect():
            predictions = (task for task in policy.workload if isinstance(task, Classify | Regress))
            if any(task.features is not None for task in predictions):
                raise Misfit(
                    ("workload",),
                    "top-down specialization (tds) knows no features; leave them out, or use mondrian.",
                )
