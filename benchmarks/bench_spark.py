"""The same policy in memory, on disk and on Spark, side by side on this machine; what is shuffled; the driver's memory.

    python benchmarks/bench_spark.py                                  # 2M and 10M rows, Median and InfoGain; 15 minutes
    python benchmarks/bench_spark.py --rows 1e6 --driver 1e5 1e6       # a few minutes
    python benchmarks/bench_spark.py --part promises --rows 1e7        # unit and suppress, in memory and on Spark

Agrawal's nine attributes as whole numbers, k = 1000, the papers' criteria (``variant: paper``), --memory 512MB: on
disk for the run, on Spark for each task. Spark runs as ``local[2]``; its start-up is shown apart, and every run is
made once before the clock starts, so that workers have loaded their kernels. Wall seconds, since both cores are used:
read ratios, not times. Boxes are compared by a hash over all published boxes and how many rows each has. The *plain
job* is Spark's own: it reads the table and writes it again. Shuffled bytes are those of Spark's event log, job by job;
with two sizes of the table one sees that they grow with nodes and codes, not with rows.

The part "promises" compares boxes in memory and on Spark where groups count people (``unit``) and where rows may be left
out (``suppress``), by loss, and prints what is shuffled level by level. Beside Agrawal's numbers its table has towns,
of which few are large, people with ten rows each on average, who have up to a hundred, and one of twenty diagnoses.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_rothko import policy_of, table_of
from numpy.typing import NDArray

from sfumato.examples.agrawal import QUASI_IDENTIFIERS

MEMORY = 512_000_000
WORKLOADS = {"Median": "", "InfoGain": "class"}

PARTS = ("engines", "promises")
TOWN, PERSON, DIAGNOSIS = "town", "person", "diagnosis"
ROWS_PER_PERSON, N_TOWNS, N_DIAGNOSES = 10, 3000, 20
YOUNG, ALIKE = 30, 0.9
"""Nine in ten rows below that age have the same diagnosis."""


class Promise(NamedTuple):
    """What the policy says beside 1000-anonymity, and how splits are chosen."""

    policy: dict[str, Any]
    require: list[dict[str, Any]]
    mondrian: dict[str, Any]
    begins_with_town: bool = False
    """Among columns that are equally wide, Median takes the first; and rows are left out along hierarchies alone."""


BY_LOSS = {"refine": "none"}
DIVERSE = {"entropy-diversity": {"l": 14, "of": DIAGNOSIS}}
PROMISES = {
    "unit": Promise({"unit": PERSON}, [], BY_LOSS),
    "diverse unit": Promise({"unit": PERSON}, [DIVERSE], BY_LOSS),
    "suppress": Promise({"suppress": {"at-most": "5%"}}, [], {"criterion": "median"}, begins_with_town=True),
}
PEOPLE_MEMORY = 1_500_000_000
"""For a million people: their names are held for as long as rows are encoded."""

TOLD = {"ChoosePlan": "counts", "StandingPlan": "people of children", "FirstPlan": "people of candidates",
        "PeoplePlan": "people of groups"}  # fmt: skip
"""What a pass over the rows gathers."""


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


def publish(
    engine: str, table: Path, policy: dict[str, Any], out: Path, memory: int | None = MEMORY
) -> float:
    """Wall seconds of a release."""
    from sfumato.policy.document import Policy
    from sfumato.publishing import Request, publish_to

    shutil.rmtree(out, ignore_errors=True)
    start = time.perf_counter()
    memory = None if engine == "memory" else memory
    publish_to(out, table, Policy.of(policy), Request(engine=engine, memory=memory, seed=1, threads=2))
    return time.perf_counter() - start


def hash_boxes(out: Path, columns: Sequence[str] = QUASI_IDENTIFIERS) -> str:
    """Of all boxes and their numbers of rows, in order."""
    rows = out / "release.parquet"
    names = ", ".join(columns)
    where = f"{rows}/*.parquet" if rows.is_dir() else str(rows)
    found = duckdb.sql(f"select {names}, count(*) from '{where}' group by all order by all").fetchall()
    return f"{len(found):,} boxes {hashlib.sha256(repr(found).encode()).hexdigest()[:12]}"


class Job(NamedTuple):
    """A job as Spark's event log has it."""

    number: int
    told: str
    n_tasks: int
    n_bytes: int
    """Which its tasks shuffled."""


def shuffled(events: Path) -> list[Job]:
    """All jobs so far."""
    job_of_stage: dict[int, int] = {}
    told: dict[int, str] = {}
    n_bytes: dict[int, int] = {}
    n_tasks: dict[int, int] = {}
    for path in sorted(events.rglob("events_*")) or sorted(
        path for path in events.iterdir() if path.is_file()
    ):
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                job_of_stage.update(dict.fromkeys(event["Stage IDs"], event["Job ID"]))
                told[event["Job ID"]] = event["Properties"].get("spark.job.description", "")
            elif event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                job = job_of_stage[event["Stage ID"]]
                written = event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                n_bytes[job] = n_bytes.get(job, 0) + written
                n_tasks[job] = n_tasks.get(job, 0) + 1
    return [Job(job, told.get(job, ""), n_tasks[job], n_bytes[job]) for job in sorted(n_tasks)]


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
        print("    " + ", ".join(f"{job.n_bytes:,}" for job in half if job.n_bytes > 1 << 16))
    session.stop()


# ---- unit and suppress -----------------------------------------------------------------------------


