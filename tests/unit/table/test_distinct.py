"""Distinct values batch by batch: in memory, in sorted runs, and by dictionaries."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import gather_in_parts, ways_to_gather

from sfumato.errors import InputError
from sfumato.kernels.ranks import fill_ranks, fill_ranks_naive
from sfumato.policy.schema import Attribute, Role
from sfumato.table import distinct
from sfumato.table.distinct import Dictionary, NumberFile, Numbers, find_places, is_mapped, let_go, take_at
from sfumato.table.spill import Spill

BATCHES = st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30), max_size=12)


@given(BATCHES, st.integers(1, 20), st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_numbers_in_runs_are_those_of_unique(batches, capacity, block):
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        patch.setattr(distinct, "SMALLEST_RUN", block)
        patch.setattr(distinct, "STRETCH", 7)
        numbers = Numbers(spill, 32 * capacity)
        for batch in batches:
            numbers.add(np.array(batch))
        expected = np.unique(np.concatenate([np.zeros(0), *map(np.array, batches)]) + 0.0)
        assert numbers.is_large or numbers.n_held <= max(capacity, block)
        assert np.concatenate([np.zeros(0), *numbers.blocks()]).tolist() == expected.tolist()
        assert numbers.values().tolist() == expected.tolist()
        if len(expected):
            file = NumberFile(spill)
            assert file.append([expected[:3], expected[3:]]) == slice(0, len(expected))
            assert file.append([expected]) == slice(len(expected), 2 * len(expected))
            mapped = file.map()[len(expected) :]
            assert is_mapped(mapped)
            keys = np.random.default_rng(len(expected)).choice(expected, 40)
            found = find_places(mapped, keys)
            assert (
                found.tolist()
                == find_places(expected, keys).tolist()
                == np.searchsorted(expected, keys).tolist()
            )
            assert take_at(mapped, found.reshape(8, 5)).tolist() == keys.reshape(8, 5).tolist()
            let_go(mapped)
            assert mapped[0] == expected[0]
        numbers.drop()
        assert not numbers.is_large


@given(st.data(), st.lists(st.integers(-20, 20), min_size=1, max_size=40), st.integers(1, 20))
@settings(max_examples=100, deadline=None)
def test_numbers_are_the_same_in_any_blocks_and_order_and_by_any_merges(data, values, capacity):
    way, cells = data.draw(ways_to_gather(len(values))), np.array(values)
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        patch.setattr(distinct, "SMALLEST_RUN", 2)
        for one in (spill, None):
            found = gather_in_parts(
                way,
                partial(Numbers, one, 32 * capacity),
                lambda state, start, end: state.add(cells[start:end]),
            )
            assert found.is_large <= (one is not None)
            assert np.concatenate([np.zeros(0), *found.blocks()]).tolist() == sorted(set(values))
            found.drop()
        assert not list(spill.folder.glob("run*")), "merged runs have one owner, who removes them"


@given(st.lists(st.integers(-20, 20), min_size=1), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_ranks_are_those_of_the_naive_twin(values, random):
    values = np.sort(np.array(values, dtype=np.float64))
    keys = np.sort(np.array(random.choices(values.tolist(), k=9)))
    fast, slow = np.empty(9, dtype=np.int64), np.empty(9, dtype=np.int64)
    fill_ranks(values, keys, fast)
    fill_ranks_naive(values, keys, slow)
    assert fast.tolist() == slow.tolist()


CELLS = st.lists(st.lists(st.one_of(st.none(), st.text("abé", max_size=2)), min_size=1), min_size=1)


@given(CELLS, st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_dictionary_of_batches_knows_every_value_its_count_and_its_first_row(batches, encoded, sliced):
    words = Dictionary(Attribute("x", Role.OTHER))
    arrays = [pa.array(batch, pa.string()) for batch in batches]
    if encoded:
        arrays = [array.dictionary_encode() for array in arrays]
    if sliced:  # slices of one batch share its dictionary
        arrays = [part for array in arrays for part in (array.slice(0, 1), array.slice(1)) if len(part)]
    row = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "FEW", 3)
        for array in arrays:
            words.add(array, row)
            row += len(array)
    cells = [cell for batch in batches for cell in batch]
    column = words.column().to_pylist()
    assert sorted(map(repr, column)) == sorted(map(repr, set(cells)))
    assert words.count.tolist() == [cells.count(value) for value in column]
    assert words.first.tolist() == [cells.index(value) for value in column]
    codes = np.arange(len(column), dtype=np.uint32)
    found = np.concatenate([words.codes(array, codes) for array in arrays])
    assert [column[code] for code in found] == cells


@given(st.data(), st.lists(st.one_of(st.none(), st.sampled_from("abcdefg")), min_size=1, max_size=40))
@settings(max_examples=200, deadline=None)
def test_a_dictionary_is_the_same_in_any_blocks_and_order_and_by_any_merges(data, cells):
    way = data.draw(ways_to_gather(len(cells)))
    column = pa.array(cells, pa.string())
    if data.draw(st.booleans()):
        column = column.dictionary_encode()  # all blocks share it
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "FEW", data.draw(st.integers(0, 9)))
        patch.setattr(distinct, "FEW_ROWS", 2)
        words = gather_in_parts(
            way,
            lambda: Dictionary(Attribute("x", Role.OTHER)),
            lambda state, start, end: state.add(column.slice(start, end - start), start),
        )
        words.finish()
    values = [cell for cell in dict.fromkeys(cells) if cell is not None]
    values += [None] * (None in cells)
    assert words.column().to_pylist() == values
    assert words.count.tolist() == [cells.count(value) for value in values]
    assert words.first.tolist() == [cells.index(value) for value in values]
    codes = words.codes(column, np.arange(len(values), dtype=np.uint32))
    assert [values[code] for code in codes] == cells


def test_a_null_inside_a_dictionary_is_missing():
    words = Dictionary(Attribute("x", Role.OTHER))
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", None, "b"]))
    words.add(cells, 0)
    assert words.column().to_pylist() == ["a", "b", None]
    assert words.count.tolist() == [1, 1, 2]
    assert words.codes(cells, np.array([5, 6, 7], dtype=np.uint32)).tolist() == [5, 7, 6, 7]


@pytest.mark.parametrize(
    "cells",
    [pa.nulls(2), pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.nulls(1))],
    ids=["no type", "a dictionary of no type"],
)
def test_cells_of_no_type_are_missing_texts(cells):
    words = Dictionary(Attribute("x", Role.OTHER))
    words.add(cells, 0)
    words.add(pa.array(["a", None]), 2)
    assert words.column().to_pylist() == ["a", None]
    assert words.count.tolist() == [1, 3]
    assert words.codes(cells, np.array([5, 6], dtype=np.uint32)).tolist() == [6, 6]


def test_dates_that_are_all_missing_are_counted_whatever_they_are_stored_as():
    missing = pa.nulls(3, pa.date32())
    for cells in (missing, missing.dictionary_encode(), pa.chunked_array([missing, missing[:0]])):
        days = Dictionary(Attribute("day", Role.OTHER))
        days.add(cells, 0)
        assert (days.column().to_pylist(), days.count.tolist()) == ([None], [3])


def test_a_dictionary_that_outgrows_its_share_names_the_column_and_the_memory():
    words = Dictionary(Attribute("diagnosis", Role.OTHER), memory=1 << 20)
    batches = [pa.array([f"text {i}" for i in range(k, k + 50_000)]) for k in range(0, 200_000, 50_000)]

    def add_all() -> None:
        for i, batch in enumerate(batches):
            words.add(batch, 50_000 * i)

    with pytest.raises(InputError, match="Column 'diagnosis' has over") as caught:
        add_all()
    assert "different values, too many for a dictionary" in str(caught.value)
    assert "--memory" in str(caught.value)
    assert "drop the column, or declare it a number" in str(caught.value)


def test_what_a_dictionary_holds_is_known_while_it_grows():
    """Whoever can do without it then lets it go."""
    words = Dictionary(Attribute("x", Role.OTHER))
    for start in range(0, 200_000, 50_000):
        words.add(pa.array([f"text {i}" for i in range(start, start + 50_000)]), start)
    assert words.held > 100 * 100_000
