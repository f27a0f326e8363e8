"""Bounds of Mondrian say in a column of their own whether missing is among the values: whoever reads them agrees."""

from __future__ import annotations

import json
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from tampering import rehash

import sfumato as sf
from sfumato.errors import InputError
from sfumato.release.release import Release
from sfumato.verify.sql import sql_of_folder

NUMBERS = ("age", "seen", "dose")


def rows(n: int = 160) -> pa.Table:
    random = np.random.default_rng(3)

    def some(cells: list[Any], share: float) -> list[Any]:
        return [None if random.random() < share else cell for cell in cells]

    days = [date(2024, 1, 1) + timedelta(days=int(day)) for day in random.integers(0, 300, n)]
    return pa.table(
        {
            "age": pa.array(some(random.integers(18, 90, n).tolist(), 0.2), pa.int64()),
            "seen": pa.array(some(days, 0.1), pa.date32()),
            "dose": pa.array(some((random.random(n) * 10).tolist(), 0.5), pa.float64()),
            "whole": random.integers(0, 9, n),
            "sex": random.choice(["f", "m"], n),
            "row": np.arange(n),
        }
    )


def policy_of(values: str = "bounds", method: Any = None, **changed: Any) -> sf.Policy:
    quasi = {"role": "quasi-identifier"}
    attributes = {
        "age": {**quasi, "type": "number", "bounds": [0, 110]},
        "seen": {**quasi, "type": "date"},
        "dose": {**quasi, "type": "number"},
        "whole": {**quasi, "type": "number"},
        "sex": quasi,
        "row": {"role": "other", "type": "number", "passes": "unique"},
    }
    return sf.Policy.from_dict(
        {
            "attributes": attributes,
            "require": [{"k-anonymity": 4}],
            "method": {"mondrian": {"refine": "none"}} if method is None else method,
            "output": {"values": values, **changed},
        }
    )


def read_label(label: str | None) -> tuple[bool, bool]:
    """Does a label have a range, and missing?"""
    return label is not None, label is None or label.endswith(" or missing")


def test_bounds_keep_both_ends_and_a_flag_says_that_missing_is_among_them():
    seen = set()
    for line in sf.publish(rows(), policy_of("both")).table.to_pylist():
        for name in NUMBERS:
            has_range, has_missing = read_label(line[name])
            low, high, flag = (line[name + ending] for ending in ("_low", "_high", "_missing"))
            assert (low is not None, high is not None, flag) == (has_range, has_range, has_missing)
            seen.add((has_range, has_missing))
    assert seen == {(True, False), (True, True), (False, True)}


def test_a_column_without_missing_cells_has_two_bounds_and_no_flag():
    made = sf.publish(rows(), policy_of())
    assert [name for name in made.table.column_names if name.startswith("whole")] == [
        "whole_low",
        "whole_high",
    ]
    assert made.table.schema.field("age_missing").type == pa.bool_()


@pytest.mark.parametrize("method", ["tds", {"mondrian": {"variant": "paper"}}])
def test_methods_as_published_have_missing_below_all_values_and_no_flag(method):
    policy = policy_of().as_dict() | {"workload": [{"classify": "sex"}], "method": method}
    policy["attributes"]["sex"] = {"role": "other"}
    made = sf.publish(rows(), sf.Policy.from_dict(policy)).table
    assert "age_missing" not in made.column_names
    assert any(line["age_low"] is None and line["age_high"] is not None for line in made.to_pylist())


@pytest.mark.parametrize("values", ["bounds", "both"])
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_folder_with_flags_is_read_by_everybody(tmp_path, values, file_format):
    made = sf.publish(rows(), policy_of(values), file_format=file_format)
    made.write(tmp_path / "out")
    sf.verify_folder(tmp_path / "out").raise_if_failed()
    assert "age_missing" in sql_of_folder(tmp_path / "out", "duckdb")
    read, labels = Release.read(tmp_path / "out"), sf.publish(rows(), policy_of("labels"))
    assert read.certificate.claims.cells == labels.certificate.claims.cells
    for question in (
        "COUNT(*) WHERE age is null",
        "AVG(age) WHERE seen >= '2024-05-01'",
        "COUNT(*) WHERE dose < 3",
    ):
        assert read.query(question) == pytest.approx(labels.query(question))
    applied = read.recoding.apply(rows())
    keys = [name for name in made.table.column_names if name != "row"]
    assert sorted(map(str, applied.select(keys).to_pylist())) == sorted(
        map(str, made.table.select(keys).to_pylist())
    )


