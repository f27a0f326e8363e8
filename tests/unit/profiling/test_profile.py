"""Drafts of policies: the guesses, their reasons, and that every draft can be followed and quotes no cell."""

import datetime as dt
import itertools
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.examples.agrawal import agrawal
from sfumato.examples.demo import patients
from sfumato.policy.document import Policy
from sfumato.policy.hierarchy.declarations import Dates, Flat, Mask
from sfumato.policy.schema import MISSING_TEXTS, Kind, Role
from sfumato.profiling.facts import ColumnFacts, Shape, measure
from sfumato.profiling.guess import round_outward
from sfumato.profiling.names import NameMeaning, hint_of
from sfumato.profiling.profile import profile
from sfumato.profiling.roles import determines
from sfumato.table.cells import dates, numbers, texts
from sfumato.table.opening import open_table

N = 200


def repeated(*values, n=N):
    """n cells that go through the values again and again."""
    return [values[i % len(values)] for i in range(n)]


def guessed(n=N, /, **columns):
    """The guess for each column of a small table of n rows."""
    table = pa.table(
        {name: cells if len(cells) == n else repeated(*cells, n=n) for name, cells in columns.items()}
    )
    draft = profile(table)
    assert_can_be_followed(draft.to_yaml(), table)
    return {found.name: found for found in draft.columns}


def draft_policy(table):
    return profile(table).to_yaml()


def guess_of(name, cells):
    """The guess for one column beside an ordinary quasi-identifier."""
    return guessed(max(len(cells), N), **{name: cells, "sex": ["m", "f", "f"]})[name]


def assert_can_be_followed(text, source):
    """What publish does with a policy before it grows anything: every cell must find its place."""
    policy = Policy.parse(text)
    table = open_table(source)
    policy.check_columns(table.names)
    assert policy.schema.names() == table.names
    assert policy.schema.quasi_identifiers
    k = 5 if policy.unit is None else min(5, len(set(map(str, table.column(policy.unit.column).to_pylist()))))
    assert [requirement.as_policy() for requirement in policy.requirements] == [{"k-anonymity": k}]
    for attribute in policy.schema.published:
        column = table.column(attribute.name)
        if attribute.kind is Kind.NUMBER:
            cells = numbers(column, attribute).drop_null().to_numpy()
            if attribute.role is Role.QUASI_IDENTIFIER and len(cells):
                assert attribute.bounds is not None
                assert attribute.bounds[0] <= cells.min() <= cells.max() <= attribute.bounds[1]
            continue
        if attribute.kind is Kind.DATE:
            values = np.unique(dates(column, attribute).drop_null().to_numpy(zero_copy_only=False))
        else:
            values = texts(column, attribute).dictionary.to_pylist()
        if attribute.role is Role.QUASI_IDENTIFIER:
            tree = attribute.build_hierarchy(values)
            assert (attribute.locate(tree, values) >= 0).all()


# ---- roles by name -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        *(
            (name, NameMeaning.DIRECT)
            for name in ("SSN", "e-mail", "lastName", "phone_number", "name", "patient name")
        ),
        *(
            (name, NameMeaning.KEY)
            for name in ("id", "patient_id", "CustomerID", "mrn", "insurance_number", "patientno")
        ),
        *(
            (name, NameMeaning.KNOWN)
            for name in ("zip", "AGE", "date_of_birth", "Gender", "native-country", "jobTitle")
        ),
        *(
            (name, NameMeaning.SENSITIVE)
            for name in ("disease", "diagnosis_code", "HIVStatus", "annualIncome", "wages")
        ),
        *((name, NameMeaning.NONE) for name in ("x7", "hospital_name", "stage")),
        ("notes", NameMeaning.NOTE),
        ("sample_weight", NameMeaning.WEIGHT),
        ("weight", NameMeaning.NONE),
    ],
)
def test_names_suggest_meanings(name, meaning):
    assert hint_of(name).meaning is meaning


