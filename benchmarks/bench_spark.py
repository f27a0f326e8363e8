"""The same policy in memory, on disk and on Spark, side by side on this machine; what is shuffled; the driver's memory.

    python benchmarks/bench_spark.py                                  # 2M and 10M rows, Median and InfoGain; 15 minutes
    python benchmarks/bench_spark.py --rows 1e6 --driver 1e5 1e6       # a few minutes

Agrawal's nine attributes as whole numbers, k = 1000, the papers' criteria (``variant: paper``), --memory 512MB: on
disk for the run, on Spark for each task. Spark runs as ``local[2]``; its start-up is shown apart, and every run is
made once before the clock starts, so that workers have loaded their kernels. Wall seconds, since both cores are used:
read ratios, not times. Boxes are compared by a hash over all published boxes and how many rows each has. The *plain
job* is Spark's own: it reads the table and writes it again. Shuffled bytes are those of Spark's event log, job by job;
with two sizes of the table one sees that they grow with nodes and codes, not with rows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from bench_rothko import policy_of, table_of

from sfumato.examples.agrawal import QUASI_IDENTIFIERS

MEMORY = 512_000_000
WORKLOADS = {"Median": "", "InfoGain": "class"}


def policy_for(criterion: str) -> dict[str, Any]:
    document = json.loads(policy_of(1000, "rothko-t"))
    if WORKLOADS[criterion]:
        document["workload"] = [{"classify": WORKLOADS[criterion]}]
    return document


def start_spark(events: Path) -> tuple[Any, float]:
    from sfumato.engines.spark.session import start_session

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.log.level": "ERROR",
    }
    said = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master local[2] --driver-memory 2g {said} pyspark-shell"
    start = time.perf_counter()
    session = start_session()
    return session, time.perf_counter() - start


def publish(engine: str, table: Path, policy: dict[str, Any], out: Path) -> float:
    """Wall seconds of a release."""
    from sfumato.policy.document import Policy
    from sfumato.publishing import Request, publish_to

    shutil.rmtree(out, ignore_errors=True)
    memory = None if engine == "memory" else MEMORY
    start = time.perf_counter()
    publish_to(out, table, Policy.of(policy), Request(engine=engine, memory=memory, seed=1, threads=2))
    return time.perf_counter() - start


def hash_boxes(out: Path) -> str:
    """Of all boxes and their numbers of rows, in order."""
    rows = out / "release.parquet"
    names = ", ".join(QUASI_IDENTIFIERS)
    where = f"{rows}/*.parquet" if rows.is_dir() else str(rows)
    found = duckdb.sql(f"select {names}, count(*) from '{where}' group by all order by all").fetchall()
    return f"{len(found):,} boxes {hashlib.sha256(repr(found).encode()).hexdigest()[:12]}"


def shuffled(events: Path) -> list[tuple[int, int, int]]:
    """Job by job: its number, its tasks, and the bytes that they shuffled."""
    job_of_stage: dict[int, int] = {}
    n_bytes: dict[int, int] = {}
    n_tasks: dict[int, int] = {}
    for path in sorted(events.rglob("events_*")) or sorted(
        path for path in events.iterdir() if path.is_file()
    ):
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                job_of_stage.update(dict.fromkeys(event["Stage IDs"], event["Job ID"]))
            elif event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                job = job_of_stage[event["Stage ID"]]
                written = event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                n_bytes[job] = n_bytes.get(job, 0) + written
                n_tasks[job] = n_tasks.get(job, 0) + 1
    return [(job, n_tasks[job], n_bytes[job]) for job in sorted(n_tasks)]


def peak_of_driver() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


def compare(rows: int, folder: Path, work: Path) -> None:
    """Memory, disk and Spark on the same rows."""
    table, events = table_of(rows, folder), work / "events"
    events.mkdir(parents=True)
    session, start_up = start_spark(events)
    print(f"\n{rows:,} rows; Spark started in {start_up:.1f} s, which is not counted below")
    start = time.perf_counter()
    session.read.parquet(str(table)).write.mode("overwrite").parquet(str(work / "copy"))
    cold = time.perf_counter() - start
    start = time.perf_counter()
    session.read.parquet(str(table)).write.mode("overwrite").parquet(str(work / "copy"))
    plain = time.perf_counter() - start
    print(f"  plain job, first and second time: {cold:.1f}, {plain:.1f} s")
    for criterion in WORKLOADS:
        policy, n_before = policy_for(criterion), len(shuffled(events))
        seconds, boxes = {}, {}
        for engine in ("spark", "spark", "disk", "memory"):
            seconds[engine] = publish(engine, table, policy, work / "out")
            boxes[engine] = hash_boxes(work / "out")
        figures = json.loads((work / "out" / "certificate.json").read_text(encoding="utf-8"))["figures"]
        assert "splits" in figures
        print(f"  {criterion}: " + "; ".join(f"{engine} {took:.1f} s" for engine, took in seconds.items()))
        print(
            f"    Spark / disk {seconds['spark'] / seconds['disk']:.2f} (at most 3), "
            f"/ memory {seconds['spark'] / seconds['memory']:.2f}, / plain job {seconds['spark'] / plain:.2f}"
        )
        same = "the same everywhere" if len(set(boxes.values())) == 1 else f"NOT THE SAME: {boxes}"
        print(f"    {boxes['spark']}, {same}")
        jobs = shuffled(events)[n_before:]
        half = jobs[len(jobs) // 2 :]
        print(f"    {len(half)} jobs of the second run; bytes shuffled by those that shuffle:")
        print("    " + ", ".join(f"{n_bytes:,}" for _, _, n_bytes in half if n_bytes > 1 << 16))
    session.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=lambda text: int(float(text)), nargs="*", default=[2_000_000, 10_000_000]
    )
    parser.add_argument(
        "--driver",
        type=lambda text: int(float(text)),
        nargs="*",
        default=[1_000_000, 50_000_000],
        help="rows at which the driver's memory is looked at, each in a process of its own",
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sfumato-bench-spark")
    parser.add_argument("--alone", type=lambda text: int(float(text)), help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        if options.alone:
            (work / "events").mkdir()
            session, _ = start_spark(work / "events")
            before = peak_of_driver()
            publish("spark", table_of(options.alone, options.folder), policy_for("Median"), work / "out")
            print(
                f"{options.alone:,} rows: the driver took {peak_of_driver() / 1e6:.0f} MB at most, "
                f"of these {before / 1e6:.0f} before the run",
                flush=True,
            )
            session.stop()
            return
        for rows in options.rows:
            compare(rows, options.folder, work / str(rows))
    print()
    for rows in options.driver:
        os.spawnl(
            os.P_WAIT, sys.executable, sys.executable, "-W", "ignore", __file__, "--alone", str(rows),
            "--folder", str(options.folder),
        )  # fmt: skip


if __name__ == "__main__":
    main()
