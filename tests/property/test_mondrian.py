"""Mondrian against its naive twin, and what must hold of every partition, on random small tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import naive_mondrian as naive
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sfumato import recoding as recoding_module
from sfumato.engines import memory
from sfumato.errors import RequirementUnreachable
from sfumato.mondrian.grow import Partition, partition
from sfumato.policy import MondrianOptions, Output
from sfumato.recoding import Recoding, TreeAxis
from sfumato.requirement import EntropyDiversity, KAnonymity, RecursiveDiversity, VarianceDiversity
from sfumato.schema import Attribute, Kind, Role, Schema
from sfumato.tables import open_table
from sfumato.workload import Classify, Regress

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
        )
        return Schema((*(quasi.attribute for quasi in self.quasi), *others))

    def table(self, rows: Sequence[dict[str, Any]] | None = None) -> pa.Table:
        types = {quasi.attribute.name: quasi.type for quasi in self.quasi}
        types |= {"salary": pa.int64(), "hours": pa.int64()}
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
            split_only=self.options.split_only,
            median_below_gain=self.options.median_below_gain,
            standardize=self.options.standardize,
        )

    def is_reachable(self) -> bool:
        return all(naive.satisfies(self.rows, requirement) for requirement in self.requirements)


REQUIREMENTS = st.one_of(
    st.integers(1, 6).map(KAnonymity),
    st.builds(EntropyDiversity, st.sampled_from([1.0, 1.3, 1.5, 2.0, 2.5, 3.0]), of=st.sampled_from(["disease", "job"])),
    st.builds(
        RecursiveDiversity,
        c=st.sampled_from([0.5, 1.0, 1.1, 2.0, 3.0]),
        l=st.integers(1, 4),
        of=st.sampled_from(["disease", "job"]),
    ),
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
        ),
        min_size=1,
        max_size=3,
    ),
)


@st.composite
def cases(draw: Any, *, max_rows: int = 24) -> Case:
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
    }
    rows = [{name: cells[i] for name, cells in columns.items()} for i in range(n_rows)]
    names = tuple(item.attribute.name for item in quasi)
    options = MondrianOptions(
        split_only=draw(st.one_of(st.none(), st.just(names[:1]), st.just(names[1:]))),
        median_below_gain=draw(st.sampled_from([None, 0.0137, 0.173, 0.71])),
        standardize=draw(st.booleans()),
    )
    return Case(rows, quasi, draw(st.lists(REQUIREMENTS, max_size=3)), draw(WORKLOADS), options)


def reachable_cases(**options: Any) -> st.SearchStrategy[Case]:
    return cases(**options).filter(Case.is_reachable)


# ---- groups, as both sides give them ---------------------------------------------------------------


def members_of(found: Partition) -> list[frozenset[int]]:
    """Row numbers of each group."""
    parts = np.split(found.row_numbers, np.cumsum(found.size)[:-1])
    return [frozenset(part.tolist()) for part in parts]


def boxes_of(found: Partition) -> list[tuple[Any, ...]]:
    """The box of each group, as the twin writes it."""
    low, high = found.recoding.boxes()

    def side(node: int, a: int) -> Any:
        axis = found.recoding.axes[a]
        if isinstance(axis, TreeAxis):
            return axis.nodes.path(int(low[node, a]))
        return (None if math.isnan(low[node, a]) else low[node, a], high[node, a])

    return [tuple(side(node, a) for a in range(len(found.recoding.axes))) for node in found.leaf.tolist()]


def groups_of(found: Partition) -> set[tuple[Any, frozenset[int]]]:
    return set(zip(boxes_of(found), members_of(found), strict=True))


# ---- the twin --------------------------------------------------------------------------------------


@given(cases())
@settings(max_examples=150)
def test_the_groups_and_their_boxes_are_those_of_the_naive_twin(case: Case):
    if not case.is_reachable():
        with pytest.raises(RequirementUnreachable):
            case.partition()
        return
    found = case.partition()
    expected = {(tuple(leaf.box), frozenset(leaf.members)) for leaf in case.twin().grow().leaves()}
    event(f"groups: {min(len(expected), 5)}")
    assert groups_of(found) == expected


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
    }  # fmt: skip
    rows = [{name: cells[i] for name, cells in columns.items()} for i in range(n_rows)]
    return Case(rows, quasi, requirements, workload, MondrianOptions(median_below_gain=below))


BIG_CASES = {
    "median": ([], [KAnonymity(3)]),
    "median, diverse": ([], [EntropyDiversity(2.7, of="disease"), RecursiveDiversity(3, 2, of="job")]),
    "median, spread": ([], [VarianceDiversity(60_000, of="salary")]),
    "one label": ([Classify("class")], [KAnonymity(2)]),
    "one number": ([Regress("hours")], [KAnonymity(4), RecursiveDiversity(2, 3, of="disease")]),
    "several": ([Classify(["class", "job"]), Regress(["hours", "salary"])], [EntropyDiversity(2, of="disease")]),
    "often median": ([Classify("class")], [KAnonymity(2)], 0.3),
    "median at last": ([Regress(["hours", "salary"])], [KAnonymity(2)], 0.05),
}  # fmt: skip


@pytest.mark.parametrize("name", BIG_CASES)
def test_larger_tables_split_into_many_tasks_give_the_twins_groups_too(name, monkeypatch):
    monkeypatch.setattr(memory, "SMALLEST_TASK", 16)
    case = big_case(7, *BIG_CASES[name])
    expected = {(tuple(leaf.box), frozenset(leaf.members)) for leaf in case.twin().grow().leaves()}
    assert len(expected) > 10
    assert groups_of(case.partition(threads=2)) == expected


@pytest.mark.parametrize("workload", [[], [Classify("class")], [Regress("hours")]])
def test_a_column_of_one_value_is_never_split_however_deep_its_hierarchy(workload):
    """A node with one child is no split; many of them once wrote beyond the end of the tree."""
    chain = Attribute(
        "chain", Role.QUASI_IDENTIFIER, hierarchy={"tree": {"*": {"a": {"b": ["c"]}, "d": None}}}
    )
    same = [Attribute(f"same{i}", Role.QUASI_IDENTIFIER, values=("v", "w")) for i in range(20)]
    others = [Attribute("class", Role.OTHER), Attribute("hours", Role.OTHER, Kind.NUMBER)]
    columns = {attribute.name: ["v"] * 5 for attribute in same} | {
        "class": list("abaab"),
        "hours": [1, 2, 3, 4, 5],
    }
    table = pa.table({"chain": ["c"] * 5, **columns})
    found = partition(open_table(table), Schema((chain, *same, *others)), [KAnonymity(2)], workload=workload)
    assert found.recoding.tree.axis.tolist() == [-1]
    assert {name: column.to_pylist() for name, column in found.recoding.columns(found.leaf).items()} == {
        "chain": ["c"],
        **{attribute.name: ["v"] for attribute in same},
    }


def test_median_takes_the_best_balanced_threshold_that_is_allowable_not_only_one_beside_the_median():
    """x < 3 divides 4 | 7 and fails, x <= 3 divides 9 | 2; x <= 1 divides 3 | 8 and is better than that."""
    table = pa.table({"x": [1, 1, 1, 2, 3, 3, 3, 3, 3, 4, 4], "disease": list("abaaabababa")})
    schema = Schema((number("x"), Attribute("disease", Role.SENSITIVE)))
    found = partition(open_table(table), schema, [RecursiveDiversity(2.5, 2, of="disease")])
    assert found.recoding.tree.threshold[0] == 1


TASKS = {
    "two classes": [Classify("two")],
    "four classes": [Classify("four")],
    "a number": [Regress("hours")],
    "several": [Classify(["two", "four"]), Regress("hours")],
}


def first_split(workload: list[Any], **columns: list[Any]) -> tuple[str, float]:
    """Attribute and threshold of the first split; four rows of each value, so that no split scores better."""
    n_values = len(next(iter(columns.values())))
    table = {name: [value for value in values for _ in range(4)] for name, values in columns.items()}
    targets = {"two": list("+-+-"), "four": list("abcd"), "hours": [0, 0, 4, 4]}
    table |= {name: values * n_values for name, values in targets.items()}
    quasi = [
        number(name) if isinstance(values[0], int) else Attribute(name, Role.QUASI_IDENTIFIER)
        for name, values in columns.items()
    ]
    others = [
        Attribute("two", Role.OTHER),
        Attribute("four", Role.OTHER),
        Attribute("hours", Role.OTHER, Kind.NUMBER),
    ]
    schema = Schema((*quasi, *others))
    tree = partition(open_table(pa.table(table)), schema, [KAnonymity(1)], workload=workload).recoding.tree
    return schema.quasi_identifiers[tree.axis[0]].name, tree.threshold[0]


@pytest.mark.parametrize("name", TASKS)
def test_ties_go_to_the_better_balanced_split_then_to_the_first_attribute_then_to_the_lower_threshold(name):
    task = TASKS[name]
    assert first_split(task, x=[1, 2, 3, 4]) == ("x", 2)
    assert first_split(task, x=[1, 2, 3]) == ("x", 1)
    assert first_split(task, x=[1, 1, 1, 2], y=[1, 1, 2, 2]) == ("y", 1)
    assert first_split(task, x=[1, 2, 2, 2], y=[5, 6, 6, 6]) == ("x", 1)
    assert first_split(task, x=["a", "a", "a", "b"], y=[1, 1, 2, 2])[0] == "y"
    assert first_split(task, y=[1, 1, 1, 2], x=["a", "a", "b", "b"])[0] == "x"
    assert first_split(task, x=["a", "a", "b", "b"], y=[1, 1, 2, 2])[0] == "x"
    assert first_split(task, y=[1, 1, 2, 2], x=["a", "a", "b", "b"])[0] == "y"
    assert first_split(task, x=["a", "a", "b", "b"], y=["d", "c", "c", "d"])[0] == "x"


@pytest.mark.parametrize("names", list(itertools.permutations("abc")))
def test_the_roundoff_of_a_score_does_not_depend_on_the_order_of_the_children(names):
    """Both columns divide the rows alike, so the first is taken, whatever its values are called."""
    groups = [0, 0, 1, 2, 2]
    table = pa.table(
        {"x": [names[g] for g in groups], "y": ["uvw"[g] for g in groups], "hours": [4, 1, 2, 8, 2]}
    )
    schema = Schema(
        (*(Attribute(n, Role.QUASI_IDENTIFIER) for n in "xy"), Attribute("hours", Role.OTHER, Kind.NUMBER))
    )
    found = partition(open_table(table), schema, [KAnonymity(1)], workload=[Regress("hours")])
    assert found.recoding.tree.axis[0] == 0


# ---- what must hold of every partition -------------------------------------------------------------


@given(reachable_cases())
@settings(max_examples=80)
def test_every_group_keeps_every_promise_and_none_can_be_split_further(case: Case):
    groups = members_of(case.partition())
    twin = case.twin()
    assert sorted(i for members in groups for i in members) == list(range(len(case.rows)))
    for members in groups:
        assert all(
            naive.satisfies([case.rows[i] for i in members], requirement) for requirement in case.requirements
        )
        assert not any(twin.allowable(sorted(members), at) for at in twin.may_split)


# ---- what must not matter --------------------------------------------------------------------------


@given(reachable_cases(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_the_rows_does_not_matter(case: Case, random: Any):
    order = list(range(len(case.rows)))
    random.shuffle(order)
    shuffled = case.partition(case.table([case.rows[i] for i in order]))
    back = {(box, frozenset(order[i] for i in members)) for box, members in groups_of(shuffled)}
    assert back == groups_of(case.partition())


@given(reachable_cases())
@settings(max_examples=60)
def test_the_names_of_categories_and_the_order_they_sort_in_do_not_matter(case: Case):
    flipped = {letter: f"{25 - i:02}" for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    flipped |= {"yes": "a no", "no": "a yes", None: None}
    rename = {quasi.attribute.name: quasi.rename for quasi in case.quasi if quasi.renamed}
    rename |= dict.fromkeys(("disease", "job", "class"), flipped.get)
    keep = lambda cell: cell  # noqa: E731
    rows = [{name: rename.get(name, keep)(cell) for name, cell in row.items()} for row in case.rows]
    other = replace(
        case, rows=rows, quasi=[replace(q, attribute=q.renamed or q.attribute) for q in case.quasi]
    )
    expected = {
        (
            tuple(
                tuple(map(quasi.renamed_label, side)) if isinstance(quasi.axis, naive.Tree) else side
                for quasi, side in zip(case.quasi, box, strict=True)
            ),
            members,
        )
        for box, members in groups_of(case.partition())
    }
    assert groups_of(other.partition()) == expected


@given(reachable_cases(), st.data())
@settings(max_examples=40)
def test_how_the_input_is_cut_into_chunks_does_not_matter(case: Case, data: Any):
    table = case.table()

    def cut(column: pa.ChunkedArray) -> pa.ChunkedArray:
        ends = data.draw(st.lists(st.integers(0, len(case.rows)), max_size=3).map(sorted))
        whole = column.combine_chunks()
        parts = [whole.slice(a, b - a) for a, b in zip([0, *ends], [*ends, len(case.rows)], strict=True)]
        if pa.types.is_string(column.type) and data.draw(st.booleans()):
            parts = [part.dictionary_encode() for part in parts]
        return pa.chunked_array(parts)

    chunked = pa.table({name: cut(table.column(name)) for name in table.column_names})
    assert groups_of(case.partition(chunked)) == groups_of(case.partition(table))


@given(reachable_cases(max_rows=60), st.integers(1, 3))
@settings(max_examples=40)
def test_the_number_of_threads_and_the_size_of_tasks_do_not_matter(case: Case, threads: int):
    whole = case.partition()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "SMALLEST_TASK", 2)
        tasks = case.partition(threads=threads)
    assert groups_of(tasks) == groups_of(whole)
    assert boxes_of(tasks) == boxes_of(whole)  # in the same order, too


def test_the_reported_progress_counts_every_row_once(monkeypatch):
    monkeypatch.setattr(memory, "SMALLEST_TASK", 16)
    case = big_case(3, [], [KAnonymity(5)])
    seen: list[tuple[str, int, int]] = []
    case.partition(progress=lambda stage, done, total: seen.append((stage, done, total)))
    splitting = [(done, total) for stage, done, total in seen if stage == "splitting"]
    assert len(splitting) > 5
    assert splitting[-1] == (260, 260)
    assert [done for done, _ in splitting] == sorted(done for done, _ in splitting)


@given(reachable_cases(), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_shuffled_rows_stay_in_their_groups(case: Case, seed: int):
    found = case.partition()
    order = found.shuffled(np.random.default_rng(seed).random(len(case.rows)))
    parts = [frozenset(part.tolist()) for part in np.split(order, np.cumsum(found.size)[:-1])]
    assert parts == members_of(found)


# ---- the recoding ----------------------------------------------------------------------------------


@given(reachable_cases(), st.sampled_from(Output))
@settings(max_examples=50)
def test_applied_to_the_rows_it_was_made_from_the_recoding_gives_the_published_boxes(
    case: Case, output: Output
):
    found = case.partition(output=output)
    place = np.empty(len(case.rows), dtype=np.int64)
    for leaf, members in zip(found.leaf.tolist(), members_of(found), strict=True):
        place[sorted(members)] = leaf
    applied = found.recoding.apply_to(open_table(case.table()))
    for name, column in found.recoding.columns(place).items():
        assert applied.column(name).to_pylist() == column.to_pylist(), name


@given(reachable_cases(), st.data())
@settings(max_examples=70)
def test_any_row_at_all_gets_the_box_that_the_rules_for_strangers_say(case: Case, data: Any):
    tree = case.twin().grow()
    rows = [
        {**row, **{q.attribute.name: data.draw(st.one_of(q.strangers, st.none())) for q in case.quasi}}
        for row in case.rows[:6]
    ]
    recoding = case.partition().recoding
    applied = recoding.apply_to(open_table(case.table(rows))).to_pylist()
    for row, published in zip(rows, applied, strict=True):
        box = stranger_box(case, tree, row)
        for a, quasi in enumerate(case.quasi):
            name = quasi.attribute.name
            assert published[name] == label_of(case, quasi, box[a], row[name]), name


def stranger_box(case: Case, node: naive.Node, row: dict[str, Any]) -> list[Any]:
    """The box of the deepest node that surely covers the row, from the documentation of ``sfumato.recoding``.

    A row that falls between the branches of a split along a hierarchy is still near the node that was split.
    """
    while node.split is not None:
        quasi = case.quasi[node.split.axis]
        name = quasi.attribute.name
        if isinstance(quasi.axis, naive.Ordered):
            if row[name] is None and not any(row[name] is None for row in case.rows):
                break
            node = node.children[0 if quasi.axis.value(row) <= node.split.threshold else 1]
            continue
        path = quasi.axis.node(row)
        branches = zip(node.split.branches, node.children, strict=True)
        matches = [child for branch, child in branches if path[: len(branch)] == branch]
        if not matches:
            split = node.split
            return [split.branches[0][:-1] if a == split.axis else side for a, side in enumerate(node.box)]
        (node,) = matches
    return node.box


def label_of(case: Case, quasi: Quasi, side: Any, cell: Any) -> str | None:
    """What is published of a box on one attribute for a row with this cell."""
    axis, name = quasi.axis, quasi.attribute.name
    if isinstance(axis, naive.Tree):
        return naive.common([side, axis.node({name: cell})])[-1]
    seen = [axis.value(row) for row in case.rows]
    values = [value for value in seen if value != naive.MISSING]
    if cell is None and naive.MISSING not in seen:
        return "*"
    low, high = side
    if high == naive.MISSING or not (values or quasi.attribute.bounds):
        return None
    bounds = quasi.attribute.bounds or (min(values), max(values))
    grid = quasi.attribute.step or (1 if all(float(value).is_integer() for value in values) else None)
    is_outer = low in (None, naive.MISSING)
    first = bounds[0] if is_outer else float(naive.exact(float(low)) + naive.exact(grid)) if grid else low
    last = bounds[1] if high == math.inf else high
    opening = "[" if is_outer or grid else "("
    text = (
        written(quasi, first)
        if first == last
        else f"{opening}{written(quasi, first)}, {written(quasi, last)}]"
    )
    return text + (" or missing" if low is None and naive.MISSING in seen else "")


def written(quasi: Quasi, value: float) -> str:
    if quasi.attribute.kind is Kind.DATE:
        return str(EPOCH + timedelta(int(value)))
    return str(int(value)) if float(value).is_integer() else repr(float(value))


@given(case=reachable_cases(), output=st.sampled_from(Output), is_large=st.booleans(), data=st.data())
@settings(max_examples=40)
def test_a_recoding_that_was_written_and_read_back_recodes_alike(
    tmp_path_factory, case, output, is_large, data
):
    rows = [
        {**row, **{q.attribute.name: data.draw(st.one_of(q.strangers, st.none())) for q in case.quasi}}
        for row in case.rows[:4]
    ]
    recoding = case.partition(output=output).recoding
    folder: Path = tmp_path_factory.mktemp("release")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recoding_module, "LARGE", 0 if is_large else 10_000)
        recoding.write(folder)
    assert (folder / "recoding.parquet").exists() == is_large
    again = Recoding.read(folder, case.schema())
    table = case.table([*case.rows, *rows])
    assert again.apply(table).equals(recoding.apply(table))
