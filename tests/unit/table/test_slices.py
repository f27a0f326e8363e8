"""Tables in slices that other machines read."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import TableError
from sfumato.table.opening import open_table
from sfumato.table.source import Source, UnreadableFile

SECOND = 10**9


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"age": range(100)}), path, row_group_size=20)
    os.utime(path, ns=(0, 1000 * SECOND + 5))
    return path


def read(source: Source) -> list[int]:
    return [age for batch in source.batches(["age"]) for age in batch.column(0).to_pylist()]


def numbered_anew(path: Path, time: int) -> None:
    """The same file as another machine may see it: with another number, and another time."""
    data = path.read_bytes()
    path.rename(path.with_name("before"))
    path.write_bytes(data)
    os.utime(path, ns=(0, time))


def test_slices_have_the_rows_in_order_and_can_be_sent(path: Path) -> None:
    slices = pickle.loads(pickle.dumps(open_table(path, lazy=True).slices(3)))
    assert len(slices) == 3
    assert [age for each in slices for age in read(each)] == list(range(100))


def test_another_machine_may_number_a_file_by_itself_and_round_its_time(path: Path) -> None:
    source = open_table(path, lazy=True)
    numbered_anew(path, 1000 * SECOND)
    assert [age for each in source.slices(2) for age in read(each)] == list(range(100))
    with pytest.raises(TableError, match="changed"):
        read(source)


@pytest.mark.parametrize("what", ["time", "size"])
def test_a_file_that_was_written_anew_is_noticed_everywhere(what: str, path: Path) -> None:
    slices = open_table(path, lazy=True).slices(2)
    if what == "size":
        with path.open("ab") as file:
            file.write(b"x")
    os.utime(path, ns=(0, (1000 if what == "size" else 1001) * SECOND))
    with pytest.raises(TableError, match="changed"):
        read(slices[0])


def test_a_file_that_is_not_there_is_told_apart(path: Path) -> None:
    slices = open_table(path, lazy=True).slices(2)
    path.unlink()
    with pytest.raises(UnreadableFile, match="cannot be read: No such file or directory"):
        read(slices[0])
