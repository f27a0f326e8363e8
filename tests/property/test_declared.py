"""Declared domains on random policies and random cells, rubbish included."""

from __future__ import annotations

import json
import math
import tempfile
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sfumato.encoding.declared import DeclaredRows, domains_of, hold_rows
from sfumato.encoding.domain import Domain, OrderedDomain
from sfumato.methods.specialization.loop import CutGrid, Piece, parts_of
from sfumato.policy.document import Policy
from sfumato.policy.output import Output
from sfumato.recoding.cuts import Cuts
from sfumato.recoding.recoder import RowCells
from sfumato.table.opening import open_table
from sfumato.table.source import Source

WORDS = ["a", "b", "c", "aa", "ab", "b c", "01", "1"]
TREES = [
    {"*": {"x": ["a", "b"], "y": {"aa": None, "z": ["ab", "01"]}}},
    {"*": ["a", {"x": ["b", "c"]}, None]},
    {"*": {"a": None}},
]
RUBBISH = [
    "",
    "?",
    "x",
    "nan",
    "inf",
    "-Infinity",
    "1e999",
    "1,5",
    "2020-02-30",
    "NULL",
    " a",
    "\u00a0",
    "0x1",
    "+-1",
]
GRIDS = [
    (0, 10, 1),
    (-3, 9, 3),
    (0, 1, 0.1),
    (0.05, 1.05, 0.25),
    (-0.3, 0.3, 0.2),
    (100000, 100009, 1),
    (1, 2, 1),
]
DAYS = (date(2019, 11, 28), date(2020, 3, 2))


@st.composite
def numbers(draw: st.DrawFn) -> dict[str, Any]:
    low, high, step = draw(st.sampled_from(GRIDS))
    attribute: dict[str, Any] = {"type": "number", "bounds": [low, high]}
    kind = draw(st.sampled_from(["ordered", "intervals", "balanced", "points", "tree"]))
    if kind in ("ordered", "points"):
        attribute["step"] = step
    if kind == "intervals":
        attribute["hierarchy"] = {"intervals": [step, 2 * step]}
    elif kind in ("balanced", "points"):
        attribute["hierarchy"] = {"balanced": draw(st.integers(2, 3))}
    elif kind == "tree":
        attribute["hierarchy"] = {"tree": {"*": {"few": ["1", "2.0"], "many": ["10", "0.3"]}}}
    return attribute


@st.composite
def dates(draw: st.DrawFn) -> dict[str, Any]:
    attribute: dict[str, Any] = {"type": "date", "bounds": [day.isoformat() for day in DAYS]}
    if draw(st.booleans()):
        attribute["hierarchy"] = {
            "dates": draw(st.sampled_from([["day", "month"], ["month", "year"], ["quarter"]]))
        }
    elif draw(st.booleans()):
        attribute["step"] = 5
    return attribute


@st.composite
def categories(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        return {"hierarchy": {"tree": draw(st.sampled_from(TREES))}}
    values = draw(st.lists(st.sampled_from(WORDS), min_size=1, unique=True))
    return {"values": values, **({"hierarchy": {"mask": 3}} if draw(st.booleans()) else {})}


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    attributes: dict[str, Any] = {}
    for position in range(draw(st.integers(1, 3))):
        given_ = draw(st.one_of(numbers(), dates(), categories()))
        absent = draw(st.sampled_from([[], ["?"], ["-9", "?"], ["2020-01-01"], ["3"]]))
        attributes[f"q{position}"] = {"role": "quasi-identifier", "missing-values": absent, **given_}
    attributes["class"] = {"role": "other", "values": ["no", "yes"]}
    document = {
        "attributes": attributes,
        "workload": [{"classify": "class"}],
        "method": {"diffgen": {"epsilon": 1}},
    }
    return Policy.from_dict(document)


NUMBERS = st.one_of(
    st.integers(-12, 12),
    st.integers(99_990, 100_020),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.1, 0.2, 0.3, 0.30000000000000004, 0.7, -0.1, 0.8, math.nextafter(0.3, 1), 1.05]),
)
MOMENTS = st.datetimes(datetime(2019, 11, 20), datetime(2020, 3, 9))  # noqa: DTZ001 - as tables hold them
MIDNIGHTS = MOMENTS.map(lambda moment: moment.replace(hour=0, minute=0, second=0, microsecond=0))


