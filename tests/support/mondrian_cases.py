"""Random small tables for the property tests of Mondrian as published, as sfumato and as the naive twin see them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import naive_mondrian as naive
import numpy as np
import pyarrow as pa
from growing import Prepared, partition, prepare
from hypothesis import strategies as st

from sfumato.encoding.discretize import cells, mdl_cuts
from sfumato.policy.options.mondrian import PAPER, MondrianOptions
from sfumato.policy.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
    TCloseness,
    VarianceDiversity,
)
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import Classify, Regress, Select
from sfumato.recoding.recoder import Partition
from sfumato.recoding.tree import Recoding, TreeAxis
from sfumato.table.opening import open_table

EPOCH = date(1970, 1, 1)
DIGITS = "0123456789"
MANY = tuple(f"v{i:03}" for i in range(200))
STEPS = [round(0.1 * i, 1) for i in range(3, 12)]


# ---- random quasi-identifiers ----------------------------------------------------------------------


@dataclass(frozen=True)
class Quasi:
    """A quasi-identifier: how sfumato is told of it, how the twin sees it, and what its cells can be."""

    attribute: Attribute
    axis: naive.Axis
    cells: st.SearchStrategy[Any]  # of the table
    strangers: st.SearchStrategy[Any]  # of further rows
    rename: Callable[[Any], Any] = lambda cell: cell
    renamed: Attribute | None = None  # the attribute after ``rename``, where that changes it
    renamed_label: Callable[[Any], Any] = lambda label: label
    type: pa.DataType = field(default_factory=pa.string)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: FBT001 - hypothesis asks for it
        """Short, so that a failing example can be read."""
        a = self.attribute
        printer.text(f"<{a.name}: {a.kind} {a.hierarchy or ''} {a.bounds or ''} {a.step or ''}>")


def number(name: str, **options: Any) -> Attribute:
    return Attribute(name, Role.QUASI_IDENTIFIER, Kind.NUMBER, **options)


def close_integers(name: str) -> Quasi:
    """Codes are offsets."""
    return Quasi(number(name), naive.Ordered(name), st.integers(0, 9), st.integers(-3, 12), type=pa.int64())


def bounded_integers(name: str) -> Quasi:
    attribute = number(name, bounds=(-20, 20), step=2)
    return Quasi(
        attribute,
        naive.Ordered(name, is_bounded=True),
        st.integers(-3, 3).map(lambda x: 2 * x),
        st.integers(-12, 12).map(lambda x: 2 * x),
        type=pa.int64(),
    )


def scattered_integers(name: str) -> Quasi:
    """Codes are ranks."""
    cells = st.sampled_from([-5000, -7, 0, 3, 1000, 1001, 1002, 65_536])
    return Quasi(number(name), naive.Ordered(name), cells, st.integers(-6000, 70_000), type=pa.int64())


def floats(name: str) -> Quasi:
    cells = st.sampled_from([-1.5, 0.0, 0.1, 0.2, 0.30000000000000004, 0.3, 7.25])
    return Quasi(number(name), naive.Ordered(name), cells, st.floats(-4, 10, width=32), type=pa.float64())


def decimal_steps(name: str) -> Quasi:
    """A grid that binary fractions do not hit."""
    cells = st.sampled_from(STEPS)
    return Quasi(number(name, step=0.1), naive.Ordered(name), cells, cells, type=pa.float64())


def days(name: str) -> Quasi:
    attribute = Attribute(name, Role.QUASI_IDENTIFIER, Kind.DATE)
    cells = st.integers(-3, 40).map(lambda n: date(2024, 2, 27) + timedelta(n))
    axis = naive.Ordered(name, lambda day: (day - EPOCH).days)
    return Quasi(attribute, axis, cells, st.dates(date(1960, 1, 1), date(2030, 1, 1)), type=pa.date32())


def periods(name: str) -> Quasi:
    """Dates along months, quarters and years."""
    attribute = Attribute(
        name, Role.QUASI_IDENTIFIER, Kind.DATE, hierarchy={"dates": ["month", "quarter", "year"]}
    )

    def path(day: date) -> naive.Path:
        quarter = (day.month + 2) // 3
        return ("*", f"{day.year}", f"{day.year}-Q{quarter}", f"{day.year}-{day.month:02}")

    cells = st.dates(date(2022, 11, 1), date(2024, 4, 30))
    strangers = st.dates(date(2022, 1, 1), date(2026, 4, 30))
    return Quasi(attribute, naive.Tree(name, (), path), cells, strangers, type=pa.date32())


def intervals(name: str) -> Quasi:
    """Numbers along intervals of 2, 4 and 12 in [0, 17]: uneven at the end."""
    attribute = number(name, bounds=(0, 17), hierarchy={"intervals": [2, 4, 12]})

    def path(cell: float) -> naive.Path:
        x = min(max(cell, 0), 17)  # a stranger outside stands for the end of its side
        labels = ["*"]
        for width in (12, 4, 2):
            low = int(x // width * width)
            high = min(low + width, 17)
            label = f"[{low}, {high}]" if high == 17 else f"[{low}, {high})"
            labels += [label] if label != labels[-1] else []
        return tuple(labels)

    leaves = tuple(dict.fromkeys(path(x) for x in range(18)))
    cells = st.sampled_from([0, 1, 2, 3.5, 4, 7, 11.999, 12, 13, 16, 17])
    return Quasi(attribute, naive.Tree(name, leaves, path), cells, st.integers(-5, 30), type=pa.float64())


def flat(name: str) -> Quasi:
    """Any texts under one root; renamed, they sort the other way round."""
    attribute = Attribute(name, Role.QUASI_IDENTIFIER)
    back = {chr(ord("a") + i): f"z{25 - i:02}" for i in range(26)}
    letters = st.sampled_from("abcd")
    return Quasi(
        attribute,
        naive.Tree(name, (), lambda cell: ("*", cell)),
        letters,
        st.sampled_from("abcdxyz"),
        rename=back.get,
        renamed=attribute,
        renamed_label=lambda label: back.get(label, label),
    )


def many(name: str) -> Quasi:
    """A wide flat hierarchy, of which few values occur."""
    attribute = Attribute(name, Role.QUASI_IDENTIFIER, values=MANY)
    leaves = tuple(("*", value) for value in MANY)
    return Quasi(
        attribute,
        naive.Tree(name, leaves, lambda cell: ("*", cell) if cell in MANY else ("*",)),
        st.sampled_from(MANY[::40] + MANY[-2:]),
        st.sampled_from((*MANY, "unheard of")),
        renamed=replace(attribute, values=MANY[::-1]),
    )


def mask(name: str) -> Quasi:
    """Codes of one to three digits; renamed by other digits."""
    attribute = Attribute(name, Role.QUASI_IDENTIFIER, hierarchy={"mask": 3})

    def path(cell: str) -> naive.Path:
        return ("*", *(cell[:kept] + "*" * (len(cell) - kept) for kept in range(1, len(cell))), cell)

    def other(text: str | None) -> str | None:
        return None if text is None else text.translate(str.maketrans(DIGITS, DIGITS[::-1]))

    cells = st.text("019", min_size=1, max_size=3)
    strangers = st.text("0145", min_size=1, max_size=3)
    tree = naive.Tree(name, (), path)
    return Quasi(attribute, tree, cells, strangers, rename=other, renamed=attribute, renamed_label=other)


TREES = st.recursive(st.none(), lambda below: st.lists(below, min_size=1, max_size=3), max_leaves=9).filter(
    lambda tree: tree is not None
)


@st.composite
def trees(draw: Any, name: str) -> Quasi:
    """A hierarchy of any shape: uneven depths, chains, nodes that hold many leaves or one."""
    shape = draw(TREES)
    paths: dict[str, naive.Path] = {}

    def nested(tree: Any, path: naive.Path, *, is_renamed: bool) -> Any:
        """The tree as sfumato reads it: labels are numbered; renamed, children stand in reverse order."""
        inside: dict[str, Any] = {}
        for i, below in enumerate(tree):
            label = f"{path[-1]}.{i}" if len(path) > 1 else f"n{i}"
            inside[label] = None if below is None else nested(below, (*path, label), is_renamed=is_renamed)
            if below is None:
                paths[label] = (*path, label)
        return {renamed(k): v for k, v in reversed(inside.items())} if is_renamed else inside

    def renamed(label: str | None) -> str | None:
        return label if label in ("*", None) else f"r{label[::-1]}"

    attribute = Attribute(
        name, Role.QUASI_IDENTIFIER, hierarchy={"tree": {"*": nested(shape, ("*",), is_renamed=False)}}
    )
    other = replace(attribute, hierarchy={"tree": {"*": nested(shape, ("*",), is_renamed=True)}})
    axis = naive.Tree(name, tuple(paths.values()), lambda cell: paths.get(cell, ("*",)))
    return Quasi(
        attribute,
        axis,
        st.sampled_from(sorted(paths)),
        st.sampled_from([*sorted(paths), "unheard of"]),
        rename=renamed,
        renamed=other,
        renamed_label=renamed,
    )


KINDS = (
    close_integers, bounded_integers, scattered_integers, floats, decimal_steps, days,
    periods, intervals, flat, many, mask,
)  # fmt: skip


# ---- random tables ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A table with all that is asked of it."""

    rows: list[dict[str, Any]]
    quasi: list[Quasi]
    requirements: list[Any]
    workload: list[Any]
    options: MondrianOptions

    def schema(self) -> Schema:
        others = (
            Attribute("disease", Role.SENSITIVE),
            Attribute("job", Role.SENSITIVE),
            Attribute("salary", Role.SENSITIVE, Kind.NUMBER),
            Attribute("class", Role.OTHER),
            Attribute("hours", Role.OTHER, Kind.NUMBER),
            Attribute("wage", Role.OTHER, Kind.NUMBER),
            Attribute("colour", Role.OTHER),
            Attribute("height", Role.OTHER, Kind.NUMBER),
            Attribute("since", Role.OTHER, Kind.DATE),
        )
        return Schema((*(quasi.attribute for quasi in self.quasi), *others))

    def problem(self, threads: int = 1) -> Prepared:
        """The problem of the table, in memory."""
        return prepare(
            open_table(self.table()),
            self.schema(),
            self.requirements,
            workload=self.workload,
            options=self.options,
            threads=threads,
        )

    def table(self, rows: Sequence[dict[str, Any]] | None = None) -> pa.Table:
        types = {quasi.attribute.name: quasi.type for quasi in self.quasi}
        types |= {
            "salary": pa.int64(),
            "hours": pa.int64(),
            "wage": pa.float64(),
            "height": pa.float64(),
            "since": pa.date32(),
        }
        rows = self.rows if rows is None else rows
        names = [attribute.name for attribute in self.schema()]
        return pa.table(
            {name: pa.array([row[name] for row in rows], types.get(name, pa.string())) for name in names}
        )

    def partition(self, table: pa.Table | None = None, **options: Any) -> Partition:
        source = open_table(self.table() if table is None else table)
        return partition(
            source,
            self.schema(),
            self.requirements,
            workload=self.workload,
            options=self.options,
            **{"threads": 1, **options},
        )

    def twin(self) -> naive.Mondrian:
        return naive.Mondrian(
            self.rows,
            [quasi.axis for quasi in self.quasi],
            self.requirements,
            self.workload,
            cut=cut,
            split_only=self.options.split_only,
            median_below_gain=self.options.median_below_gain,
            standardize=self.options.standardize,
        )

    def asking(self, requirements: list[Any]) -> Case:
        """The same table with other requirements."""
        return replace(self, requirements=requirements)

    def is_reachable(self) -> bool:
        return all(naive.satisfies(self.rows, requirement, self.rows) for requirement in self.requirements)


