"""Risk-utility in a policy: what is optimized for each row, by which optimizer, and how risk and utility are counted.

Everything here looks at declarations alone: nothing depends on a table. Keys: [FEB12] is the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import PurePath
from typing import Annotated, Any, ClassVar

from pydantic import Field

from sfumato.errors import HierarchyError, short
from sfumato.policy.hierarchy.declarations import DAYS_TO_YEARS, Balanced
from sfumato.policy.hierarchy.declared import name_undeclared
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.kinds import as_plain
from sfumato.policy.mistakes import Misfit, Mistake, Mistakes
from sfumato.policy.model import OrNothing, Part, check, read
from sfumato.policy.options.method import MethodOptions, RestOfPolicy
from sfumato.policy.options.sampling_plan import NoPlan, plan
from sfumato.policy.output import Form, Output
from sfumato.policy.rules import (
    ChoiceRule,
    ColumnName,
    Either,
    Exact,
    ListOf,
    MappingOf,
    NumberRule,
    Text,
    Whole,
    refuse,
)
from sfumato.policy.schema import Attribute, Kind, Role, Schema, declared_column
from sfumato.policy.yaml import Where

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

SERVES = {
    AUTO: OBJECTIVES,
    EXACT: OBJECTIVES,
    CUT: (LAGRANGIAN,),
    APPROXIMATION: (THRESHOLD,),
    GENETIC: (THRESHOLD,),
    PROBING: OBJECTIVES,
}
"""The objectives of each optimizer."""

DEFAULT_SHARE = Fraction(3, 5)
DEFAULT_SIGMA_1 = Fraction(1, 2)
_ALGORITHM_3 = 3
"""What the paper has for private sampling, if not Algorithm 4."""
MOST_KAPPA = 9
FRAME = "frame"
"""What a policy calls a side table that was handed over in code and has no file."""

METHOD: Where = ("method", "risk-utility")

UtilityFunction = Callable[[Attribute, Hierarchy], Sequence[float]]
"""The utility of each node of a column's hierarchy, never more than that of a node below it."""

Utility = str | Mapping[str, tuple[float, ...]] | UtilityFunction
"""A word; or by column the utility of a node at each depth, the root's first (other columns have their depth); or,
in code, a function."""

Factors = str | Mapping[str, str] | Callable[[Any], Any]
"""A column whose numbers multiply all weights of a row; or such a column for some of the quasi-identifiers; or, in
code, a function of an Arrow table that gives a number for each row, or one for each row and quasi-identifier."""


_SHARE = Exact(
    least=0,
    most=1,
    says="must be from 0 to 1: the share of the way from the row suppressed to the row as it is, such as 0.6.",
)


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
    says: ClassVar[str] = _SHARE.says

    def __str__(self) -> str:
        return str(self.value)

    def as_policy(self) -> dict[str, Any]:
        return {"value": as_plain(self.value)}


AtLeast = Fraction | Absolute
"""The least utility of a row: a share of the way from the row suppressed to the row as it is, or a utility."""


_SIGMA = "must be a number between 0 and 1 and one above 1, such as [0.5, 5]."


@dataclass(frozen=True, slots=True)
class ApproximationOptions(Part):
    """Algorithm 1 [FEB12, section 2.4]: consecutive bounds on the weight differ by the factor 1 + ``epsilon``.

    ``sigma`` is of the variant paper alone: a drawn generalization is accepted if it has sigma_1 of the utility asked for
    and sigma_2 times the bound at most. None is 1/2, and a sigma_2 that suits the threshold.
    """

    epsilon: Annotated[
        Fraction,
        Exact(
            "Consecutive bounds on the weight differ by the factor 1 + epsilon.",
            fractions=False, least=0.001, below=1, says="must be a number from 0.001 to below 1, such as 0.1.",
        ),
    ] = Fraction(1, 10)  # fmt: skip
    sigma: Annotated[
        tuple[Fraction, Fraction] | None,
        ListOf(
            "Variant paper: what is drawn must have sigma_1 of the utility asked for, and sigma_2 times the bound on "
            "the weight at most.",
            says=_SIGMA,
            item=Exact(fractions=False, above=0, most=1e9, says="must be a number above 0 and up to 1e9."),
            least=2,
            most=2,
        ),
    ] = None
    meaning: ClassVar[str] = "Parameters of Algorithm 1, for optimizer: approximation."
    says: ClassVar[str] = "must be parameters, such as {epsilon: 0.1}."

    @property
    def sigma_1(self) -> Fraction:
        return DEFAULT_SIGMA_1 if self.sigma is None else self.sigma[0]

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {"epsilon": as_plain(self.epsilon)}
        if self.sigma is not None:
            options["sigma"] = list(map(as_plain, self.sigma))
        return options


