"""Which of two growths is published."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

import sfumato as sf
from sfumato.methods.better import choose_better, judge
from sfumato.methods.groups import Outcome
from sfumato.recoding.loss import UNIT, LostDetail

POLICY = """
attributes: {age: {role: quasi-identifier, type: number, weight: 3}, sex: {role: quasi-identifier}}
require: [k-anonymity: 2]
"""
SUPPRESS = "suppress: {at-most: 50%}\n"


def outcome(n_left: int, age: int, sex: int, returned: tuple[int, ...] = ()) -> Outcome:
    return Outcome(
        [*returned], LostDetail(10 - n_left, {"age": age * UNIT, "sex": sex * UNIT}), n_left, None, []
    )


def choose(text: str, without: Outcome, with_left: Outcome, *, refines: bool = False) -> tuple[str, int]:
    """Which one is taken, and how often was grown."""
    policy, asked = sf.Policy.parse(POLICY + text), []

    def grow(keeps_all: bool) -> Any:  # noqa: FBT001 - as choose_better asks
        asked.append(keeps_all)
        run = SimpleNamespace(meter=None, errors=[], refines=refines)
        return ("all", run, without) if keeps_all else ("some", run, with_left)

    return choose_better(grow, policy), len(asked)


def test_without_the_key_nothing_is_grown_twice():
    assert choose("", outcome(0, 5, 5), outcome(1, 0, 0)) == ("all", 1)


@pytest.mark.parametrize(
    ("without", "with_left", "taken"),
    [
        (outcome(0, 5, 5), outcome(1, 3, 1), "some"),  # 3 x 4 + 2 against 3 x 5 + 5
        (outcome(0, 5, 5), outcome(1, 4, 4), "all"),  # a row that is left out costs 4, as much as is saved
        (outcome(0, 5, 5), outcome(3, 2, 3), "all"),  # it costs all cells of three rows
    ],
)
def test_the_one_that_loses_less_is_taken_and_all_rows_stay_in_a_tie(without, with_left, taken):
    assert choose(SUPPRESS, without, with_left) == (taken, 2)


def test_a_tree_that_left_nothing_out_is_grown_once_and_a_list_is_compared():
    assert choose(SUPPRESS, outcome(0, 5, 5), outcome(0, 5, 5)) == ("some", 1)
    assert choose(SUPPRESS, outcome(0, 5, 5), outcome(0, 6, 5), refines=True) == ("all", 2)


def test_rows_left_out_are_returned_by_every_selection():
    text = SUPPRESS + 'workload: [select: {where: "age >= 40", weight: 2}]\n'
    policy, run = sf.Policy.parse(POLICY + text), SimpleNamespace(meter=None, errors=[])
    error, price = judge(run, outcome(2, 0, 0, (5,)), policy)
    assert (error, price) == (Fraction(14, 10), 2 * 4)
    assert choose(text, outcome(0, 9, 9, (6,)), outcome(2, 0, 0, (5,))) == ("all", 2)
    assert choose(text, outcome(0, 9, 9, (8,)), outcome(2, 9, 9, (5,))) == ("some", 2)
