"""Rows that are left out: the groups are those of naive twins, and what every release of 500 tables must keep.

Mondrian is grown once, with its allowance; ``publish``, which keeps the better of with and without, is judged as well.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import naive_rest
import pytest
import rest_cases as rests
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mondrian_cases import Case, reachable_cases
from rest_tables import RandomTable, random_table
from tree_runs import Groups, grown_by_run, grown_here, grown_in_memory, grown_on_disk, ordered, scan

import sfumato as sf
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Room
from sfumato.methods.mondrian import tree_run
from sfumato.policy.document import Policy
from sfumato.policy.requirements import TCloseness
from sfumato.policy.suppress import Suppress
from sfumato.policy.workload import Classify
from sfumato.table.opening import open_table

SHARES = st.sampled_from([Fraction(share, 100) for share in (5, 10, 20, 40, 100)])


def is_not_close(case: Any) -> bool:
    return not any(isinstance(item, TCloseness) for item in case.requirements)


WORKLOADS = st.sampled_from([[], [], [Classify("class")]])
"""Each kind of target has kernels of its own, which are compiled once more where rows may be left out."""


def grown(case: Case, share: Fraction) -> Groups:
    return grown_in_memory(case, MemoryEngine(threads=1), Suppress(share))


@settings(max_examples=100)
@given(reachable_cases(workloads=WORKLOADS).filter(is_not_close), SHARES)
def test_mondrian_as_published_leaves_out_the_rows_of_the_naive_twin(case: Case, share: Fraction) -> None:
    twin = case.twin()
    twin.share = share
    expected = ordered((tuple(leaf.box), leaf.members) for leaf in twin.grow().leaves())
    event(f"left out: {min(len(case.rows) - sum(len(rows) for _, rows in expected), 5)}")
    assert grown(case, share) == expected


def rest_policy(case: rests.Case, share: Fraction, policy: dict[str, Any]) -> Policy:
    return Policy.from_dict({**policy, "suppress": {"at-most": str(Suppress(share))}})


def rest_groups(case: rests.Case, policy: Policy) -> list[list[int]]:
    engine = MemoryEngine(threads=1)
    found = grown_by_run(scan(open_table(case.table()), policy, engine.room), policy, engine)
    return sorted(rows for _, rows in found)


def expected_groups(twin: naive_rest.Rest) -> list[list[int]]:
    return sorted(sorted(leaf.rows.tolist()) for leaf in twin.grow().leaves())


@settings(max_examples=100)
@given(rests.cases().filter(is_not_close), SHARES)
def test_loss_leaves_out_the_rows_of_the_naive_twin(case: rests.Case, share: Fraction) -> None:
    expected = expected_groups(case.twin(share=share))
    event(f"left out: {min(len(case.rows) - sum(map(len, expected)), 5)}")
    assert rest_groups(case, rest_policy(case, share, case.policy())) == expected


@settings(max_examples=50)
@given(rests.cases().filter(is_not_close), SHARES, st.sampled_from([0, 0.1, 2]))
def test_with_a_class_the_mixed_score_does_too(case: rests.Case, share: Fraction, loss_weight: float) -> None:
    task = naive_rest.Task([row["class"] for row in case.rows])
    expected = expected_groups(case.twin(tasks=[task], loss_weight=float(loss_weight), share=share))
    plain = case.policy_without_criterion(**{"loss-weight": loss_weight}) | {
        "workload": [{"classify": "class"}]
    }
    assert rest_groups(case, rest_policy(case, share, plain)) == expected


# ---- every release, and every engine ---------------------------------------------------------------

N_TABLES, IN_A_BATCH = 500, 50
FEW = Room(1 << 30, 6, 200)
"""More than six rows make a node whose split is chosen from counts."""
ROOMS = {"none": FEW, "list": Room(1 << 30, 100, 200, row_bytes=1 << 20)}
AT_MOST = ("5%", "10%", "25%", "60%", "100%")


def suppressing_table(number: int, refine: str) -> tuple[RandomTable, dict[str, Any], int]:
    """A random table, a policy that lets rows go, and how many."""
    case = random_table(number, refine)
    share = AT_MOST[number % len(AT_MOST)]
    workload = case.policy["workload"] if case.policy["workload"] == [{"classify": "class"}] else []
    policy = {**case.policy, "workload": workload, "suppress": {"at-most": share}}
    return case, policy, int(Fraction(share[:-1]) / 100 * len(case.rows))


@pytest.mark.parametrize("first", range(0, N_TABLES, IN_A_BATCH))
def test_no_more_rows_go_than_allowed_and_every_engine_leaves_out_the_same(first, monkeypatch):
    """Every second table is published by a list, in blocks of 15 rows."""
    monkeypatch.setattr(tree_run, "BLOCK_ROWS", 15)
    n_left_out = n_suppressed = 0
    for number in range(first, first + IN_A_BATCH):
        refine = "list" if number % 2 else "none"
        case, plain, most = suppressing_table(number, refine)
        policy = sf.Policy.from_dict(plain)
        release = sf.publish(case.table, policy)
        published = case.groups(release.table)
        n_left = len(case.rows) - sum(map(len, published.values()))
        assert n_left == release.certificate.claims.suppressed <= most, number
        case.judge(published, n_left)
        boxes = grown_here(case.table, policy)
        assert grown_here(case.table, policy) == boxes, number
        assert grown_here(case.table, policy, ROOMS[refine]) == boxes, number
        assert grown_on_disk(case.table, policy, ROOMS[refine]) == boxes, number
        gone = len(case.rows) - sum(len(rows) for _, rows in boxes)
        assert gone <= most, number
        n_left_out, n_suppressed = n_left_out + gone, n_suppressed + n_left
    assert n_left_out >= n_suppressed > 0, "hardly anything was left out"
