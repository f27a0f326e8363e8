"""The policy as a file: a YAML document that the published JSON Schema holds of.

``read``, ``load`` and ``from_plain`` end in a :class:`Document` of plain data (mappings, lists, texts,
numbers); :mod:`sfumato.policy.document` gives it meaning. Where a text is wanted (a column's name, a category, a
label) the author's own spelling is kept, so that ``01`` and ``yes`` stay as they are.

:mod:`sfumato.policy.shape` has the sentences for values that do not fit; they stand in the JSON Schema, too
(``errorMessage``), where editors find them.
"""

from __future__ import annotations

import copy
import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.errors import PolicyError, short
from sfumato.policy import shape
from sfumato.policy.mistakes import Mistake, Mistakes, Origin
from sfumato.policy.yaml import MAX_DEPTH, NULLS, Bare, NotPlain, Where, core, parse

MAX_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class Document:
    """A policy as plain data, and what the schema has against it."""

    data: dict[str, Any]
    origin: Origin
    mistakes: Mistakes


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
    text = _decode(content, name)
    try:
        nodes = parse(text)
    except NotPlain as error:
        sentence = _LOOKS_LIKE_A_TABLE if _is_table(text) else error.sentence
        raise Origin(name).error([Mistake((), sentence, line=error.line)]) from None
    if isinstance(nodes.root, str) and _is_table(text):
        raise PolicyError(f"{name}: {_LOOKS_LIKE_A_TABLE}")
    again = [Mistake((), sentence, line=line) for line, sentence in nodes.repeated]
    return _check_document(nodes.root, Origin(name, nodes.lines), Mistakes(again))


def from_plain(data: Mapping[str, Any]) -> Document:
    """A policy from mappings and lists, such as the one in a certificate."""
    return _check_document(data, Origin(), Mistakes())


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of the policy.

    >>> json_schema()["title"]
    'Sfumato policy'
    """
    return copy.deepcopy(shape.make_schema())


def _decode(content: str | bytes, name: str) -> str:
    size = len(content) if isinstance(content, bytes) else len(content.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise PolicyError(f"{name}: the document is larger than {MAX_BYTES // 1_000_000} MB.")
    if isinstance(content, str):
        return content.removeprefix("\ufeff")
    if content.startswith(_TABLES):
        raise PolicyError(f"{name}: {_LOOKS_LIKE_A_TABLE}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if _is_table(content.decode("latin-1")):
            raise PolicyError(f"{name}: {_LOOKS_LIKE_A_TABLE}") from None
        line = content[: error.start].count(b"\n") + 1
        raise PolicyError(f"{name}, line {line}: the file is not UTF-8 text; save it as UTF-8.") from None


_TABLES = (b"PAR1", b"ARROW1", b"\x1f\x8b", b"PK\x03\x04")
"""How files of Parquet, Arrow and gzip begin, and those of spreadsheets."""
_LOOKS_LIKE_A_TABLE = (
    "this looks like a table, not a policy; a policy is a YAML document, such as profile drafts."
)


def _is_table(text: str) -> bool:
    """Does the text look like a CSV? Two lines with as many cells each, and no key."""
    lines = [line for line in text[:100_000].splitlines() if line.strip()][:2]
    if len(lines) < 2 or lines[0][0] in "{[#" or re.match(r"[\w-]+:(\s|$)", lines[0]):
        return False
    n_cells = ([len(cells) for cells in csv.reader(lines, delimiter=mark)] for mark in ",;\t|")
    return any(widths[0] == widths[-1] > 1 for widths in n_cells)


# --- from nodes to plain data -----------------------------------------------------------------------------

_TEXT_PLACES = (
    ("attributes", "*", "values", "*"),
    ("attributes", "*", "missing-values", "*"),
    ("attributes", "*", "hierarchy"),
    ("attributes", "*", "key"),
    ("attributes", "*", "shift", "per"),
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
    ("unit", "column"),
    ("title",),
)
_TREE = ("attributes", "*", "hierarchy", "tree")


@dataclass(slots=True)
class _Places:
    """What stands below a place: whether a scalar there is a column's name, a category or a label, kept as spelled."""

    is_text: bool = False
    below: dict[str, _Places] = field(default_factory=dict)
    is_tree: bool = False

    def at(self, key: str | int) -> _Places:
        if self.is_tree:
            return self
        return self.below.get(str(key)) or self.below.get("*") or _NOWHERE


