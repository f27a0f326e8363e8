"""Tables larger than memory, in one run: Rothko-T and Rothko-S beside the I/O floor, and what happens when things break.

    python benchmarks/bench_rothko.py                                # 50M rows; about half an hour
    python benchmarks/bench_rothko.py --rows 5e6 --scale 1e6 5e6 --kills 5      # a few minutes
    python benchmarks/bench_rothko.py --part kill,faults

Agrawal's nine attributes as whole numbers, class C2, k = 1000, Median as published (``variant: paper``). The part
"wide" adds a column whose values are all different, 10M rows at most, for Median and for InfoGain. Every command runs
in a process of its own, one thread, its memory looked at from outside (VmHWM), its input not in the page cache. The
floor reads the Parquet input once and writes once, row group by row group, with pyarrow; two floors are shown, since
both are called so: writing the rows that were read (as the prototypes of DESIGN did, and the targets are meant), and
writing the release. Reads and writes are of the encoded table, as the certificate counts them. Tables are kept in
--folder, which is outside the repository; nothing is written into it.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import platform
import random
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import io_model
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import watch as watching
from watch import Watched, forget, sfumato

from sfumato.cli.options import parse_size
from sfumato.examples.agrawal import QUASI_IDENTIFIERS, write_agrawal

PARTS = ("floor", "memory", "s", "t", "scale", "wide", "kill", "faults")
ROTHKO = {"s": "rothko-s", "t": "rothko-t"}
ALLOWANCE = 300_000_000
"""Bytes on top of the budget: the interpreter and its libraries."""

GROUP_BYTES = 2_045_000 * 8
"""One frequency group of this table under Median: its distinct values, a count of eight bytes for each."""

ROW_BYTES = 256
"""Of a row that is grown in memory, its order and its copies included: 512 MB hold the paper's two million."""

FRAMES = 1.02
"""What the format of files may add to the rows in them, which are counted without."""

COPIES = 8
"""Encoded tables that must be free before the in-memory engine is tried."""


ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def watch(command: list[str], **options: Any) -> Watched:
    return watching.watch(command, environment=ONE_THREAD, **options)


# ---- what is said --------------------------------------------------------------------------------------


@dataclass
class Report:
    """Lines of the table at the end: what, value, target; and everything as numbers."""

    lines: list[tuple[str, str, str]] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)

    def head(self, text: str) -> None:
        self.lines.append((text, "", ""))

    def add(self, what: str, value: str, target: str = "") -> None:
        self.lines.append(("  " + what, value, target))

    def show(self) -> None:
        for what, value, target in self.lines:
            print(f"{what:<64} {value:>16}   {target}".rstrip() if value else f"\n{what}")


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def seconds(found: Watched) -> str:
    return f"{found.wall:.1f} s wall, {found.cpu:.1f} s CPU, peak {found.peak / 1e6:.0f} MB"


# ---- tables and runs -----------------------------------------------------------------------------------


def table_of(n_rows: int, folder: Path) -> Path:
    """Kept from one run of the benchmark to the next."""
    folder.mkdir(parents=True, exist_ok=True)
    millions = folder / f"agrawal_{n_rows / 1e6:g}m.parquet"
    if not millions.exists():
        say(f"generating {n_rows:,} rows")
        write_agrawal(n_rows, millions, function="C2", seed=1)
    return millions


def policy_of(k: int, scale: str | None) -> str:
    attributes = {name: {"role": "quasi-identifier", "type": "number"} for name in QUASI_IDENTIFIERS}
    method = {"mondrian": {"variant": "paper"} | ({"scale": scale} if scale else {})}
    require = [{"k-anonymity": k}]
    return json.dumps(
        {"attributes": {**attributes, "class": {"role": "other"}}, "require": require, "method": method}
    )


