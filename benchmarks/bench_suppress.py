"""What leaving rows out brings: Adult and ACS with 0, 0.5, 1, 2 and 5% of the rows, and 500 random tables.

    SFUMATO_DATA=... OMP_NUM_THREADS=1 python benchmarks/bench_suppress.py                          # all of it
    SFUMATO_DATA=... python benchmarks/bench_suppress.py --table adult --k 10 --tables 0            # part of it
    SFUMATO_DATA=... python benchmarks/bench_suppress.py --out docs/suppress.md                     # and the picture

Every release is read from its published labels (``loss_measures.py``): each label must cover its row, and each set of
equal labels have k rows, or the program stops. Printed are NCP over all rows, a row that was left out counting 1 in
every column, the rows that were left out, and the accuracy of a decision tree that learned from the release, on test rows
recoded by it; one that is left out is predicted by the most frequent class. Each run is one JSON line.

On random tables each budget is published once more, and it is counted on how many of them a larger one is worse than a
smaller one: growth is greedy, so this cannot be excluded. None may be worse than no budget at all.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from loss_measures import Published
from loss_tables import CLASS, LOADERS, Study

import sfumato as sf
from sfumato.randomness import seeded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMIT = subprocess.run(
    ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
).stdout.strip()
KS = (5, 10, 50)
SHARES = ("0%", "0.5%", "1%", "2%", "5%")
TABLES = ("adult", "acs")
MODEL = "decision-tree"
METHODS: dict[str, dict[str, Any]] = {
    "median": {"criterion": "median", "rest": False},
    "default": {"criterion": "loss", "refine": "list"},
}
"""The median without rest branches, and what the default does without a workload."""
ASKED = ("adult", 10, "2%", 15)
"""Table, k and budget for which the median must lose less by so many per cent, and the default not more."""
N_RANDOM, MORE = 500, ("0%", "1%", "2%", "5%", "10%", "20%")


@dataclass(frozen=True)
class Line:
    """The figures of one release."""

    table: str
    k: int
    method: str
    at_most: str
    ncp: float
    left_out: int
    accuracy: float
    cpu: float


# ---- real tables -------------------------------------------------------------------------------------------


def policy_of(study: Study, k: int, method: str, share: str, *, purpose: bool = False) -> dict[str, Any]:
    """The policy of a release; beside a task its criterion decides all the same."""
    options = dict(METHODS[method])
    if purpose:
        options.pop("refine", None)
    plain = study.policy(k, method={"mondrian": options}, purpose=purpose)
    return {**plain, "suppress": {"at-most": share}}


def run(study: Study, k: int, method: str, share: str) -> Line:
    start = time.process_time()
    release = sf.publish(study.released, policy_of(study, k, method, share))
    seconds = time.process_time() - start
    published = Published.read(study, release.table)
    published.check(k)
    left_out = int((~published.is_published).sum())
    if left_out != release.n_left_out:
        raise SystemExit(
            f"{left_out} rows are not published, and {release.n_left_out} are said to be left out."
        )
    found = sf.evaluate(
        study.released, policy_of(study, k, method, share, purpose=True), test=study.test, models=[MODEL]
    )
    accuracy = found.score(CLASS, MODEL, "release").mean
    return Line(study.name, k, method, share, published.ncp_as_evaluated(), left_out, accuracy, seconds)


class Results:
    """Prints each line as JSON, and keeps it for the tables."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.worse: dict[str, int] = {}

    def tell(self, line: Line) -> None:
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        figures = {
            key: round(value, 5) if isinstance(value, float) else value for key, value in asdict(line).items()
        }
        print(json.dumps({"bench": "suppress", "commit": COMMIT, **figures, "machine": machine}), flush=True)
        self.lines.append(line)

    def find(self, table: str, k: int, method: str, share: str) -> Line:
        asked = (table, k, method, share)
        return next(x for x in self.lines if (x.table, x.k, x.method, x.at_most) == asked)


# ---- random tables -----------------------------------------------------------------------------------------


def random_table(number: int) -> pd.DataFrame:
    """Some categories with rare values, and a number."""
    random = seeded(number)
    n_rows = int(random.integers(100, 400))
    columns: dict[str, Any] = {"age": random.integers(0, 90, n_rows)}
    for name in ("job", "land", "town")[: int(random.integers(1, 4))]:
        rank = random.zipf(random.uniform(1.5, 2.5), n_rows) % int(random.integers(6, 40))
        columns[name] = [f"{name}{value}" for value in rank.tolist()]
    return pd.DataFrame(columns)


def count_worse(method: str, n_tables: int) -> int:
    """On how many random tables a larger budget loses more than a smaller one."""
    n_worse = 0
    for number in range(n_tables):
        table = random_table(number)
        attributes: dict[str, dict[str, Any]] = {name: {"role": "quasi-identifier"} for name in table}
        attributes["age"] |= {"type": "number", "bounds": [0, 90]}
        policy = {
            "attributes": attributes,
            "require": [{"k-anonymity": int(seeded(number).integers(2, 12))}],
            "method": {"mondrian": METHODS[method]},
        }
        losses = []
        for share in MORE:
            release = sf.publish(table, {**policy, "suppress": {"at-most": share}})
            losses.append(release.certificate.figures["loss"]["ncp"])
        if max(losses) > losses[0]:
            raise SystemExit(f"Random table {number} loses more with rows left out than without.")
        n_worse += any(after > before for before, after in itertools.pairwise(losses))
    return n_worse


