"""The shape of a policy's document: what may stand under each key, and the JSON Schema of it all.

What a part means stands with its value class; this is how it is written. ``python -m sfumato.policy.shape`` writes the
schema to ``policy.schema.json``, for editors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from sfumato.errors import did_you_mean
from sfumato.policy import model
from sfumato.policy.hierarchy.declarations import Balanced, Dates, Given, Intervals, Mask
from sfumato.policy.hierarchy.files import MAX_LEAVES
from sfumato.policy.hierarchy.library.codes import WORD as LIBRARY
from sfumato.policy.hierarchy.library.entries import NAMES
from sfumato.policy.kinds import DATE_LEVELS
from sfumato.policy.mistakes import Mistake
from sfumato.policy.model import OneOf, OrNothing, Part
from sfumato.policy.options import METHOD, OPTIONS
from sfumato.policy.output import OutputForm
from sfumato.policy.requirements import REQUIREMENTS, Requirement
from sfumato.policy.requirements.requirement import Parameter
from sfumato.policy.rules import (
    ChoiceRule,
    ColumnName,
    Either,
    Later,
    ListOf,
    MappingOf,
    NumberRule,
    Rule,
    Spelled,
    Text,
    Whole,
    not_one_of,
    refuse,
)
from sfumato.policy.schema import GROUP, RELEASE, UNIQUE, Kind, Role
from sfumato.policy.shift import Shift
from sfumato.policy.suppress import SUPPRESS
from sfumato.policy.unit import UNIT
from sfumato.policy.workload import TASK

MAX_TITLE = 200
"""Characters of a title: more is no heading."""

SCHEMA_FILE = Path(__file__).with_name("policy.schema.json")

# --- columns ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bound(Rule):
    """A number, or a date as a text."""

    says: str = field(default="must be a number or a text.", kw_only=True)

    def accept(self, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            refuse(self.says)
        return value

    def shape(self) -> dict[str, Any]:
        return {"type": ["number", "string"]}


@dataclass(frozen=True, eq=False)
class InlineTree(Rule):
    """A tree of labels; what is wrong inside is found when it is built."""

    def accept(self, value: Any) -> Any:
        if not isinstance(value, dict | list) or not value:
            refuse(self.says)
        return value

    def shape(self) -> dict[str, Any]:
        inside = {"items": {"$ref": "#/$defs/leaf"}, "additionalProperties": {"$ref": "#/$defs/tree"}}
        return {"type": ["object", "array"], "minProperties": 1, "minItems": 1, **inside}


_HIERARCHY = "must be the path of a file, flat, or one builder, such as {mask: 5}."
HIERARCHY = Either(
    "How values are generalized: a file (relative to the policy), flat, or one of the builders below.",
    says=_HIERARCHY,
    one=Text("The path of a file, or flat."),
    other=OneOf(
        says=_HIERARCHY,
        keys={
            Mask.word: Whole(
                "For texts of this many characters, such as zip codes: 53715, 5371*, 537**, ...",
                least=Mask.least,
                says="must be the number of characters, a whole number of at least 1, such as 5.",
            ),
            Dates.word: ListOf(
                "The levels of a date, finest first.",
                says="must be a list of levels, finest first, such as [day, month, year].",
                item=ChoiceRule(words=DATE_LEVELS),
            ),
            Intervals.word: ListOf(
                "The widths of intervals, narrowest first, each a multiple of the one before, counted from the lower "
                "bound.",
                says="must be a list of widths, narrowest first, such as [5, 10, 50].",
                item=NumberRule(above=0, says="must be a number above 0."),
            ),
            Balanced.word: Whole(
                "Intervals made automatically between the bounds, this many children to each parent.",
                least=Balanced.least,
                most=MAX_LEAVES,
                says=f"must be the number of children of a node, a whole number from {Balanced.least} to {MAX_LEAVES}.",
            ),
            LIBRARY: ChoiceRule("A hierarchy that comes with the package, by its name.", words=NAMES),
            Given.word: InlineTree(
                'The tree itself, from the root down: {"*": {North: [a, b], South: {c: null}}}.',
                says='must be a mapping from the root to what stands under it, such as {"*": {North: [a, b]}}.',
            ),
        },
    ),
)

STEP = NumberRule(
    "The distance between neighbouring values of a number, or the days between dates; it divides the range of the "
    "bounds.",
    above=0,
    says="must be a number above 0.",
)
WEIGHT = NumberRule(
    "Mondrian: the price of what this quasi-identifier loses, beside that of the others.",
    above=0,
    says="must be a number above 0, such as 2.",
)
PASSES = ChoiceRule(
    "unique: a sensitive or other column is published as it is though it tells most rows apart, or looks like a direct "
    "identifier.",
    words=(UNIQUE,),
)
VALUES = ListOf(
    "All categories that may stand in the column. Another one is an error.",
    says="must be a list of at least one category, such as [Male, Female].",
    item=Spelled("A text, kept as it is spelled."),
)


@dataclass(frozen=True, slots=True)
class ColumnForm(Part):
    """What a policy says of a column."""

    role: Annotated[
        str,
        ChoiceRule(
            "identifier: removed; quasi-identifier: generalized; sensitive: published, and may need diversity; "
            "pseudonym: published as a code that only the owner's key makes; other: published as it is; drop: removed.",
            words=tuple(map(str, Role)),
        ),
    ]
    type: Annotated[
        str,
        ChoiceRule(
            "How the cells are read. A category is a text; a date is written as 2020-01-31.",
            words=tuple(map(str, Kind)),
        ),
    ] = str(Kind.CATEGORY)
    bounds: Annotated[
        tuple[Any, Any] | None,
        ListOf(
            "The least and the greatest value of a number or a date, publicly known. A cell outside is an error.",
            says="must be two values, the lower one first, such as [0, 110], or [2020-01-01, 2024-12-31] for dates.",
            item=Bound(),
            least=2,
            most=2,
        ),
    ] = None
    step: Annotated[float | None, STEP] = None
    values: Annotated[tuple[str, ...] | None, VALUES] = None
    missing_values: Annotated[
        tuple[str, ...],
        ListOf(
            "Texts that stand for a missing value, beside the empty cell.",
            says='must be a list of texts, such as ["?", NA].',
            item=Spelled("A text, kept as it is spelled."),
            least=0,
        ),
    ] = ()
    hierarchy: Annotated[Any, HIERARCHY] = None
    weight: Annotated[float, WEIGHT] = 1
    finest: Annotated[
        Any,
        Bound(
            "Nothing finer is published of a quasi-identifier: a width of numbers, a unit of the calendar, or the name "
            "or number of a level of its hierarchy, counted from the values up.",
            says="must be a width, a unit such as month, or a level of the hierarchy.",
        ),
    ] = None
    passes: Annotated[str | None, PASSES] = None
    key: Annotated[
        str | None,
        Text(
            "Of a pseudonym: the file with the owner's secret key, relative to the policy. No release holds it."
        ),
    ] = None
    scope: Annotated[
        str | None,
        ChoiceRule(
            "Of a pseudonym. group: another one for each person and group; release: the same wherever a person is, which "
            "links rows across groups.",
            words=(GROUP, RELEASE),
        ),
    ] = None
    shift: Annotated[Any, OrNothing(part=Shift)] = None
    meaning: ClassVar[str] = "One column of the table."
    says: ClassVar[str] = "must be a mapping with a role, such as {role: quasi-identifier}."


# --- requirements -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ParameterRule(Rule):
    """One parameter of a requirement."""

    parameter: Parameter = field(kw_only=True)

    def accept(self, value: Any) -> Any:
        is_whole = self.parameter.kind is int and isinstance(value, float) and value.is_integer()
        given = int(value) if is_whole else value
        if not self.parameter.accepts(given):
            refuse(self._sentence(value))
        return given

    def _sentence(self, value: Any) -> str:
        choices = self.parameter.choices
        return not_one_of(value, choices) if choices else f"{self.parameter.sentence}."

    def shape(self) -> dict[str, Any]:
        return self.parameter.json_schema()


@dataclass(frozen=True, eq=False)
class AskedFor(Rule):
    """What a requirement asks for: its parameters by name, or the only one alone."""

    kind: type[Requirement] = field(kw_only=True)

    def core(self, handler: Any) -> Any:
        rules = {one.word: ParameterRule(parameter=one) for one in self.kind.parameters()}
        required = list(self.kind.json_schema()["required"])
        return model.mapping_core(rules, required, says=self._says(), handler=handler)

    def _says(self) -> str:
        return str(self.kind.json_schema()["errorMessage"])

    def schema(self) -> dict[str, Any]:
        return self.kind.json_schema()


@dataclass(frozen=True, eq=False)
class AskedAlone(AskedFor):
    """A requirement with one number, which stands alone."""

    def core(self, handler: Any) -> Any:
        return Rule.core(self, handler)

    def accept(self, value: Any) -> Any:
        (parameter,) = self.kind.parameters()
        is_whole = isinstance(value, float) and value.is_integer()
        if not parameter.accepts(int(value) if is_whole else value):
            refuse(self._says())
        return value


def _rule_for(kind: type[Requirement]) -> Rule:
    rule = AskedFor if isinstance(kind.example, Mapping) else AskedAlone
    return rule(kind=kind)


LATER = {
    "alpha-k": "k-anonymity, and no sensitive value above a share alpha of a group: {alpha: 0.5, k: 5, of: disease}.",
    "beta-likeness": "No sensitive value gains more than a factor beta in a group: {beta: 1, of: disease}.",
    "delta-disclosure": "The frequency of a sensitive value in a group is near that in the table: "
    "{delta: 1, of: disease}.",
    "delta-presence": "How surely a person of a population is in the table.",
    "k-map": "Every group matches at least k people of a population.",
}
"""Requirements that the format has and this version does not offer yet."""

REQUIREMENT = OneOf(
    "One requirement, by its name.",
    says="must be one requirement with what it asks for, such as k-anonymity: 5, with a dash before each.",
    keys={
        **{word: _rule_for(kind) for word, kind in REQUIREMENTS.items()},
        **{word: Later(meaning) for word, meaning in LATER.items() if word not in REQUIREMENTS},
    },
)

# --- the whole document -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Title(Rule):
    """One printable line, or nothing."""

    def accept(self, value: Any) -> Any:
        if value is not None and not (
            isinstance(value, str) and 0 < len(value) <= MAX_TITLE and value.isprintable()
        ):
            refuse(self.says)
        return value

    def shape(self) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean", "null"], "minLength": 1, "maxLength": MAX_TITLE}


TITLE = Title(
    "What the report is headed with, such as Stays of 2024. Whoever gets the release reads it.",
    says=f"must be one line of 1 to {MAX_TITLE} characters, such as Stays of 2024.",
)
ATTRIBUTES = MappingOf(
    "Every column of the table, by name, or by a pattern such as lab_*: an exact name wins, then the first pattern that "
    "matches, and * takes the rest. A column that is not named here is an error.",
    says="must name every column of the table, each with its role, such as age: {role: quasi-identifier}.",
    value=ColumnForm,
    least=1,
)
REQUIRE = ListOf(
    "What must hold of every published group; all of it is checked. An empty list promises nothing.",
    says="must be a list with a dash before each requirement, such as - k-anonymity: 5; write [] to promise nothing.",
    item=REQUIREMENT,
    least=0,
)
WORKLOAD = ListOf(
    "What the release is for. Without a workload every quasi-identifier is kept as fine as possible.",
    says="must be a list with a dash before each task, such as - classify: income.",
    item=TASK,
    least=0,
)
_NO_REQUIRE = (
    "the key 'require' is missing: list what must hold of every group, such as - k-anonymity: 5, or write require: [] "
    "to promise nothing."
)


@dataclass(frozen=True, slots=True)
class PolicyForm(Part):
    """What stands in the document of a policy."""

    attributes: Annotated[Any, ATTRIBUTES]
    require: Annotated[Any, REQUIRE] = None
    workload: Annotated[Any, WORKLOAD] = None
    method: Annotated[Any, METHOD] = None
    unit: Annotated[Any, UNIT] = None
    suppress: Annotated[Any, SUPPRESS] = None
    output: OutputForm = field(default_factory=OutputForm)
    title: Annotated[str | None, TITLE] = None
    missing: Annotated[
        str,
        ChoiceRule(
            "How a missing quasi-identifier is matched: own-value makes it a value of its own, which matches only "
            "missing.",
            words=("own-value",),
        ),
    ] = "own-value"
    meaning: ClassVar[str] = (
        "What the columns of a table are, what must hold of every published group, and what the release is for."
    )
    says: ClassVar[str] = "must be a mapping."

    @classmethod
    def complain(cls, given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Methods that promise something of groups need to be told what."""
        method = given.get("method")
        named = {method} if isinstance(method, str) else set(method) if isinstance(method, dict) else set()
        promises_itself = any(name in OPTIONS and OPTIONS[name].promises_itself for name in named)
        is_misspelt = any(
            did_you_mean(key, model.rules_of(cls)) == " Did you mean 'require'?" for key in given
        )
        if "require" not in given and not promises_itself and not is_misspelt:
            yield (), _NO_REQUIRE


