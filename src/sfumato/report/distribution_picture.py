"""A small picture of each published column: a silhouette of numbers and dates, bars for labels."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from sfumato.report.distributions import Density, Distribution, LabelCounts
from sfumato.report.partition_plot import PlotAxis, value_text
from sfumato.report.svg import decimal, shorten, tag
from sfumato.report.ticks import ticks_of

WIDTH = 290.0
HEIGHT, TOP, BOTTOM = 84.0, 6.0, 22.0  # of a silhouette, and the room above and below it
LINE = 20.0  # of a bar
LABELS, COUNTS = 116.0, 54.0  # room beside the bars
LONGEST_LABEL = 18
NAMES = {None: "missing", "*": "* (any)"}
"""What a label is called that does not speak for itself."""


def draw(distribution: Distribution) -> Markup:
    """The rows of one column, as published."""
    name, shape = distribution.attribute.name, distribution.shape
    return _silhouette(name, shape) if isinstance(shape, Density) else _bars(name, shape)


def remark(distribution: Distribution) -> str:
    """What the picture leaves out, in words."""
    shape = distribution.shape
    if isinstance(shape, Density):
        notes = [(shape.n_missing, "missing"), (shape.n_far, "farther out")]
        return ", ".join(f"{n:,} {'row' if n == 1 else 'rows'} {what}" for n, what in notes if n)
    if not shape.n_others:
        return ""
    return f"{shape.n_others:,} more labels, together {shape.n_rows_of_others:,} rows"


def _silhouette(name: str, density: Density) -> Markup:
    low, high = float(density.edges[0]), float(density.edges[-1])
    most = max(float(density.rows.max()), 1e-300)
    x = WIDTH * np.linspace(0.0, 1.0, len(density.edges))
    y = TOP + HEIGHT * (1 - density.rows / most)
    steps = "".join(f"V{decimal(up)}H{decimal(to)}" for up, to in zip(y, x[1:], strict=True))
    outline = f"M0 {decimal(TOP + HEIGHT)}{steps}V{decimal(TOP + HEIGHT)}Z"
    axis = density.axis
    half = (axis.grid or 0.0) / 2
    shown = replace(axis, low=max(low + half, axis.low), high=min(high - half, axis.high))
    scale = PlotAxis(shown, np.array([low, high]), np.array([0.0, 1.0]), is_even=True)
    parts = [tag("path", d=outline, class_="bar"), _baseline()]
    for tick in ticks_of(scale, most=5) if math.isfinite(high - low) else ():
        at = WIDTH * tick.place
        anchor = "start" if at < 16 else "end" if at > WIDTH - 16 else "middle"
        parts.append(tag("path", d=f"M{at:.1f} {TOP + HEIGHT:g}v4", class_="tick"))
        parts.append(tag("text", tick.label, x=at, y=TOP + HEIGHT + 17, text_anchor=anchor, class_="label"))
    ends = f"{value_text(axis, shown.low)} to {value_text(axis, shown.high)}"
    return _picture(f"How the rows are distributed over {name}, from {ends}", TOP + HEIGHT + BOTTOM, *parts)


def _baseline() -> Markup:
    return tag("path", d=f"M0 {TOP + HEIGHT:g}h{WIDTH:g}", class_="tick")


def _bars(name: str, labels: LabelCounts) -> Markup:
    total = max(sum(n for _, n in labels.rows) + labels.n_rows_of_others, 1)
    most = max((n for _, n in labels.rows), default=1)
    parts, long = [], WIDTH - LABELS - COUNTS
    for at, (label, n) in enumerate(labels.rows):
        y, text = LINE * at, NAMES.get(label, label or "")
        about = tag("title", f"{shorten(text, 200)}: {n:,} rows, {100 * n / total:.3g} %")
        style = "label soft" if label is None else "label"
        parts += [
            tag("text", about, shorten(text, LONGEST_LABEL), x=LABELS - 8, y=y + 14, text_anchor="end", class_=style),
            tag("rect", x=LABELS, y=y + 3, width=max(long * n / most, 1), height=LINE - 6, class_="bar"),
            tag("text", f"{n:,}", x=LABELS + max(long * n / most, 1) + 6, y=y + 14, class_="label"),
        ]  # fmt: skip
    return _picture(f"Rows by label of {name}", LINE * max(len(labels.rows), 1) + 2, *parts)


def _picture(about: str, height: float, *parts: Markup) -> Markup:
    words = shorten(about, 200)
    return tag(
        "svg", *parts, viewBox=f"0 0 {WIDTH:g} {height:g}", role="img", aria_label=words, class_="column"
    )
