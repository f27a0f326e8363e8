"""Shared cuts: what a piece is called, which piece any cell belongs to, and what stands on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import cli
from sfumato.errors import InputError, TableError
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.output import Output
from sfumato.policy.schema import Schema
from sfumato.recoding import tree
from sfumato.recoding.axis import OrderedAxis, TreeAxis
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.tree import Recoding
from sfumato.table.opening import open_table

QUASI = "quasi-identifier"
SCHEMA = Schema.of(
    name="identifier",
    age={"role": QUASI, "kind": "number"},
    place={"role": QUASI, "hierarchy": {"tree": {"*": {"North": ["a", "b"], "South": ["c"]}}}},
    disease="sensitive",
)
PLACES = Hierarchy.from_tree({"*": {"North": ["a", "b"], "South": None}}, pruned=True)


def cuts(*thresholds: float, has_missing: bool = True, output: Output = Output.LABELS) -> Cuts:
    """Ages from 20 to 60 cut at thresholds, places at a, b and South."""
    age = OrderedAxis(SCHEMA["age"], 20, 60, 1.0, has_missing)
    place = TreeAxis(SCHEMA["place"], PLACES, has_missing=False)
    given = (np.array(thresholds, dtype=np.float64), np.zeros(0))
    return Cuts((age, place), given, n_groups=5, output=output, left_out=SCHEMA.left_out)


def applied(given: Cuts, ages: list[int | None], places: list[str | None] | None = None) -> list[dict]:
    places = ["a"] * len(ages) if places is None else places
    return given.apply(pa.table({"age": pa.array(ages, pa.int64()), "place": places})).to_pylist()


def ages(given: Cuts, cells: list[int | None]) -> list[str | None]:
    return [row["age"] for row in applied(given, cells)]


def places(given: Cuts, cells: list[str | None]) -> list[str | None]:
    return [row["place"] for row in applied(given, [20] * len(cells), cells)]


# ---- pieces ----------------------------------------------------------------------------------------


def test_a_value_at_a_threshold_lies_below_it():
    assert ages(cuts(30, 40, has_missing=False), [20, 30, 31, 40, 41, 60]) == [
        "[20, 30]", "[20, 30]", "[31, 40]", "[31, 40]", "[41, 60]", "[41, 60]",
    ]  # fmt: skip


def test_missing_is_a_piece_of_its_own_or_part_of_the_lowest():
    assert ages(cuts(-np.inf, 30), [None, 20, 31]) == [None, "[20, 30]", "[31, 60]"]
    assert ages(cuts(30), [None, 20, 31]) == ["[20, 30] or missing"] * 2 + ["[31, 60]"]
    assert ages(cuts(), [None, 20]) == ["[20, 60] or missing"] * 2


def test_pieces_are_all_pieces_of_the_cut_in_ascending_order():
    labels, (low, high, _) = cuts(-np.inf, 30).pieces(0)
    assert labels.to_pylist() == [None, "[20, 30]", "[31, 60]"]
    assert np.array_equal(low, [np.nan, -np.inf, 30], equal_nan=True)
    assert high.tolist() == [-np.inf, 30, np.inf]
    labels, (low, _, _) = cuts().pieces(1)
    assert labels.to_pylist() == ["a", "b", "South"]
    assert [PLACES.labels[int(node)] for node in low] == ["a", "b", "South"]


def test_a_column_without_any_value_has_one_piece_that_is_missing():
    nothing = OrderedAxis(SCHEMA["age"], 0.0, -1.0, None, has_missing=True)
    given = replace(cuts(), axes=(nothing, cuts().axes[1]))
    assert ages(given, [None, 5]) == [None, None]
    assert given.pieces(0)[0].to_pylist() == [None]


def test_splits_are_thresholds_and_nodes_that_were_divided():
    assert cuts(-np.inf, 30).n_splits() == {"age": 2, "place": 2}


def test_columns_of_places_are_those_of_the_grid():
    given = cuts(30, 40)
    found = given.columns(np.array([[0, 2], [2, 4]]), lambda values: np.repeat(values, [2, 1]))
    assert {name: column.to_pylist() for name, column in found.items()} == {
        "age": ["[20, 30] or missing", "[20, 30] or missing", "[41, 60]"],
        "place": ["a", "a", "South"],
    }


@pytest.mark.parametrize("output", list(Output))
def test_every_output_has_its_columns(output):
    (row,) = applied(cuts(30, output=output), [31], ["b"])
    label, bounds = {"age": "[31, 60]"}, {"age_low": 31, "age_high": 60}
    assert row == {
        **(label if output is not Output.BOUNDS else {}),
        **(bounds if output in (Output.BOUNDS, Output.BOTH) else {}),
        "place": "b",
    }


# ---- strangers -------------------------------------------------------------------------------------


def test_numbers_beyond_the_range_belong_to_the_outermost_piece_of_their_side():
    assert ages(cuts(30), [-7, 10**9]) == ["[20, 30] or missing", "[31, 60]"]


def test_a_missing_number_where_none_was_could_be_anything_and_hides_nothing_else():
    given = cuts(30, has_missing=False)
    assert applied(given, [None, 31], ["b", "b"]) == [
        {"age": "*", "place": "b"},
        {"age": "[31, 60]", "place": "b"},
    ]
    low, high, _ = given.box_ends(open_table(pa.table({"age": pa.array([None], pa.int64()), "place": ["b"]})))
    assert np.isnan(low[0, 0])
    assert np.isposinf(high[0, 0])


def test_a_category_stands_for_the_node_of_the_cut_or_its_nearest_known_ancestor():
    assert places(cuts(), ["a", "c", "unheard of", None]) == ["a", "South", "*", "*"]


def test_other_columns_pass_through_and_identifiers_do_not():
    table = pa.table({"name": ["Ada"], "age": [20], "disease": ["flu"], "place": ["b"]})
    found = cuts(30).apply(table)
    assert found.to_pylist() == [{"age": "[20, 30] or missing", "disease": "flu", "place": "b"}]


def test_a_column_with_the_name_of_a_bound_is_refused():
    table = pa.table({"age": [20], "place": ["a"], "age_low": [3]})
    with pytest.raises(TableError, match="'age_low'"):
        cuts(output=Output.BOUNDS).apply(table)


# ---- on disk ---------------------------------------------------------------------------------------


def test_cuts_are_read_back_as_they_were(tmp_path: Path):
    given = cuts(-np.inf, 30, output=Output.BOTH)
    given.write(tmp_path)
    again = tree.read(tmp_path, SCHEMA)
    assert isinstance(again, Cuts)
    assert again.thresholds[0].tolist() == [-np.inf, 30]
    assert (again.axes, again.n_groups, again.output, again.left_out) == (
        given.axes,
        5,
        Output.BOTH,
        frozenset({"name"}),
    )
    assert [path.name for path in tmp_path.iterdir()] == ["recoding.json"]


def broken(document: dict) -> list[dict]:
    return [
        {**document, "kind": "else"},
        {**document, "thresholds": [[40, 30], []]},
        {**document, "thresholds": [[30, 30], []]},
        {**document, "thresholds": [[30]]},
        {**document, "thresholds": [[], [1]]},
        {**document, "thresholds": [["x"], []]},
        {**document, "output": "songs"},
        {**document, "attributes": [{"name": "age"}]},
        {key: value for key, value in document.items() if key != "groups"},
    ]


@pytest.mark.parametrize("which", range(9))
def test_a_file_that_is_no_cut_is_refused_in_one_sentence(tmp_path: Path, which: int):
    cuts(30).write(tmp_path)
    path = tmp_path / "recoding.json"
    path.write_text(json.dumps(broken(json.loads(path.read_text()))[which]))
    with pytest.raises(InputError, match="is not a recoding that this version can read"):
        tree.read(tmp_path, SCHEMA)


def test_cuts_are_no_tree(tmp_path: Path):
    cuts(30).write(tmp_path)
    with pytest.raises(InputError, match="has shared cuts and no tree"):
        Recoding.read(tmp_path, SCHEMA)


def test_further_rows_are_recoded_from_the_command_line(tmp_path: Path, capsys):
    table = pa.table({"age": [20, 21, 40, 41], "income": ["low", "low", "high", "high"]})
    policy = sf.Policy.parse(
        "{attributes: {age: {role: quasi-identifier, type: number}, income: {role: other}}, "
        "require: [k-anonymity: 2], workload: [classify: income], method: tds}"
    )
    sf.publish(table, policy).write(tmp_path / "release")
    (tmp_path / "more.csv").write_text("age,income\n7,low\n22,high\n")
    files = [str(tmp_path / name) for name in ("release", "more.csv", "out.csv")]
    assert cli.run(["apply", files[0], files[1], "--out", files[2]]) == 0
    assert "without a promise." in capsys.readouterr().out
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "age,income",
        '"[20, 21]",low',
        '"[22, 41]",high',
    ]
