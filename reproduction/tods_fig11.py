"""Figure 11 of [LDR08]: privacy against utility, when the class is the sensitive attribute itself."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from lab import pictures, record, studies, trials
from lab.record import Claim, Finding, Measured
from lab.trials import Fold

from sfumato.evaluation import measures
from sfumato.policy.requirements import EntropyDiversity

NAME = "tods_fig11"
LS = (1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 1.95, 1.98)
ENTROPY, ACCURACY = "conditional entropy", "accuracy"
MODEL = "decision-tree"
SLOWLY = 0.05
"""A loss of accuracy from one l to the next of at most this is slow."""


def trial(fold: Fold, l: float, learners: tuple[str, ...]) -> list[dict[str, Any]]:  # noqa: E741 - the paper's name
    part = fold.open()
    require = (EntropyDiversity(l, of=studies.CLASS),)
    policy = part.study.policy("InfoGain", require=require, sensitive=studies.CLASS)
    recoded = part.recode(policy)
    target = part.truth(studies.CLASS)
    entropy = measures.conditional_entropy(recoded.partition.of_row(), target.train)
    points = recoded.points(part.study.features)
    out = []
    for learner in learners:
        accuracy = trials.judge(MODEL, learner, points, target, seed=fold.number).test
        for name, value in ((ENTROPY, entropy), (ACCURACY, accuracy)):
            out.append({"trial": fold.number, "value": value, "learners": learner, "measure": name, "l": l})
    return out


def claims(found: Measured, learners: str, ls: tuple[float, ...]) -> list[Claim]:
    def mean(measure: str, l: float) -> float:  # noqa: E741
        return float(found.of(learners=learners, measure=measure, l=l).mean())

    rises = tuple(
        Finding(
            f"from l = {low:g} to {high:g}", mean(ENTROPY, high) > mean(ENTROPY, low),
            f"{mean(ENTROPY, low):.4f} to {mean(ENTROPY, high):.4f} bits",
        )
        for low, high in pairwise(ls)
    )  # fmt: skip
    falls = record.greater(
        f"accuracy at l = {ls[0]:g} > at l = {ls[-1]:g}",
        found.of(learners=learners, measure=ACCURACY, l=ls[0]),
        found.of(learners=learners, measure=ACCURACY, l=ls[-1]),
        alpha=0.001,
    )
    slow = tuple(
        Finding(
            f"from l = {low:g} to {high:g}, a loss of at most {SLOWLY:g}",
            mean(ACCURACY, low) - mean(ACCURACY, high) <= SLOWLY,
            f"{mean(ACCURACY, low):.4f} to {mean(ACCURACY, high):.4f}",
        )
        for low, high in pairwise(ls)
    )
    return [
        Claim("conditional entropy increases with l", rises),
        Claim("accuracy slowly deteriorates with l (J48)", (falls, *slow)),
    ]


def draw(figure: record.Figure, out: Path) -> None:
    learners = list(figure.claims)
    with pictures.sheet(out / f"{NAME}.png", 1, 1 + len(learners), size=(3.8, 2.8)) as axes:
        first, *rest = axes[0]
        points = [{**point, "series": "InfoGain"} for point in figure.points]
        chosen = pictures.pick(points, learners=learners[0], measure=ENTROPY)
        pictures.lines(first, chosen, x="l", series="series", names=("InfoGain",))
        first.set(xlabel="l", ylabel="Conditional entropy (bits)")
        for panel, learner in zip(rest, learners, strict=True):
            chosen = pictures.pick(points, learners=learner, measure=ACCURACY)
            pictures.lines(panel, chosen, x="l", series="series", names=("InfoGain",))
            panel.set(title=pictures.NAMES[MODEL, learner], xlabel="l", ylabel="Test set accuracy")


def main() -> None:
    given = record.options(__doc__)
    ls = given.at or ((1, 1.5, 1.9) if given.quick else LS)
    folds = trials.folds("Census", quick=given.quick, seed=given.seed)
    tasks = [(fold, l, tuple(given.learners)) for l in ls for fold in folds]  # noqa: E741
    found = record.measured(
        given, NAME, ("learners", "measure", "l"),
        lambda: trials.run(trial, tasks, processes=given.processes, title="Figure 11"),
    )  # fmt: skip
    figure = record.save(
        given, NAME, "Entropy l-diversity of the class itself",
        f"{len(folds)} folds of {folds[0].n_rows:,} rows of Census, InfoGain Mondrian with entropy l-diversity alone "
        "(k = 1). At l = 2 every group would need both classes in equal numbers, which the table as a whole "
        f"does not have: the sweep ends at l = {ls[-1]:g}.",
        found, {learner: claims(found, learner, ls) for learner in given.learners},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
