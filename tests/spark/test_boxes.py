"""Mondrian on Spark finds the groups that it finds in memory."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mondrian_cases import BIG_CASES, Case, big_case
from tree_runs import Groups, grown_by_run, grown_in_memory, grown_whole, sampled, scan, with_numbers

from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
from sfumato.engines.spark.engine import SparkEngine
from sfumato.engines.spark.handed import HandedJobs
from sfumato.engines.spark.jobs import Jobs
from sfumato.engines.start import scan_table
from sfumato.methods.groups import find_chunks
from sfumato.methods.mondrian.tree_run import TreeRun
from sfumato.policy.document import Policy
from sfumato.policy.requirements import KAnonymity
from sfumato.policy.suppress import Suppress
from sfumato.randomness import seeded
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill

PLENTY = Room(1 << 30, 60, 200, keeps_counts=False)
LITTLE = Room(2000, 50, 5, keeps_counts=False)


def grown_on_spark(
    case: Case,
    room: Room,
    session: Any,
    folder: Path,
    kind: type[Jobs] = Jobs,
    suppress: Suppress | None = None,
) -> Groups:
    table, policy = with_numbers(case, suppress)
    pq.write_table(table, folder / "rows.parquet", row_group_size=50)
    with Spill() as spill:
        jobs = kind(session, spill.folder)
        resources = Resources(spill=spill, memory=1 << 24, jobs=jobs)
        source = jobs.with_slices(open_table(folder / "rows.parquet", lazy=True))
        encoded = scan(source, policy, room, resources)
        return grown_by_run(encoded, policy, SparkEngine(jobs, encoded.layout, room, writer_bytes=1 << 12))


@pytest.mark.parametrize("name", BIG_CASES)
def test_boxes_are_those_of_growth_in_memory(name, spark, tmp_path):
    case = big_case(7, *BIG_CASES[name])
    assert grown_on_spark(case, PLENTY, spark, tmp_path) == grown_whole(case)


@pytest.mark.parametrize("name", ["one label, close", "several", "cells"])
def test_boxes_are_the_same_where_memory_is_short(name, spark, tmp_path):
    """Counts go to sorted runs in files, candidates are checked in passes of their own, groups come in parts."""
    case = big_case(7, *BIG_CASES[name])
    assert grown_on_spark(case, LITTLE, spark, tmp_path) == grown_whole(case)


def test_boxes_are_the_same_if_states_are_merged_by_tasks(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.engines.spark.jobs.SMALL", 0)
    case = big_case(7, *BIG_CASES["several"])
    assert grown_on_spark(case, PLENTY, spark, tmp_path) == grown_whole(case)


@pytest.mark.parametrize("room", [PLENTY, LITTLE])
def test_the_same_rows_are_left_out(room, spark, tmp_path):
    """Towns of the north and the south have 100 and 80 rows, and twelve others have one each."""
    towns = ["north"] * 100 + ["south"] * 80 + [f"rare{i}" for i in range(12)]
    rows = [
        {**row, "q0": i, "q2": town}
        for i, (row, town) in enumerate(
            zip(big_case(7, *BIG_CASES["median"], n_rows=192).rows, towns, strict=True)
        )
    ]
    case = replace(big_case(7, *BIG_CASES["median"]), rows=rows, requirements=[KAnonymity(10)])
    case, share = replace(case, quasi=[case.quasi[0], case.quasi[2]]), Suppress(Fraction(1, 10))
    expected = grown_in_memory(case, MemoryEngine(threads=1), share)
    assert sum(len(members) for _, members in expected) < 192
    assert grown_in_memory(case, MemoryEngine(PLENTY, threads=1), share) == expected
    assert grown_on_spark(case, room, spark, tmp_path, suppress=share) == expected


@pytest.mark.parametrize("name", ["one number", "several"])
def test_boxes_are_the_same_if_a_sample_decides_first(name, spark, tmp_path):
    """In the same room, by which the size of samples goes; they are drawn of the table and of parts of it."""
    case, engine = sampled(big_case(7, *BIG_CASES[name])), MemoryEngine(PLENTY, threads=1)
    expected = grown_in_memory(case, engine)
    assert engine.counters.levels > 1
    assert grown_on_spark(case, PLENTY, spark, tmp_path) == expected


@pytest.mark.parametrize(("name", "room"), [("one label, close", PLENTY), ("several", LITTLE)])
def test_boxes_are_the_same_if_spark_hands_over_files(name, room, spark, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.engines.spark.file_pieces.FILE_ROWS", 100)
    case = big_case(7, *BIG_CASES[name])
    assert grown_on_spark(case, room, spark, tmp_path, HandedJobs) == grown_whole(case)


@pytest.mark.parametrize("kind", [Jobs, HandedJobs])
def test_statistics_of_a_group_that_no_task_can_load_are_gathered_by_tasks(kind, spark, tmp_path):
    """The driver reads none of its rows: it may not even have the files."""
    path = tmp_path / "rows.parquet"
    age = np.arange(300) % 7
    pq.write_table(pa.table({"age": age, "row": np.arange(300)}), path, row_group_size=50)
    policy = Policy.parse(
        "{attributes: {age: {role: quasi-identifier, type: number}, row: {role: other, passes: unique}}, "
        "require: [k-anonymity: 200], output: {values: summary}, method: {mondrian: {refine: none}}}"
    )
    n_rows = 0
    with Spill() as spill:
        jobs = kind(spark, spill.folder)
        source = jobs.with_slices(open_table(path, lazy=True))
        encoded = scan_table(source, policy, Resources(spill=spill, memory=1 << 24, jobs=jobs))
        engine = SparkEngine(jobs, encoded.layout, PLENTY, writer_bytes=1 << 12)
        for chunk in find_chunks(TreeRun(engine, encoded, policy, random=seeded(1)), engine):
            told = {name: cell.as_py() for name, cell in (chunk.statistics or {}).items()}
            assert told == {"age_min": 0, "age_max": 6, "age_mean": age.mean()}
            n_rows += len(chunk.groups.row_numbers)
    assert n_rows == len(age)
