"""Mondrian in a policy: how it splits, and how a table larger than memory is divided [LDR08]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

from sfumato.errors import short
from sfumato.policy.mistakes import Misfit, Mistakes
from sfumato.policy.model import check, read
from sfumato.policy.options.method import MethodOptions, RestOfPolicy
from sfumato.policy.rules import Amount, ChoiceRule, ColumnNames, Flag, NumberRule, Whole
from sfumato.policy.schema import Role, Schema, declared_column
from sfumato.policy.yaml import Where

ROTHKO_T, ROTHKO_S, NO_FALLBACK = "rothko-t", "rothko-s", "none"
METHOD: Where = ("method", "mondrian")


@dataclass(frozen=True, slots=True)
class MondrianOptions(MethodOptions):
    """How Mondrian splits, and from ``scale`` on what decides on splits of a large table [LDR08, section 5].

    A ``sample`` below 1 is a share of the rows.

    >>> MondrianOptions(median_below_gain=0.01).as_policy()
    {'mondrian': {'median-below-gain': 0.01, 'standardize': False}}
    >>> MondrianOptions(scale="rothko-s", sample=0.1).as_policy()
    {'mondrian': {'standardize': False, 'scale': 'rothko-s', 'sample': 0.1}}
    """

    split_only: Annotated[
        tuple[str, ...] | None,
        ColumnNames(
            "The quasi-identifiers that may be split; the others are published as one range for all."
        ),
    ] = None
    median_below_gain: Annotated[
        float | None,
        NumberRule(
            "Split at the median where no split gains more than this in entropy.",
            least=0, most=1_000_000_000, says="must be a number from 0 to 1e9, such as 0.01.",
        ),
    ] = None  # fmt: skip
    standardize: Annotated[bool, Flag("Divide the score of each target by its value on the whole table.")] = (
        False
    )
    scale: Annotated[
        str,
        ChoiceRule(
            "What decides on splits: exact counts of all rows (rothko-t), or a sample of them first (rothko-s).",
            words=(ROTHKO_T, ROTHKO_S),
        ),
    ] = ROTHKO_T
    rows_in_memory: Annotated[
        int | None,
        Whole(
            "The most rows that are held in memory at once.",
            least=1, says="must be a whole number of at least 1, such as 1000000.",
        ),
    ] = None  # fmt: skip
    frequency_groups: Annotated[
        int | None,
        Whole(
            "How many nodes are counted in one pass.",
            least=1, says="must be a whole number of at least 1, such as 8.",
        ),
    ] = None  # fmt: skip
    sample: Annotated[
        float | None,
        Amount(
            "How many rows, or what share of them, are drawn for rothko-s; as many as fit in memory if not given.",
            above=0, says="must be a number of rows, such as 100000, or a share of them below 1, such as 0.1.",
        ),
    ] = None  # fmt: skip
    alpha: Annotated[
        float,
        NumberRule(
            "The risk, per split, that a sample wrongly allows it.",
            above=0, below=1, says="must be between 0 and 1, such as 0.05.",
        ),
    ] = 0.05  # fmt: skip
    tests: Annotated[bool, Flag("Whether a split found on a sample is tested before it is taken.")] = True
    max_height: Annotated[
        int | None,
        Whole(
            "The greatest height of the tree that is grown on a sample.",
            least=1, says="must be a whole number of at least 1, such as 8.",
        ),
    ] = None  # fmt: skip
    fallback: Annotated[
        str, ChoiceRule("What happens where a sample decides nothing.", words=(ROTHKO_T, NO_FALLBACK))
    ] = ROTHKO_T
    meaning: ClassVar[str] = "Recursive splits, local to each group."
    name: ClassVar[str] = "mondrian"
    reads_workload: ClassVar[bool] = False

    @classmethod
    def of(cls, given: Mapping[str, Any], _schema: Schema, _folder: str | None) -> MondrianOptions:
        """From what a policy says."""
        return read(cls, given, METHOD)

    @classmethod
    def keep_sound(cls, given: Mapping[str, Any], broken: Collection[str | int]) -> Mapping[str, Any] | None:
        """The options that fit."""
        return {key: value for key, value in given.items() if key not in broken}

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for option in fields(self):
            given = getattr(self, option.name)
            if option.name == "standardize" or given != option.default:
                options[option.name.replace("_", "-")] = list(given) if isinstance(given, tuple) else given
        return {self.name: options}

    def check(self, policy: RestOfPolicy, mistakes: Mistakes) -> None:
        """Every option makes sense, and only quasi-identifiers are split."""
        for name in self.split_only or ():
            with mistakes.collect():
                _check_splittable(name, policy.schema)
        mistakes.found += check(self, METHOD)


def _check_splittable(name: str, schema: Schema) -> None:
    path: Where = (*METHOD, "split-only")
    attribute = declared_column(name, schema, path)
    if attribute.role is not Role.QUASI_IDENTIFIER:
        raise Misfit(
            path,
            f"column {short(name)} has the role {attribute.role}, and only quasi-identifiers are split; "
            "leave it out.",
        )
