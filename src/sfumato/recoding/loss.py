r"""What published cells lose: the normalized certainty penalty (NCP) [XWP06, section 2.2].

The penalty of a cell is the share of its column that it leaves open:

- a category: the leaves below its node over all leaves of the column; 0 for a leaf, 1 for ``*``;
- a number or date: (high - low) / (range of the column);
- a missing number beside numbers (``[0, 24] or missing``): 1, because neither it nor its absence is told;
- missing alone: 0, because that is what the table has.

The NCP of a column is the mean over its cells, and that of a release the mean over its columns. Penalties are whole
numbers of 2^-52, so that their sum is exact: parts of a table may be added in any order, and give the same figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import Codes, Domain, OrderedDomain, TreeDomain
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.recoding.axis import Axis, BoxEnds, DistinctBoxes, OrderedAxis, TreeAxis, distinct_boxes

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

UNIT = 2**52
"""The penalty of a cell that tells nothing."""

HALF_BITS = 26
"""Half of the bits of a penalty: sums of halves stay below 2^63 for any table."""


# ---- boxes -------------------------------------------------------------------------------------------


class Shares(NamedTuple):
    """The share of a column that each box covers, and whether missing belongs to it beside other values."""

    share: Floats
    is_mixed: Flags


def boxes_along(ends: BoxEnds) -> list[DistinctBoxes]:
    """The distinct boxes along each axis, of ends as ``Recoder.ends`` and ``Recoder.box_ends`` give them."""
    return [distinct_boxes(*ends.along(a)) for a in range(ends.low.shape[1])]


def shares_of(axis: Axis, boxes: DistinctBoxes, tree: WholeTree | None) -> Shares:
    """The shares of boxes along one axis; ``tree`` is the whole hierarchy of a tree axis."""
    if isinstance(axis, TreeAxis):
        assert tree is not None
        first, end = tree.leaves_of(axis.nodes, boxes.low)
        n = end - first
        return Shares(
            np.where(n > 1, n / tree.hierarchy.n_leaves, 0.0), np.zeros(len(boxes.low), dtype=np.bool_)
        )
    return _shares_of_ranges(axis, boxes.ends)


def _shares_of_ranges(axis: OrderedAxis, ends: BoxEnds) -> Shares:
    low, high, missing = ends
    is_missing = np.isneginf(high) | (axis.low > axis.high)
    is_mixed = missing & ~is_missing
    if not axis.high > axis.low:
        return Shares(np.zeros(len(low)), is_mixed)
    first, last = axis.ends(np.where(is_missing, np.nan, low), np.where(is_missing, axis.low, high))
    share = np.clip((last - first) / (axis.high - axis.low), 0.0, 1.0)
    return Shares(np.where(is_missing, 0.0, share), is_mixed)


@dataclass(frozen=True, slots=True, eq=False)
class WholeTree:
    """The whole hierarchy of a column: a recoding keeps only the nodes that it uses."""

    hierarchy: Hierarchy
    _child: dict[tuple[int, str | None], int] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return WholeTree, (self.hierarchy,)

    def leaves_of(self, pruned: Hierarchy, nodes: Floats) -> tuple[Ints, Ints]:
        """The codes of the leaves below nodes of the pruned hierarchy: the first, and the one after the last."""
        place = self.find_places(pruned)[nodes.astype(np.int64)]
        return self.hierarchy.low[place].astype(np.int64), self.hierarchy.high[place].astype(np.int64)

    def find_places(self, pruned: Hierarchy) -> Ints:
        """Where each node of the pruned hierarchy stands in the whole one."""
        whole = self.hierarchy
        if not self._child:
            parents = enumerate(whole.parent.tolist())
            self._child.update({(parent, whole.labels[node]): node for node, parent in parents})
        place: list[int] = []
        for node, parent in enumerate(pruned.parent.tolist()):
            place.append(self._child[place[parent] if node else -1, pruned.labels[node]])
        return np.array(place, dtype=np.int64)


def whole_trees(domains: Sequence[Domain]) -> dict[str, WholeTree]:
    """The hierarchies of a table, by column."""
    return {
        domain.attribute.name: WholeTree(domain.hierarchy)
        for domain in domains
        if isinstance(domain, TreeDomain)
    }


# ---- sums --------------------------------------------------------------------------------------------

Missing = Mapping[str, Ints]
"""How many rows of each group are missing in a column of numbers or dates; nothing of a column where none are."""


@dataclass(frozen=True, slots=True)
class LostDetail:
    """The sum of the penalties of each column, in units, over so many rows."""

    rows: int
    columns: Mapping[str, int]

    def __add__(self, other: LostDetail) -> LostDetail:
        both = {name: units + other.columns[name] for name, units in self.columns.items()}
        return LostDetail(self.rows + other.rows, both)

    def with_left_out(self, n_rows: int) -> LostDetail:
        """The sum with so many more rows that are left out: all of their cells is lost.

        >>> LostDetail(2, {"age": 0}).with_left_out(2).ncp
        0.5
        """
        columns = {name: units + n_rows * UNIT for name, units in self.columns.items()}
        return LostDetail(self.rows + n_rows, columns)

    def weigh(self, weights: Mapping[str, Fraction]) -> Fraction:
        """The sum over all columns, in cells that tell nothing, each column with its weight."""
        return sum(
            (weights[name] * Fraction(units, UNIT) for name, units in self.columns.items()), Fraction(0)
        )

    @property
    def ncp(self) -> float:
        """The mean over all cells."""
        return float(Fraction(sum(self.columns.values()), UNIT * max(self.rows * len(self.columns), 1)))

    @property
    def by_column(self) -> dict[str, float]:
        """The mean over the cells of each column, columns that lost most first."""
        found = {
            name: float(Fraction(units, UNIT * max(self.rows, 1))) for name, units in self.columns.items()
        }
        return worst_first(found)

    def as_dict(self) -> dict[str, Any]:
        """What the certificate says of it.

        >>> LostDetail(2, {"age": UNIT, "sex": 2 * UNIT}).as_dict()
        {'ncp': 0.75, 'columns': {'sex': 1.0, 'age': 0.5}}
        """
        return {"ncp": self.ncp, "columns": self.by_column}


def worst_first(found: Mapping[str, float]) -> dict[str, float]:
    """The columns with the greatest figures first; equal ones as they stand."""
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def write_share(share: float) -> str:
    """A share with two digits.

    >>> write_share(0.123), write_share(0.0004), write_share(1.0), write_share(0)
    ('.12', '.0004', '1', '0')
    """
    text = f"{share:.2g}" if share < 0.095 else f"{share:.2f}"
    return f"{float(text):.10f}".rstrip("0").rstrip(".").lstrip("0") or "0"


def measure_loss(
    axes: Sequence[Axis],
    boxes: Sequence[DistinctBoxes],
    size: Ints,
    missing: Missing,
    trees: Mapping[str, WholeTree],
) -> LostDetail:
    """What boxes lose that so many rows have; ``trees`` are the whole hierarchies of the table."""
    found = {}
    for axis, along in zip(axes, boxes, strict=True):
        name = axis.attribute.name
        share, is_mixed = shares_of(axis, along, trees.get(name))
        units = np.rint(share * UNIT).astype(np.int64)[along.which]
        lost = _weigh(units, size)
        if name in missing:
            lost += _weigh(UNIT - units, np.where(is_mixed[along.which], missing[name], 0))
        found[name] = lost
    return LostDetail(int(size.sum()), found)


def _weigh(units: Ints, size: Ints) -> int:
    """The sum of units times sizes, exactly.

    >>> _weigh(np.array([UNIT, 1]), np.array([2**36, 3])) == 2**36 * UNIT + 3
    True
    """
    high, low = units >> HALF_BITS, units & (2**HALF_BITS - 1)
    return (int(high @ size) << HALF_BITS) + int(low @ size)


# ---- missing cells -----------------------------------------------------------------------------------


def places_of_missing(domains: Sequence[Domain]) -> dict[str, int]:
    """The places of the columns of numbers or dates that have missing cells."""
    return {
        domain.attribute.name: a
        for a, domain in enumerate(domains)
        if isinstance(domain, OrderedDomain) and domain.has_missing
    }


def missing_cells(rows: Codes, places: Mapping[str, int]) -> dict[str, Flags]:
    """Which rows are missing in these columns: their code is 0."""
    return {name: np.asarray(rows[:, a] == 0) for name, a in places.items()} if len(rows) else {}


def count_in_groups(flags: Mapping[str, Flags], rows: NDArray[np.integer[Any]], size: Ints) -> Missing:
    """How many rows of each group have the flag; ``rows`` lists them group by group.

    >>> count_in_groups({"age": np.array([True, False, True])}, np.array([2, 1, 0]), np.array([1, 2]))
    {'age': array([1, 1])}
    """
    start = np.cumsum(size) - size
    return {
        name: np.add.reduceat(flag[rows].astype(np.int64), start) if len(size) else np.zeros(0, np.int64)
        for name, flag in flags.items()
    }
