"""k-anonymity: every group holds at least k rows [LDR08, definition 2.1]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from sfumato.errors import PolicyError, number_of
from sfumato.policy.requirements.group_stats import GroupStats, Needs
from sfumato.policy.requirements.promise import Promise
from sfumato.policy.requirements.requirement import Requirement


@dataclass(frozen=True, slots=True)
class KAnonymity(Requirement):
    """Every published group holds at least ``k`` rows [LDR08, definition 2.1].

    In a policy its number stands alone, without a name.

    >>> KAnonymity(3).holds(GroupStats(count=np.array([2, 3])))
    array([False,  True])
    """

    k: Annotated[int, Ge(1), "The least number of rows."]
    of: None = field(default=None, init=False, repr=False)
    word: ClassVar[str] = "k-anonymity"
    meaning: ClassVar[str] = "Every group holds at least this many rows."
    example: ClassVar[int] = 5
    needs: ClassVar[Needs] = Needs.COUNT
    figure: ClassVar[str] = "smallest group"

    def __post_init__(self) -> None:
        if not self.parameters()[0].accepts(self.k):
            raise PolicyError(f"{self.word}: {self._sentence()}")

    def __str__(self) -> str:
        return f"{self.k}-anonymity"

    @property
    def fewest_rows(self) -> int:
        return self.k

    def holds(self, groups: GroupStats) -> NDArray[np.bool_]:
        return groups.count >= self.k

    def measure(self, groups: GroupStats) -> NDArray[np.float64]:
        return groups.count.astype(np.float64)

    def is_met_by(self, figure: float) -> bool:
        return figure >= self.k

    def describe(self, figure: float) -> str:
        return number_of(round(figure), "row")

    def promise(self, figure: float) -> Promise:
        rows = number_of(self.k, "row")
        return Promise(
            name=f"{self.k:,}-anonymity",
            meaning=f"Every group holds at least {rows}: whoever knows all quasi-identifiers of a person is "
            f"left with {rows} or more that could be theirs.",
            asked=f"at least {rows}",
            achieved=number_of(int(figure), "row"),
            margin="met exactly" if figure == self.k else f"{figure - self.k:+,.0f} rows",
            holds=self.is_met_by(figure),
        )

    def describe_worst_of_people(self, figure: float, *, digits: int = 12) -> str:  # noqa: ARG002 - it is whole
        return f"the smallest group has {number_of(round(figure), 'person', 'people')}"

    def promise_of_people(self, figure: float) -> Promise:
        people = number_of(self.k, "person", "people")
        return Promise(
            name=f"{self.k:,}-anonymity",
            meaning=f"Every group holds at least {people}: whoever knows all quasi-identifiers of a person is left with "
            f"{people} or more whose rows could be theirs.",
            asked=f"at least {people}",
            achieved=number_of(int(figure), "person", "people"),
            margin="met exactly" if figure == self.k else f"{figure - self.k:+,.0f} people",
            holds=self.is_met_by(figure),
        )

    @classmethod
    def from_policy(cls, given: Any) -> Self:
        return cls(int(given))

    def as_policy(self) -> dict[str, Any]:
        return {self.word: self.k}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        return {
            **cls.parameters()[0].json_schema(),
            "description": cls.meaning,
            "errorMessage": cls._sentence(),
        }

    @classmethod
    def _sentence(cls) -> str:
        return f"{cls.parameters()[0].sentence}, such as {cls.example}."
