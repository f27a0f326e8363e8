"""What the codes of a column mean: an ordered domain of values, or the leaves of a hierarchy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.kinds import read_exactly
from sfumato.policy.schema import Attribute
from sfumato.table.distinct import take_at

Codes = NDArray[np.uint32]
Floats = NDArray[np.float64]

EXACT_LIMIT = 2**53
"""Whole numbers below this are exact as floats; this one is also what its successor is rounded to."""

MISSING = -math.inf
"""Where a missing cell stands among the values of an ordered domain: before all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderedDomain:
    """Values in ascending order; code i is ``values[i]``, or ``origin + i * grid`` where ``values`` is None.

    Values that are too many for memory stay in a file, and ``values`` is a memory map of it. There code 0 of a domain
    with missing cells has the least value: ask ``value`` what codes mean.

    ``low`` and ``high`` are the outer ends that a release may show: the declared bounds, or the range of
    the table. ``grid`` is the distance of neighbouring values (1 for whole numbers and days), None if any
    number can occur. With ``has_missing`` code 0 is missing. If it ``is_declared``, it follows from the policy
    alone, and a cell that is no number or date is missing too.
    """

    attribute: Attribute
    low: float
    high: float
    grid: float | None
    has_missing: bool
    n_codes: int
    values: Floats | None
    origin: float = 0.0
    is_declared: bool = False

    @property
    def shown_step(self) -> float | None:
        """The distance of the numbers that labels may name: also within the finest slices, if there are any."""
        return self.grid if self.attribute.finest is None else self.attribute.step

    def value(self, code: Any) -> Any:
        """The value of each code; missing is -inf."""
        codes = np.asarray(code)
        grid = self.grid or 1.0
        found = _grid_points(self.origin, grid, codes) if self.values is None else take_at(self.values, codes)
        return np.where(codes == 0, MISSING, found) if self.has_missing else found


def _grid_points(origin: float, step: float, codes: NDArray[Any]) -> Floats:
    """``origin + codes * step``; of decimals the floats nearest to them: 0.3, not 0.1 + 0.2.

    >>> _grid_points(0.0, 0.1, np.array([3]))
    array([0.3])
    """
    if are_whole((origin, step)):
        return np.asarray(origin + codes * step)
    first, stride = read_exactly(origin), read_exactly(step)
    scale = math.lcm(first.denominator, stride.denominator)
    return np.asarray((int(first * scale) + codes.astype(np.int64) * int(stride * scale)) / scale)


@dataclass(frozen=True, slots=True)
class TreeDomain:
    """The leaves of a hierarchy, numbered from left to right; missing is the last leaf, if any is missing.

    If it ``is_declared``, it follows from the policy alone, and a cell that no leaf stands for is missing too.
    """

    attribute: Attribute
    hierarchy: Hierarchy
    has_missing: bool
    is_declared: bool = False

    @property
    def n_codes(self) -> int:
        return self.hierarchy.n_leaves


Domain = OrderedDomain | TreeDomain


def are_whole(numbers: tuple[float, float]) -> bool:
    """Is neither number a fraction?"""
    return all(float(number).is_integer() for number in numbers)


# ---- domains as kernels see them ----------------------------------------------------------------------


def axes_of(
    domains: tuple[Domain, ...],
    *,
    split_only: tuple[str, ...] | None = None,
    ranks: tuple[Floats, NDArray[np.int64]] | None = None,
) -> Axes:
    """The domains as the kernels see them.

    ``ranks`` are the real positions of all ranked domains where they stay in a file, and where each axis begins.
    """
    trees = [domain.hierarchy if isinstance(domain, TreeDomain) else None for domain in domains]
    sizes = [0 if tree is None else tree.n_nodes for tree in trees]
    offsets = np.cumsum([0, *sizes])
    given = [
        (int(offset), tree) for offset, tree in zip(offsets[:-1], trees, strict=True) if tree is not None
    ]
    n_children = [np.bincount(tree.parent[1:], minlength=tree.n_nodes) for _, tree in given]
    child = [offset + 1 + np.argsort(tree.parent[1:], kind="stable") for offset, tree in given]
    counts = _join(n_children, np.int64)
    position, starts = _ranks(domains) if ranks is None else ranks
    names = [domain.attribute.name for domain in domains]
    return Axes(
        is_tree=np.array([tree is not None for tree in trees]),
        may_split=np.array([split_only is None or name in split_only for name in names]),
        root=offsets[:-1].astype(np.int64),
        node_low=_join([tree.low for _, tree in given], np.int64),
        node_high=_join([tree.high for _, tree in given], np.int64),
        child_start=np.cumsum(counts) - counts,
        n_children=counts,
        child=_join(child, np.int64),
        position_start=starts,
        position=position,
        least_code=np.array([_least_code(domain) for domain in domains], dtype=np.int64),
        width=np.array([_width(domain) for domain in domains]),
    )


def _ranks(domains: tuple[Domain, ...]) -> tuple[Floats, NDArray[np.int64]]:
    """Real positions of the codes of all ranked domains, and where those of each axis begin: -1 if nowhere."""
    positions = [_positions(domain) for domain in domains]
    starts = np.cumsum([0, *(len(position) for position in positions)])[:-1]
    return _join(positions, np.float64), np.where([len(each) > 0 for each in positions], starts, -1)


def _positions(domain: Domain) -> Floats:
    """Real positions of the codes of a ranked domain; missing stands with the least value."""
    if isinstance(domain, TreeDomain) or domain.values is None:
        return np.zeros(0)
    if not domain.has_missing:
        return domain.values
    return np.append(domain.values[1:2] if domain.n_codes > 1 else [0.0], domain.values[1:])


def _least_code(domain: Domain) -> int:
    return 1 if isinstance(domain, OrderedDomain) and domain.has_missing else 0


def _width(domain: Domain) -> float:
    """Width of the whole table on one axis: how many leaves, or how much of the values, it spans; 1 if nothing."""
    if isinstance(domain, TreeDomain) or domain.values is None:
        width = float(domain.n_codes - 1 - _least_code(domain))
    else:
        least = min(_least_code(domain), domain.n_codes - 1)
        width = float(domain.values[-1] - domain.values[least]) if domain.n_codes > 1 else 0.0
    return width if width > 0 else 1.0


def _join(arrays: list[Any], dtype: Any) -> Any:
    return np.concatenate(arrays).astype(dtype) if arrays else np.zeros(0, dtype=dtype)
