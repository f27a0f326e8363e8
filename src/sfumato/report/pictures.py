"""The pictures of a report, as inline SVG: a painting of the partition, a histogram, small bars.

Text takes the colour of the page, so that it reads in the light and in the dark; the painting keeps its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from sfumato.recoding.axis import TreeAxis
from sfumato.report.groups import LEVELS
from sfumato.report.partition_plot import Plane
from sfumato.report.plot_axis import PlotAxis, Tick, ticks_of
from sfumato.report.svg import nice_step, shorten, tag

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLACK = "#14130f"
PALETTE = ("#faf7f0", "#f2c53d", "#cf661d", "#7a1a10")
"""From fewest to most rows per area: one scale from cream to dark red, in even steps of lightness, so that it also reads
without colours."""

SHARES = (0.5, 0.75, 0.9)
"""The share of the painting up to each colour (half by area, half by rectangles): much that is light, a little dark."""

SAME = 0.004
"""Densities whose logarithms are closer than this get the same colour."""

WIDTH, HEIGHT = 660.0, 440.0  # of the canvas alone
CHARACTER = 6.3  # width of a character of the labels, about

# ---- the painting ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DensityTone:
    """A colour of the painting and the densities, as multiples of the average, that it stands for."""

    colour: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Painting:
    """The picture of the partition, and what its colours mean."""

    picture: Markup
    legend: tuple[DensityTone, ...]


def paint(plane: Plane) -> Painting:
    """The rectangles in the painter's colours: the darker, the more rows per area."""
    place = plane.y.place if plane.y else np.array([0.0, 1.0])
    sides = [(r.left, r.right, r.bottom, r.top) for r in plane.rectangles]
    left, right, bottom, top = np.array(sides).T
    x, width = WIDTH * plane.x.place[left], WIDTH * (plane.x.place[right] - plane.x.place[left])
    y, height = HEIGHT * (1 - place[top]), HEIGHT * (place[top] - place[bottom])
    rows = np.array([r.rows for r in plane.rectangles])
    area = width * height / (WIDTH * HEIGHT)
    density = rows / rows.sum() / area
    breaks = _breaks(density, area)
    tone = np.searchsorted(breaks, density, side="right")
    line = _line_width(np.minimum(width, height))
    shapes = [
        tag(
            "rect",
            tag("title", _about(plane, i)),
            x=x[i], y=y[i], width=width[i], height=height[i], fill=PALETTE[tone[i]],
        )
        for i in range(len(sides))
    ]  # fmt: skip
    canvas = tag("g", *shapes, stroke=BLACK, stroke_width=line)
    frame = tag("rect", width=WIDTH, height=HEIGHT, fill="none", stroke=BLACK, stroke_width=line + 2)
    return Painting(_frame(plane, canvas, frame), _legend(breaks, sorted(set(tone.tolist()))))


def _breaks(density: Floats, area: Floats) -> Floats:
    """Densities where one colour ends and the next begins: in a wide gap near the share that is wanted.

    >>> _breaks(np.array([0.5, 0.5, 0.5, 2.5]), np.array([0.25, 0.25, 0.25, 0.25])).round(2)
    array([1.1])
    """
    order = np.argsort(density, kind="stable")
    ranked = density[order]
    share = (np.cumsum(area[order]) + np.arange(1, len(order) + 1) / len(order))[:-1] / 2
    floor = max(ranked[-1], 1e-12) * 1e-4
    gap = np.diff(np.log(np.maximum(ranked, floor)))
    found: list[float] = []
    is_free = gap > SAME
    for wanted in SHARES:
        if not is_free.any():
            break
        at = int(np.argmax(np.sqrt(gap) * np.exp(-np.abs(share - wanted) / 0.06) * is_free))
        is_free[: at + 1] = False
        between = float(np.sqrt(max(ranked[at], floor) * ranked[at + 1]))
        rounded = float(f"{between:.2g}")
        found.append(rounded if ranked[at] < rounded <= ranked[at + 1] else between)
    return np.array(found)


def _legend(breaks: Floats, used: Sequence[int]) -> tuple[DensityTone, ...]:
    if not len(breaks):
        return (DensityTone(PALETTE[0], "as many rows per area everywhere"),)
    rounded = ([f"{end:.{digits}g}" for end in breaks.tolist()] for digits in (2, 3, 17))
    ends = next(texts for texts in rounded if len(set(texts)) == len(texts))
    words = [f"below {ends[0]} ×", *(f"{a} to {b} ×" for a, b in itertools.pairwise(ends))]
    words.append(f"from {ends[-1]} ×")
    return tuple(DensityTone(PALETTE[i], words[i]) for i in used)


