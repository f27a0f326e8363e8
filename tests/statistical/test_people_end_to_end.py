"""What a whole DiffGen release gives away of a person with several rows.

Neighbours differ in one person, who has six rows of one cell where nobody else is. Releases are drawn from tables, so
that the choice of rows is part of what is audited. The first quarter of the runs finds the event whose chances differ
most, the rest bounds how much they differ, by Clopper-Pearson intervals [CP34] at a level of 1e-6 over all events: that
is the rate of false alarms, were draws not seeded. Releases that read all rows of the person, or have the noise of one
row, must fail the same test.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from sfumato.encoding import declared
from sfumato.methods.specialization.diffgen import release
from sfumato.policy.document import Policy
from sfumato.privacy.mechanisms import seeded
from sfumato.table.opening import open_table

pytestmark = pytest.mark.slow

EPSILON, MOST, RUNS, FALSE_ALARM = 1.0, 2, 1500, 1e-6

POLICY = f"""
attributes:
  who: {{role: identifier}}
  sex: {{role: quasi-identifier, values: [f, m]}}
  ill: {{role: other, values: ["yes", "no"]}}
workload: [classify: ill]
method: {{diffgen: {{epsilon: {EPSILON}, cuts: {{sex: leaves}}}}}}
unit: {{column: who, rows-at-most: {MOST}}}
"""
HERE = [("a", "f", "no"), ("a", "f", "no"), ("a", "f", "yes"), ("b", "f", "yes"), (None, "f", "no")]
THERE = [*HERE, *[("c", "m", "yes")] * 6]


def counts(rows, n=RUNS):
    """The counts of many releases of one table, a line each."""
    policy = Policy.parse(POLICY)
    who, sex, ill = zip(*rows, strict=True)
    source = open_table(pa.table({"who": who, "sex": sex, "ill": ill}))
    return np.array(
        [release.draw_release(source, policy, chance=seeded(seed)).counts.ravel() for seed in range(n)]
    )


def lower_bound(here, there):
    """A lower bound of the loss, over the events "this count is at least t", in both directions."""
    quarter = len(here) // 4
    events = [(place, t) for place in range(here.shape[1]) for t in range(1, 12)]
    level = FALSE_ALARM / (2 * len(events))
    found = 0.0
    for more, less in ((here, there), (there, here)):
        pilot = [
            ((more[:quarter, place] >= t).mean() + 0.01) / ((less[:quarter, place] >= t).mean() + 0.01)
            for place, t in events
        ]
        place, t = events[int(np.argmax(pilot))]
        n = len(here) - quarter
        hits, misses = int((more[quarter:, place] >= t).sum()), int((less[quarter:, place] >= t).sum())
        least = stats.beta.ppf(level / 2, hits, n - hits + 1) if hits else 0.0
        most = stats.beta.isf(level / 2, misses + 1, n - misses) if misses < n else 1.0
        found = max(found, math.log(least / most) if least else 0.0)
    return found


def test_a_person_with_many_rows_changes_a_release_by_at_most_epsilon():
    found = lower_bound(counts(HERE), counts(THERE))
    print(f"the loss is at least {found:.3f}, epsilon is {EPSILON}")
    assert found <= EPSILON
    assert found > EPSILON / 4  # the event is not harmless


def test_without_the_bound_on_rows_the_audit_fails(monkeypatch):
    monkeypatch.setattr(
        declared, "choose_rows", lambda source, *_, **__: np.ones(source.n_rows, dtype=np.bool_)
    )
    found = lower_bound(counts(HERE), counts(THERE))
    print(f"all rows read: the loss is at least {found:.3f}, epsilon is {EPSILON}")
    assert found > EPSILON


def test_noise_for_one_row_does_not_hide_a_person_with_two(monkeypatch):
    real = declared.choose_rows
    monkeypatch.setattr(Policy, "rows_at_most", 1)
    monkeypatch.setattr(
        declared, "choose_rows", lambda source, who, _, keys, **given: real(source, who, MOST, keys, **given)
    )
    found = lower_bound(counts(HERE), counts(THERE))
    print(f"noise of one row: the loss is at least {found:.3f}, epsilon is {EPSILON}")
    assert found > EPSILON
