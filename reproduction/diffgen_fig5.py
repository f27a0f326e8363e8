"""Figure 5 of [MCFY11]: what DiffGen costs on Adult blown up to a million rows: reading, anonymizing, writing."""

from __future__ import annotations

import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from lab import pictures, private, record
from lab.record import Claim, Finding, Measured

from sfumato.encoding import declared
from sfumato.methods.specialization import diffgen
from sfumato.policy.document import Policy
from sfumato.privacy import mechanisms
from sfumato.privacy.mechanisms import Ints, Mechanisms
from sfumato.randomness import Random, seeded_block
from sfumato.recoding.counts import GridLines
from sfumato.table import opening, write

NAME = "diffgen_fig5"
N_ADULT = private.N_TRAIN + private.N_TEST
SIZES = (N_ADULT, 200_000, 400_000, 600_000, 800_000, 1_000_000)
EPSILON = 1
H = 15
N_RUNS = 3
REPLACED = 3
"""Of the fourteen values of a row, so many are replaced on average to make a variation of it."""

PARTS = ("reading", "anonymizing", "noise", "writing")
METHODS = {
    "paper": private.options(EPSILON, variant="paper", h=H, score="max"),
    "tuned": private.options(EPSILON),
}
KEYS = ("method", "measure", "rows")
WITHIN = 30
"""Seconds within which the paper's experiments on Adult itself end."""

NEAR_LINEAR = 1.25
"""A million rows may cost so many times as much a row as 200,000 do."""


