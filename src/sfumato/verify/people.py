"""Requirements on people: what published rows show of them, and what the raw table says.

Whose a row is stands in no release, so what people of a group reach is the owner's word. Rows still show when it cannot
be true: a group has no more people than rows, and whoever is in it, its values are those of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sfumato.errors import number_of
from sfumato.policy.document import Policy
from sfumato.policy.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
    Requirement,
)
from sfumato.policy.schema import Schema
from sfumato.release.certificate import Claims
from sfumato.release.certificate.claims import PEOPLE_COUNTED
from sfumato.verify.checks import Check
from sfumato.verify.groups import GroupedRows
from sfumato.verify.requirements import Figures, measure_groups

OWNERS_WORD = "owner's word: "
WHOSE = "the rows do not say whose they are"


def shown_by_rows(requirement: Requirement) -> Requirement | None:
    """What rows must satisfy wherever their people satisfy a requirement; None if that is nothing.

    >>> shown_by_rows(EntropyDiversity(2.5, of="disease"))
    DistinctDiversity(l=3, of='disease')
    """
    if isinstance(requirement, KAnonymity | DistinctDiversity):
        return requirement
    if isinstance(requirement, EntropyDiversity | RecursiveDiversity):
        return DistinctDiversity(requirement.fewest_rows, requirement.of)
    return None


def measure_shown(requirement: Requirement, rows: GroupedRows, schema: Schema) -> Figures:
    """The figure of each group as far as rows show it, and whether they leave room for the requirement."""
    shown = shown_by_rows(requirement)
    if shown is None:
        return np.full(rows.groups.n, np.nan), np.ones(rows.groups.n, dtype=np.bool_)
    return measure_groups(shown, rows, schema)


def describe_shown(requirement: Requirement, figure: float) -> str:
    """What rows show of the worst group."""
    if isinstance(requirement, KAnonymity):
        return f"the smallest group has {number_of(round(figure), 'row')}, and no more people"
    return f"the worst group has {number_of(round(figure), 'different value')}"


def note_people(requirement: Requirement) -> Check:
    """That a requirement holds of people is the owner's word."""
    return Check(f"{OWNERS_WORD}{requirement} holds of people", True, WHOSE, is_note=True)


def check_claims_of_people(claimed: Claims, policy: Policy, rows: Mapping[int, float]) -> Iterator[Check]:
    """Are the figures that are claimed of people possible?

    rows   for each requirement that rows show something of, what its worst group reaches by them
    """
    is_same = claimed.unit == policy.person
    yield Check("the certificate counts what the policy says", is_same, "" if is_same else "they differ")
    if policy.person is None or claimed.people is None:
        return
    for number, (item, claim) in enumerate(zip(policy.requirements, claimed.requirements, strict=False)):
        says = f"{item.describe_worst_of_people(claim.achieved)} for {item}"
        if not item.is_met_by(claim.achieved):
            yield Check(says, False, "that is not enough")
        elif number in rows and not _is_possible(item, claim.achieved, rows[number]):
            yield Check(says, False, f"by the rows, {describe_shown(item, rows[number])}")
    if claimed.risk is not None:
        says = f"the risk of re-identification is {claimed.risk.words(PEOPLE_COUNTED)}"
        yield Check(f"{OWNERS_WORD}{says}", True, WHOSE, is_note=True)
    is_possible = (claimed.groups > 0) <= claimed.people <= claimed.rows
    says = f"{OWNERS_WORD * is_possible}the rows are those of {number_of(claimed.people, 'person', 'people')}"
    yield Check(
        says, is_possible, WHOSE if is_possible else "there are fewer rows, or nobody", is_note=is_possible
    )


def _is_possible(requirement: Requirement, claimed: float, by_rows: float) -> bool:
    """Can people reach this figure where rows reach that one?"""
    if isinstance(requirement, DistinctDiversity):
        return claimed == by_rows
    return not isinstance(requirement, KAnonymity | EntropyDiversity) or claimed <= by_rows * (1 + 1e-9)