@dataclass
class Bench:
    """What all parts share."""

    options: argparse.Namespace
    scratch: Path
    report: Report = field(default_factory=Report)
    done: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    def command(self, table: Path, out: Path, engine: str, *, memory: str | None = None) -> list[str]:
        """``engine`` is memory, rothko-s or rothko-t."""
        policy = self.scratch / f"{engine}.yaml"
        policy.write_text(policy_of(self.options.k, engine if engine != "memory" else None), encoding="utf-8")
        where = ["--engine", "memory"] if engine == "memory" else ["--engine", "disk"]
        where += ["--memory", memory or self.options.memory] if engine != "memory" else []
        return sfumato(
            "publish", table, "--policy", policy, "--out", out, *where, "--threads", "1", "--quiet"
        )

    def publish(self, engine: str, n_rows: int) -> dict[str, Any]:
        """One run and its verification; measured once, whichever part asks."""
        if (engine, n_rows) not in self.done:
            table = table_of(n_rows, self.options.folder)
            out = self.scratch / f"{engine}-{n_rows}"
            say(f"{engine}, {n_rows:,} rows")
            forget(table)
            run = watch(self.command(table, out, engine))
            found: dict[str, Any] = {"run": run, "io": {}, "groups": 0, "verify": None, "bytes": 0}
            say(f"  {seconds(run)}" if run.code == 0 else f"  exit {run.code}: {run.sentence}")
            if run.code == 0:
                certificate = json.loads((out / "certificate.json").read_text(encoding="utf-8"))
                found |= {
                    "io": certificate["figures"].get("io", {}),
                    "groups": certificate["claims"]["groups"],
                }
                found["bytes"] = (out / "release.parquet").stat().st_size
                found["verify"] = watch(sfumato("verify", out))
                say(f"  verify: exit {found['verify'].code}, {seconds(found['verify'])}")
                found["floor"] = self.floor_of_release(table, out / "release.parquet", n_rows)
                shutil.rmtree(out)
            self.done[engine, n_rows] = found
        return self.done[engine, n_rows]

    def floor_of_release(self, table: Path, release: Path, n_rows: int) -> dict[str, float] | None:
        """Reading the input once and writing this release once; at full size only."""
        if n_rows != self.options.rows or "floor" not in self.options.part:
            return None
        return floor_in_process(table, release, self.scratch / "floor.parquet")

    def floor(self) -> dict[str, float]:
        table = table_of(self.options.rows, self.options.folder)
        if ("floor", 0) not in self.done:
            say(f"I/O floor, {self.options.rows:,} rows")
            self.done["floor", 0] = floor_in_process(table, None, self.scratch / "floor.parquet")
        return self.done["floor", 0]


def floor_in_process(table: Path, release: Path | None, out: Path) -> dict[str, float]:
    """The floor in a process of its own, from files that are not in the page cache."""
    forget(table)
    script = [sys.executable, __file__, "--floor", str(table), str(release or ""), str(out)]
    seen = watch(script)
    if seen.code != 0:
        raise SystemExit(f"The floor failed: {seen.sentence}")
    found: dict[str, float] = json.loads(seen.out)
    say(f"  {found['wall']:.1f} s wall, {found['cpu']:.1f} s CPU, peak {seen.peak / 1e6:.0f} MB")
    return {**found, "peak": seen.peak}


def measure_floor(table: Path, release: Path | None, out: Path) -> None:
    """Read all row groups; write those of the release, or what was read. Reading the release is not timed."""
    clock = _Clock()
    source = pq.ParquetFile(table)
    with clock:
        writer = None if release else pq.ParquetWriter(out, source.schema_arrow)
        for group in range(source.num_row_groups):
            rows = source.read_row_group(group, use_threads=False)
            if writer:
                writer.write_table(rows)
            del rows
        if writer:
            writer.close()
    if release:
        made = pq.ParquetFile(release)
        codes = [field.name for field in made.schema_arrow if field.name in QUASI_IDENTIFIERS]
        with clock:
            writer = pq.ParquetWriter(
                out, made.read_row_group(0).schema, use_dictionary=codes, write_statistics=False
            )
        for group in range(made.num_row_groups):
            rows = made.read_row_group(group, use_threads=False)
            with clock:
                writer.write_table(rows)
            del rows
        with clock:
            writer.close()
    with clock, out.open("rb") as file:
        os.fsync(file.fileno())
    size = out.stat().st_size
    out.unlink()
    print(json.dumps({"wall": clock.wall, "cpu": clock.cpu, "read": table.stat().st_size, "written": size}))


