"""The place of each number in a sorted list."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.late import Late


@Late
def fill_ranks(values, keys, out):
    """The place of each key among the values, the last one of equals.

    It is searched for from the place of the key before, by steps that double and are then halved.

    values  (n,) float64, ascending, every key among them  IN
    keys    (k,) float64, ascending                        IN
    out     (k,) int64                                     OUT
    """
    n = values.shape[0]
    place = np.int64(0)
    for i in range(keys.shape[0]):
        key, step = keys[i], np.int64(1)
        while place + step < n and values[place + step] <= key:
            place += step
            step *= 2
        while step > 0:
            if place + step < n and values[place + step] <= key:
                place += step
            step //= 2
        out[i] = place


def fill_ranks_naive(values, keys, out):
    """The obviously right version; tests compare the fast one with it."""
    out[:] = np.searchsorted(values, keys, side="right") - 1
