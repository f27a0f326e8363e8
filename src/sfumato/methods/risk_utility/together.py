"""Several tables generalized together, of which nothing is published: the rows of each against one side table.

For evaluation and comparison. The side table is that of the policy, or else the first of the tables. Numbers and dates
without a hierarchy get the one that a table of all their rows would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.engine import Resources
from sfumato.engines.start import start_engine
from sfumato.methods.risk_utility.encode import Encoded, close_schema, encode_tables
from sfumato.methods.risk_utility.optimize import Optimum, optimize
from sfumato.methods.risk_utility.release import with_side_table
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import RiskUtilityOptions
from sfumato.policy.schema import Attribute, Kind, Schema
from sfumato.table import cells as table_cells
from sfumato.table.source import Source, source_of

Ints = NDArray[np.int64]


class OwnBoxes(NamedTuple):
    """Rows of one table, each with its own box: a node of each hierarchy, and the code of its value."""

    found: Encoded
    optimum: Optimum

    @property
    def node(self) -> Ints:
        """(rows, columns)"""
        problem, levels = self.found.problem, self.optimum.solution.levels
        return (problem.nodes_of(np.arange(problem.n), levels) - problem.lattice.root)[problem.of_row]

    @property
    def code(self) -> Ints:
        """(rows, columns)"""
        return self.found.problem.rows[self.found.problem.of_row].astype(np.int64)


def generalize_tables(tables: Sequence[Source], policy: Policy, *, threads: int | None) -> list[OwnBoxes]:
    """The boxes of the rows of each table; a row that the side table lacks counts itself."""
    policy, side = with_side_table(policy)
    against = tables[0] if side is None else side.source
    options = policy.options_for(RiskUtilityOptions)
    schema = _close([*tables, against], policy.schema)
    engine = start_engine(Resources(threads))
    parts = []
    for table in tables:
        found = encode_tables(table, schema, options, None if table is against else against, policy.person)
        parts.append(OwnBoxes(found, optimize(found.problem, options, engine=engine)))
    return parts


def count_alike(table: Source, policy: Policy, *, threads: int | None) -> tuple[Ints, int]:
    """How many rows of the side table fit the box of each row, itself included, and how many boxes there are."""
    (boxes,) = generalize_tables([table], policy, threads=threads)
    covered = boxes.optimum.solution.covered[boxes.found.problem.of_row]
    return np.maximum(covered, 1), len(np.unique(boxes.node, axis=0))


def _close(sources: Sequence[Source], schema: Schema) -> Schema:
    """The schema with a hierarchy for every number and date, over the values of all tables."""
    ordered = [
        attribute
        for attribute in schema.quasi_identifiers
        if attribute.kind is not Kind.CATEGORY
        and (attribute.hierarchy is None or attribute.hierarchy.is_rule)
    ]
    if not ordered:
        return schema
    columns = {
        attribute.name: pa.chunked_array([_ordered(source, attribute) for source in sources])
        for attribute in ordered
    }
    together = source_of(pa.table(columns), "pyarrow", sources[0].where)
    closed = {attribute.name: attribute for attribute in close_schema(Schema(tuple(ordered)), together)}
    return Schema(tuple(closed.get(attribute.name, attribute) for attribute in schema))


def _ordered(source: Source, attribute: Attribute) -> pa.Array:
    """The numbers of a column, or its dates."""
    cells = table_cells.ordered(source.column(attribute.name), attribute)
    is_date = attribute.kind is Kind.DATE
    return cells.cast(pa.int32()).cast(pa.date32()) if is_date else cells.cast(pa.float64())


__all__ = ["OwnBoxes", "count_alike", "generalize_tables"]
