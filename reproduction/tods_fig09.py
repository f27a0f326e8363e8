"""Figure 9 of [LDR08]: wages predicted from the Census table, anonymized for regression or by medians."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab import pictures, record, studies, trials
from lab.record import Claim, Finding, Measured
from lab.trials import Fold, Part, Points

from sfumato.evaluation import points
from sfumato.table.opening import open_table

NAME = "tods_fig09"
METHODS = ("Regression", "Median")
MODELS = ("regression-tree", "linear-regression")
KS = (2, 5, 10, 25, 50, 100, 250, 500)


def trial(fold: Fold, k: int, learners: tuple[str, ...]) -> list[dict[str, Any]]:
    part = fold.open()
    seen = {
        method: part.recode(part.study.policy(method, k=k, targets=(studies.WAGE,))).points(
            part.study.features
        )
        for method in METHODS
    }
    return _judged(fold, part, seen, k, learners)


def trial_of_original(fold: Fold, learners: tuple[str, ...]) -> list[dict[str, Any]]:
    """Region enters as its code, a number: as a category it would be 810 columns to a linear regression."""
    part = fold.open()
    sources = [open_table(table) for table in (part.train, part.test)]
    columns = points.read(sources, part.study.schema(), part.study.features)
    columns["region"] = points.NumberColumn(columns["region"].cells.astype(float))
    seen = {"Original": Points.of(columns, part.train.num_rows)}
    return _judged(fold, part, seen, "", learners)


def _judged(
    fold: Fold, part: Part, seen: dict[str, Points], k: int | str, learners: tuple[str, ...]
) -> list[dict[str, Any]]:
    target = part.truth(studies.WAGE)
    return [
        {
            "trial": fold.number,
            "value": trials.judge(model, learner, each, target, seed=fold.number).test,
            "learners": learner,
            "model": model,
            "method": method,
            "k": k,
        }
        for learner in learners
        for model in MODELS
        for method, each in seen.items()
    ]


def claims(found: Measured, learners: str, ks: tuple[int, ...]) -> list[Claim]:
    out = []
    for model in MODELS:
        findings = []
        for k in ks:
            ours, theirs = (found.of(learners=learners, model=model, method=m, k=k) for m in METHODS)
            tested = record.greater("", theirs, ours, alpha=0.05)
            test = tested.statistic.split(", ", 1)[1]
            text = f"{ours.mean():,.0f} against {theirs.mean():,.0f} dollars; Median larger: {test}"
            findings.append(
                Finding(f"k = {k}, Regression <= Median", bool(ours.mean() <= theirs.mean()), text)
            )
        name = "M5P, a regression tree" if model == "regression-tree" else "linear regression"
        out.append(
            Claim(
                f"Regression Mondrian generally leads to better models than Median Mondrian: mean absolute error "
                f"({name})",
                tuple(findings),
            )
        )
    return out


def draw(figure: record.Figure, out: Path) -> None:
    learners = list(figure.claims)
    with pictures.sheet(out / f"{NAME}.png", len(learners), len(MODELS), size=(4.2, 2.8)) as axes:
        for row, learner in zip(axes, learners, strict=True):
            for panel, model in zip(row, MODELS, strict=True):
                chosen = pictures.pick(figure.points, learners=learner, model=model)
                pictures.lines(panel, chosen, x="k", series="method", names=("Original", *METHODS), log=True)
                panel.set(title=pictures.NAMES[model, learner], xlabel="k")
            row[0].set_ylabel("Mean absolute error (dollars)")
        pictures.legend(axes[0][0])


def main() -> None:
    given = record.options(__doc__)
    learners = tuple(given.learners)
    ks = given.at or ((10, 50) if given.quick else KS)
    folds = trials.folds("Census", quick=given.quick, seed=given.seed)
    tasks: list[tuple[Any, ...]] = [(trial_of_original, fold, learners) for fold in folds]
    tasks += [(trial, fold, k, learners) for k in ks for fold in folds]
    found = record.measured(
        given, NAME, ("learners", "model", "method", "k"),
        lambda: trials.run(trials.call, tasks, processes=given.processes, title="Figure 9"),
    )  # fmt: skip
    figure = record.save(
        given, NAME, "Regression on real data",
        f"{len(folds)} folds of {folds[0].n_rows:,} rows of Census, wage as a number. In the original data region is "
        "a number too, its place in the order of areas: as a category it would be 810 columns to a linear regression.",
        found, {learner: claims(found, learner, ks) for learner in learners},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
