"""People, policies for them, and releases as comparable rows: for the tests on Spark."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf

ATTRIBUTES = """
attributes:
  age: {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  zip: {role: quasi-identifier, hierarchy: {mask: 3}}
  sex: {role: quasi-identifier, values: [f, m]}
  disease: {role: sensitive}
  ward: {role: other}
  class: {role: other, values: [high, low]}
"""
FINEST = ATTRIBUTES.replace("step: 1}", "step: 1, finest: 10}").replace("{mask: 3}}", "{mask: 3}, finest: 1}")
MONDRIAN = ATTRIBUTES + "require: [k-anonymity: 10, distinct-diversity: {l: 2, of: disease}]\n"
METHODS = {
    "mondrian": MONDRIAN,
    "class": MONDRIAN + "workload: [classify: class]\n",
    "median": MONDRIAN + "method: {mondrian: {criterion: median}}\n",
    "paper": MONDRIAN + "method: {mondrian: {variant: paper}}\n",
    "infogain": MONDRIAN + "workload: [classify: class]\nmethod: {mondrian: {variant: paper}}\n",
    "summary": MONDRIAN + "output: {values: summary}\n",
    "finest": FINEST + "require: [k-anonymity: 2]\noutput: {values: summary}\n",
    "select": MONDRIAN + "workload: [select: {where: age < 30}]\n",
    "rothko-t": MONDRIAN + "method: {mondrian: {scale: rothko-t, rows-in-memory: 400}}\n",
    "rothko-s": MONDRIAN + "method: {mondrian: {scale: rothko-s, rows-in-memory: 400}}\n",
    "tds": ATTRIBUTES + "require: [k-anonymity: 10]\nworkload: [classify: class]\nmethod: tds\n",
}
DIFFGEN = """
attributes:
  age: {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  sex: {role: quasi-identifier, values: [f, m]}
  class: {role: other, values: [high, low]}
  zip: {role: drop}
  disease: {role: drop}
  ward: {role: drop}
workload: [classify: class]
method: {diffgen: {epsilon: 1}}
"""


TIMES = """
attributes:
  "seen `.left`": {role: quasi-identifier, type: date}
  at: {role: quasi-identifier}
  disease: {role: sensitive}
require: [k-anonymity: 2]
method: {mondrian: {refine: none}}
output: {numbers: range}
"""
TIMES_SHOWN = sorted(
    json.dumps({"seen `.left`": day, "at": time, "disease": disease})
    for day, time in (("2024-02-29", "2024-02-29 21:00:00"), ("2024-03-05", "2024-03-05 21:00:00"))
    for disease in ("flu", "cold")
)
"""What is published of ``times`` in New York: the days that Spark shows there."""


def times(session: Any) -> Any:
    """A DataFrame of Spark with times at 2 o'clock in UTC, which in New York are of the day before."""
    rows = [(f"2024-03-0{day} 02:00:00Z", disease) for day in (1, 6) for disease in ("flu", "cold")]
    frame = session.createDataFrame(rows, ["text", "disease"])
    return frame.selectExpr(
        "cast(text as timestamp) as `seen ``.left```", "cast(text as timestamp) as at", "disease"
    )


def people(n: int = 3000) -> pa.Table:
    random = np.random.default_rng(8)
    age = random.integers(0, 100, n)
    return pa.table(
        {
            "age": age,
            "zip": [f"5{x:02}" for x in random.integers(0, 30, n)],
            "sex": random.choice(["f", "m"], n),
            "disease": random.choice(["flu", "cold", "asthma", "gout"], n),
            "ward": random.choice(["north", "south"], n),
            "class": np.where(age + random.integers(0, 40, n) > 70, "high", "low"),
        }
    )


def rows_of(release: sf.Release) -> list[str]:
    found = release.rows if isinstance(release.rows, pa.Table) else release.rows.load()
    return sorted(json.dumps(row, default=str) for row in found.to_pylist())
