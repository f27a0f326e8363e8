"""Beside the figures of [MCFY11]: DiffGen and two makers of synthetic rows at the same epsilon.

AIM [MMSM22] and MST [MMS21] are (epsilon, delta)-differentially private, a weaker promise than DiffGen's, and serve any
use, where DiffGen serves one class. They run in an environment of their own (``peers``), fitted until they no longer
change. One table of AIM takes many minutes, so the script can be stopped: tables that are made are not made again, and
neither are those whose trials are kept beside the record.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from lab import pictures, private, record, trials
from lab.private import BOOSTED, TREE, Codes, Weighted
from lab.record import Claim, Finding, Measured
from lab.samples import above, several
from numpy.typing import NDArray
from peers import ask
from peers.ask import AIM, MST, Job

from sfumato.encoding import declared
from sfumato.encoding.declared import HeldRows
from sfumato.encoding.domain import Domain
from sfumato.evaluation.features import Features
from sfumato.methods.specialization import diffgen
from sfumato.policy.document import Policy
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Classify
from sfumato.table import opening

NAME = "diffgen_peers"
LEARNERS = "scikit-learn"
EPSILONS = (0.1, 1)
N_RUNS = 10

TUNED, IN_BINS = "DiffGen, tuned", "DiffGen, tuned, in the peers' bins"
ORIGINAL, ORIGINAL_IN_BINS, MAJORITY = "Original", "Original, in bins", "Most frequent class"
MODELS = (TREE, BOOSTED)
SCORES = ("accuracy", "AUC")
KEYS = ("learners", "measure", "model", "method", "epsilon")


# ---- trials --------------------------------------------------------------------------------------------


def entry(
    number: int, value: float, measure: str, model: str, method: str, epsilon: float | str
) -> dict[str, Any]:
    return {
        "trial": number, "value": value, "learners": LEARNERS, "measure": measure, "model": model,
        "method": method, "epsilon": epsilon,
    }  # fmt: skip


def judged(
    number: int, method: str, epsilon: float | str, train: Weighted, test: Features, classes: NDArray[Any]
) -> list[dict[str, Any]]:
    """The scores of all models that learn from ``train``."""
    return [
        entry(number, value, measure, model, method, epsilon)
        for model in MODELS
        for measure, value in private.scores(model, train, test, classes).items()
    ]


@cache
def binned() -> tuple[tuple[Domain, ...], Codes]:
    """Adult with its numbers in the bins of the peers, as DiffGen reads it: declared domains, and rows in their codes."""
    rows, codes = private.table(), ask.codes(private.table())
    for name in ask.BINS:
        rows = rows.set_column(rows.column_names.index(name), name, codes[name].cast(pa.int64()))
    schema = Schema(
        tuple(
            replace(attribute, bounds=(0, len(ask.BINS[attribute.name])), step=1)
            if attribute.name in ask.BINS
            else attribute
            for attribute in private.schema()
        )
    )
    asked = Policy(schema, workload=(Classify((private.CLASS,)),), method=private.options(1))
    held = declared.hold_rows(opening.open_table(rows), asked)
    return held.domains, held.rows


def trial(method: str, epsilon: float, number: int, seed: int, n_rows: int | None) -> list[dict[str, Any]]:
    """One release of the training rows, UCI's."""
    domains, codes = binned() if method == IN_BINS else private.encoded()
    parts = private.Split(private.UCI, number, n_rows=n_rows).rows(seed)
    train, test = (codes[rows] for rows in parts)
    draws = private.mechanisms(seed, NAME, method, epsilon, number)
    rows = HeldRows(train, domains, private.CLASSES)
    drawn = diffgen.draw(rows, domains, len(private.CLASSES), private.options(epsilon), draws)
    return judged(number, method, epsilon, private.released(drawn), private.recoded(drawn, test), test[:, -1])


def trial_of_lines(seed: int) -> list[dict[str, Any]]:
    """What the rows as they are would give, and what one gets from the most frequent class."""
    out = []
    tables: dict[str, tuple[Any, Any, Any]] = {
        ORIGINAL: private.as_they_are(*private.Split(private.UCI).rows(seed)),
        ORIGINAL_IN_BINS: ask.as_they_are(),
    }
    for method, (train, test, classes) in tables.items():
        out += judged(0, method, "", train, test, classes)
    most = 100 * float(max(np.mean(classes), 1 - np.mean(classes)))
    return out + [
        entry(0, value, measure, TREE, MAJORITY, "") for measure, value in (("accuracy", most), ("AUC", 50))
    ]