class _Clock:
    """Wall and CPU seconds spent inside."""

    wall = cpu = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter() - self._start[0]
        self.cpu += time.process_time() - self._start[1]


# ---- a column of distinct values -----------------------------------------------------------------------


def wide_table_of(n_rows: int, folder: Path) -> Path:
    """The table with one more column, ``number``: the numbers of the rows in random order."""
    path = folder / f"agrawal_wide_{n_rows / 1e6:g}m.parquet"
    if not path.exists():
        say(f"generating {n_rows:,} rows with a column of as many values")
        rows = pq.read_table(table_of(n_rows, folder))
        numbers = np.random.default_rng(1).permutation(n_rows)
        pq.write_table(rows.append_column("number", pa.array(numbers)), path)
    return path


def bench_wide(bench: Bench) -> None:
    n_rows = min(bench.options.rows, 10_000_000)
    table = wide_table_of(n_rows, bench.options.folder)
    for criterion, workload in (("Median", []), ("InfoGain", [{"classify": "class"}])):
        policy = json.loads(policy_of(bench.options.k, "rothko-t"))
        policy["attributes"]["number"] = {"role": "quasi-identifier", "type": "number"}
        file = bench.scratch / f"wide-{criterion}.yaml"
        file.write_text(json.dumps({**policy, "workload": workload}), encoding="utf-8")
        for memory in ("64MB", "512MB"):
            say(f"a column of {n_rows:,} values, {criterion}, {memory}")
            out = bench.scratch / "wide"
            forget(table)
            command = [
                "publish",
                table,
                "--policy",
                file,
                "--out",
                out,
                "--engine",
                "disk",
                "--memory",
                memory,
            ]
            run = watch(sfumato(*command, "--threads", "1", "--quiet"))
            say(f"  {seconds(run)}" if run.code == 0 else f"  exit {run.code}: {run.sentence}")
            bench.report.head(f"a column of {n_rows:,} distinct values, {criterion}, --memory {memory}")
            bench.report.numbers[f"wide-{criterion}-{memory}"] = {
                "cpu": run.cpu,
                "peak": run.peak,
                "code": run.code,
            }
            if run.code != 0:
                bench.report.add("FAILED", f"exit {run.code}", run.sentence)
                continue
            io = json.loads((out / "certificate.json").read_text(encoding="utf-8"))["figures"]["io"]
            bench.report.add("wall, CPU", f"{run.wall:.1f} s, {run.cpu:.1f} s")
            bench.report.add("peak memory, seen from outside", f"{run.peak / 1e6:.0f} MB")
            for key in ("passes", "input-passes", "repartitions", "pieces"):
                bench.report.add(key, f"{io.get(key, 0):,}")
            bench.report.add("reads / writes of the encoded table", f"{io['reads']:.2f} / {io['writes']:.2f}")
            shutil.rmtree(out)


# ---- speed ---------------------------------------------------------------------------------------------


