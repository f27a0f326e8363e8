"""From the document of a policy to its values.

Of a part that has mistakes only what is sound is kept, so that the rest is checked all the same, and an author sees all
mistakes at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sfumato.errors import PolicyError
from sfumato.policy.checks import check_bounds, check_tree, check_values
from sfumato.policy.columns import BrokenAttribute
from sfumato.policy.days import read_day
from sfumato.policy.file import Document
from sfumato.policy.hierarchy import tree as hierarchies
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.mistakes import Misfit, Mistake, Mistakes, PolicyMistakes
from sfumato.policy.options import DEFAULT_METHOD, OPTIONS, MethodOptions
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.output import COUNTS, KEEP, Output
from sfumato.policy.requirements import REQUIREMENTS, Requirement
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import Aggregate, Classify, Regress, Select, Task
from sfumato.policy.yaml import Where

T = TypeVar("T")
P = TypeVar("P")

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def make_policy(make: Callable[..., P], document: Document, folder: Path | None) -> P:
    """The policy of a document, or one error with everything that is wrong with it.

    ``make`` is the class of the policy; without a ``folder`` the document may name no file.
    """
    data, mistakes = document.data, document.mistakes
    schema = Schema(tuple(_attribute(document, name, folder) for name in data["attributes"]))
    method: MethodOptions = MondrianOptions()
    with mistakes.collect():
        method = _method(_sound_method(document), schema, folder)
    requirements = _items(document, "require", _requirement)
    tasks = _items(document, "workload", _placed_task)
    if mistakes.is_broken("workload") and method.reads_workload:
        method = MondrianOptions()  # what the method asks of its tasks cannot be judged
    output = {} if mistakes.is_broken("output") else data.get("output", {})
    rows = COUNTS
    if not mistakes.is_broken("method"):
        with mistakes.collect():
            rows = _rows(output, method)
    try:
        policy = make(
            schema=schema,
            requirements=tuple(requirements.values()),
            workload=tuple(tasks.values()),
            method=method,
            output=Output(output.get("values", "labels")),
            keeps_recoding=output.get("recoding", True),
            rows=rows,
            title=None if mistakes.is_broken("title") else data.get("title"),
            formulas=output.get("formulas", KEEP),
            origin=document.origin.of_columns(),
        )
    except (Misfit, PolicyMistakes) as error:
        positions = {"require": tuple(requirements), "workload": tuple(tasks)}
        mistakes.found += [_at_its_position(mistake, positions) for mistake in error.mistakes]
    if mistakes.found:
        raise document.origin.error(mistakes.found) from None
    return policy


def _sound_method(document: Document) -> str | Mapping[str, Any]:
    """The method with those of its options that fit, so that the rest of the policy is checked against it."""
    given, mistakes = document.data.get("method", DEFAULT_METHOD), document.mistakes
    if not mistakes.is_broken("method"):
        return given  # type: ignore[no-any-return]  # the schema holds of it
    name = next(iter(given)) if isinstance(given, dict) and len(given) == 1 else ""
    if name not in OPTIONS or not isinstance(given[name], dict):
        return DEFAULT_METHOD
    if mistakes.is_unreadable("method") or mistakes.is_unreadable("method", name):
        return DEFAULT_METHOD
    sound = OPTIONS[name].keep_sound(given[name], mistakes.broken("method", name))
    return DEFAULT_METHOD if sound is None else {name: sound}


def _items(document: Document, key: str, make: Callable[[Any, int], T]) -> dict[int, T]:
    """The items of a list that fit, by position."""
    made: dict[int, T] = {}
    broken = document.mistakes.broken(key)
    given = document.data.get(key, ())
    for position, item in enumerate(given if isinstance(given, list) else ()):
        if position not in broken:
            with document.mistakes.collect():
                made[position] = make(item, position)
    return made


def _attribute(document: Document, name: str, folder: Path | None) -> Attribute:
    """A column; a :class:`BrokenAttribute` if anything is wrong with it."""
    given, mistakes = document.data["attributes"][name], document.mistakes
    if mistakes.is_unreadable("attributes", name):
        return BrokenAttribute(name, Role.QUASI_IDENTIFIER)
    broken = mistakes.broken("attributes", name) if mistakes.found else set()
    if broken or not isinstance(given, dict) or "role" not in given:
        role = given.get("role") if isinstance(given, dict) and "role" not in broken else None
        known = role if role in list(Role) else Role.QUASI_IDENTIFIER
        if broken - {"role"} or not isinstance(given, dict):
            return BrokenAttribute(name, Role(known))
        given = {**given, "role": known}
    n_before = len(mistakes.found)
    attribute = _declared(name, given, folder, mistakes)
    if broken or len(mistakes.found) > n_before:
        return BrokenAttribute(name, attribute.role, attribute.kind)
    return attribute


def _declared(name: str, given: Mapping[str, Any], folder: Path | None, mistakes: Mistakes) -> Attribute:
    """A column as it is declared; what is wrong with its values goes to ``mistakes``."""
    kind = Kind(given.get("type", "category"))
    path: Where = ("attributes", name)
    attribute = Attribute(
        name,
        Role(given["role"]),
        kind,
        step=given.get("step"),
        values=tuple(given["values"]) if "values" in given else None,
        missing_values=tuple(dict.fromkeys(given.get("missing-values", ()))),
    )
    with mistakes.collect():
        bounds = _bounds(given.get("bounds"), kind, (*path, "bounds"))
        attribute = replace(attribute, bounds=bounds)
        check_bounds(attribute, path)
    with mistakes.collect():
        check_values(attribute, path)
    with mistakes.collect_hierarchy(name):
        hierarchy = _hierarchy(given.get("hierarchy"), (*path, "hierarchy"), folder)
        attribute = replace(attribute, hierarchy=hierarchy)
        if attribute.declaration.is_rule:
            _try_builder(attribute)
        check_tree(attribute, (*path, "hierarchy"))
    return attribute


def _at_its_position(mistake: Mistake, positions: Mapping[str, Sequence[int]]) -> Mistake:
    """A mistake of a policy at the position that its item has in the document, of which not all items fit."""
    key, *rest = mistake.where or ("",)
    if not rest or not isinstance(rest[0], int) or str(key) not in positions:
        return mistake
    return replace(mistake, where=(key, positions[str(key)][rest[0]], *rest[1:]))


def _bounds(given: Sequence[Any] | None, kind: Kind, path: Where) -> tuple[Any, Any] | None:
    if given is None:
        return None
    low, high = given
    return (_days(low, path), _days(high, path)) if kind is Kind.DATE else (low, high)


def _days(text: Any, path: Where) -> int:
    try:
        if _ISO_DATE.fullmatch(text):
            return read_day(text)
    except (TypeError, ValueError):
        pass
    raise Misfit(path, "must be two dates, the earlier one first, such as [2020-01-01, 2024-12-31].")


def _hierarchy(given: Any, path: Where, folder: Path | None) -> Any:
    """A declared tree, or the one in a file, as a :class:`Hierarchy`; a builder as it stands."""
    if isinstance(given, str) and given != "flat":
        if folder is None:
            raise Misfit(path, "the policy of a release names no file; its hierarchies stand in it.")
        return hierarchies.read(_existing(folder / given, path))
    if isinstance(given, Mapping) and "tree" in given:
        return Hierarchy.from_tree(given["tree"])
    if isinstance(given, Mapping):
        ((word, parameter),) = given.items()
        return {word: int(parameter) if word in ("mask", "balanced") else parameter}
    return given


def _existing(file: Path, path: Where) -> Path:
    try:
        found = file.is_file()
    except (OSError, ValueError):
        found = False
    if not found:
        raise Misfit(
            path, f"there is no file {str(file.absolute())!r}; a path is relative to the policy file."
        )
    return file


def _try_builder(attribute: Attribute) -> None:
    """Build a small hierarchy of no rows, so that a wrong parameter is found before a table is opened."""
    is_number = attribute.kind is Kind.NUMBER
    (replace(attribute, bounds=(0, 1), step=None) if is_number else attribute).build_hierarchy(())


def _requirement(item: Mapping[str, Any], _position: int) -> Requirement:
    ((word, given),) = item.items()
    return REQUIREMENTS[word].from_policy(given)


def _placed_task(item: Mapping[str, Any], position: int) -> Task:
    try:
        return _task(item)
    except PolicyError as error:
        raise Misfit(("workload", position, next(iter(item))), str(error)) from None


def _task(item: Mapping[str, Any]) -> Task:
    ((word, given),) = item.items()
    if word == Aggregate.word:
        return Aggregate(given)
    if word == Select.word:
        return (
            Select(given) if isinstance(given, str) else Select(given["where"], weight=given.get("weight", 1))
        )
    options: Mapping[str, Any] = {"target": given} if isinstance(given, str) else given
    targets = options["targets" if "targets" in options else "target"]
    features, weight = options.get("features"), options.get("weight", 1)
    if word == Classify.word:
        return Classify(targets, joint=options.get("joint", False), features=features, weight=weight)
    return Regress(targets, features=features, weight=weight)


def _rows(output: Mapping[str, Any], method: MethodOptions) -> str:
    if "rows" in output and not method.publishes_counts:
        raise Misfit(("output", "rows"), "only diffgen publishes counts or expanded rows; leave it out.")
    return str(output.get("rows", COUNTS))


def _method(given: str | Mapping[str, Any], schema: Schema, folder: Path | None) -> MethodOptions:
    name, options = (given, {}) if isinstance(given, str) else next(iter(given.items()))
    return OPTIONS[name].of(options or {}, schema, None if folder is None else str(folder))
