"""Python objects as cells: under differential privacy what one says follows from it alone."""

from __future__ import annotations

import enum
import itertools
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sampled_people import people as sampled_people
from sampled_people import policy as sampled_policy

import sfumato as sf
from sfumato.encoding.declared import DeclaredRows, domains_of, encode_by_domains, tree_domains_of
from sfumato.policy.document import Policy
from sfumato.policy.schema import Attribute, Kind
from sfumato.table import objects
from sfumato.table.cells import lenient_ordered, lenient_texts, numbers, texts
from sfumato.table.opening import open_table


class Colour(enum.Enum):
    RED = 1


class Size(enum.IntEnum):
    LARGE = 3


class Word(str):
    __slots__ = ()


class Silent:  # noqa: PLW1641 - so it has no hash, either
    """An object that cannot be asked for anything."""

    def __str__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError


NAIVE = datetime(2001, 3, 4)  # noqa: DTZ001 - of no zone, as most tables have them
ZONE = timezone(timedelta(hours=2))
OBJECTS = [
    None, pd.NA, pd.NaT, float("nan"), np.float32("nan"), np.datetime64("NaT"), Decimal("NaN"), Decimal("sNaN"),
    True, False, np.True_, np.False_,
    0, 1, 2, 3, -1, 40, 2**31, 2**53 + 1, 2**63, 2**70, 10**400, 10**5000,
    np.int8(5), np.int16(2), np.int32(3), np.int64(40), np.uint8(1), np.uint64(2**64 - 1),
    0.0, -0.0, 1.0, 5.5, 0.1, 1e-7, 1e16, 1e300, float("inf"), float("-inf"),
    np.float16(1.5), np.float32(0.1), np.float64(2.5), np.longdouble("1.5"),
    Decimal(1), Decimal("1.5"), Decimal("1.50"), Decimal("2.000"), Decimal("1E+3"), Decimal("1E-30"),
    Decimal("1E+999999"), Decimal("Infinity"), Fraction(1, 2), 1 + 2j,
    "", " ", "1", "1.0", "1.50", "true", "b", "2001-03-04", "\ud800", "\0", "née", Word("a"), np.str_("b"),
    b"1", b"\xff", b"", bytearray(b"a"), memoryview(b"b"), np.bytes_(b"a"),
    date(2001, 3, 4), NAIVE, NAIVE.replace(hour=10, microsecond=7), datetime(2001, 3, 4, 1, tzinfo=UTC),
    datetime(2001, 3, 4, 23, tzinfo=ZONE), pd.Timestamp("2001-03-04"),
    pd.Timestamp("2001-03-04 10:00", tz="Europe/Berlin"), pd.Timestamp("2001-03-04 00:00:00.000000001"),
    np.datetime64("2001-03-04"), np.datetime64("2001-03-04T10:00", "ns"),
    np.datetime64("20001-03-04"), time(10, 30), timedelta(days=1), np.timedelta64(1, "D"),
    pd.Period("2001-03", "M"), pd.Interval(0, 5), Colour.RED, Size.LARGE, uuid.UUID(int=5),
    [1, 2], (1,), {"a": 1}, {1, 2}, np.array([1, 2]), pa.scalar(5), object, Silent(),
]  # fmt: skip
"""What may stand in a column of objects: more than 80 of them."""

KINDS: dict[str, dict[str, Any]] = {
    "number": {"type": "number", "bounds": [0, 50], "step": 0.5},
    "category": {"values": ["1", "1.5", "2", "3", "40", "5.5", "true", "a", "b", "2001-03-04"]},
    "date": {"type": "date", "bounds": ["2001-03-01", "2001-03-06"]},
}
CLASS = {"role": "other", "values": ["1", "1.5", "true", "b"]}
POLICY = Policy.from_dict(
    {
        "attributes": {
            "class": CLASS,
            **{name: {"role": "quasi-identifier", **given} for name, given in KINDS.items()},
        },
        "workload": [{"classify": "class"}],
        "method": {"diffgen": {"epsilon": 1}},
    }
)
DIFFGEN = domains_of(POLICY.schema)
TREES = tree_domains_of(
    Policy.from_dict({
        "attributes": {
            "number": {"role": "quasi-identifier", "type": "number", "bounds": [0, 50],
                       "hierarchy": {"intervals": [1, 50]}},
            "category": {"role": "quasi-identifier", **KINDS["category"]},
            "date": {"role": "quasi-identifier", **KINDS["date"], "hierarchy": {"dates": ["day", "month"]}},
        },
        "method": {"risk-utility": {"utility-at-least": 0.3, "side-table": "side.csv",
                                    "private": {"epsilon": 1.0, "delta": 1e-6}}},
    }).schema
)  # fmt: skip


def column_of(cells) -> pd.Series:
    out = np.empty(len(cells), dtype=object)
    for at, cell in enumerate(cells):  # at once, NumPy would look into lists
        out[at] = cell
    return pd.Series(out, dtype=object)


