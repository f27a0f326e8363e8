"""Sentences of a certificate that follow from the policy alone: how missing values match, and what is public."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.policy.document import Policy
from sfumato.policy.kinds import as_date
from sfumato.policy.output import Form
from sfumato.policy.schema import Attribute, Kind

MISSING = "own-value: a missing quasi-identifier matches only missing"
MISSING_OR_UNDECLARED = (
    "own-value: a cell that is missing or cannot be read, and a category that was not declared, are missing; a number "
    "outside its bounds is moved to the nearer one; a row without a declared class is left out"
)
MISSING_OR_UNDECLARED_BOXES = (
    "own-value: a cell that is missing or cannot be read, and a value that was not declared, are missing, which is a "
    "value of its own below the root; a number outside its bounds is moved to the nearer one"
)
"""The same of a differentially private release, where no cell may be an error."""

MISSING_RULES: Mapping[Form, str] = {
    Form.GROUPS: MISSING,
    Form.COUNTS: MISSING_OR_UNDECLARED,
    Form.BOXES: MISSING,
    Form.SAMPLE: MISSING_OR_UNDECLARED_BOXES,
}


def missing_rule(policy: Policy) -> str:
    """How missing values are matched, in words."""
    return MISSING_RULES[policy.method.form]


def public_of(policy: Policy) -> tuple[str, ...]:
    """What a differentially private release takes from the policy and not from the table, a sentence each."""
    columns = (f"{attribute.name}: {_declaration(attribute)}" for attribute in policy.schema.published)
    return (*columns, *policy.method.public)


def _declaration(attribute: Attribute) -> str:
    if attribute.is_ordered and attribute.bounds is not None:
        low, high = attribute.bounds
        if attribute.kind is Kind.DATE:
            first, last = map(as_date, (low, high))
            return f"days from {first} to {last} in steps of {attribute.step or 1:g}"
        return f"numbers from {low:.15g} to {high:.15g} in steps of {attribute.step:.15g}"
    return attribute.declaration.describe(attribute)
