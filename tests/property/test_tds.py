"""Top-down specialization against its naive twin, and what must hold of every grid, on random small tables."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import naive_tds as naive
import numpy as np
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sfumato import recoding
from sfumato.axes import OrderedAxis
from sfumato.cuts import Cuts
from sfumato.encoding import encode_axis
from sfumato.partition import Partition
from sfumato.policy import Output, Policy, TdsOptions
from sfumato.requirement import KAnonymity
from sfumato.schema import Attribute, Kind, Role, Schema
from sfumato.specialization.loop import Candidate, specialize
from sfumato.specialization.tds import BestScore, Labels, partition
from sfumato.tables import open_table
from sfumato.workload import Classify

# ---- random tables ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    rows: list[dict[str, Any]]
    attributes: list[Attribute]
    roots: Mapping[str, naive.Piece]
    k: int
    workload: list[Classify]
    output: Output = Output.LABELS

    @property
    def policy(self) -> Policy:
        others = (Attribute("class", Role.OTHER), Attribute("job", Role.SENSITIVE))
        schema = Schema((*self.attributes, *others))
        return Policy(schema, (KAnonymity(self.k),), tuple(self.workload), TdsOptions(), self.output)

    def table(self, rows: list[dict[str, Any]] | None = None) -> pa.Table:
        rows = self.rows if rows is None else rows
        types = {
            attribute.name: pa.float64() if attribute.kind is Kind.NUMBER else pa.string()
            for attribute in self.policy.schema
        }
        return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})

    def partition(self, rows: list[dict[str, Any]] | None = None) -> Partition:
        return partition(open_table(self.table(rows)), self.policy)

    def twin(self) -> naive.TopDown:
        targets = [
            (names, task.weight)
            for task in self.workload
            for names in ([task.targets] if task.joint else [(name,) for name in task.targets])
        ]
        return naive.TopDown(self.rows, self.roots, self.k, targets)


SHAPES = st.recursive(st.none(), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=9).filter(
    lambda tree: tree is not None
)


def nested(shape: Any, label: str, path: tuple[str, ...], leaves: list[tuple[str, ...]]) -> Any:
    """The shape as a policy spells a tree; the paths of its leaves are added to ``leaves`` from left to right."""
    path = (*path, label)
    if shape is None:
        leaves.append(path)
        return None
    return {f"{label}{i}": nested(below, f"{label}{i}", path, leaves) for i, below in enumerate(shape)}


@st.composite
def cases(draw: Any, *, max_rows: int = 24) -> Case:
    n_rows = draw(st.integers(1, max_rows))
    attributes, roots, columns = [], {}, {}
    for i in range(draw(st.integers(1, 3))):
        name = f"q{i}"
        kind = draw(st.sampled_from(["whole", "real", "tree", "flat"]))
        if kind in ("whole", "real"):
            cells = (
                st.integers(0, 9) if kind == "whole" else st.sampled_from([-1.5, 0.0, 0.1, 0.3, 7.25, 900.0])
            )
            attributes.append(Attribute(name, Role.QUASI_IDENTIFIER, Kind.NUMBER))
            leaves: list[tuple[Any, ...]] = []
        elif kind == "tree":
            leaves = []
            tree = nested(draw(SHAPES), "n", (), leaves)
            attributes.append(Attribute(name, Role.QUASI_IDENTIFIER, hierarchy={"tree": {"n": tree}}))
            cells = st.sampled_from([leaf[-1] for leaf in leaves])
        else:
            attributes.append(Attribute(name, Role.QUASI_IDENTIFIER))
            cells, leaves = st.sampled_from("abcd"), []
        if draw(st.booleans()):
            cells = st.one_of(cells, cells, st.none())
        columns[name] = draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
        if kind == "flat":
            values = sorted({cell for cell in columns[name] if cell is not None})
            leaves = [("*", value) for value in values or ["*"]]  # a hierarchy has at least one leaf
        root = "n" if kind == "tree" else "*"
        missing = [(root, None)] if None in columns[name] else []
        roots[name] = (
            naive.Node((root,), (*leaves, *missing))
            if kind in ("tree", "flat")
            else naive.Interval(None, None)
        )
    for name, cells in (("class", st.sampled_from("xyz")), ("job", st.sampled_from("mn"))):
        columns[name] = draw(st.lists(st.one_of(cells, cells, st.none()), min_size=n_rows, max_size=n_rows))
    workload = draw(
        st.one_of(
            st.just([Classify("class")]),
            st.just([Classify(["class", "job"], joint=True)]),
            st.just([Classify("class", weight=0.3), Classify("job", weight=2)]),
            st.just([Classify(["class", "job"])]),
        )
    )
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    k = draw(st.integers(1, min(5, n_rows)))
    return Case(rows, attributes, roots, k, workload, draw(st.sampled_from(list(Output))))


# ---- what must hold --------------------------------------------------------------------------------


def spelled(cuts: Cuts) -> list[Any]:
    """The cut of each attribute as thresholds, or as the paths of its nodes."""
    return [
        [float(x) for x in cuts.thresholds[a]]
        if isinstance(axis, OrderedAxis)
        else [axis.nodes.path(node) for node in axis.nodes.leaf_nodes]
        for a, axis in enumerate(cuts.axes)
    ]


def spelled_twin(cuts: list[list[naive.Piece]]) -> list[Any]:
    return [
        [piece.high for piece in cut[:-1]]
        if isinstance(cut[0], naive.Interval)
        else [piece.path for piece in cut]
        for cut in cuts
    ]


@settings(max_examples=400, deadline=None)
@given(cases())
def test_the_cuts_are_those_of_the_twin(case: Case):
    found = case.partition()
    twin = case.twin()
    assert spelled(found.recoding) == spelled_twin(twin.run())
    groups = Counter(twin.box(row, twin.cuts) for row in case.rows)
    assert sorted(found.size.tolist()) == sorted(groups.values())
    event(f"{min(found.recoding.n_groups, 5)} groups")


class Noted(BestScore):
    """Notes what is taken: the attribute and the sizes of the parts."""

    def take(self, number: int, candidate: Candidate) -> None:
        super().take(number, candidate)
        codes = self.codes[candidate.piece.axis]
        sizes = [int(((codes >= part.low) & (codes < part.high)).sum()) for part in candidate.parts]
        taken.append((candidate.piece.axis, sizes))


taken: list[tuple[int, list[int]]] = []


@settings(max_examples=250, deadline=None)
@given(cases(max_rows=40).filter(lambda case: case.k > 1))
def test_specializations_come_in_the_order_of_the_twin(case: Case):
    """The order tells more of scores and ties than the cuts that are left in the end."""
    source = open_table(case.table())
    encoded = [encode_axis(source, attribute) for attribute in case.attributes]
    codes = np.stack([column for _domain, column in encoded])
    domains = [domain for domain, _column in encoded]
    taken.clear()
    chooser = Noted(codes, Labels.of(source, case.policy), [domain.n_codes for domain in domains], k=case.k)
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
    assert found.recoding.n_groups == len(found.size)
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
    low, high = found.recoding.box_ends(source)
    for ends, given_ends in zip(found.recoding.ends(found.leaf), (low, high), strict=True):
        assert np.array_equal(
            np.repeat(ends, found.size, axis=0), given_ends[found.row_numbers], equal_nan=True
        )


@settings(max_examples=60, deadline=None)
@given(cases(), cases())
def test_cuts_read_back_from_disk_recode_any_rows_as_before(case: Case, other: Case):
    cuts = case.partition().recoding
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
        again = recoding.read(Path(folder), case.policy.schema)
    assert isinstance(again, Cuts)
    assert (spelled(again), again.n_groups, again.output) == (spelled(cuts), cuts.n_groups, cuts.output)
    table = case.table(strangers + case.rows)
    assert again.apply(table).equals(cuts.apply(table))


@settings(max_examples=60, deadline=None)
@given(cases())
def test_pieces_are_the_labels_that_are_published_with_their_ends(case: Case):
    found = case.partition()
    for a, axis in enumerate(found.recoding.axes):
        labels, low, high = found.recoding.pieces(a)
        if isinstance(axis, OrderedAxis):
            assert len(labels) == len(low) == len(high) == len(found.recoding.thresholds[a]) + 1
        if case.output is not Output.BOUNDS or not isinstance(axis, OrderedAxis):
            published = set(found.columns()[axis.attribute.name].to_pylist())
            assert published <= set(labels.to_pylist())
