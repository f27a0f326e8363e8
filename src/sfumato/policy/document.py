"""The policy: what the columns are, what must hold of every group, and what the release is for.

A :class:`Policy` is one checked value, whether it was read from a YAML document
(:meth:`Policy.read`), taken from a certificate (:meth:`Policy.from_dict`) or put together in code.
:mod:`sfumato.policy.file` and ``shape`` know how the document is spelled, and ``checks`` what must hold of the values
together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from sfumato import notebook
from sfumato.errors import InternalError, PolicyError, number_of
from sfumato.policy import checks, yaml
from sfumato.policy import file as policy_file
from sfumato.policy.checks import check_bounds, check_tree, check_values, read_finest
from sfumato.policy.file import Document
from sfumato.policy.hierarchy import tree as hierarchies
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.kinds import as_date, read_day
from sfumato.policy.mistakes import Misfit, Mistake, Mistakes, Origin, PolicyMistakes
from sfumato.policy.options import DEFAULT_METHOD, OPTIONS, MethodOptions
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.output import COUNTS, ESCAPE, EXCLUDING, KEEP, Narrowing, Output
from sfumato.policy.requirements import REQUIREMENTS, Requirement
from sfumato.policy.schema import Attribute, BrokenAttribute, Kind, Role, Schema
from sfumato.policy.shift import Shift
from sfumato.policy.suppress import Suppress
from sfumato.policy.unit import Unit
from sfumato.policy.workload import STATISTICS, Aggregate, Classify, Predict, Regress, Select, Task
from sfumato.policy.yaml import Where

MISSING = "own-value"
"""How missing quasi-identifiers are matched: they are a value of their own."""

Options = TypeVar("Options", bound=MethodOptions)
T = TypeVar("T")

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True, repr=False)
class Policy:
    """What the owner of a table asks for: its columns, requirements, workload, method and output.

    It is read from YAML (:meth:`parse` a text, :meth:`read` a file) or a dict (:meth:`from_dict`), and checked once: a
    ``PolicyError`` names every mistake. Bounds of a date column are days since 1970-01-01, as Arrow counts them.

    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier}}, require: [k-anonymity: 5]}")
    >>> policy.requirements, policy.output
    ((KAnonymity(k=5),), <Output.LABELS: 'labels'>)
    """

    schema: Schema
    requirements: tuple[Requirement, ...] = ()
    workload: tuple[Task, ...] = ()
    method: MethodOptions = field(default_factory=MondrianOptions)
    output: Output = Output.LABELS
    keeps_recoding: bool = True
    """Does the release say how further rows are recoded?"""
    rows: str = COUNTS
    """DiffGen: one row per cell and class with its count, or as many rows as counted (``EXPANDED``)."""
    title: str | None = None
    """What the report is headed with."""
    formulas: str = KEEP
    """Text cells that spreadsheets would run as formulas: kept, or escaped in every file (``ESCAPE``)."""
    numbers: Narrowing | None = None
    """Mondrian: what ranges of numbers are narrowed to, also as a policy writes it; None leaves it to the method."""
    unit: Unit | None = None
    """Whom groups count, also as a policy writes it; None if it does not say: rows."""
    suppress: Suppress | None = None
    """How many rows may be left out; None if it does not say: none."""
    rest_labels: str | None = None
    """Mondrian: whether labels of rests cover (``COVERING``, also if None) or say what they exclude (``EXCLUDING``)."""
    origin: Origin = field(default_factory=Origin, compare=False, repr=False)
    """The file, and the lines of its columns, so that what a table lacks is told with its line."""

    def __post_init__(self) -> None:
        if self.output in list(Output):
            object.__setattr__(self, "output", Output(self.output))
        if isinstance(self.unit, str):
            object.__setattr__(self, "unit", Unit.of(self.unit))
        mistakes = Mistakes(checks.find_wrong_types(self))
        if not mistakes.found:
            if self.numbers is not None:
                object.__setattr__(self, "numbers", Narrowing.of(self.numbers))
            if self.output is Output.LABELS and self._aggregates:
                object.__setattr__(self, "output", Output.SUMMARY)
            checks.collect_mistakes(self, mistakes)
        if len(mistakes.found) == 1 and mistakes.found[0].kind is PolicyError:
            raise Misfit(mistakes.found[0].where, mistakes.found[0].sentence)
        if mistakes.found:
            raise PolicyMistakes(mistakes.found)

    def __repr__(self) -> str:
        return f"<Policy for {number_of(len(self.schema.attributes), 'column')}: {self.promise}, by {self.method.name}>"

    def _repr_html_(self) -> str:
        lines = [(item.name, str(item.role), str(item.kind)) for item in self.schema]
        tasks = [f"Made for: {notebook.describe_item(task.as_policy())}." for task in self.workload]
        return notebook.card(
            self.title or "A policy",
            f"Promises {self.promise}, by {self.method.name}.",
            [("columns", f"{len(lines):,}")],
            notebook.paragraphs(tasks),
            notebook.table(("Column", "Role", "Type"), lines),
        )

    @property
    def promise(self) -> str:
        """What its releases promise, in a few words."""
        required = ", ".join(map(str, self.requirements))
        return self.method.promise or required or "nothing"

    def options_for(self, kind: type[Options]) -> Options:
        """What the policy tells one method, for the method itself and for whoever checks or shows its releases.

        All others ask ``method`` their questions.
        """
        if not isinstance(self.method, kind):
            raise InternalError(f"The policy names another method than {kind.name}.")
        return self.method

    @property
    def is_private(self) -> bool:
        """Is the release differentially private? Then nothing may depend on a table but through a mechanism."""
        return self.method.is_private

    @property
    def person(self) -> str | None:
        """The column that tells one person from another, if groups count people; None if they count rows."""
        return None if self.unit is None else self.unit.column

    @property
    def rows_at_most(self) -> int | None:
        """How many rows of a person a private method reads at most; None if one row is one person."""
        return None if self.unit is None else self.unit.rows_at_most

    @property
    def leaves_rows_out(self) -> bool:
        """May rows be left out of the release?"""
        return self.suppress is not None and self.suppress.leaves_rows_out

    @property
    def escapes_formulas(self) -> bool:
        """Do the files of the release hold ' before text that a spreadsheet would run?"""
        return self.formulas == ESCAPE

    @property
    def has_counts(self) -> bool:
        """Does a published row stand for as many rows as its count says?"""
        return self.method.publishes_counts and self.rows == COUNTS

    @property
    def published_numbers(self) -> Narrowing:
        """What ranges of numbers are narrowed to: as the policy says, or else the method."""
        return self.numbers or self.method.numbers

    @property
    def ordered_without_bounds(self) -> tuple[Attribute, ...]:
        """The quasi-identifiers that thresholds split and whose bounds the table gives."""
        return tuple(a for a in self.schema.quasi_identifiers if a.is_ordered and a.bounds is None)

    @property
    def excludes_in_labels(self) -> bool:
        """Does the label of a rest say what was told apart from it?"""
        return self.rest_labels == EXCLUDING

    @property
    def _aggregates(self) -> tuple[Aggregate, ...]:
        return tuple(task for task in self.workload if isinstance(task, Aggregate))

    @property
    def predictions(self) -> tuple[Predict, ...]:
        """The tasks that have targets."""
        return tuple(task for task in self.workload if isinstance(task, Classify | Regress))

    @property
    def selections(self) -> tuple[Select, ...]:
        return tuple(task for task in self.workload if isinstance(task, Select))

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics of each group that are published: range, mean, both or none."""
        if self.output is not Output.SUMMARY:
            return ()
        asked = {word for task in self._aggregates for word in task.statistics}
        return tuple(word for word in STATISTICS if not asked or word in asked)

    @classmethod
    def read(cls, path: str | Path) -> Policy:
        """The policy in a YAML file; hierarchy files are sought relative to it."""
        return _make_policy(policy_file.read(path), Path(path).parent)

    @classmethod
    def parse(cls, text: str | bytes, folder: str | Path | None = ".") -> Policy:
        """The policy in the text of a YAML document; without a ``folder`` it may name no file."""
        return _make_policy(policy_file.load(text), None if folder is None else Path(folder))

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], folder: str | Path | None = ".") -> Policy:
        """The policy in plain mappings and lists, laid out as the YAML document is; see ``parse``."""
        return _make_policy(policy_file.from_plain(mapping), None if folder is None else Path(folder))

    @classmethod
    def of_release(cls, path: str | Path) -> Policy:
        """The policy in a file of a release folder, whoever made it: it is complete in itself and names no file."""
        return _make_policy(policy_file.read(path), None)

    @classmethod
    def of(cls, given: Policy | Mapping[str, Any] | str | Path) -> Policy:
        """A policy as it is, the one in plain mappings and lists, or the one in a file."""
        if isinstance(given, Policy):
            return given
        if isinstance(given, Mapping):
            return cls.from_dict(given)
        if not isinstance(given, str | PathLike):
            raise PolicyError(
                "A policy is a sf.Policy, a dict laid out as its YAML document, or the path of one."
            )
        return cls.read(given)

    def as_dict(self) -> dict[str, Any]:
        """The policy in plain mappings and lists: every choice spelled out, no outside file needed.

        ``Policy.from_dict(policy.as_dict()) == policy``.
        """
        return {
            **({} if self.title is None else {"title": self.title}),
            "attributes": {attribute.name: _attribute_as_dict(attribute) for attribute in self.schema},
            "require": [requirement.as_policy() for requirement in self.requirements],
            "workload": [task.as_policy() for task in self.workload],
            "method": self.method.as_policy(),
            **({} if self.unit is None else {"unit": self.unit.as_policy()}),
            **({} if self.suppress is None else {"suppress": self.suppress.as_policy()}),
            "output": {
                "values": str(self.output),
                **({"rows": self.rows} if self.method.publishes_counts else {}),
                **({} if self.keeps_recoding else {"recoding": False}),
                **({} if self.formulas == KEEP else {"formulas": self.formulas}),
                **({} if self.numbers is None else {"numbers": self.numbers.as_policy()}),
                **({} if self.rest_labels is None else {"rest-labels": self.rest_labels}),
            },
            "missing": MISSING,
        }

    def to_yaml(self) -> str:
        """``as_dict`` as a YAML document."""
        return yaml.dump(self.as_dict())

    def expand(self, names: Iterable[str]) -> Policy:
        """The policy with its patterns of columns replaced by the columns of a table that they stand for."""
        schema = self.schema.expand(names)
        if schema is self.schema:
            return self
        try:
            return replace(self, schema=schema)
        except (Misfit, PolicyMistakes) as error:
            raise self.origin.error(error.mistakes) from None

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise unless the policy names exactly these columns of a table."""
        checks.check_columns(self.schema, self.origin, names)


