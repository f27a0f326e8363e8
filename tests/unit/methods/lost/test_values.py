"""How widely values must be told, against looking at all ranges and nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.methods.lost.values import OrderedValues, TreeValues
from sfumato.policy.hierarchy.tree import Hierarchy

NOBODY = np.zeros(0, dtype=np.int64)


@settings(max_examples=100, deadline=None)
@given(
    counted=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), min_size=1, max_size=12, unique_by=lambda x: x[0]),
    k=st.integers(1, 12),
    n_missing=st.none() | st.integers(1, 4),
)  # fmt: skip
def test_the_narrowest_range_with_enough_rows_is_that_of_all_ranges(counted, k, n_missing):
    places, counts = map(list, zip(*sorted(counted), strict=True))
    at = np.array(places) / 50
    has_missing = int(n_missing is not None)
    values = OrderedValues(
        NOBODY,
        np.array([n_missing] * has_missing + counts),
        np.append(np.zeros(has_missing), at),
        has_missing,
    )
    found = values.least_share(k).tolist()
    for j in range(len(places)):
        fitting = [
            at[b] - at[a] for a in range(j + 1) for b in range(j, len(places)) if sum(counts[a : b + 1]) >= k
        ]
        assert found[j + has_missing] == pytest.approx(min(fitting, default=1.0))
    if n_missing is not None:
        assert found[0] == float(n_missing < k)


def test_a_leaf_is_told_by_its_lowest_node_with_enough_rows():
    tree = Hierarchy.from_tree({"*": {"North": {"Coast": ["a", "b"], "c": None}, "d": None}})
    values = TreeValues(NOBODY, np.array([1, 1, 3, 5]), tree)
    assert values.least_share(2).tolist() == [0.5, 0.5, 0.0, 0.0]
    assert values.least_share(4).tolist() == [0.75, 0.75, 0.75, 0.0]
    assert values.least_share(100).tolist() == [1.0] * 4


def test_the_parts_of_a_group_are_the_children_of_its_lowest_common_node():
    tree = Hierarchy.from_tree({"*": {"North": {"Coast": ["a", "b"], "c": None}, "d": None}})
    values = TreeValues(NOBODY, np.array([1, 1, 1, 1]), tree)
    first, last = np.array([0, 0, 0]), np.array([2, 2, 2])
    parts = values.part_of(first, last, np.array([0, 1, 2]))
    assert [tree.labels[node] for node in parts.tolist()] == ["Coast", "Coast", "c"]
    assert values.share_between(np.array([0, 0, 1]), np.array([1, 3, 1])).tolist() == [0.5, 1.0, 0.0]
