"""The least and the greatest value of the finest slice that each number or date of a column lies in.

Statistics of groups are computed from these where the policy says how fine a column may be published.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.policy.finest import FinestSlices
from sfumato.policy.hierarchy.declarations import Dates, Given, NumberRanges
from sfumato.policy.hierarchy.leaf_ranges import read_leaf_ranges, read_period
from sfumato.policy.kinds import Kind, name_periods
from sfumato.policy.schema import Attribute

Floats = NDArray[np.float64]


def find_ends(attribute: Attribute, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both ends for each value, all of them there; whole numbers where all are.

    >>> born = Attribute("born", "quasi-identifier", Kind.DATE, finest="month")
    >>> [each.tolist() for each in find_ends(born, np.array([0, 40]))]
    [[0, 31], [30, 58]]
    """
    low, high = _find(attribute, values)
    if values.dtype.kind == "i" and all(np.array_equal(each, np.rint(each)) for each in (low, high)):
        return low.astype(np.int64), high.astype(np.int64)
    return low, high


def _find(attribute: Attribute, values: NDArray[Any]) -> tuple[Floats, Floats]:
    declared, numbers = attribute.hierarchy, values.astype(np.float64)
    if slices := FinestSlices.of(attribute):
        return slices.ends(numbers)
    if isinstance(declared, Dates):
        labels, at = np.unique(
            name_periods(values.astype("datetime64[D]"), declared.levels[0]), return_inverse=True
        )
        ends = np.array([read_period(str(label)) for label in labels], dtype=np.float64).reshape(-1, 2)
        return ends[at, 0], ends[at, 1]
    if isinstance(declared, NumberRanges):
        edges = declared.make_grid(attribute).edges
        place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
        return edges[place], edges[place + 1]
    if isinstance(declared, Given):
        return _ends_of_nodes(attribute, declared, values)
    raise InternalError(f"Column {attribute.name!r} has no finest slices.")


def _ends_of_nodes(attribute: Attribute, declared: Given, values: NDArray[Any]) -> tuple[Floats, Floats]:
    """From the least to the greatest leaf below the node of each value in the tree as it was given."""
    whole = declared.whole or declared.tree
    ranges = read_leaf_ranges(attribute, [whole.labels[node] for node in whole.leaf_nodes.tolist()])
    cut = whole.find_cut(declared.tree.height)
    starts = whole.low[cut]
    first, last = np.fmin.reduceat(ranges.first, starts), np.fmax.reduceat(ranges.last, starts)
    known = values.astype("datetime64[D]") if attribute.kind is Kind.DATE else values
    at = attribute.locate(declared.tree, known)
    return first[at], last[at]


__all__ = ["find_ends"]
