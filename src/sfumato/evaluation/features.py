"""Features of rows for a model: numbers as they are, categories as codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError


@dataclass(frozen=True, slots=True)
class Features:
    """Rows as points: the columns that are numbers, then the columns that are categories.

    A missing number is NaN. A category is a code below its number of values. These are all values that any row may
    hold, whether seen in training or not; missing is one of them.

    >>> features = Features(np.array([[1.5], [2.5]]), (np.array([0, 2]),), (3,), ("age", "sex"))
    >>> features.n_rows, features.n_numbers, features.take(np.array([1])).numbers.tolist()
    (2, 1, [[2.5]])
    """

    numbers: NDArray[np.float64]
    """(rows, numbers)"""
    categories: tuple[NDArray[np.int64], ...]
    """(rows,) each"""
    n_values: tuple[int, ...]
    """of each category"""
    names: tuple[str, ...]
    """of the numbers, then of the categories"""

    def __post_init__(self) -> None:
        if self.numbers.ndim != 2 or np.isinf(self.numbers).any():
            raise ValueError("numbers must be a matrix of finite numbers, with NaN where one is missing.")
        if len(self.names) != self.n_numbers + len(self.categories) or len(self.n_values) != len(
            self.categories
        ):
            raise ValueError(
                "every number and category needs a name, and every category its number of values."
            )
        if not self.names:
            raise InputError("No column is left to learn from: name features, or declare quasi-identifiers.")
        for codes, n_values in zip(self.categories, self.n_values, strict=True):
            if codes.shape != (self.n_rows,) or (
                self.n_rows and not 0 <= codes.min() <= codes.max() < n_values
            ):
                raise ValueError("a category needs one code per row, from 0 to its number of values less 1.")

    @property
    def n_rows(self) -> int:
        return len(self.numbers)

    @property
    def n_numbers(self) -> int:
        return int(self.numbers.shape[1])

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        """Some of the rows, by number or by mask."""
        return type(self)(
            self.numbers[rows], tuple(codes[rows] for codes in self.categories), self.n_values, self.names
        )
