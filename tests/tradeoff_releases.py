"""Small risk-utility releases, put together from the definitions: each row's best box by looking at all of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from naive_tradeoff import best

from sfumato.policy import Policy
from sfumato.randomness import seeded
from sfumato.release import Certificate, Release
from sfumato.tables import open_table
from sfumato.tradeoff.generalize import closed, encoded, objective_of, published
from sfumato.tradeoff.problem import Problem, Solution
from sfumato.verify_tradeoff import Boxes, claims_of

QUASI = "role: quasi-identifier"
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
    zips: list[Any] = random.choice(["531", "533", "571", "58"], n).tolist()
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
    """The release that the definitions ask for."""
    rules, source = Policy.parse(policy), open_table(table)
    other = None if side is None else open_table(side)
    chosen = closed(rules, source, other)
    found = encoded(source, chosen.schema, rules.method, other)
    problem = found.problem
    levels = np.array(
        [best(problem, objective_of(rules.method), row)[2] for row in range(problem.n)], dtype=np.uint8
    )
    rows = published(source, chosen, found, levels, seeded(5))
    claims = claims_of(Boxes.of(rows, chosen, found.with_missing))
    figures = {"tradeoff": figures_of(problem, problem.solution(levels), side)}
    return Release(
        rows, Certificate.of(chosen, claims, figures=figures), chosen, format=file_format, report="<p>"
    )


def figures_of(problem: Problem, solution: Solution, side: Any) -> dict[str, Any]:
    raw = problem.solution(np.zeros_like(solution.levels))
    whole = raw.utility - problem.least_utility
    share = np.where(whole > 0, (solution.utility - problem.least_utility) / np.maximum(whole, 1), 1.0)

    def figure(values: Any, extreme: str) -> dict[str, float]:
        mean = float(np.average(values, weights=problem.n_alike))
        return {"mean": mean, extreme: float(values.max() if extreme == "greatest" else values.min())}

    is_path = isinstance(side, Path)
    is_top = np.all(solution.levels == problem.top(), axis=1)
    return {
        "optimizer": "exact",
        "reason": "as asked",
        "proved": len(problem.of_row),
        "rows": len(problem.of_row),
        "risk": figure(problem.risk(solution), "greatest"),
        "raw risk": figure(problem.risk(raw), "greatest"),
        "share": figure(share, "least"),
        "suppressed": int(problem.n_alike[is_top].sum()),
        "lacking": int((problem.own * problem.n_alike).sum()),
        "side table": {
            "rows": problem.n_side,
            "own": side is None,
            "sha256": hashlib.sha256(side.read_bytes()).hexdigest() if is_path else None,
        },
    }
