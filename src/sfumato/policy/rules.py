"""Rules for the values of a policy, each with its sentence for what does not fit: numbers, words, texts, lists, mappings.

A rule says what a value must be, once: readers of documents, checks of values that were put together in code and the JSON
Schema all ask it. :mod:`sfumato.policy.model` makes the parts of a policy of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from fractions import Fraction
from typing import Any, NoReturn, Protocol

from pydantic_core import PydanticCustomError, core_schema

from sfumato.errors import did_you_mean, short
from sfumato.policy.kinds import read_exactly

WRONG, LATER = "wrong", "later"
"""Kinds of mistakes: a value that does not fit, and one that a later version will know."""


def is_number(value: object) -> bool:
    """Is it a finite number? True and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def refuse(sentence: str) -> NoReturn:
    """Complain about the value that a rule looks at."""
    raise PydanticCustomError(WRONG, "{sentence}", {"sentence": sentence})


class Readable(Protocol):
    """A rule, or a part of a policy that is made of rules."""

    def core(self, handler: Any, /) -> Any:
        """How pydantic reads it."""

    def schema(self) -> dict[str, Any]:
        """Its part of the JSON Schema."""


@dataclass(frozen=True, eq=False)
class Rule:
    """What a value must be. ``meaning`` is for authors of policies, ``says`` the sentence for what does not fit.

    A rule is told from another by being another object, so that what is made of it is made once.
    """

    meaning: str = ""
    says: str = field(default="", kw_only=True)

    def accept(self, value: Any) -> Any:
        """The value as it is kept; a complaint if it does not fit."""
        raise NotImplementedError

    def fits(self, value: Any) -> bool:
        """Is it what the rule asks for?"""
        try:
            self.accept(value)
        except PydanticCustomError:
            return False
        return True

    def core(self, _handler: Any) -> Any:
        """How pydantic reads it."""
        return core_schema.no_info_plain_validator_function(self.accept)

    def shape(self) -> dict[str, Any]:
        """The keywords of JSON Schema for it."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """Its part of the JSON Schema."""
        described = {"description": self.meaning} if self.meaning else {}
        return {**described, **self.shape(), **({"errorMessage": self.says} if self.says else {})}

    def __get_pydantic_core_schema__(self, _source: Any, handler: Any) -> Any:
        return self.core(handler)

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> Any:
        return rename_key(self.schema(), "$ref", OUR_REF)


@dataclass(frozen=True, eq=False)
class NumberRule(Rule):
    """A finite number within limits, kept as it is written: 5 is not 5.0.

    >>> NumberRule("A share.", above=0, most=1, says="must be a share.").schema()
    {'description': 'A share.', 'type': 'number', 'exclusiveMinimum': 0, 'maximum': 1, 'errorMessage': 'must be a share.'}
    """

    least: float | None = field(default=None, kw_only=True)
    above: float | None = field(default=None, kw_only=True)
    most: float | None = field(default=None, kw_only=True)
    below: float | None = field(default=None, kw_only=True)

    def accept(self, value: Any) -> Any:
        if not is_number(value) or not self.is_within(value):
            refuse(self.says)
        return value

    def is_within(self, value: float | Fraction) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )

    def shape(self) -> dict[str, Any]:
        limits = {"minimum": self.least, "exclusiveMinimum": self.above, "maximum": self.most}
        limits["exclusiveMaximum"] = self.below
        return {"type": "number", **{word: limit for word, limit in limits.items() if limit is not None}}


@dataclass(frozen=True, eq=False)
class Amount(NumberRule):
    """A number of rows, or a share of them below 1."""

    def accept(self, value: Any) -> Any:
        if not is_number(value) or not (0 < value < 1 or (value >= 1 and value == int(value))):
            refuse(self.says)
        return value


@dataclass(frozen=True, eq=False)
class Whole(NumberRule):
    """A whole number within limits; 5.0 is one, too."""

    def accept(self, value: Any) -> int:
        if not is_number(value) or value != int(value) or not self.is_within(value):
            refuse(self.says)
        return int(value)

    def shape(self) -> dict[str, Any]:
        return {**NumberRule.shape(self), "type": "integer"}


@dataclass(frozen=True, eq=False)
class Exact(NumberRule):
    """A number within limits, kept as the decimal that is written; with ``fractions``, 6/17 is one, too."""

    fractions: bool = field(default=True, kw_only=True)

    def accept(self, value: Any) -> Fraction:
        if isinstance(value, Fraction):
            number = value
        elif is_number(value) or (self.fractions and isinstance(value, str) and _is_fraction(value)):
            number = read_exactly(value)
        else:
            refuse(self.says)
        if not self.is_within(number):
            refuse(self.says)
        return number

    def is_within(self, value: float | Fraction) -> bool:
        """Limits are decimals, too: 1e-9 is a billionth."""
        return (
            (self.least is None or value >= read_exactly(self.least))
            and (self.above is None or value > read_exactly(self.above))
            and (self.most is None or value <= read_exactly(self.most))
            and (self.below is None or value < read_exactly(self.below))
        )

    def shape(self) -> dict[str, Any]:
        if not self.fractions:
            return NumberRule.shape(self)
        return {**NumberRule.shape(self), "type": ["number", "string"], "pattern": FRACTION}


FRACTION = "^[0-9]{1,15}/[1-9][0-9]{0,14}$"


def _is_fraction(text: str) -> bool:
    above, stroke, below = text.partition("/")
    digits = text.replace("/", "", 1)
    return (
        bool(stroke)
        and digits.isascii()
        and digits.isdigit()
        and 1 <= len(above) <= 15
        and 1 <= len(below) <= 15
        and below[0] != "0"
    )


@dataclass(frozen=True, eq=False)
class Flag(Rule):
    """True or false."""

    says: str = field(default="must be true or false.", kw_only=True)

    def accept(self, value: Any) -> bool:
        if not isinstance(value, bool):
            refuse(self.says)
        return value

    def shape(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True, eq=False)
class ChoiceRule(Rule):
    """One of a few words."""

    words: tuple[str, ...] = field(default=(), kw_only=True)

    def accept(self, value: Any) -> Any:
        if not isinstance(value, str) or value not in self.words:
            refuse(self.says or not_one_of(value, self.words))
        return value

    def shape(self) -> dict[str, Any]:
        return {"enum": list(self.words)}


def not_one_of(value: Any, choices: Sequence[str]) -> str:
    """The sentence for something else than one of these words, with the nearest of them.

    >>> not_one_of("numbr", ("category", "number")), not_one_of(5, ("category", "number"))
    ("'numbr' is not one of category, number. Did you mean 'number'?", 'must be one of category, number.')
    """
    listed = ", ".join(choices)
    if not isinstance(value, str):
        return f"must be one of {listed}." if len(choices) > 1 else f"must be {listed}."
    hint = did_you_mean(value, choices)
    return f"{short(value)} is not {'one of ' if len(choices) > 1 else ''}{listed}.{hint}"


@dataclass(frozen=True, eq=False)
class Text(Rule):
    """A text, kept as it is spelled."""

    says: str = field(default="must be a text.", kw_only=True)
    is_empty_text_legal: bool = field(default=True, kw_only=True)

    def accept(self, value: Any) -> str:
        if not isinstance(value, str) or not (value or self.is_empty_text_legal):
            refuse(self.says)
        return value

    def core(self, handler: Any) -> Any:
        """Long lists of texts are read without a call for each."""
        if type(self).accept is not Text.accept or not self.is_empty_text_legal:
            return Rule.core(self, handler)
        return core_schema.custom_error_schema(
            core_schema.str_schema(strict=True),
            custom_error_type=WRONG,
            custom_error_message="{sentence}",
            custom_error_context={"sentence": self.says},
        )

    def shape(self) -> dict[str, Any]:
        return {"type": "string"} if self.is_empty_text_legal else {"type": "string", "minLength": 1}


@dataclass(frozen=True, eq=False)
class Spelled(Text):
    """A text, for which a document may hold a number, true, false or null: they are read as they are spelled."""

    def shape(self) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean", "null"]}


@dataclass(frozen=True, eq=False)
class ColumnName(Text):
    """The name of a column: in a document, a number or true is read as it is spelled."""

    says: str = field(default="must be the name of one column.", kw_only=True)

    def shape(self) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean"]}


@dataclass(frozen=True, eq=False)
class Scalar(Rule):
    """A text, a number, true, false or null."""

    says: str = field(default="must be a text.", kw_only=True)

    def accept(self, value: Any) -> Any:
        if not isinstance(value, str | int | float | None):
            refuse(self.says)
        return value

    def shape(self) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean", "null"]}


@dataclass(frozen=True, eq=False)
class ListOf(Rule):
    """A list whose items follow one rule; it is kept as a tuple."""

    item: Readable = field(default_factory=Text, kw_only=True)
    least: int = field(default=1, kw_only=True)
    most: int | None = field(default=None, kw_only=True)
    is_unique: bool = field(default=False, kw_only=True)

    def core(self, handler: Any) -> Any:
        items = core_schema.tuple_variable_schema(self.item.core(handler))
        return core_schema.no_info_wrap_validator_function(self.read, items)

    def read(self, given: Any, read_items: Callable[[Any], Any]) -> Any:
        if not isinstance(given, (list, tuple)):
            refuse(self.says)
        if len(given) < self.least or (self.most is not None and len(given) > self.most):
            refuse(self.says)
        if self.is_unique and len(set(map(str, given))) < len(given):
            refuse(self.says)
        return read_items(given)

    def shape(self) -> dict[str, Any]:
        limits = {
            **({"minItems": self.least} if self.least else {}),
            **({"maxItems": self.most} if self.most else {}),
        }
        unique = {"uniqueItems": True} if self.is_unique else {}
        return {"type": "array", "items": self.item.schema(), **limits, **unique}


@dataclass(frozen=True, eq=False)
class ColumnNames(ListOf):
    """Some columns, none of them twice."""

    says: str = field(
        default="must be a list of columns, none of them twice, such as [age, zip].", kw_only=True
    )
    item: Readable = field(default_factory=ColumnName, kw_only=True)
    is_unique: bool = field(default=True, kw_only=True)


@dataclass(frozen=True, eq=False)
class MappingOf(Rule):
    """A mapping from texts to values that follow one rule."""

    value: Readable = field(default_factory=Text, kw_only=True)
    least: int = field(default=0, kw_only=True)

    def core(self, handler: Any) -> Any:
        values = core_schema.dict_schema(core_schema.any_schema(), self.value.core(handler))
        return core_schema.no_info_wrap_validator_function(self.read, values)

    def read(self, given: Any, read_values: Callable[[Any], Any]) -> Any:
        if not isinstance(given, Mapping) or len(given) < self.least:
            refuse(self.says)
        return read_values(given)

    def shape(self) -> dict[str, Any]:
        least = {"minProperties": self.least} if self.least else {}
        return {"type": "object", "additionalProperties": self.value.schema(), **least}


@dataclass(frozen=True, eq=False)
class Either(Rule):
    """A single value that follows one rule, or a list or mapping that follows another."""

    one: Rule = field(default_factory=Text, kw_only=True)
    other: Readable = field(default_factory=Text, kw_only=True)

    def core(self, handler: Any) -> Any:
        return core_schema.no_info_wrap_validator_function(self.read, self.other.core(handler))

    def read(self, given: Any, read_other: Callable[[Any], Any]) -> Any:
        if isinstance(given, str):
            return self.one.accept(given)
        if isinstance(given, (int, float, Fraction)) and isinstance(self.one, NumberRule):
            return self.one.accept(given)
        if not isinstance(given, (Mapping, list, tuple)) and not is_dataclass(given):
            refuse(self.says)
        return read_other(given)

    def shape(self) -> dict[str, Any]:
        return {"anyOf": [self.one.schema(), self.other.schema()]}


@dataclass(frozen=True, eq=False)
class Later(Rule):
    """What the format has, and a later version will offer."""

    def accept(self, _value: Any) -> NoReturn:
        raise PydanticCustomError(LATER, "later", {})

    def shape(self) -> dict[str, Any]:
        return {"x-later": True}


OUR_REF = "x-ref"
"""In place of ``$ref`` while pydantic makes a schema: it would look for the definition among its own."""


def rename_key(schema: Any, key: str, other: str) -> Any:
    """The schema with another word for a key, wherever it stands."""
    if isinstance(schema, dict):
        return {
            other if word == key else word: rename_key(value, key, other) for word, value in schema.items()
        }
    return [rename_key(item, key, other) for item in schema] if isinstance(schema, list) else schema
