"""Pictures of how useful a release is: scores with error bars, and small bars of what conditions return."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from markupsafe import Markup

from sfumato.evaluation.result import NOTHING, RAW, RELEASE, ModelScore
from sfumato.report.svg import decimal, shorten, tag
from sfumato.report.ticks import nice_step
from sfumato.report.utility import ModelLine, Selection, TargetUtility, name_of

WIDTH, LABELS, EDGE = 440.0, 122.0, 14.0  # of the picture, its labels, and what is kept free on the right
LINE, TOP = 40.0, 30.0
OFFSET = {RAW: -7.0, RELEASE: 7.0}
"""The two scores of a model stand below each other, so that none hides the other."""

WORDS = {RELEASE: "from the release", RAW: "from raw rows", NOTHING: "from nothing"}
SELECTION = 150.0


def scores(target: TargetUtility) -> Markup:
    """Each model's score from the release, from raw rows and from nothing, with 95 % intervals."""
    low, high, step = _range(target)

    def place(value: float) -> float:
        share = (value - low) / (high - low)
        return LABELS + (WIDTH - LABELS - EDGE) * min(max(share, 0.0), 1.0)

    bottom = TOP + LINE * len(target.lines)
    parts = [*_legend(target), *_grid(target, low, high, step, bottom)]
    if target.nothing is not None:
        guess = tag("title", f"{WORDS[NOTHING]}: {target.with_spread(target.nothing)}")
        at_guess = f"M{decimal(place(target.nothing.mean))} {TOP:g}V{bottom:g}"
        parts.append(tag("path", guess, d=at_guess, class_="nothing"))
    for at, line in enumerate(target.lines):
        middle = TOP + LINE * (at + 0.5)
        name = shorten(name_of(line.model), 18)
        parts.append(tag("text", name, x=LABELS - 12, y=middle + 4, text_anchor="end", class_="label"))
        parts += [_mark(target, line, score, place, middle + OFFSET[score.data]) for score in line.scores]
    better = "better →" if target.is_accuracy else "← better"
    anchor, x = ("end", WIDTH - EDGE) if target.is_accuracy else ("start", LABELS)
    parts.append(
        tag("text", f"{target.metric}, {better}", x=x, y=bottom + 36, text_anchor=anchor, class_="axis")
    )
    about = (
        f"The {target.metric} of {len(target.lines)} models of {shorten(target.target, 60)}; a table follows."
    )
    return tag(
        "svg", *parts, viewBox=f"0 0 {WIDTH:g} {bottom + 44:g}", role="img", aria_label=about, class_="scores"
    )


def _range(target: TargetUtility) -> tuple[float, float, float]:
    """The ends of the axis and the distance of its lines; an error is never below nothing."""
    shown = [score for line in target.lines for score in line.scores]
    ends = [score.mean + sign * (score.half_width or 0.0) for score in shown for sign in (-1, 1)]
    ends += [] if target.nothing is None else [target.nothing.mean]
    low, high = min(ends), max(ends)
    room = 0.04 * (high - low) or 0.05 * max(abs(high), 1e-9)
    low, high = max(low - room, 0.0), high + room
    step = nice_step(high - low, 5)
    return low, (min(high, 1.0) if target.is_accuracy else high), step


def _grid(target: TargetUtility, low: float, high: float, step: float, bottom: float) -> Iterator[Markup]:
    digits = max(0, -math.floor(math.log10(100 * step if target.is_accuracy else step) + 1e-9))
    for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        x = LABELS + (WIDTH - LABELS - EDGE) * (i * step - low) / (high - low)
        value = f"{100 * i * step:.{digits}f} %" if target.is_accuracy else f"{i * step:,.{digits}f}"
        yield tag("path", d=f"M{x:.1f} {TOP:g}V{bottom:g}", class_="grid")
        yield tag("text", value, x=x, y=bottom + 17, text_anchor="middle", class_="label")


def _mark(
    target: TargetUtility, line: ModelLine, score: ModelScore, place: Callable[[float], float], y: float
) -> Markup:
    x, spread = place(score.mean), score.half_width
    about = tag("title", f"{name_of(line.model)}, {WORDS[score.data]}: {target.with_spread(score)}")
    parts = [about]
    if spread:
        left, right = place(score.mean - spread), place(score.mean + spread)
        ends = f"M{left:.1f} {y - 3:g}v6M{left:.1f} {y:g}H{right:.1f}M{right:.1f} {y - 3:g}v6"
        parts.append(tag("path", d=ends, class_="spread"))
    return tag("g", *parts, _glyph(score.data, x, y), class_=f"score {score.data}")


def _glyph(data: str, x: float, y: float) -> Markup:
    """A full square, a hollow circle or a broken line: told apart without colours."""
    if data == RELEASE:
        return tag("rect", x=x - 5, y=y - 5, width=10, height=10, class_="glyph")
    if data == RAW:
        return tag("circle", cx=x, cy=y, r=5, class_="glyph")
    return tag("path", d=f"M{decimal(x)} {decimal(y - 8)}v16", class_="nothing")


def _legend(target: TargetUtility) -> Iterator[Markup]:
    x = 6.0
    for data, words in WORDS.items():
        if data == NOTHING and target.nothing is None:
            continue
        yield tag("g", _glyph(data, x, 10), class_=f"score {data}")
        yield tag("text", words, x=x + 12, y=14, class_="label")
        x += 38 + 6.3 * len(words)


def selection_bar(selection: Selection, most: int) -> Markup:
    """The rows that are returned: those that fulfil the condition, and the surplus."""
    scale = SELECTION / max(most, 1)
    true, surplus = scale * selection.true, scale * selection.surplus
    told = f"{selection.true:,} of {selection.returned:,} returned rows fulfil the condition"
    return tag(
        "svg",
        tag("rect", width=true, height=14, class_="level exact"),
        tag("rect", x=true, width=surplus, height=14, class_="level narrowed"),
        tag("rect", width=true + surplus, height=14, class_="level-frame"),
        viewBox=f"-1 -1 {SELECTION + 2:g} 16",
        role="img",
        aria_label=told,
        class_="levels",
    )
