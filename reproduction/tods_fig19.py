"""Figure 19 of [LDR08]: seconds of Rothko-T and Rothko-S as the table grows, Median splitting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab import pictures, record, rothko
from lab.record import Claim, Finding, Measured
from lab.rothko import Run, S, T

NAME = "tods_fig19"
SIMILAR = 2.0
"""Waits within this factor are called similar; so are waits that both are below a tenth of the time."""


def asked(given: Any) -> list[list[Run]]:
    """For each size Rothko-T with one and with eight frequency groups, and Rothko-S."""
    return [
        [rothko.scaled(given, run) for run in (Run(T, n, frequency_groups=1), Run(T, n, frequency_groups=8), Run(S, n))]
        for n in rothko.sizes(given)
    ]  # fmt: skip


def claims(points: Measured, plan: list[list[Run]]) -> list[Claim]:
    quicker, alike = [], []
    for one, eight, sampling in plan:
        n = sampling.n_rows
        quicker += rothko.faster(points, sampling, one, rows=n) + rothko.faster(
            points, sampling, eight, rows=n
        )
        alike.append(_similar(points, eight, sampling, n))
    return [
        Claim("the sampling-based algorithm is faster, in total time and in CPU time", tuple(quicker)),
        Claim(
            "Rothko-T with eight frequency groups and Rothko-S wait similarly long for the disk", tuple(alike)
        ),
    ]


def _similar(points: Measured, first: Run, second: Run, n: int) -> Finding:
    waits, walls = (
        [float(points.of(measure=measure, method=run.name, rows=n)[0]) for run in (first, second)]
        for measure in ("waiting", "wall")
    )
    short = all(wait < 0.1 * wall for wait, wall in zip(waits, walls, strict=True))
    near = max(waits) <= SIMILAR * min(waits)
    return Finding(
        f"{n:,} rows, within a factor of {SIMILAR:g}, or both below a tenth of the time", short or near,
        f"{waits[0]:.1f} s of {walls[0]:.1f} and {waits[1]:.1f} s of {walls[1]:.1f}",
    )  # fmt: skip


def draw(figure: record.Figure, out: Path, plan: list[list[Run]]) -> None:
    sizes = rothko.in_millions(runs[0].n_rows for runs in plan)
    with pictures.sheet(out / f"{NAME}.png", 1, 3, size=(3.4, 3)) as axes:
        for panel, run in zip(axes[0], plan[0], strict=True):
            chosen = pictures.pick(figure.points, method=run.name)
            pictures.stacked(panel, chosen, x="rows", parts=rothko.PARTS, names=sizes)
            panel.set(title=run.name, xlabel="Rows (millions)")
        pictures.same_height(axes[0])
        axes[0][0].set_ylabel("Seconds of wall time")
        pictures.legend(axes[0][0])


def main() -> None:
    given = rothko.options(__doc__)
    plan = asked(given)
    found = record.measured(
        given, NAME, ("measure", "method", "rows"),
        lambda: rothko.times(
            rothko.measure_all(given, [run for runs in plan for run in runs], "Figure 19"),
            lambda run: {"rows": run.n_rows},
        ),
    )  # fmt: skip
    some = plan[0][0]
    figure = record.save(
        given, NAME, "Scale-up, Median splitting",
        f"k = {some.k:,}, {some.rows_in_memory:,} rows in memory; one thread, the input not in the page cache. "
        f"The number of frequency groups is in brackets. {rothko.WAITING}",
        found, {record.NO_LEARNERS: claims(found, plan)},
    )  # fmt: skip
    draw(figure, given.out, plan)


if __name__ == "__main__":
    main()
