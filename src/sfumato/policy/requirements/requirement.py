"""What every requirement can say about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PolicyError, short
from sfumato.policy.requirements.group_stats import GroupStats, Needs, Reference
from sfumato.policy.requirements.parameter import Parameter, parameters_of
from sfumato.policy.requirements.promise import Promise
from sfumato.policy.schema import Attribute, Role


class Requirement(ABC):
    """What must hold of every published group.

    A subclass is a frozen dataclass. Its fields are the parameters, each with limits and meaning in its type (see
    ``parameter``); of them the policy's words, checks and JSON Schema are made.
    """

    __slots__ = ()

    word: ClassVar[str]
    """Its name in a policy."""
    meaning: ClassVar[str]
    """One sentence for authors of policies, in the JSON Schema."""
    example: ClassVar[Any]
    """What may stand after the word in a policy."""
    needs: ClassVar[Needs]
    """The statistics of a group that it looks at."""
    figure: ClassVar[str]
    """What ``achieved`` measures, of the worst group."""
    is_better_smaller: ClassVar[bool] = False
    """Is a smaller figure the better one?"""

    of: str | None
    """The sensitive column, None if only rows are counted."""

    @property
    @abstractmethod
    def fewest_rows(self) -> int:
        """No group with fewer rows can satisfy it."""

    # ---- the definition ----------------------------------------------------------------------------

    @abstractmethod
    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        """Which groups satisfy it?"""

    @abstractmethod
    def achieved(self, groups: GroupStats) -> NDArray[np.float64]:
        """The figure of each group."""

    def reference(self, attribute: Attribute, rows: Mapping[Any, int]) -> Reference | None:  # noqa: ARG002 - most need none
        """What groups are compared with, of the rows that each value has in the whole table, in the order of its codes.

        Missing is None, the last one.
        """
        return None

    @abstractmethod
    def is_met_by(self, figure: float) -> bool:
        """Is the figure of the worst group, as a certificate states it in decimals, enough?"""

    def worst(self, figures: NDArray[np.float64]) -> float:
        return float(figures.max() if self.is_better_smaller else figures.min())

    def best(self, figures: NDArray[np.float64]) -> float:
        return float(figures.min() if self.is_better_smaller else figures.max())

    # ---- in words ----------------------------------------------------------------------------------

    @abstractmethod
    def __str__(self) -> str: ...

    @abstractmethod
    def describe(self, figure: float) -> str:
        """A group with this figure has ..."""

    def describe_worst(self, figure: float, *, digits: int = 12) -> str:
        """The figure of the worst group, as a clause."""
        return f"the {self.figure} is {figure:.{digits}g}"

    @abstractmethod
    def promise(self, figure: float) -> Promise:
        """What it promises, beside the figure of the worst group."""

    # ---- in a policy -------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        for parameter in self.parameters():
            if not parameter.accepts(getattr(self, parameter.field)):
                raise PolicyError(f"{self.word} {parameter.word}: {parameter.sentence}.")

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        return _parameters(cls)

    @classmethod
    def from_policy(cls, given: Any) -> Self:
        """The requirement, of what stands after its word in a policy."""
        return cls(**{one.field: _read(one, given) for one in cls.parameters() if one.word in given})

    def as_policy(self) -> dict[str, Any]:
        """How it is written in a policy."""
        return {self.word: {one.word: getattr(self, one.field) for one in self.parameters()}}

    def vary(self, word: str, choice: float) -> Self:
        """The same requirement with another number for one parameter, if it has that one."""
        for parameter in self.parameters():
            if parameter.word == word:
                if parameter.kind is int and not float(choice).is_integer():
                    raise PolicyError(f"{self.word} needs a whole number {word}.")
                return replace(self, **{parameter.field: parameter.kind(choice)})  # type: ignore[type-var]
        return self

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Its part of the policy's schema."""
        example = ", ".join(f"{word}: {_spell(given)}" for word, given in cls.example.items())
        return {
            "description": cls.meaning,
            "type": "object",
            "required": [one.word for one in cls.parameters() if not one.choices],
            "additionalProperties": False,
            "properties": {one.word: one.json_schema() for one in cls.parameters()},
            "errorMessage": f"must be a mapping such as {{{example}}}.",
        }

    def object_to(self, attribute: Attribute) -> str | None:
        """Why it cannot be asked of this column, and what to do; None if it can."""
        if attribute.role is Role.SENSITIVE:
            return None
        return (
            f"diversity is of a sensitive attribute, and column {short(attribute.name)} has the role "
            f"{attribute.role}; give it the role sensitive, or name another column."
        )


@cache
def _parameters(kind: type) -> tuple[Parameter, ...]:
    return parameters_of(kind)


def _read(parameter: Parameter, given: Mapping[str, Any]) -> Any:
    """5.0 is a whole number, too."""
    value = given[parameter.word]
    return int(value) if parameter.kind is int else value


def _spell(given: object) -> str:
    """A number as YAML reads it.

    >>> _spell(1e8), _spell(0.2), _spell(3), _spell("disease")
    ('1.0e+8', '0.2', '3', 'disease')
    """
    return f"{given:.1e}".replace("e+0", "e+") if isinstance(given, float) and given >= 1e6 else str(given)
