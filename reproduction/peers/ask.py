"""What the peers are asked for, and the synthetic rows that they gave.

They want few values in each column, so the numbers of Adult are cut into bins. The bins are public: round numbers
within the declared bounds, chosen without a look at the rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from lab import private
from lab.private import Weighted
from lab.record import ROOT
from numpy.typing import NDArray

from sfumato.evaluation.features import Features

Ints = NDArray[np.int64]

HERE = Path(__file__).resolve().parent
FOLDER = ROOT / "build" / "peers"
ENVIRONMENT = FOLDER / "environment"

AIM, MST = "AIM", "MST"
DELTA = 1e-9
PROMISE = "(epsilon, 1e-9)"
"""What they promise, in words: weaker than epsilon alone."""

N_ROWS = 30_000
"""How many synthetic rows are made; how many real ones there are is nobody's to know."""

SETTINGS: Mapping[str, Mapping[str, Any]] = {AIM: {"max_model_size": 4, "n_iters": 100}, MST: {}}
"""AIM fits each of its rounds with 100 steps from where the last one ended, and its models may have 4 MB; dpmm's own are
1,000 steps and 80 MB, which did not end within hours here. MST's are dpmm's own."""

FIT: Mapping[str, float] = {"steps": 250, "tolerance": 0.01, "rounds": 40}
"""The last fit of both goes on in rounds of 250 steps until one of them lowers the loss by less than 1%."""

QUICK: Mapping[str, Mapping[str, Any]] = {
    AIM: {"max_model_size": 0.1, "n_iters": 5, "rounds": 2},
    MST: {"n_iters": 5},
}
QUICK_FIT: Mapping[str, float] = {"steps": 5, "tolerance": 0.5, "rounds": 2}

BINS: Mapping[str, Sequence[int]] = {
    "age": range(20, 95, 5),
    "fnlwgt": range(50_000, 500_001, 50_000),
    "education-num": range(2, 17),
    "capital-gain": (1, *range(1_000, 10_001, 1_000), 15_000, 20_000, 50_000),
    "capital-loss": (1, 500, 1_000, 1_250, 1_500, 1_750, 2_000, 2_250, 2_500, 3_000, 4_000),
    "hours-per-week": range(10, 100, 10),
}
"""Where the second bin of a number begins, the third, and so on."""


@dataclass(frozen=True, slots=True)
class Job:
    """One table of synthetic rows.

    >>> Job("AIM", 0.5, 2).file
    'aim-0.5-2.csv'
    """

    peer: str
    epsilon: float
    number: int

    @property
    def file(self) -> str:
        return f"{self.peer.lower()}-{self.epsilon:g}-{self.number}.csv"


# ---- the rows in bins ------------------------------------------------------------------------------------


def values() -> dict[str, list[str]]:
    """The declared categories of each column that is no number, in alphabetical order; the class last."""
    schema = private.schema()
    out = {}
    for name in (*private.COLUMNS, private.CLASS):
        attribute = schema[name]
        if name == private.CLASS:
            out[name] = list(private.CLASSES)
        elif attribute.hierarchy is not None:
            out[name] = sorted(str(path[0]) for path in attribute.build_declared_hierarchy().as_levels())
    return out


def domain() -> dict[str, int]:
    """How many codes each column has."""
    categories = values()
    return {
        name: len(BINS[name]) + 1 if name in BINS else len(categories[name])
        for name in (*private.COLUMNS, private.CLASS)
    }


def codes(rows: pa.Table) -> pa.Table:
    """Rows of Adult as codes from 0, a column for each attribute and one for the class."""
    categories = values()
    out = {}
    for name in domain():
        if name in BINS:
            out[name] = np.searchsorted(np.array(BINS[name]), rows[name].to_numpy(), side="right")
        else:
            places = pc.index_in(rows[name], value_set=pa.array(categories[name]))
            out[name] = places.to_numpy().astype(np.int64)
    return pa.table(out)


def points(rows: pa.Table) -> Weighted:
    """Codes as what a model learns from: bins in their order, categories as categories."""
    sizes = domain()
    trees = [name for name in private.COLUMNS if name not in BINS]
    columns = {name: rows[name].to_numpy().astype(np.int64) for name in sizes}
    features = Features(
        np.column_stack([columns[name] for name in BINS]).astype(np.float64),
        tuple(columns[name] for name in trees),
        tuple(sizes[name] for name in trees),
        (*BINS, *trees),
    )
    return Weighted(features, columns[private.CLASS], np.ones(rows.num_rows, dtype=np.int64))


@cache
def parts() -> tuple[pa.Table, pa.Table]:
    """Training and test rows, UCI's parts, as codes."""
    everyone = codes(private.table())
    return everyone.slice(0, private.N_TRAIN), everyone.slice(private.N_TRAIN)


# ---- asking ----------------------------------------------------------------------------------------------


def environment() -> Path:
    """The Python of the peers' environment, which is made if it is not there in full."""
    python, stamp = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "installed.txt"
    wanted = HERE / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted.read_text(encoding="utf-8"):
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", wanted], check=True)  # noqa: S603 - fixed words
        stamp.write_text(wanted.read_text(encoding="utf-8"), encoding="utf-8")
    return python


def write(jobs: Sequence[Job], folder: Path, *, quick: bool) -> None:
    """The training rows and the jobs, as ``synthesize.py`` reads them."""
    settings = QUICK if quick else SETTINGS
    folder.mkdir(parents=True, exist_ok=True)
    pyarrow.csv.write_csv(parts()[0], folder / "rows.csv")
    order = {
        "domain": domain(),
        "rows": N_ROWS,
        "fit": QUICK_FIT if quick else FIT,
        "jobs": [
            {
                "file": job.file,
                "peer": job.peer,
                "epsilon": job.epsilon,
                "delta": DELTA,
                "settings": settings[job.peer],
            }
            for job in jobs
        ],
    }
    (folder / "job.json").write_text(json.dumps(order, indent=1) + "\n", encoding="utf-8")


def run(jobs: Sequence[Job], *, quick: bool) -> None:
    """Have the rows of these jobs made that are not there yet."""
    write(jobs, folder_of(quick=quick), quick=quick)
    command = [environment(), HERE / "synthesize.py", folder_of(quick=quick)]
    subprocess.run(command, check=True, stdout=sys.stderr)  # noqa: S603 - our own script


def folder_of(*, quick: bool) -> Path:
    return FOLDER / ("quick" if quick else "rows")


def taken(job: Job, folder: Path) -> dict[str, float] | None:
    """The CPU seconds and the rounds of its last fit that a job took; None if it is not done."""
    path = (folder / job.file).with_suffix(".json")
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    return {"CPU seconds": found["seconds"], "rounds of the last fit": float(len(found["losses"]))}


def synthetic(job: Job, folder: Path) -> tuple[Weighted, Features, Ints]:
    """The synthetic rows of a job, and the test rows with their classes."""
    test = points(parts()[1])
    return points(pyarrow.csv.read_csv(folder / job.file)), test.features, test.classes


def as_they_are() -> tuple[Weighted, Features, Ints]:
    """The same with the real training rows in bins: what the bins alone cost."""
    train, test = (points(part) for part in parts())
    return train, test.features, test.classes