@pytest.mark.parametrize(
    ("meaning", "names"),
    [
        (
            NameMeaning.KNOWN,
            "Alter Geschlecht Geburtsdatum Wohnort Familienstand Beruf Steuerklasse Abteilung PLZ",
        ),
        (
            NameMeaning.KNOWN,
            "âge sexe date_naissance ville département métier code_postal nationalité diplôme",
        ),
        (
            NameMeaning.KNOWN,
            "edad sexo fecha_nacimiento provincia ocupación municipio código_postal estado_civil",
        ),
        (NameMeaning.KNOWN, "età sesso data_nascita comune professione cittadinanza stato_civile istruzione"),
        (
            NameMeaning.SENSITIVE,
            "Krankheit Gehalt Bruttogehalt Diagnose Einkommen salaire maladie traitement",
        ),
        (NameMeaning.SENSITIVE, "salario enfermedad diagnóstico stipendio reddito malattia terapia"),
        (NameMeaning.NOTE, "Bemerkung Kommentar commentaire remarques observaciones nota anamnesi"),
        (
            NameMeaning.KEY,
            "Patientennummer Kundennr patient_id numero_dossier matricule codice_paziente expediente",
        ),
        (NameMeaning.NONE, "number_diagnoses num_procedures n_medications Kennzahl valeur valor q7"),
    ],
)
def test_names_are_known_in_five_languages(meaning, names):
    assert {name: hint_of(name).meaning for name in names.split()} == dict.fromkeys(names.split(), meaning)


def test_the_names_of_ages_births_and_postcodes_are_known_in_five_languages():
    assert all(hint_of(name).is_age for name in ("Alter", "edad", "età", "âge"))
    assert all(
        hint_of(name).is_birth
        for name in ("Geburtsdatum", "fecha_nacimiento", "data_di_nascita", "naissance")
    )
    assert all(hint_of(name).is_postcode for name in ("PLZ", "Postleitzahl", "code_postal", "codigo_postal"))
    assert all(
        hint_of(name).is_amount for name in ("Gehalt", "salaire", "salario", "stipendio", "Kinderzahl")
    )


def test_words_are_matched_whole_or_from_their_beginning_only():
    assert hint_of("average").meaning is NameMeaning.NONE  # not age
    assert hint_of("country").is_amount is False  # not count
    assert hint_of("essex").meaning is NameMeaning.NONE  # not sex
    assert hint_of("occupational_group").meaning is NameMeaning.KNOWN


def test_roles_follow_names():
    found = guessed(
        patient_id=[f"P{i}" for i in range(N)],
        email=[f"a{i}@b.org" for i in range(N)],
        zip=["53715", "02139"],
        sex=["m", "f"],
        hiv=["yes", "no", "no"],
        salary=list(range(1000, 1000 + N)),
    )
    assert {name: guess.role.value for name, guess in found.items()} == {
        "patient_id": "identifier",
        "email": "identifier",
        "zip": "quasi-identifier",
        "sex": "quasi-identifier",
        "hiv": "sensitive",
        "salary": "identifier",  # numbers the rows, whatever its name
    }


# ---- identifiers -------------------------------------------------------------------------------------


def test_a_text_of_its_own_in_every_row_is_a_row_identifier_whatever_its_name():
    found = guess_of("xx", [f"k{i * 7919 % 1000:03d}" for i in range(N)])
    assert found.role is Role.IDENTIFIER
    assert "row identifier" in found.why[0]


def test_whole_numbers_that_count_the_rows_are_a_row_identifier():
    assert guess_of("xx", [str(i) for i in range(N)]).role is Role.IDENTIFIER


