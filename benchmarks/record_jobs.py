"""What each job of a run on Spark took: CPU seconds of its tasks and of all processes, rows, states, memory.

    python benchmarks/record_jobs.py --rows 1e7 --out jobs_10m.json      # 5 minutes, on a machine that others use as well

Agrawal's nine attributes as whole numbers, k = 1000, Median as published (``variant: paper``), --memory 512MB,
``local[2]``. Five million rows are published first, so that workers have loaded the kernels of every kind of job, then
the rows asked for; then jobs of tasks that do nothing are timed. CPU time is that of the driver, its JVM and the
workers; a task's is that of its own process. Nothing of the program is changed: jobs are watched from outside, and
each task's work is wrapped in one that looks at the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
EMPTY = (2, 2, 100, 2, 100)
"""Tasks of the jobs that do nothing; the first one is for warming up."""


@dataclass
class Job:
    """One job: what it does, CPU seconds of all processes, of each task the rows and its own CPU seconds."""

    stage: str
    work: str
    wall: float
    cpu: float
    rows: list[int]
    tasks: list[float]
    n_plans: int = 0
    state_bytes: int = 0
    """Bytes of the states that one task gathers, at most."""
    driver_peak: int = 0


@dataclass
class Stage:
    """What Spark says of a stage: wall seconds of its tasks, and bytes that they shuffled."""

    n_tasks: int = 0
    seconds: float = 0.0
    written: int = 0
    read: int = 0


@dataclass
class Run:
    """One run: its jobs, and what was done besides."""

    rows: int
    wall: float = 0.0
    cpu: float = 0.0
    start_up: float = 0.0
    release: float = 0.0
    """CPU seconds after the last job: the rows are verified, and the folder is completed."""
    release_wall: float = 0.0
    stages: list[Stage] = field(default_factory=list)
    driver_before: int = 0
    driver_peak: int = 0
    jobs: list[Job] = field(default_factory=list)
    empty: list[tuple[int, float, float]] = field(default_factory=list)
    """Tasks, CPU and wall seconds of jobs that do nothing."""


class Timed:
    """The work of a task, which also notes the CPU seconds that it took."""

    def __init__(self, work: Any, notes: Path) -> None:
        self.work, self.notes = work, notes

    @property
    def plans(self) -> Any:
        return self.work.plans

    def __call__(self, argument: Any) -> Iterator[tuple[int, Any]]:
        start = time.process_time()
        yield from self.work(argument)
        with self.notes.open("a", encoding="ascii") as file:
            file.write(f"{count_rows(argument)} {time.process_time() - start:.6f}\n")


class Nothing:
    """A task that does nothing."""

    def __call__(self, _argument: object) -> Iterator[tuple[int, Any]]:
        yield 0, None


def count_rows(argument: Any) -> int:
    """The rows that a task is given."""
    first = argument[0] if isinstance(argument, tuple) else argument
    return int(getattr(getattr(first, "source", first), "n_rows", 0))


def cpu_of_all() -> float:
    """CPU seconds of this process and all that it has started, those that have ended with them."""
    from watch import _family

    ticks = 0
    for pid in _family(os.getpid()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


def driver_peak() -> int:
    from watch import _high_water

    return _high_water(os.getpid())


def forget_peak() -> None:
    """Let the peak start anew from what the driver holds now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


