"""What a release is for: the tasks whose answers it should preserve [LDR08, section 3]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import PolicyError


def _check(targets: tuple[str, ...], weight: float) -> None:
    if not targets:
        raise PolicyError("A task of the workload needs at least one target.")
    if not math.isfinite(weight) or weight <= 0:
        raise PolicyError(f"The weight of the task on {targets[0]!r} must be a number above 0.")


@dataclass(frozen=True, slots=True, init=False)
class Classify:
    """Keep class labels predictable: minimize their entropy within groups [LDR08, equations 3 and 5].

    Several targets are judged one by one and summed (equation 5), or with ``joint`` as one label,
    the vector of them all.

    >>> Classify("income")
    Classify(targets=('income',), joint=False, weight=1.0)
    """

    targets: tuple[str, ...]
    joint: bool
    weight: float

    def __init__(self, targets: str | Sequence[str], *, joint: bool = False, weight: float = 1.0) -> None:
        object.__setattr__(self, "targets", (targets,) if isinstance(targets, str) else tuple(targets))
        object.__setattr__(self, "joint", joint)
        object.__setattr__(self, "weight", float(weight))
        _check(self.targets, self.weight)

    def as_policy(self) -> dict[str, Any]:
        return {"classify": {"targets": list(self.targets), "joint": self.joint, "weight": self.weight}}


@dataclass(frozen=True, slots=True, init=False)
class Regress:
    """Keep numbers predictable: minimize their squared error within groups [LDR08, equations 4 and 6].

    >>> Regress(["hours", "wage"], weight=2).targets
    ('hours', 'wage')
    """

    targets: tuple[str, ...]
    weight: float

    def __init__(self, targets: str | Sequence[str], *, weight: float = 1.0) -> None:
        object.__setattr__(self, "targets", (targets,) if isinstance(targets, str) else tuple(targets))
        object.__setattr__(self, "weight", float(weight))
        _check(self.targets, self.weight)

    def as_policy(self) -> dict[str, Any]:
        return {"regress": {"targets": list(self.targets), "weight": self.weight}}


Task = Classify | Regress
