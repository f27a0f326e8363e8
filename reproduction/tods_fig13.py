"""Figure 13 of [LDR08]: what unrelated selections and dropped features cost a decision tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from lab import pictures, record, studies, trials
from lab.record import Claim, Finding, Measured
from lab.trials import Fold, Points

from sfumato.evaluation import points
from sfumato.randomness import seeded_block

NAME = "tods_fig13"
SELECTIONS, PROJECTION = "selections", "dropped features"
N_GROUPS = (1, 2, 5, 10, 20, 50)
K_SELECTIONS, K_PROJECTION = 50, 100
GROUPED = ("InfoGain", "Median")
METHODS = ("InfoGain", "TDS", "Median")
MODEL = "decision-tree"
SLIGHT = 0.02
"""A loss of accuracy that is called slight: several selections can be incorporated without large effects."""


def trial_of_selections(fold: Fold, n_groups: int, learners: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows in random groups, each anonymized apart; one tree learns from all of them."""
    part = fold.open()
    target = part.truth(studies.CLASS)
    random = seeded_block(fold.seed, 10 + fold.number)
    of_train = random.integers(n_groups, size=part.train.num_rows)
    of_test = random.integers(n_groups, size=part.test.num_rows)
    out = []
    for method in GROUPED:
        policy = part.study.policy(method, k=K_SELECTIONS)
        parts = []
        for group in range(n_groups):
            train, test = part.train.filter(of_train == group), part.test.filter(of_test == group)
            parts.append(trials.recode(train, test, policy).columns)
        seen = _together(parts, part.study.features, of_train, of_test)
        for learner in learners:
            value = trials.judge(MODEL, learner, seen, target, seed=fold.number).test
            out.append(_entry(fold, learner, SELECTIONS, method, n_groups, value))
    return out


def _together(
    parts: list[Any], features: tuple[str, ...], of_train: trials.Rows, of_test: trials.Rows
) -> Points:
    """The columns of all groups, each row at its own place again."""
    n_train, n_rows = len(of_train), len(of_train) + len(of_test)
    places = [
        np.concatenate([np.flatnonzero(of_train == group), n_train + np.flatnonzero(of_test == group)])
        for group in range(len(parts))
    ]
    columns: dict[str, points.Column] = {}
    for name in features:
        for key in parts[0][name]:
            values = np.empty(n_rows)
            for place, columns_of in zip(places, parts, strict=True):
                values[place] = columns_of[name][key].cells
            columns[key] = points.NumberColumn(values)
    return Points.of(columns, n_train)


def trial_of_projection(fold: Fold, method: str, learners: tuple[str, ...]) -> list[dict[str, Any]]:
    """Features dropped one by one, the most predictive first; the release has them all."""
    part = fold.open()
    target = part.truth(studies.CLASS)
    ranking = trials.ranked(part.study, part.train, studies.CLASS)
    recoded = None if method == "Original" else part.recode(part.study.policy(method, k=K_PROJECTION))
    out = []
    for n_dropped in range(len(ranking)):
        names = ranking[n_dropped:]
        seen = part.original(names) if recoded is None else recoded.points(names)
        for learner in learners:
            value = trials.judge(MODEL, learner, seen, target, seed=fold.number).test
            out.append(_entry(fold, learner, PROJECTION, method, n_dropped, value))
    return out


def _entry(fold: Fold, learners: str, side: str, method: str, n: int, value: float) -> dict[str, Any]:
    return {
        "trial": fold.number, "value": value, "learners": learners, "side": side, "study": fold.study,
        "method": method, "n": n,
    }  # fmt: skip


def claims(found: Measured, learners: str, groups: tuple[int, ...]) -> list[Claim]:
    def accuracy(side: str, study: str, method: str, n: int) -> Any:
        return found.of(learners=learners, side=side, study=study, method=method, n=n)

    loses, slight = [], []
    for method in GROUPED:
        whole = accuracy(SELECTIONS, "Census", method, 1)
        loses.append(
            record.greater(
                f"{method}, one group > {groups[-1]} groups",
                whole, accuracy(SELECTIONS, "Census", method, groups[-1]), alpha=0.05,
            )
        )  # fmt: skip
        for n in groups[1:]:
            loss = float(whole.mean() - accuracy(SELECTIONS, "Census", method, n).mean())
            slight.append(
                Finding(
                    f"{method}, {n} groups, a loss of at most {SLIGHT:g}", loss <= SLIGHT, f"loss {loss:.4f}"
                )
            )
    steepest = [
        record.greater(
            f"{study}, mean loss over the first half of the features, TDS > {other}",
            *(
                np.mean(
                    [
                        accuracy(PROJECTION, study, method, 0) - accuracy(PROJECTION, study, method, n)
                        for n in range(1, 5)
                    ],
                    axis=0,
                )
                for method in ("TDS", other)
            ),
            alpha=0.05,
        )
        for study in ("Census", "Contraceptives")
        for other in ("InfoGain", "Median")
    ]
    return [
        Claim(
            "accuracy decreases slightly with the number of selections, several cost little (J48)",
            (*loses, *slight),
        ),
        Claim(
            "as the most predictive features are dropped, accuracy falls fastest with TDS (J48)",
            tuple(steepest),
        ),
    ]  # fmt: skip


def draw(figure: record.Figure, out: Path) -> None:
    learners = list(figure.claims)
    cells = ((SELECTIONS, "Census"), (PROJECTION, "Census"), (PROJECTION, "Contraceptives"))
    with pictures.sheet(out / f"{NAME}.png", len(learners), len(cells), size=(3.8, 2.8)) as axes:
        for row, learner in zip(axes, learners, strict=True):
            for panel, (side, study) in zip(row, cells, strict=True):
                chosen = pictures.pick(figure.points, learners=learner, side=side, study=study)
                pictures.lines(
                    panel,
                    chosen,
                    x="n",
                    series="method",
                    names=("Original", *METHODS),
                    log=side == SELECTIONS,
                )
                k = K_SELECTIONS if side == SELECTIONS else K_PROJECTION
                panel.set(title=f"{study}, k = {k}\n{pictures.NAMES[MODEL, learner]}")
                panel.set_xlabel("Groups anonymized apart" if side == SELECTIONS else "Features dropped")
            row[0].set_ylabel("Test set accuracy")
        pictures.legend(axes[0][1])


def main() -> None:
    given = record.options(__doc__)
    learners = tuple(given.learners)
    groups = given.at or ((1, 3) if given.quick else N_GROUPS)
    folds = {s: trials.folds(s, quick=given.quick, seed=given.seed) for s in ("Census", "Contraceptives")}
    tasks: list[Any] = [(trial_of_selections, fold, n, learners) for n in groups for fold in folds["Census"]]
    tasks += [
        (trial_of_projection, fold, method, learners)
        for method in ("Original", *METHODS)
        for study in folds
        for fold in folds[study]
    ]
    found = record.measured(
        given, NAME, ("learners", "side", "study", "method", "n"),
        lambda: trials.run(trials.call, tasks, processes=given.processes, title="Figure 13"),
    )  # fmt: skip
    figure = record.save(
        given, NAME, "Selections and projections",
        f"{len(folds['Census'])} folds of {folds['Census'][0].n_rows:,} rows of Census and of Contraceptives. Left: "
        "training and test rows fall into random groups, each training group is anonymized apart, and one tree "
        "learns from all recoded training rows (the paper says test set, a slip). Right: features ranked by "
        "information gain on the training rows, dropped most predictive first.",
        found, {learner: claims(found, learner, groups) for learner in learners},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
