"""The policy: what the columns are, what must hold of every group, and what the release is for.

A :class:`Policy` is one checked value, whether it was read from a YAML document
(:meth:`Policy.read`), taken from a certificate (:meth:`Policy.from_dict`) or put together in code.
:mod:`sfumato.policy.file` knows how the document is spelled; here is what it means.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from sfumato import notebook
from sfumato.errors import PolicyError, nearest, number_of
from sfumato.policy import file as policy_file
from sfumato.policy import predicate, yaml
from sfumato.policy.column_names import COUNT, bound_names
from sfumato.policy.days import as_date, read_day
from sfumato.policy.decimals import read_exactly
from sfumato.policy.file import (
    BrokenAttribute,
    Document,
    declared_column,
    is_number,
    json_schema,
    sentence_of,
)
from sfumato.policy.hierarchy import tree as hierarchies
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.mistakes import Misfit, Mistake, Mistakes, Origin, PolicyMistakes
from sfumato.policy.options import diffgen, risk_utility
from sfumato.policy.options.diffgen import COUNTS, EXPANDED, Cut, DiffGenOptions, exact_epsilon
from sfumato.policy.options.risk_utility import RiskUtilityOptions
from sfumato.policy.requirements import REQUIREMENTS, KAnonymity, Requirement
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import STATISTICS, Aggregate, Classify, Predict, Regress, Select, Task
from sfumato.policy.yaml import Where, short

__all__ = [
    "DiffGenOptions",
    "Method",
    "MondrianOptions",
    "Output",
    "Policy",
    "RiskUtilityOptions",
    "TdsOptions",
    "json_schema",
]

MISSING = "own-value"
"""How missing quasi-identifiers are matched: they are a value of their own."""

MAX_HEIGHT = 90
"""Levels of a hierarchy: the policy of a release holds the tree itself, and YAML is not read any deeper."""

MOST_NAMED = 10
"""Columns that an error names; of more, the number is said."""

MAX_TITLE = 200
"""Characters of a title: more is no heading."""

T = TypeVar("T")

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Output(StrEnum):
    """What the published cell of a number looks like: a label, its two bounds, or both.

    A summary is a label with statistics of the group beside it.
    """

    LABELS = "labels"
    BOUNDS = "bounds"
    BOTH = "both"
    SUMMARY = "summary"

    @property
    def has_labels(self) -> bool:
        return self is not Output.BOUNDS

    @property
    def has_bounds(self) -> bool:
        return self in (Output.BOUNDS, Output.BOTH)


KEEP, ESCAPE = "keep", "escape"
ROTHKO_T, ROTHKO_S, NO_FALLBACK = "rothko-t", "rothko-s", "none"


@dataclass(frozen=True, slots=True)
class MondrianOptions:
    """How Mondrian splits, and from ``scale`` on how a table larger than memory is divided [LDR08, section 5].

    A ``sample`` below 1 is a share of the rows.

    >>> MondrianOptions(median_below_gain=0.01).as_policy()
    {'mondrian': {'median-below-gain': 0.01, 'standardize': False}}
    >>> MondrianOptions(scale="rothko-s", sample=0.1).as_policy()
    {'mondrian': {'standardize': False, 'scale': 'rothko-s', 'sample': 0.1}}
    """

    split_only: tuple[str, ...] | None = None
    median_below_gain: float | None = None
    standardize: bool = False
    scale: str = ROTHKO_T
    rows_in_memory: int | None = None
    frequency_groups: int | None = None
    sample: float | None = None
    alpha: float = 0.05
    tests: bool = True
    max_height: int | None = None
    fallback: str = ROTHKO_T
    name: ClassVar[str] = "mondrian"

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for option in fields(self):
            given = getattr(self, option.name)
            if option.name == "standardize" or given != option.default:
                options[option.name.replace("_", "-")] = list(given) if isinstance(given, tuple) else given
        return {self.name: options}


@dataclass(frozen=True, slots=True)
class TdsOptions:
    """Top-down specialization has no options.

    >>> TdsOptions().as_policy()
    {'tds': {}}
    """

    name: ClassVar[str] = "tds"

    def as_policy(self) -> dict[str, Any]:
        return {self.name: {}}


Method = MondrianOptions | TdsOptions | DiffGenOptions | RiskUtilityOptions


@dataclass(frozen=True, slots=True, repr=False)
class Policy:
    """Everything that a release is made by, checked once.

    Bounds of a date column are days since 1970-01-01, as Arrow counts them.

    >>> policy = Policy.parse("{attributes: {age: {role: quasi-identifier}}, require: [k-anonymity: 5]}")
    >>> policy.requirements, policy.output
    ((KAnonymity(k=5),), <Output.LABELS: 'labels'>)
    """

    schema: Schema
    requirements: tuple[Requirement, ...] = ()
    workload: tuple[Task, ...] = ()
    method: Method = field(default_factory=MondrianOptions)
    output: Output = Output.LABELS
    keeps_recoding: bool = True
    """Does the release say how further rows are recoded?"""
    rows: str = COUNTS
    """DiffGen: one row per cell and class with its count, or as many rows as counted (``EXPANDED``)."""
    title: str | None = None
    """What the report is headed with."""
    formulas: str = KEEP
    """Text cells that spreadsheets would run as formulas: kept, or escaped in every file (``ESCAPE``)."""
    origin: Origin = field(default_factory=Origin, compare=False, repr=False)
    """The file, and the lines of its columns, so that what a table lacks is told with its line."""

    def __post_init__(self) -> None:
        if self.output in list(Output):
            object.__setattr__(self, "output", Output(self.output))
        mistakes = Mistakes(_wrong_types(self))
        if not mistakes.found:
            if self.output is Output.LABELS and self._aggregates:
                object.__setattr__(self, "output", Output.SUMMARY)
            _collect_mistakes(self, mistakes)
        if len(mistakes.found) == 1 and mistakes.found[0].kind is PolicyError:
            raise Misfit(mistakes.found[0].where, mistakes.found[0].sentence)
        if mistakes.found:
            raise PolicyMistakes(mistakes.found)

    def __repr__(self) -> str:
        return f"<Policy for {number_of(len(self.schema.attributes), 'column')}: {self.promise}, by {self.method.name}>"

    def _repr_html_(self) -> str:
        lines = [(item.name, str(item.role), str(item.kind)) for item in self.schema]
        tasks = [f"Made for: {notebook.worded(task.as_policy())}." for task in self.workload]
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
        if isinstance(self.method, DiffGenOptions):
            return f"epsilon {self.method.epsilon}"
        if isinstance(self.method, RiskUtilityOptions):
            return "a utility and a risk for each row"
        return required or "nothing"

    @property
    def is_private(self) -> bool:
        """Is the release differentially private? Then nothing may depend on a table but through a mechanism."""
        if isinstance(self.method, RiskUtilityOptions):
            return self.method.is_private
        return isinstance(self.method, DiffGenOptions)

    @property
    def escapes_formulas(self) -> bool:
        """Do the files of the release hold ' before text that a spreadsheet would run?"""
        return self.formulas == ESCAPE

    @property
    def has_counts(self) -> bool:
        """Does a published row stand for as many rows as its count says?"""
        return isinstance(self.method, DiffGenOptions) and self.rows == COUNTS

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
        return _policy(policy_file.read(path), Path(path).parent)

    @classmethod
    def parse(cls, text: str | bytes, folder: str | Path | None = ".") -> Policy:
        """The policy in the text of a YAML document; without a ``folder`` it may name no file."""
        return _policy(policy_file.load(text), None if folder is None else Path(folder))

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], folder: str | Path | None = ".") -> Policy:
        """The policy in plain mappings and lists, laid out as the YAML document is; see ``parse``."""
        return _policy(policy_file.from_plain(mapping), None if folder is None else Path(folder))

    @classmethod
    def of_release(cls, path: str | Path) -> Policy:
        """The policy in a file of a release folder, whoever made it: it is complete in itself and names no file."""
        return _policy(policy_file.read(path), None)

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
            "output": {
                "values": str(self.output),
                **({"rows": self.rows} if isinstance(self.method, DiffGenOptions) else {}),
                **({} if self.keeps_recoding else {"recoding": False}),
                **({} if self.formulas == KEEP else {"formulas": self.formulas}),
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
        table, named = tuple(names), self.schema.names()
        in_table, in_policy = frozenset(table), frozenset(named)
        lacking = [name for name in named if name not in in_table]
        near = {name: nearest(name, table) for name in lacking[:MOST_NAMED]}
        missing = [_lacking(name, near.get(name, [])) for name in lacking]
        meant = {word for words in near.values() for word in words}
        unnamed = [name for name in table if name not in in_policy and name not in meant]
        if unnamed:
            missing.append(Mistake((), _unnamed(unnamed)))
        if len(missing) > 1:
            raise PolicyMistakes(missing, self.origin)
        if lacking:
            line = self.origin.line(("attributes", lacking[0]))
            at = "" if line is None else f" (line {line})"
            raise PolicyError(
                f"The table has no column {short(lacking[0])} that the policy names{at}.{_hint(near[lacking[0]])}"
            )
        if unnamed:
            raise PolicyError(_unnamed(unnamed))


def _lacking(name: str, near: Sequence[str]) -> Mistake:
    return Mistake(("attributes", name), f"the table has no such column.{_hint(near)}")


def _hint(near: Sequence[str]) -> str:
    if near:
        return f" Did you mean {near[0]!r}?"
    return " Check how it is spelled, or leave it out of the policy."


def _unnamed(names: Sequence[str]) -> str:
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


# --- from plain data to values ----------------------------------------------------------------------------


def _policy(document: Document, folder: Path | None) -> Policy:
    """The policy of a document, or one error with everything that is wrong with it."""
    data, mistakes = document.data, document.mistakes
    schema = Schema(tuple(_attribute(document, name, folder) for name in data["attributes"]))
    method: Method = MondrianOptions()
    with mistakes.collect():
        method = _method(_sound_method(document), schema, folder)
    requirements = _items(document, "require", _requirement)
    tasks = _items(document, "workload", _placed_task)
    if mistakes.is_broken("workload") and not isinstance(method, MondrianOptions):
        method = MondrianOptions()  # what the method asks of its tasks cannot be judged
    output = {} if mistakes.is_broken("output") else data.get("output", {})
    rows = COUNTS
    if not mistakes.is_broken("method"):
        with mistakes.collect():
            rows = _rows(output, method)
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
    given, mistakes = document.data.get("method", MondrianOptions.name), document.mistakes
    if not mistakes.is_broken("method"):
        return given  # type: ignore[no-any-return]  # the schema holds of it
    name = next(iter(given)) if isinstance(given, dict) and len(given) == 1 else ""
    if name not in (MondrianOptions.name, DiffGenOptions.name) or not isinstance(given[name], dict):
        return MondrianOptions.name
    if mistakes.is_unreadable("method") or mistakes.is_unreadable("method", name):
        return MondrianOptions.name
    broken = mistakes.broken("method", name)
    sound = {key: value for key, value in given[name].items() if key not in broken}
    if name == DiffGenOptions.name:
        sound = {
            "epsilon": 1,
            **{key: value for key, value in sound.items() if key in ("epsilon", "max-cells")},
        }
    return {name: sound}


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
        _check_bounds(attribute, path)
    with mistakes.collect():
        _check_values(attribute, path)
    with mistakes.collect_hierarchy(name):
        hierarchy = _hierarchy(given.get("hierarchy"), (*path, "hierarchy"), folder)
        attribute = replace(attribute, hierarchy=hierarchy)
        if isinstance(attribute.hierarchy, Mapping):
            _try_builder(attribute)
        _check_tree(attribute, (*path, "hierarchy"))
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
    hierarchies.build(replace(attribute, bounds=(0, 1), step=None) if is_number else attribute, ())


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


def _rows(output: Mapping[str, Any], method: Method) -> str:
    if "rows" in output and not isinstance(method, DiffGenOptions):
        raise Misfit(("output", "rows"), "only diffgen publishes counts or expanded rows; leave it out.")
    return str(output.get("rows", COUNTS))


def _method(given: str | Mapping[str, Any], schema: Schema, folder: Path | None) -> Method:
    name, options = (given, {}) if isinstance(given, str) else next(iter(given.items()))
    if name == DiffGenOptions.name:
        return _diffgen(options or {}, schema)
    if name == RiskUtilityOptions.name:
        return RiskUtilityOptions.of(options or {}, None if folder is None else str(folder))
    return TdsOptions() if name == TdsOptions.name else _mondrian(options or {})


def _diffgen(options: Mapping[str, Any], schema: Schema) -> DiffGenOptions:
    given = {name.replace("-", "_"): option for name, option in options.items()}
    if "epsilon" not in given:
        raise Misfit(
            ("method",),
            "diffgen needs the privacy budget epsilon, such as method: {diffgen: {epsilon: 1.0}}.",
        )
    given["epsilon"] = exact_epsilon(given["epsilon"])
    for name in ("specializations", "max_cells"):
        if name in given:
            given[name] = int(given[name])
    if "cuts" in given:
        given["cuts"] = {name: _cut(cut, name, schema) for name, cut in given["cuts"].items()}
    return DiffGenOptions(**given)


def _cut(given: str | Sequence[Any], name: str, schema: Schema) -> Cut:
    """A cut as it is declared; what a number lists are numbers, and all else are texts."""
    if isinstance(given, str):
        return given
    attribute = declared_column(name, schema, ("method", DiffGenOptions.name, "cuts"))
    is_number = attribute.kind is Kind.NUMBER and attribute.is_ordered
    return tuple(yaml.core(item) if is_number and item is not None else item for item in given)


def _mondrian(options: Mapping[str, Any]) -> MondrianOptions:
    given = {name.replace("-", "_"): option for name, option in options.items()}
    if given.get("split_only") is not None:
        given["split_only"] = tuple(given["split_only"])
    for name in ("rows_in_memory", "frequency_groups"):
        if name in given:
            given[name] = int(given[name])
    return MondrianOptions(**given)


# --- from values to plain data ----------------------------------------------------------------------------


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
    if isinstance(attribute.hierarchy, Hierarchy):
        plain["hierarchy"] = {"tree": attribute.hierarchy.as_tree()}
    elif attribute.hierarchy is not None:
        plain["hierarchy"] = copy.deepcopy(attribute.hierarchy)
    return plain


def _bound_as_plain(bound: float, kind: Kind) -> float | str:
    return as_date(bound).isoformat() if kind is Kind.DATE else bound


# --- what must hold of the values -------------------------------------------------------------------------


def _wrong_types(policy: Policy) -> Iterator[Mistake]:
    """What is no schema, no requirement or no task at all, in the words of the published schema."""
    if not isinstance(policy.schema, Schema):
        yield Mistake(("attributes",), sentence_of("properties", "attributes"))
    for key, item, given, kinds in (
        ("require", "requirement", policy.requirements, Requirement),
        ("workload", "task", policy.workload, Task),
    ):
        if isinstance(given, str) or not isinstance(given, Sequence):
            yield Mistake((key,), sentence_of("properties", key))
            continue
        for position, one in enumerate(given):
            if not isinstance(one, kinds):
                yield Mistake((key, position), sentence_of("$defs", item))
    if policy.title is not None and not isinstance(policy.title, str):
        yield Mistake(("title",), sentence_of("properties", "title"))
    if not isinstance(policy.method, Method):
        yield Mistake(("method",), "must be the options of a method, such as MondrianOptions().")
    if not isinstance(policy.output, Output):
        yield Mistake(("output", "values"), f"must be one of {', '.join(Output)}.")
    if policy.formulas not in (KEEP, ESCAPE):
        yield Mistake(("output", "formulas"), f"must be {KEEP} or {ESCAPE}.")


def _collect_mistakes(policy: Policy, mistakes: Mistakes) -> None:
    """Everything that is wrong with the values of a policy."""
    schema = policy.schema
    for attribute in schema:
        if not isinstance(attribute, BrokenAttribute):
            _check_attribute(attribute, mistakes)
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
        _check_output(policy)
    with mistakes.collect():
        _check_title(policy.title)
    of_method = Mistakes()
    _check_method(policy, of_method)
    broken = {attribute.name for attribute in schema if isinstance(attribute, BrokenAttribute)}
    known = {mistake.where for mistake in mistakes.found}
    mistakes.found += [
        mistake
        for mistake in of_method.found
        if not (mistake.where[:1] == ("attributes",) and mistake.where[1:2] and mistake.where[1] in broken)
        and mistake.where not in known
    ]


def _check_method(policy: Policy, mistakes: Mistakes) -> None:
    """What a method asks of its options and of the rest of the policy."""
    if isinstance(policy.method, MondrianOptions):
        _check_mondrian(policy.method, policy.schema, mistakes)
    elif isinstance(policy.method, TdsOptions):
        _check_tds(policy, mistakes)
    elif isinstance(policy.method, DiffGenOptions):
        _check_diffgen(policy, policy.method, mistakes)
    else:
        _check_risk_utility(policy, policy.method, mistakes)


def _check_attribute(attribute: Attribute, mistakes: Mistakes) -> None:
    path: Where = ("attributes", attribute.name)
    with mistakes.collect():
        _check_bounds(attribute, path)
    with mistakes.collect():
        _check_values(attribute, path)
    with mistakes.collect():
        _check_tree(attribute, (*path, "hierarchy"))


def _check_bounds(attribute: Attribute, path: Where) -> None:
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
    if not is_number(step) or step <= 0:
        raise Misfit(path, "must be a number above 0.")
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


def _check_values(attribute: Attribute, path: Where) -> None:
    values = attribute.values
    if values is None:
        return
    path = (*path, "values")
    if attribute.kind is not Kind.CATEGORY:
        raise Misfit(path, f"values are for categories; a {attribute.kind} is declared with bounds and step.")
    if not values:
        raise Misfit(path, "must be a list of at least one category, such as [Male, Female].")
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


def _check_tree(attribute: Attribute, path: Where) -> None:
    tree = attribute.hierarchy
    if not isinstance(tree, Hierarchy):
        return
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
        attribute = _published(name, schema, path, "choose another target")
        if isinstance(task, Regress) and attribute.kind is not Kind.NUMBER:
            raise Misfit(path, f"column {short(name)} is not a number; add type: number, or classify it.")
    for name in task.features or ():
        _published(name, schema, (*path, "features"), "leave it out")


def _published(name: str, schema: Schema, path: Where, way_out: str) -> Attribute:
    attribute = declared_column(name, schema, path)
    if not attribute.role.is_published:
        raise Misfit(
            path,
            f"column {short(name)} has the role {attribute.role} and is not published; "
            f"{way_out}, or give it the role other.",
        )
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


def _check_output(policy: Policy) -> None:
    if policy.output.has_bounds and any(isinstance(task, Aggregate) for task in policy.workload):
        raise Misfit(
            ("output", "values"),
            f"an aggregate task publishes labels with a summary beside them, not {policy.output}; "
            "leave out one of the two.",
        )
    if policy.rows not in (COUNTS, EXPANDED):
        raise Misfit(("output", "rows"), f"must be {COUNTS} or {EXPANDED}.")


def _check_title(title: str | None) -> None:
    if title is not None and not (0 < len(title) <= MAX_TITLE and title.isprintable()):
        raise Misfit(("title",), f"must be one line of 1 to {MAX_TITLE} characters, such as Stays of 2024.")


def _check_tds(policy: Policy, mistakes: Mistakes) -> None:
    for position, requirement in enumerate(policy.requirements):
        with mistakes.collect():
            if not isinstance(requirement, KAnonymity):
                raise Misfit(
                    ("require", position, requirement.word),
                    "top-down specialization (tds) keeps k-anonymity only; leave this out, or use mondrian.",
                )
    with mistakes.collect():
        if not any(isinstance(task, Classify) for task in policy.workload):
            raise Misfit(
                ("workload",),
                "top-down specialization (tds) needs a task to classify, such as classify: income; "
                "without one use mondrian.",
            )
    with mistakes.collect():
        if any(task.features is not None for task in policy.predictions):
            raise Misfit(
                ("workload",),
                "top-down specialization (tds) knows no features; leave them out, or use mondrian.",
            )


def _check_diffgen(policy: Policy, method: DiffGenOptions, mistakes: Mistakes) -> None:
    with mistakes.collect():
        diffgen.check_options(method)
    with mistakes.collect():
        if policy.output is Output.SUMMARY and not policy._aggregates:  # noqa: SLF001 - of this module
            raise Misfit(
                ("output", "values"), "diffgen publishes no statistics of groups; use labels, bounds or both."
            )
    target = None
    with mistakes.collect():
        target = diffgen.target_of(policy.workload)
    diffgen.check_declarations(
        policy.schema, policy.requirements, target, _published_by_diffgen(policy), mistakes
    )
    if method.cuts is not None and not mistakes.found:
        with mistakes.collect():
            diffgen.check_cuts(method.cuts, policy.schema, method.max_cells)


def _check_risk_utility(policy: Policy, method: RiskUtilityOptions, mistakes: Mistakes) -> None:
    risk_utility.check_options(method, policy.schema, mistakes)
    with mistakes.collect():
        if policy.output is Output.SUMMARY and not policy.workload:
            raise Misfit(
                ("output", "values"), "risk-utility makes no groups to summarize; use labels, bounds or both."
            )
    risk_utility.check_rest(method, policy.schema, policy.requirements, policy.workload, mistakes)


def _published_by_diffgen(policy: Policy) -> list[str]:
    """The columns of the release."""
    names: list[str] = []
    for attribute in policy.schema.published:
        has_bounds = (
            policy.output.has_bounds and attribute.is_ordered and attribute.role is Role.QUASI_IDENTIFIER
        )
        names += [attribute.name] if policy.output.has_labels or not has_bounds else []
        names += bound_names(attribute.name) if has_bounds else ()
    return [*names, COUNT] if policy.rows == COUNTS else names


def _check_mondrian(method: MondrianOptions, schema: Schema, mistakes: Mistakes) -> None:
    path: Where = ("method", method.name)
    for name in method.split_only or ():
        with mistakes.collect():
            _check_splittable(name, schema, (*path, "split-only"))
    gain, sample = method.median_below_gain, method.sample
    wrong: dict[str, str] = {}
    if gain is not None and not (is_number(gain) and 0 <= gain <= 1e9):
        wrong["median-below-gain"] = "must be a number from 0 to 1e9, such as 0.01."
    for word, number in (("rows-in-memory", method.rows_in_memory), ("max-height", method.max_height),
                         ("frequency-groups", method.frequency_groups)):  # fmt: skip
        if number is not None and not (is_number(number) and number >= 1):
            wrong[word] = "must be a whole number of at least 1."
    if sample is not None and not (
        is_number(sample) and sample > 0 and (sample < 1 or sample == int(sample))
    ):
        wrong["sample"] = "must be a number of rows, such as 100000, or a share of them below 1, such as 0.1."
    if not (is_number(method.alpha) and 0 < method.alpha < 1):
        wrong["alpha"] = "must be between 0 and 1, such as 0.05."
    for word, choice, choices in (("scale", method.scale, (ROTHKO_T, ROTHKO_S)),
                                  ("fallback", method.fallback, (ROTHKO_T, NO_FALLBACK))):  # fmt: skip
        if choice not in choices:
            wrong[word] = f"must be {' or '.join(choices)}."
    mistakes.found += [Mistake((*path, word), sentence) for word, sentence in wrong.items()]


def _check_splittable(name: str, schema: Schema, path: Where) -> None:
    attribute = declared_column(name, schema, path)
    if attribute.role is not Role.QUASI_IDENTIFIER:
        raise Misfit(
            path,
            f"column {short(name)} has the role {attribute.role}, and only quasi-identifiers are split; "
            "leave it out.",
        )
