"""Counts of columns and of cells, and rows in the order of cells: against plain counting, within little room."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from blocks import BlockRows
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import gather_merged

from sfumato.engines import counts as counts_module
from sfumato.engines.disk import DiskEngine
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Asked, Loaded, Room
from sfumato.engines.rows import MOST_FILES
from sfumato.methods.specialization.column_counts import Classes, ColumnPlan
from sfumato.methods.specialization.mesh import CellCounts, Mesh, hashes_of, sort_cells
from sfumato.methods.specialization.order import RowsByCell, count_cells, sort_rows
from sfumato.randomness import seeded
from sfumato.table.spill import Spill

# ---- columns ---------------------------------------------------------------------------------------


def spelled(entries: Any) -> list[tuple[int, int, int]]:
    """(code, class, rows), entry by entry; a code is never in two chunks."""
    chunks = [
        list(zip(*(column.tolist() for column in (part.codes(), part.classes(), part.n_rows)), strict=True))
        for part in entries
    ]
    codes = [{code for code, _, _ in chunk} for chunk in chunks]
    assert sum(map(len, codes)) == len(set().union(*codes))
    return [entry for chunk in chunks for entry in chunk]


def counted(codes: Any, labels: Any, start: Any, low: int, high: int) -> list[tuple[int, int, int]]:
    seen = Counter(
        (int(code), int(start[t] + label))
        for code, line in zip(codes, labels, strict=True)
        for t, label in enumerate(line)
        if low <= code < high
    )
    return [(*key, seen[key]) for key in sorted(seen)]


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.integers(1, 80), st.sampled_from([0, 3000, 10**6]), st.booleans(), st.data())
def test_entries_are_the_counts_of_values_and_classes_however_rows_are_divided_and_merged(
    seed: int, n: int, memory: int, is_stored: Any, data: Any
):
    """In tables or sorted, however few keys are sorted at once; by any chunks, order and tree of merges."""
    random = seeded(seed)
    n_codes = [30, 400]
    codes = np.stack([random.integers(0, size, n) for size in n_codes]).astype(np.uint32)
    labels = np.stack([random.integers(0, 2, n), random.integers(0, 3, n)], axis=1).astype(np.uint32)
    low = data.draw(st.integers(0, 30))
    high = data.draw(st.integers(low, 30))
    classes = Classes([2, 3])
    rows = np.concatenate([codes.T, labels], axis=1)
    plan = ColumnPlan(
        n_codes, labels=[2, 3], n_classes=[2, 3], most_rows=data.draw(st.sampled_from([0, 10**6]))
    )
    (whole,) = MemoryEngine().gather(BlockRows(rows, size=7), Asked([plan]))
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        patch.setattr("sfumato.methods.specialization.column_counts.LEAST_ROOM", 0)
        patch.setattr(counts_module, "FEWEST", data.draw(st.integers(1, 40)))
        merged = gather_merged(plan, rows, data, room=memory, spill=spill if is_stored else None)
        for counts in (whole, merged):
            assert counts.n_rows == n
            for axis in (0, 1):
                expected = counted(codes[axis], labels, classes.start, low, high)
                assert spelled(counts.between(axis, low, high)) == expected
                of_class = Counter(dict.fromkeys(range(5), 0))
                for _, c, n_rows in expected:
                    of_class[c] += n_rows
                assert counts.totals(axis, low, high).tolist() == [of_class[c] for c in range(5)]


@pytest.mark.parametrize("memory", [0, 100_000, 10**9])
def test_columns_are_counted_in_one_pass_whatever_the_memory(memory):
    random = seeded(3)
    n, n_codes = 60_000, [20, 200_000, 5]
    codes = np.stack([random.integers(0, size, n) for size in n_codes]).astype(np.uint32)
    labels = random.integers(0, 4, (n, 1)).astype(np.uint32)
    rows = BlockRows(np.concatenate([codes, labels.T]).T, size=1000)
    plan = ColumnPlan(n_codes, labels=[3], n_classes=[4])
    (expected,) = MemoryEngine().gather(rows, Asked([plan]))
    rows.passes = 0
    with Spill() as spill:
        engine = DiskEngine(spill, rows.layout, Room(memory), writer_bytes=memory)
        (found,) = engine.gather(rows, Asked([plan]))
        assert (rows.passes, found.n_rows) == (1, n)
        assert (spill.counters.bytes_written > 0) == (memory < 10**9)
        for axis, size in enumerate(n_codes):
            for low, high in ((0, size), (size // 3, size // 2), (0, 1), (size - 1, size)):
                assert spelled(found.between(axis, low, high)) == spelled(expected.between(axis, low, high))
        spill.counters.bytes_read = 0
        assert found.totals(1, 100_000, 100_100).sum() == ((codes[1] >= 100_000) & (codes[1] < 100_100)).sum()
        assert spill.counters.bytes_read <= 3 * 1024 * 16  # not the whole column for a small part


# ---- cells -----------------------------------------------------------------------------------------

MESHES = st.lists(
    st.lists(st.integers(1, 60), min_size=1, max_size=6, unique=True).map(sorted), min_size=1, max_size=5
)


@settings(max_examples=100)
@given(MESHES, st.integers(0, 2**32))
def test_cells_and_their_places_are_each_others_inverse(ends: list[list[int]], seed: int):
    mesh = Mesh.of([np.array(end) for end in ends])
    codes = np.stack([seeded(seed).integers(0, end[-1], 50) for end in ends], axis=1).astype(np.uint32)
    places = np.stack([np.searchsorted(end, codes[:, a], side="right") for a, end in enumerate(ends)], axis=1)
    cells = mesh.cells(codes)
    assert mesh.places(cells).tolist() == places.tolist()
    assert mesh.number_cells(places).tolist() == cells.tolist()
    order, start = sort_cells(cells)
    assert places[order].tolist() == sorted(places.tolist())
    assert len(start) == len({tuple(place) for place in places.tolist()})


def test_a_number_of_many_axes_takes_several_words_and_long_axes_are_searched():
    n_codes = 300_000
    ends = [np.arange(1, n_codes + 1) * 2 for _ in range(8)]
    mesh = Mesh.of(ends)
    assert mesh.n_words == 3
    codes = seeded(1).integers(0, 2 * n_codes, (1000, 8)).astype(np.uint32)
    assert mesh.places(mesh.cells(codes)).tolist() == (codes // 2).tolist()
    assert len(set(hashes_of(mesh.cells(codes)).tolist())) == 1000
    order, _ = sort_cells(mesh.cells(codes))
    assert (codes[order] // 2).tolist() == sorted((codes // 2).tolist())


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.integers(2, 40), st.sampled_from([1, 2, 4, 8]))
def test_slices_of_cells_add_up_to_all(seed: int, most: int, n_slices: int):
    codes = seeded(seed).integers(0, 5, (100, 3)).astype(np.uint32)
    mesh = Mesh.of([np.arange(1, 6)] * 3)
    cells = mesh.cells(codes)
    found: Counter[int] = Counter()
    waiting = [(which, n_slices) for which in range(n_slices)]
    while waiting:
        which, n = waiting.pop()
        counts, n_added = CellCounts(mesh, most, n_slices=n, which=which), 0
        while (n_added := counts.add(cells, begin=n_added)) < len(cells):
            waiting.append((counts.which + counts.n_slices, 2 * counts.n_slices))
            counts = counts.double_slices()
        assert counts.n <= most
        found += Counter(dict(zip(counts.cells()[:, 0].tolist(), counts.n_rows().tolist(), strict=True)))
    assert found == Counter(cells[:, 0].tolist())


# ---- rows in the order of cells --------------------------------------------------------------------


def hand_over(part: Loaded) -> Loaded:
    return part


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([0, 2000, 10**6]), st.integers(1, 120), st.integers(1, 30))
def test_rows_come_cell_by_cell_in_files_that_fit(seed: int, memory: int, at_once: int, size: int):
    random = seeded(seed)
    codes = np.minimum(random.geometric(0.3, (100, 3)) - 1, 7).astype(np.uint32)
    mesh = Mesh.of([np.arange(1, 9)] * 3, [random.permutation(8) for _ in range(3)])
    rows = BlockRows(codes, pa.table({"row": np.arange(100)}), size=size)
    with Spill() as spill:
        engine = DiskEngine(spill, rows.layout, Room(memory, at_once, MOST_FILES), writer_bytes=memory)
        by_cell = RowsByCell(engine, mesh, memory, random)
        files = by_cell.files(rows, None, lambda cell: cell.n_rows)
        assert sum(file.rows.n_rows for file in files) == 100
        assert all(file.rows.n_rows <= at_once for file in files) or len(files) == 1
        told = sum(file.told for file in files if file.told is not None and file.is_first)
        assert told == sum(file.rows.n_rows for file in files if file.told is not None)
        n_cells = by_cell.n_cells(files)
        seen, numbers = [], []
        for part in engine.finish((file.rows, hand_over) for file in files):
            found = sort_rows(mesh, part)
            seen += np.repeat(mesh.places(found.cells), found.size, axis=0).tolist()
            numbers += part.payload.column("row").to_numpy()[part.number(found.order)].tolist()
        assert list(spill.folder.glob("rows-*")) == []
    assert sorted(numbers) == list(range(100))
    assert seen == sorted(seen)
    assert seen == mesh.places(mesh.cells(codes[numbers])).tolist()
    assert n_cells == len({tuple(place) for place in seen})


def test_counts_of_cells_become_coarser_until_they_fit_and_stay_in_order():
    codes = seeded(1).integers(0, 64, (5000, 3)).astype(np.uint32)
    mesh = Mesh.of([np.arange(1, 65)] * 3)
    counts = count_cells(MemoryEngine(), BlockRows(codes, size=100), mesh, 64 * 200)
    assert 100 <= counts.n <= 200
    assert counts.mesh.size == (64, 2, 1)
    halves = Counter(zip(codes[:, 0].tolist(), (codes[:, 1] // 32).tolist(), strict=True))
    assert sorted(counts.n_rows().tolist()) == sorted(halves.values())
    exact = count_cells(MemoryEngine(), BlockRows(codes, size=100), mesh, 10**6)
    assert exact.mesh is mesh
    assert exact.n == len({tuple(line) for line in codes.tolist()})


def test_a_cell_larger_than_memory_is_scattered_at_random():
    """And within each file when it is published: every row is as likely in every third, wherever it stood."""
    n, runs = 30, 250
    rows = BlockRows(np.zeros((n, 1)), pa.table({"row": np.arange(n)}))
    mesh, random = Mesh.of([np.array([1])]), seeded(20080815)
    seen = np.zeros((n, n), dtype=np.int64)
    with Spill() as spill:
        for _ in range(runs):
            engine = DiskEngine(spill, rows.layout, Room(10**6, 10, MOST_FILES), writer_bytes=10**6)
            by_cell = RowsByCell(engine, mesh, 10**6, random)
            files = by_cell.files(rows, None, lambda _: None)
            assert len(files) >= 3
            parts = engine.finish((file.rows, hand_over) for file in files)
            numbers = [random.permutation(part.payload.column("row").to_numpy()) for part in parts]
            seen[np.concatenate(numbers), np.arange(n)] += 1
    thirds = np.stack([part.sum(axis=1) for part in (seen[:, :10], seen[:, 10:20], seen[:, 20:])])
    assert abs(thirds - runs / 3).max() < 6 * np.sqrt(runs * 2 / 9)  # six standard deviations
