"""The rows as they are published."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from sfumato.errors import InputError, InternalError
from sfumato.policy.document import Policy
from sfumato.policy.output import bound_names, missing_name
from sfumato.policy.schema import Role
from sfumato.recoding import statistics as summary
from sfumato.recoding.pseudonyms import GroupPseudonyms
from sfumato.recoding.recoder import Partition, pass_on
from sfumato.table.source import Source


def check_names(policy: Policy) -> None:
    """Raise if a published bound or statistic would have the name of a column; ask before the work."""
    summary.check_names(policy)
    if policy.output.has_bounds:
        ordered = [attribute.name for attribute in policy.schema.quasi_identifiers if attribute.is_ordered]
        check_bounds(policy, ordered)


def check_bounds(policy: Policy, names: Iterable[str]) -> None:
    """Raise if a bound of one of these columns, or what stands beside it, would have the name of a column."""
    published = [
        [*bound_names(name), *([missing_name(name)] if policy.method.flags_missing else [])] for name in names
    ]
    for bound in itertools.chain.from_iterable(published):
        if bound in policy.schema:
            raise InputError(
                f"Column {bound!r} of the table has the name of a published bound; rename it, or publish labels."
            )


def published_rows(
    source: Source,
    policy: Policy,
    groups: Partition,
    random: Any,
    statistics: Mapping[str, pa.Scalar] = MappingProxyType({}),
    pseudonyms: GroupPseudonyms | None = None,
) -> pa.Table:
    """The rows group by group, in random order within each: identifiers gone, quasi-identifiers recoded.

    ``statistics`` are given where the rows are only a part of one group.
    """
    shuffled = groups.shuffle(random)
    order = pa.array(shuffled)
    if statistics:
        recoded = {name: pa.repeat(cell, len(order)) for name, cell in statistics.items()} | groups.columns()
    else:
        recoded = groups.columns() | summary.columns(source, policy, groups)
    quasi = {attribute.name for attribute in policy.schema.quasi_identifiers}
    if pseudonyms is None and policy.schema.names(Role.PSEUDONYM):
        raise InternalError("Pseudonyms need the keys of a run.")
    codes = {} if pseudonyms is None else pseudonyms.of_columns(source, policy, groups, shuffled)
    columns: dict[str, Any] = {}
    for name in source.names:
        if name in quasi:
            columns |= groups.recoding.of_attribute(recoded, name)
        elif name in codes:
            columns[name] = codes[name]
        elif policy.schema[name].role.is_published:
            columns[name] = pass_on(source.column(name), name).combine_chunks().take(order)
        columns |= {key: recoded[key] for key in summary.names_of(policy.schema[name], policy)}
    return pa.table(columns)
