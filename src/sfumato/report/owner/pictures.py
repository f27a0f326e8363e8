"""The pictures of the owner's report: before and after side by side, and what a column lost, taken apart."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sfumato.methods.lost.reasons import LostColumn
from sfumato.report.distributions import NAMES, draw_density
from sfumato.report.loss import percent
from sfumato.report.owner.compared import ComparedNodes, ComparedNumbers
from sfumato.report.svg import shorten, tag

LINE, WIDTH = 20.0, 640.0
LABELS = 130.0
CHARACTER = 7.2  # about the width of one of a label
LONGEST_LABEL = 18
REASONS = {
    "few": "other columns left too few rows alike",
    "rare": "values too rare in the whole table",
    "requirement": "a requirement refuses",
    "together": "several requirements together refuse",
    "undone": "a division would hold, but was not made",
    "wide": "labels wider than the values under them",
    "left out": "rows that were left out",
}
"""The parts of what a column lost, as the legend calls them."""

SHADES = {
    "few": "exact", "rare": "rare", "requirement": "refused", "together": "refused", "undone": "undone",
    "wide": "narrowed", "left out": "missing",
}  # fmt: skip
LOST_WIDTH = 300.0


def draw_nodes(compared: ComparedNodes) -> Markup:
    """Two bars for each node: its rows before, and after: solid where they surely are its, light where they may be."""
    most = max((max(node.before, node.expected) for node in compared.nodes), default=1) or 1
    counts = [
        f"{node.before:,}" + (f" \N{MINUS SIGN} {node.left_out:,}" if node.left_out else "")
        for node in compared.nodes
    ]
    room = CHARACTER * max([10, *map(len, counts)]) + 14  # behind the bars before; those after have no minus
    bars = (WIDTH - LABELS - room - CHARACTER * max(10, len(f"{most:,.0f}"))) / 2
    left, right = LABELS, LABELS + bars + room
    parts = [
        tag("text", "before", x=left, y=12, class_="axis"),
        tag("text", "after", x=right, y=12, class_="axis"),
    ]
    for at, (node, count) in enumerate(zip(compared.nodes, counts, strict=True)):
        y, text = 20 + LINE * at, NAMES.get(node.label, node.label or "")
        style = "label soft" if node.label is None else "label"
        about = tag(
            "title",
            f"{shorten(text, 200)}: {node.before:,} rows before, of which {node.left_out:,} were left out; after, "
            f"{node.certain:,} for certain and {node.expected:,.0f} to be expected",
        )
        before, gone, certain, expected = (
            bars * n / most for n in (node.before, node.left_out, node.certain, node.expected)
        )
        parts += [
            tag("text", about, shorten(text, LONGEST_LABEL), x=LABELS - 8, y=y + 14, text_anchor="end", class_=style),
            tag("rect", x=left, y=y + 3, width=max(before, 1), height=LINE - 6, class_="bar"),
            tag("rect", x=left + before - gone, y=y + 3, width=gone, height=LINE - 6, class_="bar gone"),
            tag("text", count, x=left + max(before, 1) + 6, y=y + 14, class_="label"),
            tag("rect", x=right, y=y + 3, width=max(expected, 1), height=LINE - 6, class_="bar light"),
            tag("rect", x=right, y=y + 3, width=min(certain, expected), height=LINE - 6, class_="bar"),
            tag("text", f"{node.expected:,.0f}", x=right + max(expected, 1) + 6, y=y + 14, class_="label"),
        ]  # fmt: skip
    words = shorten(f"Rows by value of {compared.attribute.name}, before and after", 200)
    height = 22 + LINE * max(len(compared.nodes), 1)
    return tag(
        "svg", *parts, viewBox=f"0 0 {WIDTH:g} {height:g}", role="img", aria_label=words, class_="pair"
    )


def draw_before(compared: ComparedNumbers) -> Markup:
    """A number or date before, as high as the picture beside it."""
    most = _highest(compared)
    return draw_density(compared.attribute.name, compared.before, most=most, left_out=compared.left_out)


def draw_after(compared: ComparedNumbers) -> Markup:
    """The same after: rows of a range are spread evenly over it."""
    return draw_density(compared.attribute.name, compared.after, most=_highest(compared))


def _highest(compared: ComparedNumbers) -> float:
    return float(max(compared.before.rows.max(), compared.after.rows.max()))


def describe_numbers(compared: ComparedNumbers) -> str:
    """What the two pictures leave out, in words."""
    told = []
    for word, density in (("before", compared.before), ("after", compared.after)):
        notes = [(density.n_missing, "missing"), (density.n_far, "farther out")]
        told += [f"{word} {n:,} {'row' if n == 1 else 'rows'} {what}" for n, what in notes if n]
    return "; ".join(told)


def draw_lost(column: LostColumn) -> Markup:
    """What a column lost as one bar, within the whole column."""
    x, parts = 0.0, [tag("rect", width=LOST_WIDTH, height=14, class_="level rest")]
    for part in column.parts:
        wide = LOST_WIDTH * part.share
        about = tag("title", f"{percent(part.share)} {part.words}")
        parts.append(tag("rect", about, x=x, width=wide, height=14, class_=f"level {SHADES[part.kind]}"))
        x += wide
    told = ", ".join(f"{percent(part.share)} {part.words}" for part in column.parts) or "nothing"
    return tag(
        "svg",
        *parts,
        tag("rect", width=LOST_WIDTH, height=14, class_="level-frame"),
        viewBox=f"-1 -1 {LOST_WIDTH + 2:g} 16",
        role="img",
        aria_label=f"Lost of {shorten(column.name, 100)}: {told}",
        class_="lost",
    )


def legend_of(columns: Sequence[LostColumn]) -> list[tuple[str, str]]:
    """The shades that some bar has, and what they mean."""
    there = {part.kind for column in columns for part in column.parts}
    return [(SHADES[kind], meaning) for kind, meaning in REASONS.items() if kind in there]
