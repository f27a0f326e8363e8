"""Figure 8 of [LDR08]: conditional entropy and average group size of the training folds of figure 7."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from lab import pictures, record, studies, trials
from lab.record import Claim, Finding, Measured
from lab.trials import Fold

from sfumato.evaluation import measures

NAME = "tods_fig08"
ON_RECORD = record.ROOT / "docs" / "reproduction"
METHODS = ("InfoGain", "TDS", "Median")
KS = (2, 5, 10, 25, 50, 100, 250, 500)
ENTROPY, SIZE = "conditional entropy", "average group size"
COMPARABLE = 2.0
"""Group sizes within this factor are called comparable."""

GENERALLY = 0.75
"""Of the pairs of releases: what is so in this share of them is generally so."""


def trial(fold: Fold, k: int) -> list[dict[str, Any]]:
    part = fold.open()
    label = part.truth(studies.CLASS).train
    out = []
    for method in METHODS:
        groups = part.recode(part.study.policy(method, k=k)).partition
        found = {
            ENTROPY: measures.conditional_entropy(groups.of_row(), label),
            SIZE: measures.average_group_size(groups.size),
        }
        out += [
            {"trial": fold.number, "value": value, "measure": name, "method": method, "k": k}
            for name, value in found.items()
        ]
    return out


Accuracies = dict[tuple[str, str], dict[tuple[int, str], float]]


def claims(found: Measured, ks: tuple[int, ...], accuracy: Accuracies) -> list[Claim]:
    sizes, entropies = [], []
    for k in ks:
        ours, theirs = (
            found.of(measure=SIZE, method=method, k=k).mean() for method in ("InfoGain", "Median")
        )
        factor = max(ours, theirs) / min(ours, theirs)
        text = f"{ours:.1f} and {theirs:.1f} rows, a factor of {factor:.2f}"
        sizes.append(Finding(f"k = {k}, within a factor of {COMPARABLE:g}", bool(factor <= COMPARABLE), text))
        entropies.append(
            record.greater(
                f"k = {k}, entropy of Median > of InfoGain",
                found.of(measure=ENTROPY, method="Median", k=k),
                found.of(measure=ENTROPY, method="InfoGain", k=k),
                alpha=0.001,
            )
        )
    return [
        Claim("Median and InfoGain Mondrian have groups of comparable size", tuple(sizes)),
        Claim("but different entropy", tuple(entropies)),
        Claim(
            "low conditional entropy generally indicates a more accurate model",
            tuple(_indicates(found, ks, accuracy)),
            from_means=True,
        ),
    ]


def _indicates(found: Measured, ks: Sequence[int], accuracy: Accuracies) -> Iterator[Finding]:
    """Of two releases, is the one with lower entropy that of the more accurate model? All pairs, and those of one k."""
    entropy = {(k, m): float(found.of(measure=ENTROPY, method=m, k=k).mean()) for k in ks for m in METHODS}
    for (model, learners), scores in accuracy.items():
        releases = [release for release in entropy if release in scores]
        for what, of_one_k in (("all releases", False), ("releases of one k", True)):
            pairs = [
                (a, b) for a, b in combinations(releases, 2) if a[0] == b[0] or not of_one_k
            ]  # fmt: skip
            agree = sum((entropy[a] - entropy[b]) * (scores[b] - scores[a]) > 0 for a, b in pairs)
            yield Finding(
                f"{pictures.NAMES[model, learners]}, {what}",
                agree >= GENERALLY * len(pairs),
                f"in {agree} of {len(pairs)} pairs the release with lower entropy is that of the more accurate model",
            )


def accuracies(folder: Path, ks: Sequence[int]) -> Accuracies:
    """Test set accuracy on Census from the record of figure 7: by model and learners, then by k and method."""
    out: Accuracies = {}
    for point in record.read_points(folder / "tods_fig07.csv"):
        if (point["study"], point["rows"]) == ("Census", "test") and point["k"] in ks:
            of_model = out.setdefault((point["model"], point["learners"]), {})
            of_model[point["k"], point["method"]] = point["mean"]
    return out


def draw(figure: record.Figure, out: Path) -> None:
    with pictures.sheet(out / f"{NAME}.png", 1, 2, size=(4.2, 3)) as axes:
        for panel, name in zip(axes[0], (ENTROPY, SIZE), strict=True):
            chosen = pictures.pick(figure.points, measure=name)
            pictures.lines(panel, chosen, x="k", series="method", names=METHODS, log=True)
            panel.set(xlabel="k", ylabel=name.capitalize())
        axes[0][1].set_yscale("log")
        pictures.legend(axes[0][0])


def main() -> None:
    given = record.options(__doc__, learners=())
    ks = given.at or ((5, 10, 50) if given.quick else KS)
    folds = trials.folds("Census", quick=given.quick, seed=given.seed)
    tasks = [(fold, k) for k in ks for fold in folds]
    found = record.measured(
        given, NAME, ("measure", "method", "k"),
        lambda: trials.run(trial, tasks, processes=given.processes, title="Figure 8"),
    )  # fmt: skip
    figure = record.save(
        given, NAME, "General-purpose measures on real data",
        f"The training parts of the {len(folds)} folds of Census, as in figure 7. Entropies are set beside the "
        "accuracies that are on record there.",
        found, {record.NO_LEARNERS: claims(found, ks, accuracies(ON_RECORD, ks))},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