# --- to a document ----------------------------------------------------------------------------------------


def _attribute_as_dict(attribute: Attribute) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": str(attribute.role), "type": str(attribute.kind)}
    if attribute.bounds is not None:
        plain["bounds"] = [_bound_as_plain(bound, attribute.kind) for bound in attribute.bounds]
    if attribute.step is not None:
        plain["step"] = attribute.step
    if attribute.values is not None:
        plain["values"] = list(attribute.values)
    if attribute.missing_values:
        plain["missing-values"] = list(attribute.missing_values)
    if attribute.weight != 1:
        plain["weight"] = attribute.weight
    if attribute.finest is not None:
        plain["finest"] = attribute.finest
    if attribute.passes is not None:
        plain["passes"] = attribute.passes
    if attribute.scope is not None:
        plain["scope"] = attribute.scope
    if attribute.shift is not None:
        plain["shift"] = attribute.shift.as_policy()
    if attribute.hierarchy is not None:
        plain["hierarchy"] = attribute.hierarchy.as_policy()
    return plain


def _bound_as_plain(bound: float, kind: Kind) -> float | str:
    return as_date(bound).isoformat() if kind is Kind.DATE else bound


# --- from a document --------------------------------------------------------------------------------------


def _make_policy(document: Document, folder: Path | None) -> Policy:
    """The policy of a document, or one error with everything that is wrong with it.

    Of a part that has mistakes only what is sound is kept, so that the rest is checked all the same, and an author sees
    all mistakes at once. Without a ``folder`` the document may name no file.
    """
    data, mistakes = document.data, document.mistakes
    schema = Schema(tuple(_read_attribute(document, name, folder) for name in data["attributes"]))
    method: MethodOptions = MondrianOptions()
    with mistakes.collect():
        method = _read_method(_keep_sound_method(document), schema, folder)
    requirements = _read_items(document, "require", _read_requirement)
    tasks = _read_items(document, "workload", _read_task_at)
    if mistakes.is_broken("workload"):  # what the method asks of its tasks cannot be checked
        method = method.without_workload() or MondrianOptions()
    output = {} if mistakes.is_broken("output") else data.get("output", {})
    rows = COUNTS
    if not mistakes.is_broken("method"):
        with mistakes.collect():
            rows = _read_rows(output, method)
    try:
        policy = Policy(
            schema=schema,
            requirements=tuple(requirements.values()),
            workload=tuple(tasks.values()),
            method=method,
            output=Output(output.get("values", "labels")),
            keeps_recoding=output.get("recoding", True),
            rows=rows,
            title=None if mistakes.is_broken("title") else data.get("title"),
            formulas=output.get("formulas", KEEP),
            numbers=output.get("numbers"),
            rest_labels=output.get("rest-labels"),
            unit=_read_unit(document),
            suppress=_read_suppress(document),
            origin=document.origin.of_columns(),
        )
    except (Misfit, PolicyMistakes) as error:
        positions = {"require": tuple(requirements), "workload": tuple(tasks)}
        mistakes.found += [_at_its_position(mistake, positions) for mistake in error.mistakes]
    if mistakes.found:
        raise document.origin.error(mistakes.found) from None
    return policy


