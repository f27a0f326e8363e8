r"""Student's t without scipy: a core install shows error bars of an evaluation that it did not make.

The two-sided tail is the regularized incomplete beta function,

.. math:: P(|T_\nu| \ge t) = I_{x}(\nu / 2,\, 1 / 2), \qquad x = \nu / (\nu + t^2),

summed by Lentz's continued fraction, which keeps its relative precision far out in the tail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

LEVEL = 0.95
"""Of every interval that is shown."""

_TINY = 1e-300


def two_sided(t: float, *, freedom: int) -> float:
    """How likely T, of ``freedom`` degrees of freedom, is as far from 0 as ``t`` or farther.

    >>> round(two_sided(2.262157, freedom=9), 6)
    0.05
    """
    if math.isinf(t):
        return 0.0
    whole = freedom + t * t
    return _incomplete_beta(freedom / whole, t * t / whole, freedom / 2, 0.5)


def quantile(freedom: int, *, level: float = LEVEL) -> float:
    """How far from 0 T stays with probability ``level``, by bisection.

    >>> round(quantile(9), 4), round(quantile(1), 3)
    (2.2622, 12.706)
    """
    low, high = 0.0, 1.0
    while two_sided(high, freedom=freedom) > 1 - level:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if two_sided(middle, freedom=freedom) > 1 - level:
            low = middle
        else:
            high = middle
    return high


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of the interval around the mean; None where one value shows no spread.

    >>> round(half_width([1.0, 2.0, 3.0]), 4)
    2.4841
    """
    n = len(values)
    return None if n < 2 else quantile(n - 1) * standard_error(values)


def standard_error(values: Sequence[float]) -> float:
    n, mean = len(values), math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """``rest`` is 1 - x, which the caller knows more exactly than a subtraction would."""
    if x <= 0 or rest <= 0:
        return float(rest <= 0)
    if x > (a + 1) / (a + b + 2):  # the fraction converges on the other side
        return 1 - _incomplete_beta(rest, x, b, a)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    return math.exp(scale) / a / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d_1 / (1 + d_2 / (1 + ...)), evaluated from the front [Lentz 1976]."""
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, 10_000):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + term * d or _TINY)
        c = 1 + term / c or _TINY
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value
