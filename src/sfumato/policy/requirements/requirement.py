"""What every requirement can say about itself, and the parameters that it asks for.

A field of a requirement says its limits and its meaning in its type, ``Annotated[int, Ge(1), "What it is."]``. The check
of a value, the sentence for a wrong one and the part of the policy's JSON Schema are made of that.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from sfumato.errors import PolicyError, short
from sfumato.policy.requirements.group_stats import GroupStats, Needs, Reference
from sfumato.policy.requirements.promise import Promise
from sfumato.policy.schema import Attribute, Role


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a requirement; ``choices`` of a word, limits of a number, neither of a column's name."""

    field: str
    kind: type
    meaning: str
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None

    @property
    def word(self) -> str:
        """Its key in a policy.

        >>> Parameter("at_least", float, "The least variance.").word
        'at-least'
        """
        return self.field.replace("_", "-")

    @property
    def sentence(self) -> str:
        """What it must be, without the full stop.

        >>> Parameter("l", int, "", at_least=1).sentence, Parameter("t", float, "", at_least=0, at_most=1).sentence
        ('must be a whole number of at least 1', 'must be a number from 0 to 1')
        """
        if self.choices:
            return f"must be one of {', '.join(self.choices)}"
        if self.kind is str:
            return "must be the name of one column"
        number = "must be a whole number" if self.kind is int else "must be a number"
        if self.above is not None:
            return f"{number} above {self.above:g}"
        if self.at_most is not None:
            return f"{number} from {self.at_least:g} to {self.at_most:g}"
        return f"{number} of at least {self.at_least:g}"

    def accepts(self, given: object) -> bool:
        if self.choices:
            return given in self.choices
        if self.kind is str:
            return isinstance(given, str)
        return (
            isinstance(given, int if self.kind is int else int | float)
            and not isinstance(given, bool)
            and math.isfinite(given)
            and (self.at_least is None or given >= self.at_least)
            and (self.above is None or given > self.above)
            and (self.at_most is None or given <= self.at_most)
        )

    def json_schema(self) -> dict[str, Any]:
        """Its part of the policy's schema."""
        if self.choices:
            return {"description": self.meaning, "enum": list(self.choices), "default": self.choices[0]}
        if self.kind is str:
            return {"description": self.meaning, "$ref": "#/$defs/column"}
        limits = {"minimum": self.at_least, "exclusiveMinimum": self.above, "maximum": self.at_most}
        return {
            "description": self.meaning,
            "type": "integer" if self.kind is int else "number",
            **{word: limit for word, limit in limits.items() if limit is not None},
            "errorMessage": f"{self.sentence}.",
        }


class Requirement(ABC):
    """What must hold of every published group.

    A subclass is a frozen dataclass. Its fields are the parameters, each with limits and meaning in its type
    (:class:`Parameter`); of them the policy's words, checks and JSON Schema are made.
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
    """What ``measure`` finds, of the worst group."""
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
    def measure(self, groups: GroupStats) -> NDArray[np.float64]:
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

    def describe_worst_of_people(self, figure: float, *, digits: int = 12) -> str:
        """``describe_worst`` where people are counted."""
        return self.describe_worst(figure, digits=digits)

    @abstractmethod
    def promise(self, figure: float) -> Promise:
        """What it promises, beside the figure of the worst group."""

    def promise_of_people(self, figure: float) -> Promise:
        """``promise`` where people are counted."""
        return self.promise(figure)

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
    """The fields of a dataclass that are given when a value of it is made."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_parameter(one.name, hints[one.name]) for one in fields(kind) if one.init)


def _parameter(field: str, hint: Any) -> Parameter:
    kind, *notes = get_args(hint)
    said: dict[str, Any] = {}
    for note in notes:
        match note:
            case Ge(ge=limit):
                said["at_least"] = limit
            case Gt(gt=limit):
                said["above"] = limit
            case Le(le=limit):
                said["at_most"] = limit
            case str(meaning):
                said["meaning"] = meaning
    if get_origin(kind) is Literal:
        return Parameter(field, str, choices=get_args(kind), **said)
    return Parameter(field, kind, **said)


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
