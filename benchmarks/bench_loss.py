"""What releases lose: Adult, Census-Income, ACS and CMC, the default and other settings, peers, one measuring code.

    SFUMATO_DATA=... OMP_NUM_THREADS=1 python benchmarks/bench_loss.py            # all of it, some 20 minutes
    SFUMATO_DATA=... python benchmarks/bench_loss.py --table adult --k 5 10       # part of it
    SFUMATO_DATA=... python benchmarks/bench_loss.py --out docs/loss.md           # the tables, and docs/loss.svg
    SFUMATO_DATA=... python benchmarks/bench_loss.py --peers /tmp/peers/bin/python --table adult

Every release, ours and those of peers, is read from its published labels (``loss_measures.py``): each label must cover
its row, and each set of equal labels have k rows, or the program stops. Printed are NCP, with ``evaluate``'s beside it,
the median relative error of 1,000 COUNT queries, groups (sets of equal labels), rows left out, CPU seconds of the
release and the AUC of a model that learned from it, on test rows recoded by the release's own rule. Peers have none.

CPU seconds are those of ``publish`` in a process that has published before; each run is one JSON line. Settings that
this version has no keys for are said and left out. ARX's figures were measured once and are only repeated here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from loss_measures import Prediction, Published, compare_auc, predict
from loss_tables import LOADERS, Category, Number, Study

import sfumato as sf
from sfumato.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMIT = subprocess.run(
    ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
).stdout.strip()
KS = (5, 10, 50, 100)
PEERS = ("anjana", "anonypy")

SETS = (
    "anonypy publishes sets of values, which need be no node of a hierarchy, and numbers from the least to the greatest "
    "value; NCP counts the values of a set."
)
ARX_SOURCE = (
    "ARX 3.9.2 on the same rows, exported and read by the same measuring code; local recoding in steps of 0.1% of the "
    "rows, numbers in widths of powers of two (acs: coarser widths, the others gave no result in five minutes); "
    "best: the best of 15 settings. Measured once, not run here."
)
ARX = {
    ("adult", "ARX, best of 15"): (0.0531, 0.0766, 0.146, 0.186),
    ("adult", "ARX, local"): (0.0546, 0.0785, 0.150, 0.193),
    ("census", "ARX, local"): (0.094, 0.124, 0.200, 0.236),
    ("acs", "ARX, local"): (0.092, 0.119, 0.186, 0.222),
}


@dataclass(frozen=True)
class Setting:
    """A way to publish: what a policy says under ``method`` and ``output``, and whether the class is its purpose."""

    name: str
    method: Any
    output: dict[str, Any] | None = None
    purpose: bool = False


PAPER: dict[str, Any] = {"mondrian": {"variant": "paper"}}
SETTINGS = (
    Setting("default", "mondrian"),
    Setting("loss, no list", {"mondrian": {"criterion": "loss", "refine": "none"}}),
    Setting("Median", PAPER),
    Setting("InfoGain", PAPER, purpose=True),
    Setting("mixed", "mondrian", purpose=True),
)


@dataclass(frozen=True)
class Line:
    """The figures of one release."""

    table: str
    k: int
    setting: str
    ncp: float
    evaluated: float
    count_error: float
    groups: int
    left_out: int
    cpu: float
    auc: float | None


# ---- releases ------------------------------------------------------------------------------------------------


def read_policy(study: Study, k: int, setting: Setting) -> sf.Policy | None:
    """The policy of a setting, or None where this version does not have its keys."""
    given = study.policy(k, method=setting.method, output=setting.output, purpose=setting.purpose)
    try:
        return sf.Policy.from_dict(given)
    except PolicyError:
        if setting.method is not PAPER or knows_variants(study):
            return None
    given["method"] = "mondrian"  # before there were variants, Mondrian was as published
    return sf.Policy.from_dict(given)


def knows_variants(study: Study) -> bool:
    """Does Mondrian know more than the papers' criteria? If not, ``default`` and ``mixed`` are those."""
    try:
        sf.Policy.from_dict(study.policy(5, method=PAPER))
    except PolicyError:
        return False
    return True


def run_setting(study: Study, k: int, setting: Setting) -> tuple[Line, Prediction] | None:
    policy = read_policy(study, k, setting)
    is_papers = setting.method is PAPER
    if policy is None or not (is_papers or knows_variants(study)):
        return None
    start = time.process_time()
    release = sf.publish(study.released, policy)
    seconds = time.process_time() - start
    published = Published.read(study, release.table)
    recoding: Any = release.recoding
    found = predict(published, recoding.apply(study.test))
    return measure(published, k, setting.name, cpu=seconds, auc=found.auc), found


