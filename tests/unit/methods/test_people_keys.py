"""Keys of people and parts, beside sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.methods.people_keys import PeopleKeys, rows_with_enough_people
from sfumato.table.spill import Spill

ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=60)


@given(ROWS, ROWS, st.lists(st.integers(-1, 2), min_size=5, max_size=5), st.sampled_from([0, 200, 10**6]))
@settings(max_examples=60)
def test_parts_and_parts_that_are_joined_have_the_people_of_sets(rows, more, group_of, room):
    with Spill() as spill:
        states = [PeopleKeys(7, 5, room=room, spill=spill) for _ in range(2)]
        for state, own in zip(states, (rows, more), strict=True):
            for unit, part in own:
                state.add(np.array([unit], dtype=np.uint32), np.array([part]))
        states[0].merge(states[1])
        pairs = {*rows, *more}
        assert states[0].count().tolist() == [sum(part == p for _, part in pairs) for p in range(5)]
        joined = {(unit, group_of[part]) for unit, part in pairs if group_of[part] >= 0}
        found = states[0].count(np.array(group_of))
        assert found.tolist() == [sum(group == g for _, group in joined) for g in range(len(found))]
        for state in states:
            state.discard()


@pytest.mark.parametrize(("least", "enough"), [(1, 1), (2, 6), (3, 8), (4, 9)])
def test_so_many_rows_have_enough_people_whoever_they_are(least, enough):
    assert rows_with_enough_people(np.array([1, 5, 2, 1]), least) == enough
