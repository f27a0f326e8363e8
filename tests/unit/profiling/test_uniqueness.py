"""Rows that stand alone, counted beside a naive count, and the ranking of columns by what they add to them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.profiling import uniqueness
from sfumato.profiling.facts import measure
from sfumato.profiling.uniqueness import NOT_RANKED, count_alone, rank_columns, sample_rows
from sfumato.table.opening import open_table

NAMES = "abcdefg"


def facts_of(columns):
    source = open_table(pa.table(columns))
    return [measure(source, name) for name in columns]


def naive_alone(columns, names):
    rows = list(zip(*(columns[name] for name in names), strict=True))
    return sum(count == 1 for count in Counter(rows).values())


tables = st.integers(1, 40).flatmap(
    lambda n: st.dictionaries(
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(["u", "v", "w", "x", None]), min_size=n, max_size=n),
        min_size=1,
    )
)


@given(tables)
@settings(max_examples=100)
def test_rows_that_stand_alone_are_counted_as_a_naive_count_does(columns):
    facts = facts_of(columns)
    for i in range(len(facts)):
        some = facts[: i + 1]
        assert count_alone(some).n_rows == naive_alone(columns, [each.name for each in some])


@given(tables, st.integers(0, 4))
@settings(max_examples=100)
def test_the_ranking_counts_each_column_beside_the_known_ones_and_then_the_worst_more(columns, n_known):
    facts = facts_of(columns)
    known, others = facts[:n_known], facts[n_known:]
    ranking = rank_columns(known, others)
    if not others:
        known, others = [], known
    names = [each.name for each in known]
    alone = {each.name: naive_alone(columns, [*names, each.name]) for each in others}
    assert ranking.known == tuple(names)
    if names:
        assert ranking.n_alone == naive_alone(columns, names)
    assert [column.one for column in ranking.added] == sorted(alone.values(), reverse=True)
    assert sorted(ranking.names) == sorted(alone)
    for column in ranking.added:
        rest = [name for name in alone if name != column.name]
        assert column.one == alone[column.name]
        pairs = [naive_alone(columns, [*names, column.name, more]) for more in rest]
        assert column.two == max(pairs, default=column.one)
        assert column.one <= column.two <= column.three
    assert ranking.n_rows == len(next(iter(columns.values())))


def test_what_the_known_columns_single_out_stands_above():
    columns = {"a": ["u", "u", "v", "w"], "b": ["u", "v", "v", "v"]}
    known, other = facts_of(columns)
    ranking = rank_columns([known], [other])
    assert (ranking.n_alone, ranking.n_rows) == (2, 4)
    assert [(column.name, column.one, column.two, column.three) for column in ranking.added] == [
        ("b", 4, 4, 4)
    ]


def test_many_columns_are_shown_up_to_a_number_and_the_rest_named():
    columns = {f"c{i:02}": [str(j % (i + 2)) for j in range(97)] for i in range(20)}
    ranking = rank_columns([], facts_of(columns))
    assert len(ranking.added) == uniqueness.MOST_SHOWN
    assert len(ranking.rest) == 20 - uniqueness.MOST_SHOWN
    least = min(column.one for column in ranking.added)
    assert all(naive_alone(columns, [name]) <= least for name in ranking.rest)


def test_nothing_is_ranked_where_no_column_is_published():
    assert rank_columns([], []) == NOT_RANKED


def test_a_larger_table_is_counted_in_a_sample_that_is_always_the_same(monkeypatch):
    n = 1_000
    facts = facts_of({"a": [str(i % 7) for i in range(n)], "b": [str(i % 900) for i in range(n)]})
    assert sample_rows(facts) == tuple(facts)
    monkeypatch.setattr(uniqueness, "MOST_COUNTED", 100)
    some = sample_rows(facts)
    assert [each.n_rows for each in some] == [100, 100]
    assert np.array_equal(some[0].codes, sample_rows(facts)[0].codes)
    a, b = some
    pairs = set(zip(facts[0].codes.tolist(), facts[1].codes.tolist(), strict=True))
    assert (
        set(zip(a.codes.tolist(), b.codes.tolist(), strict=True)) <= pairs
    )  # cells of one row stay together
    assert count_alone([a, b]).n_rows / 100 >= count_alone(facts).n_rows / n  # more stand alone in fewer rows
