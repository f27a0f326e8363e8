"""Deciding requirements: today's verifier beside DuckDB on the same published rows, in one run.

    python benchmarks/bench_verify.py                                        # 1M rows, about two minutes
    python benchmarks/bench_verify.py --rows 5e7 --memory 512MB --times 1    # needs 2 GB of disk
    python benchmarks/bench_verify.py --order shuffled                       # as another tool may have written them

The rows are made, not published: eight quasi-identifiers, of which groups of 10 to 30 rows share every cell, a
sensitive category of 12 values and a sensitive number. Every run is a process of its own, one thread, its memory looked
at from outside (VmHWM); CPU is counted after all imports and a first run on a few rows.

- ``today``: ``measure`` of ``sfumato.verify``, which also finds what else a certificate claims of the rows.
- ``printed``: what ``verify --sql duckdb`` prints, one statement after the other, on the Parquet file: which groups fail.
- ``figures``: the least work by which DuckDB finds the worst figure of each requirement on the Parquet file.
- ``groups``: what DuckDB would do in place of ``verify.portions``: take the rows from our readers (any format, cells as
  the policy reads them), group them, and give the groups back for all the checks that are not requirements.

The last line is one JSON object with all figures; ratios are CPU against ``today``.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from watch import watch

if TYPE_CHECKING:
    from sfumato.policy.document import Policy

DECIDERS = ("today", "printed", "figures", "groups")
N_CELLS, N_VALUES, AT_ONCE = 8, 12, 1_000_000
CELLS = [f"cell_{at}" for at in range(N_CELLS)]
NAMES = [*CELLS, "disease", "charge"]
POLICY = {
    "attributes": {
        **{name: {"role": "quasi-identifier"} for name in CELLS},
        "disease": {"role": "sensitive"},
        "charge": {"role": "sensitive", "type": "number"},
    },
    "require": [
        {"k-anonymity": 10},
        {"entropy-diversity": {"l": 3, "of": "disease"}},
        {"recursive-diversity": {"c": 2, "l": 2, "of": "disease"}},
        {"variance-diversity": {"at-least": 100, "of": "charge"}},
    ],
}
FIGURES = """
CREATE TEMP TABLE counts AS
SELECT {cells}, disease, COUNT(*) AS n FROM release GROUP BY ALL;
CREATE TEMP TABLE sizes AS
SELECT {cells}, SUM(n) AS size, MAX(n) AS most, -SUM(n * LN(n)) AS terms FROM counts GROUP BY {cells};
SELECT COUNT(*), MIN(size), COUNT(*) FILTER (size < 10), MIN(LN(size) + terms / size),
       COUNT(*) FILTER (LN(size) + terms / size < LN(3) - 1e-12), MAX(most / (size - most)),
       COUNT(*) FILTER (most >= 2 * (size - most)) FROM sizes;
