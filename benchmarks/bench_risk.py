"""How long the search for minimal sample uniques takes, and the measures of a whole table.

    python benchmarks/bench_risk.py --rows 1e6 --columns 8 --size 3
    python benchmarks/bench_risk.py --table people.parquet --names AGEP,SEX,RAC1P --size 3

Without a table codes are drawn: columns of 2 to 500 values, some frequent and some rare. Each line is one JSON object:
CPU seconds, what was found, and the peak of memory in MB. Kernels are compiled before.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from sfumato.randomness import seeded
from sfumato.risk.measures import prosecutor
from sfumato.risk.minimal_uniques import find_minimal_uniques
from sfumato.risk.uniqueness import GroupCounts, estimate_uniques
from sfumato.table.combinations import number_combinations, number_texts

VALUES = (100, 2, 9, 16, 7, 15, 500, 40)


def draw_codes(n_rows: int, n_columns: int) -> list[Any]:
    chance = seeded(20261119)
    return [
        np.minimum(chance.geometric(min(0.7, 4 / n), n_rows) - 1, n - 1)
        for n in (VALUES * n_columns)[:n_columns]
    ]


def read_codes(path: str, names: list[str], n_rows: int) -> list[Any]:
    rows = pq.read_table(path, columns=names).slice(0, n_rows)
    return [number_texts(rows.column(name)) for name in names]


def measure(what: str, work: Callable[[], Any], **found: Callable[[Any], Any]) -> None:
    began = time.process_time()
    value = work()
    spent = round(time.process_time() - began, 2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    shown = {name: show(value) for name, show in found.items()}
    print(json.dumps({"what": what, "seconds": spent, "peak": peak, **shown}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("--table", help="a Parquet file, in place of drawn codes")
    parser.add_argument("--names", help="its columns, with commas")
    options = parser.parse_args()
    n = int(options.rows)
    columns = (
        read_codes(options.table, options.names.split(","), n)
        if options.table
        else draw_codes(n, options.columns)
    )
    print(json.dumps({"rows": len(columns[0]), "values": [int(column.max()) + 1 for column in columns]}))
    find_minimal_uniques([column[:100] for column in columns], most=2)  # compiles
    measure(
        f"minimal sample uniques up to {options.size}",
        lambda: find_minimal_uniques(columns, most=options.size),
        sizes=lambda found: np.bincount(found.size).tolist(),
    )
    people = np.bincount(number_combinations(columns, in_order=False).number)
    measure("prosecutor", lambda: prosecutor(people), largest=lambda found: found.largest)
    measure(
        "who is alone in the population, at a tenth",
        lambda: estimate_uniques(GroupCounts.of(people), 0.1),
        estimates=lambda found: {name: own.value for name, own in found.estimates.items()},
    )


if __name__ == "__main__":
    main()
