"""What decides on the codes of a number column: its range, its grid, and which cells break a declaration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.encoding.cells import present_cells
from sfumato.encoding.domain import EXACT_LIMIT, Floats, OrderedDomain, are_whole
from sfumato.errors import TableError, number_of
from sfumato.policy.schema import Attribute, Kind

NO_RANGE = (0.0, -1.0)
"""The outer ends of a column that is missing everywhere: a range that holds nothing."""


@dataclass(slots=True)
class Extent:
    """What decides on the codes of a number column, gathered batch by batch.

    ``is_int`` if all cells are stored as whole numbers, ``is_whole`` if all are whole, however they are stored.
    ``n_outside`` cells lie outside the declared bounds, and ``n_off`` are not on the declared step.
    """

    attribute: Attribute
    n_rows: int = 0
    n_present: int = 0
    least: int | float = 0
    greatest: int | float = 0
    is_int: bool = True
    is_whole: bool = True
    n_outside: int = 0
    n_off: int = 0

    def add_cells(self, cells: pa.Array) -> NDArray[Any]:
        """Look at some more cells; returns those that are there."""
        present = present_cells(cells)
        self.n_rows += len(cells) - len(present)
        self.add(present)
        return present

    def add(self, present: NDArray[Any]) -> None:
        """Look at some more numbers, none of them missing."""
        self.n_rows += len(present)
        if len(present) == 0:
            return
        least, greatest = (found.item() + 0 for found in (present.min(), present.max()))  # -0.0 + 0 is 0.0
        self.least = min(self.least, least) if self.n_present else least
        self.greatest = max(self.greatest, greatest) if self.n_present else greatest
        self.n_present += len(present)
        self.is_int = self.is_int and present.dtype.kind == "i"
        if self.is_whole and present.dtype.kind != "i":
            self.is_whole = bool(np.all(present == np.rint(present)))
        if self.attribute.bounds is not None:
            low, high = self.attribute.bounds
            if least < low or greatest > high:
                self.n_outside += int(np.count_nonzero((present < low) | (present > high)))
        if self.attribute.step is not None:
            self.n_off += _count_off(present, self.attribute)

    def merge(self, other: Extent) -> None:
        """Look at the cells that another one has seen."""
        if other.n_present:
            self.least = min(self.least, other.least) if self.n_present else other.least
            self.greatest = max(self.greatest, other.greatest) if self.n_present else other.greatest
        self.n_rows += other.n_rows
        self.n_present += other.n_present
        self.is_int = self.is_int and other.is_int
        self.is_whole = self.is_whole and other.is_whole
        self.n_outside += other.n_outside
        self.n_off += other.n_off

    @property
    def has_missing(self) -> bool:
        return self.n_present < self.n_rows

    @property
    def base(self) -> int:
        """What is taken off whole numbers first: beyond 2^53 floats would lose digits."""
        return int(self.least) if self.is_int else 0

    def outer_ends(self) -> tuple[float, float]:
        """The declared bounds, or the range of the table; raises if a cell lies outside."""
        attribute = self.attribute
        if self.n_present == 0:
            return attribute.bounds or NO_RANGE
        if max(abs(self.least), abs(self.greatest)) >= EXACT_LIMIT:  # as a float, 2^53 + 1 is 2^53
            raise TableError(
                f"Column {attribute.name!r} holds numbers of 2^53 or beyond, which are not exact; "
                "treat it as a category."
            )
        if attribute.bounds is None:
            return float(self.least), float(self.greatest)
        if self.n_outside:
            raise TableError(
                f"Column {attribute.name!r} has {number_of(self.n_outside, 'cell')} outside its declared bounds; "
                "widen the bounds, or mend the cells."
            )
        low, high = attribute.bounds
        return float(low), float(high)

    def grid(self) -> float | None:
        """The distance of neighbouring values, if there is one: the declared step, or 1 for whole numbers."""
        attribute = self.attribute
        if attribute.step is None:
            return (
                1.0 if self.is_whole and (attribute.bounds is None or are_whole(attribute.bounds)) else None
            )
        if self.n_off:
            raise TableError(
                f"Column {attribute.name!r} has {number_of(self.n_off, 'cell')} off its declared step; "
                "leave the step out, or mend the cells."
            )
        return float(attribute.step)

    def n_steps(self) -> int | None:
        """How many steps of a grid of whole numbers the values span, None if they are not on one."""
        grid = self.grid()
        if grid is None or self.n_present == 0 or not are_whole((grid, float(self.least))):
            return None
        return int(np.rint((self.greatest - self.least) / grid))

    def looks_ranked(self, n_rows: int) -> bool:
        """Are codes likely to be ranks, if the table has that many rows?"""
        if self.n_off or max(abs(self.least), abs(self.greatest)) >= EXACT_LIMIT:
            return False
        n_steps = self.n_steps()
        return n_steps is None or n_steps >= 2 * max(n_rows, self.n_rows)

    def grid_domain(self) -> OrderedDomain | None:
        """The domain whose codes are steps of a grid, None where these would be too many."""
        (low, high), grid, n_steps = self.outer_ends(), self.grid(), self.n_steps()
        if grid is None or n_steps is None or n_steps >= 2 * self.n_rows:
            return None
        shift, first = int(self.has_missing), float(self.least)
        return OrderedDomain(
            self.attribute, low, high, grid, self.has_missing, n_steps + 1 + shift, None, first - shift * grid
        )

    def ranked_domain(self, known: Floats) -> OrderedDomain:
        """The domain whose codes are ranks of the values that occur, missing being the first."""
        low, high = self.outer_ends()
        return OrderedDomain(self.attribute, low, high, self.grid(), self.has_missing, len(known), known)


def with_bounds(attribute: Attribute, extent: Extent) -> Attribute:
    """A number without declared bounds takes the table's range; cells outside declared ones are refused."""
    if extent.n_present == 0:
        return replace(attribute, bounds=attribute.bounds or (0.0, 1.0))
    low, high = extent.outer_ends()
    if attribute.kind is not Kind.NUMBER or attribute.bounds is not None:
        return attribute
    high = high if low < high else low + 1
    if are_whole((low, high)) and not extent.is_whole:
        high += 0.5  # whole bounds would declare whole numbers
    return replace(attribute, bounds=(low, high))


def _count_off(present: NDArray[Any], attribute: Attribute) -> int:
    """How many numbers are not on the declared step."""
    start = attribute.bounds[0] if attribute.bounds else 0.0
    steps = (present - start) / (attribute.step or 1.0)
    return int(np.count_nonzero(np.abs(steps - np.rint(steps)) > 1e-9 * np.maximum(1.0, np.abs(steps))))
