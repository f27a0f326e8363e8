"""Figure 7 of [LDR08] once more, with as many areas as its Census table has: 57 in place of 811."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tods_fig07
from lab import pictures, record, rothko, trials
from lab.trials import FEW_AREAS

NAME = "tods_fig07_areas"
MODELS = {5: ("decision-tree", "naive-bayes"), 10: (tods_fig07.FOREST,)}
"""The models that the paper names a level for, by k."""


def tasks(given: Any) -> list[tuple[Any, ...]]:
    """What the claims need, of each fold and learner: models at their k, then the forest on the original rows."""
    folds = trials.folds(FEW_AREAS, quick=given.quick, seed=given.seed)
    asked: list[tuple[Any, ...]] = [
        (tods_fig07.trial, fold, k, (learner,), models)
        for k, models in MODELS.items()
        for learner in given.learners
        for fold in folds
    ]
    asked += [
        (tods_fig07.trial_of_original, fold, (learner,), (tods_fig07.FOREST,))
        for learner in given.learners
        for fold in folds
    ]
    folder = rothko.folder_of(given, NAME)
    return [
        (folder, json.dumps([work.__name__, *map(str, arguments)]), given.fresh, work, *arguments)
        for work, *arguments in asked
    ]


def draw(figure: record.Figure, out: Path) -> None:
    learners = list(figure.claims)
    cells = [(k, model) for k, models in MODELS.items() for model in models]
    with pictures.sheet(out / f"{NAME}.png", len(learners), len(cells)) as axes:
        for row, learner in zip(axes, learners, strict=True):
            for panel, (k, model) in zip(row, cells, strict=True):
                chosen = pictures.pick(figure.points, learners=learner, model=model, rows="test")
                of_k = [point for point in chosen if point["k"] == k]
                for at, method in enumerate(tods_fig07.METHODS):
                    (point,) = pictures.pick(of_k, method=method)
                    panel.errorbar(
                        [at], [point["mean"]], yerr=[point["half_width"]], fmt="o", capsize=3,
                        color=pictures.COLORS[method],
                    )  # fmt: skip
                panel.set(title=f"{pictures.NAMES[model, learner]}, k = {k}", xlim=(-0.5, 2.5))
                panel.set_xticks(range(3), tods_fig07.METHODS)
            row[0].set_ylabel("Test set accuracy")


def main() -> None:
    given = record.options(__doc__ or "")
    found = record.measured(
        given, NAME, ("learners", "study", "model", "method", "k", "rows"),
        lambda: trials.run(rothko.kept, tasks(given), processes=given.processes, title="Figure 7, few areas"),
    )  # fmt: skip
    figure = record.save(
        given, NAME, "Classifiers on real data, 57 areas",
        "The folds of Census of figure 7, but PUMAs that are neighbours by number are put together within each state, "
        "14 or 15 of them to an area: 57 areas, as many values as the paper's Region has. Only what the claims of the "
        f"paper compare was measured: k = 5 and 10, with the learners of {' and '.join(given.learners)}.",
        found,
        {learner: tods_fig07.census_claims(found, learner, FEW_AREAS) for learner in given.learners},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
