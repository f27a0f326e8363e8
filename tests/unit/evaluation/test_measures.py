"""General measures, each against its definition written out as a loop."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.evaluation import measures

groups_and_labels = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=60)
groups_and_numbers = st.lists(st.tuples(st.integers(0, 5), st.floats(-1e6, 1e6)), min_size=1, max_size=60)


def by_group(pairs):
    found = defaultdict(list)
    for group, value in pairs:
        found[group].append(value)
    return list(found.values())


@given(groups_and_labels)
def test_conditional_entropy_is_equation_1(pairs):
    expected = 0.0
    for labels in by_group(pairs):
        for count in Counter(labels).values():
            share = count / len(labels)
            expected -= len(labels) / len(pairs) * share * math.log2(share)
    group, label = map(np.array, zip(*pairs, strict=True))
    assert measures.conditional_entropy(group, label) == pytest.approx(expected, abs=1e-12)


@given(groups_and_numbers)
def test_mean_squared_error_is_equation_2(pairs):
    expected = sum((x - sum(xs) / len(xs)) ** 2 for xs in by_group(pairs) for x in xs) / len(pairs)
    group, values = (np.array(side) for side in zip(*pairs, strict=True))
    found = measures.mean_squared_error(group, values.astype(np.float64))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-3)


def test_missing_numbers_do_not_count_as_errors():
    group, values = np.array([0, 0, 0, 1]), np.array([1.0, 3.0, np.nan, np.nan])
    assert measures.mean_squared_error(group, values) == 1.0
    assert measures.mean_squared_error(group, np.full(4, np.nan)) == 0.0


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_sizes_of_groups(sizes):
    assert measures.average_group_size(np.array(sizes)) == pytest.approx(sum(sizes) / len(sizes))
    assert measures.discernibility(np.array(sizes)) == sum(n * n for n in sizes)
