"""What the options of every method answer, and what they may ask of the rest of their policy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from sfumato.policy.mistakes import Mistakes
from sfumato.policy.model import Part
from sfumato.policy.output import BOXES, Form, Narrowing, Output

if TYPE_CHECKING:
    from sfumato.policy.requirements import Requirement
    from sfumato.policy.schema import Schema
    from sfumato.policy.unit import Unit
    from sfumato.policy.workload import Task


class RestOfPolicy(Protocol):
    """A policy, as far as its method looks at it."""

    @property
    def schema(self) -> Schema: ...

    @property
    def requirements(self) -> tuple[Requirement, ...]: ...

    @property
    def workload(self) -> tuple[Task, ...]: ...

    @property
    def output(self) -> Output: ...

    @property
    def rows(self) -> str: ...

    @property
    def numbers(self) -> Narrowing | None: ...

    @property
    def rest_labels(self) -> str | None: ...


class MethodOptions(Part):
    """What a method can be told in a policy. Whoever wants to know asks such a question, and not which method it is."""

    __slots__ = ()

    name: ClassVar[str]
    """Its name in a policy."""
    has_recoding: ClassVar[bool] = True
    """Are further rows recoded as these were?"""
    publishes_counts: ClassVar[bool] = False
    """May a published row stand for many?"""
    spends_epsilon: ClassVar[bool] = False
    """Does every release spend an epsilon, which a comparison may vary?"""
    shares_cuts: ClassVar[bool] = False
    """Is a column cut in one way for all rows?"""
    is_row_by_row: ClassVar[bool] = False
    """Has each row a box of its own, whose risk is counted against a side table?"""
    narrows_cells: ClassVar[bool] = False
    """May a policy say what ranges of numbers are narrowed to, and how rests are labelled?"""
    may_leave_rows_out: ClassVar[bool] = False
    """May a policy let rows be left out?"""
    promises_itself: ClassVar[bool] = False
    """May a policy leave out its requirements?"""

    @property
    def form(self) -> Form:
        """What its published rows are."""
        return Form.GROUPS

    @property
    def is_private(self) -> bool:
        """Is the release differentially private?"""
        return False

    @property
    def draws_rows(self) -> bool:
        """Are some of the rows drawn at random, and the others left out?"""
        return False

    @property
    def promise(self) -> str | None:
        """What it promises by itself; None if the requirements say."""
        return None

    @property
    def numbers(self) -> Narrowing:
        """What ranges of numbers are narrowed to where the policy does not say."""
        return Narrowing(BOXES)

    @property
    def flags_missing(self) -> bool:
        """May a column beside two bounds say whether missing is among their values? Else the low one is empty then."""
        return False

    @property
    def public(self) -> tuple[str, ...]:
        """What a private release takes from the options and not from the table, a sentence each."""
        return ()

    @classmethod
    def of(cls, given: Mapping[str, Any], schema: Schema, folder: str | None) -> Self:
        """From what a policy says; files are sought relative to ``folder``, or not at all without one."""
        raise NotImplementedError

    @classmethod
    def keep_sound(cls, given: Mapping[str, Any], broken: Collection[str | int]) -> Mapping[str, Any] | None:
        """As much of the options that fit as the rest of the policy is checked against; None if that is nothing."""
        raise NotImplementedError

    def overrides(self, workload: Sequence[Task]) -> bool:  # noqa: ARG002 - every method is asked
        """Does something else decide in place of these tasks?"""
        return False

    @property
    def without_tasks(self) -> str:
        """What it makes of a table that is for nothing in particular, in words."""
        return "no particular task"

    def object_to_weights(self) -> str | None:
        """Why no column may have a weight; None if each may."""
        return f"{self.name} does not look at what a column loses; leave it out, or use mondrian."

    def object_to_unit(self, unit: Unit) -> str | None:  # noqa: ARG002 - every method is asked
        """Why groups cannot count people; None if they can."""
        return f"{self.name} counts rows, and no people yet; write unit: row, or leave it out."

    def object_to_suppression(self) -> str | None:
        """Why no row may be left out; None if some may."""
        if self.may_leave_rows_out:
            return None
        if self.is_private:
            return (
                "which rows are left out would tell of the people in them, outside the budget; leave it out."
            )
        return f"{self.name} leaves no row out; leave out the key, or use mondrian."

    def without_workload(self) -> Self | None:
        """As much of the options as is checked where the tasks are not known; None if that is nothing."""
        return None

    def check(self, policy: RestOfPolicy, mistakes: Mistakes) -> None:
        """Collect what is wrong with the options, and with the rest of the policy by this method."""
        raise NotImplementedError

    def as_policy(self) -> dict[str, Any]:
        """How a policy writes them."""
        raise NotImplementedError
