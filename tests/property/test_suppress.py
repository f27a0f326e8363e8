"""Rows that are left out: the groups are those of naive twins, and what every release of 500 tables must keep.

Mondrian is grown once, with its allowance; ``publish``, which keeps the better of with and without, is judged as well.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import naive_mondrian
import naive_rest
import rest_cases as rests
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mondrian_cases import Case, boxes_of, members_of, reachable_cases
from tree_runs import Groups, grown_by_run, ordered, scan, with_numbers

import sfumato as sf
from sfumato.engines.memory import MemoryEngine
from sfumato.policy.document import Policy
from sfumato.policy.requirements import TCloseness
from sfumato.policy.suppress import Suppress
from sfumato.table.opening import open_table

SHARES = st.sampled_from([Fraction(share, 100) for share in (5, 10, 20, 40, 100)])


def is_not_close(case: Any) -> bool:
    return not any(isinstance(item, TCloseness) for item in case.requirements)


def published_cases(**options: Any) -> st.SearchStrategy[Case]:
    return reachable_cases(**options).filter(is_not_close)


def grown(case: Case, share: Fraction) -> Groups:
    table, policy = with_numbers(case)
    engine = MemoryEngine(threads=1)
    policy = replace(policy, suppress=Suppress(share))
    return grown_by_run(scan(open_table(table), policy, engine.room), policy, engine)


@settings(max_examples=150)
@given(published_cases(), SHARES)
def test_mondrian_as_published_leaves_out_the_rows_of_the_naive_twin(case: Case, share: Fraction) -> None:
    twin = case.twin()
    twin.allowance = int(share * len(case.rows))
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


@settings(max_examples=300)
@given(rests.cases().filter(is_not_close), SHARES)
def test_loss_leaves_out_the_rows_of_the_naive_twin(case: rests.Case, share: Fraction) -> None:
    expected = expected_groups(case.twin(allowance=int(share * len(case.rows))))
    event(f"left out: {min(len(case.rows) - sum(map(len, expected)), 5)}")
    assert rest_groups(case, rest_policy(case, share, case.policy())) == expected


@settings(max_examples=100)
@given(rests.cases().filter(is_not_close), SHARES, st.sampled_from([0, 0.1, 2]))
def test_with_a_class_the_mixed_score_does_too(
    case: rests.Case, share: Fraction, loss_weight: float
) -> None:
    task = naive_rest.Task([row["class"] for row in case.rows])
    allowance = int(share * len(case.rows))
    expected = expected_groups(case.twin(tasks=[task], loss_weight=float(loss_weight), allowance=allowance))
    plain = case.policy_without_criterion(**{"loss-weight": loss_weight}) | {
        "workload": [{"classify": "class"}]
    }
    assert rest_groups(case, rest_policy(case, share, plain)) == expected
