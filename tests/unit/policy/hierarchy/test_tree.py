"""Hierarchies: the tree, its formats, and its builders."""

from __future__ import annotations

import copy
import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import HierarchyError, InternalError
from sfumato.policy.hierarchy import files
from sfumato.policy.hierarchy.tree import Hierarchy, read, write
from sfumato.policy.schema import Attribute, Kind, Role

PLACES = {"*": {"North": ["a", "b"], "South": {"Isles": ["c"], "d": None}}}
SECRET = "Jane-Doe"
UNHURRIED = settings(deadline=None)  # a busy machine is no failure
AMBIGUOUS = (
    "{} gives a label of field {} another label in field {} than an earlier row does. "
    "One label must always lead to the same next one."
)


def column(hierarchy=None, kind=Kind.CATEGORY, **options):
    return Attribute("x", Role.QUASI_IDENTIFIER, kind, hierarchy=hierarchy, **options)


def numbers(hierarchy, bounds=(0, 110), **options):
    return column(hierarchy, Kind.NUMBER, bounds=bounds, **options)


def leaves(hierarchy):
    return [hierarchy.labels[node] for node in hierarchy.leaf_nodes]


def paths(hierarchy):
    return [hierarchy.path(node) for node in hierarchy.leaf_nodes]


def labels_of(attribute, hierarchy, values):
    """The leaf label that each value is located at, None where there is none."""
    codes = attribute.locate(hierarchy, values)
    return [None if code < 0 else leaves(hierarchy)[code] for code in codes]


def days(*texts):
    return np.array(texts, dtype="datetime64[D]")


def refuses(text, name="h.csv", *, tmp_path):
    """The sentence with which a file of this text (or these bytes) is refused."""
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(HierarchyError) as caught:
        read(path)
    assert str(caught.value).startswith(f"Hierarchy file {str(path)!r}: ")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return str(caught.value).removeprefix(f"Hierarchy file {str(path)!r}: ")


# --- a plain model of trees: (label, [children]) ----------------------------------------------------------

INNER = ["A", "B", "*", "v1", "v2", "a;b", 'say "x"', "p, q", "0", "1", "two\nlines"]


@st.composite
def models(draw, *, plain=False):
    """A random tree: uneven depth, one-child chains; unless ``plain``, inner labels that repeat anywhere."""
    parents = [-1, *(draw(st.integers(max(0, i - 6), i - 1)) for i in range(1, draw(st.integers(1, 18))))]
    children = [[j for j, parent in enumerate(parents) if parent == i] for i in range(len(parents))]
    names = [f"n{i}" if below else f"v{i}" for i, below in enumerate(children)]
    for i, below in enumerate(children):
        if below and not plain:
            name = draw(st.sampled_from([names[i], *INNER]))
            siblings = [names[j] for j in children[parents[i]]] if i else []
            names[i] = names[i] if name in siblings else name

    def model(i):
        return names[i], [model(j) for j in children[i]]

    return model(0)


def collapsed(model):
    label, below = model
    while len(below) == 1 and below[0][0] == label:
        below = below[0][1]
    return label, [collapsed(child) for child in below]


def as_lists(model):
    """The nested form that can say anything: lists of leaves and of one-key mappings."""
    label, below = model
    return {label: [as_lists(child) if child[1] else child[0] for child in below]}


def model_of(hierarchy, node=0):
    return hierarchy.labels[node], [model_of(hierarchy, child) for child in hierarchy.children(node).tolist()]


def preorder(model, path=()):
    label, below = model
    yield (*path, label)
    for child in below:
        yield from preorder(child, (*path, label))


def tree(model):
    return Hierarchy.from_tree(as_lists(model))


# --- the tree ---------------------------------------------------------------------------------------------


def test_nodes_are_in_preorder_and_cover_ranges_of_codes():
    places = Hierarchy.from_tree(PLACES)
    assert places.labels == ("*", "North", "a", "b", "South", "Isles", "c", "d")
    assert places.parent.tolist() == [-1, 0, 1, 1, 0, 4, 5, 4]
    assert places.low.tolist() == [0, 0, 0, 1, 2, 2, 2, 3]
    assert places.high.tolist() == [4, 2, 1, 2, 4, 3, 3, 4]
    assert places.leaf_nodes.tolist() == [2, 3, 6, 7]
    assert (places.n_nodes, places.n_leaves, places.height) == (8, 4, 3)
    assert places.depth.tolist() == [0, 1, 2, 2, 1, 2, 3, 2]
    assert places.children(4).tolist() == [5, 7]
    assert places.children(6).tolist() == []
    assert places.path(6) == ("*", "South", "Isles", "c")
    assert {getattr(places, name).dtype for name in ("parent", "low", "high", "leaf_nodes")} == {
        np.dtype("int32")
    }


@UNHURRIED
@given(models())
def test_every_node_is_the_concatenation_of_its_children_and_codes_number_the_leaves(model):
    built = tree(model)
    assert built.low[built.leaf_nodes].tolist() == list(range(built.n_leaves))
    assert built.high[built.leaf_nodes].tolist() == list(range(1, built.n_leaves + 1))
    assert (built.low[0], built.high[0]) == (0, built.n_leaves)
    for node in range(built.n_nodes):
        below = built.children(node)
        if len(below):
            ends = [built.low[node], *built.high[below]]
            assert ends[:-1] == built.low[below].tolist()
            assert ends[-1] == built.high[node]
            assert (built.parent[below] == node).all()
            assert (built.depth[below] == built.depth[node] + 1).all()
        else:
            assert node in built.leaf_nodes


