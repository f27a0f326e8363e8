"""Figure 8 of [FEB12]: the time of exhaustive search and of genetic search, by the number of columns.

What is timed are sampled rows; the time of all rows is extrapolated from them. Exhaustive search with a look at the whole
table for each generalization is not run to its end either: some generalizations of some rows are timed, and all of them
counted.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from lab import pictures, record, row_by_row, tradeoff_studies
from lab.record import Claim, Finding, Measured
from lab.tradeoff_studies import ADULT, PRODUCTS, in_words

from sfumato.methods.risk_utility.optimizers import exact, probing
from sfumato.methods.risk_utility.paper import genetic
from sfumato.methods.risk_utility.problem import Ints, LatticeProblem, Solution, Threshold
from sfumato.randomness import Random

NAME = "cerias_fig8"
AT = {ADULT: (2, 3, 4, 5, 6, 7, 8), PRODUCTS: (2, 4, 6, 8, 10, 15, 20, 25, 30)}
C = {ADULT: Fraction(3, 5), PRODUCTS: Fraction(4, 5)}
SCANNED, SUMMED, CUBE = "Exhaustive, a scan each", "Exhaustive, prefix sums", "Exact, one cube"
PUBLISHED, UNPROBED, ROW_JOIN, PROBING = (
    "Genetic, probing", "Genetic, no probing", "Genetic, row-join", "Row-join probing",
)  # fmt: skip
METHODS = (SCANNED, SUMMED, CUBE, PUBLISHED, UNPROBED, ROW_JOIN, PROBING)
N_SCANNED, N_SEARCHED, N_PROBED = 3, 20, 50
"""Rows that are timed."""

N_GENERALIZATIONS = 50
"""Of a row, timed by a scan each."""

MOST_TUPLES = 1e9
"""The cube is not tried beyond so many tuples."""

PROBES: Mapping[str, Mapping[str, int]] = {PUBLISHED: {}, UNPROBED: {"n_probes": 1}}
GENERATIONS = (10, 20, 30, 40, 50, 75, 100, 150, 200)
"""The first of these at which the mean risk is that of a search with probing, and 50 of them, is the goal."""

SETUP = (
    "Adult (c = 0.6) and the generated product table (c = 0.8), their first columns; harmonic weights. CPU seconds "
    "for all distinct rows, one thread, means of {n_runs} runs. The cube is run for all rows, once; it is not tried "
    "beyond about 1e9 tuples, and with more than 8 columns of the products its keys do not fit in 63 bits. All else "
    "is timed on sampled rows (20, probing 50) and extrapolated: genetic search (50 paths, 50 generations; *no "
    "probing*: all paths begin alike), exhaustive search by prefix sums (up to 20 million generalizations of a row), "
    "and exhaustive search with a scan of the table for each generalization, of which 50 are timed for each of 3 "
    "rows and all are counted. The searches include the scan for near rows."
)

MUCH = 10
"""So many times faster is called much faster here."""

N_RUNS = 3
KEYS = ("table", "method", "columns", "measure")


# ---- trials --------------------------------------------------------------------------------------------


def trial(problem: LatticeProblem, table: str, number: int, seed: int) -> list[dict[str, Any]]:
    """CPU seconds for all (distinct) rows by each method that can do it, and the mean risk of what was searched."""
    objective = Threshold(C[table])
    random = tradeoff_studies.stream(seed, table, problem.n_columns, number)
    which = tradeoff_studies.sampled(problem, N_PROBED, random)
    out: list[dict[str, Any]] = []

    def add(method: str, measure: str, value: float) -> None:
        out.append(
            {
                "trial": number, "value": float(value), "table": table, "method": method,
                "columns": problem.n_columns, "measure": measure,
            }
        )  # fmt: skip

    add(SCANNED, "seconds", scanned(problem, objective, which[:N_SCANNED], random))
    if row_by_row.n_generalizations(problem) <= row_by_row.MOST_GENERALIZATIONS:
        few = which[:N_SEARCHED]
        taken, _ = tradeoff_studies.clocked(lambda: row_by_row.by_prefix_sums(problem, objective, few))
        add(SUMMED, "seconds", taken / len(few) * problem.n)
    if not number and exact.estimate_tuples(problem, objective) <= MOST_TUPLES:
        taken, _ = tradeoff_studies.clocked(lambda: exact.solve(problem, objective, threads=1))
        add(CUBE, "seconds", taken)
    for method, taken, found in searched(problem, objective, which, random):
        add(method, "seconds", taken / len(found) * problem.n)
        add(method, "risk", problem.risk(found.take(slice(N_SEARCHED))).mean())
    goal = next(entry["value"] for entry in out if (entry["method"], entry["measure"]) == (PUBLISHED, "risk"))
    for method, options in PROBES.items():
        taken = to_goal(problem, objective, which[:N_SEARCHED], goal, random, options)
        add(method, "seconds to goal", taken / N_SEARCHED * problem.n)
    return out


def searched(
    problem: LatticeProblem, objective: Threshold, which: Ints, random: Random
) -> Iterator[tuple[str, float, Solution]]:
    """Seconds for the sampled rows, and what was found for them, by every search."""
    few = which[:N_SEARCHED]

    def clocked(solve: Any, rows: Ints, **options: Any) -> tuple[float, Solution]:
        return tradeoff_studies.clocked(lambda: solve(problem, objective, which=rows, threads=1, **options))

    for method, options in PROBES.items():
        yield method, *clocked(genetic.solve, few, random=random, **options)
    yield ROW_JOIN, *clocked(genetic.solve_improved, few, random=random)
    yield PROBING, *clocked(probing.solve, which)


def to_goal(
    problem: LatticeProblem,
    objective: Threshold,
    which: Ints,
    goal: float,
    random: Random,
    options: Mapping[str, int],
) -> float:
    """Seconds with the fewest generations that reach a mean risk, of those that are tried; or with the most."""
    taken = 0.0
    for n_generations in GENERATIONS:
        taken, found = tradeoff_studies.clocked(
            partial(
                genetic.solve,
                problem,
                objective,
                which=which,
                random=random,
                threads=1,
                n_generations=n_generations,
                **options,
            )
        )
        if problem.risk(found).mean() <= goal * (1 + 1e-9):
            break
    return taken


def scanned(problem: LatticeProblem, objective: Threshold, which: Ints, random: Random) -> float:
    """Seconds for all rows: of one look at the whole table, times the useful generalizations of a row, times rows."""
    seconds = []
    for row in which.tolist():
        levels = row_by_row.some_useful(problem, objective, row, N_GENERALIZATIONS, random)
        taken, _ = tradeoff_studies.clocked(partial(problem.measure, np.full(len(levels), row), levels))
        seconds.append(taken / len(levels) * row_by_row.n_useful(problem, objective, row))
    return float(np.mean(seconds)) * problem.n


def run(given: Namespace, at: Mapping[str, Sequence[int]]) -> Iterator[list[dict[str, Any]]]:
    n_rows = 500 if given.quick else None
    for table in at:
        trial(tradeoff_studies.problem(table, 2, n_rows=300), table, 0, given.seed)  # compiles
        for n in at[table]:
            problem = tradeoff_studies.problem(table, n, n_rows=n_rows)
            for number in range(given.trials or (1 if given.quick else N_RUNS)):
                yield trial(problem, table, number, given.seed)


# ---- judgement -----------------------------------------------------------------------------------------


class Seconds:
    """For all rows, by method and number of columns; a method that was not run has none."""

    def __init__(self, found: Measured) -> None:
        self._found = found

    def of(self, table: str, method: str, columns: int, measure: str = "seconds") -> float:
        try:
            return float(self._found.of(table=table, method=method, columns=columns, measure=measure).mean())
        except KeyError:
            return float("nan")


def claims(found: Measured, at: Mapping[str, Sequence[int]]) -> list[Claim]:
    seconds = Seconds(found).of

    def faster(table: str, n: int, one: str, other: str, times: float = 1.0) -> Finding:
        fast, slow = seconds(table, one, n), seconds(table, other, n)
        much = f", {times:g} times" if times > 1 else ""
        return Finding(
            f"{table}, {n} columns: {one} faster than {other}{much}",
            times * fast < slow,
            f"{in_words(fast)} s against {in_words(slow)} s",
        )

    def wherever(one: str, other: str, times: float = 1.0) -> tuple[Finding, ...]:
        return tuple(
            faster(table, n, one, other, times)
            for table in at
            for n in at[table]
            if not np.isnan(seconds(table, one, n) + seconds(table, other, n))
        )

    def probed(table: str, n: int) -> Finding:
        fast, slow = (seconds(table, method, n, "seconds to goal") for method in (PUBLISHED, UNPROBED))
        return Finding(
            f"{table}, {n} columns: faster with probing",
            fast < slow,
            f"{in_words(fast)} s against {in_words(slow)} s",
        )

    def small_beside(table: str, n: int) -> Finding:
        """Probing saves less than genetic search does."""
        gain = seconds(table, UNPROBED, n, "seconds to goal") - seconds(
            table, PUBLISHED, n, "seconds to goal"
        )
        whole = seconds(table, SCANNED, n) - seconds(table, PUBLISHED, n)
        return Finding(
            f"{table}, {n} columns: probing saves less than a tenth of what genetic search saves",
            abs(gain) < whole / 10,
            f"{gain:.3g} s against {whole:.3g} s",
        )

    return [
        Claim(
            "the genetic algorithms are much more efficient than ARUBA (which looks at every generalization)",
            wherever(PUBLISHED, SCANNED, MUCH),
        ),
        Claim(
            "the genetic algorithms are much more efficient than ARUBA: with prefix sums in place of scans",
            wherever(PUBLISHED, SUMMED, MUCH),
        ),
        Claim(
            "probing has a positive impact on the running time (until the risk is as low)",
            tuple(probed(table, n) for table in at for n in at[table]),
        ),
        Claim(
            "the impact of probing is insignificant beside that of the genetic algorithm",
            tuple(small_beside(table, n) for table in at for n in at[table]),
        ),
        Claim(
            "(sfumato's, not the paper's) where the exact optimum by one cube is affordable, it is faster than "
            "genetic search",
            wherever(CUBE, PUBLISHED),
        ),
        Claim(
            "(sfumato's, not the paper's) row-join probing is faster than genetic search",
            wherever(PROBING, PUBLISHED),
        ),
    ]


def table_of(found: Measured, at: Mapping[str, Sequence[int]]) -> str:
    seconds = Seconds(found).of
    parts = []
    for table in at:
        rows = [
            f"| {table} | " + " | ".join(f"{n} columns" for n in at[table]) + " |",
            "|---" * (len(at[table]) + 1) + "|",
        ]
        for method in METHODS:
            cells = [seconds(table, method, n) for n in at[table]]
            rows.append(
                f"| {method} | " + " | ".join("" if np.isnan(x) else in_words(x) for x in cells) + " |"
            )
        parts.append("\n".join(rows))
    return "CPU seconds for all rows, extrapolated but for the cube:\n\n" + "\n\n".join(parts)


# ---- picture -------------------------------------------------------------------------------------------

STYLES = {
    SCANNED: ("#4d4d4d", "x", ":"),
    SUMMED: ("#4d4d4d", "+", "--"),
    CUBE: ("#1f6f8b", "o", "-"),
    PUBLISHED: ("#d98b2b", "s", "-"),
    UNPROBED: ("#d98b2b", "v", ":"),
    ROW_JOIN: ("#7a9e4f", "D", "-"),
    PROBING: ("#a23b4a", "^", "-"),
}


def draw(figure: record.Figure, out: Path) -> None:
    with pictures.sheet(out / f"{NAME}.png", 1, len(AT), size=(4.8, 3.8)) as axes:
        for panel, table in zip(axes[0], AT, strict=True):
            for method, (color, marker, line) in STYLES.items():
                chosen = sorted(
                    pictures.pick(figure.points, table=table, method=method, measure="seconds"),
                    key=lambda point: int(point["columns"]),
                )
                panel.plot(
                    [point["columns"] for point in chosen], [point["mean"] for point in chosen], color=color,
                    marker=marker, linestyle=line, markersize=4, linewidth=1.2, label=method,
                )  # fmt: skip
            panel.set_yscale("log")
            panel.set(title=f"{table}, c = {float(C[table]):g}", xlabel="Columns")
            panel.set_xticks(
                sorted({point["columns"] for point in pictures.pick(figure.points, table=table)})
            )
        axes[0][0].set_ylabel("CPU seconds, all rows")
        handles, names = axes[0][0].get_legend_handles_labels()
        axes[0][0].figure.legend(handles, names, loc="outside upper center", ncols=4)


def main() -> None:
    given = record.options(__doc__, learners=())
    at = {ADULT: (2, 4), PRODUCTS: (2, 4)} if given.quick else AT
    found = record.measured(given, NAME, KEYS, lambda: run(given, at))
    figure = record.save(
        given, NAME, "Efficiency",
        SETUP.format(n_runs=given.trials or N_RUNS),
        found, {record.NO_LEARNERS: claims(found, at)}, table=table_of(found, at),
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
