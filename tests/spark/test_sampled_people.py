"""Rothko-S on Spark where groups count people: the release is that of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spark_people import MONDRIAN, people, rows_of

import sfumato as sf
from sfumato.policy.document import Policy
from sfumato.publishing import Request, publish_to

SAMPLED = "{refine: none, scale: rothko-s, sample: 500, rows-in-memory: 400, tests: false}"


def test_a_sample_of_people_makes_the_release_that_it_makes_in_memory(spark: Any, tmp_path: Any) -> None:
    rows = people(1500)
    who = np.random.default_rng(3).integers(0, 500, len(rows))
    rows = rows.append_column("who", pa.array([f"p{number:03}" for number in who]))
    pq.write_table(rows, tmp_path / "stays.parquet", row_group_size=400)
    policy = Policy.parse(
        MONDRIAN.replace("require:", "  who: {role: identifier}\nrequire:")
        + f"unit: who\nmethod: {{mondrian: {SAMPLED}}}\n"
    )
    request = Request(engine="spark", seed=1)
    release = publish_to(tmp_path / "release", tmp_path / "stays.parquet", policy, request)
    here = sf.publish(rows, policy, engine="memory", seed=1)
    assert rows_of(release) == rows_of(here)
    assert here.certificate.figures["io"]["pruned"] > 0
    assert sf.verify_folder(tmp_path / "release", table=tmp_path / "stays.parquet").ok
