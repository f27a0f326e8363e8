"""YAML without surprises: texts, numbers, true, false and null in mappings and lists, and nothing else.

``parse`` reads one document into nodes by the core rules of YAML 1.2. It refuses tags, anchors, aliases,
directives, repeated keys and further documents; a scalar that was written without quotes stays a
:class:`Bare` text until whoever knows what is wanted in its place asks ``core`` what it means.
``dump`` writes what ``parse``, and every other reader of YAML, takes the same way.

libyaml reads most documents, thirty times faster than ruamel.yaml, which reads the rest: whatever libyaml refuses, and
the few constructs that the two read differently (tabs, block scalars, line breaks of YAML 1.1).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from sfumato.errors import short

MAX_DEPTH = 100
DEPTH_OF_LINES = 6
"""Lines are remembered down to this depth: enough to find any key but those within a large tree."""

Where = tuple[str | int, ...]
"""Where a node stands in its document: keys and positions, such as ``("attributes", "age", "bounds", 0)``."""


class NotPlain(ValueError):  # noqa: N818 - reads as a sentence
    """A document that is not YAML, or uses more of it than is allowed."""

    def __init__(self, line: int | None, sentence: str) -> None:
        self.line, self.sentence = line, sentence
        super().__init__(sentence)


class Bare(str):
    """A scalar that was written without quotes."""

    __slots__ = ()


@dataclass(slots=True)
class ParsedYaml:
    """A parsed document: its root (``None`` if it is empty), and the line of each key and item."""

    root: Any = None
    lines: dict[Where, int] = field(default_factory=dict)
    repeated: list[tuple[int, str]] = field(default_factory=list)
    """Keys that stand twice in one mapping: the line, and a sentence. The first one counts."""


def parse(text: str) -> ParsedYaml:
    r"""The one document in ``text``.

    >>> nodes = parse("a: [01, 'x']\nb: yes")
    >>> nodes.root, nodes.lines[("b",)]
    ({'a': ['01', 'x'], 'b': 'yes'}, 2)
    """
    try:
        return _build(_fast_events(text))
    except _AskTheOther:
        return _build(_sure_events(text))


class _AskTheOther(Exception):  # noqa: N818 - what to do, not what went wrong
    """libyaml cannot read the document, or may read it otherwise than YAML 1.2 says."""


_READ_DIFFERENTLY = re.compile("[\t\x85\u2028\u2029\ufeff]")


def _fast_events(text: str) -> Iterator[Any]:
    loader = getattr(yaml, "CSafeLoader", None)
    if loader is None or _READ_DIFFERENTLY.search(text):
        raise _AskTheOther
    try:
        for event in yaml.parse(text, Loader=loader):
            if getattr(event, "style", None) in ("|", ">") or _has_any(event, "anchor", "version", "tags"):
                raise _AskTheOther
            yield event
    except (yaml.YAMLError, ValueError, OverflowError):
        raise _AskTheOther from None


def _has_any(event: Any, *fields: str) -> bool:
    return any(getattr(event, name, None) for name in fields)


def _sure_events(text: str) -> Iterator[Any]:
    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except NotPlain:
        raise
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise NotPlain(line, _plain_words(error)) from None
    except (YAMLError, ValueError, OverflowError) as error:
        position = getattr(error, "position", None)
        line = None if position is None else text.count("\n", 0, position) + 1
        raise NotPlain(line, "a character cannot stand in YAML.") from None


def _build(events: Iterator[Any]) -> ParsedYaml:
    builder = _Builder()
    for event in events:
        builder.take(event)
    return builder.nodes


_QUOTE_STARS = (
    'anchors (&) and aliases (*) are not allowed; put quotes around a text that begins so, such as "*".'
)
_SENTENCES = (
    ("'\\t'", "a tab stands here; indent with spaces."),
    ("that cannot start any token", "a value cannot begin with %, @ or `; put quotes around it."),
    ("mapping values are not allowed", "a second colon stands here; put quotes around a text that has one."),
    ("expected ',' or ']'", "a list that begins with [ lacks a comma, or its ]."),
    ("expected ',' or '}'", "a mapping that begins with { lacks a comma, or its }."),
    ("escape", "a backslash within double quotes begins no character; use single quotes, or write it twice."),
    ("alphabetic or numeric", _QUOTE_STARS),
    ("undefined alias", _QUOTE_STARS),
    ("unexpected end of stream", "a quotation mark opens here or above and is never closed."),
    (
        "could not find expected ':'",
        "a text has no colon after it; write key: value, indented as its neighbours.",
    ),
    ("<block end>", "this line is not indented as its neighbours are, or a dash or a colon is missing."),
    ("tag", "tags (!) are not allowed; put quotes around a text that begins with !."),
)
_NO_YAML = (
    "this cannot be read as YAML; look for a missing quote, colon, comma or bracket here or just above."
)


def _plain_words(error: MarkedYAMLError) -> str:
    """What the parser complains about, without its own words: those are about tokens, and may repeat the text."""
    problem = str(error.problem)
    return next((sentence for words, sentence in _SENTENCES if words in problem), _NO_YAML)


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come yet, and the key whose value has not."""

    node: dict[str, Any] | list[Any]
    where: Where
    key: str | None = None


