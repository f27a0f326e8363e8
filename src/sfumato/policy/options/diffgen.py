"""DiffGen in a policy: its options [MCFY11], and what a differentially private release must declare.

Everything here looks at declarations alone: nothing depends on a table.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from sfumato.errors import short
from sfumato.policy.hierarchy.declared import name_undeclared, with_missing
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.kinds import read_day, read_exactly
from sfumato.policy.mistakes import Misfit, Mistakes, at_hierarchy
from sfumato.policy.model import check, read
from sfumato.policy.options.method import MethodOptions, RestOfPolicy
from sfumato.policy.output import COUNT, COUNTS, Form, Output, bound_names
from sfumato.policy.rules import ChoiceRule, Either, Exact, ListOf, MappingOf, Scalar, Whole
from sfumato.policy.schema import Attribute, Kind, Role, Schema, declared_column
from sfumato.policy.workload import Aggregate, Classify, Task
from sfumato.policy.yaml import Where, core

TUNED, PAPER = "tuned", "paper"
MAX, INFOGAIN, GINI, SMOOTH = "max", "infogain", "gini", "smooth"
SCORES = {TUNED: (SMOOTH, MAX, GINI), PAPER: (MAX, INFOGAIN)}
"""Those of each variant; the first is taken where none is asked for."""

LEAVES = "leaves"
"""In place of a list, a cut at every value, missing included."""

Cut = tuple[Any, ...] | str
"""Where the pieces of a number or date begin, the labels of a hierarchy's nodes, or ``LEAVES``."""

MAX_CODES = 2**31
MAX_DIGITS = 15
"""Decimal digits that a float surely keeps: more, and points of a grid would not be the decimals they stand for."""

METHOD: Where = ("method", "diffgen")

_EPSILON = Exact(
    "The privacy budget: the smaller, the more private.", fractions=False, least=1e-9, most=1e12,
    says="must be a number from 1e-9 to 1e12, such as 1.0; the smaller, the more private.",
)  # fmt: skip
_LIST = f"must be a list, such as [40, 60] or [White-collar, Blue-collar], or the word {LEAVES}."
_CUT = Either(
    says=_LIST, one=ChoiceRule(words=(LEAVES,), says=_LIST), other=ListOf(item=Scalar(), says=_LIST)
)


