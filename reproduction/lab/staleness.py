"""Does a figure still give what is on record? A small seeded run of its script gives numbers that are kept beside it.

Only numbers that repeat are kept: no seconds, no memory, nothing that secret draws gave.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab import provenance, record
from lab.provenance import ROOT

SCRIPTS = ROOT / "reproduction"
CLOSE = 1e-5
"""Numbers that differ by less than this share of them are the same: the last digits are those of a machine."""

CHANCE = {
    "measure": {
        "CPU", "CPU seconds", "user", "kernel", "waiting", "wall", "peak memory", "seconds", "seconds to goal",
        "reading", "anonymizing", "noise", "writing", "bytes read", "bytes written",
    },
    "source": {"disk", "calls"},
    "randomness": {"secret"},
}  # fmt: skip
"""What a point must not be of, by its column."""

ABOUT = ("mean", "half_width", "deviation", *record.STAMP)
"""The columns of a point that do not say what it is of."""

Numbers = dict[str, float]


def figures() -> list[str]:
    """The names of all scripts that measure a figure."""
    return sorted(path.stem for path in SCRIPTS.glob("*_*.py") if path.stem != "run_all")


def quick_numbers(name: str) -> Numbers:
    """What the script gives now, by a small run of its own."""
    with tempfile.TemporaryDirectory(prefix="sfumato-quick-") as folder:
        out = Path(folder, "reproduction")
        command = [
            sys.executable, str(SCRIPTS / f"{name}.py"), "--quick", "--fresh", "--processes", "1", "--out", str(out),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own script
        if done.returncode:
            raise SystemExit(f"{name} --quick failed:\n{done.stderr}")
        return repeatable(record.read_points(out / f"{name}.csv"))


def repeatable(points: list[dict[str, Any]]) -> Numbers:
    """The means of the points that do not depend on time or chance, by what they are of.

    >>> repeatable([{"measure": "risk", "k": 5, "mean": 0.5}, {"measure": "seconds", "k": 5, "mean": 3.0}])
    {'measure=risk k=5': 0.5}
    """
    return {
        " ".join(f"{key}={value}" for key, value in point.items() if key not in ABOUT): point["mean"]
        for point in points
        if not any(point.get(key) in values for key, values in CHANCE.items())
    }


def kept(folder: Path, name: str) -> dict[str, Any] | None:
    """The numbers that are kept beside a record, and the commit that gave them."""
    path = folder / f"{name}.quick.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def keep(folder: Path, name: str, numbers: Numbers) -> None:
    provenance.refuse_uncommitted(folder)
    commit = provenance.commit()
    document = {"commit": commit, "date": provenance.date_of(commit), "numbers": numbers}
    text = json.dumps(document, indent=0, ensure_ascii=False)
    folder.joinpath(f"{name}.quick.json").write_text(text + "\n", encoding="utf-8")


def differences(before: Mapping[str, float], now: Mapping[str, float]) -> list[str]:
    """What is not as it was, one line each.

    >>> differences({"k=5": 0.5, "k=10": 0.25}, {"k=5": 0.5000001, "k=10": 0.75})
    ['k=10: 0.25 on record, 0.75 now']
    """
    out = []
    for key in dict.fromkeys((*before, *now)):
        old, new = before.get(key), now.get(key)
        if old is None or new is None or not (math.isclose(old, new, rel_tol=CLOSE) or old is new):
            said = ["none" if value is None else f"{value:g}" for value in (old, new)]
            out.append(f"{key}: {said[0]} on record, {said[1]} now")
    return out
