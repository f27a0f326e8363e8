"""What a large table would cost on Spark: predicted from the jobs of a small one, checked on a larger one.

    python benchmarks/record_jobs.py --rows 1e7 --out jobs_10m.json
    python benchmarks/record_jobs.py --rows 5e7 --out jobs_50m.json
    python benchmarks/simulate_spark.py jobs_10m.json jobs_50m.json

Of every kind of job the first file gives CPU seconds per row (those of its tasks) and per task (all the rest: Spark,
plans and answers). Counting also costs by level, since rows go down a tree, and by the bytes of the states that are
shuffled and merged. Which jobs a run has follows from the engine's rules: parts that fit in a task's memory, nodes whose
counts fit in half of it, files, rows of a task. The prediction is compared with the second file, then 1,000 cores are
simulated: tasks start in order on the core that is free first, each takes what its kind takes times the spread that
was measured, and waits for its bytes.

Not measured, so assumed: bytes per second of a core (--bandwidth), seconds in which the driver starts a task
(--launch), nodes that halve at each level, and counts as wide as those of the small table.
"""

from __future__ import annotations

import argparse
import heapq
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bench_spark import MEMORY, policy_for
from numpy.typing import NDArray

from sfumato.engines.engine import Resources
from sfumato.engines.memory_plan import MemoryPlan, plan_memory
from sfumato.engines.spark.jobs import LEAST_ROWS, TASK_ROWS
from sfumato.policy.document import Policy
from sfumato.table.spill import SharedSpill

KINDS = {"reading": 18, "encoding": 18 + 41, "counting": 37, "dividing": 2 * 41, "splitting": 41 + 10}
"""Bytes per row that a task of each kind reads and writes: Parquet, or nine codes, the class and what is around them."""

PAYLOAD_BYTES = 5
"""Bytes of the class, which is published as it is."""

DRAWS = 3
"""Times that a job is simulated; many of a run are alike."""


@dataclass
class Costs:
    """CPU seconds, as they were measured."""

    per_row: dict[str, float]
    per_task: dict[str, float]
    per_level: float
    """Of counting, for each row and level below the first."""
    per_merge: float
    per_state_byte: float
    merging_share: float
    """Part of what states cost that is spent by the tasks that merge them."""
    per_job: float
    job_wall: float
    release_per_row: float
    node_bytes: float
    shuffled_share: float
    """Bytes that are shuffled for each byte of a state: they are packed on the way."""
    spread: NDArray[np.float64]
    """Seconds of a task over the mean of its job."""


@dataclass
class Planned:
    """Jobs that are alike: so many of them, each with so many rows, tasks and nodes."""

    kind: str
    n: int
    rows: float
    tasks: int
    nodes: int = 0
    mergers: int = 0
    level: int = 0


def fit(run: dict[str, Any]) -> Costs:
    """The costs of each kind of job, from one run."""
    jobs, empty = run["jobs"], run["empty"][1:]
    few = [each for each in empty if each[0] == 2]
    many = [each for each in empty if each[0] > 2]
    empty_task = (np.mean([cpu for _, cpu, _ in many]) - np.mean([cpu for _, cpu, _ in few])) / (
        many[0][0] - few[0][0]
    )
    per_job = max(float(np.mean([cpu for _, cpu, _ in few]) - 2 * empty_task), 0.0)
    per_row, per_task = {}, {}
    for job in jobs:
        if job["stage"] != "counting":
            per_row[job["stage"]] = sum(job["tasks"]) / sum(job["rows"])
            rest = job["cpu"] - sum(job["tasks"]) - per_job
            per_task[job["stage"]] = max(rest / len(job["tasks"]), float(empty_task))
    counting = [job for job in jobs if job["stage"] == "counting"]
    levels = np.arange(len(counting))
    per_level, first = np.polyfit(levels, [sum(job["tasks"]) / sum(job["rows"]) for job in counting], 1)
    per_row["counting"], per_task["counting"] = float(first), float(empty_task)
    sent = np.array([job["state_bytes"] * len(job["tasks"]) for job in counting])
    rest = [
        job["cpu"] - sum(job["tasks"]) - per_job - empty_task * (len(job["tasks"]) + min(job["n_plans"], 2))
        for job in counting
    ]
    per_byte, per_merge = np.polyfit(sent, rest, 1)
    merging = sum(stage["seconds"] for stage in run["stages"] if stage["read"])
    mapping = sum(stage["seconds"] for stage in run["stages"] if stage["written"])
    mapping -= sum(sum(job["tasks"]) for job in counting)  # without the rows
    return Costs(
        per_row,
        per_task,
        max(float(per_level), 0.0),
        max(float(per_merge), 0.0),
        max(float(per_byte), 0.0),
        merging / (merging + max(mapping, 0.0)),
        per_job,
        min(wall for _, _, wall in few),
        run["release"] / run["rows"],
        counting[-1]["state_bytes"] / counting[-1]["n_plans"],
        sum(stage["written"] for stage in run["stages"]) / float(np.sum(sent)),
        np.concatenate([np.array(job["tasks"]) / np.mean(job["tasks"]) for job in jobs]),
    )


