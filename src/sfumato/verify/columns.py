"""The columns of a release: which of them tell groups apart, and which a policy publishes.

An ordered quasi-identifier is published as its label, as two columns for its bounds, or as all three; statistics of
groups stand in columns of their own. Only names are looked at here, never a cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sfumato.policy.document import Policy
from sfumato.policy.output import HIGH, LOW, bound_names
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.verify import statistics


def group_columns(policy: Policy, names: Sequence[str]) -> list[str]:
    """The columns in which all rows of a group agree: cells of quasi-identifiers, and statistics beside them.

    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier, type: number}}, require: []}")
    >>> group_columns(policy, ["age", "sex"]), group_columns(policy, ["age_high", "age_low"])
    (['age'], ['age_low', 'age_high'])
    """
    boxes = [name for _, cells in box_columns(policy.schema, names) for name in cells]
    return [*boxes, *statistic_columns(policy, names)]


def box_columns(schema: Schema, names: Sequence[str]) -> Iterator[tuple[Attribute, tuple[str, ...]]]:
    """The columns that hold the cells of each quasi-identifier: itself, its two bounds, or all three."""
    for attribute in schema.quasi_identifiers:
        bounds = bound_names(attribute.name)
        has_bounds = all(name in names and name not in schema for name in bounds)
        own = (attribute.name,) if attribute.name in names or not has_bounds else ()
        yield attribute, own + (bounds if has_bounds else ())


def statistic_columns(policy: Policy, names: Sequence[str]) -> list[str]:
    """The columns of statistics that are there: they tell rows apart as quasi-identifiers do."""
    expected = [name for a in policy.schema for name in statistics.names_of(a, policy.statistics)]
    return [name for name in expected if name in names and name not in policy.schema]


def published_names(policy: Policy) -> list[str]:
    """The columns of a release of groups; what is split by thresholds has bounds where they are asked for."""
    return [name for attribute in policy.schema.published for name in _published_as(attribute, policy)]


def _published_as(attribute: Attribute, policy: Policy) -> tuple[str, ...]:
    own = statistics.names_of(attribute, policy.statistics)
    is_box = attribute.role is Role.QUASI_IDENTIFIER and attribute.is_ordered
    if not is_box or not policy.output.has_bounds:
        return (attribute.name, *own)
    bounds = bound_names(attribute.name)
    return (attribute.name, *bounds) if policy.output.has_labels else bounds


def check_columns(names: Sequence[str], policy: Policy) -> None:
    """Refuse a table that lacks a quasi-identifier or a required column, or has one that the policy does not name."""
    needed = {*policy.schema.names(Role.QUASI_IDENTIFIER), *(item.of for item in policy.requirements)}
    optional = [name for name in policy.schema.names() if name not in needed]
    as_declared = dict.fromkeys(names)
    for name in statistic_columns(policy, names):
        del as_declared[name]
    for attribute, columns in box_columns(policy.schema, names):
        if len(columns) > 1:
            for bound in bound_names(attribute.name):
                as_declared.pop(bound, None)
            as_declared[attribute.name] = None
    policy.check_columns([*as_declared, *optional])


def raw_names(names: Sequence[str], policy: Policy) -> list[str]:
    """The columns that patterns of the policy may stand for: bounds and statistics are none, what they are of is."""
    exact, loose = frozenset(policy.schema.names()), policy.schema.expand(names)
    added = {name for a in loose for name in statistics.names_of(a, policy.statistics)}
    added |= {
        name for _, columns in box_columns(policy.schema, names) for name in columns if len(columns) > 1
    }
    for bounds in (bound_names(attribute.name) for attribute in loose.quasi_identifiers):
        added |= set(bounds) if set(bounds) <= set(names) else set()
    kept = [name for name in names if name in exact or name not in added]
    for low in [name for name in kept if name.endswith(LOW) and name not in exact]:
        base = low.removesuffix(LOW)
        high, known = base + HIGH, policy.schema.expand([base]).find(base)
        if high in kept and base not in kept and known and known.role is Role.QUASI_IDENTIFIER:
            kept = [name for name in kept if name not in (low, high)] + [base]
    return kept
