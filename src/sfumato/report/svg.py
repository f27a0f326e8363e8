"""Inline SVG as text: elements with everything escaped, and round numbers for their grids."""

from __future__ import annotations

import math
import re

from markupsafe import Markup, escape

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def plain(text: str) -> str:
    r"""A label without control characters: they are no HTML, and some would turn the line around.

    >>> plain("a\x00b") == "a\N{REPLACEMENT CHARACTER}b"
    True
    """
    return _CONTROL.sub("\ufffd", text)


def shorten(text: str, n_characters: int) -> str:
    """At most so many characters, the last one an ellipsis if some were left out.

    >>> shorten("Married-civ-spouse", 8)
    'Married…'
    """
    text = plain(text)
    return text if len(text) <= n_characters else text[: n_characters - 1].rstrip(" -,") + "…"


def decimal(number: float) -> str:
    """A coordinate: two decimals at most, so that the same picture is the same text.

    >>> decimal(3.0), decimal(2 / 3), decimal(-0.0001)
    ('3', '0.67', '0')
    """
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def tag(name: str, *inside: str, **attributes: str | float | None) -> Markup:
    """One element. Underscores in attribute names are hyphens, one at the end is dropped; None is left out.

    >>> tag("text", "a < b", x=1.5, text_anchor="end", class_="label")
    Markup('<text x="1.5" text-anchor="end" class="label">a &lt; b</text>')
    """
    given = {
        key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None
    }
    pairs = "".join(
        f' {escape(key)}="{escape(value if isinstance(value, str) else decimal(value))}"'
        for key, value in given.items()
    )
    text = "".join(map(escape, inside))
    return Markup(f"<{escape(name)}{pairs}>{text}</{escape(name)}>")  # noqa: S704 - every part is escaped


def nice_step(span: float, most: int) -> float:
    """The least of 1, 2, 5, 10, ... (and their tenths) that goes into ``span`` at most so often.

    >>> nice_step(110, 8), nice_step(0.9, 10)
    (20.0, 0.1)
    """
    rough = max(span, 1e-300) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return float(next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9)))
