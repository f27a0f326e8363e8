"""Figure 7 of [LDR08]: classifiers learned from real tables anonymized in three ways, for growing k."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab import pictures, record, studies, trials
from lab.record import Claim, Finding, Measured
from lab.trials import Fold

NAME = "tods_fig07"
METHODS = ("InfoGain", "TDS", "Median")
MODELS = {"Census": ("decision-tree", "naive-bayes", "random-forest"), "Contraceptives": ("decision-tree",)}
KS = (2, 5, 10, 25, 50, 100, 250, 500)
FOREST = "random-forest"
N_FEATURES = 9


def trial(
    fold: Fold, k: int, learners: tuple[str, ...], models: tuple[str, ...] | None = None
) -> list[dict[str, Any]]:
    """Every method and model (or some of the models) on one fold for one k."""
    part = fold.open()
    target = part.truth(studies.CLASS)
    out = []
    for method in METHODS:
        points = part.recode(part.study.policy(method, k=k)).points(part.study.features)
        for learner in learners:
            for model in models or MODELS[fold.study]:
                value = trials.judge(model, learner, points, target, seed=fold.number).test
                out.append(_entry(fold, learner, model, method, k, "test", value))
    return out


def trial_of_original(
    fold: Fold, learners: tuple[str, ...], models: tuple[str, ...] | None = None
) -> list[dict[str, Any]]:
    """The rows as they are; the random forest also on the training rows, and on the most predictive features."""
    part = fold.open()
    target = part.truth(studies.CLASS)
    points = part.original()
    out = []
    for learner in learners:
        for model in models or MODELS[fold.study]:
            found = trials.judge(
                model, learner, points, target, seed=fold.number, on_training=model == FOREST
            )
            out.append(_entry(fold, learner, model, "Original", "", "test", found.test))
            if found.train is not None:
                out.append(_entry(fold, learner, model, "Original", "", "train", found.train))
        if FOREST in (models or MODELS[fold.study]):
            ranking = trials.ranked(part.study, part.train, studies.CLASS)
            for n_features in range(1, len(ranking)):
                best = part.original(ranking[:n_features])
                value = trials.judge(FOREST, learner, best, target, seed=fold.number).test
                method = f"Original, {n_features} best features"
                out.append(_entry(fold, learner, FOREST, method, "", "test", value))
    return out


def _entry(
    fold: Fold, learners: str, model: str, method: str, k: int | str, rows: str, value: float
) -> dict[str, Any]:
    return {
        "trial": fold.number, "value": value, "learners": learners, "study": fold.study, "model": model,
        "method": method, "k": k, "rows": rows,
    }  # fmt: skip


def claims(found: Measured, learners: str) -> list[Claim]:
    trees, forests, overfits, selection = census_claims(found, learners, "Census")
    contraceptives = Claim(
        "InfoGain > Median and > TDS on Contraceptives at k = 10, p < .05 (J48)",
        _ahead(found, learners, "Contraceptives", "decision-tree", 10, 0.05),
    )
    return [trees, forests, contraceptives, overfits, selection]


def census_claims(found: Measured, learners: str, study: str) -> list[Claim]:
    """What the paper says of Census; ``study`` names the table that stands in for it."""

    def forest(method: str, k: int | str, rows: str = "test") -> Any:
        return found.of(learners=learners, study=study, model=FOREST, method=method, k=k, rows=rows)

    everything = forest("Original", "")
    fewer = []
    for n in range(1, N_FEATURES):
        tested = record.greater(
            f"the {n} best features do not beat all {N_FEATURES}",
            forest(f"Original, {n} best features", ""),
            everything,
            alpha=0.05,
        )
        fewer.append(Finding(tested.what, not tested.holds, tested.statistic))
    overfits = record.greater(
        f"{study}, original data, accuracy on training rows > on test rows",
        forest("Original", "", "train"), everything, alpha=0.001,
    )  # fmt: skip
    helps = record.greater(
        f"{study}, k = 10, InfoGain > original data", forest("InfoGain", 10), everything, alpha=0.05
    )
    trees = [
        finding
        for model in ("decision-tree", "naive-bayes")
        for finding in _ahead(found, learners, study, model, 5, 0.02)
    ]
    return [
        Claim("InfoGain > Median and > TDS on Census at k = 5, p < .02 (J48, Naive Bayes)", tuple(trees)),
        Claim(
            "the same at k = 10 for random forests, p < .02", _ahead(found, learners, study, FOREST, 10, 0.02)
        ),
        Claim(
            "a random forest overfits the original data (97% on training rows, 73% on test rows), and does better "
            "on anonymized data",
            (overfits, helps),
        ),
        Claim(
            "feature selection by information gain does not help it, for any number of attributes",
            tuple(fewer),
        ),
    ]


def _ahead(
    found: Measured, learners: str, study: str, model: str, k: int, alpha: float
) -> tuple[Finding, ...]:
    """Is InfoGain ahead of both others?"""
    accuracy = {
        method: found.of(learners=learners, study=study, model=model, method=method, k=k, rows="test")
        for method in METHODS
    }
    return tuple(
        record.greater(
            f"{study}, {model.replace('-', ' ')}, k = {k}, InfoGain > {other}",
            accuracy["InfoGain"], accuracy[other], alpha=alpha,
        )
        for other in ("Median", "TDS")
    )  # fmt: skip


def draw(figure: record.Figure, out: Path) -> None:
    learners = list(figure.claims)
    cells = [(study, model) for study, models in MODELS.items() for model in models]
    with pictures.sheet(out / f"{NAME}.png", len(learners), len(cells)) as axes:
        for row, learner in zip(axes, learners, strict=True):
            for panel, (study, model) in zip(row, cells, strict=True):
                chosen = pictures.pick(figure.points, learners=learner, study=study, model=model, rows="test")
                pictures.lines(panel, chosen, x="k", series="method", names=("Original", *METHODS), log=True)
                panel.set(title=f"{study}\n{pictures.NAMES[model, learner]}", xlabel="k")
            row[0].set_ylabel("Test set accuracy")
        pictures.legend(axes[0][0])


def main() -> None:
    given = record.options(__doc__)
    learners = tuple(given.learners)
    ks = given.at or ((5, 10, 50) if given.quick else KS)
    folds = [fold for study in MODELS for fold in trials.folds(study, quick=given.quick, seed=given.seed)]
    tasks: list[tuple[Any, ...]] = [(trial_of_original, fold, learners) for fold in folds]
    tasks += [(trial, fold, k, learners) for k in ks for fold in folds]
    found = record.measured(
        given, NAME, ("learners", "study", "model", "method", "k", "rows"),
        lambda: trials.run(trials.call, tasks, processes=given.processes, title="Figure 7"),
    )  # fmt: skip
    figure = record.save(
        given, NAME, "Classifiers on real data",
        f"{folds[0].n_folds} folds of {folds[0].n_rows:,} rows of Census and of 1,473 of Contraceptives. The paper "
        "gives no list of k; these are chosen.",
        found, {learner: claims(found, learner) for learner in learners},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