@UNHURRIED
@given(models())
def test_the_tree_is_the_one_that_was_given_but_for_only_children_with_their_parents_label(model):
    assert model_of(tree(model)) == collapsed(model)
    assert model_of(Hierarchy.from_tree(as_lists(model), pruned=True)) == model


@UNHURRIED
@given(models())
def test_paths_are_those_of_the_plain_model(model):
    built = tree(model)
    assert [built.path(node) for node in range(built.n_nodes)] == list(preorder(collapsed(model)))


@UNHURRIED
@given(models(), st.lists(st.sampled_from([*INNER, "v3", "v4", "n1", "n2"]), max_size=4), st.integers(0, 99))
def test_descend_finds_the_deepest_node_on_the_way(model, tail, pick):
    built = tree(model)
    every = [built.path(node) for node in range(built.n_nodes)]
    path = (*every[pick % len(every)], *tail)
    naive = max(
        (i for i, known in enumerate(every) if path[: len(known)] == known), key=lambda i: len(every[i])
    )
    assert built.descend(path) == naive
    assert [built.descend(known) for known in every] == list(range(built.n_nodes))


def test_descend_stays_at_the_root_when_the_root_differs():
    places = Hierarchy.from_tree(PLACES)
    assert places.descend(("Earth", "North", "a")) == 0
    assert places.descend(()) == 0


@UNHURRIED
@given(models(), st.lists(st.integers(0, 99), max_size=4))
def test_prune_keeps_the_nodes_and_their_ancestors_and_no_others(model, picks):
    built = tree(model)
    wanted = {pick % built.n_nodes for pick in picks}
    keep = set(wanted) | {0}
    for node in wanted:
        while node > 0:
            keep.add(node)
            node = int(built.parent[node])  # noqa: PLW2901 - climbing

    def naive(node):
        return built.labels[node], [naive(child) for child in built.children(node).tolist() if child in keep]

    pruned, new = built.prune(wanted)
    assert model_of(pruned) == naive(0)
    assert {node for node in range(built.n_nodes) if new[node] >= 0} == keep
    assert all(pruned.path(new[node]) == built.path(node) for node in keep)
    assert Hierarchy.from_tree(json.loads(json.dumps(pruned.as_tree())), pruned=True) == pruned


def test_a_pruned_tree_reads_back_even_where_leaves_now_share_a_label_or_repeat_their_parents():
    rest = Hierarchy.from_tree({"*": {"North": {"Rest": ["a"]}, "South": {"Rest": ["b"], "South": ["c"]}}})
    pruned, _ = rest.prune(
        [rest.descend(("*", side, last)) for side, last in (("North", "Rest"), ("South", "South"))]
    )
    assert pruned.as_tree() == {"*": {"North": ["Rest"], "South": ["South"]}}
    both, _ = rest.prune([rest.descend(("*", side, "Rest")) for side in ("North", "South")])
    assert both.as_tree() == {"*": {"North": ["Rest"], "South": ["Rest"]}}
    for tree in (pruned, both):
        assert Hierarchy.from_tree(tree.as_tree(), pruned=True) == tree


def test_prune_takes_an_array_of_nodes_too():
    places = Hierarchy.from_tree(PLACES)
    pruned, new = places.prune(np.array([4, 2], dtype=np.int32))
    assert pruned.as_tree() == {"*": {"North": ["a"], "South": None}}
    assert new.tolist() == [0, 1, 2, -1, 3, -1, -1, -1]


@UNHURRIED
@given(models())
def test_missing_is_the_last_child_of_the_root_and_moves_no_code(model):
    built = tree(model)
    more = built.with_missing()
    assert leaves(more) == [*leaves(built), None]
    assert more.labels[more.children(0)[-1]] is None
    assert more.path(more.n_nodes - 1) == (built.labels[0], None)
    assert more.with_missing() == more
    assert Hierarchy.from_tree(json.loads(json.dumps(more.as_tree()))) == more


def test_missing_may_stand_nowhere_else():
    for wrong in ({"*": [None, "a"]}, {"*": {"North": ["a", None]}}):
        with pytest.raises(HierarchyError, match="last child of the root"):
            Hierarchy.from_tree(wrong)


def test_hierarchies_are_equal_and_hash_alike_by_content():
    one, two = Hierarchy.from_tree(PLACES), Hierarchy.from_tree(copy.deepcopy(PLACES))
    assert one == two
    assert hash(one) == hash(two)
    assert {one: "found"}[two] == "found"
    assert one != Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": {"Isles": ["c", "d"]}}})
    assert Hierarchy.from_tree({"*": {"a": ["b"], "c": None}}) != Hierarchy.from_tree(
        {"*": {"a": ["b", "c"]}}
    )
    assert one != "a hierarchy"
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_hierarchy_cannot_be_changed_and_its_repr_shows_no_label():
    places = Hierarchy.flat([SECRET])
    with pytest.raises(ValueError, match="read-only"):
        places.parent[0] = 1
    anything: Any = places
    with pytest.raises(AttributeError):
        anything.labels = ()
    assert SECRET not in repr(places)


@pytest.mark.parametrize("parent", [[], [0, 0, 0], [-1, 2, 0], [-1, 0], [-1, -1, 0], [-1, 0, 0, 1]])
def test_parents_that_are_no_preorder_are_our_bug(parent):
    with pytest.raises(InternalError):
        Hierarchy(("*", "a", "b", "c")[: max(3, len(parent))] if parent else (), np.array(parent))