@dataclass(frozen=True, slots=True)
class DiffGenOptions(MethodOptions):
    """How DiffGen specializes, and its budget: ``epsilon`` is the decimal that was written, exactly.

    ``specializations`` and ``score`` are None where the variant chooses them. ``cuts`` are those that the owner
    fixed, by column: a number or a date lists where its pieces begin, a hierarchy the labels of its nodes.

    >>> options = DiffGenOptions(exact_epsilon(0.1), variant=PAPER)
    >>> options.epsilon, options.as_policy()
    (Fraction(1, 10), {'diffgen': {'epsilon': 0.1, 'variant': 'paper', 'max-cells': 1000000}})
    """

    epsilon: Annotated[Fraction, _EPSILON]
    variant: Annotated[str, ChoiceRule("tuned: as improved; paper: as published.", words=(TUNED, PAPER))] = (
        TUNED
    )
    specializations: Annotated[
        int | None,
        Whole(
            "How often a cut is pushed down; without it 10 for paper, and tuned chooses by epsilon and the declarations.",
            least=0, most=10_000, says="must be a whole number from 0 to 10000.",
        ),
    ] = None  # fmt: skip
    score: Annotated[
        str | None,
        ChoiceRule(
            "How candidates are scored: max with either variant, infogain with paper, gini and smooth with tuned.",
            words=(MAX, INFOGAIN, GINI, SMOOTH),
        ),
    ] = None
    max_cells: Annotated[
        int,
        Whole(
            "The most cells that the grid of cuts may have.",
            least=1, most=1_000_000_000, says="must be a whole number from 1 to 1e9.",
        ),
    ] = 1_000_000  # fmt: skip
    cuts: Annotated[
        Mapping[str, Cut] | None,
        MappingOf(
            "Cuts that are fixed in advance, by column; columns without one stay whole, and all of epsilon goes on the "
            "counts. A number or date lists where its pieces begin, such as [40, 60]; a hierarchy lists the labels of "
            "its nodes; leaves means every value.",
            says="must name the columns that are cut, such as {age: [40, 60], sex: leaves}.",
            value=_CUT,
        ),
    ] = None
    meaning: ClassVar[str] = (
        "Shared cuts chosen by differentially private selection, and noisy counts of every cell."
    )
    absent: ClassVar[Mapping[str, str]] = {"epsilon": ""}
    name: ClassVar[str] = "diffgen"
    publishes_counts: ClassVar[bool] = True
    spends_epsilon: ClassVar[bool] = True
    shares_cuts: ClassVar[bool] = True
    promises_itself: ClassVar[bool] = True

    @property
    def form(self) -> Form:
        return Form.COUNTS

    @property
    def is_private(self) -> bool:
        return True

    @property
    def promise(self) -> str:
        return f"epsilon {self.epsilon}"

    @property
    def public(self) -> tuple[str, ...]:
        cuts = () if self.cuts is None else ("the cuts: all of them",)
        return (*cuts, f"the cells of the grid: at most {self.max_cells:,}")

    @classmethod
    def of(cls, given: Mapping[str, Any], schema: Schema, _folder: str | None) -> DiffGenOptions:
        """From what a policy says."""
        if "epsilon" not in given:
            raise Misfit(
                METHOD[:1],
                "diffgen needs the privacy budget epsilon, such as method: {diffgen: {epsilon: 1.0}}.",
            )
        options = read(cls, given, METHOD)
        if options.cuts is None:
            return options
        return replace(
            options, cuts={name: _read_cut(cut, name, schema) for name, cut in options.cuts.items()}
        )

    @classmethod
    def keep_sound(cls, given: Mapping[str, Any], broken: Collection[str | int]) -> Mapping[str, Any] | None:
        """As much of the options that fit as the rest of the policy is checked against."""
        kept = {key: given[key] for key in ("epsilon", "max-cells") if key in given and key not in broken}
        return {"epsilon": 1, **kept}

    def check(self, policy: RestOfPolicy, mistakes: Mistakes) -> None:
        """The options make sense together, and everything that is published is declared."""
        mistakes.found += check(self, METHOD)
        if not mistakes.found:
            with mistakes.collect():
                _check_options(self)
        with mistakes.collect():
            is_asked = any(isinstance(task, Aggregate) for task in policy.workload)
            if policy.output is Output.SUMMARY and not is_asked:
                raise Misfit(
                    ("output", "values"),
                    "diffgen publishes no statistics of groups; use labels, bounds or both.",
                )
        target = None
        with mistakes.collect():
            target = target_of(policy.workload)
        _check_declarations(policy, target, mistakes)
        if self.cuts is not None and not mistakes.found:
            with mistakes.collect():
                _check_cuts(self.cuts, policy.schema, self.max_cells)

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
        return read_exactly(number)
    except ValueError:  # infinite, NaN, or no number at all
        raise Misfit((*METHOD, "epsilon"), _EPSILON.says) from None


def _read_cut(given: str | Sequence[Any], name: str, schema: Schema) -> Cut:
    """A cut as it is declared: a list of numbers for a number, of texts for all else."""
    if isinstance(given, str):
        return given
    attribute = declared_column(name, schema, (*METHOD, "cuts"))
    is_number = attribute.kind is Kind.NUMBER and attribute.is_ordered
    return tuple(core(item) if is_number and item is not None else item for item in given)


