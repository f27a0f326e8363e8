"""Risk-utility in a policy: what is optimized for each row, by which optimizer, and how risk and utility are counted.

Everything here looks at declarations alone: nothing depends on a table. Keys: [FEB12] is the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import PurePath
from typing import Any, ClassVar

from sfumato.errors import HierarchyError
from sfumato.policy.decimals import read_exactly
from sfumato.policy.file import declared_column, is_number
from sfumato.policy.hierarchy.declared import declared_tree, undeclared
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.mistakes import Misfit, Mistakes
from sfumato.policy.options.rest import RestOfPolicy
from sfumato.policy.options.sampling_plan import NoPlan, plan
from sfumato.policy.output import Output
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.yaml import Where, short

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
ALGORITHMS = (3, 4)
"""What the paper has for private sampling."""
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


def plain(number: Fraction) -> int | float | str:
    """A number as a policy writes it: a decimal where it is one.

    >>> plain(Fraction(2)), plain(Fraction(1, 10)), plain(Fraction(6, 17))
    (2, 0.1, '6/17')
    """
    if number.denominator == 1:
        return int(number)
    near = float(number)
    return near if read_exactly(near) == number else f"{number.numerator}/{number.denominator}"


@dataclass(frozen=True, slots=True)
class Absolute:
    """A threshold in units of utility, the same for every row [FEB12, definition 1].

    >>> str(Absolute(Fraction(5))), Absolute(Fraction(5, 2)).as_policy()
    ('5', {'value': 2.5})
    """

    value: Fraction

    def __str__(self) -> str:
        return str(self.value)

    def as_policy(self) -> dict[str, Any]:
        return {"value": plain(self.value)}


AtLeast = Fraction | Absolute
"""The least utility of a row: a share of the way from the row suppressed to the row as it is, or a utility."""


def at_least_of(given: Any) -> AtLeast:
    """From what a policy says.

    >>> at_least_of(0.6), at_least_of({"value": 5})
    (Fraction(3, 5), Absolute(value=Fraction(5, 1)))
    """
    return Absolute(read_exactly(given["value"])) if isinstance(given, Mapping) else read_exactly(given)


@dataclass(frozen=True, slots=True)
class ApproximationOptions:
    """Algorithm 1 [FEB12, section 2.4]: consecutive bounds on the weight differ by the factor 1 + ``epsilon``.

    ``sigma`` is of the variant paper alone: a drawn generalization is accepted if it has sigma_1 of the utility asked for
    and sigma_2 times the bound at most. None is 1/2, and a sigma_2 that suits the threshold.
    """

    epsilon: Fraction = Fraction(1, 10)
    sigma: tuple[Fraction, Fraction] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ApproximationOptions:
        options: dict[str, Any] = {}
        if "epsilon" in given:
            options["epsilon"] = read_exactly(given["epsilon"])
        if "sigma" in given:
            options["sigma"] = tuple(map(read_exactly, given["sigma"]))
        return cls(**options)

    @property
    def sigma_1(self) -> Fraction:
        return DEFAULT_SIGMA_1 if self.sigma is None else self.sigma[0]

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {"epsilon": plain(self.epsilon)}
        if self.sigma is not None:
            options["sigma"] = list(map(plain, self.sigma))
        return options


@dataclass(frozen=True, slots=True)
class GeneticOptions:
    """Algorithm 2 [FEB12, section 2.5]: paths of a population, and how often children are made."""

    population: int = 50
    generations: int = 50

    def as_policy(self) -> dict[str, Any]:
        return {"population": self.population, "generations": self.generations}


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

    @classmethod
    def of(cls, given: str | Mapping[str, Any]) -> Weights:
        """From what a policy says: a model, or a mapping."""
        if isinstance(given, str):
            return cls(given)
        attributes = {
            name: dict(own) if isinstance(own, Mapping) else float(own)
            for name, own in given.get("attributes", {}).items()
        }
        return cls(given.get("model", MODEL_1), attributes, given.get("column"))

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


@dataclass(frozen=True, slots=True)
class PrivateSampling:
    """Rows are drawn, and boxes published only if enough of them were drawn [FEB12, section 3; LQS12].

    ``sample`` is the chance of a row to be drawn; None lets the method choose. ``algorithm`` is of the variant paper
    alone: 3 enumerates the generalizations of a row, 4 walks in a polytope.
    """

    epsilon: Fraction
    delta: Fraction
    sample: Fraction | None = None
    variant: str = REPAIRED
    algorithm: int = 3

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> PrivateSampling:
        for word, such_as in (("epsilon", "1.0"), ("delta", "1.0e-6")):
            if word not in given:
                raise Misfit(
                    (*METHOD, "private"), f"the key {word!r} is missing; say, for example, {word}: {such_as}."
                )
        variant = given.get("variant", REPAIRED)
        if variant != PAPER and "algorithm" in given:
            raise Misfit((*METHOD, "private", "algorithm"), f"only variant: {PAPER} has it; leave it out.")
        numbers = {
            word: read_exactly(given[word]) for word in ("epsilon", "delta", "sample") if word in given
        }
        return cls(**numbers, variant=variant, algorithm=int(given.get("algorithm", 3)))

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {"epsilon": plain(self.epsilon), "delta": plain(self.delta)}
        if self.sample is not None:
            options["sample"] = plain(self.sample)
        options["variant"] = self.variant
        if self.variant == PAPER:
            options["algorithm"] = self.algorithm
        return options


@dataclass(frozen=True, slots=True)
class RiskUtilityOptions:
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

    optimizer: str = AUTO
    objective: str = THRESHOLD
    utility_at_least: AtLeast = DEFAULT_SHARE
    price: Fraction | None = None
    kappa: int = 1
    utility: Utility = DEPTH
    weights: Weights = field(default_factory=Weights)
    floor: Fraction = Fraction(0)
    side_table: str | None = None
    private: PrivateSampling | None = None
    side_path: str | None = field(default=None, compare=False, repr=False)
    variant: str = REPAIRED
    approximation: ApproximationOptions = field(default_factory=ApproximationOptions)
    genetic: GeneticOptions = field(default_factory=GeneticOptions)
    name: ClassVar[str] = "risk-utility"
    publishes_counts: ClassVar[bool] = False
    reads_workload: ClassVar[bool] = True
    promise: ClassVar[str | None] = "a utility and a risk for each row"

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

    @classmethod
    def of(cls, given: Mapping[str, Any], _schema: Schema, folder: str | None = ".") -> RiskUtilityOptions:
        """From what a policy says; a side table is sought relative to ``folder``, or not at all without one."""
        words = ("variant", "optimizer", "objective")
        options: dict[str, Any] = {word: given[word] for word in words if word in given}
        if "utility-at-least" in given:
            options["utility_at_least"] = at_least_of(given["utility-at-least"])
        for word, name in (("lambda", "price"), ("floor", "floor")):
            if word in given:
                options[name] = read_exactly(given[word])
        if "approximation" in given:
            options["approximation"] = ApproximationOptions.of(given["approximation"])
        if "genetic" in given:
            options["genetic"] = GeneticOptions(**{word: int(n) for word, n in given["genetic"].items()})
        if "kappa" in given:
            options["kappa"] = int(given["kappa"])
        if "utility" in given:
            utility = given["utility"]
            is_word = isinstance(utility, str)
            options["utility"] = utility if is_word else {name: tuple(by) for name, by in utility.items()}
        if "weights" in given:
            options["weights"] = Weights.of(given["weights"])
        if "side-table" in given:
            if "://" in given["side-table"]:  # it may hold a password, and a policy is published
                raise Misfit(
                    (*METHOD, "side-table"),
                    "must be the path of a table, not an address; in Python side_table takes a database, too.",
                )
            options["side_table"] = PurePath(given["side-table"]).name
            options["side_path"] = None if folder is None else str(PurePath(folder) / given["side-table"])
        if given.get("private") is not None:
            options["private"] = PrivateSampling.of(given["private"])
        return cls(**options)

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
            options["utility-at-least"] = asked.as_policy() if isinstance(asked, Absolute) else plain(asked)
        if self.price is not None:
            options["lambda"] = plain(self.price)
        if self.objective == LAGRANGIAN:
            options["kappa"] = self.kappa
        assert not callable(self.utility)
        if isinstance(self.utility, str):
            options["utility"] = self.utility
        else:
            options["utility"] = {name: list(by_depth) for name, by_depth in self.utility.items()}
        options["weights"] = self.weights.as_policy()
        options["floor"] = plain(self.floor)
        if self.side_table is not None:
            options["side-table"] = self.side_table
        if self.private is not None:
            options["private"] = self.private.as_policy()
        return {self.name: options}


# --- what must hold of the options -----------------------------------------------------------------------


def _check_options(options: RiskUtilityOptions, schema: Schema, mistakes: Mistakes) -> None:
    """The options make sense together, and with the columns."""
    with mistakes.collect():
        _check_words(options)
    if mistakes.found:
        return
    for check in (_check_objective, _check_variant, _check_side_table, _check_least_floor):
        with mistakes.collect():
            check(options)
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


def _check_words(options: RiskUtilityOptions) -> None:
    for word, given, choices in (
        ("variant", options.variant, VARIANTS),
        ("optimizer", options.optimizer, OPTIMIZERS),
        ("objective", options.objective, OBJECTIVES),
        *([("utility", options.utility, UTILITIES)] if isinstance(options.utility, str) else []),
    ):
        if given not in choices:
            raise Misfit((*METHOD, word), f"must be one of {', '.join(choices)}.")


def _check_least_floor(options: RiskUtilityOptions) -> None:
    if options.floor < 0:
        raise Misfit((*METHOD, "floor"), "must be a number of at least 0, such as 0.1.")


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
    if min(options.genetic.population, options.genetic.generations) < 1:
        raise Misfit((*METHOD, GENETIC), "must be whole numbers of at least 1.")
    _check_approximation(options)


def _check_approximation(options: RiskUtilityOptions) -> None:
    epsilon, sigma = options.approximation.epsilon, options.approximation.sigma
    path: Where = (*METHOD, APPROXIMATION)
    if not 0 < epsilon < 1:
        raise Misfit((*path, "epsilon"), "must be a number between 0 and 1, such as 0.1.")
    if sigma is None:
        return
    if options.variant != PAPER:
        raise Misfit(
            (*path, "sigma"), f"only variant: {PAPER} draws until sigma accepts; leave it out, or say so."
        )
    if not 0 < sigma[0] < 1 < sigma[1]:
        raise Misfit((*path, "sigma"), "must be a number between 0 and 1 and one above 1, such as [0.5, 5].")
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
    asked = options.utility_at_least
    if isinstance(asked, Absolute):
        if asked.value < 0:
            raise Misfit(
                (*METHOD, "utility-at-least", "value"), "must be a utility of at least 0, such as 5."
            )
    elif not 0 <= asked <= 1:
        raise Misfit(
            (*METHOD, "utility-at-least"),
            "must be from 0 to 1: the share of the way from the row suppressed to the row as it is, such as 0.6.",
        )
    served = SERVES[options.optimizer]
    if options.objective not in served:
        others = [word for word, objectives in SERVES.items() if options.objective in objectives]
        raise Misfit(
            (*METHOD, "optimizer"),
            f"{options.optimizer} serves the objective {', '.join(served)} only; for {options.objective} choose "
            f"{' or '.join(others)}.",
        )
    if not (isinstance(options.kappa, int) and 0 <= options.kappa <= MOST_KAPPA):
        raise Misfit((*METHOD, "kappa"), f"must be a whole number from 0 to {MOST_KAPPA}.")
    if options.objective == THRESHOLD:
        if options.price is not None:
            raise Misfit((*METHOD, "lambda"), "the objective threshold has no price of risk; leave it out.")
    elif options.price is None:
        raise Misfit(
            METHOD, f"the objective {options.objective} needs the price of risk, such as lambda: 1.0."
        )
    elif options.price <= 0:
        raise Misfit((*METHOD, "lambda"), "must be a number above 0, such as 1.0.")
    if options.objective != THRESHOLD and options.utility_at_least != DEFAULT_SHARE:
        raise Misfit((*METHOD, "utility-at-least"), "only the objective threshold has it; leave it out.")
    if options.objective != LAGRANGIAN and options.kappa != 1:
        raise Misfit((*METHOD, "kappa"), "only the objective lagrangian has it; leave it out.")


def _check_utility(utility: Utility, schema: Schema) -> None:
    path: Where = (*METHOD, "utility")
    if callable(utility):
        raise Misfit(path, "a function cannot be written down with the release; give its values by depth.")
    if isinstance(utility, str):
        return
    for name, by_depth in utility.items():
        _quasi_identifier(name, schema, path, "has utility")
        if not by_depth or not all(is_number(value) and value >= 0 for value in by_depth):
            raise Misfit(
                (*path, name), "must be a list of numbers of at least 0, the root's first, such as [0, 1, 3]."
            )
        if any(above > below for above, below in pairwise(by_depth)):
            raise Misfit(
                (*path, name),
                "must not fall from the root to the leaves: a more general value cannot tell more.",
            )


def _check_weights(weights: Weights, schema: Schema) -> None:
    path: Where = (*METHOD, "weights")
    if weights.model not in MODELS:
        raise Misfit((*path, "model"), f"must be one of {', '.join(MODELS)}.")
    for name, given in weights.attributes.items():
        _quasi_identifier(name, schema, (*path, "attributes"), "is weighed")
        numbers = given.values() if isinstance(given, Mapping) else (given,)
        if not all(is_number(number) and number >= 0 for number in numbers):
            raise Misfit((*path, "attributes", name), "must be a weight, a number of at least 0, such as 2.")
        if isinstance(given, Mapping) and weights.model != HARMONIC:
            raise Misfit(
                (*path, "attributes", name),
                f"{weights.model} knows one weight for the whole column; give a number, or use model: {HARMONIC}.",
            )
    if callable(weights.column):
        raise Misfit(
            (*path, "column"),
            "a function cannot be written down with the release; add its numbers as a column.",
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


def _check_side_table(options: RiskUtilityOptions) -> None:
    if options.side_table is not None and not options.side_table:
        raise Misfit((*METHOD, "side-table"), "must be the path of a table, such as voters.csv.")


def _check_private(options: RiskUtilityOptions, private: PrivateSampling) -> None:
    path: Where = (*METHOD, "private")
    if private.variant not in VARIANTS:
        raise Misfit((*path, "variant"), f"must be {REPAIRED} or {PAPER}.")
    try:
        plan(private.epsilon, private.delta, private.sample)
    except NoPlan as error:
        raise Misfit((*path, error.word), str(error)) from None
    if private.algorithm not in ALGORITHMS:
        raise Misfit((*path, "algorithm"), "must be 3 or 4.")
    if private.variant == PAPER:
        _check_paper(options, private, path)
        return
    if private.algorithm != ALGORITHMS[0]:
        raise Misfit((*path, "algorithm"), f"only variant: {PAPER} has it; leave it out.")
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
    lacking = undeclared(attribute)
    if lacking is not None:
        raise Misfit(path, f"private reads no domain from the table; declare {lacking}.")
    try:
        declared_tree(with_hierarchy(attribute))
    except HierarchyError as error:
        sentence = str(error).removeprefix(f"The hierarchy of column {attribute.name!r}: ")
        raise Misfit((*path, "hierarchy"), sentence) from None


def with_hierarchy(attribute: Attribute) -> Attribute:
    """The column with the hierarchy that it has if none is declared: halves of a number, days and months of a date."""
    if not attribute.is_ordered:
        return attribute
    rule = {"balanced": 2} if attribute.kind is Kind.NUMBER else {"dates": ["day", "month", "year"]}
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
