"""Figure 6 of [LDR08]: classifiers learned from Agrawal's table anonymized by four ways, k = 25."""

from __future__ import annotations

from typing import Any

from lab import pictures, record, studies, trials
from lab.record import Claim, Measured

from sfumato.randomness import seeded_block

NAME = "tods_fig06"
FUNCTIONS = ("C2", "C4", "C5", "C6", "C7", "C9")
METHODS = ("InfoGain", "TDS", "Median")
MODELS = ("decision-tree", "naive-bayes", "random-forest", "linear-svm")
N_ROWS, K = 1_000, 25


def trial(function: str, pair: int, learners: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    """All methods, models and learners on one pair of tables."""
    random = seeded_block(seed, 1_000 * FUNCTIONS.index(function) + pair)
    train, test = studies.agrawal_pair({studies.CLASS: function}, N_ROWS, random, vary=studies.VARIED)
    target = trials.truth(train, train.table, test.table, studies.CLASS)
    seen = {"Original": trials.original(train, train.table, test.table, train.features)}
    for method in METHODS:
        recoded = trials.recode(train.table, test.table, train.policy(method, k=K))
        seen[method] = recoded.points(train.features)
    return [
        {
            "trial": pair,
            "value": trials.judge(model, learner, points, target, seed=pair).test,
            "learners": learner,
            "model": model,
            "function": function,
            "method": method,
        }
        for learner in learners
        for model in MODELS
        for method, points in seen.items()
    ]


def claims(found: Measured, learners: str) -> list[Claim]:
    def accuracy(model: str, function: str, method: str) -> Any:
        return found.of(learners=learners, model=model, function=function, method=method)

    def against(model: str, functions: tuple[str, ...]) -> tuple[record.Finding, ...]:
        return tuple(
            record.greater(
                f"{function}, InfoGain > {other}",
                accuracy(model, function, "InfoGain"),
                accuracy(model, function, other),
                alpha=0.001,
            )
            for function in functions
            for other in ("TDS", "Median")
        )

    names = {"naive-bayes": "Naive Bayes", "random-forest": "random forest", "linear-svm": "SVM"}
    rest = [
        Claim(
            f"InfoGain Mondrian consistently outperforms TDS and Median Mondrian, by the same test ({names[model]})",
            against(model, FUNCTIONS),
        )
        for model in MODELS[1:]
    ]
    first = "InfoGain Mondrian > TDS and > Median Mondrian for every function, one-tailed p < .001 (J48)"
    return [Claim(first, against("decision-tree", FUNCTIONS)), *rest]


def draw(figure: record.Figure, out: Any) -> None:
    learners = list(figure.claims)
    with pictures.sheet(out / f"{NAME}.png", len(MODELS), len(learners), size=(5.2, 2.3)) as axes:
        for row, model in zip(axes, MODELS, strict=True):
            for panel, learner in zip(row, learners, strict=True):
                chosen = pictures.pick(figure.points, learners=learner, model=model)
                pictures.bars(
                    panel, chosen, groups=FUNCTIONS, series=("Original", *METHODS), group="function"
                )
                panel.set(title=pictures.NAMES[model, learner], ylabel="Test set accuracy", ylim=(0.5, 1))
        pictures.legend(axes[0][0])


def main() -> None:
    given = record.options(__doc__)
    pairs = given.trials or (3 if given.quick else 100)
    tasks = [(f, pair, tuple(given.learners), given.seed) for pair in range(pairs) for f in FUNCTIONS]
    found = record.measured(
        given, NAME, ("learners", "model", "function", "method"),
        lambda: trials.run(trial, tasks, processes=given.processes, title="Figure 6"),
    )  # fmt: skip
    figure = record.save(
        given, NAME, "Classifiers on synthetic data, k = 25",
        f"{pairs} independent pairs of {N_ROWS:,} training and {N_ROWS:,} test rows for each function; the constants "
        "of C2, C4 and C6 are drawn for each pair.",
        found, {learners: claims(found, learners) for learners in given.learners},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
