"""Figure 17 of [LDR08]: the in-memory algorithm on tables that do not fit in memory, up to 10 million rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from lab import pictures, record, rothko
from lab.record import Claim, Finding, Measured
from lab.rothko import MILLION, Found, Run

NAME = "tods_fig17"
SIZES = tuple(n * MILLION for n in (1, 2, 4, 6, 8, 10))
"""The paper's end at 10 million."""

START_UP = 300 * MILLION
"""What the interpreter and its libraries take: allowed on top of the paper's 512 MB."""

BUDGET = 512 * MILLION
CAP = BUDGET + START_UP
COPIES = 3
"""Encoded tables (44 bytes a row) that publishing in memory holds at once: what does not fit by that, does not fit."""

THRASHES = 5.0
"""So many times more seconds per row than the smallest table takes are called thrashing."""


def runs(given: Any) -> dict[int, dict[str, Run]]:
    """In memory and by Rothko-S, at each size."""
    sizes = given.at or ((MILLION, rothko.SCALE_UP[0]) if given.quick else SIZES)
    shared = {"cap": CAP}
    return {
        n: {
            method: replace(
                rothko.scaled(given, Run(method, n)), **(shared if method == rothko.MEMORY else {})
            )
            for method in (rothko.MEMORY, rothko.S)
        }
        for n in sizes
    }


def entries(asked: dict[int, dict[str, Run]], found: Found) -> list[list[dict[str, Any]]]:
    out = []
    for of_size in asked.values():
        for run in of_size.values():
            seen = found[run]
            measures = {
                "exit code": seen["code"], "seconds": seen["wall"], "CPU seconds": seen["cpu"],
                "peak memory": seen["peak"], "bytes read": seen["asked_read"], "bytes written": seen["asked_written"],
            }  # fmt: skip
            out.append(rothko.entries(run, seen, measures, rows=run.n_rows))
    return out


def claims(points: Measured, sizes: list[int], budget: int) -> list[Claim]:
    def of(measure: str, method: str, n: int) -> float:
        return float(points.of(measure=measure, method=method, rows=n)[0])

    pace = of("seconds", "In memory", sizes[0]) / sizes[0]
    fits = of("exit code", "In memory", sizes[0]) == 0
    suffers, works = (
        [Finding(f"{sizes[0]:,} rows still fit", fits, f"{of('seconds', 'In memory', sizes[0]):.1f} s")],
        [],
    )
    for n in sizes:
        failed = of("exit code", "In memory", n) != 0
        slower = of("seconds", "In memory", n) / n / pace
        text = (
            "failed for want of memory"
            if failed
            else f"{slower:.1f} times the seconds per row of the smallest"
        )
        if n * 44 * COPIES > budget:
            suffers.append(Finding(f"{n:,} rows, fails or thrashes", failed or slower >= THRASHES, text))
        done = of("exit code", "Rothko-S", n) == 0
        spent = f"{of('seconds', 'Rothko-S', n):.1f} s, peak memory {of('peak memory', 'Rothko-S', n) / MILLION:.0f} MB"
        fits = done and of("peak memory", "Rothko-S", n) <= CAP
        works.append(Finding(f"{n:,} rows, Rothko-S within the same memory", fits, spent))
    if len(suffers) == 1:
        suffers.append(Finding(f"{sizes[-1]:,} rows, fails or thrashes", False, "they fit"))
    return [
        Claim(
            "applied naively, the in-memory algorithm breaks down on tables that do not fit", tuple(suffers)
        ),
        Claim("the scalable algorithms are easily applied to larger ones", tuple(works)),
    ]


def draw(figure: record.Figure, out: Path) -> None:
    with pictures.sheet(out / f"{NAME}.png", 1, 2, size=(4.2, 3)) as axes:
        for panel, parts, unit in zip(
            axes[0], (("bytes read", "bytes written"), ("seconds",)), (1e9, 1), strict=True
        ):
            for method in ("In memory", "Rothko-S"):
                failed = {
                    p["rows"]
                    for p in pictures.pick(figure.points, measure="exit code", method=method)
                    if p["mean"]
                }
                total: dict[int, float] = {}
                for part in parts:
                    for point in pictures.pick(figure.points, measure=part, method=method):
                        total[point["rows"]] = total.get(point["rows"], 0) + point["mean"] / unit
                color = pictures.COLORS[method]
                good = sorted(n for n in total if n not in failed)
                panel.plot(
                    [n / 1e6 for n in good],
                    [total[n] for n in good],
                    marker="o",
                    markersize=4,
                    color=color,
                    label=method,
                )
                bad = sorted(failed & set(total))
                panel.plot([n / 1e6 for n in bad], [total[n] for n in bad], "x", color=color)
            panel.set(xlabel="Rows (millions)", ylim=(0, None))
        axes[0][0].set_ylabel("Read and written (GB)")
        axes[0][1].set_ylabel("Seconds")
        pictures.legend(axes[0][0])


def main() -> None:
    given = rothko.options(__doc__)
    asked = runs(given)
    found = record.measured(
        given, NAME, ("measure", "method", "rows"),
        lambda: entries(asked, rothko.measure_all(given, [r for of in asked.values() for r in of.values()], "Figure 17")),
    )  # fmt: skip
    budget = BUDGET // 1000 if given.quick else BUDGET
    sizes = [of[rothko.S].n_rows for of in asked.values()]
    figure = record.save(
        given, NAME, "The in-memory algorithm on large tables",
        f"Median, k = {rothko.K:,}. The process of the in-memory engine gets {CAP // MILLION} MB from the kernel "
        f"(RLIMIT_DATA): the {rothko.MEMORY_OF_COMMAND} of the paper's machine, and {START_UP // MILLION} MB for the "
        "interpreter. The machine has no swap, so what thrashed in the paper fails here: such runs are marked x "
        "at the time and bytes of their end. Rothko-S beside it, in the same memory. Bytes are those of read and "
        "write calls.",
        found, {record.NO_LEARNERS: claims(found, sizes, budget)},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
