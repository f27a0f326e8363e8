"""What a requirement asks for: numbers, words and a column, read from the fields of its class.

A field says its limits and its meaning in its type, ``Annotated[int, Ge(1), "What it is."]``. The check of a value, the
sentence for a wrong one and the part of the policy's JSON Schema are made of that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le


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


def parameters_of(kind: type) -> tuple[Parameter, ...]:
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
