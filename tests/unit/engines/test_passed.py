"""What is found of columns before they pass does not depend on how rows are cut, or on who looks at them."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.encoding.batches import FileBatch
from sfumato.engines import passed
from sfumato.engines.passed import FirstCells, PassedColumns, look_at_passed
from sfumato.engines.raw import TableAtHand, TableInBatches
from sfumato.errors import InputError
from sfumato.policy.document import Policy
from sfumato.table.opening import open_table
from sfumato.table.spill import Counters, Spill

N = 900


def policy_of(**columns: object) -> Policy:
    attributes = {
        "age": {"role": "quasi-identifier"},
        "id": {"role": "identifier"},
        "few": {"role": "other"},
        "some": {"role": "sensitive"},
        "number": {"role": "other", "type": "number"},
        "mail": {"role": "other"},
        **columns,
    }
    return Policy.from_dict({"attributes": attributes, "require": []})


def table() -> pa.Table:
    rng = np.random.default_rng(6)
    some = [f"value {i}" if i % 10 == 0 else "all" for i in range(N)]
    return pa.table(
        {
            "age": ["30"] * N,
            "id": [f"p{i}" for i in rng.integers(0, 500, N)],
            "few": rng.choice(["a", "b"], N),
            "some": pa.array(some, mask=rng.random(N) < 0.1),
            "number": pa.array(np.arange(N) / 3),
            "mail": [f"user{i}@example.org" for i in rng.integers(0, 50, N)],
        }
    )


TABLE, POLICY = table(), policy_of()


def at_once(rows: pa.Table = TABLE, policy: Policy = POLICY) -> Any:
    return look_at_passed(TableAtHand(open_table(rows), policy.schema), PassedColumns(policy), policy)


def test_cells_are_looked_at_however_late_they_come(monkeypatch):
    """Most customers have no address on file, and those that have one come last."""
    monkeypatch.setattr(passed, "GLANCE", 50)
    late = pa.array([None if i < 300 else f"user{i % 60}@example.org" for i in range(500)])
    columns = {name: ["x"] * len(late) for name in TABLE.column_names}
    rows = pa.table(columns | {"few": late})
    assert at_once(rows).reasons == {"few": "its values look like e-mail addresses"}
    looking = PassedColumns(POLICY)
    for first in (400, 0, 200):
        (batch,) = rows.slice(first, 200 - first // 4).combine_chunks().to_batches()
        looking.add(FileBatch(batch, POLICY.schema, first_row=first))
    assert looking.find(POLICY).reasons == at_once(rows).reasons


def test_the_first_cells_are_the_same_in_any_order(monkeypatch):
    monkeypatch.setattr(passed, "GLANCE", 3)
    batches = {0: ["a"], 10: ["b", "c", "d"], 20: ["e", "f", "g"]}
    for order in itertools.permutations(batches):
        one, other = FirstCells(), FirstCells()
        for state, row in zip((one, other, one), order, strict=True):
            if state.lacks_before(row):
                state.add(row, pa.array(batches[row]))
        one.merge(other)
        assert one.cells().to_pylist() == ["a", "b", "c"]
        assert not one.lacks_before(20)


def test_it_is_what_counting_says():
    found = at_once()
    some = [cell for cell in TABLE.column("some").to_pylist() if cell is not None]
    assert found.alone == {
        "few": 0,
        "some": sum(some.count(c) == 1 for c in some) / N,
        "number": 1.0,
        "mail": 0,
    }
    assert found.reasons == {
        "number": "100% of the rows have a value that no other row has",
        "mail": 'its name says "mail"',
    }
    assert list(found.named) == ["some"]
    ids = TABLE.column("id").to_pylist()
    assert found.repeats == {"id": pytest.approx(sum(ids.count(one) > 1 for one in ids) / N)}
    with pytest.raises(InputError, match="2 columns would be published as they are: 'number'"):
        found.refuse()


@pytest.mark.parametrize("n_tasks", [1, 4])
def test_batches_that_several_look_at_in_any_order_tell_the_same(n_tasks, monkeypatch):
    monkeypatch.setattr(passed, "GLANCE", 120)
    batches, first = [], 0
    for rows in (10, 150, 340, 400):
        (batch,) = TABLE.slice(first, rows).combine_chunks().to_batches()
        batches.append(FileBatch(batch, POLICY.schema, first_row=first))
        first += rows
    assert first == N
    looking = PassedColumns(POLICY)
    states = [pickle.loads(pickle.dumps(looking)) for _ in range(n_tasks)]
    for number, batch in enumerate(reversed(batches)):
        states[number % n_tasks].add(batch)
    for state in states:
        looking.merge(pickle.loads(pickle.dumps(state)))
    assert looking.find(POLICY) == at_once()


def test_what_does_not_fit_goes_by_way_of_files(monkeypatch):
    monkeypatch.setattr("sfumato.table.alone.SMALLEST", 16)
    with Spill() as spill:
        raw = TableInBatches(open_table(TABLE), POLICY.schema, memory=1 << 12, counters=Counters())
        looking = PassedColumns(POLICY, spill=spill, memory=1)
        assert look_at_passed(raw, looking, POLICY) == at_once()
        assert spill.counters.spills


def test_with_a_unit_rows_of_one_person_are_alone_together():
    """Methods refuse it as long as they count no people; so the policy is told of its unit afterwards."""
    rows = pa.table(
        {
            "age": ["30"] * 40,
            "id": [f"p{i // 2}" for i in range(40)],
            "few": [f"c{i // 2}" for i in range(40)],
        }
    )
    schema = {"few": {"role": "other"}}
    policy = Policy.from_dict(
        {
            "attributes": {"age": {"role": "quasi-identifier"}, "id": {"role": "identifier"}, **schema},
            "require": [],
        }
    )
    assert at_once(rows, policy).alone == {"few": 0}
    looking = PassedColumns(policy)
    looking.person = "id"
    found = look_at_passed(TableAtHand(open_table(rows), policy.schema), looking, policy)
    assert found.alone == {"few": 1.0}
    assert found.reasons["few"] == "100% of the rows have a value that no other person has"


@pytest.mark.parametrize(
    "cells",
    [
        pa.nulls(20),
        pa.array(["a", "b"] * 10, pa.string_view()),
        pa.RunEndEncodedArray.from_arrays([10, 20], ["a", "b"]),
        pa.array([b"a", b"b"] * 10),
        pa.array([True, False] * 10),
        pa.array([1, 2] * 10).cast(pa.decimal128(21, 2)),
        pa.array([1, 2] * 10, pa.duration("s")),
        pa.array([1, 2] * 10, pa.time32("s")),
        pa.array([2**64 - 1, 5] * 10, pa.uint64()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1] * 10), pa.array(["a", None])),
        pa.array([7, 5] * 10).dictionary_encode(),
    ],
)
def test_columns_are_looked_at_however_they_are_stored(cells):
    policy = Policy.parse("{attributes: {age: {role: quasi-identifier}, x: {role: other}}, require: []}")
    assert at_once(pa.table({"age": ["30"] * 20, "x": cells}), policy).alone == {"x": 0}


def test_nothing_is_read_where_nothing_passes():
    policy = Policy.parse("{attributes: {age: {role: quasi-identifier}}, require: []}")
    assert at_once(TABLE.select(["age"]), policy) is None
