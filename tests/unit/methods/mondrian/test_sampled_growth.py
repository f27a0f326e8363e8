"""Growth in memory that begins on a sample: what is asked for, limits, and that every group holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.methods.mondrian import sampled_growth
from sfumato.methods.mondrian.grow import partition, prepare
from sfumato.methods.mondrian.sampled_growth import begin_on_sample
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.schema import Schema
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


def begin(options: MondrianOptions, requirements=tuple(K), *, n_values: int = 4):
    """(the tree that is begun, the problem, what was counted)"""
    problem = prepare(open_table(table(n_values=n_values)), SCHEMA, requirements, options=options)
    counters = Counters()
    return begin_on_sample(problem.engine, problem, options, seed=0, counters=counters), problem, counters


@pytest.mark.parametrize(
    "options",
    [
        MondrianOptions(),
        MondrianOptions(sample=100),
        MondrianOptions(scale="rothko-s"),
        MondrianOptions(scale="rothko-s", sample=2000),
        MondrianOptions(scale="rothko-s", sample=5000),
        MondrianOptions(scale="rothko-s", rows_in_memory=2000),
        MondrianOptions(rows_in_memory=10, sample=100),
    ],
)
def test_no_sample_is_drawn_unless_the_policy_asks_for_fewer_rows_than_there_are(options):
    begun, _, counters = begin(options)
    assert begun is None
    assert counters == Counters()


@pytest.mark.parametrize(
    "options",
    [MondrianOptions(scale="rothko-s", sample=100), MondrianOptions(scale="rothko-s", rows_in_memory=100)],
)
def test_rows_stand_in_the_order_of_the_leaves_that_a_sample_decided(options):
    begun, problem, counters = begin(options)
    codes = problem.engine.codes
    assert counters.repartitions >= 1
    assert len(begun.leaves) > 1
    seen = []
    for leaf in begun.leaves.values():
        rows = problem.engine.rows[leaf.start : leaf.end]
        assert np.array_equal(rows[:, :2], codes[rows[:, -1]]), "numbers still tell which row it is"
        assert (rows[:, :2] >= leaf.bounds[0]).all()
        assert (rows[:, :2] <= leaf.bounds[1]).all()
        assert len(rows) >= 5
        seen += rows[:, -1].tolist()
    assert sorted(seen) == list(range(2000))
    if options.rows_in_memory:
        assert all(leaf.n_rows <= 100 for leaf in begun.leaves.values())
        assert counters.levels == 2


def test_statistics_for_pruning_take_no_more_memory_than_rows_do(monkeypatch):
    options = MondrianOptions(scale="rothko-s", sample=1000)
    free, _, _ = begin(options, DIVERSE, n_values=500)
    monkeypatch.setattr(sampled_growth, "LEAST_STATISTICS", 0)
    tight, problem, counters = begin(options, DIVERSE, n_values=500)
    assert counters.stopped_by_statistics > 0
    n_values = len(set(table(n_values=500).column("s").to_pylist()))
    assert 1 < len(tight.leaves) <= problem.engine.rows.nbytes // (8 + 4 * n_values) < len(free.leaves)


@pytest.mark.parametrize("requirements", [K, DIVERSE])
def test_groups_hold_and_are_those_of_the_estimator(requirements):
    options = MondrianOptions(scale="rothko-s", sample=200)
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
