"""Risk-utility in a policy: what is optimized for each row, by which optimizer, and how risk and utility are counted.

Everything here looks at declarations alone: nothing depends on a table. Keys: [FEB12] is the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.hierarchy import Hierarchy
from sfumato.schema import Attribute

AUTO, EXACT, CUT, APPROXIMATION, GENETIC, PROBING = (
    "auto",
    "exact",
    "cut",
    "approximation",
    "genetic",
    "probing",
)
OPTIMIZERS = (AUTO, EXACT, CUT, APPROXIMATION, GENETIC, PROBING)
THRESHOLD, LAGRANGIAN, LOG_RISK = "threshold", "lagrangian", "log-risk"
OBJECTIVES = (THRESHOLD, LAGRANGIAN, LOG_RISK)
DEPTH, INVERSE, LOG = "depth", "inverse", "log"
UTILITIES = (DEPTH, INVERSE, LOG)
MODEL_1, MODEL_2, HARMONIC = "model-1", "model-2", "harmonic"
MODELS = (MODEL_1, MODEL_2, HARMONIC)
REPAIRED, PAPER = "repaired", "paper"
VARIANTS = (REPAIRED, PAPER)

UtilityFunction = Callable[[Attribute, Hierarchy], Sequence[float]]
"""The utility of each node of a column's hierarchy, never more than that of a node below it."""

Utility = str | Mapping[str, tuple[float, ...]] | UtilityFunction
"""A word; or by column the utility of a node at each depth, the root's first (other columns have their depth); or,
in code, a function."""

Factors = str | Mapping[str, str]
"""A column whose numbers multiply all weights of a row; or such a column for some of the quasi-identifiers."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How sensitive a published value is [FEB12, sections 2.1.2 and 4.1].

    ``attributes`` are the weights of single columns: a number, or one for each leaf by its label (1 where none is
    given). ``column`` makes weights personal: its numbers multiply those of the row.

    >>> Weights().as_policy(), Weights(HARMONIC, {"zip": 2.0}, "caution").as_policy()
    ('model-1', {'model': 'harmonic', 'attributes': {'zip': 2.0}, 'column': 'caution'})
    """

    model: str = MODEL_1
    attributes: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    column: Factors | None = None

    def as_policy(self) -> Any:
        if not self.attributes and self.column is None:
            return self.model
        plain: dict[str, Any] = {"model": self.model}
        if self.attributes:
            plain["attributes"] = {
                name: dict(given) if isinstance(given, Mapping) else given
                for name, given in self.attributes.items()
            }
        if self.column is not None:
            plain["column"] = self.column if isinstance(self.column, str) else dict(self.column)
        return plain


@dataclass(frozen=True, slots=True)
class PrivateSampling:
    """Rows are drawn, and boxes published only if enough of them were drawn [FEB12, section 3; LQS12].

    ``sample`` is the chance of a row to be drawn; None lets the method choose.
    """

    epsilon: Fraction
    delta: Fraction
    sample: Fraction | None = None
    variant: str = REPAIRED


@dataclass(frozen=True, slots=True)
class RiskUtilityOptions:
    """What is optimized for each row, and how.

    ``utility_at_least`` is a share of the way from the row suppressed to the row as it is. ``price`` is the lambda of
    the Lagrangian and of log-risk, ``kappa`` the power of utility in the former. ``floor`` is added to the weight of
    every generalization. ``side_table`` is the file that an attacker has; None is the table itself.
    """

    optimizer: str = AUTO
    objective: str = THRESHOLD
    utility_at_least: Fraction = Fraction(3, 5)
    price: Fraction | None = None
    kappa: int = 1
    utility: Utility = DEPTH
    weights: Weights = field(default_factory=Weights)
    floor: Fraction = Fraction(0)
    side_table: str | None = None
    private: PrivateSampling | None = None
    name: ClassVar[str] = "risk-utility"
