"""The report of a differentially private release: what was promised, what it cost, and what the counts say.

Everything is computed from the published counts, the recoding and the certificate: it can tell nothing that they do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import groupby
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.policy.output import COUNT
from sfumato.recoding.counts import GridLines
from sfumato.recoding.cuts import Cuts
from sfumato.release.certificate import Privacy
from sfumato.release.folder import RELEASES
from sfumato.report.page import (
    ReportedRelease,
    ReportSummary,
    list_names,
    options_of,
    template,
    write_certificate,
)
from sfumato.report.svg import shorten, tag

Ints = NDArray[np.int64]

MOST_DRAWS = 40
MOST_PIECES = 12
MOST_CELLS = 12
MOST_CLASSES = 5
"""So many of each are shown one by one."""

KINDS = {
    "rows": "number of rows",
    "split point": "split points",
    "specialization": "specializations",
    "counts": "counts",
}
UNSPENT = "unspent"


def render_counts(release: ReportedRelease) -> str:
    """The report of counts in the cells of a grid, as HTML."""
    privacy = release.certificate.privacy
    if privacy is None:
        raise InternalError("Counts are differentially private.")
    if not isinstance(release.recoding, Cuts):
        raise InternalError("A differentially private release has a recoding by cuts.")
    lines = GridLines.of(release.recoding, release.policy)
    counts = lines.counts(release.rows)
    attributes = attributes_of(lines, release.recoding, counts)
    return _template().render(
        release=release,
        privacy=privacy,
        claims=release.certificate.claims,
        summary=summarize(privacy),
        epsilon=decimal(privacy.epsilon),
        factor=factor(privacy.epsilon),
        odds=odds(privacy.epsilon),
        noise=Noise.of(privacy),
        draws=draws_of(privacy)[:MOST_DRAWS],
        n_hidden=sum(draw.n for draw in draws_of(privacy)[MOST_DRAWS:]),
        budget=budget_bar(privacy),
        parts=parts_of(privacy),
        target=lines.target,
        classes=_shown_classes(lines.classes),
        n_classes=len(lines.classes),
        file=RELEASES[release.format],
        whole=attributes[-1],
        attributes=attributes[:-1],
        cells=cells_of(lines, counts, attributes[:-1]),
        is_expanded=lines.is_expanded,
        count=COUNT,
        options=options_of(release.policy),
        certificate=write_certificate(release.certificate),
    )


@cache
def _template() -> jinja2.Template:
    return template("private.html", class_bar=class_bar, listed=list_names, rounded=round_for_people)


# ---- the promise -----------------------------------------------------------------------------------


def summarize(privacy: Privacy) -> ReportSummary:
    if not privacy.is_secret:
        return ReportSummary(
            "bad",
            "Not private: the noise can be repeated.",
            f"This release was made with a seed ({privacy.randomness}), for a test. Whoever knows or guesses the seed "
            "can take the noise away. Do not publish it.",
        )
    return ReportSummary(
        "good",
        f"Differentially private, epsilon {decimal(privacy.epsilon)}.",
        "Whether or not any one row was in the table, every outcome was nearly as likely: the chances differ by a "
        f"factor of at most {factor(privacy.epsilon)}.",
    )


def decimal(number: Fraction) -> str:
    """An exact fraction as people write it, if a few digits say it.

    >>> decimal(Fraction(1, 10)), decimal(Fraction(1, 3))
    ('0.1', '1/3')
    """
    text = f"{float(number):.12g}"
    return text if Fraction(text) == number else str(number)


def round_for_people(number: Fraction) -> str:
    """A fraction for people: as it is if a few digits say it, else about. The certificate has it exactly.

    >>> [round_for_people(number) for number in (Fraction(1, 10), Fraction(4194304000, 231), Fraction(99, 700))]
    ['0.1', 'about 18,157,160', 'about 0.1414']
    """
    text = decimal(number)
    if "/" not in text:
        return text
    value = float(number)
    return f"about {value:,.0f}" if 1000 <= abs(value) < 1e15 else f"about {value:.4g}"


def factor(epsilon: Fraction) -> str:
    """What epsilon allows a chance to change by.

    >>> factor(Fraction(1)), factor(Fraction(1, 100)), factor(Fraction(100))
    ('2.72', '1.01', '2.69e+43')
    """
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else f"e to the power of {decimal(epsilon)}"


def odds(epsilon: Fraction) -> str:
    """How sure somebody can become who was in two minds.

    >>> odds(Fraction(1)), odds(Fraction(1, 10)), odds(Fraction(50))
    ('73 %', '52 %', '> 99.9 %')
    """
    percent = 100 / (1 + math.exp(-min(float(epsilon), 700.0)))
    return "> 99.9 %" if percent > 99.9 else f"{percent:.1f} %" if percent > 99 else f"{percent:.0f} %"


@dataclass(frozen=True, slots=True)
class Noise:
    """How far a count was moved, before negative ones were mended: the usual distance, and one that 95 % keep within."""

    deviation: float
    within: int

    @classmethod
    def of(cls, privacy: Privacy) -> Noise:
        """Of discrete Laplace noise: P(z) is proportional to exp(-|z| / scale)."""
        scale = float(Fraction(privacy.ledger[-1]["scale"]))
        ratio = math.exp(-1 / scale)
        within = (
            math.ceil(scale * math.log(40 / (1 + ratio))) - 1
        )  # P(|z| > t) = 2 ratio^(t + 1) / (1 + ratio)
        return cls(math.sqrt(2 * ratio) / -math.expm1(-1 / scale), max(within, 0))


# ---- the ledger ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws that follow each other and are alike."""

    what: str
    of: str
    mechanism: str
    share: Fraction
    scale: Fraction
    n: int
    part: float
    """Of epsilon, that all of them cost."""


