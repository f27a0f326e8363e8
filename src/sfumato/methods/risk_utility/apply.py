"""Generalize further rows by the policy of a risk-utility release.

Such a release has no recoding: it would tell which raw row became which box. So further rows are optimized anew, by the
policy of the release and against a side table. What the release promises does not hold for them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.engines.engine import Resources
from sfumato.engines.start import start_engine
from sfumato.errors import InputError
from sfumato.methods.risk_utility.encode import encode_tables
from sfumato.methods.risk_utility.optimize import optimize
from sfumato.methods.risk_utility.publish import publish_rows
from sfumato.methods.risk_utility.release import with_side_table
from sfumato.policy.document import Policy
from sfumato.policy.options.risk_utility import RiskUtilityOptions
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.progress import Progress, no_progress
from sfumato.table import files, formulas
from sfumato.table.reading import AS_USUAL, Reading, open_as
from sfumato.table.write import write_table


def generalize_rows(
    table: Any,
    policy: Policy | str | Path,
    side_table: Any,
    *,
    threads: int | None = None,
    reading: Reading = AS_USUAL,
    progress: Progress = no_progress,
) -> pa.Table:
    """Each row of ``table`` with its own best box against ``side_table``, in the order in which they came.

    Both are paths or frames. ``policy`` is that of a release, whose hierarchies must have a place for every value. Of
    the columns only the quasi-identifiers are needed (and those of personal weights); identifiers and dropped
    columns are left out, and all others pass through, those that the policy does not know, too.

    >>> policy = Policy.parse('''
    ... attributes: {age: {role: quasi-identifier, type: number, bounds: [20, 23], hierarchy: {balanced: 2}}}
    ... method: {risk-utility: {utility-at-least: 0.5}}
    ... ''')
    >>> known = pa.table({"age": [20, 20, 21, 22, 22, 23]})
    >>> generalize_rows(pa.table({"age": [21, 22], "id": [1, 2]}), policy, known).to_pylist()
    [{'age': '[20, 22)', 'id': 1}, {'age': '[22, 23]', 'id': 2}]
    """
    rules = Policy.of(policy)
    if not rules.method.is_row_by_row:
        raise InputError("Only a risk-utility release generalizes further rows against a side table.")
    if side_table is None:
        raise InputError(
            "A risk-utility release has no recoding, which would tell raw rows from boxes. Give --side-table TABLE, "
            "and further rows are optimized anew against it."
        )
    progress("encoding", 0, 1)
    rules, side = with_side_table(rules, side_table)
    assert side is not None
    source = open_as(table, rules.schema, reading)
    known = (
        *rules.schema,
        *(Attribute(name, Role.OTHER) for name in source.names if name not in rules.schema),
    )
    rules = replace(rules, schema=Schema(known))
    method = rules.options_for(RiskUtilityOptions)
    found = encode_tables(source, rules.schema, method, side.source, rules.person)
    optimum = optimize(found.problem, method, engine=start_engine(Resources(threads)), progress=progress)
    return publish_rows(source, rules, found, optimum.solution.levels)


def apply_to_file(
    policy: Policy,
    table: Any,
    out: Path,
    side_table: Any,
    *,
    reading: Reading = AS_USUAL,
    overwrite: bool = True,
    progress: Progress = no_progress,
) -> int:
    """Write further rows to a file, which appears whole or not at all; returns their number."""
    files.check_file_target(out, overwrite=overwrite)
    rows = generalize_rows(table, policy, side_table, reading=reading, progress=progress)
    write_table(formulas.escape(rows) if policy.escapes_formulas else rows, out, overwrite=overwrite)
    return len(rows)


__all__ = ["apply_to_file", "generalize_rows"]
