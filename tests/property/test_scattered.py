"""Passes over a table that is scattered: each part is added to a copy of the state elsewhere, and copies are merged.

Copies go through pickle, as they would to another machine, and come back in any order.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from growing import UncheckedPolicy
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mondrian_cases import FEATURE_WORKLOADS, WORKLOADS, Case, reachable_cases

from sfumato.encoding.batches import Batch, FileBatch
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.scan import Intake
from sfumato.policy.schema import Schema
from sfumato.randomness import splitmix64
from sfumato.table.opening import open_table
from sfumato.table.source import Source


class ScatteredTable:
    """A table whose batches are looked at by several copies of a state, which are then merged into it."""

    def __init__(self, source: Source, schema: Schema, *, rows: int, order: list[int]) -> None:
        self.source, self.schema, self.rows = source, schema, rows
        self.n_rows, self.order = source.n_rows, order
        self.n_copies = 0

    def show(self, names: Iterable[str], state: Any, *, stage: str = "") -> None:
        empty = pickle.dumps(state)
        copies = [pickle.loads(empty) for _ in self.order]
        for number, batch in enumerate(self.batches(names, self.rows)):
            copies[number % len(copies)].add(batch)
        for at in self.order:
            state.merge(pickle.loads(pickle.dumps(copies[at])))
        self.n_copies += len(copies)

    def batches(self, names: Iterable[str], rows: int) -> Iterator[Batch]:
        first_row = 0
        for batch in self.source.batches(list(dict.fromkeys(names)), rows=self.rows):
            yield FileBatch(batch, self.schema, first_row=first_row)
            first_row += batch.num_rows


@given(
    reachable_cases(workloads=st.one_of(WORKLOADS, FEATURE_WORKLOADS)),
    st.integers(1, 9),
    st.integers(1, 4).flatmap(lambda n: st.permutations(range(n))),
)
@settings(max_examples=120, deadline=None)
def test_a_scattered_table_is_encoded_as_one_at_hand(case: Case, rows: int, order: list[int]):
    policy = UncheckedPolicy(case.schema(), tuple(case.requirements), tuple(case.workload), case.options)
    source = open_table(case.table())
    expected = Intake.at_hand(source, policy)
    expected.scan()
    scattered = ScatteredTable(source, policy.schema, rows=rows, order=order)
    found = Intake(scattered, policy)
    found.scan(sample=5, seed=3)
    assert scattered.n_copies >= len(order)
    event(f"{scattered.n_copies // len(order)} passes")
    assert [domain.n_codes for domain in found.domains] == [domain.n_codes for domain in expected.domains]
    assert found.greatest == expected.greatest
    assert found.true_counts == expected.true_counts
    for column in expected.columns.columns:
        mine, theirs = found.columns._code(column), expected.columns._code(column)
        assert (mine.n, mine.count.tolist()) == (theirs.n, theirs.count.tolist())
    codes = np.concatenate([block.rows for block in found.blocks()])
    assert np.array_equal(codes[:, :-1], MemoryEngine().load(expected).rows)
    assert codes[:, -1].tolist() == list(range(source.n_rows))
    sample = found.take_sample()
    assert sample is not None
    drawn = np.sort(np.argsort(splitmix64(3, np.arange(source.n_rows)))[:5])
    assert sample.tolist() == codes[drawn, :-1].tolist()
