"""Risk-utility in a policy: what is optimized for each row, and by which optimizer.

Everything here looks at declarations alone: nothing depends on a table. Keys: [FEB12] is the paper.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import PurePath
from typing import Annotated, Any, ClassVar

from pydantic import Field

from sfumato.policy.hierarchy.declarations import DAYS_TO_YEARS, Balanced, widen_from
from sfumato.policy.hierarchy.declared import name_undeclared
from sfumato.policy.kinds import as_plain
from sfumato.policy.mistakes import Misfit, Mistake, Mistakes, at_hierarchy
from sfumato.policy.model import OrNothing, check, read
from sfumato.policy.options.method import MethodOptions, RestOfPolicy
from sfumato.policy.options.risk_utility.algorithms import (
    ALGORITHM_3,
    PAPER,
    PAPER_ALONE,
    REPAIRED,
    SIGMA,
    VARIANTS,
    ApproximationOptions,
    GeneticOptions,
    PrivateSampling,
    least_acceptance,
)
from sfumato.policy.options.risk_utility.values import (
    DEPTH,
    MODEL_2,
    MODELS,
    SHARE,
    UTILITY,
    Absolute,
    AtLeast,
    ModelOrWeights,
    Utility,
    Weights,
    check_utility,
)
from sfumato.policy.options.sampling_plan import NoPlan, plan
from sfumato.policy.output import Form, Output
from sfumato.policy.rules import ChoiceRule, Either, Exact, Text, Whole, refuse
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.unit import Unit, ask_for_bound
from sfumato.policy.workload import Classify, Regress, Task
from sfumato.policy.yaml import Where

AUTO, EXACT, CUT = "auto", "exact", "cut"
APPROXIMATION, GENETIC, PROBING = "approximation", "genetic", "probing"
OPTIMIZERS = (AUTO, EXACT, CUT, APPROXIMATION, GENETIC, PROBING)
THRESHOLD, LAGRANGIAN, LOG_RISK, MOST_UTILITY = "threshold", "lagrangian", "log-risk", "most-utility"
OBJECTIVES = (THRESHOLD, LAGRANGIAN, LOG_RISK, MOST_UTILITY)

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
MOST_KAPPA = 9
FRAME = "frame"
"""What a policy calls a side table that was handed over in code and has no file."""

METHOD: Where = ("method", "risk-utility")


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
    share of the way from the row suppressed to the row as it is, or a utility; ``risk_at_most`` is the greatest risk of a
    row where the objective is most-utility. ``price`` is the lambda of the
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
            "threshold: least risk with utility-at-least; most-utility: most utility with risk-at-most; lagrangian: "
            "most lambda / risk + utility^kappa; log-risk: most utility - lambda ln(risk).",
            words=OBJECTIVES,
        ),
    ] = THRESHOLD
    utility_at_least: Annotated[
        AtLeast,
        Either(
            "Threshold: the least utility of a row, as a share of the way from the row suppressed to the row as it is; "
            "or a utility, the same for every row: {value: 5}.",
            says=SHARE.says,
            one=SHARE,
            other=Absolute,
        ),
    ] = DEFAULT_SHARE
    risk_at_most: Annotated[
        Fraction | None,
        Exact(
            "Most-utility: the greatest risk of a row, its weight over the rows of the side table that fit it.",
            least=0, most=1e9, says="must be a number from 0 to 1e9, such as 0.05.",
        ),
    ] = None  # fmt: skip
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
    utility: Annotated[Utility, UTILITY] = DEPTH
    weights: Annotated[
        Weights,
        ModelOrWeights(
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
    def divides_by_risk(self) -> bool:
        """Does the objective divide by the risk of a row, which must then not be 0?"""
        return self.objective in (LAGRANGIAN, LOG_RISK)

    @property
    def is_algorithm_1(self) -> bool:
        """Algorithm 1 as printed?"""
        return self.optimizer == APPROXIMATION and self.variant == PAPER

    @property
    def is_private(self) -> bool:
        """Is the release differentially private? The variant of the paper is not, and promises nothing."""
        return self.private is not None and self.private.variant == REPAIRED

    def object_to_unit(self, unit: Unit) -> str | None:
        """Drawn rows of one person may have boxes of their own, so each person may have one row."""
        if self.private is None:
            return None
        if not self.is_private:
            return "private: {variant: paper} counts rows, and no people; write unit: row, or leave it out."
        if unit.rows_at_most is None:
            return ask_for_bound(unit, rows=1)
        if unit.rows_at_most > 1:
            return (
                "private risk-utility draws rows and leaves rare boxes out, and several rows of a person together can "
                "show through that; write rows-at-most: 1."
            )
        return None

    @property
    def draws_rows(self) -> bool:
        return self.private is not None

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

    def overrides(self, workload: Sequence[Task]) -> bool:
        """Boxes are chosen by risk and utility, whatever the tasks are."""
        return bool(workload)

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
        if self.risk_at_most is not None:
            options["risk-at-most"] = as_plain(self.risk_at_most)
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
    mistakes.found += _functions_in(options) or check(options, METHOD)
    if mistakes.found:
        return
    for check_some in (_check_objective, _check_variant):
        with mistakes.collect():
            check_some(options)
    with mistakes.collect():
        check_utility(options.utility, schema, (*METHOD, "utility"))
    with mistakes.collect():
        options.weights.check(schema, (*METHOD, "weights"))
    if options.private is not None:
        with mistakes.collect():
            _check_private(options, options.private)
    if not mistakes.found:
        with mistakes.collect():
            _check_floor(options, schema)


def _functions_in(options: RiskUtilityOptions) -> list[Mistake]:
    """What is a function in code has no place in a document."""
    cannot, found = "a function cannot be written down with the release;", []
    if callable(options.utility):
        found.append(Mistake((*METHOD, "utility"), f"{cannot} give its values by depth."))
    if callable(options.weights.column):
        found.append(Mistake((*METHOD, "weights", "column"), f"{cannot} add its numbers as a column."))
    return found


def _check_variant(options: RiskUtilityOptions) -> None:
    """Raise if Algorithm 1 or 2, or their parameters, are asked for where another optimizer works."""
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
        raise Misfit((*path, "sigma"), SIGMA)
    share = options.utility_at_least
    if not isinstance(share, Absolute) and share and least_acceptance(share, *sigma) <= 0:
        raise Misfit(
            (*path, "sigma"),
            "theorem 3 needs (1 - theta) / (1 - theta sigma_1) + 1 / sigma_2 below 1, theta being utility-at-least; "
            f"sigma_2 must be above {float(1 / (1 - (1 - share) / (1 - share * sigma[0]))):.4g} here.",
        )


def _check_objective(options: RiskUtilityOptions) -> None:
    served = SERVES[options.optimizer]
    if options.objective not in served:
        others = [word for word, objectives in SERVES.items() if options.objective in objectives]
        raise Misfit(
            (*METHOD, "optimizer"),
            f"{options.optimizer} serves the objective {', '.join(served)} only; for {options.objective} choose "
            f"{' or '.join(others)}.",
        )
    if options.objective == MOST_UTILITY and options.risk_at_most is None:
        raise Misfit(METHOD, f"the objective {MOST_UTILITY} needs a limit, such as risk-at-most: 0.05.")
    if options.objective != MOST_UTILITY and options.risk_at_most is not None:
        raise Misfit((*METHOD, "risk-at-most"), f"only the objective {MOST_UTILITY} has it; leave it out.")
    if options.objective in (THRESHOLD, MOST_UTILITY):
        if options.price is not None:
            raise Misfit(
                (*METHOD, "lambda"), f"the objective {options.objective} has no price of risk; leave it out."
            )
    elif options.price is None:
        raise Misfit(
            METHOD, f"the objective {options.objective} needs the price of risk, such as lambda: 1.0."
        )
    if options.objective != THRESHOLD and options.utility_at_least != DEFAULT_SHARE:
        raise Misfit((*METHOD, "utility-at-least"), "only the objective threshold has it; leave it out.")
    if options.objective != LAGRANGIAN and options.kappa != 1:
        raise Misfit((*METHOD, "kappa"), "only the objective lagrangian has it; leave it out.")


def _check_private(options: RiskUtilityOptions, private: PrivateSampling) -> None:
    path: Where = (*METHOD, "private")
    try:
        plan(private.epsilon, private.delta, private.sample)
    except NoPlan as error:
        raise Misfit((*path, error.word), str(error)) from None
    if private.variant == PAPER:
        _check_paper(options, private, path)
        return
    if private.algorithm != ALGORITHM_3:
        raise Misfit((*path, "algorithm"), PAPER_ALONE)
    if options.objective == MOST_UTILITY:
        raise Misfit(
            path,
            f"the objective {MOST_UTILITY} may have no solution for a row, and an error would tell of that row; choose "
            f"{THRESHOLD}, {LAGRANGIAN} or {LOG_RISK}.",
        )
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
    """Raise unless the paper has it: Algorithm 3 knows two objectives, Algorithm 4 one, and neither a side table."""
    if options.side_table is not None:
        raise Misfit(
            path, "the variant paper takes the table itself for its side table; leave out side-table."
        )
    if options.objective in (LOG_RISK, MOST_UTILITY):
        raise Misfit(
            path, f"the paper knows no objective {options.objective}; choose {THRESHOLD} or {LAGRANGIAN}."
        )
    if private.algorithm == 4 and options.objective != LAGRANGIAN:
        raise Misfit(
            (*path, "algorithm"),
            f"Algorithm 4 is printed for the Lagrangian alone; say objective: {LAGRANGIAN}, or algorithm: 3.",
        )


def _check_declared(attribute: Attribute) -> None:
    """Raise unless the domain of a column follows from the policy alone."""
    path: Where = ("attributes", attribute.name)
    lacking = name_undeclared(attribute)
    if lacking is not None:
        raise Misfit(path, f"private reads no domain from the table; declare {lacking}.")
    with at_hierarchy(attribute.name, (*path, "hierarchy")):
        with_hierarchy(attribute).build_declared_hierarchy()


def with_hierarchy(attribute: Attribute) -> Attribute:
    """The column; if it declares no hierarchy, with halves of a number, or with days, months and years of a date."""
    if not attribute.is_ordered:
        return attribute
    if attribute.kind is Kind.DATE:
        return replace(attribute, hierarchy=DAYS_TO_YEARS)
    if attribute.finest is None or attribute.bounds is None:
        return replace(attribute, hierarchy=Balanced(2), finest=None)
    return replace(attribute, hierarchy=widen_from(float(attribute.finest), *attribute.bounds))


def declared_schema(schema: Schema) -> Schema:
    """The columns of a private release: every quasi-identifier has a hierarchy that follows from the policy."""
    return Schema(
        tuple(
            with_hierarchy(attribute) if attribute.role is Role.QUASI_IDENTIFIER else attribute
            for attribute in schema
        )
    )


def _check_floor(options: RiskUtilityOptions, schema: Schema) -> None:
    """Raise if a row that is suppressed may weigh nothing where one divides by its risk."""
    is_paper = options.private is not None and options.private.variant == PAPER
    if options.floor > 0 or (not options.divides_by_risk and not is_paper):
        return
    model, attributes = options.weights.model, options.weights.attributes
    names = [attribute.name for attribute in schema.quasi_identifiers]
    if model == MODEL_2 and any(attributes.get(name, 1.0) != 0 for name in names):
        return
    what = f"the objective {options.objective}" if options.divides_by_risk else "the variant paper"
    raise Misfit(
        METHOD,
        f"{what} divides by the risk of a row that is suppressed, which is 0 with weights {model} and a floor of 0; "
        "add a floor, such as floor: 0.1" + (f", or use weights: {MODEL_2}." if model != MODEL_2 else "."),
    )


def _check_rest(options: RiskUtilityOptions, policy: RestOfPolicy, mistakes: Mistakes) -> None:
    """Collect what the rest of the policy asks for and a method that chooses row by row cannot serve."""
    with mistakes.collect():
        if policy.requirements:
            raise Misfit(
                ("require",),
                "risk-utility chooses for each row alone and promises nothing of groups; leave this out, or write [].",
            )
    with mistakes.collect():
        if options.private is not None and policy.workload:
            raise Misfit(
                ("workload",),
                "private risk-utility publishes quasi-identifiers alone and serves no task; leave this out, or write [].",
            )
        if not all(isinstance(task, Classify | Regress) for task in policy.workload):
            raise Misfit(
                ("workload",),
                "risk-utility chooses for the owner of each row and serves no task; evaluate can measure classify and "
                "regress, leave the others out.",
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
