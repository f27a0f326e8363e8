"""The bundled example: patients of a few hospitals, all invented, with policies and hierarchies.

No patient is real, but the table behaves like a real one: schooling depends on age, work on schooling,
marriage on age and sex, disease on age, sex and smoking, cost on disease, and whether a patient comes
back within a month on most of them. So a release of it can be good or bad, and one sees which.

A second table holds stays: a patient who came back stands in several rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy.hierarchy import tree as hierarchy
from sfumato.policy.hierarchy.tree import Hierarchy
from sfumato.randomness import Random, seeded
from sfumato.table.files import replace_atomically
from sfumato.table.write import write_table

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

SEED = 1503
"""The year in which the Mona Lisa was begun, sfumato's best-known example."""

AGE_BANDS = {(0, 4): 5, (5, 17): 7, (18, 29): 13, (30, 44): 17, (45, 64): 27, (65, 79): 21, (80, 99): 10}

AREAS = {  # first three digits of a zip code: patients per 100, and how many codes the area has
    "021": (16, 9), "022": (7, 5), "018": (6, 6), "010": (5, 5), "028": (9, 7), "061": (8, 6),
    "100": (14, 9), "112": (11, 8), "191": (9, 7), "537": (6, 6), "606": (7, 8), "941": (2, 4),
}  # fmt: skip
FAR_AREAS = ("018", "112", "606")
"""Areas where the next family doctor is far away: patients return to the hospital more often."""

EDUCATION: dict[str, tuple[int, ...]] = {  # patients of each age band, in the order of LIFE
    "No schooling":        (100,  0,  0,  1,  1,  3),
    "Primary school":      (  0, 95,  3,  2,  3, 11),
    "Some high school":    (  0,  5, 95,  7,  6, 12),
    "High school diploma": (  0,  0,  2, 30, 26, 32),
    "Some college":        (  0,  0,  0, 38, 16, 13),
    "Associate degree":    (  0,  0,  0, 11, 11,  7),
    "Bachelor's degree":   (  0,  0,  0, 11, 23, 13),
    "Master's degree":     (  0,  0,  0,  0, 10,  6),
    "Professional degree": (  0,  0,  0,  0,  2,  2),
    "Doctorate":           (  0,  0,  0,  0,  2,  1),
}  # fmt: skip
LIFE = (6, 14, 18, 25, 67)  # infant, pupil, teenager, young adult, adult, pensioner
SCHOOLING = (3, 4, 6, 7)  # no diploma, diploma, college, bachelor, graduate: cuts of the list above

NOT_WORKING: dict[str, tuple[int, ...]] = {  # in each part of LIFE, against 100 who work (below 18: nobody)
    "Child":      (100,   0,   0,   0,   0,    0),
    "Student":    (  0, 100, 100,  90,   2,    0),
    "Retired":    (  0,   0,   0,   0,   9, 1500),
    "Homemaker":  (  0,   0,   0,   4,  10,    8),
    "Unemployed": (  0,   0,   0,  15,  14,    4),
}  # fmt: skip
WORKING: dict[str, tuple[str, tuple[int, ...]]] = {  # kind of work, and workers of each part of SCHOOLING
    "Construction worker": ("Manual",       (16, 10,  4,  1,  0)),
    "Factory worker":      ("Manual",       (18, 12,  5,  1,  0)),
    "Farm worker":         ("Manual",       (10,  3,  1,  1,  0)),
    "Driver":              ("Manual",       (12, 11,  5,  1,  0)),
    "Mechanic":            ("Manual",       ( 6, 10,  7,  1,  0)),
    "Cleaner":             ("Service",      (14,  6,  2,  0,  0)),
    "Cook":                ("Service",      (11,  8,  4,  1,  0)),
    "Care worker":         ("Service",      ( 5,  9,  9,  3,  0)),
    "Sales clerk":         ("Service",      ( 6, 13, 14,  7,  1)),
    "Office clerk":        ("Office",       ( 1, 11, 18, 11,  2)),
    "Bookkeeper":          ("Office",       ( 0,  4, 10,  9,  3)),
    "Manager":             ("Office",       ( 1,  3,  9, 20, 17)),
    "Teacher":             ("Professional", ( 0,  0,  3, 17, 20)),
    "Nurse":               ("Professional", ( 0,  0,  8, 13,  8)),
    "Engineer":            ("Professional", ( 0,  0,  1, 14, 15)),
    "Lawyer":              ("Professional", ( 0,  0,  0,  0, 13)),
    "Physician":           ("Professional", ( 0,  0,  0,  0, 12)),
    "Scientist":           ("Professional", ( 0,  0,  0,  1,  9)),
}  # fmt: skip

