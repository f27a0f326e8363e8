"""Hierarchies as a policy declares them: flat, mask, dates, intervals, balanced, or a given tree.

Each declaration is a value, checked when it is made. It builds the tree of a column, finds the leaves of cells, and
answers what the rest of the program asks of it: does the policy alone tell the whole tree, which labels are single
values, how is it written.

A declaration is *open* if the table may bring values that the policy does not list. It is *by a rule* if the nodes
follow from the values: texts that are masked, periods, ranges of numbers.
"""

from __future__ import annotations

import itertools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import HierarchyError, did_you_mean
from sfumato.policy.hierarchy import grid
from sfumato.policy.hierarchy.files import MAX_LEAVES, ROOT, Label
from sfumato.policy.hierarchy.grid import NumberGrid
from sfumato.policy.hierarchy.tree import Hierarchy, Nodes, build_from_ranges
from sfumato.policy.kinds import DATE_LEVELS, Kind, name_periods, sort_days

_DAY = re.compile(r"\d{4,}-\d\d-\d\d")


class DeclaredColumn(Protocol):
    """What a declaration asks of the column that it is of."""

    @property
    def kind(self) -> Kind: ...
    @property
    def values(self) -> tuple[str, ...] | None: ...
    @property
    def bounds(self) -> tuple[float, float] | None: ...
    @property
    def step(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Declaration(ABC):
    """How a policy declares the hierarchy of a column."""

    word: ClassVar[str]
    """The word of a policy for it."""
    kinds: ClassVar[tuple[Kind, ...]] = tuple(Kind)
    """The kinds of column that it is for."""
    is_rule: ClassVar[bool] = False
    """Do the nodes follow from the values by a rule?"""

    @abstractmethod
    def as_policy(self) -> Any:
        """How a policy writes it, as plain data."""

    @abstractmethod
    def build(self, column: DeclaredColumn, values: Any) -> Hierarchy:
        """The tree of a column; ``values`` are those of a table, which an open one and dates are made of."""

    def build_declared(self, column: DeclaredColumn) -> Hierarchy:
        """The tree of what the policy declares, whatever the table."""
        return self.build(column, ())

    def locate(self, column: DeclaredColumn, tree: Hierarchy, values: Any) -> Nodes:
        """The leaf code of each value, or -1 where the tree has no leaf for it."""
        leaves = [tree.labels[node] for node in tree.leaf_nodes.tolist()]
        if column.kind is Kind.NUMBER:
            return _locate_numbers(leaves, values)
        code_of = {label: code for code, label in enumerate(leaves) if label is not None}
        texts = self._name_days(values) if column.kind is Kind.DATE else values
        return np.array([code_of.get(text, -1) for text in texts], dtype=np.int32)

    def _name_days(self, values: Any) -> list[str]:
        return name_periods(values, "day")

    def is_open(self, column: DeclaredColumn) -> bool:  # noqa: ARG002 - most are closed, whatever the column
        """May a table bring values that the policy does not list?"""
        return False

    def is_complete(self, column: DeclaredColumn) -> bool:
        """Does the policy alone tell the whole tree?"""
        return not self.is_open(column)

    def name_undeclared(self, column: DeclaredColumn) -> str | None:  # noqa: ARG002 - as above
        """What the policy must add for all values to be known without a table; None if they are."""
        return None

    def make_value_test(self) -> Callable[[str], bool]:
        """A test whether a label other than the root's is a single value, and not a set of them."""
        return lambda _label: True

    def find_value_depth(self, label: str) -> int | None:  # noqa: ARG002 - as above
        """At which depth a label of a tree that is made from a table is a single value; None if nowhere."""
        return 1

    @property
    def root(self) -> Label:
        """The label of the root."""
        return ROOT

    def keep_fitting(self, values: Iterable[str]) -> Any:
        """The values that the tree can have at all: a mask takes no longer texts than itself."""
        return values

    def describe(self, column: DeclaredColumn) -> str:  # noqa: ARG002 - as above
        """In a few words, what a release discloses about the domain."""
        return "a hierarchy by a rule"


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
        return (
            _name_values(column) if column.kind is Kind.CATEGORY else "another hierarchy than flat, or none"
        )

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
        return _from_paths(
            [ROOT, *(text[:kept] + ROOT * (len(text) - kept) for kept in range(1, len(text))), text]
            for text in sorted(sorted(texts), key=len)
        )

    def is_open(self, column: DeclaredColumn) -> bool:
        return column.values is None

    def name_undeclared(self, column: DeclaredColumn) -> str | None:
        return _name_values(column)

    def make_value_test(self) -> Callable[[str], bool]:
        return lambda label: not label.endswith(ROOT)

    def find_value_depth(self, label: str) -> int:
        return len(label)  # a level for each character

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
        return _from_paths((ROOT, *path) for path in zip(*periods, strict=True))

    def build_declared(self, column: DeclaredColumn) -> Hierarchy:
        first, last = map(int, column.bounds or (0, 0))
        if last - first >= MAX_LEAVES:
            raise HierarchyError(f"Its bounds are {MAX_LEAVES:,} days apart or more; narrow them.")
        return self.build(column, np.arange(first, last + 1).astype("datetime64[D]"))

    def _name_days(self, values: Any) -> list[str]:
        return name_periods(values, self.levels[0])

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
    word: ClassVar[str] = "tree"

    def as_policy(self) -> dict[str, Any]:
        return {self.word: self.tree.as_tree()}

    def build(self, column: DeclaredColumn, values: Any) -> Hierarchy:  # noqa: ARG002 - it is as it is
        return self.tree

    def make_value_test(self) -> Callable[[str], bool]:
        """A label that several nodes have is a single value if none of them holds more than one."""
        tree = self.tree
        n_leaves = (tree.high - tree.low).tolist()
        sets = {label for label, n in zip(tree.labels, n_leaves, strict=True) if n > 1}
        return ({tree.labels[node] for node in tree.leaf_nodes.tolist()} - sets).__contains__

    @property
    def root(self) -> Label:
        return self.tree.labels[0]

    def describe(self, column: DeclaredColumn) -> str:  # noqa: ARG002 - it is as it is
        return f"a hierarchy of {self.tree.n_leaves:,} values"


BUILDERS: dict[str, Callable[[Any], Declaration]] = {
    Mask.word: Mask,
    Dates.word: Dates,
    Intervals.word: Intervals,
    Balanced.word: Balanced,
    Given.word: lambda tree: Given(Hierarchy.from_tree(tree)),
}
"""Declarations with an option, by their word."""


def declare(given: Any, kind: Kind) -> Declaration | None:
    """The declaration that is given in plain data, for a column of this kind; None if none is.

    >>> declare({"mask": 5}, Kind.CATEGORY), declare("flat", Kind.DATE), declare(None, Kind.NUMBER)
    (Mask(n_characters=5), Flat(), None)
    """
    found = _read(given)
    if found is not None and kind not in found.kinds:
        raise HierarchyError(f"{found.word} is not for a column of type {kind}.")
    return found


def _read(given: Any) -> Declaration | None:
    if given is None or isinstance(given, Declaration):
        return given
    if isinstance(given, Hierarchy):
        return Given(given)
    if isinstance(given, str) and given == Flat.word:
        return Flat()
    if not isinstance(given, Mapping) or len(given) != 1:
        raise HierarchyError("It must be flat, a hierarchy that was read, or one builder such as {mask: 5}.")
    ((word, option),) = given.items()
    if word not in BUILDERS:
        known = ", ".join(BUILDERS)
        raise HierarchyError(f"There is no builder {word!r}, but {known}.{did_you_mean(str(word), BUILDERS)}")
    return BUILDERS[word](option)


# ---- parts of the above ----------------------------------------------------------------------------


def _check_whole(option: object, what: str, *, at_least: int) -> None:
    if not isinstance(option, int) or isinstance(option, bool) or option < at_least:
        raise HierarchyError(f"{what} must be a whole number of at least {at_least}.")


def _as_tuple(option: Any, otherwise: str) -> tuple[Any, ...]:
    if not isinstance(option, Sequence) or isinstance(option, str) or not option:
        raise HierarchyError(otherwise)
    return tuple(option)


def _name_values(column: DeclaredColumn) -> str | None:
    return None if column.values else "values, such as values: [Male, Female], or a hierarchy of them"


def _read_bounds(column: DeclaredColumn) -> tuple[Fraction, Fraction]:
    if column.bounds is None:
        raise HierarchyError("It needs bounds: [lower, upper].")
    lower, upper = (grid.read_finite(bound, "A bound") for bound in column.bounds)
    if lower > upper:
        raise HierarchyError("Its bounds are reversed: the lower one comes first.")
    return lower, upper


def _from_paths(rows: Iterable[Sequence[str]]) -> Hierarchy:
    """As ``Hierarchy.from_paths``; a root alone if there are none."""
    paths = iter(rows)
    first = next(paths, None)
    return Hierarchy.flat(()) if first is None else Hierarchy.from_paths(itertools.chain([first], paths))


def _sort_texts(kind: Kind, values: Any) -> list[str]:
    if kind is Kind.CATEGORY:
        return sorted(values)
    if kind is Kind.DATE:
        return name_periods(sort_days(values), "day")
    return grid.as_texts(np.unique(np.asarray(values, dtype=np.float64)))


def _locate_numbers(leaves: Sequence[Label], values: Any) -> Nodes:
    """Leaves matched by numeric value: 5 and 5.0 are one number. A leaf that is no number matches none."""
    numbers: NDArray[np.float64] = np.array([_read_number(label) for label in leaves])
    codes = np.argsort(numbers)[: np.isfinite(numbers).sum()]  # NaN comes last
    if twins := int(np.sum(np.diff(numbers[codes]) == 0)):
        raise HierarchyError(f"Leaves that are the same number as another leaf: {twins}.")
    place = grid.match(numbers[codes], np.asarray(values, dtype=np.float64))
    return np.where(place < 0, -1, np.append(codes, -1)[place]).astype(np.int32)


def _read_number(label: Label) -> float:
    try:
        number = float(label) if label is not None and "_" not in label else math.nan
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


DAYS_TO_YEARS = Dates(("day", "month", "year"))
"""The hierarchy of a date that needs one and declares none."""
