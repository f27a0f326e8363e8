"""Published rows on their way: together in memory, or in a file where they need not fit there."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from sfumato.engines.engine import Resources
from sfumato.policy.document import Policy
from sfumato.release.folder import sha256_of
from sfumato.table import formulas
from sfumato.table.stored import FiledRows
from sfumato.table.write import TableWriter


def store_rows(
    tables: Iterable[pa.Table], policy: Policy, chosen: Resources, file_format: str
) -> pa.Table | FiledRows:
    """All rows, where the chosen engine keeps them."""
    if chosen.spill is None:
        return pa.concat_tables(tables)
    path = chosen.spill.path("release").with_suffix(f".{file_format}")
    with TableWriter(path) as writer:
        for part in tables:
            writer.append(formulas.escape(part) if policy.escapes_formulas else part)
    rows = FiledRows(path, file_format, n_rows=writer.n_rows, is_escaped=policy.escapes_formulas)
    rows.sha256 = sha256_of(path)
    return rows
