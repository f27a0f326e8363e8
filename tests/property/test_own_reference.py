"""Groups that are compared with the published rows where some are left out: rounds undo what a naive twin undoes.

A group that is close to the whole table need not be close to what is published.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import mondrian_cases as published
import pyarrow as pa
import pytest
from blocks import read_by
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st
from mondrian_cases import Case, cut
from naive_mondrian import Mondrian
from naive_people import MondrianOfPeople, people_satisfy
from rest_tables import random_table
from tree_runs import Groups, ordered, scan, with_numbers
from unit_tables import people_table

import sfumato as sf
from sfumato.engines.disk import DiskEngine
from sfumato.engines.engine import Resources
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Engine, Room
from sfumato.methods.groups import find_chunks
from sfumato.methods.mondrian import tree_run
from sfumato.methods.mondrian.own_reference import undo_splits
from sfumato.methods.mondrian.taken_back import Undone
from sfumato.methods.mondrian.tree_run import TreeRun
from sfumato.policy.document import Policy
from sfumato.policy.requirements import KAnonymity, TCloseness
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.policy.suppress import Suppress
from sfumato.policy.unit import Unit
from sfumato.randomness import seeded
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill

SHARES = st.sampled_from([Fraction(share, 100) for share in (20, 40, 60, 100)])
CLOSE = st.builds(TCloseness, st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5]), of=st.just("disease"))
ORDERED = st.builds(
    TCloseness, st.sampled_from([0.1, 0.2, 0.3]), of=st.just("salary"), distance=st.just("ordered")
)
FEW = Room(1 << 30, 6, 200)
"""More than six rows make a node whose split is chosen from counts."""
WHO = "who"


def grown(table: Any, policy: Policy, engine: Engine) -> tuple[Groups, Undone]:
    """The groups of a run after all rounds, and what these undid."""

    def start(**options: Any) -> tuple[TreeRun, Engine]:
        return TreeRun(engine, table, policy, random=seeded(1), **options), engine

    undone = undo_splits(start, table, policy)
    found: dict[Any, list[int]] = {}
    run, _ = start(undone=undone)
    for chunk in find_chunks(run, engine):
        boxes = zip(
            published.boxes_of(chunk.groups), published.members_of(chunk.groups), strict=True
        )
        names = None if chunk.payload is None else chunk.payload["row"].to_numpy()
        for box, members in boxes:
            numbers = list(members) if names is None else names[list(members)].tolist()
            found.setdefault(box, []).extend(numbers)
    return ordered(found.items()), undone


def grown_here(table: pa.Table, policy: Policy, room: Room | None = None) -> tuple[Groups, Undone]:
    engine = MemoryEngine(room, threads=1)
    return grown(scan(open_table(table), policy, engine.room), policy, engine)


def grown_on_disk(table: pa.Table, policy: Policy, room: Room) -> Groups:
    with pytest.MonkeyPatch.context() as patch, Spill() as spill:
        read_by(patch, 7)
        encoded = scan(open_table(table), policy, room, Resources(spill=spill, memory=1 << 24))
        engine = DiskEngine(spill, encoded.layout, room, writer_bytes=1 << 12, threads=1)
        return grown(encoded, policy, engine)[0]


def twin_of(case: Case, people: list[int] | None) -> Mondrian:
    given_to_all: Any = (case.rows, [quasi.axis for quasi in case.quasi], case.requirements, case.workload)
    options: Any = {
        "cut": cut, "split_only": case.options.split_only, "standardize": case.options.standardize,
        "median_below_gain": case.options.median_below_gain,
    }  # fmt: skip
    if people is None:
        return Mondrian(*given_to_all, **options)
    return MondrianOfPeople(people, *given_to_all, **options)


@settings(max_examples=60, phases=(Phase.generate,))
@given(st.data(), SHARES, st.booleans())
def test_the_rounds_undo_what_the_naive_twin_undoes(
    data: st.DataObject, share: Fraction, counts_people: bool,  # noqa: FBT001
) -> None:
    case = data.draw(published.cases(workloads=st.just([])))
    case = case.asking([KAnonymity(data.draw(st.integers(1, 3))), data.draw(st.one_of(CLOSE, CLOSE, ORDERED))])
    table, policy = with_numbers(case, Suppress(share))
    people, everyone = None, range(len(case.rows))
    if len(everyone) < 2:
        return
    if counts_people:
        people = data.draw(st.lists(st.integers(0, 9), min_size=len(everyone), max_size=len(everyone)))
        if not all(people_satisfy(everyone, case.rows, people, item) for item in case.requirements):
            return
        table = table.append_column(WHO, pa.array([f"p{person}" for person in people]))
        schema = Schema((*policy.schema, Attribute(WHO, Role.IDENTIFIER)))
        policy = replace(policy, schema=schema, unit=Unit(WHO))
    elif not case.is_reachable():
        return
    twin = twin_of(case, people)
    twin.share = share
    root = twin.grow()
    n_rounds = twin.undo_far_groups(root)
    event(f"rounds: {n_rounds}")
    expected = ordered((tuple(leaf.box), leaf.members) for leaf in root.leaves())
    for room in (None, FEW):
        assert grown_here(table, policy, room)[0] == expected
