"""Kernels that load numba when they are first called."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernels.ranks import fill_ranks
from sfumato.kernels.route import fill_boxes

PROGRAM = """
import sys
import numpy as np
from sfumato.kernels.ranks import fill_ranks
numbers, places = np.array([1.0, 2.0]), np.zeros(2, dtype=np.int64)
fill_ranks.for_few(numbers, numbers, places)
print(places.tolist(), "numba" in sys.modules)
places[:] = 0
fill_ranks(numbers, numbers, places)
print(places.tolist(), "numba" in sys.modules, fill_ranks.for_few is fill_ranks)
"""


def test_a_late_kernel_loads_numba_only_for_many_numbers():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True)
    assert done.stdout == "[0, 1] False\n[0, 1] True True\n"


@given(st.lists(st.integers(0, 20), min_size=1, max_size=20))
def test_ranks_are_the_same_compiled_and_as_written(numbers):
    values = np.sort(np.array(numbers, dtype=np.float64))
    compiled, plain = np.zeros((2, len(values)), dtype=np.int64)
    fill_ranks(values, values, compiled)
    fill_ranks.plain(values, values, plain)
    assert compiled.tolist() == plain.tolist()


def test_boxes_are_the_same_compiled_and_as_written():
    """A number is split at 5, then what is below by a hierarchy in three, and what is above, with missing, at 7.5."""
    tree = (
        np.array([False, True]),
        np.array([0, 1, 0, -1, -1, -1, -1, -1], dtype=np.int32),
        np.array([5.0, np.nan, 7.5, *[np.nan] * 5]),
        np.array([1, 3, 6, *[-1] * 5], dtype=np.int32),
        np.array([2, 3, 2, *[0] * 5], dtype=np.int32),
        np.array([-1, 0, 1, 4, 6, 9, 0, 1], dtype=np.int32),
        np.array([1, *[-1] * 7], dtype=np.int32),
    )
    found = []
    for fill in (fill_boxes, fill_boxes.plain):
        low, high = np.full((2, 8, 2), np.nan)
        low[0], high[0] = (np.nan, 0.0), (np.inf, 0.0)
        missing = np.array([[True, False]] + [[False, False]] * 7)
        fill(*tree, 0, 8, low, high, missing)
        found.append((low, high, missing))
    for compiled, plain in zip(*found, strict=True):
        np.testing.assert_array_equal(compiled, plain)
    assert found[0][0][5].tolist()[1] == 9.0
    assert found[0][0][7].tolist() == [7.5, 0.0]
    assert found[0][1][6].tolist() == [7.5, 0.0]
    assert np.flatnonzero(found[0][2][:, 0]).tolist() == [0, 2, 6]
