"""Runs of Mondrian in memory that begin on a sample: what is asked for, limits, and that every group holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from growing import AS_PUBLISHED, partition

import sfumato as sf
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Block, Room
from sfumato.engines.start import scan_table
from sfumato.methods.groups import hold_groups
from sfumato.methods.mondrian import tree_run
from sfumato.methods.mondrian.node_counts import NodeCounts
from sfumato.methods.mondrian.tree_run import TreeRun
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.schema import Schema
from sfumato.randomness import seeded
from sfumato.recoding.recoder import Partition
from sfumato.table.opening import open_table
from sfumato.table.spill import Counters

SCHEMA = Schema.of(
    x={"role": "quasi-identifier", "kind": "number"},
    y={"role": "quasi-identifier", "kind": "number"},
    s="sensitive",
)
K = [sf.KAnonymity(5)]
DIVERSE = [*K, sf.RecursiveDiversity(3, 2, of="s")]


def table(n: int = 2000, *, n_values: int = 4) -> pa.Table:
    rng = np.random.default_rng(1)
    sensitive = rng.integers(0, n_values, n).astype(str)
    return pa.table({"x": rng.integers(0, 500, n), "y": rng.integers(0, 9, n), "s": sensitive})


def grow(
    options: MondrianOptions, requirements: Any = tuple(K), *, n_values: int = 4, room: Room | None = None
) -> tuple[Partition, Counters]:
    """The groups of a run in memory, and what it counted."""
    policy = Policy(SCHEMA, tuple(requirements), (), options)
    encoded = scan_table(open_table(table(n_values=n_values)), policy, sample=options.scale == "rothko-s")
    engine = MemoryEngine(room)
    run = TreeRun(engine, encoded, policy, random=seeded(1))
    return hold_groups(run, engine), engine.counters


@pytest.mark.parametrize(
    "options",
    [
        AS_PUBLISHED,
        replace(AS_PUBLISHED, sample=100),
        replace(AS_PUBLISHED, scale="rothko-s"),
        replace(AS_PUBLISHED, scale="rothko-s", sample=2000),
        replace(AS_PUBLISHED, scale="rothko-s", sample=5000),
        replace(AS_PUBLISHED, scale="rothko-s", rows_in_memory=2000),
        replace(AS_PUBLISHED, rows_in_memory=10, sample=100),
    ],
)
def test_no_sample_is_drawn_unless_the_policy_asks_for_fewer_rows_than_there_are(options, monkeypatch):
    monkeypatch.setattr(tree_run, "grow_on_sample", None)  # not to be called
    exact, _ = grow(AS_PUBLISHED)
    found, counters = grow(options)
    assert (found.size.tolist(), found.row_numbers.tolist()) == (
        exact.size.tolist(),
        exact.row_numbers.tolist(),
    ) or options.rows_in_memory == 10
    assert sorted(found.size.tolist()) == sorted(exact.size.tolist())
    assert counters.pruned == counters.fallbacks == 0


@pytest.mark.parametrize(
    "options",
    [
        replace(AS_PUBLISHED, scale="rothko-s", sample=100),
        replace(AS_PUBLISHED, scale="rothko-s", rows_in_memory=100),
        replace(AS_PUBLISHED, rows_in_memory=100),
    ],
)
def test_groups_that_are_found_in_parts_are_those_of_one_recoding(options):
    found, counters = grow(options)
    assert counters.repartitions >= 1
    assert sorted(found.row_numbers.tolist()) == list(range(2000))
    assert found.size.min() >= 5
    published = pa.table(found.columns())
    recoded = found.recoding.apply(table()).select(["x", "y"]).take(found.row_numbers)
    assert published.to_pylist() == recoded.to_pylist()
    if options.rows_in_memory and options.scale == "rothko-s":
        assert counters.levels >= 2


def test_statistics_for_pruning_take_no_more_memory_than_there_is_room_for():
    options, n_values = replace(AS_PUBLISHED, scale="rothko-s", sample=1000), 500
    free, counters = grow(options, DIVERSE, n_values=n_values)
    assert counters.stopped_by_statistics == 0
    tight, counters = grow(options, DIVERSE, n_values=n_values, room=Room(count_bytes=40_000))
    assert counters.stopped_by_statistics > 0
    assert len(tight.size) > 1
    assert tight.size.tolist() != free.size.tolist()


@pytest.mark.parametrize("requirements", [K, DIVERSE])
def test_groups_hold_and_are_those_of_the_estimator(requirements):
    options = replace(AS_PUBLISHED, scale="rothko-s", sample=200)
    source = open_table(table())
    found = partition(source, SCHEMA, requirements, options=options)
    assert sorted(found.row_numbers.tolist()) == list(range(2000))
    starts = np.cumsum(found.size) - found.size
    values = np.asarray(source.column("s").to_numpy())[found.row_numbers]
    for start, size in zip(starts.tolist(), found.size.tolist(), strict=True):
        assert size >= 5
        counts = np.sort(np.unique(values[start : start + size], return_counts=True)[1])[::-1]
        assert requirements is K or counts[0] < 3 * counts[1:].sum()
    exact = partition(source, SCHEMA, requirements)
    assert found.size.tolist() != exact.size.tolist(), "a sample decides otherwise"
    learned = sf.Mondrian(schema=SCHEMA, requirement=requirements, options=options).fit(table()).recoding_
    assert learned.apply(table()).equals(found.recoding.apply(table()))
    more = partition(source, SCHEMA, requirements, options=options, seed=1)
    assert more.size.tolist() != found.size.tolist()


def test_of_two_siblings_only_the_smaller_one_is_counted(monkeypatch):
    """The counts of the larger one are those of their parent less the smaller one's."""
    counted: list[int] = []
    add = NodeCounts.add

    def note_and_add(self: NodeCounts, block: Block) -> None:
        counted.append(len(block.rows))
        add(self, block)

    monkeypatch.setattr(NodeCounts, "add", note_and_add)
    exact, _ = grow(AS_PUBLISHED)
    assert counted == []
    found, _ = grow(replace(AS_PUBLISHED, rows_in_memory=350))
    # the table; the smaller of its halves; of each half the smaller one; parts of at most 350 rows are not counted
    assert 2000 + 2 * 900 < sum(counted) <= 2000 + 2 * 1000
    assert sorted(found.size.tolist()) == sorted(exact.size.tolist())
    counted.clear()
    found, _ = grow(replace(AS_PUBLISHED, rows_in_memory=350), room=Room(count_bytes=3 * 4 * 520))
    assert sum(counted) > 2000 + 2500, "where memory is short, each is counted in its own range"
    assert sorted(found.size.tolist()) == sorted(exact.size.tolist())
