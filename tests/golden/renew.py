"""Golden releases: what comes out of fixed tables and policies, remembered in releases.json.

A change of the algorithm that changes a release is then seen, and made on purpose or not at all. To renew
the file after a change on purpose, look at what differs and say why in the changelog:

    SFUMATO_DATA=/path/to/tables python tests/golden/renew.py

Without SFUMATO_DATA the releases of real tables stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import sfumato as sf
from sfumato.examples import demo
from sfumato.policy.options.mondrian import NO_LIST, PAPER, MondrianOptions
from sfumato.policy.workload import Task
from sfumato.table.opening import open_table

# Run as a script, it finds what the tests share.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from private_people import people, the_policy

FILE = Path(__file__).with_name("releases.json")
ADULT_QUASI_IDENTIFIERS = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
)  # fmt: skip
ADULT_CLASS = "salary-class"
SEED = 20110821


def adult(data: Path) -> tuple[pa.Table, sf.Policy]:
    """The complete rows of Adult with the hierarchies that ARX ships, as in ARX's own examples."""
    source = open_table(data / "adult" / "adult.csv.gz")
    table = pa.table({name: source.column(name).cast(pa.string()) for name in source.names})
    for name in table.column_names:  # complete: without a ? anywhere
        table = table.filter(pc.not_equal(table[name], "?"))
    folder = data / "adult_hierarchies" / "arx"
    attributes: dict[str, Any] = {
        name: {"role": "quasi-identifier", "hierarchy": str(folder / f"adult_hierarchy_{name}.csv")}
        for name in ADULT_QUASI_IDENTIFIERS
    }
    attributes[ADULT_CLASS] = {"role": "other"}
    policy = sf.Policy.from_dict({"attributes": attributes, "require": [{"k-anonymity": 10}]})
    return table.select(list(attributes)), policy


def patients() -> tuple[pa.Table, sf.Policy]:
    """The first example of the demo, with the policy that it ships."""
    with tempfile.TemporaryDirectory() as folder:
        demo.write_example(folder, n_rows=500)
        return demo.patients(500), sf.Policy.read(Path(folder) / "policy.yaml")


AS_PUBLISHED = MondrianOptions(variant=PAPER)
TREE = MondrianOptions(refine=NO_LIST)
"""Mondrian by loss, with nothing done to the groups of its tree."""


def asking(
    case: tuple[pa.Table, sf.Policy], method: MondrianOptions, *tasks: Task
) -> tuple[pa.Table, sf.Policy]:
    """The case with this method and this workload."""
    table, policy = case
    return table, replace(policy, workload=tasks, method=method)


ELDERLY_SMOKERS = sf.Select("age >= 65 and smoker = 'yes'")
READMITTED = sf.Classify("readmitted")
STAY = sf.Regress("length_of_stay")
SALARY = sf.Classify(ADULT_CLASS)

OWN: dict[str, Callable[[], tuple[pa.Table, sf.Policy]]] = {
    "patients, InfoGain": lambda: asking(patients(), AS_PUBLISHED, ELDERLY_SMOKERS, READMITTED),
    "patients, Median": lambda: asking(patients(), AS_PUBLISHED),
    "patients, Regression": lambda: asking(patients(), AS_PUBLISHED, STAY),
    "patients, loss": lambda: asking(patients(), TREE),
    "patients, class and loss": lambda: asking(patients(), TREE, READMITTED),
    "patients, list of cells": lambda: asking(patients(), MondrianOptions()),
}
REAL: dict[str, Callable[[Path], tuple[pa.Table, sf.Policy]]] = {
    "Adult, InfoGain, k = 10": lambda data: asking(adult(data), AS_PUBLISHED, SALARY),
    "Adult, Median, k = 10": lambda data: asking(adult(data), AS_PUBLISHED),
    "Adult, loss, k = 10": lambda data: asking(adult(data), TREE),
    "Adult, class and loss, k = 10": lambda data: asking(adult(data), TREE, SALARY),
}

PRIVATE: dict[str, Callable[[], tuple[pa.Table, sf.Policy]]] = {
    "people, DiffGen as published": lambda: (people(), the_policy(variant="paper", specializations=8)),
    "people, DiffGen with given cuts": lambda: (
        people(),
        the_policy(cuts={"age": [30, 50], "job": "leaves", "born": ["1980-01-01"]}),
    ),
}
"""Drawn from a seed, or they would be others every time."""


def private_summary(table: pa.Table, policy: sf.Policy) -> dict[str, Any]:
    """What is remembered of a differentially private release."""
    release = sf.publish(table, policy, seed=SEED)
    lines = ["\t".join(map(str, line.values())) for line in release.rows.to_pylist()]
    return {
        "cells": release.certificate.claims.groups,
        "counted": release.certificate.claims.counted,
        "splits": release.recoding.n_splits(),
        "draws": [
            f"{draw['draw']} {draw.get('of', '')}".strip() for draw in release.certificate.privacy.ledger
        ],
        "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
    }


def summary(table: pa.Table, policy: sf.Policy) -> dict[str, Any]:
    """What is remembered of a release: little enough to read, enough to notice any change of a group."""
    release = sf.publish(table, policy)
    quasi = [attribute.name for attribute in policy.schema.quasi_identifiers]
    cells = [release.rows.column(name).cast(pa.string()).to_pylist() for name in quasi]
    boxes = Counter("\t".join(str(cell) for cell in row) for row in zip(*cells, strict=True))
    lines = sorted(boxes.elements())
    return {
        "rows": len(lines),
        "groups": release.certificate.claims.groups,
        "smallest group": min(boxes.values()),
        "splits": release.recoding.n_splits(),
        "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
    }


def remembered() -> dict[str, dict[str, Any]]:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def main() -> None:
    found = remembered()
    for name, make in OWN.items():
        found[name] = summary(*make())
    for name, make in PRIVATE.items():
        found[name] = private_summary(*make())
    if data := os.environ.get("SFUMATO_DATA"):
        for name, make_real in REAL.items():
            found[name] = summary(*make_real(Path(data)))
    kept = {name: found[name] for name in (*OWN, *PRIVATE, *REAL) if name in found}
    FILE.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    print(f"Wrote {FILE} with {len(kept)} releases.")


if __name__ == "__main__":
    main()