_NOWHERE = _Places()


def _text_places() -> _Places:
    root = _Places()
    for where in (*_TEXT_PLACES, _TREE):
        here = root
        for key in where:
            here = here.below.setdefault(key, _Places())
        here.is_text, here.is_tree = True, where == _TREE
    return root


_ROOT = _text_places()


class _PlainReader:
    """Makes mappings with text keys, lists, texts and finite numbers of nodes, or of what a caller handed in."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = mistakes

    def read(self, value: Any, where: Where = (), places: _Places = _ROOT) -> Any:
        if len(where) > MAX_DEPTH:
            self._complain(where[:4], f"this is nested deeper than {MAX_DEPTH} levels.")
            return None
        if isinstance(value, Mapping):
            return self._mapping(value, where, places)
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            return self._list(value, where, places.at(0))
        if not places.is_text:
            return self._scalar(value, where)
        is_null = value is None or (isinstance(value, Bare) and core(value) is None)
        return None if is_null else self._spell(value, where)

    def _list(self, items: Sequence[Any], where: Where, places: _Places) -> list[Any]:
        """Null in a list of texts is spelled out, too; but in a tree it is the missing value."""
        spells_null = places.is_text and not places.is_tree
        plain: list[Any] = []
        for position, item in enumerate(items):
            if (
                places.is_text
                and isinstance(item, str)
                and item.isascii()
                and (spells_null or item not in NULLS)
            ):
                plain.append(str(item))
            elif spells_null and not isinstance(item, (Mapping, list, tuple)):
                plain.append(self._spell(item, (*where, position)))
            else:
                plain.append(self.read(item, (*where, position), places))
        return plain

    def _mapping(self, value: Mapping[Any, Any], where: Where, places: _Places) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key, item in value.items():
            text = self._spell(key, where)
            if text in plain:
                self._complain(where, f"the key {short(text)} stands here twice.")
            else:
                plain[text] = self.read(item, (*where, text), places.at(text))
        return plain

    def _spell(self, value: Any, where: Where) -> str:
        """A scalar as text: as the author wrote it, or as JSON would."""
        return self._text(value, where) if isinstance(value, str) else json.dumps(self._scalar(value, where))

    def _scalar(self, value: Any, where: Where) -> Any:
        if isinstance(value, Bare):
            value = core(value)
        if isinstance(value, str):
            return self._text(value, where)
        if value is not None and not isinstance(value, (bool, int, float)):
            self._complain(where, "this is neither a mapping, a list, a text nor a number.")
            return None
        if not _is_finite(value):
            self._complain(where, "a number must be finite.")
            return None
        return value

    def _text(self, text: str, where: Where) -> str:
        """The text; two halves of a character, as JSON writes an emoji, become one."""
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            try:
                return text.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                self._complain(where[:2], "a text holds half of a character (a lone surrogate).")
                return ""
        return str(text)

    def _complain(self, where: Where, sentence: str) -> None:
        self.mistakes.found.append(Mistake(where, sentence))


def _is_finite(value: float | None) -> bool:
    try:
        return value is None or math.isfinite(value)
    except OverflowError:
        return False


# --- the shape ------------------------------------------------------------------------------------------


def _check_document(nodes: Any, origin: Origin, mistakes: Mistakes) -> Document:
    """The document with these nodes as plain data, and everything that the schema has against it."""
    data = _PlainReader(mistakes).read(nodes)
    if data is None and not mistakes.found:
        raise PolicyError(f"{origin.name}: the document is empty; name the columns under attributes.")
    unreadable = {mistake.where for mistake in mistakes.found}
    mistakes.found += [
        mistake for mistake in shape.find_mistakes(data) if not _stands_below(mistake.where, unreadable)
    ]
    attributes = data.get("attributes") if isinstance(data, dict) else None
    if not isinstance(attributes, dict) or not attributes or mistakes.is_unreadable("attributes"):
        raise origin.error(mistakes.found)
    return Document(data, origin, mistakes)


def _stands_below(where: Where, places: set[Where]) -> bool:
    """Does it stand at or below a place that could not be read? Then there is nothing to say about it."""
    return any(where[:depth] in places for depth in range(1, len(where) + 1))
