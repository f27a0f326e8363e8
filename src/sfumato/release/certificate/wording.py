"""Sentences of a certificate that follow from the policy alone: how missing values match, and what is public."""

from __future__ import annotations

from sfumato.policy.days import as_date
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import RiskUtilityOptions
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


def missing_rule(policy: Policy) -> str:
    """How missing values are matched, in words."""
    if not policy.is_private:
        return MISSING
    has_boxes = isinstance(policy.method, RiskUtilityOptions)
    return MISSING_OR_UNDECLARED_BOXES if has_boxes else MISSING_OR_UNDECLARED


def public_of(policy: Policy) -> tuple[str, ...]:
    """What a differentially private release takes from the policy and not from the table, a sentence each."""
    sentences = [f"{attribute.name}: {_declaration(attribute)}" for attribute in policy.schema.published]
    if isinstance(policy.method, RiskUtilityOptions):
        return (*sentences, "the side table: all of it", "the options of the method: all of them")
    options = policy.method.as_policy()[policy.method.name]
    if "cuts" in options:
        sentences.append("the cuts: all of them")
    return (*sentences, f"the cells of the grid: at most {options['max-cells']:,}")


def _declaration(attribute: Attribute) -> str:
    if attribute.is_ordered and attribute.bounds is not None:
        low, high = attribute.bounds
        if attribute.kind is Kind.DATE:
            first, last = map(as_date, (low, high))
            return f"days from {first} to {last} in steps of {attribute.step or 1:g}"
        return f"numbers from {low:.15g} to {high:.15g} in steps of {attribute.step:.15g}"
    return attribute.declaration.describe(attribute)
