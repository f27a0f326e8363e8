"""Tree growth beside its references, in one run: read the ratios, not the seconds.

    python benchmarks/bench_mondrian.py                       # 100k, 1M and 10M rows; a quarter of an hour
    python benchmarks/bench_mondrian.py --rows 1e5 --quick    # a minute
    python benchmarks/bench_mondrian.py --rows 1e6 --sampling # growth that begins on a sample
    python benchmarks/bench_mondrian.py --rows 1e6 --tuned 5  # loss and mixed beside the papers' criteria, by turns
    python benchmarks/bench_mondrian.py --rows 1e6 --unit 3   # groups that count people beside groups that count rows
    python benchmarks/bench_mondrian.py --rows 1e6 --suppress 3  # rows may be left out, or not; growth and publish
    SFUMATO_DATA=... python benchmarks/bench_mondrian.py --rows 1e6 --people 5  # loss and mixed on real people

Timed are the papers' criteria (``variant: paper``); ``--tuned`` those that weigh loss beside them.
Agrawal's nine attributes as whole numbers, class C2 with one label in ten flipped, so that nodes do not become
pure at once (a decision tree stops at pure nodes, Mondrian does not). Times are CPU seconds of growth alone,
one thread unless said otherwise; kernels are compiled and warmed up before. The command is timed end to end.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato import publish
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import EncodedTable, Loaded
from sfumato.engines.start import scan_table
from sfumato.examples.agrawal import QUASI_IDENTIFIERS, agrawal
from sfumato.methods.groups import find_chunks
from sfumato.methods.mondrian.tree_run import TreeRun
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import NO_LIST, PAPER, ROTHKO_S, MondrianOptions
from sfumato.policy.requirements import KAnonymity, RecursiveDiversity
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Classify, Regress, Task
from sfumato.randomness import seeded
from sfumato.table.opening import open_table

POLICY = """
attributes:
  salary: {role: quasi-identifier, type: number}
  commission: {role: quasi-identifier, type: number}
  age: {role: quasi-identifier, type: number}
  elevel: {role: quasi-identifier, type: number}
  car: {role: quasi-identifier, type: number}
  zipcode: {role: quasi-identifier, type: number}
  hvalue: {role: quasi-identifier, type: number}
  hyears: {role: quasi-identifier, type: number}
  loan: {role: quasi-identifier, type: number}
  class: {role: other}
  region: {role: sensitive}
  wealth: {role: other, type: number}
