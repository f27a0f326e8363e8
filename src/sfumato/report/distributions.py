"""How the rows of a release are distributed over each published column, as far as the release tells, and its picture.

A number or date that was split by thresholds is published as boxes: its rows are spread evenly over each. Other
numbers are counted as they are, and everything else by its published labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
from markupsafe import Markup
from numpy.typing import NDArray

from sfumato.encoding.domain import EXACT_LIMIT
from sfumato.policy.document import Policy
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.recoding.axis import BoxEnds, OrderedAxis, TreeAxis, labels_of
from sfumato.report.groups import Leaves, PublishedGroups
from sfumato.report.plot_axis import PlotAxis, divisor, line_of, stretches, ticks_of, value_text
from sfumato.report.rows import View
from sfumato.report.svg import decimal, shorten, tag
from sfumato.table import cells as table_cells

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_COLUMNS = 40
MOST_LABELS = 10
MOST_BINS = 60
FAR = 0.005
"""The share of rows at either end that is left out of a picture if the others would be squeezed by it."""

SQUEEZED = 0.5

WIDTH = 290.0
HEIGHT, TOP, BOTTOM = 84.0, 6.0, 22.0  # of a silhouette, and the room above and below it
LINE = 20.0  # of a bar
LABELS, COUNTS = 116.0, 54.0  # room beside the bars
LONGEST_LABEL = 18
CHARACTER = 7.0  # about the width of one below a silhouette
NAMES = {None: "missing", "*": "* (any)"}
"""What a label is called that does not speak for itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Density:
    """Rows along a line: ``rows[i]`` of them between ``edges[i]`` and the next.

    ``axis`` says what the line means. ``n_far`` rows lie beyond the part of it that is shown.
    """

    axis: OrderedAxis
    edges: Floats
    rows: Floats
    n_far: int = 0
    n_missing: int = 0


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Rows by label, and how many labels with how many rows are not listed. A missing cell has no label."""

    rows: tuple[tuple[str | None, int], ...]
    n_others: int = 0
    n_rows_of_others: int = 0


@dataclass(frozen=True, slots=True)
class Distribution:
    """How rows are distributed over one published column."""

    attribute: Attribute
    shape: Density | LabelCounts


def distributions_of(policy: Policy, view: View, groups: PublishedGroups) -> list[Distribution]:
    """One for each published column that can be shown, in the order of the policy."""
    published = [a for a in policy.schema.published if a.role is not Role.PSEUDONYM][:MOST_COLUMNS]
    found = ((attribute, _shape(attribute, view, groups.leaves)) for attribute in published)
    return [Distribution(attribute, shape) for attribute, shape in found if shape is not None]


def _shape(attribute: Attribute, view: View, leaves: Leaves | None) -> Density | LabelCounts | None:
    a = _axis(attribute, leaves)
    is_quasi = attribute.role is Role.QUASI_IDENTIFIER
    source = view.cells if is_quasi else view.rows
    if leaves is not None and a is not None and isinstance(leaves.recoding.axes[a], OrderedAxis):
        return _count_boxes(leaves, a)
    if attribute.name not in source.names:
        return None
    column = source.column(attribute.name)
    if is_quasi:
        return _count_labels(column, attribute, leaves, view.weight, view.one_in)
    if attribute.kind is Kind.CATEGORY:
        return _count_labels(column, attribute, leaves, None, view.scale)
    shape = _count_values(column, attribute)
    if view.is_large and isinstance(shape, Density):
        n_missing = view.missing.get(attribute.name, 0)
        return replace(shape, n_far=round(shape.n_far * view.scale), n_missing=n_missing)
    return shape


def _axis(attribute: Attribute, leaves: Leaves | None) -> int | None:
    axes = leaves.recoding.axes if leaves else ()
    return next((a for a, axis in enumerate(axes) if axis.attribute.name == attribute.name), None)


# ---- numbers and dates -----------------------------------------------------------------------------


def _count_boxes(leaves: Leaves, a: int) -> Density | LabelCounts:
    axis = leaves.recoding.axes[a]
    assert isinstance(axis, OrderedAxis)
    which, low, high, missing = leaves.boxes[a]
    rows = np.bincount(which, weights=leaves.rows, minlength=len(low)).astype(np.float64)
    has_value = ~np.isneginf(high)
    n_missing = round(rows[~has_value].sum())
    if not has_value.any():
        return LabelCounts(((None, n_missing),))
    first, last = stretches(axis, BoxEnds(low, high, missing).take(has_value))
    first = np.maximum(first, line_of(axis)[0])  # the strip of missing values is not drawn
    density = _spread(replace(axis, has_missing=False), first, last, rows[has_value])
    return replace(density, n_missing=n_missing)


def _spread(axis: OrderedAxis, first: Floats, last: Floats, rows: Floats) -> Density:
    """Rows that lie evenly from ``first`` to ``last``, in bins of one width."""
    order = np.argsort(first / 2 + last / 2, kind="stable")
    share = np.cumsum(rows[order]) / rows.sum()
    near = order[(share > FAR) & (share - rows[order] / rows.sum() < 1 - FAR)]
    edges = _edges(axis, *_window(axis, first[near].min(), last[near].max()))
    is_point = first == last
    inside, _ = np.histogram(first[is_point], edges, weights=rows[is_point])
    if not is_point.all():
        unit = divisor(np.concatenate([edges, first, last]))
        start, end, weight = first[~is_point] / unit, last[~is_point] / unit, rows[~is_point]
        with np.errstate(over="ignore"):  # of a box that is almost a point: all of it lies on one side
            width = np.maximum(end - start, np.finfo(np.float64).smallest_subnormal)
            below = [_rows_below(edge, start, width, weight) for edge in (edges / unit).tolist()]
        inside = inside + np.diff(below)
    return Density(axis, edges, inside, round(rows.sum() - inside.sum()))


def _rows_below(edge: float, start: Floats, width: Floats, weight: Floats) -> float:
    """The rows of boxes that lie below an edge, as far as they lie evenly."""
    part = edge - start
    part /= width
    np.clip(part, 0.0, 1.0, out=part)
    part *= weight
    return float(
        part.sum()
    )  # not with @: its sum depends on the processor, and its threads take ten times the work


def _count_values(column: Any, attribute: Attribute) -> Density | LabelCounts:
    cells = table_cells.ordered(column, attribute)
    values = cells.drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
    if not len(values):
        return LabelCounts(((None, len(cells)),))
    return count_numbers(values, attribute, n_missing=cells.null_count)


def count_numbers(
    values: Floats, attribute: Attribute, *, n_missing: int, like: OrderedAxis | None = None
) -> Density:
    """How numbers are distributed over the line, from the least to the greatest of them; or over one ``like`` another."""
    is_whole = bool(np.all((values == np.rint(values)) & (np.abs(values) < EXACT_LIMIT)))
    low, high, step = float(values.min()), float(values.max()), 1.0 if is_whole else None
    if like is not None and like.low <= like.high:
        low, high, step = min(low, like.low), max(high, like.high), like.grid
    axis = OrderedAxis(attribute, low, high, step, has_missing=False)
    near = np.quantile(values, [FAR, 1 - FAR], method="inverted_cdf")
    half = (step or 0.0) / 2
    edges = _edges(axis, *_window(axis, near[0] - half, near[1] + half))
    rows = np.histogram(values, edges)[0].astype(np.float64)
    return Density(axis, edges, rows, round(len(values) - rows.sum()), n_missing)


def _window(axis: OrderedAxis, first: float, last: float) -> tuple[float, float]:
    """The part of the line that is shown: all of it, unless few rows would squeeze the others together.

    Halves keep differences of the largest numbers from outgrowing a float.
    """
    low, high = line_of(axis)
    is_squeezed = 0 < last / 2 - first / 2 < SQUEEZED * (high / 2 - low / 2)
    return (float(first), float(last)) if is_squeezed else (low, high)


def _edges(axis: OrderedAxis, low: float, high: float) -> Floats:
    """Bins as wide as a whole number of steps, so that each holds as many values as the next."""
    if axis.grid is None or not math.isfinite(high - low):
        scale = 1.0 if math.isfinite(high - low) else 2.0
        return scale * np.linspace(low / scale, high / scale, MOST_BINS + 1)
    width = axis.grid * math.ceil((high - low) / axis.grid / MOST_BINS - 1e-9)
    n_bins = math.ceil((high - low) / width - 1e-9)
    return np.asarray(low + width * np.arange(n_bins + 1), dtype=np.float64)


# ---- labels ----------------------------------------------------------------------------------------


def _count_labels(
    column: Any, attribute: Attribute, leaves: Leaves | None, weight: Ints | None, scale: float
) -> LabelCounts:
    """Rows by label; each row stands for ``weight`` others, and all of them for ``scale`` times as many."""
    cells = table_cells.texts(column, Attribute(attribute.name, Role.OTHER))
    texts = [*cells.dictionary.to_pylist(), None]
    at = pc.fill_null(cells.indices, len(texts) - 1).to_numpy(zero_copy_only=False)
    counts = np.bincount(at, weight, minlength=len(texts))
    rows = {text: round(n * scale) for text, n in zip(texts, counts.tolist(), strict=True) if n}
    by_rows = sorted(rows, key=lambda label: (-rows[label], label or ""))
    listed = by_rows if len(by_rows) <= MOST_LABELS + 1 else by_rows[:MOST_LABELS]
    place = {label: at for at, label in enumerate(_in_order(attribute, leaves))}
    if place:
        listed = sorted(listed, key=lambda label: place.get(label, len(place)))
    others = by_rows[len(listed) :]
    return LabelCounts(
        tuple((label, rows[label]) for label in listed), len(others), sum(rows[label] for label in others)
    )


def _in_order(attribute: Attribute, leaves: Leaves | None) -> Iterator[str | None]:
    """The labels of numbers and dates have an order of their own, that of their hierarchy."""
    a = _axis(attribute, leaves)
    if leaves is not None and a is not None and attribute.kind is not Kind.CATEGORY:
        axis, ends = leaves.recoding.axes[a], leaves.boxes[a].ends
        if isinstance(axis, TreeAxis):
            yield from labels_of(axis, ends.take(np.lexsort((ends.high, ends.low)))).to_pylist()


# ---- pictures --------------------------------------------------------------------------------------


def draw_distribution(distribution: Distribution) -> Markup:
    """The rows of one column, as published."""
    name, shape = distribution.attribute.name, distribution.shape
    return draw_density(name, shape) if isinstance(shape, Density) else _bars(name, shape)


def describe_omissions(distribution: Distribution) -> str:
    """What the picture leaves out, in words."""
    shape = distribution.shape
    if isinstance(shape, Density):
        notes = [(shape.n_missing, "missing"), (shape.n_far, "farther out")]
        return ", ".join(f"{n:,} {'row' if n == 1 else 'rows'} {what}" for n, what in notes if n)
    if not shape.n_others:
        return ""
    return f"{shape.n_others:,} more labels, together {shape.n_rows_of_others:,} rows"


def draw_density(name: str, density: Density, *, most: float = 0.0, left_out: Floats | None = None) -> Markup:
    """The rows along a line, so high that ``most`` of them would fill the picture, or those of the highest bin.

    Of each bin so many rows are ``left_out`` of a release: they are drawn in another shade.
    """
    low, high = float(density.edges[0]), float(density.edges[-1])
    most = max(most, float(density.rows.max()), 1e-300)
    axis = density.axis
    half = (axis.grid or 0.0) / 2
    shown = replace(axis, low=max(low + half, axis.low), high=min(high - half, axis.high))
    scale = PlotAxis(shown, np.array([low, high]), np.array([0.0, 1.0]), is_even=True)
    parts = [tag("path", d=_outline(density.rows / most), class_="bar")]
    if left_out is not None:
        parts.append(tag("path", d=_outline(left_out / most), class_="bar gone"))
    parts.append(_baseline())
    free = -math.inf  # where the next label may begin
    for tick in ticks_of(scale, most=5) if math.isfinite(high - low) else ():
        at = WIDTH * tick.place
        anchor = "start" if at < 16 else "end" if at > WIDTH - 16 else "middle"
        parts.append(tag("path", d=f"M{at:.1f} {TOP + HEIGHT:g}v4", class_="tick"))
        wide = CHARACTER * len(tick.label)
        left = at - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        if left < free:
            continue
        free = left + wide + CHARACTER
        parts.append(tag("text", tick.label, x=at, y=TOP + HEIGHT + 17, text_anchor=anchor, class_="label"))
    ends = f"{value_text(axis, shown.low)} to {value_text(axis, shown.high)}"
    return _picture(f"How the rows are distributed over {name}, from {ends}", TOP + HEIGHT + BOTTOM, *parts)


def _outline(height: Floats) -> str:
    """Bins side by side, so high in parts of the picture."""
    x = WIDTH * np.linspace(0.0, 1.0, len(height) + 1)
    y = TOP + HEIGHT * (1 - height)
    steps = "".join(f"V{decimal(up)}H{decimal(to)}" for up, to in zip(y, x[1:], strict=True))
    return f"M0 {decimal(TOP + HEIGHT)}{steps}V{decimal(TOP + HEIGHT)}Z"


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
