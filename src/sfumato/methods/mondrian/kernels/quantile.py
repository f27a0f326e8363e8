"""Quantiles of the chi-square distribution, for tests of a variance."""

from __future__ import annotations

import math

import numpy as np

from sfumato.kernels.compile import kernel

MANY = 1024
"""Degrees of freedom from which a series in 1 / sqrt(df) is as good as any iteration."""


@kernel
def upper_gamma(a, x):
    """Q(a, x): the chance that a gamma variable of shape a exceeds x; by a series, or by a continued fraction."""
    if x <= 0.0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:
        term = 1.0 / a
        total = term
        i = 1
        while term > total * 1e-17:
            term *= x / (a + i)
            total += term
            i += 1
        return 1.0 - front * total
    tiny = 1e-300
    b = x + 1.0 - a
    c, d = 1.0 / tiny, 1.0 / b
    h = d
    for i in range(1, 100_000):
        an = i * (a - i)
        b += 2.0
        d = an * d + b
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = b + an / c
        c = c if abs(c) > tiny else tiny
        h *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return front * h


@kernel
def chi_square_quantile(alpha, z, df):
    """What a chi-square variable of ``df`` degrees of freedom exceeds with chance ``alpha``.

    ``z`` is what a standard normal variable exceeds with that chance. Few degrees: from Wilson and Hilferty's
    cube on by Newton's method on log Q. Many: Cornish and Fisher's series, to the seventh order in
    1 / sqrt(df), whose error at 1024 degrees is some 1e-11 of the quantile.
    """
    if df <= 0:
        return 0.0
    v = float(df)
    if df > MANY:
        root = math.sqrt(2.0 * v)
        z2 = z * z
        return (
            v + root * z + (z2 - 1.0) * (2.0 / 3.0)
            + z * (z2 - 7.0) / (9.0 * root)
            - ((6.0 * z2 + 14.0) * z2 - 32.0) / (405.0 * v)
            + z * ((9.0 * z2 + 256.0) * z2 - 433.0) / (4860.0 * root * v)
            + (((12.0 * z2 - 243.0) * z2 - 923.0) * z2 + 1472.0) / (25515.0 * v * v)
            - z * (((3753.0 * z2 + 4353.0) * z2 - 289517.0) * z2 - 289717.0) / (9185400.0 * root * v * v)
        )  # fmt: skip
    a = 0.5 * v
    share = 2.0 / (9.0 * v)
    cube = 1.0 - share + z * math.sqrt(share)
    x = max(a * cube * cube * cube, 1e-3 * a)
    for _ in range(100):
        upper = upper_gamma(a, x)
        density = math.exp((a - 1.0) * math.log(x) - x - math.lgamma(a))
        step = math.log(upper / alpha) * upper / density
        x = x + step if x + step > 0.0 else 0.5 * x
        if abs(step) <= 1e-14 * x:
            break
    return 2.0 * x


@kernel
def fill_quantiles(alpha, z, out):
    """The quantile of each number of degrees of freedom, from 0 up."""
    for df in range(out.shape[0]):
        out[df] = chi_square_quantile(alpha, z, np.int64(df))
