"""Exact numbers: what a decimal says, not the float that is nearest to it."""

from __future__ import annotations

from fractions import Fraction


def read_exactly(number: float | str) -> Fraction:
    """The number that is written: a decimal, or a fraction.

    >>> read_exactly(0.1), read_exactly("6/17"), 10 * read_exactly(0.1) == 1
    (Fraction(1, 10), Fraction(6, 17), True)
    """
    return Fraction(str(number))
