"""The report of a private risk-utility release: what was promised, how rows were drawn, and which boxes came of it.

Everything is computed from the published rows and the certificate: it can tell nothing that they do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import jinja2
import numpy as np

from sfumato.errors import InternalError
from sfumato.policy.options.risk_utility import RiskUtilityOptions
from sfumato.policy.output import bound_names
from sfumato.release.certificate import Privacy
from sfumato.release.folder import RELEASES
from sfumato.report.diffgen import decimal, factor, odds
from sfumato.report.page import ReportedRelease, ReportSummary, options_of, template, write_certificate
from sfumato.table.stored import distinct_lines

MOST_BOXES = 12
"""So many are shown one by one."""


def render_sampled(release: ReportedRelease) -> str:
    """The report of a private risk-utility release, as HTML."""
    options, privacy = release.policy.options_for(RiskUtilityOptions), release.certificate.privacy
    if options.private is None or privacy is None:
        raise InternalError("Rows are drawn by private risk-utility alone.")
    return _template().render(
        release=release,
        privacy=privacy,
        sampling=privacy.sampling,
        claims=release.certificate.claims,
        summary=summarize(privacy, release.certificate.claims.rows),
        epsilon=decimal(privacy.epsilon),
        delta=f"{float(privacy.delta):.3g}",
        asked=f"{float(options.private.delta):.3g}",
        factor=factor(privacy.epsilon),
        odds=odds(privacy.epsilon),
        boxes=boxes_of(release),
        file=RELEASES[release.format],
        options=options_of(release.policy),
        certificate=write_certificate(release.certificate),
    )


@cache
def _template() -> jinja2.Template:
    return template("sampled.html")


def summarize(privacy: Privacy, n_rows: int) -> ReportSummary:
    if not privacy.is_secret:
        return ReportSummary(
            "bad",
            "Not private: the draws can be repeated.",
            f"This release was made with a seed ({privacy.randomness}), for a test. Whoever knows or guesses the seed "
            "can tell which rows were drawn. Do not publish it.",
        )
    numbers = f"epsilon {decimal(privacy.epsilon)}, delta {float(privacy.delta):.3g}"
    if not n_rows:
        return ReportSummary(
            "none", f"Differentially private, {numbers}, and empty.", "No box was drawn often enough."
        )
    return ReportSummary(
        "good",
        f"Differentially private, {numbers}.",
        "Whether or not any one row was in the table, every outcome was nearly as likely: the chances differ by a "
        f"factor of at most {factor(privacy.epsilon)}, but for outcomes of a chance of delta.",
    )


@dataclass(frozen=True, slots=True)
class FrequentBoxes:
    """The boxes that most rows have: labels and number of rows."""

    names: list[str]
    lines: list[tuple[list[str], int]]


def boxes_of(release: ReportedRelease) -> FrequentBoxes:
    names = [
        name
        for attribute in release.policy.schema.quasi_identifiers
        for name in _shown(release, attribute.name)
    ]
    lines, count = distinct_lines(release.rows, names)
    largest = np.argsort(-count, kind="stable")[:MOST_BOXES].tolist()
    cells = [lines.column(name).to_pylist() for name in names]
    found = [([_text(own[at]) for own in cells], int(count[at])) for at in largest]
    return FrequentBoxes(names, found)


def _shown(release: ReportedRelease, name: str) -> list[str]:
    """The label of a column, or its bounds where there is none."""
    there = release.rows.column_names
    return [name] if name in there else list(bound_names(name))


def _text(cell: object) -> str:
    return "missing" if cell is None or cell == "" else str(cell)
