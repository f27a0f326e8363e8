"""The groups of a table, whichever method found them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.kernels.shuffle import shuffle_leaves
from sfumato.recoding.recoder import Recoder


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The groups of the fitted rows.

    ``leaf`` says where each group stands in the recoding, ``size`` its number of rows, and ``row_numbers``
    lists the rows group by group. Their order within a group says something of the input's: a release takes
    those that ``shuffle`` gives.
    """

    recoding: Recoder
    leaf: NDArray[np.int64]
    size: NDArray[np.int64]
    row_numbers: NDArray[np.uint32]

    def shuffle(self, random: NDArray[np.float64]) -> NDArray[np.uint32]:
        """The row numbers in random order within each group; ``random`` is one number in [0, 1) per row."""
        end = np.cumsum(self.size)
        out = self.row_numbers.copy()
        shuffle_leaves(end - self.size, end, random, out)
        return out

    def columns(self) -> dict[str, pa.Array]:
        """The published quasi-identifier columns, row by row in the order of the groups."""
        return self.recoding.columns(self.leaf, lambda values: np.repeat(values, self.size))

    def of_row(self) -> NDArray[np.int64]:
        """The group of each row of the table."""
        out = np.empty(len(self.row_numbers), dtype=np.int64)
        out[self.row_numbers] = np.repeat(np.arange(len(self.size)), self.size)
        return out
