"""Samples of rows that pass by: the rows with the least keys, however they are divided into portions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.engines.reservoir import sample_cells, sample_codes
from sfumato.randomness import seeded

ROWS = np.arange(1000, dtype=np.uint32)[:, None]


def rows_of_least_keys(size: int) -> list[int]:
    keys = seeded(7).integers(0, 2**64, size=len(ROWS), dtype=np.uint64)
    return sorted(np.argsort(keys)[:size].tolist())


@pytest.mark.parametrize("portion", [1, 7, 300, 1000])
@pytest.mark.parametrize("size", [1, 20, 999])
def test_a_sample_of_codes_is_that_of_the_least_keys_however_rows_come(size, portion):
    drawn = sample_codes(size, seeded(7))
    for start in range(0, len(ROWS), portion):
        drawn.add(ROWS[start : start + portion], min(portion, len(ROWS) - start))
    assert drawn.rows()[:, 0].tolist() == rows_of_least_keys(size)


@pytest.mark.parametrize("n_rows", [0, 1000])
@pytest.mark.parametrize("portion", [7, 300, 1000])
def test_a_sample_of_cells_is_the_same_whether_or_not_the_number_of_rows_is_known(portion, n_rows):
    whole = pa.record_batch({"x": ROWS[:, 0], "y": pa.array(map(str, ROWS[:, 0])).dictionary_encode()})
    drawn = sample_cells(20, seeded(7), n_rows)
    for start in range(0, len(ROWS), portion):
        part = whole.slice(start, portion)
        drawn.add(part, part.num_rows)
    found = drawn.rows().to_pydict()
    assert found == {"x": rows_of_least_keys(20), "y": [str(row) for row in rows_of_least_keys(20)]}
    assert drawn.rows().schema.field("y").type == pa.string(), (
        "no dictionary of a whole row group comes along"
    )


def test_fewer_rows_than_are_wanted_are_all_drawn():
    drawn = sample_codes(2000, seeded(1))
    drawn.add(ROWS, len(ROWS))
    assert drawn.rows().tolist() == ROWS.tolist()
