"""Which hierarchies of the library fit the values of a column."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.policy.hierarchy.library.codes import OTHER, find_path
from sfumato.policy.hierarchy.library.entries import NAMES, CodeRule, LibraryEntry, find_entry
from sfumato.policy.hierarchy.tree import Hierarchy

LEAST_KNOWN = 0.95
"""The share of values that a hierarchy must know to be proposed."""

LEAST_VALUES = 5
"""So many different values must be known before a column is recognized without its name."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A hierarchy of the library that fits a column, and the share of its distinct values that it knows.

    ``is_named`` if the name of the column says so, too.
    """

    name: str
    share: float
    is_named: bool

    @property
    def title(self) -> str:
        """What the hierarchy is, in a few words."""
        return find_entry(self.name).title

    @property
    def levels(self) -> tuple[str, ...]:
        """Its levels, from the single values up: what ``finest`` may name."""
        return find_entry(self.name).levels

    @property
    def as_policy(self) -> dict[str, str]:
        """How a policy declares it."""
        return {"library": self.name}


def proposals(column: str, values: Sequence[Any]) -> list[Proposal]:
    """The hierarchies that fit a column of this name with these distinct values, the best one first.

    Values are texts, or numbers (for ages). A hierarchy fits if it knows 95% of them. Codes that are digits alone, and
    ages, are proposed only if the name of the column says so, too: any five digits look like a postcode.

    >>> [found.name for found in proposals("diagnosis", ["A00.1", "I10", "E11.9", "S72.0", "J45"])]
    ['icd10']
    >>> proposals("amount", ["01067", "80331"]), proposals("plz", ["01067", "80331"])[0].name
    ([], 'postcodes-de')
    """
    words = frozenset(_words_of(column))
    found = [each for name in NAMES if (each := _try(find_entry(name), words, values))]
    return sorted(
        found, key=lambda each: (not each.is_named, _rank(find_entry(each.name), words), -each.share)
    )


def _rank(entry: LibraryEntry, words: frozenset[str]) -> int:
    """How well a name fits: the words of a hierarchy are in order, the most telling one first."""
    return min((place for place, word in enumerate(entry.words) if word in words), default=0)


def _try(entry: LibraryEntry, words: frozenset[str], values: Sequence[Any]) -> Proposal | None:
    is_named = not words.isdisjoint(entry.words)
    if not values or not (is_named or (entry.tells and len(values) >= LEAST_VALUES)):
        return None
    n_known = _count_known(entry, values)
    share = n_known / len(values)
    if share < LEAST_KNOWN or (not is_named and n_known < LEAST_VALUES):
        return None
    return Proposal(entry.name, share, is_named)


def _count_known(entry: LibraryEntry, values: Sequence[Any]) -> int:
    form = entry.form
    if isinstance(form, (Hierarchy, CodeRule)):
        texts = [value for value in values if isinstance(value, str)]
        if isinstance(form, CodeRule):
            return sum(_is_known(entry.name, text) for text in texts)
        leaves = {form.labels[node] for node in form.leaf_nodes.tolist()}
        return sum(text in leaves for text in texts)
    low, high = form.bounds
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return sum(low <= number <= high for number in numbers)


def _is_known(name: str, text: str) -> bool:
    """Is a text a code of a known block? Codes without blocks are known by their form."""
    path = find_path(name, text)
    return path is not None and path[1] != OTHER


def _words_of(column: str) -> list[str]:
    """The words of a column's name, and all of them in one: without accents, in small letters.

    >>> _words_of("PLZ_Wohnort"), _words_of("codePostal")
    (['plz', 'wohnort', 'plzwohnort'], ['code', 'postal', 'codepostal'])
    """
    plain = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column))
    words = re.findall(r"[a-z0-9]+", "".join(c for c in plain if not unicodedata.combining(c)).lower())
    return [*words, "".join(words)]


__all__ = ["Proposal", "proposals"]
