"""Where the CPU seconds and the memory of ``sfumato publish`` go: start-up, growth and the rest.

    python benchmarks/bench_publish.py                              # 10k, 100k and 1M rows, a few minutes
    python benchmarks/bench_publish.py --against ../other/src       # two versions by turns: read the ratios
    python benchmarks/bench_publish.py --rows 1e6 --median          # no class: splits at the median, growth is short

The rows and the policy are those of ``bench_mondrian.py``: the papers' criteria, Parquet, nine quasi-identifiers, k =
10, one thread. CPU seconds, the median of ``--times`` runs. A *command* is a process of its own, kernels compiled and
bytecode written before, as it is from the second run on after an install; its start-up is the same command on 100
rows. A *warm* process has published a table before. Growth is that of the warm process; stages are those that a
progress bar shows. Peak memory is above that of start-up, in encoded tables (4 bytes for each row and column that
growth looks at).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from watch import Watched, sfumato, watch

if TYPE_CHECKING:
    from collections.abc import Iterator

GROWTH = "splitting"
"""The stage in which the tree grows."""

N_ENCODED = 9 + 2
"""Columns that growth looks at: quasi-identifiers, class and row number."""


# ---- one warm process, in which a version is asked again and again ---------------------------------------------------


class Stages:
    """CPU seconds by stage; a function that a run tells how far it is."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stage, self._since = "opening", time.process_time()

    def __call__(self, stage: str, _done: int = 0, _total: int = 1) -> None:
        now = time.process_time()
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now


def answer_requests(policy: Path) -> None:
    """Publish the table of each line that is read, and print the CPU seconds of its stages."""
    from sfumato.publishing import Request, publish_to

    for line in sys.stdin:
        table, out = json.loads(line)
        shutil.rmtree(out, ignore_errors=True)
        stages = Stages()
        publish_to(out, table, policy, Request(threads=1, progress=stages))
        stages("done")
        print(json.dumps(stages.seconds), flush=True)


def as_published(policy: str, sources: Path) -> str:
    """The policy as this version reads it: before there were variants, Mondrian was as published."""
    options = sources / "sfumato" / "policy" / "options" / "mondrian.py"
    has_variants = options.exists() and "variant" in options.read_text(encoding="utf-8")
    return policy if has_variants else policy.replace("{mondrian: {variant: paper}}", "mondrian")


class Version:
    """The sources below one folder: their commands, and one process that stays warm."""

    def __init__(self, sources: Path, policy: str, folder: Path) -> None:
        self.sources = sources
        self.out = folder / f"out-{len(list(folder.glob('out-*')))}"
        self.out.mkdir()
        self.policy = self.out / "policy.yaml"
        self.policy.write_text(as_published(policy, sources), encoding="utf-8")
        self.environment = {
            "PYTHONPATH": str(sources),
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.out / "bytecode"),
        }
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--answer", str(self.policy)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | self.environment,
        )

    def publish_warm(self, table: Path) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(table), str(self.out / "warm")]) + "\n")
        self._process.stdin.flush()
        found: dict[str, float] = json.loads(self._process.stdout.readline())
        return found

    def run(self, *arguments: object) -> Watched:
        run = watch(sfumato(*arguments), environment=self.environment)
        if run.code:
            raise SystemExit(f"{arguments}: {run.err}")
        return run

    def publish(self, table: Path) -> Watched:
        out = self.out / "command"
        shutil.rmtree(out, ignore_errors=True)
        return self.run("publish", table, "--policy", self.policy, "--out", out, "--quiet", "--threads", 1)

    def verify(self) -> Watched:
        return self.run("verify", self.out / "command")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def versions_of(sources: list[Path], policy: str, folder: Path) -> Iterator[list[Version]]:
    versions = [Version(each, policy, folder) for each in sources]
    try:
        yield versions
    finally:
        for version in versions:
            version.close()


# ---- figures ---------------------------------------------------------------------------------------------------------


def measure(
    versions: list[Version], table: Path, tiny: Path, *, n_rows: int, times: int
) -> list[dict[str, Any]]:
    """CPU seconds and peak memory of each version, which take turns."""
    found: list[dict[str, list[Any]]] = [
        {"start": [], "command": [], "verify": [], "warm": []} for _ in versions
    ]
    for turn in range(times):
        pairs = list(zip(versions, found, strict=True))
        for version, runs in pairs if turn % 2 == 0 else reversed(pairs):
            runs["start"].append(version.publish(tiny))
            runs["command"].append(version.publish(table))
            runs["verify"].append(version.verify())
            runs["warm"].append(version.publish_warm(table))
    return [summarize(runs, n_rows) for runs in found]


def summarize(runs: dict[str, list[Any]], n_rows: int) -> dict[str, Any]:
    start, command, verify = (
        statistics.median(run.cpu for run in runs[word]) for word in ("start", "command", "verify")
    )
    stages = {stage: statistics.median(run[stage] for run in runs["warm"]) for stage in runs["warm"][0]}
    warm, growth = statistics.median(sum(run.values()) for run in runs["warm"]), stages[GROWTH]
    start_peak, peak = (statistics.median(run.peak for run in runs[word]) for word in ("start", "command"))
    return {
        "rows": n_rows,
        "start-up": start,
        "growth": growth,
        "rest": command - start - growth,
        "command": command,
        "command / growth": command / growth,
        "warm": warm,
        "warm / growth": warm / growth,
        "verify": verify,
        "peak MB": peak / 1e6,
        "peak above start-up, encoded tables": (peak - start_peak) / (4 * N_ENCODED * n_rows),
        **{f"warm: {stage}": seconds for stage, seconds in stages.items()},
    }


def show(results: list[dict[str, Any]]) -> None:
    print(f"\n{results[0]['rows']:,} rows")
    for word in results[0]:
        if word == "rows":
            continue
        figures = [result.get(word, 0.0) for result in results]
        ratios = "".join(f"{figures[0] / one if one else 0:10.2f}" for one in figures[1:])
        print(f"  {word:<38}" + "".join(f"{one:10.2f}" for one in figures) + ratios, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = [10_000, 100_000, 1_000_000]
    parser.add_argument("--rows", nargs="+", type=lambda text: int(float(text)), default=sizes)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--median", action="store_true", help="publish for no task")
    parser.add_argument("--against", type=Path, help="the src folder of another version")
    parser.add_argument("--json", type=Path, help="append one line of results to this file")
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer_requests(options.answer)
        return
    import pyarrow.parquet as pq
    from bench_mondrian import POLICY, table_of

    own = Path(__file__).parents[1] / "src"
    sources = [own.resolve(), *([options.against.resolve()] if options.against else [])]
    print(
        "CPU seconds"
        + (f"; {sources[0]}, {sources[1]}, and the first by the second" if options.against else "")
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny = folder / "tiny.parquet"
        policy = POLICY.replace("workload: [classify: class]\n", "") if options.median else POLICY
        pq.write_table(table_of(100), tiny)
        results = []
        with versions_of(sources, policy, folder) as versions:
            for version in versions:  # compile, and write bytecode
                version.publish(tiny)
                version.verify()
                version.publish_warm(tiny)
            for n_rows in options.rows:
                table = folder / f"{n_rows}.parquet"
                pq.write_table(table_of(n_rows), table)
                found = measure(versions, table, tiny, n_rows=n_rows, times=options.times)
                show(found)
                results.append(found)
    if options.json:
        commit = subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        with options.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"commit": commit, "machine": machine, "results": results}) + "\n")


if __name__ == "__main__":
    main()