def measure(published: Published, k: int, setting: str, *, cpu: float, auc: float | None = None) -> Line:
    """Check a release, whoever made it, and measure what it has lost."""
    published.check(k)
    return Line(
        published.study.name,
        k,
        setting,
        ncp=statistics.fmean(published.ncp().values()),
        evaluated=published.ncp_as_evaluated(),
        count_error=float(statistics.median(published.count_errors())),
        groups=published.n_groups,
        left_out=int((~published.is_published).sum()),
        cpu=cpu,
        auc=auc,
    )


def run_peer(name: str, python: str, study: Study, k: int, *, seconds: float) -> Line | str:
    """The release of a peer in a process of its own, or why there is none."""
    if subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode:
        return "not installed"
    with tempfile.TemporaryDirectory() as folder:
        request, rows, out = (Path(folder) / file for file in ("request.json", "rows.csv", "out.csv"))
        request.write_text(json.dumps(describe(study, k)), encoding="utf-8")
        study.released.to_csv(rows, index=False)
        command = [python, str(Path(__file__).with_name("loss_peers.py")), name, request, rows, out]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return f"no result in {seconds:.0f} s"
        if done.returncode:
            return f"stopped: {done.stderr.strip().splitlines()[-1][:60]}"
        cpu = json.loads(done.stdout.splitlines()[-1])["cpu"]
        labels = pd.read_csv(out, dtype=dict.fromkeys(study.columns, str), keep_default_na=False)
    return measure(Published.read(study, labels), k, name, cpu=cpu)


def describe(study: Study, k: int) -> dict[str, Any]:
    """What a peer needs to know of a table."""
    return {
        "k": k,
        "numbers": {
            name: (column.low, column.high)
            for name, column in study.columns.items()
            if isinstance(column, Number)
        },
        "hierarchies": {
            name: {path[-1]: path[::-1] for path in column.paths}
            for name, column in study.columns.items()
            if isinstance(column, Category)
        },
    }


# ---- one run -------------------------------------------------------------------------------------------------