# ---- tables and picture ------------------------------------------------------------------------------------


def three(number: float) -> str:
    return f"{number:.3f}".lstrip("0")


def less_lost(results: Results, table: str, k: int, method: str, share: str) -> float:
    """By how many per cent NCP is lower than without."""
    without, found = (results.find(table, k, method, budget).ncp for budget in (SHARES[0], share))
    return 100 * (1 - found / without)


def answer(results: Results) -> str:
    """What was asked of the suppression, and whether it is so."""
    table, k, share, least = ASKED
    less = {method: less_lost(results, table, k, method, share) for method in METHODS}
    is_so = less["median"] >= least and less["default"] >= 0
    return (
        f"Asked: {table}, k = {k}, at most {share} left out: NCP lower by at least {least}% with the median, and never "
        f"higher with the default. Found: {less['median']:.2f}% and {less['default']:.2f}% lower"
        f"{'.' if is_so else ': **not met**.'}\n"
    )


def as_markdown(results: Results, tables: Sequence[str], ks: Sequence[int], n_tables: int) -> Iterator[str]:
    """A Markdown table for each measure: a line per table, k and method, a column per budget."""
    if ASKED[0] in tables and ASKED[1] in ks:
        yield answer(results)
    shows: dict[str, Any] = {
        "NCP over all rows; one that is left out counts 1 in every column": lambda line: three(line.ncp),
        "NCP, as a share of that without": lambda line: f"{100 * line.ncp / without(line).ncp:.1f}%",
        "Rows left out": lambda line: f"{line.left_out:,}",
        "Accuracy of a decision tree on test rows": lambda line: f"{100 * line.accuracy:.2f}%",
    }

    def without(line: Line) -> Line:
        return results.find(line.table, line.k, line.method, SHARES[0])

    for name, show in shows.items():
        yield f"**{name}**\n"
        yield "| table | k | method | " + " | ".join(SHARES) + " |"
        yield "|---|---|---|" + "---|" * len(SHARES)
        for table in tables:
            for k in ks:
                for method in METHODS:
                    cells = [show(results.find(table, k, method, share)) for share in SHARES]
                    yield f"| {table} | {k} | {method} | " + " | ".join(cells) + " |"
        yield ""
    for method, n_worse in results.worse.items():
        yield (
            f"Of {n_tables} random tables, {n_worse} lose more with some larger budget than with a smaller one "
            f"({method}; budgets {', '.join(MORE)}). None loses more than without.\n"
        )


def draw(results: Results, tables: Sequence[str], ks: Sequence[int], file: Path) -> None:
    """NCP and accuracy against the budget, a column of panels per table and method."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    columns = [(table, method) for table in tables for method in METHODS]
    percent = [float(share.rstrip("%")) for share in SHARES]
    with plt.rc_context({"svg.hashsalt": "sfumato", "svg.fonttype": "none"}):
        figure, axes = plt.subplots(
            2, len(columns), figsize=(3.2 * len(columns), 6), sharex=True, sharey="row", squeeze=False,
            layout="constrained",
        )  # fmt: skip
        for (losses, accuracies), (table, method) in zip(axes.T, columns, strict=True):
            for k in ks:
                lines = [results.find(table, k, method, share) for share in SHARES]
                losses.plot(percent, [line.ncp for line in lines], marker="o", label=f"k = {k}")
                accuracies.plot(percent, [100 * line.accuracy for line in lines], marker="o")
            losses.set(title=f"{table}, {method}")
            accuracies.set(xlabel="rows that may be left out (%)")
        axes[0][0].set(ylabel="NCP over all rows", ylim=(0, None))
        axes[1][0].set(ylabel="accuracy of a decision tree (%)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=len(ks))
        figure.savefig(file, metadata={"Date": None})


def write(results: Results, tables: Sequence[str], ks: Sequence[int], n_tables: int, out: Path) -> None:
    picture = out.with_suffix(".svg")
    draw(results, tables, ks, picture)
    top = (
        f"# What leaving rows out brings\n\nMade by `benchmarks/bench_suppress.py` at commit {COMMIT}. `suppress` is "
        "explained [here](policy.md#suppress), NCP [there](guides/loss.md). *median* is "
        "`criterion: median, rest: false`; *default* is what happens without a workload. Accuracy is that of a decision "
        "tree, for which the class stands in the workload; the same criterion splits. `publish` grows again without "
        "leaving rows out, and keeps the better release, so no NCP is above that of 0%.\n\n"
        f"![NCP and accuracy against the rows that may be left out]({picture.name})\n\n"
    )
    out.write_text(
        top + "\n".join(as_markdown(results, tables, ks, n_tables)).rstrip() + "\n", encoding="utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", choices=LOADERS, default=list(TABLES))
    parser.add_argument("--k", nargs="+", type=int, default=list(KS))
    parser.add_argument("--tables", type=int, default=N_RANDOM, help="random tables")
    parser.add_argument(
        "--out", type=Path, help="write the tables to this Markdown file, and an SVG beside it"
    )
    options = parser.parse_args()
    results = Results()
    for name in options.table:
        study = LOADERS[name]()
        for k in options.k:
            for method in METHODS:
                for share in SHARES:
                    results.tell(run(study, k, method, share))
    for method in METHODS if options.tables else ():
        results.worse[method] = count_worse(method, options.tables)
    print("\n" + "\n".join(as_markdown(results, options.table, options.k, options.tables)))
    if options.out:
        write(results, options.table, options.k, options.tables, options.out)


if __name__ == "__main__":
    main()
