"""The public slices of a number: what labels are narrowed to.

A label that shows the least and the greatest value of its rows shows two people's values. Narrowed to slices of the
declared bounds it shows that two public slices are not empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
from numpy.typing import NDArray

from sfumato.encoding.domain import EXACT_LIMIT, OrderedDomain
from sfumato.policy.finest import FinestSlices
from sfumato.policy.schema import Kind

Floats = NDArray[np.float64]

FINEST = 1024
"""Steps of a number that has none."""

MOST_STEPS = 2**24
"""Steps of a number that has more are joined: the price of one must be a good many units."""

EPOCH = date(1970, 1, 1)

ALL = 0
"""As many slices as there are steps: labels go from the least to the greatest value."""


@dataclass(frozen=True, slots=True)
class Slices:
    """Steps from ``lower`` to ``upper``, so many ``in_slice``; 0: there are no slices, and labels are boxes.

    Where not all values lie on steps, a step has the values up to it that the one before has not.

    >>> ages = Slices(17, 90, 1, 3, is_stepped=True)
    >>> ages.n_steps, ages.steps(np.array([17.0, 25.0])).tolist()
    (73, [0, 8])
    >>> ages.narrow(np.array([17.0, 25.0]), np.array([19.0, 90.0]))
    (array([-inf,  22.]), array([19., inf]))
    """

    lower: float
    upper: float
    step: float
    in_slice: int
    is_stepped: bool
    is_range: bool = False
    """Labels go from the least to the greatest value of their rows, whatever the slices."""

    @property
    def n_steps(self) -> int:
        """Steps from one bound to the other."""
        return math.ceil((self.upper - self.lower) / self.step - 1e-9)

    def steps(self, values: Floats) -> NDArray[np.int64]:
        """Where values lie, in steps from the lower bound."""
        return count_steps(values, self.lower, self.step, is_stepped=self.is_stepped)

    def narrow(self, least: Floats, greatest: Floats) -> tuple[Floats, Floats]:
        """The ends low < x <= high of the slices from ``least`` to ``greatest``; infinite at the outer ones.

        Of a range of numbers without steps the low end is the least value itself.
        """
        if self.in_slice == 0:
            return np.full(least.shape, -np.inf), np.full(greatest.shape, np.inf)
        if self.is_range:
            return (self._value(self.steps(least) - 1) if self.is_stepped else least), greatest
        first = self.steps(least) // self.in_slice * self.in_slice
        return self.ends(first, self.steps(greatest) // self.in_slice * self.in_slice + self.in_slice - 1)

    def ends(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The ends low < x <= high of the values on these steps; infinite at the outer ones."""
        low = np.where(first <= 0, -np.inf, self._value(first - 1))
        return low, np.where(last >= self.n_steps, np.inf, self._value(last))

    def widen(self, domain: OrderedDomain) -> OrderedDomain:
        """The domain with the ends of the slices as its outer ends, if there are slices; finest ones have their own."""
        is_wider = self.in_slice and domain.attribute.finest is None
        return replace(domain, low=self.lower, high=self.upper) if is_wider else domain

    def _value(self, steps: NDArray[np.int64]) -> Floats:
        found: Floats = np.asarray(self.lower + steps * self.step, dtype=np.float64)
        whole = float(self.step).is_integer() and float(self.lower).is_integer()
        return (
            found
            if whole
            else np.array([float(f"{x:.12g}") for x in found.ravel().tolist()]).reshape(found.shape)
        )


def count_steps(values: Floats, lower: float, step: float, *, is_stepped: bool) -> NDArray[np.int64]:
    """Where values lie, in steps from ``lower``; if not all lie on steps, the next one above.

    >>> count_steps(np.array([0.3, 0.31]), 0, 0.1, is_stepped=True).tolist()
    [3, 3]
    >>> count_steps(np.array([0.25, 0.3]), 0, 0.25, is_stepped=False).tolist()
    [1, 2]
    """
    away = (values - lower) / step
    return np.asarray(np.floor(away + 0.5) if is_stepped else np.ceil(away)).astype(np.int64)


def slices_of(domain: OrderedDomain, n_slices: int | None) -> Slices:
    """The slices of a column: so many of its bounds, or none; bounds that are not declared are the table's, rounded.

    >>> from sfumato.policy.schema import Attribute
    >>> income = OrderedDomain(Attribute("income", "quasi-identifier", Kind.NUMBER), 1250, 81300, 1.0, False, 0, None)
    >>> slices_of(income, 32)
    Slices(lower=1200.0, upper=82000.0, step=1.0, in_slice=2526, is_stepped=True, is_range=False)
    """
    if (finest := FinestSlices.of(domain.attribute)) is not None:
        return _join_finest(finest, domain, n_slices)
    lower, upper = domain.low, max(domain.low, domain.high)  # below it where no cell has a value
    if domain.attribute.bounds is None and lower < upper:
        lower, upper = _round_outwards(lower, upper, is_date=domain.attribute.kind is Kind.DATE)
    step, is_stepped = domain.grid or (upper - lower) / FINEST or 1.0, domain.grid is not None
    if is_stepped:  # values stay on steps
        lower = domain.low - math.ceil((domain.low - lower) / step - 1e-9) * step
    n_steps = (upper - lower) / step
    if not n_steps < EXACT_LIMIT:  # only bounds reach so far: no cell loses anything beside them
        lower, upper, step = 0.0, 0.0, float(EXACT_LIMIT)
    elif n_steps > MOST_STEPS and domain.values is not None:
        step, is_stepped = step * math.ceil(n_steps / MOST_STEPS), False
    found = Slices(float(lower), float(upper), float(step), 0, is_stepped=is_stepped)
    in_slice = 0 if n_slices is None else math.ceil((found.n_steps + 1) / (n_slices or found.n_steps + 1))
    return replace(found, in_slice=in_slice, is_range=n_slices == ALL)


def _join_finest(finest: FinestSlices, domain: OrderedDomain, n_slices: int | None) -> Slices:
    """So many slices of whole finest ones, which are its steps: a step lies where its greatest value does."""
    step = float(finest.width)
    lower, upper = finest.bounds or finest.last(finest.number(np.array([domain.low + step / 2, domain.high])))
    found = Slices(float(lower), max(float(lower), float(upper)), step, 0, is_stepped=True)
    n = found.n_steps + 1
    return replace(found, in_slice=0 if n_slices is None else math.ceil(n / (n_slices or n)))


def _round_outwards(lower: float, upper: float, *, is_date: bool) -> tuple[float, float]:
    """The nearest numbers of two significant digits that enclose both; of dates the years."""
    if is_date:
        first, last = (date.fromordinal(EPOCH.toordinal() + int(day)).year for day in (lower, upper))
        return float((date(first, 1, 1) - EPOCH).days), float((date(last, 12, 31) - EPOCH).days)
    return _round(lower, ROUND_FLOOR), _round(upper, ROUND_CEILING)


def _round(x: float, way: str) -> float:
    exact = Decimal(repr(float(x)))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), way))
