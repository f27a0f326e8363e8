"""Why private risk-utility reads one row of each person: two rows in two boxes give more away than is stated."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.policy.options.sampling_plan import plan

PLAN = plan(Fraction(1), Fraction(1, 10**6), Fraction(3, 5))
OTHERS = 70


def law(n):
    """How often a box of n rows is published."""
    drawn = np.zeros(OTHERS + 2)
    drawn[: n + 1] = binom.pmf(np.arange(n + 1), n, float(PLAN.s))
    published = np.where(np.arange(len(drawn)) >= PLAN.k0, drawn, 0.0)
    published[0] = drawn[: PLAN.k0].sum()
    return published


def delta(with_person, without):
    """By how much the larger chance exceeds exp(epsilon) times the other, in the worse direction."""
    return max(
        np.maximum(p - exp(1) * q, 0).sum() for p, q in ((with_person, without), (without, with_person))
    )


def test_one_row_of_a_person_stays_within_the_stated_delta():
    assert PLAN.k0 == 51
    assert delta(law(OTHERS + 1), law(OTHERS)) <= PLAN.delta <= 1e-6


def test_two_rows_of_a_person_in_two_boxes_exceed_it_three_times():
    both, neither = (np.outer(law(n), law(n)) for n in (OTHERS + 1, OTHERS))
    assert delta(both, neither) == pytest.approx(3.25e-6, rel=1e-3)
