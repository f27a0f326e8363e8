"""The unit of a promise: whom groups count, people or rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from sfumato.errors import short
from sfumato.policy.mistakes import Misfit
from sfumato.policy.model import Part, check
from sfumato.policy.rules import ColumnName, Either, Whole, refuse
from sfumato.policy.schema import Role, Schema, declared_column

ROW = "row"
"""What a policy writes where groups count rows, and its owner knows it."""

_SAYS = "must be the column that tells one person from another, such as patient_id, or row."


@dataclass(frozen=True, slots=True)
class Unit(Part):
    """Whom groups count: the people that a column tells apart, or rows.

    >>> Unit.of({"column": "row", "rows-at-most": 4}), Unit.of("row")
    (Unit(column='row', rows_at_most=4), Unit(column=None, rows_at_most=None))
    >>> Unit.of("patient_id").as_policy(), Unit("row").as_policy(), Unit(None).as_policy()
    ('patient_id', {'column': 'row'}, 'row')
    """

    column: Annotated[
        str | None, ColumnName("The column, an identifier or a pseudonym: it is read to count people.")
    ]
    """None: rows."""
    rows_at_most: Annotated[
        int | None,
        Whole(
            "Differentially private methods: at most this many rows of a person are kept, drawn at random.",
            least=1,
            most=1_000_000,
            says="must be how many rows of a person are kept at most, a whole number of at least 1, such as 4.",
        ),
    ] = None
    meaning: ClassVar[str] = "The column that tells one person from another."
    says: ClassVar[str] = _SAYS

    @classmethod
    def of(cls, given: Unit | str | Mapping[str, Any]) -> Unit:
        """From what a policy says, which fits :data:`UNIT`."""
        if isinstance(given, Unit):
            return given
        if isinstance(given, str):
            return cls(None if given == ROW else given)
        most = given.get("rows-at-most")
        return cls(given["column"], None if most is None else int(most))

    @property
    def is_person(self) -> bool:
        """Are people counted, and not rows?"""
        return self.column is not None

    def as_policy(self) -> str | dict[str, Any]:
        """How a policy writes it."""
        if self.column is None:
            return ROW
        if self.rows_at_most is not None:
            return {"column": self.column, "rows-at-most": self.rows_at_most}
        return {"column": self.column} if self.column == ROW else self.column


@dataclass(frozen=True, eq=False)
class _UnitRule(Either):
    """A column, or row; or a column with the most rows of a person."""

    def read(self, given: Any, read_other: Callable[[Any], Any]) -> Any:
        if isinstance(given, list | tuple):
            refuse(self.says)
        return Either.read(self, given, read_other)


UNIT = _UnitRule(
    "The column that tells one person from another: groups then count people, not rows. row: they count rows, and nobody "
    "is warned that an identifier repeats. A column called row is {column: row}.",
    says=_SAYS,
    one=ColumnName(),
    other=Unit,
)

_ROLES = (Role.IDENTIFIER, Role.PSEUDONYM)
"""What the column of a unit may be."""


def check_unit(unit: Unit | None, schema: Schema, *, is_private: bool) -> None:
    """Raise a :class:`Misfit` unless the unit is a column that tells people apart, and is not published."""
    if unit is None:
        return
    for mistake in check(unit, ("unit",)) if unit.is_person else ():
        raise Misfit(mistake.where, mistake.sentence)
    if unit.rows_at_most is not None and not is_private:
        raise Misfit(
            ("unit", "rows-at-most"),
            "only differentially private methods bound the rows of a person; leave it out.",
        )
    if unit.column is None:
        return
    attribute = declared_column(unit.column, schema, ("unit",))
    if attribute.role not in _ROLES:
        raise Misfit(
            ("unit",),
            f"column {short(unit.column)} has the role {attribute.role}, and the column of a unit is an identifier "
            "or a pseudonym; give it that role, or name another column.",
        )


def ask_for_bound(unit: Unit, rows: int = 4) -> str:
    """That a private method needs a bound on the rows of a person.

    >>> ask_for_bound(Unit("case"))
    'differential privacy hides a person only if its rows are bounded; write unit: {column: case, rows-at-most: 4}.'
    """
    return (
        "differential privacy hides a person only if its rows are bounded; "
        f"write unit: {{column: {unit.column}, rows-at-most: {rows}}}."
    )