def read_privately(cells) -> pa.ChunkedArray:
    return open_table(pd.DataFrame({"x": column_of(cells)}), any_text=True).column("x")


def codes_of(column) -> list[tuple[int, ...]]:
    """The codes of each cell under both private methods, as number, category, date and class."""
    table = pa.table(dict.fromkeys([*KINDS, "class"], column))
    source = open_table(table, any_text=True, may_be_empty=True)
    classes = DeclaredRows(source, POLICY).target.codes(column)
    codes = [encode_by_domains(source, DIFFGEN), encode_by_domains(source, TREES), classes.reshape(-1, 1)]
    return [tuple(row) for row in np.hstack(codes).tolist()]


def codes_of_each(columns) -> list[list[tuple[int, ...]]]:
    """``codes_of`` of many columns; those of one type are joined, as what follows looks at cells only."""
    out: dict[int, list[tuple[int, ...]]] = {}
    for kind in dict.fromkeys(column.type for column in columns):
        own = [at for at, column in enumerate(columns) if column.type == kind]
        chunks = [chunk for at in own for chunk in columns[at].chunks]
        rows = iter(codes_of(pa.chunked_array(chunks, kind).combine_chunks()))
        out |= {at: list(itertools.islice(rows, len(columns[at]))) for at in own}
    return [out[at] for at in range(len(columns))]


@pytest.fixture(scope="module")
def alone() -> list[tuple[int, ...]]:
    """The codes of each object in a column of its own."""
    return [codes_of(read_privately([cell]))[0] for cell in OBJECTS]


def test_no_object_changes_the_codes_of_another(alone):
    """All pairs of the list as neighbours: a row has the same codes alone, before and after any other."""
    assert len(OBJECTS) >= 80
    assert len(set(alone)) > 15
    pairs = list(itertools.combinations(range(len(OBJECTS)), 2))
    found = codes_of_each([read_privately([OBJECTS[a], OBJECTS[b], OBJECTS[a]]) for a, b in pairs])
    changed = [
        (OBJECTS[a], OBJECTS[b])
        for (a, b), codes in zip(pairs, found, strict=True)
        if codes != [alone[a], alone[b], alone[a]]
    ]
    assert changed == []


def test_no_number_of_objects_changes_the_codes_of_another(alone):
    random = np.random.default_rng(20261117)
    for size in (2, 5, 20, 50, len(OBJECTS)):
        for _ in range(5):
            at = random.permutation(len(OBJECTS))[:size].tolist()
            assert codes_of(read_privately([OBJECTS[i] for i in at])) == [alone[i] for i in at]


@pytest.mark.parametrize("make", [
    lambda cells: pd.Series(column_of(cells)).astype("category"),
    lambda cells: pd.Series(pd.arrays.SparseArray(column_of(cells).to_numpy(), dtype=object)),
    lambda cells: pl.Series("x", cells, dtype=pl.Object),
], ids=["categories", "sparse", "polars objects"])  # fmt: skip
def test_objects_that_are_stored_in_other_ways_are_read_one_by_one(make):
    for other in (Decimal("1.5"), "b", 5.5, np.float16(1.5), NAIVE):
        series = make([1, 2, 3, other])
        frame = (pl.DataFrame if isinstance(series, pl.Series) else pd.DataFrame)({"x": series})
        column = open_table(frame, any_text=True).column("x")
        said = [
            lenient_texts(column, Attribute("x", "other")).to_pylist(),
            lenient_ordered(column, Attribute("x", "other", Kind.NUMBER)).to_pylist(),
        ]
        assert [readings[:3] for readings in said] == [["1", "2", "3"], [1, 2, 3]]


