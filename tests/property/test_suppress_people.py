"""Rows that are left out where people count: the groups are those of naive twins, and no more people are touched.

As many rows may go as the policy allows, and as many people may have one of them.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import mondrian_cases as published
import pyarrow as pa
import pytest
import rest_cases as rests
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mondrian_cases import cut
from naive_people import MondrianOfPeople, people_satisfy
from tree_runs import grown_here, grown_on_disk, ordered, with_numbers
from unit_tables import PERSON, PeopleTable, people_table

import sfumato as sf
from sfumato.engines.protocol import Room
from sfumato.methods.mondrian import tree_run
from sfumato.policy.document import Policy
from sfumato.policy.requirements import TCloseness
from sfumato.policy.schema import Attribute, Role, Schema
from sfumato.policy.suppress import Suppress
from sfumato.policy.unit import Unit
from sfumato.policy.workload import Classify

SHARES = st.sampled_from([Fraction(share, 100) for share in (10, 20, 40, 60, 100)])
WORKLOADS = st.sampled_from([[], [], [Classify("class")]])
FEW = Room(1 << 30, 6, 200)
"""More than six rows make a node whose split is chosen from counts."""


def people_of(draw: Any, n_rows: int) -> list[int]:
    """Whose each row is."""
    n_people = draw(st.integers(1, n_rows))
    return draw(st.lists(st.integers(0, n_people - 1), min_size=n_rows, max_size=n_rows))


def is_ready(case: Any, people: list[int]) -> bool:
    """Does the whole table satisfy a requirement that compares no group with all rows?"""
    return all(
        not isinstance(item, TCloseness) and people_satisfy(range(len(case.rows)), case.rows, people, item)
        for item in case.requirements
    )


def with_people(
    table: pa.Table, people: list[int], policy: dict[str, Any], share: Fraction
) -> tuple[pa.Table, Policy]:
    attributes = {**policy["attributes"], PERSON: {"role": "identifier"}}
    suppress = {"at-most": str(Suppress(share))}
    table = table.append_column(PERSON, pa.array([f"p{person}" for person in people]))
    return table, Policy.from_dict({**policy, "attributes": attributes, "unit": PERSON, "suppress": suppress})


# ---- the naive twins -------------------------------------------------------------------------------


@settings(max_examples=100)
@given(st.data(), SHARES)
def test_mondrian_as_published_leaves_out_the_rows_of_the_naive_twin(
    data: st.DataObject, share: Fraction
) -> None:
    case = data.draw(published.cases(workloads=WORKLOADS))
    people = people_of(data.draw, len(case.rows))
    if not is_ready(case, people):
        return
    twin = MondrianOfPeople(
        people, case.rows, [quasi.axis for quasi in case.quasi], case.requirements, case.workload, cut=cut,
        split_only=case.options.split_only, median_below_gain=case.options.median_below_gain,
        standardize=case.options.standardize,
    )  # fmt: skip
    twin.share = share
    expected = ordered((tuple(leaf.box), leaf.members) for leaf in twin.grow().leaves())
    event(f"left out: {min(len(case.rows) - sum(len(rows) for _, rows in expected), 5)}")
    table, plain = published_with_people(case, people, share)
    assert grown_here(table, plain) == expected
    assert grown_here(table, plain, FEW) == expected


def published_with_people(
    case: published.Case, people: list[int], share: Fraction
) -> tuple[pa.Table, Policy]:
    table, policy = with_numbers(case, Suppress(share))
    table = table.append_column(PERSON, pa.array([f"p{person}" for person in people]))
    schema = Schema((*policy.schema, Attribute(PERSON, Role.IDENTIFIER)))
    return table, replace(policy, schema=schema, unit=Unit(PERSON))


@settings(max_examples=100)
@given(st.data(), SHARES, st.booleans())
def test_loss_leaves_out_the_rows_of_the_naive_twin(
    data: st.DataObject,
    share: Fraction,
    is_mixed: bool,  # noqa: FBT001
) -> None:
    case = data.draw(rests.cases())
    people = people_of(data.draw, len(case.rows))
    if not is_ready(case, people):
        return
    plain, tasks = case.policy(), []
    if is_mixed:
        tasks = [rests.naive.Task([row["class"] for row in case.rows])]
        plain = case.policy_without_criterion(**{"loss-weight": 0.1}) | {"workload": [{"classify": "class"}]}
    twin = replace(
        case.twin(tasks=tasks, share=share, people=people),
        holds=lambda members: all(
            people_satisfy(list(members), case.rows, people, item) for item in case.requirements
        ),
    )
    expected = sorted(sorted(leaf.rows.tolist()) for leaf in twin.grow().leaves())
    event(f"left out: {min(len(case.rows) - sum(map(len, expected)), 5)}")
    table, policy = with_people(case.table(), people, plain, share)
    for room in (None, FEW):
        assert sorted(rows for _, rows in grown_here(table, policy, room)) == expected


# ---- every release, and every engine ---------------------------------------------------------------

N_TABLES, IN_A_BATCH = 200, 50
AT_MOST = ("10%", "25%", "60%", "100%")
LIST_ROOM = Room(1 << 30, 100, 200, row_bytes=1 << 20)


def suppressing_people(number: int) -> tuple[PeopleTable, dict[str, Any], Fraction]:
    """A random table of people, a policy that lets rows go, and which share."""
    case = people_table(number)
    share = AT_MOST[number % len(AT_MOST)]
    workload = case.policy["workload"] if case.policy["workload"] == [{"classify": "class"}] else []
    policy = {**case.policy, "workload": workload, "suppress": {"at-most": share}}
    return case, policy, Fraction(share[:-1]) / 100


@pytest.mark.parametrize("first", range(0, N_TABLES, IN_A_BATCH))
def test_no_more_people_are_touched_than_allowed_and_every_engine_leaves_out_the_same(
    first, monkeypatch, tmp_path
):
    monkeypatch.setattr(tree_run, "BLOCK_ROWS", 15)
    n_left_out = 0
    for number in range(first, first + IN_A_BATCH):
        case, plain, share = suppressing_people(number)
        if not case.is_reachable:
            continue
        policy = sf.Policy.from_dict(plain)
        release = sf.publish(case.table, policy)
        groups = case.groups(release.table)
        kept = {row for rows in groups.values() for row in rows}
        gone = [row for row in range(len(case.rows)) if row not in kept]
        touched = {case.people[row] for row in gone}
        assert len(gone) == release.certificate.claims.suppressed <= share * len(case.rows), number
        assert len(touched) <= share * len({*case.people}), number
        assert release.certificate.claims.people == len({case.people[row] for row in kept}), number
        case.judge(groups, len(gone))
        boxes = grown_here(case.table, policy)
        room = LIST_ROOM if plain["method"]["mondrian"].get("refine", "list") == "list" else FEW
        assert grown_here(case.table, policy, room) == boxes, number
        assert grown_on_disk(case.table, policy, room) == boxes, number
        n_left_out += len(gone)
        if number % 5 == 0:
            release.write(tmp_path / str(number))
            found = sf.verify_folder(tmp_path / str(number), table=case.table)
            assert not found.failures, (number, found.failures)
            words = " lost a row"
            assert any(check.claim.endswith(words) and not check.is_note for check in found.checks)
    assert n_left_out > 0, "nothing was left out"
