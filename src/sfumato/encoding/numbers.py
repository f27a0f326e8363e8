"""Number columns as 32-bit codes, and exact sums of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.batches import WholeTable, encode_whole
from sfumato.encoding.cells import is_null, present_cells, put_missing
from sfumato.encoding.domain import EXACT_LIMIT, Codes
from sfumato.encoding.extent import Extent
from sfumato.errors import TableError
from sfumato.kernels.axes import NO_NUMBER
from sfumato.policy.schema import Attribute, Schema
from sfumato.table.source import Source

N_DIGITS = 7
"""How many scales are tried, for codes to be exact: those of numbers with 0, 1, ... 6 decimals."""

SURELY_WHOLE = 2**53 // 10 ** (N_DIGITS - 1)
"""Whole numbers below this stay exact when they are scaled."""

HALF, LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class NumberScale:
    """How a number column is told in 32 bits: value = origin + unit * code.

    ``is_exact`` if that holds to the last bit; otherwise codes are the nearest of 2^32 - 1 steps.
    """

    origin: float
    unit: float
    is_exact: bool

    @property
    def exact_unit(self) -> Fraction:
        """The unit as a fraction: 1/10, not the float beside it."""
        return Fraction(self.unit).limit_denominator(10**6) if self.is_exact else Fraction(self.unit)


def encode_number(
    source: Source, attribute: Attribute, *, missing: int | None = None
) -> tuple[NumberScale, Codes]:
    """The scale and the codes of a number column of a table in memory."""
    encoder = NumberEncoder(attribute, missing=missing)
    codes = encode_whole(encoder, WholeTable(source, Schema((attribute,))))
    return encoder.scale, codes


class NumberEncoder:
    """A number column as 32-bit codes: exactly where its decimals allow. Missing becomes ``missing``, or the mean.

    ``sums`` are those of all codes but ``NO_NUMBER``. Whole numbers are added up as they come. Other numbers must be
    looked at again once the scale is known, unless there is one batch of them: the first one waits for a second.
    """

    is_raw = False

    def __init__(self, attribute: Attribute, *, missing: int | None = None) -> None:
        self.attribute, self.missing = attribute, missing
        self.extent = Extent(replace(attribute, bounds=None, step=None))
        self.scale = NumberScale(0.0, 1.0, is_exact=True)
        self.sums = Sums()
        self._base_and_scale = (0, self.scale)  # what is taken off first, and the scale of what is left
        self._have_at_most = [True] * N_DIGITS  # for 0, 1, ... decimals: has no number more of them?
        self._waiting: pa.Array | None = None
        self._codes: NDArray[np.int64] | None = None

    def observe(self, cells: pa.Array, _first_row: int) -> None:
        is_first = self.extent.n_present == 0
        present = self.extent.add_cells(cells)
        if len(present) == 0:
            return
        if is_first:
            self._waiting = cells
            return
        self._add_waiting()
        self._add(present)

    def _add_waiting(self) -> None:
        if self._waiting is not None:
            self._add(present_cells(self._waiting))
            self._waiting = None

    def _add(self, present: NDArray[Any]) -> None:
        is_int = present.dtype.kind == "i"
        if is_int:
            self._add_up(present)
        if not is_int or max(abs(int(present.min())), abs(int(present.max()))) >= SURELY_WHOLE:
            floats = present.astype(np.float64)
            for digits, so_far in enumerate(self._have_at_most):
                self._have_at_most[digits] = so_far and _are_decimals(floats, digits)

    def _add_up(self, present: NDArray[Any]) -> None:
        least = int(present.min())
        if int(present.max()) - least < 2**32:  # else no scale is exact, and these sums are not asked for
            own = Sums()
            own.add(present - least)
            self.sums.merge(own.move(least))

    def merge(self, other: NumberEncoder) -> None:
        self._add_waiting()
        other._add_waiting()
        self.extent.merge(other.extent)
        self._have_at_most = [
            mine and theirs for mine, theirs in zip(self._have_at_most, other._have_at_most, strict=True)
        ]
        self.sums.merge(other.sums)

    def settle(self) -> bool:
        """Choose the scale; all batches must be looked at again if their sums are not known."""
        if self.extent.n_present == 0:
            return False
        base, scale = self._base_and_scale = _choose_scale(self.extent, self._all_have_at_most)
        self.scale = NumberScale(base + scale.origin, scale.unit, scale.is_exact)
        if self._waiting is not None:
            self._codes = _number_codes(present_cells(self._waiting), *self._base_and_scale)
            self.sums.add(self._codes)
            return False
        if self.extent.is_int and scale.is_exact:
            self.sums = self.sums.move(-base)
            return False
        self.sums = Sums()
        return True

    def _all_have_at_most(self, digits: int) -> bool:
        """Has no number of the column more decimals than that?"""
        if self._waiting is None:
            return self.extent.is_int or self._have_at_most[digits]
        return _are_decimals(_above(present_cells(self._waiting), self.extent.base), digits)

    def observe_again(self, cells: pa.Array) -> None:
        self.sums.add(_number_codes(present_cells(cells), *self._base_and_scale))

    def merge_again(self, other: NumberEncoder) -> None:
        self.sums.merge(other.sums)

    def finish(self) -> None:
        n_missing = self.extent.n_rows - self.extent.n_present
        if self.missing is None:
            self.missing = _mean_code(self.sums.total, self.sums.n) if self.sums.n else 0
        if self.missing != NO_NUMBER:
            self.sums = self.sums.with_number(self.missing, n_missing)

    @property
    def greatest(self) -> int:
        """The greatest code."""
        has_missing = self.extent.n_present < self.extent.n_rows
        return int(NO_NUMBER) if has_missing and self.missing == NO_NUMBER else self.sums.greatest

    def codes(self, cells: pa.Array) -> Codes:
        if self._codes is not None and cells is self._waiting:
            codes = self._codes
        else:
            codes = _number_codes(present_cells(cells), *self._base_and_scale)
        return put_missing(codes.astype(np.uint32), is_null(cells), self.missing or 0)


def _are_decimals(present: NDArray[Any], digits: int) -> bool:
    """Have these numbers at most so many decimals?

    >>> _are_decimals(np.array([0.5, 1.25]), 1), _are_decimals(np.array([0.5, 1.25]), 2)
    (False, True)
    """
    scale = 10**digits
    if digits == 0 and present.dtype.kind == "i":
        return True
    scaled = present * float(scale)
    np.rint(scaled, out=scaled)
    scaled /= scale
    return np.array_equal(scaled, present)


def _choose_scale(extent: Extent, all_have_at_most: Callable[[int], bool]) -> tuple[int, NumberScale]:
    """What is taken off first, and the scale of what is left: the first power of ten that makes all whole, if one fits.

    ``all_have_at_most`` says whether no number has more decimals than that.
    """
    base = extent.base
    origin = float(extent.least - base)
    span = float(extent.greatest - base) - origin
    if not math.isfinite(span):
        raise TableError(
            f"The numbers of column {extent.attribute.name!r} lie too far apart; drop or mend the largest."
        )
    greatest_code = float(NO_NUMBER) - 1
    for digits in range(N_DIGITS):
        scale = 10**digits
        if span * scale > greatest_code:
            break
        if abs(origin) * scale < EXACT_LIMIT and all_have_at_most(digits):
            return base, NumberScale(origin, 1.0 / scale, is_exact=True)
    unit = max(span / greatest_code, float(np.finfo(np.float64).tiny))
    return base, NumberScale(origin, unit, is_exact=False)


def _number_codes(present: NDArray[Any], base: int, scale: NumberScale) -> NDArray[np.int64]:
    """The codes of numbers that are there."""
    steps = _above(present, base) - scale.origin
    steps /= scale.unit
    return np.rint(steps, out=steps).astype(np.int64)


def _above(present: NDArray[Any], base: int) -> NDArray[Any]:
    """How far numbers lie above the least of them, ``base``: exactly, also where 64 bits with a sign would overflow.

    >>> _above(np.array([2**62, -(2**62)]), -(2**62)).tolist() == [2**63, 0]
    True
    """
    if not base:
        return present
    return np.asarray(present.astype(np.uint64) - np.uint64(base % 2**64))


def _mean_code(total: int, n: int) -> int:
    """The nearest code to the mean, exactly."""
    return round(Fraction(total, n))


@dataclass(slots=True)
class Sums:
    """Exact sums of whole numbers: how many, their sum, the sum of their squares, and the greatest."""

    n: int = 0
    total: int = 0
    squares: int = 0
    greatest: int = 0

    def add(self, numbers: NDArray[Any]) -> None:
        """Look at some more, at most 2^31 at a time, each between -2^32 and 2^32.

        >>> sums = Sums()
        >>> sums.add(np.array([2**32 - 1, 1], dtype=np.uint32))
        >>> sums.squares == (2**32 - 1) ** 2 + 1
        True
        """
        if len(numbers) == 0:
            return
        wide = numbers.astype(np.int64)
        greatest = int(wide.max())
        self.greatest = max(self.greatest, greatest) if self.n else greatest
        self.n += len(numbers)
        self.total += int(wide.sum())
        square = np.abs(wide).astype(np.uint64)
        square *= square
        self.squares += (int((square >> HALF).sum()) << 32) + int((square & LOW_HALF).sum())

    def merge(self, other: Sums) -> None:
        """Look at the numbers that another one has seen."""
        if other.n:
            self.greatest = max(self.greatest, other.greatest) if self.n else other.greatest
        self.n += other.n
        self.total += other.total
        self.squares += other.squares

    def move(self, by: int) -> Sums:
        """The sums of the same numbers, each greater by so much."""
        squares = self.squares + 2 * by * self.total + self.n * by * by
        return Sums(self.n, self.total + self.n * by, squares, self.greatest + by)

    def with_number(self, number: int, n: int) -> Sums:
        """With one more number, which stands n times."""
        greatest = number if not self.n else max(self.greatest, number) if n else self.greatest
        return Sums(self.n + n, self.total + n * number, self.squares + n * number * number, greatest)

    @property
    def squared_errors(self) -> int:
        """The sum of squared differences from the mean, times n."""
        return self.n * self.squares - self.total * self.total


class SumsWithin:
    """The exact sums of each of n groups.

    >>> sums = SumsWithin(2)
    >>> sums.add(np.array([5, 2, 1], dtype=np.uint32), np.array([1, 0, 1], dtype=np.uint32))
    >>> sums.all()[1]
    Sums(n=2, total=6, squares=26, greatest=5)
    """

    def __init__(self, n: int) -> None:
        self.n, self.total, self.greatest = (np.zeros(n, dtype=np.uint64) for _ in range(3))
        self.squares_high, self.squares_low = (
            np.zeros(n, dtype=np.uint64) for _ in range(2)
        )  # halves of 32 bits

    def add(self, codes: Codes, group: Codes) -> None:
        """Look at some more codes, and the group of each."""
        wide = codes.astype(np.uint64)
        squares = wide * wide
        np.add.at(self.n, group, np.uint64(1))
        np.add.at(self.total, group, wide)
        np.add.at(self.squares_high, group, squares >> HALF)
        np.add.at(self.squares_low, group, squares & LOW_HALF)
        np.maximum.at(self.greatest, group, wide)

    def merge(self, other: SumsWithin) -> None:
        """Look at the codes that another one has seen."""
        self.n += other.n
        self.total += other.total
        self.squares_high += other.squares_high
        self.squares_low += other.squares_low
        np.maximum(self.greatest, other.greatest, out=self.greatest)

    def all(self) -> list[Sums]:
        """Those of each group."""
        columns = (self.n, self.total, self.squares_high, self.squares_low, self.greatest)
        groups = zip(*(column.tolist() for column in columns), strict=True)
        return [Sums(n, total, (high << 32) + low, greatest) for n, total, high, low, greatest in groups]
