"""Beside the figures of [MCFY11]: contingency tables, cuts that the owner fixes, and two makers of synthetic rows.

A contingency table counts every combination of values. A cut that the owner fixes costs nothing: all of epsilon goes on
the counts. AIM [MMSM22] and MST [MMS21] are (epsilon, delta)-differentially private, a weaker promise than DiffGen's;
they run in an environment of their own, and only on request (``--peers``).
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lab import pictures, private, record
from lab.private import UCI, Codes, Split
from lab.record import Claim, Finding, Measured
from numpy.typing import NDArray
from peers import ask
from peers.ask import AIM, MST, Job

from sfumato.declared import HeldRows
from sfumato.diffgen_policy import LEAVES, PAPER, TUNED, Cut, exact_epsilon
from sfumato.policy import DiffGenOptions
from sfumato.privacy.mechanisms import Mechanisms, noiseless
from sfumato.specialization.diffgen import Drawn, draw

NAME = "diffgen_extra"
LEARNERS = "scikit-learn"
"""The one learner: J48 takes cells written out as rows, of which a contingency table has millions."""

EPSILONS = (0.1, 0.25, 0.5, 1)
N_RUNS = 10
N_PEER_RUNS = 3

CONTINGENCY = "Contingency table"
AS_TUNED, AS_PUBLISHED = "DiffGen, tuned", "DiffGen, paper"
ORIGINAL, MAJORITY = "Original", "Most frequent class"
IN_BINS = "Original, in bins"
VARIANTS = {AS_TUNED: TUNED, AS_PUBLISHED: PAPER}

CHOSEN = ("education", "marital-status", "occupation", "sex", "age")
"""What a contingency table is of: the first 3, 4 or 5."""

SIZES = (3, 4, 5)
ALL = len(private.COLUMNS)

OWNERS: Mapping[str, Mapping[str, Cut]] = {
    "Work and family": {
        "age": (30, 60),
        "education-num": (9, 13),
        "marital-status": ("Married", "Never-married", "Partner absent"),
        "capital-gain": (5_000,),
        "hours-per-week": (35, 45),
    },
    "One level down": {name: tuple(tree) for name, tree in private.TREES.items()},
    "Who they are": {
        "age": tuple(range(25, 95, 10)),
        "race": ("White", "Minority"),
        "sex": ("Male", "Female"),
        "native-country": ("Americas", "Europe", "Asia", "South"),
    },
}
"""Three guesses, typed before anything was measured and left as they are: by what pays, by the taxonomies alone, by
what a census would show."""

KEYS = ("learners", "measure", "method", "attributes", "epsilon")


# ---- trials --------------------------------------------------------------------------------------------


def entry(
    number: int, value: float, measure: str, method: str, attributes: int, epsilon: float | str
) -> dict[str, Any]:
    return {
        "trial": number, "value": value, "learners": LEARNERS, "measure": measure, "method": method,
        "attributes": attributes, "epsilon": epsilon,
    }  # fmt: skip


def options(method: str, n_attributes: int, epsilon: float) -> DiffGenOptions:
    if method in VARIANTS:
        return private.options(epsilon, variant=VARIANTS[method])
    cuts = OWNERS[method] if method in OWNERS else dict.fromkeys(CHOSEN[:n_attributes], LEAVES)
    return DiffGenOptions(exact_epsilon(epsilon), cuts=cuts)


def trial(method: str, n_attributes: int, epsilon: float, split: Split, seed: int) -> list[dict[str, Any]]:
    """One release of so many attributes."""
    mechanisms = private.mechanisms(seed, NAME, method, n_attributes, epsilon, split.number)
    drawn, test = release(method, n_attributes, epsilon, split, mechanisms, seed)
    found = {"accuracy": judged(drawn, test), "cells": float(len(drawn.counts))}
    return [
        entry(split.number, value, measure, method, n_attributes, epsilon) for measure, value in found.items()
    ]


def release(
    method: str, n_attributes: int, epsilon: float, split: Split, mechanisms: Mechanisms, seed: int
) -> tuple[Drawn, Codes]:
    """A release of the training rows, and the test rows of the same attributes."""
    domains, codes = private.encoded()
    at = columns_of(n_attributes)
    train, test = (codes[rows][:, [*at, len(domains)]] for rows in split.rows(seed))
    chosen = tuple(domains[a] for a in at)
    asked = options(method, n_attributes, epsilon)
    rows = HeldRows(train, chosen, private.CLASSES)
    return draw(rows, chosen, len(private.CLASSES), asked, mechanisms), test


def judged(drawn: Drawn, test: Codes) -> float:
    points, recoded = private.released(drawn), private.recoded(drawn, test)
    return private.accuracy(LEARNERS, points, recoded, test[:, -1])


def columns_of(n_attributes: int) -> list[int]:
    """Where the attributes stand among all.

    >>> columns_of(3)
    [3, 5, 6]
    """
    return (
        sorted(private.COLUMNS.index(name) for name in CHOSEN[:n_attributes])
        if n_attributes < ALL
        else list(range(ALL))
    )


def trial_of_lines(_: str, split: Split, seed: int) -> list[dict[str, Any]]:
    """What the rows as they are would give."""
    best, least = private.baselines(LEARNERS, *split.rows(seed))
    found = [(ORIGINAL, ALL, best), (MAJORITY, 0, least), (IN_BINS, ALL, ask.best(LEARNERS))]
    for n_attributes in SIZES:
        exact, test = release(CONTINGENCY, n_attributes, EPSILONS[-1], split, noiseless(), seed)
        found.append((ORIGINAL, n_attributes, judged(exact, test)))
    return [entry(0, value, "accuracy", method, n, "") for method, n, value in found]


def trial_of_peer(_: str, job: Job, folder: Path) -> list[dict[str, Any]]:
    """Synthetic rows that are there already."""
    taken = ask.seconds(job, folder)
    if taken is None:
        return []
    found = {"accuracy": ask.accuracy(LEARNERS, job, folder), "CPU seconds": taken}
    return [entry(job.number, value, measure, job.peer, ALL, job.epsilon) for measure, value in found.items()]


def jobs(given: Namespace) -> list[Job]:
    """The first run of everything before the second."""
    n_runs = given.peer_runs or (1 if given.quick else N_PEER_RUNS)
    epsilons = EPSILONS[-1:] if given.quick else EPSILONS
    return [Job(peer, epsilon, n) for n in range(n_runs) for epsilon in epsilons for peer in (MST, AIM)]


def tasks(given: Namespace) -> list[tuple[Any, ...]]:
    n_runs = given.trials or (2 if given.quick else N_RUNS)
    n_rows = 2_000 if given.quick else None
    splits = [Split(UCI, number, n_rows=n_rows) for number in range(n_runs)]
    asked = [(method, n) for n in SIZES for method in (CONTINGENCY, *VARIANTS)]
    asked += [(method, ALL) for method in (*VARIANTS, *OWNERS)]
    out: list[tuple[Any, ...]] = [(trial_of_lines, ORIGINAL, splits[0], given.seed)]
    out += [
        (trial, method, n_attributes, epsilon, split, given.seed)
        for split in splits
        for method, n_attributes in asked
        for epsilon in epsilons_of(given)
    ]
    return out + [(trial_of_peer, job.peer, job, ask.folder_of(quick=given.quick)) for job in jobs(given)]


def epsilons_of(given: Namespace) -> tuple[float, ...]:
    return given.at or ((0.1, 1) if given.quick else EPSILONS)


# ---- judgement -----------------------------------------------------------------------------------------


class Accuracies:
    """Of the runs of a method; a method that was not run has none."""

    def __init__(self, found: Measured) -> None:
        self._found = found

    def of(
        self, method: str, epsilon: float | str = "", n_attributes: int = ALL, measure: str = "accuracy"
    ) -> NDArray[np.float64]:
        place = {"learners": LEARNERS, "method": method, "attributes": n_attributes, "epsilon": epsilon}
        try:
            return self._found.of(measure=measure, **place)
        except KeyError:
            return np.zeros(0)


def above(what: str, first: NDArray[np.float64], second: NDArray[np.float64]) -> Finding:
    """Is the first mean above the second, by Welch's one-tailed test at .05? Runs are independent, not pairs."""
    from scipy.stats import ttest_ind_from_stats  # noqa: PLC0415 - slow to import

    deviations = [float(runs.std(ddof=1)) for runs in (first, second)]
    if deviations == [0, 0]:
        means = f"{first.mean():.2f} against {second.mean():.2f}, the same in every run"
        return Finding(what, bool(first.mean() > second.mean()), means)
    t, p = ttest_ind_from_stats(
        first.mean(), deviations[0], len(first), second.mean(), deviations[1], len(second),
        equal_var=False, alternative="greater",
    )  # fmt: skip
    means = f"{first.mean():.2f} ± {deviations[0]:.2f} against {second.mean():.2f} ± {deviations[1]:.2f}"
    return Finding(what, bool(p < 0.05), f"{means}, t = {t:.2f}, p {record.small(float(p))}")


