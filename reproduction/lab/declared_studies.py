"""Tables other than Adult for DiffGen, each with declared domains: Agrawal, Census-Income and ACS wages.

Code reads no domain from rows. Agrawal: the ranges of the generator. Census-Income: the values that its names file
lists, grouped here; it gives no bounds, so these are chosen. ACS wages: codes of the survey for the columns that
stand in for those of [LDR08]; the wage that divides its classes is a quantile of the table, as in that paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from lab import studies
from lab.private import Codes
from sfumato.encoding import declared
from sfumato.encoding.declared import HeldRows
from sfumato.encoding.domain import Domain
from sfumato.examples.agrawal import agrawal
from sfumato.methods.specialization import diffgen
from sfumato.methods.specialization.diffgen import DrawnCuts
from sfumato.policy.document import Policy
from sfumato.policy.options.diffgen import DiffGenOptions
from sfumato.policy.schema import Attribute, Kind, Role, Schema
from sfumato.policy.workload import Classify
from sfumato.privacy.mechanisms import Mechanisms
from sfumato.randomness import seeded_block
from sfumato.table import opening

Bounds = tuple[int, int, int]
"""Low and high bound of a number, and its step."""

N_TEST = 40_000
"""Test rows of a trial, none of them among its training rows."""


@dataclass(frozen=True, slots=True)
class DeclaredStudy:
    """A table and what its policy declares: ``columns`` are bounds of numbers and trees of categories, by name."""

    name: str
    columns: Mapping[str, Any]
    target: str
    classes: tuple[str, ...]
    read: Callable[[], pa.Table]

    def policy(self, method: DiffGenOptions) -> Policy:
        quasi = [_declared(name, domain) for name, domain in self.columns.items()]
        target = Attribute(self.target, Role.OTHER, Kind.CATEGORY, values=self.classes)
        return Policy(Schema((*quasi, target)), workload=(Classify((self.target,)),), method=method)

    def parts(self, n_rows: int, trial: int, seed: int) -> tuple[Codes, Codes]:
        """So many training rows of a trial, drawn at random, and its test rows, in codes."""
        codes = encoded(self.name)[1]
        order = seeded_block(seed, trial).permutation(len(codes))
        return codes[order[N_TEST : N_TEST + n_rows]], codes[order[:N_TEST]]

    def release(self, codes: Codes, asked: DiffGenOptions, draws: Mechanisms) -> DrawnCuts:
        """DiffGen on encoded rows."""
        domains, _ = encoded(self.name)
        rows = HeldRows(codes, domains, self.classes)
        return diffgen.draw(rows, domains, len(self.classes), asked, draws)


def _declared(name: str, domain: Any) -> Attribute:
    if not isinstance(domain, tuple):
        return studies.category(name, domain)
    low, high, step = domain
    return Attribute(name, Role.QUASI_IDENTIFIER, Kind.NUMBER, bounds=(low, high), step=step)


@cache
def encoded(name: str) -> tuple[tuple[Domain, ...], Codes]:
    """The declared domains of a study, and all rows in their codes, the class last."""
    study = STUDIES[name]
    rows = declared.hold_rows(opening.open_table(study.read()), study.policy(DiffGenOptions(Fraction(1))))
    return rows.domains, rows.rows


# ---- Agrawal -------------------------------------------------------------------------------------------

AGRAWAL: Mapping[str, Any] = {
    "salary": (20_000, 150_000, 500),
    "commission": (0, 75_000, 500),
    "age": (20, 80, 1),
    "elevel": studies.ELEVEL,
    "car": studies.CAR,
    "zipcode": (0, 9, 1),
    "hvalue": (0, 1_350_000, 5_000),
    "hyears": (1, 30, 1),
    "loan": (0, 500_000, 2_500),
}
"""What the generator draws from; amounts in steps."""

N_AGRAWAL = 200_000
AGRAWAL_SEED = 1993


def _agrawal(function: str) -> DeclaredStudy:
    def read() -> pa.Table:
        return pa.Table.from_batches(agrawal(N_AGRAWAL, function=function, seed=AGRAWAL_SEED))

    return DeclaredStudy(f"Agrawal {function}", AGRAWAL, studies.CLASS, ("A", "B"), read)


# ---- Census-Income -------------------------------------------------------------------------------------

CENSUS_INCOME: Mapping[str, Any] = {
    "age": (0, 90, 1),
    "class_of_worker": {
        "None": ["Not in universe", "Never worked", "Without pay"],
        "Government": ["Federal government", "Local government", "State government"],
        "Private": None,
        "Self-employed": ["Self-employed-incorporated", "Self-employed-not incorporated"],
    },
    "education": {
        "Children": None,
        "No diploma": {
            "Up to grade 8": [
                "Less than 1st grade", "1st 2nd 3rd or 4th grade", "5th or 6th grade", "7th and 8th grade",
            ],
            "Grade 9 to 12": ["9th grade", "10th grade", "11th grade", "12th grade no diploma"],
        },
        "High school graduate": None,
        "College": {
            "Below bachelor": [
                "Some college but no degree", "Associates degree-occup /vocational",
                "Associates degree-academic program",
            ],
            "Bachelors degree(BA AB BS)": None,
        },
        "Graduate": [
            "Masters degree(MA MS MEng MEd MSW MBA)", "Prof school degree (MD DDS DVM LLB JD)",
            "Doctorate degree(PhD EdD)",
        ],
    },
    "wage_per_hour": (0, 9_999, 1),
    "marital_stat": {
        "Never married": None,
        "Married": [
            "Married-civilian spouse present", "Married-A F spouse present", "Married-spouse absent",
        ],
        "Was married": ["Separated", "Divorced", "Widowed"],
    },
    "major_industry_code": {
        "Not in universe or children": None,
        "Land": ["Agriculture", "Forestry and fisheries", "Mining", "Construction"],
        "Manufacturing": ["Manufacturing-durable goods", "Manufacturing-nondurable goods"],
        "Networks": ["Transportation", "Communications", "Utilities and sanitary services"],
        "Trade": ["Wholesale trade", "Retail trade"],
        "Services": [
            "Finance insurance and real estate", "Business and repair services", "Private household services",
            "Personal services except private HH", "Entertainment",
        ],
        "Professional": [
            "Hospital services", "Medical except hospital", "Education", "Social services",
            "Other professional services",
        ],
        "State": ["Public administration", "Armed Forces"],
    },
    "major_occupation_code": {
        "Not in universe": None,
        "Office": {
            "Skilled office": [
                "Executive admin and managerial", "Professional specialty", "Technicians and related support",
            ],
            "Sales and clerks": ["Sales", "Adm support including clerical"],
        },
        "Service": ["Protective services", "Other service", "Private household services"],
        "Manual": [
            "Precision production craft & repair", "Machine operators assmblrs & inspctrs",
            "Transportation and material moving", "Handlers equip cleaners etc",
            "Farming forestry and fishing", "Armed Forces",
        ],
    },
    "race": ["White", "Black", "Asian or Pacific Islander", "Amer Indian Aleut or Eskimo", "Other"],
    "sex": ["Female", "Male"],
    "full_or_part_time_employment_stat": {
        "Not at work": ["Children or Armed Forces", "Not in labor force"],
        "At work": {
            "Full-time schedules": None,
            "Part time": [
                "PT for non-econ reasons usually FT", "PT for econ reasons usually PT",
                "PT for econ reasons usually FT",
            ],
        },
        "Unemployed": ["Unemployed full-time", "Unemployed part- time"],
    },
    "capital_gains": (0, 99_999, 1),
    "capital_losses": (0, 4_999, 1),
    "dividends_from_stocks": (0, 99_999, 1),
    "tax_filer_stat": {
        "Nonfiler": None,
        "Joint": ["Joint both under 65", "Joint one under 65 & one 65+", "Joint both 65+"],
        "Alone": ["Single", "Head of household"],
    },
    "detailed_household_summary_in_household": {
        "Head": ["Householder", "Spouse of householder"],
        "Child": ["Child under 18 never married", "Child under 18 ever married", "Child 18 or older"],
        "Others": [
            "Other relative of householder", "Nonrelative of householder",
            "Group Quarters- Secondary individual",
        ],
    },
    "num_persons_worked_for_employer": (0, 6, 1),
    "citizenship": {
        "Native": [
            "Native- Born in the United States", "Native- Born in Puerto Rico or U S Outlying",
            "Native- Born abroad of American Parent(s)",
        ],
        "Foreign born": ["Foreign born- U S citizen by naturalization", "Foreign born- Not a citizen of U S"],
    },
    "own_business_or_self_employed": ["0", "1", "2"],
    "weeks_worked_in_year": (0, 52, 1),
}  # fmt: skip
"""Of the forty attributes, those on work, education, family and property. Bounds of amounts are round ones: four digits
for an hour's wage in cents, five for gains and dividends, 4,999 for losses."""


