"""Rectangles: what a row must have in some attributes, as ranges of numbers and sets of categories.

A condition on quasi-identifiers is a union of such rectangles (:mod:`sfumato.policy.predicate`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MISSING = -math.inf
"""Where a missing cell stands on a number or date: before all of them."""

LEAST, GREATEST = -math.nextafter(math.inf, 0), math.nextafter(math.inf, 0)


def below(value: float) -> float:
    """The next smaller number."""
    return math.nextafter(value, -math.inf)


def above(value: float) -> float:
    """The next larger number."""
    return math.nextafter(value, math.inf)


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers, or days since 1970, from ``low`` to ``high``, both included; or missing alone."""

    low: float
    high: float

    @property
    def is_missing(self) -> bool:
        return self.high == MISSING

    def __and__(self, other: Any) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def __bool__(self) -> bool:
        return self.low <= self.high


@dataclass(frozen=True, slots=True)
class Labels:
    """These categories, or all but these; None is a missing cell.

    >>> Labels(frozenset({"a", "b"})) & Labels(frozenset({"b", None}), is_complement=True)
    Labels(labels=frozenset({'a'}), is_complement=False)
    """

    labels: frozenset[str | None]
    is_complement: bool = False

    def __contains__(self, label: str | None) -> bool:
        return (label in self.labels) != self.is_complement

    def __and__(self, other: Any) -> Labels:
        if self.is_complement and other.is_complement:
            return Labels(self.labels | other.labels, is_complement=True)
        if self.is_complement or other.is_complement:
            some, others = (other, self) if self.is_complement else (self, other)
            return Labels(some.labels - others.labels)
        return Labels(self.labels & other.labels)

    def __bool__(self) -> bool:
        return self.is_complement or bool(self.labels)


Side = Interval | Labels

MISSING_ALONE = Interval(MISSING, MISSING)
ANY_NUMBER = Interval(LEAST, GREATEST)


@dataclass(frozen=True, slots=True)
class Rectangle:
    """What each attribute that it names must lie in; any cell of the others will do."""

    sides: Mapping[str, Side]

    def __and__(self, other: Rectangle) -> Rectangle:
        sides = dict(self.sides)
        for name, side in other.sides.items():
            sides[name] = sides[name] & side if name in sides else side
        return Rectangle(sides)

    def __bool__(self) -> bool:
        return all(self.sides.values())

    def minus(self, other: Rectangle) -> list[Rectangle]:
        """Disjoint rectangles that together are what lies in this one and not in the other."""
        if not self & other:
            return [self]
        found, inside = [], self
        for name, side in other.sides.items():
            found += [piece for rest in _find_outside(side) if (piece := inside & Rectangle({name: rest}))]
            inside &= Rectangle({name: side})
        return found


def make_disjoint(rectangles: Iterable[Rectangle], *, at_most: int) -> list[Rectangle] | None:
    """Disjoint rectangles of the same union; None if that takes more than ``at_most``.

    >>> two = [Rectangle({"age": Interval(0, 9)}), Rectangle({"age": Interval(5, 20)})]
    >>> [rectangle.sides["age"].low > 9 for rectangle in make_disjoint(two, at_most=10)]
    [False, True]
    """
    found: list[Rectangle] = []
    for rectangle in rectangles:
        pieces = _subtract_all([rectangle], found, at_most=at_most)
        if pieces is None or len(found := [*found, *pieces]) > at_most:
            return None
    return found


def find_outside(rectangles: Iterable[Rectangle], *, at_most: int) -> list[Rectangle] | None:
    """Disjoint rectangles of everything that lies in none of these, missing cells included; None if too many."""
    return _subtract_all([Rectangle({})], rectangles, at_most=at_most)


def _subtract_all(
    pieces: list[Rectangle], others: Iterable[Rectangle], *, at_most: int
) -> list[Rectangle] | None:
    for other in others:
        pieces = [rest for piece in pieces for rest in piece.minus(other)]
        if len(pieces) > at_most:
            return None
    return pieces


def _find_outside(side: Side) -> list[Side]:
    """All that lies not in it, in disjoint parts (some of which may be empty)."""
    if isinstance(side, Labels):
        return [Labels(side.labels, is_complement=not side.is_complement)]
    if side.is_missing:
        return [ANY_NUMBER]
    return [MISSING_ALONE, Interval(LEAST, below(side.low)), Interval(above(side.high), GREATEST)]
