"""The page of ``sfumato risk --out FILE.html``."""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup

from sfumato.release.certificate import this_version
from sfumato.release.certificate.claims import one_in, percent_of
from sfumato.report.page import ReportSummary, template
from sfumato.report.svg import tag
from sfumato.risk.result import Risk

WIDTH = 300.0


def render_risk(risk: Risk) -> str:
    """The figures as a page, with a bar for each column's part in minimal sample uniques."""
    columns = () if risk.suda is None else risk.suda.ranked
    return _template().render(
        kind="Risk of re-identification",
        version=this_version(),
        summary=_summarize(risk),
        risk=risk,
        columns=columns,
    )


def _summarize(risk: Risk) -> ReportSummary:
    who = "prosecutor" if risk.journalist is None else "journalist"
    return ReportSummary(
        "none",
        f"Largest risk, the {who}'s: {one_in(risk.largest)}",
        "For the owner of the data: the figures say how far people could be found, not whether that is acceptable.",
    )


def draw_part(part: float | None) -> Markup:
    """A share as a bar within the whole."""
    return tag(
        "svg",
        tag("rect", width=WIDTH, height=12, class_="level rest"),
        tag("rect", width=WIDTH * (part or 0.0), height=12, class_="bar"),
        tag("rect", width=WIDTH, height=12, class_="level-frame"),
        viewBox=f"-1 -1 {WIDTH + 2:g} 14",
        role="img",
        aria_label="no score" if part is None else percent_of(part),
        class_="part",
    )


@cache
def _template() -> jinja2.Template:
    return template(
        "risk.html",
        percent=lambda part: "no score" if part is None else percent_of(part),
        draw_part=draw_part,
    )
