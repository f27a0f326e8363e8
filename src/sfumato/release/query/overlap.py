"""How far published boxes lie in the side of a rectangle, if the rows are spread evenly over each box.

Evenly means: over the values of the grid (whole numbers, days), over the length where any number can occur,
over the leaves of a hierarchy; missing is one value among them. A hierarchy that was made from the table (a
mask, dates, a flat one without declared values) is known to the readers of a release only as far as its boxes
show it. There a mask stands for all texts that it fits, a period for its days, and otherwise all that is not shown
for one more leaf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.policy.hierarchy.declarations import Dates, Mask, NumberRanges
from sfumato.policy.hierarchy.declared import with_missing
from sfumato.policy.hierarchy.files import ROOT
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.predicate import ANY_NUMBER, MISSING, Interval, Labels, Side
from sfumato.policy.schema import Attribute, Kind
from sfumato.recoding.axis import Axis, OrderedAxis, TreeAxis

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Of each box: the share of it that lies in something, and whether any of it may.

    Where any number can occur, a single one is no share of a box, and yet may lie in it.
    """

    share: Floats
    may: Flags


def boxes_of(axis: Axis, low: Floats, high: Floats) -> Spans | Nodes:
    """Boxes along one axis; the ends are those that ``pieces`` of a recoding has."""
    if isinstance(axis, TreeAxis):
        return Nodes(axis, low.astype(np.int64))
    is_missing = np.isneginf(high)
    first, last = axis.ends(low, np.where(is_missing, 0.0, high))
    if axis.grid is None:
        first = np.where(np.isfinite(low), np.nextafter(low, np.inf), first)
    first, last = (np.where(is_missing, np.nan, end) for end in (first, last))
    return Spans(axis, first, last, is_missing | (np.isnan(low) & axis.has_missing))


# ---- numbers and dates -----------------------------------------------------------------------------


def snapped(interval: Interval, origin: float, grid: float | None) -> Interval:
    """The interval from the first value of the grid in it to the last; empty if there is none.

    >>> snapped(Interval(math.nextafter(0.3, 1), 0.55), 0.0, 0.1)
    Interval(low=0.4, high=0.5)
    """
    if grid is None or not interval or interval.is_missing:
        return interval
    return Interval(
        _on_grid(interval.low, origin, grid, up=True), _on_grid(interval.high, origin, grid, up=False)
    )


