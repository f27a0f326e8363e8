"""The engine `disk`: the boxes of the engine `memory` by Rothko-T, and a release that holds by Rothko-S."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from people import PEOPLE, REQUIREMENTS, WORKLOADS, people, the_policy

import sfumato as sf

LITTLE = 4_000_000
TINY = "rows-in-memory: 40, frequency-groups: 2"


def rows_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    """The rows in any order."""
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "people.parquet"
    pq.write_table(PEOPLE, path, row_group_size=97)
    return path


@pytest.mark.parametrize("required", REQUIREMENTS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_rothko_t_publishes_what_the_engine_in_memory_does(workload, required, path):
    in_memory = sf.publish(PEOPLE, the_policy("mondrian", workload, required), seed=1)
    on_disk = sf.publish(
        path,
        the_policy(f"{{mondrian: {{{TINY}}}}}", workload, required),
        seed=1,
        engine="disk",
        memory=LITTLE,
    )
    assert rows_of(on_disk.rows) == rows_of(in_memory.rows)
    io = on_disk.certificate.figures["io"]
    assert io["levels"] >= 2
    assert io["repartitions"] >= 2
    mine, theirs = (dict(release.certificate.figures) for release in (on_disk, in_memory))
    mine.pop("io")
    assert mine == theirs
    assert on_disk.certificate.claims == in_memory.certificate.claims
