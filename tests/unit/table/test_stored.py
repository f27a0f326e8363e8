"""Rows in a file, or in memory: their distinct lines."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.table.stored import FiledRows, distinct_lines
from sfumato.table.write import write_table


@pytest.mark.parametrize("is_filed", [False, True])
def test_distinct_lines_stand_in_the_order_of_their_first_ones_and_are_counted(is_filed, tmp_path):
    """Arrow's order of groups is another one now and then, so many tables are looked at."""
    random = np.random.default_rng(5)
    for trial in range(40):
        labels = [f"[{i}, {i + 3})" for i in random.permutation(200)[:28]]
        n_rows = random.integers(30, 150, len(labels))
        table = pa.table({"age": np.repeat(labels, n_rows), "sex": ["*"] * int(n_rows.sum())})
        rows = table
        if is_filed:
            write_table(table, tmp_path / f"{trial}.parquet")
            rows = FiledRows(tmp_path / f"{trial}.parquet", "parquet")
        lines, count = distinct_lines(rows, ["age", "sex"])
        assert lines.column("age").to_pylist() == labels
        assert count.tolist() == n_rows.tolist()