def _read_census_income() -> pa.Table:
    path = studies.data_folder() / "census_income_kdd" / "census_income_kdd.parquet"
    return pyarrow.parquet.read_table(path, columns=[*CENSUS_INCOME, "income_class"])


# ---- ACS wages -----------------------------------------------------------------------------------------

ACS: Mapping[str, Any] = {
    "region": {name: list(states) for name, states in studies.REGIONS.items()},
    "age": (0, 99, 1),
    "citizenship": {"born a citizen": ["1", "2", "3"], "other": ["4", "5"]},
    "marital": {"1": None, "was married": ["2", "3", "4"], "5": None},
    "education": (0, 21, 1),
    "sex": ["1", "2"],
    "hours": (1, 99, 1),
    "disability": ["1", "2"],
    "race": [str(code) for code in range(1, 10)],
}
"""Education in years of school; region down to the state."""

WAGE_LIMIT = 52_000
"""High wages begin here: what 56% of the wages of 2024 are below, as in the class of [LDR08, section 4.3]."""


def _read_acs() -> pa.Table:
    names = ["STATE", "AGEP", "CIT", "MAR", "SCHL", "SEX", "WKHP", "DIS", "RAC1P", "WAGP"]
    files = sorted((studies.data_folder() / "acs_pums_2024").glob("p_*.parquet"))
    everyone = pyarrow.parquet.read_table(files, columns=names)
    earning = everyone.filter(pc.greater(everyone["WAGP"], 0)).combine_chunks()
    return pa.table({
        "region": earning["STATE"],
        "age": earning["AGEP"],
        "citizenship": earning["CIT"],
        "marital": earning["MAR"],
        "education": np.array(studies.YEARS_OF_SCHOOL)[earning["SCHL"].to_numpy() - 1],
        "sex": earning["SEX"],
        "hours": earning["WKHP"],
        "disability": earning["DIS"],
        "race": earning["RAC1P"],
        studies.CLASS: np.where(earning["WAGP"].to_numpy() < WAGE_LIMIT, "low", "high"),
    })  # fmt: skip


STUDIES = {
    study.name: study
    for study in (
        _agrawal("C2"),
        _agrawal("C7"),
        DeclaredStudy(
            "Census-Income", CENSUS_INCOME, "income_class", ("- 50000.", "50000+."), _read_census_income
        ),
        DeclaredStudy("ACS wages", ACS, studies.CLASS, ("low", "high"), _read_acs),
    )
}
