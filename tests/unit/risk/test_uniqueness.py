"""Estimates of who is alone in the population: by hand, against naive twins, and where they do not converge."""

from __future__ import annotations

import math
from fractions import Fraction

import naive_risk
import numpy as np
import pytest
from scipy import special

from sfumato.risk import uniqueness
from sfumato.risk.uniqueness import (
    ESTIMATORS,
    PITMAN,
    SNB,
    ZAYATZ,
    Estimate,
    GroupCounts,
    _PitmanModel,
    choose_by_rule,
    estimate_by_pitman,
    estimate_by_snb,
    estimate_by_zayatz,
    estimate_uniques,
    expect_small_groups,
    shlosser,
)

MANY = {1: 400, 2: 120, 3: 60, 4: 30, 7: 20, 20: 9, 80: 2}


def counts(given):
    return GroupCounts(np.array(list(given)), np.array(list(given.values())))


def test_groups_are_counted_by_their_size():
    found = GroupCounts.of(np.array([3, 1, 1, 2, 1]))
    assert (found.size.tolist(), found.count.tolist()) == ([1, 2, 3], [3, 1, 1])
    assert (found.n, found.groups, found.alone, found.of_size(4)) == (8, 5, 3, 0)


@pytest.mark.parametrize("given", [{1: 3, 2: 1}, {1: 5, 3: 4, 10: 1}, MANY])
@pytest.mark.parametrize("times", [2, 10])
def test_zayatz_agrees_with_whole_numbers(given, times):
    n = sum(size * count for size, count in given.items())
    found = estimate_by_zayatz(counts(given), 1 / times)
    assert found.value == pytest.approx(float(naive_risk.zayatz(given, times * n)), rel=1e-7)


def test_zayatz_by_hand():
    """One alone and a pair, three of six people: C(4, 2) 2 / C(6, 3) is the chance of one of a pair."""
    assert 2 * math.comb(4, 2) / math.comb(6, 3) == pytest.approx(3 / 5)
    found = estimate_by_zayatz(counts({1: 1, 2: 1}), 0.5)
    assert found.value == pytest.approx(1 * (0.5 / (0.5 + 0.6)) / 0.5)


def test_shlosser_by_hand():
    groups, p = counts({1: 3, 2: 1}), Fraction(1, 2)
    q = 1 - p
    first = (3 * p**2 + 2 * p**2 * (1 - p**2)) / (3 * q * ((1 + p) - 1) + q**2 * ((1 + p) ** 2 - 1))
    second = (q * 3 + q**2) / (p * 3 + 2 * p * q)
    assert shlosser(groups, 0.5) == pytest.approx(float(4 + 3 * first * second**2))


def test_the_likelihood_of_pitman_is_the_product():
    given = {1: 4, 2: 2, 5: 1}
    model = _PitmanModel(counts(given), special)
    points = [
        (Fraction(3), Fraction(1, 4)),
        (Fraction(10), Fraction(3, 5)),
        (Fraction(1, 2), Fraction(9, 10)),
    ]
    shift = []
    for theta, alpha in points:
        at = (math.log(alpha / (1 - alpha)), math.log(theta + alpha))
        assert model.parameters(at) == pytest.approx((float(alpha), float(theta)))
        shift.append(model.loss(at) + math.log(naive_risk.likelihood_of_pitman(given, theta, alpha)))
    assert shift == pytest.approx([shift[0]] * 3)


def test_no_point_around_is_more_likely_than_the_one_that_pitman_takes():
    found = estimate_by_pitman(counts(MANY), 0.05)
    model, n = _PitmanModel(counts(MANY), special), counts(MANY).n / 0.05
    best = min((model.loss((a, t)), a, t) for a in np.linspace(-4, 4, 161) for t in np.linspace(-2, 12, 281))
    alpha, theta = model.parameters(best[1:])
    by_grid = math.exp(special.gammaln(theta + 1) - special.gammaln(theta + alpha)) * n**alpha
    assert found.value == pytest.approx(by_grid, rel=0.1)


def test_snb_finds_the_parameters_of_what_is_expected():
    """Where the number of groups is right and counts are as expected, so is the estimate."""
    ones, twos = expect_small_groups(50_000, 0.7, 0.2, 0.3)
    groups = GroupCounts(np.array([1, 2, 30]), np.array([round(ones), round(twos), 4]))
    classes, seen = shlosser(groups, 0.3), np.log([groups.alone, groups.of_size(2)])
    found = estimate_by_snb(groups, 0.3)
    # some a and b with K b^a as estimated fulfil both equations
    misses = []
    for a in np.exp(np.linspace(-3, 3, 601)):
        b = math.exp(math.log(found.value / classes) / a)
        misses.append(np.abs(np.log(expect_small_groups(classes, a, b, 0.3)) - seen).max())
    assert min(misses) < 0.01


@pytest.mark.parametrize(
    ("given", "name", "reason"),
    [
        ({2: 5, 3: 1}, PITMAN, "no row of the sample is alone"),
        ({2: 5, 3: 1}, SNB, "no row of the sample is alone"),
        ({2: 5, 3: 1}, ZAYATZ, "no row of the sample is alone"),
        ({1: 50}, PITMAN, "every row is alone"),
        ({1: 50}, SNB, "no group has two rows"),
        ({1: 2, 2: 90, 3: 40}, PITMAN, "no greatest value between the ends"),
        ({1: 500, 2: 1, 900: 1}, SNB, ""),
    ],
)
def test_what_does_not_converge_says_so_and_is_never_0(given, name, reason):
    found = ESTIMATORS[name](counts(given), 0.1)
    assert found.converged == (not reason)
    assert found.value is None or found.value > 0
    assert reason in found.reason


def test_an_estimate_above_the_population_did_not_converge(monkeypatch):
    for wrong in (1e9, 0.0, math.nan):
        asked = {**ESTIMATORS, PITMAN: lambda *_, wrong=wrong: Estimate(wrong)}
        monkeypatch.setattr(uniqueness, "ESTIMATORS", asked)
        found = estimate_uniques(counts(MANY), 0.5)
        assert not found.estimates[PITMAN].converged
        assert found.range is None


def test_a_sample_that_is_the_population_needs_no_estimate():
    found = estimate_uniques(counts(MANY), 1.0)
    assert {own.value for own in found.estimates.values()} == {400.0}
    assert estimate_uniques(counts({2: 3}), 1.0).estimates[PITMAN].value == 0


def test_the_rule_takes_what_converged_by_its_name():
    none = Estimate(None, "why")
    known = {PITMAN: Estimate(5.0), SNB: Estimate(9.0), ZAYATZ: Estimate(8.0)}
    assert choose_by_rule(known, 0.1) == PITMAN
    assert choose_by_rule(known, 0.11) == ZAYATZ
    assert choose_by_rule(known | {ZAYATZ: Estimate(10.0)}, 0.5) == SNB
    assert choose_by_rule(known | {PITMAN: none}, 0.1) == ZAYATZ
    assert choose_by_rule(known | {SNB: none}, 0.5) == ZAYATZ
    assert choose_by_rule(known | {ZAYATZ: none}, 0.5) == SNB
    assert choose_by_rule(dict.fromkeys(known, none), 0.5) is None


def test_the_range_is_from_pitman_to_snb():
    found = estimate_uniques(counts(MANY), 0.2)
    assert found.range is not None
    low, high = found.range
    assert {low, high} == {found.estimates[PITMAN].value, found.estimates[SNB].value}
    assert low < high
