"""What must hold of the values of a policy, and of all of them together.

What must hold of a single value, whatever the others are, stands in its model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from sfumato.errors import HierarchyError, PolicyError, nearest, short
from sfumato.policy import model, predicate
from sfumato.policy.finest import check_width
from sfumato.policy.hierarchy.declarations import Given
from sfumato.policy.kinds import read_exactly
from sfumato.policy.mistakes import Misfit, Mistake, Mistakes, Origin, PolicyMistakes
from sfumato.policy.options import MethodOptions
from sfumato.policy.options.method import RestOfPolicy
from sfumato.policy.output import EXCLUDING, OutputForm, object_to_exclusions
from sfumato.policy.requirements import Requirement
from sfumato.policy.rules import is_number
from sfumato.policy.schema import (
    GROUP,
    RELEASE,
    UNIQUE,
    Attribute,
    BrokenAttribute,
    Kind,
    Role,
    Schema,
    declared_column,
)
from sfumato.policy.shape import ATTRIBUTES, REQUIRE, REQUIREMENT, STEP, TITLE, VALUES, WEIGHT, WORKLOAD
from sfumato.policy.suppress import SUPPRESS, Suppress, check_suppress
from sfumato.policy.unit import UNIT, Unit, check_unit
from sfumato.policy.workload import TASK, Aggregate, Regress, Select, Task
from sfumato.policy.yaml import Where

MOST_NAMED = 10
"""Columns that an error names; of more, the number is said."""
MAX_HEIGHT = 90
"""Levels of a hierarchy: the policy of a release holds the tree itself, and YAML is not read any deeper."""


class UncheckedPolicy(RestOfPolicy, Protocol):
    """A policy, as far as it is checked."""

    @property
    def method(self) -> MethodOptions: ...

    @property
    def is_private(self) -> bool: ...

    @property
    def unit(self) -> Unit | None: ...

    @property
    def suppress(self) -> Suppress | None: ...

    @property
    def title(self) -> str | None: ...

    @property
    def keeps_recoding(self) -> bool: ...

    @property
    def formulas(self) -> str: ...


def find_wrong_types(policy: UncheckedPolicy) -> Iterator[Mistake]:
    """What is no schema, no requirement or no task at all, in the words for documents."""
    if not isinstance(policy.schema, Schema):
        yield Mistake(("attributes",), ATTRIBUTES.says)
    for key, given, kinds, whole, item in (
        ("require", policy.requirements, Requirement, REQUIRE, REQUIREMENT),
        ("workload", policy.workload, Task, WORKLOAD, TASK),
    ):
        if isinstance(given, str) or not isinstance(given, Sequence):
            yield Mistake((key,), whole.says)
            continue
        for position, one in enumerate(given):
            if not isinstance(one, kinds):
                yield Mistake((key, position), item.says)
    if not isinstance(policy.method, MethodOptions):
        yield Mistake(("method",), "must be the options of a method, such as MondrianOptions().")
    if policy.unit is not None and not isinstance(policy.unit, Unit):
        yield Mistake(("unit",), UNIT.says)
    if policy.suppress is not None and not isinstance(policy.suppress, Suppress):
        yield Mistake(("suppress",), SUPPRESS.says)
    output = OutputForm(
        policy.output, policy.rows, policy.keeps_recoding, policy.formulas, policy.numbers, policy.rest_labels
    )
    yield from model.check(output, ("output",))


def collect_mistakes(policy: UncheckedPolicy, mistakes: Mistakes) -> None:
    """Everything that is wrong with the values of a policy."""
    schema = policy.schema
    for attribute in schema:
        if not isinstance(attribute, BrokenAttribute):
            _check_attribute(attribute, mistakes)
            with mistakes.collect():
                _check_weight(attribute, policy.method)
            with mistakes.collect():
                _check_passes(attribute)
            with mistakes.collect():
                _check_pseudonym(attribute, policy)
            with mistakes.collect():
                _check_shift(attribute, policy)
            if policy.rest_labels == EXCLUDING:
                with mistakes.collect():
                    _check_labels(attribute)
    for name, count in Counter(schema.names()).items():
        if count > 1:
            mistakes.found.append(Mistake(("attributes", name), "the column is declared twice."))
    if not schema.quasi_identifiers:
        sentence = "no column has the role quasi-identifier; at least one must."
        mistakes.found.append(Mistake(("attributes",), sentence))
    for position, requirement in enumerate(policy.requirements):
        with mistakes.collect():
            _check_requirement(requirement, schema, ("require", position, requirement.word))
    for position, task in enumerate(policy.workload):
        with mistakes.collect():
            _check_task(task, schema, ("workload", position, task.word))
    with mistakes.collect():
        _check_unit(policy)
    with mistakes.collect():
        _check_suppress(policy)
    with mistakes.collect():
        _check_output(policy)
    for word, given in (("numbers", policy.numbers), ("rest-labels", policy.rest_labels)):
        if given is not None and not policy.method.narrows_cells:
            sentence = f"only mondrian has it, and {policy.method.name} publishes its own cuts; leave it out."
            mistakes.found.append(Mistake(("output", word), sentence))
    if not TITLE.fits(policy.title):
        mistakes.found.append(Mistake(("title",), TITLE.says))
    of_method = Mistakes()
    policy.method.check(policy, of_method)
    broken = {attribute.name for attribute in schema if isinstance(attribute, BrokenAttribute)}
    known = {mistake.where for mistake in mistakes.found}
    mistakes.found += [
        mistake
        for mistake in of_method.found
        if not (mistake.where[:1] == ("attributes",) and mistake.where[1:2] and mistake.where[1] in broken)
        and mistake.where not in known
    ]


def _check_attribute(attribute: Attribute, mistakes: Mistakes) -> None:
    path: Where = ("attributes", attribute.name)
    with mistakes.collect():
        check_bounds(attribute, path)
    with mistakes.collect():
        check_values(attribute, path)
    with mistakes.collect():
        check_tree(attribute, (*path, "hierarchy"))
    with mistakes.collect():
        read_finest(attribute, attribute.finest, path)


def _check_weight(attribute: Attribute, method: MethodOptions) -> None:
    """A weight is a price of what a quasi-identifier loses, for a method that looks at it."""
    if attribute.weight == 1:
        return
    path: Where = ("attributes", attribute.name, "weight")
    if not WEIGHT.fits(attribute.weight):
        raise Misfit(path, WEIGHT.says)
    if attribute.role is not Role.QUASI_IDENTIFIER:
        raise Misfit(
            path, "only a quasi-identifier loses anything; leave it out, or give the column that role."
        )
    if objection := method.object_to_weights():
        raise Misfit(path, objection)


def read_finest(attribute: Attribute, finest: Any, path: Where) -> Attribute:
    """The column, never published finer than that."""
    if finest is None:
        return attribute
    path = (*path, "finest")
    if attribute.role is not Role.QUASI_IDENTIFIER:
        raise Misfit(
            path, "only a quasi-identifier is generalized; leave it out, or give the column that role."
        )
    if attribute.kind is Kind.NUMBER and attribute.hierarchy is None:
        if objection := check_width(finest, attribute):
            raise Misfit(path, objection)
        return replace(attribute, finest=finest)
    try:
        return replace(attribute, finest=finest)
    except HierarchyError as error:
        raise Misfit(path, str(error).partition(": ")[2]) from None


def _check_passes(attribute: Attribute) -> None:
    """Only a column that is published as it is can be so on purpose."""
    if attribute.passes is None:
        return
    path: Where = ("attributes", attribute.name, "passes")
    if attribute.passes != UNIQUE:
        raise Misfit(path, "must be unique, or be left out.")
    if not attribute.role.passes:
        raise Misfit(path, "only a sensitive or other column is published as it is; leave it out.")


def _check_pseudonym(attribute: Attribute, policy: UncheckedPolicy) -> None:
    """Pseudonyms are texts, of releases that have groups."""
    path: Where = ("attributes", attribute.name)
    if attribute.role is not Role.PSEUDONYM:
        for word in ("key", "scope"):
            if getattr(attribute, word) is not None:
                raise Misfit((*path, word), "only a column of the role pseudonym has it; leave it out.")
        return
    if attribute.scope not in (None, GROUP, RELEASE):
        raise Misfit((*path, "scope"), f"must be {GROUP} or {RELEASE}.")
    if attribute.kind is not Kind.CATEGORY:
        raise Misfit((*path, "type"), "a pseudonym is a text, whatever it stands for; leave it out.")
    if policy.is_private or policy.method.is_row_by_row:
        raise Misfit(
            (*path, "role"),
            f"{policy.method.name} publishes no pseudonyms; give the column the role identifier or drop.",
        )


def _check_shift(attribute: Attribute, policy: UncheckedPolicy) -> None:
    """A date that is published as it is may be shifted, by what tells people apart."""
    if attribute.shift is None:
        return
    path: Where = ("attributes", attribute.name, "shift")
    for mistake in model.check(attribute.shift, path):
        raise Misfit(mistake.where, mistake.sentence)
    if attribute.kind is not Kind.DATE or not attribute.role.passes:
        raise Misfit(path, "only a sensitive or other column of type date is shifted; leave it out.")
    if policy.is_private:
        raise Misfit(
            path, f"{policy.method.name} publishes no column as it is, shifted or not; leave it out."
        )
    person = declared_column(attribute.shift.per, policy.schema, (*path, "per"))
    if person.role not in (Role.IDENTIFIER, Role.PSEUDONYM):
        raise Misfit(
            (*path, "per"),
            f"column {short(person.name)} has the role {person.role}; name an identifier or a pseudonym, which tells "
            "one person from another.",
        )
    for other in policy.schema:
        if other.shift and other.shift.per == person.name and other.shift.within != attribute.shift.within:
            raise Misfit(
                (*path, "within"), f"dates of a person are shifted together: as column {short(other.name)}."
            )


def _check_labels(attribute: Attribute) -> None:
    """No declared label looks like one of a rest that says what it excludes."""
    if attribute.role is not Role.QUASI_IDENTIFIER:
        return
    tree = attribute.hierarchy.tree.labels if isinstance(attribute.hierarchy, Given) else ()
    for word, labels in (("hierarchy", tree), ("values", attribute.values or ())):
        if objection := object_to_exclusions(labels):
            raise Misfit(("attributes", attribute.name, word), objection)


def check_bounds(attribute: Attribute, path: Where) -> None:
    bounds, step = attribute.bounds, attribute.step
    if attribute.kind is Kind.CATEGORY:
        for word, given in (("bounds", bounds), ("step", step)):
            if given is not None:
                raise Misfit(
                    (*path, word), "only a number or a date has it; add type: number, or leave it out."
                )
        return
    if bounds is not None:
        if not all(is_number(bound) for bound in bounds):
            raise Misfit((*path, "bounds"), "must be two finite numbers without quotes, such as [0, 110].")
        if bounds[0] >= bounds[1]:
            raise Misfit((*path, "bounds"), "the first must be below the second; swap or widen them.")
    if step is not None:
        _check_step(attribute, step, (*path, "step"))


def _check_step(attribute: Attribute, step: float, path: Where) -> None:
    if not STEP.fits(step):
        raise Misfit(path, STEP.says)
    if attribute.kind is Kind.DATE and read_exactly(step).denominator != 1:
        raise Misfit(path, "the step of a date must be a whole number of days.")
    if attribute.bounds is None:
        raise Misfit(path, "a step is counted from the lower bound; add bounds, or leave it out.")
    low, high = attribute.bounds
    if ((read_exactly(high) - read_exactly(low)) / read_exactly(step)).denominator != 1:
        raise Misfit(
            path,
            "must divide the distance between the bounds; change it or the bounds. Values need no common step: for "
            f"slices of this width write hierarchy: {{intervals: [{step}]}} instead.",
        )


def check_values(attribute: Attribute, path: Where) -> None:
    values = attribute.values
    if values is None:
        return
    path = (*path, "values")
    if attribute.kind is not Kind.CATEGORY:
        raise Misfit(path, f"values are for categories; a {attribute.kind} is declared with bounds and step.")
    if not values:
        raise Misfit(path, VALUES.says)
    if "" in values:
        raise Misfit(path, "an empty text is a missing value, not a category; leave it out.")
    seen: set[str] = set()
    for position, value in enumerate(values, start=1):
        if value in seen:
            raise Misfit(path, f"item {position} repeats an earlier one; leave it out.")
        seen.add(value)
    both = len(seen.intersection(attribute.missing_values))
    if both:
        raise Misfit(path, f"{both} of them stand under missing-values too; choose one place.")


def check_tree(attribute: Attribute, path: Where) -> None:
    if not isinstance(attribute.hierarchy, Given):
        return
    tree = attribute.hierarchy.tree
    if tree.height > MAX_HEIGHT:
        raise Misfit(path, f"it has more than {MAX_HEIGHT} levels.")
    if attribute.values is None:
        return
    leaves = {tree.labels[node] for node in tree.leaf_nodes.tolist()}
    strange = len(set(attribute.values) - leaves)
    if strange:
        raise Misfit(
            path, f"it lacks {strange} of the column's declared values; add them to it, or leave out values."
        )


def _check_requirement(requirement: Requirement, schema: Schema, path: Where) -> None:
    if requirement.of is None:
        return
    attribute = declared_column(requirement.of, schema, (*path, "of"))
    if objection := requirement.object_to(attribute):
        raise Misfit((*path, "of"), objection)


def _check_task(task: Task, schema: Schema, path: Where) -> None:
    if isinstance(task, Aggregate):
        return
    if isinstance(task, Select):
        _check_condition(task, schema, path)
        return
    for name in task.targets:
        attribute = _find_published(name, schema, path, "choose another target")
        if isinstance(task, Regress) and attribute.kind is not Kind.NUMBER:
            raise Misfit(path, f"column {short(name)} is not a number; add type: number, or classify it.")
    for name in task.features or ():
        _find_published(name, schema, (*path, "features"), "leave it out")


def _find_published(name: str, schema: Schema, path: Where, way_out: str) -> Attribute:
    attribute = declared_column(name, schema, path)
    if not attribute.role.is_published:
        raise Misfit(
            path,
            f"column {short(name)} has the role {attribute.role} and is not published; "
            f"{way_out}, or give it the role other.",
        )
    if attribute.role is Role.PSEUDONYM:
        raise Misfit(path, f"column {short(name)} is published as pseudonyms, which say nothing; {way_out}.")
    return attribute


def _check_condition(task: Select, schema: Schema, path: Where) -> None:
    if any(isinstance(attribute, BrokenAttribute) and attribute.name in task.where for attribute in schema):
        return
    try:
        found = predicate.parse(task.where, schema)
    except PolicyError as error:
        raise Misfit((*path, "where"), str(error)) from None
    if not found.rectangles:
        raise Misfit((*path, "where"), "the condition contradicts itself, so it selects nothing; mend it.")


def _check_unit(policy: UncheckedPolicy) -> None:
    check_unit(policy.unit, policy.schema, is_private=policy.is_private)
    if policy.unit is None or not policy.unit.is_person:
        return
    if objection := policy.method.object_to_unit(policy.unit):
        raise Misfit(("unit",), objection)


def _check_suppress(policy: UncheckedPolicy) -> None:
    if policy.suppress is None:
        return
    check_suppress(policy.suppress)
    if objection := policy.method.object_to_suppression():
        raise Misfit(("suppress",), objection)


def _check_output(policy: UncheckedPolicy) -> None:
    if policy.output.has_bounds and any(isinstance(task, Aggregate) for task in policy.workload):
        raise Misfit(
            ("output", "values"),
            f"an aggregate task publishes labels with a summary beside them, not {policy.output}; "
            "leave out one of the two.",
        )


def check_columns(schema: Schema, origin: Origin, names: Iterable[str]) -> None:
    """Raise unless the policy names exactly these columns of a table, with the lines of those that it lacks."""
    table, named = tuple(names), schema.names()
    in_table, in_policy = frozenset(table), frozenset(named)
    lacking = [name for name in named if name not in in_table]
    near = {name: nearest(name, table) for name in lacking[:MOST_NAMED]}
    missing = [_lacking(name, near.get(name, [])) for name in lacking]
    meant = {word for words in near.values() for word in words}
    unnamed = [name for name in table if name not in in_policy and name not in meant]
    if unnamed:
        missing.append(Mistake((), _say_unnamed(unnamed)))
    if len(missing) > 1:
        raise PolicyMistakes(missing, origin)
    if lacking:
        line = origin.line(("attributes", lacking[0]))
        at = "" if line is None else f" (line {line})"
        raise PolicyError(
            f"The table has no column {short(lacking[0])} that the policy names{at}.{_hint(near[lacking[0]])}"
        )
    if unnamed:
        raise PolicyError(_say_unnamed(unnamed))


def _lacking(name: str, near: Sequence[str]) -> Mistake:
    return Mistake(("attributes", name), f"the table has no such column.{_hint(near)}")


def _hint(near: Sequence[str]) -> str:
    if near:
        return f" Did you mean {near[0]!r}?"
    return " Check how it is spelled, or leave it out of the policy."


def _say_unnamed(names: Sequence[str]) -> str:
    """The columns that the policy forgot, up to ten of them, and the way out."""
    if len(names) == 1:
        listed = f"column {short(names[0])}"
    else:
        more = len(names) - MOST_NAMED
        shown = [short(name) for name in names[:MOST_NAMED]]
        listed = f"{len(names):,} columns: {', '.join(shown)}" + (f" and {more:,} more" if more > 0 else "")
    return (
        f"The table has {listed}, which the policy does not name. Add each under attributes; the line "
        '"*": {role: drop} there leaves out all that are not named.'
    )
