"""Figure 12 of [LDR08]: imprecision of a selection by function C2, three rectangles of equal weight."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from lab import pictures, record, studies, trials
from lab.record import Claim, Finding, Measured

from sfumato import methods
from sfumato.policy import predicate
from sfumato.policy.options.mondrian import PAPER, MondrianOptions
from sfumato.policy.workload import Select
from sfumato.randomness import seeded_block
from sfumato.release.query import select
from sfumato.table.opening import open_table

NAME = "tods_fig12"
KS = (2, 5, 10, 25, 50, 100)
N_ROWS = 1_000
RESTRICTED = "Median on age and salary"
METHODS = ("Median", RESTRICTED, "Selection")


def trial(number: int, k: int, seed: int) -> list[dict[str, Any]]:
    study = studies.agrawal_table(N_ROWS, seeded_block(seed, number))
    source = open_table(study.table)
    median = study.policy("Median", k=k)
    policies = {
        "Median": median,
        RESTRICTED: replace(median, method=MondrianOptions(variant=PAPER, split_only=("age", "salary"))),
        "Selection": replace(median, workload=tuple(map(Select, studies.c2_predicates()))),
    }
    where = predicate.parse(" or ".join(f"({part})" for part in studies.c2_predicates()), median.schema)
    out = []
    for method, policy in policies.items():
        groups = methods.partition(source, policy, threads=1)
        rows = pa.table(groups.columns())
        _, _, imprecision = select.imprecision(where, source, policy.schema, rows, groups.recoding, policy)
        out.append({"trial": number, "value": float(imprecision), "method": method, "k": k})
    return out


def claims(found: Measured, ks: tuple[int, ...]) -> list[Claim]:
    rises = tuple(
        record.greater(
            f"{method}, k = {high} > k = {low}",
            found.of(method=method, k=high), found.of(method=method, k=low), alpha=0.001,
        )
        for method in METHODS
        for low, high in pairwise(ks)
    )  # fmt: skip
    lowest: tuple[Finding, ...] = tuple(
        record.greater(
            f"k = {k}, {other} > Selection",
            found.of(method=other, k=k), found.of(method="Selection", k=k), alpha=0.001,
        )
        for k in ks
        for other in METHODS[:2]
    )  # fmt: skip
    return [
        Claim("imprecision increases with k", rises),
        Claim("imprecision is reduced by incorporating the selection", lowest),
    ]


def draw(figure: record.Figure, out: Path) -> None:
    with pictures.sheet(out / f"{NAME}.png", 1, 1, size=(5, 3.3)) as axes:
        panel = axes[0][0]
        pictures.lines(panel, figure.points, x="k", series="method", names=METHODS, log=True)
        panel.set(xlabel="k", ylabel="Imprecision (rows)")
        pictures.legend(panel)


def main() -> None:
    given = record.options(__doc__, learners=())
    n_tables = given.trials or (3 if given.quick else 100)
    ks = given.at or ((10, 50) if given.quick else KS)
    tasks = [(number, k, given.seed) for number in range(n_tables) for k in ks]
    found = record.measured(
        given, NAME, ("method", "k"),
        lambda: trials.run(trial, tasks, processes=given.processes, title="Figure 12"),
    )  # fmt: skip
    figure = record.save(
        given, NAME, "Imprecision of a selection",
        f"{n_tables} tables of {N_ROWS:,} rows (the paper has one); all attributes numbers. Imprecision is the number "
        "of rows beside the true ones whose box overlaps any of the three rectangles.",
        found, {record.NO_LEARNERS: claims(found, ks)},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
