"""How the tuned variant divides epsilon, and how far it goes: from epsilon and the declared domains alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.policy import DiffGenOptions


@dataclass(frozen=True, slots=True)
class Plan:
    """So many specializations, scored so, for this part of epsilon; the counts have the rest."""

    specializations: int
    score: str
    selection: Fraction


def plan(options: DiffGenOptions) -> Plan:
    """What the owner says, and where nothing is said what did best on other tables (docs/decisions/0013)."""
    is_rich = options.epsilon >= Fraction(1, 2)
    chosen = Plan(8, "max", Fraction(1, 2)) if is_rich else Plan(6, "gini", Fraction(3, 5))
    return Plan(
        chosen.specializations if options.specializations is None else options.specializations,
        options.score or chosen.score,
        chosen.selection,
    )