def _check_options(options: DiffGenOptions) -> None:
    """Raise unless the options make sense together."""
    if exact_epsilon(float(options.epsilon)) != options.epsilon:
        raise Misfit((*METHOD, "epsilon"), "must be a decimal number of at most 15 digits, such as 0.1.")
    if options.score is not None and options.score not in SCORES[options.variant]:
        other = TUNED if options.variant == PAPER else PAPER
        raise Misfit(
            (*METHOD, "score"),
            f"{options.variant} has {', '.join(SCORES[options.variant])} only; leave it out, or use variant: {other}.",
        )
    if options.cuts is not None:
        chosen = {
            "variant": options.variant != TUNED,
            "specializations": options.specializations is not None,
            "score": options.score is not None,
        }
        for word, is_given in chosen.items():
            if is_given:
                raise Misfit((*METHOD, word), "cuts leave nothing to choose; leave out this or the cuts.")


# --- what must be declared --------------------------------------------------------------------------------


def target_of(workload: Iterable[Task]) -> str:
    """The class: the one target of the one task, which must be to classify it."""
    tasks = list(workload)
    for position, task in enumerate(tasks):
        path: Where = ("workload", position, task.word)
        if not isinstance(task, Classify):
            raise Misfit(path, "diffgen serves one task, to classify; leave this one out.")
        if len(task.targets) > 1:
            raise Misfit(path, "diffgen classifies one target; leave out the others.")
        if task.features is not None:
            raise Misfit(
                (*path, "features"), "diffgen publishes the quasi-identifiers alone; leave features out."
            )
        if position:
            raise Misfit(path, "diffgen serves one task, to classify; leave out all others.")
    if not tasks:
        raise Misfit(("workload",), "diffgen needs a task to classify, such as classify: income.")
    assert isinstance(tasks[0], Classify)
    return tasks[0].targets[0]


def class_values(attribute: Attribute) -> tuple[str, ...]:
    """The declared values of the class, in the declared order.

    >>> class_values(Attribute("income", "other", values=("low", "high")))
    ('low', 'high')
    """
    if attribute.values is not None:
        return attribute.values
    tree = attribute.build_declared_hierarchy()
    leaves = (tree.labels[node] for node in tree.leaf_nodes.tolist())
    return tuple(label for label in leaves if label is not None)


def _check_declarations(policy: RestOfPolicy, target: str | None, mistakes: Mistakes) -> None:
    """Collect what would let published values depend on the table other than by counts of declared values.

    ``target`` is the class, if there is one.
    """
    with mistakes.collect():
        if policy.requirements:
            raise Misfit(
                ("require",),
                "diffgen promises differential privacy, not anything of groups of rows; leave this out, or write [].",
            )
    the_class = None if target is None else policy.schema.declaration_of(target)
    for attribute in policy.schema:
        with mistakes.collect():
            _check_column(attribute, is_class=attribute is the_class, has_class=target is not None)
    for name, count in Counter(_published_names(policy)).items():
        with mistakes.collect():
            if count > 1:
                raise Misfit(
                    ("attributes",),
                    f"the release would have two columns {short(name)}; rename yours, or drop it.",
                )


def _published_names(policy: RestOfPolicy) -> list[str]:
    """The columns of the release."""
    names: list[str] = []
    for attribute in policy.schema.published:
        has_bounds = (
            policy.output.has_bounds and attribute.is_ordered and attribute.role is Role.QUASI_IDENTIFIER
        )
        names += [attribute.name] if policy.output.has_labels or not has_bounds else []
        names += bound_names(attribute.name) if has_bounds else ()
    return [*names, COUNT] if policy.rows == COUNTS else names


def _check_column(attribute: Attribute, *, is_class: bool, has_class: bool) -> None:
    if is_class:
        _check_class(attribute)
    elif attribute.role in (Role.OTHER, Role.SENSITIVE) and has_class:
        raise Misfit(
            ("attributes", attribute.name, "role"),
            "diffgen publishes no column as it is but the class; give it the role drop, or "
            "quasi-identifier and a declared domain.",
        )
    elif attribute.role is Role.QUASI_IDENTIFIER:
        _check_domain(attribute)


