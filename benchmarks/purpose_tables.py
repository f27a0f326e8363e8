"""Studies of purposes that the mixed score was not chosen on: several classes, numbers, selections.

The score was chosen on census and on Pennsylvania's people in ACS with two classes each; of these none is here but
``acs42 income``, on which regression was looked at first. Rows are divided as in ``loss_tables``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from loss_tables import CLASS, ROW, Column, Number, Study, divide, folder, load_adult
from numpy.typing import NDArray

from sfumato.randomness import seeded

N_SELECTIONS, N_ASKED = 8, 2
LEAST_SHARE, GREATEST_SHARE = 0.01, 0.2

ACS_NUMBERS = ("AGEP", "SCHL", "WKHP")
ACS_NAMES = ("AGEP", "SEX", "RAC1P", "HISP", "MAR", "SCHL", "COW", "CIT", "WKHP", "PUMA")
ACS_SIZES = (50_000, 20_000)


@dataclass(frozen=True)
class Selection:
    """Rows with certain values in some columns: a range of numbers, or some of the categories."""

    asked: Mapping[str, tuple[int, int] | tuple[str, ...]]

    def as_policy(self) -> str:
        return " and ".join(map(write_condition, self.asked, self.asked.values()))

    def matches(self, rows: pd.DataFrame) -> NDArray[np.bool_]:
        return np.logical_and.reduce(
            [
                rows[name].between(*values) if isinstance(values[0], int) else rows[name].isin(values)
                for name, values in self.asked.items()
            ]
        )


def write_condition(name: str, values: tuple[Any, ...]) -> str:
    if isinstance(values[0], int):
        return f'"{name}" between {values[0]} and {values[1]}'
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f'"{name}" in ({quoted})'


def draw_selections(study: Study) -> list[Selection]:
    """Random selections on two columns, of 1 to 20% of the released rows each; the same for every release."""
    random, found = seeded(18), []
    while len(found) < N_SELECTIONS:
        names = random.choice(list(study.columns), N_ASKED, replace=False)
        one = Selection({str(name): draw_values(study.columns[name], random) for name in names})
        if all(one.asked.values()) and LEAST_SHARE <= one.matches(study.released).mean() <= GREATEST_SHARE:
            found.append(one)
    return found


def draw_values(column: Column, random: np.random.Generator) -> tuple[Any, ...]:
    if isinstance(column, Number):
        low, high = np.sort(random.integers(column.low, column.high + 1, 2)).tolist()
        return int(low), int(high)
    return tuple(leaf for leaf in column.leaves if random.random() < 0.5)


# ---- tables --------------------------------------------------------------------------------------------------


def load_acs(
    name: str,
    state: int,
    target: Callable[[pd.DataFrame], pd.Series],
    *,
    task: str = "classify",
    without: Sequence[str] = (),
    kept: Callable[[pd.DataFrame], pd.Series] | None = None,
) -> Study:
    """Adults of a state; the target's own column is no quasi-identifier."""
    table = pd.read_parquet(folder() / "acs_pums_2024" / f"p_{state}.parquet")
    table = table[table["AGEP"] >= 18]
    table = table if kept is None else table[kept(table)]
    table = table.fillna({"COW": 0, "WKHP": 0, "PINCP": 0})
    names = [column for column in ACS_NAMES if column not in without]
    numbers = tuple(column for column in ACS_NUMBERS if column not in without)
    study = divide(name, table, target(table), names, numbers, masked=("PUMA",), sizes=ACS_SIZES)
    return replace(study, task=task)


def income_band(table: pd.DataFrame) -> pd.Series:
    bands = pd.cut(
        table["PINCP"].astype(float), [-np.inf, 20_000, 50_000, 100_000, np.inf], labels=list("abcd")
    )
    return bands.astype(str)


def as_number(name: str) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda table: table[name].astype("int64")


def as_class(name: str) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda table: table[name].astype(int).astype(str)


def load_cmc(name: str, target: str, *, task: str, without: Sequence[str] = ()) -> Study:
    table = pd.read_csv(folder() / "cmc" / "cmc.csv")
    numbers = ("wife_age", "wife_education", "husband_education", "num_children", "living_standard")
    names = [*numbers, "wife_religion", "wife_working", "husband_occupation", "media_exposure"]
    own = table[target] if task == "regress" else table[target].astype(str)
    study = divide(
        name,
        table,
        own,
        [column for column in names if column not in without],
        tuple(column for column in numbers if column not in without),
        sizes=(982, 491),
    )
    return replace(study, task=task)


def load_adult_for(name: str, target: str, *, task: str = "classify") -> Study:
    """Adult as ``loss_tables`` divides it, with another target."""
    study = load_adult(target)
    columns = {column: own for column, own in study.columns.items() if column != target}
    rows = [part[[*columns, CLASS, ROW]] for part in (study.released, study.test)]
    return replace(study, name=name, released=rows[0], test=rows[1], columns=columns, task=task)


def is_known(name: str) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda table: table[name].notna()


CLASSES: dict[str, Callable[[], Study]] = {
    "cmc method (3)": lambda: load_cmc("cmc method (3)", "contraceptive_method", task="classify"),
    "adult marital (7)": lambda: load_adult_for("adult marital (7)", "marital-status"),
    "adult occupation (14)": lambda: load_adult_for("adult occupation (14)", "occupation"),
    "acs39 income (4)": lambda: load_acs("acs39 income (4)", 39, income_band),
    "acs36 worker (9)": lambda: load_acs(
        "acs36 worker (9)", 36, as_class("COW"), without=["COW"], kept=is_known("COW")
    ),
    "acs17 marital (5)": lambda: load_acs("acs17 marital (5)", 17, as_class("MAR"), without=["MAR"]),
}
NUMBERS: dict[str, Callable[[], Study]] = {
    "cmc children": lambda: load_cmc(
        "cmc children", "num_children", task="regress", without=["num_children"]
    ),
    "adult hours": lambda: load_adult_for("adult hours", "hours-per-week", task="regress"),
    "acs39 poverty": lambda: load_acs(
        "acs39 poverty", 39, as_number("POVPIP"), task="regress", kept=is_known("POVPIP")
    ),
    "acs36 income": lambda: load_acs("acs36 income", 36, as_number("PINCP"), task="regress"),
    "acs13 hours": lambda: load_acs(
        "acs13 hours", 13, as_number("WKHP"), task="regress", without=["WKHP"], kept=is_known("WKHP")
    ),
}
SELECTED: dict[str, Callable[[], Study]] = {
    "adult salary": lambda: replace(load_adult(), name="adult salary"),
    "acs39 income": lambda: load_acs("acs39 income", 39, lambda table: table["PINCP"] > 50_000),
    "acs36 income > 50k": lambda: load_acs("acs36 income > 50k", 36, lambda table: table["PINCP"] > 50_000),
}
FIRST_LOOKED_AT: dict[str, Callable[[], Study]] = {
    "acs42 income": lambda: load_acs("acs42 income", 42, as_number("PINCP"), task="regress"),
    "acs42 poverty": lambda: load_acs(
        "acs42 poverty", 42, as_number("POVPIP"), task="regress", kept=is_known("POVPIP")
    ),
    "acs42 income (4)": lambda: load_acs("acs42 income (4)", 42, income_band),
}
"""Tables on which settings may be chosen."""
