"""Allowances of nodes whose rows are counted: how many rows each may leave out, see ``kernels.leave_out``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.mondrian.kernels.problem import AxisTables, Leaving, new_leaving

Ints = NDArray[np.int64]


def hand_down(allowance: int, sizes: Sequence[int]) -> list[int]:
    """What is left of an allowance, to the children of a split in proportion to their rows.

    Shares are rounded by largest remainder; between equal ones the first child goes first.

    >>> hand_down(4, [10, 10, 10]), hand_down(1, [1, 2]), hand_down(0, [3])
    ([2, 1, 1], [0, 1], [0])
    """
    n_rows = sum(sizes)
    shares = [allowance * size // n_rows for size in sizes]
    by_remainder = sorted(range(len(sizes)), key=lambda child: (-(allowance * sizes[child] % n_rows), child))
    for child in by_remainder[: allowance - sum(shares)]:
        shares[child] += 1
    return shares


def fewest_to_split(least_rows: int, allowance: int) -> int:
    """Rows that a node must have to be split: those of two groups, or one row more than a group if some may go.

    >>> fewest_to_split(5, 0), fewest_to_split(5, 1), fewest_to_split(1, 0)
    (10, 6, 2)
    """
    return max(least_rows + 1 if allowance > 0 else 2 * least_rows, 2)


def may_divide(sizes: Ints, least_rows: int, allowance: int) -> bool:
    """May children of these sizes be the parts of a split, as far as their numbers of rows tell?

    >>> [may_divide(np.array([5, 9, 2]), 5, allowance) for allowance in (1, 2)]
    [False, True]
    """
    is_small = sizes < least_rows
    return len(sizes) > 1 and not is_small.all() and int(sizes[is_small].sum()) <= allowance


def leaving_of(grid: AxisTables, axis: int, top: int, branches: Ints, allowance: int) -> Leaving:
    """Working space for the split of ``top`` into these children, as kernels read it; see ``note_children``."""
    leaving = new_leaving(len(branches))
    leaves = grid.node["high"] - grid.node["low"]
    leaving.allowance[0] = allowance
    leaving.gain[:] = leaves[top] - leaves[branches]
    leaving.loss[0] = len(grid.axis) * (leaves[grid.axis["root"][axis]] - 1)
    return leaving
