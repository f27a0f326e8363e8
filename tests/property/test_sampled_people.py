"""Rothko-S where groups count people: people are drawn with all their rows, and pruning counts them exactly."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stays_policies import NUMBER, PERSON, holds, judge, random_policy

import sfumato as sf
from sfumato.engines.reservoir import sample_codes
from sfumato.examples.demo import stays
from sfumato.randomness import splitmix64


def sampled_policy(number: int, n_rows: int) -> dict:
    """A random policy whose splits are chosen by a sample first."""
    policy, chance = random_policy(number), random.Random(number)
    options = policy["method"]["mondrian"]
    options["scale"] = "rothko-s"
    options["rows-in-memory"] = chance.choice([10, 30, n_rows])
    options["sample"] = chance.choice([0.2, 0.5, 0.8])
    options["tests"] = chance.choice([True, False])
    if options.get("variant") != "paper" and "criterion" not in options:
        options["refine"] = "none"
    return policy


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_groups_that_a_sample_suggests_hold_by_their_people_alike_in_memory_and_on_disk(start, tmp_path):
    n_groups, n_pruned = 0, 0
    for number in range(start, start + 20):
        drawn = stays(random.Random(number).choice([60, 120, 200]), seed=number)
        table = drawn.append_column(NUMBER, pa.array(range(drawn.num_rows)))
        rows, policy = table.to_pylist(), sampled_policy(number, drawn.num_rows)
        if not holds(rows, policy["require"], rows):
            continue
        pq.write_table(table, tmp_path / "rows.parquet", row_group_size=17)
        here = sf.publish(table, policy)
        there = sf.publish(tmp_path / "rows.parquet", policy, engine="disk", memory=1 << 26)
        n_groups += judge(here.table.to_pylist(), rows, policy)
        in_order = [sorted(one.table.to_pylist(), key=lambda row: row[NUMBER]) for one in (here, there)]
        assert in_order[0] == in_order[1], number
        assert here.certificate.claims.requirements == there.certificate.claims.requirements
        assert here.certificate.claims.people == len({row[PERSON] for row in rows})
        n_pruned += here.certificate.figures.get("io", {}).get("pruned", 0)
    assert n_groups > 60
    assert n_pruned > 0


def whole_people(owners: list[int], size: int, seed: int) -> list[int]:
    """The rows of as many people, by their keys, as have no more than so many rows together."""
    chosen: list[int] = []
    keys = {who: int(splitmix64(seed, np.array([who]))[0]) for who in owners}
    for who in sorted(keys, key=keys.__getitem__):
        own = [row for row, owner in enumerate(owners) if owner == who]
        if len(chosen) + len(own) > size:
            break
        chosen += own
    return sorted(chosen)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 20), st.data())
@settings(max_examples=200)
def test_a_sample_of_people_is_the_same_however_their_rows_come(owners, size, data):
    whose, expected = np.array(owners, dtype=np.int64), whole_people(owners, size, 5)
    order = np.array(data.draw(st.permutations(range(len(owners)))), dtype=np.int64)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(owners)), max_size=4)))
    samples = [sample_codes(size, 5) for _ in range(2)]
    for some in np.split(order, cuts):
        which = data.draw(st.sampled_from(samples))
        which.add_numbered(some[:, None].astype(np.uint32), some, whose[some])
    samples[0].add_numbered(np.zeros((0, 1), dtype=np.uint32), order[:0], order[:0])
    samples[0].merge(samples[1])
    assert samples[0].rows()[:, 0].tolist() == expected