def test_the_rows_alone_are_judged_with_their_flags(tmp_path):
    """Two groups that differ in the flag alone are two: taken for one, a group of one row would pass."""
    table = pa.table({"age_low": [1] * 5, "age_high": [9] * 5, "age_missing": [True] * 4 + [False]})
    policy = "{attributes: {age: {role: quasi-identifier, type: number}}, require: [k-anonymity: 2]}"
    found = sf.verify_table(table, sf.Policy.parse(policy))
    assert not found.ok
    assert sf.verify_table(table.slice(0, 4), sf.Policy.parse(policy)).ok
    table = table.rename_columns(["born_low", "born_high", "born_missing"])
    any_name = "{attributes: {'*': {role: quasi-identifier, type: number}}, require: [k-anonymity: 2]}"
    assert not sf.verify_table(table, sf.Policy.parse(any_name)).ok


@pytest.fixture
def folder(tmp_path):
    sf.publish(rows(), policy_of(), file_format="parquet").write(tmp_path / "out")
    return tmp_path / "out"


def failing(folder):
    rehash(folder)
    return {check.claim for check in sf.verify_folder(folder).checks if not check.passed}


def test_a_flag_that_is_turned_is_found(folder):
    table = pq.read_table(folder / "release.parquet")
    flags = table.column("age_missing").to_pylist()
    turned = table.set_column(
        table.column_names.index("age_missing"), "age_missing", [[not flag for flag in flags]]
    )
    pq.write_table(turned, folder / "release.parquet", write_statistics=False)
    assert "the boxes of the recoding are those of the rows" in failing(folder)


def test_a_flag_that_is_taken_away_is_found(folder):
    table = pq.read_table(folder / "release.parquet").drop_columns(["age_missing"])
    pq.write_table(table, folder / "release.parquet", write_statistics=False)
    assert "the boxes of the recoding are those of the rows" in failing(folder)


def test_a_recoding_that_does_not_say_that_it_flags_is_found(folder):
    path = folder / "recoding.json"
    document = json.loads(path.read_text())
    assert [entry.pop("flagged", False) for entry in document["attributes"]] == [
        True,
        True,
        True,
        False,
        False,
    ]
    path.write_text(json.dumps(document))
    assert "the boxes of the recoding are those of the rows" in failing(folder)


def test_a_column_that_has_the_name_of_a_flag_is_refused_where_one_may_be_published():
    table = rows().append_column("age_missing", [["no"] * 160])
    plain = policy_of().as_dict()
    plain["attributes"]["age_missing"] = {"role": "other"}
    with pytest.raises(InputError, match="'age_missing' of the table has the name of a published bound"):
        sf.publish(table, sf.Policy.from_dict(plain))
    for changed in ({"output": {"values": "labels"}}, {"method": {"mondrian": {"variant": "paper"}}}):
        assert "age_missing" in sf.publish(table, sf.Policy.from_dict(plain | changed)).table.column_names


def test_flags_are_the_same_on_disk(tmp_path):
    pq.write_table(rows(), tmp_path / "rows.parquet", row_group_size=20)
    policy = policy_of(method={"mondrian": {"refine": "none", "rows-in-memory": 30}})
    on_disk = sf.publish(tmp_path / "rows.parquet", policy, engine="disk", memory=1 << 26)
    here = sf.publish(rows(), policy_of())
    told = [
        sorted(pa.table(made.table).to_pylist(), key=lambda line: line["row"]) for made in (on_disk, here)
    ]
    assert told[0] == told[1]
    on_disk.write(tmp_path / "out")
    sf.verify_folder(tmp_path / "out").raise_if_failed()


def test_flags_are_texts_in_csv_and_in_the_column_beside_their_bounds(tmp_path):
    sf.publish(rows(), policy_of(), file_format="csv").write(tmp_path / "out")
    read = pa_csv.read_csv(tmp_path / "out" / "release.csv")
    assert ("age_high", "age_missing") in set(pairwise(read.column_names))
    assert set((tmp_path / "out" / "release.csv").read_text().splitlines()[1].split(",")) & {"true", "false"}
