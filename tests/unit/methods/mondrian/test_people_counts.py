"""People of parts, counted by keys block by block, beside sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from growing import UncheckedPolicy, prepare_by
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_people import people_satisfy

from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Block
from sfumato.engines.spark.replies import pack, unpack
from sfumato.engines.start import scan_table
from sfumato.errors import InputError, PromiseError
from sfumato.methods.mondrian import people_counts
from sfumato.methods.mondrian.people_counts import AxisParts, Candidate, PeopleAsker, PeoplePlan
from sfumato.methods.people import PeopleMeter, ReachedFigures
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.requirements import EntropyDiversity, KAnonymity, TCloseness, VarianceDiversity
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.unit import Unit
from sfumato.table.opening import open_table
from sfumato.table.spill import SharedSpill, Spill

SCHEMA = Schema(
    (
        Attribute("who", Role.IDENTIFIER),
        Attribute("x", Role.QUASI_IDENTIFIER, Kind.NUMBER),
        Attribute("ill", Role.SENSITIVE),
        Attribute("pay", Role.SENSITIVE, Kind.NUMBER),
    )
)
ASKED = [
    KAnonymity(2),
    EntropyDiversity(1.5, of="ill"),
    VarianceDiversity(0.25, of="pay"),
    TCloseness(0.4, of="ill"),
]
CELLS = st.tuples(
    st.integers(0, 6), st.integers(0, 5), st.sampled_from("abc"), st.one_of(st.integers(0, 3), st.none())
)


class Prepared:
    """A table of people with the codes of its rows, and who asks for them."""

    def __init__(self, cells: list[Any], asked: list[Any]) -> None:
        who, x, ill, pay = zip(*cells, strict=True)
        table = pa.table(
            {"who": [f"p{n}" for n in who], "x": x, "ill": ill, "pay": pa.array(pay, pa.int64())}
        )
        policy = UncheckedPolicy(SCHEMA, tuple(asked), (), MondrianOptions(), unit=Unit("who"))
        self.source = open_table(table)
        self.problem = prepare_by(policy, self.source, threads=1)
        encoded = scan_table(self.source, policy)
        self.codes = np.ascontiguousarray(MemoryEngine().load(encoded).rows)
        self.meter = PeopleMeter.of(encoded.columns, asked)
        self.asker = PeopleAsker(
            self.problem.rules,
            (*(domain.n_codes - 1 for domain in encoded.domains), *encoded.columns.greatest),
            len(cells),
        )

    def state(self, plan: PeoplePlan, *, room: int = 1 << 40, block: int = 3, spill: Any = None) -> Any:
        """What is counted in blocks, by two states that are merged; one of them comes from another machine."""
        states = [plan.new(room, spill) for _ in range(2)]
        for i, start in enumerate(range(0, len(self.codes), block)):
            states[i % 2].add(Block(self.codes[start : start + block], None))
        states[0].merge(unpack(pack(states[1], spill.folder).data, spill.folder) if spill else states[1])
        states[1].discard()
        return states[0]

    def answer(self, plan: PeoplePlan) -> Any:
        """What is told of that."""
        return plan.answer(self.state(plan))


@given(st.lists(CELLS, min_size=1, max_size=20), st.data())
@settings(max_examples=80)
def test_parts_and_parts_that_are_joined_hold_as_sets_say(cells, data):
    rows = [dict(zip(("who", "x", "ill", "pay"), cell, strict=True)) for cell in cells]
    people = [row["who"] for row in rows]
    everyone = range(len(rows))
    asked = [item for item in ASKED if people_satisfy(everyone, rows, people, item)]
    if not asked:
        return
    case = Prepared(cells, asked)
    edges = np.array(sorted(data.draw(st.sets(st.integers(0, 5), max_size=3))), dtype=np.int64)
    parts = AxisParts(0, edges, np.arange(len(edges) + 1))
    part_of_row = np.searchsorted(edges, case.codes[:, 0], side="left")
    with Spill() as spill:
        room = data.draw(st.sampled_from([0, 1 << 30]))
        found = case.state(case.asker.plan(parts), room=room, spill=SharedSpill(spill.folder))
        joined = np.array(
            data.draw(st.lists(st.integers(-1, 1), min_size=len(edges) + 1, max_size=len(edges) + 1))
        )
        for group_of in (None, joined):
            groups = part_of_row if group_of is None else group_of[part_of_row]
            holds = found.describe(0, group_of).hold(case.problem.rules)
            for group, own in enumerate(holds.tolist()):
                members = np.flatnonzero(groups == group).tolist()
                expected = bool(members) and all(
                    people_satisfy(members, rows, people, item) for item in asked
                )
                assert own == expected
        found.discard()


@given(st.lists(CELLS, min_size=4, max_size=20))
@settings(max_examples=60)
def test_a_group_that_was_counted_reaches_what_it_reaches_at_hand(cells):
    rows = [dict(zip(("who", "x", "ill", "pay"), cell, strict=True)) for cell in cells]
    people = [row["who"] for row in rows]
    asked = [item for item in ASKED if people_satisfy(range(len(rows)), rows, people, item)]
    if not asked:
        return
    case = Prepared(cells, asked)
    told = case.answer(case.asker.plan(AxisParts.whole()))
    counted = case.meter.measure_counts(told.n_people, told.values, told.moments)
    groups = type("Groups", (), {"size": np.array([len(rows)]), "row_numbers": np.arange(len(rows))})
    loaded = type("Part", (), {"rows": case.codes, "numbers": None})
    at_hand = case.meter.measure(case.meter.look_at(loaded), groups)
    assert at_hand.n_groups == 1
    assert counted == pytest.approx(at_hand.achieved, rel=1e-12)


def run(asking: Any, case: Prepared) -> tuple[Any, int]:
    """What is found, and in how many passes."""
    passes = 0
    try:
        plan = next(asking)
        while True:
            passes += 1
            plan = asking.send(case.answer(plan))
    except StopIteration as done:
        return done.value, passes


def test_the_first_candidate_that_holds_is_taken_and_no_more_are_counted_than_needed():
    """Twelve people with one row each, and one with twenty who has x = 0."""
    cells = [(who, 1 + who % 5, "a", 0) for who in range(12)] + [(99, 0, "a", 0)] * 20
    case = Prepared(cells, [KAnonymity(3)])

    def two(code: int) -> Candidate:
        left = int((case.codes[:, 0] <= code).sum())
        return Candidate(AxisParts(0, np.array([code]), np.arange(2)), np.array([left, len(cells) - left]))

    fails, holds = two(0), two(2)
    assert run(case.asker.first_that_holds([holds, fails]), case) == (0, 1)
    assert run(case.asker.first_that_holds([fails] * 9 + [holds]), case) == (9, 3)
    assert run(case.asker.first_that_holds([fails] * 3), case) == (None, 2)
    known = Candidate(None, np.zeros(0, dtype=np.int64))
    assert run(case.asker.first_that_holds([known, holds]), case) == (0, 0)
    assert run(case.asker.first_that_holds([fails, known, holds]), case) == (1, 2 - 1)
    large = Candidate(
        fails.parts, np.array([23, 23])
    )  # the two busiest have 21 rows: 22 are those of three people
    assert run(case.asker.first_that_holds([large]), case) == (0, 0)


def test_figures_that_are_not_enough_are_a_broken_promise():
    case = Prepared([(who, who % 5, "ab"[who % 2], who % 4) for who in range(9)], [KAnonymity(4)])
    assert case.meter.join(
        [ReachedFigures.of((4.0,), np.array([4, 5])), ReachedFigures.of((7.0,), np.array([7]))]
    ).achieved == (4.0,)
    with pytest.raises(
        PromiseError, match="4-anonymity does not hold of people: the smallest group has 3 people"
    ):
        case.meter.join(
            [ReachedFigures.of((4.0,), np.array([4, 5])), ReachedFigures.of((3.0,), np.array([3]))]
        )


def test_more_pairs_than_numbers_are_refused(monkeypatch):
    case = Prepared([(who, who % 5, "ab"[who % 2], who % 4) for who in range(9)], [KAnonymity(2)])
    monkeypatch.setattr(people_counts, "LARGEST_KEY", 8)
    with pytest.raises(InputError, match="cannot be told apart"):
        case.asker.plan(AxisParts.whole()).new(1 << 30, None)