TYPED = {
    "truth values": (pd.Series([True, False]), [Kind.CATEGORY, Kind.NUMBER]),
    "nullable truth values": (pd.Series([True, None], dtype="boolean"), [Kind.CATEGORY, Kind.NUMBER]),
    "whole numbers": (pd.Series([1, 40]), [Kind.CATEGORY, Kind.NUMBER]),
    "nullable whole numbers": (pd.Series([1, None], dtype="Int8"), [Kind.CATEGORY, Kind.NUMBER]),
    "floats": (pd.Series([0.5, 3, 1e-7, 1e16, np.nan]), [Kind.CATEGORY, Kind.NUMBER]),
    "short floats": (pd.Series([0.1, 3], dtype="float32"), [Kind.NUMBER]),
    "texts": (pd.Series(["1.5", "née", None]), [Kind.CATEGORY, Kind.NUMBER, Kind.DATE]),
    "texts of dates": (pd.Series(["2001-03-04", "x"], dtype="string"), [Kind.CATEGORY, Kind.DATE]),
    "moments": (
        pd.Series(pd.to_datetime(["2001-03-04 00:00", "2001-03-05 10:00"])),
        [Kind.CATEGORY, Kind.DATE],
    ),
    "moments of a zone": (
        pd.Series(pd.to_datetime(["2001-03-04 23:30"]).tz_localize("America/New_York")),
        [Kind.DATE],
    ),
    "decimals": (
        pd.Series([Decimal("1.50"), Decimal("2.00")], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        [Kind.CATEGORY, Kind.NUMBER],
    ),
    "categories": (pd.Series(["a", "1.5", None], dtype="category"), [Kind.CATEGORY, Kind.NUMBER]),
    "categories of numbers": (pd.Series([1, 2, None], dtype="category"), [Kind.CATEGORY, Kind.NUMBER]),
}


@pytest.mark.parametrize("case", TYPED)
def test_an_object_says_what_it_says_in_a_column_of_its_type(case):
    """One missing cell makes objects of truth values in pandas: nobody else's cell may change by that."""
    typed, kinds = TYPED[case]
    for kind in kinds:
        attribute = Attribute("x", "other", kind)
        read = lenient_texts if kind is Kind.CATEGORY else lenient_ordered
        found = [
            read(open_table(pd.DataFrame({"x": column}), any_text=True).column("x"), attribute).to_pylist()
            for column in (typed, typed.astype(object))
        ]
        assert found[0] == found[1]
        assert any(value is not None for value in found[0]) or case == "texts"


def test_a_release_counts_every_row_whatever_one_object_is():
    """300 whole numbers beside one decimal: they were all missing once, and epsilon promised nothing."""
    policy = Policy.from_dict(
        {
            "attributes": {
                "x": {"role": "quasi-identifier", "values": ["1", "2", "3"]},
                "class": {"role": "other", "values": ["no", "yes"]},
            },
            "workload": [{"classify": "class"}],
            "method": {"diffgen": {"epsilon": 1e6, "cuts": {"x": "leaves"}}},
        }
    )
    counts = []
    for other in (1, Decimal("1.5"), np.float16(1.5), NAIVE, Silent()):
        frame = pd.DataFrame({"x": column_of([1, 2, 3] * 100 + [other]), "class": ["no"] * 301})
        table = sf.publish(frame, policy, seed=1).table
        counts.append(table[table["class"] == "no"].set_index("x")["count"].to_dict())
    assert [(count["1"], count["2"], count["3"]) for count in counts] == [(101, 100, 100)] + [
        (100, 100, 100)
    ] * 4


def test_a_private_sample_reads_each_object_by_itself():
    policy = sampled_policy()
    rows = sampled_people(400).to_pandas().astype(object)
    own = tree_domains_of(policy.schema)
    before = encode_by_domains(open_table(rows, any_text=True), own)
    for other in (Decimal("1.5"), 5.5, True, NAIVE, np.int8(5)):
        changed = rows.copy()
        changed.loc[len(changed)] = ["p", other, other, other, other, "x"]
        assert (encode_by_domains(open_table(changed, any_text=True), own)[:-1] == before).all()
    release = sf.publish(changed, policy, side_table=sampled_people(100, public=True), seed=1)
    assert release.certificate.privacy is not None


# ---- for methods that are not private ----


def test_objects_that_are_alike_come_as_a_column_of_their_type():
    for cells, kind in (
        (["a", None, float("nan")], pa.string()),
        ([1, 2.5, None], pa.float64()),
        ([True, None], pa.bool_()),
        ([date(2001, 3, 4)], pa.date32()),
    ):
        assert open_table(pd.DataFrame({"x": column_of(cells)})).column("x").type == kind


@pytest.mark.parametrize("frame", [
    pd.DataFrame({"x": column_of([np.datetime64("2020-01-01"), np.int8(5)])}),
    pd.DataFrame({"x": column_of(["a", np.float16(1.5)]).astype("category")}),
    pl.DataFrame({"x": pl.Series([np.datetime64("2020-01-01"), np.int8(5)], dtype=pl.Object)}),
])  # fmt: skip
def test_objects_that_are_not_alike_come_as_their_texts(frame):
    """Arrow ends the process at the first of these."""
    assert open_table(frame).column("x").type == pa.string()


def test_a_half_float_beside_a_whole_number_stays_what_it_is():
    """Arrow makes [1, 2] of them."""
    column = open_table(pd.DataFrame({"x": column_of([np.float16(1.5), 2])})).column("x")
    assert numbers(column, Attribute("x", "other", Kind.NUMBER)).to_pylist() == [1.5, 2]


def test_objects_of_polars_are_read_and_not_where_they_are():
    frame = pl.DataFrame({"x": pl.Series(["02139", 53715, None], dtype=pl.Object)})
    assert texts(open_table(frame).column("x"), Attribute("x", "other")).to_pylist() == [
        "02139",
        "53715",
        None,
    ]


def test_the_readings_of_no_objects_are_none():
    assert objects.readings_of([]).type == objects.READINGS