def _line_width(sides: Floats) -> float:
    """Broad lines, but not so broad that they cover the small rectangles."""
    usual = next(width for most, width in ((40, 5.0), (70, 4.0), (10**9, 3.0)) if len(sides) <= most)
    return float(np.clip(0.4 * np.quantile(sides, 0.1), 1.5, usual))


def _about(plane: Plane, i: int) -> str:
    rectangle = plane.rectangles[i]
    parts = [f"{plane.x.name} {plane.x.text(rectangle.left, rectangle.right)}"]
    if plane.y is not None:
        parts.append(f"{plane.y.name} {plane.y.text(rectangle.bottom, rectangle.top)}")
    return (
        shorten("; ".join(parts), 200) + f": {'' if plane.is_whole else 'about '}{rectangle.rows:,.0f} rows"
    )


def _frame(plane: Plane, canvas: Markup, frame: Markup) -> Markup:
    """The canvas with labels on its sides."""
    across = _across(plane.x)
    up, margin = _up(plane.y) if plane.y is not None else (Markup(""), 12.0)
    below = 92.0 if isinstance(plane.x.axis, TreeAxis) else 46.0
    above = 30.0 if plane.y is not None else 8.0
    names = f"{plane.x.name} across" + (f", {plane.y.name} up" if plane.y is not None else "")
    return tag(
        "svg",
        tag("title", f"The partition of the rows: {shorten(names, 120)}"),
        tag("g", canvas, frame, across, up, transform=f"translate({margin:g} {above:g})"),
        viewBox=f"0 0 {margin + WIDTH + 14:g} {above + HEIGHT + below:g}",
        role="img",
        aria_label=f"A plane divided into {len(plane.rectangles):,} rectangles: {shorten(names, 120)}. "
        "The caption and the legend below say what they mean.",
        class_="painting",
    )


def _across(scale: PlotAxis) -> Markup:
    parts = []
    is_tree = isinstance(scale.axis, TreeAxis)
    ticks = ticks_of(scale, most=24 if is_tree else 9)
    for tick in ticks:
        x = WIDTH * tick.place
        parts.append(tag("path", d=f"M{x:.1f} {HEIGHT + 3:g}v6", class_="tick"))
        turned = f"translate({x:.1f} {HEIGHT + 20:g}) rotate(35)" if is_tree else None
        where = {"transform": turned} if is_tree else {"x": f"{x:.1f}", "y": f"{HEIGHT + 22:g}"}
        anchor = "start" if is_tree else "middle"
        parts.append(_label(tick, 15 if is_tree else 14, text_anchor=anchor, **where))
    name = tag("text", shorten(scale.name, 60) + " →", x=WIDTH, y=HEIGHT + (84 if is_tree else 40),
               text_anchor="end", class_="axis")  # fmt: skip
    return tag("g", *parts, name)


def _up(scale: PlotAxis) -> tuple[Markup, float]:
    """The labels beside the canvas, and the room that they need."""
    ticks = ticks_of(scale, most=26 if isinstance(scale.axis, TreeAxis) else 9)
    parts = []
    for tick in ticks:
        y = HEIGHT * (1 - tick.place)
        parts.append(tag("path", d=f"M-3 {y:.1f}h-6", class_="tick"))
        parts.append(_label(tick, 22, text_anchor="end", x="-13", y=f"{y + 4:.1f}"))
    longest = max((len(shorten(tick.label, 22)) for tick in ticks), default=0)
    margin = 24 + CHARACTER * longest
    name = tag("text", "↑ " + shorten(scale.name, 60), x=10 - margin, y=-14, class_="axis")
    return tag("g", *parts, name), margin


def _label(tick: Tick, n_characters: int, **where: str | None) -> Markup:
    short = shorten(tick.label, n_characters)
    title = [tag("title", shorten(tick.label, 200))] if short != tick.label else []
    return tag("text", *title, short, class_="label", **where)


# ---- the histogram ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bar:
    """Groups of ``first`` to ``last`` rows."""

    first: int
    last: int
    n_groups: int
    n_rows: int

    @property
    def label(self) -> str:
        return f"{self.first:,}" if self.first == self.last else f"{self.first:,} – {self.last:,}"


