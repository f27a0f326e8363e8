"""The examples of [MCFY11], typed in full: Table 1, Figures 1 and 2, Examples 1 to 3, equations 3 to 7."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import laws
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.encoding.declared import hold_rows
from sfumato.methods.specialization.diffgen import draw
from sfumato.methods.specialization.diffgen.scores import InfoGain, Max
from sfumato.policy.document import Policy
from sfumato.policy.schema import Schema
from sfumato.privacy import mechanisms
from sfumato.recoding.axis import BoxEnds
from sfumato.table.opening import open_table

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

TABLE_1B = (("Professional", "[18, 64]"),) * 4 + (("Artist", "[18, 64]"),) * 4

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
FIGURE_1_BY_JOB = FIGURE_1.replace(
    "{diffgen: %s}", "{mondrian: {variant: paper, split-only: [job]}}\nrequire: [k-anonymity: %d]"
)


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


class Noted(Scripted):
    """Adds no noise, and notes what noise was to be added to."""

    def discrete_laplace(self, counts, scale):
        self.asked = counts.tolist(), scale
        return counts.copy()


def table_1a(rows=TABLE_1A) -> pa.Table:
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(("job", "age", "class"))})


def drawn(options: str, how=None, rows=TABLE_1A):
    policy = Policy.parse(FIGURE_1 % options)
    rows = hold_rows(open_table(table_1a(rows)), policy)
    return draw(rows, rows.domains, len(rows.class_values), policy.method, how or mechanisms.noiseless())


def labels(found) -> list[list[str]]:
    recoding = found.grid.recoding(0, "labels", frozenset())
    out = []
    for a, (axis, place) in enumerate(zip(found.grid.axes, found.grid.place, strict=True)):
        if found.grid.thresholds[a].size or not hasattr(axis, "nodes"):
            out.append(axis.labels(*recoding._group_ends(a)).to_pylist())
        else:
            nodes = place.astype(np.float64)
            out.append(axis.labels(BoxEnds(nodes, nodes, nodes > 0)).to_pylist())
    return out


# ---- Table 1 ---------------------------------------------------------------------------------------


def test_table_1b_the_4_anonymous_table():
    """Row by row; one of 5 or more in each group is one group of all."""
    release = sf.publish(table_1a(), Policy.parse(FIGURE_1_BY_JOB % 4))
    recoded = release.recoding.apply(table_1a()).to_pylist()
    assert tuple((row["job"], row["age"]) for row in recoded) == TABLE_1B
    published = release.table.to_pylist()
    assert Counter((row["job"], row["age"]) for row in published) == Counter(TABLE_1B)
    in_5 = sf.publish(table_1a(), Policy.parse(FIGURE_1_BY_JOB % 5)).table.to_pylist()
    assert {(row["job"], row["age"]) for row in in_5} == {("Any_Job", "[18, 64]")}


def test_table_1b_groups_of_four_by_a_cut():
    found = drawn("{epsilon: 1, cuts: {job: [Professional, Artist]}}")
    assert labels(found)[0] == ["Professional", "Artist or missing"]
    of_job = dict(zip(labels(found)[0], found.counts.tolist(), strict=True))
    assert of_job == {"Professional": [2, 2], "Artist or missing": [2, 2]}  # Y and N
    lawyers = tuple(row for row in TABLE_1A if row[0] == "Lawyer")  # one of each class
    assert drawn("{epsilon: 1, cuts: {job: [Professional, Artist]}}", rows=lawyers).counts.tolist() == [
        [1, 1],
        [0, 0],
    ]


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


def counted(rows, epsilon="1"):
    """What the program counts of each age below 40 and from 40 on, class by class, and the scale of its noise."""
    how = Noted()
    drawn(f"{{epsilon: {epsilon}, cuts: {{age: [40]}}}}", how, rows)
    counts, scale = how.asked
    return np.array(counts), scale


def test_example_1_the_sensitivity_of_a_count_is_one():
    """The number of rows with Age < 40, in all tables with a row less or a row more."""
    counts, scale = counted(TABLE_1A)
    assert counts.tolist() == [4, 3, 0, 1]  # Y and N below 40, Y and N from 40 on
    assert counts[:2].sum() == sum(age < 40 for _, age, _ in TABLE_1A) == 7
    neighbours = [TABLE_1A[:i] + TABLE_1A[i + 1 :] for i in range(len(TABLE_1A))]
    neighbours += [(*TABLE_1A, row) for row in product(["Lawyer", "Dancer"], [18, 39, 40, 64], "YN")]
    others = [counted(rows)[0] for rows in neighbours]
    assert {abs(int(other[:2].sum()) - 7) for other in others} == {0, 1}
    assert {int(abs(other - counts).sum()) for other in others} == {1}  # all four counts together
    assert scale == 1  # so this is the noise that they get at epsilon 1


def fit_of_noise(noise, scale, reach=16):
    """The p-value of a chi-square test against the discrete Laplace law."""
    chances = laws.discrete_laplace(np.arange(-reach, reach + 1), scale)
    chances[[0, -1]] += (1 - chances.sum()) / 2  # what lies beyond
    seen = np.bincount(np.clip(noise, -reach, reach) + reach, minlength=len(chances))
    return stats.chisquare(seen, len(noise) * chances).pvalue


def test_example_2_the_noisy_count_is_the_true_one_and_noise_of_scale_1_over_epsilon():
    """f(D) + Lap(1 / epsilon), of whole numbers; noise of another scale, or around another count, would be seen."""
    counts, scale = counted(TABLE_1A, epsilon="0.5")
    true = int(counts[:2].sum())
    noisy = mechanisms.seeded(2).discrete_laplace(np.full(20_000, true), scale)
    assert fit_of_noise(noisy - 7, 1 / 0.5) > 1e-6
    for wrong in (0.9, 1.1):
        assert fit_of_noise(noisy - 7, wrong / 0.5) < 1e-6
    assert fit_of_noise(noisy - 8, 1 / 0.5) < 1e-6


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
    rows = hold_rows(open_table(table_1a().drop_columns("age")), policy)
    found = draw(rows, rows.domains, 2, policy.method, mechanisms.noiseless())
    assert [one.what for one in found.ledger.draws] == ["specialization"] * 4 + ["counts"]
