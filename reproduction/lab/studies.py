"""The tables of the experiments: each with its attributes, ready to be anonymized in several ways.

Hierarchies are declared in full, so that a value has the same code in every part of a table. Where the
papers do not print one, it is chosen here and stands in docs/reproduction.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from sfumato.examples.agrawal import agrawal, as_column
from sfumato.examples.agrawal_functions import PRINTED, Columns, Constants, draw_constants, label_rows
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.policy.options import MethodOptions
from sfumato.policy.options.mondrian import PAPER, MondrianOptions
from sfumato.policy.options.tds import TdsOptions
from sfumato.policy.requirements import KAnonymity, Requirement
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import Classify, Regress, Task
from sfumato.randomness import Random, seeded_block

CLASS = "class"
WAGE = "wage"

CENSUS_ROWS = 49_657
"""As many as the Census table of [LDR08, section 4.3] has."""

SHARE_BELOW = 0.56
"""Of the rows of that table, the share below the limit of the salary class."""


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """A table, what its columns are, and which of them models predict."""

    name: str
    table: pa.Table
    quasi: tuple[Attribute, ...]
    targets: tuple[Attribute, ...]

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.quasi)

    def schema(self, *, sensitive: str | None = None) -> Schema:
        roles = {sensitive: Role.SENSITIVE}
        targets = (Attribute(a.name, roles.get(a.name, Role.OTHER), a.kind) for a in self.targets)
        return Schema((*self.quasi, *targets))

    def policy(
        self,
        method: str,
        *,
        k: int = 1,
        targets: tuple[str, ...] = (CLASS,),
        require: tuple[Requirement, ...] | None = None,
        sensitive: str | None = None,
    ) -> Policy:
        """One of the paper's algorithms, by its name there; ``require`` takes the place of k-anonymity."""
        workload: dict[str, tuple[Task, ...]] = {
            "InfoGain": (Classify(targets),),
            "TDS": (Classify(targets),),
            "Regression": (Regress(targets),),
            "Median": (),
        }
        options: MethodOptions = TdsOptions() if method == "TDS" else MondrianOptions(variant=PAPER)
        requirements = (KAnonymity(k),) if require is None else require
        return Policy(self.schema(sensitive=sensitive), requirements, workload[method], options)


def number(name: str) -> Attribute:
    return Attribute(name, Role.QUASI_IDENTIFIER, Kind.NUMBER)


def category(name: str, tree: object) -> Attribute:
    hierarchy = tree if isinstance(tree, Hierarchy) else Hierarchy.from_tree(tree)  # type: ignore[arg-type]
    return Attribute(name, Role.QUASI_IDENTIFIER, Kind.CATEGORY, hierarchy=hierarchy)


def target(name: str, kind: Kind = Kind.CATEGORY) -> Attribute:
    return Attribute(name, Role.OTHER, kind)


# ---- Agrawal -------------------------------------------------------------------------------------------

ELEVEL = {"0-1": ["0", "1"], "2-4": ["2", "3", "4"]}
CAR = {f"{low}-{low + 4}": [str(make) for make in range(low, low + 5)] for low in (1, 6, 11, 16)}

VARIED = ("C2", "C4", "C6")
"""The functions of figure 6 whose constants are drawn anew for each pair [LDR08, section 4.4]."""


def agrawal_attributes(*, hierarchies: bool = True) -> tuple[Attribute, ...]:
    """The attributes of [LDR08, Table I]; elevel and car with a hierarchy as in section 4.4, or as numbers."""
    names = ("salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan")
    trees = {"elevel": ELEVEL, "car": CAR} if hierarchies else {}
    return tuple(category(name, trees[name]) if name in trees else number(name) for name in names)


def agrawal_pair(
    functions: dict[str, str], n_rows: int, random: Random, *, vary: tuple[str, ...]
) -> tuple[Study, Study]:
    """Independent training and test rows, with a class column for each of ``functions`` (column: function).

    Constants of the functions in ``vary`` are drawn for the pair, again and again until the training rows
    hold both classes.
    """
    train, test = (_attributes(n_rows, random) for _ in range(2))
    classes: dict[str, tuple[pa.Array, pa.Array]] = {}
    for column, function in functions.items():
        while True:
            constants = draw_constants(function, random) if function in vary else None
            found = label_rows(function, train, constants)
            if 0 < found.sum() < n_rows:
                break
        classes[column] = (as_column(found), as_column(label_rows(function, test, constants)))
    return tuple(  # type: ignore[return-value]  # two
        Study(
            "Agrawal",
            pa.table({**rows, **{column: pair[i] for column, pair in classes.items()}}),
            agrawal_attributes(),
            tuple(target(column) for column in classes),
        )
        for i, rows in enumerate((train, test))
    )


def _attributes(n_rows: int, random: Random) -> Columns:
    table = pa.Table.from_batches(agrawal(n_rows, seed=int(random.integers(2**62)))).drop([CLASS])
    return {name: table[name].to_numpy() for name in table.column_names}


def agrawal_table(n_rows: int, random: Random) -> Study:
    """Rows with their class C2, all attributes numbers."""
    table = pa.Table.from_batches(agrawal(n_rows, seed=int(random.integers(2**62))))
    return Study("Agrawal", table, agrawal_attributes(hierarchies=False), (target(CLASS),))


def c2_predicates(constants: Constants = PRINTED["C2"]) -> tuple[str, str, str]:
    """Function C2 as conditions on age and salary, one for each of its three rectangles."""
    young, old = constants.ages
    ages = (f"age < {young}", f"age >= {young} and age < {old}", f"age >= {old}")
    bands = (f"salary between {low} and {high}" for low, high in constants.salary)
    return tuple(f"{age} and {band}" for age, band in zip(ages, bands, strict=True))  # type: ignore[return-value]


