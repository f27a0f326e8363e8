"""Recodings larger than memory: what waits on disk, what is streamed, and what may go wrong meanwhile."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cut_trees import Grown, cut
from growing import partition
from mondrian_cases import Case, big_case

from sfumato.errors import InputError, TableError
from sfumato.policy.output import Output
from sfumato.policy.requirements import KAnonymity
from sfumato.policy.schema import Schema
from sfumato.recoding import recoder, tree_file
from sfumato.recoding import tree as recodings
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.large_tree import LargeRecoding
from sfumato.recoding.tree_file import TreeWriter, apply_to_file
from sfumato.table.opening import open_table
from sfumato.table.source import UNKNOWN
from sfumato.table.write import write_table

NUMBER = {"role": "quasi-identifier", "kind": "number"}


# ---- a tree of some hundred nodes ------------------------------------------------------------------


@pytest.fixture(scope="module")
def case() -> Case:
    return big_case(1, [], [KAnonymity(2)], n_rows=700)


@pytest.fixture(scope="module")
def tree(case) -> Grown:
    return Grown.of(case)


def large(tree: Grown, folder: Path, *, memory: int = 1) -> LargeRecoding:
    """The tree, cut where nodes have some dozen rows, on disk."""
    size = tree.nodes.end - tree.nodes.start
    parts = cut(tree, np.flatnonzero((size > 10) & (size < 90)).tolist())
    assert len(parts.pieces) > 5
    writer = TreeWriter(folder, tree.plan().is_tree, memory=1)
    for piece in parts.pieces:
        writer.piece(piece.nodes, piece.covers)
    found = writer.finish(parts.top.nodes, parts.hung, parts.leaf_covers, tree.plan(Output.BOTH))
    assert isinstance(found, LargeRecoding)
    return replace(found, memory=memory)


def strangers(case: Case) -> pa.Table:
    """The cells of the table, each column in an order of its own, and some missing."""
    table = case.table().select([item.attribute.name for item in case.quasi])
    random, columns = np.random.default_rng(5), {}
    for name in table.column_names:
        is_missing = random.random(table.num_rows) < 0.05
        columns[name] = table.column(name).take(pa.array(random.permutation(table.num_rows), mask=is_missing))
    return pa.table({**columns, "number": range(table.num_rows)})


@pytest.mark.parametrize("memory", [1, 20_000, 200_000, 1 << 30])
def test_rows_go_through_many_windows_and_stay_in_their_order(tmp_path, tree, case, memory, monkeypatch):
    monkeypatch.setattr(recoder, "PART_ROWS", 100)
    monkeypatch.setattr(tree_file, "ROW_GROUP", 64)
    found, whole = large(tree, tmp_path, memory=memory), tree.recoding(Output.BOTH)
    for rows in (case.table(), strangers(case)):
        assert found.apply(rows).equals(whole.apply(rows))
        parts = list(replace(found, beside=tmp_path / "out").stream(open_table(rows)))
        assert [row for part in parts for row in part.to_pylist()] == whole.apply(rows).to_pylist()
    assert [path.name for path in tmp_path.iterdir()] == ["recoding.parquet"]
    assert (found.n_groups, found.n_splits()) == (whole.n_groups, whole.n_splits())
    assert repr(found) == repr(whole).replace("Recoding", "LargeRecoding")
    for a in range(len(whole.axes)):
        assert found.pieces(a)[0].to_pylist() == whole.pieces(a)[0].to_pylist()


def test_little_memory_means_many_windows_and_the_same_places_and_boxes(tmp_path, tree, case):
    whole, places = tree.recoding(Output.BOTH), []
    rows = recoder.RowCells.read(open_table(case.table()), whole.axes)
    for memory, least in ((1, 100), (50_000, 5), (1 << 30, 1)):
        nodes = large(tree, tmp_path, memory=memory).nodes
        n_windows = -(-nodes.tree.n_nodes // nodes.window)
        assert least <= n_windows < 20 * least
        places.append(nodes.place(rows.matrix(whole.axes)))
        assert np.array_equal(places[-1], places[0])
        some = places[0][::-1][:50]  # in any order, and more than once
        for mine, first in zip(nodes.ends(some), nodes.ends(np.unique(some)), strict=True):
            np.testing.assert_array_equal(mine, first[np.unique(some, return_inverse=True)[1]])


def test_no_window_looks_at_a_node_outside_of_it(tmp_path, tree, case, monkeypatch):
    """So its memory holds no more of the tree: what lies outside is spoiled meanwhile, and nobody notices."""
    found = large(tree, tmp_path, memory=50_000)
    nodes, cells = found.nodes, recoder.RowCells.read(open_table(case.table()), found.axes).matrix(found.axes)
    expected, good, fill_places, n_calls = (
        nodes.place(cells),
        nodes.tree.axis.copy(),
        nodes.router.fill_places,
        0,
    )

    def fill(rows, tree, branches, out, *, end):
        nonlocal n_calls
        n_calls += 1
        start = (end - 1) // nodes.window * nodes.window
        tree.axis[:start], tree.axis[end:] = 99, 99
        assert ((out >= start) & (out < end)).all()
        fill_places(rows, tree, branches, out, end=end)
        tree.axis[:] = good

    monkeypatch.setattr(nodes.router, "fill_places", fill)
    np.testing.assert_array_equal(nodes.place(cells), expected)
    assert n_calls > 5


def test_a_tree_that_is_in_use_has_no_file_with_a_name(tmp_path, tree, case):
    (tmp_path / "tree").mkdir()
    (tmp_path / "out").mkdir()
    found = replace(large(tree, tmp_path / "tree"), beside=tmp_path / "out" / "rows.csv")
    first = found.apply(case.table())
    assert not list((tmp_path / "out").iterdir())
    found.path.unlink()
    assert found.apply(case.table()).equals(first)  # it is mapped once, however often it is used


def test_the_file_is_the_same_where_the_disk_knows_links_and_where_it_does_not(tmp_path, tree, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(18, "another disk")

    found = large(tree, tmp_path)
    for folder in ("linked", "copied"):
        (tmp_path / folder).mkdir()
        found.write(tmp_path / folder)
        monkeypatch.setattr(os, "link", refuse)
    for name in ("recoding.json", "recoding.parquet"):
        assert (tmp_path / "linked" / name).read_bytes() == (tmp_path / "copied" / name).read_bytes()


def test_a_recoding_is_found_where_it_was_written_when_its_first_folder_is_gone(tmp_path, tree, case):
    (tmp_path / "spill").mkdir()
    found = large(tree, tmp_path / "spill")
    found.write(tmp_path)
    shutil.rmtree(tmp_path / "spill")
    with pytest.raises(InputError, match=r"recoding\.parquet is gone"):
        found.n_splits()
    assert found.at(tmp_path).n_groups == tree.recoding().n_groups
    (tmp_path / "recoding.parquet").write_bytes(b"nothing")
    with pytest.raises(InputError, match="is not a recoding that this version can read"):
        found.at(tmp_path).apply(case.table())


# ---- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [None, 4_000_000, 1])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_is_recoded_in_parts_as_it_is_whole(tmp_path, tree, case, suffix, memory, monkeypatch):
    monkeypatch.setattr(recoder, "PART_ROWS", 50)
    large(tree, tmp_path).write(tmp_path)
    rows, out, expected = (tmp_path / f"{name}{suffix}" for name in ("rows", "out", "expected"))
    write_table(strangers(case), rows)
    assert apply_to_file(tmp_path, case.schema(), str(rows), out, memory=memory) == (700, 0)
    write_table(tree.recoding(Output.BOTH).apply_to(open_table(rows)), expected)
    found, wanted = open_table(out), open_table(expected)
    assert found.names == wanted.names
    for name in found.names:
        assert found.column(name).to_pylist() == wanted.column(name).to_pylist()
    assert not list(tmp_path.glob(".sfumato*"))


def test_a_table_on_stdin_is_recoded_as_it_is_from_a_file(tmp_path, tree, case, monkeypatch):
    large(tree, tmp_path).write(tmp_path)
    write_table(strangers(case), tmp_path / "rows.csv")
    arguments = (tmp_path, case.schema())
    apply_to_file(*arguments, str(tmp_path / "rows.csv"), tmp_path / "one.csv", memory=1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "rows.csv").read_bytes())))
    apply_to_file(*arguments, "-", tmp_path / "other.csv", memory=1)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()


@pytest.mark.parametrize("memory", [None, 1])
def test_a_cell_that_cannot_be_read_is_named_by_its_row_in_the_whole_table(tmp_path, memory, monkeypatch):
    monkeypatch.setattr(recoder, "PART_ROWS", 10)
    monkeypatch.setattr(recodings, "LARGE", 0)
    schema = Schema.of(x=NUMBER)
    partition(open_table(pa.table({"x": [1, 2, 3, 4]})), schema, [KAnonymity(1)]).recoding.write(tmp_path)
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,a\n" * 33 + "Jane,a\n" + "2,b\n" * 9)
    with pytest.raises(TableError, match="the first in row 34") as caught:
        apply_to_file(tmp_path, schema, tmp_path / "rows.csv", tmp_path / "out.csv", memory=memory)
    assert "Jane" not in str(caught.value)
    assert not (tmp_path / "out.csv").exists()
    assert not list(tmp_path.glob(".sfumato*"))


def test_a_table_is_read_once_however_large_the_tree(tmp_path, tree, case):
    """So it cannot change between two passes."""
    found, rows, n_passes = large(tree, tmp_path), case.table(), 0

    def stream(names, _memory, _count):
        nonlocal n_passes
        n_passes += 1
        yield from rows.select(names).to_batches()

    source = replace(open_table(rows), kind="csv", n_rows=UNKNOWN, stream=stream)
    assert sum(part.num_rows for part in found.stream(source)) == rows.num_rows
    assert n_passes == 1


@pytest.mark.parametrize("fault", ["back", "beyond", "axis", "shared"])
def test_a_damaged_tree_sends_no_row_astray(tmp_path, tree, case, fault):
    found = large(tree, tmp_path)
    nodes = pq.read_table(found.path)
    name = "axis" if fault == "axis" else "first_child"
    cells = nodes.column(name).to_numpy().copy()
    inner = np.flatnonzero(nodes.column("axis").to_numpy() >= 0)
    at = inner[len(inner) // 2]
    if fault == "shared":  # children that already have a parent, and more than there are nodes
        name, cells = "n_children", np.minimum(len(nodes) - nodes.column("first_child").to_numpy(), 100)
    else:
        cells[at] = {"back": 0, "beyond": len(cells) - 1, "axis": 99}[fault]
    found.path.unlink()
    pq.write_table(nodes.set_column(nodes.column_names.index(name), name, pa.array(cells)), found.path)
    with pytest.raises(InputError, match="its file is damaged"):
        found.apply(case.table())


@pytest.mark.parametrize("memory", [None, 1])
def test_times_as_categories_are_spelled_alike_in_every_part(tmp_path, memory, monkeypatch):
    """In the whole column some are not at midnight, so all have an hour; in a part all may be."""
    monkeypatch.setattr(recoder, "PART_ROWS", 4)
    monkeypatch.setattr(recodings, "LARGE", 0)
    days = [datetime(2024, 1, 1 + i // 4) for i in range(12)]  # noqa: DTZ001 - as a table has them
    table = pa.table({"at": [*days, *(day + timedelta(hours=3) for day in days)], "n": range(24)})
    schema = Schema.of(at="quasi-identifier", n="other")
    whole = partition(open_table(table), schema, [KAnonymity(2)]).recoding
    whole.write(tmp_path)
    found = recodings.read(tmp_path, schema, memory=memory)
    rows = [row for part in found.stream(open_table(table)) for row in part.to_pylist()]
    assert rows == whole.apply(table).to_pylist()
    assert len({row["at"] for row in rows}) == 6


def test_shared_cuts_are_applied_in_parts(monkeypatch):
    monkeypatch.setattr(recoder, "PART_ROWS", 3)
    fitted = partition(open_table(pa.table({"x": range(10)})), Schema.of(x=NUMBER), [KAnonymity(1)])
    cuts = Cuts(fitted.recoding.axes, (np.array([3.0, 6.0]),), 3)
    rows = pa.table({"x": [*range(-2, 12), None], "y": range(15)})
    parts = list(cuts.stream(open_table(rows)))
    assert len(parts) == 5
    assert [row for part in parts for row in part.to_pylist()] == cuts.apply(rows).to_pylist()


# ---- memory ----------------------------------------------------------------------------------------

LARGE_TREE = '''
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.encoding.domain import OrderedDomain, TreeDomain
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.kernels.nodes import Nodes
from sfumato.policy.output import Output
from sfumato.recoding.tree_file import TreeWriter, apply_to_file
from sfumato.recoding.splits import RecodingPlan
from sfumato.policy.schema import Schema

folder, depth, top_depth, memory = Path(sys.argv[1]), 20, 7, 16_000_000
n = 1 << depth
schema = Schema.of(x={"role": "quasi-identifier", "kind": "number"}, c="quasi-identifier")
hierarchy = Hierarchy.flat([f"v{i}" for i in range(4)])
domains = (OrderedDomain(schema["x"], 0, n - 1, 1.0, False, n, None), TreeDomain(schema["c"], hierarchy, False))


def halves(depth, low, span):
    """The tree that halves x from low on, level by level."""
    i = np.arange((1 << (depth + 1)) - 1)
    level = np.floor(np.log2(i + 1)).astype(np.int64)
    width, is_inner = span >> level, level < depth
    threshold = np.where(is_inner, low + (i + 1 - (1 << level)) * width + width // 2 - 1, -1)
    child = np.where(is_inner, 2 * i + 1, -1).astype(np.int32)
    number = np.where(is_inner, 2, 0).astype(np.int32)
    rows = np.zeros(len(i), dtype=np.int64)
    axis = np.where(is_inner, 0, -1).astype(np.int32)
    none = np.full(len(i), -1, dtype=np.int32)
    return Nodes(axis, threshold, child, number, (i + 1) % 2, rows, rows, none), np.tile([-1, 0], (1 << depth, 1))


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024


def write_rows(name, n_parts):
    random = np.random.default_rng(1)
    with pq.ParquetWriter(folder / name, pa.schema([("x", pa.int64()), ("c", pa.string())])) as file:
        for _ in range(n_parts):
            x = random.integers(-3, n + 3, 30_000)
            file.write_table(pa.table({"x": x, "c": [f"v{i % 6}" for i in x.tolist()]}))


def write_tree(folder, depth):
    top, _ = halves(top_depth, 0, 1 << depth)
    writer, hung = TreeWriter(folder, np.array([False, True]), memory=1), {}
    for k, leaf in enumerate(np.flatnonzero(top.axis < 0).tolist()):
        span = (1 << depth) >> top_depth
        hung[leaf] = writer.piece(*halves(depth - top_depth, k * span, span))
    (folder / "release").mkdir()
    found = writer.finish(top, hung, {}, RecodingPlan(domains, np.array([0, 0]), Output.BOUNDS))
    found.write(folder / "release")
    return found.n_nodes


(folder / "small").mkdir()
write_tree(folder / "small", 9)
write_rows("few.parquet", 1)
for _ in range(2):  # few boxes are filled in without numba, as long as nobody has loaded it
    apply_to_file(folder / "small" / "release", schema, folder / "few.parquet", folder / "out.parquet", memory=memory)
before = peak()  # every library is loaded, and every kernel
assert write_tree(folder, depth) == 2 * n - 1
written = peak() - before
write_rows("rows.parquet", 10)
apply_to_file(folder / "release", schema, folder / "rows.parquet", folder / "out.parquet", memory=memory)
applied = peak() - before
x = pq.read_table(folder / "rows.parquet").column("x").to_numpy()
out = pq.read_table(folder / "out.parquet")
assert out.column_names == ["x_low", "x_high", "c"]
assert np.array_equal(out.column("x_high").to_numpy(), np.clip(x, 0, n - 1)), "each value is a group"
print(before, written, applied)
'''


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for its memory")
def test_a_tree_of_two_million_nodes_is_written_and_applied_in_little_memory(tmp_path):
    """In memory it takes 100 bytes a node while rows are recoded: 200 MB.

    What is mapped counts for as long as the system sees no better use for the space: some 20 MB of pages
    more or fewer, which no limit of ours decides.
    """
    done = subprocess.run(
        [sys.executable, "-c", LARGE_TREE, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    _, written, applied = map(int, done.stdout.split())
    assert written < 60e6
    assert applied < 100e6
