"""A grown tree in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Nodes(NamedTuple):
    """A finished tree; kernels write a table of NODE records."""

    axis: NDArray[np.int32]
    threshold: NDArray[np.int64]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    branch: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
