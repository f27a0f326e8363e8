"""Suppression in a policy: how many rows may be left out where that lets the others stay finer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from sfumato.policy.kinds import read_exactly
from sfumato.policy.mistakes import Misfit
from sfumato.policy.model import Part, check
from sfumato.policy.rules import Rule, is_number, refuse

PERCENT = "^[0-9]{1,3}([.][0-9]{1,40})?%$"

_SAYS = "must be how many rows may be left out at most, such as {at-most: 1%}."


def read_share(given: float | str | Fraction) -> Fraction:
    """The share that a policy says.

    >>> read_share("0.5%"), read_share(0.005)
    (Fraction(1, 200), Fraction(1, 200))
    """
    if isinstance(given, str):
        return Fraction(given[:-1]) / 100
    return given if isinstance(given, Fraction) else read_exactly(given)


@dataclass(frozen=True, eq=False)
class ShareRule(Rule):
    """A share from 0 to 1, or in per cent; kept exactly as it is written."""

    def accept(self, value: Any) -> Fraction:
        is_share = isinstance(value, Fraction) or is_number(value)
        if not (is_share or (isinstance(value, str) and re.fullmatch(PERCENT, value))):
            refuse(self.says)
        if not 0 <= (share := read_share(value)) <= 1:
            refuse(self.says)
        return share

    def shape(self) -> dict[str, Any]:
        return {"type": ["number", "string"], "minimum": 0, "maximum": 1, "pattern": PERCENT}


SHARE = ShareRule(
    "The largest share of the rows that may be left out, such as 1% or 0.01.",
    says="must be a share of the rows, at most 100%, such as 1% or 0.01.",
)


@dataclass(frozen=True, slots=True)
class Suppress(Part):
    """How many rows may be left out.

    >>> half = Suppress(Fraction(1, 200))
    >>> half.most_rows(1999), half.as_policy(), str(Suppress(Fraction(1)))
    (9, {'at-most': '0.5%'}, '100%')
    """

    at_most: Annotated[Fraction, SHARE]
    meaning: ClassVar[str] = (
        "Rows that may be left out of the release where that lets the others stay finer; none if not given."
    )
    says: ClassVar[str] = _SAYS

    @classmethod
    def of(cls, given: Suppress | Mapping[str, Any]) -> Suppress:
        """From what a policy says, which fits."""
        return given if isinstance(given, Suppress) else cls(read_share(given["at-most"]))

    @property
    def leaves_rows_out(self) -> bool:
        """May any row be left out?"""
        return self.at_most > 0

    def most_rows(self, n_rows: int) -> int:
        """How many of so many rows may be left out; of so many people as well, where these count."""
        return int(self.at_most * n_rows)

    def __str__(self) -> str:
        percent = self.at_most * 100
        return f"{(Decimal(percent.numerator) / Decimal(percent.denominator)).normalize():f}%"

    def as_policy(self) -> dict[str, str]:
        """How a policy writes it."""
        return {"at-most": str(self)}


@dataclass(frozen=True, eq=False)
class _SuppressRule(Rule):
    """A mapping with the share of rows."""

    def core(self, handler: Any) -> Any:
        return Suppress.core(handler)

    def schema(self) -> dict[str, Any]:
        return Suppress.schema()


SUPPRESS = _SuppressRule(says=_SAYS)


def check_suppress(suppress: Suppress) -> None:
    """Raise a :class:`Misfit` unless the share is one."""
    for mistake in check(suppress, ("suppress",)):
        raise Misfit(mistake.where, mistake.sentence)
