"""People whose rows are each generalized for themselves, and what their labels mean, told without the package."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

ATTRIBUTES = """\
attributes:
  id:      {role: identifier}
  age:     {role: quasi-identifier, type: number, bounds: [0, 7]}
  zip:     {role: quasi-identifier, hierarchy: {mask: 3}}
  job:     {role: quasi-identifier, hierarchy: {tree: {"*": {Office: [clerk, boss], farmer: null}}}}
  disease: {role: sensitive}
  caution: {role: drop, type: number}
  row:     {role: other, passes: unique}
"""
QUASI = ("age", "zip", "job")
OFFICE = ("clerk", "boss")


def policy_text(options: str = "", more: str = "") -> str:
    return f"{ATTRIBUTES}method: {{risk-utility: {{{options}}}}}\n{more}"


def people(n: int = 60, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    ages: list[Any] = random.choice([0, 1, 3, 4, 5, 7], n).tolist()
    zips: list[Any] = random.choice(["531", "533", "571", "589"], n, p=[0.4, 0.3, 0.2, 0.1]).tolist()
    ages[3], zips[5] = None, None
    return pa.table(
        {
            "id": [f"person-{i}" for i in range(n)],
            "age": pa.array(ages),
            "zip": zips,
            "job": random.choice(["clerk", "boss", "farmer"], n).tolist(),
            "disease": random.choice(["flu", "cold"], n).tolist(),
            "caution": random.choice([1, 2, 5], n).tolist(),
            "row": [str(i) for i in range(n)],
        }
    )


# ---- what labels mean --------------------------------------------------------------------------------------


def chain(name: str, cell: Any) -> list[Any]:
    """A cell and everything above it, up to the root."""
    if cell is None:
        return [None, "*"]
    if name == "zip":
        return [cell, f"{cell[:2]}*", f"{cell[0]}**", "*"]
    if name == "job":
        return [cell, "Office", "*"] if cell in OFFICE else [cell, "*"]
    found = [str(cell)]
    for width in (2, 4):
        low = cell - cell % width
        found.append(f"[{low}, {low + width})" if low + width < 8 else f"[{low}, 7]")
    return [*found, "*"]


def depth(name: str, label: Any) -> int:
    """How far a label is below the root."""
    if label == "*":
        return 0
    if label is None:
        return 1
    if name == "zip":
        return 3 - label.count("*")
    if name == "job":
        return 2 if label in OFFICE else 1
    if not label.startswith("["):
        return 3
    low, high = label.strip("[])").split(", ")
    return {2: 2, 4: 1}[int(high) - int(low) + label.endswith("]")]


def utility(row: dict[str, Any]) -> int:
    return sum(depth(name, row[name]) for name in QUASI)


def raw_utility(row: dict[str, Any]) -> int:
    return sum(len(chain(name, row[name])) - 1 for name in QUASI)


def covers(box: Any, row: dict[str, Any]) -> bool:
    return all(label in chain(name, row[name]) for name, label in zip(QUASI, box, strict=True))


def risk(box: Any, side: list[dict[str, Any]], *, own: int = 0, factor: int = 1) -> Fraction:
    """Model I: one for each label that is no root, over the rows that the box covers."""
    weight = factor * sum(label != "*" for label in box)
    return Fraction(weight, max(sum(covers(box, other) for other in side) + own, 1))


def is_lacking(row: dict[str, Any], side: list[dict[str, Any]]) -> bool:
    return not any(all(row[name] == other[name] for name in QUASI) for other in side)


def least_risk(
    row: dict[str, Any], side: list[dict[str, Any]], share: Fraction, *, factor: int = 1
) -> Fraction:
    """By looking at all boxes of the row."""
    own = int(is_lacking(row, side))
    need = share * raw_utility(row)
    boxes = itertools.product(*(chain(name, row[name]) for name in QUASI))
    allowed = [box for box in boxes if sum(depth(n, b) for n, b in zip(QUASI, box, strict=True)) >= need]
    return min(risk(box, side, own=own, factor=factor) for box in allowed)
