"""Releases of other tools, each in a process of its own, so that they may live in another environment.

    python benchmarks/loss_peers.py anjana request.json rows.csv out.csv

``request.json`` has k, the numbers, and of each hierarchy the labels of every leaf from the leaf up. What is written are
the published labels, a line per row that was published, with the number of the row. CPU seconds of the tool alone are
printed. Imports nothing but pandas and the tool.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

ROW, CLASS = "row", "is_positive"


def run_anjana(rows: pd.DataFrame, request: dict[str, Any]) -> tuple[pd.DataFrame, float]:
    """Global recoding: one level for each column; at most 1% of the rows may be left out."""
    from anjana.anonymity import k_anonymity

    names = [name for name in rows.columns if name not in (ROW, CLASS)]
    hierarchies = {name: lift(rows[name], request, name) for name in names}
    start = time.process_time()
    found = k_anonymity(rows, [], names, request["k"], 1, hierarchies)
    return found, time.process_time() - start


def lift(cells: pd.Series, request: dict[str, Any], name: str) -> dict[int, Any]:
    """The label of each row's cell on every level, as anjana wants it; numbers in widths of powers of two."""
    if name in request["numbers"]:
        low, high = request["numbers"][name]
        levels: dict[int, Any] = {0: cells.to_numpy()}
        width = 2
        while width <= high - low:
            first = low + (cells - low) // width * width
            last = (first + width - 1).clip(upper=high)
            levels[len(levels)] = ("[" + first.astype(str) + ", " + last.astype(str) + "]").to_numpy()
            width *= 2
        return {**levels, len(levels): ["*"] * len(cells)}
    above = request["hierarchies"][name]
    depth = max(map(len, above.values()))
    padded = {leaf: [*labels, *[labels[-1]] * (depth - len(labels))] for leaf, labels in above.items()}
    return {level: [padded[cell][level] for cell in cells] for level in range(depth)}


def run_anonypy(rows: pd.DataFrame, request: dict[str, Any]) -> tuple[pd.DataFrame, float]:
    """Mondrian; a group's label of a category lists its values."""
    from anonypy.anonypy import anonymize
    from anonypy.mondrian import Mondrian

    names = [name for name in rows.columns if name not in (ROW, CLASS)]
    for name in names:
        if name not in request["numbers"]:
            rows[name] = rows[name].astype("category")
    start = time.process_time()
    parts = Mondrian(rows, names, CLASS).partition(request["k"])
    labels = [anonymize(rows, [part], names, CLASS)[0] for part in parts]
    seconds = time.process_time() - start
    lines = [
        {
            **{name: label[name][0] if isinstance(label[name], list) else label[name] for name in names},
            ROW: row,
        }
        for part, label in zip(parts, labels, strict=True)
        for row in rows.loc[part, ROW]
    ]
    return pd.DataFrame(lines), seconds


PEERS = {"anjana": run_anjana, "anonypy": run_anonypy}


def main() -> None:
    name, request, rows, out = sys.argv[1:]
    asked = json.loads(Path(request).read_text(encoding="utf-8"))
    texts = dict.fromkeys(asked["hierarchies"], str)
    table = pd.read_csv(rows, dtype=texts, keep_default_na=False)
    found, seconds = PEERS[name](table, asked)
    found.to_csv(out, index=False)
    print(json.dumps({"cpu": seconds}))


if __name__ == "__main__":
    main()
