"""TDS stays as published, byte for byte: files of seeded releases are those of versions before rests and loss."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf

HASHES = {
    "labels": {"release.csv": "d04e711aa2e58252", "recoding.json": "25a96eda6436c0f3"},
    "both": {"release.csv": "635682bca938f7c6", "recoding.json": "a2f03fe893e979d1"},
}
"""The first digits of each file's SHA-256, as published at commit a676750."""


def people() -> pa.Table:
    random = np.random.default_rng(2024)
    age = random.integers(17, 91, 600)
    return pa.table(
        {
            "age": pa.array(age, mask=random.random(600) < 0.1),
            "job": random.choice(["Dancer", "Writer", "Judge", "Notary"], 600),
            "country": random.choice(["US", "Peru", "Cuba"], 600, p=[0.9, 0.08, 0.02]),
            "income": np.where(age + random.integers(0, 40, 600) > 70, "high", "low"),
        }
    )


POLICY = """
attributes:
  age: {role: quasi-identifier, type: number, bounds: [17, 90], step: 1}
  job: {role: quasi-identifier, hierarchy: {tree: {Any: {Art: [Dancer, Writer], Law: [Judge, Notary]}}}}
  country: {role: quasi-identifier}
  income: {role: other}
require: [k-anonymity: 5]
workload: [classify: income]
method: tds
"""


def hashes(folder: Path, values: str) -> dict[str, str]:
    policy = sf.Policy.parse(f"{POLICY}output: {{values: {values}}}")
    sf.publish(people(), policy, seed=7, file_format="csv").write(folder)
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()[:16]
        for name in ("release.csv", "recoding.json")
    }


@pytest.mark.parametrize("values", HASHES)
def test_a_release_of_tds_has_the_bytes_that_it_had(values, tmp_path):
    assert hashes(tmp_path / "out", values) == HASHES[values]
