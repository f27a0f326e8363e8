"""What an evaluation costs: 10 folds of Adult at k = 10 with all four classifiers, release and raw data.

    SFUMATO_DATA=... python benchmarks/bench_evaluate.py [--folds 10] [--k 10] [--learners scikit-learn]

All fourteen attributes are quasi-identifiers (28 numbers as corners); rows with a missing cell are left out, as in the
papers, which leaves 45,222. Mondrian is the default for a class, the mixed score. CPU seconds of this process; kernels
are compiled and warmed up before.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.evaluation import show
from sfumato.evaluation.protocol import evaluate
from sfumato.policy.document import Policy
from sfumato.table.opening import open_table

NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


def adult(folder: Path) -> pa.Table:
    """The rows without a missing cell."""
    source = open_table(folder / "adult" / "adult.csv.gz")
    table = pa.table({name: source.column(name).cast(pa.string()) for name in source.names})
    for name in table.column_names:
        table = table.filter(pc.not_equal(pc.utf8_trim_whitespace(table.column(name)), "?"))
    return table


def policy_of(names: list[str], k: int) -> Policy:
    *quasi, target = names
    kinds = {name: {"type": "number"} if name in NUMBERS else {} for name in quasi}
    attributes = {name: {"role": "quasi-identifier", **kind} for name, kind in kinds.items()}
    return Policy.from_dict(
        {
            "attributes": {**attributes, target: {"role": "other"}},
            "require": [{"k-anonymity": k}],
            "workload": [{"classify": target}],
        }
    )


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--folds", type=int, default=10)
    given.add_argument("--k", type=int, default=10)
    given.add_argument("--models", help="comma-separated; all four classifiers if not given")
    given.add_argument("--learners", default="scikit-learn")
    options = given.parse_args()
    table = adult(Path(os.environ["SFUMATO_DATA"]))
    policy = policy_of(table.column_names, options.k)
    chosen = {"models": options.models and options.models.split(","), "learners": options.learners}
    evaluate(table.slice(0, 500), policy, folds=2, **chosen)
    wall, cpu = time.perf_counter(), time.process_time()
    found = evaluate(table, policy, folds=options.folds, **chosen)
    line = {
        "bench": "evaluate",
        "rows": table.num_rows,
        "folds": options.folds,
        "k": options.k,
        "learners": options.learners,
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "seconds": round(time.perf_counter() - wall, 1),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    print(show.as_text(found))
    print(json.dumps(line))


if __name__ == "__main__":
    main()
