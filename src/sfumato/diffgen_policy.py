"""DiffGen in a policy: its options [MCFY11], and what a differentially private release must declare.

Everything here looks at declarations alone: nothing depends on a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.policy_file import Misfit

TUNED, PAPER = "tuned", "paper"
MAX, INFOGAIN, GINI = "max", "infogain", "gini"
COUNTS, EXPANDED = "counts", "expanded"

LEAVES = "leaves"
"""In place of a list, a cut at every value."""

Cut = tuple[Any, ...] | str
"""Where the pieces of a number or date begin, the labels of a hierarchy's nodes, or ``LEAVES``."""

LEAST_EPSILON, GREATEST_EPSILON = Fraction(1, 10**9), Fraction(10**12)
_EPSILON: tuple[str, ...] = ("method", "diffgen", "epsilon")


@dataclass(frozen=True, slots=True)
class DiffGenOptions:
    """How DiffGen specializes, and its budget: ``epsilon`` is the decimal that was written, exactly.

    ``specializations`` and ``score`` are None where the variant chooses them. ``cuts`` are those that the owner
    fixed, by column: a number or a date lists where its pieces begin, a hierarchy the labels of its nodes.

    >>> options = DiffGenOptions(exact_epsilon(0.1), variant=PAPER)
    >>> options.epsilon, options.as_policy()
    (Fraction(1, 10), {'diffgen': {'epsilon': 0.1, 'variant': 'paper', 'max-cells': 1000000}})
    """

    epsilon: Fraction
    variant: str = TUNED
    specializations: int | None = None
    score: str | None = None
    max_cells: int = 1_000_000
    cuts: Mapping[str, Cut] | None = None
    name: ClassVar[str] = "diffgen"

    def as_policy(self) -> dict[str, Any]:
        whole = self.epsilon.denominator == 1
        options: dict[str, Any] = {"epsilon": int(self.epsilon) if whole else float(self.epsilon)}
        if self.cuts is None:
            options["variant"] = self.variant
        if self.specializations is not None:
            options["specializations"] = self.specializations
        if self.score is not None:
            options["score"] = self.score
        options["max-cells"] = self.max_cells
        if self.cuts is not None:
            options["cuts"] = {
                name: cut if isinstance(cut, str) else list(cut) for name, cut in self.cuts.items()
            }
        return {self.name: options}


def exact_epsilon(number: float) -> Fraction:
    """The decimal that a number is written as: 0.1 is 1/10.

    >>> exact_epsilon(0.1), exact_epsilon(2)
    (Fraction(1, 10), Fraction(2, 1))
    """
    try:
        return Fraction(str(number))
    except (ValueError, ZeroDivisionError):  # infinite, NaN, or no number
        raise Misfit(_EPSILON, EPSILON_SENTENCE) from None


EPSILON_SENTENCE = "must be a number from 1e-9 to 1e12, such as 1.0; the smaller, the more private."
