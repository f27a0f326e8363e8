"""What may stand where in a policy: rules for values, each with its sentence, and the parts that are made of them.

A part of a policy is a frozen dataclass that inherits from :class:`Part`. The type of each field carries its rule, such
as ``Annotated[float, Number("What it is.", above=0, says="must be a number above 0.")]``. Of these classes pydantic makes
the reader of documents (:func:`read`) and the JSON Schema (:func:`schema_of`); :func:`check` holds the same rules against
a value that was put together in code. So a rule stands once, beside its sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NoReturn, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from sfumato.errors import NotYet, did_you_mean
from sfumato.policy.kinds import as_plain, read_exactly
from sfumato.policy.mistakes import Mistake, PolicyMistakes, place
from sfumato.policy.yaml import Where, short

T = TypeVar("T")
P = TypeVar("P", bound="Part")

WRONG, UNKNOWN, LATER = "wrong", "unknown", "later"
"""Kinds of mistakes: a value that does not fit, a key that nobody knows, and one that a later version will know."""


def is_number(value: object) -> bool:
    """Is it a finite number? True and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def refuse(sentence: str) -> NoReturn:
    """Complain about the value that a rule looks at."""
    raise PydanticCustomError(WRONG, "{sentence}", {"sentence": sentence})


# --- rules ------------------------------------------------------------------------------------------------


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
        return _rename(self.schema(), "$ref", _OUR_REF)


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

    item: Rule | type[Part] = field(default_factory=Text, kw_only=True)
    least: int = field(default=1, kw_only=True)
    most: int | None = field(default=None, kw_only=True)
    is_unique: bool = field(default=False, kw_only=True)

    def core(self, handler: Any) -> Any:
        items = core_schema.tuple_variable_schema(_core_of(self.item, handler))
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
        return {"type": "array", "items": schema_of(self.item), **limits, **unique}


@dataclass(frozen=True, eq=False)
class ColumnNames(ListOf):
    """Some columns, none of them twice."""

    says: str = field(
        default="must be a list of columns, none of them twice, such as [age, zip].", kw_only=True
    )
    item: Rule | type[Part] = field(default_factory=ColumnName, kw_only=True)
    is_unique: bool = field(default=True, kw_only=True)


@dataclass(frozen=True, eq=False)
class MappingOf(Rule):
    """A mapping from texts to values that follow one rule."""

    value: Rule | type[Part] = field(default_factory=Text, kw_only=True)
    least: int = field(default=0, kw_only=True)

    def core(self, handler: Any) -> Any:
        values = core_schema.dict_schema(core_schema.any_schema(), _core_of(self.value, handler))
        return core_schema.no_info_wrap_validator_function(self.read, values)

    def read(self, given: Any, read_values: Callable[[Any], Any]) -> Any:
        if not isinstance(given, Mapping) or len(given) < self.least:
            refuse(self.says)
        return read_values(given)

    def shape(self) -> dict[str, Any]:
        least = {"minProperties": self.least} if self.least else {}
        return {"type": "object", "additionalProperties": schema_of(self.value), **least}


@dataclass(frozen=True, eq=False)
class Either(Rule):
    """A single value that follows one rule, or a list or mapping that follows another."""

    one: Rule = field(default_factory=Text, kw_only=True)
    other: Rule | type[Part] = field(default_factory=Text, kw_only=True)

    def core(self, handler: Any) -> Any:
        return core_schema.no_info_wrap_validator_function(self.read, _core_of(self.other, handler))

    def read(self, given: Any, read_other: Callable[[Any], Any]) -> Any:
        if isinstance(given, str):
            return self.one.accept(given)
        if isinstance(given, (int, float, Fraction)) and isinstance(self.one, NumberRule):
            return self.one.accept(given)
        if not isinstance(given, (Mapping, list, tuple, Part)):
            refuse(self.says)
        return read_other(given)

    def shape(self) -> dict[str, Any]:
        return {"anyOf": [self.one.schema(), schema_of(self.other)]}


@dataclass(frozen=True, eq=False)
class OrNothing(Rule):
    """A part, or null for none."""

    part: type[Part] = field(kw_only=True)

    def accept(self, value: Any) -> Any:
        """The reader of a part is made when one is there: a policy has one method, and there are four."""
        return None if value is None else _adapter(self.part).validate_python(value)

    def shape(self) -> dict[str, Any]:
        return {"description": self.part.meaning, "anyOf": [schema_of(self.part), {"type": "null"}]}


