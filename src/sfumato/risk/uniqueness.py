"""How many people of a population are alone, estimated from a sample: Pitman, slide negative binomial, Zayatz.

Each estimator takes the number of groups of each size, and the share of the population that is in the sample. One that
does not converge says so and why; none answers 0 because it failed. On samples of people they err upwards, and by far:
see docs/risk.md. They need scipy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import MissingExtra

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PITMAN, SNB, ZAYATZ = "pitman", "snb", "zayatz"
NAMES = {PITMAN: "Pitman", SNB: "slide negative binomial", ZAYATZ: "Zayatz"}

SMALL_FRACTION = 0.1
"""Up to which fraction the rule of Dankar and others takes Pitman's estimate."""

CLOSE = 1e-6
"""How far from 0, relatively, the equations of an estimate may be where it counts as solved."""

ALPHA_END = 1e-6
"""How near the ends of its range alpha is looked for; nearer, the likelihood is lost in roundoff."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many people of the population are alone; no ``value`` where the estimator did not converge, and why not.

    >>> Estimate(None, "no row is alone").converged
    False
    """

    value: float | None
    reason: str = ""

    @property
    def converged(self) -> bool:
        return self.value is not None


@dataclass(frozen=True, slots=True, eq=False)
class GroupCounts:
    """How many groups of each size a sample has: ``count`` groups of ``size`` rows, sizes ascending.

    >>> GroupCounts.of(np.array([1, 3, 1])).count.tolist()
    [2, 1]
    """

    size: Ints
    count: Ints

    @classmethod
    def of(cls, people: Ints) -> GroupCounts:
        """Those of groups with these numbers of people."""
        size, count = np.unique(people, return_counts=True)
        return cls(size.astype(np.int64), count.astype(np.int64))

    def of_size(self, size: int) -> int:
        """How many groups have this size."""
        return int(self.count[self.size == size].sum())

    @property
    def n(self) -> int:
        return int((self.size * self.count).sum())

    @property
    def groups(self) -> int:
        return int(self.count.sum())

    @property
    def alone(self) -> int:
        return self.of_size(1)


@dataclass(frozen=True, slots=True)
class PopulationUniques:
    """The estimates side by side, and the one that the rule of Dankar and others [DENR12] takes, by its name."""

    estimates: Mapping[str, Estimate]
    rule: str | None

    @property
    def range(self) -> tuple[float, float] | None:
        """From the least to the greatest of Pitman's and the slide negative binomial; None unless both converged."""
        values = [self.estimates[name].value for name in (PITMAN, SNB)]
        known = [value for value in values if value is not None]
        return (min(known), max(known)) if len(known) == len(values) else None


def estimate_uniques(groups: GroupCounts, fraction: float) -> PopulationUniques:
    """The people of the population who are alone, by each estimator."""
    if fraction == 1:  # the sample is the population, and there is nothing to estimate
        estimates = dict.fromkeys(NAMES, Estimate(float(groups.alone)))
    else:
        estimates = {
            name: _possible(estimate(groups, fraction), groups.n / fraction)
            for name, estimate in ESTIMATORS.items()
        }
    return PopulationUniques(estimates, choose_by_rule(estimates, fraction))


def choose_by_rule(estimates: Mapping[str, Estimate], fraction: float) -> str | None:
    """Pitman up to a fraction of 0.1, else the lesser of slide negative binomial and Zayatz; what converged, by name.

    Zayatz takes the place of Pitman where that did not converge.

    >>> known = {"pitman": Estimate(None), "snb": Estimate(9.0), "zayatz": Estimate(8.0)}
    >>> choose_by_rule(known, 0.05), choose_by_rule(known | {"zayatz": Estimate(None)}, 0.5)
    ('zayatz', 'snb')
    """
    if fraction <= SMALL_FRACTION and estimates[PITMAN].converged:
        return PITMAN
    others = (ZAYATZ,) if fraction <= SMALL_FRACTION else (SNB, ZAYATZ)
    known = {name: value for name in others if (value := estimates[name].value) is not None}
    return min(known, key=lambda name: known[name]) if known else None


def _possible(estimate: Estimate, population: float) -> Estimate:
    """The estimate, unless no population of so many people can have it."""
    if estimate.value is None or 0 < estimate.value <= population:
        return estimate
    return Estimate(None, "what it gives is more than the population")