def plan_run(rows: int, slots: int, memory: int, node_bytes: float) -> list[Planned]:
    """The jobs of a run of Rothko-T whose nodes halve at each level, by the rules of ``tree_run`` and ``Jobs``."""
    policy = Policy.of(policy_for("Median"))
    chosen = Resources(spill=SharedSpill(Path("/nowhere")), memory=memory)
    plan = plan_memory(chosen, policy, payload_bytes=PAYLOAD_BYTES)
    found = [Planned("reading", 1, rows, _count_tasks(rows, slots))]
    if rows > plan.max_rows:
        found.append(Planned("encoding", 1, rows, _count_tasks(rows, slots)))
    n_parts, own, level = 1, float(rows), 0
    while own > plan.max_rows:  # each of the parts in turn: levels of counting, then a division
        nodes = 1
        while own / nodes > plan.max_rows and (nodes == 1 or _fit_one_pass(plan, nodes, node_bytes)):
            n_tasks, mergers = _count_tasks(own, slots), min(nodes, slots)
            found.append(Planned("counting", n_parts, own, n_tasks, nodes, mergers, level))
            nodes, level = 2 * nodes, level + 1
        found.append(Planned("dividing", n_parts, own, _count_tasks(own, slots)))
        n_parts, own = n_parts * nodes, own / nodes
    return [*found, Planned("splitting", 1, rows, n_parts)]