def claims(found: Measured, epsilons: Sequence[float]) -> list[Claim]:
    runs = Accuracies(found).of
    most = SIZES[-1]
    out = [
        Claim(
            "a contingency table, every combination of values, is no good approach for many dimensions",
            tuple(
                finding
                for epsilon in epsilons
                for finding in (
                    *(
                        above(
                            f"epsilon = {epsilon}, {most} attributes, {method} > contingency table",
                            runs(method, epsilon, most), runs(CONTINGENCY, epsilon, most),
                        )
                        for method in VARIANTS
                    ),
                    above(
                        f"epsilon = {epsilon}, contingency table, {SIZES[0]} attributes > {most}",
                        runs(CONTINGENCY, epsilon, SIZES[0]), runs(CONTINGENCY, epsilon, most),
                    ),
                )
            ),
        ),
        Claim(
            "with a fixed generalization, the result varies significantly for different choices of partitioning",
            tuple(_spread(epsilon, {cut: runs(cut, epsilon) for cut in OWNERS}) for epsilon in epsilons),
        ),
        Claim(
            "(sfumato's, not the paper's) cuts that DiffGen draws (tuned) are better than those that an owner fixes, "
            "though most of epsilon goes on drawing them",
            tuple(
                above(f"epsilon = {epsilon}, tuned > {cut}", runs(AS_TUNED, epsilon), runs(cut, epsilon))
                for epsilon in epsilons
                for cut in OWNERS
            ),
        ),
    ]  # fmt: skip
    beside = [
        above(f"epsilon = {epsilon}, tuned > {peer}", runs(AS_TUNED, epsilon), runs(peer, epsilon))
        for epsilon in epsilons
        for peer in (AIM, MST)
        if len(runs(peer, epsilon)) > 1
    ]
    if beside:
        text = (
            "(sfumato's, not the paper's) for classification, DiffGen (tuned) is ahead of AIM and MST at the same "
            f"epsilon, though they promise less: {ask.PROMISE}-differential privacy"
        )
        out.append(Claim(text, tuple(beside)))
    return out


