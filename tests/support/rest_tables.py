"""Random tables with what is asked of them, for trees with rests; and a judge of what was published of one.

Cases are numbered: the same number gives the same table and policy. The judge reads published labels as anybody would
and counts in fractions. It shares nothing with the program: nothing of sfumato is imported here.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa

OR_MISSING = " or missing"
RANGE = re.compile(r"([\[(])(.+), (.+)\]")
FIRST_DAY = date(2024, 1, 1)
JOBS = {"*": {"Art": {"Dance": ["Dancer"], "Writer": None}, "Law": ["Judge", "Notary"], "None": None}}
JOB_PATHS = {
    "Dancer": ("*", "Art", "Dance"),
    "Writer": ("*", "Art"),
    "Judge": ("*", "Law"),
    "Notary": ("*", "Law"),
    "None": ("*",),
}
ILLS = {"*": {"Lung": ["flu", "cold"], "Gut": ["ulcer", "gout"]}}
ILL_ABOVE = {"flu": "Lung", "cold": "Lung", "ulcer": "Gut", "gout": "Gut"}
Row = Mapping[str, Any]


# ---- labels ----------------------------------------------------------------------------------------


def covers_number(label: str | None, cell: Any, read: Callable[[str], Any]) -> bool:
    """Does a label of a number or date stand for a cell?"""
    if cell is None or label is None:
        return (label is None or label.endswith(OR_MISSING)) and cell is None
    plain = label.removesuffix(OR_MISSING)
    found = RANGE.fullmatch(plain)
    if not found:
        return bool(read(plain) == cell)
    low, high = read(found[2]), read(found[3])
    return bool((low < cell if found[1] == "(" else low <= cell) and cell <= high)


def covers_label(label: str | None, cell: Any, above: Sequence[str]) -> bool:
    """Does a label of a hierarchy stand for a cell that has these labels above it?"""
    return label is None or label == "*" if cell is None else label == cell or label in above


def masks(code: str) -> tuple[str, ...]:
    """What a code of two digits is masked to."""
    return "*", f"{code[0]}*"


def periods(day: date) -> tuple[str, ...]:
    return "*", f"{day.year}", f"{day.year}-Q{(day.month + 2) // 3}", f"{day:%Y-%m}"


# ---- quasi-identifiers -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A quasi-identifier: what the policy says of it, its cells, and whether a label stands for a cell."""

    policy: Mapping[str, Any]
    kind: pa.DataType
    draw: Callable[[random.Random], Any]
    covers: Callable[[str | None, Any], bool]


def of_numbers(draw: Callable[[random.Random], Any], **declared: Any) -> Column:
    return Column(
        {"type": "number", **declared},
        pa.float64(),
        draw,
        lambda label, cell: covers_number(label, cell, float),
    )


def of_labels(
    draw: Callable[[random.Random], Any], above: Callable[[Any], tuple[str, ...]], **declared: Any
) -> Column:
    return Column(
        declared,
        pa.string(),
        draw,
        lambda label, cell: covers_label(label, cell, above(cell) if cell else ()),
    )


def a_day(chance: random.Random) -> date:
    return FIRST_DAY + timedelta(days=chance.choice([0, 1, 2, 30, 31, 90, 200, 364]))


COLUMNS: Mapping[str, Column] = {
    "age": of_numbers(lambda chance: float(chance.randint(0, 95)), bounds=[0, 95], step=1),
    "few": of_numbers(lambda chance: float(chance.choice([1, 2, 3, 50]))),
    "share": of_numbers(lambda chance: round(chance.random(), 3)),
    "tenth": of_numbers(lambda chance: round(0.1 * chance.randint(0, 12), 1), bounds=[0, 1.2], step=0.1),
    "seen": Column(
        {"type": "date", "bounds": ["2024-01-01", "2024-12-31"]},
        pa.date32(),
        a_day,
        lambda label, cell: covers_number(label, cell, date.fromisoformat),
    ),
    "left": Column(
        {"type": "date"},
        pa.date32(),
        a_day,
        lambda label, cell: covers_number(label, cell, date.fromisoformat),
    ),
    "came": Column(
        {"type": "date", "hierarchy": {"dates": ["day", "month", "quarter", "year"]}},
        pa.date32(),
        a_day,
        lambda label, cell: covers_label(label, cell and cell.isoformat(), periods(cell) if cell else ()),
    ),
    "land": of_labels(lambda chance: chance.choice("aaaaaabbbccd"), lambda _: ("*",)),
    "sex": of_labels(
        lambda chance: chance.choice(["Female", "Male"]), lambda _: ("*",), values=["Female", "Male"]
    ),
    "zip": of_labels(
        lambda chance: chance.choice(["00", "01", "10", "11", "90"]), masks, hierarchy={"mask": 2}
    ),
    "job": of_labels(
        lambda chance: chance.choice([*JOB_PATHS]), lambda job: JOB_PATHS[job], hierarchy={"tree": JOBS}
    ),
}


