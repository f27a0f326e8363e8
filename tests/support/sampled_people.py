"""A table of people and a public one like it, for private risk-utility releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.policy.document import Policy

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "name": {"role": "identifier"},
    "age": {"role": "quasi-identifier", "type": "number", "bounds": [0, 99], "step": 1},
    "zip": {
        "role": "quasi-identifier",
        "hierarchy": {"tree": {"*": {"5*": ["53", "54"], "6*": ["61", "62"]}}},
    },
    "sex": {"role": "quasi-identifier", "values": ["Male", "Female"]},
    "born": {
        "role": "quasi-identifier",
        "type": "date",
        "bounds": ["2000-01-01", "2001-12-31"],
        "hierarchy": {"dates": ["year"]},
    },
    "note": {"role": "drop"},
}
PRIVATE = {"epsilon": 1.0, "delta": 1e-6}


def policy(*, private: dict[str, Any] | None = None, output: str = "labels", **options: Any) -> Policy:
    given = {"utility-at-least": 0.3, "weights": "harmonic", "side-table": "side.csv", **options}
    return Policy.from_dict(
        {
            "attributes": ATTRIBUTES,
            "method": {"risk-utility": {**given, "private": PRIVATE if private is None else private}},
            "output": {"values": output},
        }
    )


def people(n: int = 2000, seed: int = 1, *, public: bool = False) -> pa.Table:
    """Rows with cells that are missing, unknown, unreadable or out of bounds here and there."""
    rng = np.random.default_rng(seed)
    age = [str(int(number)) for number in np.clip(rng.normal(45, 20, n), -5, 130)]
    zips = rng.choice(["53", "54", "61", "62", "99", ""], n, p=[0.4, 0.3, 0.2, 0.08, 0.01, 0.01])
    born = [
        f"200{year}-0{month}-11"
        for year, month in zip(rng.integers(0, 2, n), rng.integers(1, 9, n), strict=True)
    ]
    if not public:
        age[::50] = ["unknown"] * len(age[::50])
        born[::60] = ["long ago"] * len(born[::60])
    columns = {
        "age": age,
        "zip": zips.tolist(),
        "sex": rng.choice(["Male", "Female"], n).tolist(),
        "born": born,
    }
    if public:
        return pa.table(columns)
    return pa.table({"name": [f"p{i}" for i in range(n)], **columns, "note": ["x"] * n})
