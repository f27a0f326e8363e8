"""Encoded rows as they travel: blocks of codes, with what is published as it is beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

BLOCK_ROWS = 65_536


Codes = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some encoded rows.

    rows      (n, axes + extra) uint32, C order   codes of the quasi-identifiers, then targets and sensitive values
    payload   what is published of them as it is; None where nobody asks for it
    """

    rows: Codes
    payload: pa.RecordBatch | None


class Rows(Protocol):
    """The rows of one node, wherever they are."""

    @property
    def n_rows(self) -> int: ...

    def blocks(self, *, payload: bool = True) -> Iterator[Block]:
        """One pass over them, by blocks of at most 65,536 rows."""
        ...