def cut(column: Sequence[Any], target: Sequence[Any], is_number: bool) -> list[int]:  # noqa: FBT001
    """Cells of a number, by the cuts that have tests of their own."""
    days = [(cell - EPOCH).days if isinstance(cell, date) else cell for cell in column]
    values = np.array([-np.inf if cell is None else cell for cell in days], dtype=np.float64)
    labels = np.unique([repr(label) for label in target], return_inverse=True)[1]
    cuts = mdl_cuts(
        values, np.array(target, dtype=np.float64) if is_number else labels, at_most=16, is_number=is_number
    )
    return cells(values, cuts).tolist()


SENSITIVE = st.sampled_from(["disease", "job", "salary"])
REQUIREMENTS = st.one_of(
    st.integers(1, 6).map(KAnonymity),
    st.builds(EntropyDiversity, st.sampled_from([1.0, 1.3, 1.5, 2.0, 2.5, 3.0]), of=SENSITIVE),
    st.builds(
        RecursiveDiversity,
        c=st.sampled_from([0.5, 1.0, 1.1, 2.0, 3.0]),
        l=st.integers(1, 4),
        of=SENSITIVE,
    ),
    st.builds(DistinctDiversity, st.integers(1, 4), of=SENSITIVE),
    st.builds(TCloseness, st.sampled_from([0, 0.1, 0.25, 0.3, 0.5, 1]), of=SENSITIVE),
    st.builds(TCloseness, st.sampled_from([0.05, 0.1, 0.2, 0.5]), of=st.just("salary"), distance=st.just("ordered")),
    st.builds(VarianceDiversity, st.sampled_from([0.0, 0.25, 1.0, 6.0, 20.0]), of=st.just("salary")),
)  # fmt: skip

