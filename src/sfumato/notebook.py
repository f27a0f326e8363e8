"""Small cards of HTML that show our values in a notebook; every text in them is escaped.

A card holds names of columns, counts and figures, never a cell of a table that went in.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from sfumato.errors import printable

MOST_LINES = 30
"""Lines of a table that are shown."""
MARGIN = 16
_CARD = "max-width: 46rem; border-left: 6px solid #8a867c; padding: .1rem 0 .1rem 1rem; line-height: 1.45"
_CELL = "text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0"


def card(heading: str, sentence: str, figures: Sequence[tuple[str, str]], *parts: str) -> str:
    """A card: a heading, a sentence, figures in a line, and below them parts that are HTML already.

    >>> card("A release", "5 < 6", [("rows", "10")]).startswith('<div style="')
    True
    """
    shown = Markup(" · ").join(
        Markup("<strong>{}</strong> {}").format(text(value), text(word)) for word, value in figures
    )
    body = Markup('<div style="{}"><strong>{}</strong><div>{}</div><div>{}</div>').format(
        _CARD, text(heading), text(sentence), shown
    )
    return str(body + Markup("").join(Markup(part) for part in parts if part) + Markup("</div>"))  # noqa: S704 - made here


def table(names: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of texts; if it is long, its first lines."""
    held = list(lines)
    head = _line("th", names)
    body = Markup("").join(_line("td", line) for line in held[:MOST_LINES])
    more = len(held) - MOST_LINES
    rest = Markup("<div>and {:,} more</div>").format(more) if more > 0 else Markup("")
    return str(Markup('<table style="border-collapse: collapse">{}{}</table>{}').format(head, body, rest))


def _line(name: str, cells: Sequence[str]) -> Markup:
    inside = (Markup('<{0} style="{1}">{2}</{0}>').format(name, _CELL, text(cell)) for cell in cells)
    return Markup("<tr>{}</tr>").format(Markup("").join(inside))


def paragraphs(sentences: Iterable[str]) -> str:
    return str(Markup("").join(Markup("<div>{}</div>").format(text(sentence)) for sentence in sentences))


def picture(svg: str, style: str = "") -> str:
    """An SVG picture, as an image: nothing in it can run, and it has a style of its own."""
    own = (
        svg
        if "xmlns=" in svg.partition(">")[0]
        else svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    )
    opening, _, rest = _with_margin(own).partition(">")
    styled = f"{opening}><style><![CDATA[{style}]]></style>{rest}"
    code = base64.b64encode(styled.encode("utf-8")).decode("ascii")
    look = "width: 100%; background: #fff; margin-top: .5rem"
    return f'<img alt="the picture" style="{look}" src="data:image/svg+xml;base64,{code}"/>'


def _with_margin(svg: str) -> str:
    """The picture with a margin around it, since an image is cut off at its edge.

    >>> _with_margin('<svg viewBox="0 0 100 50">')
    '<svg viewBox="-16 -16 132 82">'
    """

    def widen(found: re.Match[str]) -> str:
        x, y, width, height = map(float, found[1].split())
        return f'viewBox="{x - MARGIN:g} {y - MARGIN:g} {width + 2 * MARGIN:g} {height + 2 * MARGIN:g}"'

    return re.sub(r'viewBox="((?:[-\d.]+ ){3}[-\d.]+)"', widen, svg, count=1)


def describe_item(item: Mapping[str, Any]) -> str:
    """An item of a policy in a few words.

    >>> describe_item({"entropy-diversity": {"l": 2.0, "of": "disease"}})
    'entropy-diversity (l: 2, of: disease)'
    >>> describe_item({"k-anonymity": 5})
    'k-anonymity: 5'
    """
    return ", ".join(f"{word} ({_inner(given)})" if isinstance(given, Mapping) else f"{word}: {_short(given)}"
                     for word, given in item.items())  # fmt: skip


def _inner(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{word}: {_short(value)}" for word, value in given.items())


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_short, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def text(given: str) -> Markup:
    """Text without control characters, escaped."""
    return escape(printable(given))