def estimate_by_pitman(groups: GroupCounts, fraction: float) -> Estimate:
    r"""Pitman's model [HOS01]: the likelihood is greatest at (theta, alpha), and of N people are alone about

    .. math:: \frac{\Gamma(\theta + 1)}{\Gamma(\theta + \alpha)} N^{\alpha}
    """
    if reason := _without_alone(groups):
        return Estimate(None, reason)
    if groups.alone == groups.n:
        return Estimate(None, "every row is alone, so the likelihood has no greatest value")
    special, optimize = _scipy("special"), _scipy("optimize")
    model = _PitmanModel(groups, special)
    starts = [(at, math.log(groups.groups * scale)) for at in (-1.0, 1.0) for scale in (0.1, 1.0, 10.0)]
    options = {"xatol": 1e-9, "fatol": 1e-7, "maxiter": 4000, "maxfev": 4000}
    found = [optimize.minimize(model.loss, start, method="Nelder-Mead", options=options) for start in starts]
    best = min(found, key=lambda each: each.fun)
    alpha, theta = model.parameters(best.x)
    if not (best.success and model.is_greatest(alpha, theta)):
        return Estimate(None, "the likelihood has no greatest value between the ends of alpha, 0 and 1")
    logarithm = special.gammaln(theta + 1) - special.gammaln(theta + alpha)
    return _finite(logarithm + alpha * math.log(groups.n / fraction))


@dataclass(frozen=True, slots=True, eq=False)
class _PitmanModel:
    """The likelihood of group sizes, up to a constant."""

    groups: GroupCounts
    special: Any

    def parameters(self, at: Any) -> tuple[float, float]:
        """Alpha between 0 and 1, and theta above -alpha, for any two numbers."""
        alpha = float(self.special.expit(at[0]))
        return alpha, math.exp(min(at[1], 700.0)) - alpha

    def loss(self, at: Any) -> float:
        alpha, theta = self.parameters(at)
        if not ALPHA_END < alpha < 1 - ALPHA_END:
            return math.inf
        lg, own = self.special.gammaln, self.groups
        value = (own.groups - 1) * math.log(alpha) + lg(theta / alpha + own.groups) - lg(theta / alpha + 1)
        value += lg(theta + 1) - lg(theta + own.n)
        value += (own.count * (lg(own.size - alpha) - lg(1 - alpha))).sum()
        return -float(value) if math.isfinite(value) else math.inf

    def is_greatest(self, alpha: float, theta: float) -> bool:
        """Whether the slopes are zero there, as they are not at an end."""
        psi, own = self.special.psi, self.groups
        steps = float(psi(theta / alpha + own.groups) - psi(theta / alpha + 1)) / alpha
        along_theta = steps - float(psi(theta + own.n) - psi(theta + 1))
        along_alpha = (own.groups - 1) / alpha - theta / alpha * steps
        along_alpha += float((own.count * (psi(1 - alpha) - psi(own.size - alpha))).sum())
        slopes = (alpha * (1 - alpha) * (along_alpha - along_theta), (theta + alpha) * along_theta)
        return max(map(abs, slopes)) <= 1e-3 * math.sqrt(own.groups)


def estimate_by_snb(groups: GroupCounts, fraction: float) -> Estimate:
    r"""The slide negative binomial model [CKM98]: a group of the population has one person more than a negative binomial.

    The number K of its groups is estimated by Shlosser; a and b are those for which as many groups of one and of two
    are expected in the sample as it has. Then K b^a people are alone.
    """
    if reason := _without_alone(groups):
        return Estimate(None, reason)
    if not groups.of_size(2):
        return Estimate(None, "no group has two rows")
    special, optimize = _scipy("special"), _scipy("optimize")
    classes = shlosser(groups, fraction)
    seen = np.log([groups.alone, groups.of_size(2)])

    def miss(at: Any) -> Floats:
        expected = expect_small_groups(classes, math.exp(at[0]), float(special.expit(at[1])), fraction)
        return np.log(np.maximum(expected, 1e-300)) - seen

    solved: list[float] = []
    for start in [(a, b) for a in (-3.0, -1.0, 1.0, 3.0) for b in (-6.0, -4.0, -2.0, 0.0, 2.0)]:
        found = optimize.least_squares(miss, start, bounds=([-20, -40], [12, 40]), xtol=1e-15, ftol=1e-15)
        if np.abs(found.fun).max() < CLOSE:
            solved.append(math.exp(found.x[0]) * float(special.log_expit(found.x[1])))
    if not solved:
        return Estimate(None, "no parameters give the groups of one and of two that the sample has")
    return _finite(math.log(classes) + max(solved))


