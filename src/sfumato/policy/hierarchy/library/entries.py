"""The files of the library: what each hierarchy is, where it comes from, and how it is made.

A file has a title, a source and a licence, and one of three forms:

- ``values``: a list of values below named groups, as indented lines. Lines with several names of one value, parted by
  ``|``, make several hierarchies.
- ``blocks``: ranges of codes with titles, as indented lines, and ``below`` them prefixes of the codes (either may be
  empty). ``match`` says which texts are codes, and ``rewrite`` brings them to one spelling.
- ``intervals``: widths of numbers between ``bounds``.

``levels`` are named from the single values up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

from sfumato.errors import HierarchyError, did_you_mean
from sfumato.policy.hierarchy.files import ROOT
from sfumato.policy.hierarchy.tree import Hierarchy

FILES = {
    "ages": "ages",
    "countries": "countries",
    "countries-alpha3": "countries",
    "country-names": "countries",
    "education-names": "education-names",
    "icd9": "icd9",
    "icd10": "icd10",
    "isced2011": "isced2011",
    "isco08": "isco08",
    "nuts": "nuts",
    "postcodes-at": "postcodes-at",
    "postcodes-be": "postcodes-be",
    "postcodes-ca": "postcodes-ca",
    "postcodes-ch": "postcodes-ch",
    "postcodes-de": "postcodes-de",
    "postcodes-dk": "postcodes-dk",
    "postcodes-es": "postcodes-es",
    "postcodes-fr": "postcodes-fr",
    "postcodes-it": "postcodes-it",
    "postcodes-nl": "postcodes-nl",
    "postcodes-pl": "postcodes-pl",
    "postcodes-se": "postcodes-se",
    "postcodes-uk": "postcodes-uk",
    "soc2018": "soc2018",
    "us-state-names": "us-states",
    "us-states": "us-states",
    "us-zip": "us-zip",
}
"""The file of each hierarchy."""

NAMES = tuple(FILES)
"""The names of the library."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Ranges of codes that have a title; ``path`` are its label and those above it, from the coarsest down."""

    ranges: tuple[tuple[str, str], ...]
    path: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many characters of a code its ranges look at."""
        return len(self.ranges[0][0])

    def holds(self, code: str) -> bool:
        """Does a code begin within one of the ranges? Letters stand for letters only, and digits for digits.

        >>> block = CodeBlock((("C76", "C80"),), ("Neoplasms",))
        >>> block.holds("C789"), block.holds("C7A1")
        (True, False)
        """
        return any(
            first <= code[: len(first)] <= last and _shape_of(code[: len(first)]) == _shape_of(first)
            for first, last in self.ranges
        )


@dataclass(frozen=True, slots=True)
class Prefix:
    """A level below the blocks: codes that begin alike, and what they are called."""

    level: str
    pattern: re.Pattern[str]
    label: str

    @property
    def is_constant(self) -> bool:
        """Is it called the same whatever the code?"""
        return "\\" not in self.label


@dataclass(frozen=True, slots=True)
class CodeRule:
    """How codes are generalized: which texts are codes, the blocks they are in, and the prefixes below those."""

    match: re.Pattern[str]
    rewrite: tuple[tuple[re.Pattern[str], str], ...]
    blocks: tuple[CodeBlock, ...]
    prefixes: tuple[Prefix, ...]


@dataclass(frozen=True, slots=True)
class IntervalRule:
    """Widths of numbers between bounds."""

    bounds: tuple[float, float]
    widths: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """A hierarchy of the library.

    ``words`` are parts of the names that such columns have, and values that ``tells`` need no name to be known by.
    """

    name: str
    title: str
    source: str
    licence: str
    words: tuple[str, ...]
    tells: bool
    levels: tuple[str, ...]
    form: Hierarchy | CodeRule | IntervalRule


def find_entry(name: object) -> LibraryEntry:
    """The hierarchy of that name.

    >>> find_entry("us-states").levels
    ('state', 'division', 'region')
    """
    if not isinstance(name, str) or name not in FILES:
        hint = did_you_mean(str(name), NAMES)
        raise HierarchyError(f"The library has no hierarchy of that name; it has {', '.join(NAMES)}.{hint}")
    return _read_entry(name)


@lru_cache(maxsize=len(NAMES))
def _read_entry(name: str) -> LibraryEntry:
    given = _read_file(FILES[name])
    if "values" in given:
        outline = tuple(given["outline"])
        form: Hierarchy | CodeRule | IntervalRule = _read_values(
            given, given.get("names", {}).get(name, 1) - 1
        )
        levels = (given["level"], *reversed(outline))
    elif "intervals" in given:
        low, high = given["bounds"]
        form = IntervalRule((low, high), tuple(given["intervals"]))
        levels = tuple(str(width) for width in form.widths)
    else:
        form = _read_codes(given)
        below = dict.fromkeys(prefix.level for prefix in form.prefixes)
        levels = (given["level"], *reversed((*given["outline"], *below)))
    about = {key: str(given[key]) for key in ("title", "source", "licence")}
    return LibraryEntry(
        name, **about, words=tuple(given["words"]), tells=bool(given["tells"]), levels=levels, form=form
    )


def _read_file(stem: str) -> dict[str, Any]:
    text = (files(__package__) / f"{stem}.yaml").read_text("utf-8")
    return dict(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))  # noqa: S506 - both are safe


def _read_values(given: dict[str, Any], column: int) -> Hierarchy:
    n_groups = len(given["outline"])
    rows = [path for path in _read_outline(given["values"]) if len(path) == n_groups + 1]
    return Hierarchy.from_paths((ROOT, *path[:-1], path[-1].split(" | ")[column]) for path in rows)


def _read_codes(given: dict[str, Any]) -> CodeRule:
    return CodeRule(
        re.compile(given["match"]),
        tuple((re.compile(pattern), new) for pattern, new in given["rewrite"]),
        tuple(_read_block(path) for path in _read_outline(given.get("blocks", ""))),
        tuple(Prefix(item["level"], re.compile(item["prefix"]), item["label"]) for item in given["below"]),
    )


def _read_outline(text: str) -> list[tuple[str, ...]]:
    r"""Each line with those that it stands below, by two blanks a step.

    >>> _read_outline("Asia\n  Japan\nAfrica")
    [('Asia',), ('Asia', 'Japan'), ('Africa',)]
    """
    found: list[tuple[str, ...]] = []
    above: list[str] = []
    for line in text.splitlines():
        depth = (len(line) - len(line.lstrip(" "))) // 2
        above = [*above[:depth], line.strip()]
        found.append(tuple(above))
    return found


def _read_block(path: tuple[str, ...]) -> CodeBlock:
    given, _ = path[-1].split(" ", 1)
    ranges = (each.split("-") for each in given.split(","))
    return CodeBlock(tuple((first, last) for first, last in ranges), tuple(map(_label_of, path)))


def _label_of(line: str) -> str:
    """What a block is called: its first range, and its title.

    >>> _label_of("C43-C44,C4A-C4A Skin"), _label_of("21-21 Science")
    ('C43-C44 Skin', '21 Science')
    """
    given, title = line.split(" ", 1)
    first, last = given.split(",")[0].split("-")
    return f"{first} {title}" if first == last else f"{first}-{last} {title}"


def _shape_of(code: str) -> str:
    return "".join("9" if character.isdigit() else "A" for character in code)


__all__ = ["FILES", "NAMES", "CodeBlock", "CodeRule", "IntervalRule", "LibraryEntry", "Prefix", "find_entry"]