_TO_10000 = "must be a whole number from 1 to 10000."


@dataclass(frozen=True, slots=True)
class GeneticOptions(Part):
    """Algorithm 2 [FEB12, section 2.5]: paths of a population, and how often children are made."""

    population: Annotated[int, Whole("Paths of a population.", least=1, most=10_000, says=_TO_10000)] = 50
    generations: Annotated[
        int, Whole("How often children are made.", least=1, most=10_000, says=_TO_10000)
    ] = 50
    meaning: ClassVar[str] = "Parameters of Algorithm 2, for optimizer: genetic."
    says: ClassVar[str] = "must be parameters, such as {population: 50, generations: 50}."

    def as_policy(self) -> dict[str, Any]:
        return {"population": self.population, "generations": self.generations}


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


_PAPER_ALONE = f"only variant: {PAPER} has it; leave it out."


@dataclass(frozen=True, slots=True)
class PrivateSampling(Part):
    """Rows are drawn, and boxes published only if enough of them were drawn [FEB12, section 3; LQS12].

    ``sample`` is the chance of a row to be drawn; None lets the method choose. ``algorithm`` is of the variant paper
    alone: 3 enumerates the generalizations of a row, 4 walks in a polytope.
    """

    epsilon: Annotated[
        Fraction,
        Exact(
            "The privacy budget: the smaller, the more private.", least=0.001, most=50,
            says="must be a number from 0.001 to 50, such as 1.0; the smaller, the more private.",
        ),
    ]  # fmt: skip
    delta: Annotated[
        Fraction,
        Exact(
            "The chance that the promise fails.", above=0, below=1,
            says="must be a number between 0 and 1, such as 1.0e-6.",
        ),
    ]  # fmt: skip
    sample: Annotated[
        Fraction | None,
        Exact(
            "The chance that a row is drawn; without it the method chooses.", above=0, below=1,
            says="must be a number between 0 and 1, such as 0.5.",
        ),
    ] = None  # fmt: skip
    variant: Annotated[
        str,
        ChoiceRule(
            "As repaired (needs a public side-table), or as printed (for study: nothing is promised).",
            words=VARIANTS,
        ),
    ] = REPAIRED
    algorithm: Annotated[
        int,
        Whole(
            "Variant paper: Algorithm 3 by enumeration, or with the walks of Algorithm 4.",
            least=3, most=4, says="must be 3 or 4.",
        ),
    ] = _ALGORITHM_3  # fmt: skip
    meaning: ClassVar[str] = (
        "Differentially private: rows are drawn, and boxes published if enough of them were drawn."
    )
    says: ClassVar[str] = "must be a mapping, such as {epsilon: 1.0, delta: 1.0e-6}."
    absent: ClassVar[Mapping[str, str]] = {
        "epsilon": "the key 'epsilon' is missing; say, for example, epsilon: 1.0.",
        "delta": "the key 'delta' is missing; say, for example, delta: 1.0e-6.",
    }

    @classmethod
    def complain(cls, given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        if given.get("variant", REPAIRED) != PAPER and "algorithm" in given:
            yield ("algorithm",), _PAPER_ALONE

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {"epsilon": as_plain(self.epsilon), "delta": as_plain(self.delta)}
        if self.sample is not None:
            options["sample"] = as_plain(self.sample)
        options["variant"] = self.variant
        if self.variant == PAPER:
            options["algorithm"] = self.algorithm
        return options


_UTILITY = "must be depth, inverse or log, or by column a list of numbers, such as {zip: [0, 1, 3]}."


@dataclass(frozen=True, eq=False)
class _ModelOrWeights(Either):
    """A model alone is short for weights that it gives."""

    def read(self, given: Any, read_other: Callable[[Any], Any]) -> Any:
        found = Either.read(self, given, read_other)
        return Weights(found) if isinstance(found, str) else found


@dataclass(frozen=True, eq=False)
class _TablePath(Text):
    """The path of a file; an address may hold a password, and a policy is published."""

    def accept(self, value: Any) -> str:
        path = Text.accept(self, value)
        if "://" in path:
            refuse("must be the path of a table, not an address; in Python side_table takes a database, too.")
        return path


@dataclass(frozen=True, slots=True)
class RiskUtilityOptions(MethodOptions):
    """What is optimized for each row, and how.

    ``variant`` tells the paper's Algorithms 1 and 2 as printed from ours, which are repaired. ``utility_at_least`` is a
    share of the way from the row suppressed to the row as it is, or a utility. ``price`` is the lambda of the
    Lagrangian and of log-risk, ``kappa`` the power of utility in the former. ``floor`` is added to the weight of
    every generalization. ``side_table`` names the table that an attacker has, which lies at ``side_path``; None is the
    table itself. A policy that is written down tells the name alone: it needs no outside file, and the certificate says
    by a hash which table it was.

    >>> options = RiskUtilityOptions.of({"side-table": "data/voters.csv"}, Schema(()), "/home")
    >>> options.side_path, options.as_policy()["risk-utility"]["side-table"]
    ('/home/data/voters.csv', 'voters.csv')
    """

    optimizer: Annotated[
        str,
        ChoiceRule(
            "How the optimum of a row is sought: exact and probing (every objective), cut (lagrangian), approximation "
            "and genetic (threshold); auto takes an exact one where it is affordable.",
            words=OPTIMIZERS,
        ),
    ] = AUTO
    objective: Annotated[
        str,
        ChoiceRule(
            "threshold: least risk with utility-at-least; lagrangian: most lambda / risk + utility^kappa; log-risk: most "
            "utility - lambda ln(risk).",
            words=OBJECTIVES,
        ),
    ] = THRESHOLD
    utility_at_least: Annotated[
        AtLeast,
        Either(
            "Threshold: the least utility of a row, as a share of the way from the row suppressed to the row as it is; "
            "or a utility, the same for every row: {value: 5}.",
            says=_SHARE.says,
            one=_SHARE,
            other=Absolute,
        ),
    ] = DEFAULT_SHARE
    price: Annotated[
        Fraction | None,
        Exact(
            "Lagrangian and log-risk: the price of risk.",
            above=0, most=1e12, says="must be a number above 0 and up to 1e12, such as 1.0.",
        ),
        Field(alias="lambda"),
    ] = None  # fmt: skip
    kappa: Annotated[
        int,
        Whole(
            "Lagrangian: the power of utility.", least=0, most=MOST_KAPPA,
            says=f"must be a whole number from 0 to {MOST_KAPPA}.",
        ),
    ] = 1  # fmt: skip
    utility: Annotated[
        Utility,
        Either(
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
        ),
    ] = DEPTH
    weights: Annotated[
        Weights,
        _ModelOrWeights(
            "How sensitive a value is: a model, or a model with weights of columns and of rows.",
            says=Weights.says,
            one=ChoiceRule(words=MODELS),
            other=Weights,
        ),
    ] = field(default_factory=Weights)
    floor: Annotated[
        Fraction,
        Exact(
            "Added to the weight of every generalization; lagrangian and log-risk need one above 0 unless weights are "
            "model-2.",
            least=0, most=1e9, says="must be a number from 0 to 1e9, such as 0.1.",
        ),
    ] = Fraction(0)  # fmt: skip
    side_table: Annotated[
        str | None,
        _TablePath(
            "The table that an attacker holds: a path, relative to the policy. Without it, the table itself.",
            says="must be the path of a table, such as voters.csv.",
            is_empty_text_legal=False,
        ),
    ] = None
    private: Annotated[PrivateSampling | None, OrNothing(part=PrivateSampling)] = None
    side_path: str | None = field(default=None, compare=False, repr=False)
    variant: Annotated[
        str,
        ChoiceRule(
            "Of approximation and genetic: as repaired, or Algorithm 1 and Algorithm 2 of the paper as printed (for "
            "study).",
            words=VARIANTS,
        ),
    ] = REPAIRED
    approximation: ApproximationOptions = field(default_factory=ApproximationOptions)
    genetic: GeneticOptions = field(default_factory=GeneticOptions)
    meaning: ClassVar[str] = (
        "An optimizer over each row's own generalizations: least risk at a given utility. A number may be written as a "
        "fraction, such as 6/17."
    )
    says: ClassVar[str] = "must be options, such as {utility-at-least: 0.6}."
    name: ClassVar[str] = "risk-utility"
    has_recoding: ClassVar[bool] = False
    is_row_by_row: ClassVar[bool] = True
    promises_itself: ClassVar[bool] = True

    @property
    def promise(self) -> str:
        return "a utility and a risk for each row"

    @property
    def public(self) -> tuple[str, ...]:
        return "the side table: all of it", "the options of the method: all of them"

    @property
    def promised(self) -> AtLeast | None:
        """The least utility of each row by promise: Algorithm 1 as printed reaches sigma_1 of what is asked for.

        >>> RiskUtilityOptions(optimizer=APPROXIMATION, variant=PAPER).promised
        Fraction(3, 10)
        """
        if self.objective != THRESHOLD:
            return None
        asked = self.utility_at_least
        part = self.approximation.sigma_1 if self.is_algorithm_1 else Fraction(1)
        return Absolute(part * asked.value) if isinstance(asked, Absolute) else part * asked

    @property
    def is_algorithm_1(self) -> bool:
        """Algorithm 1 as printed?"""
        return self.optimizer == APPROXIMATION and self.variant == PAPER

    @property
    def is_private(self) -> bool:
        """Is the release differentially private? The variant of the paper is not, and promises nothing."""
        return self.private is not None and self.private.variant == REPAIRED

    @property
    def form(self) -> Form:
        """Boxes of all rows; or of those that were drawn, if the release is private."""
        return Form.SAMPLE if self.is_private else Form.BOXES

    @classmethod
    def of(cls, given: Mapping[str, Any], _schema: Schema, folder: str | None = ".") -> RiskUtilityOptions:
        """From what a policy says; a side table is sought relative to ``folder``, or not at all without one."""
        options = read(cls, given, METHOD)
        if options.side_table is None:
            return options
        path = None if folder is None else str(PurePath(folder) / options.side_table)
        return replace(options, side_table=PurePath(options.side_table).name, side_path=path)

    @classmethod
    def keep_sound(cls, _given: Mapping[str, Any], _broken: Collection[str | int]) -> None:
        """None: without one of its options another may be wrong."""

    def check(self, policy: RestOfPolicy, mistakes: Mistakes) -> None:
        """The options make sense together and with the columns, and the rest of the policy is served."""
        _check_options(self, policy.schema, mistakes)
        with mistakes.collect():
            if policy.output is Output.SUMMARY and not policy.workload:
                raise Misfit(
                    ("output", "values"),
                    "risk-utility makes no groups to summarize; use labels, bounds or both.",
                )
        _check_rest(self, policy, mistakes)

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {"optimizer": self.optimizer, "objective": self.objective}
        if self.optimizer == APPROXIMATION:
            options |= {"variant": self.variant, "approximation": self.approximation.as_policy()}
        if self.optimizer == GENETIC:
            options |= {"variant": self.variant, "genetic": self.genetic.as_policy()}
        if self.objective == THRESHOLD:
            asked = self.utility_at_least
            options["utility-at-least"] = (
                asked.as_policy() if isinstance(asked, Absolute) else as_plain(asked)
            )
        if self.price is not None:
            options["lambda"] = as_plain(self.price)
        if self.objective == LAGRANGIAN:
            options["kappa"] = self.kappa
        assert not callable(self.utility)
        if isinstance(self.utility, str):
            options["utility"] = self.utility
        else:
            options["utility"] = {name: list(by_depth) for name, by_depth in self.utility.items()}
        options["weights"] = self.weights.as_policy()
        options["floor"] = as_plain(self.floor)
        if self.side_table is not None:
            options["side-table"] = self.side_table
        if self.private is not None:
            options["private"] = self.private.as_policy()
        return {self.name: options}


# --- what must hold of the options -----------------------------------------------------------------------


def _check_options(options: RiskUtilityOptions, schema: Schema, mistakes: Mistakes) -> None:
    """The options make sense together, and with the columns."""
    for check_all in (_check_no_function, _check_each):
        check_all(options, mistakes)
        if mistakes.found:
            return
    for check_some in (_check_objective, _check_variant):
        with mistakes.collect():
            check_some(options)
    with mistakes.collect():
        _check_utility(options.utility, schema)
    with mistakes.collect():
        _check_weights(options.weights, schema)
    if options.private is not None:
        with mistakes.collect():
            _check_private(options, options.private)
    if not mistakes.found:
        with mistakes.collect():
            _check_floor(options, schema)


def _check_no_function(options: RiskUtilityOptions, mistakes: Mistakes) -> None:
    """What is a function in code has no place in a document."""
    cannot = "a function cannot be written down with the release;"
    if callable(options.utility):
        mistakes.found.append(Mistake((*METHOD, "utility"), f"{cannot} give its values by depth."))
    if callable(options.weights.column):
        mistakes.found.append(
            Mistake((*METHOD, "weights", "column"), f"{cannot} add its numbers as a column.")
        )


def _check_each(options: RiskUtilityOptions, mistakes: Mistakes) -> None:
    mistakes.found += check(options, METHOD)


def _check_variant(options: RiskUtilityOptions) -> None:
    """Algorithms 1 and 2, and their parameters."""
    for word, given, none in (
        (APPROXIMATION, options.approximation, ApproximationOptions()),
        (GENETIC, options.genetic, GeneticOptions()),
    ):
        if given != none and options.optimizer != word:
            raise Misfit((*METHOD, word), f"only optimizer: {word} has it; leave it out.")
    if options.variant == PAPER and options.optimizer not in (APPROXIMATION, GENETIC):
        raise Misfit(
            (*METHOD, "variant"),
            f"the paper prints Algorithm 1 (optimizer: {APPROXIMATION}) and Algorithm 2 (optimizer: {GENETIC}); "
            "choose one of them, or leave it out.",
        )
    if options.variant == PAPER and options.private is not None:
        raise Misfit(
            (*METHOD, "variant"), "private draws boxes and has a variant of its own; leave this one out."
        )
    _check_approximation(options)


def _check_approximation(options: RiskUtilityOptions) -> None:
    sigma = options.approximation.sigma
    path: Where = (*METHOD, APPROXIMATION)
    if sigma is None:
        return
    if options.variant != PAPER:
        raise Misfit(
            (*path, "sigma"), f"only variant: {PAPER} draws until sigma accepts; leave it out, or say so."
        )
    if not 0 < sigma[0] < 1 < sigma[1]:
        raise Misfit((*path, "sigma"), _SIGMA)
    share = options.utility_at_least
    if not isinstance(share, Absolute) and share and least_acceptance(share, *sigma) <= 0:
        raise Misfit(
            (*path, "sigma"),
            "theorem 3 needs (1 - theta) / (1 - theta sigma_1) + 1 / sigma_2 below 1, theta being utility-at-least; "
            f"sigma_2 must be above {float(1 / (1 - (1 - share) / (1 - share * sigma[0]))):.4g} here.",
        )


def least_acceptance(share: Fraction, sigma_1: float | Fraction, sigma_2: float | Fraction) -> float:
    """The bound on the chance that a drawn level set is accepted, by Markov's inequality [FEB12, proof of theorem 3]."""
    theta = float(share)
    return 1 - (1 - theta) / (1 - theta * float(sigma_1)) - 1 / float(sigma_2)


def _check_objective(options: RiskUtilityOptions) -> None:
    served = SERVES[options.optimizer]
    if options.objective not in served:
        others = [word for word, objectives in SERVES.items() if options.objective in objectives]
        raise Misfit(
            (*METHOD, "optimizer"),
            f"{options.optimizer} serves the objective {', '.join(served)} only; for {options.objective} choose "
            f"{' or '.join(others)}.",
        )
    if options.objective == THRESHOLD:
        if options.price is not None:
            raise Misfit((*METHOD, "lambda"), "the objective threshold has no price of risk; leave it out.")
    elif options.price is None:
        raise Misfit(
            METHOD, f"the objective {options.objective} needs the price of risk, such as lambda: 1.0."
        )
    if options.objective != THRESHOLD and options.utility_at_least != DEFAULT_SHARE:
        raise Misfit((*METHOD, "utility-at-least"), "only the objective threshold has it; leave it out.")
    if options.objective != LAGRANGIAN and options.kappa != 1:
        raise Misfit((*METHOD, "kappa"), "only the objective lagrangian has it; leave it out.")


def _check_utility(utility: Utility, schema: Schema) -> None:
    path: Where = (*METHOD, "utility")
    if isinstance(utility, str) or callable(utility):
        return
    for name, by_depth in utility.items():
        _quasi_identifier(name, schema, path, "has utility")
        if any(above > below for above, below in pairwise(by_depth)):
            raise Misfit(
                (*path, name),
                "must not fall from the root to the leaves: a more general value cannot tell more.",
            )


def _check_weights(weights: Weights, schema: Schema) -> None:
    path: Where = (*METHOD, "weights")
    for name, given in weights.attributes.items():
        _quasi_identifier(name, schema, (*path, "attributes"), "is weighed")
        if isinstance(given, Mapping) and weights.model != HARMONIC:
            raise Misfit(
                (*path, "attributes", name),
                f"{weights.model} knows one weight for the whole column; give a number, or use model: {HARMONIC}.",
            )
    for quasi, name in weights.columns():
        if quasi is not None:
            _quasi_identifier(quasi, schema, (*path, "column"), "is weighed")
        _check_factors(declared_column(name, schema, (*path, "column")), (*path, "column"))


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


def _check_private(options: RiskUtilityOptions, private: PrivateSampling) -> None:
    path: Where = (*METHOD, "private")
    try:
        plan(private.epsilon, private.delta, private.sample)
    except NoPlan as error:
        raise Misfit((*path, error.word), str(error)) from None
    if private.variant == PAPER:
        _check_paper(options, private, path)
        return
    if private.algorithm != _ALGORITHM_3:
        raise Misfit((*path, "algorithm"), _PAPER_ALONE)
    if isinstance(options.utility_at_least, Absolute):
        raise Misfit(
            (*METHOD, "utility-at-least"),
            "a row that cannot reach a utility would end the run, and so tell of itself; give a share, such as 0.6.",
        )
    if options.side_table is None:
        raise Misfit(
            path,
            "it needs a public side-table: boxes that are chosen by the table itself tell of its rows, and what could "
            "be published in spite of that is useless.",
        )
    if options.optimizer in (GENETIC, APPROXIMATION):
        raise Misfit(
            (*METHOD, "optimizer"),
            f"{options.optimizer} does not choose the box of a row by the row and the side table alone, which is what "
            f"private rests on; choose {AUTO}, {EXACT}, {CUT} or {PROBING}.",
        )
    if options.weights.column is not None:
        raise Misfit(
            (*METHOD, "weights", "column"),
            "personal weights are numbers of the table, and private reads no domain from it; leave it out.",
        )


def _check_paper(options: RiskUtilityOptions, private: PrivateSampling, path: Where) -> None:
    """Algorithm 3 knows two objectives, Algorithm 4 one; both take the table for its own side table."""
    if options.side_table is not None:
        raise Misfit(
            path, "the variant paper takes the table itself for its side table; leave out side-table."
        )
    if options.objective == LOG_RISK:
        raise Misfit(path, f"the paper knows no objective {LOG_RISK}; choose {THRESHOLD} or {LAGRANGIAN}.")
    if private.algorithm == 4 and options.objective != LAGRANGIAN:
        raise Misfit(
            (*path, "algorithm"),
            f"Algorithm 4 is printed for the Lagrangian alone; say objective: {LAGRANGIAN}, or algorithm: 3.",
        )


def _check_declared(attribute: Attribute) -> None:
    """A domain that follows from the policy alone."""
    path: Where = ("attributes", attribute.name)
    lacking = name_undeclared(attribute)
    if lacking is not None:
        raise Misfit(path, f"private reads no domain from the table; declare {lacking}.")
    try:
        with_hierarchy(attribute).build_declared_hierarchy()
    except HierarchyError as error:
        sentence = str(error).removeprefix(f"The hierarchy of column {attribute.name!r}: ")
        raise Misfit((*path, "hierarchy"), sentence) from None


def with_hierarchy(attribute: Attribute) -> Attribute:
    """The column with the hierarchy that it has if none is declared: halves of a number, days and months of a date."""
    if not attribute.is_ordered:
        return attribute
    rule = Balanced(2) if attribute.kind is Kind.NUMBER else DAYS_TO_YEARS
    return replace(attribute, hierarchy=rule)


def declared_schema(schema: Schema) -> Schema:
    """The columns of a private release: every quasi-identifier has a hierarchy that follows from the policy."""
    return Schema(
        tuple(
            with_hierarchy(attribute) if attribute.role is Role.QUASI_IDENTIFIER else attribute
            for attribute in schema
        )
    )


def _check_floor(options: RiskUtilityOptions, schema: Schema) -> None:
    """A row that is suppressed must have some weight where one divides by its risk."""
    is_paper = options.private is not None and options.private.variant == PAPER
    if options.floor > 0 or (options.objective == THRESHOLD and not is_paper):
        return
    model, attributes = options.weights.model, options.weights.attributes
    names = [attribute.name for attribute in schema.quasi_identifiers]
    if model == MODEL_2 and any(attributes.get(name, 1.0) != 0 for name in names):
        return
    what = f"the objective {options.objective}" if options.objective != THRESHOLD else "the variant paper"
    raise Misfit(
        METHOD,
        f"{what} divides by the risk of a row that is suppressed, which is 0 with weights {model} and a floor of 0; "
        "add a floor, such as floor: 0.1" + (f", or use weights: {MODEL_2}." if model != MODEL_2 else "."),
    )


def _check_rest(options: RiskUtilityOptions, policy: RestOfPolicy, mistakes: Mistakes) -> None:
    """The rest of the policy is something that rows with boxes of their own can serve."""
    with mistakes.collect():
        if policy.requirements:
            raise Misfit(
                ("require",),
                "risk-utility chooses for each row alone and promises nothing of groups; leave this out, or write [].",
            )
    with mistakes.collect():
        if policy.workload:
            raise Misfit(
                ("workload",),
                "risk-utility chooses for the owner of each row and serves no task; leave this out, or write [].",
            )
    for attribute in policy.schema if options.private is not None else ():
        with mistakes.collect():
            if attribute.role in (Role.OTHER, Role.SENSITIVE):
                raise Misfit(
                    ("attributes", attribute.name, "role"),
                    "private risk-utility publishes quasi-identifiers alone; give it the role drop, or "
                    "quasi-identifier.",
                )
            if options.is_private and attribute.role is Role.QUASI_IDENTIFIER:
                _check_declared(attribute)


def _quasi_identifier(name: str, schema: Schema, path: Where, what: str) -> None:
    attribute = declared_column(name, schema, path)
    if attribute.role is not Role.QUASI_IDENTIFIER:
        raise Misfit(
            path,
            f"column {short(name)} has the role {attribute.role}, and only a quasi-identifier {what}; leave it out.",
        )
