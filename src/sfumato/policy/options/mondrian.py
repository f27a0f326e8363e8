"""Mondrian in a policy: how it splits, and how a table larger than memory is divided [LDR08]."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from sfumato.errors import short
from sfumato.policy.mistakes import Misfit, Mistakes
from sfumato.policy.model import check, read
from sfumato.policy.options.method import MethodOptions, RestOfPolicy
from sfumato.policy.output import BOXES, COVERING, GRID, Narrowing
from sfumato.policy.rules import Amount, ChoiceRule, ColumnNames, Flag, NumberRule, Whole
from sfumato.policy.schema import Role, Schema, declared_column
from sfumato.policy.workload import Classify, Regress, Select, Task
from sfumato.policy.yaml import Where

if TYPE_CHECKING:
    from sfumato.policy.unit import Unit

TUNED, PAPER = "tuned", "paper"
"""Mondrian as it serves best, or as it was published."""
AUTO, LIST, NO_LIST = "auto", "list", "none"
"""What is done with the groups of the tree: a list of cells is tried, or not."""
MOST_ROWS_REFINED = 2**18
"""Rows up to which ``refine: auto`` tries a list."""
WEIGHT_OF_LOSS = 0.1
"""How much loss counts beside tasks where the policy does not say."""
MOST_CLASSES_MIXED = 2
"""Classes up to which a label is served by the mixed score unless the policy asks for it."""
ROTHKO_T, ROTHKO_S, NO_FALLBACK = "rothko-t", "rothko-s", "none"
METHOD: Where = ("method", "mondrian")


class Criterion(StrEnum):
    """What splits are chosen by. A policy may name the first two; the others follow from its workload."""

    LOSS = "loss"
    """Information that is kept, for the bits that it takes."""
    MEDIAN = "median"
    """The widest attribute, at its median [LDR08]."""
    MIXED = "mixed"
    """The tasks of the workload, with loss beside them; selections first, by themselves."""
    TASKS = "tasks"
    """The tasks of the workload alone: InfoGain, Regression, Selection [LDR08]."""


@dataclass(frozen=True, slots=True)
class MondrianOptions(MethodOptions):
    """How Mondrian splits, and from ``scale`` on what decides on splits of a large table [LDR08, section 5].

    ``criterion``, ``rest`` and ``loss_weight`` are None where the policy leaves them out. A ``sample`` below 1 is a share
    of the rows.

    >>> MondrianOptions(variant="paper", median_below_gain=0.01).as_policy()
    {'mondrian': {'variant': 'paper', 'median-below-gain': 0.01, 'standardize': False}}
    >>> MondrianOptions(scale="rothko-s", sample=0.1).as_policy()
    {'mondrian': {'standardize': False, 'scale': 'rothko-s', 'sample': 0.1}}
    """

    variant: Annotated[
        str,
        ChoiceRule(
            "tuned: groups lose little and serve the workload; paper: Mondrian as it was published, for every workload.",
            words=(TUNED, PAPER),
        ),
    ] = TUNED
    criterion: Annotated[
        str | None,
        ChoiceRule(
            "What splits are chosen by, whatever the workload: the information that they keep (loss), or the median of "
            "the widest column (median). Without it the tasks of the workload decide, and loss where there are none.",
            words=(str(Criterion.LOSS), str(Criterion.MEDIAN)),
        ),
    ] = None
    rest: Annotated[
        bool | None,
        Flag(
            "Whether rows that are too few to form groups of their own may be left together when others are told apart; "
            "true but for the median."
        ),
    ] = None
    loss_weight: Annotated[
        float | None,
        NumberRule(
            "How much loss counts beside the tasks of the workload, 0.1 if not given; 0 leaves the tasks alone. Given, "
            "it also asks for loss where the tasks would decide alone: classes of more than two values, and selections "
            "beside targets.",
            least=0, says="must be a number of at least 0, such as 0.1.",
        ),
    ] = None  # fmt: skip
    chance: Annotated[
        bool, Flag("Whether a task counts only as far as a split serves it better than chance would.")
    ] = True
    refine: Annotated[
        str,
        ChoiceRule(
            "Whether a list of cells takes the place of the tree's groups where it loses less: list, none, or auto, "
            "which is list without a workload up to 262,144 rows, unless the policy asks for a sample or limits "
            "rows-in-memory.",
            words=(AUTO, LIST, NO_LIST),
        ),
    ] = AUTO
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
    narrows_cells: ClassVar[bool] = True
    may_leave_rows_out: ClassVar[bool] = True

    @classmethod
    def of(cls, given: Mapping[str, Any], _schema: Schema, _folder: str | None) -> MondrianOptions:
        """From what a policy says."""
        return read(cls, given, METHOD)

    @classmethod
    def keep_sound(cls, given: Mapping[str, Any], broken: Collection[str | int]) -> Mapping[str, Any] | None:
        """The options that fit."""
        return {key: value for key, value in given.items() if key not in broken}

    @classmethod
    def complain(cls, given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Keys that do not go together: those of one variant with the other, and those of loss with the median."""
        if given.get("variant") == PAPER:
            for key in _NOT_OF_PAPER:
                if key in given:
                    yield (
                        (key,),
                        "variant: paper is Mondrian as published, without it; leave out one of the two.",
                    )
            return
        if "median-below-gain" in given:
            yield ("median-below-gain",), "only variant: paper has it; add variant: paper, or leave it out."
        if given.get("criterion") == Criterion.MEDIAN:
            if given.get("rest") is True:
                yield ("rest",), "the median leaves no rest; leave it out, or use criterion: loss."
            if given.get("refine") == LIST:
                yield ("refine",), "a list refines what criterion: loss made; leave it out, or use that."
        if given.get("refine") == LIST:
            if given.get("scale") == ROTHKO_S:
                yield (
                    ("refine",),
                    "a list is made of all rows, not of a sample; leave it out, or use rothko-t.",
                )
            if "rows-in-memory" in given:
                yield (
                    ("refine",),
                    "a list needs up to 1,048,576 rows in memory at once; leave it out, or rows-in-memory.",
                )
        if "criterion" in given:
            for key in _WITH_TASKS:
                if key in given:
                    yield (key,), "criterion decides in place of the tasks; leave out one of the two."

    def criterion_for(
        self, workload: Sequence[Task], *, n_classes: int = 0, has_cells: bool = False
    ) -> Criterion:
        """What splits are chosen by, for these tasks; the label with the most classes has ``n_classes``.

        Unless the policy gives a weight to loss, the tasks decide alone where a class has more than two values, and where
        selections stand beside targets: there the mixed score predicted worse on some of the tables that it was not
        chosen on (docs/policy.md). So they always do where features outside the quasi-identifiers help to predict a
        target (``has_cells``).

        >>> MondrianOptions().criterion_for(()), MondrianOptions(variant="paper").criterion_for(())
        (<Criterion.LOSS: 'loss'>, <Criterion.MEDIAN: 'median'>)
        >>> age = [Select("age >= 40")]
        >>> MondrianOptions().criterion_for(age), MondrianOptions(variant="paper").criterion_for(age)
        (<Criterion.MIXED: 'mixed'>, <Criterion.TASKS: 'tasks'>)
        >>> MondrianOptions(criterion="median").criterion_for(age)
        <Criterion.MEDIAN: 'median'>
        >>> job = [Classify("job")]
        >>> MondrianOptions().criterion_for(job, n_classes=2), MondrianOptions().criterion_for(job, n_classes=3)
        (<Criterion.MIXED: 'mixed'>, <Criterion.TASKS: 'tasks'>)
        >>> MondrianOptions().criterion_for([*age, *job]), MondrianOptions(loss_weight=0.1).criterion_for([*age, *job])
        (<Criterion.TASKS: 'tasks'>, <Criterion.MIXED: 'mixed'>)
        """
        if self.criterion is not None:
            return Criterion(self.criterion)
        is_paper = self.variant == PAPER
        if not has_tasks(workload):
            return Criterion.MEDIAN if is_paper else Criterion.LOSS
        is_mixed = n_classes <= MOST_CLASSES_MIXED and not _selects_and_predicts(workload)
        by_tasks = has_cells or not (is_mixed or self.loss_weight is not None)
        return Criterion.TASKS if is_paper or by_tasks else Criterion.MIXED

    @property
    def weight_of_loss(self) -> float:
        """How much loss counts beside the tasks.

        >>> MondrianOptions().weight_of_loss, MondrianOptions(loss_weight=0).weight_of_loss
        (0.1, 0)
        """
        return WEIGHT_OF_LOSS if self.loss_weight is None else self.loss_weight

    def overrides(self, workload: Sequence[Task]) -> bool:
        """Does the criterion decide in place of these tasks?

        >>> MondrianOptions(criterion="loss").overrides([Classify("income")]), MondrianOptions().overrides([])
        (True, False)
        """
        return self.criterion is not None and has_tasks(workload)

    def has_rest(self, workload: Sequence[Task], *, n_classes: int = 0, has_cells: bool = False) -> bool:
        """May a split leave rows together that are too few to be told apart? See ``criterion_for``.

        >>> MondrianOptions().has_rest(()), MondrianOptions(rest=False).has_rest(())
        (True, False)
        >>> MondrianOptions(criterion="median").has_rest(()), MondrianOptions(variant="paper").has_rest(())
        (False, False)
        """
        criterion = self.criterion_for(workload, n_classes=n_classes, has_cells=has_cells)
        knows_rest = criterion in (Criterion.LOSS, Criterion.MIXED)
        return knows_rest and self.rest is not False

    def refines(self, workload: Sequence[Task], n_rows: int) -> bool:
        """Is a list of cells tried in place of the groups of the tree?

        >>> MondrianOptions().refines((), 2**18), MondrianOptions().refines((), 2**18 + 1)
        (True, False)
        >>> MondrianOptions(refine="list").refines((), 10**9), MondrianOptions().refines([Classify("job")], 100)
        (True, False)
        >>> MondrianOptions(rows_in_memory=100).refines((), 200)
        False
        """
        if self.refine != AUTO:
            return self.refine == LIST
        is_loss = self.criterion_for(workload) is Criterion.LOSS and not has_tasks(workload)
        return is_loss and n_rows <= MOST_ROWS_REFINED and self.scale == ROTHKO_T and not self.rows_in_memory

    @property
    def numbers(self) -> Narrowing:
        """What ranges of numbers are narrowed to where the policy does not say.

        >>> MondrianOptions().numbers, MondrianOptions(variant="paper").numbers
        (Narrowing(kind='grid', slices=32), Narrowing(kind='boxes', slices=None))
        """
        return Narrowing(BOXES if self.variant == PAPER else GRID)

    @property
    def without_tasks(self) -> str:
        if self.criterion_for(()) is Criterion.MEDIAN:
            return "no particular task: boxes are halved along their widest side"
        return "no particular task: cells tell as much as they can"

    @property
    def flags_missing(self) -> bool:
        return self.variant != PAPER

    def object_to_weights(self) -> str | None:
        if self.variant == PAPER:
            return "variant: paper does not look at what a column loses; leave out one of the two."
        if self.criterion == Criterion.MEDIAN:
            return "criterion: median does not look at what a column loses; leave it out, or use criterion: loss."
        return None

    def object_to_unit(self, unit: Unit) -> str | None:  # noqa: ARG002 - every method is asked
        return None

    def object_to_suppression(self) -> str | None:
        if self.scale == ROTHKO_S:
            return (
                "rothko-s splits by a sample, and which rows are left out is decided by counts of all; "
                "leave it out, or use rothko-t."
            )
        return None

    def without_workload(self) -> MondrianOptions:
        """The options without those that ask for a task."""
        return replace(self, loss_weight=None, chance=True, refine=AUTO, median_below_gain=None)

    def as_policy(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for option in fields(self):
            given = getattr(self, option.name)
            if option.name == "standardize" or given != option.default:
                options[option.name.replace("_", "-")] = list(given) if isinstance(given, tuple) else given
        return {self.name: options}

    def check(self, policy: RestOfPolicy, mistakes: Mistakes) -> None:
        """Every option makes sense, with the tasks and the output, too, and only quasi-identifiers are split."""
        for name in self.split_only or ():
            with mistakes.collect():
                _check_splittable(name, policy.schema)
        wrong = list(check(self, METHOD))
        mistakes.found += wrong
        if not wrong:
            self._check_tasks(policy.workload, mistakes)
        if self.variant == PAPER:
            _check_paper(policy, mistakes)

    def _check_tasks(self, workload: Sequence[Task], mistakes: Mistakes) -> None:
        """The options that need a task have one, and a list has none beside it."""
        for key, is_given in (("loss-weight", self.loss_weight is not None), ("chance", not self.chance)):
            with mistakes.collect():
                if is_given and not any(isinstance(task, Classify | Regress) for task in workload):
                    raise Misfit(
                        (*METHOD, key),
                        "it is about tasks that classify or regress, and the workload has none; leave it out.",
                    )
        with mistakes.collect():
            if self.median_below_gain is not None and not _classifies(workload):
                raise Misfit(
                    (*METHOD, "median-below-gain"),
                    "it needs a task to classify, such as classify: income; leave it out.",
                )
        with mistakes.collect():
            if self.refine == LIST and has_tasks(workload):
                raise Misfit(
                    (*METHOD, "refine"),
                    "a list knows nothing of tasks that classify, regress or select; leave out one of the two.",
                )


_NOT_OF_PAPER = ("criterion", "rest", "loss-weight", "chance", "refine")
"""Keys that would change what was published."""
_WITH_TASKS = ("loss-weight", "chance")
"""Keys about what decides beside loss."""


def has_tasks(workload: Sequence[Task]) -> bool:
    """Do these tasks have a say in splits? Statistics of groups have none.

    >>> has_tasks([Select("age >= 40")]), has_tasks([])
    (True, False)
    """
    return any(isinstance(task, Classify | Regress | Select) for task in workload)


def _selects_and_predicts(workload: Sequence[Task]) -> bool:
    selects = any(isinstance(task, Select) for task in workload)
    return selects and any(isinstance(task, Classify | Regress) for task in workload)


def _classifies(workload: Sequence[Task]) -> bool:
    return any(isinstance(task, Classify) for task in workload)


def _check_paper(policy: RestOfPolicy, mistakes: Mistakes) -> None:
    """Cells look as published: ranges are boxes of the tree, and there are no rests to exclude anything from."""
    with mistakes.collect():
        if policy.numbers is not None and policy.numbers.kind != BOXES:
            raise Misfit(
                ("output", "numbers"),
                "variant: paper publishes the boxes of its tree; leave it out, or say boxes.",
            )
    with mistakes.collect():
        if policy.rest_labels not in (None, COVERING):
            raise Misfit(("output", "rest-labels"), "variant: paper leaves no rests to label; leave it out.")


def _check_splittable(name: str, schema: Schema) -> None:
    path: Where = (*METHOD, "split-only")
    attribute = declared_column(name, schema, path)
    if attribute.role is not Role.QUASI_IDENTIFIER:
        raise Misfit(
            path,
            f"column {short(name)} has the role {attribute.role}, and only quasi-identifiers are split; "
            "leave it out.",
        )
