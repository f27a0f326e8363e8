"""Mondrian with rests on 500 random tables: the groups hold, labels cover their rows, and engines find the same.

In memory a tree is grown depth first; with few rows in memory level by level, from counts; and on disk from blocks of a
file. Half of the runs ask for lists of cells. What was published is judged by ``rest_tables``, which shares nothing with
the program.
"""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from rest_tables import covers_label, covers_number, random_table, satisfies
from tree_runs import grown_here, grown_on_disk

import sfumato as sf
from sfumato.engines.protocol import Room
from sfumato.methods.mondrian import tree_run

N_TABLES, IN_A_BATCH = 500, 25
FEW = Room(1 << 30, 6, 200)
"""More than six rows make a node whose split is chosen from counts."""
ROOMS = {"none": FEW, "list": Room(1 << 30, 100, 200, row_bytes=1 << 20)}
"""What becomes of the groups of the tree (``refine``), and the room of engines: a list needs all rows of its block."""
BLOCK = 15
"""Rows of a block, so that a table has several lists."""


@pytest.mark.parametrize("refine", ROOMS)
@pytest.mark.parametrize("first", range(0, N_TABLES, IN_A_BATCH))
def test_groups_hold_and_labels_cover_and_every_engine_finds_the_same(first, refine, monkeypatch):
    monkeypatch.setattr(tree_run, "BLOCK_ROWS", BLOCK)
    n_groups = 0
    for number in range(first, first + IN_A_BATCH):
        case = random_table(number, refine)
        policy = sf.Policy.from_dict(case.policy)
        published = case.groups(sf.publish(case.table, policy).table)
        case.judge(published)
        boxes = grown_here(case.table, policy)
        assert sorted(published.values()) == [rows for _, rows in boxes], number
        assert grown_here(case.table, policy, ROOMS[refine]) == boxes, number
        assert grown_on_disk(case.table, policy, ROOMS[refine]) == boxes, number
        n_groups += len(published)
    assert n_groups > 2 * IN_A_BATCH, "hardly anything was split"


@pytest.mark.parametrize("first", range(0, 50, IN_A_BATCH))
def test_groups_hold_and_every_engine_finds_the_same_where_a_sample_decides_first(first):
    n_groups = 0
    for number in range(first, first + IN_A_BATCH):
        case = random_table(number, "none")
        policy = sf.Policy.from_dict(case.policy_with(scale="rothko-s", sample=0.5))
        published = case.groups(sf.publish(case.table, policy).table)
        case.judge(published)
        boxes = grown_here(case.table, policy, FEW)
        assert all(case.holds([case.rows[i] for i in rows]) for _, rows in boxes), number
        assert grown_on_disk(case.table, policy, FEW) == boxes, number
        n_groups += len(published)
    assert n_groups > 2 * IN_A_BATCH, "hardly anything was split"


@pytest.mark.parametrize("number", range(3))
def test_labels_on_disk_are_those_in_memory(number, tmp_path):
    case = random_table(number, "none")
    pq.write_table(case.table, tmp_path / "rows.parquet", row_group_size=7)
    policy = case.policy_with(**{"rows-in-memory": FEW.rows})
    on_disk = sf.publish(tmp_path / "rows.parquet", policy, engine="disk", memory=1 << 26)
    assert case.groups(on_disk.table) == case.groups(sf.publish(case.table, case.policy).table)


# ---- the judge itself, by hand -----------------------------------------------------------------------


def test_the_judge_reads_labels():
    assert covers_number("[20, 24] or missing", None, float)
    assert covers_number("[20, 24] or missing", 24.0, float)
    assert not covers_number("[20, 24]", None, float)
    assert not covers_number("(20, 24]", 20.0, float)
    assert not covers_number(None, 20.0, float)
    assert covers_label("*", None, ())
    assert not covers_label("a", "b", ("*",))


def test_the_judge_refuses_what_does_not_hold():
    rows = [{"ill": "flu", "pay": 1}, {"ill": "flu", "pay": 3}]
    table = [*rows, {"ill": "gout", "pay": 5}, {"ill": None, "pay": None}]
    assert satisfies(rows, {"k-anonymity": 2}, table)
    assert not satisfies(rows, {"k-anonymity": 3}, table)
    assert not satisfies(rows, {"entropy-diversity": {"l": 1.5, "of": "ill"}}, table)
    assert satisfies(rows, {"variance-diversity": {"at-least": 1, "of": "pay"}}, table)
    for kind in (
        "equal",
        "hierarchical",
    ):  # half of the rows must lose flu: within the root's children, or across
        assert not satisfies(rows, {"t-closeness": {"t": 0.49, "of": "ill", "distance": kind}}, table)
        assert satisfies(rows, {"t-closeness": {"t": 0.5, "of": "ill", "distance": kind}}, table)


def test_a_group_that_is_torn_apart_does_not_pass():
    case = next(
        case for case in (random_table(n, "none") for n in range(99)) if case.require == [{"k-anonymity": 3}]
    )
    found = case.groups(sf.publish(case.table, case.policy).table)
    labels, rows = next(iter(found.items()))
    with pytest.raises(AssertionError):
        case.judge({**found, labels: rows[:1], ("torn", *labels[1:]): rows[1:]})