def _keep_sound_method(document: Document) -> str | Mapping[str, Any]:
    """The method with those of its options that fit, so that the rest of the policy is checked against it."""
    given, mistakes = document.data.get("method", DEFAULT_METHOD), document.mistakes
    if not mistakes.is_broken("method"):
        return given  # type: ignore[no-any-return]  # the schema holds of it
    name = next(iter(given)) if isinstance(given, dict) and len(given) == 1 else ""
    if name not in OPTIONS or not isinstance(given[name], dict):
        return DEFAULT_METHOD
    if mistakes.is_unreadable("method") or mistakes.is_unreadable("method", name):
        return DEFAULT_METHOD
    sound = OPTIONS[name].keep_sound(given[name], mistakes.find_broken("method", name))
    return DEFAULT_METHOD if sound is None else {name: sound}


def _read_items(document: Document, key: str, make: Callable[[Any, int], T]) -> dict[int, T]:
    """The items of a list that fit, by position."""
    made: dict[int, T] = {}
    broken = document.mistakes.find_broken(key)
    given = document.data.get(key, ())
    for position, item in enumerate(given if isinstance(given, list) else ()):
        if position not in broken:
            with document.mistakes.collect():
                made[position] = make(item, position)
    return made


def _read_attribute(document: Document, name: str, folder: Path | None) -> Attribute:
    """A column; a :class:`BrokenAttribute` if anything is wrong with it."""
    given, mistakes = document.data["attributes"][name], document.mistakes
    if mistakes.is_unreadable("attributes", name):
        return BrokenAttribute(name, Role.QUASI_IDENTIFIER)
    broken = mistakes.find_broken("attributes", name) if mistakes.found else set()
    if broken or not isinstance(given, dict) or "role" not in given:
        role = given.get("role") if isinstance(given, dict) and "role" not in broken else None
        known = role if role in list(Role) else Role.QUASI_IDENTIFIER
        if broken - {"role"} or not isinstance(given, dict):
            return BrokenAttribute(name, Role(known))
        given = {**given, "role": known}
    n_before = len(mistakes.found)
    attribute = _declare(name, given, folder, mistakes)
    if broken or len(mistakes.found) > n_before:
        return BrokenAttribute(name, attribute.role, attribute.kind)
    return attribute


