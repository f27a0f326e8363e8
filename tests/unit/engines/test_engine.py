"""Which engine a table gets, and what is said of tables that are too large."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines.engine import (
    AUTO,
    DISK,
    MEMORY,
    UNFORESEEN,
    EngineChoice,
    Resources,
    bytes_needed,
    choose_engine,
    estimate_bytes,
)
from sfumato.errors import InputError
from sfumato.table.allowance import allowing
from sfumato.table.source import UNKNOWN, Source
from sfumato.table.spill import Spill

MB = 10**6


def never() -> int:
    raise AssertionError("the size of the table was asked for")


@given(st.integers(1, 10**12), st.integers(0, 10**12))
def test_auto_keeps_a_table_in_memory_exactly_if_it_fits(memory, needed):
    found = choose_engine(AUTO, memory, lambda: needed)
    assert found.limit == memory
    assert found.budget == (None if needed <= memory else memory)


def test_without_a_figure_the_limit_is_what_a_table_may_take():
    with allowing(5 * MB):
        assert choose_engine(AUTO, None, lambda: 5 * MB) == EngineChoice(None, 5 * MB)
        assert choose_engine(AUTO, None, lambda: 5 * MB + 1) == EngineChoice(5 * MB, 5 * MB)
        assert choose_engine(DISK, None, never) == EngineChoice(5 * MB, 5 * MB)


def test_memory_that_was_asked_for_is_unlimited_unless_a_figure_is_given():
    assert choose_engine(MEMORY, None, never) == EngineChoice(None, None)
    assert choose_engine(MEMORY, 2 * MB, lambda: 2 * MB) == EngineChoice(None, 2 * MB)


def test_disk_is_taken_at_its_word_however_small_the_table_is():
    assert choose_engine(DISK, 3 * MB, never) == EngineChoice(3 * MB, 3 * MB)


def test_a_stream_goes_to_disk_only_if_somebody_limits_the_memory():
    assert choose_engine(AUTO, 3 * MB, never, is_endless=True) == EngineChoice(3 * MB, 3 * MB)
    with allowing(5 * MB):
        assert choose_engine(AUTO, None, lambda: 1, is_endless=True) == EngineChoice(None, 5 * MB)
    assert choose_engine(MEMORY, 3 * MB, lambda: 1, is_endless=True) == EngineChoice(None, 3 * MB)


def test_a_method_that_needs_all_rows_in_memory_gets_them_there():
    assert choose_engine(AUTO, None, never, only_in_memory="m") == EngineChoice(None, None, "m")
    assert choose_engine(AUTO, MB, lambda: MB, only_in_memory="m") == EngineChoice(None, MB, "m")
    assert choose_engine(AUTO, MB, lambda: 1, is_endless=True, only_in_memory="m").budget is None
    with pytest.raises(
        InputError, match=r"^m works in memory or on Spark, not on disk; leave out --engine\.$"
    ):
        choose_engine(DISK, MB, never, only_in_memory="m")


@pytest.mark.parametrize("asked", ["", "Memory", "ray"])
def test_another_engine_is_refused(asked):
    with pytest.raises(InputError, match=r"^The engine is auto, memory, disk or spark\.$"):
        choose_engine(asked, None, never)


def test_a_table_too_large_for_memory_is_refused_with_both_figures_and_the_way_out():
    with pytest.raises(InputError) as refused:
        choose_engine(MEMORY, 1200 * MB, lambda: 2500 * MB)
    assert str(refused.value) == (
        "Publishing in memory takes about 2.5 GB, and --memory allows 1.2 GB; "
        "allow more, or let the rows live on disk (--engine disk)."
    )
    for asked in (AUTO, MEMORY):
        with pytest.raises(InputError) as refused:
            choose_engine(asked, 64 * MB, lambda: 65 * MB, only_in_memory="risk-utility")
        assert str(refused.value) == (
            "Publishing by risk-utility takes about 65 MB of memory, and --memory allows 64 MB; "
            "allow more, or give it fewer rows."
        )


def test_a_table_that_was_read_is_refused_only_far_above_the_limit():
    chosen = choose_engine(AUTO, MB, lambda: MB)
    chosen.check(UNFORESEEN * MB)
    with pytest.raises(InputError, match="--engine disk"):
        chosen.check(UNFORESEEN * MB + 1)
    EngineChoice(None, None).check(10**18)


def test_the_way_out_is_the_disk_unless_the_method_has_none():
    assert EngineChoice(None, MB).way_out == ", let the rows live on disk (--engine disk)"
    assert EngineChoice(None, MB, "risk-utility").way_out == ""


def test_an_engine_is_in_memory_unless_it_has_a_folder_for_rows():
    assert Resources().spill is None
    with Spill() as spill:
        assert Resources(2, spill, MB) == Resources(threads=2, spill=spill, memory=MB)


@given(st.integers(0, 10**9), st.integers(0, 1000))
def test_publishing_takes_four_tables_of_codes_with_a_row_number_each(n_rows, n_columns):
    assert bytes_needed(n_rows, n_columns) == 4 * 4 * n_rows * (n_columns + 1)


@pytest.mark.parametrize(
    ("name", "times"), [("t.csv", 4), ("t.csv.gz", 24), ("T.CSV.GZ", 24), ("gone.csv", 0)]
)
def test_a_table_of_unknown_length_is_estimated_by_the_size_of_its_file(tmp_path, name, times):
    path = tmp_path / name
    if times:
        path.write_bytes(b"x" * 1000)
    source = Source(("x",), UNKNOWN, "arrow", str(path), lambda _: pa.chunked_array([[0]]))
    assert estimate_bytes(source, n_columns=9) == 1000 * times


def test_a_table_of_known_length_is_estimated_by_its_rows(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"x" * 1000)
    source = Source(("x",), 50, "arrow", str(tmp_path / "t.csv"), lambda _: pa.chunked_array([[0]]))
    assert estimate_bytes(source, n_columns=9) == bytes_needed(50, 9)