def _spread(epsilon: float, runs: Mapping[str, NDArray[np.float64]]) -> Finding:
    """The best of the owner's cuts against the worst."""
    ranked = sorted(runs, key=lambda cut: float(runs[cut].mean()))
    worst, best = ranked[0], ranked[-1]
    return above(f"epsilon = {epsilon}, {best} > {worst}", runs[best], runs[worst])


def table(found: Measured, epsilons: Sequence[float]) -> str:
    """Means and deviations of the runs, and the cells of the grids."""
    runs = Accuracies(found).of

    def line(label: str, method: str, n_attributes: int) -> str:
        cells = []
        for epsilon in epsilons:
            values = runs(method, epsilon, n_attributes)
            spread = f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else ""
            cells.append(f"{values.mean():.2f}{spread}" if len(values) else "")
        sizes = [
            np.median(runs(method, e, n_attributes, "cells")) for e in epsilons if method not in (AIM, MST)
        ]
        grid = " to ".join(f"{size:,.0f}" for size in sorted({min(sizes), max(sizes)})) if sizes else ""
        n_runs = max(len(runs(method, epsilon, n_attributes)) for epsilon in epsilons)
        return f"| {label} | {n_attributes} | {grid} | {n_runs} | {' | '.join(cells)} |"

    asked = [(method, n) for n in SIZES for method in (CONTINGENCY, *VARIANTS)]
    asked += [(method, ALL) for method in (*VARIANTS, *OWNERS, AIM, MST)]
    rows = [
        "| method | attributes | cells (median) | runs | "
        + " | ".join(f"epsilon = {e}" for e in epsilons)
        + " |",
        "|---" * (4 + len(epsilons)) + "|",
    ]
    labels = {peer: f"{peer}, {ask.PROMISE}" for peer in (AIM, MST)}
    labels |= {cut: f"Owner's cut: {cut}" for cut in OWNERS}
    rows += [
        line(labels.get(method, method), method, n)
        for method, n in asked
        if any(len(runs(method, epsilon, n)) for epsilon in epsilons)
    ]
    raw = ", ".join(f"{runs(ORIGINAL, '', n)[0]:.2f} with {n} attributes" for n in (*SIZES, ALL))
    in_bins, majority = runs(IN_BINS)[0], runs(MAJORITY, n_attributes=0)[0]
    plain = f"A tree from the rows as they are: {raw}; in the bins of the peers {in_bins:.2f}; the most frequent class "
    rows += ["", f"{plain}{majority:.2f}."]
    taken = [
        f"{peer} {min(seconds):.0f} to {max(seconds):.0f}"
        for peer in (AIM, MST)
        if (seconds := [s for e in epsilons for s in runs(peer, e, ALL, "CPU seconds")])
    ]
    rows += [f"CPU seconds for one table: {', '.join(taken)}."] if taken else []
    return "\n".join(rows)


