"""What a draft of ``sfumato profile`` keeps of a table, and what it leaves open to whoever knows three columns.

    SFUMATO_DATA=... python benchmarks/bench_drafts.py           # the data folder's tables, and generated ones
    python benchmarks/bench_drafts.py stays.csv answers.parquet  # your own
    python benchmarks/bench_drafts.py --rows 12000 rdatasets/*.csv   # CSV files, so many rows at random of each

Each table is profiled and published by its draft as it stands. Printed are its columns; how many the release has; how
many were left out as direct identifiers; as free text, unique or empty; and otherwise; the share that is kept of those
that are none of the former; the share of the published columns that are ``*`` in under half of the rows; the largest
share of rows that any three of the columns that pass as they are single out; and the seconds that ``profile`` took.

Aims: at most 5% of the rows alone by any three columns; at least 80% of the columns kept that are no identifiers, free
text, unique or empty; half of the published ones ``*`` in under half of the rows.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import sklearn.datasets

import sfumato as sf
from sfumato.policy.schema import Role
from sfumato.profiling.draft import PolicyDraft
from sfumato.profiling.facts import Shape
from sfumato.profiling.guess import Guess
from sfumato.profiling.roles import PASSING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from drafted_tables import TABLES

REAL = (
    "adult/adult.csv.gz",
    "cmc/cmc.csv",
    "acs_pums_2024/p_13.parquet",
    "census_income_kdd/census_income_kdd.parquet",
)
HEADS = (
    "columns",
    "kept",
    "identifiers",
    "no loss",
    "dropped",
    "of the rest",
    "say something",
    "alone by 3",
    "seconds",
)


def tables(paths: list[str], most: int | None) -> Iterator[tuple[str, Any]]:
    """Tables by name: those that are asked for, or real and generated ones."""
    if paths:
        yield from ((Path(path).name, path if most is None else read_some(path, most)) for path in paths)
        return
    if folder := os.environ.get("SFUMATO_DATA"):
        yield from ((Path(name).stem, f"{folder}/{name}") for name in REAL)
    for load in (sklearn.datasets.load_breast_cancer, sklearn.datasets.load_diabetes):
        yield load.__name__.removeprefix("load_"), load(as_frame=True).frame
    yield from ((f"generated {name}", make()) for name, make in TABLES.items())


def read_some(path: str, most: int) -> pd.DataFrame:
    """So many rows of a CSV file at random, without the row names that R writes first."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    frame = frame.drop(columns="rownames") if frame.columns[0] == "rownames" else frame
    return frame if len(frame) <= most else frame.sample(most, random_state=0).sort_index()


def measure(table: Any) -> tuple[str, ...]:
    """The figures of one table, as texts."""
    start = time.perf_counter()
    draft = sf.profile(table)
    seconds = time.perf_counter() - start
    rows = sf.publish(table, draft.policy()).rows
    assert isinstance(rows, pa.Table)
    frame = rows.to_pandas()
    identifiers = sum(found.role is Role.IDENTIFIER for found in draft.columns)
    dropped = [found for found in draft.columns if found.role is Role.DROP]
    lossless = sum(map(is_no_loss, dropped))
    rest = len(draft.published) + len(dropped) - lossless
    speaking = sum(says_something(frame[found.name]) for found in draft.published)
    counts = (len(draft.columns), len(draft.published), identifiers, lossless, len(dropped) - lossless)
    shares = (len(draft.published) / rest, speaking / len(draft.published), alone_by_three(draft, frame))
    return (*map(str, counts), *(f"{share:.1%}" for share in shares), f"{seconds:.1f}")


def is_no_loss(found: Guess) -> bool:
    """Was a column left out that is empty, free text, or nearly unique?"""
    facts = found.facts
    return facts.shape in (Shape.NESTED, Shape.EMPTY, Shape.PROSE) or facts.share_alone > 0.5


def says_something(cells: pd.Series) -> bool:
    """Are fewer than half of the cells of a published column ``*``?"""
    return int((cells.astype("string") == "*").sum()) < len(cells) / 2


def alone_by_three(draft: PolicyDraft, rows: pd.DataFrame) -> float:
    """The largest share of the rows that stand alone by three columns that pass as they are."""
    names = [f.name for f in draft.published if f.role in PASSING and f.facts.n_codes > 1]
    codes = {name: pd.factorize(rows[name], use_na_sentinel=False)[0] for name in names}
    worst = 0
    for some in itertools.combinations(names, min(3, len(names))):
        frame = pd.DataFrame({name: codes[name] for name in some})
        worst = max(worst, int((~frame.duplicated(keep=False)).sum())) if some else 0
    return worst / max(len(rows), 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "paths", nargs="*", help="tables; without any, those of the data folder and generated ones"
    )
    parser.add_argument("--rows", type=int, help="of each table, this many rows at most")
    given = parser.parse_args()
    print(f"{'':<22}" + "".join(f"{head:>14}" for head in HEADS))
    for name, table in tables(given.paths, given.rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(f"{name:<22}" + "".join(f"{cell:>14}" for cell in measure(table)), flush=True)


if __name__ == "__main__":
    main()
