"""Do the mechanisms draw from the laws that the proofs are about? Chi-square tests against the laws in closed form.

A correct sampler fails one check with a chance of 1e-6. 37 checks of secret draws must pass, so the file raises a false
alarm once in 27,000 runs; the seeded draws are always the same. The checks must also reject scales that are wrong by
5 percent (noise) or 30 percent (selection), a bias that leaves the spread as it is, and each law the other's draws.

OpenDP up to 0.14.1 had biased noise that showed at scale 20 and not at 1 or 2: hence the many scales.
"""

from __future__ import annotations

from fractions import Fraction

import laws
import numpy as np
import pytest
from scipy import stats

from sfumato import randomness
from sfumato.privacy.mechanisms import COUNTS_AT_ONCE, secret, secret_coins, seeded

FALSE_ALARM = 1e-6
SCALES = [
    Fraction(7, 10),
    Fraction(1),
    Fraction(2),
    Fraction(10, 3),
    Fraction(20, 3),
    Fraction(20),
    Fraction(40),
]
N_NOISE, N_CHOICES = 200_000, 10_000

pytestmark = pytest.mark.slow


@pytest.fixture(params=["secret", "seeded"], scope="module")
def backend(request):
    return secret() if request.param == "secret" else seeded(20110821)


# ---- noise -----------------------------------------------------------------------------------------


def fit_of_noise(noise, scale):
    """The p-value of a chi-square test; single values near 0, and ranges of them where they are rare."""
    reach = int(60 * scale) + 60
    chances = laws.discrete_laplace(np.arange(-reach, reach + 1), scale)
    bins = np.floor(np.cumsum(chances) * 250).astype(int)  # at most 250 ranges of about equal chance
    bins[[0, -1]] = bins[[1, -2]]
    _, bins = np.unique(bins, return_inverse=True)
    expected = len(noise) * np.bincount(bins, weights=chances)
    seen = np.bincount(bins[np.clip(noise, -reach, reach) + reach], minlength=len(expected))
    return stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue


@pytest.fixture(params=SCALES, ids=str, scope="module")
def scale(request):
    return request.param


@pytest.fixture(scope="module")
def noise(backend, scale):
    return backend.discrete_laplace(np.zeros(N_NOISE, dtype=np.int64), scale)


def test_noise_follows_the_discrete_laplace_law_of_its_scale_and_no_other(noise, scale):
    fit = fit_of_noise(noise, float(scale))
    print(f"scale {scale}: p = {fit:.3g}")
    assert fit >= FALSE_ALARM
    for wrong in (0.95, 1.05):
        assert fit_of_noise(noise, wrong * float(scale)) < FALSE_ALARM


def test_biased_noise_is_found(noise, scale):
    """Every fourth 0 is a 1, which hardly moves the mean or the spread."""
    moved = noise + (np.arange(N_NOISE) % 4 == 0) * (noise == 0)
    assert fit_of_noise(moved, float(scale)) < FALSE_ALARM


def test_noise_of_one_count_says_nothing_about_that_of_another(noise):
    for lag in (1, COUNTS_AT_ONCE):  # the next one, and the same one of the next piece
        correlation = np.corrcoef(noise[:-lag], noise[lag:])[0, 1]
        assert abs(correlation) * np.sqrt(len(noise) - lag) < stats.norm.isf(FALSE_ALARM / 2)


def test_noise_does_not_depend_on_the_count(backend):
    counts = np.repeat(np.array([-3, 0, 1, 30_162, 2**40]), 20_000)
    noise = backend.discrete_laplace(counts, Fraction(3)) - counts
    assert fit_of_noise(noise, 3.0) >= FALSE_ALARM
    table = [np.bincount(np.clip(part, -9, 9) + 9, minlength=19) for part in noise.reshape(5, -1)]
    assert stats.chi2_contingency(table).pvalue >= FALSE_ALARM


# ---- selection -------------------------------------------------------------------------------------

LISTS = {
    "spread": ([0, -3, -7, -1, -12, -4], Fraction(5)),
    "duplicates": ([40, 31, 40, 31, 31, 25], Fraction(20, 3)),
    "all equal but one": ([3, 3, 3, 3, 4, 3], Fraction(7, 10)),
    "two, far from 0": ([10**12, 10**12 - 2], Fraction(2)),
}
LAWS = {"exponential": laws.exponential, "permute_and_flip": laws.permute_and_flip}


