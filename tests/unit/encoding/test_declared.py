"""Declared domains, and the code of every cell, whatever it holds."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.encoding.declared import DeclaredRows, cut_of, domains_of, hold_rows, with_missing
from sfumato.encoding.encoders import encode_axis
from sfumato.errors import TableError
from sfumato.methods.specialization.loop import CutGrid, Piece
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.output import Output
from sfumato.policy.schema import Attribute, Kind, Role
from sfumato.recoding.axis import OrderedAxis, axis_as_dict
from sfumato.recoding.cuts import Cuts
from sfumato.table.cells import dates, numbers
from sfumato.table.opening import open_table
from sfumato.table.source import UNKNOWN

CLASS = {"role": "other", "values": ["no", "yes"]}
JOBS = {"Any": {"Professional": ["Engineer", "Lawyer"], "Artist": ["Dancer", "Writer"]}}
AGE = {"type": "number", "bounds": [18, 65], "step": 1}
SEX = {"values": ["Male", "Female"]}
JOB = {"hierarchy": {"tree": JOBS}}
BORN = {"type": "date", "bounds": ["2000-01-01", "2000-12-31"]}


def policy_of(**attributes: dict) -> Policy:
    quasi = {name: {"role": "quasi-identifier", **given} for name, given in attributes.items()}
    return Policy.from_dict({
        "attributes": {"class": CLASS, **quasi},
        "workload": [{"classify": "class"}],
        "method": {"diffgen": {"epsilon": 1}},
    })  # fmt: skip


def domain_of(**declared):
    (domain,) = domains_of(policy_of(x=declared).schema)
    return domain


def codes_of(column, **declared) -> list[int]:
    cells = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    table = pa.table({"x": cells, "class": pa.array(["no"] * len(cells), pa.string())})
    return hold_rows(open_table(table), policy_of(x=declared)).rows[:, 0].tolist()


# ---- domains ---------------------------------------------------------------------------------------


def test_a_number_has_its_grid_and_missing_before_it():
    age = domain_of(**AGE)
    assert (age.low, age.high, age.grid, age.has_missing, age.n_codes) == (18.0, 65.0, 1.0, True, 49)
    assert age.value([0, 1, 2, 48]).tolist() == [-np.inf, 18, 19, 65]
    assert age.is_declared


def test_the_points_of_a_grid_are_the_decimals_that_they_stand_for():
    height = domain_of(type="number", bounds=[0, 1], step=0.1)
    assert height.n_codes == 12
    assert height.value(np.arange(1, 12)).tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]


def test_the_step_of_a_date_is_a_day_unless_another_is_declared():
    assert domain_of(**BORN).n_codes == 367
    assert domain_of(**BORN | {"step": 73}).n_codes == 7


def test_missing_belongs_to_the_last_child_on_the_way_down():
    job = domain_of(**JOB)
    assert job.hierarchy.as_tree() == {
        "Any": {
            "Professional": ["Engineer", "Lawyer"],
            "Artist or missing": {"Dancer": None, "Writer or missing": ["Writer", None]},
        }
    }
    assert job.n_codes == 5
    assert domain_of(**SEX).hierarchy.as_tree() == {
        "*": {"Male": None, "Female or missing": ["Female", None]}
    }


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"*": ["a", None]}, {"*": ["a", None]}),
        ({"a": None}, {"a": ["a", None]}),
        ({"*": {"a": ["b"]}}, {"*": {"a or missing": {"b or missing": ["b", None]}}}),
    ],
)
def test_missing_in_other_trees(tree, expected):
    """Declared by the owner, in a tree of one leaf, and in a chain."""
    assert with_missing(Hierarchy.from_tree(tree)).as_tree() == expected


@pytest.mark.parametrize(
    ("declared", "leaves"),
    [
        ({"values": ["53715", "53703", "1"], "hierarchy": {"mask": 5}}, 4),
        ({"type": "number", "bounds": [0, 30], "hierarchy": {"intervals": [5, 10]}}, 7),
        ({"type": "number", "bounds": [0, 7], "hierarchy": {"balanced": 2}}, 9),
        ({**BORN, "hierarchy": {"dates": ["month", "quarter"]}}, 13),
        ({**BORN, "hierarchy": {"dates": ["day", "year"]}}, 367),
        ({"hierarchy": "flat", "values": ["a", "b"]}, 3),
    ],
)
def test_builders_have_the_leaves_that_are_declared_and_missing(declared, leaves):
    assert domain_of(**declared).n_codes == leaves


# ---- cells -----------------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["18", " 19 ", "65", "+20", "2e1", "19.0", "1_9"], [1, 2, 48, 3, 3, 2, 0]),
        (["17", "66", "-1", "1e300", "18.2", "64.999"], [1, 48, 1, 48, 2, 48]),
        (["", None, "x", "nan", "inf", "-inf", "1e999", "20 years", "2020-01-01"], [0] * 9),
        ([18, 17, None, 2**62, -(2**63)], [1, 1, 0, 48, 1]),
        ([18.0, 18.1, NAN, INF, -INF, None, -0.0, 1e300], [1, 2, 0, 0, 0, 0, 1, 48]),
        (pa.array([2**64 - 1, 19, None], pa.uint64()), [48, 2, 0]),
        (pa.array([Decimal("18.5"), Decimal(70), None]), [2, 48, 0]),
        (pa.array([19, None], pa.int8()), [2, 0]),
        (pa.array([19.5, 20], pa.float32()), [3, 3]),
        ([True, False, None], [1, 1, 0]),
        (pa.nulls(2), [0, 0]),
        (pa.array(["19", "x", None, "19"]).dictionary_encode(), [2, 0, 0, 2]),
        (pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["19", None])), [0, 2, 0]),
        ([b"19", b"\xff", b""], [2, 0, 0]),
        (pa.array(["19", "20"], pa.large_string()), [2, 3]),
    ],
)
def test_the_code_of_a_number(cells, expected):
    assert codes_of(cells, **AGE) == expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["0.3", "0.30000000000000004", "0.35", "0.7", "0.69999"], [4, 5, 5, 8, 8]),
        ([0.3, 0.1 + 0.2, 0.25, 0.7], [4, 5, 4, 8]),
        (pa.array([Decimal("0.3"), Decimal("0.7")]), [4, 8]),
        ([0, 1, 2], [1, 11, 11]),
    ],
)
def test_the_code_of_a_decimal(cells, expected):
    assert codes_of(cells, type="number", bounds=[0, 1], step=0.1) == expected


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [
        (0, 2.5, 0.1),
        (-0.3, 5.7, 0.2),
        (0.05, 10.05, 0.05),
        (1000.01, 1009.01, 0.01),
        (-7, 70, 7),
        (0.5, 9.5, 1),
    ],
)
def test_a_point_of_a_grid_is_itself_and_whatever_is_above_it_the_next(low, high, step):
    declared = {"type": "number", "bounds": [low, high], "step": step}
    n_points = round((high - low) / step) + 1
    points = [str(Decimal(str(low)) + i * Decimal(str(step))) for i in range(n_points)]
    floats = np.array(points, dtype=np.float64)
    own = list(range(1, n_points + 1))
    assert codes_of(points, **declared) == own
    assert codes_of(floats, **declared) == own
    assert codes_of(np.nextafter(floats, -np.inf), **declared) == own
    assert codes_of(np.nextafter(floats, np.inf), **declared) == [*own[1:], n_points]


def test_a_number_between_two_points_is_the_one_above():
    assert codes_of([0, 1, 5, 6, 9], type="number", bounds=[0, 10], step=5) == [1, 2, 2, 3, 3]
    assert codes_of(["0", "0.1", "5.0", "5.1"], type="number", bounds=[0, 10], step=5) == [1, 2, 2, 3]


def test_far_from_zero_a_fraction_of_a_step_still_counts():
    declared = {"type": "number", "bounds": [-500_000_000, 500_000_000], "step": 1}
    assert codes_of([0.0, 1e-9, -1e-9], **declared) == [500_000_001, 500_000_002, 500_000_001]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["2000-01-01", "2000-01-03 12:30", "1999-12-31", "2001-01-01"], [1, 3, 1, 366]),
        (["2000-02-30", "1/1/2000", "", None, "2000-01", "5"], [0] * 6),
        ([date(2000, 1, 2), None, date(1900, 1, 1)], [2, 0, 1]),
        ([datetime(2000, 1, 2, 23, 59), datetime(2000, 1, 2)], [2, 2]),  # noqa: DTZ001 - as tables hold them
        (pa.array([datetime(2000, 1, 2, 0, 30, tzinfo=UTC)], pa.timestamp("s", tz="Europe/Rome")), [2]),
        (pa.array([946_684_800_000 + 5], pa.date64()), [1]),
        (pa.nulls(1), [0]),
    ],
)
def test_the_code_of_a_date(cells, expected):
    assert codes_of(cells, **BORN) == expected


@pytest.mark.parametrize(
    ("declared", "cells", "expected"),
    [
        (SEX, ["Male", "Female", "female", " Male", "", None, "x"], [0, 1, 2, 2, 2, 2, 2]),
        (JOB, ["Engineer", "Writer", "Artist", "Any", "Artist or missing", None], [0, 3, 4, 4, 4, 4]),
        ({"hierarchy": {"tree": {"*": ["a", None]}}}, ["a", "b", None], [0, 1, 1]),
        ({"values": ["5", "5.5", "1e+19"]}, [5.0, 5.5, NAN, 7.0, 1e19], [0, 1, 3, 3, 2]),
        ({"values": ["5", "7"]}, [5, 7, None, 9], [0, 1, 2, 2]),
        ({"values": ["true"]}, [True, False], [0, 1]),
        ({"values": ["2000-01-01", "2000-01-01 12:00:00"]},
         [datetime(2000, 1, 1), datetime(2000, 1, 1, 12), None], [0, 1, 2]),  # noqa: DTZ001 - as tables hold them
        ({"values": ["53715", "5"], "hierarchy": {"mask": 5}}, ["53715", "5", "537151", "53", ""], [1, 0, 2, 2, 2]),
        ({"type": "number", "bounds": [0, 30], "hierarchy": {"intervals": [10]}},
         ["0", "9.9", "10", "30", "31", "-1", "x", None], [0, 0, 1, 2, 2, 0, 3, 3]),
        ({"type": "number", "bounds": [0, 3], "hierarchy": {"balanced": 2}}, [0, 1, 3, 9, 1.5, NAN], [0, 1, 3, 3, 4, 4]),
        ({"type": "number", "hierarchy": {"tree": {"*": ["5", "7.0"]}}}, ["5.0", "7", "6", "x"], [0, 1, 2, 2]),
        ({**BORN, "hierarchy": {"dates": ["month"]}}, ["2000-03-05", "1990-01-01", "2010-01-01", "x"], [2, 0, 11, 12]),
        ({"type": "date", "hierarchy": {"tree": {"*": ["2000-01-01"]}}}, ["2000-01-01", "2000-01-02"], [0, 1]),
    ],
)  # fmt: skip
def test_the_code_of_a_cell_with_a_hierarchy(declared, cells, expected):
    assert codes_of(cells, **declared) == expected


def test_declared_texts_are_missing_in_every_kind_of_column():
    absent = {"missing-values": ["?", "-9", "20", "2000-01-05"]}
    assert codes_of(["?", "-9", "20", "20.0", "21"], **AGE, **absent) == [0, 0, 0, 0, 4]
    assert codes_of([20, -9, 21], **AGE, **absent) == [0, 0, 4]
    assert codes_of(["?", "2000-01-05", "2000-01-06"], **BORN, **absent) == [0, 0, 6]
    assert codes_of([date(2000, 1, 5), date(2000, 1, 6)], **BORN, **absent) == [0, 6]
    assert codes_of(["?", "20", "Male"], **SEX, **absent) == [2, 2, 0]


def test_text_that_is_not_utf8_is_missing():
    """Parquet checks no text, so that such a column can be read."""
    raw = pa.array([b"Male", b"\xff\xfe", b"Female"])
    assert codes_of(pa.Array.from_buffers(pa.string(), 3, raw.buffers()), **SEX) == [0, 2, 1]


def test_what_a_column_is_stored_as_is_no_cell():
    with pytest.raises(TableError, match="Column 'x' is stored as timestamp"):
        codes_of([datetime(2000, 1, 1)], **AGE)  # noqa: DTZ001 - as tables hold them
    with pytest.raises(TableError, match="Column 'x' is stored as list"):
        codes_of(pa.array([["a"]]), **SEX)


@pytest.mark.parametrize(
    ("declared", "cells"),
    [(AGE, ["18", "40", "65"]), (SEX, ["Female", "Male"]), (BORN, ["2000-05-05", "2000-01-01"]),
     ({"type": "number", "bounds": [0, 30], "hierarchy": {"intervals": [5, 10]}}, [0, 5, 30, 29.5])],
)  # fmt: skip
def test_clean_cells_mean_what_they_mean_to_other_methods(declared, cells):
    policy = policy_of(x=declared)
    source = open_table(pa.table({"x": cells, "class": ["no"] * len(cells)}))
    theirs, codes = encode_axis(source, policy.schema["x"])
    ours = domains_of(policy.schema)[0]
    found = hold_rows(source, policy).rows[:, 0]
    if hasattr(ours, "hierarchy"):
        leaves = [
            [domain.hierarchy.labels[node] for node in domain.hierarchy.leaf_nodes]
            for domain in (ours, theirs)
        ]
        assert [leaves[0][code] for code in found] == [leaves[1][code] for code in codes]
    else:
        assert ours.value(found).tolist() == theirs.value(codes).tolist()


# ---- rows ------------------------------------------------------------------------------------------


def test_a_row_whose_class_is_not_declared_is_left_out():
    policy = policy_of(age=AGE, sex=SEX)
    classes = ["yes", "no", "maybe", None, "", "yes", " yes"]
    table = pa.table({"age": [18, 19, 20, 21, 22, 23, 24], "sex": ["Male"] * 7, "class": classes})
    rows = DeclaredRows(open_table(table), policy)
    assert rows.class_values == ("no", "yes")
    assert rows.n_rows == UNKNOWN
    assert [block.rows.tolist() for block in rows.blocks()] == [[[1, 0, 1], [2, 0, 0], [6, 0, 1]]]
    assert rows.n_rows == 3
    kept = hold_rows(open_table(table), policy)
    assert kept.n_rows == 3
    assert [block.rows.tolist() for block in kept.blocks()] == [kept.rows.tolist()]
    assert kept.rows.dtype == np.uint32


def test_the_classes_may_be_the_leaves_of_a_hierarchy():
    policy = Policy.from_dict({
        "attributes": {
            "age": {"role": "quasi-identifier", **AGE},
            "class": {"role": "sensitive", "hierarchy": {"tree": {"*": {"bad": ["worst", "worse"], "good": ["best"]}}}},
        },
        "workload": [{"classify": "class"}],
        "method": {"diffgen": {"epsilon": 1}},
    })  # fmt: skip
    rows = hold_rows(
        open_table(pa.table({"age": [18] * 4, "class": ["best", "worse", "bad", "worst"]})), policy
    )
    assert rows.class_values == ("worst", "worse", "best")
    assert rows.rows[:, 1].tolist() == [2, 1, 0]


def test_many_rows_come_in_blocks():
    n = 150_000
    table = pa.table({"age": np.arange(n) % 100, "class": ["no", "yes"] * (n // 2)})
    policy = policy_of(age=AGE)
    for rows in (DeclaredRows(open_table(table), policy), hold_rows(open_table(table), policy)):
        blocks = list(rows.blocks())
        assert [len(block.rows) for block in blocks] == [65_536, 65_536, n - 2 * 65_536]
        assert rows.n_rows == n


EMPTY = pa.table(
    {"age": pa.array([], pa.int64()), "sex": pa.array([], pa.string()), "class": pa.array([], pa.string())}
)


def empty_tables(folder):
    (folder / "empty.csv").write_text("age,sex,class\n", encoding="utf-8")
    (folder / "blank.csv").write_text("age,sex,class\n\r\n\n", encoding="utf-8")
    (folder / "no end.csv").write_text("age,sex,class", encoding="utf-8")
    pq.write_table(EMPTY, folder / "empty.parquet")
    with pa.ipc.new_file(folder / "empty.arrow", EMPTY.schema) as writer:
        writer.write_table(EMPTY)
    with pa.ipc.new_stream(folder / "stream.arrow", EMPTY.schema) as writer:
        writer.write_table(EMPTY)
    frames = [EMPTY, pd.DataFrame({"age": [], "sex": [], "class": []}), pl.from_arrow(EMPTY)]
    return [*sorted(path for path in folder.iterdir()), *frames]


@pytest.mark.parametrize("lazy", [False, True])
def test_a_table_without_rows_has_no_rows(tmp_path, lazy):
    policy = policy_of(age=AGE, sex=SEX)
    for table in empty_tables(tmp_path):
        source = open_table(table, lazy=lazy, may_be_empty=True)
        assert source.names == ("age", "sex", "class")
        rows = hold_rows(source, policy)
        assert rows.rows.shape == (0, 3)
        assert list(rows.blocks()) == []


def test_a_table_without_rows_is_an_error_elsewhere(tmp_path):
    for table in empty_tables(tmp_path):
        with pytest.raises(TableError, match="has no rows; a table needs at least one"):
            open_table(table)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "is empty; a table needs a header and rows"), (b"1,2\n", "begins with a line of numbers"),
     (b"a,b\n1\n2,3\n", "Row 1 of"), (b"a,a\n", "have the same name")],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_still_said(tmp_path, content, sentence):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=sentence):
        open_table(path, may_be_empty=True)


def test_a_column_that_is_not_there_is_still_an_error():
    with pytest.raises(TableError, match="no column 'age'"):
        hold_rows(open_table(pa.table({"class": ["no"]})), policy_of(age=AGE))


# ---- cuts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "cut", "expected"),
    [
        (AGE, (40, 60), [23, 43]),
        (AGE, (19,), [2]),
        ({"type": "number", "bounds": [0, 1], "step": 0.1}, (0.3, 0.7), [4, 8]),
        ({"type": "number", "bounds": [0, 2], "step": 1}, "leaves", [1, 2, 3]),
        (BORN, ("2000-07-01",), [183]),
        (JOB, ("Artist", "Professional"), [1, 4]),
        (JOB, ("Any",), [0]),
        (JOB, ("Engineer", "Lawyer", "Artist"), [2, 3, 4]),
        (JOB, ("Professional", "Dancer", "Writer"), [1, 5, 6]),
        (JOB, "leaves", [2, 3, 5, 7, 8]),
    ],
)
def test_a_cut_in_codes(declared, cut, expected):
    assert cut_of(domain_of(**declared), cut).tolist() == expected


def test_further_rows_find_the_nodes_that_hold_missing(tmp_path):
    policy = policy_of(job=JOB, age=AGE)
    domains = domains_of(policy.schema)
    tree = domains[0].hierarchy
    ages = (Piece(1, 0, 23), Piece(1, 23, 49))

    def recoded(labels, cells):
        nodes = [tree.labels.index(label) for label in labels]
        pieces = tuple(Piece(0, int(tree.low[node]), int(tree.high[node]), node) for node in nodes)
        CutGrid.of([pieces, ages], domains).recoding(1, Output.LABELS, frozenset()).write(tmp_path)
        document = json.loads((tmp_path / "recoding.json").read_text(encoding="utf-8"))
        cuts = Cuts.from_document(document, policy.schema)
        return cuts.apply(pa.table({"job": cells, "age": ["40", "x", None, "1"][: len(cells)]}))

    found = recoded(["Professional", "Artist or missing"], ["Lawyer", "Writer", None, "Pilot"])
    assert found.column("job").to_pylist() == ["Professional", *["Artist or missing"] * 3]
    assert found.column("age").to_pylist() == ["[40, 65]", *["[18, 39] or missing"] * 3]
    found = recoded(["Professional", "Dancer", "Writer", None], ["Lawyer", "Writer", None, "Pilot"])
    assert found.column("job").to_pylist() == ["Professional", "Writer", None, None]
    found = recoded(["Any"], ["Lawyer", None, "Pilot"])
    assert found.column("job").to_pylist() == ["Any"] * 3


def test_an_axis_that_is_not_declared_is_written_as_before():
    """The recoding of every other method keeps its form."""
    whole = domains_of(policy_of(age=AGE).schema)
    grid = CutGrid.of([(Piece(0, 0, 49),)], whole)
    assert axis_as_dict(grid.axes[0])["declared"] is True
    plain = OrderedAxis(whole[0].attribute, 18.0, 65.0, 1.0, has_missing=True)
    assert "declared" not in axis_as_dict(plain)


def test_a_decimal_is_the_float_nearest_to_it():
    cells = pa.array([Decimal("0.3"), Decimal("0.7"), None])
    assert numbers(cells, Attribute("x", Role.OTHER, Kind.NUMBER)).to_pylist() == [0.3, 0.7, None]


def test_a_time_of_day_in_a_column_of_dates_counts_for_nothing():
    cells = pa.array([946_684_800_000 + 5, -1], pa.date64())
    assert dates(cells, Attribute("day", Role.OTHER, Kind.DATE)).to_pylist() == [
        date(2000, 1, 1),
        date(1969, 12, 31),
    ]
