"""The values of a column, and how widely they must be told: leaves of a hierarchy, numbers or days.

Shares are those of the whole column, as NCP counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import OrderedDomain, TreeDomain
from sfumato.encoding.encoders import encode_axis
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute
from sfumato.recoding.axis import Axis, OrderedAxis
from sfumato.table.source import Source

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ColumnValues(Protocol):
    """The values of a column, numbered in order; missing comes first among numbers, and last in a hierarchy.

    ``of_row`` is that of each row of the table, and ``count`` how many rows each has.
    """

    @property
    def of_row(self) -> Ints: ...
    @property
    def count(self) -> Ints: ...
    @property
    def n_missing(self) -> int:
        """1 if the first value is missing, which lies beside the others and not among them; else 0."""
        ...

    @property
    def is_ordered(self) -> bool:
        """Do thresholds divide the values, or the nodes of a hierarchy?"""
        ...

    def least_share(self, n_rows: int) -> Floats:
        """The least share of any label that has the value and so many rows of the table."""
        ...

    def share_between(self, first: Ints, last: Ints) -> Floats:
        """The share of the narrowest label of values from ``first`` to ``last``, none of them a missing number."""
        ...

    def part_of(self, first: Ints, last: Ints, value: Ints) -> Ints:
        """The part of a value if the rows of values from ``first`` to ``last`` are divided as finely as one step can."""
        ...


def values_of(source: Source, policy: Policy, axis: Axis) -> ColumnValues:
    """The values of the column of an axis, of all rows of a table."""
    attribute = policy.schema[axis.attribute.name]
    domain, codes = encode_axis(source, attribute)
    if isinstance(domain, TreeDomain):
        of_row = codes.astype(np.int64)
        return TreeValues(of_row, np.bincount(of_row, minlength=domain.n_codes), domain.hierarchy)
    assert isinstance(axis, OrderedAxis)
    return _ordered_values(domain, codes, attribute, axis)


# ---- hierarchies ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TreeValues:
    """The leaves of a hierarchy."""

    of_row: Ints
    count: Ints
    tree: Hierarchy
    n_missing: int = 0
    is_ordered: bool = False

    def least_share(self, n_rows: int) -> Floats:
        """That of the lowest node above the leaf which has so many rows; all of the column if none has.

        >>> tree = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c", "d"]}})
        >>> TreeValues(np.zeros(0, np.int64), np.array([3, 1, 1, 0]), tree).least_share(3).tolist()
        [0.0, 0.5, 1.0, 1.0]
        """
        below = np.append(0, np.cumsum(self.count))
        rows = below[self.tree.high] - below[self.tree.low]
        node = self.tree.leaf_nodes.astype(np.int64)
        while len(climbing := np.flatnonzero((rows[node] < n_rows) & (node > 0))):
            node[climbing] = self.tree.parent[node[climbing]]
        return self._share_of(node)

    def share_between(self, first: Ints, last: Ints) -> Floats:
        return self._share_of(self._cover(first, last))

    def part_of(self, first: Ints, last: Ints, value: Ints) -> Ints:
        """The child of the lowest common node that the leaf lies below."""
        cover = self._cover(first, last)
        node = self.tree.leaf_nodes[value].astype(np.int64)
        while len(climbing := np.flatnonzero((node != cover) & (self.tree.parent[node] != cover))):
            node[climbing] = self.tree.parent[node[climbing]]
        return node

    def _cover(self, first: Ints, last: Ints) -> Ints:
        node = self.tree.leaf_nodes[first].astype(np.int64)
        while len(climbing := np.flatnonzero(self.tree.high[node] <= last)):
            node[climbing] = self.tree.parent[node[climbing]]
        return node

    def _share_of(self, node: Ints) -> Floats:
        n = (self.tree.high - self.tree.low)[node]
        return np.where(n > 1, n / self.tree.n_leaves, 0.0)


# ---- numbers and dates ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class OrderedValues:
    """Numbers or days in order; ``place`` says where each lies in the range of the column, from 0 to 1."""

    of_row: Ints
    count: Ints
    place: Floats
    n_missing: int = 0
    is_ordered: bool = True

    def least_share(self, n_rows: int) -> Floats:
        """That of the narrowest range which has the value and so many rows; all of the column if there is none.

        >>> at = np.array([0.0, 0.1, 0.2, 1.0])
        >>> OrderedValues(np.zeros(0, np.int64), np.array([1, 3, 1, 1]), at).least_share(3).tolist()
        [0.1, 0.0, 0.1, 0.9]
        """
        count, place = self.count[self.n_missing :], self.place[self.n_missing :]
        found = np.ones(len(self.count))
        if self.n_missing:
            found[0] = 0.0 if self.count[0] >= n_rows else 1.0
        if len(count):
            found[self.n_missing :] = _narrowest(count, place, n_rows)
        return found

    def share_between(self, first: Ints, last: Ints) -> Floats:
        return self.place[last] - self.place[first]

    def part_of(self, first: Ints, last: Ints, value: Ints) -> Ints:  # noqa: ARG002 - any threshold divides
        return value


def _ordered_values(
    domain: OrderedDomain, codes: NDArray[np.uint32], attribute: Attribute, axis: OrderedAxis
) -> OrderedValues:
    known, of_row = np.unique(codes, return_inverse=True)
    n_missing = int(domain.has_missing and len(known) > 0 and known[0] == 0)
    numbers = np.asarray(domain.value(known[n_missing:]), dtype=np.float64)
    if attribute.bounds is not None:
        numbers = np.clip(numbers, *attribute.bounds)
    width = axis.high - axis.low
    place = np.clip((numbers - axis.low) / width, 0.0, 1.0) if width > 0 else np.zeros(len(numbers))
    own = of_row.reshape(-1)
    return OrderedValues(
        own, np.bincount(own, minlength=len(known)), np.append(np.zeros(n_missing), place), n_missing
    )


def _narrowest(count: Ints, place: Floats, n_rows: int) -> Floats:
    """The width of the narrowest range around each place that has so many rows; 1 if there is none.

    Such a range cannot be made shorter at both ends. So it either begins somewhere at or before the place and ends where
    it has enough rows, at or after it; or it ends at the place and begins as late as possible.
    """
    n = len(count)
    before = np.append(0, np.cumsum(count))
    end = np.searchsorted(before, before[:-1] + n_rows) - 1  # of the range that begins at a place
    has_end = end < n
    width = np.where(has_end, place[np.minimum(end, n - 1)] - place, np.inf)
    start = (
        np.searchsorted(before, before[1:] - n_rows, side="right") - 1
    )  # of the range that ends at a place
    back = np.where(start >= 0, place - place[np.maximum(start, 0)], np.inf)
    earliest = np.searchsorted(end, np.arange(n))
    return np.minimum(np.minimum(_least_between(width, earliest), back), 1.0)


def _least_between(numbers: Floats, first: Ints) -> Floats:
    """The least of the numbers from place ``first[i]`` to place i.

    >>> _least_between(np.array([3.0, 1.0, 2.0, 5.0]), np.array([0, 0, 2, 2])).tolist()
    [3.0, 1.0, 2.0, 2.0]
    """
    n = len(numbers)
    length = np.arange(n) - first + 1
    found, least, reach = np.empty(n), numbers, 1
    while True:  # ``least[i]`` is that of ``reach`` numbers from i on
        here = np.flatnonzero((length >= reach) & (length < 2 * reach))
        found[here] = np.minimum(least[first[here]], least[here - reach + 1])
        if 2 * reach > length.max():
            return found
        least = np.minimum(least[:-reach], least[reach:])
        reach *= 2


__all__ = ["ColumnValues", "OrderedValues", "TreeValues", "values_of"]
