"""Top-down specialization of rows outside memory: the cuts, their order and the groups of the engine in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from blocks import EncodedRows
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tds_cases import (
    Case,
    cases,
    chooser_in_memory,
    chooser_in_passes,
    cuts_of,
    noting,
    people_cases,
    spelled,
)

from sfumato.engines.disk import DiskEngine
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
from sfumato.engines.rows import MOST_FILES
from sfumato.engines.start import scan_table
from sfumato.methods.specialization import loop
from sfumato.methods.specialization.grid_run import GridRun
from sfumato.methods.specialization.groups import CountedGroups
from sfumato.policy.output import Output
from sfumato.randomness import seeded
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill

MEMORY = st.sampled_from([64, 1000, 4000, 20_000, 10**8])
"""From room for two cells of a grid to room for all."""


def same_groups(rows: EncodedRows, case: Case, found: Any, portions: Any) -> int:
    """Check everything that both engines give; how many portions there were."""
    cuts, expected = found.recoding, case.partition()
    assert spelled(cuts) == spelled(expected.recoding)
    assert cuts.n_groups == cuts_of(expected).n_groups
    leaf: list[Any] = []
    members: list[Any] = []
    for groups, payload in portions:
        numbers = payload.column("row").to_numpy()[groups.row_numbers]
        for place, part in zip(
            groups.leaf.tolist(), np.split(numbers, np.cumsum(groups.size)[:-1]), strict=True
        ):
            if leaf and leaf[-1] == place:
                members[-1] |= set(part.tolist())
            else:
                leaf.append(place)
                members.append(set(part.tolist()))
    assert leaf == expected.leaf.tolist()
    ends = np.cumsum(expected.size)
    assert members == [set(part.tolist()) for part in np.split(expected.row_numbers, ends[:-1])]
    return len(portions)


@settings(max_examples=70)
@given(cases(max_rows=60), MEMORY, st.integers(1, 70), st.integers(1, 20))
def test_the_groups_are_those_of_the_engine_in_memory(case: Case, memory: int, at_once: int, size: int):
    rows = EncodedRows(case.table(), case.policy, size=size)
    with Spill() as spill:
        engine = DiskEngine(spill, rows.layout, Room(memory, at_once, MOST_FILES), writer_bytes=memory // 2)
        run = GridRun(engine, rows, case.policy, random=seeded(1))
        found = [(chunk.groups, chunk.payload) for chunk, _ in engine.finish(run.works())]
        cuts = run.recoding()
        assert all(groups.size.sum() <= at_once or len(found) == 1 for groups, _ in found)
        assert [path.name for path in spill.folder.iterdir() if path.name.startswith("rows")] == []
    assert all(groups.recoding is cuts for groups, _ in found)
    event(f"{min(same_groups(rows, case, found[0][0], found), 3)} portions")


def test_the_engine_in_memory_can_work_in_parts_and_finds_the_same_groups():
    """As the one on disk does, but without files: any room gives the same groups."""

    @settings(max_examples=80)
    @given(cases(max_rows=60), MEMORY, st.integers(1, 70), st.integers(2, 9))
    def check(case: Case, memory: int, at_once: int, parts: int) -> None:
        table = scan_table(open_table(case.table()), case.policy)
        engine = MemoryEngine(Room(memory, at_once, parts))
        run = GridRun(engine, table, case.policy, random=seeded(1))
        found = [(chunk.groups, chunk.payload) for chunk, _ in engine.finish(run.works())]
        numbers = pa.table({"row": np.arange(table.n_rows)})
        rows = EncodedRows(case.table(), case.policy)
        same_groups(rows, case, found[0][0], [(groups, numbers) for groups, _ in found])

    check()


def chosen_on_disk(rows: EncodedRows, case: Case, memory: int) -> tuple[list[Any], CountedGroups]:
    with Spill() as spill:
        engine = DiskEngine(spill, rows.layout, Room(2 * memory, 1, MOST_FILES), writer_bytes=memory)
        chooser, groups = chooser_in_passes(engine, rows, case.policy)
        taken = noting(chooser, rows.rows.T)
        loop.specialize(rows.domains, chooser)
    return taken, groups


@settings(max_examples=100)
@given(cases(max_rows=60).filter(lambda case: case.k > 1), MEMORY)
def test_specializations_come_in_the_order_of_the_engine_in_memory(case: Case, memory: int):
    rows = EncodedRows(case.table(), case.policy, size=16)
    taken, groups = chosen_on_disk(rows, case, memory)
    chooser, codes, domains = chooser_in_memory(case.table(), case.policy)
    expected = noting(chooser, codes)
    loop.specialize(domains, chooser)
    assert taken == expected
    event("sliced" if groups.is_sliced else f"{min(rows.passes, 6)} passes")


@settings(max_examples=120)
@given(people_cases(max_rows=40), MEMORY, st.integers(1, 45), st.integers(1, 20))
def test_people_and_what_is_left_out_are_those_of_the_engine_in_memory(
    case: Case, memory: int, at_once: int, size: int
):
    if case.output is Output.SUMMARY:  # refused of a group that is larger than memory
        case = replace(case, output=Output.LABELS)
    rows, expected = EncodedRows(case.table(), case.policy, size=size), case.grow()
    with Spill() as spill:
        engine = DiskEngine(spill, rows.layout, Room(memory, at_once, MOST_FILES), writer_bytes=memory // 2)
        run = GridRun(engine, rows, case.policy, random=seeded(1))
        found = [run.note(note) or chunk for chunk, note in engine.finish(run.works())]
        cuts = run.recoding()
        assert [path.name for path in spill.folder.iterdir() if path.name.startswith("rows")] == []
    assert cuts.as_document() == cuts_of(expected).as_document()
    members: dict[tuple[int, ...], set[int]] = {}
    for groups, payload in ((own.groups, own.payload) for own in found if len(own.groups.size)):
        assert payload is not None
        numbers = payload.column("row").to_numpy()[groups.row_numbers]
        for place, part in zip(
            groups.leaf.tolist(), np.split(numbers, np.cumsum(groups.size)[:-1]), strict=True
        ):
            members.setdefault(tuple(place), set()).update(part.tolist())
    leaves = [tuple(place) for place in expected.leaf.tolist()]
    ends = np.cumsum(expected.size)
    assert members == dict(
        zip(leaves, (set(part.tolist()) for part in np.split(expected.row_numbers, ends[:-1])), strict=True)
    )
    table = scan_table(open_table(case.table()), case.policy)
    alone = GridRun(MemoryEngine(), table, case.policy, random=seeded(1))
    for _, note in MemoryEngine().finish(alone.works()):
        alone.note(note)
    assert (run.errors, run.n_people) == (alone.errors, alone.n_people)
    event(f"left out: {len(case.rows) > expected.size.sum()}, people: {case.people is not None}")
