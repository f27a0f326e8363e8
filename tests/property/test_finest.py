"""Columns with ``finest`` on random tables: boxes are those of a table that was sliced by hand, in memory and on disk.

The naive twin slices the table by hand and publishes it without ``finest``.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.publishing import Request, publish_to

QUASI = ("age", "zip", "sex")
ON_DISK = "method: {mondrian: {refine: none, rows-in-memory: 20, frequency-groups: 2}}"
IN_MEMORY = "method: {mondrian: {refine: none}}"


def draw(seed: int) -> tuple[pa.Table, str, int, int]:
    """A table, a criterion's task, a width, and a level of zip codes."""
    drawn = random.Random(seed)
    n = drawn.randrange(40, 160)
    zips = [f"{drawn.randrange(1000):03}" for _ in range(drawn.randrange(5, 40))]
    table = pa.table(
        {
            "age": [None if drawn.random() < 0.05 else drawn.randrange(100) for _ in range(n)],
            "zip": [drawn.choice(zips) for _ in range(n)],
            "sex": [drawn.choice("fm") for _ in range(n)],
            "ill": [drawn.choice("abc") for _ in range(n)],
            "row": list(range(n)),
        }
    )
    return (
        table,
        drawn.choice(["", "workload: [classify: ill]\n"]),
        drawn.choice([2, 5, 10, 25]),
        drawn.choice([1, 2]),
    )


def policy_of(task: str, options: str, age: str, zips: str) -> sf.Policy:
    return sf.Policy.parse(f"""
attributes:
  age: {{role: quasi-identifier, type: number, {age}}}
  zip: {{role: quasi-identifier, {zips}}}
  sex: {{role: quasi-identifier, values: [f, m]}}
  ill: {{role: other}}
  row: {{role: other, type: number, passes: unique}}
require: [k-anonymity: 3]
output: {{numbers: boxes}}
{task}{options}
""")


def groups(table: pa.Table) -> set[frozenset[int]]:
    found: dict = {}
    for row in table.to_pylist():
        found.setdefault(tuple(row[name] for name in QUASI), set()).add(int(row["row"]))
    return {frozenset(rows) for rows in found.values()}


@pytest.mark.parametrize("seed", range(6))
def test_boxes_are_those_of_a_table_that_was_sliced_before_and_the_same_on_disk(seed, tmp_path):
    table, task, width, level = draw(seed)
    limits = (f"bounds: [0, 99], step: 1, finest: {width}", f"hierarchy: {{mask: 3}}, finest: {level}")
    released = sf.publish(table, policy_of(task, IN_MEMORY, *limits), seed=1).rows

    slices = [None if age is None else age // width for age in table["age"].to_pylist()]
    prefixes = [code[: 3 - level] for code in table["zip"].to_pylist()]
    sliced = table.set_column(0, "age", pa.array(slices)).set_column(1, "zip", pa.array(prefixes))
    by_hand = (f"bounds: [0, {99 // width}], step: 1", f"hierarchy: {{mask: {3 - level}}}")
    expected = sf.publish(sliced, policy_of(task, IN_MEMORY, *by_hand), seed=1).rows
    assert groups(released) == groups(expected)

    pq.write_table(table, tmp_path / "raw.parquet", row_group_size=17)
    request = Request(engine="disk", seed=1)
    publish_to(tmp_path / "out", tmp_path / "raw.parquet", policy_of(task, ON_DISK, *limits), request)
    on_disk = pq.read_table(tmp_path / "out" / "release.parquet")
    assert groups(on_disk) == groups(released)
    assert {row["age"] for row in on_disk.to_pylist()} == {row["age"] for row in released.to_pylist()}
