"""What a published value tells, and how sensitive it is: utility and weight in a policy [FEB12, sections 2.1 and 4.1]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from sfumato.errors import short
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.kinds import as_plain
from sfumato.policy.mistakes import Misfit
from sfumato.policy.model import Part
from sfumato.policy.rules import ChoiceRule, ColumnName, Either, Exact, ListOf, MappingOf, NumberRule
from sfumato.policy.schema import Attribute, Kind, Role, Schema, declared_column
from sfumato.policy.yaml import Where

DEPTH, INVERSE, LOG = "depth", "inverse", "log"
UTILITIES = (DEPTH, INVERSE, LOG)
MODEL_1, MODEL_2, HARMONIC = "model-1", "model-2", "harmonic"
MODELS = (MODEL_1, MODEL_2, HARMONIC)

UtilityFunction = Callable[[Attribute, Hierarchy], Sequence[float]]
"""The utility of each node of a column's hierarchy, never more than that of a node below it."""

Utility = str | Mapping[str, tuple[float, ...]] | UtilityFunction
"""A word; or by column the utility of a node at each depth, the root's first (other columns have their depth); or,
in code, a function."""

Factors = str | Mapping[str, str] | Callable[[Any], Any]
"""A column whose numbers multiply all weights of a row; or such a column for some of the quasi-identifiers; or, in
code, a function of an Arrow table that gives a number for each row, or one for each row and quasi-identifier."""


# --- utility ---------------------------------------------------------------------------------------------

_UTILITY = "must be depth, inverse or log, or by column a list of numbers, such as {zip: [0, 1, 3]}."

UTILITY = Either(
    "What a value tells: its depth in the hierarchy, one over the values below it, or ln(all values / those "
    "below it); or by column the utility of a value at each depth, the root's first (other columns: depth).",
    says=_UTILITY,
    one=ChoiceRule(words=UTILITIES),
    other=MappingOf(
        says=_UTILITY,
        value=ListOf(
            says="must be a list of numbers of at least 0, the root's first, such as [0, 1, 3].",
            item=NumberRule(least=0, most=1e9, says="must be a number from 0 to 1e9."),
        ),
    ),
)
"""What a policy may say under ``utility``."""

SHARE = Exact(
    least=0,
    most=1,
    says="must be from 0 to 1: the share of the way from the row suppressed to the row as it is, such as 0.6.",
)
"""How a policy writes a share of utility."""


@dataclass(frozen=True, slots=True)
class Absolute(Part):
    """A threshold in units of utility, the same for every row [FEB12, definition 1].

    >>> str(Absolute(Fraction(5))), Absolute(Fraction(5, 2)).as_policy()
    ('5', {'value': 2.5})
    """

    value: Annotated[
        Fraction,
        Exact(
            "The least utility of a row.",
            least=0,
            most=1e12,
            says="must be a utility from 0 to 1e12, such as 5.",
        ),
    ]
    meaning: ClassVar[str] = "A utility, the same for every row."
    says: ClassVar[str] = SHARE.says

    def __str__(self) -> str:
        return str(self.value)

    def as_policy(self) -> dict[str, Any]:
        return {"value": as_plain(self.value)}


AtLeast = Fraction | Absolute
"""The least utility of a row: a share of the way from the row suppressed to the row as it is, or a utility."""


def check_utility(utility: Utility, schema: Schema, path: Where) -> None:
    """Utilities by column are of quasi-identifiers, and do not rise towards the root."""
    if isinstance(utility, str) or callable(utility):
        return
    for name, by_depth in utility.items():
        _check_quasi_identifier(name, schema, path, "has utility")
        if any(above > below for above, below in pairwise(by_depth)):
            raise Misfit(
                (*path, name),
                "must not fall from the root to the leaves: a more general value cannot tell more.",
            )


# --- weights ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Weight(NumberRule):
    """The weight of a whole column, always with a point: 2.0."""

    def accept(self, value: Any) -> float:
        return float(NumberRule.accept(self, value))


_FACTORS = "must be the name of a column, or such a name by quasi-identifier, such as {zip: caution}."
_LEAF_WEIGHT = NumberRule(least=0, most=1e9, says="must be a weight, a number from 0 to 1e9, such as 2.")
_WEIGHT = _Weight(least=0, most=1e9, says=_LEAF_WEIGHT.says)


