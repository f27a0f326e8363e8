"""One attribute along a side of a picture: where values and boxes lie on it, and how it is labelled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.policy.hierarchy.declared import OR_MISSING
from sfumato.policy.schema import Kind
from sfumato.recoding.axis import Axis, BoxEnds, OrderedAxis, TreeAxis
from sfumato.report.svg import nice_step

Floats = NDArray[np.float64]

LARGEST = float(np.finfo(np.float64).max)

MISSING_STRIP = 0.05
"""Width of the strip for missing values, before the ordered ones, as a share of their range."""

DATE_STEPS = (("D", 1), ("D", 7), ("M", 1), ("M", 3), ("M", 6), ("Y", 1), ("Y", 2), ("Y", 5), ("Y", 10),
              ("Y", 20), ("Y", 50), ("Y", 100), ("Y", 500), ("Y", 1000))  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class PlotAxis:
    """One attribute along a side of the picture.

    ``edges`` are the places on the attribute's line where boxes begin or end, ``place`` is where each lies on
    the picture, from 0 to 1. ``is_even`` unless crowded parts are drawn wider.
    """

    axis: Axis
    edges: Floats
    place: Floats
    is_even: bool

    @property
    def name(self) -> str:
        return self.axis.attribute.name

    def at(self, value: float) -> float:
        return float(np.interp(value, self.edges, self.place))

    def at_all(self, values: NDArray[Any]) -> Floats:
        return np.asarray(np.interp(values, self.edges, self.place))

    def text(self, first: int, last: int) -> str:
        """The values between two edges, for people."""
        low, high = float(self.edges[first]), float(self.edges[last])
        if isinstance(self.axis, TreeAxis):
            return _labels_between(self.axis, round(low), round(high))
        start, _ = line_of(self.axis)
        if high <= start:
            return "missing"
        half = (self.axis.grid or 0.0) / 2
        ends = [value_text(self.axis, max(low, start) + half), value_text(self.axis, high - half)]
        values = " to ".join(dict.fromkeys(ends))
        return values + OR_MISSING if low < start else values


def line_of(axis: Axis) -> tuple[float, float]:
    """Where the attribute's values begin and end; a value of a grid lies in the middle of its own place."""
    if isinstance(axis, TreeAxis):
        return 0.0, float(axis.nodes.n_leaves)
    half = (axis.grid or 0.0) / 2
    low, high = axis.low - half, axis.high + half
    pad = max(0.5, 1e-9 * abs(low))  # a half is lost on a number beyond 2^53
    return (low, high) if low < high else (low - pad, high + pad)


def missing_strip(axis: Axis) -> float:
    """The width of the strip before the first value that stands for missing, 0 if there is none."""
    if isinstance(axis, TreeAxis) or not axis.has_missing:
        return 0.0
    low, high = line_of(axis)
    return min(MISSING_STRIP * 2 * (high / 2 - low / 2), low + LARGEST)


def stretches(axis: Axis, ends: BoxEnds) -> tuple[Floats, Floats]:
    """Where each box begins and ends on the attribute's line.

    The strip for missing values is part of a box that is missing alone, or that has missing and begins where values do.
    Of other boxes with missing only the values are drawn: between them and the strip lies nothing of theirs.
    """
    low, high, missing = ends
    if isinstance(axis, TreeAxis):
        node = low.astype(np.int64)
        return axis.nodes.low[node].astype(np.float64), axis.nodes.high[node].astype(np.float64)
    half = (axis.grid or 0.0) / 2
    start, end = line_of(axis)
    is_first = np.isnan(low) | np.isneginf(low) | np.isneginf(high)
    first = np.where(
        missing & is_first,
        start - missing_strip(axis),
        np.clip(np.where(is_first, start, low + half), start, end),
    )
    return first, np.clip(high + half, start, end)


def _labels_between(axis: TreeAxis, first: int, last: int) -> str:
    tree = axis.nodes
    exact = np.flatnonzero((tree.low == first) & (tree.high == last))
    if len(exact):
        return label_of(axis, int(exact[-1]))
    ends = [label_of(axis, int(tree.leaf_nodes[code])) for code in (first, last - 1)]
    return " … ".join(ends)