def bench_speed(bench: Bench) -> None:
    options, report = bench.options, bench.report
    budget = parse_size(options.memory)
    floor = bench.floor() if "floor" in options.part else None
    memory = None
    if "memory" in options.part:
        memory = bench_memory(bench)
    if floor:
        report.head(f"I/O floor: {options.rows:,} rows read from Parquet and written, once each")
        report.add("wall", f"{floor['wall']:.1f} s")
        report.add("CPU", f"{floor['cpu']:.1f} s")
        report.add("read / written", f"{floor['read'] / 1e6:.0f} / {floor['written'] / 1e6:.0f} MB")
        report.numbers["floor"] = floor
    if memory:
        report.head(f"in-memory engine, {options.rows:,} rows")
        report.add("wall", f"{memory['run'].wall:.1f} s")
        report.add("CPU", f"{memory['run'].cpu:.1f} s")
        report.add("peak memory", f"{memory['run'].peak / 1e6:.0f} MB")
        report.numbers["memory"] = numbers(memory)
    targets = {"s": "<= 2", "t": "<= 4, stretch 2"}
    for part in ("s", "t"):
        if part not in options.part:
            continue
        found = bench.publish(ROTHKO[part], options.rows)
        run, io = found["run"], found["io"]
        report.head(f"{ROTHKO[part]}, {options.rows:,} rows, --memory {options.memory}, k = {options.k:,}")
        report.numbers[ROTHKO[part]] = numbers(found)
        if run.code != 0:
            report.add("FAILED", f"exit {run.code}", run.sentence)
            continue
        most = (budget + ALLOWANCE) / 1e6
        report.add(
            "peak memory, seen from outside",
            f"{run.peak / 1e6:.0f} MB",
            f"<= {most:.0f} MB{judged(run.peak / 1e6 <= most)}",
        )
        report.add("wall", f"{run.wall:.1f} s")
        report.add("CPU (user + kernel)", f"{run.user:.1f} + {run.kernel:.1f} s")
        is_within = io["reads"] <= 3 * FRAMES and io["writes"] <= FRAMES
        bound = "<= 3, <= 1" + judged(is_within) if part == "s" else "as the model below"
        report.add("reads / writes of the encoded table", f"{io['reads']:.2f} / {io['writes']:.2f}", bound)
        report.add("groups", f"{found['groups']:,}")
        for key in ("repartitions", "pruned", "fallbacks", "nonminimal", "spills", "passes", "input-passes"):
            if key in io:
                report.add(key, f"{io[key]:,}")
        verify = found["verify"]
        report.add("verify: exit code", str(verify.code), "0" + judged(verify.code == 0))
        report.add("verify: CPU, peak memory", f"{verify.cpu:.1f} s, {verify.peak / 1e6:.0f} MB")
        report.add(
            "release / input, bytes",
            f"{found['bytes'] / table_of(options.rows, options.folder).stat().st_size:.2f}",
            "<= 0.5",
        )
        if floor:
            limit = 2 if part == "s" else 4
            ratio = run.cpu / floor["cpu"]
            report.add(
                "CPU / floor (read once, write the same once)",
                f"{ratio:.2f}",
                targets[part] + judged(ratio <= limit),
            )
            report.add("wall / floor (read once, write the same once)", f"{run.wall / floor['wall']:.2f}")
        if found.get("floor"):
            report.add(
                "CPU / floor (read once, write this release once)", f"{run.cpu / found['floor']['cpu']:.2f}"
            )
            report.add(
                "wall / floor (read once, write this release once)",
                f"{run.wall / found['floor']['wall']:.2f}",
            )
        if memory and memory["run"].code == 0:
            report.add("CPU / in-memory engine", f"{run.cpu / memory['run'].cpu:.2f}")
            report.add("wall / in-memory engine", f"{run.wall / memory['run'].wall:.2f}")


def bench_memory(bench: Bench) -> dict[str, Any] | None:
    """The engine that holds all rows, if there is memory enough."""
    need = bench.options.rows * 44 * COPIES
    free = available_memory()
    if free < need:
        say(f"in-memory engine left out: needs about {need / 1e9:.0f} GB, {free / 1e9:.0f} GB are free")
        bench.report.head(
            f"in-memory engine left out: {free / 1e9:.0f} GB of memory are free, it may need {need / 1e9:.0f}"
        )
        return None
    return bench.publish("memory", bench.options.rows)


def available_memory() -> int:
    for text in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if text.startswith("MemAvailable:"):
            return int(text.split()[1]) * 1024
    return 0


def numbers(found: dict[str, Any]) -> dict[str, Any]:
    run = {key: value for key, value in found["run"].as_dict().items() if key not in ("out", "err")}
    return {"run": run, "io": found["io"], "groups": found["groups"], "floor": found.get("floor")}


def judged(holds: bool) -> str:  # noqa: FBT001 - a word for a truth
    return "   ok" if holds else "   MISSED"


# ---- scale-up ------------------------------------------------------------------------------------------


