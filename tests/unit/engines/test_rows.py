"""Encoded rows on disk: every row comes back in its part, in order, with its payload."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.encoding.batches import Block
from sfumato.engines import rows as engine_rows
from sfumato.engines.rows import KeptRows, PartWriter, RowLayout, StoredRows, count_own_bytes, load_rows
from sfumato.table.spill import Spill

LAYOUT = RowLayout.of([250, 70_000])


def block(codes: list[tuple[int, int]], *, payload: bool) -> Block:
    matrix = np.array(codes, dtype=np.uint32).reshape(-1, 2)
    texts = pa.array([f"row {a} {b}" for a, b in codes], pa.string())
    return Block(matrix, pa.RecordBatch.from_arrays([texts], ["note"]) if payload else None)


class GivenRows:
    """Rows in memory that count the passes over them."""

    def __init__(self, blocks: list[Block]) -> None:
        self.given, self.passes = blocks, 0

    @property
    def n_rows(self) -> int:
        return sum(len(each.rows) for each in self.given)

    def blocks(self, *, payload: bool = True):
        self.passes += 1
        for each in self.given:
            yield each if payload else Block(each.rows, None)


def read(rows, *, payload: bool = True) -> tuple[list[list[int]], list[str]]:
    codes: list[list[int]] = []
    notes: list[str] = []
    for each in rows.blocks(payload=payload):
        codes += each.rows.tolist()
        notes += [] if each.payload is None else each.payload.column("note").to_pylist()
    return codes, notes


CODES = st.lists(st.tuples(st.integers(0, 250), st.integers(0, 70_000)), max_size=20)


@given(st.lists(CODES, max_size=4), st.integers(1, 5), st.booleans(), st.data())
@settings(max_examples=60)
def test_every_row_comes_back_in_its_part_in_order_and_with_its_payload(given_blocks, n_parts, payload, data):
    expected: list[list[list[int]]] = [[] for _ in range(n_parts)]
    with Spill() as spill:
        writer = PartWriter(spill, n_parts, LAYOUT, memory=1)
        for codes in given_blocks:
            part = [data.draw(st.integers(0, n_parts - 1)) for _ in codes]
            writer.add(block(codes, payload=payload), np.array(part, dtype=np.int64))
            for row, p in zip(codes, part, strict=True):
                expected[p].append(list(row))
        stored = writer.close()
        assert [rows.n_rows for rows in stored] == [len(rows) for rows in expected]
        everything = [row for rows in expected for row in rows]
        for rows, wanted in zip([*stored, StoredRows.join(stored)], [*expected, everything], strict=True):
            notes = [f"row {a} {b}" for a, b in wanted] if payload else []
            assert read(rows) == (wanted, notes)
            assert read(rows, payload=False) == (wanted, [])
            matrix, table = load_rows(rows, LAYOUT)
            assert matrix.shape == (len(wanted), 2)
            assert matrix.tolist() == wanted
            assert (None if table is None else table.column("note").to_pylist()) == (notes or None)


def test_more_parts_than_files_that_may_be_open_have_several_files_each(monkeypatch):
    monkeypatch.setattr(engine_rows, "MOST_FILES", 3)
    with Spill() as spill:
        writer = PartWriter(spill, 5, LAYOUT, memory=1)
        writer.capacity = 1  # every block is written at once
        for i in range(4):
            writer.add(block([(part, i) for part in range(5)], payload=True), np.arange(5))
        stored = writer.close()
        assert max(len(rows.files) for rows in stored) > 1
        assert [read(rows)[0] for rows in stored] == [[[part, i] for i in range(4)] for part in range(5)]


def test_deleted_rows_leave_no_file_and_no_row():
    with Spill() as spill:
        writer = PartWriter(spill, 1, LAYOUT, memory=1)
        writer.add(block([(1, 2)], payload=False), np.zeros(1, dtype=np.int64))
        (stored,) = writer.close()
        paths = [path for path, _ in stored.files]
        assert all(path.exists() for path in paths)
        stored.delete()
        assert not any(path.exists() for path in paths)
        assert stored.n_rows == 0


@pytest.mark.parametrize("payload", [True, False])
def test_kept_rows_are_encoded_once_and_read_from_their_file_afterwards(payload):
    given_rows = GivenRows([block([(1, 2), (3, 4)], payload=True), block([(5, 6)], payload=True)])
    codes = [[1, 2], [3, 4], [5, 6]]
    notes = ["row 1 2", "row 3 4", "row 5 6"] if payload else []
    with Spill() as spill:
        kept = KeptRows(given_rows, PartWriter(spill, 1, LAYOUT, memory=1), payload=payload)
        assert kept.n_rows == 3
        for _ in range(3):
            assert read(kept) == (codes, notes)
        assert given_rows.passes == 1
        assert read(kept, payload=False) == (codes, [])


def test_the_bytes_of_a_batch_are_counted_without_its_dictionaries():
    texts = pa.array(["a" * 1000, "b" * 1000]).dictionary_encode()
    numbers = pa.array([1, 2], pa.int64())
    batch = pa.RecordBatch.from_arrays([texts, numbers], ["text", "number"])
    assert count_own_bytes(batch) == texts.indices.nbytes + numbers.nbytes < 100
    assert count_own_bytes(None) == 0
