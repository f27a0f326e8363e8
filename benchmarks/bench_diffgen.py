"""What DiffGen costs: 200,000 to 1,000,000 rows made of Adult, beside DuckDB counting the same rows.

    SFUMATO_DATA=... python benchmarks/bench_diffgen.py [--rows 1000000] [--repeats 3] [--folder DIR]

- ``paper``, h = 15 against h = 4: the draw itself, and the whole of publishing (read, draw, noise, verify, report,
  folder). Noise is drawn for every cell, and h = 15 makes hundreds of times as many cells: it stands apart.
- ``tuned``, h = 8, against DuckDB: one GROUP BY of every attribute by class and one of the cells, on the same file.
- seconds per row from 200,000 rows on.

Adult is blown up as in [MCFY11, section 5]. CPU seconds of this process, the least of the repeats; kernels are
compiled and OpenDP is imported before. The table is a Parquet file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "reproduction"))

from diffgen_fig5 import blown_up
from lab import private

from sfumato.encoding.declared import hold_rows
from sfumato.methods.specialization.diffgen import DrawnCuts, draw
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.privacy import mechanisms
from sfumato.privacy.mechanisms import Mechanisms
from sfumato.publishing import publish_to
from sfumato.randomness import seeded
from sfumato.recoding.axis import OrderedAxis
from sfumato.table import opening

SIZES = (200_000, 400_000, 600_000, 800_000, 1_000_000)
EPSILON = Fraction(1)


@dataclass(slots=True)
class Clocked:
    """Mechanisms whose noise for counts is timed apart."""

    own: Mechanisms
    noise: float = 0.0

    @property
    def statement(self) -> str:
        return self.own.statement

    def exponential(self, scores: Any, scale: Fraction) -> int:
        return self.own.exponential(scores, scale)

    def permute_and_flip(self, scores: Any, scale: Fraction) -> int:
        return self.own.permute_and_flip(scores, scale)

    def discrete_laplace(self, counts: Any, scale: Fraction) -> Any:
        began = time.process_time()
        noisy = self.own.discrete_laplace(counts, scale)
        self.noise += time.process_time() - began
        return noisy


def clocked(what: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """CPU seconds of the fastest of some runs, and what it returned."""
    best, found = float("inf"), None
    for _ in range(repeats):
        began = time.process_time()
        result = what()
        taken = time.process_time() - began
        if taken < best:
            best, found = taken, result
    return best, found


def asked(variant: str, h: int) -> DiffGenOptions:
    return DiffGenOptions(EPSILON, variant=variant, specializations=h)


def read_and_draw(path: Path, options: DiffGenOptions) -> tuple[DrawnCuts, float]:
    """The table read, encoded and drawn from; and of that, seconds of noise."""
    how = Clocked(mechanisms.secret())
    rows = hold_rows(opening.open_table(path), private.policy(options))
    return draw(rows, rows.domains, len(rows.class_values), options, how), how.noise


def groups_by_duckdb(path: Path, drawn: DrawnCuts) -> int:
    """Every attribute by class, and the cells by class."""
    label = f'"{private.CLASS}"'
    with duckdb.connect() as base:
        base.execute("SET threads TO 1")
        for name in private.COLUMNS:
            base.execute(f'SELECT "{name}", {label}, count(*) FROM read_parquet(?) GROUP BY ALL', [str(path)])
            base.fetchall()
        pieces = ", ".join(_piece(drawn, a, name) for a, name in enumerate(private.COLUMNS))
        base.execute(f"SELECT {pieces}, {label}, count(*) FROM read_parquet(?) GROUP BY ALL", [str(path)])
        return len(base.fetchall())


def _piece(drawn: DrawnCuts, a: int, name: str) -> str:
    """The piece of a cell, as SQL."""
    axis, ends = drawn.grid.axes[a], drawn.grid.ends[a]
    if len(ends) == 1:
        return "0"
    if isinstance(axis, OrderedAxis):
        cases = " ".join(
            f'WHEN "{name}" <= {value} THEN {i}'
            for i, value in enumerate(drawn.grid.thresholds[a].tolist())
            if np.isfinite(value)
        )
        return f"CASE {cases} ELSE {len(ends)} END"
    tree = private.encoded()[0][a].hierarchy
    labels = [tree.labels[node] for node in tree.leaf_nodes.tolist()]
    piece = np.searchsorted(ends, np.arange(len(labels)), side="right").tolist()
    cases = " ".join(
        f"WHEN '{label}' THEN {i}" for label, i in zip(labels, piece, strict=True) if label is not None
    )
    return f'CASE "{name}" {cases} ELSE {piece[-1]} END'


def whole(path: Path, folder: Path, options: DiffGenOptions) -> None:
    publish_to(folder / "out", path, private.policy(options), overwrite=True)


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--rows", type=int, default=1_000_000)
    given.add_argument("--repeats", type=int, default=3)
    given.add_argument("--folder", type=Path, help="where files are written; a temporary folder if not given")
    options = given.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="bench-diffgen-"))
    folder.mkdir(parents=True, exist_ok=True)
    largest = blown_up(options.rows, seeded(0))
    path = folder / "adult.parquet"
    pq.write_table(largest, path)
    read_and_draw(path, asked("tuned", 2))  # compiles kernels, imports OpenDP
    read_and_draw(path, asked("paper", 2))

    def tell(**line: Any) -> None:
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        print(json.dumps({"bench": "diffgen", "rows": options.rows, **line, "machine": machine}), flush=True)

    seconds = {}
    for h in (4, 15):
        taken, (drawn, noise) = clocked(partial(read_and_draw, path, asked("paper", h)), options.repeats)
        published, _ = clocked(partial(whole, path, folder, asked("paper", h)), options.repeats)
        seconds[h] = taken - noise, taken, published
        tell(
            variant="paper",
            h=h,
            cells=len(drawn.counts),
            without_noise=round(taken - noise, 2),
            noise=round(noise, 2),
            whole_publish=round(published, 2),
        )
    ratios = [round(one / other, 2) for one, other in zip(seconds[15], seconds[4], strict=True)]
    tell(
        ratio="paper, h = 15 / h = 4", without_noise=ratios[0], with_noise=ratios[1], whole_publish=ratios[2]
    )
    taken, (drawn, _) = clocked(lambda: read_and_draw(path, asked("tuned", 8)), options.repeats)
    counted, _ = clocked(lambda: groups_by_duckdb(path, drawn), options.repeats)
    tell(
        ratio="tuned, h = 8 / DuckDB",
        cells=len(drawn.counts),
        tuned=round(taken, 2),
        duckdb=round(counted, 2),
        value=round(taken / counted, 2),
    )
    for n in (size for size in SIZES if size <= options.rows):
        pq.write_table(largest.slice(0, n), folder / "part.parquet")
        for variant, h in (("paper", 15), ("tuned", 8)):
            taken, (_, noise) = clocked(
                partial(read_and_draw, folder / "part.parquet", asked(variant, h)), options.repeats
            )
            tell(
                variant=variant, h=h, of_rows=n, microseconds_per_row=round(1e6 * (taken - noise) / n, 3),
                noise=round(noise, 2),
            )  # fmt: skip


if __name__ == "__main__":
    main()
