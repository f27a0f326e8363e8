"""Which hierarchies of the library are proposed for a column."""

from __future__ import annotations

import pytest

from sfumato.policy.hierarchy.library.proposals import Proposal, proposals

ZIPS = ["53715", "02139", "94110", "03601", "60601", "10001"]


@pytest.mark.parametrize(
    ("column", "values", "first"),
    [
        ("zip", ZIPS, "us-zip"),
        ("PLZ", ZIPS, "postcodes-de"),
        ("code_postal", ["75001", "69002"], "postcodes-fr"),
        ("codigoPostal", ["28001", "08001"], "postcodes-es"),
        ("country", ["DE", "FR", "US"], "countries"),
        ("x17", ["DE", "FR", "US", "JP", "BR"], "countries"),
        ("land", ["DEU", "FRA"], "countries-alpha3"),
        ("Herkunftsland", ["Germany", "France", "Japan", "Kenya", "Chile"], "country-names"),
        ("state", ["CA", "NY"], "us-states"),
        ("x", ["California", "Texas", "Ohio", "Utah", "Iowa"], "us-state-names"),
        ("diag_1", ["250.83", "V57", "E909", "8", "428"], "icd9"),
        ("Hauptdiagnose Diagnose", ["I10", "E11.9"], "icd10"),
        ("col9", ["A00.1", "I10", "E11.9", "S72.0", "J45"], "icd10"),
        ("isco08", ["2110", "5120"], "isco08"),
        ("soc", ["11-1011", "15-1252"], "soc2018"),
        ("edu_isced", ["3", "344"], "isced2011"),
        ("education", ["Bachelors", "HS-grad", "9th"], "education-names"),
        ("age", [17, 90, 45], "ages"),
        ("Âge", [17.0, 90.0], "ages"),
        ("region", ["DE212", "FRK26"], "nuts"),
        ("postcode", ["SW1A 1AA", "M1 1AE"], "postcodes-uk"),
    ],
)
def test_the_first_proposal_fits_the_column(column, values, first):
    found = proposals(column, values)
    assert found[0].name == first
    assert found[0].as_policy == {"library": first}
    assert found[0].share >= 0.95


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("amount", ZIPS),  # digits alone are anything
        ("score", [17, 45, 90]),
        ("age", [17, 45, 900]),
        ("country", ["DE", "Narnia", "Oz"]),
        ("x", ["DE", "FR"]),  # too few to be recognized without a name
        ("diagnosis", ["flu", "cold"]),
        ("diagnosis", []),
        ("zip", [53715, 60601]),  # numbers, which have lost their zeros
    ],
)
def test_what_does_not_fit_is_not_proposed(column, values):
    assert proposals(column, values) == []


def test_one_value_in_twenty_may_be_unknown():
    known = [f"{number:05}" for number in range(10_001, 10_020)]
    assert proposals("zip", [*known, "none"])[0] == Proposal("us-zip", 0.95, is_named=True)
    assert proposals("zip", [*known[1:], "none"]) == []


def test_a_proposal_says_what_it_is_and_which_levels_it_has():
    (found, *_) = proposals("zip", ZIPS)
    assert found.title.startswith("ZIP codes of the United States")
    assert found.levels == ("zip", "zip3", "zone")
