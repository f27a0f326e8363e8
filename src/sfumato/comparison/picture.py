"""Picture of the risk-utility frontier: risk to the right, utility upwards, with error bars.

Differentially private settings have panels of their own, with epsilon to the right: the two are not one scale. Where
everything stands is decided once, in :class:`Drawing`; it is written as SVG by the report's own code, and as PNG where
matplotlib is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sfumato.comparison.advice import scale_of, series
from sfumato.comparison.result import MEASURE, Comparison, Setting
from sfumato.evaluation.metrics import ACCURACY, NAMES
from sfumato.report.svg import nice_step, shorten, tag
from sfumato.table.files import replace_atomically

INKS = ("#1f6f8b", "#c8553d", "#6a7b3c", "#7a5c99", "#b08900", "#4a4a4a")
"""One for each series, told apart also in grey print by the marks."""
MARKS = ("circle", "square", "triangle", "diamond", "wedge", "cross")
PAPER, INK, SOFT, GREY, RULE = "#ffffff", "#33332f", "#6b6b66", "#8a8a86", "#e6e4de"

RISK = "largest risk of a row: 1 / rows that fit its labels  (less to the left)"
RISK_OF_PEOPLE = "largest risk of a person: 1 / people of the group  (less to the left)"
EPSILON = "epsilon  (more private to the left)"

WIDTH, HEIGHT = 330.0, 210.0  # of what is drawn in a panel
LEFT, RIGHT, ABOVE, BELOW = 58.0, 52.0, 34.0, 44.0  # around it
CHARACTER, LINE = 0.6, 1.25
"""The width of a character and the height of a line, as parts of the letter size."""


# ---- what a drawing is made of -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points; ``dash`` is as in SVG."""

    points: tuple[tuple[float, float], ...]
    ink: str
    width: float = 1.0
    dash: str | None = None


