"""Shifted dates: distances of a person stay, times keep their time of day, whatever Arrow type holds them."""

from __future__ import annotations

import datetime as dt
import pickle

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import TableError
from sfumato.policy.schema import Schema
from sfumato.table.opening import open_table
from sfumato.table.shifted_dates import shift_dates
from sfumato.table.write import write_table

SCHEMA = Schema.of(
    id="identifier", seen={"role": "other", "type": "date", "shift": {"within": 30, "per": "id"}}
)
KEY = b"k" * 32
DAYS = [dt.date(2024, 3, 5), dt.date(2024, 3, 9), dt.date(2023, 12, 31), None]
TIMES = [None if day is None else np.datetime64(f"{day}T23:15", "s").item() for day in DAYS]
IDS = ["a", "a", "b", "b"]


def shifted(cells: pa.Array, ids=IDS, key: bytes = KEY) -> pa.ChunkedArray:
    source = open_table(pa.table({"id": ids, "seen": cells}))
    return shift_dates(source, SCHEMA, key).column("seen")


SHIFT = (shifted(pa.array(DAYS)).to_pylist()[0] - DAYS[0]).days


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(DAYS),
        pa.array(DAYS).cast(pa.date64()),
        pa.array(TIMES, pa.timestamp("ns")),
        pa.array(TIMES, pa.timestamp("s")),
        pa.array([None if day is None else day.isoformat() for day in DAYS]),
        pa.array([None if time is None else f" {time.isoformat(' ')}" for time in TIMES]),
        pa.array([None if day is None else day.isoformat() for day in DAYS]).dictionary_encode(),
    ],
)
def test_distances_stay_and_so_do_types_and_times_of_day(cells):
    found = shifted(cells)
    assert found.type == (cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type)
    before = [None if cell is None else np.datetime64(str(cell).strip()) for cell in cells.to_pylist()]
    after = [None if cell is None else np.datetime64(str(cell)) for cell in found.to_pylist()]
    moved = [
        None if one is None else (two - one) / np.timedelta64(1, "D")
        for one, two in zip(before, after, strict=True)
    ]
    assert moved[0] == moved[1] == SHIFT != 0
    assert -30 <= moved[2] <= 30
    assert moved[3] is None


def test_local_times_keep_their_time_of_day_over_a_change_of_clocks():
    noon = dt.datetime(2024, 3, 25, 12, 0, tzinfo=dt.UTC)
    times = pa.array([noon], pa.timestamp("us", "Europe/Berlin"))
    found = {shifted(times, [f"p{i}"], KEY)[0].as_py().strftime("%H:%M") for i in range(40)}
    assert len(found) == 1


def test_missing_dates_and_words_for_them_stay_as_they_are():
    assert shifted(pa.array(["", None, "2024-03-05", ""]), [None, "a", "a", "b"]).to_pylist()[:2] == [
        "",
        None,
    ]
    assert shifted(pa.nulls(4)).to_pylist() == [None] * 4


def test_every_shift_is_about_as_likely():
    ids = [f"p{i}" for i in range(6100)]
    days = shifted(pa.array([dt.date(2024, 1, 1)] * len(ids)), ids).to_numpy()
    counts = np.bincount((days - np.datetime64("2024-01-01")).astype(int) + 30, minlength=61)
    assert len(counts) == 61
    assert ((counts - 100) ** 2 / 100).sum() < 130  # chi-square with 60 degrees of freedom: 1e-6


def test_another_key_shifts_otherwise():
    ids = [f"p{i}" for i in range(20)]
    days = pa.array([dt.date(2024, 1, 1)] * 20)
    assert shifted(days, ids).to_pylist() != shifted(days, ids, b"l" * 32).to_pylist()


def test_a_stream_and_its_slices_shift_as_the_table_does(tmp_path):
    rng = np.random.default_rng(1)
    ids = [f"p{i}" for i in rng.integers(0, 90, 400)]
    days = pa.array(rng.integers(19000, 20000, 400).astype(np.int32)).cast(pa.date32())
    write_table(pa.table({"id": ids, "seen": days, "x": range(400)}), tmp_path / "t.parquet")
    source = shift_dates(open_table(tmp_path / "t.parquet", lazy=True), SCHEMA, KEY)
    expected = shifted(days, ids).to_pylist()
    batches = list(source.batches(["x", "seen"], rows=90))
    assert [batch.schema.names for batch in batches] == [["x", "seen"]] * len(batches)
    assert [day for batch in batches for day in batch.column("seen").to_pylist()] == expected
    (slice_,) = pickle.loads(pickle.dumps(source.slices(1)))
    assert [day for batch in slice_.batches(["seen"]) for day in batch.column("seen").to_pylist()] == expected


def test_what_is_no_date_and_a_date_of_nobody_are_sentences():
    with pytest.raises(TableError, match="without a readable date"):
        shifted(pa.array(["2024-03-05", "soon", None, None]))
    with pytest.raises(TableError, match="which is missing in 1 row at least"):
        shifted(pa.array(DAYS), ["a", None, "b", "b"])


def test_a_table_without_shifts_is_as_it_was():
    source = open_table(pa.table({"id": IDS}))
    assert shift_dates(source, Schema.of(id="identifier"), KEY) is source
