"""Samples of rows that pass by: those with the least keys, in whatever blocks, order and samples they come."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from merging import gather_in_parts, ways_to_gather

from sfumato.engines.reservoir import sample_cells, sample_codes, seed_of_part
from sfumato.randomness import splitmix64

ROWS = np.arange(1000, dtype=np.uint32)[:, None]
CELLS = pa.record_batch({"x": ROWS[:, 0], "y": pa.array(map(str, ROWS[:, 0])).dictionary_encode()})


def rows_of_least_keys(size: int, seed: int = 7) -> list[int]:
    keys = splitmix64(seed, np.arange(len(ROWS)))
    return sorted(np.argsort(keys)[:size].tolist())


@pytest.mark.parametrize("portion", [1, 7, 300, 1000])
@pytest.mark.parametrize("size", [1, 20, 999])
def test_a_sample_of_codes_is_that_of_the_least_keys_however_rows_come(size, portion):
    drawn = sample_codes(size, 7)
    for start in range(0, len(ROWS), portion):
        drawn.add(ROWS[start : start + portion], start)
    assert drawn.rows()[:, 0].tolist() == rows_of_least_keys(size)


@pytest.mark.parametrize("n_rows", [0, 1000])
@pytest.mark.parametrize("portion", [7, 300, 1000])
def test_a_sample_of_cells_is_the_same_whether_or_not_the_number_of_rows_is_known(portion, n_rows):
    drawn = sample_cells(20, 7, n_rows)
    for start in range(0, len(ROWS), portion):
        drawn.add(CELLS.slice(start, portion), start)
    found = drawn.rows().to_pydict()
    assert found == {"x": rows_of_least_keys(20), "y": [str(row) for row in rows_of_least_keys(20)]}
    assert drawn.rows().schema.field("y").type == pa.string(), (
        "no dictionary of a whole row group comes along"
    )


@given(ways_to_gather(len(ROWS)), st.integers(1, 1200), st.integers(0, 2**70), st.booleans())
def test_any_blocks_any_order_and_any_tree_of_merges_give_the_same_sample(way, size, seed, is_known):
    codes = gather_in_parts(
        way, lambda: sample_codes(size, seed), lambda state, start, end: state.add(ROWS[start:end], start)
    )
    expected = rows_of_least_keys(size, seed)
    assert codes.rows()[:, 0].tolist() == expected
    cells = gather_in_parts(
        way,
        lambda: sample_cells(size, seed, len(ROWS) if is_known else 0),
        lambda state, start, end: state.add(CELLS.slice(start, end - start), start),
    )
    assert cells.rows().column("x").to_pylist() == expected
    smaller = max(size // 3, 1)
    assert codes.rows(smaller)[:, 0].tolist() == rows_of_least_keys(smaller, seed)
    assert codes.rows()[:, 0].tolist() == expected


def test_fewer_rows_than_are_wanted_are_all_drawn():
    drawn = sample_codes(2000, 1)
    drawn.add(ROWS[500:], 500)
    drawn.add(ROWS[:500], 0)
    assert drawn.rows().tolist() == ROWS.tolist()


def test_the_samples_of_a_part_and_of_the_whole_have_no_more_rows_in_common_than_chance_would_have_it():
    samples = [rows_of_least_keys(300, seed_of_part(1, n_rows)) for n_rows in (0, 1000, 999, 60)]
    for i, sample in enumerate(samples):
        for other in samples[:i]:
            assert 60 < len(set(sample) & set(other)) < 120  # 90 expected, five standard deviations of 6
