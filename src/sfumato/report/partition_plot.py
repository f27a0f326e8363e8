r"""The plane of two attributes, divided into rectangles as the release divides it.

If only two attributes were ever split, the published boxes divide their plane, and each is a rectangle of it.
If others were split too, the boxes of different groups overlap in the plane. Then lines are chosen that respect
the boxes as far as lines can. A region is cut where that tells most about the box that a row is in: with rows
spread evenly over their boxes, a share :math:`f_b` of a box and :math:`f` of all rows on one side of the line,
the gain is

.. math:: f (1 - f) - \sum_b w_b f_b (1 - f_b)

(Gini's index; :math:`w_b` is the box's share of the region's rows). A line that no box crosses and that halves
the rows gains most. A line that the boxes mostly ignore is not drawn.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.spread import add_boxes, add_few_boxes
from sfumato.recoding.axis import Axis, DistinctBoxes, TreeAxis
from sfumato.report.groups import Leaves
from sfumato.report.plot_axis import PlotAxis, divisor, line_of, missing_strip, stretches

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
T = TypeVar("T")


RESPECTED = 0.3
"""A line is drawn if at least this share of what it could gain is left after the boxes that it crosses."""

CROWDED = 0.12
"""If half of the rows lie on less than this share of an attribute's range, crowded parts are drawn wider."""