# ---- requirements ------------------------------------------------------------------------------------


def satisfies(group: Sequence[Row], required: Mapping[str, Any], table: Sequence[Row]) -> bool:
    """Does a group of a table's rows satisfy a requirement, as a policy writes it?"""
    ((word, given),) = required.items()
    if word == "k-anonymity":
        return len(group) >= given
    cells = [row[given["of"]] for row in group]
    if word == "variance-diversity":
        return variance([Fraction(cell) for cell in cells if cell is not None]) >= Fraction(
            repr(given["at-least"])
        )
    if word == "t-closeness":
        return distance(cells, [row[given["of"]] for row in table], given["distance"]) <= Fraction(
            repr(given["t"])
        )
    counts = sorted(Counter(cells).values(), reverse=True)
    if word == "distinct-diversity":
        return len(counts) >= given["l"]
    if word == "entropy-diversity":
        entropy = -math.fsum(n / len(cells) * math.log(n / len(cells)) for n in counts)
        return entropy >= math.log(given["l"]) - 1e-12
    assert word == "recursive-diversity"
    return given["l"] == 1 or counts[0] < Fraction(repr(given["c"])) * sum(counts[given["l"] - 1 :])


def variance(numbers: Sequence[Fraction]) -> Fraction:
    if not numbers:
        return Fraction(0)
    mean = sum(numbers, Fraction(0)) / len(numbers)
    return sum(((number - mean) ** 2 for number in numbers), Fraction(0)) / len(numbers)


def distance(cells: Sequence[Any], table: Sequence[Any], kind: str) -> Fraction:
    """The earth mover's distance of a group's cells from the table's."""
    values = sorted(set(table), key=lambda value: (value is None, value))
    extra = {
        value: Fraction(cells.count(value), len(cells)) - Fraction(table.count(value), len(table))
        for value in values
    }
    if kind == "equal":
        return sum(map(abs, extra.values()), Fraction(0)) / 2
    if kind == "ordered":
        carried, total = Fraction(0), Fraction(0)
        for value in values[:-1]:
            carried += extra[value]
            total += abs(carried)
        return total / max(len(values) - 1, 1)
    above: dict[str, list[Fraction]] = defaultdict(
        list
    )  # hierarchical: missing is one more child of the root
    for value in values:
        above[ILL_ABOVE.get(value, "missing")].append(extra[value])
    inside = sum((exchange(below) for below in above.values()), Fraction(0)) / 2
    return inside + exchange([sum(below, Fraction(0)) for below in above.values()])


def exchange(extra: Sequence[Fraction]) -> Fraction:
    """What can be moved between parts that have so much too much, or too little."""
    over = sum((part for part in extra if part > 0), Fraction(0))
    under = -sum((part for part in extra if part < 0), Fraction(0))
    return min(over, under)


REQUIREMENTS: Sequence[Mapping[str, Any]] = (
    *({"k-anonymity": k} for k in (1, 2, 3, 3, 4, 5, 7)),
    *({"entropy-diversity": {"l": each, "of": "ill"}} for each in (1.5, 2, 2.5)),
    *({"recursive-diversity": {"c": c, "l": 2, "of": "ill"}} for c in (0.5, 1, 3)),
    *({"distinct-diversity": {"l": each, "of": "ill"}} for each in (2, 3)),
    *({"variance-diversity": {"at-least": least, "of": "pay"}} for least in (0.25, 6.5)),
    {"t-closeness": {"t": 0.3, "of": "ill", "distance": "equal"}},
    {"t-closeness": {"t": 0.3, "of": "ill", "distance": "hierarchical"}},
    {"t-closeness": {"t": 0.2, "of": "pay", "distance": "ordered"}},
)
WORKLOADS: Sequence[Sequence[Mapping[str, Any]]] = (
    [],
    [],
    [{"classify": "class"}],
    [{"regress": "pay"}],
    [{"classify": "class"}, {"classify": {"target": "ill", "weight": 2}}],
    [{"classify": {"targets": ["class", "ill"], "joint": True}}, {"regress": "pay"}],
)
NUMBERS = ("grid", "grid", {"grid": 3}, "boxes", "range")


