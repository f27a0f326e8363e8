"""Top-down specialization outside memory, on a table of some size: how few passes it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from blocks import EncodedRows

from sfumato.errors import RequirementUnreachable
from sfumato.policy import Policy
from sfumato.randomness import seeded
from sfumato.specialization.tds import grow_on_disk, partition
from sfumato.spill import Spill
from sfumato.tables import open_table

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


def found_on_disk(table: pa.Table, given: Policy, **shares: int) -> tuple[Any, list[Any], EncodedRows, Spill]:
    rows = EncodedRows(table, given)
    with Spill() as spill:
        cuts, portions = grow_on_disk(rows, given, spill=spill, layout=rows.layout, random=seeded(1), **shares)
        return cuts, list(portions), rows, spill


@pytest.mark.parametrize(
    ("k", "memory", "at_once", "most_passes"),
    [
        (50, 20_000_000, N, 4),  # counts, twice cells, and the rows
        (50, 2_000_000, 20_000, 5),
        (50, 300_000, 500, 16),
        (1000, 20_000, 5000, 36),  # not even the groups fit
    ],
)
def test_a_table_of_some_size_is_cut_as_in_memory_in_few_passes(table, k, memory, at_once, most_passes):
    given = policy(k)
    expected = partition(open_table(table), given)
    cuts, portions, rows, spill = found_on_disk(table, given, memory=memory, at_once=at_once)
    assert [x.tolist() for x in cuts.thresholds] == [x.tolist() for x in expected.recoding.thresholds]
    assert cuts.n_splits() == expected.recoding.n_splits()
    assert cuts.n_groups == expected.recoding.n_groups
    size = np.concatenate([groups.size for groups, _ in portions])
    leaf = np.concatenate([groups.leaf for groups, _ in portions])
    is_new = np.append(True, (leaf[1:] != leaf[:-1]).any(axis=1))
    assert leaf[is_new].tolist() == expected.leaf.tolist()
    assert np.add.reduceat(size, np.flatnonzero(is_new)).tolist() == expected.size.tolist()
    numbers = np.concatenate([payload.column("row").to_numpy()[groups.row_numbers] for groups, payload in portions])
    of_row = np.empty(N, dtype=np.int64)
    of_row[numbers] = np.repeat(np.cumsum(is_new) - 1, size)
    assert np.array_equal(of_row, expected.of_row())
    assert rows.passes <= most_passes
