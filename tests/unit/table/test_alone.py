"""Rows that are alone by a value, against the obvious count, with and without files."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.table import alone
from sfumato.table.alone import AloneRows, number_cells
from sfumato.table.spill import Spill

CATEGORY = Attribute("x", Role.OTHER)

rows = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5)), max_size=60)


def count_naively(pairs: list[tuple[int, int]]) -> tuple[int, int]:
    """The rows whose value one person has alone, and the number of values."""
    people = defaultdict(set)
    for value, person in pairs:
        people[value].add(person)
    return sum(len(people[value]) == 1 for value, _ in pairs), len(people)


def fill(pairs: list[tuple[int, int]], *cuts: int, spill: Spill | None = None) -> AloneRows:
    """The rows in batches, every other one on a state of its own that is merged."""
    found, memory = AloneRows(spill, 1), np.array(pairs, dtype=np.uint64).reshape(-1, 2)
    for number, part in enumerate(np.split(memory, sorted(cuts))):
        own = AloneRows(spill, 1) if number % 2 else found
        own.add(part[:, 0], part[:, 1])
        if own is not found:
            found.merge(own)
    return found


@settings(max_examples=60, deadline=None)
@given(rows, st.integers(0, 60), st.integers(0, 60))
def test_it_counts_what_people_count_however_rows_are_cut(pairs, first, second):
    assert fill(pairs, min(first, len(pairs)), min(second, len(pairs))).count() == count_naively(pairs)


def test_records_that_do_not_fit_go_by_way_of_files(monkeypatch):
    monkeypatch.setattr(alone, "SMALLEST", 4)
    rng = np.random.default_rng(5)
    pairs = [
        tuple(pair) for pair in np.column_stack([rng.integers(0, 300, 500), rng.integers(0, 9, 500)]).tolist()
    ]
    with Spill() as spill:
        found = fill(pairs, 90, 200, 310, 400, spill=spill)
        assert spill.counters.spills > 2
        assert found.count() == count_naively(pairs)
        assert not list(spill.folder.glob("run-*"))  # nothing is left behind


@pytest.mark.parametrize(
    ("cells", "same", "missing"),
    [
        (pa.array(["a", "b", "a", None, ""]), [(0, 2)], [3, 4]),
        (pa.array([1.5, float("nan"), 1.5, 2.5, None]), [(0, 2)], [1, 4]),
        (pa.array([0.0, -0.0]), [(0, 1)], []),
        (pa.array([7, -7, 7], pa.int16()), [(0, 2)], []),
        (pa.array([1, 2, 1], pa.timestamp("us")), [(0, 2)], []),
        (pa.array(["x", "y", "x"]).dictionary_encode(), [(0, 2)], []),
        (pa.array([True, False, True]), [(0, 2)], []),
    ],
)
def test_equal_cells_have_one_number_and_others_another(cells, same, missing):
    numbers, is_there = number_cells(cells, CATEGORY)
    assert np.flatnonzero(~is_there).tolist() == missing
    there = np.flatnonzero(is_there)
    assert len(np.unique(numbers[there])) == len(there) - len(same)
    assert all(numbers[i] == numbers[j] for i, j in same)


def test_declared_texts_for_missing_are_missing_and_numbers_do_not_change_by_batch():
    attribute = Attribute("x", Role.OTHER, Kind.NUMBER, missing_values=("-9",))
    assert number_cells(pa.array([5, -9]), attribute)[1].tolist() == [True, False]
    assert number_cells(pa.array(["a", "b"]), CATEGORY)[0][1] == number_cells(pa.array(["b"]), CATEGORY)[0][0]