MARRIAGE: dict[str, tuple[int, ...]] = {  # below 18, 30, 45, 65, 80, and above
    "Single":   (100, 80, 32, 17,  8,  6),
    "Married":  (  0, 18, 56, 58, 58, 40),
    "Divorced": (  0,  2, 11, 20, 16,  9),
    "Widowed":  (  0,  0,  1,  5, 18, 45),
}  # fmt: skip

DIAGNOSES = (
    "Appendicitis", "Asthma", "Breast cancer", "COPD", "Depression", "Diabetes",
    "Fracture", "Heart attack", "Heart failure", "Lung cancer", "Pneumonia", "Stroke",
)  # fmt: skip
DISEASE: dict[str, tuple[float, ...]] = {  # from age 0, 18, 45, 65, 80; times for women; for smokers
    "Appendicitis":  (14, 12,  5,  2,  1,  0.9, 1.0),
    "Asthma":        (30, 11,  6,  4,  3,  1.1, 1.4),
    "Breast cancer": ( 0, .1, .3, .3, .2, 40.0, 1.1),
    "COPD":          ( 0,  1,  9, 14, 11,  1.0, 6.0),
    "Depression":    ( 6, 19, 12,  6,  4,  1.6, 1.4),
    "Diabetes":      ( 7, 10, 14, 13,  9,  0.9, 1.1),
    "Fracture":      (22, 16, 10, 11, 17,  1.1, 1.0),
    "Heart attack":  ( 0,  3, 12, 13, 12,  0.6, 2.2),
    "Heart failure": ( 0,  1,  7, 16, 22,  0.9, 1.3),
    "Lung cancer":   ( 0,  1,  6,  8,  5,  0.9, 9.0),
    "Pneumonia":     (21,  8,  9, 12, 18,  0.9, 1.5),
    "Stroke":        ( 0,  2,  7, 12, 16,  1.0, 1.6),
}  # fmt: skip
COURSE = {  # days in hospital, base charge in dollars, chance to come back (log odds), winter disease
    "Appendicitis":  (2.0,  9_500, -1.4, False),
    "Asthma":        (2.0,  5_200, -0.2, True),
    "Breast cancer": (3.5, 21_000,  0.2, False),
    "COPD":          (5.0,  9_000,  1.1, True),
    "Depression":    (8.0,  6_500,  0.3, False),
    "Diabetes":      (4.0,  7_200,  0.4, False),
    "Fracture":      (4.0, 15_500, -0.8, False),
    "Heart attack":  (4.5, 26_000,  0.5, False),
    "Heart failure": (6.0, 12_500,  1.3, False),
    "Lung cancer":   (6.5, 28_000,  0.9, False),
    "Pneumonia":     (5.0,  8_800,  0.2, True),
    "Stroke":        (7.0, 19_000,  0.6, False),
}  # fmt: skip
WINTER_MONTHS = (2.0, 1.9, 1.5, 1.0, 0.8, 0.6, 0.5, 0.5, 0.7, 1.0, 1.3, 1.7)

MISSING = {"age": 0.01, "education": 0.02, "occupation": 0.01, "marital_status": 0.015}
"""The share of cells that nobody filled in at the desk."""


