"""Risk of random tables against naive twins: people in groups, a population, and minimal sample uniques."""

from __future__ import annotations

import naive_risk
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.risk.minimal_uniques import find_minimal_uniques

POLICY = {
    "attributes": {
        "age": {"role": "quasi-identifier", "type": "number"},
        "zip": {"role": "quasi-identifier"},
        "who": {"role": "identifier"},
    },
    "require": [],
}
AGES, ZIPS = [None, 0, 1, -0.0, 2.5], [None, "", "a", "b ", "1"]


@st.composite
def people(draw):
    """Rows of people: a table, and a population that holds it."""
    row = st.tuples(st.sampled_from(AGES), st.sampled_from(ZIPS), st.integers(0, 8))
    rows = draw(st.lists(row, min_size=1, max_size=20))
    return rows, rows + draw(st.lists(row, max_size=20))


def table(rows):
    ages, zips, who = zip(*rows, strict=True)
    return pa.table(
        {
            "age": pa.array(ages, pa.float64()),
            "zip": pa.array(zips, pa.string()),
            "who": [f"p{i}" for i in who],
        }
    )


def keys(rows):
    """What rows are compared by: -0 is 0, an empty text is missing, blanks around it are none of it."""
    return [(None if age is None else age + 0.0, (zip_ or "").strip() or None) for age, zip_, _ in rows]


@given(people(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_measures_agree_with_naive_twins(rows, counts_people):
    sample, population = rows
    policy = POLICY | ({"unit": "who"} if counts_people else {})
    found = sf.risk(table(sample), policy, population=table(population))
    whose, others = ([row[2] for row in own] if counts_people else None for own in (sample, population))
    groups = naive_risk.people_in_groups(keys(sample), whose)
    in_population = naive_risk.people_in_groups(keys(population), others)
    largest, mean, above = naive_risk.prosecutor(groups)
    assert (found.prosecutor.largest, found.prosecutor.mean) == pytest.approx((float(largest), float(mean)))
    assert list(found.prosecutor.above.values()) == pytest.approx([float(share) for share in above.values()])
    largest, mean, above, marketer = naive_risk.journalist(groups, in_population)
    assert (found.journalist.largest, found.journalist.mean) == pytest.approx((float(largest), float(mean)))
    assert list(found.journalist.above.values()) == pytest.approx([float(share) for share in above.values()])
    assert found.marketer == pytest.approx(float(marketer))
    assert found.n_alone == sum(len(group) == 1 for group in groups.values())
    assert found.n_people == (len({row[2] for row in sample}) if counts_people else None)
    assert (found.n_rows, found.n_groups) == (len(sample), len(groups))


@st.composite
def coded(draw):
    n_rows, n_columns = draw(st.integers(1, 14)), draw(st.integers(1, 5))
    column = st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)
    columns = [np.array(draw(column)) for _ in range(n_columns)]
    person = draw(st.none() | st.lists(st.integers(0, 6), min_size=n_rows, max_size=n_rows).map(np.array))
    return columns, person, draw(st.integers(1, n_columns))


@given(coded())
@settings(max_examples=300, deadline=None)
def test_minimal_sample_uniques_are_those_of_all_subsets(given):
    columns, person, most = given
    found = find_minimal_uniques(columns, most=most, person=person)
    pairs = list(zip(found.row.tolist(), found.columns.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    whose = None if person is None else person.tolist()
    assert set(pairs) == naive_risk.minimal_uniques(rows, most, whose)
