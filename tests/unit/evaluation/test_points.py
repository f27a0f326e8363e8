"""Boxes as points, against the published cells of the same rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato import methods
from sfumato.encoding.encoders import encode_axis
from sfumato.evaluation import points
from sfumato.evaluation.points import CategoryColumn, NumberColumn
from sfumato.policy.document import Policy
from sfumato.policy.output import Output
from sfumato.randomness import seeded
from sfumato.table.opening import open_table

POLICY = Policy.parse(
    """
attributes:
  age:  {role: quasi-identifier, type: number}
  dose: {role: quasi-identifier, type: number}
  day:  {role: quasi-identifier, type: date}
  town: {role: quasi-identifier, hierarchy: {tree: {any: {north: [a, b], south: [c, d, {deep: [e, f]}]}}}}
  class: {role: other}
require: [k-anonymity: 2]
workload: [classify: class]
""".replace("[c, d, {deep: [e, f]}]", "{west: [c, d], deep: [e, f]}")
)
LEAVES = {
    "any": "abcdef", "north": "ab", "south": "cdef", "west": "cd", "deep": "ef", **{x: x for x in "abcdef"},
}  # fmt: skip

rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 20)),
        st.one_of(st.none(), st.sampled_from([0.25, 0.5, 1.75, 3.5])),
        st.one_of(st.none(), st.sampled_from(["2024-01-31", "2024-02-01", "2025-07-01"])),
        st.one_of(st.none(), st.sampled_from("abcdef")),
        st.sampled_from("xy"),
    ),
    min_size=2,
    max_size=40,
)


def source_of(lines):
    columns = list(zip(*lines, strict=True))
    kinds = (pa.int64(), pa.float64(), pa.string(), pa.string(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return open_table(pa.table(arrays, ["age", "dose", "day", "town", "class"]))


def test_corners_are_the_ends_of_the_published_box_and_the_first_and_last_leaf_of_its_node():
    @given(rows, rows)
    def check(fitted, others):
        source, strangers = source_of(fitted), source_of(others)
        policy = replace(POLICY, output=Output.BOTH)
        recoding = methods.partition(source, policy).recoding
        boxes = points.find_boxes(recoding, source, [strangers])
        published = pa.concat_tables(
            [plain(recoding.apply_to(source)), plain(recoding.apply_to(strangers))],
            promote_options="permissive",
        )
        for a, name in enumerate(("age", "dose", "day")):
            for end, values in (("low", boxes.first[:, a]), ("high", boxes.last[:, a])):
                cells = published.column(f"{name}_{end}").to_pylist()
                labels = published.column(name).to_pylist()
                for cell, label, value in zip(cells, labels, values, strict=True):
                    if cell is not None:
                        assert value == (cell if name != "day" else np.datetime64(cell).astype(int))
                    elif label is None:
                        assert np.isnan(value)  # missing is all that is published
        domain, _ = encode_axis(source, policy.schema["town"])
        leaves = [domain.hierarchy.labels[node] for node in domain.hierarchy.leaf_nodes]
        for label, first, last in zip(published.column("town").to_pylist(), *ends(boxes, 3), strict=True):
            below = leaves[int(first) : int(last) + 1]
            if label is None:
                assert below == [None]
            else:
                assert [leaf for leaf in below if leaf is not None] == list(LEAVES[label])

    check()


def plain(table):
    return pa.table(
        {name: pa.chunked_array(table.column(name)).cast(kind(table, name)) for name in table.column_names}
    )


def kind(table, name):
    stored = table.schema.field(name).type
    return pa.string() if pa.types.is_dictionary(stored) else stored


def ends(boxes, axis):
    return boxes.first[:, axis], boxes.last[:, axis]


FEW = [(age, 0.5, "2024-02-01", town, "x") for age, town in zip(range(12), "aabbccddeeff", strict=True)]


def boxes_of_few():
    source = source_of(FEW)
    return points.find_boxes(methods.partition(source, POLICY).recoding, source)


def test_a_midpoint_lies_half_way_between_the_corners():
    boxes = boxes_of_few()
    corners, middle = boxes.columns("corners", seeded(0)), boxes.columns("midpoint", seeded(0))
    for name in ("age", "town"):
        low, high = (column.values for column in corners[name].values())
        assert middle[name][name].values.tolist() == ((low + high) / 2).tolist()
    features = points.as_features(
        {key: column for columns in corners.values() for key, column in columns.items()}
    )
    assert features.n_numbers == 2 * 4  # figure 5: d attributes, 2 d numbers


def test_a_sample_lies_in_its_box_and_on_its_grid():
    boxes = boxes_of_few()
    drawn = boxes.columns("sample", seeded(0))
    first, last = ends(boxes, 0)
    ages = drawn["age"]["age"].values
    assert ((first <= ages) & (ages <= last) & (ages == np.rint(ages))).all()
    first, last = ends(boxes, 3)
    towns = drawn["town"]["town"]
    assert isinstance(towns, CategoryColumn)
    assert ((first <= towns.codes) & (towns.codes <= last)).all()


@pytest.mark.parametrize(
    "lines", [FEW, [(2 * (i % 2), 0.25 + i % 2, "2024-02-01", "af"[i % 2], "x") for i in range(4)]]
)
def test_samples_are_uniform_over_the_values_of_a_box(lines):
    """One group of everything: each value of the grid, each leaf, each stretch of a number equally often."""
    source = source_of(lines * 2000)
    policy = Policy.from_dict(
        {**POLICY.as_dict(), "require": [{"k-anonymity": 2000 * len(lines)}], "workload": []}
    )
    boxes = points.find_boxes(methods.partition(source, policy).recoding, source)
    drawn = boxes.columns("sample", seeded(20080801))
    ages = drawn["age"]["age"].values.astype(int)
    for values, n in (
        (ages - ages.min(), int(ages.max() - ages.min()) + 1),
        (drawn["town"]["town"].codes, 6),
    ):
        seen = np.bincount(values, minlength=n)
        assert stats.chisquare(seen).pvalue > 1e-6
        assert stats.chisquare(seen, np.linspace(0.7, 1.3, n) * len(values) / n).pvalue < 1e-6
    doses = drawn["dose"]["dose"].values
    if doses.min() < doses.max():
        low, high = (float(end[0]) for end in ends(boxes, 1))
        assert low <= 0.25
        assert high >= 1.25
        assert stats.kstest(doses, "uniform", (low, high - low)).pvalue > 1e-6
        assert low <= doses.min() < doses.max() <= high


def test_shared_cuts_are_learned_from_as_one_category_each():
    source = source_of([(i % 12, 0.5, "2024-02-01", "af"[i % 12 > 5], "xy"[i % 12 > 5]) for i in range(120)])
    policy = Policy.from_dict({**POLICY.as_dict(), "method": "tds"})
    recoding = methods.partition(source, policy).recoding
    drawn = points.find_boxes(recoding, source).columns("values", seeded(0))
    published = recoding.apply_to(source)
    for name in ("age", "dose", "day", "town"):
        column = drawn[name][name]
        pairs = set(zip(published.column(name).to_pylist(), column.codes.tolist(), strict=True))
        assert len(pairs) == column.n_values == len({label for label, _ in pairs})  # one code per label


def test_columns_of_several_tables_share_their_codes():
    one, two = (open_table(pa.table({"x": texts})) for texts in (["b", None], ["a", "b", "c"]))
    schema = Policy.parse("{attributes: {x: {role: quasi-identifier}}, require: []}").schema
    found = points.read([one, two], schema, ["x", "x"])["x"]
    assert (found.codes.tolist(), found.n_values) == ([1, 3, 0, 1, 2], 4)
    assert found.is_missing.tolist() == [False, True, False, False, False]


def test_raw_cells_are_numbers_days_and_categories():
    found = points.read([source_of(FEW[:2])], POLICY.schema, ["day", "town", "dose"])
    assert isinstance(found["day"], NumberColumn)
    assert found["day"].values.tolist() == [19754.0, 19754.0]
    features = points.as_features(found)
    assert (features.names, features.n_numbers) == (("day", "dose", "town"), 2)
