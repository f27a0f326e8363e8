"""Where the sides of a picture are labelled, and with what."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.policy.schema import Kind
from sfumato.recoding.axis import OrderedAxis, TreeAxis
from sfumato.report.partition_plot import PlotAxis, label_of, line_of, missing_strip, value_text

DATE_STEPS = (("D", 1), ("D", 7), ("M", 1), ("M", 3), ("M", 6), ("Y", 1), ("Y", 2), ("Y", 5), ("Y", 10),
              ("Y", 20), ("Y", 50), ("Y", 100), ("Y", 500), ("Y", 1000))  # fmt: skip


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


def nice_step(span: float, most: int) -> float:
    """The least of 1, 2, 5, 10, ... (and their tenths) that goes into ``span`` at most so often.

    >>> nice_step(110, 8), nice_step(0.9, 10)
    (20.0, 0.1)
    """
    rough = max(span, 1e-300) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return float(next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9)))


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
