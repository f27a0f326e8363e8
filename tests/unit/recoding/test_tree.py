"""Recodings: what a box is called at its ends, and which box a row gets that nobody had seen."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from growing import partition
from mondrian_cases import tree_recoding

from sfumato.errors import InputError, TableError
from sfumato.policy.output import Output
from sfumato.policy.requirements import KAnonymity
from sfumato.policy.schema import Schema
from sfumato.policy.workload import Classify
from sfumato.recoding import tree as module
from sfumato.recoding.tree import Recoding
from sfumato.table.opening import open_table

QUASI = "quasi-identifier"
NUMBER = {"role": QUASI, "kind": "number"}
DATE = {"role": QUASI, "kind": "date"}
PLACES = {"*": {"North": ["a", "b"], "South": {"Isles": ["c"], "d": None}}}


def fitted(cells, attribute, *, k=2, output=Output.LABELS, **options) -> Recoding:
    """The recoding of a table of one column."""
    schema = Schema.of(x=attribute)
    recoding = partition(
        open_table(pa.table({"x": cells})), schema, [KAnonymity(k)], output=output, **options
    ).recoding
    assert isinstance(recoding, Recoding)
    return recoding


def applied(recoding, cells, kind=None):
    table = recoding.apply(pa.table({"x": pa.array(cells, kind)}))
    return table.column("x").to_pylist() if table.column_names == ["x"] else table.to_pylist()


# ---- ends ------------------------------------------------------------------------------------------


def test_25_belongs_to_the_box_that_begins_with_it_and_to_no_other():
    ages = fitted([20, 24, 25, 30], NUMBER)
    assert applied(ages, [20, 24, 25, 30]) == ["[20, 24]", "[20, 24]", "[25, 30]", "[25, 30]"]


def test_a_box_ends_with_the_greatest_value_it_has_and_the_next_begins_one_step_on():
    assert applied(fitted([20, 21, 40, 41], NUMBER), [21, 22, 40]) == ["[20, 21]", "[22, 41]", "[22, 41]"]
    steps = fitted([0, 10, 40, 50], {**NUMBER, "bounds": (0, 100), "step": 10})
    assert applied(steps, [10, 20]) == ["[0, 10]", "[20, 100]"]


def test_between_fractions_any_number_may_lie_so_the_lower_end_is_open():
    rates = fitted([0.5, 1.5, 2.5, 9.0], NUMBER)
    assert applied(rates, [1.5, 1.5000001, 9.0]) == ["[0.5, 1.5]", "(1.5, 9]", "(1.5, 9]"]


def test_25_is_not_in_the_interval_that_ends_before_25():
    attribute = {**NUMBER, "bounds": (0, 30), "hierarchy": {"intervals": [5, 15]}}
    ages = fitted([20, 24.9, 25, 26], attribute)
    assert applied(ages, [20, 24.9, 25, 26]) == ["[20, 25)", "[20, 25)", "[25, 30]", "[25, 30]"]


def test_a_box_of_one_value_is_called_by_that_value():
    assert applied(fitted([7, 7, 8, 8, 9, 9], NUMBER), [7, 8, 9]) == ["7", "8", "9"]
    assert applied(fitted([0.5, 0.5, 0.5], NUMBER), [0.5]) == ["0.5"]


@pytest.mark.parametrize("first", range(1, 30))
def test_a_cell_on_a_decimal_step_goes_where_it_went_in_the_table(first):
    cells = [round((first + i) / 10, 1) for i in range(8)]
    assert applied(fitted(cells, {**NUMBER, "step": 0.1}, k=1), cells) == [f"{cell:g}" for cell in cells]


def test_decimal_steps_are_added_as_people_add_them():
    assert applied(fitted([0.1, 0.2, 0.5, 0.6], {**NUMBER, "step": 0.1}), [0.3]) == ["[0.3, 0.6]"]


def test_outer_ends_are_the_declared_bounds_or_else_those_of_the_table():
    assert applied(fitted([3, 4], {**NUMBER, "bounds": (0, 110)}), [3]) == ["[0, 110]"]
    assert applied(fitted([3, 4], NUMBER), [3]) == ["[3, 4]"]


def test_dates_are_written_as_dates_and_follow_each_other_by_a_day():
    days = [date(2024, 2, 27), date(2024, 2, 28), date(2024, 3, 5), date(2024, 3, 9)]
    found = applied(fitted(days, DATE), days)
    assert found == ["[2024-02-27, 2024-02-28]"] * 2 + ["[2024-02-29, 2024-03-09]"] * 2
    assert applied(fitted([date(1969, 12, 30)] * 2, DATE), [date(1969, 12, 30)]) == ["1969-12-30"]


# ---- missing ---------------------------------------------------------------------------------------


def test_missing_in_a_group_of_its_own_is_an_empty_cell():
    ages = fitted([None, None, 30, 31], NUMBER)
    assert applied(ages, [None, 30], pa.int64()) == [None, "[30, 31]"]


def test_missing_in_the_lowest_box_is_said_so():
    ages = fitted([None, 20, 30, 31], NUMBER)
    assert applied(ages, [None, 20, 30], pa.int64()) == ["20 or missing"] * 2 + ["[21, 31]"]
    ages = fitted([None, 20, 30, 31], NUMBER, k=4)
    assert applied(ages, [None, 20], pa.int64()) == ["[20, 31] or missing"] * 2


def test_a_column_of_missing_cells_alone_stays_empty():
    assert applied(fitted(pa.array([None] * 3, pa.float64()), NUMBER), [None, 5.0]) == [None, None]
    both = fitted(pa.array([None] * 3, pa.float64()), NUMBER, output=Output.BOTH)
    assert applied(both, [None], pa.float64()) == [{"x": None, "x_low": None, "x_high": None}]
    assert applied(fitted(pa.array([None] * 3, pa.string()), QUASI), [None], pa.string()) == [None]


def test_a_missing_category_is_a_leaf_beside_all_others():
    attribute = {"role": QUASI, "hierarchy": {"tree": PLACES}}
    assert applied(fitted([None, None, "a", "b"], attribute), [None, "a"]) == [None, "North"]
    assert applied(fitted([None, "a"], attribute), [None, "a"]) == ["*", "*"]


# ---- bounds and both -------------------------------------------------------------------------------


def test_bounds_are_numbers_and_categories_stay_labels():
    table = pa.table({"age": [20, 24, 25, 30], "job": ["u", "u", "v", "w"]})
    schema = Schema.of(age=NUMBER, job=QUASI)
    recoding = partition(open_table(table), schema, [KAnonymity(2)], output=Output.BOUNDS).recoding
    found = recoding.apply(table)
    assert found.schema.field("age_low").type == pa.int64()
    assert found.select(["age_low", "age_high", "job"]).to_pylist() == [
        {"age_low": 20, "age_high": 24, "job": "u"},
        {"age_low": 20, "age_high": 24, "job": "u"},
        {"age_low": 25, "age_high": 30, "job": "*"},
        {"age_low": 25, "age_high": 30, "job": "*"},
    ]
    assert found.column_names == ["age_low", "age_high", "job"]


def test_both_gives_the_label_and_its_bounds():
    found = applied(fitted([0.5, 1.5, 2.5, 9.0], NUMBER, output=Output.BOTH), [0.5, 9.0])
    assert found == [
        {"x": "[0.5, 1.5]", "x_low": 0.5, "x_high": 1.5},
        {"x": "(1.5, 9]", "x_low": 1.5, "x_high": 9.0},
    ]


def test_bounds_of_dates_are_dates():
    days = [date(2024, 2, 27), date(2024, 2, 28), date(2024, 3, 5), date(2024, 3, 9)]
    found = fitted(days, DATE, output=Output.BOUNDS).apply(pa.table({"x": days[:1]}))
    assert found.schema.types == [pa.date32(), pa.date32()]
    assert found.to_pylist() == [{"x_low": date(2024, 2, 27), "x_high": date(2024, 2, 28)}]


def test_a_box_that_missing_belongs_to_has_no_lower_bound_and_missing_alone_has_none():
    recoding = fitted([None, 20, 30, 31], NUMBER, output=Output.BOUNDS)
    assert applied(recoding, [None, 31], pa.int64()) == [
        {"x_low": None, "x_high": 20},
        {"x_low": 21, "x_high": 31},
    ]
    recoding = fitted([None, None, 30, 31], NUMBER, output=Output.BOUNDS)
    assert applied(recoding, [None, 31], pa.int64()) == [
        {"x_low": None, "x_high": None},
        {"x_low": 30, "x_high": 31},
    ]


def test_bounds_that_are_not_whole_are_not_cut_off():
    attribute = {**NUMBER, "bounds": (0, 10.5), "step": 1}
    assert applied(fitted([1, 2], attribute, output=Output.BOTH), [1]) == [
        {"x": "[0, 10.5]", "x_low": 0.0, "x_high": 10.5}
    ]


# ---- strangers -------------------------------------------------------------------------------------


def test_numbers_beyond_the_range_belong_to_the_outermost_box_of_their_side():
    ages = fitted([20, 24, 25, 30], NUMBER)
    assert applied(ages, [-5, 19, 31, 10**9]) == ["[20, 24]", "[20, 24]", "[25, 30]", "[25, 30]"]


def test_a_missing_number_where_none_was_could_be_anything():
    ages = fitted([20, 24, 25, 30], NUMBER)
    assert applied(ages, [None, 25], pa.int64()) == ["*", "[25, 30]"]
    ages = fitted([20, 24, 25, 30], NUMBER, output=Output.BOTH)
    assert applied(ages, [None], pa.int64()) == [{"x": "*", "x_low": None, "x_high": None}]


def test_other_columns_of_a_row_that_a_split_cannot_place_are_as_wide_as_before_it():
    table = pa.table({"age": [20, 20, 60, 60], "size": [1, 2, 3, 9]})
    schema = Schema.of(age=NUMBER, size=NUMBER)
    recoding = partition(open_table(table), schema, [KAnonymity(2)]).recoding
    stranger = pa.table({"age": pa.array([None], pa.int64()), "size": [2]})
    split = next(name for name, n in recoding.n_splits().items() if n)
    assert split == "age"
    assert recoding.apply(stranger).to_pylist() == [{"age": "*", "size": "[1, 9]"}]


def test_an_unseen_category_stands_for_its_nearest_known_ancestor():
    attribute = {"role": QUASI, "hierarchy": {"tree": PLACES}}
    recoding = fitted(["a", "a", "d", "d"], attribute)
    assert applied(recoding, ["a", "b", "d", "c", "unheard of", None]) == [
        "a",
        "North",
        "d",
        "South",
        "*",
        "*",
    ]


def test_an_unseen_code_keeps_as_much_of_its_mask_as_is_known():
    recoding = fitted(["111", "112", "121", "122"], {"role": QUASI, "hierarchy": {"mask": 3}})
    assert applied(recoding, ["111", "119", "129", "131", "999", "11", "1111", "?"]) == [
        "11*", "11*", "12*", "1**", "*", "*", "*", "*",
    ]  # fmt: skip


def test_an_unseen_value_of_a_flat_column_is_the_root():
    assert applied(fitted(["u", "u", "v", "v"], QUASI), ["u", "w", "*", ""]) == ["u", "*", "*", "*"]


def test_dates_of_an_unseen_month_keep_their_year():
    attribute = {**DATE, "hierarchy": {"dates": ["month", "year"]}}
    days = [date(2023, 1, 1), date(2023, 1, 9), date(2023, 4, 1), date(2023, 4, 2)]
    strangers = [date(2023, 1, 30), date(2023, 2, 1), date(2024, 1, 1)]
    assert applied(fitted(days, attribute), strangers) == ["2023-01", "2023", "*"]


def test_numbers_beyond_the_bounds_of_intervals_belong_to_the_last_interval_of_their_side():
    attribute = {**NUMBER, "bounds": (0, 30), "hierarchy": {"intervals": [5, 15]}}
    ages = fitted([1, 2, 25, 26], attribute)
    assert applied(ages, [-9, 99, 11]) == ["[0, 5)", "[25, 30]", "[0, 15)"]


# ---- pieces and ends -------------------------------------------------------------------------------


def test_pieces_are_the_labels_of_the_groups_with_their_ends_in_ascending_order():
    labels, (low, high, _) = fitted([None, None, 30, 30, 40, 40], NUMBER).pieces(0)
    assert labels.to_pylist() == [None, "30", "[31, 40]"]
    assert np.array_equal(low, [np.nan, -np.inf, 30], equal_nan=True)
    assert high.tolist() == [-np.inf, 30, np.inf]


def test_pieces_of_a_hierarchy_are_its_nodes_in_use():
    recoding = fitted(["a", "b", "c", "d"], {"role": QUASI, "hierarchy": {"tree": PLACES}})
    labels, (low, _, _) = recoding.pieces(0)
    assert labels.to_pylist() == ["North", "South"]
    assert [recoding.axes[0].nodes.labels[int(node)] for node in low] == ["North", "South"]


def test_pieces_come_once_however_many_groups_have_them():
    table = pa.table({"x": [1, 1, 9, 9], "y": [1, 9, 1, 9]})
    recoding = tree_recoding(partition(open_table(table), Schema.of(x=NUMBER, y=NUMBER), [KAnonymity(1)]))
    assert recoding.n_groups == 4
    assert [recoding.pieces(a)[0].to_pylist() for a in (0, 1)] == [["1", "[2, 9]"]] * 2


def test_box_ends_are_the_ends_of_what_apply_publishes():
    table = pa.table({"age": [20, 24, 25, 30], "place": ["a", "b", "d", "d"]})
    schema = Schema.of(age=NUMBER, place={"role": QUASI, "hierarchy": {"tree": PLACES}})
    recoding = partition(open_table(table), schema, [KAnonymity(2)]).recoding
    rows = pa.table({"age": pa.array([20, 99, None], pa.int64()), "place": ["c", "d", "a"]})
    low, high, _ = recoding.box_ends(open_table(rows))
    assert recoding.apply(rows).to_pylist() == [
        {"age": "[20, 24]", "place": "*"},
        {"age": "[25, 30]", "place": "d"},
        {"age": "*", "place": "*"},
    ]
    assert np.array_equal(low[:, 0], [np.nan, 24, np.nan], equal_nan=True)
    assert high[:, 0].tolist() == [24, np.inf, np.inf]
    assert [recoding.axes[1].nodes.labels[int(node)] for node in low[:, 1]] == ["*", "d", "*"]


def test_box_ends_of_fitted_rows_are_those_of_their_groups():
    table = pa.table({"age": list(range(40)), "job": ["u", "v"] * 20})
    groups = partition(open_table(table), Schema.of(age=NUMBER, job=QUASI), [KAnonymity(3)])
    found = groups.recoding.box_ends(open_table(table))
    for ends, of_rows in zip(groups.recoding.ends(groups.leaf), found, strict=True):
        assert np.array_equal(
            np.repeat(ends, groups.size, axis=0), of_rows[groups.row_numbers], equal_nan=True
        )


# ---- frames and columns ----------------------------------------------------------------------------


def test_the_frame_that_comes_back_is_of_the_kind_that_went_in():
    ages = fitted([20, 24, 25, 30], NUMBER)
    for frame in (pd.DataFrame({"x": [20]}), pl.DataFrame({"x": [20]}), pa.table({"x": [20]})):
        assert type(ages.apply(frame)) is type(frame)


def test_other_columns_pass_through_and_identifiers_do_not():
    schema = Schema.of(name="identifier", notes="drop", x=NUMBER, disease="sensitive")
    table = pa.table({"name": ["Ada"], "disease": ["flu"], "x": [20], "notes": ["tall"], "more": [1]})
    ages = replace(fitted([20, 24, 25, 30], NUMBER), left_out=schema.left_out)
    assert ages.apply(table).to_pylist() == [{"disease": "flu", "x": "[20, 24]", "more": 1}]


def test_a_lacking_column_is_named_and_unreadable_cells_are_not_shown():
    ages = fitted([20, 24, 25, 30], NUMBER)
    with pytest.raises(TableError, match="has no column 'x'"):
        ages.apply(pa.table({"y": [1]}))
    with pytest.raises(TableError) as caught:
        ages.apply(pa.table({"x": ["20", "Jane Doe"]}))
    assert "Jane" not in str(caught.value)


def test_splits_and_groups_are_counted():
    table = pa.table({"x": [1, 2, 3, 4], "y": ["a", "a", "a", "a"]})
    recoding = tree_recoding(partition(open_table(table), Schema.of(x=NUMBER, y=QUASI), [KAnonymity(1)]))
    assert (recoding.n_groups, recoding.n_splits()) == (4, {"x": 3, "y": 0})


# ---- on disk ---------------------------------------------------------------------------------------


def test_a_recoding_holds_thresholds_and_nodes_in_use_never_the_distinct_values(tmp_path: Path):
    zips = ["53711", "53712", "53721", "53722"]
    table = pa.table({"zip": zips, "age": [20.125, 31.375, 40.625, 55.875]})
    schema = Schema.of(zip={"role": QUASI, "hierarchy": {"mask": 5}}, age=NUMBER)
    recoding = partition(open_table(table), schema, [KAnonymity(2)]).recoding
    recoding.write(tmp_path)
    text = (tmp_path / "recoding.json").read_text()
    assert [zip_code for zip_code in zips if zip_code in text] == []
    assert "5371*" in text
    assert "31.375" not in text
    assert recoding.apply(table).column("zip").to_pylist() == ["5371*"] * 2 + ["5372*"] * 2


def test_a_large_tree_is_written_as_parquet_beside_the_rest(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(module, "LARGE", 2)
    ages = fitted([20, 24, 25, 30], NUMBER)
    ages.write(tmp_path)
    assert json.loads((tmp_path / "recoding.json").read_text())["nodes"] == "recoding.parquet"
    again = Recoding.read(tmp_path, Schema.of(x=NUMBER))
    assert applied(again, [24, 25]) == ["[20, 24]", "[25, 30]"]
    (tmp_path / "recoding.parquet").unlink()
    with pytest.raises(InputError, match="has no recoding to apply"):
        Recoding.read(tmp_path, Schema.of(x=NUMBER))


@pytest.mark.parametrize("cells", [[7, 7, 7], ["u", "u", "v", "v"]], ids=["no split", "no threshold"])
def test_a_recoding_without_any_threshold_can_be_read_back(tmp_path: Path, cells):
    attribute = NUMBER if isinstance(cells[0], int) else QUASI
    recoding = fitted(cells, attribute)
    recoding.write(tmp_path)
    again = Recoding.read(tmp_path, Schema.of(x=attribute))
    assert applied(again, cells) == applied(recoding, cells) == list(map(str, cells))


def test_bounds_that_came_from_the_table_are_remembered(tmp_path: Path):
    attribute = {**NUMBER, "hierarchy": {"intervals": [5]}}
    fitted([20, 24, 25, 30], attribute).write(tmp_path)
    again = Recoding.read(tmp_path, Schema.of(x=attribute))
    assert applied(again, [20, 29, 99]) == ["[20, 25)", "[25, 30]", "[25, 30]"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1, "nodes": 3, "attributes": 1}'])
def test_a_file_that_is_no_recoding_is_refused_in_one_sentence(tmp_path: Path, text):
    (tmp_path / "recoding.json").write_text(text)
    with pytest.raises(InputError, match="is not a recoding that this version can read"):
        Recoding.read(tmp_path, Schema.of(x=NUMBER))


def test_a_folder_without_a_recoding_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="has no recoding to apply"):
        Recoding.read(tmp_path, Schema.of(x=NUMBER))


def test_a_recoding_of_many_groups_is_applied_by_the_tree_not_row_by_row():
    table = pa.table({"x": range(2000), "c": ["a", "b"] * 1000})
    schema = Schema.of(x=NUMBER, c="other")
    recoding = partition(open_table(table), schema, [KAnonymity(2)], workload=[Classify("c")]).recoding
    found = recoding.apply(table).column("x").to_pylist()
    for value, label in enumerate(found):
        low, high = map(int, label.strip("[]").split(", "))
        assert low <= value <= high
