"""What every declaration of a hierarchy answers, and the parts that several of them share."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import HierarchyError
from sfumato.policy.hierarchy import grid
from sfumato.policy.hierarchy.files import ROOT, Label
from sfumato.policy.hierarchy.tree import Hierarchy, Nodes
from sfumato.policy.kinds import Kind, name_periods


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

    def is_masked(self, label: str) -> bool:  # noqa: ARG002 - as above
        """Does a label stand for values that follow from it by a rule, and that only the table knows?"""
        return False

    def build_labels(self, column: DeclaredColumn, labels: Any) -> Hierarchy:
        """The tree of these labels, single values or not, and of all above them."""
        return self.build(column, labels)

    def is_too_fine(self, label: str) -> bool:  # noqa: ARG002 - as above
        """Is a published label, other than the root's, finer than any may be?"""
        return False

    @property
    def as_given(self) -> Declaration:
        """The same with all its levels, also those that are finer than what is published."""
        return self

    def coarsen(self, level: object) -> Declaration:  # noqa: ARG002 - most have no levels to choose from
        """The same, with nothing below this level: a name, a width, or its number, counted from the values up."""
        raise HierarchyError(f"{self.word} has no levels to choose from; leave finest out.")

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of its column where none are declared; None if it has none of its own."""
        return None

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


# ---- parts that several share ----------------------------------------------------------------------


def check_level(level: object, names: Sequence[str], height: int) -> int:
    """The number of a level, counted from the values up: by its name, or its number.

    >>> check_level("region", ("state", "division", "region"), 3), check_level(1, (), 5)
    (2, 1)
    """
    if isinstance(level, str) and level in names:
        return names.index(level)
    if isinstance(level, int) and not isinstance(level, bool) and 0 <= level < height:
        return level
    if height < 2:
        raise HierarchyError("It has no level between its values and the root; leave finest out.")
    choices = f"one of {', '.join(names)}, or a number" if names else "the number of a level"
    raise HierarchyError(f"finest must be {choices} from 1 to {height - 1}, counted from the values up.")


def only_declared(column: DeclaredColumn, values: Any, codes: Nodes) -> Nodes:
    """The codes of values that the column declares; those of all others are -1, if it declares any."""
    if column.values is None:
        return codes
    declared = frozenset(column.values)
    return np.where([value in declared for value in values], codes, -1).astype(np.int32)


def name_values(column: DeclaredColumn) -> str | None:
    return None if column.values else "values, such as values: [Male, Female], or a hierarchy of them"


def build_from_label_paths(rows: Iterable[Sequence[str]]) -> Hierarchy:
    """Paths of labels, one of each leaf, as a tree: as ``Hierarchy.from_paths``; a root alone if there are none."""
    paths = iter(rows)
    first = next(paths, None)
    return Hierarchy.flat(()) if first is None else Hierarchy.from_paths(itertools.chain([first], paths))


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
