"""What the columns are: name, role, type and public declarations of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sfumato.errors import PolicyError, did_you_mean

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


class Role(StrEnum):
    """What a column is for privacy [LDR08, section 2]."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    SENSITIVE = "sensitive"
    OTHER = "other"
    DROP = "drop"

    @property
    def is_published(self) -> bool:
        return self not in (Role.IDENTIFIER, Role.DROP)


class Kind(StrEnum):
    """How the cells of a column are read."""

    CATEGORY = "category"
    NUMBER = "number"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column, as the policy declares it.

    ``hierarchy`` is the declaration itself (``None``, ``"flat"``, a path, or a builder such as
    ``{"mask": 5}``); :mod:`sfumato.hierarchy` builds the tree from it.

    >>> Attribute("age", Role.QUASI_IDENTIFIER, Kind.NUMBER, bounds=(0, 110), step=1).is_ordered
    True
    """

    name: str
    role: Role
    kind: Kind = Kind.CATEGORY
    bounds: tuple[float, float] | None = None
    step: float | None = None
    values: tuple[str, ...] | None = None
    missing_values: tuple[str, ...] = ()
    hierarchy: Any = field(default=None)

    @property
    def is_ordered(self) -> bool:
        """Split by thresholds rather than along a hierarchy."""
        return self.kind is not Kind.CATEGORY and self.hierarchy is None


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

        >>> Schema.of(age={"role": "quasi-identifier", "kind": "number"}, job="other").names()
        ('age', 'job')
        """
        attributes = []
        for name, given in roles.items():
            options = {"role": given} if isinstance(given, str) else dict(given)
            options["role"] = Role(options["role"])
            options["kind"] = Kind(options.get("kind", "category"))
            attributes.append(Attribute(name, **options))
        return cls(tuple(attributes))

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
    def left_out(self) -> frozenset[str]:
        return frozenset(a.name for a in self.attributes if not a.role.is_published)

    @property
    def published(self) -> tuple[Attribute, ...]:
        return tuple(a for a in self.attributes if a.role.is_published)
