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
    """Runs that ended well, as lines; those that failed stand apart above, where nobody takes them for cheap ones."""
    parts: dict[str, tuple[tuple[str, ...], float]] = {
        "Read and written (GB)": (("bytes read", "bytes written"), 1e9),
        "Seconds": (("seconds",), 1),
    }
    with pictures.sheet(out / f"{NAME}.png", 1, 2, size=(4.2, 3)) as axes:
        for panel, (label, (measures, unit)) in zip(axes[0], parts.items(), strict=True):
            for method in ("In memory", "Rothko-S"):
                chosen = pictures.pick(figure.points, method=method)
                codes = {p["rows"]: p["mean"] for p in chosen if p["measure"] == "exit code"}
                good = sorted(n for n, code in codes.items() if not code)
                totals = [
                    sum(p["mean"] for p in chosen if p["rows"] == n and p["measure"] in measures) / unit
                    for n in good
                ]
                color = pictures.COLORS[method]
                panel.plot([n / 1e6 for n in good], totals, "o-", markersize=4, color=color, label=method)
                bad = sorted(set(codes) - set(good))
                if bad:
                    panel.plot(
                        [n / 1e6 for n in bad], [0.96] * len(bad), "x", color=color, clip_on=False,
                        transform=panel.get_xaxis_transform(), label=f"{method}: no release, out of memory",
                    )  # fmt: skip
            panel.set(xlabel="Rows (millions)", ylabel=label)
            panel.set_ylim(0, 1.2 * panel.get_ylim()[1])
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
        "interpreter. The machine has no swap, so what thrashed in the paper fails here: such runs made no "
        "release and are marked x at the top, whatever they had read by then. Rothko-S beside it, in the same "
        "memory. Bytes are those of read and write calls.",
        found, {record.NO_LEARNERS: claims(found, sizes, budget)},
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
