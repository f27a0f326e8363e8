"""The page of the owner's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import jinja2
import numpy as np

from sfumato.methods.lost.reasons import LostColumn, explain_losses
from sfumato.policy.output import Form
from sfumato.policy.schema import Role
from sfumato.release.release import Release
from sfumato.report.loss import loss_of, percent
from sfumato.report.owner.compared import ComparedNodes, compare_columns
from sfumato.report.owner.matched import check_table, group_published
from sfumato.report.owner.pictures import (
    describe_numbers,
    draw_after,
    draw_before,
    draw_lost,
    draw_nodes,
    legend_of,
)
from sfumato.report.page import ReportSummary, template
from sfumato.table.source import Source

MOST_COLUMNS = 60
LEAST_SHARE = 0.0005
"""Parts of a loss that are a smaller share of the column have no line of their own."""


@dataclass(frozen=True, slots=True)
class Losses:
    """What the columns lost, and the mean of it over all of them."""

    columns: Sequence[LostColumn]

    @property
    def ncp(self) -> float:
        return float(np.mean([column.ncp for column in self.columns]))

    @property
    def enough(self) -> str:
        return self.columns[0].enough

    @property
    def legend(self) -> list[tuple[str, str]]:
        """What the shades of the bars mean."""
        return legend_of(self.columns)


def render_owner(release: Release, source: Source) -> str:
    """The owner's report of a release and the raw table that it was made from, as HTML.

    Raises where the table does not fit the release.
    """
    check_table(release, source)
    policy, claims = release.policy, release.certificate.claims
    form = policy.method.form
    losses = left_out = told = None
    if form is Form.GROUPS:
        grouped = group_published(release, source)
        losses = Losses(explain_losses(source, policy, grouped))
        left_out = np.setdiff1d(np.arange(source.n_rows), grouped.rows)
        told = loss_of(release.certificate.figures, n_rows=claims.rows, n_left_out=release.n_left_out)
    compared = list(compare_columns(release, source, left_out))
    schema = policy.schema
    return _template().render(
        release=release,
        kind="Owner's report",
        summary=_warn(release),
        is_private=policy.is_private,
        is_grouped=form is Form.GROUPS,
        n_raw=source.n_rows,
        n_published=claims.rows if claims.counted is None else claims.counted,
        n_people=claims.people,
        n_left_out=release.n_left_out,
        left_out=told.left_out if told else "",
        losses=losses,
        columns=compared[:MOST_COLUMNS],
        n_more=max(len(compared) - MOST_COLUMNS, 0),
        removed=[attribute for attribute in schema if not attribute.role.is_published],
        passed=[attribute for attribute in schema.published if attribute.role is not Role.QUASI_IDENTIFIER],
    )


def _warn(release: Release) -> ReportSummary:
    beside = (
        " It shows exact counts beside the noisy ones of the release: whoever sees both has no differential privacy left."
        if release.policy.is_private
        else ""
    )
    return ReportSummary(
        "bad",
        "For the owner alone. Do not publish this page.",
        "It holds facts of the raw table: how many rows have a value, what was left out, and why. It is no part of the "
        f"release, and must not be put beside it.{beside}",
    )


@cache
def _template() -> jinja2.Template:
    return template(
        "owner.html",
        percent=percent,
        draw_nodes=draw_nodes,
        draw_before=draw_before,
        draw_after=draw_after,
        remark=describe_numbers,
        lost_bar=draw_lost,
        told=_list_parts,
        is_nodes=lambda compared: isinstance(compared, ComparedNodes),
        has_levels=lambda nodes: any(word.startswith("level") for word, _ in nodes.levels),
    )


def _list_parts(column: LostColumn) -> list[str]:
    """The parts of what a column lost, the largest first."""
    parts = sorted(column.parts, key=lambda part: -part.share)
    return [f"{percent(part.share)} {part.words}" for part in parts if part.share >= LEAST_SHARE]
