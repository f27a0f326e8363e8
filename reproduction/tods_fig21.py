"""Figure 21 of [LDR08]: seconds of Rothko-T and Rothko-S as the table grows, InfoGain splitting on function C2."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from lab import pictures, record, rothko
from lab.record import Claim, Finding, Measured
from lab.rothko import GAIN, Run, S, T

NAME = "tods_fig21"


def asked(given: Any) -> list[list[Run]]:
    """For each size Rothko-T with one and with four frequency groups, and Rothko-S."""
    methods: tuple[dict[str, Any], ...] = (
        {"method": T, "frequency_groups": 1}, {"method": T, "frequency_groups": 4}, {"method": S},
    )  # fmt: skip
    return [
        [rothko.scaled(given, Run(**method, n_rows=n, criterion="InfoGain")) for method in methods]
        for n in rothko.sizes(given)
    ]


def with_median(plan: list[list[Run]]) -> list[Run]:
    """All runs, and beside those with one frequency group and those of Rothko-S the ones of figure 19."""
    beside = [replace(run, criterion="Median") for runs in plan for run in (runs[0], runs[-1])]
    return [run for runs in plan for run in runs] + beside


def claims(points: Measured, plan: list[list[Run]]) -> list[Claim]:
    quicker, dearer = [], []
    for one, four, sampling in plan:
        n = sampling.n_rows
        for theirs in (one, four):
            quicker += rothko.faster(points, sampling, theirs, rows=n, criterion="InfoGain")
        for run in (one, sampling):
            gain, median = (
                float(points.of(measure="CPU", method=run.name, rows=n, criterion=criterion)[0])
                for criterion in ("InfoGain", "Median")
            )
            dearer.append(
                Finding(
                    f"{n:,} rows, {run.name}: more CPU seconds than Median", gain > median,
                    f"{gain:.1f} against {median:.1f}",
                )
            )  # fmt: skip
    return [
        Claim("Rothko-S consistently outperforms Rothko-T", tuple(quicker)),
        Claim("the CPU cost is greater than that of Median splitting", tuple(dearer)),
    ]


def draw(figure: record.Figure, out: Path, plan: list[list[Run]]) -> None:
    sizes = rothko.in_millions(runs[0].n_rows for runs in plan)
    with pictures.sheet(out / f"{NAME}.png", 1, 3, size=(3.4, 3)) as axes:
        for panel, run in zip(axes[0], plan[0], strict=True):
            chosen = pictures.pick(figure.points, method=run.name, criterion="InfoGain")
            pictures.stacked(panel, chosen, x="rows", parts=rothko.PARTS, names=sizes)
            panel.set(title=run.name, xlabel="Rows (millions)")
        pictures.same_height(axes[0])
        axes[0][0].set_ylabel("Seconds of wall time")
        pictures.legend(axes[0][0])


def main() -> None:
    given = rothko.options(__doc__)
    plan = asked(given)
    found = record.measured(
        given, NAME, ("measure", "method", "rows", "criterion"),
        lambda: rothko.times(
            rothko.measure_all(given, with_median(plan), "Figure 21"),
            lambda run: {"rows": run.n_rows, "criterion": run.criterion},
        ),
    )  # fmt: skip
    some = plan[0][0]
    figure = record.save(
        given, NAME, "Scale-up, InfoGain splitting",
        f"Function C2, k = {some.k:,}, {some.rows_in_memory:,} rows in memory; below a gain of {GAIN:g} Median takes "
        f"over, as in the paper; one thread. The number of frequency groups is in brackets. {rothko.WAITING}",
        found, {record.NO_LEARNERS: claims(found, plan)},
    )  # fmt: skip
    draw(figure, given.out, plan)


if __name__ == "__main__":
    main()
