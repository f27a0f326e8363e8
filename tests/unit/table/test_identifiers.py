"""Direct identifiers: numbers with their checks, names, addresses, and names of columns in five languages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.table.identifiers import content_identifier, looks_like_identifier, tells_many_apart
from sfumato.table.person_numbers import NUMBERS
from sfumato.table.person_texts import _GIVEN, are_given_names, are_person_names, are_postal_addresses

# Published examples of each kind: nobody's numbers.
RIGHT = {
    "e-mail": ["a.b@example.org", "x+y@sub.example.co.uk"],
    "IBAN": ["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432", "FR14 2004 1010 0505 0001 3M02 606"],
    "telephone": ["+49 30 901820", "+1 (212) 555-0123", "030 / 9018-20123", "06 12 34 56 78", "212-555-0123",
                  "(212) 555-0123", "0049 30 901820", "+44 20 7946 0958", "020 7946 0958"],
    "US": ["123-45-6789"],
    "DE": ["86095742719", "47 036 892 816", "65929970489"],
    "DE insurance": ["15070649C103"],
    "FR": ["255081416802538", "2 55 08 14 168 025 38"],
    "ES": ["12345678Z", "X1234567L", "x-1234567-l"],
    "IT": ["RSSMRA85T10A562S", "MRTMTT91D08F205J"],
    "GB": ["943 476 5919", "9434765919"],
    "GB insurance": ["AB123456C", "AB 12 34 56 C"],
    "NL": ["111222333", "123456782"],
    "BE": ["85.07.30-033.28", "85073003328"],
    "SE": ["811228-9874", "19811228-9874", "8112289874"],
    "DK": ["2110625629"],
    "DK dash": ["211062-5629"],
    "FI": ["131052-308T"],
    "NO": ["15108695088", "151086 95088"],
    "CH": ["756.9217.0769.85", "7569217076985"],
    "AT": ["1237010180", "1237 010180"],
    "PL": ["44051401359"],
    "PT": ["501964843"],
    "IE": ["6433435F", "6433435OA"],
    "CZ": ["710319/2745", "7103192745"],
    "CA": ["130 692 544", "130692544"],
    "BR": ["390.533.447-05"],
    "CN": ["360426199101010071", "11010519491231002X"],
    "card": ["4111 1111 1111 1111", "378282246310005"],
    "network": ["192.168.0.1", "00:1b:44:11:3a:b7"],
}  # fmt: skip

WITHOUT_CHECK = ("e-mail", "telephone", "US", "GB insurance", "DK dash", "network")


def test_every_kind_has_an_example():
    assert set(RIGHT) == set(NUMBERS)


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind in RIGHT for text in RIGHT[kind]])
def test_a_published_example_is_recognized(kind, text):
    assert NUMBERS[kind].fits(text)


@pytest.mark.parametrize("kind", [kind for kind in RIGHT if kind not in WITHOUT_CHECK])
def test_a_wrong_digit_is_noticed(kind):
    """Each digit is changed to each other one; a check by one digit lets hardly any pass."""
    text = RIGHT[kind][0]
    others = [
        text[:place] + other + text[place + 1 :]
        for place, letter in enumerate(text)
        if letter.isdigit()
        for other in "0123456789"
        if other != letter
    ]
    passing = [other for other in others if NUMBERS[kind].fits(other)]
    assert len(passing) <= 0.08 * len(others), passing


@pytest.mark.parametrize(
    "text", ["000-12-3456", "666-12-3456", "900-12-3456", "123-00-4567", "123-45-0000", "123456789"]
)
def test_numbers_outside_the_american_ranges_are_none(text):
    assert not NUMBERS["US"].fits(text)


@pytest.mark.parametrize(
    "text", ["2024-03-05", "05/03/2024", "05.03.2024", "03-05-2024", "12345", "1,234.5", "0.5"]
)
def test_days_and_numbers_are_no_telephone_numbers(text):
    assert not NUMBERS["telephone"].fits(text)


@pytest.mark.parametrize("kind", RIGHT)
def test_a_column_of_one_kind_is_named(kind):
    """A column of five spellings of an example is long enough."""
    text = RIGHT[kind][0]
    words = pa.array([text, f" {text}", f"{text} ", f" {text} ", f"  {text}"])
    assert content_identifier(words) in {
        NUMBERS[other].plural for other in NUMBERS if NUMBERS[other].fits(text)
    }


def test_ordinary_columns_are_named_nothing():
    random = np.random.default_rng(0)
    columns = {
        "nine digits": [f"{n}" for n in random.integers(10**8, 10**9, 400)],
        "ten digits": [f"{n}" for n in random.integers(10**9, 10**10, 400)],
        "eleven digits": [f"{n}" for n in random.integers(10**10, 10**11, 400)],
        "thirteen digits": [f"{n}" for n in random.integers(10**12, 10**13, 400)],
        "sixteen digits": [f"{n}" for n in random.integers(10**15, 10**16, 400)],
        "days": [f"{1950 + n % 60}-{1 + n % 12:02}-{1 + n % 28:02}" for n in range(400)],
        "days of six digits": [f"{1 + n % 28:02}{1 + n % 12:02}{n % 100:02}" for n in range(400)],
        "towns": [
            "San Jose",
            "New York",
            "Los Angeles",
            "St. Louis",
            "Santa Ana",
            "San Antonio",
            "Las Vegas",
        ],
        "countries": [
            "United States",
            "Costa Rica",
            "South Korea",
            "New Zealand",
            "Holland Netherlands",
            "Haiti",
        ],
        "jobs": ["Prof specialty", "Exec managerial", "Adm clerical", "Machine op inspct", "Priv house serv"],
        "codes": [f"{letter}{n:02}.{n % 10}" for letter in "ABCDE" for n in range(90)],
        "amounts": [f"{n * 1000}" for n in range(100_000, 100_400)],
        "sections": [
            "Internal medicine",
            "General surgery",
            "Emergency care",
            "Intensive care",
            "Family practice",
        ],
        "hospitals": [
            "Charles Cole Memorial Hospital",
            "St. Mary Clinic",
            "Henry Ford Hospital",
            "Klinikum Frankfurt Hoechst",
        ],
        "names of months": [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
        ],
    }
    assert {
        name: found for name, cells in columns.items() if (found := content_identifier(pa.array(cells)))
    } == {}


def test_nine_in_ten_must_fit():
    right = [f"a{i}@b.org" for i in range(90)]
    assert content_identifier(pa.array([*right, *"abcdefghij"])) == "e-mail addresses"
    assert content_identifier(pa.array([*right, *"abcdefghijk"])) == ""
    assert content_identifier(pa.array(right[:4])) == ""  # too few to tell


def test_a_long_column_is_looked_at_here_and_there():
    words = pa.array([f"x{i}" for i in range(5_000)] + [f"a{i}@b.org" for i in range(5_000)])
    assert content_identifier(words) == ""
    assert content_identifier(words[5_000:]) == "e-mail addresses"


def test_a_column_of_several_ways_to_reach_people_is_named():
    mixed = [f"a{i}@b.org" for i in range(20)] + [f"+49 30 90182{i}" for i in range(20)]
    assert content_identifier(pa.array(mixed)) == "e-mail addresses, telephone numbers and accounts"
    assert content_identifier(pa.array([*mixed, *(f"room {i}" for i in range(10))])) == ""


def test_names_and_addresses():
    people = ["Anna Berg", "Dr. John Q. Public", "García, Luis", "Zhu Li", "O'Neill, Mary", "Jean-Luc Picard"]
    assert are_person_names(people)
    assert content_identifier(pa.array(people)) == "names of people"
    given = ["Anna", "Peter", "Jürgen", "Zoé", "Luis", "Giulia", "Maria", "Tom", "Uwe", "Ute", "Yvonne"]
    assert are_given_names(given)
    assert content_identifier(pa.array(given)) == "given names of people"
    others = [
        f"{head}{tail}"
        for head in ("Zel", "Quo", "Vry", "Ost", "Ilm")
        for tail in "abcdefghijklmnopqrstuvwxyz"
    ]
    many = [*sorted(_GIVEN)[:60], *others, *(f"{name}a" for name in others), *(f"{name}o" for name in others)]
    assert content_identifier(pa.array(many)) == "given names of people"
    assert content_identifier(pa.array(many[25:])) == ""  # as many common ones as among towns
    assert content_identifier(pa.array([f"{name} {n}" for n, name in enumerate(many)])) == ""
    assert are_postal_addresses(["12 Main St", "Hauptstraße 5", "5 rue Monge", "Calle Mayor 7", "Via Roma 1"])
    assert not are_postal_addresses(["Main Street", "Hauptstraße", "Platz 1", "Berlin", "10115"])
    assert content_identifier(pa.array([f"Lindenweg {i}" for i in range(9)])) == "postal addresses"


@pytest.mark.parametrize(
    "name",
    [
        "SSN", "e-mail", "lastName", "phone_number", "name", "patient name", "fake_first_name", "patient_no",
        "insurance_number",
        "Vorname", "Nachname", "Straße", "Telefonnummer", "Versichertennummer", "PatientenNr", "Kundennummer",
        "Sozialversicherungsnummer", "Personalnummer",
        "prénom", "nom", "nom_de_famille", "adresse", "téléphone", "numero_dossier", "numéro de patient", "NIR",
        "nombre", "nombre_paciente", "apellidos", "dirección", "DNI", "teléfono móvil", "numero_de_historia",
        "cognome", "codice_fiscale", "indirizzo", "cellulare", "codice paziente",
    ],
)  # fmt: skip
def test_names_of_columns_that_lead_to_a_person(name):
    assert looks_like_identifier(name)


@pytest.mark.parametrize(
    "name",
    [
        "age", "sex", "hospital_name", "country", "number_of_children", "num_patients", "id_type", "x7", "weight",
        "Alter", "Geschlecht", "Postleitzahl", "Beruf", "Kinderzahl", "Fallzahl", "nombre_enfants", "ville", "métier",
        "edad", "sexo", "provincia", "età", "professione", "comune", "mobility", "ship_mode", "description",
    ],
)  # fmt: skip
def test_names_of_columns_that_do_not(name):
    assert looks_like_identifier(name) == ""


def test_few_values_tell_nobody_apart_whatever_the_name():
    assert not tells_many_apart(2, 100)
    assert tells_many_apart(21, 100_000)
    assert tells_many_apart(11, 100)
