"""What the owner should know of a release in a sentence each: how much is left, and what to try for more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sfumato.errors import number_of
from sfumato.policy.document import Policy
from sfumato.policy.output import GRID, Form
from sfumato.recoding.loss import write_share
from sfumato.release.certificate import Claims, percent
from sfumato.release.certificate.claims import PEOPLE_COUNTED
from sfumato.report.loss import loss_of
from sfumato.verify.cells import Detail

ADVICE: Mapping[Form, str] = {
    Form.GROUPS: "ask for less, give hierarchies more levels, or drop another quasi-identifier",
    Form.BOXES: "raise utility-at-least, give smaller weights, or hierarchies with more levels",
}
"""How to keep more of a column, by what the rows of a release are."""


def remarks_of(claimed: Claims, details: Mapping[str, Detail]) -> Iterator[str]:
    """What the risk is, and how much published rows tell; all of it follows from them."""
    if claimed.risk is not None:
        yield f"risk of re-identification: {claimed.risk.words('rows' if claimed.unit is None else PEOPLE_COUNTED)}"
    yield f"cells of the quasi-identifiers: {claimed.cells}"
    if hidden := _find_hidden(details):
        columns = ", ".join(f"{name} {share}" for name, share in hidden.items())
        yield f"* nearly everywhere (share of the rows): {columns}"
    shared = {name: n_rows for name, n_rows in claimed.one_value.items() if n_rows}
    for name, n_rows in shared.items():
        yield (
            f"{percent(n_rows, claimed.rows)} of the rows stand in groups that share one value of {name!r}: "
            "no diversity of it is required"
        )
    if (alone := claimed.alone_by_passed) is not None:
        are = "is" if alone.rows == 1 else "are"
        yield (
            f"{number_of(alone.rows, 'row')} ({percent(alone.rows, claimed.rows)}) {are} alone by {alone.words}: "
            "no other row has the same there"
        )
    if others := ", ".join(repr(name) for name in claimed.one_value if name not in shared):
        yield f"no group shares one value of {others}, though no diversity is required there"


def tell_left_out(claimed: Claims, policy: Policy) -> Iterator[str]:
    """How many rows were left out, where the policy allows it; which ones, and their values, nobody is told."""
    if not policy.leaves_rows_out:
        return
    whole = claimed.rows + claimed.suppressed
    share = percent(claimed.suppressed, whole)
    yield f"left out: {claimed.suppressed:,} of {whole:,} rows ({share}; at most {policy.suppress} may be)"


def notices_of(
    claimed: Claims, details: Mapping[str, Detail], form: Form, reason: Callable[[str], str] | None = None
) -> Iterator[str]:
    """What the owner should know of a release that tells little, and what to try; ``reason`` says why a column is so."""
    hidden = _find_hidden(details)
    if claimed.groups == 1 and claimed.rows > 1:
        yield f"All {claimed.rows:,} rows are one group: the quasi-identifiers tell nobody apart."
    for name, share in hidden.items():
        yield f"{name!r} is * in {share} of the rows{': ' + reason(name) if reason else ''}."
    if hidden:
        yield f"To keep more of {'it' if len(hidden) == 1 else 'them'}, {ADVICE[form]}."


def losses_of(figures: Mapping[str, Any]) -> Iterator[str]:
    """What each column lost, where it is not known why: the rows are on disk or on a cluster."""
    found = loss_of(figures)
    if found is None:
        return
    for column in found.columns:
        yield f"{column.name} {write_share(column.ncp)}"
    yield "why is said where all rows are in memory; sfumato report says it of a table that fits"


def tell_overridden(policy: Policy) -> str | None:
    """That the tasks of the workload decide nothing, where another criterion or the risk of rows takes their place."""
    if not policy.method.overrides(policy.workload):
        return None
    if policy.method.is_row_by_row:
        return "Boxes are chosen by risk and utility: the tasks of the workload are measured by evaluate, and not served."
    return "The criterion of the method decides in place of the tasks of the workload, which are measured and not served."


def advise_bounds(policy: Policy) -> str | None:
    """To declare bounds, where slices of a number or date come from the table; None if none do."""
    names = [attribute.name for attribute in policy.ordered_without_bounds]
    if policy.published_numbers.kind != GRID or not names:
        return None
    listed, one = ", ".join(map(repr, names)), len(names) == 1
    return (
        f"{listed} {'has' if one else 'have'} no declared bounds, so the ends of {'its' if one else 'their'} ranges come "
        "from the least and greatest value of the table, rounded outwards, and one extreme value makes every range wide; "
        "declare bounds."
    )


def _find_hidden(details: Mapping[str, Detail]) -> dict[str, str]:
    """The columns that are ``*`` nearly everywhere, and in how many rows, in per cent."""
    return {
        name: percent(detail.nothing, detail.rows) for name, detail in details.items() if detail.is_hidden
    }