# ---- cases -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RandomTable:
    """A table and its policy, as plain data."""

    rows: Sequence[Row]
    quasi: Sequence[str]
    require: Sequence[Mapping[str, Any]]
    policy: Mapping[str, Any]

    @property
    def table(self) -> pa.Table:
        kinds = {name: COLUMNS[name].kind for name in self.quasi} | {"pay": pa.int64(), "row": pa.int64()}
        return pa.table(
            {
                name: pa.array([row[name] for row in self.rows], kinds.get(name, pa.string()))
                for name in self.rows[0]
            }
        )

    def policy_with(self, **mondrian: Any) -> dict[str, Any]:
        """The policy with these options of Mondrian."""
        return {**self.policy, "method": {"mondrian": {**self.policy["method"]["mondrian"], **mondrian}}}

    def holds(self, group: Sequence[Row], table: Sequence[Row] | None = None) -> bool:
        """Does a group hold beside the rows of the table, or others?"""
        return all(
            satisfies(group, required, self.rows if table is None else table) for required in self.require
        )

    def groups(self, published: pa.Table) -> dict[tuple[Any, ...], list[int]]:
        """The numbers of the rows of each set of labels."""
        found: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for line in published.to_pylist():
            found[tuple(line[name] for name in self.quasi)].append(line["row"])
        return {labels: sorted(rows) for labels, rows in found.items()}

    def judge(self, groups: Mapping[tuple[Any, ...], Sequence[int]], n_left_out: int = 0) -> None:
        """Raise unless all rows but so many are published once, by labels that cover them, in a group that holds."""
        found = [row for rows in groups.values() for row in rows]
        assert len(set(found)) == len(found) == len(self.rows) - n_left_out
        for labels, rows in groups.items():
            for row in rows:
                for name, label in zip(self.quasi, labels, strict=True):
                    assert COLUMNS[name].covers(label, self.rows[row][name]), (name, label)
            assert self.holds([self.rows[row] for row in rows], [self.rows[row] for row in found]), labels


def random_table(number: int, refine: str) -> RandomTable:
    """The case of this number."""
    chance = random.Random(number)
    n_rows = chance.choice([3, 8, 20, 40, 40, 60])
    quasi = chance.sample([*COLUMNS], chance.randint(1, 3))
    lacks = {name: chance.choice([0, 0, 0.2, 0.6]) for name in [*quasi, "ill", "pay", "class"]}
    others: Mapping[str, Callable[[random.Random], Any]] = {
        "ill": lambda chance: chance.choice([*ILL_ABOVE]),
        "pay": lambda chance: chance.randint(-2, 9),
        "class": lambda chance: chance.choice("yn"),
    }
    rows: list[Row] = []
    for i in range(n_rows):
        drawn = {name: (COLUMNS[name].draw if name in COLUMNS else others[name])(chance) for name in lacks}
        rows.append(
            {name: None if chance.random() < lacks[name] else cell for name, cell in drawn.items()}
            | {"row": i}
        )
    require = [required for required in chance.sample(REQUIREMENTS, 2) if satisfies(rows, required, rows)]
    require = require[: chance.randint(1, 2)] or [{"k-anonymity": 2}]
    workload = chance.choice(WORKLOADS)
    weights = {name: chance.choice([1, 1, 1, 0.5, 3]) for name in quasi}
    attributes: dict[str, Any] = {
        name: {"role": "quasi-identifier", **COLUMNS[name].policy, "weight": weights[name]} for name in quasi
    }
    attributes |= {
        "ill": {"role": "sensitive", "hierarchy": {"tree": ILLS}},
        "pay": {"role": "sensitive", "type": "number"},
        "class": {"role": "other"},
        "row": {"role": "other", "type": "number", "passes": "unique"},
    }
    options = {"rest": chance.choice([True, True, True, False]), "refine": "none" if workload else refine}
    policy = {
        "attributes": attributes,
        "require": require,
        "workload": workload,
        "method": {"mondrian": options},
        "output": {"numbers": chance.choice(NUMBERS)},
    }
    return RandomTable(rows, quasi, require, policy)