@dataclass(frozen=True, slots=True)
class PlacedText:
    """A text whose baseline is at ``y``; ``anchor`` is start, middle or end. If it ``is_turned``, it reads upwards."""

    x: float
    y: float
    text: str
    ink: str = INK
    size: float = 10.5
    anchor: str = "start"
    is_turned: bool = False
    has_halo: bool = False
    """Is there paper around the letters, so that lines do not cross them?"""

    @property
    def box(self) -> Box:
        """About the area that it covers: left, top, right, bottom."""
        long = CHARACTER * self.size * len(self.text)
        before = {"start": 0.0, "middle": long / 2, "end": long}[self.anchor]
        up, down = 0.8 * self.size, 0.25 * self.size
        if self.is_turned:
            return self.x - up, self.y - (long - before), self.x + down, self.y + before
        return self.x - before, self.y - up, self.x - before + long, self.y + down


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a series."""

    x: float
    y: float
    kind: str
    ink: str

    @property
    def corners(self) -> tuple[tuple[float, float], ...]:
        """Where the corners are; a circle has none."""
        r = 4.0
        shapes = {
            "circle": (),
            "square": ((-r, -r), (r, -r), (r, r), (-r, r)),
            "triangle": ((0, -r), (r, r), (-r, r)),
            "diamond": ((0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)),
            "wedge": ((-r, -r), (r, -r), (0, r)),
            "cross": (
                (-r, -2), (-2, -2), (-2, -r), (2, -r), (2, -2), (r, -2),
                (r, 2), (2, 2), (2, r), (-2, r), (-2, 2), (-r, 2),
            ),
        }  # fmt: skip
        return tuple((self.x + x, self.y + y) for x, y in shapes[self.kind])


Box = tuple[float, float, float, float]


@dataclass
class Drawing:
    """Shapes in the order in which they are drawn, on paper of a size that grows with them."""

    shapes: list[Line | PlacedText | Mark] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def add(self, *shapes: Line | PlacedText | Mark) -> None:
        self.shapes += shapes

    def is_free(self, box: Box) -> bool:
        """Would a text there hide no other text and no mark?"""
        return not any(_overlap(box, other) for other in map(_area_of, self.shapes) if other is not None)

    @property
    def texts(self) -> list[PlacedText]:
        return [shape for shape in self.shapes if isinstance(shape, PlacedText)]


def _area_of(shape: Line | PlacedText | Mark) -> Box | None:
    if isinstance(shape, PlacedText):
        return shape.box
    return (shape.x - 5, shape.y - 5, shape.x + 5, shape.y + 5) if isinstance(shape, Mark) else None


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


# ---- files -------------------------------------------------------------------------------------------


def draw(found: Comparison, folder: Path) -> tuple[Path, ...]:
    """Write ``frontier.svg``, and ``frontier.png`` where matplotlib is there; neither where nothing can be met."""
    png, svg = folder / "frontier.png", folder / "frontier.svg"
    for path in (png, svg):
        path.unlink(missing_ok=True)  # of an earlier comparison
    if not found.met:
        return ()
    drawing = drawing_of(found)
    with replace_atomically(svg) as temporary:
        temporary.write_text(svg_of(drawing) + "\n", encoding="utf-8")
    if find_spec("matplotlib") is None:
        return (svg,)
    with replace_atomically(png) as temporary:
        _write_png(drawing, temporary)
    return png, svg


def svg_of(drawing: Drawing) -> Markup:
    """The drawing as SVG."""
    paper = tag("rect", width=drawing.width, height=drawing.height, fill=PAPER)
    return tag(
        "svg",
        tag("title", "The frontier of utility against risk"),
        paper,
        *(_as_element(shape) for shape in drawing.shapes),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {drawing.width:g} {drawing.height:g}",
        width=drawing.width,
        height=drawing.height,
        font_family="Helvetica Neue, Helvetica, Arial, sans-serif",
        role="img",
    )


def _as_element(shape: Line | PlacedText | Mark) -> Markup:
    if isinstance(shape, Line):
        return tag(
            "polyline", points=_points(shape.points), fill="none", stroke=shape.ink, stroke_width=shape.width,
            stroke_dasharray=shape.dash,
        )  # fmt: skip
    if isinstance(shape, Mark):
        if shape.corners:
            return tag("polygon", points=_points(shape.corners), fill=shape.ink)
        return tag("circle", cx=shape.x, cy=shape.y, r=4, fill=shape.ink)
    turn = f"rotate(-90 {shape.x:.2f} {shape.y:.2f})" if shape.is_turned else None
    return tag(
        "text", shape.text, x=shape.x, y=shape.y, fill=shape.ink, font_size=shape.size,
        text_anchor=None if shape.anchor == "start" else shape.anchor, transform=turn,
        stroke=PAPER if shape.has_halo else None, stroke_width=3 if shape.has_halo else None,
        paint_order="stroke" if shape.has_halo else None,
    )  # fmt: skip


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)


def _write_png(drawing: Drawing, path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - comes with an extra
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.patches import Circle, Polygon  # noqa: PLC0415
    from matplotlib.patheffects import withStroke  # noqa: PLC0415

    points = 72 / 96  # of print, in a pixel
    with mpl.rc_context({"font.family": "sans-serif"}):
        figure = Figure(figsize=(drawing.width / 96, drawing.height / 96), facecolor=PAPER)
        axes: Any = figure.add_axes((0, 0, 1, 1), xlim=(0, drawing.width), ylim=(drawing.height, 0))
        axes.axis("off")
        for shape in drawing.shapes:
            if isinstance(shape, Line):
                across, up = zip(*shape.points, strict=True)
                style: Any = (0, tuple(map(float, shape.dash.split()))) if shape.dash else "-"
                axes.add_line(
                    Line2D(across, up, color=shape.ink, linewidth=points * shape.width, linestyle=style)
                )
            elif isinstance(shape, Mark):
                body = Polygon(shape.corners) if shape.corners else Circle((shape.x, shape.y), 4)
                body.set(facecolor=shape.ink, edgecolor="none")
                axes.add_patch(body)
            else:
                anchor = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
                axes.text(
                    shape.x, shape.y, shape.text, color=shape.ink, fontsize=0.94 * points * shape.size,
                    ha="right" if shape.is_turned else anchor, va="center" if shape.is_turned else "baseline",
                    rotation=90 if shape.is_turned else 0, parse_math=False,
                    path_effects=[withStroke(linewidth=2, foreground=PAPER)] if shape.has_halo else None,
                )  # fmt: skip
        figure.savefig(path, format="png", dpi=192, metadata={"Software": None})


# ---- panels ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Panel:
    """One model of one target, among settings of one kind; without a target the measure stands for utility."""

    target: str | None
    model: str | None
    is_private: bool


def drawing_of(found: Comparison) -> Drawing:
    """A line of panels for each target, one for each model; where there are two kinds of settings, two."""
    kinds = sorted({setting.is_private for setting in found.met})
    named: list[tuple[str | None, str | None]] = [(score.target, score.model) for score in found.leading]
    panels = [Panel(*names, is_private) for is_private in kinds for names in named or [(None, None)]]
    rows = {
        target: [panel for panel in panels if panel.target == target] for target, _ in named or [(None, None)]
    }
    drawing = Drawing(width=max(len(row) for row in rows.values()) * (LEFT + WIDTH + RIGHT) + 14.0)
    top = _draw_legend(drawing, found)
    for target, row in rows.items():
        low, high = _range_of(found, row)
        label = PlacedText(
            14, top + ABOVE + HEIGHT / 2, _utility_label(found, target), is_turned=True, anchor="middle"
        )
        drawing.add(label)
        for i, panel in enumerate(row):
            place = _Place(
                14 + i * (LEFT + WIDTH + RIGHT) + LEFT, top + ABOVE, low, high, *_span(found, panel)
            )
            _draw_panel(drawing, found, panel, place)
        top += ABOVE + HEIGHT + BELOW
    drawing.height = top + 8
    return drawing


def _draw_legend(drawing: Drawing, found: Comparison) -> float:
    """The names of the series, in as many lines as they need; returns where they end."""
    lines = series(found)
    if len([name for name, _ in lines if name]) < 2:
        return 4.0
    x, y = 20.0, 20.0
    for number, (name, _) in enumerate(lines):
        text = PlacedText(x + 12, y + 4, shorten(name or "as it is", 90))
        if text.box[2] > drawing.width - 10 and x > 20:
            x, y = 20.0, y + 18
            text = PlacedText(x + 12, y + 4, text.text)
        drawing.add(Mark(x, y, MARKS[number % len(MARKS)], INKS[number % len(INKS)]), text)
        x = text.box[2] + 24
    return y + 8


def _utility_label(found: Comparison, target: str | None) -> str:
    if target is None:
        return "normalized certainty penalty (less is better)"
    metric = found.of_nothing(target).metric
    return f"{shorten(target, 24)}: {NAMES[metric]}" + (", %" if metric == ACCURACY else " (less is better)")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a panel lies, and the values at its ends; risk and epsilon by their logarithm."""

    left: float
    top: float
    low: float
    high: float
    first: float
    last: float

    def x(self, exposure: float) -> float:
        span = math.log(self.last) - math.log(self.first)
        return self.left + WIDTH * (math.log(exposure) - math.log(self.first)) / span

    def y(self, height: float) -> float:
        return self.top + HEIGHT * (self.high - height) / (self.high - self.low)


