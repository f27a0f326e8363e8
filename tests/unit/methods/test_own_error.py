"""The error at the tasks of a workload: by groups at once, and gathered of a group block by block."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.protocol import Block
from sfumato.engines.start import scan_table
from sfumato.methods.own_error import ErrorMeter, ErrorPlan
from sfumato.table.opening import open_table

CLASSES = list("aabbbcaacc")
PAY = [1, 2, 3, 4, 10, 0, 7, 7, 7, 2]
TABLE = pa.table({"age": list(range(10)), "class": CLASSES, "pay": PAY, "shop": list("xxyyxxyyxy")})
POLICY = """
attributes:
  age:   {role: quasi-identifier, type: number}
  class: {role: other}
  pay:   {role: other, type: number}
  shop:  {role: other}
require: [k-anonymity: 2]
workload: [%s]
suppress: {at-most: 10%%}
"""
TASKS = {
    "class": "classify: class",
    "pay": "regress: {target: pay, weight: 3}",
    "class beside shop": "classify: {target: class, features: [age, shop]}",
    "pay beside shop": "regress: {target: pay, features: [age, shop]}",
}
SIZES = np.array([4, 6])


def meter_of(task: str) -> tuple[ErrorMeter, np.ndarray]:
    policy = sf.Policy.parse(POLICY % TASKS[task])
    table = scan_table(open_table(TABLE), policy)
    return ErrorMeter.of(policy, table.columns), MemoryEngine().load(table).rows


def bits(classes: list[str]) -> float:
    return sum(-n * math.log2(n / len(classes)) for n in Counter(classes).values())


def squares(numbers: list[int]) -> Fraction:
    mean = Fraction(sum(numbers), len(numbers))
    return sum(((x - mean) ** 2 for x in numbers), Fraction(0))


def cells(start: int, end: int, name: str) -> list[list[int]]:
    """The rows of a group that share a shop, if that helps to predict."""
    rows = range(start, end)
    if "shop" not in name:
        return [list(rows)]
    shops = TABLE["shop"].to_pylist()
    return [[i for i in rows if shops[i] == shop] for shop in "xy"]


@pytest.mark.parametrize("task", TASKS)
def test_errors_are_those_counted_by_hand(task):
    meter, rows = meter_of(task)
    expected = 0.0
    for start, end in ((0, 4), (4, 10)):
        for own in cells(start, end, task):
            if "class" in task:
                expected += bits([CLASSES[i] for i in own])
            else:
                expected += float(squares([PAY[i] for i in own]))
    (found,) = meter.measure(rows, SIZES)
    assert found / 2**20 == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_a_group_that_is_gathered_has_the_error_that_it_has_at_once(task):
    meter, rows = meter_of(task)
    plan = ErrorPlan(meter)
    states = [plan.new(1 << 20) for _ in range(3)]
    for i in range(10):
        states[i % 3].add(Block(np.ascontiguousarray(rows[i : i + 1]), None))
    states[0].merge(states[1])
    states[2].merge(states[0])
    assert plan.answer(states[2]) == meter.measure(rows, np.array([10]))
    assert plan.n_bytes > 0


@pytest.mark.parametrize("task", TASKS)
def test_one_group_of_all_rows_has_the_whole_error_and_rows_left_out_share_it(task):
    meter, rows = meter_of(task)
    weight = meter.tasks[0].weight
    whole = meter.measure(rows, np.array([10]))
    assert abs(float(meter.add_up(whole, 0, 10)) - weight) < 1e-4
    assert meter.add_up([0], 5, 10) == weight / 2


def test_a_criterion_of_its_own_measures_no_task():
    policy = sf.Policy.parse(POLICY % TASKS["class"] + "method: {mondrian: {criterion: loss}}\n")
    table = scan_table(open_table(TABLE), policy)
    assert ErrorMeter.of(policy, table.columns).tasks == []
