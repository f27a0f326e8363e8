"""Hierarchies as a policy declares them: flat, mask, dates, intervals, balanced, or a given tree.

``builders`` has them by their word, and those of the library beside them.

Each declaration is a value, checked when it is made. It builds the tree of a column, finds the leaves of cells, and
answers what the rest of the program asks of it: does the policy alone tell the whole tree, which labels are single
values, how is it written.

A declaration is *open* if the table may bring values that the policy does not list. It is *by a rule* if the nodes
follow from the values: texts that are masked, periods, ranges of numbers.
"""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato.errors import HierarchyError, did_you_mean
from sfumato.policy.hierarchy import grid
from sfumato.policy.hierarchy.declaration import (
    Declaration,
    DeclaredColumn,
    build_from_label_paths,
    check_level,
    name_values,
    only_declared,
)
from sfumato.policy.hierarchy.files import MAX_LEAVES, ROOT, Label
from sfumato.policy.hierarchy.grid import NumberGrid
from sfumato.policy.hierarchy.tree import Hierarchy, Nodes, build_from_ranges
from sfumato.policy.kinds import DATE_LEVELS, Kind, name_periods, sort_days

_DAY = re.compile(r"\d{4,}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Flat(Declaration):
    """Every value under one root.

    >>> Flat().as_policy()
    'flat'
    """

    word: ClassVar[str] = "flat"

    def as_policy(self) -> str:
        return self.word

    def build(self, column: DeclaredColumn, values: Any) -> Hierarchy:
        return Hierarchy.flat(column.values or _sort_texts(column.kind, values))

    def is_open(self, column: DeclaredColumn) -> bool:
        return column.values is None

    def name_undeclared(self, column: DeclaredColumn) -> str | None:
        return name_values(column) if column.kind is Kind.CATEGORY else "another hierarchy than flat, or none"

    def describe(self, column: DeclaredColumn) -> str:
        return f"{len(column.values or ()):,} values"


@dataclass(frozen=True, slots=True)
class Mask(Declaration):
    """Texts of at most so many characters, masked from the right: 53715, 5371*, 537**, ... *.

    Shorter texts are masked as well. A text masked as a whole is the root, whatever its length.

    >>> from sfumato.policy.schema import Attribute
    >>> Mask(3).build(Attribute("zip", "quasi-identifier"), ["533", "7"]).as_tree()
    {'*': {'7': None, '5**': {'53*': ['533']}}}
    """

    n_characters: int
    n_hidden: int = field(default=0, repr=False)
    """So many characters at least are masked of a text that long."""
    word: ClassVar[str] = "mask"
    least: ClassVar[int] = 1
    kinds: ClassVar[tuple[Kind, ...]] = (Kind.CATEGORY,)
    is_rule: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_whole(self.n_characters, "The number of characters of mask", at_least=self.least)

    def as_policy(self) -> dict[str, int]:
        return {self.word: self.n_characters}

    def build(self, column: DeclaredColumn, values: Any) -> Hierarchy:
        texts = column.values or values
        if too_long := sum(len(text) > self.n_characters for text in texts):
            raise HierarchyError(
                f"Values longer than the {self.n_characters} characters that mask keeps: {too_long}."
            )
        return build_from_label_paths(
            [ROOT, *(_mask(text, kept) for kept in range(1, min(len(text), self._n_shown) + 1))]
            for text in sorted(sorted(texts), key=len)
        )

    @property
    def _n_shown(self) -> int:
        return self.n_characters - self.n_hidden

    def locate(self, column: DeclaredColumn, tree: Hierarchy, values: Any) -> Nodes:
        texts = [_mask(text, self._n_shown) for text in values]
        return only_declared(column, values, Declaration.locate(self, column, tree, texts))

    def is_too_fine(self, label: str) -> bool:
        return len(label.rstrip(ROOT)) > self._n_shown

    @property
    def as_given(self) -> Mask:
        return replace(self, n_hidden=0)

    def coarsen(self, level: object) -> Mask:
        return replace(self, n_hidden=check_level(level, (), self.n_characters))

    def is_open(self, column: DeclaredColumn) -> bool:
        return column.values is None

    def name_undeclared(self, column: DeclaredColumn) -> str | None:
        return name_values(column)

    def make_value_test(self) -> Callable[[str], bool]:
        return lambda label: not label.endswith(ROOT)

    def find_value_depth(self, label: str) -> int:
        return len(label)  # a level for each character

    def is_masked(self, label: str) -> bool:
        return ROOT in label

    def keep_fitting(self, values: Iterable[str]) -> list[str]:
        return [value for value in values if len(value) <= self.n_characters]


@dataclass(frozen=True, slots=True)
class Dates(Declaration):
    """Days below longer periods; ``levels`` go from fine to coarse.

    >>> Dates(("day", "month", "year")).as_policy()
    {'dates': ['day', 'month', 'year']}
    """

    levels: tuple[str, ...]
    word: ClassVar[str] = "dates"
    kinds: ClassVar[tuple[Kind, ...]] = (Kind.DATE,)
    is_rule: ClassVar[bool] = True

    def __post_init__(self) -> None:
        levels = _as_tuple(self.levels, "dates needs a list of levels, such as [day, month, year].")
        for level in levels:
            if level not in DATE_LEVELS:
                hint = did_you_mean(str(level), DATE_LEVELS)
                raise HierarchyError(f"dates has no level {level!r}; it has {', '.join(DATE_LEVELS)}.{hint}")
        ordered = tuple(level for level in DATE_LEVELS if level in levels)
        if levels != ordered:
            raise HierarchyError(
                f"The levels of dates go from fine to coarse, each once: [{', '.join(ordered)}]."
            )
        object.__setattr__(self, "levels", levels)

    def as_policy(self) -> dict[str, list[str]]:
        return {self.word: list(self.levels)}

    def build(self, column: DeclaredColumn, values: Any) -> Hierarchy:  # noqa: ARG002 - the days are all it needs
        days = sort_days(values)
        periods = [name_periods(days, level) for level in reversed(self.levels)]
        return build_from_label_paths((ROOT, *path) for path in zip(*periods, strict=True))

    def build_declared(self, column: DeclaredColumn) -> Hierarchy:
        first, last = map(int, column.bounds or (0, 0))
        if last - first >= MAX_LEAVES:
            raise HierarchyError(f"Its bounds are {MAX_LEAVES:,} days apart or more; narrow them.")
        return self.build(column, np.arange(first, last + 1).astype("datetime64[D]"))

    def _name_days(self, values: Any) -> list[str]:
        return name_periods(values, self.levels[0])

    def coarsen(self, level: object) -> Dates:
        if level not in self.levels:
            raise HierarchyError(f"finest must be a level of it: {', '.join(self.levels)}.")
        return Dates(self.levels[self.levels.index(str(level)) :])

    def is_complete(self, column: DeclaredColumn) -> bool:  # noqa: ARG002 - whatever the column
        """The tree of a release has the periods of its table alone."""
        return False

    def name_undeclared(self, column: DeclaredColumn) -> str | None:
        return None if column.bounds else "bounds, such as bounds: [2020-01-01, 2024-12-31]"

    def make_value_test(self) -> Callable[[str], bool]:
        return lambda label: self.levels[0] == "day" and _DAY.fullmatch(label) is not None

    def find_value_depth(self, label: str) -> None:
        """A day, too, is a period: of one day."""


@dataclass(frozen=True, slots=True)
class NumberRanges(Declaration):
    """Ranges of numbers above a grid: the common part of ``intervals`` and ``balanced``."""

    kinds: ClassVar[tuple[Kind, ...]] = (Kind.NUMBER,)
    is_rule: ClassVar[bool] = True

    @abstractmethod
    def make_grid(self, column: DeclaredColumn) -> NumberGrid:
        """The leaves: intervals, or single numbers."""

    def locate(self, column: DeclaredColumn, tree: Hierarchy, values: Any) -> Nodes:  # noqa: ARG002 - the grid is its leaves
        return self.make_grid(column).locate(values).astype(np.int32)

    def name_undeclared(self, column: DeclaredColumn) -> str | None:
        return None if column.bounds else "bounds, such as bounds: [0, 110]"

    def make_value_test(self) -> Callable[[str], bool]:
        return lambda label: not label.startswith("[")


@dataclass(frozen=True, slots=True)
class Intervals(NumberRanges):
    """Intervals of the first of these widths, below wider ones; each width is a multiple of the one before.

    >>> Intervals((5, 10)).as_policy()
    {'intervals': [5, 10]}
    """

    widths: tuple[float, ...]
    word: ClassVar[str] = "intervals"

    def __post_init__(self) -> None:
        widths = _as_tuple(self.widths, "intervals needs a list of widths, such as [5, 10, 50].")
        object.__setattr__(self, "widths", widths)
        exact = self._read_widths()
        if any(wider <= width or wider % width for width, wider in itertools.pairwise(exact)):
            raise HierarchyError(
                "Each width of intervals must be wider than the one before, and a multiple of it."
            )

    def coarsen(self, level: object) -> Intervals:
        if isinstance(level, bool) or not any(width == level for width in self.widths):
            known = ", ".join(map(str, self.widths))
            raise HierarchyError(f"finest is none of the widths of its intervals; these are {known}.")
        at = [width == level for width in self.widths].index(True)
        return replace(self, widths=self.widths[at:])

    def _read_widths(self) -> list[Fraction]:
        return [grid.read_positive(width, "A width of intervals") for width in self.widths]

    def as_policy(self) -> dict[str, list[float]]:
        return {self.word: list(self.widths)}

    def make_grid(self, column: DeclaredColumn) -> NumberGrid:
        return NumberGrid.of_intervals(*_read_bounds(column), self._read_widths()[0])

    def build(self, column: DeclaredColumn, values: Any) -> Hierarchy:  # noqa: ARG002 - no value of a table matters
        widths, own = self._read_widths(), self.make_grid(column)
        strides = [min(int(width / widths[0]), own.n_leaves) for width in reversed(widths)]
        return build_from_ranges(
            own.n_leaves, [np.arange(0, own.n_leaves, stride) for stride in strides], own.label_ranges
        )


@dataclass(frozen=True, slots=True)
class Balanced(NumberRanges):
    """Halves (or ``fan_out`` equal parts), again and again, down to single numbers or to 64 intervals.

    >>> Balanced(2).as_policy()
    {'balanced': 2}
    """

    fan_out: int
    word: ClassVar[str] = "balanced"
    least: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _check_whole(self.fan_out, "The fan-out of balanced", at_least=self.least)

    def as_policy(self) -> dict[str, int]:
        return {self.word: self.fan_out}

    def coarsen(self, level: object) -> Declaration:  # noqa: ARG002 - it has none that could be named
        raise HierarchyError("balanced has no widths; declare intervals, such as {intervals: [5, 10, 20]}.")

    def make_grid(self, column: DeclaredColumn) -> NumberGrid:
        lower, upper = _read_bounds(column)
        if column.step is None and not lower.denominator == upper.denominator == 1:
            return NumberGrid.of_equal_parts(lower, upper, self.fan_out)
        step = grid.read_positive(1 if column.step is None else column.step, "The step")
        return NumberGrid.of_points(lower, upper, step)

    def build(self, column: DeclaredColumn, values: Any) -> Hierarchy:  # noqa: ARG002 - no value of a table matters
        own = self.make_grid(column)
        return build_from_ranges(
            own.n_leaves, grid.divide_evenly(own.n_leaves, self.fan_out), own.label_ranges
        )


@dataclass(frozen=True, slots=True)
class Given(Declaration):
    """A tree that the policy holds, or that was read from a file.

    >>> Given(Hierarchy.flat(["a", "b"])).as_policy()
    {'tree': {'*': ['a', 'b']}}
    """

    tree: Hierarchy
    whole: Hierarchy | None = field(default=None, repr=False)
    """The tree with what lies below its leaves, where that is not to be published."""
    word: ClassVar[str] = "tree"

    def as_policy(self) -> dict[str, Any]:
        return {self.word: (self.whole or self.tree).as_tree()}

    def build(self, column: DeclaredColumn, values: Any) -> Hierarchy:  # noqa: ARG002 - it is as it is
        return self.tree

    def locate(self, column: DeclaredColumn, tree: Hierarchy, values: Any) -> Nodes:
        if self.whole is None:
            return Declaration.locate(self, column, tree, values)
        codes = Declaration.locate(self, column, self.whole, values)
        starts = self.whole.low[self.whole.find_cut(self.tree.height)]
        return np.where(codes < 0, -1, np.searchsorted(starts, codes, side="right") - 1).astype(np.int32)

    @property
    def levels(self) -> Sequence[str]:
        """The names of its levels, from the values up."""
        return ()

    def is_too_fine(self, label: str) -> bool:
        return self.whole is not None and label in self.whole.labels and label not in self.tree.labels

    @property
    def as_given(self) -> Given:
        return replace(self, tree=self.whole or self.tree, whole=None)

    def coarsen(self, level: object) -> Given:
        whole = self.whole or self.tree
        n_hidden = check_level(level, self.levels, whole.height)
        tree = whole.cut(whole.height - n_hidden)
        leaves = [tree.labels[node] for node in tree.leaf_nodes.tolist()]
        if len(set(leaves)) < len(leaves):
            raise HierarchyError("Labels of that level stand in several places of it; choose another one.")
        return replace(self, tree=tree, whole=whole if n_hidden else None)

    def make_value_test(self) -> Callable[[str], bool]:
        """A label that several nodes have is a single value if none of them holds more than one."""
        tree = self.whole or self.tree
        n_leaves = (tree.high - tree.low).tolist()
        sets = {label for label, n in zip(tree.labels, n_leaves, strict=True) if n > 1}
        return ({tree.labels[node] for node in tree.leaf_nodes.tolist()} - sets).__contains__

    @property
    def root(self) -> Label:
        return self.tree.labels[0]

    def describe(self, column: DeclaredColumn) -> str:  # noqa: ARG002 - it is as it is
        return f"a hierarchy of {self.tree.n_leaves:,} values"


# ---- parts of the above ----------------------------------------------------------------------------


def _check_whole(option: object, what: str, *, at_least: int) -> None:
    if not isinstance(option, int) or isinstance(option, bool) or option < at_least:
        raise HierarchyError(f"{what} must be a whole number of at least {at_least}.")


def _mask(text: str, kept: int) -> str:
    """A text with at most so many characters.

    >>> _mask("53715", 3), _mask("53", 3)
    ('537**', '53')
    """
    return text[:kept] + ROOT * (len(text) - kept)


def _as_tuple(option: Any, otherwise: str) -> tuple[Any, ...]:
    if not isinstance(option, Sequence) or isinstance(option, str) or not option:
        raise HierarchyError(otherwise)
    return tuple(option)


def _read_bounds(column: DeclaredColumn) -> tuple[Fraction, Fraction]:
    if column.bounds is None:
        raise HierarchyError("It needs bounds: [lower, upper].")
    lower, upper = (grid.read_finite(bound, "A bound") for bound in column.bounds)
    if lower > upper:
        raise HierarchyError("Its bounds are reversed: the lower one comes first.")
    return lower, upper


def _sort_texts(kind: Kind, values: Any) -> list[str]:
    if kind is Kind.CATEGORY:
        return sorted(values)
    if kind is Kind.DATE:
        return name_periods(sort_days(values), "day")
    return grid.as_texts(np.unique(np.asarray(values, dtype=np.float64)))


def widen_from(finest: float, low: float, high: float) -> Intervals:
    """Intervals of this width, below others twice as wide each, up to the whole range.

    >>> widen_from(5, 0, 100).widths
    (5, 10, 20, 40, 80)
    """
    widths = [finest]
    while 2 * widths[-1] < high - low:
        widths.append(2 * widths[-1])
    return Intervals(tuple(widths))


def read_calendar(finest: object) -> Dates:
    """The hierarchy of a date that is never finer than a unit of the calendar and declares none.

    >>> read_calendar("month")
    Dates(levels=('month', 'quarter', 'year'))
    """
    if finest not in DATE_LEVELS:
        hint = did_you_mean(str(finest), DATE_LEVELS) if isinstance(finest, str) else ""
        raise HierarchyError(f"finest must be a unit of the calendar: {', '.join(DATE_LEVELS)}.{hint}")
    levels = DATE_LEVELS[DATE_LEVELS.index(str(finest)) :]
    return Dates(levels[:-1] or levels)


DAYS_TO_YEARS = Dates(("day", "month", "year"))
"""The hierarchy of a date that needs one and declares none."""

__all__ = [
    "DAYS_TO_YEARS",
    "Balanced",
    "Dates",
    "Declaration",
    "DeclaredColumn",
    "Flat",
    "Given",
    "Intervals",
    "Mask",
    "NumberRanges",
    "read_calendar",
    "widen_from",
]
