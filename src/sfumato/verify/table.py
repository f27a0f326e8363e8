"""Checks a table that any tool made, by its cells as they stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.policy.output import Form
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.table.cells import as_stored
from sfumato.table.reading import AS_USUAL, Reading, open_as
from sfumato.table.source import INDEX_OF_PANDAS, Source, without_index
from sfumato.verify.checks import Check, Verification, name_columns
from sfumato.verify.measure import check_promises, examine_source
from sfumato.verify.rows import allowed_memory, check_columns, is_small, raw_names, stored_names
from sfumato.verify.warehouse import (
    OpenWarehouse,
    Warehouse,
    measure_by_sql,
    refuse_without_sql,
    stored_schema,
    tells_apart,
    unseen,
)

NOT_SEEN_IN_ROWS = (
    "No table shows by itself that it is differentially private: that lies in how it was drawn. "
    "Verify the release folder, whose certificate holds the ledger."
)
FOLDER_NEEDED: Mapping[Form, str] = {
    Form.COUNTS: NOT_SEEN_IN_ROWS,
    Form.SAMPLE: NOT_SEEN_IN_ROWS,
    Form.BOXES: (
        "A table alone does not show the risk and utility of its rows: a certificate says what they are counted by. "
        "Verify the release folder, with --side-table for the risk."
    ),
}
"""Why rows of these forms cannot be checked without their folder."""


def verify_table(
    table: Any,
    policy: Policy | Mapping[str, Any],
    *,
    memory: int | None = None,
    reading: Reading = AS_USUAL,
    warehouse: OpenWarehouse | None = None,
) -> Verification:
    """Check a table of any tool against a policy, by its cells as they stand; it is a path or a frame.

    Columns that are not published may be there only if they tell nothing (ARX leaves them as ``*``).
    A column that the policy does not name is refused, and so is a table without the quasi-identifiers
    (each as one column, or as its ``_low`` and ``_high``) and the columns of the requirements. A file that does
    not fit in ``memory`` is checked in portions. ``reading`` says how its text is written; quasi-identifiers are
    compared as they stand all the same. A ``warehouse``, if one is given, is asked by SQL, and no row is read here.
    """
    policy = Policy.of(policy)
    if policy.method.form in FOLDER_NEEDED:
        raise InputError(FOLDER_NEEDED[policy.method.form])
    if warehouse is not None:
        with warehouse(table) as opened:
            return _verify_by_sql(opened, policy)
    memory = allowed_memory(memory)
    compared = Schema(
        tuple(Attribute(a.name, a.role) if a.role is Role.QUASI_IDENTIFIER else a for a in policy.schema)
    )
    source = open_as(table, compared, reading, lazy=not is_small(table, memory))
    policy = policy.expand(raw_names(source.names, policy))
    check_columns(source.names, policy)
    found = examine_source(source, policy, memory, None)
    return Verification(
        (
            _check_left_out(source.names, policy, partial(_tells_apart, source)),
            _check_no_index(stored_names(table)),
            *check_promises(found.measures),
            *found.statistic_checks(),
        )
    )


def _verify_by_sql(warehouse: Warehouse, policy: Policy) -> Verification:
    """The same of a table in a warehouse."""
    stored = stored_schema(warehouse).names
    names = without_index(stored)
    policy = policy.expand(raw_names(names, policy))
    check_columns(names, policy)
    refuse_without_sql(policy)
    return Verification(
        (
            _check_left_out(names, policy, partial(tells_apart, warehouse)),
            _check_no_index(stored),
            *check_promises(measure_by_sql(warehouse, policy)),
            *unseen(policy, has_recoding=False),
        )
    )


def _check_left_out(names: Sequence[str], policy: Policy, tells: Callable[[str], bool]) -> Check:
    hidden = [name for name in policy.schema.names(Role.IDENTIFIER, Role.DROP) if name in names]
    telling = [name for name in hidden if tells(name)]
    tell = "tells" if len(telling) == 1 else "tell"
    detail = f"{name_columns(telling)} still {tell} rows apart" if telling else ""
    return Check("no column that the policy leaves out tells rows apart", not telling, detail)


def _tells_apart(source: Source, name: str) -> bool:
    """Whether a column has two different cells, as they stand."""
    known: set[Any] = set()
    for batch in source.batches([name]):
        cells = as_stored(batch.column(name), Attribute(name, Role.OTHER))
        known.update(cells.dictionary.to_pylist(), [None] * (cells.null_count > 0))
        if len(known) > 1:
            return True
    return False


def _check_no_index(names: Sequence[str]) -> Check:
    found = any(INDEX_OF_PANDAS.fullmatch(name) for name in names)
    return Check("no index of pandas is stored", not found, "pandas stored its index" if found else "")
