"""Figure 20 of [LDR08]: seconds of Rothko-T and Rothko-S for k = 10 to 10,000."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab import pictures, record, rothko
from lab.pages import OURS
from lab.record import Claim, Finding, Measured
from lab.rothko import Run, S, T

NAME = "tods_fig20"
KS = (10, 100, 1_000, 10_000)
ROWS = 10_000_000
SAME = 0.05
"""Reads and writes that differ by less than this share are called the same."""


def asked(given: Any) -> list[list[Run]]:
    """For each method the runs at each k."""
    ks = given.at or ((10, 1_000) if given.quick else KS)
    methods: tuple[dict[str, Any], ...] = (
        {"method": T, "frequency_groups": 1}, {"method": T, "frequency_groups": 8}, {"method": S},
    )  # fmt: skip
    return [
        [rothko.scaled(given, Run(**method, n_rows=rothko.rows(given, ROWS), k=k)) for k in ks]
        for method in methods
    ]


def claims(points: Measured, plan: list[list[Run]]) -> list[Claim]:
    def of(measure: str, run: Run) -> float:
        return float(points.of(measure=measure, method=run.name, k=run.k)[0])

    computed, falls = [], []
    for runs in plan:
        least, most = runs[0], runs[-1]
        what = f"{least.name}, k = {least.k:,} against {most.k:,}"
        cpu = [of("CPU", run) for run in (least, most)]
        computed.append(
            Finding(f"{what}: more CPU seconds", cpu[0] > cpu[1], f"{cpu[0]:.1f} against {cpu[1]:.1f}")
        )
        moved = [of("reads", run) + of("writes", run) for run in (least, most)]
        falls.append(
            Finding(
                f"{what}: the same I/O", abs(moved[0] - moved[1]) <= SAME * moved[1],
                f"{moved[0]:.2f} against {moved[1]:.2f} tables read and written",
            )
        )  # fmt: skip
        waited = [of("waiting", run) for run in (least, most)]
        falls.append(
            Finding(
                f"{what}: more is added to CPU than to waiting", cpu[0] - cpu[1] > waited[0] - waited[1],
                f"{cpu[0] - cpu[1]:+.1f} s of CPU, {waited[0] - waited[1]:+.1f} s of waiting",
            )
        )  # fmt: skip
    *scans, sampling = plan
    less = []
    for run, *others in zip(sampling, *scans, strict=True):
        here = of("CPU", run)
        there = {other.name: of("CPU", other) for other in others}
        less += [
            Finding(
                f"k = {run.k:,}: Rothko-S takes less CPU than {name}",
                here < cpu,
                f"{here:.1f} against {cpu:.1f} s",
            )
            for name, cpu in there.items()
        ]
    return [
        Claim("a smaller k leads to more computation", tuple(computed), from_means=True),
        Claim("the additional cost falls to the CPU", tuple(falls), from_means=True),
        Claim(f"{OURS}Rothko-S takes less CPU time than Rothko-T at every k", tuple(less), from_means=True),
    ]


def draw(figure: record.Figure, out: Path, plan: list[list[Run]]) -> None:
    with pictures.sheet(out / f"{NAME}.png", 1, 3, size=(3.4, 3)) as axes:
        for panel, runs in zip(axes[0], plan, strict=True):
            chosen = pictures.pick(figure.points, method=runs[0].name)
            pictures.stacked(
                panel, chosen, x="k", parts=rothko.PARTS, names={run.k: f"{run.k:,}" for run in runs}
            )
            panel.set(title=runs[0].name, xlabel="k")
        pictures.same_height(axes[0])
        axes[0][0].set_ylabel("Seconds of wall time")
        pictures.legend(axes[0][0])


def main() -> None:
    given = rothko.options(__doc__)
    plan = asked(given)
    found = record.measured(
        given, NAME, ("measure", "method", "k"),
        lambda: rothko.times(
            rothko.measure_all(given, [run for runs in plan for run in runs], "Figure 20"), lambda run: {"k": run.k}
        ),
    )  # fmt: skip
    some = plan[0][0]
    figure = record.save(
        given, NAME, "Seconds for varied k",
        f"Median, {some.n_rows:,} rows (the paper does not print its number), {some.rows_in_memory:,} of them in "
        f"memory; one thread. The number of frequency groups is in brackets. {rothko.WAITING}",
        found, {record.NO_LEARNERS: claims(found, plan)},
    )  # fmt: skip
    draw(figure, given.out, plan)


if __name__ == "__main__":
    main()
