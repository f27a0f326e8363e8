"""Top-down specialization outside memory, on a table of some size: how few passes it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from blocks import EncodedRows
from tds_cases import cuts_of

from sfumato.engines.disk import DiskEngine
from sfumato.engines.protocol import Room
from sfumato.engines.rows import MOST_FILES, KeptRows
from sfumato.engines.scan import Intake
from sfumato.errors import InputError, RequirementUnreachable
from sfumato.methods.specialization.grid_run import GridRun
from sfumato.methods.specialization.tds import partition
from sfumato.policy.document import Policy
from sfumato.randomness import seeded
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill

N = 100_000


def policy(k: int) -> Policy:
    return Policy.from_dict(
        {
            "attributes": {
                "age": {"role": "quasi-identifier", "type": "number"},
                "income": {"role": "quasi-identifier", "type": "number"},
                "zip": {"role": "quasi-identifier", "hierarchy": {"mask": 5}},
                "sex": {"role": "quasi-identifier"},
                "job": {"role": "quasi-identifier"},
                "class": {"role": "other"},
                "group": {"role": "other"},
            },
            "require": [{"k-anonymity": k}],
            "workload": [{"classify": "class"}, {"classify": {"targets": ["group"], "weight": 0.5}}],
            "method": "tds",
        }
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Five quasi-identifiers, one of them a number of 100,000 distinct values."""
    random = seeded(5)
    age = random.integers(17, 90, N)
    income = random.permutation(N) * 0.25
    place = random.integers(0, 400, N)
    job = random.choice(list("abcdefgh"), N, p=np.arange(1, 9) / 36)
    score = age / 30 + income / 9000 + place / 300 + (job > "d") + random.normal(size=N)
    return pa.table(
        {
            "age": age,
            "income": income,
            "zip": [f"{53000 + 7 * x}" for x in place.tolist()],
            "sex": random.choice(["f", "m"], N),
            "job": job,
            "class": np.where(score > 5, "high", "low"),
            "group": random.choice(list("uvw"), N),
        }
    )