def trial_of_peer(job: Job, folder: Path) -> list[dict[str, Any]]:
    """Synthetic rows that are there; none where they are not."""
    taken = ask.taken(job, folder)
    if taken is None:
        return []
    train, test, classes = ask.synthetic(job, folder)
    out = judged(job.number, job.peer, job.epsilon, train, test, classes)
    return out + [
        entry(job.number, value, measure, "", job.peer, job.epsilon) for measure, value in taken.items()
    ]


def jobs(given: Namespace) -> list[Job]:
    """The first run of everything before the second."""
    n_runs = given.trials or (1 if given.quick else N_RUNS)
    epsilons = EPSILONS[-1:] if given.quick else EPSILONS[::-1]
    return [Job(peer, epsilon, n) for n in range(n_runs) for epsilon in epsilons for peer in (MST, AIM)]


def kept(given: Namespace) -> list[dict[str, Any]]:
    """Trials of the peers that are on record: their noise is secret, so nothing else has the same numbers."""
    found = [] if given.fresh or given.quick else record.read_trials(given.out, NAME)
    return [entry for entry in found if entry["method"] in (AIM, MST)]


def run(given: Namespace) -> Iterator[list[dict[str, Any]]]:
    old = kept(given)
    yield old
    done = {(entry["method"], entry["epsilon"], entry["trial"]) for entry in old}
    missing = [job for job in jobs(given) if (job.peer, job.epsilon, job.number) not in done]
    folder = ask.folder_of(quick=given.quick)
    if given.peers:
        ask.run(missing, quick=given.quick)
    n_runs = given.trials or (2 if given.quick else N_RUNS)
    n_rows = 2_000 if given.quick else None
    tasks: list[tuple[Any, ...]] = [(trial_of_lines, given.seed)]
    tasks += [
        (trial, method, epsilon, number, given.seed, n_rows)
        for method in (TUNED, IN_BINS)
        for epsilon in epsilons_of(given)
        for number in range(n_runs)
    ]
    tasks += [(trial_of_peer, job, folder) for job in missing]
    yield from trials.run(trials.call, tasks, processes=given.processes, title="DiffGen and peers")


def epsilons_of(given: Namespace) -> tuple[float, ...]:
    return given.at or (EPSILONS[-1:] if given.quick else EPSILONS)


# ---- judgement -----------------------------------------------------------------------------------------


class Runs:
    """The runs of a method; one that was not run has none."""

    def __init__(self, found: Measured) -> None:
        self._found = found

    def of(
        self, method: str, epsilon: float | str = "", measure: str = "accuracy", model: str = TREE
    ) -> NDArray[np.float64]:
        try:
            return self._found.of(
                learners=LEARNERS, measure=measure, model=model, method=method, epsilon=epsilon
            )
        except KeyError:
            return np.zeros(0)


def claims(found: Measured, epsilons: Sequence[float]) -> list[Claim]:
    """Ours, not the paper's: one for each peer and score."""
    runs = Runs(found).of
    out = []
    for peer in (AIM, MST):
        for measure in SCORES:
            findings = tuple(
                _ahead(runs, peer, measure, model, epsilon)
                for epsilon in epsilons
                for model in MODELS
                if len(runs(peer, epsilon, measure, model)) > 1
            )
            if findings:
                what = f"DiffGen (tuned) has a higher {measure} than {peer} at the same epsilon"
                out.append(Claim(f"(sfumato's, not the paper's) {what}", findings))
    return out


def _ahead(runs: Any, peer: str, measure: str, model: str, epsilon: float) -> Finding:
    what = f"epsilon = {epsilon}, {model}, tuned > {peer}"
    return above(what, runs(TUNED, epsilon, measure, model), runs(peer, epsilon, measure, model))


def table(found: Measured, epsilons: Sequence[float]) -> str:
    """Means and deviations of all runs, then what the peers took."""
    runs = Runs(found).of
    rows = ["| method | model | score | runs | " + " | ".join(f"epsilon = {e}" for e in epsilons) + " |"]
    rows.append("|---" * (4 + len(epsilons)) + "|")
    labels = {peer: f"{peer}, {ask.PROMISE}" for peer in (AIM, MST)}
    for model in MODELS:
        for measure in SCORES:
            for method in (TUNED, IN_BINS, AIM, MST):
                values = [runs(method, epsilon, measure, model) for epsilon in epsilons]
                if any(map(len, values)):
                    n_runs = " to ".join(map(str, sorted({len(v) for v in values})))
                    cells = " | ".join(several(v) for v in values)
                    rows.append(
                        f"| {labels.get(method, method)} | {model} | {measure} | {n_runs} | {cells} |"
                    )
    lines = ", ".join(
        f"{measure} of {model} {runs(ORIGINAL, '', measure, model)[0]:.2f}"
        f" ({runs(ORIGINAL_IN_BINS, '', measure, model)[0]:.2f} in bins)"
        for model in MODELS
        for measure in SCORES
    )
    rows += [
        "",
        f"From the rows as they are: {lines}. The most frequent class: {runs(MAJORITY)[0]:.2f} accuracy.",
    ]
    for peer in (AIM, MST):
        seconds, rounds = (
            [value for e in epsilons for value in runs(peer, e, measure, "")]
            for measure in ("CPU seconds", "rounds of the last fit")
        )
        if seconds:
            rows.append(
                f"{peer}: {min(seconds):.0f} to {max(seconds):.0f} CPU seconds a table, "
                f"{min(rounds):.0f} to {max(rounds):.0f} rounds of {ask.FIT['steps']} steps in the last fit."
            )
    return "\n".join(rows)