def bench_scale(bench: Bench) -> None:
    options, report = bench.options, bench.report
    budget = parse_size(options.memory)
    for part, name in ROTHKO.items():
        report.head(f"{name}, scale-up, --memory {options.memory}: measured, and the model of 5.3")
        first = None
        for n_rows in options.scale:
            found = bench.publish(name, n_rows)
            run, io = found["run"], found["io"]
            if run.code != 0:
                report.add(f"{n_rows:,} rows: FAILED", f"exit {run.code}", run.sentence)
                continue
            pace = run.cpu / n_rows
            first = first or pace
            in_memory = options.rows_in_memory or io.get("rows-in-memory") or budget // ROW_BYTES
            if part == "t":
                groups = options.frequency_groups or max(1, budget // 2 // GROUP_BYTES)
                t = n_rows, in_memory, groups
                memory = f"{in_memory:,} rows, {groups} groups in memory"
                model = f"model {io_model.reads_t(*t)} / {io_model.writes_t(*t)} ({memory})"
            else:
                s = n_rows, in_memory, options.k
                model = (
                    f"model {io_model.reads_s(*s)} / {io_model.writes_s(*s)} ({in_memory:,} rows in memory)"
                )
            report.add(f"{n_rows:,} rows: reads / writes", f"{io['reads']:.2f} / {io['writes']:.2f}", model)
            report.add(
                f"{n_rows:,} rows: CPU, peak memory", f"{run.cpu:.1f} s, {run.peak / 1e6:.0f} MB",
                f"{pace / first:.2f} times the CPU per row of the smallest",
            )  # fmt: skip
            report.numbers[f"{name}/{n_rows}"] = numbers(found)


# ---- killed at random ----------------------------------------------------------------------------------


def bench_kill(bench: Bench) -> None:
    """SIGKILL at random moments: the input as it was, no release, and the next run clears up and works."""
    options, report = bench.options, bench.report
    folder = bench.scratch / "killed"
    folder.mkdir()
    table, small = table_of(options.kill_rows, options.folder), table_of(50_000, options.folder)
    before = digest(table)
    draw = random.Random(options.seed)
    say(f"how long {options.kill_rows:,} rows take")
    lengths = {}
    for name in ROTHKO.values():
        whole = watch(bench.command(table, folder / "whole", name, memory=options.kill_memory))
        if whole.code != 0:
            report.head(
                f"kill: {name} on {options.kill_rows:,} rows FAILED, exit {whole.code}: {whole.sentence}"
            )
            return
        lengths[name] = whole.wall
        shutil.rmtree(folder / "whole")
    n_killed = n_spilled = 0
    wrong: list[str] = []
    while n_killed < options.kills:
        name = ("rothko-s", "rothko-t")[n_killed % 2]
        moment = draw.uniform(0.3, lengths[name])
        out = folder / "out"
        killed = watch(bench.command(table, out, name, memory=options.kill_memory), kill_after=moment)
        if killed.code == 0:  # it was faster than before
            shutil.rmtree(out)
            continue
        n_killed += 1
        left = leftovers(folder)
        n_spilled += bool(left)
        say(
            f"  kill {n_killed} after {moment:.1f} of {lengths[name]:.1f} s, {name}: left {', '.join(left) or 'nothing'}"
        )
        wrong += ["a release folder was there"] if out.exists() else []
        wrong += ["the input changed"] if digest(table) != before else []
        following = watch(bench.command(small, folder / "next", name, memory="64MB"))
        wrong += [f"the next run ended with {following.code}: {following.sentence}"] if following.code else []
        shutil.rmtree(folder / "next", ignore_errors=True)
        wrong += [f"the next run left {', '.join(leftovers(folder))}"] if leftovers(folder) else []
        shutil.rmtree(out, ignore_errors=True)
    last = watch(bench.command(table, folder / "last", "rothko-s", memory=options.kill_memory))
    verified = watch(sfumato("verify", folder / "last")) if last.code == 0 else last
    report.head(f"killed at random, {options.kill_rows:,} rows, Rothko-S and Rothko-T in turn")
    report.add("SIGKILLs", str(n_killed), str(options.kills))
    report.add("of them with something left on the disk", str(n_spilled))
    report.add(
        "input changed, release half there, next run failed or left spills",
        str(len(wrong)),
        "0" + judged(not wrong),
    )
    for text in dict.fromkeys(wrong):
        report.add(f"  {text}", f"{wrong.count(text)} times")
    report.add(
        "the whole table after all kills: exit code, verify",
        f"{last.code}, {verified.code}",
        "0, 0" + judged(verified.code == 0),
    )
    report.numbers["kill"] = {"kills": n_killed, "with leftovers": n_spilled, "wrong": wrong}


def leftovers(folder: Path) -> list[str]:
    """Hidden files and folders, which only unfinished runs have."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- faults --------------------------------------------------------------------------------------------


def bench_faults(bench: Bench) -> None:
    """A full disk, an unreadable row group, a truncated file: an exit code, a sentence, and nothing left."""
    options, report = bench.options, bench.report
    folder = bench.scratch / "faults"
    folder.mkdir()
    table = table_of(options.kill_rows, options.folder)
    report.head(f"faults, {options.kill_rows:,} rows, --memory {options.kill_memory}")
    for name in ROTHKO.values():
        healthy = watch(bench.command(table, folder / "out", name, memory=options.kill_memory))
        report.add(f"nothing wrong, {name}", f"exit {healthy.code}", f"0{judged(healthy.code == 0)}")
        if healthy.code != 0:
            return
        shutil.rmtree(folder / "out")
    cases: list[tuple[str, Path, dict[int, int] | None]] = [
        (f"files of at most {size / 1e6:g} MB (RLIMIT_FSIZE)", table, {resource.RLIMIT_FSIZE: size})
        for size in (100_000, 2_000_000, 10_000_000)
    ]
    cases.append(("a row group that cannot be read", unreadable(table, folder / "broken.parquet"), None))
    cases.append(("a Parquet file cut off in the middle", truncated(table, folder / "cut.parquet"), None))
    csv = folder / "whole.csv"
    write_agrawal(200_000, csv, function="C2", seed=1)
    cases.append(("a CSV cut off within a row", truncated(csv, folder / "cut.csv"), None))
    packed = folder / "whole.csv.gz"
    packed.write_bytes(gzip.compress(csv.read_bytes(), compresslevel=1))
    cases.append(("a gzip-ed CSV cut off", truncated(packed, folder / "cut.csv.gz"), None))
    for what, source, limits in cases:
        for name in ROTHKO.values():
            seen = watch(
                bench.command(source, folder / "out", name, memory=options.kill_memory), limits=limits
            )
            tell_fault(report, f"{what}, {name}", seen, folder)
    full_disk(bench, folder, table)


def tell_fault(report: Report, what: str, seen: Watched, folder: Path) -> None:
    left = leftovers(folder)
    sentence = seen.sentence.replace(f"{folder}/", "")
    if seen.code == 0:
        verified = watch(sfumato("verify", folder / "out"))
        outcome = "was enough, verified" + judged(verified.code == 0 and not left)
    else:
        left += ["a release"] if (folder / "out").exists() else []
        is_plain = seen.code == 2 and len(seen.err.strip().splitlines()) == 1
        outcome = f"LEFT {', '.join(left)}" if left else "nothing left" + judged(is_plain)
    report.add(what, f"exit {seen.code}", outcome)
    report.lines += [(f"    {line}", " ", "") for line in textwrap.wrap(sentence, 110)]
    report.numbers[f"fault: {what}"] = {"code": seen.code, "sentence": sentence, "left": left}
    say(f"  {what}: exit {seen.code}: {sentence}")
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "out":
            shutil.rmtree(path, ignore_errors=True)


def unreadable(source: Path, out: Path) -> Path:
    """A copy with a page header in the middle of the file overwritten."""
    shutil.copyfile(source, out)
    metadata = pq.ParquetFile(source).metadata
    column = metadata.row_group(metadata.num_row_groups // 2).column(4)
    starts = [column.data_page_offset, column.dictionary_page_offset]
    with out.open("r+b") as file:
        for start in starts:
            if start:
                file.seek(start)
                file.write(b"\xff" * 64)
    return out


def truncated(source: Path, out: Path) -> Path:
    """The first half; of text, cut after the third cell of a row."""
    content = source.read_bytes()[: source.stat().st_size // 2]
    if source.suffix == ".csv":
        row = content[: content.rindex(b"\n")].rindex(b"\n") + 1
        content = content[:row] + b",".join(content[row:].split(b",")[:3])
    out.write_bytes(content)
    return out


def full_disk(bench: Bench, folder: Path, table: Path) -> None:
    """A small file system of its own, in a mount namespace of its own, where the machine allows it."""
    small = folder / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=8m none {small}"
    if (
        subprocess.run(["unshare", "--mount", "sh", "-c", mount], capture_output=True, check=False).returncode
        != 0
    ):
        say("  no small file system can be made here: left out")
        return
    run = bench.command(table, small / "out", "rothko-s", memory=bench.options.kill_memory)
    seen = watch(["unshare", "--mount", "sh", "-c", f"{mount} && exec {shlex.join(run)}"])
    tell_fault(bench.report, "a disk of 8 MB (tmpfs), rothko-s", seen, folder)


# ---- all of it -----------------------------------------------------------------------------------------


def main() -> None:
    if sys.argv[1:2] == ["--floor"]:
        table, release, out = sys.argv[2:]
        measure_floor(Path(table), Path(release) if release else None, Path(out))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    number = lambda text: int(float(text))  # noqa: E731 - 50e6 is how such numbers are typed
    parser.add_argument("--rows", type=number, default=50_000_000)
    parser.add_argument(
        "--scale", type=number, nargs="+", help="default 5, 10, 25 and 50 million, up to --rows"
    )
    parser.add_argument("--memory", default="512MB")
    parser.add_argument("--k", type=int, default=1000)
    parser.add_argument(
        "--rows-in-memory",
        type=number,
        help="of the model (default: the certificate's, or what the memory holds)",
    )
    parser.add_argument(
        "--frequency-groups", type=int, help="of the model (default: what half the memory holds)"
    )
    parser.add_argument("--part", default=",".join(PARTS), help=f"comma-separated, of {','.join(PARTS)}")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument(
        "--kill-rows", type=number, default=2_000_000, help="rows of the runs that are killed or broken"
    )
    parser.add_argument("--kill-memory", default="64MB")
    parser.add_argument("--seed", type=int, default=2008)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir(), "sfumato-bench"), help="of the tables"
    )
    parser.add_argument("--json", type=Path, help="append one line of results to this file")
    options = parser.parse_args()
    options.part = options.part.split(",")
    unknown = set(options.part) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    options.scale = options.scale or [
        n for n in (5_000_000, 10_000_000, 25_000_000, 50_000_000) if n <= options.rows
    ]
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-", dir=options.folder) as scratch:
        bench = Bench(options, Path(scratch))
        warm_up(bench)
        if set(options.part) & {"floor", "memory", "s", "t"}:
            bench_speed(bench)
        if "scale" in options.part:
            bench_scale(bench)
        if "wide" in options.part:
            bench_wide(bench)
        if "kill" in options.part:
            bench_kill(bench)
        if "faults" in options.part:
            bench_faults(bench)
    bench.report.show()
    if options.json:
        where = {
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        }
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        line = {"bench": "rothko", "commit": commit.stdout.strip(), **where, **bench.report.numbers}
        with options.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def warm_up(bench: Bench) -> None:
    """Compile the kernels, so that no run pays for it."""
    say("compiling")
    small = table_of(500_000, bench.options.folder)
    for name in ("memory", *ROTHKO.values()):
        seen = watch(bench.command(small, bench.scratch / f"warm-{name}", name, memory="64MB"))
        if seen.code != 0:
            say(f"  {name}: exit {seen.code}: {seen.sentence}")


if __name__ == "__main__":
    main()
