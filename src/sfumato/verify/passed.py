"""Rows that are alone by the columns that are published as they are: no other row has the same cells in all of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.policy.document import Policy
from sfumato.policy.schema import Attribute, Role
from sfumato.release.certificate import AloneClaim
from sfumato.table.cells import as_stored, is_text
from sfumato.table.opening import open_table
from sfumato.table.source import Source
from sfumato.table.stored import FiledRows
from sfumato.verify.groups import Codes, group, with_missing
from sfumato.verify.portions import SHARE, Portions, collect, rows_at_once
from sfumato.verify.rows import CheckedColumns, allowed_memory, fits_in_memory


def count_alone(source: Source, policy: Policy, memory: int, scratch: Path) -> AloneClaim | None:
    """How many rows are alone; None if nothing is published as it is.

    Rows that do not fit in ``memory`` are counted in portions, by way of the folder ``scratch``.
    """
    names = [attribute.name for attribute in policy.schema.passed if attribute.name in source.names]
    if not names:
        return None
    checked = CheckedColumns(names, (), ())
    if fits_in_memory(source, checked, memory):
        return AloneClaim(len(names), _count(pa.table([source.column(name) for name in names], names)))
    portions = Portions(checked, memory=memory, folder=scratch)
    try:
        n_rows = rows_at_once(memory, len(names))
        collect(source.batches(names, rows=n_rows, memory=memory // SHARE), portions)
        return AloneClaim(len(names), sum(_count(lines.keys, lines.n_rows) for lines in portions))
    finally:
        portions.close()


def count_alone_in(rows: pa.Table | FiledRows, policy: Policy) -> AloneClaim | None:
    """The same of published rows, wherever they are."""
    source = rows.source() if isinstance(rows, FiledRows) else open_table(rows, may_be_empty=True)
    return count_alone(source, policy, allowed_memory(None), Path(tempfile.gettempdir()))


def _count(cells: pa.Table, n_rows: NDArray[np.int64] | None = None) -> int:
    """How many rows have cells that no other row has; ``n_rows`` says how many each line stands for."""
    if not cells.num_rows:
        return 0
    columns = zip(cells.column_names, cells.columns, strict=True)
    found = group([_codes(column, name) for name, column in columns], n_rows)
    return int(np.count_nonzero(found.size == 1))


def _codes(column: pa.ChunkedArray, name: str) -> Codes:
    """The cells as they stand; an empty text is missing, as it is in CSV."""
    encoded = as_stored(column, Attribute(name, Role.OTHER))
    codes = with_missing(encoded)
    at = pc.index(encoded.dictionary, "").as_py() if is_text(encoded.dictionary.type) else -1
    return codes if at < 0 else Codes(np.where(codes.of_row == at, codes.n - 1, codes.of_row), codes.n)
