"""The labelling functions of Agrawal et al.: classes C1 to C10 [AGI93], numbers R7 and R10 [LDR08, Table VI].

Departs from the paper: Table II of [LDR08] has slips, which [AGI93] settles. C5 ends in 300K (not 300L);
C7 is .67 (salary + commission) - .2 loan - 20K > 0; C9 is .67 (salary + commission) - 5000 elevel
- .2 loan - 10K > 0. Amounts are whole numbers, so every function is computed in whole hundredths: no
row lies on the wrong side of a limit by round-off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.randomness import Random

Columns = dict[str, NDArray[np.int64]]
"""The attributes of [LDR08, Table I] by name, whole numbers all."""

Band = tuple[int, int]
"""From the first number to the second, both included."""


@dataclass(frozen=True, slots=True)
class Constants:
    """The numbers in one of C1 to C6; those of the papers stand in :data:`PRINTED`.

    Rows are young below the first of ``ages``, old from the second on, else of middle age. The other
    fields hold a band for each of the three, in this order; where a function asks one thing to decide
    between two others (C4, C5), three bands for rows that meet the first, then three for those that do not.
    """

    ages: Band = (40, 60)
    elevel: tuple[Band, ...] = ()
    salary: tuple[Band, ...] = ()
    total: tuple[Band, ...] = ()
    loan: tuple[Band, ...] = ()


RANGES = {
    "ages": (20, 80),
    "elevel": (0, 4),
    "salary": (20_000, 150_000),
    "total": (30_000, 150_000),
    "loan": (0, 500_000),
}
"""The whole range of each attribute, from which its constants are drawn; ``total`` is salary + commission."""


def _thousands(*bands: Band) -> tuple[Band, ...]:
    return tuple((low * 1000, high * 1000) for low, high in bands)


_INCOMES = _thousands((50, 100), (75, 125), (25, 75))
_LEVELS = ((0, 1), (1, 3), (2, 4))

PRINTED = {
    "C1": Constants(),
    "C2": Constants(salary=_INCOMES),
    "C3": Constants(elevel=_LEVELS),
    "C4": Constants(elevel=_LEVELS, salary=_thousands((25, 75), (50, 100), (50, 100)) + _INCOMES),
    "C5": Constants(
        salary=_INCOMES,
        loan=_thousands((100, 300), (200, 400), (300, 500), (200, 400), (300, 500), (100, 300)),
    ),
    "C6": Constants(total=_INCOMES),
}
"""The constants as the papers print them. C7 to C10, R7 and R10 are sums with fixed rates: they have none."""

NUMBERS = ("R7", "R10")
"""Functions that give a number; the others give a class."""

FUNCTIONS = (*PRINTED, "C7", "C8", "C9", "C10", *NUMBERS)


def draw_constants(function: str, random: Random) -> Constants:
    """Constants for C1 to C6, independent and uniform over the range of their attribute [LDR08, section 4.4].

    Both numbers of a band are drawn, and the smaller is its low end; so are the two ages.

    >>> from sfumato.randomness import seeded
    >>> draw_constants("C3", seeded(1))
    Constants(ages=(48, 51), elevel=((3, 4), (0, 0), (4, 4)), salary=(), total=(), loan=())
    """
    if function not in PRINTED:
        raise InputError(f"Function {function} has no constants to draw; {', '.join(PRINTED)} have.")

    def draw(name: str) -> Band:
        low, high = np.sort(random.integers(*RANGES[name], 2, endpoint=True)).tolist()
        return low, high

    def draw_like(name: str) -> tuple[Band, ...]:
        return tuple(draw(name) for _ in getattr(PRINTED[function], name))

    others = [field.name for field in fields(Constants) if field.name != "ages"]
    return Constants(ages=draw("ages"), **{name: draw_like(name) for name in others})


def label_rows(
    function: str, columns: Columns, constants: Constants | None = None
) -> NDArray[np.bool_] | NDArray[np.float64]:
    """Whether each row is of class A; the number itself for R7 and R10.

    Several functions may label the same rows: figure 10 of [LDR08] does so.

    >>> rows = {"age": np.array([39, 40, 60]), "salary": np.array([100_000, 74_999, 25_000])}
    >>> label_rows("C2", rows)
    array([ True, False,  True])
    """
    if function in PRINTED:
        if constants is None:
            constants = PRINTED[function]
        return _BANDED[function](columns, constants, _age_group(columns, constants))
    if constants is not None:
        raise InputError(f"Function {function} takes no constants; {', '.join(PRINTED)} do.")
    if function in NUMBERS:
        return np.asarray(_DISPOSABLE["C" + function[1:]](columns) / 100)
    return np.asarray(_DISPOSABLE[function](columns) > 0)


def _age_group(columns: Columns, constants: Constants) -> NDArray[np.int64]:
    """0 young, 1 of middle age, 2 old."""
    return np.searchsorted(np.array(constants.ages), columns["age"], side="right")


def _within(
    values: NDArray[np.int64], bands: tuple[Band, ...], which: NDArray[np.int64]
) -> NDArray[np.bool_]:
    low, high = np.array(bands).T
    return np.asarray((low[which] <= values) & (values <= high[which]))


def _c1(_columns: Columns, _constants: Constants, age: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(age != 1)


def _c2(columns: Columns, constants: Constants, age: NDArray[np.int64]) -> NDArray[np.bool_]:
    return _within(columns["salary"], constants.salary, age)


def _c3(columns: Columns, constants: Constants, age: NDArray[np.int64]) -> NDArray[np.bool_]:
    return _within(columns["elevel"], constants.elevel, age)


def _c4(columns: Columns, constants: Constants, age: NDArray[np.int64]) -> NDArray[np.bool_]:
    return _within(columns["salary"], constants.salary, age + 3 * ~_c3(columns, constants, age))


def _c5(columns: Columns, constants: Constants, age: NDArray[np.int64]) -> NDArray[np.bool_]:
    return _within(columns["loan"], constants.loan, age + 3 * ~_c2(columns, constants, age))


def _c6(columns: Columns, constants: Constants, age: NDArray[np.int64]) -> NDArray[np.bool_]:
    return _within(columns["salary"] + columns["commission"], constants.total, age)


_BANDED: dict[str, Callable[[Columns, Constants, NDArray[np.int64]], NDArray[np.bool_]]] = {
    "C1": _c1, "C2": _c2, "C3": _c3, "C4": _c4, "C5": _c5, "C6": _c6,
}  # fmt: skip


def _income(columns: Columns) -> NDArray[np.int64]:
    return 67 * (columns["salary"] + columns["commission"])


def _equity(columns: Columns) -> NDArray[np.int64]:
    """In tenths: .1 of the house's value for each year beyond the twentieth."""
    return columns["hvalue"] * np.maximum(columns["hyears"] - 20, 0)


_DISPOSABLE: dict[str, Callable[[Columns], NDArray[np.int64]]] = {
    "C7": lambda row: _income(row) - 20 * row["loan"] - 2_000_000,
    "C8": lambda row: _income(row) - 500_000 * row["elevel"] - 2_000_000,
    "C9": lambda row: _income(row) - 500_000 * row["elevel"] - 20 * row["loan"] - 1_000_000,
    "C10": lambda row: _income(row) - 500_000 * row["elevel"] + 2 * _equity(row) - 1_000_000,
}
"""What is left to spend, in hundredths."""