MANY_BOXES = 20_000
"""So many boxes are added up by a compiled loop."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """How to divide: into how many rectangles, how thin (as a share of the picture's side), how much longer
    than wide, and whether a line may cut through a box. ``shape`` is the picture's own width to height.
    """

    most: int
    thinnest: float
    slenderest: float
    may_cross: bool
    shape: float = 1.5


ROUGH = Canvas(most=96, thinnest=0.02, slenderest=9.0, may_cross=True)
EXACT = Canvas(most=240, thinnest=0.004, slenderest=1e9, may_cross=False)
"""Where rectangles are the published boxes themselves, more of them are worth drawing."""


@dataclass(frozen=True, slots=True)
class PlotRectangle:
    """A part of the plane, by numbers of edges on both scales, and the rows in it."""

    left: int
    right: int
    bottom: int
    top: int
    rows: float


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """The two attributes that were divided most (or the only one), and rectangles that divide their plane.

    ``is_flat``: no other attribute was split, and no label covers values of other groups, so that the published boxes do
    not overlap here.
    ``is_whole``: no published box lies across a line.
    """

    x: PlotAxis
    y: PlotAxis | None
    rectangles: tuple[PlotRectangle, ...]
    is_flat: bool
    is_whole: bool


def plane_of(leaves: Leaves) -> Plane | None:
    """The plane of the attributes that were split most often, or have most labels in a list; None if none was split."""
    splits = list(leaves.recoding.n_splits().values())
    most = [len(own.low) for own in leaves.boxes] if leaves.recoding.has_lists else splits
    split = sorted((a for a, n in enumerate(splits) if n), key=lambda a: (-most[a], a))
    if not split:
        return None
    sides = [
        _Side.of(leaves.recoding.axes[a], leaves.boxes[a], leaves.rows)
        for a in _choose_sides(leaves, split[:2])
    ]
    is_flat = len(split) <= len(sides) and not leaves.recoding.has_overlaps
    is_whole = is_flat and len(leaves.rows) <= EXACT.most
    rectangles = _divide(sides, leaves.rows, EXACT if is_whole else ROUGH)
    y = sides[1].scale if len(sides) > 1 else None
    return Plane(sides[0].scale, y, rectangles, is_flat, is_whole)


def _choose_sides(leaves: Leaves, pair: list[int]) -> list[int]:
    """Labels read best beside the picture: a hierarchy goes up, numbers go across."""
    is_tree = [isinstance(leaves.recoding.axes[a], TreeAxis) for a in pair]
    return pair[::-1] if is_tree == [True, False] else pair


# ---- scales ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """A side of the picture: its scale, and the edges of it where each box begins and ends."""

    scale: PlotAxis
    low: Ints
    high: Ints

    @classmethod
    def of(cls, axis: Axis, boxes: DistinctBoxes, rows: Ints) -> _Side:
        first, last = stretches(axis, boxes.ends)
        start, end = line_of(axis)
        edges = np.unique(np.concatenate([first, last, [start - missing_strip(axis), start, end]]))
        low, high = (np.searchsorted(edges, ends)[boxes.which] for ends in (first, last))
        return cls(_scale(axis, edges, low, high, rows), low, high)


def _scale(axis: Axis, edges: Floats, low: Ints, high: Ints, rows: Ints) -> PlotAxis:
    length = _lengths(edges)
    mass = _spread(rows, low, high, length)
    is_even = isinstance(axis, TreeAxis) or _half_of(mass, length) >= CROWDED
    place = np.cumsum(length if is_even else 0.4 * length + 0.6 * mass)
    return PlotAxis(axis, edges, np.append(0.0, place / place[-1]), is_even)


def _lengths(edges: Floats) -> Floats:
    """From each edge to the next, as a share of the whole; quarters keep differences of large numbers finite.

    >>> _lengths(np.array([-1.7e308, 0, 1.7e308])), _lengths(np.array([0, 5e-324]))
    (array([0.5, 0.5]), array([1.]))
    """
    ends = edges / divisor(edges)
    return np.asarray(np.diff(ends) / (ends[-1] - ends[0]))


def _spread(rows: Ints, first: Ints, last: Ints, length: Floats) -> Floats:
    """The share of rows between each edge and the next, with rows spread evenly over their boxes."""
    n = len(length) + 1
    place = np.append(0.0, np.cumsum(length))
    per_length = rows / np.maximum(place[last] - place[first], 1e-12)
    mass = np.cumsum(np.bincount(first, per_length, n) - np.bincount(last, per_length, n))[:-1] * length
    mass = np.maximum(mass, 0.0)
    return np.asarray(mass / mass.sum())


def _half_of(mass: Floats, length: Floats) -> float:
    """The least length that holds half of the rows."""
    density = np.divide(mass, length, out=np.zeros(len(mass)), where=length > 0)
    order = np.argsort(-density, kind="stable")
    n = int(np.searchsorted(np.cumsum(mass[order]), 0.5)) + 1
    return float(length[order][:n].sum())


# ---- lines -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Region:
    """A part of the plane with the boxes in it, cut off at its borders; all by numbers of edges."""

    border: tuple[tuple[int, int], ...]
    low: tuple[Ints, ...]
    high: tuple[Ints, ...]
    rows: Floats

    @property
    def n_rows(self) -> float:
        return float(self.rows.sum())


def _divide(sides: Sequence[_Side], rows: Ints, canvas: Canvas) -> tuple[PlotRectangle, ...]:
    """Cut the region with most rows, then the next, until nothing is left to cut or the canvas is full."""
    places = [side.scale.place for side in sides]
    whole = _Region(
        tuple((0, len(place) - 1) for place in places),
        tuple(side.low for side in sides),
        tuple(side.high for side in sides),
        rows.astype(np.float64),
    )
    waiting: list[tuple[float, int, _Region]] = [(-whole.n_rows, 0, whole)]
    done: list[PlotRectangle] = []
    n_made = 0
    while waiting:
        _, _, region = heapq.heappop(waiting)
        is_full = len(done) + len(waiting) + 2 > canvas.most
        cut = None if is_full else _best_cut(region, places, canvas)
        if cut is None:
            left_right, bottom_top = (*region.border, (0, 1))[:2]
            done.append(PlotRectangle(*left_right, *bottom_top, region.n_rows))
            continue
        for part in _parts(region, *cut, places[cut[0]]):
            n_made += 1
            heapq.heappush(waiting, (-part.n_rows, n_made, part))
    return tuple(sorted(done, key=lambda rectangle: (rectangle.bottom, rectangle.left)))


def _best_cut(region: _Region, places: Sequence[Floats], canvas: Canvas) -> tuple[int, int] | None:
    """(scale, edge) of the line that gains most; a long side is cut rather than a short one, and no gap between boxes."""
    best, found = 0.0, None
    if not region.n_rows:
        return found
    sides = [place[last] - place[first] for place, (first, last) in zip(places, region.border, strict=True)]
    for a, (first, last) in enumerate(region.border):
        across = sides[1 - a] * canvas.shape ** (2 * a - 1) if len(sides) > 1 else 0.0
        least = max(canvas.thinnest, across / canvas.slenderest)
        at, gain = _gains(region, a, places[a][first : last + 1], least=least, may_cross=canvas.may_cross)
        gain = gain * sides[a]
        if len(at) and gain.max() > best:
            best, found = float(gain.max()), (a, first + int(at[np.argmax(gain)]))
    return found


def _gains(region: _Region, a: int, place: Floats, *, least: float, may_cross: bool) -> tuple[Ints, Floats]:
    """The edges where the region may be cut, and the gain of each, in rows.

    What a box adds to the sums is a polynomial in the line's place, from the box's first edge to its last:
    the coefficients are added at the one and taken off at the other, and the gains of all lines are found at once.
    """
    n, start = len(place), region.border[a][0]
    low, high, rows = region.low[a] - start, region.high[a] - start, region.rows
    begin, end = np.zeros((6, n)), np.zeros((6, n))
    add = add_boxes if len(low) > MANY_BOXES or add_boxes.is_loaded else add_few_boxes
    add(low, high, rows, place, begin, end)
    over = np.cumsum(begin[:5] - end[:5], axis=1)
    left = np.cumsum(end[5]) + place * over[0] - over[1]
    most = left * (1 - left / region.n_rows)
    gain = most - (place * over[3] - place**2 * over[2] - over[4])
    has_room = (place - place[0] >= least) & (place[-1] - place >= least)
    is_allowed = gain >= RESPECTED * most if may_cross else _crossing(low, high, n) == 0
    is_edge = (begin[5] > 0) | (end[5] > 0)
    at = np.flatnonzero(is_edge & has_room & is_allowed & (gain > 1e-6 * region.n_rows))
    return at, gain[at]


def _crossing(low: Ints, high: Ints, n: int) -> Ints:
    """How many boxes each of ``n`` lines cuts through."""
    n_begin, n_end = np.bincount(low, minlength=n), np.bincount(high, minlength=n)
    return np.cumsum(n_begin) - n_begin - np.cumsum(n_end)


def _parts(region: _Region, a: int, cut: int, place: Floats) -> list[_Region]:
    """The region on both sides of a line; a box that the line crosses leaves its share of rows on each."""
    parts = []
    for first, last in ((region.border[a][0], cut), (cut, region.border[a][1])):
        inside = np.flatnonzero((region.low[a] < last) & (region.high[a] > first))
        lows, highs = (tuple(ends[inside] for ends in both) for both in (region.low, region.high))
        low, high, rows = np.maximum(lows[a], first), np.minimum(highs[a], last), region.rows[inside]
        crossed = np.flatnonzero((lows[a] < first) | (highs[a] > last))
        width = place[highs[a][crossed]] - place[lows[a][crossed]]
        rows[crossed] *= (place[high[crossed]] - place[low[crossed]]) / np.maximum(width, 1e-300)
        border = _replace_item(region.border, a, (first, last))
        parts.append(_Region(border, _replace_item(lows, a, low), _replace_item(highs, a, high), rows))
    return parts


def _replace_item(items: tuple[T, ...], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at + 1 :])
