"""The pictures of a risk-utility report, as inline SVG: a plane of risk and utility, histograms of both, and bars."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sfumato.report.svg import nice_step, tag
from sfumato.verify.risk_utility.claims import RiskBin

WIDTH, LEFT, RIGHT = 440.0, 54.0, 14.0  # of the pictures, and what is kept free for labels
TALL, TOP = 190.0, 26.0


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar: its name, its class of colours, its rows, and how opaque it is."""

    name: str
    kind: str
    n: int
    opacity: float = 1.0


def part_bar(tones: Sequence[BarPart]) -> Markup:
    """Rows of each kind as one bar."""
    total, width, x, parts = max(sum(tone.n for tone in tones), 1), 300.0, 0.0, []
    for tone in tones:
        long = width * tone.n / total
        if tone.n:
            about = tag("title", f"{tone.name}: {tone.n:,} rows")
            opacity = None if tone.opacity == 1 else tone.opacity
            shape = {"x": x, "width": long, "height": 14.0, "fill_opacity": opacity}
            parts.append(tag("rect", about, class_=f"level {tone.kind}", **shape))
        x += long
    told = ", ".join(f"{tone.name} {100 * tone.n / total:.0f} %" for tone in tones if tone.n)
    frame = tag("rect", width=width, height=14, class_="level-frame")
    return tag("svg", *parts, frame, viewBox="-1 -1 302 16", role="img", aria_label=told, class_="parts")


# ---- shares of utility -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UtilityRange:
    """Rows that keep from ``first`` to ``last`` of their utility."""

    first: float
    last: float
    n: int

    @property
    def label(self) -> str:
        """The share in words.

        >>> UtilityRange(0.6, 0.65, 3).label
        '60 to 65 %'
        """
        return f"{100 * self.first:.0f} to {100 * self.last:.0f} %"


