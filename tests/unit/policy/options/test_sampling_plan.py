"""How rare an output may be: the closed form of delta, against sums over all numbers of rows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import naive_sampling as naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.policy.options.sampling_plan import (
    GREATEST_DENOMINATOR,
    GREATEST_K0,
    NoPlan,
    delta_of,
    exp_bounds,
    plan,
    round_up,
)
from sfumato.privacy import mechanisms

EPSILONS = [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5)]
CHANCES = [
    Fraction(1, 100),
    Fraction(1, 20),
    Fraction(1, 5),
    Fraction(39, 100),
    Fraction(1, 2),
    Fraction(3, 5),
]


def test_the_plans_of_epsilon_1_and_delta_1e_6():
    found = [plan(Fraction(1), Fraction(1, 10**6), Fraction(s, 100)) for s in (5, 10, 20, 39, 50, 60)]
    assert [one.k0 for one in found] == [6, 8, 12, 24, 35, 51]
    assert all(one.delta <= Fraction(1, 10**6) for one in found)


def _can_be_summed(epsilon, s, k0):
    """Does epsilon allow the chance, and are the sums short?"""
    least, greatest = naive.exp_below_and_above(epsilon)
    return (1 - s) * least >= 1 and k0 <= 80 * (1 - (1 - s) / greatest)


CASES = [case for case in itertools.product(EPSILONS, CHANCES, [1, 2, 3, 7, 20]) if _can_be_summed(*case)]


def test_there_are_cases_of_every_epsilon_and_chance():
    assert len(CASES) >= 100
    assert {epsilon for epsilon, _, _ in CASES} == {*EPSILONS}
    assert {s for _, s, _ in CASES} == {*CHANCES}


@pytest.mark.parametrize(("epsilon", "s", "k0"), CASES, ids=str)
def test_delta_is_the_greatest_over_all_numbers_of_rows_in_both_directions(epsilon, s, k0):
    """By exact sums, for every number of rows up to well beyond the one that the closed form names."""
    least, greatest = naive.exp_below_and_above(epsilon)
    gamma = 1 - (1 - s) / greatest
    worst, there = Fraction(0), naive.repaired_counts(0, s, k0)
    for n in range(min(int(1.3 * k0 / gamma) + 3, 100)):
        here = naive.repaired_counts(n + 1, s, k0)
        worst = max(worst, naive.excess(here, there, least))
        assert naive.excess(there, here, least) == 0
        there = here
    stated = delta_of(epsilon, s, k0)
    assert worst <= stated <= worst * (1 + Fraction(1, 10**5))


def test_from_the_number_that_the_closed_form_names_on_the_excess_falls():
    """In floats, far beyond: what the proof says of all numbers of rows."""
    epsilon, s, k0 = Fraction(1), Fraction(1, 2), 35
    factor = math.exp(epsilon)

    def of(n):
        m = max(k0, int(n * (1 - (1 - s) / factor)) + 1)
        return max(0.0, stats.binom.sf(m - 1, n, 0.5) - factor * stats.binom.sf(m - 1, n - 1, 0.5))

    found = [of(n) for n in range(k0, 300)]
    peak = found.index(max(found))
    assert found[: peak + 1] == sorted(found[: peak + 1])
    assert found[peak:] == sorted(found[peak:], reverse=True)
    assert max(found) == pytest.approx(float(delta_of(epsilon, s, k0)), rel=1e-5)


@given(st.fractions(Fraction(1, 100), Fraction(6), max_denominator=100), st.integers(1, 60))
@settings(max_examples=50)
def test_delta_falls_with_k0_and_with_epsilon(epsilon, k0):
    s = plan(epsilon, Fraction(1, 2)).s
    assert delta_of(epsilon, s, k0 + 1) <= delta_of(epsilon, s, k0)
    assert delta_of(epsilon + 1, s, k0) <= delta_of(epsilon, s, k0)


@given(
    st.fractions(Fraction(1, 1000), Fraction(50), max_denominator=1000),
    st.sampled_from([Fraction(1, 10**n) for n in (2, 6, 9, 15)]),
)
@settings(max_examples=50)
def test_a_plan_takes_the_least_k0_that_is_enough(epsilon, delta):
    found = plan(epsilon, delta)
    assert found.delta == delta_of(epsilon, found.s, found.k0) <= delta
    assert found.k0 == 1 or delta_of(epsilon, found.s, found.k0 - 1) > delta


def test_the_chance_is_chosen_by_epsilon_alone():
    chosen = [
        plan(Fraction(e), Fraction(1, 10**6)).s for e in ("0.001", "0.01", "0.1", "0.5", "0.7", "1", "50")
    ]
    assert chosen == [Fraction(1, n) for n in (2000, 200, 20, 5, 2, 2, 2)]


@given(st.fractions(Fraction(0), Fraction(50), max_denominator=10**6))
def test_exp_lies_between_its_bounds(x):
    low, high = exp_bounds(x)
    least, greatest = naive.exp_below_and_above(x)
    assert low <= greatest
    assert high >= least
    assert low <= high <= low * (1 + Fraction(1, 10**60))


@given(st.fractions(min_value=Fraction(1, 10**40), max_value=Fraction(1)))
def test_rounding_is_upwards_and_keeps_six_digits(number):
    assert number <= round_up(number) <= number * (1 + Fraction(1, 10**5))


@pytest.mark.parametrize(
    ("epsilon", "delta", "sample", "sentence"),
    [
        ("0.0001", "1e-6", None, "must be a number from 0.001 to 50"),
        ("51", "1e-6", None, "must be a number from 0.001 to 50"),
        ("1", "0", None, "must be a number between 0"),
        ("1", "1", None, "must be a number between 0"),
        ("1", "1e-6", "1", "must be between 0 and 1"),
        ("1", "1e-6", "1e-19", "has too many digits"),
        ("1", "1e-6", "0.64", r"at most 1 - exp\(-epsilon\), which is 0.6321"),
        ("30", "1e-6", "0.99999", f"more than {GREATEST_K0:,} times"),
    ],
)
def test_what_no_k0_can_reach(epsilon, delta, sample, sentence):
    with pytest.raises(NoPlan, match=sentence):
        plan(Fraction(epsilon), Fraction(delta), None if sample is None else Fraction(sample))


def test_every_chance_that_a_plan_takes_can_be_tossed():
    assert GREATEST_DENOMINATOR == mechanisms.GREATEST_DENOMINATOR
