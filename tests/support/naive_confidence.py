"""The tests of Rothko-S in plain numpy and scipy, from [LDR08, section 5.2.1]; and rules for the kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

from sfumato.kernels.axes import NO_NUMBER
from sfumato.methods.mondrian.kernels.problem import (
    CLOSENESS,
    DISTINCT,
    ENTROPY,
    LOWEST_RATE,
    RATES_PER_OCTAVE,
    RECURSIVE,
    SET,
    VALUES,
    VARIANCE,
    Rules,
    SensitiveRules,
    table,
)
from sfumato.methods.mondrian.sample_tests import ORDERS
from sfumato.policy.requirements import (
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
    TCloseness,
    VarianceDiversity,
)


@dataclass(frozen=True)
class Sample:
    """n of N rows; ``n_values`` sensitive values exist, ``whole`` says how often in all rows."""

    n: int
    N: int
    n_values: int
    alpha: float = 0.05
    tests: bool = True
    whole: tuple[int, ...] = ()

    def passes(self, requirement, values, numbers, n_parts: int) -> bool:
        """Does a part with these sensitive values and numbers, one of ``n_parts``, pass?"""
        n = len(values)
        if isinstance(requirement, KAnonymity):
            return n >= self.least_rows(requirement.k, n_parts)
        if isinstance(requirement, VarianceDiversity):
            return self.variance_passes(requirement.at_least, numbers[numbers != NO_NUMBER], n_parts)
        counts = np.bincount(values, minlength=self.n_values)[None, :]
        if isinstance(requirement, EntropyDiversity):
            return bool(n > 0 and self.entropy_passes(requirement.l, counts, n_parts)[0])
        if isinstance(requirement, TCloseness):
            return bool(n > 0 and self.closeness_passes(requirement.exact_t, counts, n_parts)[0])
        if requirement.l == 1:
            return True
        return bool(n > 0 and self.recursive_passes(float(requirement.c), requirement.l, counts, n_parts)[0])

    def share(self, n_parts: int) -> float:
        return self.alpha / n_parts

    def least_rows(self, k: int, n_parts: int) -> float:
        if self.n == self.N:
            return k
        if not self.tests:
            return k * self.n / self.N
        p = k / self.N
        error = math.sqrt(max(p * (1 - p), 0) / (self.n - 1) * (self.N - self.n) / self.N)
        return min(k, self.n * (p + stats.norm.isf(self.share(n_parts)) * error))

    def variance_passes(self, least: float, numbers, n_parts: int) -> bool:
        if least <= 0:
            return True
        n = len(numbers)
        if n == 0:
            return False
        spread = float(np.var(numbers.astype(np.float64)) * n)
        if self.n == self.N or not self.tests:
            return spread / n >= least
        return n >= 2 and spread / least >= stats.chi2.isf(self.share(n_parts), n - 1)

    def recursive_passes(self, c: float, l: int, counts, n_parts: int):  # noqa: E741 - the letter of the definition
        """For lines of counts."""
        n = counts.sum(axis=1)
        ranked = -np.sort(-counts, axis=1)
        first, tail = ranked[:, 0] / n, ranked[:, l - 1 :].sum(axis=1) / n
        if self.n == self.N or not self.tests:
            return first < c * tail - 1e-12
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(
                (c * c * tail * (1 - tail) + first * (1 - first)) / (n - 1) * (self.N - self.n) / self.N
            )
            return c * tail - first > stats.norm.isf(self.share(n_parts)) * error + 1e-12

    def closeness_passes(self, t: Fraction, counts, n_parts: int):
        """For lines of counts, by the equal distance."""
        n, whole = counts.sum(axis=1).astype(object), np.array(self.whole, dtype=object)
        gaps = np.abs(counts * whole.sum() - n[:, None] * whole).sum(axis=1)
        if self.n == self.N or not self.tests:
            return gaps * t.denominator <= 2 * n * whole.sum() * t.numerator
        distance = (gaps / (2 * n * whole.sum())).astype(np.float64)
        doubt = self.n_values * math.log(2) + math.log(2 / self.share(n_parts))
        return distance <= float(t) - np.sqrt(doubt / (2 * n.astype(np.float64)))

    def entropy_passes(self, l: float, counts, n_parts: int):  # noqa: E741 - the letter of the definition
        """For lines of counts."""
        n = counts.sum(axis=1)
        entropy = np.log(n) - (counts * np.log(np.maximum(counts, 1))).sum(axis=1) / n
        if self.n == self.N or not self.tests or l <= 1:
            return entropy >= math.log(l) - 1e-12
        doubt = math.log(2 / self.share(n_parts))
        sizes, where = np.unique(n, return_inverse=True)
        limit = np.array([self.entropy_limit(doubt / size, math.log(l)) for size in sizes.tolist()])[where]
        most = counts.max(axis=1) / n
        bound = self.frequency_bound(math.log(l))
        with np.errstate(divide="ignore", invalid="ignore"):
            away = most * np.log(most / bound) + (1 - most) * np.log((1 - most) / (1 - bound))
        return (entropy >= limit - 1e-12) | ((most < bound) & (n * away >= doubt))

    def entropy_limit(self, rate: float, log_l: float) -> float:
        """The smallest h = R + rate / s, the rate rounded up; R by brute force over one and several frequent values."""
        if self.n_values < 2 or log_l >= math.log(self.n_values):
            return math.inf
        at = max(0, math.ceil((math.log2(rate) - LOWEST_RATE) * RATES_PER_OCTAVE))
        rate = 2.0 ** (LOWEST_RATE + at / RATES_PER_OCTAVE)
        return float((most_renyi(log_l, self.n_values) + rate / ORDERS).min())

    @staticmethod
    def frequency_bound(log_l: float) -> float:
        grid = np.linspace(1e-4, 1, 200_001)
        whole = np.floor(1 / grid + 1e-12)
        rest = np.clip(1 - whole * grid, 0, 1)
        entropy = -whole * grid * np.log(grid) - rest * np.log(np.where(rest > 0, rest, 1))
        return float(grid[entropy >= log_l - 1e-12].max())


_RENYI: dict[tuple[float, int], np.ndarray] = {}


def most_renyi(log_l: float, n_values: int) -> np.ndarray:
    """The greatest entropy of each order 1 - s among distributions of at most that entropy."""
    if (log_l, n_values) not in _RENYI:
        best = np.full(len(ORDERS), -np.inf)
        for n_large in range(1, min(n_values, 6)):  # a few of a larger share, all others equal
            low, high = 0.0, 1 - n_large / n_values
            for _ in range(60):
                rest = (low + high) / 2
                here = -(1 - rest) * math.log((1 - rest) / n_large)
                here -= rest * math.log(rest / (n_values - n_large))
                low, high = (rest, high) if here < log_l else (low, rest)
            if abs(here - log_l) > 1e-6:
                continue  # these cannot have so little entropy
            shares = np.array([(1 - high) / n_large] * n_large + [high / (n_values - n_large)])
            times = np.array([1] * n_large + [n_values - n_large])
            best = np.maximum(best, np.log((times * shares ** (1 - ORDERS[:, None])).sum(axis=1)) / ORDERS)
        _RENYI[log_l, n_values] = best
    return _RENYI[log_l, n_values]


def rules_of(requirements, *, values_column: int, numbers_column: int, n_values: int, whole=()) -> Rules:
    """The definitions, for rows with one sensitive category and one sensitive number."""
    least, entropy, recursive, variance, closeness = 1, [], [], [], []
    for asked in requirements:
        if isinstance(asked, KAnonymity):
            least = max(least, asked.k)
        elif isinstance(asked, VarianceDiversity):
            variance.append((numbers_column, asked.at_least))
            least = max(least, 2 if asked.at_least > 0 else 1)
        elif isinstance(asked, EntropyDiversity):
            entropy.append((0, math.log(asked.l)))
            least = max(least, math.ceil(asked.l - 1e-9))
        elif isinstance(asked, TCloseness):
            t = 2 * asked.exact_t
            closeness.append((0, 0, n_values, n_values, sum(whole), t.numerator, t.denominator, asked.t, 2))
        else:
            assert isinstance(asked, RecursiveDiversity)
            least = max(least, asked.l)
            if asked.l > 1:
                recursive.append((0, asked.l, asked.exact_c.numerator, asked.exact_c.denominator))
    sensitive = SensitiveRules(
        values=table(VALUES, [(values_column, 0, n_values)] if entropy or recursive or closeness else []),
        distinct=table(DISTINCT, []),
        entropy=table(ENTROPY, entropy),
        recursive=table(RECURSIVE, recursive),
        variance=table(VARIANCE, variance),
        closeness=table(CLOSENESS, closeness),
        sets=table(SET, [(v, v, v + 1, 1, n_rows) for v, n_rows in enumerate(whole)]),
    )
    return Rules(
        least_rows=least,
        diverse_rows=max((asked.fewest_rows for asked in requirements if asked.of is not None), default=1),
        sensitive=sensitive if entropy or recursive or variance or closeness else None,
    )
