"""What TDS costs, in memory and on disk: made rows, five quasi-identifiers, one of them as wide as the table.

    python benchmarks/bench_tds.py --rows 1e6 --memory 64 [--k 10]

CPU seconds of drafting the release (encode, specialize, recode), kernels compiled before. To compare two versions of
the program, run this file by turns with PYTHONPATH set to one and the other. One JSON line for each engine.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import pyarrow as pa

from sfumato.engines.engine import Resources
from sfumato.methods.protocol import Extras, Seed
from sfumato.methods.specialization.tds import METHOD
from sfumato.policy.document import Policy
from sfumato.progress import no_progress
from sfumato.randomness import seeded
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill


def make_table(n: int) -> pa.Table:
    """Five quasi-identifiers, one of them a number of as many values as rows, and two targets."""
    random = seeded(5)
    age, income = random.integers(17, 90, n), random.permutation(n) * 0.25
    place, job = random.integers(0, 400, n), random.choice(list("abcdefgh"), n, p=np.arange(1, 9) / 36)
    score = age / 30 + income / (0.09 * n) + place / 300 + (job > "d") + random.normal(size=n)
    return pa.table(
        {
            "age": age,
            "income": income,
            "zip": [f"{53000 + 7 * x}" for x in place.tolist()],
            "sex": random.choice(["f", "m"], n),
            "job": job,
            "class": np.where(score > 5, "high", "low"),
            "group": random.choice(list("uvw"), n),
        }
    )


def make_policy(k: int) -> Policy:
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


def draft(table: pa.Table, policy: Policy, engine: Resources) -> float:
    """CPU seconds."""
    began = time.process_time()
    METHOD.draft(open_table(table), policy, engine, chance=Seed(1), extras=Extras(), progress=no_progress)
    return round(time.process_time() - began, 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--memory", type=int, default=64, help="MB, on disk")
    options = parser.parse_args()
    table, policy = make_table(int(options.rows)), make_policy(options.k)
    small = make_table(2000)
    for name in ("memory", "disk"):
        took = []
        for given in (small, table):
            with Spill() as spill:
                on_disk = Resources(spill=spill, memory=options.memory << 20)
                took.append(draft(given, policy, Resources() if name == "memory" else on_disk))
        print(
            json.dumps({"engine": name, "rows": int(options.rows), "k": options.k, "seconds": took[-1]}),
            flush=True,
        )


if __name__ == "__main__":
    main()