# ---- picture -------------------------------------------------------------------------------------------

STYLES: Mapping[str, tuple[str, str, str]] = {
    AS_TUNED: ("#1f6f8b", "o", "-"),
    AS_PUBLISHED: ("#d98b2b", "s", "-"),
    CONTINGENCY: ("#a23b4a", "^", "-"),
    ORIGINAL: ("#4d4d4d", "", ":"),
    "Work and family": ("#7a9e4f", "D", "--"),
    "One level down": ("#7a9e4f", "v", "--"),
    "Who they are": ("#7a9e4f", "x", "--"),
    AIM: ("#7b5aa6", "P", "-."),
    MST: ("#7b5aa6", "X", "-."),
}


def draw_figure(figure: record.Figure, path: Path, epsilons: Sequence[float]) -> None:
    points = pictures.pick(figure.points, measure="accuracy")
    with pictures.sheet(path, 2, 2, size=(4.8, 3.7)) as axes:
        for panel, epsilon in zip(axes[0], (epsilons[0], epsilons[-1]), strict=True):
            for method in (CONTINGENCY, *VARIANTS, ORIGINAL):
                at = "" if method == ORIGINAL else epsilon
                _line(panel, pictures.pick(points, method=method, epsilon=at), method, "attributes")
            panel.set_xscale("log")
            panel.set_xticks((*SIZES, ALL), map(str, (*SIZES, ALL)))
            panel.minorticks_off()
            panel.set(title=f"Contingency tables, ε = {epsilon}", xlabel="Attributes")
        for panel, title, methods in (
            (axes[1][0], "Cuts that the owner fixes", (*VARIANTS, *OWNERS)),
            (axes[1][1], f"Peers, of the weaker promise {ask.PROMISE}", (*VARIANTS, AIM, MST)),
        ):
            for method in methods:
                _line(panel, pictures.pick(points, method=method, attributes=ALL), method, "epsilon")
            _level(panel, points)
            panel.set_xscale("log")
            panel.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
            panel.minorticks_off()
            panel.set(title=title, xlabel="ε")
        for row, lowest, height in zip(axes, (60, 73.5), (0, 0.16), strict=True):
            for panel in row:
                panel.set(ylim=(lowest, 87), ylabel="Accuracy (%)")
                panel.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1, height))