def _span(found: Comparison, panel: Panel) -> tuple[float, float]:
    """The least and the greatest exposure of a panel, with room around them."""
    tried = [setting.exposure for setting in found.met if setting.is_private == panel.is_private]
    room = max((max(tried) / min(tried)) ** 0.12, 1.3)
    return min(tried) / room, max(tried) * room


def _range_of(found: Comparison, row: Sequence[Panel]) -> tuple[float, float]:
    """The least and the greatest utility in a line of panels, error bars and references included."""
    ends: list[float] = []
    for panel in row:
        for setting in found.met:
            if setting.is_private == panel.is_private:
                height, bar = _height(setting, panel)
                ends += [height - bar, height + bar]
        ends += [height for _, height, _ in _references(found, panel)]
    low, high = min(ends), max(ends)
    room = 0.1 * (high - low) or max(abs(high) * 0.1, 0.5)
    return low - room, high + room


def _height(setting: Setting, panel: Panel) -> tuple[float, float]:
    """The utility of a setting, and the half of its error bar."""
    if panel.target is None or panel.model is None:
        return (setting.measures or {})[MEASURE], 0.0
    score = setting.score(panel.target, panel.model)
    scale = 100 if score.metric == ACCURACY else 1
    return scale * score.mean, scale * (score.half_width or 0.0)


def _references(found: Comparison, panel: Panel) -> Iterator[tuple[str, float, str]]:
    """What raw rows reach and what publishing nothing does: a word, its height, the dashes of its line."""
    if panel.target is None or panel.model is None:
        return
    raw, nothing = found.of_raw(panel.target, panel.model), found.of_nothing(panel.target)
    scale = 100 if raw.metric == ACCURACY else 1
    yield "raw", scale * raw.mean, "6 4"
    yield "nothing", scale * nothing.mean, "2 3"