def draws_of(privacy: Privacy) -> list[Draws]:
    found = []
    for (what, of, mechanism, share, scale), alike in groupby(privacy.ledger, _key):
        n = len(list(alike))
        part = float(n * Fraction(share) / privacy.epsilon)
        found.append(Draws(what, of, mechanism, Fraction(share), Fraction(scale), n, part))
    return found


def _key(draw: Mapping[str, Any]) -> tuple[str, ...]:
    of = f"about {draw['result']:,}" if "result" in draw else draw.get("of", "")
    return draw["draw"], of, draw["mechanism"], draw["share"], draw["scale"]


@dataclass(frozen=True, slots=True)
class DrawCost:
    """What one kind of draw costs in all."""

    name: str
    share: Fraction
    part: float


def parts_of(privacy: Privacy) -> list[DrawCost]:
    """What epsilon was spent on, and what is left."""
    spent = dict.fromkeys(KINDS, Fraction(0))
    for draw in privacy.ledger:
        spent[draw["draw"]] += Fraction(draw["share"])
    whole = {**{KINDS[what]: share for what, share in spent.items()}, UNSPENT: privacy.unspent}
    return [DrawCost(name, share, float(share / privacy.epsilon)) for name, share in whole.items() if share]


def budget_bar(privacy: Privacy) -> Markup:
    """Epsilon as one bar, draw by draw."""
    width, height, x, pieces = 660.0, 34.0, 0.0, []
    shares = [(KINDS[draw["draw"]], draw.get("of", ""), Fraction(draw["share"])) for draw in privacy.ledger]
    if privacy.unspent > 0:
        shares.append((UNSPENT, "", privacy.unspent))
    for name, of, share in shares:
        long = width * float(share / privacy.epsilon)
        about = tag(
            "title",
            f"{name}{': ' + shorten(of, 80) if of else ''}, {round_for_people(share)} of {decimal(privacy.epsilon)}",
        )
        pieces.append(tag("rect", about, x=x, width=long, height=height, class_=f"part {name.split()[0]}"))
        x += long
    told = ", ".join(f"{part.name} {100 * part.part:.0f} %" for part in parts_of(privacy))
    frame = tag("rect", width=width, height=height, class_="level-frame")
    return tag(
        "svg", *pieces, frame, viewBox=f"-1 -1 {width + 2:g} {height + 2:g}", role="img",
        aria_label=f"Epsilon by kinds of draws: {told}; a table follows.", class_="budget",
    )  # fmt: skip


