"""Distinct combinations of columns, against rows as Python compares them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.table.combinations import number_combinations

VALUES = (
    st.integers(0, 3),
    st.integers(-2, 2),
    st.integers(2**62, 2**63 - 1),
    st.sampled_from([0.0, -0.0, 0.5, -1.5, 1e300]),
)


@st.composite
def tables(draw: st.DrawFn) -> list[np.ndarray]:
    n_rows, kinds = draw(st.integers(0, 12)), draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=5))
    return [np.array(draw(st.lists(kind, min_size=n_rows, max_size=n_rows))) for kind in kinds]


@given(tables())
def test_numbers_are_the_places_of_rows_among_the_sorted_distinct_ones(columns: list[np.ndarray]) -> None:
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    distinct = sorted(set(rows))
    found = number_combinations(columns)
    assert found.number.tolist() == [distinct.index(row) for row in rows]
    assert found.n == len(distinct)
    assert found.first_rows().tolist() == [rows.index(row) for row in distinct]
    assert found.count_rows().tolist() == [rows.count(row) for row in distinct]


@pytest.mark.parametrize("n_columns", [1, 3, 40])
def test_more_combinations_than_an_integer_holds_stay_apart(n_columns: int) -> None:
    columns = list(np.random.default_rng(3).integers(0, 1000, (n_columns, 500)).astype(np.uint32))
    rows = np.array(columns).T
    _, expected = np.unique(rows, axis=0, return_inverse=True)
    assert number_combinations(columns).number.tolist() == expected.ravel().tolist()


def test_missing_numbers_are_one_value_that_comes_last() -> None:
    other_nan = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    found = number_combinations([np.array([np.nan, 2.0, other_nan, np.inf])])
    assert found.number.tolist() == [2, 0, 2, 1]
