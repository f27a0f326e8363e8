"""Tables that DiffGen's variant ``tuned`` was tuned on: its accuracy beside that of DiffGen as published [MCFY11].

Both are given epsilon and the declared domains, nothing else; the published one makes its ten specializations with
the score Max. Adult, which nothing was tuned on, has ``diffgen_fig3.py``.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lab import pictures, private, record, trials
from lab.declared_studies import STUDIES
from lab.record import Claim, Measured

from sfumato.policy.options.diffgen import PAPER, TUNED

NAME = "diffgen_tuning"
LEARNERS = "scikit-learn"
"""The one learner: the rule was judged by it."""

EPSILONS = (0.1, 0.25, 0.5, 1)
SIZES = (10_000, 30_000, 100_000)
N_RUNS = 20
VARIANTS = (TUNED, PAPER)
MAJORITY = "most frequent class"
LEVEL = 0.05
KEYS = ("learners", "measure", "table", "n_rows", "variant", "epsilon")


def trial(table: str, n_rows: int, number: int, epsilons: Sequence[float], seed: int) -> list[dict[str, Any]]:
    """Releases of the same rows by both variants, and what a tree makes of them."""
    study = STUDIES[table]
    train, test = study.parts(n_rows, number, seed)

    def entry(measure: str, value: float, variant: str, epsilon: float | str) -> dict[str, Any]:
        return {
            "trial": number, "value": value, "learners": LEARNERS, "measure": measure, "table": table,
            "n_rows": n_rows, "variant": variant, "epsilon": epsilon,
        }  # fmt: skip

    most = np.bincount(train[:, -1]).argmax()
    out = [entry("accuracy", 100 * float(np.mean(test[:, -1] == most)), MAJORITY, "")]
    for epsilon in epsilons:
        for variant in VARIANTS:
            draws = private.mechanisms(seed, NAME, table, n_rows, number, variant, epsilon)
            drawn = study.release(train, private.options(epsilon, variant=variant), draws)
            recoded = private.recoded(drawn, test)
            found = {
                "accuracy": private.accuracy(LEARNERS, private.released(drawn), recoded, test[:, -1]),
                "cells": len(drawn.counts),
                "specializations": private.n_specializations(drawn),
            }
            out += [entry(measure, value, variant, epsilon) for measure, value in found.items()]
    return out


def tasks(given: Namespace) -> list[tuple[Any, ...]]:
    n_runs = given.trials or (2 if given.quick else N_RUNS)
    sizes = given.at or ((2_000,) if given.quick else SIZES)
    epsilons = (0.1, 1) if given.quick else EPSILONS
    return [
        (table, n_rows, number, epsilons, given.seed)
        for table in STUDIES
        for n_rows in sizes
        for number in range(n_runs)
    ]


# ---- judgement -----------------------------------------------------------------------------------------


def measured_at(found: Measured, key: str) -> list[Any]:
    """The tables, sizes or budgets that were measured, in their order."""
    return list(dict.fromkeys(point[key] for point in found.points() if point["epsilon"] != ""))


def claims(found: Measured) -> list[Claim]:
    """One for each table."""

    def accuracy(table: str, n_rows: int, variant: str, epsilon: float) -> Any:
        return found.of(
            learners=LEARNERS, measure="accuracy", table=table, n_rows=n_rows, variant=variant, epsilon=epsilon
        )  # fmt: skip

    return [
        Claim(
            f"(sfumato's, not the paper's) tuned is above DiffGen as published on {table}",
            tuple(
                record.greater(
                    f"{n_rows:,} rows, epsilon = {epsilon}, tuned > paper",
                    accuracy(table, n_rows, TUNED, epsilon),
                    accuracy(table, n_rows, PAPER, epsilon),
                    alpha=LEVEL,
                )
                for n_rows in measured_at(found, "n_rows")
                for epsilon in measured_at(found, "epsilon")
            ),
        )
        for table in measured_at(found, "table")
    ]


def tabulate(found: Measured) -> str:
    """Means and deviations of both variants; numbers of specializations (h) and of cells are medians."""

    def runs(measure: str, table: str, n_rows: int, variant: str, epsilon: float | str) -> Any:
        return found.of(
            learners=LEARNERS, measure=measure, table=table, n_rows=n_rows, variant=variant, epsilon=epsilon
        )  # fmt: skip

    rows = [
        "| table | rows | epsilon | most frequent class | paper | tuned | tuned: h | paper: cells | tuned: cells |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for table in measured_at(found, "table"):
        for n_rows in measured_at(found, "n_rows"):
            for epsilon in measured_at(found, "epsilon"):
                cells = [f"{runs('accuracy', table, n_rows, MAJORITY, '').mean():.2f}"]
                for variant in (PAPER, TUNED):
                    values = runs("accuracy", table, n_rows, variant, epsilon)
                    cells.append(f"{values.mean():.2f} ± {values.std(ddof=1):.2f}")
                cells.append(f"{np.median(runs('specializations', table, n_rows, TUNED, epsilon)):g}")
                cells += [
                    f"{np.median(runs('cells', table, n_rows, variant, epsilon)):,.0f}"
                    for variant in (PAPER, TUNED)
                ]
                rows.append(f"| {table} | {n_rows:,} | {epsilon} | {' | '.join(cells)} |")
    return "\n".join(rows)


# ---- picture -------------------------------------------------------------------------------------------


def draw(figure: record.Figure, out: Path) -> None:
    """A row of panels for each size, a column for each table."""
    points = pictures.pick(figure.points, measure="accuracy")
    tables = list(dict.fromkeys(point["table"] for point in points))
    sizes = sorted({point["n_rows"] for point in points})
    with pictures.sheet(out / f"{NAME}.png", len(sizes), len(tables), size=(3.4, 2.6)) as axes:
        for row, n_rows in zip(axes, sizes, strict=True):
            for panel, table in zip(row, tables, strict=True):
                chosen = pictures.pick(points, table=table, n_rows=n_rows)
                names = (TUNED, PAPER, MAJORITY)
                pictures.lines(panel, chosen, x="epsilon", series="variant", names=names, log=True)
                panel.set(title=f"{table}, {n_rows:,} rows", xlabel="ε")
            row[0].set_ylabel("Accuracy (%)")
        pictures.legend(axes[0][0])


def main() -> None:
    given = record.options(__doc__, learners=(LEARNERS,))
    found = record.measured(
        given, NAME, KEYS,
        lambda: trials.run(trial, tasks(given), processes=given.processes, title="Tuning"),
    )  # fmt: skip
    figure = record.save(
        given, NAME, "The tables that tuned was tuned on",
        f"Training rows drawn at random, the same for both variants, and 40,000 other rows to test; "
        f"{given.trials or N_RUNS} runs a point, each with rows and seeded draws of its own; means and standard "
        "deviations; one-tailed paired t-tests. The tree is scikit-learn's, learned from cells with their counts as "
        "weights. Domains are declared in reproduction/lab/declared_studies.py.",
        found, {LEARNERS: claims(found)}, table=tabulate(found),
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
