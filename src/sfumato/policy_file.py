"""The policy as a file: a YAML document that the published JSON Schema holds of.

``read``, ``load`` and ``from_plain`` end in a :class:`Document` of plain data (mappings, lists, texts,
numbers); :mod:`sfumato.policy` gives it meaning. Where a text is wanted (a column's name, a category, a
label) the author's own spelling is kept, so that ``01`` and ``yes`` stay as they are.

The sentences for values that do not fit stand in the schema itself (``errorMessage``), where editors
find them too.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

from sfumato.errors import NotYet, PolicyError, did_you_mean
from sfumato.plain_yaml import MAX_DEPTH, Bare, NotPlain, Where, core, parse, short
from sfumato.schema import Attribute, Schema

MAX_BYTES = 16_000_000


class Misfit(PolicyError):  # noqa: N818 - what it is, not that it is an error
    """A value that does not fit, and where it stands; whoever knows the file adds its name and line."""

    def __init__(self, where: Where, sentence: str) -> None:
        self.where, self.sentence = where, sentence
        super().__init__(Origin().about(where, sentence))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a policy comes from: the name of its file, and the line of each value where known."""

    name: str = "Policy"
    lines: Mapping[Where, int] = field(default_factory=dict)

    def at(self, where: Where) -> str:
        """File and line of a value, or of the nearest one around it."""
        line = self.line(where)
        return self.name if line is None else f"{self.name}, line {line}"

    def line(self, where: Where) -> int | None:
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where)

    def about(self, where: Where, sentence: str) -> str:
        """A sentence about a value, with file, line and place before it."""
        return ": ".join([self.at(where), *([place(where)] if where else []), sentence])

    def error(self, misfit: Misfit) -> PolicyError:
        return PolicyError(self.about(misfit.where, misfit.sentence))


@dataclass(frozen=True, slots=True)
class Document:
    """A policy as plain data of which the schema holds."""

    data: dict[str, Any]
    origin: Origin


def read(path: str | Path) -> Document:
    """The policy in a file."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise PolicyError(f"The policy file {str(path)!r} does not exist.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a usable path"
        raise PolicyError(f"The policy file {str(path)!r} cannot be read: {why}.") from None
    return load(content, name=Path(path).name)


def load(content: str | bytes, *, name: str = "Policy") -> Document:
    r"""A policy from the text of its YAML document.

    >>> load("attributes: {no: {role: quasi-identifier, values: [01, 1]}}\nrequire: []").data["attributes"]
    {'no': {'role': 'quasi-identifier', 'values': ['01', '1']}}
    """
    try:
        nodes = parse(_decoded(content, name))
    except NotPlain as error:
        at = name if error.line is None else f"{name}, line {error.line}"
        raise PolicyError(f"{at}: {error.sentence}") from None
    return _checked(nodes.root, Origin(name, nodes.lines))


def from_plain(data: Mapping[str, Any]) -> Document:
    """A policy from mappings and lists, such as the one in a certificate."""
    return _checked(data, Origin())


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of the policy.

    >>> json_schema()["title"]
    'Sfumato policy'
    """
    return copy.deepcopy(_schema())