require: [k-anonymity: 10]
workload: [classify: class]
method: {mondrian: {variant: paper}}
"""


def table_of(n_rows: int) -> pa.Table:
    table = pa.Table.from_batches(agrawal(n_rows, seed=1993))
    random = seeded(2008)
    is_a = table.column("class").to_numpy(zero_copy_only=False) == "A"
    flipped = np.where(is_a ^ (random.random(n_rows) < 0.1), "A", "B")
    wealth = table.column("hvalue").to_numpy() // 100 + table.column("salary").to_numpy()
    table = table.set_column(9, "class", pa.array(flipped))
    region = pa.array(random.integers(0, 10, n_rows).astype(str))
    return table.append_column("region", region).append_column("wealth", pa.array(wealth))


def growth(table: pa.Table, k: int, workload=(), *, threads=1, more=(), repeats=2, sample=None):
    """(least CPU seconds, wall seconds of that run, leaves); ``sample`` is how much of the rows decides first."""
    scale = {} if sample is None else {"scale": ROTHKO_S, "sample": sample}
    options = MondrianOptions(variant=PAPER, **scale)
    policy = Policy(Policy.parse(POLICY).schema, (KAnonymity(k), *more), tuple(workload), options)
    grow = prepare_growth(table, policy, threads=threads, n_sampled=0 if sample is None else 1)
    return min((grow() for _ in range(repeats)), key=lambda found: found[0])


def prepare_growth(table: pa.Table, policy: Policy, *, threads=1, n_sampled=0):
    """A function that grows a tree and returns (CPU seconds, wall seconds, leaves)."""
    encoded = scan_table(open_table(table), policy, sample=n_sampled)
    engine = EncodedBefore(encoded, threads)

    def grow() -> tuple[float, float, int]:
        run = TreeRun(engine, encoded, policy, random=seeded(1))
        wall, cpu = time.perf_counter(), time.process_time()
        n_leaves = sum(len(chunk.groups.size) for chunk in find_chunks(run, engine))
        return time.process_time() - cpu, time.perf_counter() - wall, n_leaves

    return grow


class EncodedBefore(MemoryEngine):
    """Rows that were encoded before the clock starts."""

    def __init__(self, table: EncodedTable, threads: int) -> None:
        super().__init__(threads=threads)
        self.codes = self.load(table).rows

    def open(self, table: EncodedTable) -> Loaded:  # noqa: ARG002 - it was loaded before
        return Loaded(self.codes)


def bench_sampling(table: pa.Table, k: int, results: dict) -> None:
    """Growth that begins on a sample, beside growth from all rows."""
    n = table.num_rows
    for name, workload in {"Median": [], "InfoGain": [Classify("class")]}.items():
        whole = growth(table, k, workload)
        line(f"{name}, k = {k:,}: leaves", f"{whole[2]:,}")
        for share in (0.01, 0.05, 0.2):
            sampled = growth(table, k, workload, sample=share)
            line(f"{name}, {share:.0%} sampled: time / of all rows", f"{sampled[0] / whole[0]:.2f}")
            line(f"{name}, {share:.0%} sampled: leaves", f"{sampled[2]:,}")
            results[f"{n} {k} {name} {share}"] = {"whole": whole, "sampled": sampled}


TUNED_OVER_PAPER = {
    "loss with rest / Median": (None, "<= 2"),
    "mixed / InfoGain": ("class", "<= 1.5"),
    "mixed / Regression": ("number", ""),
}
"""What Mondrian costs as it serves best, over what it costs as published: what is to be predicted, and the target."""


def bench_tuned(
    table: pa.Table,
    schema: Schema,
    tasks: Mapping[str | None, Sequence[Task]],
    k: int,
    turns: int,
    results: dict,
) -> None:
    """Growth by loss and by the mixed score beside the papers' criteria, by turns in one process."""
    for name, (of, target) in TUNED_OVER_PAPER.items():
        if of not in tasks:
            continue
        runs = [
            prepare_growth(table, Policy(schema, (KAnonymity(k),), tuple(tasks[of]), options))
            for options in (MondrianOptions(refine=NO_LIST), MondrianOptions(variant=PAPER))
        ]
        turn = [[grow() for grow in runs] for _ in range(turns)]
        ratios = [tuned[0] / paper[0] for tuned, paper in turn]
        seconds = [statistics.median(each[side][0] for each in turn) for side in (0, 1)]
        line(f"{name}: CPU, median of {turns} turns", f"{statistics.median(ratios):.2f}", target)
        line(f"{name}: least and greatest ratio", f"{min(ratios):.2f}, {max(ratios):.2f}")
        line(f"{name}: CPU seconds", f"{seconds[0]:.2f}, {seconds[1]:.2f}")
        line(f"{name}: leaves", f"{turn[0][0][2]:,}, {turn[0][1][2]:,}")
        results[f"{table.num_rows} {k} {name}"] = turn


TASKS = {None: [], "class": [Classify("class")], "number": [Regress("wealth")]}


ALIKE = ["salary", "commission", "age", "elevel", "zipcode", "hvalue"]
"""What the rows of a person may have in common."""