def value_text(axis: OrderedAxis, value: float) -> str:
    """A number or day for people. No separators in four digits: it may be a year.

    >>> from sfumato.policy.schema import Attribute, Role
    >>> age = OrderedAxis(Attribute("age", Role.QUASI_IDENTIFIER, Kind.NUMBER), 0, 1, 0.1, False)
    >>> [value_text(age, value) for value in (0.1 + 0.2, 1985.0, 20000.0)]
    ['0.3', '1985', '20,000']
    """
    if axis.attribute.kind is Kind.DATE:
        return str(np.datetime64(round(value), "D"))
    return f"{value:.15g}" if abs(value) < 10_000 else f"{value:,.15g}"


def label_of(axis: TreeAxis, node: int) -> str:
    label = axis.nodes.labels[node]
    return "missing" if label is None else label


def divisor(numbers: Floats) -> float:
    """What numbers must be divided by for their differences to be finite: 1, or 4 of very large ones."""
    return 4.0 if np.abs(numbers).max() > LARGEST / 4 else 1.0


# ---- labels ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """A label at a place from 0 to 1."""

    place: float
    label: str


def ticks_of(scale: PlotAxis, *, most: int) -> list[Tick]:
    """Labels along a side that has room for so many."""
    if isinstance(scale.axis, TreeAxis):
        least = (1 - 1e-9) / most
        return _apart(list(_tree_ticks(scale, scale.axis, least)), least)
    ticks = list(_ordered_ticks(scale, scale.axis, most))
    if strip := missing_strip(scale.axis):
        start, _ = line_of(scale.axis)
        ticks.insert(0, Tick(scale.at(start - strip / 2), "missing"))
    return _apart(ticks, 0.7 / most)


def _ordered_ticks(scale: PlotAxis, axis: OrderedAxis, most: int) -> Iterator[Tick]:
    if not scale.is_even or not math.isfinite(axis.high - axis.low):
        yield from _edge_ticks(scale, axis, most)
    elif axis.attribute.kind is Kind.DATE:
        yield from _date_ticks(scale, axis, most)
    elif axis.low == axis.high:
        yield Tick(scale.at(axis.low), value_text(axis, axis.low))
    else:
        step = nice_step(axis.high - axis.low, most)
        if axis.grid and float(axis.grid).is_integer() and float(axis.low).is_integer():
            step = max(step, 1.0)
        for i in range(math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9) + 1):
            yield Tick(scale.at(i * step), value_text(axis, i * step))


def _date_ticks(scale: PlotAxis, axis: OrderedAxis, most: int) -> Iterator[Tick]:
    first, last = (np.datetime64(int(end), "D") for end in (axis.low, axis.high))
    for unit, n in DATE_STEPS:
        low = int(first.astype(f"datetime64[{unit}]").astype(np.int64))
        high = int(last.astype(f"datetime64[{unit}]").astype(np.int64))
        origin = 1970 if unit == "Y" else 0
        starts = [i for i in range(low, high + 1) if (i + origin) % n == 0]
        if len(starts) <= most:
            break
    for start in starts:
        period = np.array(start).astype(f"datetime64[{unit}]")
        day = int(period.astype("datetime64[D]").astype(np.int64))
        if axis.low <= day <= axis.high:
            yield Tick(scale.at(day), str(period))


def _edge_ticks(scale: PlotAxis, axis: OrderedAxis, most: int) -> Iterator[Tick]:
    """On an uneven scale round numbers lie anywhere: label the edges that lie about evenly."""
    half = (axis.grid or 0.0) / 2
    start, end = line_of(axis)
    wanted = np.linspace(scale.at(start), 1.0, max(most, 2))
    for at in np.unique(np.abs(scale.place[:, None] - wanted).argmin(axis=0)).tolist():
        edge = float(scale.edges[at])
        value = axis.high if edge >= end else max(edge, start) + half
        yield Tick(float(scale.place[at]), value_text(axis, value))


def _tree_ticks(scale: PlotAxis, axis: TreeAxis, least: float, node: int = 0) -> Iterator[Tick]:
    """The labels below a node where most of them have room (below the root in any case), or its own."""
    tree = axis.nodes
    first, last = scale.at(float(tree.low[node])), scale.at(float(tree.high[node]))
    children = tree.children(node)
    wide = scale.at_all(tree.high[children]) - scale.at_all(tree.low[children]) >= least
    if len(children) and (node == 0 or 2 * wide.sum() > len(children)):
        for child in children.tolist():
            yield from _tree_ticks(scale, axis, least, child)
    else:
        yield Tick((first + last) / 2, label_of(axis, node))


def _apart(ticks: list[Tick], least: float) -> list[Tick]:
    kept: list[Tick] = []
    for tick in ticks:
        if not kept or tick.place - kept[-1].place >= least:
            kept.append(tick)
    return kept
