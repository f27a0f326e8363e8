"""Generated tables of several kinds, as people would bring them: stays in a hospital, a survey, a German payroll."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

GIVEN = (
    "Anna",
    "Maria",
    "Peter",
    "Thomas",
    "Julia",
    "Lena",
    "Paul",
    "Karin",
    "Jonas",
    "Sophie",
    "Uwe",
    "Claudia",
)
FAMILY = tuple(
    f"{head}{tail}"
    for head in ("Berg", "Vogt", "Lind", "Roth", "Stein", "Wald")
    for tail in ("", "mann", "ner", "er", "hof", "ing")
)
STREETS = ("Lindenweg", "Hauptstraße", "Bahnhofstr.", "Schulgasse", "Marktplatz", "Ringallee")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Columns:
    """Random columns of a table with so many rows."""

    def __init__(self, n: int, seed: int) -> None:
        self.n, self.random = n, np.random.default_rng(seed)

    def of(self, *values: str, skew: float = 1.5) -> list[str]:
        """Words, each rarer than the one before."""
        weights = 1 / np.arange(1, len(values) + 1) ** skew
        return list(self.random.choice(values, self.n, p=weights / weights.sum()))

    def number(self, mean: float, sd: float, digits: int = 1, low: float = 0) -> list[str]:
        return [f"{x:.{digits}f}" for x in np.maximum(self.random.normal(mean, sd, self.n), low)]

    def count(self, mean: float, most: int) -> list[str]:
        return [str(x) for x in np.minimum(self.random.poisson(mean, self.n), most)]

    def amount(self, typical: float, sigma: float = 0.5) -> list[str]:
        return [f"{x:.2f}" for x in typical * self.random.lognormal(0, sigma, self.n)]

    def day(self, first: str, days: int) -> NDArray[np.datetime64]:
        return np.datetime64(first) + self.random.integers(0, days, self.n)

    def names(self) -> list[str]:
        return [f"{self.random.choice(GIVEN)} {self.random.choice(FAMILY)}" for _ in range(self.n)]

    def with_missing(self, cells: list[str], share: float) -> list[str | None]:
        return [
            None if x < share else cell for cell, x in zip(cells, self.random.random(self.n), strict=True)
        ]


def german_days(days: NDArray[np.datetime64]) -> list[str]:
    return [f"{day[8:]}.{day[5:7]}.{day[:4]}" for day in days.astype(str)]


def iban(number: int) -> str:
    """A German account number with its check digits."""
    account = f"{number:018d}"
    return f"DE{98 - int(account + '131400') % 97:02d}{account}"


def hospital(n: int = 3_000, seed: int = 1) -> pa.Table:
    """Stays in a hospital, 50 columns; a third of the patients came more than once."""
    make = Columns(n, seed)
    patient = np.sort(make.random.integers(0, int(0.7 * n), n))
    born = (np.datetime64("1930-01-01") + make.random.integers(0, 28_000, n))[patient]
    sex = make.random.choice(["F", "M"], n)[patient]
    admitted = make.day("2022-01-01", 730)
    stay = make.random.poisson(4, n) + 1
    icd = np.array([f"{letter}{k:02d}.{k % 7}" for letter in "CEGIJKMNR" for k in range(0, 90, 3)])
    drugs = ("metformin", "insulin_pump", "glipizide", "statin", "warfarin", "heparin", "opioid", "steroid")
    columns = {
        "encounter_id": [str(700_000 + 7 * i) for i in range(n)],
        "patient_no": [f"{100_000 + 13 * p}" for p in patient],
        "patient_name": [f"{GIVEN[p % 12]} {FAMILY[p // 12 % 36]}" for p in patient],
        "contact": [f"p{p}@mail.example" for p in patient],
        "callback": [f"+49 30 {900_000 + 37 * p}" for p in patient],
        "birth_date": born.astype(str),
        "sex": sex,
        "race": np.array(make.of("A", "B", "C", "D", "E"))[patient],
        "zip": [f"{10115 + 31 * (p % 90):05d}" for p in patient],
        "marital_status": make.of("married", "single", "widowed", "divorced"),
        "admitted": admitted.astype(str),
        "discharged": (admitted + stay).astype(str),
        "ward": make.of(*(f"W{i}" for i in range(14)), skew=0.5),
        "attending": make.names(),
        "adm_type": make.of("emergency", "elective", "urgent", "newborn"),
        "adm_source": make.of("ER", "referral", "transfer", "court", "other"),
        "disposition": make.of("home", "SNF", "rehab", "AMA", "expired", "hospice"),
        "dx1": make.random.choice(icd, n), "dx2": make.random.choice(icd, n),
        "dx3": make.with_missing(list(make.random.choice(icd, n)), 0.3),
        "drg": make.of(*(f"{i}" for i in range(101, 181)), skew=0.8),
        "payer": make.of("public", "private", "self", "foreign"),
        "los": [str(x) for x in stay],
        "n_labs": make.count(40, 120), "n_procs": make.count(1.5, 8), "n_meds": make.count(12, 60),
        "prior_stays": make.count(0.5, 15),
        "sodium": make.number(138, 4), "potassium": make.number(4.2, 0.6, 2), "crea": make.number(1.1, 0.5, 2),
        "hb": make.number(12.5, 2), "wbc": make.number(8, 3), "crp": make.with_missing(make.amount(12, 1.2), 0.2),
        "glucose": make.number(120, 40, 0), "weight_kg": make.number(75, 15), "height_cm": make.number(170, 10, 0),
        "sys_bp": make.number(130, 20, 0),
        **{drug: make.of("No", "Steady", "Up", "Down", skew=3) for drug in drugs},
        "icu": make.of("N", "Y", skew=3),
        "isolation": make.of("N", "Y", skew=4),
        "died": make.of("N", "Y", skew=5),
        "readmitted": make.of("no", ">30", "<30"),
        "notes": [f"Seen on day {i % 9}, stable, plan no {i % 700} agreed with the family" for i in range(n)],
    }  # fmt: skip
    return pa.table(columns)


def survey(n: int = 3_000, seed: int = 2) -> pa.Table:
    """Answers to a questionnaire: 32 columns, twenty of them on a scale from 1 to 5."""
    make = Columns(n, seed)
    columns = {
        "respondent": [f"R{i:06d}" for i in range(n)],
        "sample_weight": make.amount(1.0, 0.4),
        "started": make.day("2024-03-01", 60).astype(str),
        "seconds": make.count(600, 3_000),
        "device": make.of("phone", "desktop", "tablet"),
        "age_group": make.of("18-29", "30-44", "45-59", "60-74", "75+", skew=0.2),
        "gender": make.of("female", "male", "diverse", skew=0.8),
        "region": make.of(*(f"R{i}" for i in range(16)), skew=0.6),
        "educ": make.of("secondary", "vocational", "bachelor", "master", "none", "doctorate"),
        "hh_size": make.count(2.2, 9),
        "party": make.of("red", "blue", "green", "none", "other", skew=0.6),
        **{f"q{i}": make.of("1", "2", "3", "4", "5", skew=0.3 + i / 20) for i in range(1, 21)},
        "open_answer": [f"I think that number {i % 900} should be done at once" for i in range(n)],
    }
    return pa.table(columns)


def payroll(n: int = 2_000, seed: int = 3) -> pa.Table:
    """The payroll of a German company: names of columns, days and numbers as they are written there."""
    make = Columns(n, seed)
    columns = {
        "Personalnummer": [f"{10_000 + 3 * i}" for i in range(n)],
        "Vorname": [name.split()[0] for name in make.names()],
        "Nachname": [name.split()[1] for name in make.names()],
        "Anschrift": [f"{make.random.choice(STREETS)} {i % 120 + 1}" for i in range(n)],
        "PLZ": [f"{1067 + 89 * k:05d}" for k in make.random.integers(0, 60, n)],
        "Konto": [iban(int(k)) for k in make.random.integers(10**12, 10**13, n)],
        "Geburtsdatum": german_days(make.day("1960-01-01", 15_000)),
        "Geschlecht": make.of("m", "w", "d", skew=1),
        "Familienstand": make.of("verheiratet", "ledig", "geschieden", "verwitwet"),
        "Kinderzahl": make.count(1.1, 6),
        "Steuerklasse": make.of("1", "4", "3", "5", "2", "6"),
        "Konfession": make.of("-", "rk", "ev", "sonstige"),
        "Abteilung": make.of(*(f"Abt {c}" for c in LETTERS[:15]), skew=0.5),
        "Standort": make.of("Dresden", "Leipzig", "Chemnitz", "Görlitz"),
        "Eintrittsdatum": german_days(make.day("1990-01-01", 12_000)),
        "Tarifgruppe": make.of(*(f"E{i}" for i in range(5, 16)), skew=0.3),
        "Wochenstunden": make.of("40", "35", "20", "30"),
        "Schicht": make.of("nein", "ja"),
        "Bruttogehalt": make.amount(4_200, 0.3),
        "Prämie": make.amount(300, 0.8),
        "Überstunden": make.count(6, 60),
        "Urlaubstage": make.count(28, 40),
        "Krankheitstage": make.count(8, 90),
        "Kostenstelle": make.of(*(f"{k}" for k in range(4100, 4160)), skew=0.4),
        "Firmenwagen": make.of("nein", "ja", skew=3),
        "Bemerkung": [
            f"Gespräch am {i % 28 + 1}. geführt, Ziel {i % 400} wurde vereinbart" for i in range(n)
        ],
    }
    return pa.table(columns)


TABLES = {"hospital": hospital, "survey": survey, "payroll": payroll}
