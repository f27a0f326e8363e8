"""The finest slices of a number that is split by thresholds: what ``finest`` in a policy says of it.

They follow from the policy alone. Slices are counted from the lower bound, or from 0 where no bounds are declared. With
a ``step`` they hold whole steps (0 to 4, 5 to 9); without one each reaches up to its upper end, which belongs to it
(above 5 up to 10), and the lower bound belongs to the first. What is left below the upper bound joins the last whole
one, so that none is narrower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.policy.kinds import Kind, read_exactly
from sfumato.policy.schema import Attribute

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SLACK = 1e-9
"""A number this close to a step, in steps, is on it."""


@dataclass(frozen=True, slots=True)
class FinestSlices:
    """The finest slices of a column.

    >>> ages = FinestSlices(Fraction(0), Fraction(110), Fraction(5), Fraction(1))
    >>> ages.number(np.array([0.0, 4, 5, 110])).tolist()
    [0, 0, 1, 21]
    >>> ages.first(np.array([1, 21])).tolist(), ages.last(np.array([1, 21])).tolist()
    ([5.0, 105.0], [9.0, 109.0])
    """

    low: Fraction
    high: Fraction | None
    width: Fraction
    step: Fraction | None

    @classmethod
    def of(cls, attribute: Attribute) -> FinestSlices | None:
        """Those of a number that is split by thresholds; None of any other column, and where none are declared."""
        if attribute.finest is None or attribute.kind is not Kind.NUMBER or not attribute.is_ordered:
            return None
        low, high = (None, None) if attribute.bounds is None else map(read_exactly, attribute.bounds)
        step = None if attribute.step is None else read_exactly(attribute.step)
        return cls(low or Fraction(0), high, read_exactly(attribute.finest), step)

    @property
    def n(self) -> int | None:
        """How many there are; None if nothing bounds them."""
        if self.high is None:
            return None
        return max(1, math.floor((self.high - self.low + (self.step or 0)) / self.width))

    def last(self, numbers: Ints) -> Floats:
        """The greatest value of each slice, but for what has joined the last one."""
        return self._points(self.low + self.width - (self.step or 0), numbers)

    def first(self, numbers: Ints) -> Floats:
        """The least value of each slice; without a step its lower end, which belongs to the slice below."""
        return self._points(self.low, numbers)

    def _points(self, origin: Fraction, numbers: Ints) -> Floats:
        """The floats nearest to the decimals: 0.3, not 0.1 + 0.2."""
        scale = math.lcm(origin.denominator, self.width.denominator)
        first, stride = int(origin * scale), int(self.width * scale)
        if abs(first) + abs(stride) * (int(np.abs(numbers).max(initial=0)) + 1) < 2**62:
            return np.asarray((first + numbers * stride) / scale, dtype=np.float64)
        return np.array([float(origin + self.width * int(number)) for number in numbers.tolist()])

    def number(self, values: Floats) -> Ints:
        """The slice of each value, all of them finite; negative below the bounds, ``n`` or more above them."""
        away = (values - float(self.low)) / float(self.width if self.step is None else self.step)
        if self.step is not None:
            numbers = np.floor(np.rint(away) / int(self.width / self.step)).astype(np.int64)
        else:
            numbers = np.ceil(away).astype(np.int64) - 1  # at most one off
            numbers += values > self.last(numbers)
            numbers -= values <= self.first(numbers)
        if self.high is None:
            return numbers
        if self.step is None:
            numbers = np.where(values == float(self.low), 0, numbers)
        n = self.n or 1
        is_above = values > float(self.high)
        return np.where(is_above, np.maximum(numbers, n), np.minimum(numbers, n - 1))

    def ends(self, values: Floats) -> tuple[Floats, Floats]:
        """The least and the greatest value of the slice of each, all of them finite."""
        numbers = self.number(values)
        last = self.last(numbers)
        return self.first(numbers), last if self.high is None else np.where(
            numbers + 1 == self.n, float(self.high), last
        )

    def represent(self, values: Floats) -> Floats:
        """The greatest value of the slice of each; what is not finite stays, and what is off the step stays off it."""
        is_number = np.isfinite(values)
        known = np.where(is_number, values, float(self.low))
        found = self.last(self.number(known))
        if self.step is not None:
            steps = (known - float(self.low)) / float(self.step)
            is_off = np.abs(steps - np.rint(steps)) > SLACK * np.maximum(1.0, np.abs(steps))
            found = np.where(is_off, found + float(self.step) / 2, found)
        return np.where(is_number, found, values)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The greatest values of the first and of the last slice, if they are bounded."""
        if self.n is None:
            return None
        low, high = self.last(np.array([0, self.n - 1])).tolist()
        return low, high

    def are_too_fine(self, low: Floats, high: Floats) -> NDArray[np.bool_]:
        """Do ranges that are published, from ``low`` to ``high``, end within a slice? Infinite ends do not."""
        begins = self.number(np.where(np.isfinite(low), low, float(self.low)))
        if self.step is None:  # a low end belongs to the slice below, but for the lowest
            begins = np.where(self._is_like(low, self.first(begins)), begins, begins + 1)
        is_begin = self._is_like(low, self.first(begins)) | ~np.isfinite(low)
        last = self.ends(np.where(np.isfinite(high), high, float(self.low)))[1]
        is_end = self._is_like(high, last) | ~np.isfinite(high)
        if self.high is not None:
            is_end |= high >= float(self.high)
            is_begin |= low <= float(self.low)
        is_point = (low >= high) if self.step is None else np.zeros(low.shape, dtype=np.bool_)
        return np.asarray(~(is_begin & is_end) | is_point)

    def _is_like(self, one: Floats, other: Floats) -> NDArray[np.bool_]:
        return np.asarray(np.abs(one - other) <= SLACK * np.maximum(1.0, np.abs(other)))


def check_width(finest: Any, attribute: Attribute) -> str | None:
    """What is wrong with ``finest`` of a number that is split by thresholds; None if nothing is."""
    if isinstance(finest, bool) or not isinstance(finest, (int, float)) or not 0 < finest < math.inf:
        return "must be a width, a number above 0, such as 5."
    width = read_exactly(finest)
    if attribute.step is not None and (width / read_exactly(attribute.step)).denominator != 1:
        return "must be a multiple of the step."
    if attribute.bounds is not None:
        low, high = map(read_exactly, attribute.bounds)
        if width > high - low:
            return "is wider than the bounds are apart; make it narrower, or drop the column."
    return None


__all__ = ["FinestSlices", "check_width"]
