"""What is about to be published, verified before it is: the claims of a certificate are found in the rows.

``EXAMINERS`` is the table of verifiers, by the form of a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import InternalError
from sfumato.policy.document import Policy
from sfumato.policy.output import Form
from sfumato.release.certificate import Certificate, Claims
from sfumato.table.stored import FiledRows
from sfumato.verify.cells import Detail
from sfumato.verify.checks import Check
from sfumato.verify.diffgen import counts
from sfumato.verify.measure import Examined, claims, examine, measure, verify_measures
from sfumato.verify.risk_utility import boxes as single_boxes
from sfumato.verify.risk_utility import sampling


@dataclass(frozen=True, slots=True, eq=False)
class Unverified:
    """Rows as they will be published, and what is said of them; files beside them may be put into ``scratch``."""

    rows: pa.Table | FiledRows
    policy: Policy
    recoding: Any = None
    claims: Claims | None = None
    """What is claimed of counts."""
    missing: tuple[str, ...] = ()
    """The columns of a box for each row in which cells may be missing."""
    memory: int | None = None
    scratch: Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DraftFinding:
    """What the rows were found to be, and what is to be said of a certificate that claims it."""

    claims: Claims
    checks: Callable[[Certificate], Iterable[Check]]
    details: Mapping[str, Detail] = field(default_factory=dict)
    """How much the cells of each column still tell; of a private release nobody says."""
    known: Examined | None = None
    """What need not be looked at again in rows that lie in a file."""


def find(unverified: Unverified) -> DraftFinding:
    """Examine rows by what their policy promises."""
    return EXAMINERS[unverified.policy.method.form](unverified)


def _find_groups(given: Unverified) -> DraftFinding:
    if isinstance(given.rows, FiledRows):
        known = examine(given.rows, given.policy, memory=given.memory, scratch=given.scratch)
        measures = known.measures
    else:
        known, measures = None, measure(given.rows, given.policy)
    return DraftFinding(claims(measures), lambda _: verify_measures(measures).checks, measures.details, known)


def _find_counts(given: Unverified) -> DraftFinding:
    if given.claims is None:
        raise InternalError("Counts come with claims.")
    rows, policy, recoding = given.rows, given.policy, given.recoding.as_document()
    names = rows.column_names
    return DraftFinding(
        given.claims, lambda certificate: counts.checks(policy, certificate, recoding, rows, names)
    )


def _find_boxes(given: Unverified) -> DraftFinding:
    found = single_boxes.Boxes.of(given.rows, given.policy, given.missing)
    claimed = single_boxes.claims_of(found)

    def checks(certificate: Certificate) -> Iterable[Check]:
        return single_boxes.checks(found, certificate.claims, certificate.figures)

    return DraftFinding(claimed, checks, found.details())


def _find_sample(given: Unverified) -> DraftFinding:
    found = single_boxes.Boxes.of(given.rows, given.policy, given.missing)

    def checks(certificate: Certificate) -> Iterable[Check]:
        return sampling.checks(found, given.rows, certificate)

    return DraftFinding(single_boxes.claims_of(found), checks)


EXAMINERS: Mapping[Form, Callable[[Unverified], DraftFinding]] = {
    Form.GROUPS: _find_groups,
    Form.COUNTS: _find_counts,
    Form.BOXES: _find_boxes,
    Form.SAMPLE: _find_sample,
}
"""How rows are examined, by what they are."""