POLICY = """\
# How the patients of this example may be published. Every column is named, with what it is:
#   identifier        names a person: removed
#   quasi-identifier  may be known from elsewhere, and together they single people out: generalized
#   sensitive         must not be learned about anyone: published, and kept diverse in every group
#   other             published as it is; what outsiders know of a patient does not belong here
attributes:
  patient_id:       {role: identifier}
  insurance_number: {role: identifier}

  age:              {role: quasi-identifier, type: number, bounds: [0, 110], step: 1}
  sex:              {role: quasi-identifier, values: [Female, Male]}
  zip:              {role: quasi-identifier, hierarchy: {mask: 5}}                 # 02115, 0211*, 021**, ...
  education:        {role: quasi-identifier, hierarchy: hierarchies/education.csv}
  occupation:       {role: quasi-identifier, hierarchy: hierarchies/occupation.csv}
  marital_status:   {role: quasi-identifier, values: [Single, Married, Divorced, Widowed]}
  smoker:           {role: quasi-identifier, values: ["yes", "no"]}
  admitted:         {role: quasi-identifier, type: date, hierarchy: {dates: [day, month, quarter, year]}}

  diagnosis:        {role: sensitive}
  charge:           {role: sensitive, type: number, passes: unique}                # dollars, to the last
  length_of_stay:   {role: other, type: number}                                    # days
  readmitted:       {role: other, values: ["yes", "no"]}                           # within 30 days

# What must hold of every group of patients that the release cannot tell apart.
require:
  - k-anonymity: 10                                        # at least ten patients in a group
  - entropy-diversity: {l: 3, of: diagnosis}               # as mixed as three equally frequent diagnoses
  - variance-diversity: {at-least: 2.5e+7, of: charge}     # a standard deviation of at least 5,000 dollars

# What the release is for. Groups are divided first so that older smokers can be found with few others among
# them, and then so that readmission can still be predicted.
workload:
  - select: "age >= 65 and smoker = 'yes'"
  - classify: readmitted

# How groups are found. The weight counts how narrow labels stay, beside the workload; without it, labels lose more here.
method:
  mondrian: {loss-weight: 0.2}
"""

PRIVATE_POLICY = """\
# The same patients under differential privacy: whether anyone is among them cannot be told from the release.
# What it takes: pip install "sfumato[dp]". Nothing of a patient passes as it is, so every column is either left out,
# or a quasi-identifier whose values are declared here (not read from the table), or the class to be predicted.
# Columns that would hardly help to predict it are left out: each of them would divide the same patients further.
attributes:
  patient_id:       {role: identifier}
  insurance_number: {role: identifier}

  age:              {role: quasi-identifier, type: number, bounds: [0, 110], step: 1}
  sex:              {role: quasi-identifier, values: [Female, Male]}
  zip:              {role: drop}
  education:        {role: drop}
  occupation:       {role: drop}
  marital_status:   {role: drop}
  smoker:           {role: quasi-identifier, values: ["yes", "no"]}
  admitted:         {role: drop}
  diagnosis:
    role: quasi-identifier
    hierarchy:
      tree:
        Heart and brain: [Heart attack, Heart failure, Stroke]
        Lungs: [Asthma, COPD, Lung cancer, Pneumonia]
        Other: [Appendicitis, Breast cancer, Depression, Diabetes, Fracture]
  charge:           {role: drop}
  length_of_stay:   {role: quasi-identifier, type: number, bounds: [0, 60], step: 1}

  readmitted:       {role: other, values: ["yes", "no"]}

workload:
  - classify: readmitted

method: {diffgen: {epsilon: 1.0}}                          # the budget: the smaller, the more private
"""