# ---- Census stand-in -----------------------------------------------------------------------------------

REGIONS = {
    "Northeast": ("36", "42"), "Midwest": ("17", "26", "39"), "South": ("12", "13", "37"), "West": ("56",),
}  # fmt: skip
YEARS_OF_SCHOOL = (
    0, 0, 0, *range(1, 12), 12, 12, 12, 12, 13, 14, 16, 18, 19, 21,
)  # fmt: skip
"""Of SCHL 1 to 24: none to grade 11, four codes of twelve years (a college year not ended is none), one year or
more of college, associate, bachelor, master, professional, doctorate."""


def data_folder() -> Path:
    """Where the real tables are; the environment variable SFUMATO_DATA says so."""
    if "SFUMATO_DATA" not in os.environ:
        raise SystemExit("Set SFUMATO_DATA to the folder of the real tables.")
    return Path(os.environ["SFUMATO_DATA"])


PUMAS_TOGETHER = 14.5
"""Neighbours by number that make one area, about: it gives 57 areas, as many values as the paper's Region has."""


@cache
def census(n_rows: int, seed: int, *, few_areas: bool = False) -> Study:
    """Rows of the American Community Survey with wages, drawn at random: the stand-in of the paper's Census.

    With ``few_areas`` the PUMAs of a state (all that the survey has there) are put together by their numbers.
    """
    names = ["STATE", "PUMA", "AGEP", "CIT", "MAR", "SCHL", "SEX", "WKHP", "DIS", "RAC1P", "WAGP"]
    files = sorted((data_folder() / "acs_pums_2024").glob("p_*.parquet"))
    everyone = pyarrow.parquet.read_table(files, columns=names)
    earning = everyone.filter(pc.greater(everyone["WAGP"], 0)).combine_chunks()
    rows = np.sort(seeded_block(seed, 0).choice(earning.num_rows, n_rows, replace=False))
    drawn = earning.take(rows)
    wage = drawn["WAGP"].to_numpy()
    table = pa.table({
        "region": pc.binary_join_element_wise(drawn["STATE"], drawn["PUMA"], "-"),
        "age": drawn["AGEP"],
        "citizenship": drawn["CIT"],
        "marital": drawn["MAR"],
        "education": np.array(YEARS_OF_SCHOOL)[drawn["SCHL"].to_numpy() - 1],
        "sex": drawn["SEX"],
        "hours": drawn["WKHP"],
        "disability": drawn["DIS"],
        "race": drawn["RAC1P"],
        CLASS: np.where(wage < np.quantile(wage, SHARE_BELOW), "low", "high"),
        WAGE: wage,
    })  # fmt: skip
    if few_areas:
        everywhere = pc.unique(pc.binary_join_element_wise(everyone["STATE"], everyone["PUMA"], "-"))
        larger = put_together(everywhere.to_pylist(), PUMAS_TOGETHER)
        named = pa.array([larger[area] for area in table["region"].to_pylist()])
        table = table.set_column(0, "region", named)
    areas = sorted({(area, area[:2]) for area in pc.unique(table["region"]).to_pylist()})
    region = {state: name for name, states in REGIONS.items() for state in states}
    quasi = (
        category(
            "region", Hierarchy.from_levels([(area, state, region[state], "*") for area, state in areas])
        ),
        number("age"),
        category("citizenship", {"born a citizen": ["1", "2", "3"], "other": ["4", "5"]}),
        category("marital", {"1": None, "was married": ["2", "3", "4"], "5": None}),
        number("education"),
        category("sex", ["1", "2"]),
        number("hours"),
        category("disability", ["1", "2"]),
        category("race", [str(code) for code in range(1, 10)]),
    )
    return Study("Census", table, quasi, (target(CLASS), target(WAGE, Kind.NUMBER)))


def put_together(areas: Iterable[str], n_together: float) -> dict[str, str]:
    """The area that each of these becomes a part of: neighbours by number, of one state, equally many or nearly.

    >>> put_together(["36-1", "36-2", "36-3", "36-4", "56-1"], 2)
    {'36-1': '36-1 to 36-2', '36-2': '36-1 to 36-2', '36-3': '36-3 to 36-4', '36-4': '36-3 to 36-4', '56-1': '56-1'}
    """
    out = {}
    for _, of_state in groupby(sorted(areas), key=lambda area: area[:2]):
        names = list(of_state)
        for part in np.array_split(names, max(1, round(len(names) / n_together))):
            label = str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}"
            out.update(dict.fromkeys(part.tolist(), label))
    return out


# ---- Contraceptives ------------------------------------------------------------------------------------


@cache
def contraceptives() -> Study:
    """The 1,473 rows of [LDR08, Table IV]."""
    table = pyarrow.csv.read_csv(data_folder() / "cmc" / "cmc.csv")
    table = table.rename_columns([*table.column_names[:-1], CLASS])
    levels = {"low": ["1", "2"], "high": ["3", "4"]}
    quasi = (
        number("wife_age"),
        category("wife_education", levels),
        category("husband_education", levels),
        number("num_children"),
        category("wife_religion", ["0", "1"]),
        category("wife_working", ["0", "1"]),
        category("husband_occupation", levels),
        number("living_standard"),
        category("media_exposure", ["0", "1"]),
    )
    return Study("Contraceptives", table, quasi, (target(CLASS),))