def _count_tasks(rows: float, slots: int) -> int:
    """As ``Jobs.count_tasks`` does."""
    return int(max(-(-rows // TASK_ROWS), min(slots, rows // LEAST_ROWS), 1))


def _fit_one_pass(plan: MemoryPlan, nodes: int, node_bytes: float) -> bool:
    """As ``TreeRun._fit_one_pass`` does, where all leaves are large."""
    return 2 * nodes <= plan.max_files and nodes * node_bytes <= plan.count_bytes


def predict_cpu(job: Planned, costs: Costs) -> tuple[float, float]:
    """CPU seconds of one job: of its tasks, and of those that merge its states."""
    per_row = costs.per_row[job.kind] + costs.per_level * job.level
    tasks = job.rows * per_row + job.tasks * costs.per_task[job.kind] + costs.per_job
    if not job.nodes:
        return tasks, 0.0
    states = costs.per_state_byte * job.tasks * job.nodes * costs.node_bytes
    return (
        tasks + states * (1 - costs.merging_share),
        costs.per_merge + job.mergers * costs.per_task[job.kind] + states * costs.merging_share,
    )


def schedule(seconds: NDArray[np.float64], slots: int, launch: float) -> float:
    """When the last task ends: each is started by the driver, one after the other, on the core that is free first."""
    free = [0.0] * min(slots, len(seconds))
    for number, own in enumerate(seconds.tolist()):
        heapq.heapreplace(free, max(free[0], number * launch) + own)
    return max(free)


@dataclass
class Simulated:
    """Seconds of a run on many cores."""

    n_jobs: int = 0
    n_tasks: int = 0
    cpu: float = 0.0
    shuffled: float = 0.0
    wall: dict[str, float] = field(default_factory=dict)

    def add(self, what: str, seconds: float) -> None:
        self.wall[what] = self.wall.get(what, 0.0) + seconds


def simulate(rows: int, slots: int, memory: int, costs: Costs, options: argparse.Namespace) -> Simulated:
    random, told = np.random.default_rng(1), Simulated()
    bandwidth = options.bandwidth * 1e6
    for job in plan_run(rows, slots, memory, costs.node_bytes):
        cpu, merging = predict_cpu(job, costs)
        told.n_jobs, told.n_tasks = told.n_jobs + job.n, told.n_tasks + job.n * (job.tasks + job.mergers)
        told.cpu += job.n * (cpu + merging)
        shuffled = job.tasks * job.nodes * costs.node_bytes * costs.shuffled_share
        told.shuffled += job.n * shuffled
        each = cpu / job.tasks + (job.rows * KINDS[job.kind] + shuffled) / job.tasks / bandwidth
        runs = [
            schedule(each * random.choice(costs.spread, job.tasks), slots, options.launch)
            for _ in range(min(job.n, DRAWS))
        ]
        told.add(job.kind, job.n * float(np.mean(runs)))
        if job.nodes:
            n = job.mergers * options.mergers
            own = np.full(n, (merging + shuffled / bandwidth) / n)
            told.add("merging", job.n * schedule(own, slots, options.launch))
        told.add("starting jobs", job.n * costs.job_wall)
    told.cpu += rows * costs.release_per_row
    told.add("verifying on the driver", rows * costs.release_per_row)
    return told


def compare(costs: Costs, run: dict[str, Any], slots: int) -> None:
    """Predict a run that was measured, job by job."""
    planned = plan_run(run["rows"], slots, MEMORY, costs.node_bytes)
    print(f"\n{run['rows']:,} rows on {slots} cores, CPU seconds")
    for job, measured in zip(planned, run["jobs"], strict=True):
        assert (job.kind, job.tasks) == (measured["stage"], len(measured["tasks"])), (job, measured["stage"])
        print(
            f"  {job.kind:10} {job.tasks:3} tasks {job.nodes:3} nodes: predicted {sum(predict_cpu(job, costs)):6.1f}, "
            f"measured {measured['cpu']:6.1f}"
        )
    release = run["rows"] * costs.release_per_row
    print(f"  the rest{'':26} predicted {release:6.1f}, measured {run['release']:6.1f}")
    total = sum(sum(predict_cpu(job, costs)) for job in planned) + release
    print(
        f"  in all: predicted {total:.1f}, measured {run['cpu']:.1f} (prediction / measurement "
        f"{total / run['cpu']:.2f}, at most 20% off); wall {run['wall']:.1f} s"
    )


def show(rows: int, slots: int, memory: int, told: Simulated) -> None:
    total = sum(told.wall.values())
    print(
        f"\n{rows:,} rows on {slots:,} cores, --memory {memory / 1e9:g}GB: {told.n_jobs:,} jobs, "
        f"{told.n_tasks:,} tasks, {told.cpu / 3600:,.1f} CPU hours, {told.shuffled / 1e12:.2f} TB shuffled, "
        f"{total / 60:,.0f} minutes"
    )
    for what, seconds in told.wall.items():
        print(f"  {what:24} {seconds:10,.0f} s  {seconds / total:4.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("small", type=Path, help="the jobs of a run, to learn from")
    parser.add_argument("larger", type=Path, help="those of another one, to compare with")
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10_000_000_000)
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--memory", type=float, nargs="*", default=[0.512, 4, 16], help="GB of each task")
    parser.add_argument("--bandwidth", type=float, default=100, help="MB per second and core")
    parser.add_argument("--mergers", type=int, default=1, help="tasks that merge the states of one node")
    parser.add_argument("--launch", type=float, default=0.002, help="seconds of the driver for each task")
    options = parser.parse_args()
    small, larger = (json.loads(path.read_text(encoding="utf-8")) for path in (options.small, options.larger))
    costs = fit(small)
    print("CPU us per row: " + ", ".join(f"{kind} {each * 1e6:.3f}" for kind, each in costs.per_row.items()))
    print(f"  counting, per level further down: {costs.per_level * 1e6:.3f}")
    print("CPU s per task: " + ", ".join(f"{kind} {each:.2f}" for kind, each in costs.per_task.items()))
    print(
        f"CPU s per job {costs.per_job:.2f}, per merge {costs.per_merge:.2f}, per MB of states "
        f"{costs.per_state_byte * 1e6:.4f}, {costs.merging_share:.0%} of it by those that merge; "
        f"{costs.node_bytes / 1e6:.1f} MB per node"
    )
    compare(costs, larger, slots=2)
    for memory in options.memory:
        n_bytes = int(memory * 1e9)
        show(
            options.rows,
            options.slots,
            n_bytes,
            simulate(options.rows, options.slots, n_bytes, costs, options),
        )


if __name__ == "__main__":
    main()
