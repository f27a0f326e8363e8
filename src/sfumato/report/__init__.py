"""The report of a release for people: one HTML file that needs nothing else, made from the release alone.

Nothing here looks at the table that the release was made from. The same release gives the same bytes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import jinja2
import numpy as np

from sfumato.errors import number_of
from sfumato.policy.output import Form
from sfumato.policy.requirements import KAnonymity, Promise
from sfumato.policy.schema import Role, Schema
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.tree import Recoding
from sfumato.release.certificate.claims import PEOPLE_COUNTED, one_in
from sfumato.report.distributions import describe_omissions, distributions_of, draw_distribution
from sfumato.report.groups import (
    LEVELS,
    REMOVED,
    AttributeFacts,
    Counted,
    PublishedGroups,
    attributes_of,
    details_of,
    groups_of,
    has_missing_above,
)
from sfumato.report.loss import draw_loss, loss_of, percent
from sfumato.report.page import (
    ReportedRelease,
    ReportSummary,
    hidden_of,
    list_names,
    options_of,
    share,
    template,
    write_certificate,
)
from sfumato.report.partition_plot import Plane, plane_of
from sfumato.report.pictures import bars_of, histogram, level_bar, paint
from sfumato.report.remarks import advise_bounds, tell_overridden
from sfumato.report.rests import Rest, rest_of
from sfumato.report.rows import View, view_of
from sfumato.report.utility import (
    draw_scores,
    draw_selection,
    name_of,
    published_statistics,
    purpose,
    selections_of,
    significance,
    utility_of,
)
from sfumato.verify.cells import Detail, FoundGroups


def render(release: ReportedRelease, found: FoundGroups | None = None) -> str:
    """The report of a release, as HTML.

    ``found`` are the groups that ``verify`` found in its rows; without them, or where rows form no groups, they are
    looked at here.
    """
    form = release.policy.method.form
    if form is Form.GROUPS:
        return render_groups(release, found)
    module, name = PAGES[form]
    page: str = getattr(importlib.import_module(f"sfumato.report.{module}"), name)(release)
    return page


def render_groups(release: ReportedRelease, found: FoundGroups | None = None) -> str:
    """The report of a release whose rows form groups, as HTML."""
    view, claims = view_of(release.rows, release.policy, release.format, found), release.certificate.claims
    recoding = release.recoding if isinstance(release.recoding, Recoding | Cuts) else None
    recoding = recoding if view.one_in == 1 else None  # it has more boxes than groups were looked at
    groups = groups_of(view.cells, release.policy, recoding, view.weight)
    promises = promises_of(release)
    sizes = Sizes.of(release, view, groups)
    details = view.details or details_of(release.policy, view.cells, view.weight)
    facts = _facts(release, view, groups, details)
    plane = plane_of(groups.leaves) if groups.leaves else None
    bars = bars_of(groups.size)
    selections = selections_of(release.certificate.figures)
    return _template().render(
        release=release,
        claims=claims,
        summary=summarize(promises, sizes, claims.people),
        promises=promises,
        groups=groups,
        people_counted=PEOPLE_COUNTED,
        sizes=sizes,
        note=view.note,
        is_too_large=release.recoding is not None and groups.leaves is None and view.is_large,
        bars=bars,
        histogram=histogram(bars),
        facts=[fact for fact in facts if fact.happened != REMOVED],
        removed=[fact for fact in facts if fact.happened == REMOVED],
        hidden=hidden_of(details),
        missing=[fact for fact in facts if fact.n_missing or fact.n_hidden],
        plane=plane,
        painting=paint(plane) if plane else None,
        caption=caption(plane, groups, release.policy.schema) if plane else "",
        utility=utility_of(release.certificate.figures),
        loss=loss_of(release.certificate.figures, n_rows=claims.rows, n_left_out=claims.suppressed),
        advice=advise_bounds(release.policy),
        overridden=tell_overridden(release.policy),
        rest=find_rest(release, recoding),
        has_list=recoding is not None and recoding.has_lists,
        selections=selections,
        most_returned=max((selection.returned for selection in selections), default=0),
        distributions=distributions_of(release.policy, view, groups),
        n_published=len(release.policy.schema.published),
        statistics=published_statistics(release.policy.statistics),
        gaps=list(gaps(release, facts)),
        purposes=[purpose(task) for task in release.policy.workload],
        options=options_of(release.policy),
        certificate=write_certificate(release.certificate),
        LEVELS=LEVELS,
    )


def find_rest(release: ReportedRelease, recoding: Recoding | Cuts | None) -> Rest | None:
    """A label that stands for a rest, unless labels say themselves what they exclude."""
    if release.policy.excludes_in_labels or not isinstance(recoding, Recoding):
        return None
    return rest_of(recoding)


@cache
def _template() -> jinja2.Template:
    return template(
        "report.html",
        level_bar=level_bar,
        detail=detail,
        scores=draw_scores,
        selection_bar=draw_selection,
        loss_bar=draw_loss,
        percent=percent,
        one_in=one_in,
        model=name_of,
        significance=significance,
        draw=draw_distribution,
        remark=describe_omissions,
    )


def promises_of(release: ReportedRelease) -> list[Promise]:
    """What each requirement promises, beside the figure of the worst group."""
    pairs = zip(release.policy.requirements, release.certificate.claims.requirements, strict=True)
    if release.certificate.claims.people is not None:
        return [requirement.promise_of_people(claim.achieved) for requirement, claim in pairs]
    return [requirement.promise(claim.achieved) for requirement, claim in pairs]


def detail(fact: AttributeFacts) -> str:
    """The rows of each level of detail that there is, in words."""
    levels = fact.levels or ()
    shares = [f"{name} {share(rows, sum(levels))}" for name, rows in zip(LEVELS, levels, strict=True) if rows]
    return " · ".join(shares)


# ---- sentences -------------------------------------------------------------------------------------


def summarize(promises: list[Promise], sizes: Sizes, people: int | None = None) -> ReportSummary:
    """Do all promises hold, and what does that mean? Groups may count people, of whom there are so many."""
    n, n_groups, smallest = sizes.n_rows, sizes.n_groups, sizes.smallest
    others = f"at least {smallest - 1:,} others" if smallest > 2 else "at least one other"
    shared = (
        f"In each of the {n_groups:,} groups, every row shares its quasi-identifiers with {others}."
        if smallest > 1
        else "At least one row is alone with its quasi-identifiers."
    )
    if not promises:
        return ReportSummary(
            "none",
            "Nothing is promised.",
            f"The policy requires nothing, so this release of {number_of(n, 'row')} protects nobody by promise. {shared}",
        )
    failing = sum(not promise.holds for promise in promises)
    if failing:
        return ReportSummary(
            "bad",
            f"{failing} of {len(promises)} promises do not hold.",
            "Do not publish this release; see below which figure falls short.",
        )
    every = {1: "The promise holds", 2: "Both promises hold"}.get(
        len(promises), f"All {len(promises)} promises hold"
    )
    if n_groups == 1 and n > 1:
        return ReportSummary(
            "none",
            f"{every}, but all rows are one group.",
            f"The quasi-identifiers are the same for all {number_of(n, 'row')}: they tell nobody apart.",
        )
    if people is not None:
        of = number_of(people, "person", "people")
        told = f"Groups count people: {number_of(n, 'row')} of {of} are in {number_of(n_groups, 'group')}."
        return ReportSummary("good", f"{every} for {'all ' if people > 1 else ''}{of}.", told)
    return ReportSummary("good", f"{every} for {'all ' if n > 1 else ''}{number_of(n, 'row')}.", shared)


def caption(plane: Plane, groups: PublishedGroups, schema: Schema) -> str:
    """What the picture of the partition shows, and what it leaves out."""
    told = _caption(plane, groups, schema)
    sides = [scale.name for scale in (plane.x, plane.y) if scale is not None]
    if groups.leaves is None or not has_missing_above(groups.leaves, sides):
        return told
    return (
        f"{told} Rows whose value may be missing, as in [20, 24] or missing, are drawn where their range is."
    )


def _caption(plane: Plane, groups: PublishedGroups, schema: Schema) -> str:
    n, n_groups = len(plane.rectangles), len(groups.size)
    if plane.is_whole and n == n_groups:
        return f"Each of the {n:,} rectangles holds one group: the picture is the whole partition."
    if plane.is_whole:
        return f"The {n:,} rectangles hold {n_groups:,} groups; the narrowest are drawn together."
    sides = [scale.name for scale in (plane.x, plane.y) if scale is not None]
    others = [name for name in schema.names(Role.QUASI_IDENTIFIER) if name not in sides]
    if plane.is_flat:
        left_out = "Narrow groups are drawn together. "
    elif others:
        hidden = f"The picture leaves out {list_names(others)}: "
        left_out = f"{hidden}groups that differ only there lie on top of each other. "
    else:
        left_out = "Labels may cover values of other groups, so that groups lie on top of each other. "
    return (
        f"{left_out}So {n:,} rectangles stand for {n_groups:,} groups. A line is drawn where many groups end. "
        "The rows of a group that reaches across a line are divided between both sides, in proportion: how many "
        "rows a rectangle has is an estimate, and no rectangle is a group."
    )


def gaps(release: ReportedRelease, facts: list[AttributeFacts]) -> Iterator[tuple[str, str]]:
    """What the release does not protect from: a heading and a sentence each."""
    sensitive = release.policy.schema.names(Role.SENSITIVE)
    diverse = {requirement.of for requirement in release.policy.requirements}
    bare = list_names([name for name in sensitive if name not in diverse])
    others = list_names([fact.attribute.name for fact in facts if fact.attribute.role is Role.OTHER])
    if bare:
        shares = "where all rows of a group have the same value, whoever finds the group learns it"
        yield "Sensitive values that a whole group shares", f"No diversity is required of {bare}: {shares}."
    if sensitive:
        yield "Sensitive values that are known already", KNOWN_ALREADY
    if release.policy.statistics:
        yield "Statistics of groups", STATISTICS[release.policy.statistics]
    as_it_is = f" Published as it is, with the role other: {others}." if others else ""
    yield "Quasi-identifiers that are not listed", UNLISTED + as_it_is
    yield from GAPS.items()
    counts_people = release.certificate.claims.people is not None
    yield "People with several rows", PEOPLE_ARE_COUNTED if counts_people else ROWS_ARE_COUNTED


KNOWN_ALREADY = (
    "They are published as they are. Whoever knows one of a person, such as an exact amount, "
    "can find the row by it."
)
_EXTREME = (
    "The least and the greatest value of a group are exact values of somebody in it. Nobody in the group can be "
    "told from the others by them, but whoever knows who is oldest, say, knows that person's age."
)
_MEAN = "From the mean of a group, whoever knows the values of all others in it learns the last one."
STATISTICS = {("range",): _EXTREME, ("mean",): _MEAN, ("range", "mean"): f"{_EXTREME} {_MEAN}"}
UNLISTED = "What others can know of a person must have that role in the policy, or it singles out rows within a group."
GAPS = {
    "Background knowledge": (
        "Whoever knows more of a person than the quasi-identifiers can rule out rows of the group: who has moved "
        "away, which disease a neighbour surely does not have."
    ),
    "Knowledge of the method": (
        "Groups are as small as the requirements allow. From the splits that were not made, minimality and "
        "downcoding attacks can sometimes infer more than the boxes say."
    ),
    "Several releases of the same people": (
        "Each release keeps its promises alone. Two that overlap can be compared, and groups can then be narrowed "
        "down to few rows."
    ),
}
ROWS_ARE_COUNTED = "Groups count rows. If a person has many, a group can consist of that person alone."
PEOPLE_ARE_COUNTED = (
    "Groups count people, but nothing hides that rows are of one person if their published columns agree in "
    "something rare."
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows and groups there are, and how large the groups are."""

    n_rows: int
    n_groups: int
    smallest: int
    median: float
    mean: float
    largest: int

    @classmethod
    def of(cls, release: ReportedRelease, view: View, groups: PublishedGroups) -> Sizes:
        size, n_groups = groups.size, len(groups.size)
        smallest, mean = int(size.min()), float(size.mean())
        if view.one_in > 1:  # the certificate knows better than some of the groups
            claims = release.certificate.claims
            n_groups, mean = claims.groups, claims.rows / max(claims.groups, 1)
            pairs = zip(release.policy.requirements, claims.requirements, strict=True)
            known = [int(claim.achieved) for item, claim in pairs if isinstance(item, KAnonymity)]
            smallest = min([smallest, *known])
        return cls(view.n_rows, n_groups, smallest, float(np.median(size)), mean, int(size.max()))


def _facts(
    release: ReportedRelease, view: View, groups: PublishedGroups, details: Mapping[str, Detail]
) -> list[AttributeFacts]:
    known = {name: Counted(view.n_distinct.get(name), n) for name, n in view.missing.items()}
    facts = attributes_of(release.policy, view.cells, view.rows, groups, details, known)
    if view.one_in == 1:
        return facts
    return [  # of some groups: their labels are not all, and their rows stand for more
        replace(fact, n_distinct=None, n_missing=view.one_in * fact.n_missing)
        if fact.attribute.role is Role.QUASI_IDENTIFIER
        else fact
        for fact in facts
    ]


PAGES: Mapping[Form, tuple[str, str]] = {
    Form.COUNTS: ("diffgen", "render_counts"),
    Form.BOXES: ("risk_utility", "render_tradeoff"),
    Form.SAMPLE: ("sampled", "render_sampled"),
}
"""The pages of the report where rows form no groups, by what they are: modules and functions, imported when asked for."""

__all__ = ["render"]
