"""Random small tables for trees with rest branches, as sfumato and as the naive twin see them; labels read by anybody."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import naive_rest as naive
import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st
from naive_mondrian import satisfies

from sfumato.policy.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
    TCloseness,
    VarianceDiversity,
)

Range = tuple[Fraction, Fraction, bool]
"""What a number's label stands for: its first and last value, and whether missing."""
RANGE = re.compile(r"([\[(])(\S+), (\S+)\]")
OR_MISSING = " or missing"
EXCLUDING = re.compile(r"(.+) \(not (.+)\)")


# ---- quasi-identifiers -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A number with bounds and a step, of which the table has a few values."""

    lower: Any
    upper: Any
    step: Any
    cells: tuple[Any, ...]

    def policy(self) -> dict[str, Any]:
        return {
            "role": "quasi-identifier",
            "type": "number",
            "bounds": [self.lower, self.upper],
            "step": self.step,
        }

    def column(self, cells: list[Any], weight: Any, slices: int | None) -> naive.Number:
        return naive.Number(cells, self.lower, self.upper, self.step, weight=weight, slices=slices)

    def read(self, label: Any) -> Range | None:
        """The label as a range; None where all it says is that the cells are missing."""
        if label is None:
            return None
        text = str(label).removesuffix(OR_MISSING)
        if found := RANGE.fullmatch(text):
            is_open = found[1] == "("
            low = Fraction(found[2]) + (naive.exact(self.step) if is_open else 0)
            return low, Fraction(found[3]), text != str(label)
        return Fraction(text), Fraction(text), text != str(label)

    def expect(self, label: tuple[Any, Any, bool]) -> Range | None:
        """The same of the twin's label, which is in positions."""
        low, high, with_missing = label
        if low is None:
            return None
        lower, step = naive.exact(self.lower), naive.exact(self.step)
        return lower + low * step, min(lower + high * step, naive.exact(self.upper)), with_missing

    def covers(self, label: Any, cell: Any) -> bool:
        found = self.read(label)
        if cell is None:
            return found is None or found[2]
        return found is not None and found[0] <= naive.exact(cell) <= found[1]


@dataclass(frozen=True)
class Category:
    """A category with the paths of its leaves; flat and masked ones have the leaves that occur."""

    path: Callable[[Any], naive.Path]
    cells: tuple[Any, ...]
    hierarchy: Any = None
    leaves: tuple[naive.Path, ...] | None = None

    def policy(self) -> dict[str, Any]:
        declared = {} if self.hierarchy is None else {"hierarchy": self.hierarchy}
        return {"role": "quasi-identifier", **declared}

    def column(self, cells: list[Any], weight: Any, slices: int | None) -> naive.Category:
        occurring = sorted(sorted({cell for cell in cells if cell is not None}), key=self.order)
        leaves = self.leaves or tuple(map(self.path, occurring))
        return naive.Category(cells, leaves, self.path, weight=weight)

    def order(self, cell: str) -> int:
        """Masked codes are in order of their lengths, then of their texts."""
        return len(cell) if isinstance(self.hierarchy, dict) and "mask" in self.hierarchy else 0

    def read(self, label: Any) -> Any:
        return label

    def expect(self, label: Any) -> Any:
        return label

    def covers(self, label: Any, cell: Any) -> bool:
        if cell is None:
            return label is None or label == "*"
        return label in self.path(cell)


Quasi = Number | Category

FLAT = Category(lambda cell: ("*", cell), tuple("abcdef"))
MASKED = Category(
    lambda cell: ("*", *(cell[:kept] + "*" * (len(cell) - kept) for kept in range(1, len(cell))), cell),
    ("00", "01", "09", "10", "11", "90", "99"),
    {"mask": 2},
)
NUMBERS = (
    Number(0, 9, 1, tuple(range(10))),
    Number(-20, 200, 2, (-20, -6, 0, 2, 4, 80, 82, 84, 200)),  # slices are of several steps
    Number(0.0, 1.2, 0.1, (0.0, 0.1, 0.2, 0.3, 0.7, 1.1, 1.2)),
    Number(1, 1000, 1, (1, 2, 30, 31, 32, 33, 62, 64, 500, 999)),
)
SHAPES = st.recursive(st.none(), lambda below: st.lists(below, min_size=1, max_size=3), max_leaves=9).filter(
    lambda tree: tree is not None
)


@st.composite
def trees(draw: Any) -> Category:
    """A hierarchy of any shape: uneven depths, nodes of one child, leaves that never occur."""
    paths: dict[str, naive.Path] = {}

    def nest(shape: list[Any], path: naive.Path) -> dict[str, Any]:
        inside: dict[str, Any] = {}
        for i, below in enumerate(shape):
            label = f"{path[-1]}.{i}" if len(path) > 1 else f"n{i}"
            inside[label] = None if below is None else nest(below, (*path, label))
            if below is None:
                paths[label] = (*path, label)
        return inside

    nested = {"*": nest(draw(SHAPES), ("*",))}
    return Category(paths.__getitem__, tuple(paths), {"tree": nested}, tuple(paths.values()))


