"""Prosecutor's, journalist's [EED08] and marketer's risk [DEE10], and the individual risk by survey weights [FP04].

The prosecutor knows that a person is in the table, so the risk is one over the people of a group. The journalist knows
only that it is in the population: one over the people of the population who would be in that group. The marketer links
everybody, and counts those who are right. All are over the people of all groups; somebody in two groups counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import MissingExtra
from sfumato.release.certificate import RISK_LIMITS, RiskClaim, SmallGroups

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGE_GROUP, TERMS = 20, 100
"""From so many people on, so many terms are all that a float can tell."""

Known = Literal["table", "fraction", "weights"]
"""How the population is known: by a table of it, by the share of it that was sampled, or by survey weights."""


@dataclass(frozen=True, slots=True, eq=False)
class RiskInPopulation:
    """What is known of the people of the population who are like those of each group.

    people  (groups,) of the table
    risk    (groups,) one over the people of the population, or what is expected of it
    size    (groups,) how many these are, or an estimate
    """

    known: Known
    people: Ints
    risk: Floats
    size: Floats

    @property
    def journalist(self) -> RiskClaim:
        """The largest and mean risk, and the shares above some limits.

        On average it is the greater of two: groups over the people of the population who are like them, if a person
        of the population is looked for, and the mean over the people of the table, if one of these is.
        """
        n = self.people.sum()
        above = {f"1/{limit}": float(self.people[self.risk > 1 / limit].sum() / n) for limit in RISK_LIMITS}
        mean = max(len(self.people) / float(self.size.sum()), self.marketer)
        return RiskClaim(float(self.risk.max()), mean, above)

    @property
    def marketer(self) -> float:
        """The share of people who are linked rightly, if everybody is linked by chance within a group."""
        return float((self.people * self.risk).sum() / self.people.sum())


def prosecutor(people: Ints) -> RiskClaim:
    """The risk of groups with these numbers of people.

    >>> prosecutor(np.array([1, 3])).largest, prosecutor(np.array([1, 3])).mean
    (1.0, 0.5)
    """
    return SmallGroups.of(people).risk(rows=int(people.sum()), groups=len(people))


def of_population(people: Ints, population: Ints) -> RiskInPopulation:
    """The risk where a table of the population says how many people are like those of each group.

    >>> found = of_population(np.array([1, 3]), np.array([2, 12]))
    >>> found.journalist.largest, found.marketer
    (0.5, 0.1875)
    """
    return RiskInPopulation("table", people, 1 / population, population.astype(np.float64))


def of_fraction(people: Ints, fraction: float) -> RiskInPopulation:
    """The risk where a share of the population was drawn by chance."""
    return RiskInPopulation(
        "fraction", people, expect_risk(people, np.full(len(people), fraction)), people / fraction
    )


def of_weights(people: Ints, weight: Floats) -> RiskInPopulation:
    """The risk where ``weight`` is the sum of the survey weights of the people of each group."""
    return RiskInPopulation("weights", people, expect_risk(people, people / weight), weight)


def expect_risk(people: Ints, fraction: Floats) -> Floats:
    r"""What is expected of one over the F people of the population, given the f of the sample [FP04].

    If a person of the population is in the sample with probability p, F is f and a negative binomial, and

    .. math:: E[1/F] = \frac{p^f}{f}\, {}_2F_1(f, f; f + 1; 1 - p) = \frac{p}{f}\, {}_2F_1(1, 1; f + 1; 1 - p)

    The second form, by Euler's transformation, does not overflow. scipy computes it for small groups; for large ones it
    gives no number, and the terms of the series fall quickly: they are added up.

    >>> expect_risk(np.array([3]), np.array([0.2])).round(4).tolist()
    [0.0876]
    """
    try:
        from scipy.special import hyp2f1  # noqa: PLC0415 - comes with an extra
    except ImportError:
        raise MissingExtra("optimize", "Estimating risk in a population") from None
    is_large = people >= LARGE_GROUP
    series = np.empty(len(people))
    series[~is_large] = hyp2f1(1, 1, people[~is_large] + 1, 1 - fraction[~is_large])
    series[is_large] = _add_terms(people[is_large], 1 - fraction[is_large])
    return fraction / people * series


def _add_terms(people: Ints, rest: Floats) -> Floats:
    """The sum over k of k! / ((f + 1) ... (f + k)) z^k; a term is at most one over (f + k choose k)."""
    term, whole = np.ones(len(people)), np.ones(len(people))
    for k in range(1, TERMS + 1):
        term *= k * rest / (people + k)
        whole += term
    return whole