WORKLOADS = st.one_of(
    st.just([]),
    st.just([Classify("class")]),
    st.just([Regress("hours")]),
    st.lists(
        st.one_of(
            st.builds(Classify, st.just("class"), weight=st.sampled_from([1.0, 0.3])),
            st.builds(Classify, st.just(["class", "job"]), joint=st.booleans()),
            st.just(Classify("disease")),
            st.just(Classify("q0")),  # a target that is itself a quasi-identifier: scored on its raw values
            st.builds(Regress, st.just("hours"), weight=st.sampled_from([1.0, 2.5])),
            st.just(Regress(["hours", "salary"])),
            st.builds(
                Regress, st.sampled_from(["wage", ("wage", "hours")]), weight=st.sampled_from([1.0, 0.3])
            ),
        ),
        min_size=1,
        max_size=3,
    ),
)

DECIMALS = [st.sampled_from([n / 10**digits for n in range(31)]) for digits in (0, 1, 2, 3)]
"""Numbers of so many decimals."""

OTHERS = ["colour", "height", "since", "salary", "q0"]

FEATURE_WORKLOADS = st.lists(
    st.one_of(
        st.builds(
            Classify,
            st.sampled_from(["class", "disease", ("class", "job")]),
            joint=st.booleans(),
            features=st.one_of(
                st.none(), st.lists(st.sampled_from(OTHERS), min_size=1, max_size=3, unique=True)
            ),
            weight=st.sampled_from([1.0, 0.3]),
        ),
        st.builds(
            Regress,
            st.sampled_from(["hours", ("hours", "salary"), ("hours", "wage")]),
            features=st.lists(
                st.sampled_from(["colour", "height", "since", "class"]), min_size=1, unique=True
            ),
            weight=st.sampled_from([1.0, 2.5]),
        ),
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def cases(draw: Any, *, max_rows: int = 24, workloads: st.SearchStrategy[Any] = WORKLOADS) -> Case:
    n_rows = draw(st.integers(1, max_rows))
    quasi = []
    for i in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from((*KINDS, trees)))
        quasi.append(draw(trees(f"q{i}")) if kind is trees else kind(f"q{i}"))

    def column(cells: st.SearchStrategy[Any]) -> list[Any]:
        if draw(st.booleans()):
            cells = st.one_of(cells, cells, st.none())
        return draw(st.lists(cells, min_size=n_rows, max_size=n_rows))

    columns = {item.attribute.name: column(item.cells) for item in quasi} | {
        "disease": column(st.sampled_from("abcd")),
        "job": column(st.sampled_from("xy")),
        "salary": column(st.integers(-2, 9)),
        "class": column(st.sampled_from(["yes", "no"] if draw(st.booleans()) else ["a", "b", "c"])),
        "hours": column(st.integers(0, 5)),
        "wage": column(DECIMALS[draw(st.integers(0, len(DECIMALS) - 1))]),
        "colour": column(st.sampled_from("rgb")),
        "height": column(st.sampled_from([1.5, 1.6, 1.7, 1.8, 2.0])),
        "since": column(st.integers(0, 20).map(lambda n: date(2020, 1, 1) + timedelta(n))),
    }
    rows = [{name: column[i] for name, column in columns.items()} for i in range(n_rows)]
    names = tuple(item.attribute.name for item in quasi)
    options = MondrianOptions(
        variant=PAPER,
        split_only=draw(st.one_of(st.none(), st.just(names[:1]), st.just(names[1:]))),
        median_below_gain=draw(st.sampled_from([None, 0.0137, 0.173, 0.71])),
        standardize=draw(st.booleans()),
    )
    return Case(rows, quasi, draw(st.lists(REQUIREMENTS, max_size=3)), draw(workloads), options)


def reachable_cases(**options: Any) -> st.SearchStrategy[Case]:
    return cases(**options).filter(Case.is_reachable)


def big_case(
    seed: int, workload: list[Any], requirements: list[Any], below: float | None = None, *, n_rows: int = 260
) -> Case:
    """A table of many more rows, so that nodes of all sizes occur."""
    rng = np.random.default_rng(seed)
    quasi = [close_integers("q0"), days("q1"), flat("q2"), scattered_integers("q3"), mask("q4")]
    columns: dict[str, list[Any]] = {
        "q0": rng.integers(0, 400, n_rows).tolist(),
        "q1": [date(2020, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 900, n_rows)],
        "q2": rng.choice(list("abcdef"), n_rows, p=[0.5, 0.2, 0.1, 0.1, 0.06, 0.04]).tolist(),
        "q3": (rng.integers(0, 50, n_rows) ** 5).tolist(),
        "q4": [f"{x:03}" for x in rng.integers(0, 1000, n_rows) // rng.choice([1, 100], n_rows)],
    }
    columns["q0"] = [None if x > 380 else x for x in columns["q0"]]
    columns |= {
        "disease": rng.choice(list("abcde"), n_rows).tolist(),
        "job": rng.choice(list("xyz"), n_rows, p=[0.6, 0.3, 0.1]).tolist(),
        "salary": rng.integers(0, 1000, n_rows).tolist(),
        "class": ["yes" if (x or 0) > 200 else "no" for x in columns["q0"]],
        "hours": [(x or 7) % 41 for x in columns["q0"]],
        "colour": rng.choice(list("rgbcmyk"), n_rows).tolist(),
        "height": (rng.integers(140, 210, n_rows) / 100).tolist(),
        "since": [date(2020, 1, 1)] * n_rows,
        "wage": (rng.integers(0, 4000, n_rows) / 100).tolist(),
    }  # fmt: skip
    rows = [{name: column[i] for name, column in columns.items()} for i in range(n_rows)]
    return Case(rows, quasi, requirements, workload, MondrianOptions(variant=PAPER, median_below_gain=below))


BIG_CASES: dict[str, Any] = {
    "median": ([], [KAnonymity(3)]),
    "median, diverse": ([], [EntropyDiversity(2.7, of="disease"), RecursiveDiversity(3, 2, of="job")]),
    "median, distinct": ([], [DistinctDiversity(3, of="disease"), DistinctDiversity(2, of="job")]),
    "median, close": ([], [TCloseness(0.3, of="disease"), TCloseness(0.1, of="salary", distance="ordered")]),
    "one label, close": ([Classify("class")], [TCloseness(0.35, of="disease"), KAnonymity(2)]),
    "median, spread": ([], [VarianceDiversity(60_000, of="salary")]),
    "one label": ([Classify("class")], [KAnonymity(2)]),
    "one number": ([Regress("hours")], [KAnonymity(4), RecursiveDiversity(2, 3, of="disease")]),
    "several": ([Classify(["class", "job"]), Regress(["hours", "salary"])], [EntropyDiversity(2, of="disease")]),
    "often median": ([Classify("class")], [KAnonymity(2)], 0.3),
    "several numbers": ([Regress("hours", weight=0.3), Regress(["wage", "salary"])], [KAnonymity(3)]),
    "median at last": ([Regress(["hours", "wage"])], [KAnonymity(2)], 0.05),
    "cells": ([Classify("class", features=["colour", "height"]), Regress("hours", features=["disease", "salary"])],
              [EntropyDiversity(2, of="disease")], 0.02),
    "select": ([Select("q0 between 20 and 70 or q3 < 1000"), Select("q2 in ('a', 'c') and q0 > 100", weight=0.3),
                Classify("class")], [RecursiveDiversity(3, 2, of="job"), VarianceDiversity(30_000, of="salary")]),
}  # fmt: skip


# ---- groups, as both sides give them ---------------------------------------------------------------


def members_of(found: Partition) -> list[frozenset[int]]:
    """Row numbers of each group."""
    parts = np.split(found.row_numbers, np.cumsum(found.size)[:-1])
    return [frozenset(part.tolist()) for part in parts]


def tree_recoding(found: Partition) -> Recoding:
    """The recoding of a partition by Mondrian: a tree of splits."""
    assert isinstance(found.recoding, Recoding)
    return found.recoding


def boxes_of(found: Partition) -> list[tuple[Any, ...]]:
    """The box of each group, as the twin writes it."""
    low, high, missing = tree_recoding(found).boxes()

    def side(node: int, a: int) -> Any:
        axis = found.recoding.axes[a]
        if isinstance(axis, TreeAxis):
            return axis.nodes.path(int(low[node, a]))
        ends = (None if math.isnan(low[node, a]) else low[node, a], high[node, a])
        has_labels = tree_recoding(found).tree.labels is not None
        return (*ends, bool(missing[node, a])) if has_labels else ends

    return [tuple(side(node, a) for a in range(len(found.recoding.axes))) for node in found.leaf.tolist()]


def groups_of(found: Partition) -> set[tuple[Any, frozenset[int]]]:
    return set(zip(boxes_of(found), members_of(found), strict=True))
