"""Figure 4 of LeFevre, DeWitt, Ramakrishnan 2008: a selection over generalized data."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.policy.predicate import parse
from sfumato.recoding.axis import OrderedAxis
from sfumato.recoding.tree import Tree
from sfumato.release.certificate import Certificate, Claims
from sfumato.release.query import select
from sfumato.release.release import Release
from sfumato.table import opening

POLICY = sf.Policy.parse("""
attributes:
  x: {role: quasi-identifier, type: number, bounds: [0, 9]}
  y: {role: quasi-identifier, type: number, bounds: [0, 9]}
require: [k-anonymity: 3]
""")

REGIONS = {
    1: [(0, 1), (1, 8), (2, 4)],  # x <= 2
    2: [(3, 1), (4, 2), (5, 3)],  # 3 <= x <= 5, y <= 4
    3: [(6, 2), (7, 4), (8, 3), (9, 1)],  # x >= 6, y <= 4
    4: [(4, 6), (6, 5), (8, 7)],  # x >= 3, 5 <= y <= 7
    5: [(3, 9), (5, 8), (9, 9)],  # x >= 3, y >= 8
}
POINTS = [point for points in REGIONS.values() for point in points]
QUERY = "x between 4 and 7 and y between 2 and 6"


def the_recoding():
    """x <= 2 | y <= 4 | x <= 5 among the low ones, y <= 7 among the high ones."""
    x, y = 0, 1
    tree = Tree(
        axis=np.array([x, -1, y, x, y, -1, -1, -1, -1], dtype=np.int32),
        threshold=np.array([2, np.nan, 4, 5, 7, *[np.nan] * 4]),
        first_child=np.array([1, -1, 3, 5, 7, -1, -1, -1, -1], dtype=np.int32),
        n_children=np.array([2, 0, 2, 2, 2, 0, 0, 0, 0], dtype=np.int32),
        branch=np.full(9, -1, dtype=np.int32),
        cover=np.full((9, 2), -1, dtype=np.int32),
        otherwise=np.full(9, -1, dtype=np.int32),
    )
    axes = tuple(OrderedAxis(POLICY.schema[name], 0, 9, 1.0, False) for name in ("x", "y"))
    return sf.Recoding(axes, tree)


@pytest.fixture
def release():
    raw = pa.table({"x": [x for x, _ in POINTS], "y": [y for _, y in POINTS]})
    rows = the_recoding().apply(raw)
    certificate = Certificate.of(POLICY, Claims(rows=len(POINTS), groups=5))
    return raw, Release(rows, certificate, POLICY, the_recoding())


def test_figure_4_six_rows_match_ten_are_returned_and_the_imprecision_is_four(release):
    raw, published = release
    predicate = parse(QUERY, POLICY.schema)
    returned = published.select(QUERY)
    assert returned.num_rows == 10
    overlapping = {
        number
        for number, points in REGIONS.items()
        if any(_row(published, p) in _rows(returned) for p in points)
    }
    assert overlapping == {2, 3, 4}
    found = select.imprecision(
        predicate, opening.open_table(raw), POLICY.schema, published.rows, published.recoding, POLICY
    )
    assert found == (10, 6, 4)
    assert (found.returned, found.true, found.imprecision) == (10, 6, 4)
    assert published.query("COUNT(*)", QUERY)[1:] == (0, 10)


def test_a_query_that_is_a_union_of_regions_has_no_imprecision(release):
    raw, published = release
    predicate = parse("x >= 3 and y <= 7", POLICY.schema)
    found = select.imprecision(
        predicate, opening.open_table(raw), POLICY.schema, published.rows, published.recoding, POLICY
    )
    assert found == (10, 10, 0)
    assert published.query("COUNT(*)", predicate.text) == (10, 10, 10)


def _rows(table):
    return {tuple(row.values()) for row in table.to_pylist()}


def _row(published, point):
    x, y = ([value] for value in point)
    return next(iter(_rows(published.recoding.apply(pa.table({"x": x, "y": y})))))