# --- trees and paths --------------------------------------------------------------------------------------


def test_trees_may_be_written_in_several_ways():
    expected = Hierarchy.from_tree(PLACES)
    for same in (
        {"North": ["a", "b"], "South": {"Isles": {"c": None}, "d": []}},
        {"*": [{"North": {"a": None, "b": {}}}, {"South": [{"Isles": ["c"]}, "d"]}]},
        {"*": ({"North": ("a", "b"), "South": ({"Isles": ("c",)}, "d")},)},
    ):
        assert Hierarchy.from_tree(same) == expected
    assert expected.as_tree() == PLACES


def test_numbers_in_a_tree_are_labels():
    assert Hierarchy.from_tree({"*": {1: [10, 11.0], "2": [20.5]}}).as_tree() == {
        "*": {"1": ["10", "11"], "2": ["20.5"]}
    }


def test_one_label_may_stand_in_different_branches():
    tree = {"*": {"North": {"Rest": ["a"]}, "South": {"Rest": ["b"], "South": ["c"]}}}
    assert Hierarchy.from_tree(tree).as_tree() == tree


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"*": ["a", "a", "b", "b"]}, "repeat under one parent: 2"),
        ({"*": {"1": ["a"], 1: ["b"]}}, "repeat under one parent: 1"),
        ({"*": {"North": ["a", "b", "c"], "South": ["b", "c"]}}, "Leaf labels that stand more than once: 2"),
        ({"*": {"North": "a"}}, "must be a mapping, a list"),
        ({"*": {"North": 5}}, "must be a mapping, a list"),
        ({"*": ["a", True]}, "must be a text or a number"),
        ({"*": ["a", ["b"]]}, "must be a text or a number"),
        ({"*": ["a", ""]}, "A label is empty"),
        ({None: ["a"]}, "must be a text or a number"),
        ({}, "It is empty"),
        ("North", "must be a mapping, a list"),
    ],
)
def test_a_tree_that_is_none_is_refused(wrong, why):
    with pytest.raises(HierarchyError, match=why):
        Hierarchy.from_tree(wrong)


def test_a_tree_that_contains_itself_is_refused():
    loop: dict[str, Any] = {"b": ["x"]}
    loop["a"] = loop
    with pytest.raises(HierarchyError, match="contains itself"):
        Hierarchy.from_tree({"*": loop})


def test_a_tree_that_aliases_blow_up_is_refused(monkeypatch):
    monkeypatch.setattr(files, "MAX_NODES", 1000)
    bomb: Any = ["x"]
    for _ in range(40):
        bomb = {"a": bomb, "b": bomb}
    with pytest.raises(HierarchyError, match="more than 1,000 nodes"):
        Hierarchy.from_tree({"*": bomb})


@UNHURRIED
@given(models())
def test_tree_and_paths_are_one(model):
    built = tree(model)
    assert Hierarchy.from_paths(paths(built)) == built
    assert Hierarchy.from_tree(json.loads(json.dumps(built.as_tree()))) == built


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([], "start at one root"),
        ([()], "start at one root"),
        ([("*", "a"), ()], "start at one root"),
        ([("*", "a"), ("+", "b")], "start at one root"),
        ([("*", "a"), ("*", "a", "b")], "Paths that end at a node which other paths run through: 1"),
        ([("*", "A", "a"), ("*", "B", "a")], "Leaf labels that stand more than once: 1"),
    ],
)
def test_paths_that_are_no_tree_are_refused(rows, why):
    with pytest.raises(HierarchyError, match=why):
        Hierarchy.from_paths(rows)


def test_a_path_may_come_twice():
    assert Hierarchy.from_paths([("*", "a"), ("*", "a")]) == Hierarchy.flat(["a"])


def test_a_flat_hierarchy_keeps_its_order_and_refuses_repeats():
    assert Hierarchy.flat(["b", "a"]).as_tree() == {"*": ["b", "a"]}
    assert Hierarchy.flat([]).as_tree() == {"*": None}
    assert Hierarchy.flat(["*"]) == Hierarchy.flat([])
    with pytest.raises(HierarchyError, match="Values that stand more than once: 1"):
        Hierarchy.flat([SECRET, SECRET, "b"])


