"""Allowances: how many rows a node may leave out, and how many people may lose one; see ``kernels.leave_out``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.mondrian.kernels.problem import ROWS, AxisTables, Leaving, new_leaving
from sfumato.policy.suppress import Suppress

Ints = NDArray[np.int64]


class Allowance(NamedTuple):
    """What may be left out: rows, and people whose rows these are. Where rows count, nobody asks for people."""

    rows: int = 0
    people: int = 0

    @classmethod
    def of(cls, suppress: Suppress | None, *, n_rows: int, n_people: int | None) -> Allowance:
        """That of a whole table; ``n_people`` is None where rows count.

        >>> from fractions import Fraction
        >>> Allowance.of(Suppress(Fraction(1, 10)), n_rows=59, n_people=20)
        Allowance(rows=5, people=2)
        >>> Allowance.of(Suppress(Fraction(1, 10)), n_rows=59, n_people=9)
        Allowance(rows=0, people=0)
        """
        if suppress is None:
            return NOTHING
        rows = suppress.most_rows(n_rows)
        return cls(rows, rows) if n_people is None else cls(rows, suppress.most_rows(n_people)).if_any()

    def if_any(self) -> Allowance:
        """Itself, or nothing at all if one of both is used up."""
        return self if min(self) > 0 else NOTHING

    def __bool__(self) -> bool:
        return self.rows > 0


NOTHING = Allowance()


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


def fewest_to_split(least_rows: int, allowance: Allowance) -> int:
    """Rows that a node must have to be split: those of two groups, or one row more than a group if some may go.

    >>> fewest_to_split(5, NOTHING), fewest_to_split(5, Allowance(1, 1)), fewest_to_split(1, NOTHING)
    (10, 6, 2)
    """
    return max(least_rows + 1 if allowance else 2 * least_rows, 2)


def may_divide(sizes: Ints, least_rows: int, allowance: Allowance) -> bool:
    """May children of these sizes be the parts of a split, as far as their numbers of rows tell?

    >>> [may_divide(np.array([5, 9, 2]), 5, Allowance(rows)) for rows in (1, 2)]
    [False, True]
    """
    is_small = sizes < least_rows
    return len(sizes) > 1 and not is_small.all() and int(sizes[is_small].sum()) <= allowance.rows


def leaving_of(grid: AxisTables, axis: int, top: int, branches: Ints, allowance: Allowance) -> Leaving:
    """Working space for the split of ``top`` into these children, as kernels read it; see ``note_children``."""
    leaving = new_leaving(len(branches))
    leaves = grid.node["high"] - grid.node["low"]
    leaving.allowance[:] = allowance
    leaving.gain[:] = leaves[top] - leaves[branches]
    leaving.loss[0] = len(grid.axis) * (leaves[grid.axis["root"][axis]] - 1)
    return leaving


def pays(leaving: Leaving, sizes: Ints, stands: NDArray[np.bool_]) -> bool:
    """May the children of these sizes that do not stand be left out: are they few rows, and does it pay?

    It is ``kernels.leave_out.standing_pay`` where people are counted elsewhere.
    """
    n_left = int(sizes[~stands].sum())
    gained = int((sizes * leaving.gain)[stands].sum())
    return bool(
        stands.any() and n_left <= leaving.allowance[ROWS] and gained >= n_left * int(leaving.loss[0])
    )
