"""The policy: what the columns are, what must hold of every group, and what the release is for.

A :class:`Policy` is one checked value, whether it was read from a YAML document
(:meth:`Policy.read`), taken from a certificate (:meth:`Policy.from_dict`) or put together in code.
:mod:`sfumato.policy.file` and ``shape`` know how the document is spelled, ``reading`` what it means, and ``checks`` what
must hold of the values together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from sfumato import notebook
from sfumato.errors import InternalError, PolicyError, nearest, number_of
from sfumato.policy import checks, yaml
from sfumato.policy import file as policy_file
from sfumato.policy.days import as_date
from sfumato.policy.mistakes import Misfit, Mistake, Mistakes, Origin, PolicyMistakes
from sfumato.policy.options import MethodOptions
from sfumato.policy.options.mondrian import MondrianOptions
from sfumato.policy.output import COUNTS, ESCAPE, KEEP, Output
from sfumato.policy.reading import make_policy
from sfumato.policy.requirements import Requirement
from sfumato.policy.schema import Attribute, Kind, Schema
from sfumato.policy.workload import STATISTICS, Aggregate, Classify, Predict, Regress, Select, Task
from sfumato.policy.yaml import short

MISSING = "own-value"
"""How missing quasi-identifiers are matched: they are a value of their own."""

MOST_NAMED = 10
"""Columns that an error names; of more, the number is said."""

Options = TypeVar("Options", bound=MethodOptions)


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
    origin: Origin = field(default_factory=Origin, compare=False, repr=False)
    """The file, and the lines of its columns, so that what a table lacks is told with its line."""

    def __post_init__(self) -> None:
        if self.output in list(Output):
            object.__setattr__(self, "output", Output(self.output))
        mistakes = Mistakes(checks.find_wrong_types(self))
        if not mistakes.found:
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
    def escapes_formulas(self) -> bool:
        """Do the files of the release hold ' before text that a spreadsheet would run?"""
        return self.formulas == ESCAPE

    @property
    def has_counts(self) -> bool:
        """Does a published row stand for as many rows as its count says?"""
        return self.method.publishes_counts and self.rows == COUNTS

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
        return make_policy(cls, policy_file.read(path), Path(path).parent)

    @classmethod
    def parse(cls, text: str | bytes, folder: str | Path | None = ".") -> Policy:
        """The policy in the text of a YAML document; without a ``folder`` it may name no file."""
        return make_policy(cls, policy_file.load(text), None if folder is None else Path(folder))

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], folder: str | Path | None = ".") -> Policy:
        """The policy in plain mappings and lists, laid out as the YAML document is; see ``parse``."""
        return make_policy(cls, policy_file.from_plain(mapping), None if folder is None else Path(folder))

    @classmethod
    def of_release(cls, path: str | Path) -> Policy:
        """The policy in a file of a release folder, whoever made it: it is complete in itself and names no file."""
        return make_policy(cls, policy_file.read(path), None)

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
                **({"rows": self.rows} if self.method.publishes_counts else {}),
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
    if attribute.hierarchy is not None:
        plain["hierarchy"] = attribute.hierarchy.as_policy()
    return plain


def _bound_as_plain(bound: float, kind: Kind) -> float | str:
    return as_date(bound).isoformat() if kind is Kind.DATE else bound