class _Builder:
    """Builds nodes from the events of the parser.

    Working on events rather than on composed nodes means that nothing is expanded, and nothing recurses
    before its depth is known.
    """

    def __init__(self) -> None:
        self.nodes = ParsedYaml()
        self._n_documents = 0
        self._open: list[_Open] = []

    def take(self, event: Any) -> None:
        """An event of either parser: they have the same names and fields."""
        kind, line = type(event).__name__, event.start_mark.line + 1
        if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
            raise NotPlain(line, _QUOTE_STARS)
        if getattr(event, "tag", None) is not None:
            raise NotPlain(line, "tags (!) are not allowed; put quotes around a text that begins with !.")
        if kind == "ScalarEvent":
            self._add(event.value if event.style else Bare(event.value), line)
        elif kind == "MappingStartEvent":
            self._start({}, line)
        elif kind == "SequenceStartEvent":
            self._start([], line)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._open.pop()
        elif kind == "DocumentStartEvent":
            self._start_document(event, line)

    def _start_document(self, event: Any, line: int) -> None:
        self._n_documents += 1
        if self._n_documents > 1:
            raise NotPlain(line, "a second document starts here; leave out the --- and what follows.")
        if event.tags or event.version not in (None, (1, 2)):
            raise NotPlain(line, "directives (%) are not allowed; this is read as YAML 1.2.")

    def _start(self, node: dict[str, Any] | list[Any], line: int) -> None:
        if len(self._open) == MAX_DEPTH:
            raise NotPlain(line, f"this is nested deeper than {MAX_DEPTH} levels.")
        self._open.append(_Open(node, self._add(node, line)))

    def _add(self, node: Any, line: int) -> Where:
        """Put a node into the innermost open mapping or list, and return where it stands."""
        if not self._open:
            self.nodes.root = node
            return ()
        top = self._open[-1]
        if isinstance(top.node, list):
            top.node.append(node)
            return self._remember((*top.where, len(top.node) - 1), line)
        if top.key is None:
            return self._add_key(top, top.node, node, line)
        key, top.key = top.key, None
        top.node.setdefault(key, node)
        return (*top.where, key)

    def _add_key(self, top: _Open, mapping: dict[str, Any], node: Any, line: int) -> Where:
        if not isinstance(node, str):
            raise NotPlain(line, "a key must be a text.")
        top.key = str(node)
        if top.key in mapping:
            self.nodes.repeated.append((line, f"the key {short(top.key)} stands twice in one mapping."))
            return (*top.where, top.key)
        return self._remember((*top.where, top.key), line)

    def _remember(self, where: Where, line: int) -> Where:
        if len(where) <= DEPTH_OF_LINES:
            self.nodes.lines[where] = line
        return where


# --- what a bare scalar means -----------------------------------------------------------------------------

_INTEGER = re.compile(r"[-+]?[0-9]+")
_OF_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(NULLS, None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def core(text: str) -> str | float | bool | None:
    """What a bare scalar means by the core rules of YAML 1.2; every number that is not finite is ``inf``.

    >>> [core(text) for text in ("1e8", "08", "0x1F", "yes", "true", "2024-01-31", "")]
    [100000000.0, 8, 31, 'yes', True, '2024-01-31', None]
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= 400 else math.inf
    if _OF_BASE.fullmatch(text):
        return int(text, 0) if len(text) <= 400 else math.inf
    if _FLOAT.fullmatch(text):
        return float(text)
    return math.inf if _NOT_FINITE.fullmatch(text) else str(text)


# --- writing ----------------------------------------------------------------------------------------------

_WIDTH = 100
_BARE = re.compile(r"[^\W\d][\w-]*( [\w-]+)*")
_WORDS_OF_ANY_VERSION = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_LONGEST_KEY = 1000
"""A key of more than 1024 characters must be announced with a question mark."""


def dump(data: Mapping[str, Any]) -> str:
    """Plain data as a document; texts that any reader might take for something else are quoted.

    >>> print(dump({"columns": {"on": {"role": "drop"}, "age": None}, "require": []}), end="")
    columns:
      "on": {role: drop}
      age: null
    require: []
    """
    return "".join(f"{line}\n" for line in _block(data, inline=False))


def _block(value: Mapping[str, Any] | list[Any], *, inline: bool = True) -> Iterator[str]:
    """A mapping or list line by line; ``inline`` lets an entry that fits on one line stand on one."""
    if isinstance(value, list):
        for item in value:
            yield from _entry("-", item, inline=True)
        return
    for key, item in value.items():
        written = _scalar(key)
        announced = len(written) > _LONGEST_KEY
        if announced:
            yield f"? {written}"
        yield from _entry(":" if announced else f"{written}:", item, inline=inline)


def _entry(head: str, item: Any, *, inline: bool) -> Iterator[str]:
    is_leaf = not item or not isinstance(item, Mapping | list)
    line = _join(_pieces(item), math.inf if is_leaf else _WIDTH - len(head) if inline else 0)
    if line is not None:
        yield f"{head} {line}"
        return
    yield head
    yield from (f"  {line}" for line in _block(item))


def _join(pieces: Iterable[str], width: float) -> str | None:
    """The pieces as one line, or ``None`` as soon as they are wider than ``width``."""
    line = ""
    for piece in pieces:
        line += piece
        if len(line) > width:
            return None
    return line


def _pieces(value: Any) -> Iterator[str]:
    """A value on one line, piece by piece."""
    if isinstance(value, Mapping):
        for position, (key, item) in enumerate(value.items()):
            yield f"{', ' if position else '{'}{_scalar(key)}: "
            yield from _pieces(item)
        yield "}" if value else "{}"
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield ", " if position else "["
            yield from _pieces(item)
        yield "]" if value else "[]"
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    text = json.dumps(value)
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


def _text(text: str) -> str:
    if _BARE.fullmatch(text) and text.lower() not in _WORDS_OF_ANY_VERSION:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isprintable():
        escaped = "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped)
    return f'"{escaped}"'
