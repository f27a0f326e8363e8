"""What the columns are: name, role, type and public declarations of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import InitVar, dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from sfumato.errors import PolicyError, did_you_mean, short
from sfumato.policy.hierarchy.builders import declare
from sfumato.policy.hierarchy.declarations import Declaration, Flat, read_calendar
from sfumato.policy.hierarchy.tree import Hierarchy, Nodes, name_errors
from sfumato.policy.kinds import Kind
from sfumato.policy.mistakes import Misfit, Unsure
from sfumato.policy.shift import Shift
from sfumato.policy.yaml import Where

MISSING_TEXTS = (
    "?",
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "NULL",
    "null",
    "None",
    "none",
    "-",
    "--",
    ".",
    "missing",
)
"""Texts that usually stand for a missing value. Never applied silently: `profile` proposes them."""


GROUP, RELEASE = "group", "release"
"""Where a pseudonym of a person is the same: in one group, or everywhere."""

UNIQUE = "unique"
"""What a policy writes where a column is published as it is, and its owner knows that it tells rows apart."""

STAR = "*"
"""In a pattern of columns, any text; alone, every column that nothing else names."""


@cache
def _like(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split(STAR))), re.DOTALL)


class Role(StrEnum):
    """What a column is for privacy [LDR08, section 2]."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    SENSITIVE = "sensitive"
    PSEUDONYM = "pseudonym"
    OTHER = "other"
    DROP = "drop"

    @property
    def is_published(self) -> bool:
        return self not in (Role.IDENTIFIER, Role.DROP)

    @property
    def passes(self) -> bool:
        """Are the cells published as they are?"""
        return self in (Role.SENSITIVE, Role.OTHER)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column, as the policy declares it.

    ``hierarchy`` is a :class:`~sfumato.policy.hierarchy.declarations.Declaration`, or None. It may be given as
    a policy writes it (``"flat"``, ``{"mask": 5}``), or as a :class:`~sfumato.policy.hierarchy.tree.Hierarchy`.

    >>> Attribute("age", Role.QUASI_IDENTIFIER, Kind.NUMBER, bounds=(0, 110), step=1).is_ordered
    True
    >>> Attribute("age", "quasi-identifier", type="number").type
    <Kind.NUMBER: 'number'>
    >>> Attribute("zip", "quasi-identifier", hierarchy={"mask": 2}).build_hierarchy(["54", "53"]).as_tree()
    {'*': {'5*': ['53', '54']}}
    """

    name: str
    role: Role
    kind: Kind = None  # type: ignore[assignment]  # a category, unless type says otherwise
    bounds: tuple[float, float] | None = None
    step: float | None = None
    values: tuple[str, ...] | None = None
    missing_values: tuple[str, ...] = ()
    hierarchy: Declaration | None = None
    weight: float = 1
    """The price of what the column loses, beside that of the others."""
    finest: float | str | None = None
    """Nothing finer is published: a width of numbers, a level of the hierarchy, or a unit of the calendar."""
    passes: str | None = None
    """``UNIQUE``: published as it is on purpose, though it tells most rows apart, or looks as if it named people."""
    key: str | None = field(default=None, compare=False)
    """Of a pseudonym: the file of the owner's key. It is the owner's alone: no release says it."""
    scope: str | None = None
    """Of a pseudonym: ``GROUP`` (also if None), another for each person and group; ``RELEASE``, one for each person."""
    shift: Shift | None = None
    """Of a date that is published as it is: by how much it is shifted."""
    type: InitVar[Kind | str | None] = None
    """The word of a policy for ``kind``, which is what counts if both are given."""

    def __post_init__(self, type: Kind | str | None) -> None:  # noqa: A002 - as in a policy
        given = self.kind if self.kind is not None else type or Kind.CATEGORY
        object.__setattr__(self, "kind", _choice(self.name, "type", given, Kind))
        object.__setattr__(self, "role", _choice(self.name, "role", self.role, Role))
        if isinstance(self.shift, Mapping):
            object.__setattr__(self, "shift", Shift(**self.shift))
        with self._name_errors():
            object.__setattr__(self, "hierarchy", self._coarsen(declare(self.hierarchy, self.kind)))
        if self.bounds is None and self.hierarchy is not None:
            object.__setattr__(self, "bounds", self.hierarchy.bounds)

    def _coarsen(self, declared: Declaration | None) -> Declaration | None:
        """The hierarchy, never finer than ``finest``; a date that declares none gets that of the calendar."""
        if self.finest is None or (declared is None and self.kind is Kind.NUMBER):
            return declared
        if declared is None and self.kind is Kind.DATE:
            return read_calendar(self.finest)
        return (declared or Flat()).coarsen(self.finest)

    @property
    def is_pattern(self) -> bool:
        """Does it stand for every column whose name is like its own, where ``*`` is any text?"""
        return STAR in self.name

    def matches(self, name: str) -> bool:
        """Is that column's name like this pattern? Upper and lower case differ.

        >>> Attribute("lab_*", Role.DROP).matches("lab_7"), Attribute("lab_*", Role.DROP).matches("Lab_7")
        (True, False)
        """
        return self.is_pattern and _like(self.name).fullmatch(name) is not None

    @property
    def is_ordered(self) -> bool:
        """Split by thresholds rather than along a hierarchy."""
        return self.kind is not Kind.CATEGORY and self.hierarchy is None

    @property
    def declaration(self) -> Declaration:
        """The declared hierarchy; where none is, values are flat."""
        return self.hierarchy or Flat()

    @property
    def as_given(self) -> Attribute:
        """The column with all levels of its hierarchy, also those that are finer than what is published."""
        return (
            self if self.hierarchy is None else replace(self, finest=None, hierarchy=self.hierarchy.as_given)
        )

    def build_hierarchy(self, values: Any) -> Hierarchy:
        """The hierarchy of the column.

        ``values`` are its distinct values: texts, float64 numbers or datetime64[D] dates. Masks, dates and flat
        hierarchies without declared values are made from them, sorted, so that the order of rows never matters;
        anything else is taken whole, whatever the data.
        """
        with self._name_errors():
            return self.declaration.build(self, values)

    def build_label_hierarchy(self, labels: Any) -> Hierarchy:
        """The hierarchy of published labels, which need not be single values, as far as they tell it."""
        with self._name_errors():
            return self.declaration.build_labels(self, labels)

    def build_declared_hierarchy(self) -> Hierarchy:
        """The hierarchy of the column's declared values alone, whatever the table.

        >>> Attribute("sex", "quasi-identifier", values=("Male", "Female")).build_declared_hierarchy().as_tree()
        {'*': ['Male', 'Female']}
        """
        with self._name_errors():
            return self.declaration.build_declared(self)

    def locate(self, tree: Hierarchy, values: Any) -> Nodes:
        """The leaf code of each value in the column's hierarchy, or -1 where it has no leaf for it.

        >>> age = Attribute("age", "quasi-identifier", Kind.NUMBER, (0, 30), hierarchy={"intervals": [5]})
        >>> ages = age.build_hierarchy(())
        >>> [ages.labels[ages.leaf_nodes[code]] for code in age.locate(ages, [24.9, 25.0, 30.0])]
        ['[20, 25)', '[25, 30]', '[25, 30]']
        """
        with self._name_errors():
            return self.declaration.locate(self, tree, values)

    def _name_errors(self) -> AbstractContextManager[None]:
        return name_errors(f"The hierarchy of column {self.name!r}")


Attribute.type = property(lambda attribute: attribute.kind)  # type: ignore[attr-defined]  # an InitVar is write-only


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in order.

    >>> schema = Schema((Attribute("zip", Role.QUASI_IDENTIFIER), Attribute("disease", Role.SENSITIVE)))
    >>> schema["zip"].role, schema.names(Role.SENSITIVE)
    (<Role.QUASI_IDENTIFIER: 'quasi-identifier'>, ('disease',))
    """

    attributes: tuple[Attribute, ...]

    @classmethod
    def of(cls, **roles: str | Mapping[str, Any]) -> Schema:
        """A schema from keywords, for use in code.

        The words are those of a policy; ``kind`` is another one for ``type``.

        >>> Schema.of(age={"role": "quasi-identifier", "type": "number"}, job="other").names()
        ('age', 'job')
        """
        return cls(tuple(_attribute_of(name, given) for name, given in roles.items()))

    def expand(self, names: Iterable[str]) -> Schema:
        """The schema with each pattern replaced by the columns of a table that it stands for.

        A column's own name wins, then the first pattern that matches; ``*`` takes what is left. A column that is
        called so itself is no pattern.

        >>> schema = Schema.of(**{"*": "drop", "lab_*": "other", "lab_1": "sensitive"})
        >>> [(a.name, str(a.role)) for a in schema.expand(["lab_1", "lab_2", "notes"])]
        [('notes', 'drop'), ('lab_2', 'other'), ('lab_1', 'sensitive')]
        """
        table = tuple(names)
        exact = frozenset(self.names())
        patterns = [a for a in self.attributes if a.is_pattern and a.name not in table]
        if not patterns:
            return self
        patterns.sort(key=lambda attribute: attribute.name == STAR)
        taken: dict[str, list[Attribute]] = {pattern.name: [] for pattern in patterns}
        for name in table:
            match = next((p for p in patterns if name not in exact and p.matches(name)), None)
            if match is not None:
                taken[match.name].append(replace(match, name=name))
        found = (taken.get(attribute.name, [attribute]) for attribute in self.attributes)
        return Schema(tuple(attribute for columns in found for attribute in columns))

    def find(self, name: str) -> Attribute | None:
        """The column of that name, by its own declaration or by a pattern other than ``*``."""
        found = self.declaration_of(name)
        return found and replace(found, name=name)

    def declaration_of(self, name: str) -> Attribute | None:
        """What declares the column of that name: itself, or the first pattern for it other than ``*``."""
        exact = (a for a in self.attributes if a.name == name)
        return next(exact, None) or next(
            (a for a in self.attributes if a.name != STAR and a.matches(name)), None
        )

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __getitem__(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise PolicyError(f"The policy names no column {name!r}.{did_you_mean(name, self.names())}")

    def __contains__(self, name: object) -> bool:
        return any(attribute.name == name for attribute in self.attributes)

    def names(self, *roles: Role) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes if not roles or a.role in roles)

    @property
    def quasi_identifiers(self) -> tuple[Attribute, ...]:
        return tuple(a for a in self.attributes if a.role is Role.QUASI_IDENTIFIER)

    @property
    def passed(self) -> tuple[Attribute, ...]:
        """The columns whose cells are published as they are."""
        return tuple(a for a in self.attributes if a.role.passes)

    @property
    def left_out(self) -> frozenset[str]:
        """The columns that recoded rows do not have: what the secrets of a run replaced, beside what was removed."""
        return frozenset(
            a.name
            for a in self.attributes
            if not a.role.is_published or a.role is Role.PSEUDONYM or a.shift is not None
        )

    @property
    def published(self) -> tuple[Attribute, ...]:
        return tuple(a for a in self.attributes if a.role.is_published)


