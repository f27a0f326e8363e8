"""One requirement beside the figure that a release reaches, in words for people."""

from __future__ import annotations

import math
from dataclasses import dataclass

FIGURE_TOLERANCE = 1e-9
"""A figure is read from a certificate, where it stands in decimals: equal up to this, relative to what is asked."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What was asked, what the worst group reaches, and whether that is enough.

    ``margin`` says by how much the figure is better than what was asked.
    """

    name: str
    meaning: str
    asked: str
    achieved: str
    margin: str
    holds: bool


def format_figure(value: float) -> str:
    """A number with four significant digits, or whole if it is large.

    >>> format_figure(2.5e7), format_figure(0.123456)
    ('25,000,000', '0.1235')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def format_margin(better: float, worse: float) -> str:
    """By how many percent the better figure exceeds the worse one.

    >>> format_margin(3.0, 2.0), format_margin(2.0001, 2.0), format_margin(1.0, 0.0)
    ('+50.0 %', 'met exactly', '–')
    """
    if worse == 0 or not math.isfinite(better / worse):
        return "–"
    excess = better / worse - 1
    return "met exactly" if abs(excess) < 5e-4 else f"{100 * excess:+,.1f} %"


def format_ordinal(n: int) -> str:
    """The number of a place.

    >>> [format_ordinal(n) for n in (2, 3, 11, 22)]
    ['2nd', '3rd', '11th', '22nd']
    """
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
