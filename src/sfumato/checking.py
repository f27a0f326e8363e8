"""Checks a release or a table where its rows are: here, or on Spark, which is asked by SQL.

``verify`` writes the statements and judges the answers; it knows no engine, so who runs them is handed to it here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.engines.engine import AUTO, SPARK, is_frame_of_spark
from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.table.arrow_files import ParquetStream
from sfumato.table.opening import open_table
from sfumato.table.reading import AS_USUAL, Reading
from sfumato.verify import folder as checked_folder
from sfumato.verify import table as checked_table
from sfumato.verify.checks import Verification
from sfumato.verify.warehouse import OpenWarehouse


def verify_folder(
    folder: str | Path,
    *,
    engine: str = AUTO,
    memory: int | None = None,
    side_table: Any = None,
    table: Any = None,
    reading: Reading = AS_USUAL,
) -> Verification:
    """Check a release folder: recompute every claim of its certificate from what lies in it.

    ``ok`` of the result says whether all holds, ``checks`` has the lines. Whatever is wrong with a release is a failed
    claim; a folder that is no release at all is an InputError.

    ``engine``: auto, or spark, where Spark SQL decides the requirements on the Parquet files of the release.

    ``memory``: rows that do not fit in so many bytes (half of what is free if not given) are checked in portions.

    ``side_table``: the table that a risk-utility release was made with, a path or a frame; its risk is then recomputed.

    ``table``: the raw table, a path or a frame, in which the people of groups are counted again, if the policy has a
    unit; ``reading`` says how its text is written.
    """
    if table is not None and engine == SPARK:
        raise InputError("People are counted again without Spark; leave out the engine.")
    return checked_folder.verify_folder(
        folder,
        memory=memory,
        side_table=side_table,
        warehouse=_warehouse(engine),
        table=table,
        reading=reading,
    )


def verify_table(
    table: Any,
    policy: Policy | Mapping[str, Any],
    *,
    engine: str = AUTO,
    memory: int | None = None,
    reading: Reading = AS_USUAL,
) -> Verification:
    """Check a table of any tool against a policy, by its cells as they stand; it is a path or a frame.

    A DataFrame of Spark, and Parquet files with the ``engine`` spark, are checked by Spark SQL. Columns that are not
    published may be there only if they tell nothing (ARX leaves them as ``*``). A column that the policy does not name
    is refused, and so is a table without the quasi-identifiers (each as one column, or as its ``_low`` and ``_high``)
    and the columns of the requirements. A file that does not fit in ``memory`` is checked in portions. ``reading``
    says how its text is written; quasi-identifiers are compared as they stand all the same.
    """
    if is_frame_of_spark(table) and engine == AUTO:
        engine = SPARK
    warehouse = _warehouse(engine)
    if warehouse is not None and reading != AS_USUAL:
        raise InputError(f"Spark reads Parquet, which says how it is written; leave out{reading.as_options}.")
    return checked_table.verify_table(table, policy, memory=memory, reading=reading, warehouse=warehouse)


def _warehouse(engine: str) -> OpenWarehouse | None:
    if engine not in (AUTO, SPARK):
        raise InputError("The engine of a check is auto or spark.")
    return _open_on_spark if engine == SPARK else None


def _open_on_spark(table: Any) -> Any:
    from sfumato.engines.spark.queries import SparkTable  # noqa: PLC0415 - few have it

    if is_frame_of_spark(table):
        return SparkTable(table)
    stream = open_table(table, lazy=True).stream if isinstance(table, str | os.PathLike) else None
    if not isinstance(stream, ParquetStream):
        raise InputError("Spark checks Parquet files or a DataFrame of its own; leave out --engine.")
    return SparkTable([part.path for part in stream.parts])


__all__ = ["verify_folder", "verify_table"]
