"""Rows that are alone by what is published as it is, counted again from published rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from sfumato.policy.document import Policy
from sfumato.release.certificate import AloneClaim
from sfumato.table.opening import open_table
from sfumato.table.write import write_table
from sfumato.verify.passed import count_alone, count_alone_in

POLICY = Policy.parse(
    "{attributes: {age: {role: quasi-identifier}, ill: {role: sensitive}, ward: {role: other}, id: {role: identifier}}, "
    "require: []}"
)


def rows(n: int = 3000) -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table(
        {
            "age": ["*"] * n,
            "ill": [f"ill {i}" for i in rng.integers(0, 60, n)],
            "ward": pa.array(rng.integers(0, 90, n), mask=rng.random(n) < 0.1),
        }
    )


def count_naively(table: pa.Table) -> int:
    lines = list(zip(table.column("ill").to_pylist(), table.column("ward").to_pylist(), strict=True))
    return sum(n == 1 for n in Counter(lines).values())


def test_it_is_what_counting_says():
    assert count_alone_in(rows(), POLICY) == AloneClaim(2, count_naively(rows()))


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_rows_that_do_not_fit_are_counted_alike(tmp_path, name):
    write_table(rows(), tmp_path / name)
    source = open_table(tmp_path / name, lazy=True)
    assert source.stream is not None
    assert count_alone(source, POLICY, 1, tmp_path) == AloneClaim(2, count_naively(rows()))


def test_an_empty_text_is_missing_as_it_is_in_csv(tmp_path):
    table = pa.table({"age": ["*"] * 3, "ill": ["", None, "flu"], "ward": [1, 1, 1]})
    write_table(table, tmp_path / "rows.csv")
    assert count_alone_in(table, POLICY) == AloneClaim(2, 1)
    assert count_alone(open_table(tmp_path / "rows.csv", lazy=True), POLICY, 1, tmp_path) == AloneClaim(2, 1)


def test_nothing_is_claimed_where_nothing_is_published_as_it_is():
    assert count_alone_in(rows().select(["age"]), POLICY) is None
