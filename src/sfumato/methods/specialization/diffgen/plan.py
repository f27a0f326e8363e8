"""How the tuned variant divides epsilon, and how far it goes. The figures are those of docs/decisions/0013-diffgen.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

ROW_COUNT = Fraction(1, 100)
"""Of epsilon, for a noisy number of rows: how many specializations are worth their cost depends on little else."""

SELECTION = Fraction(7, 10)
"""Of what is left, for specializations; counts have the rest."""

CELL_PENALTY = Fraction(1, 5)
"""Rows that a candidate's score loses for each new cell, by the scale of the noise in it."""

FEWEST, MOST = 3, 20


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
