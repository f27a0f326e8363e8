"""What a release loses, read from its labels as text and the raw cells, cell by cell; nothing of the program is used."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

Cell = Any
Tree = Mapping[str, Any]

DAY = re.compile(r"\d{4}-\d\d-\d\d")
RANGE = re.compile(r"([\[(])(\S+), (\S+)\]")
OR_MISSING = " or missing"


def number_of(text: str) -> float:
    """A number, or the day of a date."""
    return float(date.fromisoformat(text).toordinal()) if DAY.fullmatch(text) else float(text)


def two_digits(low: float, high: float) -> tuple[float, float]:
    """The nearest numbers of two significant digits around these."""

    def rounded(x: float, way: str) -> float:
        exact = Decimal(repr(x))
        return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), way))

    return rounded(low, ROUND_FLOOR), rounded(high, ROUND_CEILING)


def whole_years(low: float, high: float) -> tuple[float, float]:
    """The first and the last day of the years of these days."""
    first, last = (date.fromordinal(int(day)).year for day in (low, high))
    return float(date(first, 1, 1).toordinal()), float(date(last, 12, 31).toordinal())


class NumberColumn:
    """Numbers or dates; their range is that of the bounds, or else of the cells, ``rounded`` for slices."""

    def __init__(
        self, cells: Sequence[Cell], bounds: tuple[float, float] | None = None, *, rounded: bool = False
    ) -> None:
        self.cells = [None if cell is None else number_of(str(cell)) for cell in cells]
        known = [cell for cell in self.cells if cell is not None]
        self.low, self.high = bounds or (min(known, default=0.0), max(known, default=0.0))
        if rounded and bounds is None and self.low < self.high:
            is_date = any(DAY.fullmatch(str(cell)) for cell in cells)
            self.low, self.high = (whole_years if is_date else two_digits)(self.low, self.high)

    def ends(self, label: str) -> tuple[str, float, float]:
        text = label.removesuffix(OR_MISSING)
        found = RANGE.fullmatch(text)
        if found is None:
            return "[", number_of(text), number_of(text)
        return found[1], number_of(found[2]), number_of(found[3])

    def covers(self, label: str | None, cell: float | None) -> bool:
        if label is None or cell is None:
            return cell is None and (label is None or label.endswith(OR_MISSING))
        opening, low, high = self.ends(label)
        return (low < cell if opening == "(" else low <= cell) and cell <= high

    def penalty(self, label: str | None, cell: float | None) -> Fraction:
        assert self.covers(label, cell)
        if label is None:
            return Fraction(0)
        if cell is None:
            return Fraction(1)
        _, low, high = self.ends(label)
        if self.low == self.high:
            return Fraction(0)
        return (Fraction(high) - Fraction(low)) / (Fraction(self.high) - Fraction(self.low))


class CategoryColumn:
    """Texts with the leaves below each label; missing is a leaf of its own where any cell is missing."""

    def __init__(
        self, cells: Sequence[Cell], below: Mapping[str, frozenset[str]], values: frozenset[str]
    ) -> None:
        self.cells = list(cells)
        self.values: frozenset[str | None] = values | {None} if None in self.cells else values
        self.below = below

    def leaves(self, label: str | None) -> frozenset[str | None]:
        if label == "*":
            return self.values
        if label is None:
            return frozenset({None})
        return self.below.get(label, frozenset({label}))

    def covers(self, label: str | None, cell: str | None) -> bool:
        return cell in self.leaves(label)

    def penalty(self, label: str | None, cell: str | None) -> Fraction:
        assert self.covers(label, cell)
        n = len(self.leaves(label))
        return Fraction(n, len(self.values)) if n > 1 else Fraction(0)


Column = NumberColumn | CategoryColumn


def flat(cells: Sequence[Cell]) -> CategoryColumn:
    return CategoryColumn(cells, {}, frozenset(cell for cell in cells if cell is not None))


def declared(cells: Sequence[Cell], values: Sequence[str]) -> CategoryColumn:
    return CategoryColumn(cells, {}, frozenset(values))


def masked(cells: Sequence[Cell]) -> CategoryColumn:
    """Texts of one length, of which the last characters may be masked."""
    values = frozenset(cell for cell in cells if cell is not None)
    shown = {text[:n] + "*" * (len(text) - n) for text in values for n in range(1, len(text))}
    below = {label: frozenset(v for v in values if v.startswith(label.rstrip("*"))) for label in shown}
    return CategoryColumn(cells, below, values)


def in_tree(cells: Sequence[Cell], tree: Mapping[str, Sequence[str]]) -> CategoryColumn:
    """A tree of two levels below the root."""
    below = {label: frozenset(values) for label, values in tree.items()}
    return CategoryColumn(cells, below, frozenset().union(*below.values()))


def ncp(columns: Mapping[str, Column], labels: Mapping[str, Sequence[str | None]]) -> dict[str, Fraction]:
    """The mean penalty of the cells of each column; ``labels`` in the order of the raw cells."""
    found = {}
    for name, column in columns.items():
        pairs = list(zip(labels[name], column.cells, strict=True))
        found[name] = sum((column.penalty(*pair) for pair in pairs), Fraction(0)) / len(pairs)
    return found


def entropy_loss(
    columns: Mapping[str, Column], labels: Mapping[str, Sequence[str | None]]
) -> tuple[float, dict[str, float]]:
    """Bits that labels leave open over those of a table of stars: of all columns, and of each."""
    lost, most = {}, {}
    for name, column in columns.items():
        lost[name] = most[name] = 0.0
        for label, cell in zip(labels[name], column.cells, strict=True):
            same = column.cells.count(cell)
            lost[name] += math.log2(sum(column.covers(label, other) for other in column.cells) / same)
            most[name] += math.log2(len(column.cells) / same)
    share = {name: lost[name] / most[name] if most[name] else 0.0 for name in lost}
    total = sum(most.values())
    return sum(lost.values()) / total if total else 0.0, share
