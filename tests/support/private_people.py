"""A small table of people for differentially private releases, with every kind of declared domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.policy.document import Policy

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "name": {"role": "identifier"},
    "age": {"role": "quasi-identifier", "type": "number", "bounds": [18, 65], "step": 1},
    "income": {"role": "other", "values": ["low", "high"]},
    "job": {
        "role": "quasi-identifier",
        "hierarchy": {
            "tree": {"Any": {"Professional": ["Engineer", "Lawyer"], "Artist": ["Dancer", "Writer"]}}
        },
    },
    "sex": {"role": "quasi-identifier", "values": ["Male", "Female"]},
    "rate": {"role": "quasi-identifier", "type": "number", "bounds": [0, 1], "step": 0.1},
    "born": {"role": "quasi-identifier", "type": "date", "bounds": ["1960-01-01", "2010-12-31"]},
    "note": {"role": "drop"},
}


def people(n: int = 600, seed: int = 11) -> pa.Table:
    """Rows with cells that are missing, unknown, unreadable or out of bounds here and there."""
    rng = np.random.default_rng(seed)
    age = rng.integers(10, 80, n)
    job = rng.choice(
        ["Engineer", "Lawyer", "Dancer", "Writer", "Pilot", ""], n, p=[0.3, 0.2, 0.2, 0.2, 0.05, 0.05]
    )
    is_high = (age > 40) & np.isin(job, ["Engineer", "Lawyer"]) ^ (rng.random(n) < 0.1)
    texts = [str(number) for number in age]
    texts[::50] = ["unknown"] * len(texts[::50])
    income = np.where(is_high, "high", "low")
    income[1::97] = "secret"
    return pa.table(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": texts,
            "income": income,
            "job": job,
            "sex": rng.choice(["Male", "Female"], n),
            "rate": rng.random(n).round(2),
            "born": pa.array(rng.integers(-3650, 14600, n).astype(np.int32)).cast(pa.date32()),
            "note": ["x"] * n,
        }
    )


def the_policy(
    output: dict[str, Any] | None = None, *, columns: tuple[str, ...] = (), **options: Any
) -> Policy:
    """The policy of ``people``, epsilon 1 if not said otherwise; only these columns are quasi-identifiers, if any."""
    attributes = {
        name: {"role": "drop"}
        if columns and given["role"] == "quasi-identifier" and name not in columns
        else given
        for name, given in ATTRIBUTES.items()
    }
    document = {
        "attributes": attributes,
        "workload": [{"classify": "income"}],
        "method": {"diffgen": {"epsilon": 1.0, **options}},
    }
    return Policy.from_dict(document | ({"output": output} if output else {}))