@st.composite
def columns(draw: st.DrawFn, n_rows: int) -> pa.Array:
    """Cells as they may be stored."""

    def cells(of: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(st.none() | of, min_size=n_rows, max_size=n_rows))

    texts = st.sampled_from(WORDS + RUBBISH) | NUMBERS.map(str) | MOMENTS.map(str) | st.text(max_size=3)
    texts |= MIDNIGHTS.map(lambda moment: moment.date().isoformat())
    small = st.sampled_from(WORDS + RUBBISH)
    kind = draw(
        st.sampled_from(["text", "dictionary", "bytes", "int", "float", "moment", "day", "truth", "nothing"])
    )
    event(kind)
    match kind:
        case "text":
            return pa.array(cells(texts), pa.string())
        case "dictionary":
            return pa.array(cells(small), pa.string()).dictionary_encode()
        case "bytes":
            return pa.array(cells(small.map(str.encode) | st.binary(max_size=2)), pa.binary())
        case "int":
            return pa.array(cells(st.integers(-(2**63), 2**63 - 1) | st.integers(-12, 12)), pa.int64())
        case "float":
            return pa.array(cells(NUMBERS.map(float)), pa.float64())
        case "moment":
            return pa.array(cells(MOMENTS | MIDNIGHTS), pa.timestamp("us"))
        case "day":
            return pa.array(cells(MIDNIGHTS.map(datetime.date)), pa.date32())
        case "truth":
            return pa.array(cells(st.booleans()), pa.bool_())
    return pa.nulls(n_rows)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Policy, Source]:
    """A policy, and a table of any cells that are stored in a way that its columns can be read from."""
    policy = draw(policies())
    n_rows = draw(st.integers(1, 12))
    table: dict[str, pa.Array] = {
        "class": pa.array(draw(st.lists(st.sampled_from(["no", "yes"]), min_size=n_rows, max_size=n_rows)))
    }
    for attribute in policy.schema.quasi_identifiers:
        fits = {
            "category": lambda _: True,
            "number": lambda kind: not (pa.types.is_temporal(kind)),
            "date": lambda kind: (
                not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
            ),
        }[str(attribute.kind)]
        table[attribute.name] = draw(columns(n_rows).filter(lambda column, fits=fits: fits(column.type)))
    return policy, open_table(pa.table(table))


def encoded(source: Source, policy: Policy) -> np.ndarray:
    return hold_rows(source, policy).rows


@settings(max_examples=100)
@given(cases())
def test_every_row_has_codes_and_they_depend_on_no_other_row(case):
    policy, source = case
    together = encoded(source, policy)
    alone = [encoded(source.take(np.array([row])), policy)[0] for row in range(source.n_rows)]
    assert together.tolist() == np.array(alone).tolist()
    for a, domain in enumerate(domains_of(policy.schema)):
        assert (together[:, a] < domain.n_codes).all()


