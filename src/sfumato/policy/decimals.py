"""Exact numbers: what a decimal says, not the float that is nearest to it."""

from __future__ import annotations

from fractions import Fraction


def read_exactly(number: float | str) -> Fraction:
    """The number that is written: a decimal, or a fraction.

    >>> read_exactly(0.1), read_exactly("6/17"), 10 * read_exactly(0.1) == 1
    (Fraction(1, 10), Fraction(6, 17), True)
    """
    return Fraction(str(number))


def as_plain(number: Fraction) -> int | float | str:
    """A number as a policy writes it: a decimal where it is one.

    >>> as_plain(Fraction(2)), as_plain(Fraction(1, 10)), as_plain(Fraction(6, 17))
    (2, 0.1, '6/17')
    """
    if number.denominator == 1:
        return int(number)
    near = float(number)
    return near if read_exactly(near) == number else f"{number.numerator}/{number.denominator}"
