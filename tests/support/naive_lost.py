"""What labels lose and why, cell by cell: the naive twin of ``methods/lost``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Row = Mapping[str, Any]
Tree = Mapping[str, Any]


def leaves(tree: Any) -> list[Any]:
    """The leaves of a nested dict or list, from left to right."""
    if isinstance(tree, list):
        return tree
    return [leaf for label, below in tree.items() for leaf in ([label] if below is None else leaves(below))]


def nodes(tree: Tree) -> dict[str, list[Any]]:
    """Each label with the leaves below it."""
    found: dict[str, list[Any]] = {}
    for label, below in tree.items():
        found[label] = [label] if below is None else leaves(below)
        if isinstance(below, dict):
            found |= nodes(below)
        elif below is not None:
            found |= {leaf: [leaf] for leaf in below}
    return found


class NaiveTree:
    """A column with a hierarchy of texts, of which none is missing."""

    def __init__(self, tree: Tree) -> None:
        self.below = nodes(tree)
        self.n = len(max(self.below.values(), key=len))

    def share(self, some: Sequence[Any]) -> Fraction:
        return Fraction(len(some), self.n) if len(some) > 1 else Fraction(0)

    def label(self, cell: Any, _value: Any) -> Fraction:
        return self.share(self.below[cell])

    def cover(self, values: Sequence[Any]) -> Fraction:
        return min(self.share(some) for some in self.below.values() if {*values} <= {*some})

    def narrow(self, group: Sequence[Any], _value: Any) -> Fraction:
        return self.cover(group)

    def least(self, value: Any, table: Sequence[Any], k: int) -> Fraction:
        fitting = [
            self.share(some)
            for some in self.below.values()
            if value in some and sum(each in some for each in table) >= k
        ]
        return min(fitting, default=Fraction(1))

    def divisions(self, group: Sequence[Any]) -> list[list[bool]]:
        """One child of the lowest common node, and all others."""
        common = min(
            (some for some in self.below.values() if {*group} <= {*some}), key=lambda some: (len(some), some)
        )
        inside = [some for some in self.below.values() if {*some} < {*common}]
        children = [some for some in inside if not any({*some} < {*other} for other in inside)]
        found = [[value in child for value in group] for child in children]
        return [part for part in found if any(part) and not all(part)]


class NaiveNumber:
    """A column of numbers from ``low`` to ``high``; missing is None."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def label(self, cell: Any, value: Any) -> Fraction:
        if cell is None:
            return Fraction(0)
        if value is None:
            return Fraction(1)
        ends = [int(end) for end in re.findall(r"-?\d+", cell)]
        return Fraction(ends[-1] - ends[0], self.high - self.low)

    def narrow(self, group: Sequence[Any], value: Any) -> Fraction:
        there = [each for each in group if each is not None]
        if value is None:
            return Fraction(bool(there))
        return Fraction(max(there) - min(there), self.high - self.low)

    def least(self, value: Any, table: Sequence[Any], k: int) -> Fraction:
        if value is None:
            return Fraction(sum(each is None for each in table) < k)
        there = sorted(each for each in table if each is not None)
        fitting = [
            Fraction(last - first, self.high - self.low)
            for first in there
            for last in there
            if first <= value <= last and sum(first <= each <= last for each in there) >= k
        ]
        return min(fitting, default=Fraction(1))

    def divisions(self, group: Sequence[Any]) -> list[list[bool]]:
        """Up to a number, and above it; missing comes before all numbers."""
        known = sorted({-1 if each is None else each for each in group})
        return [[(-1 if each is None else each) <= end for each in group] for end in known[:-1]]


def take_apart(
    column: NaiveTree | NaiveNumber,
    name: str,
    table: Sequence[Row],
    groups: Sequence[Sequence[tuple[Row, Any]]],
    k: int,
    rules: Mapping[str, Callable[[Sequence[Row]], bool]],
) -> dict[str, Fraction]:
    """The parts of the loss of a column: rows in their groups, each beside its published cell."""
    out: dict[str, Fraction] = {}

    def add(kind: str, part: Fraction) -> None:
        if part:
            out[kind] = out.get(kind, Fraction(0)) + part / len(table)

    everything = [row[name] for row in table]
    for group in groups:
        rows = [row for row, _ in group]
        values = [row[name] for row in rows]
        kind = _obstacle(column.divisions(values), rows, k, rules)
        for row, cell in group:
            whole, narrow = column.label(cell, row[name]), column.narrow(values, row[name])
            least = min(column.least(row[name], everything, k), narrow)
            add("wide", whole - narrow)
            add("rare", least)
            add(kind, narrow - least)
    add("left out", Fraction(len(table) - sum(map(len, groups))))
    return out


def _obstacle(
    divisions: Sequence[Sequence[bool]],
    rows: Sequence[Row],
    k: int,
    rules: Mapping[str, Callable[[Sequence[Row]], bool]],
) -> str:
    parts = [
        ([row for row, own in zip(rows, part, strict=True) if own],
         [row for row, own in zip(rows, part, strict=True) if not own])
        for part in divisions
    ]  # fmt: skip
    large = [(one, other) for one, other in parts if min(len(one), len(other)) >= k]
    if not large:
        return "few"
    if any(all(rule(part) for rule in rules.values() for part in both) for both in large):
        return "undone"
    for name, rule in rules.items():
        if not any(all(map(rule, both)) for both in large):
            return name
    return "together"
