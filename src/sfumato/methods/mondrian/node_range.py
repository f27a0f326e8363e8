"""What is known of the codes of a tree node before its rows are read.

The compiled code reads and narrows the same facts as one (4, axes) array, whose lines it calls LOW, HIGH, COVER and
IS_EXACT (``kernels.problem``); outside it, this module is the only one that knows their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.axes import Axes
from sfumato.methods.mondrian.kernels.problem import COVER, HIGH, IS_EXACT, LOW, REST

AFTER, LAST = range(2)
"""Lines of a region, which is (2, axes), see ``QueryRegion``."""

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class QueryRegion(NamedTuple):
    """The region of a node along each axis while splits are chosen for queries: codes above ``after``, up to ``last``.

    It follows the thresholds alone. So it also covers codes that no row of the node has.
    """

    after: Ints
    last: Ints

    @classmethod
    def everything(cls, n_axes: int) -> QueryRegion:
        return cls(np.full(n_axes, -1), np.full(n_axes, np.iinfo(np.int64).max))


@dataclass(frozen=True, slots=True, eq=False)
class NodeRange:
    """Outer bounds of a node's codes, one entry for each axis.

    low, high   no row has a code outside low .. high; codes are those of the whole table
    cover       on an axis with a hierarchy, a node of it that covers all rows
    is_exact    do rows reach both ends? Then the range need not be scanned again
    region      None once the queries are served, or if there are none
    """

    low: Ints
    high: Ints
    cover: Ints
    is_exact: Flags
    region: QueryRegion | None = None

    @classmethod
    def of_root(cls, axes: Axes, n_codes: Sequence[int] | Ints, *, has_queries: bool) -> NodeRange:
        """The range of the whole table, where axis ``a`` has the codes 0 .. n_codes[a] - 1."""
        n_axes = len(n_codes)
        return cls(
            low=np.zeros(n_axes, dtype=np.int64),
            high=np.array(n_codes, dtype=np.int64) - 1,
            cover=np.asarray(axes.root, dtype=np.int64),
            is_exact=np.zeros(n_axes, dtype=np.bool_),
            region=QueryRegion.everything(n_axes) if has_queries else None,
        )

    def child(self, axes: Axes, axis: int, threshold: int, branch: int) -> NodeRange:
        """The range of a child of a split.

        ``branch`` is the hierarchy node of the child, REST for all other rows; on an ordered axis it is 0 for codes up to
        the threshold and 1 for codes above it.
        """
        bounds, region = self.as_bounds()[None], self.as_region()
        regions = None if region is None else region[None]
        narrow(bounds, regions, axes, *(np.array([each]) for each in (axis, threshold, branch)))
        return NodeRange.from_bounds(bounds[0], region)

    def with_covers(self, axes: Axes, covers: Ints) -> NodeRange:
        """The same range where lower hierarchy nodes are known to cover all rows."""
        return replace(self, cover=np.where(axes.is_tree, covers, self.cover))

    # -- for compiled code ---------------------------------------------------------------------------

    def as_bounds(self) -> Ints:
        """(4, axes) low, high, cover, is_exact; a copy, which kernels may narrow in place."""
        return np.stack([self.low, self.high, self.cover, self.is_exact.astype(np.int64)])

    def as_region(self) -> Ints | None:
        """(2, axes) after, last; a copy."""
        return None if self.region is None else np.stack(self.region)

    @classmethod
    def from_bounds(cls, bounds: Ints, region: Ints | None = None) -> NodeRange:
        low, high, cover, is_exact = bounds.copy()
        own_region = None if region is None else QueryRegion(*region.copy())
        return cls(low, high, cover, is_exact == 1, own_region)


def narrow(
    bounds: Ints,
    regions: Ints | None,
    axes: Axes,
    axis: NDArray[np.integer[Any]],
    threshold: Ints,
    branch: Ints,
) -> None:
    """Turn the ranges of nodes into those of a child of each, in place.

    bounds                    (n, 4, axes), see ``NodeRange.as_bounds``
    regions                   (n, 2, axes), see ``NodeRange.as_region``
    axis, threshold, branch   (n,) each one's split, and which child it is, see ``NodeRange.child``
    """
    is_tree = axes.is_tree[axis]
    along = np.flatnonzero(is_tree & (branch != REST))
    node = branch[along]
    bounds[along, LOW, axis[along]] = axes.node_low[node]
    bounds[along, HIGH, axis[along]] = axes.node_high[node] - 1
    bounds[along, COVER, axis[along]] = node
    left, right = np.flatnonzero(~is_tree & (branch == 0)), np.flatnonzero(~is_tree & (branch != 0))
    bounds[left, HIGH, axis[left]] = threshold[left]
    bounds[right, LOW, axis[right]] = np.maximum(bounds[right, LOW, axis[right]], threshold[right] + 1)
    bounds[:, IS_EXACT] = 0
    if regions is not None:
        regions[left, LAST, axis[left]] = threshold[left]
        regions[right, AFTER, axis[right]] = threshold[right]
