"""Rows in random order within their leaves."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.late import Late


@Late
def shuffle_leaves(start, end, keys, out):
    """Random order within each leaf (Fisher-Yates); ``out`` lists row numbers leaf by leaf.

    keys   (n,) uniform in [0, 1)   IN
    out    (n,)                     IN+OUT
    """
    for leaf in range(start.shape[0]):
        for i in range(end[leaf] - 1, start[leaf], -1):
            j = start[leaf] + np.int64(keys[i] * (i - start[leaf] + 1))
            x = out[i]
            out[i] = out[j]
            out[j] = x