# --- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a;North;*\nb;North;*\nc;South;*\n",
        "a,North,*\nb,North,*\nc,South,*",
        "a;North;*\r\nb;North;*\r\nc;South;*\r\n",
        "a;North;*\rb;North;*\rc;South;*",
        "\ufeffa;North;*\n\n  b ;\tNorth ; *\n\n \nc;South;*\n\n",
        '"a";"North";"*"\n" b ";"North" ; "*"\nc;South;*',
        "a;North\nb;North\nc;South",
        "a;East;*\nb;North;*\nc;South;*\na;North;*\n",
        '{"North": ["a", "b"], "South": {"c": null}}',
        ' {\n"*": {"North": ["a", "b"], "South": ["c"]}}',
        '{"0": ["a", "b", "c"], "1": ["North", "North", "South"], "2": ["*", "*", "*"]}',
        '{"0": ["a", "a", "b", "c", "b"], "1": ["North", "North", "North", "South", "North"]}',
    ],
)
def test_every_format_is_read_by_its_content(text, tmp_path):
    expected = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": ["c"]}})
    for name in ("h.csv", "h.txt", "h") if not text.lstrip().startswith("{") else ("h.json", "h.csv", "h"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        assert read(path) == expected
        assert read(str(path)) == expected


def test_quoted_fields_keep_delimiters_quotes_and_line_breaks(tmp_path):
    (tmp_path / "h.csv").write_text('"a;1";"say ""x""";*\n"b\n2";"[0, 5[";*\n5";[0, 5[;*\n')
    assert read(tmp_path / "h.csv").as_tree() == {"*": {'say "x"': ["a;1"], "[0, 5[": ["b\n2", '5"']}}


def test_a_comma_file_may_quote_semicolons(tmp_path):
    (tmp_path / "h.csv").write_text('a,"x;y",*\nb,"x;y",*\n')
    assert read(tmp_path / "h.csv").as_tree() == {"*": {"x;y": ["a", "b"]}}


def test_rows_of_one_column_are_a_flat_hierarchy(tmp_path):
    (tmp_path / "h.csv").write_text("b\na\n")
    assert read(tmp_path / "h.csv") == Hierarchy.flat(["b", "a"])


def test_the_same_label_on_several_levels_is_several_nodes_or_one_chain():
    rows = [("a", "a", "X", "*"), ("b", "X", "X", "*"), ("c", "X", "X", "*"), ("d", "Y", "Y", "*")]
    assert Hierarchy.from_levels(rows).as_tree() == {"*": {"X": {"a": None, "X": ["b", "c"]}, "Y": ["d"]}}


def test_rows_out_of_order_are_gathered_under_their_node():
    rows = [("a", "North", "*"), ("c", "South", "*"), ("b", "North", "*")]
    assert Hierarchy.from_levels(rows).as_tree() == {"*": {"North": ["a", "b"], "South": ["c"]}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "It is empty."),
        (" \n\n\t\n", "It is empty."),
        (
            f"a;X;*\n\n{SECRET};*\n",
            "Line 3 has 2 fields, line 1 has 3. Every row needs the same number of levels.",
        ),
        (f"a;X;*\n{SECRET};;*\n", "Line 2 has an empty field."),
        (f'"a\nb";{SECRET};N;*\nc;Y;N;*\nd;{SECRET};M;*\n', AMBIGUOUS.format("Line 4", 2, 3)),
        (f'a;X\nb;"{SECRET}\n', "Line 2 opens a quote that is never closed."),
        (f"a;X\n{SECRET * 20_000};X\n", "Line 2 is not delimited text."),
        (b"PAR1\x15\x04\x00", "It holds control characters: is it a text file?"),
        (b"\x1f\x8b\x08\x00\xff\xfe", "It is not a text file in UTF-8."),
        ("caf\xe9;X".encode("latin-1"), "It is not a text file in UTF-8."),
        (f'{{\n"{SECRET}" 5', "It is not JSON: line 2, column 12."),
        (f'{{\n"{SECRET}": ["a"],\n"{SECRET}": ["b"]}}', "Labels that repeat under one parent: 1."),
        ('{"*": [NaN]}', "NaN and Infinity cannot be labels."),
        ('{"*": ["\\ud800"]}', "It holds half characters (lone surrogates)."),
        ("{}", "It is empty."),
        ('{"0": ["a", "b"], "1": ["*"]}', "Its levels must be lists of one length."),
        ('{"0": ["a"], "1": {"b": null}}', "Its levels must be lists of one length."),
        ('{"0": ["a"], "1": [null]}', "A label must be a text or a number."),
        ('{"0": [], "1": []}', "It is empty."),
        ('{"0": ["a", "b", "a"], "1": ["X", "X", "Y"]}', AMBIGUOUS.format("Row 3", 1, 2)),
    ],
)
def test_a_file_that_is_no_hierarchy_is_refused_without_a_value_of_it(text, why, tmp_path):
    assert refuses(text, tmp_path=tmp_path) == why
    assert SECRET not in why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a;*\n", "It is not JSON: line 1, column 1."),
        ("", "It is not JSON: line 1, column 1."),
        ('["a", "b"]', "It must be a JSON object: a tree, or levels named 0, 1, and so on."),
        ("3", "It must be a JSON object: a tree, or levels named 0, 1, and so on."),
        ("[" * 100_000, "It is nested more than 256 deep."),
        ('{"a":' * 300 + "null" + "}" * 300, "It is nested more than 256 deep, or contains itself."),
    ],
)
def test_json_rubbish_is_refused(text, why, tmp_path):
    assert refuses(text, "h.json", tmp_path=tmp_path) == why