def table_of_people(rows: int, folder: Path) -> Path:
    """Agrawal's table with towns, people and diagnoses; kept from one run to the next."""
    plain = table_of(rows, folder)
    path = plain.with_name(f"people_{plain.name}")
    if path.exists():
        return path
    chance, n_people = np.random.default_rng(7), max(rows // ROWS_PER_PERSON, 1)
    share = 1 / np.arange(1, N_TOWNS + 1) ** 2
    fresh = path.with_suffix(".new")
    with pq.ParquetFile(plain) as source, fresh.open("wb") as file:
        writer = None
        for batch in source.iter_batches(1 << 18):
            n = len(batch)
            is_same = (batch["age"].to_numpy() < YOUNG) & (chance.random(n) < ALIKE)
            more = {
                TOWN: _words("t", chance.choice(N_TOWNS, n, p=share / share.sum()), N_TOWNS),
                PERSON: pa.array((n_people * chance.random(n) ** 1.3).astype(np.int32)),
                DIAGNOSIS: _words("d", np.where(is_same, 0, chance.integers(0, N_DIAGNOSES, n)), N_DIAGNOSES),
            }
            table = pa.Table.from_batches([batch])
            for name, cells in more.items():
                table = table.append_column(name, cells)
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
    fresh.rename(path)
    return path


def _words(letter: str, number: NDArray[np.int64], n: int) -> pa.DictionaryArray:
    words = pa.array([f"{letter}{each:04}" for each in range(n)])
    return pa.DictionaryArray.from_arrays(pa.array(number.astype(np.int32)), words)


def policy_of_promise(name: str, **options: Any) -> dict[str, Any]:
    own, document = PROMISES[name], json.loads(policy_of(1000, None))
    more = {name: {"role": role} for name, role in ((PERSON, "identifier"), (DIAGNOSIS, "sensitive"))}
    town, numbers = {TOWN: {"role": "quasi-identifier"}}, document["attributes"]
    quasi = {**town, **numbers} if own.begins_with_town else {**numbers, **town}
    return {
        "attributes": {**quasi, **more},
        "require": [*document["require"], *own.require],
        "method": {"mondrian": {**own.mondrian, **options}},
        **own.policy,
    }


def name_jobs() -> None:
    """Let each job of Spark say which level it is of, what it gathers, and of how many nodes."""
    from sfumato.engines.spark.engine import SparkEngine
    from sfumato.engines.spark.jobs import Jobs

    gather, tag = SparkEngine.gather, Jobs._tag  # noqa: SLF001 - where each job gets its tag
    said, levels = [""], [0]

    def gather_and_say(engine: Any, rows: Any, asked: Any, *, stage: str = "") -> Any:
        kind = type(asked.plans[0]).__name__
        levels[0] += kind == "ChoosePlan"
        said[0] = f"pass {levels[0]}|{TOLD.get(kind, kind)}|{len(asked.plans)}"
        try:
            return gather(engine, rows, asked, stage=stage)
        finally:
            said[0] = ""

    def tag_and_say(jobs: Any) -> None:
        tag(jobs)
        jobs.context.setJobDescription(said[0] or None)

    SparkEngine.gather, Jobs._tag = gather_and_say, tag_and_say  # type: ignore[method-assign]  # noqa: SLF001


def compare_promises(rows: int, folder: Path, work: Path, names: Sequence[str]) -> None:
    """The same boxes in memory and on Spark, and what is shuffled for each level of the tree."""
    table, events = table_of_people(rows, folder), work / "events"
    events.mkdir(parents=True)
    session, _ = start_spark(events)
    columns = [*QUASI_IDENTIFIERS, TOWN]
    for name in names:
        n_before = len(shuffled(events))
        policy = policy_of_promise(name, **{"rows-in-memory": rows // 8})
        took = publish("spark", table, policy, work / "out", PEOPLE_MEMORY)
        claims = json.loads((work / "out" / "certificate.json").read_text(encoding="utf-8"))["claims"]
        boxes = hash_boxes(work / "out", columns)
        jobs = shuffled(events)[n_before:]
        print(f"\n{rows:,} rows, {name}: {len(jobs)} jobs, Spark {took:.1f} s; {boxes}", flush=True)
        told = f"{claims['rows']:,} rows published, {claims.get('suppressed') or 0:,} left out"
        print(f"  {told}, {claims.get('people') or 'no'} people claimed")
        levels: dict[str, dict[str, list[Job]]] = {}
        for job in jobs:
            level, kind, n_nodes = [*job.told.split("|"), "", ""][:3]
            if level.startswith("pass"):
                levels.setdefault(level, {}).setdefault(f"{kind} of {n_nodes} nodes", []).append(job)
        for level, by_kind in levels.items():
            each = (f"{kind} {sum(job.n_bytes for job in own):,}" for kind, own in by_kind.items())
            print(f"  {level}, bytes shuffled: " + "; ".join(each))
        others = sum(job.n_bytes for job in jobs if not job.told)
        print(f"  everything else: {others:,}", flush=True)
        took = publish("memory", table, policy_of_promise(name), work / "out")
        here = hash_boxes(work / "out", columns)
        print(
            f"  memory {took:.1f} s; {'the same boxes' if here == boxes else f'NOT THE SAME: {here}'}",
            flush=True,
        )
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
    parser.add_argument("--part", choices=PARTS, default="engines")
    parser.add_argument("--promise", choices=PROMISES, nargs="*", default=[*PROMISES])
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
        if options.part == "promises":
            name_jobs()
            for rows in options.rows:
                compare_promises(rows, options.folder, work / str(rows), options.promise)
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