_WORDS = (
    "role",
    "type",
    "bounds",
    "step",
    "values",
    "missing-values",
    "hierarchy",
    "weight",
    "finest",
    "passes",
    "key",
    "scope",
    "shift",
)


def _attribute_of(name: str, given: str | Mapping[str, Any]) -> Attribute:
    words: Mapping[str, Any] = {"role": given} if isinstance(given, str) else given
    options: dict[str, Any] = {}
    for word, value in words.items():
        if word not in (*_WORDS, "kind", "missing_values"):
            hint = did_you_mean(word, _WORDS) or f" Known here: {', '.join(_WORDS)}."
            raise PolicyError(f"Policy: the key {word!r} is unknown in column {name!r}.{hint}")
        is_tuple = isinstance(value, list) and word != "hierarchy"
        options[word.replace("-", "_")] = tuple(value) if is_tuple else value
    if "role" not in options:
        raise PolicyError(f"Policy: column {name!r}: the key 'role' is missing.")
    return Attribute(name, **options)


C = TypeVar("C", bound=StrEnum)


def _choice(name: str, word: str, given: object, choices: type[C]) -> C:
    try:
        return choices(given)  # type: ignore[arg-type]  # whatever it is, it may be none
    except ValueError:
        listed = [str(choice) for choice in choices]
        if not isinstance(given, str):
            raise PolicyError(
                f"Policy: column {name!r}, {word}: must be one of {', '.join(listed)}."
            ) from None
        hint = did_you_mean(given, listed)
        raise PolicyError(
            f"Policy: column {name!r}, {word}: {given!r} is not one of {', '.join(listed)}.{hint}"
        ) from None


@dataclass(frozen=True, slots=True)
class BrokenAttribute(Attribute):
    """A column whose declaration has mistakes: nothing that refers to it can be judged."""


def declared_column(name: str, schema: Schema, path: Where) -> Attribute:
    """The column of that name; a :class:`Misfit` if the policy declares none."""
    attribute = schema.find(name)
    if attribute is None:
        hint = did_you_mean(name, schema.names())
        raise Misfit(path, f"column {short(name)} does not stand under attributes.{hint}")
    if isinstance(attribute, BrokenAttribute):
        raise Unsure(path, f"column {short(name)} has mistakes of its own.")
    return attribute


__all__ = [
    "GROUP",
    "MISSING_TEXTS",
    "RELEASE",
    "STAR",
    "UNIQUE",
    "Attribute",
    "BrokenAttribute",
    "Kind",
    "Role",
    "Schema",
    "declared_column",
]