# ---- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A table, what is asked of it and how it is published."""

    rows: list[dict[str, Any]]
    quasi: dict[str, Quasi]
    weights: dict[str, Any]
    requirements: list[Any]
    numbers: Any
    rest: bool

    def policy(self, **mondrian: Any) -> dict[str, Any]:
        """The policy for no task, by loss; with options of Mondrian."""
        return self.policy_without_criterion(criterion="loss", **mondrian)

    def policy_without_criterion(self, **mondrian: Any) -> dict[str, Any]:
        weighed = {
            name: {} if self.weights[name] == 1 else {"weight": self.weights[name]} for name in self.quasi
        }
        attributes = {name: {**quasi.policy(), **weighed[name]} for name, quasi in self.quasi.items()}
        passing = {"disease": {"role": "sensitive"}, "salary": {"role": "sensitive", "type": "number"}}
        passing |= {"class": {"role": "other"}, "row": {"role": "other", "type": "number"}}
        attributes |= {name: {**column, "passes": "unique"} for name, column in passing.items()}
        return {
            "attributes": attributes,
            "require": [requirement.as_policy() for requirement in self.requirements],
            "method": {"mondrian": {"rest": self.rest, "refine": "none", **mondrian}},
            "output": {"numbers": self.numbers},
        }

    def excluding(self, refine: str = "none") -> dict[str, Any]:
        """The policy for no task, whose labels say what they exclude."""
        policy = self.policy(refine=refine)
        return {**policy, "output": {**policy["output"], "rest-labels": "excluding"}}

    def table(self) -> pa.Table:
        types = {name: pa.float64() for name, quasi in self.quasi.items() if isinstance(quasi, Number)}
        types |= {"salary": pa.int64(), "row": pa.int64()}
        return pa.table(
            {
                name: pa.array([row[name] for row in self.rows], types.get(name, pa.string()))
                for name in self.rows[0]
            }
        )

    def holds(self, members: Any) -> bool:
        group = [self.rows[i] for i in members]
        return all(satisfies(group, requirement, self.rows) for requirement in self.requirements)

    def twin(self, **options: Any) -> naive.Rest:
        slices = (
            {"grid": 32, "boxes": None, "range": 10**6}.get(self.numbers)
            if isinstance(self.numbers, str)
            else 3
        )
        columns = [
            quasi.column([row[name] for row in self.rows], self.weights[name], slices)
            for name, quasi in self.quasi.items()
        ]
        return naive.Rest(columns, self.holds, rest=self.rest, **options)

    def expect(self, twin: naive.Rest, *, excludes: bool = False) -> dict[Any, list[int]]:
        """The rows of each set of labels, as the twin says."""
        found, root = {}, twin.grow()
        for leaf in root.leaves():
            labels = [
                write_rest(quasi.expect(label), twin.excluded(root, leaf, index) if excludes else [])
                for index, (quasi, label) in enumerate(
                    zip(self.quasi.values(), twin.labels(leaf), strict=True)
                )
            ]
            found[tuple(labels)] = sorted(leaf.rows.tolist())
        return found

    def read(self, published: pa.Table) -> dict[Any, list[int]]:
        """The same, as published."""
        found = defaultdict(list)
        for line in published.to_pylist():
            found[tuple(quasi.read(line[name]) for name, quasi in self.quasi.items())].append(line["row"])
        return {labels: sorted(rows) for labels, rows in found.items()}


def write_rest(label: Any, excluded: list[str | None]) -> Any:
    """The label of a rest that says what it excludes."""
    names = ["missing" if name is None else name for name in excluded]
    return f"{label} (not {', '.join(names)})" if names else label


REQUIREMENTS = st.one_of(
    st.integers(1, 5).map(KAnonymity),
    st.integers(2, 4).map(KAnonymity),
    st.builds(EntropyDiversity, st.sampled_from([1.0, 1.5, 2.0, 2.5]), of=st.just("disease")),
    st.builds(
        RecursiveDiversity,
        c=st.sampled_from([0.5, 1.0, 2.0, 3.0]),
        l=st.integers(1, 3),
        of=st.just("disease"),
    ),
    st.builds(DistinctDiversity, st.integers(1, 3), of=st.sampled_from(["disease", "salary"])),
    st.builds(TCloseness, st.sampled_from([0.1, 0.25, 0.3, 0.5]), of=st.just("disease")),
    st.builds(
        TCloseness, st.sampled_from([0.1, 0.2, 0.5]), of=st.just("salary"), distance=st.just("ordered")
    ),
    st.builds(VarianceDiversity, st.sampled_from([0.25, 1.0, 6.0]), of=st.just("salary")),
)


@st.composite
def cases(draw: Any, *, max_rows: int = 30) -> Case:
    n_rows = draw(st.integers(1, max_rows))
    kinds = st.one_of(st.sampled_from(NUMBERS), st.sampled_from([FLAT, MASKED]), trees())
    quasi = {f"q{i}": draw(kinds) for i in range(draw(st.integers(1, 3)))}

    def column(cells: st.SearchStrategy[Any], *, can_miss: bool = True) -> list[Any]:
        if can_miss and draw(st.booleans()):
            cells = st.one_of(cells, cells, st.none())
        return draw(st.lists(cells, min_size=n_rows, max_size=n_rows))

    columns = {name: column(st.sampled_from(kind.cells)) for name, kind in quasi.items()} | {
        "disease": column(st.sampled_from("abcd")),
        "salary": column(st.integers(-2, 9)),
        "class": column(st.sampled_from(draw(st.sampled_from([["yes", "no"], ["a", "b", "c"]])))),
        "row": list(range(n_rows)),
    }
    case = Case(
        rows=[{name: cells[i] for name, cells in columns.items()} for i in range(n_rows)],
        quasi=quasi,
        weights={name: draw(st.sampled_from([1, 1, 1, 0.5, 3])) for name in quasi},
        requirements=draw(st.lists(REQUIREMENTS, min_size=1, max_size=2)),
        numbers=draw(st.sampled_from(["grid", "grid", "boxes", "range", {"grid": 3}])),
        rest=draw(st.sampled_from([True, True, True, False])),
    )
    assume(case.holds(range(n_rows)))
    return case
