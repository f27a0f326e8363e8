"""Strict reading of JSON documents: a model says what may stand in one, and a mistake is told in half a sentence.

A document is a pydantic model (:class:`StrictDocument`): its rules stand once, and its JSON Schema can be generated.
Nothing is converted on the way in: a number is no text, True is no number, and a key that the model lacks is refused.
No message holds a value of the document.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails, PydanticCustomError

from sfumato.errors import number_of

ABSENT: Any = None
"""The default of a key that may be left out, but may not be null."""


class DocumentError(Exception):
    """What is wrong with a document, to be put into a sentence that says which document it is."""


class RepeatedKeyError(DocumentError):
    """A key stands twice, which means one thing to one reader and another to the next."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__("a key stands twice in one mapping")


class StrictDocument(BaseModel):
    """A mapping of exactly these keys, each of exactly its type. It is compiled when it is first read.

    >>> class Person(StrictDocument):
    ...     name: str
    ...     children: int = ABSENT
    >>> check(Person, {"name": "Ada"}).name
    'Ada'
    >>> check(Person, {"name": "Ada", "children": "two"})
    Traceback (most recent call last):
    sfumato.release.strict_json.DocumentError: 'children' must be a whole number
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


D = TypeVar("D", bound=StrictDocument)

Count = Annotated[int, Field(ge=0)]


def wrong(words: str) -> PydanticCustomError:
    """For validators: what is wrong with a value, to be said after its name."""
    return PydanticCustomError("words", "{words}", {"words": words})


def wrong_as_a_whole(sentence: str) -> PydanticCustomError:
    """For validators: what is wrong with a document, where its keys do not fit together."""
    return PydanticCustomError("sentence", "{words}", {"words": sentence})


def _read_number_or_null(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float):
        raise wrong("must be a whole number or a number or null")
    try:
        return float(value)
    except OverflowError:
        raise wrong("is too large") from None


NumberOrNull = Annotated[
    float | None, BeforeValidator(_read_number_or_null), WithJsonSchema({"type": ["number", "null"]})
]


# ---- text ---------------------------------------------------------------------------------------------


def parse(text: str | bytes) -> Any:
    """The values in a JSON text. A key that stands twice, NaN and numbers beyond all bounds are refused.

    >>> parse('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        return json.loads(
            text.decode("utf-8") if isinstance(text, bytes) else text,
            object_pairs_hook=_without_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError:
        raise DocumentError("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise DocumentError(f"its JSON is cut off or wrong in line {error.lineno}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits; brackets without end
        raise DocumentError("its JSON cannot be read") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise RepeatedKeyError(key)
        found[key] = value
    return found


def _refuse_constant(word: str) -> float:
    raise DocumentError(f"it holds {word}, which is no number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise DocumentError("it holds a number that is too large")
    return number


# ---- values -------------------------------------------------------------------------------------------


def check(model: type[D], data: Any) -> D:
    """The document that ``data`` is; a DocumentError says the first thing that is wrong with it."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_input=False)
    raise DocumentError(_describe(mistakes[0], mistakes))


_KINDS = {
    "string_type": "a text",
    "string_unicode": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
}
"""What pydantic's errors of type ask for."""


def _describe(mistake: ErrorDetails, mistakes: list[ErrorDetails]) -> str:
    kind, place, context = mistake["type"], mistake["loc"], mistake.get("ctx", {})
    match kind:
        case "missing":
            return f"{_name(place[:-1])} lacks {place[-1]!r}"
        case "extra_forbidden":
            others = [one for one in mistakes if (one["type"], one["loc"][:-1]) == (kind, place[:-1])]
            return f"{_name(place[:-1])} has {number_of(len(others), 'key')} too many"
        case "greater_than_equal":
            return f"{_name(place)} is below {context['ge']}"
        case "too_short":
            return f"{_name(place)} must not be empty"
        case "words":
            return f"{_name(place)} {context['words']}"
        case "sentence":
            return str(context["words"])
    return f"{_name(place)} must be {_KINDS.get(kind, 'something else')}"


def _name(place: tuple[int | str, ...]) -> str:
    """What a place of a document is called.

    >>> _name(()), _name(("claims", "rows")), _name(("ledger", 3))
    ('it', "'rows'", "an item of 'ledger'")
    """
    if not place:
        return "it"
    return f"an item of {place[-2]!r}" if isinstance(place[-1], int) else repr(place[-1])


def unless_none(**values: Any) -> dict[str, Any]:
    """The keys of a document that are there.

    >>> unless_none(made=None, rows=0)
    {'rows': 0}
    """
    return {name: value for name, value in values.items() if value is not None}


def dump(document: StrictDocument) -> Mapping[str, Any]:
    """A document as plain values, its keys in the order of the model; those that were left out stay out."""
    return document.model_dump(by_alias=True, exclude_unset=True)