# ---- the counts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PieceCounts:
    """One piece of a cut, with the counts of each class."""

    label: str
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class AttributeCounts:
    """An attribute and the pieces of its cut; the last of all is the table as a whole."""

    name: str
    pieces: tuple[PieceCounts, ...]

    @property
    def most(self) -> int:
        return max((piece.total for piece in self.pieces), default=0)

    @property
    def shown(self) -> tuple[PieceCounts, ...]:
        return self.pieces[:MOST_PIECES]

    @property
    def labels(self) -> list[str]:
        return [piece.label for piece in self.pieces]


def attributes_of(lines: GridLines, recoding: Cuts, counts: Ints) -> list[AttributeCounts]:
    """The counts of each class in each piece of each attribute, and of the whole."""
    grid = counts.reshape(lines.shape)
    found = []
    for a, axis in enumerate(recoding.axes):
        others = tuple(b for b in range(len(lines.shape) - 1) if b != a)
        labels = recoding.piece_labels(a).fill_null("missing").to_pylist()
        sums = grid.sum(axis=others)
        pieces = (PieceCounts(label, _few(row)) for label, row in zip(labels, sums.tolist(), strict=True))
        found.append(AttributeCounts(axis.attribute.name, tuple(pieces)))
    whole = PieceCounts("all cells", _few(counts.sum(axis=0).tolist()))
    return [*found, AttributeCounts(lines.target, (whole,))]


def _few(counts: Sequence[int]) -> tuple[int, ...]:
    """The counts of the first classes, and of all others together."""
    if len(counts) <= MOST_CLASSES + 1:
        return tuple(counts)
    return (*counts[:MOST_CLASSES], sum(counts[MOST_CLASSES:]))


def _shown_classes(classes: Sequence[str]) -> list[str]:
    if len(classes) <= MOST_CLASSES + 1:
        return list(classes)
    return [*classes[:MOST_CLASSES], f"{len(classes) - MOST_CLASSES:,} other classes"]


def class_bar(piece: PieceCounts, most: int) -> Markup:
    """The counts of a piece, class by class, as one bar; the longest bar is ``most`` long."""
    width, x, parts = 240.0, 0.0, []
    for c, n in enumerate(piece.counts):
        long = width * n / max(most, 1)
        parts.append(tag("rect", tag("title", f"{n:,}"), x=x, width=long, height=14, class_=f"class c{c}"))
        x += long
    frame = tag("rect", width=x, height=14, class_="level-frame")
    told = f"{piece.total:,} in all: " + ", ".join(f"{n:,}" for n in piece.counts)
    return tag("svg", *parts, frame, viewBox="-1 -1 242 16", role="img", aria_label=told, class_="classes")


@dataclass(frozen=True, slots=True)
class LargestCells:
    """The cells with the largest counts: the labels of the attributes that were cut, and the counts."""

    names: list[str]
    lines: list[tuple[list[str], tuple[int, ...]]]


def cells_of(lines: GridLines, counts: Ints, attributes: Sequence[AttributeCounts]) -> LargestCells:
    total = counts.sum(axis=1)
    largest = np.argsort(-total, kind="stable")[:MOST_CELLS]
    places = np.stack(np.unravel_index(largest, lines.shape[:-1]), axis=1)
    cut = [a for a, attribute in enumerate(attributes) if len(attribute.pieces) > 1]
    return LargestCells(
        [attributes[a].name for a in cut],
        [
            ([attributes[a].pieces[int(place[a])].label for a in cut], _few(counts[cell].tolist()))
            for cell, place in zip(largest, places, strict=True)
            if total[cell]
        ],
    )


__all__ = ["render_counts"]
