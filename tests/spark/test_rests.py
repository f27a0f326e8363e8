"""Mondrian with rests on Spark: the boxes of 20 random tables are those in memory, and hold."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from rest_tables import random_table
from tree_runs import grown_by_run, scan

import sfumato as sf
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
from sfumato.engines.spark.engine import SparkEngine
from sfumato.engines.spark.jobs import Jobs
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill

FEW = Room(1 << 30, 15, 200, keeps_counts=False)
"""More than fifteen rows make a node whose split is chosen from counts, which tasks gather."""


@pytest.mark.parametrize("number", range(20))
def test_boxes_of_random_tables_are_those_in_memory(number: int, spark: Any, tmp_path: Any) -> None:
    case = random_table(number, "none")
    policy = sf.Policy.from_dict(case.policy)
    case.judge(case.groups(sf.publish(case.table, policy).table))
    here = MemoryEngine(threads=1)
    expected = grown_by_run(scan(open_table(case.table), policy, here.room), policy, here)
    pq.write_table(case.table, tmp_path / "rows.parquet", row_group_size=10)
    with Spill() as spill:
        jobs = Jobs(spark, spill.folder)
        source = jobs.with_slices(open_table(tmp_path / "rows.parquet", lazy=True))
        encoded = scan(source, policy, FEW, Resources(spill=spill, memory=1 << 24, jobs=jobs))
        engine = SparkEngine(jobs, encoded.layout, FEW, writer_bytes=1 << 12)
        assert grown_by_run(encoded, policy, engine) == expected