@settings(max_examples=100)
@given(st.sampled_from(GRIDS), st.lists(NUMBERS, min_size=1, max_size=20))
def test_a_number_is_the_first_point_of_the_grid_that_is_not_below_it(grid, values):
    low, high, step = grid
    policy = Policy.from_dict({
        "attributes": {
            "x": {"role": "quasi-identifier", "type": "number", "bounds": [low, high], "step": step},
            "class": {"role": "other", "values": ["no", "yes"]},
        },
        "workload": [{"classify": "class"}],
        "method": {"diffgen": {"epsilon": 1}},
    })  # fmt: skip
    first, last, width = (Fraction(str(end)) for end in grid)
    points = [float(first + i * width) for i in range(int((last - first) / width) + 1)]
    expected = [
        0
        if not math.isfinite(value)
        else 1 + sum(point < min(max(value, points[0]), points[-1]) for point in points)
        for value in values
    ]
    (domain,) = domains_of(policy.schema)
    assert domain.value(np.arange(1, domain.n_codes)).tolist() == points
    for column in (pa.array([float(value) for value in values]), pa.array([repr(value) for value in values])):
        table = pa.table({"x": column, "class": ["no"] * len(values)})
        assert encoded(open_table(table), policy)[:, 0].tolist() == expected


def a_cut(draw: st.DrawFn, a: int, domain: Domain) -> tuple[Piece, ...]:
    if isinstance(domain, OrderedDomain):
        ends = sorted({*draw(st.lists(st.integers(1, domain.n_codes), max_size=4)), domain.n_codes})
        return tuple(Piece(a, low, high) for low, high in zip([0, *ends], ends, strict=False))
    waiting, cut = [Piece(a, 0, domain.n_codes, 0)], []
    while waiting:
        piece = waiting.pop()
        parts = parts_of(piece, domain, lambda _: None)
        if parts and draw(st.integers(0, 2)):
            waiting += parts
        else:
            cut.append(piece)
    return tuple(sorted(cut))


@st.composite
def grids(draw: st.DrawFn) -> tuple[Policy, Source, CutGrid]:
    policy, source = draw(cases())
    domains = domains_of(policy.schema)
    return policy, source, CutGrid.of([a_cut(draw, a, domain) for a, domain in enumerate(domains)], domains)


@settings(max_examples=150)
@given(grids(), st.sampled_from([Output.LABELS, Output.BOTH]))
def test_further_rows_are_recoded_as_their_codes_say(case, output):
    """Of whatever cells, before and after the recoding was on disk, and in the labels that are published."""
    policy, source, grid = case
    expected = grid.places(encoded(source, policy)[:, :-1].T)
    made = grid.recoding(1, output, frozenset())
    with tempfile.TemporaryDirectory() as folder:
        made.write(Path(folder))
        document = json.loads(Path(folder, "recoding.json").read_text(encoding="utf-8"))
    read = Cuts.from_document(document, Policy.from_dict(policy.as_dict()).schema)
    for cuts in (made, read):
        places, _ = cuts._locate(RowCells.read(source, cuts.axes))
        assert places.tolist() == expected.tolist()
        recoded = cuts.recode_columns(source)
        assert {name: column.to_pylist() for name, column in recoded.items()} == {
            name: column.to_pylist() for name, column in cuts.columns(expected).items()
        }


@settings(max_examples=50)
@given(grids())
def test_every_piece_of_a_grid_has_a_name_of_its_own(case):
    """Two pieces with one label would be one cell to whoever reads the release."""
    _, _, grid = case
    cuts = grid.recoding(1, Output.LABELS, frozenset())
    for a in range(len(cuts.axes)):
        labels, _ = cuts.pieces(a)
        assert len(labels) == len(grid.ends[a])
        assert len(set(labels.to_pylist())) == len(labels)


@settings(max_examples=50)
@given(cases(), st.integers(1, 5))
def test_blocks_of_any_size_hold_the_same_rows(case, n_rows):
    policy, source = case
    whole = pa.table({name: source.column(name) for name in source.names})
    parts = open_table(
        pa.concat_tables([whole.slice(start, n_rows) for start in range(0, whole.num_rows, n_rows)])
    )
    rows = DeclaredRows(parts, policy)
    found = np.concatenate([block.rows for block in rows.blocks()])
    assert found.tolist() == encoded(source, policy).tolist()
    assert rows.n_rows == source.n_rows
    assert all(block.payload is None for block in rows.blocks())
