"""What was lost: how much of its column a published cell leaves open, column by column.

These are figures of the run, from the certificate: how many values a column has is not told by the release alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sfumato.errors import number_of
from sfumato.evaluation.loss import ENTROPY_LOSS, QUERY_ERROR, by_column
from sfumato.recoding.loss import worst_first
from sfumato.report.svg import tag

BAR = 220.0
"""Length of the bar of a column that tells nothing."""


@dataclass(frozen=True, slots=True)
class ColumnLoss:
    """A column: its NCP, and the other measures of it that an evaluation found."""

    name: str
    ncp: float
    others: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class LossSummary:
    """The NCP of a release and of its columns, those that lost most first; ``others`` are further measures."""

    ncp: float
    columns: tuple[ColumnLoss, ...]
    others: tuple[str, ...]
    n_rows: int = 0
    n_left_out: int = 0

    @property
    def left_out(self) -> str:
        """How many rows were left out, and what that costs; nothing if none were."""
        if not self.n_left_out:
            return ""
        whole = self.n_rows + self.n_left_out
        of_rows = number_of(self.n_left_out, "row")
        were = "was" if self.n_left_out == 1 else "were"
        return (
            f"{of_rows} of {whole:,} ({percent(self.n_left_out / whole)}) {were} left out, so that the others stay "
            f"finer. All cells of a row that is left out count as lost below: "
            f"{percent(self.n_left_out / (whole * self.ncp) if self.ncp else 0)} of what was lost in all."
        )

    @property
    def sentence(self) -> str:
        """The figure in words."""
        worst = self.columns[0]
        told = f"On average, a published cell leaves open {percent(self.ncp)} of its column"
        if len(self.columns) == 1 or worst.ncp == 0:
            return f"{told}."
        return f"{told}; of {worst.name}, which lost most, {percent(worst.ncp)}."


def loss_of(figures: Mapping[str, Any], *, n_rows: int = 0, n_left_out: int = 0) -> LossSummary | None:
    """What the certificate says was lost; None if it says nothing of this kind.

    So many rows were published, and so many left out.
    """
    try:
        told = figures["loss"]
        columns = worst_first({str(name): float(value) for name, value in told["columns"].items()})
        ncp = float(told["ncp"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    measures = _measures_of(figures)
    known = {what: found for what in (ENTROPY_LOSS, QUERY_ERROR) if (found := by_column(measures, what))}
    lines = [
        ColumnLoss(name, value, tuple(found.get(name) for found in known.values()))
        for name, value in columns.items()
    ]
    return LossSummary(ncp, tuple(lines), tuple(known), n_rows, n_left_out) if lines else None


def _measures_of(figures: Mapping[str, Any]) -> Mapping[str, float]:
    """The measures of an evaluation, if the certificate has one."""
    found = figures.get("utility")
    measures = found.get("measures") if isinstance(found, Mapping) else None
    return measures if isinstance(measures, Mapping) else {}


def percent(share: float) -> str:
    """A share in per cent; 0 and 100 only where it is nothing or all.

    >>> percent(0.25), percent(0.00001), percent(0.99999), percent(0), percent(1)
    ('25.0 %', '0.1 %', '99.9 %', '0 %', '100 %')
    """
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    return f"{min(max(100 * share, 0.1), 99.9):.1f} %"


def draw_loss(column: ColumnLoss) -> Markup:
    """A bar as long as the share of the column that a cell leaves open, within the whole column."""
    lost = BAR * min(max(column.ncp, 0.0), 1.0)
    return tag(
        "svg",
        tag("rect", width=BAR - lost, x=lost, height=14, class_="level exact"),
        tag("rect", width=lost, height=14, class_="level narrowed"),
        tag("rect", width=BAR, height=14, class_="level-frame"),
        viewBox=f"-1 -1 {BAR + 2:g} 16",
        role="img",
        aria_label=f"{percent(column.ncp)} of the column is left open",
        class_="levels",
    )