def _line(panel: Any, points: Sequence[Mapping[str, Any]], method: str, x: str) -> None:
    chosen = sorted(points, key=lambda point: float(point[x]))
    color, marker, style = STYLES[method]
    if chosen:
        panel.errorbar(
            [point[x] for point in chosen], [point["mean"] for point in chosen],
            yerr=[point["deviation"] if point["trials"] > 1 else 0 for point in chosen],
            color=color, marker=marker, linestyle=style, markersize=4, linewidth=1.2, capsize=2, label=method,
        )  # fmt: skip


def _level(panel: Any, points: Sequence[Mapping[str, Any]]) -> None:
    """The rows as they are, and the most frequent class."""
    for method in (ORIGINAL, MAJORITY):
        (point,) = pictures.pick(points, method=method, attributes=ALL if method == ORIGINAL else 0)
        panel.axhline(point["mean"], color="#4d4d4d", linestyle=":", linewidth=1)
        panel.annotate(
            method, (0.01, point["mean"]), xycoords=("axes fraction", "data"), va="bottom", fontsize=7
        )


def _more(parser: ArgumentParser) -> None:
    private.more(parser)
    parser.add_argument(
        "--peers",
        action="store_true",
        help="have AIM and MST make the tables that are not there yet (forty minutes)",
    )
    parser.add_argument(
        "--peer-runs", type=int, help=f"tables of a peer for each epsilon; default {N_PEER_RUNS}"
    )


def main() -> None:
    given = record.options(__doc__, learners=(LEARNERS,), more=_more)
    if given.peers and not given.again:
        ask.run(jobs(given), quick=given.quick)
    found = record.measured(
        given, NAME, KEYS,
        lambda: private.run(given, NAME, tasks(given), title="DiffGen, extra"),
    )  # fmt: skip
    epsilons = epsilons_of(given)
    figure = record.save(
        given, NAME, "Contingency tables, the owner's cuts, and peers", setup(given), found,
        {LEARNERS: claims(found, epsilons)}, table=table(found, epsilons),
    )  # fmt: skip
    draw_figure(figure, given.out / f"{NAME}.png", epsilons)


def setup(given: Namespace) -> str:
    owners = "; ".join(f"*{name}*: {', '.join(cuts)}" for name, cuts in OWNERS.items())
    return (
        f"Adult, UCI's split (30,162 and 15,060 complete rows), {given.trials or N_RUNS} runs a point on that one "
        "split, means and standard deviations, draws seeded; scikit-learn's tree as in figure 3. Contingency tables "
        f"are of {', '.join(CHOSEN[:3])}, then of {CHOSEN[3]}, then of {CHOSEN[4]} too, all of epsilon on their "
        "counts, which are then made to add up to their noisy total: kinder to empty cells than the paper's "
        f"rounding. Owner's cuts are guesses ({owners}), typed once and not tuned. AIM and MST (dpmm 0.1.9) promise "
        f"{ask.PROMISE}-differential privacy, which is weaker than epsilon alone. They see all attributes, "
        "numbers in public bins (`reproduction/peers/ask.py`), have all pairs as workload, and run with cheap "
        f"settings: AIM a model of {ask.SETTINGS[AIM]['max_model_size']} MB and {ask.SETTINGS[AIM]['n_iters']} steps "
        f"of fitting, MST {ask.SETTINGS[MST]['n_iters']:,} steps; up to {given.peer_runs or N_PEER_RUNS} tables of "
        f"{ask.N_ROWS:,} rows a point. Their noise cannot be seeded. Tests are Welch's, one-tailed: runs are "
        "independent."
    )


if __name__ == "__main__":
    main()