def find_mistakes(data: Any) -> list[Mistake]:
    """Everything in the document that is not shaped as a policy is, each once."""
    return model.mistakes_in(PolicyForm, data, ())


@cache
def make_schema() -> dict[str, Any]:
    """The JSON Schema of a policy."""
    made = PolicyForm.schema()
    made.pop("errorMessage")
    made["properties"]["require"]["items"] = {"$ref": "#/$defs/requirement"}
    named = [name for name, options in OPTIONS.items() if options.promises_itself]
    says_so = [{"enum": named}, *({"type": "object", "required": [name]} for name in named)]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:sfumato:policy",
        "$comment": "errorMessage: the sentence for a value that does not fit here, also shown by editors. x-later marks "
        "what the format has and this version does not offer yet. Column names, values and labels are texts: a bare 01, "
        "yes or null in their place is read as it is spelled.",
        "title": "Sfumato policy",
        **made,
        "if": {"required": ["method"], "properties": {"method": {"anyOf": says_so}}},
        "else": {"required": ["require"], "errorMessage": _NO_REQUIRE},
        "$defs": {
            "column": ColumnName().schema(),
            "requirement": REQUIREMENT.schema(),
            "tree": {
                "description": "What stands under a node: further nodes, a list of leaves, or null for a leaf.",
                "type": ["object", "array", "null"],
                "items": {"$ref": "#/$defs/leaf"},
                "additionalProperties": {"$ref": "#/$defs/tree"},
                "errorMessage": "must be a mapping of further nodes, a list of leaves, or null for a leaf.",
            },
            "leaf": {
                "description": "A leaf by its label, null for missing values, or a mapping of further nodes.",
                "type": ["string", "number", "boolean", "null", "object"],
                "additionalProperties": {"$ref": "#/$defs/tree"},
                "errorMessage": "must be a label, or a mapping of further nodes.",
            },
        },
    }


if __name__ == "__main__":
    SCHEMA_FILE.write_text(json.dumps(make_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
