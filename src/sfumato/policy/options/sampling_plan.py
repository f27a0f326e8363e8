r"""How rare an output may be when rows are drawn: the least k0 for a chance s, and the delta that it reaches [LQS12].

Each row is drawn with chance s, and a box is published as often as it was drawn if that is at least k0 times. If n
rows have the box, it is published as often as a binomial number Bin(n, s) says, or not at all. One row more makes
n + 1 of them. Let :math:`\gamma = 1 - (1 - s) e^{-\epsilon}`. If :math:`(1 - s) e^\epsilon \ge 1`, then over all n and
both directions

.. math:: \delta(\epsilon, s, k_0) = P[Bin(N, s) \ge k_0] - e^\epsilon P[Bin(N - 1, s) \ge k_0],
          \quad N = \lfloor (k_0 - 1) / \gamma \rfloor + 1,

and it is reached. Proof: ``methods/risk_utility/private/proof.md``, beside the method. What is computed here is that
number, rounded up: whole numbers, and bounds of exp from below and above, never a float.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

BITS = 320
"""Bits after the point of fixed-point numbers."""
ONE = 1 << BITS

DIGITS = 6
"""Significant digits of the delta that is stated, which is rounded up."""

LEAST_EPSILON, GREATEST_EPSILON = Fraction(1, 1000), Fraction(50)
LEAST_DELTA = Fraction(1, 10**30)
GREATEST_K0 = 100_000
GREATEST_DENOMINATOR = 1 << 62
"""The denominator of a chance is at most this: coins are whole numbers below it."""
LADDER = (5, 2, 1)
"""Chances that are chosen where none is given: 1/2, 1/5, 1/10, 1/20, ..."""


class NoPlan(ValueError):  # noqa: N818 - reads as a sentence
    """No k0 reaches the delta that is asked for; ``word`` is what to change: epsilon, delta or sample."""

    def __init__(self, word: str, sentence: str) -> None:
        self.word = word
        super().__init__(sentence)


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows are drawn with chance ``s``, boxes published from ``k0`` on; ``delta`` is what that reaches, rounded up."""

    epsilon: Fraction
    s: Fraction
    k0: int
    delta: Fraction


def plan(epsilon: Fraction, delta: Fraction, sample: Fraction | None = None) -> Plan:
    """The least k0 whose delta is at most the one that is asked for.

    Without a ``sample`` the chance is the greatest of 1/2, 1/5, 1/10, 1/20, 1/50, ... that epsilon allows: nothing of
    it depends on a table. A larger k0 publishes less of what a smaller one does, so delta falls with it.

    >>> [plan(Fraction(1), Fraction(1, 10**6), Fraction(s, 100)).k0 for s in (5, 10, 20, 39, 50, 60)]
    [6, 8, 12, 24, 35, 51]
    >>> plan(Fraction(1, 2), Fraction(1, 10**6)).s
    Fraction(1, 5)
    """
    check(epsilon, delta, sample)
    s = greatest_chance(epsilon) if sample is None else sample
    high = 1
    while delta_of(epsilon, s, high) > delta:
        if high >= GREATEST_K0:
            raise NoPlan(
                "sample", f"a box would have to be drawn more than {GREATEST_K0:,} times at it; lower it."
            )
        high = min(2 * high, GREATEST_K0)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of(epsilon, s, middle) <= delta else (middle, high)
    return Plan(epsilon, s, high, delta_of(epsilon, s, high))


def check(epsilon: Fraction, delta: Fraction, sample: Fraction | None) -> None:
    """Raise unless the numbers make sense, whatever the table."""
    if not LEAST_EPSILON <= epsilon <= GREATEST_EPSILON:
        raise NoPlan(
            "epsilon", "must be a number from 0.001 to 50, such as 1.0; the smaller, the more private."
        )
    if not LEAST_DELTA <= delta < 1:
        raise NoPlan("delta", "must be a number between 0 (1e-30) and 1, such as 1.0e-6.")
    if sample is not None and not 0 < sample < 1:
        raise NoPlan("sample", "must be between 0 and 1, such as 0.5: the chance of a row to be drawn.")
    if sample is not None and sample.denominator > GREATEST_DENOMINATOR:
        raise NoPlan("sample", "has too many digits; write a chance of 18 at most, such as 0.5.")
    if sample is not None and not is_allowed(epsilon, sample):
        most = float(1 - 1 / exp_bounds(epsilon)[0])
        raise NoPlan(
            "sample",
            f"must be at most 1 - exp(-epsilon), which is {most:.4g}: else a row that is left out is missed; lower it, "
            "or raise epsilon.",
        )


