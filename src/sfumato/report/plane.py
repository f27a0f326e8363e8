r"""The plane of two attributes, divided into rectangles as the release divides it.

If only two attributes were ever split, the published boxes themselves divide their plane, and every box is a
rectangle of it. If others were split too, the boxes of different groups overlap in the plane. Then lines are
chosen that respect the boxes as far as lines can. A region is cut where the cut tells most about the box that
a row is in: with rows spread evenly over their boxes, of which a share :math:`f_b` lies on one side of the
line, and :math:`f` of all rows of the region, the gain is

.. math:: f (1 - f) - \sum_b w_b f_b (1 - f_b)

(Gini's index; :math:`w_b` is the box's share of the region's rows). A line that no box crosses and that
halves the rows gains most. No line is drawn that the boxes mostly ignore.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.recoding import Axis, TreeAxis
from sfumato.report.facts import Leaves

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MISSING_STRIP = 0.05
"""Width of the strip for missing values, before the ordered ones, as a share of their range."""

THINNEST = 0.008
"""No side of a rectangle is a smaller share of the picture's."""

RESPECTED = 0.5
"""A line is drawn if it keeps at least this share of what it could gain."""


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """One attribute along a side of the picture.

    ``edges`` are the places where boxes begin or end, as numbers (codes of a hierarchy's leaves); ``place``
    is where each lies on the picture, from 0 to 1. ``is_even`` unless crowded parts are drawn wider.
    """

    axis: Axis
    edges: Floats
    place: Floats
    is_even: bool

    def at(self, value: Floats | float) -> Floats:
        return np.asarray(np.interp(value, self.edges, self.place))


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A part of the plane, by numbers of edges on both scales, and the rows in it."""

    left: int
    right: int
    bottom: int
    top: int
    rows: float


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Two attributes and the rectangles that divide their plane.

    ``is_exact``: every rectangle is a published box and every published box is one.
    ``is_complete``: no line was left out for want of room.
    """

    x: Scale
    y: Scale | None
    rectangles: tuple[Rectangle, ...]
    is_exact: bool
    is_complete: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Region:
    """A part of the plane with the boxes in it, cut off at its borders."""

    border: tuple[int, int, int, int]
    low: tuple[Ints, Ints]
    high: tuple[Ints, Ints]
    rows: Floats


def plane_of(leaves: Leaves, *, limit: int) -> Plane | None:
    """The plane of the two attributes that were split most often; None if nothing was split."""
    splits = list(leaves.recoding.n_splits().values())
    chosen = sorted((a for a, n in enumerate(splits) if n), key=lambda a: (-splits[a], a))
    if not chosen:
        return None
    pair = _sides(leaves, chosen[:2])
    spans = [_spans(leaves.recoding.axes[a], leaves.low[:, a], leaves.high[:, a]) for a in pair]
    scales = [
        _scale(leaves.recoding.axes[a], *span, leaves.rows) for a, span in zip(pair, spans, strict=True)
    ]
    is_exact = len(chosen) <= len(pair)
    rectangles, is_complete = _divide(scales, spans, leaves.rows, is_exact=is_exact, limit=limit)
    y = scales[1] if len(scales) > 1 else None
    return Plane(scales[0], y, rectangles, is_exact and is_complete, is_complete)


def _sides(leaves: Leaves, chosen: list[int]) -> list[int]:
    """Labels read best beside the picture: a hierarchy goes up, numbers go across."""
    is_tree = [isinstance(leaves.recoding.axes[a], TreeAxis) for a in chosen]
    return chosen[::-1] if is_tree == [True, False] else chosen


# ---- scales ----------------------------------------------------------------------------------------


def line_of(axis: Axis) -> tuple[float, float]:
    """Where the attribute's values begin and end; a value of a grid lies in the middle of its own place."""
    if isinstance(axis, TreeAxis):
        return 0.0, float(axis.nodes.n_leaves)
    half = (axis.grid or 0.0) / 2
    low, high = axis.low - half, axis.high + half
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def missing_strip(axis: Axis) -> float:
    """The width of the strip before the first value that stands for missing, 0 if there is none."""
    if isinstance(axis, TreeAxis) or not axis.has_missing:
        return 0.0
    low, high = line_of(axis)
    return MISSING_STRIP * (high - low)


