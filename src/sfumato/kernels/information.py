"""Information: x log2 x of a count, in fixed point and by whole numbers alone.

Scores of splits are sums of these. A logarithm in floating point differs in its last digit from one processor to the
next, and with it a score, a tie and the tree. Here every step is a multiplication, an addition or a shift of integers,
so that the answer is the same everywhere. It is within one unit, 2^-20 bit, of the true value up to 5 * 10^10 rows.

The logarithm of x, scaled to [1, 2), is looked up for its first seven binary digits; what is left is a factor 1 + r
with r < 2^-7, for which eight terms of the series of ln (1 + r) are exact to 2^-60.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compile import inner, kernel

DIGITS = 20
FIXED_POINT = float(1 << DIGITS)
"""Information is a whole multiple of 1 / FIXED_POINT bit, so that sums of it never depend on their order."""

MOST_ROWS = 1 << 36
"""Information of more rows might not fit in 64 bits."""

POINT = 61
"""Binary digits after the point of the numbers below, all of them in [0, 2)."""
LOG_POINT = 57
"""Binary digits after the point of a logarithm, which is below 64."""
PIECES = 128
TERMS = 8


def _log2(numerator: int, denominator: int) -> int:
    """log2 of a fraction from 1 to 2, with POINT digits after the point: square it, and see whether it reaches 2."""
    digits, x = 0, (numerator << 200) // denominator
    for _ in range(POINT):
        x = x * x >> 200
        reaches_two = x >> 201
        digits, x = 2 * digits + reaches_two, x >> reaches_two
    return digits


def _factors_and_logarithms() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each piece of [1, 2) a factor that takes its lower end to 1, rounded up, and minus the factor's log2."""
    one = 1 << POINT
    factors = [-(-one * PIECES // (PIECES + piece)) for piece in range(PIECES)]
    return np.array(factors), np.array([_log2(one, factor) for factor in factors])


def _coefficients() -> NDArray[np.int64]:
    """1, 1/2, 1/3, ..., then log2 e less 1, by which a natural logarithm becomes one to base 2."""
    e = sum((1 << 200) // math.factorial(n) for n in range(50))
    return np.array([*((1 << POINT) // (term + 1) for term in range(TERMS)), _log2(e, 2 << 200)])


FACTORS, LOGARITHMS = _factors_and_logarithms()
COEFFICIENTS = _coefficients()


@kernel(borrows=True)
def product(a, b):
    """The product of two non-negative int64, at most one of them above 2^62, as (high, low) words of 62 bits."""
    mask = (np.int64(1) << 31) - 1
    a1, a0 = a >> 31, a & mask
    b1, b0 = b >> 31, b & mask
    middle = a1 * b0 + a0 * b1
    low = a0 * b0 + ((middle & mask) << 31)
    carry = low >> 62
    return a1 * b1 + (middle >> 31) + carry, low & ((np.int64(1) << 62) - 1)


@inner(borrows=True)
def times(a, b):
    """The product of two numbers with POINT digits after the point."""
    high, low = product(a, b)
    return (high << 1) | (low >> POINT)


@inner(borrows=True)
def logarithm(x):
    """log2 x with LOG_POINT digits after the point, for x from 1 to 2^61."""
    whole, rest = np.int64(0), x
    for step in (32, 16, 8, 4, 2, 1):
        if rest >> step > 0:
            rest >>= step
            whole += step
    scaled = x << (POINT - whole)
    piece = (scaled >> (POINT - 7)) - PIECES
    r = times(scaled, FACTORS[piece]) - (np.int64(1) << POINT)
    series = COEFFICIENTS[TERMS - 1]
    for term in range(TERMS - 2, -1, -1):
        series = COEFFICIENTS[term] - times(r, series)
    natural = times(r, series)
    fraction = LOGARITHMS[piece] + natural + times(natural, COEFFICIENTS[TERMS])
    return (whole << LOG_POINT) + (fraction >> (POINT - LOG_POINT))


@inner(borrows=True)
def compute_information(x):
    """Compute x log2 x in fixed point, for x up to MOST_ROWS."""
    if x < 2:
        return np.int64(0)
    return scale(np.int64(x), logarithm(np.int64(x)))


@inner(borrows=True)
def scale(x, log):
    """The product of x and a logarithm, rounded to fixed point."""
    beyond = LOG_POINT - DIGITS
    high, low = product(x, log)
    low += np.int64(1) << (beyond - 1)
    return (high << (62 - beyond)) + (low >> beyond)


@inner(borrows=True)
def information(x, table):
    """The same, looked up if the table has it."""
    if x < table.shape[0]:
        return table[x]
    return compute_information(x)


@kernel(borrows=True)
def fill_information(counts, out):
    """The information of each count; both (n,)."""
    for i in range(counts.shape[0]):
        out[i] = compute_information(counts[i])


def information_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The information of each count: x log2 x in fixed point.

    >>> information_of(np.array([0, 1, 2, 3, 1024])) / FIXED_POINT
    array([0.00000000e+00, 0.00000000e+00, 2.00000000e+00, 4.75488758e+00,
           1.02400000e+04])
    """
    out = np.empty(len(counts), dtype=np.int64)
    fill_information(counts, out)
    return out


@kernel
def fill_table(out):
    """The table of x log2 x for x = 0, 1, ...; the logarithm of an even number is that of its half, and 1."""
    logs = np.zeros(out.shape[0], dtype=np.int64)
    out[:2] = 0
    for x in range(np.int64(2), out.shape[0]):
        logs[x] = logarithm(x) if x & 1 else logs[x >> 1] + (np.int64(1) << LOG_POINT)
        out[x] = scale(x, logs[x])


def information_table(n: int) -> NDArray[np.int64]:
    """Table of x log2 x for x = 0..n, in fixed point."""
    out = np.empty(n + 1, dtype=np.int64)
    fill_table(out)
    return out
