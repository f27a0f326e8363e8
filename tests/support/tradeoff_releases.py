"""Small risk-utility releases for tests: numbers, masks, a tree of uneven depth, dates, and missing cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.policy.document import Policy
from sfumato.release.release import Release

POLICY = """
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier, type: number}
  zip: {role: quasi-identifier, hierarchy: {mask: 3}}
  job: {role: quasi-identifier, hierarchy: {tree: {"*": {Office: [clerk, boss], farmer: null}}}}
  admitted: {role: quasi-identifier, type: date}
  disease: {role: sensitive}
method: {risk-utility: {utility-at-least: 0.5}}
"""


def people(n: int = 40, *, seed: int = 1, missing: bool = True) -> pa.Table:
    """People with an age, a zip code, a job of uneven depth and a day; some cells are missing."""
    random = np.random.default_rng(seed)
    ages: list[Any] = random.choice([23, 25, 31, 38, 44, 60], n).tolist()
    zips: list[Any] = random.choice(["531", "533", "571", "5b"], n).tolist()
    if missing:
        ages[3], zips[5] = None, None
    days = np.datetime64("2024-01-30") + random.integers(0, 4, n)
    return pa.table(
        {
            "name": [f"p{i}" for i in range(n)],
            "age": pa.array(ages),
            "zip": zips,
            "job": random.choice(["clerk", "boss", "farmer"], n).tolist(),
            "admitted": pa.array(days),
            "disease": random.choice(["flu", "cold"], n).tolist(),
        }
    )


def release_of(
    table: pa.Table, policy: str = POLICY, side: Any = None, *, file_format: str = "csv"
) -> Release:
    """A release, the same in every run."""
    return sf.publish(table, Policy.parse(policy), side_table=side, seed=5, file_format=file_format)