def blown_up(n_rows: int, random: Random) -> pa.Table:
    """Adult, then variations of its rows: some values replaced by any that the column has, the class kept."""
    rows = private.table()
    scale = -(-n_rows // rows.num_rows)
    columns: dict[str, Any] = {}
    n_new = n_rows - rows.num_rows
    for name in private.COLUMNS:
        column = rows[name].combine_chunks()
        if n_new > 0:
            values = column.unique()
            again = np.tile(np.arange(rows.num_rows), scale - 1)[:n_new]
            is_replaced = random.random(n_new) < REPLACED / len(private.COLUMNS)
            others = values.take(pa.array(random.integers(len(values), size=n_new)))
            new = pa.compute.if_else(pa.array(is_replaced), others, column.take(pa.array(again)))
            column = pa.concat_arrays([column, new])
        columns[name] = column[:n_rows]
    classes = np.tile(np.arange(rows.num_rows), scale)[:n_rows]
    return pa.table({**columns, private.CLASS: rows[private.CLASS].combine_chunks().take(pa.array(classes))})


def trial(
    n_rows: int, number: int, folder: Path, seed: int, *, secret: bool = True
) -> Iterator[list[dict[str, Any]]]:
    """Both variants on one table: CPU seconds of each part."""
    path = folder / f"rows-{n_rows}.parquet"
    pq.write_table(blown_up(n_rows, seeded_block(seed, n_rows)), path)
    for method, options in METHODS.items():
        draws = mechanisms.secret() if secret else private.mechanisms(seed, NAME, number, method, n_rows)
        spent = measured(path, private.policy(options), folder, draws)
        yield [
            {"trial": number, "value": value, "method": method, "measure": part, "rows": n_rows}
            for part, value in spent.items()
        ]


class Clocked:
    """Mechanisms, and the CPU seconds that noise took."""

    def __init__(self, draws: Mechanisms) -> None:
        self.draws, self.statement, self.seconds = draws, draws.statement, 0.0

    def exponential(self, scores: Ints, scale: Fraction) -> int:
        return self.draws.exponential(scores, scale)

    def permute_and_flip(self, scores: Ints, scale: Fraction) -> int:
        return self.draws.permute_and_flip(scores, scale)

    def discrete_laplace(self, counts: Ints, scale: Fraction) -> Ints:
        start = time.process_time()
        noisy = self.draws.discrete_laplace(counts, scale)
        self.seconds += time.process_time() - start
        return noisy


def measured(path: Path, policy: Policy, folder: Path, by: Mechanisms) -> dict[str, float]:
    """CPU seconds of one release; the grid is counted besides."""
    draws = Clocked(by)
    marks = [time.process_time()]
    rows = declared.hold_rows(opening.open_table(path), policy)
    marks.append(time.process_time())
    drawn = diffgen.draw(rows, rows.domains, len(rows.class_values), policy.method, draws)  # type: ignore[arg-type]
    marks.append(time.process_time())
    recoding = drawn.grid.recoding(len(drawn.counts), policy.output, policy.schema.left_out)
    with write.TableWriter(folder / "release.parquet") as writer:
        for part in GridLines.of(recoding, policy).tables(drawn.counts):
            writer.append(part)
    marks.append(time.process_time())
    reading, drawing, writing = np.diff(marks).tolist()
    spent = (reading, drawing - draws.seconds, draws.seconds, writing)
    return {**dict(zip(PARTS, spent, strict=True)), "cells": float(len(drawn.counts))}


def run(given: Namespace, sizes: Sequence[int]) -> Iterator[list[dict[str, Any]]]:
    with tempfile.TemporaryDirectory(dir=given.scratch) as name:
        folder = Path(name)
        list(trial(2_000, 0, folder, given.seed))  # compiles what there is to compile
        for number in range(given.trials or (1 if given.quick else N_RUNS)):
            for n_rows in sizes:
                yield from trial(n_rows, number, folder, given.seed, secret=not given.quick)


# ---- judgement -----------------------------------------------------------------------------------------


def claims(found: Measured, sizes: Sequence[int]) -> list[Claim]:
    def total(method: str, n_rows: int, parts: Sequence[str] = PARTS) -> float:
        return float(sum(found.of(method=method, measure=part, rows=n_rows).mean() for part in parts))

    first, last = sizes[1] if len(sizes) > 2 else sizes[0], sizes[-1]
    small = sizes[0]

    def linear(method: str) -> Finding:
        each = [total(method, n) / n * 1e6 for n in (first, last)]
        return Finding(
            f"{method}: {last:,} rows cost at most {NEAR_LINEAR:g} times as much a row as {first:,}",
            each[1] <= NEAR_LINEAR * each[0],
            f"{each[0]:.2f} and {each[1]:.2f} µs a row, {total(method, last):.1f} s for all",
        )

    def fast(method: str) -> Finding:
        seconds = total(method, small)
        return Finding(
            f"{method}, {small:,} rows, within {WITHIN} s", seconds <= WITHIN, f"{seconds:.2f} CPU seconds"
        )

    return [
        Claim("runtime grows no faster than rows, up to a million of them", tuple(map(linear, METHODS))),
        Claim("anonymizing Adult itself ends within 30 seconds", tuple(map(fast, METHODS))),
    ]


def table(found: Measured, sizes: Sequence[int]) -> str:
    rows = ["| variant | rows | " + " | ".join(PARTS) + " | cells |", "|---" * (len(PARTS) + 3) + "|"]
    for method in METHODS:
        for n in sizes:
            cells = [f"{found.of(method=method, measure=part, rows=n).mean():.2f} s" for part in PARTS]
            grid = found.of(method=method, measure="cells", rows=n)
            rows.append(f"| {method} | {n:,} | {' | '.join(cells)} | {np.median(grid):,.0f} |")
    return "\n".join(rows)


def draw(figure: record.Figure, out: Path) -> None:
    colors = dict(zip(PARTS, (*pictures.SHADES[2::-1], pictures.SHADES[4]), strict=True))
    with pictures.sheet(out / f"{NAME}.png", 1, len(METHODS), size=(4.2, 3.2)) as axes:
        for panel, method in zip(axes[0], METHODS, strict=True):
            chosen = pictures.pick(figure.points, method=method)
            sizes = sorted({point["rows"] for point in chosen})
            totals = np.zeros(len(sizes))
            for part, color in colors.items():
                line = [pictures.pick(chosen, measure=part, rows=n)[0]["mean"] for n in sizes]
                totals += line
                panel.plot(sizes, line, color=color, marker="o", markersize=4, linewidth=1.3, label=part)
            panel.plot(sizes, totals, color="#4d4d4d", linestyle="--", linewidth=1.3, label="total")
            panel.set(
                title=f"{method}" + (f", h = {H}" if method == "paper" else ""), xlabel="Rows", ylim=(0, None)
            )
            panel.set_xticks(sizes[1:], [pictures.in_short(n) for n in sizes[1:]])
        axes[0][0].set_ylabel("CPU seconds")
        pictures.legend(axes[0][0])


def _more(parser: ArgumentParser) -> None:
    parser.add_argument("--scratch", type=Path, help="where the tables are written, for the time being")


def main() -> None:
    given = record.options(__doc__, learners=(), more=_more)
    sizes = given.at or ((1_000, 5_000) if given.quick else SIZES)
    found = record.measured(given, NAME, KEYS, lambda: run(given, sizes))
    figure = record.save(
        given, NAME, "Scalability",
        f"Adult ({N_ADULT:,} rows) and variations of its rows, in each of which {REPLACED} of 14 values on average are "
        f"replaced by any that the column has; epsilon = {EPSILON}; mean of {given.trials or N_RUNS} runs; CPU seconds "
        "(other work was running). Reading is a Parquet file into codes, writing a Parquet file of all cells and "
        "classes, zeros included. Draws are secret (OpenDP); the noise of all cells stands apart, for its cost "
        "depends on how many they are and not on rows.",
        found, {record.NO_LEARNERS: claims(found, sizes)}, table=table(found, sizes),
    )  # fmt: skip
    draw(figure, given.out)


if __name__ == "__main__":
    main()
