"""What is settled before anything is drawn: how epsilon is divided, and how many cells a grid may have.

The figures of the tuned variant are those of docs/decisions/0013-diffgen.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.methods.specialization.loop import Candidate

ROW_COUNT = Fraction(1, 100)
"""Share of epsilon for a noisy number of rows: how many specializations are worth their cost depends on little else."""

SELECTION = Fraction(7, 10)
"""Share of what is left for specializations; the counts have the remainder."""

CELL_PENALTY = Fraction(1, 5)
"""Rows that a candidate's score loses for each new cell, by the scale of the noise in it."""

FEWEST, MOST = 3, 20
"""Specializations, where a policy does not say how many."""


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """So many specializations of this share each; ``counts`` is what the counts have if all of them are taken."""

    specializations: int
    share: Fraction
    counts: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, specializations: int) -> BudgetPlan:
        """How this much of epsilon is divided.

        >>> BudgetPlan.of(Fraction(1), 7)
        BudgetPlan(specializations=7, share=Fraction(1, 10), counts=Fraction(3, 10))
        """
        if specializations == 0:
            return cls(0, Fraction(0), epsilon)
        return cls(specializations, SELECTION * epsilon / specializations, (1 - SELECTION) * epsilon)

    @property
    def cell_penalty(self) -> Fraction:
        """In rows, for each new cell."""
        return CELL_PENALTY / self.counts


def specializations_for(epsilon: Fraction, n_rows: int) -> int:
    """4 log10 (epsilon n), rounded, less 8: two more for three times the rows, or for three times epsilon.

    >>> [specializations_for(Fraction(1), n) for n in (-5, 1000, 3000, 10_000, 30_000, 100_000, 10**6, 10**9)]
    [3, 4, 6, 8, 10, 12, 16, 20]
    """
    x = epsilon * max(n_rows, 1)
    h = FEWEST
    while h < MOST and x**8 >= 10 ** (2 * (h + 9) - 1):
        h += 1
    return h


class CellLimit:
    """The most cells that a grid may have, and the pieces of each axis so far. Both are public.

    >>> limit = CellLimit([1, 3], most=7)
    >>> limit.admits(0, 2), limit.admits(0, 3)
    (True, False)
    """

    def __init__(self, n_pieces: Sequence[int], most: int) -> None:
        self.n_pieces, self.most = list(n_pieces), most

    @property
    def n_cells(self) -> int:
        return math.prod(self.n_pieces)

    def admits(self, axis: int, n_parts: int) -> bool:
        """Would the grid still be within the limit if a piece of this axis were divided into so many parts?"""
        return self.n_cells + self.n_new(axis, n_parts) <= self.most

    def n_new(self, axis: int, n_parts: int) -> int:
        """How many more cells that would make."""
        return self.n_cells // self.n_pieces[axis] * (n_parts - 1)

    def take(self, candidate: Candidate) -> None:
        """Its piece has been divided."""
        self.n_pieces[candidate.piece.axis] += len(candidate.parts) - 1