@dataclass(frozen=True, eq=False)
class OneOf(Rule):
    """A mapping with one key, which tells by what rule its value is read."""

    keys: Mapping[str, Rule | type[Part]] = field(kw_only=True)

    def core(self, handler: Any) -> Any:
        optional = {
            key: core_schema.typed_dict_field(_core_of(rule, handler), required=False)
            for key, rule in self.keys.items()
        }
        return core_schema.no_info_wrap_validator_function(self.read, core_schema.typed_dict_schema(optional))

    def read(self, given: Any, read_values: Callable[[Any], Any]) -> Any:
        return _read_keys(given, read_values, says=self.says, known=tuple(self.keys), n_keys=1)

    def shape(self) -> dict[str, Any]:
        about = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False}
        return {**about, "properties": {key: schema_of(rule) for key, rule in self.keys.items()}}


@dataclass(frozen=True, eq=False)
class Later(Rule):
    """What the format has, and a later version will offer."""

    def accept(self, _value: Any) -> NoReturn:
        raise PydanticCustomError(LATER, "later", {})

    def shape(self) -> dict[str, Any]:
        return {"x-later": True}


def mapping_core(rules: Mapping[str, Rule], required: Collection[str], *, says: str, handler: Any) -> Any:
    """How pydantic reads a mapping with these keys."""
    keys = {
        key: core_schema.typed_dict_field(rule.core(handler), required=key in required)
        for key, rule in rules.items()
    }
    return core_schema.no_info_wrap_validator_function(
        lambda given, read_values: _read_keys(given, read_values, says=says, known=tuple(rules)),
        core_schema.typed_dict_schema(keys),
    )


def _core_of(rule: Rule | type[Part], handler: Any) -> Any:
    return rule.core(handler) if isinstance(rule, Rule) else handler.generate_schema(rule)


# --- parts ------------------------------------------------------------------------------------------------


class Part:
    """A part of a policy that has keys: a frozen dataclass, whose fields carry their rules.

    A field called ``rows_in_memory`` is the key ``rows-in-memory``; fields without a rule are no keys.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=lambda name: name.replace("_", "-")
    )
    meaning: ClassVar[str]
    says: ClassVar[str] = "must be a mapping or nothing."
    """The sentence for what is no mapping."""
    absent: ClassVar[Mapping[str, str]] = {}
    """Sentences for keys that are missing, where there is more to say than that; an empty one is said by others."""

    @classmethod
    def complain(cls, _given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        """What makes no sense as it is written: the place below the part, and a sentence."""
        return iter(())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return core_schema.no_info_wrap_validator_function(cls._read, handler(source))

    @classmethod
    def _read(cls, given: Any, read_fields: Callable[[Any], Any]) -> Any:
        if isinstance(given, cls):
            return given
        return _read_keys(
            given,
            read_fields,
            says=cls.says,
            known=tuple(rules_of(cls)),
            complain=cls.complain,
            absent=cls.absent,
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        made = handler.resolve_ref_schema(handler(core))
        known = rules_of(cls)
        properties = {key: shape for key, shape in made.pop("properties", {}).items() if key in known}
        for shape in properties.values():
            if shape.get("default", ...) is None:
                del shape["default"]  # an editor would offer null
        about = {"description": cls.meaning, "additionalProperties": False, "properties": properties}
        return {**made, **about, "errorMessage": cls.says}


def _read_keys(
    given: Any,
    read_values: Callable[[Any], Any],
    *,
    says: str,
    known: Sequence[str],
    n_keys: int | None = None,
    complain: Callable[[Mapping[str, Any]], Iterator[tuple[tuple[str, ...], str]]] | None = None,
    absent: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """Read the values of a mapping, and say everything that is wrong with its keys and with them."""
    if not isinstance(given, Mapping):
        refuse(says)
    strange = [key for key in given if key not in known]
    details = [_detail((key,), UNKNOWN, {"known": known}) for key in strange]
    if n_keys is not None and len(given) != n_keys:
        details.append(_detail((), WRONG, {"sentence": says}))
    for where, sentence in complain(given) if complain is not None else ():
        details.append(_detail(where, WRONG, {"sentence": sentence}))
    made = None
    try:
        made = read_values({key: value for key, value in given.items() if key in known})
    except ValidationError as error:
        hints = {did_you_mean(key, known) for key in strange}
        details += _details(error, hints, absent)
    if details:
        raise ValidationError.from_exception_data("policy", details)
    return made


def _details(
    error: ValidationError, hints: Collection[str], absent: Mapping[str, str]
) -> Iterator[InitErrorDetails]:
    """What was said of the values; a key that was only misspelt is not missing, too."""
    for one in error.errors(include_url=False):
        key = str(one["loc"][0])
        if one["type"] != "missing":
            yield _detail(one["loc"], one["type"], one.get("ctx", {}))
        elif f" Did you mean {key!r}?" not in hints:
            sentence = absent.get(key, f"the key {key!r} is missing.")
            if sentence:
                yield _detail((), WRONG, {"sentence": sentence})


def _detail(where: tuple[int | str, ...], kind: Any, context: dict[str, Any]) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError(kind, "{sentence}", context), loc=where, input=None)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a part: the field that holds its value, and the rule if that is no part itself."""

    field: str
    rule: Rule | None
    default: Any