def run_on_disk(rows: Any, given: Policy, spill: Spill, memory: int, at_once: int) -> tuple[Any, list[Any]]:
    room = Room(memory, at_once, MOST_FILES)
    engine = DiskEngine(spill, rows.layout, room, writer_bytes=memory // 2)
    run = GridRun(engine, rows, given, random=seeded(1))
    portions = [(chunk.groups, chunk.payload) for chunk, _ in engine.finish(run.works())]
    return run.recoding(), portions


def found_on_disk(table: pa.Table, given: Policy, **shares: int) -> tuple[Any, list[Any], EncodedRows, Spill]:
    rows = EncodedRows(table, given)
    with Spill() as spill:
        return *run_on_disk(rows, given, spill, **shares), rows, spill


@pytest.mark.parametrize(
    ("k", "memory", "at_once", "most_passes"),
    [
        (50, 20_000_000, N, -1),  # they can be loaded: nothing is counted in passes
        (50, 20_000_000, N - 1, 2),
        (50, 2_000_000, 20_000, 3),
        (50, 300_000, 500, 14),
        (1000, 20_000, 5000, 35),  # not even the groups fit
    ],
)
def test_a_table_of_some_size_is_cut_as_in_memory_in_few_passes(
    table, k, memory, at_once, most_passes, monkeypatch
):
    given = policy(k)
    n_passes = 0

    class Counting(KeptRows):
        def blocks(self, *, payload: bool = False):
            nonlocal n_passes
            n_passes += 1
            return super().blocks(payload=payload)

    monkeypatch.setattr("sfumato.engines.disk.KeptRows", Counting)
    expected = partition(open_table(table), given)
    cuts, portions, rows, _ = found_on_disk(table, given, memory=memory, at_once=at_once)
    assert [x.tolist() for x in cuts.thresholds] == [x.tolist() for x in cuts_of(expected).thresholds]
    assert cuts.n_splits() == expected.recoding.n_splits()
    assert cuts.n_groups == cuts_of(expected).n_groups
    size = np.concatenate([groups.size for groups, _ in portions])
    leaf = np.concatenate([groups.leaf for groups, _ in portions])
    is_new = np.append(True, (leaf[1:] != leaf[:-1]).any(axis=1))
    assert leaf[is_new].tolist() == expected.leaf.tolist()
    assert np.add.reduceat(size, np.flatnonzero(is_new)).tolist() == expected.size.tolist()
    numbers = np.concatenate(
        [payload.column("row").to_numpy()[groups.row_numbers] for groups, payload in portions]
    )
    of_row = np.empty(N, dtype=np.int64)
    of_row[numbers] = np.repeat(np.cumsum(is_new) - 1, size)
    assert np.array_equal(of_row, expected.of_row())
    assert rows.passes == (1 if at_once == N else 2)  # counts of columns, and to bring them in order
    assert n_passes - 1 <= most_passes  # counts of cells


def intake_of(given_table: pa.Table, given: Policy, spill: Spill) -> Any:
    """The table as the engine reads it."""
    intake: Any = Intake.in_batches(open_table(given_table), given, spill=spill, memory=10**8)
    intake.scan()
    return intake


def test_an_intake_is_cut_as_the_table_in_memory(table):
    given = policy(200)
    expected = partition(open_table(table), given)
    with Spill() as spill:
        intake = intake_of(table, given, spill)
        cuts, portions = run_on_disk(intake, given, spill, memory=10**6, at_once=9000)
        assert [path.name for path in spill.folder.iterdir() if path.name.startswith("rows")] == []
    assert [x.tolist() for x in cuts.thresholds] == [x.tolist() for x in cuts_of(expected).thresholds]
    assert np.concatenate([groups.leaf for groups, _ in portions]).tolist() == expected.leaf.tolist()
    assert np.concatenate([groups.size for groups, _ in portions]).tolist() == expected.size.tolist()
    for groups, payload in portions:
        assert payload.num_rows == groups.size.sum() == len(groups.row_numbers)
        assert sorted(groups.row_numbers.tolist()) == list(range(payload.num_rows))


def test_joint_and_weighted_targets_are_those_of_the_policy(table):
    given = Policy.from_dict(
        {
            **policy(500).as_dict(),
            "workload": [{"classify": {"targets": ["class", "group"], "joint": True}}, {"classify": "class"}],
        }
    )
    with Spill() as spill:
        intake = intake_of(table, given, spill)
        cuts, _ = run_on_disk(intake, given, spill, memory=10**7, at_once=N)
    expected = cuts_of(partition(open_table(table), given))
    assert [x.tolist() for x in cuts.thresholds] == [x.tolist() for x in expected.thresholds]
    assert cuts.n_splits() == expected.n_splits()


def test_without_a_requirement_no_group_is_counted_while_candidates_are_taken(table):
    """All candidates are taken; the groups are as many as rows, and are counted in the files."""
    given = policy(1)
    few = table.slice(0, 2000)
    expected = partition(open_table(few), given)
    cuts, portions, rows, _ = found_on_disk(few, given, memory=20_000, at_once=100)
    assert rows.passes == 2
    assert cuts.n_groups == cuts_of(expected).n_groups
    assert np.concatenate([groups.leaf for groups, _ in portions]).tolist() == expected.leaf.tolist()
    assert np.concatenate([groups.size for groups, _ in portions]).tolist() == expected.size.tolist()


def test_fewer_rows_than_k_cannot_be_published(table):
    with pytest.raises(RequirementUnreachable, match="2000-anonymity cannot be met"):
        found_on_disk(table.slice(0, 1000), policy(2000), memory=10**6, at_once=100)


def test_cuts_of_too_many_pieces_are_refused(table, monkeypatch):
    monkeypatch.setattr("sfumato.methods.specialization.groups.FEWEST_PIECES", 40)
    with pytest.raises(
        InputError, match="more than 40 pieces, too many to be held in memory; ask for larger"
    ):
        found_on_disk(table.slice(0, 1000), policy(1), memory=10_000, at_once=100)


def test_a_group_larger_than_memory_comes_in_portions_that_follow_each_other():
    table = pa.table({"a": [1] * 900 + [2] * 100, "class": ["x", "y"] * 500})
    given = Policy.parse(
        "{attributes: {a: {role: quasi-identifier, type: number}, class: {role: other}}, "
        "require: [k-anonymity: 50], workload: [classify: class], method: tds}"
    )
    cuts, portions, _, _ = found_on_disk(table, given, memory=10**6, at_once=200)
    assert cuts.n_groups == 2
    assert [groups.leaf.tolist() for groups, _ in portions] == [[[0]]] * (len(portions) - 1) + [[[1]]]
    assert sum(int(groups.size[0]) for groups, _ in portions[:-1]) == 900
    assert all(groups.size[0] <= 200 for groups, _ in portions)