@dataclass(frozen=True, slots=True)
class Weights(Part):
    """How sensitive a published value is [FEB12, sections 2.1.2 and 4.1].

    ``attributes`` are the weights of single columns: a number, or one for each leaf by its label (1 where none is
    given). ``column`` makes weights personal: its numbers multiply those of the row.

    >>> Weights().as_policy(), Weights(HARMONIC, {"zip": 2.0}, "caution").as_policy()
    ('model-1', {'model': 'harmonic', 'attributes': {'zip': 2.0}, 'column': 'caution'})
    """

    model: Annotated[
        str,
        ChoiceRule(
            "model-1: the weight of the column, 0 for the root; model-2: that over the number of columns, the root "
            "included; harmonic: one over the sum of one over the weights below, 0 for the root.",
            words=MODELS,
        ),
    ] = MODEL_1
    attributes: Annotated[
        Mapping[str, float | Mapping[str, float]],
        MappingOf(
            "The weight of a quasi-identifier (1 if not given); with harmonic also one for each of its values, by label.",
            says="must be weights by column, such as {zip: 2}.",
            value=Either(
                says=_WEIGHT.says, one=_WEIGHT, other=MappingOf(says=_WEIGHT.says, value=_LEAF_WEIGHT)
            ),
        ),
    ] = field(default_factory=dict)
    column: Annotated[
        Factors | None,
        Either(
            "Personal weights: a column whose numbers multiply all weights of its row, or such a column for some "
            "quasi-identifiers.",
            says=_FACTORS,
            one=ColumnName(),
            other=MappingOf(says=_FACTORS, value=ColumnName(), least=1),
        ),
    ] = None
    meaning: ClassVar[str] = "A model with weights of columns and of rows."
    says: ClassVar[str] = (
        "must be model-1, model-2 or harmonic, or options such as {model: harmonic, column: caution}."
    )

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
            assert not callable(self.column)
            plain["column"] = self.column if isinstance(self.column, str) else dict(self.column)
        return plain

    def columns(self) -> Iterator[tuple[str | None, str]]:
        """The columns that make weights personal, each with the quasi-identifier it is for (None: all)."""
        if isinstance(self.column, str):
            yield None, self.column
        elif isinstance(self.column, Mapping):
            yield from self.column.items()

    def check(self, schema: Schema, path: Where) -> None:
        """Weights are of quasi-identifiers; personal ones are columns of numbers."""
        for name, given in self.attributes.items():
            _check_quasi_identifier(name, schema, (*path, "attributes"), "is weighed")
            if isinstance(given, Mapping) and self.model != HARMONIC:
                raise Misfit(
                    (*path, "attributes", name),
                    f"{self.model} knows one weight for the whole column; give a number, or use model: {HARMONIC}.",
                )
        for quasi, name in self.columns():
            if quasi is not None:
                _check_quasi_identifier(quasi, schema, (*path, "column"), "is weighed")
            _check_factors(declared_column(name, schema, (*path, "column")), (*path, "column"))


@dataclass(frozen=True, eq=False)
class ModelOrWeights(Either):
    """A model alone is short for weights that it gives."""

    def read(self, given: Any, read_other: Callable[[Any], Any]) -> Any:
        found = Either.read(self, given, read_other)
        return Weights(found) if isinstance(found, str) else found


def _check_factors(attribute: Attribute, path: Where) -> None:
    """A column of personal weights."""
    if attribute.role in (Role.QUASI_IDENTIFIER, Role.IDENTIFIER):
        raise Misfit(
            path,
            f"column {short(attribute.name)} has the role {attribute.role}, and personal weights are no such thing; "
            "give it the role drop (used, not published) or other.",
        )
    if attribute.kind is not Kind.NUMBER:
        raise Misfit(path, f"column {short(attribute.name)} holds weights; add type: number to it.")


def _check_quasi_identifier(name: str, schema: Schema, path: Where, what: str) -> None:
    attribute = declared_column(name, schema, path)
    if attribute.role is not Role.QUASI_IDENTIFIER:
        raise Misfit(
            path,
            f"column {short(name)} has the role {attribute.role}, and only a quasi-identifier {what}; leave it out.",
        )
