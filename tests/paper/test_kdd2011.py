"""The examples of [MCFY11], typed in full: Table 1, Figures 1 and 2, Examples 1 to 3, equations 3 to 7."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from sfumato.declared import held
from sfumato.policy import Policy
from sfumato.privacy import mechanisms
from sfumato.schema import Schema
from sfumato.specialization.diffgen import draw
from sfumato.specialization.diffgen.scores import InfoGain, Max
from sfumato.tables import open_table

TABLE_1A = (
    ("Engineer", 34, "Y"),
    ("Lawyer", 50, "N"),
    ("Engineer", 38, "N"),
    ("Lawyer", 33, "Y"),
    ("Dancer", 20, "Y"),
    ("Writer", 37, "N"),
    ("Writer", 32, "Y"),
    ("Dancer", 25, "N"),
)

FIGURE_1 = """
attributes:
  job:
    role: quasi-identifier
    hierarchy: {tree: {Any_Job: {Professional: [Engineer, Lawyer], Artist: [Dancer, Writer]}}}
  age: {role: quasi-identifier, type: number, bounds: [18, 64], step: 1}
  class: {role: other, values: [Y, N]}
workload: [classify: class]
method: {diffgen: %s}
"""


class Scripted:
    """Draws what the example says, and notes the scores that it was given."""

    statement = "scripted, not private"

    def __init__(self, *script: int) -> None:
        self.script = list(script)
        self.seen: list[list[int]] = []

    def exponential(self, scores, scale):
        self.seen.append(scores.tolist())
        return self.script.pop(0)

    permute_and_flip = exponential

    def discrete_laplace(self, counts, scale):
        return counts.copy()


def table_1a() -> pa.Table:
    return pa.table({name: [row[i] for row in TABLE_1A] for i, name in enumerate(("job", "age", "class"))})


def drawn(options: str, how=None):
    policy = Policy.parse(FIGURE_1 % options)
    rows = held(open_table(table_1a()), policy)
    return draw(rows, rows.domains, len(rows.class_values), policy.method, how or mechanisms.noiseless())


def labels(found) -> list[list[str]]:
    recoding = found.grid.recoding(0, "labels", frozenset())
    out = []
    for a, (axis, place) in enumerate(zip(found.grid.axes, found.grid.place, strict=True)):
        if found.grid.thresholds[a].size or not hasattr(axis, "nodes"):
            low, high = recoding._group_ends(a)
            out.append(axis.labels(low, high).to_pylist())
        else:
            out.append(axis.labels(place).to_pylist())
    return out


# ---- Table 1 ---------------------------------------------------------------------------------------


def test_table_1b_groups_of_four():
    found = drawn("{epsilon: 1, cuts: {job: [Professional, Artist]}}")
    assert found.counts.sum(axis=1).tolist() == [4, 4]


def test_table_1c_the_contingency_table():
    found = drawn("{epsilon: 1, cuts: {job: [Engineer, Lawyer, Dancer, Writer], age: [40]}}")
    assert found.counts.sum(axis=1).reshape(4, 2).tolist() == [[2, 0], [1, 1], [2, 0], [2, 0]]


def test_table_1d_the_generalized_contingency_table():
    found = drawn("{epsilon: 1, cuts: {job: [Professional, Artist], age: [40]}}")
    assert found.counts.sum(axis=1).tolist() == [3, 1, 4, 0]
    assert labels(found) == [["Professional", "Artist or missing"], ["[18, 39] or missing", "[40, 64]"]]
    assert found.counts.tolist() == [[2, 1], [0, 1], [2, 2], [0, 0]]  # Y and N


def test_a_fixed_cut_has_all_of_epsilon_for_its_counts():
    (only,) = drawn("{epsilon: 0.5, cuts: {job: [Professional, Artist], age: [40]}}").ledger.draws
    assert (only.what, only.share, only.scale) == ("counts", Fraction(1, 2), Fraction(2))


def test_every_value_of_every_column_is_the_contingency_table_of_the_domain():
    found = drawn("{epsilon: 1, cuts: {job: leaves, age: leaves}}")
    of_age = found.counts.sum(axis=1).reshape(4 + 1, 47 + 1)  # missing is part of the domain
    jobs = ("Engineer", "Lawyer", "Dancer", "Writer", "missing")
    assert {(jobs[job], 17 + age) for job, age in zip(*np.nonzero(of_age), strict=True)} == {
        row[:2] for row in TABLE_1A
    }


def test_specialization_to_the_leaf_level_gives_the_contingency_table():
    found = drawn("{epsilon: 1, variant: paper, specializations: 1000}")
    given = drawn("{epsilon: 1, cuts: {job: leaves, age: leaves}}")
    assert found.counts.tolist() == given.counts.tolist()
    assert found.ledger.unspent > 0


# ---- Figures 1 and 2, Example 3 --------------------------------------------------------------------


def test_example_3_step_by_step():
    """Any_Job first, then age at 40; the tree of Figure 2 has 8, then 4 and 4, then 3, 1, 4 and 0 rows."""
    at_40 = 39 - 18 + 1  # code 0 is missing, so 39 is code 22: the threshold after it
    how = Scripted(at_40, 0, 0)
    found = drawn("{epsilon: 1, variant: paper, specializations: 2}", how)
    split, first, second = how.seen
    assert len(split) == 47  # missing and 18 to 64: a threshold after each but the last
    assert first == [4, 5]  # Max(Any_Job): 2 + 2. Max([18, 65) at 40): 4 of 7 + 1 of 1
    assert second == [
        5,
        2,
        2,
    ]  # the age is left; Engineer and Lawyer, Dancer and Writer have one of each class
    assert found.counts.sum(axis=1).tolist() == [3, 1, 4, 0]


def test_example_3_after_one_specialization():
    found = drawn("{epsilon: 1, variant: paper, specializations: 1}", Scripted(0, 0))
    assert found.counts.sum(axis=1).tolist() == [4, 4]
    assert labels(found)[0] == ["Professional", "Artist or missing"]


# ---- Examples 1 and 2 ------------------------------------------------------------------------------


def test_example_1_the_sensitivity_of_a_count_is_one():
    count = sum(age < 40 for _, age, _ in TABLE_1A)
    assert count == 7
    without = [sum(age < 40 for _, age, _ in TABLE_1A[:i] + TABLE_1A[i + 1 :]) for i in range(len(TABLE_1A))]
    assert max(abs(count - other) for other in without) == 1


def test_example_2_the_noisy_count_is_around_the_true_one():
    """Mean within 6 standard errors: a false alarm once in 5e8 runs."""
    epsilon = Fraction(1, 2)
    noisy = mechanisms.seeded(2).discrete_laplace(np.full(20_000, 7), 1 / epsilon)
    variance = 2 * math.exp(-0.5) / (1 - math.exp(-0.5)) ** 2
    assert abs(noisy.mean() - 7) < 6 * math.sqrt(variance / 20_000)


# ---- equations -------------------------------------------------------------------------------------


def test_equations_3_and_4_on_table_1():
    job = np.array([[[2, 2], [2, 2]]])  # Y and N of Professional and Artist
    age = np.array([[[4, 3], [0, 1]]])  # of [18, 40) and [40, 65)
    assert Max().of(job).tolist() == [4]
    assert Max().of(age).tolist() == [5]
    assert InfoGain(2).of(job).tolist() == [0]
    entropy = -(4 / 7 * math.log2(4 / 7) + 3 / 7 * math.log2(3 / 7))
    assert InfoGain(2).of(age).tolist() == [math.floor(2**20 * (1 - 7 / 8 * entropy))]


@pytest.mark.parametrize(("score", "sensitivity"), [("max", 1), ("infogain", 2**20 + 2)])
def test_line_3_of_algorithm_1(score, sensitivity):
    """Epsilon' = epsilon / 2(|A_n| + 2h), and draws have the scale 2 sensitivity / epsilon'."""
    ledger = drawn(f"{{epsilon: 1, variant: paper, specializations: 3, score: {score}}}").ledger
    *draws, counts = ledger.draws
    assert {draw.share for draw in draws} == {Fraction(1, 2 * (1 + 2 * 3))}
    assert {draw.scale for draw in draws} == {2 * sensitivity * Fraction(2 * (1 + 2 * 3))}
    assert (counts.share, counts.scale) == (Fraction(1, 2), Fraction(2))


def test_equations_6_and_7_a_run_of_equal_scores_weighs_its_length():
    """Between two ages that occur all thresholds have one score; its run has as many points as there are steps."""
    how = Scripted(0, 0)
    drawn("{epsilon: 1, variant: paper, specializations: 1}", how)
    scores = np.array(how.seen[0])
    ages = sorted(age for _, age, _ in TABLE_1A)
    for low, high in pairwise(ages):
        assert len(set(scores[low - 17 : high - 17].tolist())) == 1
    assert len(set(scores[: ages[0] - 17].tolist())) == 1  # below the first age, missing included


def test_what_is_not_spent_stands_in_the_ledger():
    """A hierarchy needs no split points: the share for those of its iteration is left."""
    found = drawn("{epsilon: 1, variant: paper, specializations: 2}", Scripted(22, 0, 0))
    share = Fraction(1, 2 * (1 + 2 * 2))
    assert found.ledger.spent + found.ledger.unspent == 1
    assert found.ledger.unspent == 2 * share  # after Any_Job none; after the last specialization none


def test_a_value_at_leaf_level_or_an_interval_of_one_step_is_no_candidate():
    """Of the job's tree four nodes have children: the root, its two children, and the last leaf with missing."""
    policy = Policy.parse(FIGURE_1 % "{epsilon: 1, variant: paper, specializations: 99}")
    schema = Schema(tuple(attribute for attribute in policy.schema if attribute.name != "age"))
    policy = replace(policy, schema=schema)
    rows = held(open_table(table_1a().drop_columns("age")), policy)
    found = draw(rows, rows.domains, 2, policy.method, mechanisms.noiseless())
    assert [one.what for one in found.ledger.draws] == ["specialization"] * 4 + ["counts"]
