"""Generalizations as published cells: labels, bounds, or both.

No row leaves in the order in which it came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.domain import TreeDomain
from sfumato.methods.risk_utility.encode import Encoded
from sfumato.methods.risk_utility.problem import Levels
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.declarations import NumberRanges
from sfumato.policy.output import Output, bound_names
from sfumato.policy.schema import Kind, Schema
from sfumato.randomness import Random
from sfumato.recoding.axis import TreeAxis
from sfumato.recoding.recoder import pass_on, tree_column
from sfumato.table.source import Source


def bounds_of(schema: Schema, output: Output) -> tuple[str, ...]:
    """The quasi-identifiers of a closed policy whose two bounds are published: numbers and dates by a rule.

    >>> closed = Schema.of(age={"role": "quasi-identifier", "kind": "number", "hierarchy": {"balanced": 2}})
    >>> bounds_of(closed, Output.BOTH), bounds_of(closed, Output.LABELS)
    (('age',), ())
    """
    if not output.has_bounds:
        return ()
    return tuple(
        attribute.name
        for attribute in schema.quasi_identifiers
        if attribute.kind is not Kind.CATEGORY and attribute.declaration.is_rule
    )


def publish_rows(
    source: Source, policy: Policy, found: Encoded, levels: Levels, random: Random | None = None
) -> pa.Table:
    """The published rows, in random order, given the ``levels`` (rows of the problem, columns) of their generalizations.

    Without ``random`` they stay in their own order: that is for rows that are not published.
    """
    order = np.arange(source.n_rows) if random is None else random.permutation(source.n_rows)
    at = found.problem.of_row[order]
    nodes = found.problem.nodes_of(np.arange(found.problem.n), levels) - found.problem.lattice.root
    quasi = {domain.attribute.name: a for a, domain in enumerate(found.domains)}
    bounded = bounds_of(found.schema, policy.output)
    columns: dict[str, Any] = {}
    for name in source.names:
        if name in quasi:
            a = quasi[name]
            columns |= generalize_column(
                found.domains[a],
                nodes[:, a],
                lambda values: values[at],
                labels=policy.output.has_labels or name not in bounded,
                bounds=name in bounded,
            )
        elif policy.schema[name].role.is_published:
            columns[name] = pass_on(source.column(name), name).combine_chunks().take(pa.array(order))
    return pa.table(columns)


def boxes_table(nodes: NDArray[np.int64], domains: Sequence[TreeDomain], policy: Policy) -> pa.Table:
    """Rows of boxes alone: one node (rows, columns) of each hierarchy. The policy is closed."""
    columns: dict[str, pa.Array] = {}
    for a, domain in enumerate(domains):
        columns |= _cells_of_nodes(domain, nodes[:, a], policy)
    return pa.table(columns)


def order_of(nodes: NDArray[np.int64], domains: Sequence[TreeDomain], policy: Policy) -> NDArray[np.int64]:
    """The order of boxes by their cells: a cell stands where the first node does that is published as it is.

    So rows that look alike stand together, even where their nodes differ: a label may stand at several nodes.
    """
    keys = []
    for a, domain in enumerate(domains):
        every = _cells_of_nodes(domain, np.arange(domain.hierarchy.n_nodes), policy)
        place: dict[tuple[Any, ...], int] = {}
        cells = zip(*(own.to_pylist() for own in every.values()), strict=True)
        first = np.array([place.setdefault(cell, node) for node, cell in enumerate(cells)])
        keys.append(first[nodes[:, a]])
    return np.lexsort(keys[::-1])


def _cells_of_nodes(domain: TreeDomain, nodes: NDArray[np.int64], policy: Policy) -> dict[str, pa.Array]:
    """The published cells of nodes of one column, in their order."""
    has_bounds = domain.attribute.name in bounds_of(policy.schema, policy.output)
    has_labels = policy.output.has_labels or not has_bounds
    return generalize_column(domain, nodes, lambda values: values, labels=has_labels, bounds=has_bounds)


def generalize_column(
    domain: TreeDomain,
    nodes: NDArray[np.int64],
    expand: Callable[[NDArray[Any]], NDArray[Any]],
    *,
    labels: bool,
    bounds: bool,
) -> dict[str, pa.Array]:
    """The published cells of nodes of one column: label, two bounds, or all three."""
    name = domain.attribute.name
    out: dict[str, pa.Array] = {}
    if labels:
        kept, new = domain.hierarchy.prune(np.unique(nodes))  # what nobody shows stands nowhere
        out |= tree_column(TreeAxis(domain.attribute, kept, domain.has_missing), expand(new[nodes]))
    if bounds:
        low, high = node_bounds(domain)
        at = pa.array(expand(nodes))
        out |= zip(bound_names(name), (low.take(at), high.take(at)), strict=True)
    return out


def node_bounds(domain: TreeDomain) -> tuple[pa.Array, pa.Array]:
    """The first and the last value of each node of a hierarchy that is made by a rule.

    As with other methods, a node that includes missing has no low end, and missing alone has neither.

    >>> from sfumato.policy.schema import Attribute
    >>> age = Attribute("age", "quasi-identifier", Kind.NUMBER, bounds=(0, 3), hierarchy={"balanced": 2})
    >>> low, high = node_bounds(TreeDomain(age, age.build_hierarchy(()), has_missing=False))
    >>> low.to_pylist(), high.to_pylist()
    ([0, 0, 0, 1, 2, 2, 3], [3, 1, 0, 1, 3, 2, 3])
    """
    tree = domain.hierarchy
    first, last = leaf_ends(domain)
    n = len(first)
    is_missing = tree.low >= n
    no_low = is_missing | (tree.high > n)
    lows = first[np.minimum(tree.low, n - 1)]
    highs = last[np.minimum(tree.high, n) - 1]
    kind = pa.date32() if domain.attribute.kind is Kind.DATE else None
    low, high = pa.array(lows, mask=no_low), pa.array(highs, mask=is_missing)
    return (low.cast(kind), high.cast(kind)) if kind else (low, high)


def leaf_ends(domain: TreeDomain) -> tuple[NDArray[Any], NDArray[Any]]:
    """First and last value of each leaf but missing; int32 days of a date, whole numbers where all are."""
    attribute = domain.attribute
    if attribute.kind is Kind.DATE:
        first, last = map(int, attribute.bounds or (0, 0))
        days = np.arange(first, last + 1)
        leaf = attribute.locate(domain.hierarchy, days.astype("datetime64[D]"))
        starts = np.flatnonzero(np.diff(leaf, prepend=-1))
        return days[starts].astype(np.int32), (np.append(days[starts[1:]], last + 1) - 1).astype(np.int32)
    assert isinstance(attribute.hierarchy, NumberRanges)
    grid = attribute.hierarchy.make_grid(attribute)
    lows, highs = (grid.edges, grid.edges) if grid.step is not None else (grid.edges[:-1], grid.edges[1:])
    if np.all(grid.edges == np.rint(grid.edges)):
        return lows.astype(np.int64), highs.astype(np.int64)
    return lows, highs


__all__ = [
    "bounds_of",
    "boxes_table",
    "generalize_column",
    "leaf_ends",
    "node_bounds",
    "order_of",
    "publish_rows",
]
