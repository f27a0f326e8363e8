"""The tables on which information loss is measured: which rows are released, and what a policy says of their columns.

Rows are permuted by a seeded generator after filtering; the first are released, the next are test rows. Adult keeps its
own division. Numbers have the least and greatest released value as bounds and a step of 1, Adult's age 17 to 90.
Adult's hierarchies are ARX's; all other categories are flat, but for the codes of ACS's areas, of which digits are
masked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as File
from typing import Any

import numpy as np
import pandas as pd

from sfumato.randomness import seeded

ROW = "row"
"""The column that says which row a published row was; a role of its own, and no quasi-identifier."""
CLASS = "is_positive"
"""The class, yes or no; in other studies the class among several, or the number, that is to be predicted."""

Path = tuple[str, ...]
"""A leaf of a hierarchy: the labels from the root down to it."""


@dataclass(frozen=True)
class Number:
    """A quasi-identifier of whole numbers."""

    low: int
    high: int

    def as_policy(self) -> dict[str, Any]:
        return {"role": "quasi-identifier", "type": "number", "bounds": [self.low, self.high], "step": 1}


@dataclass(frozen=True)
class Category:
    """A quasi-identifier with a hierarchy: ``paths`` of all leaves, and what a policy says of it."""

    paths: tuple[Path, ...]
    hierarchy: Any = None

    def as_policy(self) -> dict[str, Any]:
        declared = {} if self.hierarchy is None else {"hierarchy": self.hierarchy}
        return {"role": "quasi-identifier", "type": "category", **declared}

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        return tuple(path[-1] for path in self.paths)

    @cached_property
    def covered(self) -> dict[str, np.ndarray]:
        """Which leaves each label stands for."""
        found: dict[str, np.ndarray] = {}
        for leaf, path in enumerate(self.paths):
            for label in path:
                found.setdefault(label, np.zeros(len(self.paths), dtype=bool))[leaf] = True
        return found


Column = Number | Category


@dataclass(frozen=True)
class Study:
    """A table: its released rows, its test rows and its quasi-identifiers; ``task`` is what a model is to do."""

    name: str
    released: pd.DataFrame
    test: pd.DataFrame
    columns: dict[str, Column]
    task: str = "classify"

    def policy(
        self, k: int, *, method: Any, purpose: bool = False, output: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """What a policy says; with ``purpose`` the class is to be predicted."""
        attributes = {name: column.as_policy() for name, column in self.columns.items()}
        target = {"role": "other"} if self.task == "classify" else {"role": "other", "type": "number"}
        attributes |= {CLASS: target, ROW: {"role": "other", "type": "number", "passes": "unique"}}
        return {
            "attributes": attributes,
            "require": [{"k-anonymity": k}],
            "workload": [{self.task: CLASS}] if purpose else [],
            "method": method,
            **({"output": output} if output else {}),
        }


def folder() -> File:
    """Where the real tables are; the environment variable SFUMATO_DATA says so."""
    if "SFUMATO_DATA" not in os.environ:
        raise SystemExit("Set SFUMATO_DATA to the folder of the real tables.")
    return File(os.environ["SFUMATO_DATA"])


def load_census() -> Study:
    table = pd.read_parquet(folder() / "census_income_kdd" / "census_income_kdd.parquet")
    table = table[table["age"] >= 16]
    flat = "class_of_worker education marital_stat major_industry_code major_occupation_code race hispanic_origin sex"
    names = ["age", *flat.split(), "country_of_birth_self"]
    return divide(
        "census", table, table["income_class"] == "50000+.", names, ("age",), sizes=(70_000, 20_000)
    )


def load_acs() -> Study:
    table = pd.read_parquet(folder() / "acs_pums_2024" / "p_42.parquet")
    table = table[table["AGEP"] >= 18].fillna({"COW": 0, "WKHP": 0, "PINCP": 0})
    names = ["AGEP", "SEX", "RAC1P", "HISP", "MAR", "SCHL", "COW", "CIT", "WKHP", "PUMA"]
    numbers = ("AGEP", "SCHL", "WKHP")
    return divide(
        "acs", table, table["PINCP"] > 50_000, names, numbers, masked=("PUMA",), sizes=(72_000, 20_000)
    )


def load_cmc() -> Study:
    table = pd.read_csv(folder() / "cmc" / "cmc.csv")
    numbers = ("wife_age", "wife_education", "husband_education", "num_children", "living_standard")
    names = [
        *numbers[:4],
        "wife_religion",
        "wife_working",
        "husband_occupation",
        "living_standard",
        "media_exposure",
    ]
    return divide("cmc", table, table["contraceptive_method"] == 1, names, numbers, sizes=(982, 491))


def load_adult(target: str = "salary-class") -> Study:
    table = pd.read_csv(folder() / "adult" / "adult.csv.gz", keep_default_na=False)
    names = ["age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country"]
    parts = []
    for part in (table[:32_561], table[32_561:]):
        complete = part[(part[names] != "?").all(axis=1)]
        own = complete[target] == ">50K" if target == "salary-class" else complete[target]
        parts.append(keep(complete, own, names, ("age",)))
    columns: dict[str, Column] = {name: read_arx(name) for name in names if name != "age"}
    columns["age"] = Number(17, 90)
    return Study("adult", parts[0], parts[1], {name: columns[name] for name in names})


LOADERS: dict[str, Callable[[], Study]] = {
    "adult": load_adult,
    "census": load_census,
    "acs": load_acs,
    "cmc": load_cmc,
}


def divide(
    name: str,
    table: pd.DataFrame,
    target: pd.Series,
    names: Sequence[str],
    numbers: Sequence[str],
    *,
    sizes: tuple[int, int],
    masked: Sequence[str] = (),
) -> Study:
    """The first permuted rows are released, the next are test rows."""
    order = seeded(1).permutation(len(table))
    kept = keep(table, target, names, numbers).iloc[order].reset_index(drop=True)
    n_released, n_test = sizes
    released, test = kept[:n_released].copy(), kept[n_released : n_released + n_test].copy()
    released[ROW] = np.arange(n_released)
    columns: dict[str, Column] = {}
    for column in names:
        cells = released[column]
        if column in numbers:
            columns[column] = Number(int(cells.min()), int(cells.max()))
        else:
            columns[column] = describe_category(sorted(set(cells)), is_masked=column in masked)
    return Study(name, released, test.reset_index(drop=True), columns)


def keep(
    table: pd.DataFrame, target: pd.Series, names: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame:
    """The quasi-identifiers as whole numbers or texts, the target, and the number of the row.

    A target that is true or false becomes yes or no.
    """
    kept = {name: table[name].astype("int64" if name in numbers else str).to_numpy() for name in names}
    own = (
        np.where(target.to_numpy(), "yes", "no") if pd.api.types.is_bool_dtype(target) else target.to_numpy()
    )
    return pd.DataFrame({**kept, CLASS: own, ROW: np.arange(len(table))})


def describe_category(values: Sequence[str], *, is_masked: bool) -> Category:
    if not is_masked:
        return Category(tuple(("*", value) for value in values))
    length = len(values[0])
    prefixes = [[value[:n] + "*" * (length - n) for n in range(1, length)] for value in values]
    paths = [("*", *prefix, value) for prefix, value in zip(prefixes, values, strict=True)]
    return Category(tuple(paths), {"mask": length})


def read_arx(name: str) -> Category:
    """One of ARX's hierarchies: a line per leaf, from the leaf up to the root."""
    file = folder() / "adult_hierarchies" / "arx" / f"adult_hierarchy_{name}.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    return Category(tuple(tuple(reversed(line.split(";"))) for line in lines), str(file))
