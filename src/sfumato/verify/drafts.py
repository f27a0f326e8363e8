"""Checks rows that are about to be published, and says what a certificate may claim of them.

``EXAMINERS`` has a function for each form of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from sfumato.errors import InternalError, PromiseError, number_of
from sfumato.policy.document import Policy
from sfumato.policy.output import Form
from sfumato.release.certificate import Certificate, Claims, RiskClaim
from sfumato.table.stored import FiledRows
from sfumato.verify.cells import Detail, FoundGroups
from sfumato.verify.checks import Check
from sfumato.verify.measure import RowFindings, check_promises, claims, examine, shown_figures
from sfumato.verify.people import check_claims_of_people


class PeopleClaims(Protocol):
    """What a method says of people in groups: how many they are, how many groups, and what the worst of these reach."""

    @property
    def n_people(self) -> int: ...

    @property
    def n_groups(self) -> int: ...

    @property
    def achieved(self) -> Sequence[float]: ...

    @property
    def risk(self) -> RiskClaim: ...


@dataclass(frozen=True, slots=True, eq=False)
class DraftRows:
    """Rows as they will be published, with what the method says of them. Temporary files go to ``scratch``."""

    rows: pa.Table | FiledRows
    policy: Policy
    recoding: Any = None
    claims: Claims | None = None
    """What the method claims of counts in the cells of a grid; None for other rows."""
    missing: tuple[str, ...] = ()
    """The columns in which cells may be missing, of rows that have a box each."""
    people: PeopleClaims | None = None
    """What the method says of people in groups; None if they count rows."""
    memory: int | None = None
    scratch: Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DraftFinding:
    """What was found in the rows: the claims to certify, and the checks of a certificate that claims them."""

    claims: Claims
    checks: Callable[[Certificate], Iterable[Check]]
    details: Mapping[str, Detail] = field(default_factory=dict)
    """How much the cells of each column still tell; empty for a private release."""
    known: RowFindings | None = None
    """Findings in rows that lie in a file, so that ``verify_folder`` need not read it again."""
    groups: FoundGroups | None = None
    """The groups of the rows, for the report."""


def examine_draft(given: DraftRows) -> DraftFinding:
    """Examine rows by the form that the policy's method gives them."""
    return EXAMINERS[given.policy.method.form](given)


def _examine_groups(given: DraftRows) -> DraftFinding:
    found = examine(given.rows, given.policy, memory=given.memory, scratch=given.scratch)
    measures, known = found.measures, found if isinstance(given.rows, FiledRows) else None
    claimed = claims(measures)
    if given.people is not None:
        claimed = _claim_people(claimed, given.policy, given.people)

    def checks(certificate: Certificate) -> Iterable[Check]:
        yield from check_promises(measures)
        if given.people is not None:
            yield from check_claims_of_people(certificate.claims, given.policy, shown_figures(measures))

    return DraftFinding(claimed, checks, measures.details, known, found.groups)


def _claim_people(claimed: Claims, policy: Policy, people: PeopleClaims) -> Claims:
    """The claims of rows as claims of people; a PromiseError if groups of people are not the groups of rows."""
    if claimed.groups != people.n_groups:
        raise PromiseError(
            f"{number_of(people.n_groups, 'group')} of people have the labels of {claimed.groups:,} only, and those with "
            "the same labels are one group, whose people nobody has counted. Publish other columns, or other output."
        )
    requirements = tuple(
        replace(claim, achieved=float(f"{figure:.12g}"))
        for claim, figure in zip(claimed.requirements, people.achieved, strict=True)
    )
    return replace(
        claimed, requirements=requirements, unit=policy.person, people=people.n_people, risk=people.risk
    )


def _examine_counts(given: DraftRows) -> DraftFinding:
    from sfumato.verify.diffgen.counts import check_counts  # noqa: PLC0415 - few releases need it

    if given.claims is None:
        raise InternalError("Counts come with claims.")
    rows, policy, recoding = given.rows, given.policy, given.recoding.as_document()
    names = rows.column_names
    return DraftFinding(
        given.claims, lambda certificate: check_counts(policy, certificate, recoding, rows, names)
    )


def _examine_boxes(given: DraftRows) -> DraftFinding:
    from sfumato.verify.risk_utility.boxes import Boxes, claims_of  # noqa: PLC0415 - few releases need it
    from sfumato.verify.risk_utility.claims import check_boxes  # noqa: PLC0415

    found = Boxes.of(given.rows, given.policy, given.missing)
    claimed = claims_of(found)

    def checks(certificate: Certificate) -> Iterable[Check]:
        return check_boxes(found, certificate.claims, certificate.figures)

    return DraftFinding(claimed, checks, found.details())


def _examine_sample(given: DraftRows) -> DraftFinding:
    from sfumato.verify.risk_utility.boxes import Boxes, claims_of  # noqa: PLC0415 - few releases need it
    from sfumato.verify.risk_utility.sampling import check_sample  # noqa: PLC0415

    found = Boxes.of(given.rows, given.policy, given.missing)

    def checks(certificate: Certificate) -> Iterable[Check]:
        return check_sample(found, given.rows, certificate)

    return DraftFinding(claims_of(found), checks)


EXAMINERS: Mapping[Form, Callable[[DraftRows], DraftFinding]] = {
    Form.GROUPS: _examine_groups,
    Form.COUNTS: _examine_counts,
    Form.BOXES: _examine_boxes,
    Form.SAMPLE: _examine_sample,
}
"""How rows are examined, by what they are."""
