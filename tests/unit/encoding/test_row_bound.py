"""At most so many rows of each person: which ones, in how many passes, and how often each."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato import randomness
from sfumato.encoding import row_bound
from sfumato.encoding.row_bound import choose_rows
from sfumato.policy.schema import Attribute
from sfumato.table.opening import open_table

WHO = Attribute("who", role="identifier")


def choose(people, most, seed=1, memory=None):
    """Which rows are kept, with keys that depend on a seed and the row alone."""
    table = open_table(pa.table({"who": pa.array(people, pa.string())}), may_be_empty=True)
    keys = lambda rows: randomness.splitmix64(seed, rows)  # noqa: E731
    return choose_rows(table, WHO, most, keys, memory=memory).tolist()


def choose_by_hand(people, most, seed=1):
    """A naive twin: sort each person's rows by their keys."""
    keys = randomness.splitmix64(seed, np.arange(len(people)))
    rows = defaultdict(list)
    for row, person in enumerate(people):
        rows[person or ("nobody", row)].append(row)
    kept = {row for own in rows.values() for row in sorted(own, key=lambda row: keys[row])[:most]}
    return [row in kept for row in range(len(people))]


@given(
    st.lists(st.sampled_from([None, "", "a", "b", "c", "d"]), max_size=40),
    st.integers(1, 4),
    st.integers(0, 1000),
)
def test_a_person_keeps_the_rows_with_the_least_keys(people, most, seed):
    assert choose(people, most, seed) == choose_by_hand(people, most, seed)


def test_little_memory_takes_more_passes_and_chooses_the_same(monkeypatch):
    monkeypatch.setattr(row_bound, "LEAST_ROWS", 8)
    random = np.random.default_rng(5)
    people = [f"p{i}" for i in random.integers(0, 300, 2000)]
    opened: list[int] = []
    monkeypatch.setattr(row_bound, "_read_people", counting(opened, row_bound._read_people))
    expected = choose(people, 3)
    assert len(opened) == 1
    assert choose(people, 3, memory=8 * row_bound.BYTES_PER_ROW) == expected == choose_by_hand(people, 3)
    assert len(opened) > 10


def counting(calls, real):
    def read(*arguments):
        calls.append(1)
        return real(*arguments)

    return read


def test_one_person_with_more_rows_than_fit_is_read_in_one_pass(monkeypatch):
    monkeypatch.setattr(row_bound, "LEAST_ROWS", 8)
    people = ["a"] * 500 + ["b"] * 3
    assert choose(people, 2, memory=1) == choose_by_hand(people, 2)


def test_a_table_without_rows_keeps_none():
    assert choose([], 2) == []


def test_each_row_of_a_person_is_as_likely_as_the_others():
    """At a false alarm rate of 1e-6; and the first rows alone are found out."""
    people = ["a", "b", "a", "a", "a", "b", "a", "a"]
    places = [row for row, person in enumerate(people) if person == "a"]
    drawn: Counter[int] = Counter()
    for seed in np.random.default_rng(11).integers(1 << 62, size=1000).tolist():
        kept = choose(people, 2, seed)
        drawn.update(row for row in places if kept[row])
    expected = 1000 * 2 / len(places)
    # two of six without replacement: less spread than the multinomial law, so the test is on the safe side
    assert chisquare([drawn[row] for row in places], [expected] * len(places)).pvalue > 1e-6
    first = [1000 if row in places[:2] else 0 for row in places]
    assert chisquare(first, [expected] * len(places)).pvalue < 1e-6


def test_which_rows_of_a_person_are_kept_depends_on_no_other_person():
    """The coupling of the proof: with the same keys, another person changes nothing for the others."""
    people = ["a", "b", "a", "b", "a", "c", "b", "a"]
    without = [None if person == "b" else person for person in people]
    kept, kept_without = choose(people, 2), choose(without, 2)
    assert [k for k, person in zip(kept, people, strict=True) if person != "b"] == [
        k for k, person in zip(kept_without, people, strict=True) if person != "b"
    ]
