"""People and pairs of person and value, as kernels count them, beside sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from growing import UncheckedPolicy, prepare_by
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_people import people_satisfy

from sfumato.errors import RequirementUnreachable
from sfumato.kernels.compile import kernel
from sfumato.methods.mondrian import memory
from sfumato.methods.mondrian.kernels.people import LAST_TOKEN, find_limits, people_within, select
from sfumato.methods.mondrian.kernels.problem import People
from sfumato.methods.mondrian.kernels.rules import TWO, fill_walk, part_holds
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
    TCloseness,
    VarianceDiversity,
)
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.unit import Unit
from sfumato.table.opening import open_table

SCHEMA = Schema(
    (
        Attribute("who", Role.IDENTIFIER),
        Attribute("x", Role.QUASI_IDENTIFIER, Kind.NUMBER),
        Attribute("ill", Role.SENSITIVE),
        Attribute("pay", Role.SENSITIVE, Kind.NUMBER),
    )
)
REQUIREMENTS = st.lists(
    st.one_of(
        st.integers(1, 4).map(KAnonymity),
        st.builds(EntropyDiversity, st.sampled_from([1.0, 1.5, 2.0]), of=st.just("ill")),
        st.builds(RecursiveDiversity, c=st.sampled_from([0.5, 1.0, 2.0]), l=st.integers(1, 3), of=st.just("ill")),
        st.builds(DistinctDiversity, st.integers(1, 3), of=st.just("ill")),
        st.builds(TCloseness, st.sampled_from([0.1, 0.25, 0.5]), of=st.just("ill")),
        st.builds(VarianceDiversity, st.sampled_from([0.0, 1.0, 2.25]), of=st.just("pay")),
    ),
    min_size=1,
    max_size=3,
)  # fmt: skip
CELLS = st.tuples(
    st.integers(0, 5), st.integers(0, 4), st.sampled_from("abc"), st.one_of(st.integers(0, 4), st.none())
)


@kernel
def walk(rows, order, ends, backward, rules, scratch, out):
    fill_walk(rows, order, ends, ends.shape[0], backward, rules, scratch, out)


@kernel
def holds(rows, order, first, last, rules, scratch):
    return part_holds(rows, order, first, last, TWO, rules, scratch)


@kernel
def limits(part, axis, missing_is_last, people, scratch):
    return find_limits(part, axis, missing_is_last, people, scratch)


@kernel
def select_rank(values, rank):
    return select(values, rank)


@kernel
def are_within(part, axis, low, high, is_inside, people, stamps):
    return people_within(part, axis, low, high, is_inside, people, stamps)


def prepared(cells: list[Any], requirements: list[Any]) -> Any:
    """The problem and the working space of a table of people."""
    who, x, ill, pay = zip(*cells, strict=True)
    table = pa.table({"who": [f"p{n}" for n in who], "x": x, "ill": ill, "pay": pa.array(pay, pa.int64())})
    policy = UncheckedPolicy(SCHEMA, tuple(requirements), (), MondrianOptions(), unit=Unit("who"))
    problem = prepare_by(policy, open_table(table), threads=1)
    scratch = memory.new_scratch(problem.engine.rows, problem, widest=1 << 6)
    return problem, scratch


@given(st.lists(CELLS, min_size=1, max_size=16), REQUIREMENTS, st.data())
@settings(max_examples=100)
def test_every_prefix_and_every_rest_is_judged_alike_at_once_row_by_row_and_by_sets(
    cells, requirements, data
):
    rows = [dict(zip(("who", "x", "ill", "pay"), cell, strict=True)) for cell in cells]
    people = [row["who"] for row in rows]
    try:
        problem, scratch = prepared(cells, requirements)
    except RequirementUnreachable:
        everyone = range(len(rows))
        assert not all(people_satisfy(everyone, rows, people, item) for item in requirements)
        return
    matrix, rules = problem.engine.rows, problem.rules
    order = np.array(data.draw(st.permutations(range(len(rows)))), dtype=np.int64)
    ends = np.array(sorted(data.draw(st.sets(st.integers(1, len(rows)))) | {len(rows)}), dtype=np.int64)
    for backward in (False, True):
        out = np.zeros(len(ends), dtype=np.bool_)
        walk(matrix, order, ends, backward, rules, scratch, out)
        for end, found in zip(ends.tolist(), out.tolist(), strict=True):
            first, last = (end, len(rows)) if backward else (0, end)
            part = order[first:last].tolist()
            assert holds(matrix, order, first, last, rules, scratch) == found
            assert found == (
                bool(part) and all(people_satisfy(part, rows, people, item) for item in requirements)
            )
    assert not scratch.values.any()


@given(st.lists(CELLS, min_size=1, max_size=20), st.integers(1, 4), st.booleans())
@settings(max_examples=100)
def test_thresholds_with_enough_people_on_both_sides_are_those_between_the_limits(cells, k, missing_is_last):
    """Code 0 may stand for missing, and then comes after all others."""
    if len({cell[0] for cell in cells}) < k:
        return
    problem, scratch = prepared(cells, [KAnonymity(k)])
    part, people = problem.engine.rows, problem.rules.sensitive.people
    first, last = limits(part, 0, missing_is_last, people, scratch)
    codes = [100 if missing_is_last and code == 0 else code for code in part[:, 0].tolist()]
    owner = part[:, people.column].tolist()
    for t in range(-1, 7):
        sides = [
            {who for who, code in zip(owner, codes, strict=True) if (code > t) == side} for side in (0, 1)
        ]
        assert (first <= t <= last) == all(len(side) >= k for side in sides)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.data())
@settings(max_examples=100)
def test_select_finds_the_value_of_a_rank(values, data):
    rank = data.draw(st.integers(0, len(values) - 1))
    assert select_rank(np.array(values, dtype=np.int64), rank) == sorted(values)[rank]


def test_tokens_that_run_out_begin_anew():
    """Nobody is taken for one who was stamped long ago."""
    part = np.array([[0, 0], [1, 1]], dtype=np.uint32)
    people = People(column=1, pairs=2, least=2, enough=100)
    stamps = np.zeros((2, 3), dtype=np.int32)
    stamps[0] = [LAST_TOKEN - 1, LAST_TOKEN, 1]
    assert not are_within(part, 0, 0, 1, True, people, stamps)
    assert are_within(part, 0, 0, 2, True, people, stamps)
    assert stamps[0, 0] == 1


@pytest.mark.parametrize("l", [1.9, 2])
def test_two_groups_that_satisfy_an_entropy_by_people_may_break_it_together(l):  # noqa: E741
    """a: people 1-4, b: 5-8 has an entropy of 2.0, and so has a: 1-4, b: 9-12; together 4 and 8 pairs have 1.89."""
    first = [(who, "a") for who in range(1, 5)] + [(who, "b") for who in range(5, 9)]
    second = [(who, "a") for who in range(1, 5)] + [(who, "b") for who in range(9, 13)]
    asked = EntropyDiversity(l, of="ill")

    def satisfy(pairs: list[tuple[int, str]]) -> bool:
        people = [who for who, _ in pairs]
        return people_satisfy(range(len(pairs)), [{"ill": ill} for _, ill in pairs], people, asked)

    assert satisfy(first)
    assert satisfy(second)
    assert not satisfy(first + second)
    cells = [(who, at, ill, 0) for at, pairs in enumerate([first, second]) for who, ill in pairs]
    with pytest.raises(RequirementUnreachable, match="1\\.89"):
        prepared(cells, [asked])
    # beside four more people with a the whole table holds, and so do both groups; but not the two together
    whole = [*cells, *((who, 2, "a", 0) for who in range(13, 17))]
    problem, scratch = prepared(whole, [EntropyDiversity(2, of="ill")])
    order = np.arange(len(whole), dtype=np.int64)
    for start, end, expected in ((0, 8, True), (8, 16, True), (0, 16, False), (0, 20, True)):
        assert holds(problem.engine.rows, order, start, end, problem.rules, scratch) == expected