SELECT MIN(v), COUNT(*) FILTER (v < 100 * (1 - 1e-9)) FROM (SELECT VAR_POP(charge) AS v FROM release GROUP BY {cells});
""".format(cells=", ".join(CELLS))
"""Every figure by as little work as DuckDB needs for it: values are counted once for two requirements (l is 2)."""


def write_rows(path: Path, n_rows: int, order: str) -> None:
    """Published rows, chunk by chunk; groups lie together, or (shuffled) anywhere in a chunk and in two chunks."""
    chance = np.random.default_rng(20111)
    writer = None
    for start in range(0, n_rows, AT_ONCE):
        n = min(AT_ONCE, n_rows - start)
        group = np.repeat(np.arange(n), chance.integers(10, 31, n))[:n] + 1
        if order == "shuffled":
            group = chance.permutation(group)
            start -= start % (2 * AT_ONCE)  # noqa: PLW2901 - each group lies in two chunks
        key = (start + group).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        columns: dict[str, Any] = {}
        for at, name in enumerate(CELLS):
            code = (key >> np.uint64(8 * at)).astype(np.uint8).astype(np.int32)
            columns[name] = pa.DictionaryArray.from_arrays(
                pa.array(code), [f"[{i}, {i + 9}]" for i in range(256)]
            )
        value = chance.integers(0, N_VALUES, n).astype(np.int32)
        columns["disease"] = pa.DictionaryArray.from_arrays(
            pa.array(value), [f"disease {i}" for i in range(N_VALUES)]
        )
        columns["charge"] = pa.array(chance.integers(0, 100_000, n))
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, write_statistics=False)
        writer.write_table(table)
    assert writer is not None
    writer.close()


# ---- one run, in a process of its own -------------------------------------------------------------------


def decide(decider: str, path: Path, memory: int) -> dict[str, Any]:
    from sfumato.policy.document import Policy

    policy = Policy.of(POLICY)
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.parquet"
        write_rows(few, 10_000, "groups")
        DECIDE[decider](few, policy, memory)
    start = time.process_time()
    failing = DECIDE[decider](path, policy, memory)
    return {"cpu": time.process_time() - start, "failing": failing}


def measure_today(path: Path, policy: Policy, memory: int) -> list[int]:
    from sfumato.verify.measure import measure

    return [item.n_failing for item in measure(path, policy, memory=memory).requirements]


@contextmanager
def open_base(path: Path, memory: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with one thread and that much memory, and the rows as the view ``release``."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as base:
        base.execute(f"SET threads = 1; SET memory_limit = '{memory}B'; SET temp_directory = '{folder}'")
        base.execute("SET preserve_insertion_order = false")
        base.execute(f"CREATE VIEW release AS SELECT * FROM read_parquet('{path}')")
        yield base


def run_printed(path: Path, policy: Policy, memory: int) -> list[int]:
    from sfumato.verify.sql import statements

    with open_base(path, memory) as base:
        texts = [text for _, text in statements(policy, NAMES, "duckdb")]
        return [base.execute(f"SELECT COUNT(*) FROM ({text})").fetchall()[0][0] for text in texts]


def find_figures(path: Path, _policy: Policy, memory: int) -> list[int]:
    with open_base(path, memory) as base:
        found = [base.execute(text).fetchall()[0] for text in FIGURES.split(";")[:-1]]
    return [found[2][2], found[2][4], found[2][6], found[3][1]]


def give_groups_back(path: Path, _policy: Policy, memory: int) -> None:
    from sfumato.table.opening import open_table

    batches = open_table(path).batches(NAMES, rows=1 << 18, memory=memory // 8)
    first = next(iter(batches))
    cells = ", ".join(CELLS)
    with open_base(path, memory) as base:
        base.register("rows_read", pa.RecordBatchReader.from_batches(first.schema, chain([first], batches)))
        base.execute(
            f"CREATE TEMP TABLE counts AS SELECT {cells}, disease, COUNT(*), MIN(charge), MAX(charge), AVG(charge), "
            f"VAR_POP(charge) FROM rows_read GROUP BY {cells}, disease"
        )
        for _ in base.sql(f"SELECT * FROM counts ORDER BY hash({cells})").to_arrow_reader(100_000):
            pass


DECIDE: dict[str, Callable[[Path, Policy, int], Any]] = {
    "today": measure_today,
    "printed": run_printed,
    "figures": find_figures,
    "groups": give_groups_back,
}


# ---- all runs -------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--order", choices=("groups", "shuffled"), default="groups")
    parser.add_argument("--deciders", nargs="+", choices=DECIDERS, default=DECIDERS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--run", nargs=3, metavar=("DECIDER", "FILE", "BYTES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        decider, file, memory = options.run
        print(json.dumps(decide(decider, Path(file), int(memory))))
        return
    from sfumato.cli.options import parse_size

    memory = parse_size(options.memory)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "release.parquet"
        write_rows(path, int(options.rows), options.order)
        found: dict[str, list[dict[str, Any]]] = {decider: [] for decider in options.deciders}
        for _ in range(options.times):
            for decider in options.deciders:
                run = watch([sys.executable, __file__, "--run", decider, str(path), str(memory)])
                said = (
                    json.loads(run.out)
                    if run.code == 0
                    else {
                        "error": next(
                            (x for x in run.err.splitlines() if "Error" in x or "Exception" in x),
                            run.sentence,
                        )
                    }
                )
                found[decider].append({**said, "wall": run.wall, "peak": run.peak})
                print(decider, found[decider][-1], file=sys.stderr, flush=True)
    report: dict[str, Any] = {
        "benchmark": "verify", "rows": int(options.rows), "order": options.order, "memory": memory,
        "commit": subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip(),
        "machine": platform.processor() or platform.machine(),
    }  # fmt: skip
    for decider, runs in found.items():
        done = [run for run in runs if "cpu" in run]
        report[decider] = {
            "cpu": round(statistics.median(run["cpu"] for run in done), 3) if done else None,
            "peak": max(run["peak"] for run in runs),
            "failing": done[0]["failing"] if done else None,
            "error": next((run["error"] for run in runs if "error" in run), None),
        }
    base = report.get("today", {}).get("cpu")
    report["ratios"] = {
        decider: round(report[decider]["cpu"] / base, 2)
        for decider in options.deciders
        if base and report[decider]["cpu"] and decider != "today"
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
