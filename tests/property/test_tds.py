"""Top-down specialization against its naive twin, and what must hold of every grid, on random small tables."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import naive_tds as naive
import numpy as np
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tds_cases import Case, cases, chooser_in_memory, cuts_of, noting, people_cases, spelled

from sfumato.methods.specialization.loop import specialize
from sfumato.policy.output import Output
from sfumato.policy.schema import Kind
from sfumato.recoding import tree
from sfumato.recoding.axis import OrderedAxis
from sfumato.recoding.cuts import Cuts
from sfumato.table.opening import open_table

# ---- what must hold --------------------------------------------------------------------------------


def spelled_twin(cuts: list[list[naive.Piece]]) -> list[Any]:
    return [
        [piece.high for piece in cut[:-1]]
        if isinstance(cut[0], naive.Interval)
        else [piece.path for piece in cut]
        for cut in cuts
    ]


@settings(max_examples=200, deadline=None)
@given(cases())
def test_the_cuts_are_those_of_the_twin(case: Case):
    found = case.partition()
    twin = case.twin()
    assert spelled(found.recoding) == spelled_twin(twin.run())
    groups = Counter(twin.box(row, twin.cuts) for row in case.rows)
    assert sorted(found.size.tolist()) == sorted(groups.values())
    event(f"{min(cuts_of(found).n_groups, 5)} groups")


@settings(max_examples=120, deadline=None)
@given(cases(max_rows=40).filter(lambda case: case.k > 1))
def test_specializations_come_in_the_order_of_the_twin(case: Case):
    """The order tells more of scores and ties than the cuts that are left in the end."""
    chooser, codes, domains = chooser_in_memory(case.table(), case.policy)
    taken = noting(chooser, codes)
    specialize(domains, chooser)
    twin = case.twin()
    twin.run()
    assert taken == twin.taken
    event(f"{min(len(taken), 6)} specializations")


@settings(max_examples=100, deadline=None)
@given(cases())
def test_every_group_has_k_rows_and_no_valid_specialization_is_left(case: Case):
    found = case.partition()
    assert found.size.min() >= case.k
    assert found.size.sum() == len(case.rows)
    assert sorted(found.row_numbers.tolist()) == list(range(len(case.rows)))
    assert cuts_of(found).n_groups == len(found.size)
    twin = case.twin()
    twin.run()
    assert spelled(found.recoding) == spelled_twin(twin.cuts)
    assert not any(map(twin.is_valid, twin.candidates()))


@settings(max_examples=100, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(case: Case, shuffler: random.Random):
    found = case.partition()
    rows = list(case.rows)
    shuffler.shuffle(rows)
    again = case.partition(rows)
    assert spelled(again.recoding) == spelled(found.recoding)
    assert again.size.tolist() == found.size.tolist()
    assert again.leaf.tolist() == found.leaf.tolist()


@settings(max_examples=100, deadline=None)
@given(cases())
def test_apply_gives_the_fitted_rows_what_the_groups_publish(case: Case):
    found = case.partition()
    source = open_table(case.table())
    published = pa.table(found.columns())
    order = pa.array(found.row_numbers)
    applied = found.recoding.apply_to(source).take(order)
    for name in published.column_names:
        assert applied.column(name).to_pylist() == published.column(name).to_pylist()
    low, high, missing = found.recoding.box_ends(source)
    for ends, given_ends in zip(found.recoding.ends(found.leaf), (low, high, missing), strict=True):
        assert np.array_equal(
            np.repeat(ends, found.size, axis=0), given_ends[found.row_numbers], equal_nan=True
        )


@settings(max_examples=60, deadline=None)
@given(cases(), cases())
def test_cuts_read_back_from_disk_recode_any_rows_as_before(case: Case, other: Case):
    cuts = cuts_of(case.partition())
    strangers = [
        {name: row.get(name) for name in case.policy.schema.names()}
        for row in other.rows
        if all(
            isinstance(row.get(attribute.name), str) == (attribute.kind is Kind.CATEGORY)
            for attribute in case.attributes
        )
    ]
    with tempfile.TemporaryDirectory() as folder:
        cuts.write(Path(folder))
        again = tree.read(Path(folder), case.policy.schema)
    assert isinstance(again, Cuts)
    assert (spelled(again), again.n_groups, again.output) == (spelled(cuts), cuts.n_groups, cuts.output)
    table = case.table(strangers + case.rows)
    assert again.apply(table).equals(cuts.apply(table))


@settings(max_examples=60, deadline=None)
@given(cases())
def test_pieces_are_the_labels_that_are_published_with_their_ends(case: Case):
    found = case.partition()
    for a, axis in enumerate(found.recoding.axes):
        labels, (low, high, _) = found.recoding.pieces(a)
        if isinstance(axis, OrderedAxis):
            assert len(labels) == len(low) == len(high) == len(cuts_of(found).thresholds[a]) + 1
        if case.output is not Output.BOUNDS or not isinstance(axis, OrderedAxis):
            published = set(found.columns()[axis.attribute.name].to_pylist())
            assert published <= set(labels.to_pylist())


# ---- people, and rows that are left out --------------------------------------------------------------


def groups_of(found: Any) -> set[frozenset[int]]:
    """The groups as sets of rows."""
    return {frozenset(own.tolist()) for own in np.split(found.row_numbers, np.cumsum(found.size)[:-1])}


def standing(twin: naive.TopDown) -> set[frozenset[int]]:
    """Those groups of the twin that are published."""
    return {frozenset(group) for group in twin.groups(twin.cuts) if twin.stands(group)}


@settings(max_examples=200, deadline=None)
@given(people_cases())
def test_groups_of_people_and_what_is_left_out_are_those_of_the_twin(case: Case):
    found, twin = case.grow(), case.twin()
    twin.run()
    assert groups_of(found) == standing(twin)
    assert cuts_of(found).n_groups == len(found.size)
    n_left = len(case.rows) - int(found.size.sum())
    event(f"{min(n_left, 3)} rows left out, people count: {case.people is not None}")
    event(f"{min(len(found.size), 4)} groups")


@settings(max_examples=100, deadline=None)
@given(people_cases(leaves_rows_out=True))
def test_the_better_of_two_runs_loses_no_more_than_allowed_and_publishes_what_its_recoding_does(case: Case):
    found = case.partition()
    assert groups_of(found) in [groups_of(case.grow()), groups_of(case.grow(keeps_all=True))]
    assert case.share is not None
    assert len(case.rows) - found.size.sum() <= case.share * len(case.rows)
    source, published = open_table(case.table()), pa.table(found.columns())
    is_out = found.recoding.find_left_out(source)
    assert not is_out[found.row_numbers].any()
    stays = source.take(np.sort(found.row_numbers))
    place = np.argsort(np.argsort(found.row_numbers))
    applied = found.recoding.apply_to(stays).take(pa.array(place))
    for name in published.column_names:
        assert applied.column(name).to_pylist() == published.column(name).to_pylist()
    assert found.recoding.apply_to(source).num_rows == (~is_out).sum()
    with tempfile.TemporaryDirectory() as folder:
        cuts_of(found).write(Path(folder))
        again = tree.read(Path(folder), case.policy.schema)
        assert again.apply(case.table()).equals(found.recoding.apply(case.table()))


@settings(max_examples=100, deadline=None)
@given(people_cases(leaves_rows_out=True))
def test_a_recoding_shows_nothing_that_no_published_group_has(case: Case):
    found = case.grow()
    for a in range(len(case.attributes)):
        labels, ends = found.recoding.pieces(a)
        published = found.recoding.ends(found.leaf).along(a)
        shown, known = (
            {str(end) for end in zip(*map(np.ndarray.tolist, own), strict=True)} for own in (published, ends)
        )
        assert shown == known
        assert len(labels) == len(shown)