def _across(value: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value


def _percent_axis(bottom: float) -> Iterator[Markup]:
    for i in range(0, 101, 20):
        x = _across(i / 100)
        yield tag("text", f"{i} %", x=x, y=bottom + 17, text_anchor="middle", class_="label")
    yield tag("text", "utility kept →", x=WIDTH - RIGHT, y=bottom + 36, text_anchor="end", class_="axis")


def _threshold(at_least: float | None, bottom: float) -> Iterator[Markup]:
    if at_least is not None:
        about = tag("title", f"at least {100 * at_least:.3g} % is asked for")
        yield tag("path", about, d=f"M{_across(at_least):.1f} {TOP:g}V{bottom:g}", class_="nothing")
        side = "start" if at_least < 0.5 else "end"
        x = _across(at_least) + (5 if side == "start" else -5)
        yield tag("text", "asked for", x=x, y=TOP - 8, text_anchor=side, class_="label soft")


@dataclass(frozen=True, slots=True)
class _RowScale:
    """Rows upwards, from 0 to a round number."""

    step: float
    n_steps: int

    @classmethod
    def of(cls, counts: Sequence[int]) -> _RowScale:
        most = max(counts, default=1) or 1
        step = max(nice_step(most, 4), 1.0)
        return cls(step, math.ceil(most / step))

    def tall(self, n: int) -> float:
        return TALL * n / (self.step * self.n_steps)

    def lines(self) -> Iterator[Markup]:
        for i in range(self.n_steps + 1):
            y = TOP + TALL * (1 - i / self.n_steps)
            yield tag("path", d=f"M{LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}", class_="grid")
            yield tag("text", f"{i * self.step:,.0f}", x=LEFT - 7, y=y + 4, text_anchor="end", class_="label")


def shares_histogram(bars: Sequence[UtilityRange], at_least: float | None) -> Markup:
    """How many rows keep how much, upright, with the threshold."""
    bottom, scale = TOP + TALL, _RowScale.of([bar.n for bar in bars])
    parts: list[Markup] = [*scale.lines()]
    for bar in bars:
        left, right = _across(bar.first), _across(bar.last)
        tall = scale.tall(bar.n)
        about = tag("title", f"{bar.label}: {bar.n:,} rows")
        shape = {"x": left + 1.0, "y": bottom - tall, "width": right - left - 2.0, "height": tall}
        parts.append(tag("rect", about, class_="bar", **shape))
    parts += [*_threshold(at_least, bottom), *_percent_axis(bottom)]
    return tag(
        "svg", *parts,
        tag("path", d=f"M{LEFT:g} {bottom:g}H{WIDTH - RIGHT:g}", class_="tick"),
        tag("text", "↑ rows", x=0, y=14, class_="axis"),
        viewBox=f"0 0 {WIDTH:g} {bottom + 44:g}", role="img", class_="shares",
        aria_label="How many rows keep how much of their utility; a table with the numbers follows.",
    )  # fmt: skip


# ---- risks -------------------------------------------------------------------------------------------------


def risks_histogram(bins: Sequence[RiskBin], limit: float | None) -> Markup:
    """How many rows have how much risk, before (hollow) and after (full); below each bin its greatest risk."""
    bottom = TOP + TALL
    scale = _RowScale.of([n for each in bins for n in (each.raw, each.published)])
    wide = (WIDTH - LEFT - RIGHT) / len(bins)
    every = -(-len(bins) // 9)  # labels that have room beside each other
    parts: list[Markup] = [*_before_and_after(), *scale.lines()]
    for i, each in enumerate(bins):
        left = LEFT + wide * i
        for part, (n, kind, word) in enumerate(
            ((each.raw, "raw", "as they are"), (each.published, "release", "published"))
        ):
            about = tag("title", f"risk {risk_range(bins, i)}, {word}: {n:,} rows")
            tall = scale.tall(n)
            shape = {
                "x": left + wide * (0.1 + 0.4 * part),
                "y": bottom - tall,
                "width": 0.4 * wide,
                "height": tall,
            }
            if n:
                bar = tag("rect", about, class_="glyph", **shape)
                parts.append(tag("g", bar, class_=f"score {kind}"))
        if (len(bins) - 1 - i) % every == 0:
            label = f"{each.at_most:g}"
            parts.append(
                tag("text", label, x=left + wide / 2, y=bottom + 17, text_anchor="middle", class_="label")
            )
    if limit is not None:
        n_allowed = sum(each.at_most <= limit * (1 + 1e-9) for each in bins)
        about = tag("title", f"at most {limit:.3g} is allowed")
        parts.append(
            tag("path", about, d=f"M{LEFT + wide * n_allowed:.1f} {TOP:g}V{bottom:g}", class_="nothing")
        )
    return tag(
        "svg", *parts,
        tag("path", d=f"M{LEFT:g} {bottom:g}H{WIDTH - RIGHT:g}", class_="tick"),
        tag("text", "↑ rows", x=0, y=14, class_="axis"),
        tag("text", "risk of a row, up to →", x=WIDTH - RIGHT, y=bottom + 36, text_anchor="end", class_="axis"),
        viewBox=f"0 0 {WIDTH:g} {bottom + 44:g}", role="img", class_="risks",
        aria_label="How many rows have how much risk, before and after; a table with the numbers follows.",
    )  # fmt: skip


def _before_and_after() -> Iterator[Markup]:
    for x, kind, word in ((150.0, "raw", "as they are"), (262.0, "release", "published")):
        yield tag("g", tag("rect", x=x, y=5, width=10, height=10, class_="glyph"), class_=f"score {kind}")
        yield tag("text", word, x=x + 16, y=14, class_="label")


def risk_range(bins: Sequence[RiskBin], i: int) -> str:
    """The risks of a bin in words.

    >>> bins = [RiskBin(0, 1, 1), RiskBin(0.05, 1, 1), RiskBin(0.2, 1, 1)]
    >>> [risk_range(bins, i) for i in range(3)]
    ['0', 'up to 0.05', 'above 0.05, up to 0.2']
    """
    if bins[i].at_most == 0:
        return "0"
    most = f"up to {bins[i].at_most:g}"
    return most if i == 0 or bins[i - 1].at_most == 0 else f"above {bins[i - 1].at_most:g}, {most}"


# ---- risk and utility --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Mean share of utility, mean and greatest risk of some form of the rows; and the least share, if it varies."""

    name: str
    kind: str
    utility: float
    mean: float
    greatest: float
    least: float | None = None


@dataclass(frozen=True, slots=True)
class _Risks:
    """A logarithmic scale, upwards; no risk at all has a line of its own below it."""

    first: int
    last: int
    has_none: bool

    @classmethod
    def of(cls, places: Sequence[Place]) -> _Risks:
        risks = [risk for place in places for risk in (place.mean, place.greatest)]
        some = [risk for risk in risks if risk > 0] or [1.0]
        first, last = math.floor(math.log10(min(some))), math.ceil(math.log10(max(some)))
        return cls(first, max(last, first + 1), len(some) < len(risks))

    @property
    def bottom(self) -> float:
        return TOP + TALL - (30.0 if self.has_none else 0.0)

    def up(self, risk: float) -> float:
        if risk <= 0:
            return TOP + TALL
        share = (math.log10(risk) - self.first) / (self.last - self.first)
        return self.bottom - (self.bottom - TOP) * share

    def lines(self) -> Iterator[Markup]:
        every = -(-(self.last - self.first) // 6)
        for power in range(self.first, self.last + 1, every):
            y = self.up(10.0**power)
            text = f"{10.0**power:g}" if -4 < power < 5 else f"1e{power}"
            yield tag("path", d=f"M{LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}", class_="grid")
            yield tag("text", text, x=LEFT - 7, y=y + 4, text_anchor="end", class_="label")
        if self.has_none:
            yield tag("text", "0", x=LEFT - 7, y=TOP + TALL + 4, text_anchor="end", class_="label")


def plane_of_risk_and_utility(places: Sequence[Place], at_least: float | None) -> Markup:
    """Each form of the rows as a point, with a line up to its greatest risk and one back to its least utility."""
    scale, bottom = _Risks.of(places), TOP + TALL
    parts = [*scale.lines(), *_threshold(at_least, bottom), *_percent_axis(bottom)]
    parts += [_mark(place, scale) for place in places]
    told = "; ".join(
        f"{place.name}: {100 * place.utility:.0f} % of the utility, mean risk {place.mean:.3g}"
        for place in places
    )
    return tag(
        "svg", *parts,
        tag("path", d=f"M{LEFT:g} {TOP:g}V{bottom:g}H{WIDTH - RIGHT:g}", class_="tick"),
        tag("text", "↑ risk", x=0, y=14, class_="axis"),
        viewBox=f"0 0 {WIDTH:g} {bottom + 44:g}", role="img", aria_label=told, class_="position",
    )  # fmt: skip


def _mark(place: Place, scale: _Risks) -> Markup:
    x, y = _across(place.utility), scale.up(place.mean)
    risks = f"mean risk {place.mean:.3g}, greatest {place.greatest:.3g}"
    parts = [tag("title", f"{place.name}: {100 * place.utility:.1f} % of the utility, {risks}")]
    lines = f"M{x:.1f} {y:.1f}V{scale.up(place.greatest):.1f}m-4 0h8"
    if place.least is not None:
        lines += f"M{x:.1f} {y:.1f}H{_across(place.least):.1f}m0 -4v8"
    parts.append(tag("path", d=lines, class_="spread"))
    if place.kind == "release":
        parts.append(tag("rect", x=x - 6, y=y - 6, width=12, height=12, class_="glyph"))
    else:
        parts.append(tag("circle", cx=x, cy=y, r=6, class_="glyph"))
    is_right = place.utility > 0.8
    words = {"x": x + (-12 if is_right else 12), "y": y + (-10 if place.kind == "told" else 18)}
    if place.kind == "raw":
        words = {"x": x + 6, "y": y + 22}
    parts.append(tag("text", place.name, text_anchor="end" if is_right else "start", class_="label", **words))
    return tag("g", *parts, class_=f"score {place.kind}")


__all__ = [
    "BarPart",
    "Place",
    "UtilityRange",
    "part_bar",
    "plane_of_risk_and_utility",
    "risk_range",
    "risks_histogram",
    "shares_histogram",
]