PERSONAL_POLICY = """\
# The same patients once more, each with a box of their own: of all generalizations of a patient's row that still tell
# half of it, the one with the least risk. Nothing is promised of groups; risk is counted against the table itself.
attributes:
  patient_id:       {role: identifier}
  insurance_number: {role: identifier}

  age:              {role: quasi-identifier, type: number, bounds: [0, 120], hierarchy: {intervals: [5, 10, 20, 40]}}
  sex:              {role: quasi-identifier, values: [Female, Male]}
  zip:              {role: quasi-identifier, hierarchy: {mask: 5}}
  education:        {role: quasi-identifier, hierarchy: hierarchies/education.csv}
  occupation:       {role: quasi-identifier, hierarchy: hierarchies/occupation.csv}
  marital_status:   {role: quasi-identifier, values: [Single, Married, Divorced, Widowed]}
  smoker:           {role: quasi-identifier, values: ["yes", "no"]}
  admitted:         {role: drop}

  diagnosis:        {role: sensitive}                      # published as it is
  charge:           {role: drop}
  length_of_stay:   {role: other, type: number}
  readmitted:       {role: other, values: ["yes", "no"]}

method:
  risk-utility:
    utility-at-least: 0.5                                  # of the way from all suppressed to the row as it is
    weights: {model: model-1, attributes: {zip: 2}}        # where a patient lives weighs twice
"""

STAYS_POLICY = """\
# Stays in hospital, one in a row: some patients came once, some came often. What is promised is promised to patients, so
# that nobody hides among ten stays of three. patient_id is left out, but first it tells whose a stay is.
attributes:
  patient_id:       {role: identifier}

  age:              {role: quasi-identifier, type: number, bounds: [0, 110], step: 1}
  sex:              {role: quasi-identifier, values: [Female, Male]}
  zip:              {role: quasi-identifier, hierarchy: {mask: 5}}
  smoker:           {role: quasi-identifier, values: ["yes", "no"]}
  admitted:         {role: quasi-identifier, type: date, hierarchy: {dates: [day, month, quarter, year]}}

  diagnosis:        {role: sensitive}
  length_of_stay:   {role: other, type: number}

unit: patient_id                                           # groups count patients, not rows

require:
  - k-anonymity: 10                                        # at least ten patients in a group
  - entropy-diversity: {l: 3, of: diagnosis}               # a patient counts once for each of its diagnoses
"""


def patients(n_rows: int = 10_000, *, seed: int = SEED) -> pa.Table:
    """One invented patient per row; the same seed gives the same patients.

    >>> patients(3).column_names[:5]
    ['patient_id', 'insurance_number', 'age', 'sex', 'zip']
    """
    if n_rows < 1:
        raise InputError("The example needs at least 1 row.")
    random = seeded(seed)
    person = _draw_people(n_rows, random)
    stay = _draw_stays(person, random)
    return pa.table(
        {**_draw_identifiers(n_rows, random), **_leave_gaps(_as_arrow(person), random), **_as_arrow(stay)}
    )


