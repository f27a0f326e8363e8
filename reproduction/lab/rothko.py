"""Tables larger than memory: runs of the command in processes of their own, and releases made in this one.

What was measured is kept under ``build``, run by run, so that a long figure can be stopped and gone on with, and
figures share the runs that they have in common. ``--fresh`` measures again.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lab import record, trials
from lab.record import ROOT, Finding, Measured
from sfumato.examples.agrawal import QUASI_IDENTIFIERS, write_agrawal
from sfumato.policy.document import Policy
from sfumato.policy.options.mondrian import PAPER, MondrianOptions
from sfumato.policy.requirements import Requirement
from sfumato.publishing import publish

sys.path.insert(0, str(ROOT / "benchmarks"))

import io_model
from watch import Watched, forget, sfumato, watch

T, S, MEMORY = "rothko-t", "rothko-s", "memory"
K = 1000
ROWS_IN_MEMORY = 2_000_000
"""TM of the paper's section 6."""

ROWS = 50_000_000
SCALE_UP = (5_000_000, 10_000_000, 25_000_000, 50_000_000)
"""The last is the paper's; it does not print the others."""

MEMORY_OF_COMMAND = "512MB"
"""As much as the paper's machine had."""

MILLION = 1_000_000
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PATIENCE = 180
"""Seconds after which a process that has too little memory is ended: libraries may try for ever."""

GAIN = 0.01
"""Below this gain InfoGain gives way to Median [LDR08, footnote 18]."""


# ---- what is asked -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """One run of ``sfumato publish`` on the rows of the Agrawal generator, all attributes numbers.

    ``method`` is rothko-t, rothko-s or memory, the engine that holds all rows; ``cap`` is the most memory that
    the kernel gives the process (RLIMIT_DATA).
    """

    method: str
    n_rows: int = ROWS
    criterion: str = "Median"
    k: int = K
    rows_in_memory: int = ROWS_IN_MEMORY
    frequency_groups: int | None = None
    sample: int | None = None
    memory: str = MEMORY_OF_COMMAND
    cap: int | None = None
    function: str = "C2"

    @property
    def name(self) -> str:
        """As the figures call it.

        >>> Run(T, frequency_groups=8).name, Run(S).name
        ('Rothko-T (8)', 'Rothko-S')
        """
        groups = f" ({self.frequency_groups})" if self.frequency_groups else ""
        return {T: f"Rothko-T{groups}", S: "Rothko-S", MEMORY: "In memory"}[self.method]

    def policy(self) -> str:
        """The policy, which is JSON and so YAML too."""
        attributes = {name: {"role": "quasi-identifier", "type": "number"} for name in QUASI_IDENTIFIERS}
        options: dict[str, Any] = {"variant": PAPER}
        if self.method != MEMORY:
            options |= {"scale": self.method, "rows-in-memory": self.rows_in_memory}
        if self.frequency_groups:
            options["frequency-groups"] = self.frequency_groups
        if self.sample:
            options["sample"] = self.sample
        if self.criterion == "InfoGain":
            options["median-below-gain"] = GAIN
        return json.dumps(
            {
                "attributes": attributes | {"class": {"role": "other"}},
                "require": [{"k-anonymity": self.k}],
                "workload": [{"classify": "class"}] if self.criterion == "InfoGain" else [],
                "method": {"mondrian": options},
            }
        )

    def command(self, table: Path, policy: Path, out: Path) -> list[str]:
        where = (
            ["--engine", "memory"] if self.method == MEMORY else ["--engine", "disk", "--memory", self.memory]
        )
        return sfumato(
            "publish", table, "--policy", policy, "--out", out, *where, "--threads", "1", "--quiet"
        )

    def model(self) -> dict[str, float]:
        """Reads and writes by the paper's model, in tables."""
        if self.method == T:
            t = self.n_rows, self.rows_in_memory, self.frequency_groups or 1
            return {"reads": io_model.reads_t(*t), "writes": io_model.writes_t(*t)}
        s = self.n_rows, self.rows_in_memory, self.k
        return {
            "reads": io_model.reads_s(*s, sample=self.sample),
            "writes": io_model.writes_s(*s, sample=self.sample),
        }


# ---- what came out -------------------------------------------------------------------------------------


