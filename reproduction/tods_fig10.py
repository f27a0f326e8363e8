"""Figure 10 of [LDR08]: one anonymization for several class labels, k = 25."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from lab import pictures, record, studies, trials
from lab.record import Claim, Finding, Measured

from sfumato.randomness import seeded_block

NAME = "tods_fig10"
FUNCTIONS = ("C2", "C3", "C4", "C5", "C6", "C7", "C9")
VARIED = ("C2", "C3", "C4", "C5", "C6")
LABELS = "ABCDEFG"
MODELS = ("decision-tree", "naive-bayes")
N_ROWS, K, N_ORDERS = 1_000, 25, 25

Order = tuple[str, ...]


def orders(n: int, seed: int) -> tuple[Order, ...]:
    """Which function is A, which B, and so on."""
    random = seeded_block(seed, 2**32)
    return tuple(tuple(random.permutation(FUNCTIONS).tolist()) for _ in range(n))


def trial(pair: int, given: tuple[Order, ...], learners: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    """All orders on one pair of tables; each set of functions is anonymized for and judged once."""
    random = seeded_block(seed, pair)
    train, test = studies.agrawal_pair({f: f for f in FUNCTIONS}, N_ROWS, random, vary=VARIED)
    targets = {f: trials.truth(train, train.table, test.table, f) for f in FUNCTIONS}
    accuracy: dict[tuple[frozenset[str], str, str, str], float] = {}
    for included in {frozenset(order[: n + 1]) for order in given for n in range(len(order))}:
        policy = train.policy("InfoGain", k=K, targets=tuple(sorted(included)))
        points = trials.recode(train.table, test.table, policy).points(train.features)
        for learner in learners:
            for model in MODELS:
                for function, target in targets.items():
                    judged = trials.judge(model, learner, points, target, seed=pair)
                    accuracy[included, function, model, learner] = judged.test
    return [
        {
            "trial": pair,
            "value": float(
                np.mean([accuracy[frozenset(o[: n + 1]), o[place], model, learner] for o in given])
            ),
            "learners": learner,
            "model": model,
            "included": n + 1,
            "label": LABELS[place],
        }
        for learner in learners
        for model in MODELS
        for n in range(len(LABELS))
        for place in range(len(LABELS))
    ]


def claims(found: Measured, learners: str) -> list[Claim]:
    def accuracy(model: str, label: str, included: range) -> Any:
        return np.mean(
            [found.of(learners=learners, model=model, included=n, label=label) for n in included], axis=0
        )

    n_labels = len(LABELS)
    out = []
    for model in MODELS:
        name = "J48" if model == "decision-tree" else "Naive Bayes"
        inside: list[Finding] = []
        diluted: list[Finding] = []
        for place, label in enumerate(LABELS):
            if place:
                inside.append(
                    record.greater(
                        f"model {label}, included > not included",
                        accuracy(model, label, range(place + 1, n_labels + 1)),
                        accuracy(model, label, range(1, place + 1)),
                        alpha=0.001,
                    )
                )
            if place < n_labels - 1:
                diluted.append(
                    record.greater(
                        f"model {label}, among the first {place + 1} > among all {n_labels}",
                        accuracy(model, label, range(place + 1, place + 2)),
                        accuracy(model, label, range(n_labels, n_labels + 1)),
                        alpha=0.05,
                    )
                )
        out += [
            Claim(
                f"a model that is included in the anonymization is more accurate than when it is not ({name})",
                tuple(inside),
            ),
            Claim(
                f"the more models are included, the lower the accuracy of each ({name})",
                tuple(diluted),
            ),
        ]  # fmt: skip
    return out


def draw(figure: record.Figure, out: Path) -> None:
    learners = list(figure.claims)
    n = len(LABELS)
    with pictures.sheet(out / f"{NAME}.png", len(learners), len(MODELS), size=(4.2, 3.3)) as axes:
        for row, learner in zip(axes, learners, strict=True):
            for panel, model in zip(row, MODELS, strict=True):
                grid = np.zeros((n, n))
                for point in pictures.pick(figure.points, learners=learner, model=model):
                    grid[point["included"] - 1, LABELS.index(point["label"])] = point["mean"]
                panel.imshow(grid, origin="lower", cmap="YlGnBu", aspect="auto", alpha=0.75)
                for (y, x), value in np.ndenumerate(grid):
                    panel.text(x, y, f"{value:.3f}", ha="center", va="center", fontsize=7)
                steps = [(x - 0.5, x - 0.5) for x in range(n + 1)]
                corners = [corner for x, y in steps for corner in ((x, y), (x + 1, y))][:-1]
                panel.plot(*zip(*corners, strict=True), color="black", linewidth=2, clip_on=False)
                panel.set_xticks(range(n), LABELS)
                panel.set_yticks(range(n), [LABELS[: i + 1] for i in range(n)])
                panel.grid(visible=False)
                panel.set(title=pictures.NAMES[model, learner], xlabel="Model", ylabel="Optimized for")


def main() -> None:
    given = record.options(__doc__)
    pairs = given.trials or (2 if given.quick else 100)
    n_orders = 3 if given.quick else N_ORDERS
    drawn = orders(n_orders, given.seed)
    tasks = [(pair, drawn, tuple(given.learners), given.seed) for pair in range(pairs)]
    found = record.measured(
        given, NAME, ("learners", "model", "included", "label"),
        lambda: trials.run(trial, tasks, processes=given.processes, title="Figure 10"),
    )  # fmt: skip
    figure = record.save(
        given, NAME, "Several target models, k = 25",
        f"Test set accuracy (above the bold line: the model is among those optimized for). {pairs} pairs of "
        f"{N_ROWS:,} rows, each with all of {n_orders} random orders of C2 to C7 and C9 as models A to G; the "
        "constants of C2 to C6 are drawn for each pair.",
        found, {learners: claims(found, learners) for learners in given.learners},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