def rules_of(part: Any) -> dict[str, Key]:
    """The keys of a part, in order."""
    return _rules_of(part)


@cache
def _rules_of(part: Any) -> dict[str, Key]:
    hints = get_type_hints(part, include_extras=True)
    found = {}
    for one in fields(part):
        notes = getattr(hints[one.name], "__metadata__", ())
        rule = next((note for note in notes if isinstance(note, Rule)), None)
        alias = next((note.alias for note in notes if isinstance(note, FieldInfo)), None)
        kinds = get_args(hints[one.name]) or (hints[one.name],)
        if rule is not None or any(isinstance(kind, type) and issubclass(kind, Part) for kind in kinds):
            found[alias or one.name.replace("_", "-")] = Key(one.name, rule, one.default)
    return found


def _adapter(kind: Any) -> TypeAdapter[Any]:
    return _made_once(kind)


@cache
def _made_once(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def mistakes_in(rule: Rule | type[Part], given: Any, where: Where) -> list[Mistake]:
    """What a rule or a part has against what a document says at ``where``."""
    try:
        _adapter(Annotated[Any, rule] if isinstance(rule, Rule) else rule).validate_python(given)
    except ValidationError as error:
        return mistakes_of(error, where)
    return []


def read(part: type[P], given: Any, where: Where) -> P:
    """The part that a document declares at ``where``, or an error with everything that is wrong with it."""
    try:
        return _adapter(part).validate_python(given)  # type: ignore[no-any-return]
    except ValidationError as error:
        raise PolicyMistakes(mistakes_of(error, where)) from None


def mistakes_of(error: ValidationError, where: Where) -> list[Mistake]:
    """What the rules said, each with its place."""
    return list(dict.fromkeys(_mistake(one, where) for one in error.errors(include_url=False)))


def _mistake(error: Any, where: Where) -> Mistake:
    here, context = (*where, *error["loc"]), error.get("ctx", {})
    around = f" in {place(here[:-1])}" if here[:-1] else ""
    if error["type"] == LATER:
        return Mistake(here, f"{here[-1]!r}{around}", NotYet, says_where=True)
    if error["type"] == WRONG:
        return Mistake(here, context["sentence"])
    key, known = str(here[-1]), context["known"]
    hint = did_you_mean(key, known) or f" Known here: {', '.join(known)}."
    return Mistake(here, f"the key {short(key)} is unknown{around}.{hint}", says_where=True)


def check(part: Part, where: Where) -> Iterator[Mistake]:
    """What is wrong with a part that was put together in code: the same rules, the same sentences."""
    given = {}
    for word, key in rules_of(type(part)).items():
        value = getattr(part, key.field)
        if value == key.default:
            continue
        if isinstance(value, Part):
            yield from check(value, (*where, word))
        elif isinstance(key.rule, Exact) and not isinstance(value, Fraction | None):
            yield Mistake((*where, word), key.rule.says)
        elif value is not None:
            given[word] = value
    if not given:
        return
    try:
        _adapter(type(part)).validate_python(given)
    except ValidationError as error:
        yield from (mistake for mistake in mistakes_of(error, where) if mistake.where != where)


class _Schema(GenerateJsonSchema):
    """The JSON Schema of a part, without titles of keys, and with exact numbers as a policy writes them."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        return as_plain(dft) if isinstance(dft, Fraction) else GenerateJsonSchema.encode_default(self, dft)


def schema_of(rule: Rule | type[Part]) -> dict[str, Any]:
    """The JSON Schema of a rule or a part."""
    if isinstance(rule, Rule):
        return rule.schema()
    made = _adapter(rule).json_schema(schema_generator=_Schema)
    made.pop("title", None)
    return _rename(made, _OUR_REF, "$ref")  # type: ignore[no-any-return]


_OUR_REF = "x-ref"
"""In place of ``$ref`` while pydantic makes a schema: it would look for the definition among its own."""


def _rename(schema: Any, key: str, other: str) -> Any:
    if isinstance(schema, dict):
        return {other if word == key else word: _rename(value, key, other) for word, value in schema.items()}
    return [_rename(item, key, other) for item in schema] if isinstance(schema, list) else schema