def test_an_identifier_that_repeats_says_how_often():
    found = guess_of("patient_nbr", [str(10_000 + i // 3) for i in range(N)])
    assert found.role is Role.IDENTIFIER
    assert "3.0 rows each" in found.why[0]


def test_a_key_of_persons_is_an_identifier_however_often_it_repeats():
    assert guess_of("patient_id", [str(i % 4) for i in range(N)]).role is Role.IDENTIFIER
    assert guess_of("userid", [f"u{i % 4}" for i in range(N)]).role is Role.IDENTIFIER
    assert guess_of("id", [str(i % 70) for i in range(1000)]).role is Role.IDENTIFIER
    assert guess_of("county_id", [str(i % 70) for i in range(1000)]).role is Role.QUASI_IDENTIFIER


def test_a_column_of_first_or_last_names_is_an_identifier_and_one_of_numbers_is_none():
    odd = ["".join(pair) for pair in itertools.product(("Zel", "Quo", "Vry"), "abcdefghi", ("dan", "mir"))]
    assert guess_of("last", odd).role is Role.IDENTIFIER
    assert guess_of("contact_last_name", odd).role is Role.IDENTIFIER
    assert guess_of("last", [f"{i % 40}.5" for i in range(N)]).role is Role.QUASI_IDENTIFIER


def test_a_name_of_an_identifier_with_few_values_is_generalized_and_told():
    found = guess_of("Nachname", ["Berg", "Vogt", "Roth", "Lind"])
    assert found.role is Role.QUASI_IDENTIFIER
    assert 'The name says "nachname", but there are few values' in found.why[0]


def test_cells_that_hardly_any_row_has_are_no_row_identifier():
    cells = [*(str(100 + i) for i in range(30)), *[""] * (N - 30)]
    assert guess_of("xx", cells).role is Role.QUASI_IDENTIFIER


def test_codes_that_repeat_per_person_are_found_without_a_name():
    found = guess_of("xx", [f"A{i // 2:04d}" for i in range(N)])
    assert found.role is Role.IDENTIFIER
    assert "2.0 rows each" in found.why[0]


def test_an_id_with_few_values_is_no_identifier():
    assert guess_of("admission_type_id", ["1", "2", "3"]).role is Role.QUASI_IDENTIFIER
    assert guess_of("type_id", ["1", "2", "3"]).role is Role.QUASI_IDENTIFIER
    assert guess_of("has_phone", ["yes", "no"]).role is Role.QUASI_IDENTIFIER


def test_measures_that_happen_to_be_unique_are_no_identifiers():
    assert guess_of("height", [str(150 + i / 7) for i in range(N)]).role is Role.QUASI_IDENTIFIER
    assert guess_of("birth_date", [f"{1900 + i % 100}-01-{1 + i // 100:02d}" for i in range(N)]).role is (
        Role.QUASI_IDENTIFIER
    )


def test_what_leads_to_a_person_is_removed_even_where_it_repeats():
    assert guess_of("street", [f"{chr(97 + i % 25)} road" for i in range(N)]).role is Role.IDENTIFIER


# ---- what is left out, and what nobody can name ------------------------------------------------------


def test_free_text_is_dropped():
    assert guess_of("xx", [f"the patient came in on day {i} and left" for i in range(N)]).role is Role.DROP
    assert guess_of("comment", [f"fine {i}" for i in range(N)]).role is Role.DROP


def test_an_empty_column_and_a_nested_one_are_dropped():
    assert guess_of("age", [None] * N).role is Role.DROP
    assert guess_of("xx", [["a", "b"]] * N).role is Role.DROP


def test_survey_weights_are_dropped():
    assert guess_of("fnlwgt", [str(77516 + i % 50) for i in range(N)]).role is Role.DROP


def test_a_constant_column_is_published_as_it_is():
    found = guess_of("xx", ["same"] * N)
    assert found.role is Role.OTHER
    assert "same value" in found.why[0]


def test_an_unknown_number_that_singles_out_rows_is_generalized():
    assert guess_of("xx", [i / 3 for i in range(N)]).role is Role.QUASI_IDENTIFIER


def test_an_unknown_column_is_generalized_however_many_share_its_values():
    found = guess_of("xx", ["a", "b", "c"])
    assert found.role is Role.QUASI_IDENTIFIER
    assert "Else: other (passes as it is), sensitive or drop." in found.why[0]


def test_an_amount_that_singles_people_out_is_generalized_whatever_its_name():
    found = guess_of("income", [str(1000 + i * i) for i in range(N)])
    assert (found.role, found.bounds is not None) == (Role.QUASI_IDENTIFIER, True)
    assert "would single out more than 5% of the rows" in found.why[1]
    assert guess_of("income", ["1000", "2000", "2500"]).role is Role.SENSITIVE


# ---- types and hierarchies ---------------------------------------------------------------------------


def test_zip_codes_stay_text_and_are_masked():
    found = guess_of("zip", ["02139", "53715", "53703"])
    assert (found.kind, found.hierarchy) == (Kind.CATEGORY, Mask(5))


def test_fixed_width_digits_with_leading_zeros_stay_text_whatever_their_name():
    found = guess_of("area", ["0213", "5371", "5370"])
    assert (found.kind, found.hierarchy) == (Kind.CATEGORY, Mask(4))


def test_zip_codes_that_lost_their_zeros_are_masked_with_a_warning():
    found = guess_of("zip", pa.array(repeated(2139, 53715, 53703)))
    assert (found.kind, found.hierarchy) == (Kind.CATEGORY, Mask(5))
    assert "zeros seem to be lost" in found.why[-1]


def test_postcodes_with_letters_are_masked_and_half_masked_ones_are_not():
    assert guess_of("postcode", ["SW1A 1AA", "N1 9GU"]).hierarchy == Mask(8)
    assert guess_of("zip", ["53715", "5371*", "*"]).hierarchy is None


def test_dates_get_levels_and_births_decades():
    days = [(dt.date(2023, 1, 1) + dt.timedelta(days=i % 150)).isoformat() for i in range(N)]
    assert guess_of("admitted", days).hierarchy == Dates(("day", "month", "quarter", "year"))
    assert guess_of("dob", days).hierarchy == Dates(("day", "month", "year", "decade"))
    typed = pa.array([dt.date.fromisoformat(day) for day in days])
    assert guess_of("xx", typed).kind is Kind.DATE
    assert guess_of("xx", pa.array(typed, pa.timestamp("us"))).kind is Kind.DATE


def test_dates_in_other_spellings_are_named_as_such():
    found = guess_of("birth", [f"{1 + i % 28:02d}/{1 + i % 12:02d}/1980" for i in range(N)])
    assert found.role is Role.DROP
    assert "2024-03-05" in found.why[0]


def test_an_age_has_the_bounds_of_human_life_and_not_those_of_the_table():
    found = guess_of("age", [str(17 + i % 60) for i in range(N)])
    assert (found.kind, found.bounds) == (Kind.NUMBER, (0, 110))
    assert found.as_policy()["step"] == 1


def test_broken_numbers_have_bounds_and_no_step():
    declared = guess_of("height", [1.5 + i % 70 / 100 for i in range(N)]).as_policy()
    assert declared == {"role": "quasi-identifier", "type": "number", "bounds": [1.4, 2.2]}


def test_two_whole_numbers_are_codes():
    assert guess_of("sex", ["0", "1"]).kind is Kind.CATEGORY


def test_a_few_whole_numbers_are_codes_unless_their_name_says_amount():
    assert guess_of("race", ["1", "2", "3", "4"]).kind is Kind.CATEGORY
    assert guess_of("children", ["0", "1", "2", "3"]).kind is Kind.NUMBER
    assert guess_of("education", ["1", "2", "3", "4"]).kind is Kind.NUMBER
    assert guess_of("residence", ["1", "2", "3", "4"]).kind is Kind.CATEGORY


@pytest.mark.parametrize(
    "cells",
    [
        ["[0-10)", "[10-20)", "[20-30)"],
        ["20-29", "30-39", "40+"],
        ["[17, 25[", "[25, 40["],
        ["<5", "5-10", ">90"],
        ["0 to 9", "10 to 19", "over 20"],
        ["<=50K", ">50K"],
    ],
)
def test_intervals_are_recognized_and_kept_flat(cells):
    found = guess_of("age", cells)
    assert (found.role, found.kind, found.hierarchy) == (Role.QUASI_IDENTIFIER, Kind.CATEGORY, Flat())
    assert "generalized already" in found.why[-1]


def test_masked_texts_are_recognized_and_kept_flat():
    assert guess_of("zip", ["537**", "021**", "*"]).hierarchy == Flat()


def test_months_and_telephone_numbers_are_no_intervals():
    assert guess_of("xx", ["2024-03", "2024-04"]).facts.shape is not Shape.INTERVAL
    assert guess_of("phone", [f"{555 + i}-{1000 + i}" for i in range(N)]).role is Role.IDENTIFIER


# ---- missing values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [text for text in MISSING_TEXTS if text.lower() != "none"])
def test_each_conventional_text_is_proposed_where_it_is_seen(text):
    assert guess_of("job", ["cook", "clerk", text]).as_policy()["missing-values"] == [text]
    found = guess_of("hours", ["10", "40", "15", text])
    assert (found.kind, found.as_policy()["missing-values"]) == (Kind.NUMBER, [text])


def test_a_none_among_numbers_is_missing_and_among_words_an_answer():
    assert guess_of("hours", ["10", "40", "15", "None"]).kind is Kind.NUMBER
    found = guess_of("allergy", ["pollen", "nuts", "none"])
    assert "missing-values" not in found.as_policy()
    assert found.facts.n_missing == 0
    assert found.facts.says_none


def test_spaces_around_a_conventional_text_are_kept_as_the_cells_have_them():
    found = guess_of("job", [" cook", " clerk", " ?"])
    assert found.as_policy()["missing-values"] == [" ?"]
    assert found.facts.n_missing == N // 3


def test_empty_cells_are_missing_without_being_listed():
    found = guess_of("job", ["cook", "", None, "clerk"])
    assert found.facts.n_missing == N // 2
    assert "missing-values" not in found.as_policy()


# ---- bounds ------------------------------------------------------------------------------------------


@given(
    low=st.floats(-1e9, 1e9),
    span=st.floats(0, 1e9),
    shared=st.tuples(st.booleans(), st.booleans()),
    is_whole=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_bounds_lie_outside_the_ends_and_are_no_ones_value(low, span, shared, is_whole):
    low, high = (round(low), round(low) + round(span)) if is_whole else (low, low + span)
    facts = ColumnFacts(
        "x",
        1000,
        Shape.NUMBER,
        is_whole=is_whole,
        ends=(low, high),
        n_at_ends=tuple(500 if s else 1 for s in shared),
    )
    first, last = round_outward(facts)
    assert first <= low <= high <= last
    assert first < last
    assert first in (0, low) or first < low
    if first == low and not shared[0]:
        assert first == 0
    if not shared[1]:
        assert last > high
    if is_whole:
        assert first == int(first)
        assert last == int(last)


@given(st.integers(1, 9), st.integers(-6, 9))
def test_bounds_are_round_numbers(digit, power):
    low, high = float(f"1.2345e{power}"), float(f"{digit}.6789e{power + 1}")
    for bound in round_outward(ColumnFacts("x", 1000, Shape.NUMBER, ends=(low, high), n_at_ends=(1, 1))):
        assert len(f"{bound:.15g}".replace(".", "").split("e")[0].strip("0")) <= 2


def test_a_column_of_one_number_still_gets_two_bounds():
    assert round_outward(ColumnFacts("x", 9, Shape.NUMBER, is_whole=True, ends=(7, 7), n_at_ends=(9, 9))) == (
        6,
        8,
    )
    assert round_outward(ColumnFacts("x", 9, Shape.NUMBER, is_whole=True, ends=(0, 0), n_at_ends=(9, 9))) == (
        0,
        1,
    )


# ---- columns together --------------------------------------------------------------------------------


def test_a_column_that_a_quasi_identifier_gives_away_becomes_one():
    found = guessed(education=["Bachelors", "Masters", "HS-grad"], xx=["13", "14", "9"], yy=["a", "b"])
    assert found["xx"].role is Role.QUASI_IDENTIFIER
    assert "'education'" in found["xx"].why[0]
    assert "The name says nothing" in found["yy"].why[0]
    assert "says the same" in found["xx"].why[0]


def test_a_column_that_a_sensitive_one_gives_away_is_sensitive_too():
    found = guessed(sex=["m", "f"], diagnosis=["flu", "cold", "hiv"], xx=["mild", "mild", "grave"])
    assert found["xx"].role is Role.SENSITIVE


def test_a_column_determined_by_another_says_so():
    found = guessed(city=["Madison", "Boston", "Milwaukee"], state=["WI", "MA", "WI"])
    assert found["state"].why[-1] == "Each value of 'city' goes with one value here."
    assert "goes with" not in found["city"].why[-1]


def test_determination_is_judged_on_all_rows_and_not_by_rarity():
    n = 30_000
    left = np.arange(n) % 3
    right = left.copy()
    right[-1] = (right[-1] + 1) % 3
    table = open_table(pa.table({"a": left, "b": left // 2, "c": right, "d": np.arange(n) % 10_000}))
    a, b, c, d = (measure(table, name) for name in "abcd")
    assert determines(a, b)
    assert not determines(b, a)
    assert not determines(a, c)
    assert not determines(d, a)  # three rows for each value: by rarity, perhaps


def test_missing_counts_as_a_value_when_columns_are_compared():
    table = open_table(pa.table({"a": repeated("x", "x", "y"), "b": repeated("u", None, "v")}))
    assert not determines(measure(table, "a"), measure(table, "b"))
    assert determines(measure(table, "b"), measure(table, "a"))


def naive_alone(table, names):
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    return sum(count == 1 for count in Counter(rows).values())


def test_rows_that_stand_alone_are_counted_as_a_naive_count_does():
    table = patients(400).select(["age", "sex", "zip", "education", "marital_status", "admitted"])
    everything, three, two = profile(table).uniqueness
    assert len(everything.names) == 6
    assert everything.n_rows == naive_alone(table, everything.names)
    pairs = [(a, b) for a in table.column_names for b in table.column_names if a < b]
    assert two.n_rows == naive_alone(table, two.names) == max(naive_alone(table, pair) for pair in pairs)
    triples = [(*pair, c) for pair in pairs for c in table.column_names if c not in pair]
    assert (
        three.n_rows == naive_alone(table, three.names) == max(naive_alone(table, names) for names in triples)
    )


def test_many_wide_columns_are_packed_without_overflow():
    table = pa.table(
        {f"city{i}": [f"{chr(97 + i)}{(j * (i + 3)) % 97}" for j in range(N)] * 3 for i in range(14)}
    )
    first = profile(table).uniqueness[0]
    assert len(first.names) == 14
    assert first.n_rows == naive_alone(table, table.column_names) == 0


# ---- the draft as a whole ----------------------------------------------------------------------------


def test_a_table_without_any_likely_column_still_gets_a_quasi_identifier():
    found = guessed(hiv=["u", "v"], disease=["p", "q", "r"])
    assert [guess.role for guess in found.values()] == [Role.SENSITIVE, Role.QUASI_IDENTIFIER]
    assert "mere guess" in found["disease"].why[0]


@pytest.mark.parametrize(
    "cells",
    [
        [f"n{i}" for i in range(9)],
        ["same"] * 9,
        [None] * 9,
        list(range(9)),
        [f"{i} a b c d e" for i in range(9)],
    ],
)
def test_a_table_of_one_column_gets_a_draft_that_can_be_followed(cells):
    assert_can_be_followed(draft_policy(pa.table({"id": cells})), pa.table({"id": cells}))


def test_a_table_of_too_few_rows_is_told_so():
    assert "cannot be met" in draft_policy(pa.table({"age": [1, 2, 3, 4]}))
    assert "cannot be met" not in draft_policy(pa.table({"age": [1, 2, 3, 4, 5]}))


NASTY = [
    "no", "null", "~", "a: b", "- a", "#x", "{x}", "[x]", "*x", "&x", "!x", "%x", "@x", "`x", "<<", "?", "'",
    '"', "\\", "a\nb", "tab\t", " space", "é", "名前", "\U0001f600", "a\u2028b", "\x7f", "a\x85b", "1", "1e5",
    "true", "=", "x" * 1500,
]  # fmt: skip


def test_every_name_survives_the_yaml():
    table = pa.table({**{name: repeated("a", "b") for name in NASTY}, "sex": repeated("m", "f", "f")})
    assert_can_be_followed(draft_policy(table), table)


@given(
    st.lists(
        st.tuples(
            st.text(
                st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
            ).filter(str.strip),
            st.sampled_from(["int", "float", "text", "date", "bool", "mixed", "rare"]),
        ),
        min_size=1,
        max_size=5,
        unique_by=lambda column: column[0],
    ),
    st.integers(5, 60),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_table_of_five_rows_gets_a_draft_that_can_be_followed(columns, n_rows, random):
    make = {
        "int": lambda: random.randint(-(10 ** random.randint(1, 15)), 10**15),
        "float": lambda: random.choice([None, random.uniform(-1, 1) * 10.0 ** random.randint(-300, 299)]),
        "text": lambda: random.choice(["", "?", "a", "b b", "ç", '"', "1", "007", "*"]),
        "date": lambda: dt.date.fromordinal(random.randint(1, 3_600_000)),
        "bool": lambda: random.choice([True, False, None]),
        "mixed": lambda: random.choice(["1", "2.5", "x", "2024-01-01", "NaN", "inf", "-", " "]),
        "rare": lambda: f"{random.random()} {random.random()}",
    }
    table = pa.table({name: pa.array([make[kind]() for _ in range(n_rows)]) for name, kind in columns})
    assert_can_be_followed(draft_policy(table), table)


def test_no_cell_stands_in_the_draft_but_conventional_texts():
    rows = patients(500)
    table = rows.set_column(5, "education", pa.array(["?" if i % 9 == 0 else "zzEdu" for i in range(500)]))
    text = draft_policy(table)
    assert '["?"]' in text
    words = set(re.findall(r"[\w'*-]+", text))
    for name in table.column_names:
        cells = {str(cell) for cell in table[name].to_pylist() if cell is not None} - {"?"}
        assert not {cell for cell in cells if not cell.isdigit() and cell != "no"} & words
        assert not {cell for cell in cells if len(cell) >= 5} & words
    assert "Lung cancer" not in text
    assert "'no'" not in text


def test_a_repr_holds_no_cell():
    facts = measure(open_table(pa.table({"income": [131.25, 977.5]})), "income")
    assert facts.ends == (131.25, 977.5)
    assert not re.search(r"131|977", repr(facts))


def test_a_handful_of_rows_is_judged_by_names_and_not_by_rarity():
    found = guessed(
        6,
        age=[25, 25, 26, 27, 27, 28],
        sex=["Male", "Female"],
        zip=["53711", "53712", "53711", "53710", "53712", "53711"],
        disease=["flu", "hepatitis", "bronchitis", "broken arm", "aids", "hang nail"],
    )
    assert [guess.role.value for guess in found.values()] == ["quasi-identifier"] * 3 + ["sensitive"]


def test_the_extremes_of_no_person_become_bounds():
    table = pa.table({"children": [0] * 50 + [1] * 50 + [13], "height": [150.5 + i / 10 for i in range(101)]})
    declared = {found.name: found.as_policy()["bounds"] for found in profile(table).columns}
    assert declared == {"children": [0, 14], "height": [150, 162]}


def test_the_draft_reads_from_top_to_bottom():
    table = pa.table({"zip": repeated("53715", "02139"), "disease": repeated("flu", "hiv", "cold")})
    lines = draft_policy(table).splitlines()
    assert lines[0].startswith("# A draft by sfumato profile for a table of 200 rows and 2 columns.")
    place = {line: number for number, line in enumerate(lines)}
    assert (
        place["  zip: {role: quasi-identifier, hierarchy: {mask: 5}}"] < place["  disease: {role: sensitive}"]
    )
    assert place["  - k-anonymity: 5"] < place["  # - entropy-diversity: {l: 2, of: disease}"]
    assert place["#   - classify: disease"] < place["method: mondrian"]
    assert max(map(len, lines)) <= 100


def test_what_is_commented_out_can_be_uncommented():
    text = draft_policy(patients(500))
    opened = re.sub(r"^  # - (entropy|variance)", r"  - \1", text, flags=re.MULTILINE)
    opened = re.sub(r"^# (workload:|  - classify)", r"\1", opened, flags=re.MULTILINE)
    opened = opened.replace("readmitted: {role: quasi-identifier}", "readmitted: {role: other}")
    policy = Policy.parse(opened)
    assert [requirement.word for requirement in policy.requirements] == ["k-anonymity", "entropy-diversity"]
    assert policy.workload


def test_the_example_is_read_nearly_as_its_own_policy_has_it():
    roles = {found.name: found.role.value for found in profile(patients(2_000)).columns}
    assert roles == {
        "patient_id": "identifier",
        "insurance_number": "identifier",
        **dict.fromkeys(["age", "sex", "zip", "education", "occupation"], "quasi-identifier"),
        **dict.fromkeys(["marital_status", "smoker", "admitted"], "quasi-identifier"),
        "diagnosis": "sensitive",
        **dict.fromkeys(["charge", "length_of_stay", "readmitted"], "quasi-identifier"),
    }


def test_a_path_is_profiled_as_the_frame_is(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("age,sex\n" + "31,m\n32,f\n45,f\n" * 10, encoding="utf-8")
    frame = pa.table({"age": repeated(31, 32, 45, n=30), "sex": repeated("m", "f", "f", n=30)})
    assert draft_policy(path) == draft_policy(frame)


def test_row_order_does_not_matter():
    rows = patients(300)
    order = np.random.default_rng(0).permutation(300)
    assert draft_policy(rows) == draft_policy(rows.take(order))


# ---- real tables -------------------------------------------------------------------------------------


def folder():
    return Path(os.environ.get("SFUMATO_DATA", "/nowhere"))


real = [
    pytest.mark.data,
    pytest.mark.skipif("SFUMATO_DATA" not in os.environ, reason="SFUMATO_DATA is not set"),
]


def real_draft(name):
    draft = profile(folder() / name)
    assert_can_be_followed(draft.to_yaml(), folder() / name)
    return {found.name: found for found in draft.columns}


class TestRealTables:
    pytestmark = real

    def test_adult(self):
        found = real_draft("adult/adult.csv.gz")
        assert found["fnlwgt"].role is Role.DROP
        assert {name for name, guess in found.items() if guess.role is Role.SENSITIVE} == {
            "capital-gain", "capital-loss", "salary-class",
        }  # fmt: skip
        assert sum(guess.role is Role.QUASI_IDENTIFIER for guess in found.values()) == 11
        assert found["occupation"].as_policy()["missing-values"] == ["?"]
        assert "says the same as 'education'" in found["education-num"].why[-1]

    def test_contraceptive_method_choice(self):
        found = real_draft("cmc/cmc.csv")
        assert found["contraceptive_method"].role is Role.SENSITIVE
        assert found["wife_age"].bounds == (0, 110)
        assert found["num_children"].bounds == (0, 18)

    def test_american_community_survey(self):
        found = real_draft("acs_pums_2024/p_56.parquet")
        assert found["SERIALNO"].role is Role.IDENTIFIER
        assert "2.2 rows each" in found["SERIALNO"].why[0]
        assert found["PUMA"].hierarchy == Mask(5)
        assert found["PINCP"].role is Role.QUASI_IDENTIFIER  # it would single people out
        assert found["HICOV"].role is Role.SENSITIVE

    def test_census_income(self):
        found = real_draft("census_income_kdd/census_income_kdd.parquet")
        assert found["instance_weight"].role is Role.DROP
        assert found["income_class"].role is Role.SENSITIVE
        assert "'detailed_industry_recode'" in found["major_industry_code"].why[-1]


def test_agrawal_data_gets_a_draft_that_can_be_followed():
    table = pa.Table.from_batches(agrawal(2_000, seed=1))
    assert_can_be_followed(draft_policy(table), table)


def drafted(**columns):
    draft = profile(pa.table(columns))
    return {guess.name: guess for guess in draft.columns}, draft.to_yaml()


@pytest.mark.parametrize("name", ["ward_id", "hospital_id", "clinicId", "room_key"])
def test_codes_are_not_drafted_as_numbers_and_the_reason_is_given(name):
    guesses, text = drafted(
        age=[20 + i % 50 for i in range(400)], **{name: [100 + i % 40 for i in range(400)]}
    )
    assert guesses[name].role is Role.QUASI_IDENTIFIER
    assert guesses[name].kind is Kind.CATEGORY
    assert "They number things, and their order means nothing: taken for codes, not for numbers." in " ".join(
        text.replace("# ", "").split()
    )


def test_padded_ages_are_drafted_as_numbers_and_the_reason_is_given():
    guesses, text = drafted(age=[f"{i % 100:02}" for i in range(500)])
    assert guesses["age"].as_policy() == {
        "role": "quasi-identifier", "type": "number", "bounds": [0, 110], "step": 1
    }  # fmt: skip
    assert "padded with zeros, and the name says that they are amounts" in " ".join(
        text.replace("# ", "").split()
    )
    policy = Policy.parse(text)
    assert policy.schema["age"].kind is Kind.NUMBER


def test_padded_numbers_whose_name_says_nothing_are_codes_and_type_number_is_offered():
    guesses, text = drafted(age=[20 + i % 50 for i in range(500)], x=[f"{i % 100:03}" for i in range(500)])
    assert guesses["x"].kind is Kind.CATEGORY
    assert "if their order means something, say type: number" in " ".join(text.replace("# ", "").split())


def test_padded_postcodes_stay_codes():
    guesses, _ = drafted(zip=[f"{i % 100:03}" for i in range(500)])
    assert guesses["zip"].hierarchy == Mask(3)