def measure(run: Run, seed: int, tables: str, scratch: str | None) -> list[dict[str, Any]]:
    """Publish once, from a file that is not in the page cache: what :mod:`watch` saw, and the certificate's I/O."""
    source = table_of(run.n_rows, run.function, seed, Path(tables))
    forget(source)
    with tempfile.TemporaryDirectory(prefix="sfumato-figure-", dir=scratch) as folder:
        policy, out = Path(folder, "policy.yaml"), Path(folder, "out")
        policy.write_text(run.policy(), encoding="utf-8")
        limits = {} if run.cap is None else {resource.RLIMIT_DATA: run.cap}
        seen = watch(
            run.command(source, policy, out), limits=limits, environment=ONE_THREAD,
            kill_after=None if run.cap is None else PATIENCE,
        )  # fmt: skip
        if seen.code == 0:
            certificate = json.loads((out / "certificate.json").read_text(encoding="utf-8"))
            io, n_groups = certificate["figures"].get("io", {}), certificate["claims"]["groups"]
        elif run.cap is None:
            raise SystemExit(f"{run.name}, {run.n_rows:,} rows: {seen.sentence}")
        else:
            io, n_groups = {}, 0
    return [{**_numbers(seen), "sentence": seen.sentence if seen.code else "", "groups": n_groups, "io": io}]


def _numbers(seen: Watched) -> dict[str, float]:
    return {key: value for key, value in seen.as_dict().items() if key not in ("out", "err")}


def table_of(n_rows: int, function: str, seed: int, folder: Path) -> Path:
    """The file of so many generated rows, made when it is first asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"agrawal_{function}_{seed}_{n_rows}.parquet"
    if not path.exists():
        write_agrawal(n_rows, path, function=function, seed=seed)
    return path


# ---- kept results --------------------------------------------------------------------------------------


def options(description: str, *, runs: bool = True) -> Namespace:
    """The options of all figures, and those of figures on large tables."""

    def more(parser: ArgumentParser) -> None:
        if runs:
            parser.add_argument(
                "--rows",
                type=lambda text: int(float(text)),
                help="size of the table where it is not the axis",
            )
            parser.add_argument("--tables", type=Path, help="folder of the generated tables (default: build)")
            parser.add_argument(
                "--scratch", type=Path, help="folder of releases and spills (default: temporary)"
            )

    given = record.options(description, learners=(), more=more)
    if runs and given.tables is None:
        given.tables = ROOT / "build" / "tables"
    return given


def kept_path(folder: str, key: str) -> Path:
    """Where the result of ``key`` is kept."""
    return Path(folder, hashlib.sha256(key.encode()).hexdigest()[:24] + ".json")


def kept(
    folder: str,
    key: str,
    fresh: bool,  # noqa: FBT001 - one of a task's words, which all come by position
    work: Callable[..., list[dict[str, Any]]],
    *arguments: Any,
) -> list[dict[str, Any]]:
    """What ``work`` gave for ``key`` before; else its result now, saved at once. The commit comes along."""
    path = kept_path(folder, key)
    if path.exists() and not fresh:
        known: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["result"]
        return known
    before = record.commit()
    result = [{**entry, "commit": before} for entry in work(*arguments)]
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_text(json.dumps({"key": key, "result": result}), encoding="utf-8")
    unfinished.replace(path)
    return result


def folder_of(given: Namespace, name: str) -> str:
    return str(ROOT / "build" / (f"{name}-quick" if given.quick else name))


Found = dict[Run, dict[str, Any]]


def measure_all(given: Namespace, runs: Iterable[Run], title: str) -> Found:
    """Every run, one after another on a machine of its own; those that another figure has measured are taken over."""
    scratch = None if given.scratch is None else str(given.scratch)
    runs = list(dict.fromkeys(runs))
    tasks = [
        (
            folder_of(given, "runs"), json.dumps([asdict(run), given.seed], sort_keys=True), given.fresh,
            measure, run, given.seed, str(given.tables), scratch,
        )
        for run in runs
    ]  # fmt: skip
    found = trials.run(kept, tasks, processes=1, title=title)
    return {run: result[0] for run, result in zip(runs, found, strict=True)}


def scaled(given: Namespace, run: Run) -> Run:
    """The run itself; with ``--quick`` a thousandth of its rows, and as small a memory."""
    if not given.quick:
        return run
    return replace(
        run,
        n_rows=run.n_rows // 1000,
        rows_in_memory=run.rows_in_memory // 1000,
        sample=run.sample and run.sample // 1000,
        k=max(2, run.k // 50),
        memory="64MB",
    )


def sizes(given: Namespace) -> tuple[int, ...]:
    """The sizes of a scale-up; one with ``--quick``."""
    return given.at or (SCALE_UP[:1] if given.quick else SCALE_UP)


def rows(given: Namespace, default: int) -> int:
    """The size of the table where it is not the axis; with ``--quick`` that of the scale-up."""
    return given.rows or (SCALE_UP[0] if given.quick else default)


def entries(
    run: Run, found: Mapping[str, Any], measures: Mapping[str, float], **of: Any
) -> list[dict[str, Any]]:
    """Points of a figure: one for each measure of a run."""
    return [
        {
            "trial": 0,
            "value": float(value),
            "measure": name,
            "method": run.name,
            **of,
            "commit": found["commit"],
        }
        for name, value in measures.items()
    ]


PARTS = ("user", "kernel", "waiting")


def times(found: Found, place: Callable[[Run], Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
    """Points of figures 19 to 21: seconds by part, peak memory, and the engine's own count of reads and writes."""
    out = []
    for run, seen in found.items():
        measures = {
            **{part: seen[part] for part in PARTS}, "wall": seen["wall"], "CPU": seen["cpu"], "peak memory": seen["peak"],
            "reads": seen["io"]["reads"], "writes": seen["io"]["writes"], "groups": seen["groups"],
        }  # fmt: skip
        out.append(entries(run, seen, measures, **place(run)))
    return out


