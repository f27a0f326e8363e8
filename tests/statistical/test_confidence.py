"""How often do the tests of Rothko-S err, and how often do they miss? By exact chances where there are any, else
by simulation at the null hypothesis. Every check has a false alarm rate of about one in a million, at fixed seeds;
``pytest -s`` prints the tables.

Levels are per part: a split at alpha = .05 into two parts tests each at .025.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from naive_confidence import Sample
from scipy import stats

from sfumato.methods.mondrian.sample_tests import least_rows

ALPHA, PARTS = 0.05, 2
LEVEL = ALPHA / PARTS
FALSE_ALARM = 1e-6
DRAWS = 10_000


def is_at_most(n_errors: int, level: float, n_draws: int = DRAWS) -> bool:
    """Could a test of this level err so often?"""
    return n_errors <= stats.binom.isf(FALSE_ALARM, n_draws, level)


def is_about(n_errors: int, level: float, n_draws: int = DRAWS) -> bool:
    return is_at_most(n_errors, level, n_draws) and n_errors >= stats.binom.ppf(FALSE_ALARM, n_draws, level)


# ---- k ---------------------------------------------------------------------------------------------

LARGE = [
    (N, n, k)
    for N in (100_000, 50_000_000)
    for n in (1000, 10_000, 100_000 - 1, 2_000_000)
    for k in (100, 1000, 10_000)
    if n < N and k * n / N >= 10
]  # fmt: skip


def accept_chance(rows: int, *, N: int, n: int, k: int) -> float:  # noqa: N803 - the paper's letter
    """Of a part with so many rows: that the sample has as many as the test wants."""
    z = stats.norm.isf(LEVEL)
    return float(stats.hypergeom.sf(least_rows(k, n_sample=n, n_rows=N, z=z) - 1, N, rows, n))


@pytest.mark.parametrize(("N", "n", "k"), LARGE)
def test_k_anonymity_errs_at_most_with_chance_alpha_where_the_sample_is_large(N, n, k):  # noqa: N803
    """Exactly, for the largest group that is too small: the promise of the paper, whose normal law is a limit."""
    error = accept_chance(k - 1, N=N, n=n, k=k)
    powers = "  ".join(f"{t:g}k: {accept_chance(int(t * k), N=N, n=n, k=k):.3f}" for t in (1.1, 1.25, 1.5, 2))
    print(f"k-anonymity N={N} n={n} k={k}: errs {error:.4f} (level {LEVEL}), power at {powers}")
    assert error <= ALPHA
    assert error <= 1.7 * LEVEL


def test_k_anonymity_errs_more_often_where_few_rows_of_a_group_are_expected_in_the_sample():
    """What the paper does not promise: one expected row is no large sample. Pruning undoes it."""
    error = accept_chance(99, N=100_000, n=1000, k=100)
    print(f"k-anonymity N=100000 n=1000 k=100 (1 row expected): errs {error:.4f}")
    assert ALPHA < error < 0.1


def test_the_chances_of_k_anonymity_are_those_of_simple_random_samples():
    N, n, k = 20_000, 2000, 400  # noqa: N806
    random = np.random.default_rng(20080801)
    least = least_rows(k, n_sample=n, n_rows=N, z=stats.norm.isf(LEVEL))
    population = np.arange(N) < k - 1
    n_errors = sum(int(random.permutation(population)[:n].sum() >= least) for _ in range(4000))
    assert is_about(n_errors, accept_chance(k - 1, N=N, n=n, k=k), 4000)
    assert not is_about(n_errors, 2 * accept_chance(k - 1, N=N, n=n, k=k), 4000)  # the check can fail


# ---- entropy ---------------------------------------------------------------------------------------


def entropy(p) -> float:
    p = np.asarray(p)[np.asarray(p) > 0]
    return float(-(p * np.log(p)).sum())


def with_entropy(shape, wanted: float, kind: str):
    """A distribution of exactly that entropy: tempered, or mixed with its most frequent value."""
    shape = np.asarray(shape, dtype=np.float64)
    first = np.eye(len(shape))[shape.argmax()]
    low, high = 0.0, 1.0 if kind == "mixed" else 60.0
    for _ in range(200):
        t = (low + high) / 2
        if kind == "mixed":
            p = t * first + (1 - t) * shape / shape.sum()
        else:
            p = np.exp(t * (np.log(shape) - np.log(shape.max())))
            p /= p.sum()
        low, high = (t, high) if entropy(p) > wanted else (low, t)
    assert entropy(p) == pytest.approx(wanted, abs=1e-6)
    return p


def ramp(n):
    return np.linspace(1, 2, n)


def zipf(n):
    return 1 / np.arange(1, n + 1)


NULLS = {
    "two values, l 1.5": (1.5, with_entropy([2, 1], math.log(1.5), "tempered")),
    "two values, nearly even, l 1.99": (1.99, with_entropy([2, 1], math.log(1.99), "tempered")),
    "five values, one frequent, l 2": (2, with_entropy(np.ones(5), math.log(2), "mixed")),
    "nine values, nearly even, l 8.9": (8.9, with_entropy(ramp(9), math.log(8.9), "tempered")),
    "nine values, nearly even but one, l 8.9": (8.9, with_entropy(np.ones(9), math.log(8.9), "mixed")),
    "eight even values of nine, l 8": (8, np.array([1 / 8] * 8 + [0.0])),
    "57 values, one frequent, l 6": (6, with_entropy(np.ones(57), math.log(6), "mixed")),
    "57 values, Zipf, l 6": (6, with_entropy(zipf(57), math.log(6), "tempered")),
    "57 values, nearly even, l 55": (55, with_entropy(ramp(57), math.log(55), "tempered")),
    "six even values of 57, l 6": (6, np.array([1 / 6] * 6 + [0.0] * 51)),
    "1000 values, one frequent, l 20": (20, with_entropy(np.ones(1000), math.log(20), "mixed")),
    "1000 values, Zipf, l 20": (20, with_entropy(zipf(1000), math.log(20), "tempered")),
}  # fmt: skip


def counts_with_replacement(p, n, random, n_draws=DRAWS):
    return random.multinomial(n, p / p.sum(), n_draws)


def counts_without(p, n, times, random, n_draws=DRAWS):
    """From a finite group of ``times`` n rows whose entropy is no larger than that of p; and its shares."""
    rows = times * n
    group = np.floor(p * rows).astype(np.int64)
    group[group.argmax()] += rows - group.sum()  # to the most frequent value: less entropy
    return random.multivariate_hypergeometric(group, n, n_draws, method="marginals")


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 100, 1000, 10_000])
@pytest.mark.parametrize("name", NULLS)
def test_entropy_diversity_errs_at_most_at_its_level_whatever_the_values_and_the_sample(name, n):
    l, p = NULLS[name]  # noqa: E741
    random = np.random.default_rng(n)
    test = Sample(n, 10**9, len(p))
    draws = {
        "of many": counts_with_replacement(p, n, random),
        "of 2n": counts_without(p, n, 2, random),
        "of 20n": counts_without(p, n, 20, random),
    }
    errors = {word: int(test.entropy_passes(l, counts, PARTS).sum()) for word, counts in draws.items()}
    rates = "  ".join(f"{word} {n_errors / DRAWS:.4f}" for word, n_errors in errors.items())
    print(f"entropy, {name}, n={n}: errs {rates} (level {LEVEL})")
    for n_errors in errors.values():
        assert is_at_most(n_errors, LEVEL)


def test_the_plain_entropy_of_a_sample_and_a_normal_approximation_err_more_often():
    """What the test must beat: the check above can fail."""
    l, p = NULLS["five values, one frequent, l 2"]  # noqa: E741
    counts = counts_with_replacement(p, 10_000, np.random.default_rng(1))
    naive = Sample(10_000, 10**9, 5, tests=False).entropy_passes(l, counts, PARTS)
    assert not is_at_most(int(naive.sum()), 10 * LEVEL)
    # by the delta method: H - log l >= z sd; where the values are nearly even, sd is nearly nothing in the sample
    l, n = 1.99, 170  # noqa: E741
    p = NULLS["two values, nearly even, l 1.99"][1]
    shares = counts_with_replacement(p, n, np.random.default_rng(2)) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(shares > 0, -np.log(shares), 0)
    mean = (shares * logs).sum(axis=1)
    error = np.sqrt(((shares * logs**2).sum(axis=1) - mean**2).clip(0) / n)
    n_errors = int((mean - math.log(l) > stats.norm.isf(LEVEL) * error).sum())
    print(f"entropy by the delta method, two values, l 1.99, n={n}: errs {n_errors / DRAWS:.4f}")
    assert not is_at_most(n_errors, LEVEL)


ALTERNATIVES = {
    "two even values, l 1.5": (1.5, np.ones(2) / 2),
    "five even values, l 2": (2, np.ones(5) / 5),
    "five values, Zipf, l 2": (2, zipf(5) / zipf(5).sum()),
    "57 even values, l 6": (6, np.ones(57) / 57),
    "57 values, Zipf, l 6": (6, zipf(57) / zipf(57).sum()),
    "57 values of entropy log 8, l 6": (6, with_entropy(zipf(57), math.log(8), "tempered")),
    "1000 values, Zipf, l 20": (20, zipf(1000) / zipf(1000).sum()),
}  # fmt: skip


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_entropy_diversity_is_found_more_often_the_larger_the_sample_and_at_last_always(name):
    l, p = ALTERNATIVES[name]  # noqa: E741
    random = np.random.default_rng(3)
    power = {}
    for n in (20, 50, 100, 300, 1000, 3000, 10_000):
        counts = counts_with_replacement(p, n, random, 2000)
        power[n] = float(Sample(n, 10**9, len(p)).entropy_passes(l, counts, PARTS).mean())
    print(f"entropy, {name} (effective {math.exp(entropy(p)):.1f}): power {power}")
    assert power[10_000] > 0.99
    assert all(a <= b + 0.05 for a, b in zip(power.values(), list(power.values())[1:], strict=False))


# ---- rules of thumb --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 50, 2000])
def test_variance_diversity_errs_exactly_at_its_level_for_normal_values(n):
    random = np.random.default_rng(n)
    test = Sample(n, 10**9, 1)
    n_draws = DRAWS if n < 2000 else 4000
    n_errors = sum(test.variance_passes(1.0, random.normal(size=n), PARTS) for _ in range(n_draws))
    print(f"variance, normal values, n={n}: errs {n_errors / n_draws:.4f} (level {LEVEL})")
    assert is_about(n_errors, LEVEL, n_draws)
    for wrong in (0.4, 2):  # the check can fail
        assert not is_about(n_errors, wrong * LEVEL, n_draws)


SPREADS = {
    "uniform": lambda random, n: random.uniform(-math.sqrt(3), math.sqrt(3), n),
    "exponential": lambda random, n: random.exponential(size=n),
    "two values": lambda random, n: random.integers(0, 2, n) * 2.0 - 1,
    "heavy tails (t, 5 df)": lambda random, n: random.standard_t(5, n) * math.sqrt(3 / 5),
}


def test_variance_diversity_of_other_values_is_a_rule_of_thumb():
    """Lighter tails than normal: it errs less. Heavier: more. Reported; only the side is checked."""
    random = np.random.default_rng(9)
    n, n_draws = 200, 4000
    test = Sample(n, 10**9, 1)
    rate = {}
    for name, draw in SPREADS.items():
        rate[name] = sum(test.variance_passes(1.0, draw(random, n), PARTS) for _ in range(n_draws)) / n_draws
        power = {
            times: float(
                np.mean([test.variance_passes(1 / times, draw(random, n), PARTS) for _ in range(500)])
            )
            for times in (1.1, 1.25, 1.5, 2)
        }
        print(f"variance, {name}, n={n}: errs {rate[name]:.4f} (level {LEVEL}), power at v times {power}")
        assert power[2] > 0.8
    assert rate["uniform"] < LEVEL < rate["exponential"]


RECURSIVE = {
    "c 1, l 2, two values": (1, 2, [0.5, 0.5]),
    "c 1, l 2, three values": (1, 2, [0.5, 0.25, 0.25]),
    "c 2, l 3, five values": (2, 3, [0.5, 0.25, 0.15, 0.05, 0.05]),
    "c 1, l 6, 57 values": (1, 6, [0.2] + [0.15] * 4 + [0.2 / 52] * 52),
    "c 0.5, l 2, 20 even values and one": (0.5, 2, [1 / 3] + [2 / 60] * 20),
}


@pytest.mark.parametrize("name", RECURSIVE)
def test_recursive_diversity_is_a_rule_of_thumb_that_may_err_four_times_as_often_as_it_says(name):
    """p1 = c p2: the null of the paper, which takes both shares for independent. They are not: where l = 2 and c = 1
    their difference has twice the variance. Where values are tied for a place, the order in the sample errs on the
    safe side. Pruning undoes the rest.
    """
    c, l, given_shares = RECURSIVE[name]  # noqa: E741
    p = np.array(given_shares)
    ranked = np.sort(p)[::-1]
    assert ranked[0] == pytest.approx(c * ranked[l - 1 :].sum())
    random = np.random.default_rng(4)
    line = []
    for n in (30, 300, 3000):
        test = Sample(n, 10**9, len(p))
        n_errors = int(test.recursive_passes(c, l, counts_with_replacement(p, n, random), PARTS).sum())
        power = float(test.recursive_passes(1.5 * c, l, counts_with_replacement(p, n, random), PARTS).mean())
        line.append(f"n={n} errs {n_errors / DRAWS:.4f}, power at 1.5 c {power:.3f}")
        assert is_at_most(n_errors, 4 * LEVEL)
    print(f"recursive, {name}: {'; '.join(line)} (level {LEVEL})")


# ---- closeness -------------------------------------------------------------------------------------


def group_away_from(whole, t):
    """A group of as many rows as the table, farther than t from it by as little as whole rows can be."""
    group, moved = np.array(whole), math.floor(t * sum(whole)) + 1
    group[0] += moved
    for v in range(len(group) - 1, 0, -1):
        gone = min(moved, group[v])
        group[v] -= gone
        moved -= gone
    return group


@pytest.mark.parametrize("n", [20, 200, 2000])
@pytest.mark.parametrize("n_values", [2, 5, 12])
@pytest.mark.parametrize("t", [0.1, 0.3])
def test_t_closeness_errs_at_most_at_its_level_and_is_found_in_the_end(n_values, n, t):
    whole = (np.ones(n_values, dtype=np.int64) * 120_000 // n_values).tolist()
    random = np.random.default_rng(20070415)
    sample = Sample(n, 10**6, n_values, whole=tuple(whole))

    def passes(group):
        drawn = random.multivariate_hypergeometric(group, n, DRAWS, method="marginals")
        return int(sample.closeness_passes(Fraction(str(t)), drawn, PARTS).sum())

    assert is_at_most(passes(group_away_from(whole, t)), LEVEL)
    if n * t * t > 10 * n_values:
        assert passes(np.array(whole)) > DRAWS // 2
