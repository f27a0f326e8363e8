"""Numbers for the texts of columns, and for the distinct combinations of several columns.

``verify`` has a function of its own: it must not share this one's mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]

LARGEST_KEY = 2**62
"""Keys stay below this, so that they never overflow."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberedRows:
    """Rows with the number of their combination, of which there are ``n``."""

    number: Ints
    n: int

    def first_rows(self) -> Ints:
        """The first row of each combination."""
        first = np.empty(self.n, dtype=np.int64)
        first[self.number[::-1]] = np.arange(len(self.number))[::-1]
        return first

    def count_rows(self) -> Ints:
        """How many rows have each combination."""
        return np.bincount(self.number, minlength=self.n)


def number_combinations(columns: Sequence[NDArray[Any]], *, in_order: bool = True) -> NumberedRows:
    """Number the combinations from 0 on in lexicographic order, the first column first.

    A column holds numbers of any kind; NaN equals NaN and comes last, and -0 equals 0. If they need not be
    ``in_order``, nothing is sorted.

    >>> found = number_combinations([np.array([5, 5, 0, 5]), np.array([1.5, np.nan, 2, 1.5])])
    >>> found.number.tolist(), found.n, found.first_rows().tolist(), found.count_rows().tolist()
    ([1, 2, 0, 1], 3, [2, 0, 1], [1, 2, 1])
    """
    key, n_keys = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        codes, n_codes = _encode(column, in_order=in_order)
        if n_keys * n_codes >= LARGEST_KEY:
            key, n_keys = _number_values(key, in_order=in_order)
        key, n_keys = key * n_codes + codes, n_keys * n_codes
    return NumberedRows(*_number_values(key, in_order=in_order))


def number_texts(*columns: Any) -> Ints:
    """The cells of columns, one after the other, as numbers that are equal where their texts are; missing is empty.

    >>> number_texts(pa.array(["5", None]), pa.array([5.0, 7.0])).tolist()
    [0, 1, 0, 2]
    """
    cells = [
        chunk.cast(pa.string()).fill_null("")
        for column in columns
        for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    ]
    encoded = pa.chunked_array(cells, pa.string()).combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices).astype(np.int64)


def _encode(column: NDArray[Any], *, in_order: bool) -> tuple[Ints, int]:
    """Codes in the order of the values, and a number that is above all of them."""
    if column.dtype.kind == "f":  # Arrow compares bits: one NaN for all, and no -0
        return _number_values(np.where(np.isnan(column), np.nan, column + 0.0), in_order=in_order)
    if column.min(initial=0) < 0 or column.max(initial=0) >= LARGEST_KEY:
        return _number_values(column, in_order=in_order)
    return column.astype(np.int64, copy=False), int(column.max(initial=0)) + 1


def _number_values(values: NDArray[Any], *, in_order: bool) -> tuple[Ints, int]:
    """The place of each value among the distinct ones, ascending, and how many these are.

    The same as ``np.unique`` gives; but only distinct values are sorted, and these only if they are to be ``in_order``.
    """
    found = pa.array(values).dictionary_encode()
    if not in_order:
        return np.asarray(found.indices).astype(np.int64), len(found.dictionary)
    order = np.argsort(np.asarray(found.dictionary))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[np.asarray(found.indices)], len(order)