def expect_small_groups(classes: float, a: float, b: float, fraction: float) -> tuple[float, float]:
    r"""How many groups of one and of two a sample has, if the population has K groups.

    .. math:: E c_1 = K \pi \left(\frac{b}{1 - d}\right)^a \left(1 + \frac{a d}{1 - d}\right), \qquad
              E c_2 = \frac{K \pi^2 a (1 - b) b^a (2 - (1 - a) d)}{2 (1 - d)^{a + 2}}, \qquad d = (1 - \pi)(1 - b)

    >>> [round(n) for n in expect_small_groups(200_000, 0.4, 0.05, 0.2)]
    [48412, 21756]
    """
    d = (1 - fraction) * (1 - b)
    power = math.exp(a * (math.log(b) - math.log1p(-d))) if b else 0.0
    ones = classes * fraction * power * (1 + a * d / (1 - d))
    twos = classes * fraction**2 * a * (1 - b) * power * (2 - (1 - a) * d) / (2 * (1 - d) ** 2)
    return ones, twos


def shlosser(groups: GroupCounts, fraction: float) -> float:
    r"""How many groups the population has, by Shlosser's estimator as Haas and Stokes [HS98] improved it.

    .. math:: J + c_1 \frac{\sum_i i \pi^2 (1 - \pi^2)^{i - 1} m_i}{\sum_i (1 - \pi)^i ((1 + \pi)^i - 1) m_i}
              \left(\frac{\sum_i (1 - \pi)^i m_i}{\sum_i i \pi (1 - \pi)^{i - 1} m_i}\right)^2
    """
    i, m, p = groups.size.astype(np.float64), groups.count, fraction
    first = (i * p**2 * (1 - p**2) ** (i - 1) * m).sum() / (((1 - p**2) ** i - (1 - p) ** i) * m).sum()
    second = ((1 - p) ** i * m).sum() / (i * p * (1 - p) ** (i - 1) * m).sum()
    return float(groups.groups + groups.alone * first * second**2)


def estimate_by_zayatz(groups: GroupCounts, fraction: float) -> Estimate:
    r"""Zayatz' estimate [ZAY91]: of the people who are alone in the sample, the share that is so in the population.

    Groups of the population are taken to be as large as those of the sample; one of F people has one in the sample with
    the hypergeometric probability

    .. math:: F \binom{N - F}{n - 1} \Big/ \binom{N}{n}
    """
    if reason := _without_alone(groups):
        return Estimate(None, reason)
    lg = _scipy("special").gammaln
    n, whole = groups.n, groups.n / fraction
    left = whole - groups.size - (n - 1)  # of the others, who are not in the sample
    with np.errstate(invalid="ignore"):
        chosen = lg(whole - groups.size + 1) - lg(np.maximum(left, 0) + 1) - lg(n)
    logarithm = np.log(groups.size) + chosen - (lg(whole + 1) - lg(whole - n + 1) - lg(n + 1))
    weight = groups.count * np.where(left >= 0, np.exp(logarithm), 0.0)
    return Estimate(float(groups.alone * (weight[0] / weight.sum()) / fraction))


Estimator = Callable[[GroupCounts, float], Estimate]
ESTIMATORS: Mapping[str, Estimator] = {
    PITMAN: estimate_by_pitman,
    SNB: estimate_by_snb,
    ZAYATZ: estimate_by_zayatz,
}


def _without_alone(groups: GroupCounts) -> str:
    return "" if groups.alone else "no row of the sample is alone"


def _finite(logarithm: float) -> Estimate:
    if not math.isfinite(logarithm) or logarithm > 700:
        return Estimate(None, "what it gives is no number")
    return Estimate(math.exp(logarithm))


def _scipy(part: str) -> Any:
    """A part of scipy, which comes with an extra."""
    try:
        import scipy.optimize  # noqa: PLC0415 - comes with an extra
        import scipy.special  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("optimize", "Estimating risk in a population") from None
    return getattr(scipy, part)
