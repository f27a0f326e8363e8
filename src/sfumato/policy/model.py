"""The parts of a policy: what may stand under each of their keys, by the rules of :mod:`sfumato.policy.rules`.

A part of a policy is a frozen dataclass that inherits from :class:`Part`. The type of each field carries its rule, such
as ``Annotated[float, NumberRule("What it is.", above=0, says="must be a number above 0.")]``. Of these classes pydantic
makes the reader of documents (:func:`read`) and the JSON Schema (:meth:`Part.schema`); :func:`check` holds the same rules
against a value that was put together in code. So a rule stands once, beside its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from sfumato.errors import NotYet, did_you_mean, short
from sfumato.policy.kinds import as_plain
from sfumato.policy.mistakes import Mistake, PolicyMistakes, place
from sfumato.policy.rules import LATER, OUR_REF, WRONG, Exact, Readable, Rule, refuse, rename_key
from sfumato.policy.yaml import Where

T = TypeVar("T")
P = TypeVar("P", bound="Part")

UNKNOWN = "unknown"
"""The kind of mistake that is a key which nobody knows."""


@dataclass(frozen=True, eq=False)
class OrNothing(Rule):
    """A part, or null for none."""

    part: type[Part] = field(kw_only=True)

    def accept(self, value: Any) -> Any:
        """The reader of a part is made when one is there: a policy has one method, and there are four."""
        return None if value is None else _adapter(self.part).validate_python(value)

    def shape(self) -> dict[str, Any]:
        return {"description": self.part.meaning, "anyOf": [self.part.schema(), {"type": "null"}]}


@dataclass(frozen=True, eq=False)
class OneOf(Rule):
    """A mapping with one key, which tells by what rule its value is read."""

    keys: Mapping[str, Readable] = field(kw_only=True)

    def core(self, handler: Any) -> Any:
        optional = {
            key: core_schema.typed_dict_field(rule.core(handler), required=False)
            for key, rule in self.keys.items()
        }
        return core_schema.no_info_wrap_validator_function(self.read, core_schema.typed_dict_schema(optional))

    def read(self, given: Any, read_values: Callable[[Any], Any]) -> Any:
        return _read_keys(given, read_values, says=self.says, known=tuple(self.keys), n_keys=1)

    def shape(self) -> dict[str, Any]:
        about = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False}
        return {**about, "properties": {key: rule.schema() for key, rule in self.keys.items()}}


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
    def core(cls, handler: Any) -> Any:
        """How pydantic reads it."""
        return handler.generate_schema(cls)

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Its JSON Schema."""
        made = _adapter(cls).json_schema(schema_generator=_Schema)
        made.pop("title", None)
        return rename_key(made, OUR_REF, "$ref")  # type: ignore[no-any-return]

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
