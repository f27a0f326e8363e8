"""Dates that are shifted: by the same secret number of days for all that is published of a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from sfumato.policy.model import Part
from sfumato.policy.rules import ColumnName, Whole

MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Shift(Part):
    """By how many days dates are shifted at most, and the column that tells one person from another.

    >>> Shift(30, "patient_id").as_policy()
    {'within': 30, 'per': 'patient_id'}
    """

    within: Annotated[
        int,
        Whole(
            "Dates of a person are published so many days earlier or later at most.",
            least=1,
            most=MOST_DAYS,
            says=f"must be a number of days, a whole number from 1 to {MOST_DAYS:,}, such as 30.",
        ),
    ]
    per: Annotated[str, ColumnName("The column of a person, an identifier or a pseudonym.")]
    meaning: ClassVar[str] = (
        "A date that is published as it is: it is shifted by a secret number of days, the same for all dates of a person."
    )
    says: ClassVar[str] = "must be days and a column, such as {within: 30, per: patient_id}."

    def as_policy(self) -> dict[str, Any]:
        """How a policy writes it."""
        return {"within": self.within, "per": self.per}
