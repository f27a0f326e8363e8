"""Beside figure 4 of [MCFY11]: is DiffGen more accurate in 10-fold cross-validation than with two thirds of the rows?"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import diffgen_fig4
import numpy as np
from diffgen_fig4 import DIFFGEN, EPSILONS, MODEL, ORIGINAL
from lab import pictures, private, record, trials
from lab.private import FOLD, N_FOLDS, THIRDS, Split
from lab.record import Claim, Measured

NAME = "diffgen_fig4_split"
LEARNERS = "scikit-learn"
N_REPETITIONS = 10
SPLITS = {FOLD: "10-fold cross-validation", THIRDS: "two thirds of the rows"}
KEYS = ("learners", "method", "split", "epsilon")


def trial(method: str, split: Split, epsilon: float | str, number: int, seed: int) -> list[dict[str, Any]]:
    """DiffGen, or the rows as they are, learned from one part of the rows and judged on the other."""
    if method == ORIGINAL:
        entries = diffgen_fig4.trial_without_noise(method, split, (LEARNERS,), seed)
    else:
        entries = diffgen_fig4.trial(method, split, float(epsilon), (LEARNERS,), seed)
    return [{**entry, "trial": number, "split": SPLITS[split.kind], "epsilon": epsilon} for entry in entries]


def tasks(given: Namespace) -> list[tuple[Any, ...]]:
    """As many random thirds as folds."""
    n_folds, n_rows = (2, 1_500) if given.quick else (N_FOLDS, None)
    epsilons = (1, 4) if given.quick else EPSILONS
    out = []
    for repetition in range(given.trials or (1 if given.quick else N_REPETITIONS)):
        for fold in range(n_folds):
            number = repetition * N_FOLDS + fold
            for split in (Split(FOLD, repetition, fold, n_rows), Split(THIRDS, number, 0, n_rows)):
                out += [(DIFFGEN, split, epsilon, number, given.seed) for epsilon in epsilons]
                out.append((ORIGINAL, split, "", number, given.seed))
    return out


def claims(found: Measured) -> list[Claim]:
    asked = list(dict.fromkeys((point["method"], point["epsilon"]) for point in found.points()))

    def means(method: str, epsilon: float | str, split: str) -> Any:
        """One for each repetition: the folds of one share most of their rows."""
        values = found.of(learners=LEARNERS, method=method, split=split, epsilon=epsilon)
        n = N_FOLDS if len(values) % N_FOLDS == 0 else 1
        return values.reshape(-1, n).mean(axis=1)

    return [
        Claim(
            "10-fold cross-validation yields higher accuracy, since more training records are available",
            tuple(
                record.greater(
                    method if epsilon == "" else f"{method}, epsilon = {epsilon}",
                    *(means(method, epsilon, split) for split in SPLITS.values()),
                    alpha=0.05,
                )
                for method, epsilon in asked
            ),
        )
    ]


def draw(figure: record.Figure, out: Path) -> None:
    with pictures.sheet(out / f"{NAME}.png", 1, 1, size=(5.6, 3.4)) as axes:
        panel = axes[0][0]
        for split, color in zip(SPLITS.values(), pictures.SHADES[2:0:-1], strict=True):
            chosen = pictures.pick(figure.points, split=split)
            line = sorted(pictures.pick(chosen, method=DIFFGEN), key=lambda point: point["epsilon"])
            panel.errorbar(
                [point["epsilon"] for point in line], [point["mean"] for point in line],
                yerr=[point["half_width"] for point in line], color=color, marker="o", markersize=4, linewidth=1.3,
                capsize=2, label=f"DiffGen, {split}",
            )  # fmt: skip
            (level,) = pictures.pick(chosen, method=ORIGINAL)
            panel.axhline(
                level["mean"], color=color, linestyle=":", linewidth=1.1, label=f"Original rows, {split}"
            )
        panel.set(title=pictures.NAMES[MODEL, LEARNERS], xlabel="Privacy budget ε", ylabel="Accuracy (%)")
        panel.legend(fontsize=8)


def main() -> None:
    given = record.options(__doc__ or "", learners=(LEARNERS,), more=private.more)
    found = record.measured(
        given, NAME, KEYS,
        lambda: trials.run(trial, tasks(given), processes=given.processes, title="Figure 4, splits"),
    )  # fmt: skip
    n = len(np.unique([entry["trial"] for entry in found.trials()]))
    figure = record.save(
        given, NAME, "Cross-validation and two thirds of the rows",
        f"Adult; DiffGen with Max and h = {diffgen_fig4.H}, learned from nine tenths of the rows ({n} folds) or from two "
        f"thirds ({n} random parts), judged on the others; draws seeded. The paper makes the remark of its figure 4, "
        "where figure 3 has two thirds.",
        found, {LEARNERS: claims(found)},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