def test_numbers_in_json_keep_their_text(tmp_path):
    (tmp_path / "h.json").write_text('{"*": {"x": [1, 1.50, 1e3], "y": [-0]}}')
    assert leaves(read(tmp_path / "h.json")) == ["1", "1.50", "1e3", "-0"]


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(HierarchyError, match=r"nowhere.csv': There is no such file\.$"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(HierarchyError, match=r"It cannot be read: Is a directory\.$"):
        read(tmp_path)


def test_a_file_of_too_many_leaves_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LEAVES", 2)
    assert refuses("a\nb\nc\n", tmp_path=tmp_path) == "It has more than 2 rows."


def test_arx_files_are_written_as_arx_writes_them(tmp_path):
    built = Hierarchy.from_tree({"*": {"[0, 5[": ["1", "2"], "none": None}})
    write(built, tmp_path / "h.csv")
    assert (tmp_path / "h.csv").read_bytes() == b'1;"[0, 5[";*\n2;"[0, 5[";*\nnone;none;*\n'
    write(built, tmp_path / "h.csv", levels=True)
    assert (tmp_path / "h.csv").read_bytes() == b'1,"[0, 5[",*\n2,"[0, 5[",*\nnone,none,*\n'
    write(built, tmp_path / "h.json", levels=True)
    assert json.loads((tmp_path / "h.json").read_text()) == {
        "0": ["1", "2", "none"],
        "1": ["[0, 5[", "[0, 5[", "none"],
        "2": ["*", "*", "*"],
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h.csv", "h.json"]


FORMATS = [("h.csv", False), ("h.csv", True), ("h.json", False), ("h.json", True)]


@UNHURRIED
@given(models(plain=True))
def test_every_format_gives_back_the_tree_that_was_written(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("formats")
    for name, levels in FORMATS:
        write(tree(model), folder / name, levels=levels)
        assert read(folder / name) == tree(model)


@UNHURRIED
@given(models())
def test_what_is_written_reads_back_the_same_or_is_not_written(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("formats")
    built = tree(model)
    for number, (name, levels) in enumerate(FORMATS):
        path = folder / f"{number}{name}"
        try:
            write(built, path, levels=levels)
        except HierarchyError:
            assert (name, levels) != ("h.json", False)
            assert not path.exists()
        else:
            assert read(path) == built


@pytest.mark.parametrize(
    "tree",
    [
        {"*": {"North": {"Rest": ["a"]}, "South": {"Rest": ["b"]}}},  # one label, two nodes on one level
        {"*": ["a ", "b"]},  # blanks would be trimmed
        {"*": ["a", None]},
    ],
)
def test_what_a_csv_cannot_hold_is_refused_and_the_old_file_stays(tree, tmp_path):
    path = tmp_path / "h.csv"
    path.write_text("old")
    with pytest.raises(HierarchyError, match="JSON tree"):
        write(Hierarchy.from_tree(tree), path)
    assert path.read_text() == "old"
    write(Hierarchy.from_tree(tree), tmp_path / "h.json")
    assert read(tmp_path / "h.json") == Hierarchy.from_tree(tree)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["h.csv", "h.json"]


def test_only_known_endings_and_existing_folders_are_written_to(tmp_path):
    with pytest.raises(HierarchyError, match=r"must end in \.csv or \.json"):
        write(Hierarchy.flat(["a"]), tmp_path / "h.xlsx")
    with pytest.raises(HierarchyError, match="cannot be written: No such file"):
        write(Hierarchy.flat(["a"]), tmp_path / "nowhere" / "h.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(HierarchyError, match="cannot be written"):
        write(Hierarchy.flat(["a"]), tmp_path / "folder.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def adult_files():
    folder = os.environ.get("SFUMATO_DATA")
    return sorted(Path(folder, "adult_hierarchies").glob("*/*.csv")) if folder else []


@pytest.mark.data
@pytest.mark.skipif("SFUMATO_DATA" not in os.environ, reason="SFUMATO_DATA is not set: no real ARX files")
def test_the_arx_files_of_adult_are_read_and_written(tmp_path):
    found = adult_files()
    assert len(found) == 23
    for file in found:
        built = read(file)
        rows = [line.split(";") for line in file.read_text().splitlines()]
        assert sorted(leaves(built)) == sorted(row[0] for row in rows)
        for row in rows:
            node = built.leaf_nodes[leaves(built).index(row[0])]
            path = list(dict.fromkeys(row))
            assert list(dict.fromkeys(reversed(built.path(node)))) == path
        for number, (name, levels) in enumerate(FORMATS):
            write(built, tmp_path / f"{number}{name}", levels=levels)
            assert read(tmp_path / f"{number}{name}") == built


@pytest.mark.data
@pytest.mark.skipif("SFUMATO_DATA" not in os.environ, reason="SFUMATO_DATA is not set: no real ARX files")
def test_the_ages_of_adult_match_by_number():
    (file,) = [file for file in adult_files() if file.name == "adult_hierarchy_age.csv"]
    age = column(read(file), Kind.NUMBER)
    assert labels_of(age, age.hierarchy.tree, np.array([1.0, 39.0, 100.0, 39.5, 0.0])) == [
        "1",
        "39",
        "100",
        None,
        None,
    ]


# --- builders ---------------------------------------------------------------------------------------------


def test_a_category_without_a_hierarchy_is_flat_and_sorted():
    for declared in (None, "flat"):
        assert leaves(column(declared).build_hierarchy(["b", "c", "a"])) == ["a", "b", "c"]


def test_declared_values_are_taken_whole_in_their_order():
    sex = column(values=("Male", "Female"))
    assert leaves(sex.build_hierarchy(["Female", SECRET])) == ["Male", "Female"]
    assert sex.locate(sex.build_hierarchy([]), ["Female", SECRET, "Male"]).tolist() == [1, -1, 0]


def test_a_given_hierarchy_and_an_inline_tree_are_taken_whole():
    given_one = Hierarchy.from_tree(PLACES)
    assert column(given_one).build_hierarchy(["a"]) is given_one
    assert column({"tree": PLACES}).build_hierarchy(["a"]) == given_one
    assert labels_of(column({"tree": PLACES}), given_one.with_missing(), ["c", "North", "a"]) == [
        "c",
        None,
        "a",
    ]


def test_a_column_without_values_has_a_root_alone():
    for declared in ("flat", {"mask": 5}):
        assert column(declared).build_hierarchy([]).as_tree() == {"*": None}
    assert column({"dates": ["day"]}, Kind.DATE).build_hierarchy(days()).as_tree() == {"*": None}
    assert column().locate(column().build_hierarchy([]), []).tolist() == []


def test_a_mask_takes_characters_from_the_right():
    zip_code = column({"mask": 5})
    built = zip_code.build_hierarchy(["53715", "53703", "02139"])
    assert paths(built)[1] == ("*", "5****", "53***", "537**", "5370*", "53703")
    assert leaves(built) == ["02139", "53703", "53715"]
    assert built.labels[0:2] == ("*", "0****")
    assert zip_code.locate(built, ["53715", "00000"]).tolist() == [2, -1]


def test_shorter_texts_are_masked_from_the_right_too():
    assert column({"mask": 3}).build_hierarchy(["12", "7", "123", "*"]).as_tree() == {
        "*": {"*": None, "7": None, "1*": ["12"], "1**": {"12*": ["123"]}}
    }


def test_texts_that_are_masked_already_have_their_place():
    built = column({"mask": 2}).build_hierarchy(["12", "1*", "**"])
    assert built.as_tree() == {"*": {"**": None, "1*": ["1*", "12"]}}


def test_texts_longer_than_the_mask_are_counted_not_shown():
    with pytest.raises(HierarchyError) as caught:
        column({"mask": 3}).build_hierarchy(["123", SECRET, SECRET + "!"])
    assert str(caught.value) == (
        "The hierarchy of column 'x': Values longer than the 3 characters that mask keeps: 2."
    )


@UNHURRIED
@given(st.lists(st.text("01*", min_size=1, max_size=4), unique=True), st.randoms(use_true_random=False))
def test_a_mask_does_not_depend_on_the_order_of_values(values, random):
    shuffled = random.sample(values, len(values))
    built = column({"mask": 4}).build_hierarchy(values)
    assert column({"mask": 4}).build_hierarchy(shuffled) == built
    assert labels_of(column({"mask": 4}), built, values) == values
    for value in values:
        code = column({"mask": 4}).locate(built, [value])[0]
        for label in built.path(built.leaf_nodes[code])[1:]:
            assert len(label) == len(value)
            assert all(shown in (hidden, "*") for hidden, shown in zip(value, label, strict=True))


def test_dates_nest_through_all_levels():
    admitted = column({"dates": ["day", "month", "quarter", "year", "decade"]}, Kind.DATE)
    built = admitted.build_hierarchy(days("2024-03-05", "2019-12-31", "2024-04-01", "2024-03-04"))
    assert built.as_tree() == {
        "*": {
            "2010s": {"2019": {"2019-Q4": {"2019-12": ["2019-12-31"]}}},
            "2020s": {
                "2024": {
                    "2024-Q1": {"2024-03": ["2024-03-04", "2024-03-05"]},
                    "2024-Q2": {"2024-04": ["2024-04-01"]},
                }
            },
        }
    }
    assert labels_of(admitted, built, days("2024-03-05", "2024-03-06")) == ["2024-03-05", None]


def test_days_fall_into_the_finest_level_that_is_asked_for():
    for level, expected in {
        "month": ["1969-12", "2024-03"],
        "quarter": ["1969-Q4", "2024-Q1"],
        "year": ["1969", "2024"],
        "decade": ["1960s", "2020s"],
    }.items():
        admitted = column({"dates": [level]}, Kind.DATE)
        built = admitted.build_hierarchy(days("2024-03-05", "1969-12-31", "NaT"))
        assert leaves(built) == expected
        other_days = days("2024-03-31", "1969-12-01", "1950-01-01", "NaT")
        assert labels_of(admitted, built, other_days) == [expected[1], expected[0], None, None]


@UNHURRIED
@given(st.lists(st.dates(), min_size=1, max_size=6))
def test_a_date_is_named_as_the_calendar_names_it(dates):
    built = column({"dates": ["day", "month", "quarter", "year", "decade"]}, Kind.DATE).build_hierarchy(
        days(*dates)
    )
    assert paths(built) == [
        (
            "*",
            f"{d.year // 10 * 10:04}s",
            f"{d.year:04}",
            f"{d.year:04}-Q{(d.month + 2) // 3}",
            f"{d.year:04}-{d.month:02}",
            d.isoformat(),
        )
        for d in sorted(set(dates))
    ]


@pytest.mark.parametrize(
    ("levels", "why"),
    [
        (["month", "day"], r"from fine to coarse, each once: \[day, month\]"),
        (["day", "day"], r"each once: \[day\]"),
        (["day", "mnoth"], r"no level 'mnoth'.*Did you mean 'month'\?"),
        (["day", "week"], "no level 'week'; it has day, month, quarter, year, decade"),
        ([], "needs a list of levels"),
        ("day", "needs a list of levels"),
        ([["day"]], "no level"),
    ],
)
def test_levels_of_dates_out_of_order_or_unknown_are_refused(levels, why):
    for values in (days(), days("2024-03-05")):
        with pytest.raises(HierarchyError, match=why):
            column({"dates": levels}, Kind.DATE).build_hierarchy(values)


def test_intervals_are_half_open_and_the_last_is_closed():
    age = numbers({"intervals": [5, 10, 50]})
    built = age.build_hierarchy(np.array([]))
    assert leaves(built)[:2] == ["[0, 5)", "[5, 10)"]
    assert leaves(built)[-1] == "[105, 110]"
    assert paths(built)[4] == ("*", "[0, 50)", "[20, 30)", "[20, 25)")
    assert paths(built)[-1] == ("*", "[100, 110]", "[105, 110]")  # two widths, one range: one node
    values = np.array([0, 4.999, 5, 24.999999, 25, 105, 110, -0.001, 110.001, np.nan, np.inf])
    assert labels_of(age, built, values) == [
        "[0, 5)",
        "[0, 5)",
        "[5, 10)",
        "[20, 25)",
        "[25, 30)",
        "[105, 110]",
        "[105, 110]",
        None,
        None,
        None,
        None,
    ]


def test_the_last_interval_ends_at_the_bound():
    assert leaves(numbers({"intervals": [5]}, (3, 17)).build_hierarchy([])) == [
        "[3, 8)",
        "[8, 13)",
        "[13, 17]",
    ]
    assert numbers({"intervals": [50]}, (3, 17)).build_hierarchy([]).as_tree() == {"*": ["[3, 17]"]}
    assert leaves(numbers({"intervals": [5]}, (3, 3)).build_hierarchy([])) == ["[3, 3]"]


def test_decimal_widths_have_decimal_edges():
    share = numbers({"intervals": [0.1, 0.5]}, (0, 1))
    built = share.build_hierarchy([])
    assert leaves(built)[2:4] == ["[0.2, 0.3)", "[0.3, 0.4)"]
    assert labels_of(share, built, np.array([0.3, 0.7])) == ["[0.3, 0.4)", "[0.7, 0.8)"]
    assert built.labels[built.children(0)[1]] == "[0.5, 1]"


@UNHURRIED
@given(
    st.integers(-500, 500),
    st.integers(0, 300),
    st.integers(1, 40),
    st.lists(st.integers(2, 5), max_size=3),
    st.sampled_from([1, 10, 1000]),
)
def test_every_number_lies_in_the_interval_it_is_located_at(lower, spread, width, ratios, scale):
    widths = [width * int(np.prod(ratios[:i])) / scale for i in range(len(ratios) + 1)]
    attribute = numbers({"intervals": widths}, (lower / scale, (lower + spread) / scale))
    built = attribute.build_hierarchy([])
    values = np.arange(lower, lower + spread + 1) / scale
    codes = attribute.locate(built, values)
    for value, code in zip(values.tolist(), codes.tolist(), strict=True):
        for label in built.path(built.leaf_nodes[code])[1:]:
            low, high = (float(end) for end in label[1:-1].split(", "))
            assert low <= value < high or (label[-1] == "]" and value == high == attribute.bounds[1])
    assert (np.diff(codes) >= 0).all()
    assert model_of(built) == collapsed(model_of(built))


@pytest.mark.parametrize(
    ("declared", "options", "why"),
    [
        ({"intervals": [5, 12]}, {}, "a multiple of it"),
        ({"intervals": [10, 5]}, {}, "wider than the one before"),
        ({"intervals": [5, 5]}, {}, "wider than the one before"),
        ({"intervals": [0]}, {}, "A width of intervals must be above 0"),
        ({"intervals": [-5]}, {}, "A width of intervals must be above 0"),
        ({"intervals": ["5"]}, {}, "A width of intervals must be a finite number"),
        ({"intervals": [float("inf")]}, {}, "A width of intervals must be a finite number"),
        ({"intervals": [True]}, {}, "A width of intervals must be a finite number"),
        ({"intervals": []}, {}, "needs a list of widths"),
        ({"intervals": 5}, {}, "needs a list of widths"),
        ({"intervals": [5]}, {"bounds": None}, "needs bounds"),
        ({"intervals": [5]}, {"bounds": (9, 3)}, "bounds are reversed"),
        ({"intervals": [5]}, {"bounds": (0, float("nan"))}, "A bound must be a finite number"),
        ({"intervals": [1]}, {"bounds": (0, 1_000_001)}, "more than 1,000,000 leaves"),
        ({"intervals": [1]}, {"bounds": (2**60, 2**60 + 300)}, "too fine"),
        ({"balanced": 1}, {}, "The fan-out of balanced must be a whole number of at least 2"),
        ({"balanced": "2"}, {}, "must be a whole number"),
        ({"balanced": True}, {}, "must be a whole number"),
        ({"balanced": 2}, {"bounds": None}, "needs bounds"),
        ({"balanced": 2}, {"step": 0}, "The step must be above 0"),
        ({"balanced": 2}, {"bounds": (0, 1_000_000)}, "more than 1,000,000 leaves"),
        ({"balanced": 2_000_000}, {"bounds": (0.5, 1)}, "more than 1,000,000 leaves"),
        ({"mask": 2}, {}, "mask is not for a column of type number"),
        ({"dates": ["day"]}, {}, "dates is not for a column of type number"),
    ],
)
def test_a_wrong_builder_of_numbers_is_refused(declared, options, why):
    with pytest.raises(HierarchyError, match=f"The hierarchy of column 'x': .*{why}"):
        numbers(declared, **options).build_hierarchy(np.array([1.0]))


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"maks": 5}, r"no builder 'maks'.*Did you mean 'mask'\?"),
        ({"mask": 0}, "whole number of at least 1"),
        ({"mask": 5.0}, "whole number of at least 1"),
        ({"mask": 300}, "more than 256 levels"),
        ({"mask": 5, "tree": {}}, "one builder"),
        ({}, "one builder"),
        ("education.csv", "a hierarchy that was read"),
        ({"intervals": [5]}, "intervals is not for a column of type category"),
        ({"balanced": 2}, "balanced is not for a column of type category"),
        ({"tree": {"*": ["a", "a"]}}, "repeat under one parent: 1"),
        ({"tree": None}, "It is empty"),
    ],
)
def test_a_wrong_builder_is_refused(declared, why):
    with pytest.raises(HierarchyError, match=f"The hierarchy of column 'x': .*{why}"):
        column(declared).build_hierarchy(["a" * 5 if declared != {"mask": 300} else "a" * 300])


def test_balanced_integers_are_points_below_intervals():
    age = numbers({"balanced": 2}, (0, 4))
    assert age.build_hierarchy([]).as_tree() == {
        "*": {"[0, 2)": ["0", "1"], "[2, 4]": {"2": None, "[3, 4]": ["3", "4"]}}
    }
    assert labels_of(age, age.build_hierarchy([]), np.array([0, 4, 2.5, 5, -1, np.nan])) == [
        "0",
        "4",
        None,
        None,
        None,
        None,
    ]
    assert numbers({"balanced": 3}, (7, 7)).build_hierarchy([]).as_tree() == {"*": ["7"]}


def test_balanced_with_a_step_has_its_multiples_as_leaves():
    share = numbers({"balanced": 4}, (0, 1), step=0.1)
    built = share.build_hierarchy([])
    assert leaves(built) == ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"]
    assert labels_of(share, built, np.array([0.1 + 0.2, 0.3, 0.35, 1.0])) == ["0.3", "0.3", None, "1"]
    assert leaves(numbers({"balanced": 2}, (0, 5), step=2).build_hierarchy([])) == ["0", "2", "4"]


@pytest.mark.parametrize(("fan_out", "n_leaves"), [(2, 64), (3, 81), (8, 64), (100, 100)])
def test_balanced_reals_have_equal_intervals(fan_out, n_leaves):
    weight = numbers({"balanced": fan_out}, (0.5, 120.3))
    built = weight.build_hierarchy([])
    assert built.n_leaves == n_leaves
    assert built.height == round(np.log(n_leaves) / np.log(fan_out))
    assert leaves(built)[0].startswith("[0.5, ")
    assert leaves(built)[-1].endswith(", 120.3]")
    edges = np.array([float(label[1:-1].split(", ")[0]) for label in leaves(built)])
    assert np.allclose(np.diff(edges), 119.8 / n_leaves, rtol=0.01)
    assert weight.locate(built, edges).tolist() == list(range(n_leaves))
    assert weight.locate(built, np.nextafter(edges, -1)).tolist() == list(range(-1, n_leaves - 1))
    assert weight.locate(built, np.array([120.3, 120.31])).tolist() == [n_leaves - 1, -1]


def test_balanced_reals_of_one_value_are_one_interval():
    assert numbers({"balanced": 2}, (0.5, 0.5)).build_hierarchy([]).as_tree() == {"*": ["[0.5, 0.5]"]}


@UNHURRIED
@given(st.integers(2, 5), st.integers(0, 130))
def test_balanced_trees_are_as_low_as_they_can_be(fan_out, upper):
    built = numbers({"balanced": fan_out}, (0, upper)).build_hierarchy([])
    assert leaves(built) == [str(point) for point in range(upper + 1)]
    assert built.height == max(1, next(h for h in range(9) if fan_out**h > upper))
    for node in range(built.n_nodes):
        sizes = (built.high - built.low)[built.children(node)]
        assert len(sizes) in (0, min(fan_out, built.high[node] - built.low[node]))
        assert not len(sizes) or sizes.max() - sizes.min() <= 1
        label, ends = built.labels[node], (built.low[node], built.high[node])
        if node and len(sizes):
            assert label == (f"[{ends[0]}, {ends[1]})" if ends[1] <= upper else f"[{ends[0]}, {upper}]")


def test_numbers_are_matched_with_the_leaves_of_a_tree_by_value():
    age = numbers({"tree": {"*": {"young": ["1.0", "2e0"], "old": ["70", "?", "-inf", "inf", "1_0", "nan"]}}})
    built = age.build_hierarchy([])
    assert age.locate(built, np.array([70, 2, 1, 10, np.nan, np.inf])).tolist() == [2, 1, 0, -1, -1, -1]
    assert age.locate(built.with_missing(), np.array([70.0])).tolist() == [2]
    assert age.locate(Hierarchy.flat(["?"]), np.array([70.0])).tolist() == [-1]
    with pytest.raises(
        HierarchyError, match="column 'x': Leaves that are the same number as another leaf: 1"
    ):
        age.locate(Hierarchy.flat(["1", "1.0", "2"]), np.array([1.0]))


def test_flat_numbers_and_dates_are_sorted_by_value():
    number = column("flat", Kind.NUMBER)
    built = number.build_hierarchy(np.array([10.0, 9.0, -1.5, 1e20]))
    assert leaves(built) == ["-1.5", "9", "10", "1e+20"]
    assert number.locate(built, np.array([1e20, 10.0])).tolist() == [3, 2]
    date = column("flat", Kind.DATE)
    assert labels_of(
        date, date.build_hierarchy(days("2024-03-05", "2019-01-01")), days("2019-01-01", "2020-01-01")
    ) == ["2019-01-01", None]


def test_large_hierarchies_are_built_in_a_second_or_two():
    start = time.process_time()
    built = numbers({"balanced": 2}, (1, 1_000_000)).build_hierarchy([])
    assert (built.n_leaves, built.n_nodes, built.height) == (1_000_000, 1_999_999, 20)
    assert column({"mask": 5}).build_hierarchy([f"{i:05}" for i in range(50_000)]).n_leaves == 50_000
    assert time.process_time() - start < 10  # 1.8 on an idle machine