def fit_of_choices(choices, chances):
    return stats.chisquare(np.bincount(choices, minlength=len(chances)), len(choices) * chances).pvalue


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("law", LAWS)
def test_choices_follow_their_law_and_no_other(backend, law, case):
    scores, scale = LISTS[case]
    choices = np.array([getattr(backend, law)(np.array(scores), scale) for _ in range(N_CHOICES)])
    fit = fit_of_choices(choices, LAWS[law](scores, float(scale)))
    print(f"{law}, {case}: p = {fit:.3g}")
    assert fit >= FALSE_ALARM
    for wrong in (0.7, 1.3):
        assert fit_of_choices(choices, LAWS[law](scores, wrong * float(scale))) < FALSE_ALARM
    (other,) = set(LAWS) - {law}
    assert fit_of_choices(choices, LAWS[other](scores, float(scale))) < FALSE_ALARM


# ---- coins -----------------------------------------------------------------------------------------

N_COINS = 1_000_000
CHANCES = [Fraction(1, 2), Fraction(1, 5), Fraction(39, 100)]


def fit_of_coins(is_drawn, chance):
    """The p-value of a chi-square test of how many of eight in a row are drawn, each pattern by itself."""
    patterns = np.packbits(is_drawn)
    n_ones = np.array([pattern.bit_count() for pattern in range(256)])
    expected = len(patterns) * float(chance) ** n_ones * (1 - float(chance)) ** (8 - n_ones)
    seen = np.bincount(patterns, minlength=256)
    rare = expected < 5
    seen, expected = (np.append(of[~rare], of[rare].sum() or None) for of in (seen, expected))
    there = np.array([number is not None for number in expected])
    seen, expected = seen[there].astype(float), expected[there].astype(float)
    return stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("chance", CHANCES, ids=str)
@pytest.mark.parametrize("coins", [secret_coins(), seeded(20120101)], ids=["secret", "seeded"])
def test_coins_are_drawn_with_their_chance_and_no_other_each_by_itself(coins, chance):
    is_drawn = coins.bernoulli(N_COINS, chance)
    fit = fit_of_coins(is_drawn, chance)
    print(f"chance {chance}: p = {fit:.3g}")
    assert fit >= FALSE_ALARM
    for wrong in (chance + Fraction(1, 100), chance - Fraction(1, 100)):
        assert fit_of_coins(is_drawn, wrong) < FALSE_ALARM


@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_coins_that_depend_on_each_other_are_found(chance):
    """Every eighth is a copy of the one before it, with the right chance by itself."""
    is_drawn = seeded(1).bernoulli(N_COINS, chance)
    is_drawn[1::8] = is_drawn[::8]
    assert fit_of_coins(is_drawn, chance) < FALSE_ALARM


def test_whole_numbers_of_the_system_are_all_equally_likely():
    """Of a number that does not divide 2^64: without rejection the low ones would be twice as likely."""
    n = 3 * 2**62 // 2
    high = np.mean(randomness.secret_below(n, 200_000) >= n // 2)
    assert abs(high - 0.5) * 2 * np.sqrt(200_000) < stats.norm.isf(FALSE_ALARM / 2)


# ---- the laws themselves ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_permute_and_flip_in_closed_form_is_its_definition(n):
    random = np.random.default_rng(n)
    for _ in range(20):
        scores, scale = random.integers(-5, 5, n), random.uniform(0.3, 8)
        closed = laws.permute_and_flip(scores, scale)
        assert closed == pytest.approx(laws.permute_and_flip_by_orders(scores.tolist(), scale), rel=1e-12)
        assert closed.sum() == pytest.approx(1, rel=1e-12)


def test_the_closed_form_holds_for_long_lists_and_for_several_at_once():
    random = np.random.default_rng(1)
    scores = random.integers(-30, 30, (7, 300))
    together = laws.permute_and_flip(scores, np.full(7, 4.0))
    assert together.sum(axis=1) == pytest.approx(np.ones(7), rel=1e-12)
    assert together[3] == pytest.approx(laws.permute_and_flip(scores[3], 4.0), rel=1e-12)
    is_open = np.arange(300) < 5
    assert laws.permute_and_flip(scores, np.full(7, 4.0), is_open=is_open)[:, :5] == pytest.approx(
        laws.permute_and_flip(scores[:, :5], np.full(7, 4.0)), rel=1e-12
    )


def test_two_entries_of_one_candidate_share_what_the_law_gives():
    assert laws.exponential([3, 3, 1], 1.0)[0] == pytest.approx(np.e**2 / (2 * np.e**2 + 1))
    assert laws.permute_and_flip([1, 1], 1.0).tolist() == pytest.approx([0.5, 0.5])
    assert laws.discrete_laplace(np.arange(-2000, 2001), 40.0).sum() == pytest.approx(1)