def _decoded(content: str | bytes, name: str) -> str:
    size = len(content) if isinstance(content, bytes) else len(content.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise PolicyError(f"{name}: the document is larger than {MAX_BYTES // 1_000_000} MB.")
    if isinstance(content, str):
        return content.removeprefix("\ufeff")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise PolicyError(f"{name}, line {line}: the file is not UTF-8 text; save it as UTF-8.") from None


# --- from nodes to plain data -----------------------------------------------------------------------------

_TEXT_PLACES = (
    ("attributes", "*", "values", "*"),
    ("attributes", "*", "missing-values", "*"),
    ("attributes", "*", "hierarchy"),
    ("require", "*", "*", "of"),
    ("workload", "*", "*"),
    ("workload", "*", "*", "target"),
    ("workload", "*", "*", "targets", "*"),
    ("workload", "*", "*", "features", "*"),
    ("method", "mondrian", "split-only", "*"),
    ("method", "diffgen", "cuts", "*", "*"),
    ("method", "risk-utility", "weights", "column"),
    ("method", "risk-utility", "weights", "column", "*"),
    ("method", "risk-utility", "side-table"),
    ("unit",),
    ("title",),
)
_TREE = ("attributes", "*", "hierarchy", "tree")


def _wants_text(where: Where) -> bool:
    """Whether a scalar at ``where`` is a column's name, a category or a label, kept as it is spelled."""
    return _matches(where[: len(_TREE)], _TREE) or any(_matches(where, place) for place in _TEXT_PLACES)


def _matches(where: Where, pattern: tuple[str, ...]) -> bool:
    return len(where) == len(pattern) and all(
        want in ("*", key) for key, want in zip(where, pattern, strict=True)
    )


def _plain(value: Any, where: Where = ()) -> Any:
    """Nodes, or whatever a caller handed in, as mappings with text keys, lists, texts and finite numbers."""
    if len(where) > MAX_DEPTH:
        raise Misfit(where[:4], f"this is nested deeper than {MAX_DEPTH} levels.")
    if isinstance(value, Mapping):
        return _plain_mapping(value, where)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_plain(item, (*where, position)) for position, item in enumerate(value)]
    if _wants_text(where):
        return _label(value, where)
    return _scalar(value, where)


def _plain_mapping(value: Mapping[Any, Any], where: Where) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, item in value.items():
        text = _spelled(key, where)
        if text in plain:
            raise Misfit(where, f"the key {short(text)} stands here twice.")
        plain[text] = _plain(item, (*where, text))
    return plain


def _label(value: Any, where: Where) -> str | None:
    """A text; but null after a key or in a tree is null: nothing there, no child, the missing value."""
    is_null = value is None or (isinstance(value, Bare) and core(value) is None)
    if is_null and (isinstance(where[-1], str) or len(where) > len(_TREE)):
        return None
    return _spelled(value, where)


def _spelled(value: Any, where: Where) -> str:
    """A scalar as text: as the author wrote it, or as JSON would."""
    if isinstance(value, str):
        return _encodable(str(value), where)
    return json.dumps(_scalar(value, where))


def _scalar(value: Any, where: Where) -> Any:
    if isinstance(value, Bare):
        value = core(value)
    if isinstance(value, str):
        return _encodable(str(value), where)
    if value is not None and not isinstance(value, (bool, int, float)):
        raise Misfit(where, "this is neither a mapping, a list, a text nor a number.")
    if not _is_finite(value):
        raise Misfit(where, "a number must be finite.")
    return value


def _is_finite(value: float | None) -> bool:
    try:
        return value is None or math.isfinite(value)
    except OverflowError:
        return False


def _encodable(text: str, where: Where) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Misfit(where[:2], "a text holds half of a character (a lone surrogate).") from None
    return text


# --- the schema -------------------------------------------------------------------------------------------