def _draw_panel(drawing: Drawing, found: Comparison, panel: Panel, place: _Place) -> None:
    right, bottom = place.left + WIDTH, place.top + HEIGHT
    drawing.add(PlacedText(place.left, place.top - 10, panel.model or "", size=11.5))
    for height, label in _round_heights(place):
        y = place.y(height)
        drawing.add(
            Line(((place.left, y), (right, y)), RULE),
            PlacedText(place.left - 6, y + 4, label, SOFT, anchor="end"),
        )
    _label_exposures(drawing, found, panel, place)
    corner = ((place.left, place.top), (place.left, bottom), (right, bottom))
    risk = RISK_OF_PEOPLE if found.counts_people else RISK
    title = EPSILON if panel.is_private else risk
    drawing.add(Line(corner, GREY), PlacedText(right, bottom + 34, title, SOFT, size=9.5, anchor="end"))
    references = sorted(_references(found, panel), key=lambda reference: -reference[1])
    below = -math.inf
    for word, height, dash in references:
        y = place.y(height)
        below = max(y + 4, below + LINE * 9.5)  # two labels never hide each other
        drawing.add(
            Line(((place.left, y), (right, y)), GREY, dash=dash),
            PlacedText(right + 5, below, word, SOFT, size=9.5),
        )
    _draw_series(drawing, found, panel, place)


def _round_heights(place: _Place) -> Iterator[tuple[float, str]]:
    step = nice_step(place.high - place.low, 6)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for i in range(math.ceil(place.low / step), math.floor(place.high / step) + 1):
        yield i * step, f"{i * step:,.{digits}f}"


def _label_exposures(drawing: Drawing, found: Comparison, panel: Panel, place: _Place) -> None:
    """Epsilons that were tried, or risks at round numbers; those that have no room are left out."""
    bottom = place.top + HEIGHT
    tried = sorted({setting.exposure for setting in found.met if setting.is_private == panel.is_private})
    labels = {value: f"{value:g}" for value in tried}
    if not panel.is_private:
        rounds = (m * 10**power for power in range(12) for m in (1, 2, 5))
        labels = {1 / n: f"1/{n:,}" for n in rounds if place.first <= 1 / n <= place.last}
        labels = labels or {value: f"1/{1 / value:,.0f}" for value in tried}
    for value, label in labels.items():
        text = PlacedText(place.x(value), bottom + 17, label, SOFT, anchor="middle")
        if drawing.is_free(text.box):
            drawing.add(Line(((text.x, bottom), (text.x, bottom + 4)), GREY), text)


def _draw_series(drawing: Drawing, found: Comparison, panel: Panel, place: _Place) -> None:
    lines = [
        (INKS[number % len(INKS)], MARKS[number % len(MARKS)], line)
        for number, (_, line) in enumerate(series(found))
        if line[0].is_private == panel.is_private
    ]
    for ink, kind, line in lines:
        heights = [_height(setting, panel) for setting in line]
        points = [
            (place.x(s.exposure), place.y(height)) for s, (height, _) in zip(line, heights, strict=True)
        ]
        if len(points) > 1:
            drawing.add(Line(tuple(points), ink, 1.4))
        for (x, y), (height, bar) in zip(points, heights, strict=True):
            if bar:
                top, end = place.y(height + bar), place.y(height - bar)
                drawing.add(
                    *(
                        Line(ends, ink)
                        for ends in (
                            ((x, top), (x, end)),
                            ((x - 3, top), (x + 3, top)),
                            ((x - 3, end), (x + 3, end)),
                        )
                    )
                )
            drawing.add(Mark(x, y, kind, ink))
    if not panel.is_private:  # epsilons stand below
        for ink, _, line in lines:
            for setting in line:
                _draw_name(
                    drawing, setting, place.x(setting.exposure), place.y(_height(setting, panel)[0]), ink
                )


def _draw_name(drawing: Drawing, setting: Setting, x: float, y: float, ink: str) -> None:
    """The value of the scale beside a point, or every choice; nothing where it would hide something."""
    scale = scale_of(setting)
    text = shorten(setting.name if scale is None else f"{scale}={setting.choices[scale]}", 30)
    for across, down, anchor in ((7, -7, "start"), (7, 15, "start"), (-7, -7, "end"), (-7, 15, "end")):
        label = PlacedText(x + across, y + down, text, ink, size=9.5, anchor=anchor, has_halo=True)
        if label.box[2] <= drawing.width and drawing.is_free(label.box):
            drawing.add(label)
            return


__all__ = ["draw", "drawing_of", "svg_of"]