def _check_class(attribute: Attribute) -> None:
    path: Where = ("attributes", attribute.name)
    if attribute.role is Role.QUASI_IDENTIFIER:
        raise Misfit((*path, "role"), "it is the class of diffgen; give it the role other or sensitive.")
    if attribute.kind is not Kind.CATEGORY:
        raise Misfit(
            (*path, "type"),
            f"it is the class of diffgen, which is a category, not a {attribute.kind}; declare its values.",
        )
    if name_undeclared(attribute) is not None:
        raise Misfit(path, "it is the class of diffgen; declare its values, such as values: [low, high].")
    with at_hierarchy(attribute.name, (*path, "hierarchy")):
        n_values = len(class_values(attribute))
    if n_values < 2:
        raise Misfit(path, "it is the class of diffgen, which needs at least two declared values.")


def _check_domain(attribute: Attribute) -> None:
    path: Where = ("attributes", attribute.name)
    lacking = name_undeclared(attribute)
    if lacking is not None:
        raise Misfit(path, f"diffgen reads no domain from the table; declare {lacking}.")
    if attribute.is_ordered:
        if attribute.finest is not None:
            raise Misfit(
                (*path, "finest"),
                "diffgen cuts a number at any step; declare slices, such as hierarchy: {intervals: "
                f"[{attribute.finest}]}}, in place of it.",
            )
        _check_grid(attribute, path)
        return
    with at_hierarchy(attribute.name, (*path, "hierarchy")):
        tree = attribute.build_declared_hierarchy()
        attribute.locate(tree, ())
        whole = with_missing(tree)
    if alike := _n_alike(whole):
        raise Misfit(
            (*path, "hierarchy"),
            f"{alike} of its labels stand in several places, so that cells would look alike; rename them.",
        )


def _n_alike(tree: Hierarchy) -> int:
    """How many labels stand at several nodes that one cut may hold together. An empty label looks like missing."""
    last = tree.leaf_nodes[tree.high - 1]
    latest: dict[str | None, int] = {}
    alike = set()
    for node, label in enumerate(tree.labels):
        above = latest.setdefault(label or None, node)
        if node > last[above]:
            alike.add(label or None)
        latest[label or None] = node
    return len(alike)


def _check_grid(attribute: Attribute, path: Where) -> None:
    low, high, step = grid_of(attribute)
    if n_codes(attribute) > MAX_CODES:
        raise Misfit(path, "its bounds and step make more than 2^31 values; widen the step.")
    scale = math.lcm(low.denominator, high.denominator, step.denominator)
    if max(abs(low - step), abs(high)) * scale >= 10**MAX_DIGITS:
        raise Misfit(
            path, f"its bounds and step need more than {MAX_DIGITS} digits, more than are exact; round them."
        )


def grid_of(attribute: Attribute) -> tuple[Fraction, Fraction, Fraction]:
    """Lower bound, upper bound and step of an ordered column, as the decimals that were written.

    >>> grid_of(Attribute("height", "quasi-identifier", Kind.NUMBER, bounds=(0, 2.5), step=0.1))
    (Fraction(0, 1), Fraction(5, 2), Fraction(1, 10))
    """
    low, high = attribute.bounds or (0, 0)
    step = 1 if attribute.step is None else attribute.step
    return read_exactly(low), read_exactly(high), read_exactly(step)


def n_codes(attribute: Attribute) -> int:
    """How many codes an ordered column has: one for each point of its grid, and one for missing."""
    low, high, step = grid_of(attribute)
    return int((high - low) / step) + 2


# --- cuts that the owner gives ----------------------------------------------------------------------------


