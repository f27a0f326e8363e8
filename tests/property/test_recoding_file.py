"""Trees in pieces against the same trees in one: same boxes, for the rows of the table and for any others."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cut_trees import Cut, Grown, cut, path_to
from hypothesis import given, settings
from hypothesis import strategies as st
from mondrian_cases import reachable_cases

from sfumato.policy.output import Output
from sfumato.recoding import large_tree, recoder, tree_file
from sfumato.recoding import tree as recodings
from sfumato.recoding.large_tree import LargeRecoding
from sfumato.recoding.tree import Recoding
from sfumato.recoding.tree_file import NoTree, TreeWriter, recode_piece
from sfumato.table.opening import open_table

IN_FILES = settings(max_examples=50)


@st.composite
def cut_trees(draw: Any, **options: Any) -> tuple[Any, Grown, Cut]:
    case = draw(reachable_cases(**options))
    tree = Grown.of(case)
    at = draw(st.sets(st.integers(0, len(tree.nodes.axis) - 1), max_size=6))
    return case, tree, cut(tree, sorted(at))


def texts(columns: dict[str, pa.Array]) -> dict[str, list[Any]]:
    return {name: column.to_pylist() for name, column in columns.items()}


@given(cut_trees(), st.sampled_from(Output))
def test_the_leaves_of_a_piece_have_their_labels_before_there_is_a_tree(given, output):
    _, tree, parts = given
    whole = tree.recoding(output)
    for leaf, number in parts.hung.items():
        piece = parts.pieces[number]
        path = path_to(parts.top.nodes, leaf)
        found, places = recode_piece(path, piece.nodes, piece.covers, tree.plan(output))
        old = np.array(piece.old)[piece.nodes.axis < 0]
        assert texts(found.columns(places)) == texts(whole.columns(old))
        # the whole tree has more hierarchy nodes, so that their numbers differ, but not ordered ends
        ordered = [a for a, axis in enumerate(found.axes) if hasattr(axis, "grid")]
        for one, other in zip(found.ends(places), whole.ends(old), strict=True):
            np.testing.assert_array_equal(one[:, ordered], other[:, ordered])


# ---- streamed --------------------------------------------------------------------------------------


def streamed(
    tree: Grown, parts: Cut, folder: Path, *, output: Output = Output.LABELS, memory: int | None = None
) -> Any:
    writer = TreeWriter(folder, tree.plan().is_tree, memory=memory)
    numbers = [writer.piece(piece.nodes, piece.covers) for piece in parts.pieces]
    hung = {leaf: numbers[number] for leaf, number in parts.hung.items()}
    return writer.finish(parts.top.nodes, hung, parts.leaf_covers, tree.plan(output))


def tables_of(case: Any, draw: Any) -> pa.Table:
    """Rows of the table and strangers, with missing cells."""
    n_rows = draw(st.integers(1, 30))
    columns = {}
    for item in case.quasi:
        cells = st.one_of(item.cells, item.strangers, st.none())
        columns[item.attribute.name] = pa.array(
            draw(st.lists(cells, min_size=n_rows, max_size=n_rows)), item.type
        )
    return pa.table({**columns, "number": range(n_rows), "text": [f"t{i % 3}" for i in range(n_rows)]})


@st.composite
def recodings_and_rows(draw: Any) -> tuple[Any, Grown, Cut, pa.Table]:
    case, tree, parts = draw(cut_trees())
    return case, tree, parts, tables_of(case, draw)


def same_tree(one: Recoding, other: Recoding, at: int = 0, there: int = 0) -> bool:
    """Are these the same below two nodes, however they are numbered?"""
    waiting = [(at, there)]
    while waiting:
        i, j = waiting.pop()
        for name in ("axis", "threshold", "n_children", "branch", "cover"):
            mine, yours = getattr(one.tree, name)[i], getattr(other.tree, name)[j]
            if name == "threshold":  # none of a node that has none is stored as missing
                mine, yours = (np.nan_to_num(x, nan=-np.inf, neginf=-np.inf) for x in (mine, yours))
            if not np.array_equal(mine, yours):
                return False
        first, second = int(one.tree.first_child[i]), int(other.tree.first_child[j])
        assert first == -1 or first > i
        waiting += [(first + k, second + k) for k in range(int(one.tree.n_children[i]))]
    return True


@given(recodings_and_rows(), st.sampled_from(Output))
def test_a_small_tree_in_pieces_becomes_the_recoding_of_the_whole_tree(given, output):
    _, tree, parts, rows = given
    whole = tree.recoding(output)
    with tempfile.TemporaryDirectory() as folder:
        found = streamed(tree, parts, Path(folder), output=output)
        assert not list(Path(folder).iterdir())
    assert isinstance(found, Recoding)
    assert [a.nodes if hasattr(a, "nodes") else a for a in found.axes] == [
        a.nodes if hasattr(a, "nodes") else a for a in whole.axes
    ]
    assert found.tree.n_nodes == whole.tree.n_nodes
    assert same_tree(found, whole)
    assert found.apply(rows).equals(whole.apply(rows))


@given(recodings_and_rows(), st.sampled_from(Output), st.sampled_from([300, 1000, 4000, 100_000]))
@IN_FILES
def test_a_large_tree_is_applied_as_it_is_in_memory(given, output, memory):
    _, tree, parts, rows = given
    whole = tree.recoding(output)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        patch.setattr(recoder, "PART_ROWS", 7)
        patch.setattr(tree_file, "ROW_GROUP", 5)
        found = streamed(tree, parts, folder, output=output, memory=1)
        assert isinstance(found, LargeRecoding)
        found = replace(found, memory=memory)
        assert found.apply(rows).equals(whole.apply(rows))
        parts_of_rows = list(found.stream(open_table(rows)))
        assert [row for part in parts_of_rows for row in part.to_pylist()] == whole.apply(rows).to_pylist()
        assert len({str(part.schema) for part in parts_of_rows}) == 1
        for mine, yours in zip(
            found.box_ends(open_table(rows)), whole.box_ends(open_table(rows)), strict=True
        ):
            np.testing.assert_array_equal(mine, yours)
        assert (found.n_nodes, found.n_groups) == (whole.tree.n_nodes, whole.n_groups)
        assert found.n_splits() == whole.n_splits()
        for a in range(len(whole.axes)):
            our_pieces, their_pieces = found.pieces(a), whole.pieces(a)
            assert our_pieces[0].to_pylist() == their_pieces[0].to_pylist()
            for ours, theirs in zip(our_pieces[1], their_pieces[1], strict=True):
                np.testing.assert_array_equal(ours, theirs)


@given(recodings_and_rows())
@IN_FILES
def test_a_large_tree_is_written_and_read_back_whole_or_in_parts(given):
    case, tree, parts, rows = given
    whole = tree.recoding()
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as other:
        streamed(tree, parts, Path(name), memory=1).write(Path(other))
        assert json.loads((Path(other) / "recoding.json").read_text())["nodes"] == "recoding.parquet"
        in_memory = Recoding.read(Path(other), case.schema())
        assert same_tree(in_memory, whole)
        on_disk = recodings.read(Path(other), case.schema(), memory=1)
        assert isinstance(on_disk, LargeRecoding)
        assert on_disk.apply(rows).equals(whole.apply(rows))
        assert in_memory.apply(rows).equals(whole.apply(rows))
        assert isinstance(recodings.read(Path(other), case.schema()), Recoding)


@given(recodings_and_rows())
@IN_FILES
def test_a_tree_that_was_written_whole_needs_no_pieces_to_be_applied_from_disk(given):
    case, tree, _, rows = given
    whole = tree.recoding()
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(recodings, "LARGE", 0)
        patch.setattr(large_tree, "LEAST_WINDOW", 1)
        patch.setattr(recoder, "PART_ROWS", 3)
        whole.write(Path(name))
        found = recodings.read(Path(name), case.schema(), memory=1)
        assert isinstance(found, LargeRecoding)
        assert found.apply(rows).equals(whole.apply(rows))


def test_where_no_recoding_is_wanted_nothing_is_kept():
    tree: Any = NoTree()
    assert [tree.piece(None, None), tree.piece(None, None)] == [0, 1]
    assert tree.finish(None, {}, {}, None) is None
