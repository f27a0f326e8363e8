"""The ledger of a differentially private run: what each draw may cost, written down before it is made.

Shares are exact fractions of epsilon's own unit. A share is charged before anything random is asked for and is
never given back, whatever becomes of the draw; what nobody asked for is left, and stands there as unspent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.errors import InternalError

COMPOSITION = "sequential; draws on disjoint rows are charged once"
"""How shares add up: [MCFY11, lemmas 4.1 and 4.2]."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One use of a mechanism.

    what       what is drawn: a split point, a specialization, counts
    of         what for, in public words: the name of an attribute, or nothing
    mechanism  the law that it is drawn from
    share      of epsilon, that it costs
    scale      of the law
    result     what was drawn, where it is a number that nothing else in the release tells
    """

    what: str
    of: str
    mechanism: str
    share: Fraction
    scale: Fraction
    result: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """In plain texts, fractions as they are.

        >>> Draw("counts", "", "discrete Laplace", Fraction(1, 2), Fraction(2)).as_dict()
        {'draw': 'counts', 'mechanism': 'discrete Laplace', 'share': '1/2', 'scale': '2'}
        """
        of = {"of": self.of} if self.of else {}
        return {
            "draw": self.what,
            **of,
            "mechanism": self.mechanism,
            "share": str(self.share),
            "scale": str(self.scale),
            **({} if self.result is None else {"result": self.result}),
        }


class Ledger:
    """Everything that was charged against one epsilon.

    >>> ledger = Ledger(Fraction(1))
    >>> ledger.charge(Draw("counts", "", "discrete Laplace", Fraction(2, 3), Fraction(3, 2)))
    >>> ledger.spent, ledger.unspent
    (Fraction(2, 3), Fraction(1, 3))
    """

    def __init__(self, epsilon: Fraction) -> None:
        self.epsilon = epsilon
        self.draws: list[Draw] = []

    @property
    def spent(self) -> Fraction:
        return sum((draw.share for draw in self.draws), Fraction(0))

    @property
    def unspent(self) -> Fraction:
        return self.epsilon - self.spent

    def charge(self, draw: Draw) -> None:
        """Pay for a draw that is about to be made."""
        if draw.share <= 0 or draw.share > self.unspent:
            raise InternalError("A draw would cost more than is left of epsilon.")
        self.draws.append(draw)

    def note(self, result: int) -> None:
        """What came of the last draw."""
        self.draws[-1] = replace(self.draws[-1], result=result)

    def per_person(self, n_rows: int) -> Ledger:
        """The same draws, and what they cost a person who has so many rows.

        One row changes what is drawn by the share; n rows, one after the other, by n times the share.

        >>> ledger = Ledger(Fraction(1, 4))
        >>> ledger.charge(Draw("counts", "", "discrete Laplace", Fraction(1, 4), Fraction(4)))
        >>> of_people = ledger.per_person(4)
        >>> of_people.epsilon, of_people.spent, of_people.draws[0].scale
        (Fraction(1, 1), Fraction(1, 1), Fraction(4, 1))
        """
        found = Ledger(n_rows * self.epsilon)
        found.draws = [replace(draw, share=n_rows * draw.share) for draw in self.draws]
        return found

    def as_list(self) -> list[dict[str, Any]]:
        return [draw.as_dict() for draw in self.draws]