class Results:
    """Prints each line as JSON, and keeps it for the tables."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.differences: list[tuple[str, int, float, float]] = []
        self.absent: dict[tuple[str, str], str] = {}

    def tell(self, line: Line) -> None:
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        figures = {
            key: round(value, 5) if isinstance(value, float) else value for key, value in asdict(line).items()
        }
        print(json.dumps({"bench": "loss", "commit": COMMIT, **figures, "machine": machine}), flush=True)
        self.lines.append(line)

    def miss(self, table: str, setting: str, reason: str) -> None:
        self.absent[table, setting] = reason
        print(f"{table}, {setting}: {reason}", flush=True)

    def find(self, table: str, k: int, setting: str) -> Line | None:
        return next((x for x in self.lines if (x.table, x.k, x.setting) == (table, k, setting)), None)


def run_table(results: Results, study: Study, ks: Sequence[int], options: argparse.Namespace) -> None:
    for k in ks:
        found: dict[str, Prediction] = {}
        for setting in SETTINGS:
            got = run_setting(study, k, setting)
            if got is None:
                results.miss(study.name, setting.name, "this version has no keys for it")
                continue
            results.tell(got[0])
            found[setting.name] = got[1]
        if {"mixed", "InfoGain"} <= set(found):
            difference, half = compare_auc(found["mixed"], found["InfoGain"])
            results.differences.append((study.name, k, difference, half))
        for peer in PEERS:
            if (study.name, peer) in results.absent:
                continue
            answer = run_peer(peer, options.peers, study, k, seconds=options.seconds)
            if isinstance(answer, str):
                results.miss(study.name, peer, answer)
            else:
                results.tell(answer)


# ---- tables and picture --------------------------------------------------------------------------------------

MEASURES = {
    "NCP": lambda line: three(line.ncp),
    "NCP as `evaluate` counts it": lambda line: three(line.evaluated),
    "Median relative error of COUNT queries": lambda line: f"{line.count_error:.2f}".lstrip("0"),
    "Groups": lambda line: str(line.groups),
    "CPU seconds": lambda line: f"{line.cpu:.1f}",
    "AUC": lambda line: "-" if line.auc is None else f"{line.auc:.4f}".lstrip("0"),
}


def three(number: float) -> str:
    return f"{number:.3f}".lstrip("0")


def as_markdown(results: Results, tables: Sequence[str], ks: Sequence[int]) -> Iterator[str]:
    """A Markdown table for each measure: a line per table, a column per setting, the k one after another."""
    settings = list(dict.fromkeys(line.setting for line in results.lines))
    for measure_name, show in MEASURES.items():
        is_ncp = measure_name == "NCP"
        others = (
            sorted({name for table, name in ARX if table in tables}) if is_ncp and tuple(ks) == KS else []
        )
        yield f"**{measure_name}** (k = {' / '.join(map(str, ks))})\n"
        yield "| table | " + " | ".join([*settings, *others]) + " |"
        yield "|" + "---|" * (1 + len(settings) + len(others))
        for table in tables:
            lines = [[results.find(table, k, setting) for k in ks] for setting in settings]
            cells = [" / ".join("-" if x is None else show(x) for x in line) for line in lines]
            cells += [
                " / ".join(map(three, ARX[table, name])) if (table, name) in ARX else "-" for name in others
            ]
            yield f"| {table} | " + " | ".join(cells) + " |"
        yield ""
    if results.differences:
        yield "**AUC of mixed minus InfoGain**, with half its 95% interval (paired bootstrap of the test rows)\n"
        yield "| table | k | difference |\n|---|---|---|"
        for table, k, difference, half in results.differences:
            yield f"| {table} | {k} | {difference:+.4f} +- {half:.4f} |"
        yield ""
    yield from (f"{table}, {setting}: {reason}.\n" for (table, setting), reason in results.absent.items())
    if "anonypy" in settings:
        yield SETS + "\n"
    yield ARX_SOURCE


def draw(results: Results, tables: Sequence[str], ks: Sequence[int], file: Path) -> None:
    """NCP against k, a panel per table; ARX's figures are crosses."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.hashsalt": "sfumato", "svg.fonttype": "none"}):
        figure, axes = plt.subplots(
            1, len(tables), figsize=(3.2 * len(tables), 3.6), sharey=True, squeeze=False, layout="constrained"
        )
        settings = list(dict.fromkeys(line.setting for line in results.lines))
        for axis, table in zip(axes[0], tables, strict=True):
            for setting in settings:
                points = [(k, x.ncp) for k in ks if (x := results.find(table, k, setting)) is not None]
                axis.plot(*zip(*points, strict=True), marker="o", label=setting) if points else None
            for (name, tool), losses in ARX.items():
                if name == table:
                    axis.plot(KS, losses, "kx" if "best" in tool else "k+", label=tool)
            axis.set(title=table, xscale="log", xticks=ks, xticklabels=ks, xlabel="k")
            axis.minorticks_off()
        axes[0][0].set(ylabel="NCP", ylim=(0, None))
        shown = {
            label: handle
            for axis in axes[0]
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=8, fontsize="small")
        figure.savefig(file, metadata={"Date": None})


def write(results: Results, tables: Sequence[str], ks: Sequence[int], out: Path) -> None:
    picture = out.with_suffix(".svg")
    draw(results, tables, ks, picture)
    top = (
        f"# What releases lose\n\nMade by `benchmarks/bench_loss.py` at commit {COMMIT}; NCP is that of the cells, see "
        f"[what labels lose](guides/loss.md).\n\n![NCP against k]({picture.name})\n\n"
    )
    out.write_text(top + "\n".join(as_markdown(results, tables, ks)) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", choices=LOADERS, default=list(LOADERS))
    parser.add_argument("--k", nargs="+", type=int, default=list(KS))
    parser.add_argument("--peers", default=sys.executable, help="the Python in which peers are installed")
    parser.add_argument("--seconds", type=float, default=300, help="the longest that a peer may take")
    parser.add_argument(
        "--out", type=Path, help="write the tables to this Markdown file, and an SVG beside it"
    )
    options = parser.parse_args()
    results = Results()
    small = LOADERS["cmc"]()
    for setting in SETTINGS:
        run_setting(small, 10, setting)  # compiles
    for name in options.table:
        run_table(results, LOADERS[name](), options.k, options)
    print("\n" + "\n".join(as_markdown(results, options.table, options.k)))
    if options.out:
        write(results, options.table, options.k, options.out)


if __name__ == "__main__":
    main()
