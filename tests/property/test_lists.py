"""Releases whose groups are the cells of a list: they are those of a naive twin, on every engine and in every file.

The twin takes the labels of the tree (``refine: none``) as they are published, and knows nothing else of the program.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import naive_list as naive
import numpy as np
import pyarrow as pa
import pytest
from blocks import read_by
from elsewhere import Elsewhere
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from tree_runs import Groups, grown_by_run, scan

import sfumato as sf
from sfumato.engines import protocol
from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
from sfumato.errors import InputError
from sfumato.methods.mondrian import tree_run
from sfumato.recoding import tree as recodings
from sfumato.recoding import tree_file
from sfumato.recoding.large_tree import LargeRecoding
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill

UNIT = 1 << 30
RANGE = re.compile(r"\[(\d+), (\d+)\]")
OR_MISSING = " or missing"
PATHS: dict[str, dict[str, naive.Path]] = {"flat": {cell: ("*", cell) for cell in "abcdef"},
         "deep": {"a": ("*", "x", "y", "a"), "b": ("*", "b"), "c": ("*", "z", "w", "c"), "d": ("*", "z", "w", "d"),
                  "e": ("*", "z", "v", "e")}}  # fmt: skip
DEEP = {"*": {"x": {"y": ["a"]}, "b": None, "z": {"w": ["c", "d"], "v": ["e"]}}}


@dataclass(frozen=True)
class Number:
    """A whole number from 0 up to ``upper``."""

    upper: int
    cells: tuple[Any, ...]

    @property
    def policy(self) -> dict[str, Any]:
        return {"role": "quasi-identifier", "type": "number", "bounds": [0, self.upper], "step": 1}

    def axis(self, slices: int, weight: float) -> naive.Number:
        in_slice = -(-(self.upper + 1) // slices)
        price = round(UNIT / self.upper * weight)
        return naive.Number(self.upper, in_slice, 0, self.upper, None in self.cells, price)

    def value(self, cell: Any) -> Any:
        return cell

    def read(self, label: Any) -> naive.Interval:
        """First and last value, and whether missing."""
        if label is None:
            return 0, -1, True
        text = str(label).removesuffix(OR_MISSING)
        found = RANGE.fullmatch(text)
        low, high = (found[1], found[2]) if found else (text, text)
        return int(low), int(high), text != label


@dataclass(frozen=True)
class Category:
    """A column with one of the hierarchies above."""

    kind: str
    cells: tuple[Any, ...]

    @property
    def policy(self) -> dict[str, Any]:
        tree = {"hierarchy": {"tree": DEEP}} if self.kind == "deep" else {"values": list("abcdef")}
        return {"role": "quasi-identifier", **tree}

    def axis(self, _slices: int, weight: float) -> naive.Tree:
        leaves = [*PATHS[self.kind].values(), *([("*", None)] if None in self.cells else [])]
        return naive.Tree(tuple(leaves), round(UNIT / (len(leaves) - 1) * weight))

    def value(self, cell: Any) -> naive.Path:
        return ("*", None) if cell is None else PATHS[self.kind][cell]

    def read(self, label: Any) -> naive.Path:
        paths = [self.value(cell) for cell in (*PATHS[self.kind], None)]
        return next(path[: i + 1] for path in paths for i, name in enumerate(path) if name == label)


Column = Number | Category


@dataclass(frozen=True)
class Case:
    """A table, and what is asked of it."""

    columns: dict[str, Column]
    weights: dict[str, float]
    disease: list[str]
    k: int
    n_values: int
    slices: int

    def policy(self, refine: str = "list") -> dict[str, Any]:
        attributes = {
            name: {**column.policy, **({} if self.weights[name] == 1 else {"weight": self.weights[name]})}
            for name, column in self.columns.items()
        }
        attributes |= {
            "disease": {"role": "sensitive"},
            "row": {"role": "other", "type": "number", "passes": "unique"},
        }
        return {
            "attributes": attributes,
            "require": [
                {"k-anonymity": self.k},
                {"distinct-diversity": {"l": self.n_values, "of": "disease"}},
            ],
            "method": {"mondrian": {"refine": refine}},
            "output": {"numbers": {"grid": self.slices}},
        }

    def table(self) -> pa.Table:
        types = {name: pa.int64() for name, column in self.columns.items() if isinstance(column, Number)}
        columns = {
            name: pa.array(column.cells, types.get(name, pa.string()))
            for name, column in self.columns.items()
        }
        return pa.table({**columns, "disease": self.disease, "row": range(len(self.disease))})

    def holds(self, rows: Sequence[int]) -> bool:
        return len(rows) >= self.k and len({self.disease[i] for i in rows}) >= self.n_values

    def groups(self, refine: str) -> dict[Any, list[int]]:
        """The rows of each set of labels, as published."""
        found = defaultdict(list)
        for line in sf.publish(self.table(), self.policy(refine)).table.to_pylist():
            found[tuple(column.read(line[name]) for name, column in self.columns.items())].append(line["row"])
        return {labels: sorted(rows) for labels, rows in found.items()}

    def expect(self, tree: dict[Any, list[int]]) -> dict[Any, list[int]]:
        """The list of the twin, or the tree if that costs no more."""
        largest = max(self.weights.values())
        axes = [
            column.axis(self.slices, self.weights[name] / largest) for name, column in self.columns.items()
        ]
        cells = zip(*(map(column.value, column.cells) for column in self.columns.values()), strict=True)
        rows = list(cells)
        published, pool = naive.make_list(rows, tree, axes, self.holds)
        everyone = published if pool is None else [*published, pool]
        listed = {one.labels: sorted(one.rows) for one in everyone}
        assert len(listed) == len(everyone)
        costs = [
            naive.price(rows, [(each, labels) for labels, each in found.items()], axes)
            for found in (listed, tree)
        ]
        event("the list is kept" if costs[0] < costs[1] else "the tree is kept")
        return listed if costs[0] < costs[1] else tree


@st.composite
def cases(draw: st.DrawFn, *, max_rows: int = 40, has_missing: bool = True) -> Case:
    n_rows = draw(st.integers(2, max_rows))

    def column() -> Column:
        missing = [None] if has_missing and draw(st.booleans()) else []
        kind = draw(st.sampled_from(["number", "flat", "deep"]))
        upper = draw(st.sampled_from([3, 15, 40]))
        values = range(upper + 1) if kind == "number" else list(PATHS[kind])
        one = st.sampled_from([*draw(st.lists(st.sampled_from(values), min_size=1, max_size=6)), *missing])
        cells = tuple(draw(st.lists(one, min_size=n_rows, max_size=n_rows)))
        return Number(upper, cells) if kind == "number" else Category(kind, cells)

    columns = {f"q{i}": column() for i in range(draw(st.integers(1, 3)))}
    case = Case(
        columns,
        {name: draw(st.sampled_from([1, 1, 0.5])) for name in columns},
        draw(st.lists(st.sampled_from("abc"), min_size=n_rows, max_size=n_rows)),
        draw(st.integers(1, 5)),
        draw(st.integers(1, 2)),
        draw(st.sampled_from([3, 32])),
    )
    assume(case.holds(range(n_rows)))
    return case


@given(cases())
def test_groups_and_labels_are_those_of_the_naive_twin(case: Case) -> None:
    assert case.groups("list") == case.expect(case.groups("none"))


# ---- files, and further rows -----------------------------------------------------------------------


def strangers(case: Case, draw: st.DrawFn) -> pa.Table:
    """Any rows: values that the table does not have, and missing cells where it has none."""
    n_rows = draw(st.integers(1, 20))
    columns: dict[str, Any] = {}
    for name, column in case.columns.items():
        is_number = isinstance(column, Number)
        values = (
            range(column.upper + 1) if isinstance(column, Number) else [*PATHS[column.kind], "unheard of"]
        )
        cells = st.one_of(st.sampled_from(values), st.none())
        kind = pa.int64() if is_number else pa.string()
        columns[name] = pa.array(draw(st.lists(cells, min_size=n_rows, max_size=n_rows)), kind)
    return pa.table({**columns, "disease": ["a"] * n_rows, "row": range(n_rows)})


def lines(table: pa.Table) -> list[Any]:
    return sorted(table.to_pylist(), key=lambda line: line["row"])


@settings(max_examples=30)
@given(cases(), st.data())
def test_a_release_is_verified_and_its_rows_are_recoded_as_they_were(case: Case, data: st.DataObject) -> None:
    release = sf.publish(case.table(), sf.Policy.from_dict(case.policy()))
    more = strangers(case, data.draw)
    with Spill() as spill, pytest.MonkeyPatch.context() as patch:
        folder = spill.folder / "release"
        release.write(folder)
        assert not sf.verify_folder(folder).failures
        again = recodings.read(folder, release.policy.schema)
        assert lines(again.apply(case.table())) == lines(release.table)
        expected = again.apply(more).to_pylist()
        assert release.recoding.apply(more).to_pylist() == expected
        patch.setattr(recodings, "LARGE", 0)
        other = spill.folder / "large"
        release.write(other)
        large = recodings.read(other, release.policy.schema, memory=1)
        assert isinstance(large, LargeRecoding)
        assert lines(large.apply(case.table())) == lines(release.table)
        assert large.apply(more).to_pylist() == expected
        assert (large.n_groups, large.n_splits()) == (release.recoding.n_groups, release.recoding.n_splits())
        for one, two in zip(large.box_ends(open_table(more)), again.box_ends(open_table(more)), strict=True):
            np.testing.assert_array_equal(one, two)


# ---- blocks ----------------------------------------------------------------------------------------


def grow(case: Case, where: str, *, block_rows: int) -> Groups:
    """The groups of a run with blocks of so many rows."""
    table, policy, room = (
        case.table(),
        sf.Policy.from_dict(case.policy()),
        Room(1 << 20, 100, 50, row_bytes=1 << 20),
    )
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        patch.setattr(tree_run, "BLOCK_ROWS", block_rows)
        if where == "disk":
            read_by(patch, 7)
            encoded = scan(open_table(table), policy, room, Resources(spill=spill, memory=1 << 24))
            engine = DiskEngine(spill, encoded.layout, room, writer_bytes=1 << 12, threads=1)
            return grown_by_run(encoded, policy, engine)
        if where == "elsewhere":
            patch.setattr(protocol, "BLOCK_ROWS", 5)
            return grown_by_run(scan(open_table(table), policy, room), policy, Elsewhere(room))
        return grown_by_run(scan(open_table(table), policy, room), policy, MemoryEngine(threads=1))


@settings(max_examples=30)
@given(cases(max_rows=60), st.sampled_from([5, 15, 1000]))
def test_blocks_are_the_same_on_every_engine(case: Case, block_rows: int) -> None:
    expected = grow(case, "memory", block_rows=block_rows)
    assert len({box for box, _ in expected}) == len(expected)
    assert all(case.holds(rows) for _, rows in expected)
    assert grow(case, "disk", block_rows=block_rows) == expected
    assert grow(case, "elsewhere", block_rows=block_rows) == expected


@settings(max_examples=15)
@given(cases(max_rows=60), st.sampled_from([5, 15]))
def test_lists_below_a_tree_are_read_back_and_find_their_rows(case: Case, block_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        patch.setattr(tree_run, "BLOCK_ROWS", block_rows)
        patch.setattr(tree_file, "ROW_GROUP", 3)
        folders = {engine: spill.folder / engine for engine in ("memory", "disk")}
        found = []
        for engine, folder in folders.items():
            release = sf.publish(case.table(), sf.Policy.from_dict(case.policy()), engine=engine)
            release.write(folder)
            assert not sf.verify_folder(folder).failures
            rows = recodings.read(folder, release.policy.schema).apply(case.table())
            found.append(lines(rows))
        assert found[0] == found[1]


def test_a_block_that_memory_cannot_hold_is_an_error_that_says_what_can() -> None:
    case = replace(_simple(), k=2)
    table, policy = case.table(), sf.Policy.from_dict(case.policy())
    with Spill() as spill:
        room = Room(1 << 20, 20, 50, row_bytes=1_000_000)
        encoded = scan(open_table(table), policy, room, Resources(spill=spill, memory=1 << 24))
        engine = DiskEngine(spill, encoded.layout, room, writer_bytes=1 << 12, threads=1)
        with pytest.raises(
            InputError, match=r"needs 30 rows in memory at once; allow at least 31 MB of --memory, or"
        ) as error:
            grown_by_run(encoded, policy, engine)
        assert error.value.exit_code == 2
        enough = replace(room, rows=31)
        encoded = scan(open_table(table), policy, enough, Resources(spill=spill, memory=1 << 24))
        assert grown_by_run(
            encoded, policy, DiskEngine(spill, encoded.layout, enough, writer_bytes=1 << 12, threads=1)
        )


def _simple() -> Case:
    cells = tuple(int(x) for x in np.random.default_rng(3).integers(0, 16, 30))
    letters = tuple("abcdef"[x % 6] for x in cells)
    columns: dict[str, Column] = {"q0": Number(15, cells), "q1": Category("flat", letters)}
    return Case(columns, {"q0": 1, "q1": 1}, ["a", "b"] * 15, 3, 1, 32)