def with_patients(table: pa.Table, *, are_alike: bool) -> pa.Table:
    """A third as many people as rows, most with few rows; three columns are categories."""
    random = seeded(19)
    patient = np.sort(random.integers(0, table.num_rows // 3, table.num_rows))
    for name in ALIKE if are_alike else ():
        first = np.searchsorted(patient, patient)
        column = table.column(name).to_numpy()[first]
        table = table.set_column(table.column_names.index(name), name, pa.array(column))
    for name in ("elevel", "car", "zipcode"):
        texts = table.column(name).cast(pa.string())
        table = table.set_column(table.column_names.index(name), name, texts)
    table = table.append_column("patient", pa.array(patient))
    return table.take(pa.array(random.permutation(table.num_rows)))


def bench_unit(table: pa.Table, k: int, turns: int, results: dict) -> None:
    """Growth with groups that count people beside the same with groups that count rows, by turns in one process."""
    attributes = {name: {"role": "quasi-identifier", "type": "number"} for name in QUASI_IDENTIFIERS}
    attributes |= {name: {"role": "quasi-identifier"} for name in ("elevel", "car", "zipcode")}
    attributes |= {"class": {"role": "other"}, "wealth": {"role": "other", "type": "number"}}
    attributes |= {"region": {"role": "sensitive"}, "patient": {"role": "identifier"}}
    entropy = {"entropy-diversity": {"l": 3, "of": "region"}}
    asked = {
        "Median": ({"criterion": "median"}, [], []),
        "InfoGain": ({"variant": "paper"}, [{"classify": "class"}], []),
        "loss with rest": ({"refine": "none"}, [], []),
        "loss with rest, entropy": ({"refine": "none"}, [], [entropy]),
    }
    for are_alike in (False, True):
        rows = with_patients(table, are_alike=are_alike)
        for name, (options, workload, more) in asked.items():
            document = {
                "attributes": attributes,
                "require": [{"k-anonymity": k}, *more],
                "workload": workload,
                "method": {"mondrian": options},
            }
            runs = [
                prepare_growth(rows, Policy.from_dict({**document, "unit": unit}))
                for unit in ("patient", "row")
            ]
            turn = [[grow() for grow in runs] for _ in range(turns)]
            told = f"{name}, rows of a person {'alike' if are_alike else 'independent'}"
            ratios = [people[0] / by_rows[0] for people, by_rows in turn]
            line(f"{told}: people / rows, CPU", f"{statistics.median(ratios):.2f}", "<= 2")
            line(f"{told}: leaves", f"{turn[0][0][2]:,}, {turn[0][1][2]:,}")
            results[f"{table.num_rows} {k} unit {told}"] = turn


def with_rare_cars(table: pa.Table) -> pa.Table:
    """One car in fifty is one of 4,000 that hardly anybody has."""
    random = seeded(20)
    names = np.array(table.column("car").to_pylist(), dtype=object)
    rare = random.random(table.num_rows) < 0.02
    names[rare] = [f"rare{number}" for number in random.integers(0, 4000, int(rare.sum()))]
    return table.set_column(table.column_names.index("car"), "car", pa.array(names.tolist()))


def bench_suppress(table: pa.Table, k: int, turns: int, results: dict) -> None:
    """Growth and publish where 2% of the rows may be left out beside the same where all stay, by turns."""
    rows = with_rare_cars(with_patients(table, are_alike=False))
    attributes = {name: {"role": "quasi-identifier", "type": "number"} for name in QUASI_IDENTIFIERS}
    attributes |= {name: {"role": "quasi-identifier"} for name in ("elevel", "car", "zipcode")}
    attributes |= {"class": {"role": "other"}, "patient": {"role": "identifier"}}
    attributes |= {name: {"role": "drop"} for name in ("wealth", "region")}
    asked = {
        "Median": ({"criterion": "median"}, [], "row"),
        "InfoGain": ({"variant": "paper"}, [{"classify": "class"}], "row"),
        "loss with rest": ({"refine": "none"}, [], "row"),
        "Median of people": ({"criterion": "median"}, [], "patient"),
        "loss with rest of people": ({"refine": "none"}, [], "patient"),
    }
    for name, (options, workload, unit) in asked.items():
        policies = [
            Policy.from_dict(
                {
                    "attributes": attributes,
                    "require": [{"k-anonymity": k}],
                    "workload": workload,
                    "method": {"mondrian": options},
                    "unit": unit,
                    "suppress": {"at-most": share},
                }
            )
            for share in ("2%", "0%")
        ]
        runs = [prepare_growth(rows, policy) for policy in policies]
        turn = [[grow() for grow in runs] for _ in range(turns)]
        ratio = statistics.median(leaving[0] / keeping[0] for leaving, keeping in turn)
        line(f"{name}: suppress / all stay, CPU of growth", f"{ratio:.2f}", "<= 1.2")
        line(f"{name}: leaves", f"{turn[0][0][2]:,}, {turn[0][1][2]:,}")
        published = [[seconds_to_publish(rows, policy) for policy in policies] for _ in range(turns)]
        ratio = statistics.median(leaving / keeping for leaving, keeping in published)
        line(f"{name}: suppress / all stay, CPU of publish", f"{ratio:.2f}", "<= 2.2")
        results[f"{table.num_rows} {k} suppress {name}"] = {"growth": turn, "publish": published}


def seconds_to_publish(rows: pa.Table, policy: Policy) -> float:
    """CPU seconds of a release in memory."""
    start = time.process_time()
    publish(rows, policy, threads=1)
    return time.process_time() - start


def bench_people(n_rows: int, k: int, turns: int, results: dict) -> None:
    """The same on people of nine states: seven categories, of which one has a hierarchy, and three numbers."""
    from loss_tables import CLASS
    from purpose_tables import load_states

    study = load_states(n_rows)
    schema = Policy.from_dict(study.policy(k, method="mondrian")).schema
    table = pa.Table.from_pandas(study.released, preserve_index=False)
    print(f"\n{table.num_rows:,} people, k = {k:,}")
    bench_tuned(table, schema, {None: [], "class": [Classify(CLASS)]}, k, turns, results)


def sklearn_seconds(table: pa.Table, k: int) -> float:
    from sklearn.tree import DecisionTreeClassifier

    x, y = features(table).astype(np.float32), labels(table)
    start = time.process_time()
    DecisionTreeClassifier(criterion="entropy", min_samples_leaf=k, random_state=0).fit(x, y)
    return time.process_time() - start


def lightgbm_seconds(table: pa.Table, k: int, n_leaves: int) -> float:
    import lightgbm

    x, y = features(table), labels(table)
    common = {"num_threads": 1, "verbose": -1, "feature_pre_filter": False, "min_data_in_leaf": k}
    start = time.process_time()
    data = lightgbm.Dataset(x, y, params=common).construct()
    options = {"objective": "binary", "num_leaves": max(2, n_leaves), "min_sum_hessian_in_leaf": 0, **common}
    lightgbm.train(options, data, 1)
    return time.process_time() - start


def features(table: pa.Table) -> np.ndarray:
    return np.stack([table.column(name).to_numpy() for name in QUASI_IDENTIFIERS], axis=1).astype(np.float64)


def labels(table: pa.Table) -> np.ndarray:
    return (table.column("class").to_numpy(zero_copy_only=False) == "A").astype(np.int64)


def line(text: str, value: str, target: str = "") -> None:
    print(f"  {text:<58} {value:>14}   {target}", flush=True)


def bench_growth(table: pa.Table, k: int, *, references: bool, results: dict) -> float:
    n = table.num_rows
    print(f"\n{n:,} rows, k = {k:,}")
    median = growth(table, k)
    info = growth(table, k, [Classify("class")])
    regression = growth(table, k, [Regress("wealth")])
    diverse = growth(table, k, [Classify("class")], more=[RecursiveDiversity(c=1, l=3, of="region")])
    twice = growth(table, k, threads=2)
    fastest = {1_000_000: ">= 5M", 10_000_000: ">= 4M"}.get(n, "") if k == 10 else ""
    line("Median: rows per CPU second", f"{n / median[0] / 1e6:.2f}M", fastest)
    line("Median: leaves", f"{median[2]:,}")
    line("InfoGain: rows per CPU second", f"{n / info[0] / 1e6:.2f}M")
    line("InfoGain: leaves", f"{info[2]:,}")
    line("Regression / InfoGain", f"{regression[0] / info[0]:.2f}", "<= 1")
    line("recursive (1,3)-diversity / k-anonymity", f"{diverse[0] / info[0]:.2f}", "<= 1.5")
    line("two threads, Median: CPU / one thread", f"{twice[0] / median[0]:.2f}", "<= 1.05")
    line("two threads, Median: one thread's wall / wall", f"{median[1] / twice[1]:.2f}", ">= 1.7 if idle")
    entry = {"median": median, "infogain": info, "regression": regression, "recursive": diverse, "two": twice}
    if references:
        sklearn = sklearn_seconds(table, k)
        light = lightgbm_seconds(table, k, info[2])
        line("scikit-learn DecisionTreeClassifier / InfoGain", f"{sklearn / info[0]:.1f}", ">= 20")
        line(
            "LightGBM, binning and one tree / InfoGain",
            f"{light / info[0]:.1f}",
            ">= 10" if k == 10 else ">= 1",
        )
        entry |= {"sklearn": sklearn, "lightgbm": light}
    results[f"{n}/{k}"] = entry
    return info[0]


def bench_command(n_rows: int, grown: float, results: dict) -> None:
    """The command on a Parquet file, and DuckDB's GROUP BY beside verify."""
    import duckdb

    from sfumato.verify.folder import verify_folder

    print(f"\nsfumato publish, {n_rows:,} rows of Parquet, InfoGain, k = 10")
    with tempfile.TemporaryDirectory() as folder:
        source, policy, out = Path(folder, "in.parquet"), Path(folder, "policy.yaml"), Path(folder, "out")
        pq.write_table(table_of(n_rows), source)
        policy.write_text(POLICY, encoding="utf-8")
        tiny = Path(folder, "tiny.parquet")
        pq.write_table(table_of(100), tiny)
        started = child(["publish", tiny, "--policy", policy, "--out", Path(folder, "tiny"), "--quiet"])
        run = child(["publish", source, "--policy", policy, "--out", out, "--quiet", "--threads", "1"])
        release = out / "release.parquet"
        cells = ", ".join(QUASI_IDENTIFIERS)
        query = f"SELECT min(n) FROM (SELECT count(*) n FROM '{release}' GROUP BY {cells})"
        verified, grouped = least_cpu(
            lambda: verify_folder(out).raise_if_failed(), lambda: duckdb.sql(query).fetchall()
        )
        encoded = n_rows * (len(QUASI_IDENTIFIERS) + 2) * 4
        sizes = release.stat().st_size / source.stat().st_size
    line("whole command / growth, CPU", f"{run['cpu'] / grown:.2f}", "<= 3")
    line("whole command less start-up / growth, CPU", f"{(run['cpu'] - started['cpu']) / grown:.2f}")
    line("start-up: command on 100 rows, wall", f"{started['wall']:.2f} s", "<= 1 s before the first row")
    line("release / input, bytes", f"{sizes:.2f}", "<= 0.5")
    line("verify / DuckDB GROUP BY, CPU", f"{verified / grouped:.2f}", "<= 2")
    extra = (run["peak"] - started["peak"]) / encoded
    line("peak memory above start-up / encoded table", f"{extra:.2f}", "<= 3, plus the release")
    results["command"] = {
        "publish": run,
        "start": started,
        "verify": verified,
        "duckdb": grouped,
        "bytes": sizes,
    }


def least_cpu(*runs: Callable[[], object], repeats: int = 5) -> list[float]:
    """The least CPU seconds of each, run by turns: what only the first run costs is start-up."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats):
        for run, found in zip(runs, seconds, strict=True):
            start = time.process_time()
            run()
            found.append(time.process_time() - start)
    return [min(found) for found in seconds]


def child(arguments: list) -> dict:
    """CPU and wall seconds and peak memory of one command."""
    program = [sys.executable, "-m", "sfumato", *map(str, arguments)]
    measure = (
        "import resource, subprocess, sys, time, json\n"
        "w = time.perf_counter(); subprocess.run(sys.argv[1:], check=True); w = time.perf_counter() - w\n"
        "u = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps({'cpu': u.ru_utime + u.ru_stime, 'wall': w, 'peak': u.ru_maxrss * 1024}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", measure, *program], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = [100_000, 1_000_000, 10_000_000]
    parser.add_argument("--rows", nargs="+", type=lambda text: int(float(text)), default=sizes)
    parser.add_argument("--k", nargs="+", type=int, default=[10, 1000])
    parser.add_argument("--quick", action="store_true", help="leave out the references")
    parser.add_argument(
        "--sampling", action="store_true", help="growth that begins on a sample, and nothing else"
    )
    parser.add_argument(
        "--tuned",
        type=int,
        metavar="TURNS",
        help="loss and mixed beside the papers' criteria, and nothing else",
    )
    parser.add_argument(
        "--unit", type=int, metavar="TURNS", help="groups of people beside groups of rows, and nothing else"
    )
    parser.add_argument(
        "--people", type=int, metavar="TURNS", help="the same on people of ACS, which SFUMATO_DATA has"
    )
    parser.add_argument(
        "--suppress", type=int, metavar="TURNS", help="rows may be left out, or not, and nothing else"
    )
    parser.add_argument("--json", type=Path, help="append one line of results to this file")
    options = parser.parse_args()
    results: dict = {}
    growth(table_of(5_000), 10, [Classify("class")], repeats=1)  # compile and warm up
    if options.tuned:
        with contextlib.redirect_stdout(io.StringIO()):
            bench_tuned(table_of(5_000), Policy.parse(POLICY).schema, TASKS, 10, 1, {})
    if options.unit:
        with contextlib.redirect_stdout(io.StringIO()):
            bench_unit(table_of(5_000), 10, 1, {})
    if options.suppress:
        with contextlib.redirect_stdout(io.StringIO()):
            bench_suppress(table_of(5_000), 10, 1, {})
    if options.people:
        with contextlib.redirect_stdout(io.StringIO()):
            bench_people(5_000, 10, 1, {})
    for n_rows in options.rows:
        table = table_of(n_rows)
        for k in options.k:
            if options.sampling or options.tuned or options.people or options.unit or options.suppress:
                if options.sampling or options.tuned or options.unit or options.suppress:
                    print(f"\n{n_rows:,} rows, k = {k:,}")
                if options.sampling:
                    bench_sampling(table, k, results)
                if options.tuned:
                    bench_tuned(table, Policy.parse(POLICY).schema, TASKS, k, options.tuned, results)
                if options.unit:
                    bench_unit(table, k, options.unit, results)
                if options.suppress:
                    bench_suppress(table, k, options.suppress, results)
                if options.people:
                    bench_people(n_rows, k, options.people, results)
                continue
            is_feasible = n_rows <= 1_000_000  # scikit-learn needs minutes for more
            grown = bench_growth(table, k, references=is_feasible and not options.quick, results=results)
            if k == 10 and n_rows == min(1_000_000, max(options.rows)):
                bench_command(n_rows, grown, results)
    results |= {
        "commit": output_of("git", "rev-parse", "HEAD"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if options.json:
        with options.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