class Recorder:
    """Watches the jobs of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs: list[Job] = []
        self.last = 0.0, 0.0
        self._n = 0

    def install(self) -> None:
        from sfumato.engines.spark.jobs import Jobs

        for name in ("do", "gather"):
            setattr(Jobs, name, self._watching(getattr(Jobs, name)))

    def _watching(self, run: Any) -> Any:
        from sfumato.engines.spark.tasks import TouchFolder

        def watched(jobs: Any, work: Any, arguments: Any, *, stage: str = "", **options: Any) -> Any:
            if isinstance(work, TouchFolder):  # the probe has no rows
                return run(jobs, work, arguments, stage=stage, **options)
            self._n += 1
            notes = self.folder / f"tasks-{self._n}"
            start, before = time.perf_counter(), cpu_of_all()
            found = run(jobs, Timed(work, notes), arguments, stage=stage, **options)
            after, end = cpu_of_all(), time.perf_counter()
            told = [line.split() for line in notes.read_text(encoding="ascii").splitlines()]
            plans = getattr(work, "plans", None) or getattr(getattr(work, "also", None), "plans", ())
            job = Job(
                stage or type(work).__name__,
                type(work).__name__,
                end - start,
                after - before,
                [int(rows) for rows, _ in told],
                [float(cpu) for _, cpu in told],
                len(plans),
                sum(getattr(plan, "n_bytes", 0) for plan in plans),
                driver_peak(),
            )
            self.jobs.append(job)
            self.last = after, end
            n_rows, in_tasks = sum(job.rows), sum(job.tasks)
            print(
                f"  {job.stage}: {len(job.tasks)} tasks, {n_rows:,} rows, {job.n_plans} plans of "
                f"{job.state_bytes / 1e6:.1f} MB; wall {job.wall:.2f} s, CPU {job.cpu:.2f} s, of which tasks "
                f"{in_tasks:.2f}; driver at most {job.driver_peak / 1e6:.0f} MB",
                flush=True,
            )
            return found

        return watched


def list_stages(events: Path) -> list[Stage]:
    """The stages so far, as Spark's event log has them."""
    found: dict[int, Stage] = {}
    for path in sorted(path for path in events.rglob("*") if path.is_file() and "appstatus" not in path.name):
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd" and (told := event.get("Task Metrics")):
                stage = found.setdefault(event["Stage ID"], Stage())
                stage.n_tasks += 1
                stage.seconds += told["Executor Run Time"] / 1000
                stage.written += told["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                reads = told["Shuffle Read Metrics"]
                stage.read += reads["Local Bytes Read"] + reads["Remote Bytes Read"]
    return [found[number] for number in sorted(found)]


def record(rows: int, folder: Path, *, warm_up: int) -> Run:
    from bench_rothko import table_of
    from bench_spark import policy_for, publish, start_spark

    from sfumato.engines.spark.jobs import Jobs

    with tempfile.TemporaryDirectory(dir=folder) as name:
        work = Path(name)
        (work / "events").mkdir()
        table = table_of(rows, folder / "tables")
        session, _ = start_spark(work / "events")
        if warm_up:
            publish("spark", table_of(warm_up, folder / "tables"), policy_for("Median"), work / "out")
        forget_peak()
        run = Run(rows, start_up=cpu_of_all(), driver_before=driver_peak())
        recorder = Recorder(work)
        n_before = len(list_stages(work / "events"))
        plain = Jobs.do, Jobs.gather
        recorder.install()
        before = cpu_of_all()
        run.wall = publish("spark", table, policy_for("Median"), work / "out")
        end, cpu = time.perf_counter(), cpu_of_all()
        run.cpu, run.release, run.release_wall = cpu - before, cpu - recorder.last[0], end - recorder.last[1]
        run.driver_peak, run.jobs = driver_peak(), recorder.jobs
        Jobs.do, Jobs.gather = plain  # type: ignore[method-assign]
        run.stages = list_stages(work / "events")[n_before:]
        with Jobs(session, work) as jobs:
            for n_tasks in EMPTY:
                before, start = cpu_of_all(), time.perf_counter()
                jobs.do(Nothing(), list(range(n_tasks)))
                run.empty.append((n_tasks, cpu_of_all() - before, time.perf_counter() - start))
        session.stop()
    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10_000_000)
    parser.add_argument("--warm-up", type=lambda text: int(float(text)), default=5_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sfumato-jobs")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    run = record(options.rows, options.folder, warm_up=options.warm_up)
    options.out.write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")
    shuffled = sum(stage.written for stage in run.stages)
    print(
        f"{run.rows:,} rows: {len(run.jobs)} jobs, wall {run.wall:.1f} s, CPU {run.cpu:.1f} s, of which "
        f"{run.release:.1f} after the last job ({run.release_wall:.1f} s wall); {shuffled / 1e6:.1f} MB shuffled; "
        f"driver at most {run.driver_peak / 1e6:.0f} MB, {run.driver_before / 1e6:.0f} before the run"
    )
    print(f"jobs of tasks that do nothing: {run.empty}")


if __name__ == "__main__":
    # workers find these classes by their module's name, not as those of a script
    here = str(Path(__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.path.insert(0, here)
    from record_jobs import main as run_main

    run_main()
