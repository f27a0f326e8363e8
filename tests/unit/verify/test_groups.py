"""Groups, lines and labels are looked at all at once; here beside the plain way, one by one."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.policy.schema import Attribute, Kind
from sfumato.table.cells import BATCH_ROWS, which_occur
from sfumato.table.opening import open_table
from sfumato.verify import cells, groups
from sfumato.verify.groups import Codes, Combinations, GroupedRows, group


def lines_of(random, n, n_columns=3, n_values=4):
    return [random.integers(n_values, size=n) for _ in range(n_columns)]


@pytest.mark.parametrize("seed", range(5))
def test_equal_lines_have_one_number_and_others_another(seed):
    lines = lines_of(np.random.default_rng(seed), 200)
    known = Combinations.of(lines)
    rows = list(zip(*(line.tolist() for line in lines), strict=True))
    number_of = dict(zip(rows, known.of_line.tolist(), strict=True))
    assert sorted(set(number_of.values())) == list(range(known.n)) == list(range(len(set(rows))))
    assert [number_of[row] for row in rows] == known.of_line.tolist()
    assert known.find(lines).tolist() == known.of_line.tolist()


def test_a_line_that_is_not_known_is_not_found():
    known = Combinations.of([np.array([0, 1]), np.array([7, 8])])
    assert known.find([np.array([0, 0, -1]), np.array([7, 8, 7])]).tolist() == [0, -1, -1]


def test_lines_of_one_hash_are_told_apart_all_the_same(monkeypatch):
    hash_lines, calls = groups._hash_lines, []

    def all_alike_at_first(lines, factors):
        calls.append(factors)
        return hash_lines(lines, factors) if len(calls) > 1 else np.zeros(len(lines[0]), dtype=np.int64)

    monkeypatch.setattr(groups, "_hash_lines", all_alike_at_first)
    known = Combinations.of([np.array([0, 1, 0]), np.array([5, 5, 5])])
    assert known.n == 2
    assert known.of_line[0] == known.of_line[2] != known.of_line[1]
    assert calls[0] != calls[1]


@pytest.mark.parametrize("seed", range(5))
def test_groups_of_runs_are_those_of_rows(seed):
    random = np.random.default_rng(seed)
    codes = np.repeat(random.integers(3, size=30), random.integers(1, 5, size=30))
    values = random.integers(2, size=len(codes))
    found = group([Codes(codes, 3)])
    assert found.size.tolist() == [int(np.sum(found.of_row == at)) for at in range(found.n)]
    assert found.of_row[found.one_row].tolist() == list(range(found.n))
    by_row = [len(set(values[found.of_row == at].tolist())) == 1 for at in range(found.n)]
    assert found.share_one(values).tolist() == by_row
    assert found.share_one(codes).all()


@pytest.mark.parametrize("n_chunks", [1, 3])
@pytest.mark.parametrize("length", [1, 7])
def test_rows_in_any_chunks_and_order_have_the_same_groups(n_chunks, length):
    labels = np.repeat(["a", "b", None, "", "a", "c"], length).tolist()
    numbers = np.repeat([0.0, -0.0, 1.0, 1.0, 0.0, np.nan], length).tolist()
    table = pa.table({"x": pa.array(labels).dictionary_encode(), "y": numbers})
    step = -(-table.num_rows // n_chunks)
    pieces = [table.slice(at, step) for at in range(0, table.num_rows, step)]
    again = [
        pa.table({"x": p["x"].cast(pa.string()).combine_chunks().dictionary_encode(), "y": p["y"]})
        for p in pieces
    ]
    found = GroupedRows.of(open_table(pa.concat_tables(again)), ["x", "y"])
    assert sorted(found.groups.size.tolist()) == sorted([2 * length, length, length, length, length])
    shown = dict(zip(found.cells["x"].to_pylist(), found.groups.size.tolist(), strict=True))
    assert shown == {"a": 2 * length, "b": length, None: length, "": length, "c": length}


@pytest.mark.parametrize("bounds", [None, (0.0, 100.0)])
@pytest.mark.parametrize(
    "labels",
    [
        ["[0, 100]", "[0, 9] or missing", "7", "7 or missing", "", None, "(9, 10.5]", "[0, 100] or missing"],
        ["[1, 1]", "-5", "[-5, 1e3]"],
        ["[0, 9]", "*", "7"],
        ["[0, 9]", "[0, 5, 9]"],
        ["[0, 9", "7"],
        ["nan", "[0, 9]"],
        ["[[0, 9]]", "[0, 9]"],
        [None, ""],
    ],
)
def test_labels_read_at_once_tell_what_they_tell_one_by_one(labels, bounds):
    attribute = Attribute("age", "quasi-identifier", Kind.NUMBER, bounds=bounds)
    at_once = cells._levels_as_written(pa.array(labels, pa.string()), attribute)
    by_one = cells._ordered_levels([cells._parse_range(label, float) for label in labels], bounds)
    assert at_once is None or at_once.tolist() == by_one


def test_dates_are_read_at_once_too_and_odd_ones_one_by_one():
    attribute = Attribute("born", "quasi-identifier", Kind.DATE)
    labels = pa.array(["[2024-01-01, 2024-03-05]", "2024-02-01", None])
    assert cells._levels_as_written(labels, attribute).tolist() == [2, 0, 3]
    assert cells._levels_as_written(pa.array(["20240301"]), attribute) is None


def test_a_code_that_only_the_last_row_has_occurs():
    codes = np.append(np.zeros(2 * BATCH_ROWS, dtype=np.int32), 2)
    assert which_occur(codes, 3).tolist() == [True, False, True]
    assert which_occur(codes[::-1], 3).tolist() == [True, False, True]
