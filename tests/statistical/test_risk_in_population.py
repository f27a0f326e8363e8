"""Risk in a population against simulated populations. Every check has a false alarm rate of about one in a million, at
fixed seeds, and must reject what other tools compute.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from sfumato.risk.measures import expect_risk
from sfumato.risk.uniqueness import (
    PITMAN,
    SNB,
    ZAYATZ,
    GroupCounts,
    estimate_by_pitman,
    estimate_by_snb,
    estimate_uniques,
    expect_small_groups,
    shlosser,
)

FALSE_ALARM = 1e-6
CLASSES, A, B, FRACTION = 200_000, 0.4, 0.05, 0.2
"""A population of so many groups, each of one person and a negative binomial (a, b), of which a fifth is sampled."""


def is_binomial(seen: int, n: int, chance: float) -> bool:
    return bool(stats.binomtest(seen, n, chance).pvalue > FALSE_ALARM)


@pytest.fixture(scope="module")
def simulated() -> tuple[np.ndarray, np.ndarray]:
    """The groups of the population, and how many people of each are in the sample."""
    chance = np.random.default_rng(20261119)
    population = 1 + chance.negative_binomial(A, B, CLASSES)
    return population, chance.binomial(population, FRACTION)


def arx_twos() -> float:
    """ARX multiplies by the power that the formula divides by."""
    d = (1 - FRACTION) * (1 - B)
    inner = CLASSES * FRACTION**2 * A * (1 - B) * B**A * (2 - (1 - A) * d)
    return inner / 2 * (1 - d) ** (A + 2)


def arx_shlosser(groups: GroupCounts, p: float) -> float:
    """ARX loses a bracket: (1 - p)^i (1 + p)^i - 1 in place of (1 - p)^i ((1 + p)^i - 1)."""
    i, m = groups.size.astype(float), groups.count
    first = (i * p**2 * (1 - p**2) ** (i - 1) * m).sum() / (((1 - p**2) ** i - 1) * m).sum()
    second = ((1 - p) ** i * m).sum() / (i * p * (1 - p) ** (i - 1) * m).sum()
    return float(groups.groups + groups.alone * first * second**2)


def test_a_sample_has_the_groups_of_one_and_two_that_the_model_expects(simulated):
    sampled = GroupCounts.of(simulated[1][simulated[1] > 0])
    ones, twos = expect_small_groups(CLASSES, A, B, FRACTION)
    assert (round(twos), round(arx_twos())) == (21_756, 23)
    assert is_binomial(sampled.alone, CLASSES, ones / CLASSES)
    assert is_binomial(sampled.of_size(2), CLASSES, twos / CLASSES)
    for wrong in (arx_twos(), 0.95 * twos, 1.05 * twos):  # the test must be able to fail
        assert not is_binomial(sampled.of_size(2), CLASSES, wrong / CLASSES)


def test_shlossers_estimate_is_near_the_number_of_groups(simulated):
    sampled = GroupCounts.of(simulated[1][simulated[1] > 0])
    found = shlosser(sampled, FRACTION)
    assert found == pytest.approx(182_900, rel=0.01)  # it is not without bias: there are 200,000
    assert abs(found - CLASSES) < abs(arx_shlosser(sampled, FRACTION) - CLASSES) / 2


def test_snb_is_near_those_who_are_alone(simulated):
    population, sample = simulated
    sampled = GroupCounts.of(sample[sample > 0])
    true = int((population == 1).sum())
    assert is_binomial(true, CLASSES, B**A)
    assert estimate_by_snb(sampled, FRACTION).value == pytest.approx(true, rel=0.2)
    found = estimate_uniques(sampled, FRACTION)
    assert found.rule == SNB
    assert not found.estimates[PITMAN].converged  # it is not its model, and it says so
    assert found.estimates[ZAYATZ].value == pytest.approx(true, rel=0.25)


def pitman_population(theta: float, alpha: float, n: int, seed: int) -> np.ndarray:
    """The group of each person, one after the other: a new one, or that of somebody before."""
    chance = np.random.default_rng(seed)
    group, size = np.zeros(n, dtype=np.int64), np.zeros(n)
    size[0], groups = 1, 1
    for i in range(1, n):
        if chance.random() * (theta + i) < theta + groups * alpha:
            group[i], groups = groups, groups + 1
        else:
            near = group[chance.integers(i)]
            while chance.random() >= 1 - alpha / size[near]:
                near = group[chance.integers(i)]
            group[i] = near
        size[group[i]] += 1
    return group


@pytest.mark.parametrize("fraction", [0.05, 0.2])
def test_pitman_is_near_those_who_are_alone_in_his_model(fraction):
    n = 40_000
    group = pitman_population(40.0, 0.6, n, seed=7)
    true = int((np.bincount(group) == 1).sum())
    drawn = np.random.default_rng(8).permutation(group)[: int(n * fraction)]
    sampled = GroupCounts.of(np.unique(drawn, return_counts=True)[1])
    assert estimate_by_pitman(sampled, fraction).value == pytest.approx(true, rel=0.2)


@pytest.mark.parametrize(("people", "fraction"), [(1, 0.05), (3, 0.2), (12, 0.01)])
def test_one_over_the_people_of_the_population_is_on_average_what_is_expected(people, fraction):
    n = 200_000
    chance = np.random.default_rng(people)
    seen = 1 / (people + chance.negative_binomial(people, fraction, n))
    width = stats.norm.isf(FALSE_ALARM / 2) * seen.std() / math.sqrt(n)
    expected = expect_risk(np.array([people]), np.array([fraction]))[0]
    assert abs(seen.mean() - expected) < width
    assert abs(seen.mean() - fraction / people) > width  # one over the estimated people is too low
    if people == 3:
        assert abs(seen.mean() - 0.0909) > width  # sdcMicro's approximation