# ---- picture -------------------------------------------------------------------------------------------

STYLES: Mapping[str, tuple[str, str, str]] = {
    TUNED: ("#1f6f8b", "o", "-"),
    IN_BINS: ("#1f6f8b", "D", ":"),
    AIM: ("#d98b2b", "s", "-"),
    MST: ("#7b5aa6", "^", "--"),
}


def draw_figure(figure: record.Figure, path: Path, epsilons: Sequence[float]) -> None:
    with pictures.sheet(path, 2, 2, size=(4.8, 3.7)) as axes:
        for row, measure in zip(axes, SCORES, strict=True):
            for panel, model in zip(row, MODELS, strict=True):
                points = pictures.pick(figure.points, measure=measure, model=model)
                for method, (color, marker, style) in STYLES.items():
                    chosen = sorted(
                        pictures.pick(points, method=method), key=lambda point: float(point["epsilon"])
                    )
                    if chosen:
                        panel.errorbar(
                            [point["epsilon"] for point in chosen], [point["mean"] for point in chosen],
                            yerr=[point["deviation"] if point["trials"] > 1 else 0 for point in chosen],
                            color=color, marker=marker, linestyle=style, markersize=4, linewidth=1.2, capsize=2,
                            label=method,
                        )  # fmt: skip
                (raw,) = pictures.pick(points, method=ORIGINAL)
                panel.axhline(raw["mean"], color="#4d4d4d", linestyle=":", linewidth=1)
                panel.annotate(
                    "rows as they are",
                    (0.01, raw["mean"]),
                    xycoords=("axes fraction", "data"),
                    va="bottom",
                    fontsize=7,
                )
                panel.set_xscale("log")
                panel.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
                panel.minorticks_off()
                panel.set(title=f"{model}, {measure}", xlabel="ε", ylabel=f"{measure} (%)")
        axes[0][0].legend(fontsize=7, loc="lower right")


def _more(parser: ArgumentParser) -> None:
    parser.set_defaults(processes=1)
    parser.add_argument(
        "--peers", action="store_true", help="have AIM and MST make the tables that are missing"
    )


def main() -> None:
    given = record.options(__doc__, learners=(LEARNERS,), more=_more)
    found = record.measured(given, NAME, KEYS, lambda: run(given))
    epsilons = epsilons_of(given)
    figure = record.save(
        given, NAME, "DiffGen beside AIM and MST", setup(given), found, {LEARNERS: claims(found, epsilons)},
        table=table(found, epsilons),
    )  # fmt: skip
    draw_figure(figure, given.out / f"{NAME}.png", epsilons)


def setup(given: Namespace) -> str:
    size, steps = ask.SETTINGS[AIM]["max_model_size"], ask.SETTINGS[AIM]["n_iters"]
    return (
        f"Adult, UCI's split (30,162 and 15,060 complete rows), {given.trials or N_RUNS} runs a point on that one split, "
        "means and standard deviations. Each method is given epsilon alone; DiffGen's draws are seeded, those of the "
        f"peers cannot be. AIM and MST (dpmm 0.1.9) promise {ask.PROMISE}-differential privacy, which is weaker than "
        "epsilon alone; they see all attributes, numbers in public bins (`reproduction/peers/ask.py`), have all pairs "
        f"as workload, and make {ask.N_ROWS:,} rows. AIM's models have {size} MB at most (dpmm's own limit is 80) and "
        f"{steps} steps of fitting in each round, from where the round before ended; MST's settings are dpmm's own. "
        f"The last fit of both goes on in rounds of {ask.FIT['steps']} steps until one lowers the loss by less than "
        f"{ask.FIT['tolerance']:.0%} (of the first tables: 0.2%). DiffGen runs on the declared domains, and again on the "
        "bins of the peers. Two learners, the same for all: the tree of figure 3, and scikit-learn's "
        "HistGradientBoostingClassifier with its defaults and no early stopping, on points written out as rows. "
        "Tests are Welch's, one-tailed at .05: runs are independent."
    )


if __name__ == "__main__":
    main()
