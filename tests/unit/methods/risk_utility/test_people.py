"""People with several rows: joins, and what they count for."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.encoding.domain import TreeDomain
from sfumato.errors import InputError
from sfumato.methods.risk_utility import people
from sfumato.methods.risk_utility.problem import problem_of
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.schema import Attribute, Role

PLACES = Hierarchy.from_tree({"*": {"North": ["a", "b"], "c": None}})
A, B, C = range(3)


def problem(rows, person, n_columns=1):
    """Rows of places as their own side table."""
    domain = TreeDomain(Attribute("place", Role.QUASI_IDENTIFIER), PLACES, has_missing=False)
    codes = np.array(rows, dtype=np.uint32).reshape(-1, n_columns)
    return problem_of([domain] * n_columns, codes, person=np.array(person))


def joins_of(found):
    labels = [
        tuple(
            PLACES.labels[node - root] for node, root in zip(join, found.lattice.root.tolist(), strict=True)
        )
        for join in found.joins.node.tolist()
    ]
    return dict(zip(labels, found.joins.n_people.tolist(), strict=True))


def test_two_rows_of_a_person_count_one_less_where_both_are_covered():
    found = problem([A, B, B, C], [0, 0, 1, 1])
    assert found.side_count.tolist() == [1, 2, 1]
    assert joins_of(found) == {("North",): -1, ("*",): -1}
    assert (found.n_side, found.people.n_several) == (2, 2)


def test_a_row_that_a_person_has_twice_counts_once_and_needs_no_join():
    found = problem([A, A, C], [0, 0, 1])
    assert (found.side_count.tolist(), joins_of(found), found.n_side) == ([1, 1], {}, 2)
    assert found.people.n_several == 0


def test_a_box_that_covers_two_joins_takes_back_what_both_took():
    """(a, a), (b, a), (a, b): the box (North, North) covers all three rows, and both joins of two."""
    found = problem([(A, A), (B, A), (A, B)], [0, 0, 0], n_columns=2)
    assert joins_of(found) == {("North", "a"): -1, ("a", "North"): -1}  # 3 - 2 = 1 already
    found = problem([(A, A), (B, B), (C, C)], [0, 0, 0], n_columns=2)
    assert joins_of(found) == {("North", "North"): -1, ("*", "*"): -1}


def test_too_many_joins_of_one_person_are_refused(monkeypatch):
    monkeypatch.setattr(people, "MOST_JOINS", 3)
    with pytest.raises(InputError, match="too many different rows"):
        problem([(A, A), (B, A), (C, B)], [0, 0, 0], n_columns=2)
