"""What a policy declares with ``{library: NAME}``: a list of values, a rule for codes, or widths of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

from sfumato.errors import HierarchyError
from sfumato.policy.hierarchy.declaration import (
    Declaration,
    DeclaredColumn,
    build_from_label_paths,
    check_level,
    name_values,
    only_declared,
)
from sfumato.policy.hierarchy.declarations import Given, Intervals
from sfumato.policy.hierarchy.files import ROOT
from sfumato.policy.hierarchy.grid import NumberGrid, read_finite
from sfumato.policy.hierarchy.library.entries import CodeRule, IntervalRule, LibraryEntry, find_entry
from sfumato.policy.hierarchy.tree import Hierarchy, Nodes
from sfumato.policy.kinds import Kind

WORD = "library"
"""The word of a policy for all of them."""

OTHER = "other codes"
"""What codes are called that no block holds."""

Path = tuple[str, ...]
"""The labels from the root down to a value."""


def declare_from_library(name: object) -> Declaration:
    """The declaration of that name in the library.

    >>> declare_from_library("icd9").as_policy()
    {'library': 'icd9'}
    """
    entry = find_entry(name)
    if isinstance(entry.form, Hierarchy):
        return ListedValues(entry.form, name=entry.name)
    if isinstance(entry.form, IntervalRule):
        return AgeGroups(entry.form.widths, name=entry.name)
    return LibraryCodes(entry.name)


@dataclass(frozen=True, slots=True)
class ListedValues(Given):
    """A list of values below named groups, such as the countries of the world.

    >>> declare_from_library("us-states").tree
    Hierarchy(n_leaves=56, height=3)
    """

    name: str = field(kw_only=True)
    word: ClassVar[str] = WORD
    kinds: ClassVar[tuple[Kind, ...]] = (Kind.CATEGORY,)

    def as_policy(self) -> dict[str, Any]:
        return {self.word: self.name}

    @property
    def levels(self) -> Sequence[str]:
        return find_entry(self.name).levels


@dataclass(frozen=True, slots=True)
class AgeGroups(Intervals):
    """Widths of numbers between bounds of their own, whatever those of the column are."""

    name: str = field(kw_only=True)
    word: ClassVar[str] = WORD

    def as_policy(self) -> dict[str, Any]:
        return {self.word: self.name}

    @property
    def bounds(self) -> tuple[float, float]:
        rule = find_entry(self.name).form
        assert isinstance(rule, IntervalRule)
        return rule.bounds

    def make_grid(self, column: DeclaredColumn) -> NumberGrid:  # noqa: ARG002 - its own bounds count
        low, high = (read_finite(bound, "A bound") for bound in self.bounds)
        return NumberGrid.of_intervals(low, high, self._read_widths()[0])

    def name_undeclared(self, column: DeclaredColumn) -> None:
        """Its own bounds are known."""


@dataclass(frozen=True, slots=True)
class LibraryCodes(Declaration):
    """Codes below the blocks and prefixes that they belong to. The tree is made of the codes of a table.

    >>> from sfumato.policy.schema import Attribute
    >>> zip_code = Attribute("zip", "quasi-identifier")
    >>> LibraryCodes("us-zip").build(zip_code, ["53715", "53703", "03601"]).as_tree()["*"]["5****"]
    {'537**': ['53703', '53715']}
    """

    name: str
    n_hidden: int = field(default=0, repr=False)
    """So many levels, counted from the codes up, are not published."""
    word: ClassVar[str] = WORD
    kinds: ClassVar[tuple[Kind, ...]] = (Kind.CATEGORY,)
    is_rule: ClassVar[bool] = True

    def as_policy(self) -> dict[str, Any]:
        return {self.word: self.name}

    def build(self, column: DeclaredColumn, values: Any) -> Hierarchy:
        texts = column.values or values
        found = [path for path in map(self._path_of, texts) if path]
        if column.values and len(found) < len(texts):
            raise HierarchyError(f"Declared values that are no codes of it: {len(texts) - len(found)}.")
        return _build(found)

    def build_labels(self, column: DeclaredColumn, labels: Any) -> Hierarchy:  # noqa: ARG002 - labels tell all
        return _build(path for label in labels if (path := self.path_to(label)))

    def locate(self, column: DeclaredColumn, tree: Hierarchy, values: Any) -> Nodes:
        labels = [path[-1] if (path := self._path_of(value)) else "" for value in values]
        return only_declared(column, values, Declaration.locate(self, column, tree, labels))

    def is_open(self, column: DeclaredColumn) -> bool:
        return column.values is None

    def name_undeclared(self, column: DeclaredColumn) -> str | None:
        return name_values(column)

    @property
    def as_given(self) -> LibraryCodes:
        return replace(self, n_hidden=0)

    def coarsen(self, level: object) -> LibraryCodes:
        levels = find_entry(self.name).levels
        return replace(self, n_hidden=check_level(level, levels, len(levels)))

    def make_value_test(self) -> Callable[[str], bool]:
        return lambda label: self.find_value_depth(label) is not None

    def find_value_depth(self, label: str) -> int | None:
        path = find_path(self.name, label)
        return len(path) - 1 if path and len(path) <= self._n_shown else None

    def is_too_fine(self, label: str) -> bool:
        path = find_path_to(self.name, label)
        return path is not None and len(path) > self._n_shown

    def is_masked(self, label: str) -> bool:
        return find_path(self.name, label) is None and self.path_to(label) is not None

    def keep_fitting(self, values: Iterable[str]) -> list[str]:
        return [value for value in values if find_path(self.name, value)]

    def path_to(self, label: str) -> Path | None:
        """The labels from the root down to this one, which may stand for several codes; None if it is none of it.

        >>> LibraryCodes("icd9").path_to("250.*")[2:]
        ('249-259 Diseases of other endocrine glands', '250.*')
        """
        path = find_path_to(self.name, label)
        return path if path and len(path) <= self._n_shown else None

    @property
    def height(self) -> int:
        """Steps from the root to the deepest label that may be published."""
        return self._n_shown - 1

    def _path_of(self, text: str) -> Path | None:
        path = find_path(self.name, text)
        return path and path[: self._n_shown]

    @property
    def _n_shown(self) -> int:
        """How many labels a path has at most, the root being one."""
        return len(find_entry(self.name).levels) + 1 - self.n_hidden


def _build(paths: Iterable[Path]) -> Hierarchy:
    """The tree of these paths, some of which may be the beginnings of others."""
    ordered = sorted(set(paths))
    ends = (
        path for i, path in enumerate(ordered) if i + 1 == len(ordered) or ordered[i + 1][: len(path)] != path
    )
    return build_from_label_paths(ends)


# ---- paths of codes ----------------------------------------------------------------------------------


def find_path(name: str, text: str) -> Path | None:
    """The labels from the root down to a code, which is the last one; None if the text is no code.

    >>> find_path("postcodes-uk", "SW1A 1AA")
    ('*', 'SW*', 'SW1A *', 'SW1A 1*', 'SW1A 1AA')
    """
    rule = _rule_of(find_entry(name))
    key = text.upper()
    if not rule.match.fullmatch(key):
        return None
    return (ROOT, *_groups_of(name, rewrite(rule, key)), text)


def find_path_to(name: str, label: str) -> Path | None:
    """The same of any label; None if the rule has no such label."""
    if label == ROOT:
        return (ROOT,)
    if path := find_path(name, label) or _paths_of_constants(name).get(label):
        return path
    rule = _rule_of(find_entry(name))
    groups = (ROOT, *_groups_of(name, rewrite(rule, label.upper().rstrip("*. "))))
    return groups[: groups.index(label) + 1] if label in groups else None


def rewrite(rule: CodeRule, key: str) -> str:
    """A code in the spelling that blocks and prefixes are about."""
    for pattern, new in rule.rewrite:
        key = pattern.sub(new, key)
    return key


def _groups_of(name: str, code: str) -> Iterator[str]:
    """What a code is in, from the coarsest down: its blocks, and prefixes."""
    rule = _rule_of(find_entry(name))
    width = max((block.width for block in rule.blocks), default=0)
    yield from _blocks_of(name, code[:width])
    done = set()
    for prefix in rule.prefixes:
        if prefix.level not in done and (found := prefix.pattern.match(code)):
            done.add(prefix.level)
            yield found.expand(prefix.label)


@lru_cache(maxsize=65_536)
def _blocks_of(name: str, code: str) -> Path:
    """The blocks that a code is in: one of each level of the outline, unless it is shorter than their ranges."""
    rule = _rule_of(find_entry(name))
    if not rule.blocks:
        return ()
    deepest = max(len(block.path) for block in rule.blocks)
    found: Path = ()
    for block in rule.blocks:
        if len(block.path) > len(found) and block.holds(code):
            found = block.path
    narrow = max(block.width for block in rule.blocks)
    if len(found) == deepest or (found and len(code) < narrow):
        return found
    found = found or (OTHER,)
    return (*found, *(f"{found[-1]}: no block" for _ in range(deepest - len(found))))


@lru_cache
def _paths_of_constants(name: str) -> dict[str, Path]:
    """The paths to all labels that do not follow from a code."""
    rule = _rule_of(find_entry(name))
    deepest = max((len(block.path) for block in rule.blocks), default=0)
    known: dict[str, Path] = {}
    for path in [*(block.path for block in rule.blocks), *([(OTHER,)] if rule.blocks else [])]:
        known[path[-1]] = (ROOT, *path)
        if len(path) == 1 < deepest:
            missing = f"{path[-1]}: no block"
            known[missing] = (ROOT, *path, missing)
    for prefix in rule.prefixes:
        if prefix.is_constant:
            known[prefix.label] = (ROOT, prefix.label)
    return known


def _rule_of(entry: LibraryEntry) -> CodeRule:
    assert isinstance(entry.form, CodeRule)
    return entry.form


__all__ = [
    "OTHER",
    "WORD",
    "AgeGroups",
    "LibraryCodes",
    "ListedValues",
    "declare_from_library",
    "find_path",
    "find_path_to",
]
