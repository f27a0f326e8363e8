"""What is learned of a column does not depend on who observes which batch when: laws of every state of encoding.

Each state is gathered in some way (any blocks, in any order, by several states that are merged in any tree), and all that
is later read of it is compared with a state that saw the whole column as one batch.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import asdict
from datetime import date, timedelta
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from merging import Way, gather_in_parts, ways_to_gather

from sfumato.encoding.batches import Encoder, FileBatch
from sfumato.encoding.coded import KeyCounts
from sfumato.encoding.domain import OrderedDomain, TreeDomain
from sfumato.encoding.encoders import (
    LabelEncoder,
    NumberTreeEncoder,
    OrderedEncoder,
    TreeEncoder,
    axis_encoder,
)
from sfumato.encoding.extent import Extent
from sfumato.encoding.features import ClassCounts, FeatureValues
from sfumato.encoding.numbers import NumberEncoder, Sums, SumsWithin
from sfumato.errors import InputError, SfumatoError
from sfumato.kernels.axes import NO_NUMBER
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.table import distinct
from sfumato.table.spill import Spill

QUASI = Role.QUASI_IDENTIFIER

WHOLE = st.one_of(st.integers(-5, 5), st.integers(-1000, 1000), st.integers(2**33, 2**33 + 9))
NUMBERS = {
    "int64": WHOLE,
    "double": st.one_of(
        WHOLE.map(float), st.floats(-1e6, 1e6), st.integers(-500, 500).map(lambda x: x / 100), st.just(-0.0)
    ),
    "string": st.one_of(WHOLE.map(str), st.sampled_from(["0.5", "1.25", "", " 7 ", "-0"])),
}
"""Text may be whole numbers in one batch and others in the next."""


@st.composite
def columns_and_ways(draw: Any, **cells: st.SearchStrategy[Any]) -> tuple[pa.Array, Way]:
    """Cells of one of these types, and a way to gather them."""
    kind = draw(st.sampled_from(sorted(cells)))
    values = draw(st.lists(st.one_of(cells[kind], st.none()), min_size=1, max_size=40))
    if draw(st.booleans()):
        values = [value for value in values if value is not None] or [None]
    column = pa.array(values, pa.type_for_alias(kind))
    if kind == "string" and draw(st.booleans()):
        column = column.dictionary_encode()  # batches then share one dictionary
    return column, draw(ways_to_gather(len(values)))


def cells_of(column: pa.Array, encoder: Encoder, start: int, end: int) -> Any:
    batch = pa.record_batch({"x": column.slice(start, end - start)})
    return FileBatch(batch, Schema((encoder.attribute,)), first_row=start).cells_for(encoder)


def learn_in_parts(way: Way, new: Callable[[], Any], column: pa.Array, kept: tuple[Any, ...] = ()) -> Any:
    """An encoder that has learned its column this way, in as many passes as it asks for; ``kept`` are not copied."""
    encoder = gather_in_parts(
        way, new, lambda state, start, end: state.observe(cells_of(column, state, start, end), start)
    )
    if encoder.settle():
        event("twice")
        settled = encoder
        encoder = gather_in_parts(
            way,
            lambda: copy.deepcopy(settled, {id(each): each for each in kept}),
            lambda state, start, end: state.observe_again(cells_of(column, state, start, end)),
            merge="merge_again",
        )
    encoder.finish()
    return encoder


def facts_of(learn: Callable[[], Any], column: pa.Array) -> Any:
    """All that is read of an encoder once it has learned, or why it did not."""
    try:
        encoder = learn()
    except SfumatoError as error:
        return type(error), re.sub(r"over [\d,]+ ", "over n ", str(error))  # as many as were seen until then
    found: dict[str, Any] = {"codes": encoder.codes(cells_of(column, encoder, 0, len(column))).tolist()}
    if isinstance(encoder, NumberEncoder):
        return found | {
            "scale": encoder.scale,
            "sums": encoder.sums if encoder.sums.n else None,
            "greatest": encoder.greatest,
            "missing": encoder.missing,
        }
    if isinstance(encoder, LabelEncoder):
        return found | {"count": encoder.count.tolist(), "texts": texts_of(encoder)}
    if isinstance(encoder, TreeEncoder):
        found["texts"] = texts_of(encoder)
    return found | {"ends": encoder.ends, "domain": domain_of(encoder.domain)}


def texts_of(encoder: TreeEncoder | LabelEncoder) -> list[Any]:
    known = encoder.dictionary
    return [repr(known.column().to_pylist()), known.count.tolist(), known.first.tolist()]


def domain_of(domain: OrderedDomain | TreeDomain) -> Any:
    if isinstance(domain, TreeDomain):
        return domain.hierarchy.as_tree(), domain.has_missing, domain.attribute
    values = None if domain.values is None else domain.values.tolist()
    return domain.low, domain.high, domain.grid, domain.has_missing, domain.n_codes, values, domain.origin


def assert_same(way: Way, new: Callable[[], Any], column: pa.Array) -> Any:
    one = Way(((0, len(column)),), (1,), ())
    expected = facts_of(lambda: learn_in_parts(one, new, column), column)
    assert facts_of(lambda: learn_in_parts(way, new, column), column) == expected
    return expected


# ---- encoders --------------------------------------------------------------------------------------

DECLARED = st.sampled_from([(None, None), (None, 2), ((-50, 50), None), ((-1000, 1000), 5)])


@given(columns_and_ways(**NUMBERS), DECLARED)
@settings(max_examples=300, deadline=None)
def test_an_ordered_column(case, declared):
    column, way = case
    attribute = Attribute("x", QUASI, Kind.NUMBER, bounds=declared[0], step=declared[1])
    found = assert_same(way, lambda: OrderedEncoder(attribute, n_rows=len(column)), column)
    event("refused" if isinstance(found, tuple) else "ranks" if found["domain"][5] else "grid")


@given(columns_and_ways(double=st.floats(-1e6, 1e6)))
@settings(max_examples=60, deadline=None)
def test_an_ordered_column_whose_values_are_in_files(case):
    column, way = case
    attribute = Attribute("x", QUASI, Kind.NUMBER)
    expected = np.unique(column.drop_null().to_numpy()).tolist()
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        patch.setattr(distinct, "SMALLEST_RUN", 2)
        encoder = learn_in_parts(
            way, lambda: OrderedEncoder(attribute, n_rows=1000, spill=spill, memory=64), column, (spill,)
        )
        event(f"in files: {encoder.is_large}")
        if encoder.domain.values is not None:
            missing = [-np.inf] * encoder.domain.has_missing
            assert encoder.domain.values.tolist() == missing + expected


@given(columns_and_ways(**NUMBERS), st.sampled_from(["flat", {"intervals": [5, 50]}, {"balanced": 2}]))
@settings(max_examples=150, deadline=None)
def test_a_number_with_a_hierarchy(case, hierarchy):
    column, way = case
    if not pa.types.is_string(column.type) and not pa.types.is_dictionary(column.type):
        column = pa.array(
            [None if x is None else min(max(x, -300), 300) for x in column.to_pylist()], column.type
        )
    attribute = Attribute("x", QUASI, Kind.NUMBER, hierarchy=hierarchy)
    for memory in (1 << 62, 500):
        found = assert_same(way, partial(NumberTreeEncoder, attribute, memory=memory), column)
        event(f"{memory < 1000}: {'refused' if isinstance(found, tuple) else found['ends'] is not None}")


@given(
    columns_and_ways(date32=st.integers(-(10**4), 10**4).map(lambda n: date(1970, 1, 1) + timedelta(n))),
    st.sampled_from([None, "flat", {"dates": ["month", "year"]}]),
)
@settings(max_examples=60, deadline=None)
def test_a_date(case, hierarchy):
    column, way = case
    attribute = Attribute("x", QUASI, Kind.DATE, hierarchy=hierarchy)
    assert_same(way, lambda: axis_encoder(attribute, n_rows=len(column)), column)


CATEGORIES = {
    "string": st.sampled_from(["a", "b", " a", "é", "e\u0301", "", "?", "c"]),
    "double": st.sampled_from([1.0, 2.0, 2.5, 0.0, -0.0, float("nan")]),
    "int8": st.integers(0, 3),
    "bool": st.booleans(),
}


@given(columns_and_ways(**CATEGORIES), st.integers(0, 8))
@settings(max_examples=200, deadline=None)
def test_a_category_and_a_label(case, few):
    column, way = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "FEW", few)
        patch.setattr(distinct, "FEW_ROWS", 2)
        assert_same(way, lambda: TreeEncoder(Attribute("x", QUASI, missing_values=("?",))), column)
        for role in (Role.SENSITIVE, Role.OTHER):
            assert_same(way, partial(LabelEncoder, Attribute("x", role)), column)


@given(columns_and_ways(**NUMBERS))
@settings(max_examples=60, deadline=None)
def test_a_label_that_is_a_number(case):
    column, way = case
    assert_same(way, lambda: LabelEncoder(Attribute("x", Role.SENSITIVE, Kind.NUMBER)), column)


HUGE = st.one_of(
    st.integers(-(2**62), 2**62), st.integers(2**62 - 9, 2**62), st.sampled_from([0, 2**32, -(2**63)])
)


@given(
    columns_and_ways(**NUMBERS | {"int64": st.one_of(WHOLE, HUGE)}),
    st.sampled_from([None, 0, int(NO_NUMBER)]),
)
@settings(max_examples=300, deadline=None)
def test_a_number_to_be_predicted(case, missing):
    column, way = case
    attribute = Attribute("x", Role.OTHER, Kind.NUMBER)
    found = assert_same(way, lambda: NumberEncoder(attribute, missing=missing), column)
    event("refused" if isinstance(found, tuple) else f"exact: {found['scale'].is_exact}")


def test_whole_numbers_far_from_0_are_added_up_exactly_in_one_pass():
    cells = pa.array([2**62, 2**62 + 3, 2**62 + 5, 2**62 + 5])
    encoder = NumberEncoder(Attribute("x", Role.OTHER, Kind.NUMBER))
    for start in (2, 0, 3, 1):
        encoder.observe(cells.slice(start, 1), start)
    assert not encoder.settle()
    encoder.finish()
    assert encoder.sums == Sums(n=4, total=13, squares=59, greatest=5)


@given(columns_and_ways(**NUMBERS), DECLARED)
@settings(max_examples=100, deadline=None)
def test_the_extent_of_a_column(case, declared):
    column, way = case
    attribute = Attribute("x", QUASI, Kind.NUMBER, bounds=declared[0], step=declared[1])
    encoder = OrderedEncoder(attribute)

    def add(state: Extent, start: int, end: int) -> None:
        state.add_cells(cells_of(column, encoder, start, end))

    whole = Extent(attribute)
    add(whole, 0, len(column))
    assert asdict(gather_in_parts(way, lambda: Extent(attribute), add)) == asdict(whole)


# ---- sums, keys, counts ----------------------------------------------------------------------------


@st.composite
def codes_and_ways(draw: Any) -> tuple[Any, Any, Way]:
    codes = draw(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=30))
    group = draw(st.lists(st.integers(0, 3), min_size=len(codes), max_size=len(codes)))
    way = draw(ways_to_gather(len(codes)))
    return np.array(codes, dtype=np.uint32), np.array(group, dtype=np.uint32), way


@given(codes_and_ways(), st.integers(-(2**70), 2**70))
def test_exact_sums(case, by):
    codes, group, way = case
    numbers = codes.tolist()
    found = gather_in_parts(way, Sums, lambda state, start, end: state.add(codes[start:end]))
    assert found == Sums(len(numbers), sum(numbers), sum(x * x for x in numbers), max(numbers))
    moved = [x + by for x in numbers]
    assert found.move(by) == Sums(len(moved), sum(moved), sum(x * x for x in moved), max(moved))
    within = gather_in_parts(
        way, lambda: SumsWithin(4), lambda state, start, end: state.add(codes[start:end], group[start:end])
    )
    of_group = [codes[group == g].tolist() for g in range(4)]
    assert within.all() == [
        Sums(len(own), sum(own), sum(x * x for x in own), max(own, default=0)) for own in of_group
    ]


@given(codes_and_ways())
def test_keys_of_combinations_and_how_often_they_occur(case):
    _, group, way = case
    found = gather_in_parts(
        way,
        lambda: KeyCounts(1 << 20, "x"),
        lambda state, start, end: state.add(group[start:end].astype(np.int64)),
    )
    keys, count = found.finish()
    expected = np.unique(group, return_counts=True)
    assert (keys.tolist(), count.tolist()) == (expected[0].tolist(), expected[1].tolist())


def test_merged_keys_that_take_too_much_memory_are_refused():
    halves = [KeyCounts(64 * 60, "job") for _ in range(2)]
    for start, half in zip((0, 20), halves, strict=True):
        half.add(np.arange(start, start + 40))
    halves[0].merge(halves[1])
    assert len(halves[0].finish()[0]) == 60
    halves[0].add(np.array([100]))
    with pytest.raises(InputError, match="'job' and those beside it make over 61 different"):
        halves[0].finish()


@given(codes_and_ways())
def test_values_of_a_feature_and_the_classes_of_their_rows(case):
    codes, group, way = case
    column = pa.array((codes % 7).astype(np.float64))
    attribute = Attribute("x", Role.OTHER, Kind.NUMBER)
    values = learn_in_parts(way, lambda: FeatureValues(attribute, memory=1 << 20), column).numbers.values()
    assert values.tolist() == sorted(set((codes % 7).tolist()))
    found = gather_in_parts(
        way,
        lambda: ClassCounts(values, 4),
        lambda state, start, end: state.add(column.to_numpy()[start:end], group[start:end].astype(np.int64)),
    )
    rows = list(zip((codes % 7).tolist(), group.tolist(), strict=True))
    assert found.count.tolist() == [[rows.count((x, g)) for g in range(4)] for x in values.tolist()]


def test_merged_values_of_a_feature_that_take_too_much_memory_are_refused():
    attribute = Attribute("x", Role.OTHER, Kind.NUMBER)
    halves = [FeatureValues(attribute, memory=32 * 60) for _ in range(2)]
    for start, half in zip((0, 40), halves, strict=True):
        half.observe(pa.array(np.arange(start, start + 40.0)), start)
    with pytest.raises(InputError, match="too many different values to be cut"):
        halves[0].merge(halves[1])


def test_values_that_were_all_collected_are_not_asked_for_again():
    parts = []
    for start in (0, 50):
        encoder = OrderedEncoder(Attribute("x", QUASI, Kind.NUMBER))
        encoder.observe(pa.array(np.arange(start, start + 50) / 7), start)
        parts.append(encoder)
    parts[0].merge(parts[1])
    assert not parts[0].settle()