def is_allowed(epsilon: Fraction, s: Fraction) -> bool:
    """Is a row left out often enough to look like one that is not there: (1 - s) exp(epsilon) >= 1?"""
    return (1 - s) * exp_bounds(epsilon)[0] >= 1


def greatest_chance(epsilon: Fraction) -> Fraction:
    """Of 1/2, 1/5, 1/10, 1/20, ... the greatest that epsilon allows."""
    tens = 10
    while True:
        for step in LADDER:
            if is_allowed(epsilon, Fraction(step, tens)):
                return Fraction(step, tens)
        tens *= 10


def delta_of(epsilon: Fraction, s: Fraction, k0: int) -> Fraction:
    """The delta of a chance and a k0, rounded up to six digits; never below the true one.

    >>> float(delta_of(Fraction(1), Fraction(1, 2), 35)), float(delta_of(Fraction(1), Fraction(1, 2), 34))
    (9.24694e-07, 1.29176e-06)
    """
    low, high = exp_bounds(epsilon)
    gamma = 1 - (1 - s) / low, 1 - (1 - s) / high
    found = {math.floor((k0 - 1) / bound) + 1 for bound in gamma}  # one number, or two neighbours
    return round_up(max(_excess(low, s, k0, n) for n in range(min(found), max(found) + 1)))


def _excess(exp_low: Fraction, s: Fraction, k0: int, n: int) -> Fraction:
    r"""At least P[Bin(n, s) >= k0] - e^epsilon P[Bin(n - 1, s) >= k0].

    With b = P[Bin(n - 1, s) = k0 - 1] this is :math:`s b - (e^\epsilon - 1) P[Bin(n - 1, s) \ge k_0]`, and the last
    chance is b times a sum of products of ratios, of which every rounding here is downwards.
    """
    p, q = s.numerator, s.denominator
    m = n - 1
    b = Fraction(_shorten_up(math.comb(m, k0 - 1) * p ** (k0 - 1) * (q - p) ** (m - k0 + 1), q**m))
    term, above = ONE, 0
    for j in range(k0 - 1, m):
        term = term * (m - j) * p // ((j + 1) * (q - p))
        if not term:
            break
        above += term
    return max(b * (s - (exp_low - 1) * Fraction(above, ONE)), Fraction(0))


def _shorten_up(numerator: int, denominator: int) -> Fraction:
    """A fraction of a few hundred digits that is not below this one."""
    shift = max(denominator.bit_length() - numerator.bit_length(), 0) + BITS
    return Fraction(-(-(numerator << shift) // denominator), 1 << shift)


def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of exp(x), x >= 0, from below and above, far nearer to each other than 1e-60.

    >>> low, high = exp_bounds(Fraction(1))
    >>> low < high, float(low) == float(high) == math.e
    (True, True)
    """
    p, q = x.numerator, x.denominator
    term, total, i = ONE, ONE, 0
    while term:
        i += 1
        term = term * p // (i * q)
        total += term
    # Less than one unit is lost in each of i terms. A loss in term k goes on to the j-th after it, times
    # x^j / ((k + 1) ... (k + j)) <= x^j / j!, so all that is lost, and the rest of the series, is below i exp(x) units.
    lost = (i + 1) * (total // ONE + 1)
    return Fraction(total, ONE), Fraction(total + lost, ONE)


def round_up(number: Fraction, digits: int = DIGITS) -> Fraction:
    """The least decimal of so many significant digits that is not below.

    >>> round_up(Fraction(1, 3), 2), round_up(Fraction(5), 2), round_up(Fraction(999999, 10**12), 2)
    (Fraction(17, 50), Fraction(5, 1), Fraction(1, 1000000))
    """
    if number <= 0:
        return Fraction(0)
    unit = Fraction(10) ** (
        math.floor(math.log10(number.numerator) - math.log10(number.denominator)) + 1 - digits
    )
    return unit * math.ceil(number / unit)


__all__ = ["NoPlan", "Plan", "check", "delta_of", "exp_bounds", "plan", "round_up"]
