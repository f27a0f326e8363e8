"""How the memory of a run on disk is divided."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines.memory_plan import BLOCK_BYTES, MemoryPlan, estimate_row_bytes
from sfumato.engines.rows import MOST_FILES


@given(st.integers(1 << 20, 1 << 40), st.integers(1, 10_000))
def test_no_phase_may_take_more_than_the_memory(memory, row_bytes):
    plan = MemoryPlan.of(memory, row_bytes=row_bytes)
    assert plan.max_rows * row_bytes <= max(memory, 100 * row_bytes)
    assert plan.count_bytes <= memory
    assert plan.writer_bytes <= memory
    assert 2 <= plan.max_files <= MOST_FILES
    assert plan.max_files == 2 or plan.max_files * BLOCK_BYTES <= plan.writer_bytes


def test_a_policy_may_fix_the_rows_that_are_held_at_once():
    assert MemoryPlan.of(1 << 30, row_bytes=100, max_rows=7).max_rows == 7
    assert MemoryPlan.of(1, row_bytes=100).max_rows == 100  # fewer are not worth a file


def test_a_row_takes_its_codes_twice_its_cells_and_a_share_of_the_labels_of_its_group():
    small = {"n_axes": 2, "n_extra": 1, "cell_bytes": 8}
    alone, shared = estimate_row_bytes(**small), estimate_row_bytes(**small, min_group=10)
    assert alone - shared == 800 - 80  # labels of two boxes, by one row or by ten
    assert estimate_row_bytes(**small, payload_bytes=50) - alone == 3 * 50
    assert estimate_row_bytes(**{**small, "cell_bytes": 32}) - alone == 2 * 24
    assert estimate_row_bytes(**{**small, "n_extra": 2}) - alone == 4
    assert estimate_row_bytes(**{**small, "n_axes": 3}) - alone == 8 + 400