def faster(points: Measured, ours: Run, theirs: Run, **of: Any) -> list[Finding]:
    """Is one run faster than another, by the clock and by CPU?"""
    out = []
    for measure in ("wall", "CPU"):
        here, there = (float(points.of(measure=measure, method=run.name, **of)[0]) for run in (ours, theirs))
        what = ", ".join(f"{value:,} {key}" for key, value in of.items() if isinstance(value, int))
        out.append(
            Finding(
                f"{what}, {ours.name} < {theirs.name}, {measure} seconds",
                here < there,
                f"{here:.1f} against {there:.1f}",
            )
        )
    return out


def in_millions(sizes: Iterable[int]) -> dict[int, str]:
    """Sizes of tables, and how an axis names them.

    >>> in_millions([5_000_000, 50_000])
    {5000000: '5', 50000: '0.05'}
    """
    return {n: f"{n / MILLION:g}" for n in sizes}


WAITING = (
    "User and kernel time are those of the process (wait4); waiting is wall time less both, and less the time that "
    "its first thread stood in line for a core (/proc/PID/schedstat): the kernel here does not account I/O wait by "
    "process. Bars end at the wall time: what is hatched is that time in line. Other work had the two cores of the "
    "machine meanwhile, so wall times say more about the machine than about the algorithms; CPU seconds do not."
)


# ---- releases in this process --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A release by Rothko-S: its rows, the number of its groups, and what the certificate says of the run."""

    rows: pa.Table
    n_groups: int
    io: Mapping[str, Any]

    @property
    def is_nonminimal(self) -> bool:
        return bool(self.io.get("nonminimal"))

    def group(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The group of each row: rows alike in all published quasi-identifiers."""
        code = np.zeros(self.rows.num_rows, dtype=np.int64)
        for name in names:
            cells = self.rows[name].combine_chunks()
            cells = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
            code = code * len(cells.dictionary) + cells.indices.to_numpy(zero_copy_only=False)
            code = np.unique(code, return_inverse=True)[1]
        return code


def sampled(
    table: pa.Table,
    policy: Policy,
    n: int,
    *,
    require: Iterable[Requirement] | None = None,
    tests: bool = True,
    max_height: int | None = None,
    seed: int,
    memory: int = 256 * MILLION,
) -> Sampled:
    """Publish with Rothko-S as the paper has it: ``n`` rows fit in memory and are the sample; no fallback."""
    method = MondrianOptions(
        variant=PAPER,
        scale=S,
        rows_in_memory=n,
        sample=n,
        tests=tests,
        max_height=max_height,
        fallback="none",
    )
    asked = replace(policy, method=method, **({} if require is None else {"requirements": tuple(require)}))
    release = publish(table, asked, engine="disk", memory=memory, seed=seed, threads=1)
    return Sampled(release.table, release.certificate.claims.groups, release.certificate.figures["io"])