def _declare(name: str, given: Mapping[str, Any], folder: Path | None, mistakes: Mistakes) -> Attribute:
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
        weight=given.get("weight", 1),
        passes=given.get("passes"),
        scope=given.get("scope"),
        shift=Shift(**given["shift"]) if given.get("shift") else None,
    )
    with mistakes.collect():
        attribute = replace(attribute, key=_find_key(given.get("key"), (*path, "key"), folder))
    with mistakes.collect():
        bounds = _read_bounds(given.get("bounds"), kind, (*path, "bounds"))
        attribute = replace(attribute, bounds=bounds)
        check_bounds(attribute, path)
    with mistakes.collect():
        check_values(attribute, path)
    with mistakes.collect_hierarchy(name):
        hierarchy = _read_hierarchy(given.get("hierarchy"), (*path, "hierarchy"), folder)
        attribute = replace(attribute, hierarchy=hierarchy)
        if attribute.declaration.is_rule:
            _try_builder(attribute)
        check_tree(attribute, (*path, "hierarchy"))
    with mistakes.collect():
        return read_finest(attribute, given.get("finest"), path)
    return attribute


def _at_its_position(mistake: Mistake, positions: Mapping[str, Sequence[int]]) -> Mistake:
    """A mistake of a policy at the position that its item has in the document, of which not all items fit."""
    key, *rest = mistake.where or ("",)
    if not rest or not isinstance(rest[0], int) or str(key) not in positions:
        return mistake
    return replace(mistake, where=(key, positions[str(key)][rest[0]], *rest[1:]))