@cache
def _schema() -> dict[str, Any]:
    text = resources.files("sfumato").joinpath("policy.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _later(_validator: Any, later: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """The keyword ``x-later``: this place, or these words, belong to a later version."""
    if later is True or (isinstance(instance, str) and instance in later):
        yield ValidationError("later")


@cache
def _validator() -> Any:
    extend: Any = validators.extend
    return extend(Draft202012Validator, {"x-later": _later})(_schema())


def _checked(nodes: Any, origin: Origin) -> Document:
    """The document with these nodes as plain data, once the schema holds of it."""
    try:
        data = _plain(nodes)
        if data is None:
            raise PolicyError(f"{origin.name}: the document is empty; name the columns under attributes.")
        _validate(data, origin)
    except Misfit as misfit:
        raise origin.error(misfit) from None
    return Document(data, origin)


def _validate(data: Any, origin: Origin) -> None:
    """Raise the most telling error: an unknown key first, what is merely not there yet last."""

    def urgency(error: ValidationError) -> tuple[int, int]:
        rank = {"additionalProperties": 0, "x-later": 2}.get(str(error.validator), 1)
        return rank, origin.line(_where(error)) or 0

    worst = min(_validator().iter_errors(_without_trees(data)), key=urgency, default=None)
    if worst is None:
        return
    if worst.validator == "additionalProperties":
        raise _unknown(worst, origin)
    if worst.validator == "x-later":
        raise _not_yet(worst, origin)
    raise Misfit(_where(worst), _sentence(worst))


def _without_trees(data: Any) -> Any:
    """The data with every inline tree cut short: building the hierarchy checks it, and far faster."""
    attributes = data.get("attributes") if isinstance(data, dict) else None
    if not isinstance(attributes, dict):
        return data
    return {**data, "attributes": {name: _without_tree(given) for name, given in attributes.items()}}


def _without_tree(given: Any) -> Any:
    hierarchy = given.get("hierarchy") if isinstance(given, dict) else None
    if isinstance(hierarchy, dict) and isinstance(hierarchy.get("tree"), dict | list) and hierarchy["tree"]:
        return {**given, "hierarchy": {**hierarchy, "tree": {"*": None}}}
    return given


def _where(error: Any) -> Where:
    """Where the trouble is; for an unknown key, the key itself."""
    where = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        return (*where, next(key for key in error.instance if key not in error.schema["properties"]))
    return where


def _unknown(error: Any, origin: Origin) -> PolicyError:
    *around, key = _where(error)
    known = error.schema["properties"]
    hint = did_you_mean(str(key), known) or f" Known here: {', '.join(known)}."
    here = f" in {place(tuple(around))}" if around else ""
    return PolicyError(f"{origin.at((*around, key))}: the key {short(str(key))} is unknown{here}.{hint}")


def _not_yet(error: Any, origin: Origin) -> NotYet:
    where = _where(error)
    word, around = (where[-1], where[:-1]) if error.validator_value is True else (error.instance, where)
    here = f" in {place(around)}" if around else ""
    return NotYet(f"{origin.at(where)}: {word!r}{here}")


_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "nothing",
}


def _sentence(error: Any) -> str:
    """One sentence about a value that the schema refuses; the value itself only if it is a short word."""
    if error.validator == "enum":
        return _not_one_of(error.instance, error.validator_value)
    if error.validator == "required" and "properties" in error.schema:
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"the key {missing!r} is missing."
    if "errorMessage" in error.schema:
        return str(error.schema["errorMessage"])
    if error.validator == "type":
        types = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
        return f"must be {' or '.join(_TYPES[name] for name in types)}."
    return f"does not fit ({error.validator}: {error.validator_value})."


def _not_one_of(value: Any, choices: Sequence[str]) -> str:
    listed = ", ".join(choices)
    if not isinstance(value, str):
        return f"must be one of {listed}." if len(choices) > 1 else f"must be {listed}."
    hint = did_you_mean(value, choices)
    return f"{short(value)} is not {'one of ' if len(choices) > 1 else ''}{listed}.{hint}"


# --- what policies ask of values ---------------------------------------------------------------------------


def declared_column(name: str, schema: Schema, path: Where) -> Attribute:
    """The column of that name; a :class:`Misfit` if the policy declares none."""
    if name not in schema:
        hint = did_you_mean(name, schema.names())
        raise Misfit(path, f"column {short(name)} does not stand under attributes.{hint}")
    return schema[name]


def is_number(value: object) -> bool:
    """Is it a finite number? True and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


# --- words ------------------------------------------------------------------------------------------------

_ITEMS = {"require": "requirement", "workload": "task"}


def place(where: Where) -> str:
    """Where a value stands, in words.

    >>> place(("attributes", "age", "hierarchy", "mask")), place(("require", 0, "k-anonymity"))
    ("column 'age', hierarchy mask", 'requirement 1, k-anonymity')
    """
    if not where:
        return "the policy"
    head, rest = str(where[0]), where[1:]
    if rest and head == "attributes":
        head, rest = f"column {short(str(rest[0]))}", rest[1:]
    elif rest and head in _ITEMS and isinstance(rest[0], int):
        head, rest = f"{_ITEMS[head]} {rest[0] + 1}", rest[1:]
    else:
        return " ".join([head, *_words(rest)])
    return ", ".join([head, *([" ".join(_words(rest))] if rest else [])])


def _words(where: Where) -> list[str]:
    return [f"item {key + 1}" if isinstance(key, int) else short(key)[1:-1] for key in where]