def stays(n_rows: int = 5_000, *, seed: int = SEED) -> pa.Table:
    """One invented stay per row, of six patients in ten stays: some came once, some came often.

    >>> stays(3).column_names
    ['patient_id', 'age', 'sex', 'zip', 'smoker', 'admitted', 'diagnosis', 'length_of_stay']
    """
    if n_rows < 1:
        raise InputError("The example needs at least 1 row.")
    random = seeded(seed)
    n_people = -(-6 * n_rows // 10)
    frailty = random.gamma(0.5, size=n_people)
    comes_back = random.choice(n_people, n_rows - n_people, p=frailty / frailty.sum())
    patient = random.permutation(np.concatenate([np.arange(n_people), comes_back]))
    person = {name: cells[patient] for name, cells in _draw_people(n_people, random).items()}
    known = _leave_gaps(_as_arrow({name: person[name] for name in ("age", "sex", "zip", "smoker")}), random)
    stay = _draw_stays(person, random)
    told = _as_arrow({name: stay[name] for name in ("admitted", "diagnosis", "length_of_stay")})
    number = _draw_identifiers(n_people, random)["patient_id"].take(pa.array(patient))
    return pa.table({"patient_id": number, **known, **told})


def hierarchies() -> dict[str, Hierarchy]:
    """How schooling and work generalize; the branches are of uneven depth, as in life.

    >>> hierarchies()["education"].path(hierarchies()["education"].leaf_nodes[0])
    ('*', 'School', 'No diploma', 'No schooling')
    """
    levels = list(EDUCATION)
    school = {"No diploma": levels[:3], levels[3]: None}
    education = {"School": school, "College": levels[4:7], "Graduate school": levels[7:]}
    work: dict[str, list[str]] = {}
    for job, (kind, _) in WORKING.items():
        work.setdefault(kind, []).append(job)
    occupation = {"Not working": list(NOT_WORKING), "Working": work}
    trees: dict[str, Any] = {"education": education, "occupation": occupation}
    return {name: Hierarchy.from_tree({"*": tree}) for name, tree in trees.items()}


def write_example(folder: str | PathLike[str], *, n_rows: int = 10_000, seed: int = SEED) -> None:
    """Write both tables, half as many stays as patients, their policies and hierarchies/, replacing what stands there."""
    folder = Path(folder)
    (folder / "hierarchies").mkdir(parents=True, exist_ok=True)
    write_table(patients(n_rows, seed=seed), folder / "patients.csv")
    write_table(stays(-(-n_rows // 2), seed=seed), folder / "stays.csv")
    for name, tree in hierarchies().items():
        hierarchy.write(tree, folder / "hierarchies" / f"{name}.csv")
    policies = {
        "policy.yaml": POLICY,
        "private.yaml": PRIVATE_POLICY,
        "personal.yaml": PERSONAL_POLICY,
        "stays.yaml": STAYS_POLICY,
    }
    for name, text in policies.items():
        with replace_atomically(folder / name) as unfinished:
            Path(unfinished).write_text(text, encoding="utf-8")


def _draw_identifiers(n_rows: int, random: Random) -> dict[str, pa.Array]:
    """Two columns that each name a person: both must go."""
    numbers = random.choice(10 ** max(6, len(str(n_rows)) + 1), n_rows, replace=False)
    insured = random.choice(10**9, n_rows, replace=False)
    return {
        "patient_id": pa.array([f"P{number:06d}" for number in numbers.tolist()]),
        "insurance_number": pa.array([f"{number:09d}" for number in insured.tolist()]),
    }


def _draw_people(n_rows: int, random: Random) -> dict[str, NDArray[np.generic]]:
    """Who the patients are: what neighbours and employers know of them, too."""
    age = _draw_ages(n_rows, random)
    female = random.random(n_rows) < 0.53
    education = _draw(_weights(EDUCATION)[np.searchsorted(LIFE, age, side="right")], random)
    occupation = _draw_occupations(age, education, random)
    marriage = _weights(MARRIAGE)[np.searchsorted((18, 30, 45, 65, 80), age, side="right")]
    marriage[:, 3] *= np.where(female, 1.6, 0.6)  # women outlive their husbands
    smokes = (
        0.34 - 0.05 * np.searchsorted(SCHOOLING, education, side="right") - 0.002 * np.maximum(age - 50, 0)
    )
    return {
        "age": age,
        "sex": np.where(female, "Female", "Male"),
        "zip": _draw_zip_codes(n_rows, random),
        "education": np.array(list(EDUCATION))[education],
        "occupation": np.array([*NOT_WORKING, *WORKING])[occupation],
        "marital_status": np.array(list(MARRIAGE))[_draw(marriage, random)],
        "smoker": np.where((random.random(n_rows) < smokes) & (age >= 16), "yes", "no"),
    }


def _draw_ages(n_rows: int, random: Random) -> Codes:
    band = _draw(np.tile(np.array(list(AGE_BANDS.values()), dtype=np.float64), (n_rows, 1)), random)
    low, high = np.array(list(AGE_BANDS)).T
    return np.asarray(random.integers(low[band], high[band], endpoint=True))


def _draw_zip_codes(n_rows: int, random: Random) -> NDArray[np.str_]:
    """Codes cluster by area, and a few codes of an area hold most of its patients."""
    codes: list[str] = []
    weights: list[float] = []
    for start, (share, n_codes) in AREAS.items():
        popularity = 1 / np.arange(1, n_codes + 1)
        weights.extend(share * popularity / popularity.sum())
        codes.extend(f"{start}{7 * place + 1:02d}" for place in range(n_codes))
    chosen = random.choice(len(codes), n_rows, p=np.array(weights) / sum(weights))
    return np.array(codes)[chosen]


def _draw_occupations(age: Codes, education: Codes, random: Random) -> Codes:
    life = np.searchsorted(LIFE, age, side="right")
    schooling = np.searchsorted(SCHOOLING, education, side="right")
    idle = _weights(NOT_WORKING)[life]
    jobs = _weights({job: weights for job, (_, weights) in WORKING.items()})[schooling]
    jobs = 100 * jobs / jobs.sum(axis=1, keepdims=True) * (age >= 18)[:, None]
    return _draw(np.hstack([idle, jobs]), random)


def _draw_stays(person: Mapping[str, NDArray[np.generic]], random: Random) -> dict[str, NDArray[np.generic]]:
    """What happened to them in hospital: what nobody else should learn."""
    age = person["age"].astype(np.int64)
    smokes = person["smoker"] == "yes"
    disease = _draw_diseases(age, person["sex"] == "Female", smokes, random)
    days, base, odds, winter = (np.array(column) for column in zip(*COURSE.values(), strict=True))
    stay = 1 + random.poisson(days[disease] * (0.6 + 0.008 * age))
    noise = random.lognormal(0.0, 0.3, len(age))
    charge = np.rint((base[disease] * (0.7 + 0.006 * age) + 1_900 * stay) * noise).astype(np.int64)
    far = np.isin(person["zip"].astype("U3"), FAR_AREAS)
    risk = -3.4 + odds[disease] + 0.025 * age + 0.07 * stay + 0.8 * smokes + 0.5 * far
    returns = random.random(len(age)) < 1 / (1 + np.exp(-risk))
    return {
        "admitted": _draw_admissions(winter[disease].astype(bool), random),
        "diagnosis": np.array(DIAGNOSES)[disease],
        "charge": charge,
        "length_of_stay": stay,
        "readmitted": np.where(returns, "yes", "no"),
    }


def _draw_diseases(age: Codes, female: NDArray[np.bool_], smokes: NDArray[np.bool_], random: Random) -> Codes:
    table = _weights({name: DISEASE[name] for name in DIAGNOSES})
    weights = table[np.searchsorted((18, 45, 65, 80), age, side="right")]
    weights *= np.where(female[:, None], table[5], 1.0)
    weights *= np.where(smokes[:, None], table[6], 1.0)
    return _draw(weights, random)


def _draw_admissions(winter: NDArray[np.bool_], random: Random) -> NDArray[np.datetime64]:
    """Days of two years; coughs come in winter."""
    weights = np.where(winter[:, None], np.array(WINTER_MONTHS), 1.0)
    month = _draw(weights, random) + 12 * random.integers(2, size=len(winter))
    start = np.datetime64("2023-01") + month
    first, after = start.astype("datetime64[D]"), (start + 1).astype("datetime64[D]")
    return np.asarray(first + random.integers((after - first).astype(np.int64)))


def _weights(table: Mapping[str, Sequence[float]]) -> Floats:
    """A table of weights, one row per case and one column per label."""
    return np.array(list(table.values()), dtype=np.float64).T


def _draw(weights: Floats, random: Random) -> Codes:
    """For each row, one column with probability proportional to its weight."""
    cumulative = weights.cumsum(axis=1)
    mark = random.random(len(weights)) * cumulative[:, -1]
    return np.asarray((mark[:, None] >= cumulative).sum(axis=1), dtype=np.int64)


def _as_arrow(columns: Mapping[str, NDArray[np.generic]]) -> dict[str, pa.Array]:
    return {name: pa.array(column) for name, column in columns.items()}


def _leave_gaps(columns: dict[str, pa.Array], random: Random) -> dict[str, pa.Array]:
    for name in (name for name in MISSING if name in columns):
        gaps = random.random(len(columns[name])) < MISSING[name]
        columns[name] = pa.array(columns[name].to_numpy(zero_copy_only=False), mask=gaps)
    return columns