def _read_bounds(given: Sequence[Any] | None, kind: Kind, path: Where) -> tuple[Any, Any] | None:
    if given is None:
        return None
    low, high = given
    return (_read_days(low, path), _read_days(high, path)) if kind is Kind.DATE else (low, high)


def _read_days(text: Any, path: Where) -> int:
    try:
        if _ISO_DATE.fullmatch(text):
            return read_day(text)
    except (TypeError, ValueError):
        pass
    raise Misfit(path, "must be two dates, the earlier one first, such as [2020-01-01, 2024-12-31].")


def _read_hierarchy(given: Any, path: Where, folder: Path | None) -> Any:
    """A declared tree, or the one in a file, as a :class:`Hierarchy`; a builder as it stands."""
    if isinstance(given, str) and given != "flat":
        if folder is None:
            raise Misfit(path, "the policy of a release names no file; its hierarchies stand in it.")
        return hierarchies.read(_find_file(folder / given, path))
    if isinstance(given, Mapping) and "tree" in given:
        return Hierarchy.from_tree(given["tree"])
    if isinstance(given, Mapping):
        ((word, parameter),) = given.items()
        return {word: int(parameter) if word in ("mask", "balanced") else parameter}
    return given


def _find_key(given: str | None, path: Where, folder: Path | None) -> str | None:
    """Where the owner's key is; it is not read before it is needed."""
    if given is None:
        return None
    if folder is None:
        raise Misfit(path, "the policy of a release names no file; the key is its owner's alone.")
    return str((folder / given).absolute())


def _find_file(file: Path, path: Where) -> Path:
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


def _read_requirement(item: Mapping[str, Any], _position: int) -> Requirement:
    ((word, given),) = item.items()
    return REQUIREMENTS[word].from_policy(given)


def _read_task_at(item: Mapping[str, Any], position: int) -> Task:
    try:
        return _read_task(item)
    except PolicyError as error:
        raise Misfit(("workload", position, next(iter(item))), str(error)) from None


def _read_task(item: Mapping[str, Any]) -> Task:
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


def _read_rows(output: Mapping[str, Any], method: MethodOptions) -> str:
    if "rows" in output and not method.publishes_counts:
        raise Misfit(("output", "rows"), "only diffgen publishes counts or expanded rows; leave it out.")
    return str(output.get("rows", COUNTS))


def _read_unit(document: Document) -> Unit | None:
    given = None if document.mistakes.is_broken("unit") else document.data.get("unit")
    return None if given is None else Unit.of(given)


def _read_suppress(document: Document) -> Suppress | None:
    given = None if document.mistakes.is_broken("suppress") else document.data.get("suppress")
    return None if given is None else Suppress.of(given)


def _read_method(given: str | Mapping[str, Any], schema: Schema, folder: Path | None) -> MethodOptions:
    name, options = (given, {}) if isinstance(given, str) else next(iter(given.items()))
    return OPTIONS[name].of(options or {}, schema, None if folder is None else str(folder))