def _spans(axis: Axis, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Where each box begins and ends on the attribute's line."""
    if isinstance(axis, TreeAxis):
        node = low.astype(np.int64)
        return axis.nodes.low[node].astype(np.float64), axis.nodes.high[node].astype(np.float64)
    half = (axis.grid or 0.0) / 2
    start, end = line_of(axis)
    first = np.where(np.isnan(low), start - missing_strip(axis), np.where(np.isneginf(low), start, low + half))
    last = np.where(np.isneginf(high), start, np.where(np.isposinf(high), end, high + half))
    return first, np.maximum(last, first)


def _scale(axis: Axis, first: Floats, last: Floats, rows: Ints) -> Scale:
    start, end = line_of(axis)
    edges = np.unique(np.concatenate([first, last, [start - missing_strip(axis), start, end]]))
    length = np.diff(edges)
    begins, ends = np.searchsorted(edges, first), np.searchsorted(edges, last)
    per_length = rows / (last - first)
    n = len(edges)
    mass = np.cumsum(np.bincount(begins, per_length, n) - np.bincount(ends, per_length, n))[:-1] * length
    length, mass = length / length.sum(), np.maximum(mass, 0) / mass.sum()
    lam = LAMBDA
    place = np.append(0.0, np.cumsum((1 - lam) * length + lam * mass))
    return Scale(axis, edges, place / place[-1], lam == 0)

LAMBDA = 0.0
POWER = 1.0
ASPECT = 10

# ---- lines -----------------------------------------------------------------------------------------


def _divide(
    scales: list[Scale], spans: list[tuple[Floats, Floats]], rows: Ints, *, is_exact: bool, limit: int
) -> tuple[tuple[Rectangle, ...], bool]:
    low = [np.searchsorted(scale.edges, first) for scale, (first, _) in zip(scales, spans, strict=True)]
    high = [np.searchsorted(scale.edges, last) for scale, (_, last) in zip(scales, spans, strict=True)]
    places = [scale.place for scale in scales]
    if len(scales) == 1:
        low.append(np.zeros_like(low[0]))
        high.append(np.ones_like(high[0]))
        places.append(np.array([0.0, 1.0]))
    border = (0, len(places[0]) - 1, 0, len(places[1]) - 1)
    whole = _Region(border, (low[0], low[1]), (high[0], high[1]), rows.astype(np.float64))
    waiting, done, is_complete = [(-whole.rows.sum(), 0, whole)], [], True
    n_made = 1
    while waiting:
        _, _, region = heapq.heappop(waiting)
        cut = _best_cut(region, places, is_exact=is_exact)
        if cut is not None and len(done) + len(waiting) + 2 > limit:
            is_complete = False
            cut = None
        if cut is None:
            done.append(Rectangle(*region.border, float(region.rows.sum())))
            continue
        for part in _parts(region, *cut, places[cut[0]]):
            heapq.heappush(waiting, (-part.rows.sum(), n_made, part))
            n_made += 1
    done.sort(key=lambda r: (r.bottom, r.left))
    return tuple(done), is_complete


def _best_cut(region: _Region, places: list[Floats], *, is_exact: bool) -> tuple[int, int] | None:
    best, found = 0.0, None
    for a, place in enumerate(places):
        start, end = region.border[2 * a : 2 * a + 2]
        at, gain = _gains(region, a, place[start : end + 1], start, is_exact=is_exact, thin=max(THINNEST, (places[1-a][region.border[2*(1-a)+1]]-places[1-a][region.border[2*(1-a)]])*(480/720 if a==0 else 720/480)/ASPECT))
        gain = gain * ((place[end] - place[start]) ** POWER)
        if len(at) and gain.max() > best:
            best, found = float(gain.max()), (a, int(at[np.argmax(gain)]))
    return found


def _gains(region: _Region, a: int, place: Floats, start: int, *, is_exact: bool, thin=0) -> tuple[Ints, Floats]:
    """The edges where the region may be cut, and the gain of each in rows.

    Sums over all boxes that a line crosses, for all lines at once: what a box adds is a polynomial in the
    line's place from its first edge to its last, so its coefficients are added at one and taken off at the other.
    """
    n = len(place)
    low, high, rows = region.low[a] - start, region.high[a] - start, region.rows
    total = rows.sum()
    first, width = place[low], place[high] - place[low]
    is_wide = width > 1e-6
    scaled = np.where(is_wide, rows / np.where(is_wide, width, 1.0), 0.0)

    def within(weight: Floats) -> Floats:
        return np.cumsum(np.bincount(low, weight, n) - np.bincount(high, weight, n))

    crossing = np.cumsum(np.bincount(low, minlength=n)) - np.bincount(low, minlength=n)
    crossing -= np.cumsum(np.bincount(high, minlength=n))
    left = np.cumsum(np.bincount(high, rows, n)) + place * within(scaled) - within(scaled * first)
    squared = np.where(is_wide, scaled / np.where(is_wide, width, 1.0), 0.0)
    last = first + width
    lost = -(place**2) * within(squared) + place * within(squared * (first + last)) - within(squared * first * last)
    most = left * (total - left) / max(total, 1e-300)
    gain = most - lost
    is_edge = (np.bincount(low, minlength=n) + np.bincount(high, minlength=n)) > 0
    room = (place - place[0] >= thin) & (place[-1] - place >= thin)
    allowed = (crossing == 0) if is_exact else (gain >= RESPECTED * most)
    at = np.flatnonzero(is_edge & room & allowed & (gain > 1e-9 * max(total, 1.0)))
    return at + start, gain[at]


def _parts(region: _Region, a: int, cut: int, place: Floats) -> list[_Region]:
    parts = []
    for side in (0, 1):
        border = list(region.border)
        border[2 * a + 1 - side] = cut
        low, high = region.low[a], region.high[a]
        new_low, new_high = (low, np.minimum(high, cut)) if side == 0 else (np.maximum(low, cut), high)
        inside = new_low < new_high
        share = (place[new_high] - place[new_low])[inside] / np.maximum((place[high] - place[low])[inside], 1e-300)
        lows, highs = [x[inside] for x in region.low], [x[inside] for x in region.high]
        lows[a], highs[a] = new_low[inside], new_high[inside]
        parts.append(
            _Region(
                (border[0], border[1], border[2], border[3]),
                (lows[0], lows[1]),
                (highs[0], highs[1]),
                region.rows[inside] * np.minimum(share, 1.0),
            )
        )
    return parts
