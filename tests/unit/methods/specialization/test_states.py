"""What TDS and DiffGen gather can be gathered in parts and merged: cells of meshes, slices of them, bins, rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from merging import gather_merged, gather_whole

from sfumato.encoding.batches import Block
from sfumato.methods.specialization.diffgen.counts import BinClasses, BinPlan, CellPlan, RowCountPlan
from sfumato.methods.specialization.groups import StepLevels, Stop
from sfumato.methods.specialization.loop import Candidate, Piece
from sfumato.methods.specialization.mesh import CellCounts, Mesh, MeshPlan, SlicePlan
from sfumato.methods.specialization.order import BitLevels
from sfumato.randomness import seeded

SEEDS = st.integers(0, 2**32)
MESH = Mesh.of([np.arange(1, 9)] * 3)


def rows_of(seed: int, n: int = 80) -> Any:
    """Three axes of 8 codes, some of them rare, then a class."""
    random = seeded(seed)
    codes = np.minimum(random.geometric(0.3, (n, 3)) - 1, 7)
    return np.concatenate([codes, random.integers(0, 2, (n, 1))], axis=1).astype(np.uint32)


def spelled(counts: CellCounts) -> dict[tuple[int, ...], int]:
    places = counts.mesh.places(counts.cells()).tolist()
    return {tuple(place): n for place, n in zip(places, counts.n_rows().tolist(), strict=True)}


def counted(mesh: Mesh, rows: Any) -> dict[tuple[int, ...], int]:
    """The obviously right version."""
    out: dict[tuple[int, ...], int] = {}
    for place in mesh.places(mesh.cells(rows)).tolist():
        out[tuple(place)] = out.get(tuple(place), 0) + 1
    return out


def step_levels(seed: int, memory: int) -> StepLevels:
    """A grid of one cell that is cut further, code by code."""
    random = seeded(seed)
    steps = []
    for a, end in random.permutation([(a, end) for a in range(3) for end in range(1, 8)]).tolist():
        steps.append(Candidate(Piece(a, 0, 8), (Piece(a, 0, end), Piece(a, end, 8))))
    stops = [Stop(n + 1, 0.45 * n) for n in range(len(steps))]
    return StepLevels.of([np.array([8])] * 3, steps, stops, memory)


@settings(max_examples=150)
@given(SEEDS, st.integers(0, 10_000), st.booleans(), st.data())
def test_cells_are_counted_on_the_same_mesh_however_rows_are_divided(
    seed: int, memory: int, by_bits: Any, data: Any
):
    """The finest one that fits: neither the order of rows nor that of merges decides which it is."""
    rows, levels = rows_of(seed), BitLevels(MESH, memory) if by_bits else step_levels(seed, memory)
    plan = pickle.loads(pickle.dumps(MeshPlan(levels)))
    whole, merged = gather_whole(plan, rows), gather_merged(plan, rows, data)
    sizes = [len(counted(levels.mesh(level), rows)) for level in range(levels.n_levels)]
    fits = [n <= levels.most(levels.mesh(level)) for level, n in enumerate(sizes)]
    if not any(fits):
        assert whole.counts is None
        assert merged.counts is None
        event("too many cells")
        return
    assert whole.level == merged.level == fits.index(True)
    assert spelled(whole.counts) == spelled(merged.counts) == counted(levels.mesh(whole.level), rows)
    event(f"level {min(whole.level, 5)}")


@settings(max_examples=150)
@given(SEEDS, st.integers(2, 40), st.data())
def test_slices_of_a_candidate_are_the_same_however_rows_are_divided(seed: int, most: int, data: Any):
    rows = rows_of(seed)
    inside = rows[(rows[:, 1] >= 1) & (rows[:, 1] < 6)]
    waiting = [SlicePlan(MESH, most, 1, 1, 6)]
    found: dict[tuple[int, ...], int] = {}
    while waiting:
        plan = waiting.pop()
        whole, merged = gather_whole(plan, rows), gather_merged(plan, rows, data)
        assert (whole.n_slices, whole.which) == (merged.n_slices, merged.which)
        assert spelled(whole) == spelled(merged)
        assert whole.n <= most
        waiting += plan.rest(whole)
        assert not found.keys() & spelled(whole).keys()
        found |= spelled(whole)
    assert found == counted(MESH, inside)


@settings(max_examples=60)
@given(SEEDS, st.data())
def test_what_diffgen_counts_is_the_same_however_rows_are_divided(seed: int, data: Any):
    rows = rows_of(seed)
    number = np.arange(8**3, dtype=np.int32) % 5 - 1
    bin_of_code = np.concatenate([np.arange(8) // 2, np.full(8, -1), 4 + np.arange(8)]).astype(np.int32)
    plans: list[Any] = [
        CellPlan(MESH, 2),
        BinPlan(MESH, number, np.array([0, 8, 16]), bin_of_code, (12, 4, 2)),
        RowCountPlan(),
    ]
    for plan in plans:
        copied = pickle.loads(pickle.dumps(plan))
        assert np.array_equal(gather_whole(plan, rows), gather_merged(copied, rows, data))
    cells, bins, n_rows = (gather_whole(plan, rows) for plan in plans)
    assert (n_rows, cells.sum()) == (80, 80)
    expected = np.zeros((12, 4, 2), dtype=np.int64)
    for row, cell in zip(rows.tolist(), MESH.cells(rows)[:, 0].tolist(), strict=True):
        for first, code in zip((0, 8, 16), row[:3], strict=True):
            if number[cell] >= 0 and bin_of_code[first + code] >= 0:
                expected[bin_of_code[first + code], number[cell], row[3]] += 1
    assert bins.tolist() == expected.tolist()


@pytest.mark.parametrize(("one", "other"), [(2**32 - 2, 5), (7, 2**32 - 1), (2**31, 2**31)])
def test_merged_counts_that_are_full_stay_so(one: int, other: int):
    plan = BinPlan(
        MESH, np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32), (1, 1, 1)
    )
    states = [BinClasses(plan), BinClasses(plan)]
    for state, n in zip(states, (one, other), strict=True):
        state.table[:] = n
    states[0].merge(states[1])
    assert states[0].table.tolist() == [[[2**32 - 1]]]


def test_a_coarser_mesh_is_taken_only_if_the_cells_do_not_fit():
    rows = rows_of(3)
    n = len(counted(MESH, rows))
    enough = 2 * CellCounts.cell_bytes(1) * n
    for memory, level in ((enough, 0), (enough - 1, 1)):
        state = MeshPlan(BitLevels(MESH, memory)).new(0, None)
        state.add(Block(rows, None))
        assert state.level == level