def _on_grid(value: float, origin: float, grid: float, *, up: bool) -> float:
    """The nearest value of the grid at or above (or below) a number, in decimals: 0.3, not 0.1 + 0.2."""
    if abs(value) >= 1e18:  # an interval without an end
        return value
    start, step = Decimal(repr(float(origin))), Decimal(repr(float(grid)))
    n = round((Decimal(repr(float(value))) - start) / step)
    near = float(start + n * step)
    if up and near < value:
        return float(start + (n + 1) * step)
    if not up and near > value:
        return float(start + (n - 1) * step)
    return near


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Boxes on an ordered axis, both ends included; NaN for missing alone, which ``has_missing`` too."""

    axis: OrderedAxis
    first: Floats
    last: Floats
    has_missing: Flags

    def part(self, side: Side) -> Part:
        assert isinstance(side, Interval)
        grid, is_missing = self.axis.grid, np.isnan(self.first)
        n_values = np.where(is_missing, 0.0, _weight(self.first, self.last, grid))
        n_missing = self.has_missing * (is_missing | (grid is not None))
        if side.is_missing:
            return Part(_ratio(n_missing, n_values * ~is_missing + n_missing), self.has_missing)
        part = _part_of_spans(self.first, self.last, self.snapped(side), grid)
        thinned = part.share * _ratio(n_values, n_values + n_missing) if grid is not None else part.share
        return Part(thinned, part.may)

    def ends(self) -> tuple[Floats, Floats]:
        """The first and last value of each box; NaN for missing alone."""
        return self.first, self.last

    def snapped(self, side: Interval) -> Interval:
        return snapped(side, self.axis.low, self.axis.grid)


def _part_of_spans(first: Floats, last: Floats, side: Interval, grid: float | None) -> Part:
    """Spans from ``first`` to ``last``, both included; a span without ends is half in, if it is not whole."""
    may = (first <= side.high) & (last >= side.low) & bool(side)
    is_whole = may & (side.low <= first) & (last <= side.high)
    is_endless = ~(np.abs(first) < 1e300) | ~(np.abs(last) < 1e300)
    ends = (np.where(is_endless, 0.0, end) for end in (first, last))
    start, stop = ends
    common = _weight(np.maximum(start, max(side.low, -1e300)), np.minimum(stop, min(side.high, 1e300)), grid)
    share = np.clip(_ratio(common, _weight(start, stop, grid)), 0.0, 1.0)
    share = np.where(is_endless, 0.5, share)
    return Part(np.where(is_whole, 1.0, np.where(may, share, 0.0)), may)


def _weight(first: Floats, last: Floats, grid: float | None) -> Floats:
    """The values from ``first`` to ``last``, or the length between them."""
    return np.asarray(last - first if grid is None else np.rint((last - first) / grid) + 1.0)


def _ratio(some: Any, of: Any) -> Floats:
    of = np.asarray(of, dtype=np.float64)
    return np.asarray(np.divide(some, of, out=np.zeros_like(of), where=of > 0))


# ---- hierarchies -----------------------------------------------------------------------------------


def leaf_spans(attribute: Attribute, labels: Sequence[str | None]) -> tuple[Floats, Floats]:
    """What the leaves of a number's or date's hierarchy stand for: first and last value, NaN for none.

    ``labels`` are those of the leaves, in order; missing is -inf.
    """
    low, high = np.full(len(labels), np.nan), np.full(len(labels), np.nan)
    if isinstance(attribute.hierarchy, NumberRanges):
        grid = attribute.hierarchy.make_grid(attribute)
        low[: grid.n_leaves] = grid.edges[: grid.n_leaves]
        ends = np.nextafter(grid.edges[1:], -np.inf) if grid.step is None else grid.edges
        high[: grid.n_leaves] = ends[: grid.n_leaves]
        if grid.step is None:
            high[grid.n_leaves - 1] = grid.edges[-1]
    else:
        read = _period if attribute.kind is Kind.DATE else _number
        for i, label in enumerate(labels):
            if label is not None:
                low[i], high[i] = read(label)
    is_missing = np.array([label is None for label in labels], dtype=np.bool_)
    return np.where(is_missing, MISSING, low), np.where(is_missing, MISSING, high)


def _number(label: str) -> tuple[float, float]:
    try:
        value = float(label) if "_" not in label else math.nan
    except ValueError:
        value = math.nan
    return value, value


def _period(label: str) -> tuple[float, float]:
    """First and last day, counted from 1970, of a day, month, quarter, year or decade.

    >>> _period("1970-01-02"), _period("1970-Q1"), _period("1970"), _period("somewhen")
    ((1.0, 1.0), (0.0, 89.0), (0.0, 364.0), (nan, nan))
    """
    try:
        year = np.datetime64(label[:4], "Y")
        if label[4:] in ("", "s"):
            start, end = year, year + (10 if label[4:] else 1)
        elif label[4:6] == "-Q":
            start = year.astype("datetime64[M]") + 3 * (int(label[6:]) - 1)
            end = start + 3
        else:
            start = np.datetime64(label)
            end = start + 1
        first, after = (int(moment.astype("datetime64[D]").astype(np.int64)) for moment in (start, end))
    except ValueError:
        return math.nan, math.nan
    return float(first), float(after - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """Boxes on a tree axis: nodes of its hierarchy."""

    axis: TreeAxis
    nodes: NDArray[np.int64]
    known: dict[Any, _Known] = field(default_factory=dict, repr=False)

    def part(self, side: Side) -> Part:
        return _part_of_nodes(self.axis, self.nodes, side, self._known(side))

    def _known(self, side: Side) -> _Known:
        """What is known of the hierarchy; labels that a side names count only where the table made it."""
        named = () if _is_complete(self.axis) else side.labels if isinstance(side, Labels) else ()
        if named not in self.known:
            self.known[named] = _Known.of(self.axis, side)
        return self.known[named]

    def snapped(self, side: Interval) -> Interval:
        return _counted(self.axis.attribute, side)[0]

    def ends(self) -> tuple[Floats, Floats]:
        """The first and last number or day of each node, endless where a release does not show it; NaN if none."""
        known = self._known(ANY_NUMBER)
        whole, place = known.whole, known.place
        low, high = leaf_spans(self.axis.attribute, _leaf_labels(whole))
        low, high = (np.where(np.isneginf(end), np.nan, end) for end in (low, high))
        of_node = np.full((2, len(self.nodes)), np.nan)
        for i, node in enumerate(self.nodes.tolist()):
            under = slice(whole.low[place[node]], whole.high[place[node]]) if place[node] >= 0 else slice(0)
            of_node[:, i] = _hull(low[under], high[under])
        if _is_complete(self.axis):
            return of_node[0], of_node[1]
        hidden = _hidden_spans(self.axis, self.nodes)
        return np.fmin(of_node[0], hidden[0]), np.fmax(of_node[1], hidden[1])


def _hull(low: Floats, high: Floats) -> tuple[float, float]:
    known = ~np.isnan(low)
    return (float(low[known].min()), float(high[known].max())) if known.any() else (math.nan, math.nan)


def _leaf_labels(tree: Hierarchy) -> list[str | None]:
    return [tree.labels[node] for node in tree.leaf_nodes.tolist()]


def _part_of_nodes(axis: TreeAxis, nodes: NDArray[np.int64], side: Side, known: _Known) -> Part:
    whole, place = known.whole, known.place[nodes]
    of_leaf = _part_of_leaves(axis.attribute, whole, side)
    total = np.where(place >= 0, whole.high[place] - whole.low[place], 0).astype(np.float64)
    share, may = (
        np.concatenate([[0.0], np.cumsum(x)]) for x in (of_leaf.share, of_leaf.may.astype(np.float64))
    )
    inside, touched = (
        np.where(place >= 0, sums[whole.high[place]] - sums[whole.low[place]], 0.0) for sums in (share, may)
    )
    if not _is_complete(axis):
        if whole.n_nodes == 1:  # a root without any known value is no value
            total, inside, touched = np.zeros((3, len(nodes)))
        n_hidden = _n_hidden(axis, nodes, total)
        rest = _part_of_hidden(axis, nodes, side)
        total = total + n_hidden
        inside = inside + n_hidden * rest.share
        touched = touched + (n_hidden > 0) * rest.may
    return Part(np.where(inside == total, 1.0, _ratio(inside, total)), touched > 0)


def _part_of_leaves(attribute: Attribute, whole: Hierarchy, side: Side) -> Part:
    labels = _leaf_labels(whole)
    if isinstance(side, Labels):
        may = np.array([label in side for label in labels], dtype=np.bool_)
        return Part(may.astype(np.float64), may)
    low, high = leaf_spans(attribute, labels)
    is_missing = np.isneginf(low)
    if side.is_missing:
        return Part(is_missing.astype(np.float64), is_missing)
    part = _part_of_spans(low, high, *_counted(attribute, side))
    return Part(np.where(is_missing, 0.0, part.share), part.may & ~is_missing)


def _counted(attribute: Attribute, side: Interval) -> tuple[Interval, float | None]:
    """Days are counted; the length of an interval of numbers is measured."""
    grid = 1.0 if attribute.kind is Kind.DATE else None
    return snapped(side, 0.0, grid), grid


def _n_hidden(axis: TreeAxis, nodes: NDArray[np.int64], n_known: Floats) -> Floats:
    """How many values each node hides: 0 if it is one itself, else at least 1.

    Those of a mask are as many as texts can be written with digits, and with letters if the known ones have any.
    """
    hidden = np.array([float(not _is_value(axis, node)) for node in range(axis.nodes.n_nodes)])[nodes]
    if not isinstance(axis.attribute.hierarchy, Mask):
        return hidden
    characters = set("".join(label for label in axis.nodes.labels if label)) - {"*"}
    n_characters = 10.0 if all(character.isdigit() for character in characters) else 36.0
    masked = [
        str(axis.nodes.labels[node]).count("*") if node else axis.attribute.hierarchy.n_characters
        for node in nodes.tolist()
    ]
    return hidden * np.maximum(n_characters ** np.minimum(masked, 12) - n_known, 1.0)


def _part_of_hidden(axis: TreeAxis, nodes: NDArray[np.int64], side: Side) -> Part:
    """The values under each node of which a release shows no more than that there may be some."""
    n = len(nodes)
    if isinstance(side, Labels):
        return Part(np.full(n, float(side.is_complement)), np.full(n, side.is_complement))
    if side.is_missing:
        return Part(np.zeros(n), np.zeros(n, dtype=np.bool_))
    return _part_of_spans(*_hidden_spans(axis, nodes), *_counted(axis.attribute, side))


def _hidden_spans(axis: TreeAxis, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Where the hidden values of each node lie; NaN where it is a value itself, so that there are none."""
    ends = np.full((2, axis.nodes.n_nodes), np.nan)
    outer = axis.attribute.bounds or (ANY_NUMBER.low, ANY_NUMBER.high)
    for node in np.unique(nodes).tolist():
        if not _is_value(axis, node):
            is_period = node and _is_made_of_periods(axis.attribute)
            ends[:, node] = _period(str(axis.nodes.labels[node])) if is_period else outer
    return ends[0, nodes], ends[1, nodes]


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A hierarchy as far as a reader of policy, boxes and predicate knows it, and where the boxes stand in it."""

    whole: Hierarchy
    place: NDArray[np.int64]

    @classmethod
    def of(cls, axis: TreeAxis, side: Side) -> _Known:
        if axis.is_declared:
            whole = with_missing(axis.attribute.build_declared_hierarchy())
            return cls(whole, _places(axis.nodes, whole))
        attribute, is_complete = axis.attribute, _is_complete(axis)
        values = () if is_complete else _known_values(axis, side)
        if not is_complete and len(values) == 0 and axis.has_missing:
            whole = Hierarchy((ROOT, None), np.array([-1, 0]))
        else:
            whole = attribute.build_hierarchy(values)
            whole = whole.with_missing() if axis.has_missing else whole
        return cls(whole, _places(axis.nodes, whole))


def _is_complete(axis: TreeAxis) -> bool:
    """Whether the policy alone tells the whole hierarchy."""
    return axis.is_declared or axis.attribute.declaration.is_complete(axis.attribute)


def _known_values(axis: TreeAxis, side: Side) -> Any:
    attribute, tree = axis.attribute, axis.nodes
    if _is_made_of_periods(attribute):
        return np.zeros(0, dtype="datetime64[D]")
    shown = [
        str(tree.labels[node]) for node in range(tree.n_nodes) if _is_value(axis, node) and tree.labels[node]
    ]
    if attribute.kind is not Kind.CATEGORY:  # without any value a root has a leaf of its own name
        dtype = "datetime64[D]" if attribute.kind is Kind.DATE else "float64"
        return np.array([label for label in shown if label != ROOT], dtype=dtype)
    named = side.labels if isinstance(side, Labels) else ()
    known = list(dict.fromkeys([*shown, *sorted(label for label in named if label is not None)]))
    return attribute.declaration.keep_fitting(known)


def _is_made_of_periods(attribute: Attribute) -> bool:
    return isinstance(attribute.hierarchy, Dates)


def _is_value(axis: TreeAxis, node: int) -> bool:
    """Whether a node of a hierarchy made from the table is a single value: a leaf of the whole of it."""
    label, depth = axis.nodes.labels[node], int(axis.nodes.depth[node])
    if label is None:
        return True
    return depth == axis.attribute.declaration.find_value_depth(label)


def _places(tree: Hierarchy, whole: Hierarchy) -> NDArray[np.int64]:
    """Where each node of a tree stands in another one, found by its path; -1 where it does not."""
    below = {(parent, whole.labels[node]): node for node, parent in enumerate(whole.parent.tolist()) if node}
    place = [0]
    for node, parent in enumerate(tree.parent.tolist()[1:], start=1):
        place.append(below.get((place[parent], tree.labels[node]), -1))
    return np.array(place, dtype=np.int64)