def bars_of(size: Ints) -> list[Bar]:
    """Group sizes in at most about 24 bars of one width, but for the last, which takes the longest groups.

    The first begins at the smallest group.

    >>> [(bar.label, bar.n_groups) for bar in bars_of(np.array([10, 10, 12]))]
    [('10', 2), ('11', 0), ('12', 1)]
    >>> bars_of(np.array([10, 10, 500]))[0].label
    '10 – 59'
    """
    low, high = int(size.min()), int(size.max())
    usual = int(np.quantile(size, 0.99, method="higher"))
    reach = high if high - low <= 1.5 * (usual - low) + 1 else usual
    width = max(int(nice_step(reach - low + 1, 24)), 1)
    starts = np.arange(low, reach + 1, width)
    at = np.minimum((size - low) // width, len(starts) - 1)
    n_groups = np.bincount(at, minlength=len(starts))
    n_rows = np.bincount(at, weights=size, minlength=len(starts))
    ends = [*(starts[1:] - 1).tolist(), max(int(starts[-1]) + width - 1, high)]
    return [
        Bar(int(start), int(end), int(groups), int(rows))
        for start, end, groups, rows in zip(starts, ends, n_groups, n_rows, strict=True)
    ]


def histogram(bars: Sequence[Bar]) -> Markup:
    """The number of groups in each bar, upright."""
    height, left, top = 210.0, 58.0, 32.0
    slot = min(700.0 / len(bars), 70.0)
    wide, bottom = slot * len(bars), top + height
    most = max(bar.n_groups for bar in bars)
    step = max(nice_step(most, 6), 1.0)
    n_steps = math.ceil(most / step)
    parts = []
    for i in range(n_steps + 1):
        y = bottom - height * i / n_steps
        parts.append(tag("path", d=f"M{left:g} {y:.1f}h{wide:.1f}", class_="grid"))
        parts.append(tag("text", f"{i * step:,.0f}", x=left - 8, y=y + 4, text_anchor="end", class_="label"))
    every = -(-len(bars) // 12)
    for i, bar in enumerate(bars):
        x, tall = left + i * slot, height * bar.n_groups / (step * n_steps)
        about = tag("title", f"{bar.label} rows: {bar.n_groups:,} groups, {bar.n_rows:,} rows in all")
        parts.append(
            tag(
                "rect",
                about,
                x=x + 0.08 * slot,
                y=bottom - tall,
                width=0.84 * slot,
                height=tall,
                class_="bar",
            )
        )
        if i % every == 0:
            more = "+" if i == len(bars) - 1 and _is_open(bars) else ""
            text = f"{bar.first:,}{more}"
            parts.append(
                tag("text", text, x=x + slot / 2, y=bottom + 18, text_anchor="middle", class_="label")
            )
    across = tag(
        "text", "rows in a group →", x=left + max(wide, 140), y=bottom + 38, text_anchor="end", class_="axis"
    )
    size = left + max(wide, 140) + 14
    return tag(
        "svg",
        tag("title", "How many groups have how many rows"),
        *parts,
        tag("path", d=f"M{left:g} {bottom:g}h{wide:.1f}", class_="tick"),
        across,
        tag("text", "↑ groups", x=0, y=14, class_="axis"),
        viewBox=f"0 0 {size:.0f} {bottom + 46:.0f}",
        role="img",
        aria_label=f"Group sizes, {bars[0].first:,} to {bars[-1].last:,} rows; a table with the numbers follows.",
        class_="histogram",
        style=f"max-width:{size:.0f}px",
    )


def _is_open(bars: Sequence[Bar]) -> bool:
    return len(bars) > 1 and bars[-1].last - bars[-1].first > bars[0].last - bars[0].first + 1


# ---- small bars ------------------------------------------------------------------------------------


def level_bar(levels: Sequence[int]) -> Markup:
    """Rows per level of detail as one bar, from exact to nothing told."""
    total, width, x, parts = max(sum(levels), 1), 150.0, 0.0, []
    for name, shade, rows in zip(LEVELS, ("exact", "narrowed", "whole", "missing"), levels, strict=True):
        long = width * rows / total
        if rows:
            about = tag("title", f"{name}: {rows:,} rows")
            parts.append(tag("rect", about, x=x, width=long, height=14, class_=f"level {shade}"))
        x += long
    told = ", ".join(
        f"{name} {100 * rows / total:.0f} %" for name, rows in zip(LEVELS, levels, strict=True) if rows
    )
    frame = tag("rect", width=width, height=14, class_="level-frame")
    return tag("svg", *parts, frame, viewBox="-1 -1 152 16", role="img", aria_label=told, class_="levels")