def _check_cuts(cuts: Mapping[str, Cut], schema: Schema, max_cells: int) -> None:
    """Raise unless these are cuts of quasi-identifiers, in a grid of at most so many cells."""
    n_cells = 1
    for name, cut in cuts.items():
        path: Where = (*METHOD, "cuts", name)
        attribute = declared_column(name, schema, path)
        if attribute.role is not Role.QUASI_IDENTIFIER:
            raise Misfit(
                path, f"the column has the role {attribute.role}, and only quasi-identifiers are cut."
            )
        if attribute.is_ordered:
            n_cells *= n_codes(attribute) if cut == LEAVES else len(ordered_cut(attribute, cut)) + 1
        else:
            tree = attribute.build_declared_hierarchy()
            n_cells *= with_missing(tree).n_leaves if cut == LEAVES else len(tree_cut(attribute, tree, cut))
    if n_cells > max_cells:
        raise Misfit(
            (*METHOD, "cuts"),
            f"they make {n_cells:,} cells, and max-cells is {max_cells:,}; cut less finely, or raise it.",
        )


def ordered_cut(attribute: Attribute, cut: Iterable[Any]) -> list[int]:
    """How many steps above the lower bound each piece but the first begins.

    >>> age = Attribute("age", "quasi-identifier", Kind.NUMBER, bounds=(18, 65), step=1)
    >>> ordered_cut(age, (40,))
    [22]
    """
    path: Where = (*METHOD, "cuts", attribute.name)
    low, high, step = grid_of(attribute)
    begins = [(_exact(item, attribute, path) - low) / step for item in cut]
    for position, begin in enumerate(begins, start=1):
        if begin.denominator != 1:
            raise Misfit(path, f"item {position} is not a whole number of steps above the lower bound.")
        if not 0 < begin <= (high - low) / step:
            raise Misfit(path, f"item {position} is not above the lower bound and up to the upper one.")
    if any(one >= other for one, other in pairwise(begins)):
        raise Misfit(path, "where pieces begin must ascend.")
    return [int(begin) for begin in begins]


def _exact(item: Any, attribute: Attribute, path: Where) -> Fraction:
    if attribute.kind is Kind.DATE:
        try:
            return Fraction(read_day(item))
        except (TypeError, ValueError):
            raise Misfit(path, "must be a list of dates, such as [2020-07-01].") from None
    if isinstance(item, bool) or not isinstance(item, int | float) or not math.isfinite(item):
        raise Misfit(path, "must be a list of numbers, such as [40, 60].")
    return read_exactly(item)


def tree_cut(attribute: Attribute, tree: Hierarchy, cut: Iterable[Any]) -> list[int]:
    """The nodes of a cut through the declared hierarchy, from left to right.

    >>> job = Attribute("job", "quasi-identifier")
    >>> jobs = Hierarchy.from_tree({"Any": {"Professional": ["Lawyer"], "Artist": ["Dancer"]}})
    >>> tree_cut(job, jobs, ("Artist", "Lawyer"))
    [2, 3]
    """
    path: Where = (*METHOD, "cuts", attribute.name)
    places: dict[str | None, list[int]] = {}
    for node, label in enumerate(tree.labels):
        places.setdefault(label, []).append(node)
    nodes = []
    for position, label in enumerate(cut, start=1):
        found = places.get(label, [])
        if not found:
            raise Misfit(path, f"item {position} is no label of the column's hierarchy.")
        if len(found) > 1:
            raise Misfit(
                path, f"item {position} is the label of {len(found)} nodes, so it names none of them."
            )
        nodes += found
    nodes.sort()
    n_covered = sum(int(tree.high[node] - tree.low[node]) for node in nodes)
    has_twice = any(tree.high[one] > tree.low[other] for one, other in pairwise(nodes))
    if has_twice or n_covered < tree.n_leaves:
        what = "have a value in common" if has_twice else f"lack {tree.n_leaves - n_covered:,} of its values"
        raise Misfit(path, f"the nodes {what}; together they must cover every value once.")
    return nodes
