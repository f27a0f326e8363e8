"""A draft as it is settled: what passes, what a trial shows, what is dropped, and whom groups count."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.policy.schema import Kind, Role
from sfumato.profiling import trial
from sfumato.profiling.draft import Trial
from sfumato.profiling.profile import profile
from sfumato.profiling.roles import PASSING
from sfumato.profiling.settle import _find_least_telling
from sfumato.profiling.uniqueness import NOT_RANKED
from sfumato.table.opening import open_table

N = 400


def random_column(n_values, n=N, seed=0):
    """Words without a digit: codes of many values would be taken for numbers of people."""
    words = [
        f"{first}{second}"
        for first in "bcdfghklmn"
        for second in ("al", "en", "ir", "os", "ux", "ay", "ed", "it", "on")
    ]
    return [words[i] for i in np.random.default_rng(seed).integers(0, n_values, n)]


def column(draft, name):
    return next(found for found in draft.columns if found.name == name)


# ---- what passes as it is --------------------------------------------------------------------------------


def test_columns_that_pass_single_out_few_rows_all_together():
    columns = {f"disease_{letter}": random_column(6, seed=i) for i, letter in enumerate("abcdef")}
    draft = profile(pa.table({"sex": ["m", "f"] * (N // 2), **columns}))
    passing = [found.name for found in draft.columns if found.role in PASSING]
    assert 0 < len(passing) < 6
    rows = Counter(zip(*(columns[name] for name in passing), strict=True))
    assert sum(count == 1 for count in rows.values()) <= 0.05 * N
    turned = [found for found in draft.columns if found.name in columns and found.name not in passing]
    assert all(found.role is Role.QUASI_IDENTIFIER for found in turned)
    assert all("would single out more than 5% of the rows" in found.why[1] for found in turned)


def test_a_column_that_publish_would_refuse_by_its_name_does_not_pass():
    table = pa.table({"age": random_column(20), "health_insurance_code": random_column(30, seed=1)})
    draft = profile(table)
    assert column(draft, "health_insurance_code").role is Role.QUASI_IDENTIFIER
    assert 'says "insurance code"' in " ".join(column(draft, "health_insurance_code").why)
    assert sf.publish(table, draft.policy()).rows.num_rows == N


def test_numbers_are_generalized_before_words():
    ages = [str(20 + i % 50) for i in range(N)]
    table = pa.table(
        {"age": ages, "disease": random_column(8), "income": [str(1000 + 13 * i) for i in range(N)]}
    )
    draft = profile(table)
    assert (column(draft, "income").role, column(draft, "disease").role) == (
        Role.QUASI_IDENTIFIER,
        Role.SENSITIVE,
    )
    assert column(draft, "income").kind is Kind.NUMBER


def test_a_column_found_by_its_content_is_an_identifier_whatever_its_name():
    table = pa.table({"age": ["31", "42"] * 20, "xx": [f"p{i % 9}@mail.example" for i in range(40)]})
    found = column(profile(table), "xx")
    assert found.role is Role.IDENTIFIER
    assert found.why == ("Its values are e-mail addresses: they lead straight to a person.",)


# ---- hierarchies of the library --------------------------------------------------------------------------


def diagnoses(n=N):
    codes = [f"{letter}{i:02}{end}" for letter in "CEIJ" for i in range(10, 20) for end in ("", ".1", ".9")]
    return [codes[i * 7 % len(codes)] for i in range(n)]


def test_diagnoses_are_known_by_their_codes_and_are_no_identifiers():
    found = column(profile(pa.table({"age": ["31", "42"] * (N // 2), "dx": diagnoses()})), "dx")
    assert found.as_policy() == {"role": "quasi-identifier", "hierarchy": {"library": "icd10"}}


def test_codes_of_one_form_stay_identifiers_though_a_hierarchy_would_take_them():
    codes = [f"{'ABC'[i % 3]}{i % 100:02}" for i in range(N)]
    assert (
        column(profile(pa.table({"age": ["31", "42"] * (N // 2), "xx": codes})), "xx").role is Role.IDENTIFIER
    )


def test_a_hierarchy_that_lacks_one_value_is_not_drafted():
    cells = ["France", "Germany", "Spain", "Italy", "Poland", "Austria", "Chile", "Peru"] * 50
    table = pa.table({"age": ["31", "42"] * (N // 2), "country": cells})
    assert column(profile(table), "country").as_policy()["hierarchy"] == {"library": "country-names"}
    lacking = table.set_column(1, "country", pa.array([*cells[:-1], "Atlantis"]))
    assert column(profile(lacking), "country").hierarchy is None


def test_few_small_numbers_are_no_codes_of_a_list():
    table = pa.table({"age": ["31", "42"] * (N // 2), "occupation": [str(i % 4 + 1) for i in range(N)]})
    assert column(profile(table), "occupation").hierarchy is None


# ---- the trial -------------------------------------------------------------------------------------------


def test_a_trial_finds_what_publishing_does():
    table = pa.table({f"c{i}": random_column(3 + 4 * i, seed=i) for i in range(6)})
    policy = sf.Policy.from_dict(
        {
            "attributes": {name: {"role": "quasi-identifier"} for name in table.column_names},
            "require": [{"k-anonymity": 5}],
        }
    )
    rows = sf.publish(table, policy).table
    stars = {name: rows[name].to_pylist().count("*") / N for name in table.column_names}
    assert any(0 < share < 1 for share in stars.values())
    assert trial.share_of_stars(open_table(table), policy) == pytest.approx(stars)


def test_a_number_says_nothing_where_its_range_is_the_whole_one():
    table = pa.table({"age": [10.0, 20.0, 30.0, 40.0] * 2, "one": [7.0] * 8})
    policy = sf.Policy.from_dict(
        {
            "attributes": {name: {"role": "quasi-identifier", "type": "number"} for name in ("age", "one")},
            "require": [{"k-anonymity": 8}],
        }
    )
    assert trial.share_of_stars(open_table(table), policy) == {"age": 1.0, "one": 0.0}


def test_a_trial_takes_all_rows_of_a_person(monkeypatch):
    monkeypatch.setattr(trial, "SAMPLED", 50)
    of_person = np.repeat(np.arange(100), 3)
    rows = trial.choose_rows(300, of_person)
    counts = np.bincount(of_person[rows])
    assert len(rows) == 50
    assert (counts[counts > 0] == 3).sum() >= 16  # at most one person is cut
    assert np.array_equal(trial.choose_rows(40, of_person[:40]), np.arange(40))
    assert len(np.unique(trial.choose_rows(300))) == 50


def test_columns_that_say_nothing_are_dropped_if_nobody_knows_them_and_at_most_one_in_five():
    unknown = {f"xx{letter}": random_column(60, seed=i) for i, letter in enumerate("abcdefgh")}
    draft = profile(
        pa.table({"age": [str(20 + i % 50) for i in range(N)], "city": random_column(70, seed=99), **unknown})
    )
    dropped = [found for found in draft.columns if found.role is Role.DROP]
    assert len(dropped) == 2  # a fifth of ten
    assert {found.name for found in dropped} <= set(unknown)
    assert all("makes room for others" in found.why[0] for found in dropped)
    assert draft.silent.isdisjoint(found.name for found in dropped)
    shown = draft.to_yaml()
    assert all(f"  {found.name}: {{role: drop}}" in shown for found in dropped)


def test_those_that_say_least_are_dropped_first(monkeypatch):
    """Ranked by what they add to the rows alone, xa comes first; but nothing is left of xc and xd anyway."""
    monkeypatch.setattr("sfumato.profiling.settle.MOST_DROPPED", 0)
    draft = profile(
        pa.table(
            {"age": random_column(30), **{f"x{c}": random_column(60, seed=i) for i, c in enumerate("abcd")}}
        )
    )
    said = replace(draft, trial=Trial(N, {"age": 1.0, "xa": 0.6, "xb": 0.4, "xc": 0.9, "xd": 1.0}))
    said = replace(said, ranking=replace(NOT_RANKED, rest=("xa", "xb", "xc", "xd")))
    assert _find_least_telling(said) == ["xd", "xc", "xa"]
    alike = replace(said, trial=Trial(N, dict.fromkeys(("xd", "xb", "xa"), 0.7)))
    assert _find_least_telling(alike) == ["xa", "xb", "xd"]


def test_a_coarser_finest_comes_before_anything_is_dropped_if_it_helps(monkeypatch):
    """Columns that speak as soon as they are coarse are kept; where it does not help, nothing is made coarse."""
    table = pa.table(
        {
            "zip": [f"{10000 + 7 * i % 9973}" for i in range(N)],
            "dx": diagnoses(),
            "xx": random_column(50),
            "yy": random_column(40),
        }
    )
    monkeypatch.setattr(trial, "share_of_stars", lambda sample, policy: shares_if(policy, coarse=0.0))
    draft = profile(table)
    assert (column(draft, "zip").finest, column(draft, "dx").finest) == (4, "chapter")
    assert draft.policy().as_dict()["attributes"]["dx"]["finest"] == "chapter"
    assert all(found.role is Role.QUASI_IDENTIFIER for found in draft.columns)
    monkeypatch.setattr(trial, "share_of_stars", lambda sample, policy: shares_if(policy, coarse=1.0))
    assert all(found.finest is None for found in profile(table).columns)


def shares_if(policy, *, coarse):
    attributes = policy.as_dict()["attributes"]
    return {
        name: coarse if "finest" in attributes[name] else 1.0
        for name in policy.schema.names(Role.QUASI_IDENTIFIER)
    }


def test_nothing_is_dropped_where_half_of_the_columns_say_something():
    unknown = {f"xx{letter}": random_column(3, seed=i) for i, letter in enumerate("abc")}
    draft = profile(pa.table({**unknown, "yy": random_column(90)}))
    assert all(found.role is Role.QUASI_IDENTIFIER for found in draft.columns)
    assert draft.silent == {"yy"}
    assert "In a trial on 400 rows it said nothing (*) in" in " ".join(draft.to_yaml().split("\n  # "))


def test_dates_and_unknown_codes_that_would_say_nothing_are_published_as_ranges():
    random = np.random.default_rng(5)
    days = np.datetime64("1950-03-04") + random.integers(0, 20_000, N)
    codes = {f"xx{letter}": [str(code) for code in random.integers(1, 8, N)] for letter in "abcdefghij"}
    draft = profile(pa.table({"born": days.astype(str), **codes}))
    born = column(draft, "born")
    assert born.as_policy() == {
        "role": "quasi-identifier",
        "type": "date",
        "bounds": ["1950-01-01", "2009-12-31"],
    }
    ranged = [found for found in draft.columns if found.name in codes and found.kind is Kind.NUMBER]
    assert len(ranged) >= 5
    assert all("if their order means nothing" in " ".join(found.why) for found in ranged)
    policy = draft.policy()
    released = sf.publish(pa.table({"born": days.astype(str), **codes}), policy)
    assert released.table["born"].to_pylist().count("*") < N / 2


# ---- the ranking -----------------------------------------------------------------------------------------


def test_the_ranking_stands_in_the_draft_and_in_the_summary():
    table = pa.table(
        {
            "age": [str(20 + i % 50) for i in range(N)],
            "sex": ["m", "f"] * (N // 2),
            "xx": random_column(9),
            "yy": random_column(40),
        }
    )
    draft = profile(table)
    lines = list(draft.summary())
    assert lines[0].startswith("By what others know, going by the names (2 columns), ")
    assert [line.split()[0] for line in lines[3:5]] == ["yy", "xx"]  # the worst first
    text = draft.to_yaml()
    assert all(f"# {line}\n" in text for line in lines[:-1])
    assert lines[-1] == f"Drafted: {draft.roles}."
    known = draft.ranking.n_alone
    rows = Counter(zip(table["age"].to_pylist(), table["sex"].to_pylist(), strict=True))
    assert known == sum(count == 1 for count in rows.values())


def test_a_larger_table_says_that_a_sample_was_counted(monkeypatch):
    monkeypatch.setattr("sfumato.profiling.uniqueness.MOST_COUNTED", 100)
    draft = profile(pa.table({"age": [str(20 + i % 50) for i in range(N)], "xx": random_column(9)}))
    assert draft.ranking.n_rows == 100
    assert draft.to_yaml().count("of which more stand alone than of all") == 2


# ---- people ----------------------------------------------------------------------------------------------


def stays(**columns):
    return pa.table({"age": [str(20 + i // 4 % 50) for i in range(N)], "ward": random_column(4), **columns})


def test_unit_is_drafted_where_a_number_of_people_repeats():
    draft = profile(stays(patient_no=[f"{1000 + i // 4}" for i in range(N)]))
    assert draft.policy().unit.column == "patient_no"
    assert "\nunit: patient_no\n" in draft.to_yaml()
    assert "at least 5 people" in draft.to_yaml()


def test_unit_is_a_comment_where_it_is_missing_in_some_rows():
    draft = profile(stays(patient_no=[None if i == 7 else f"{1000 + i // 4}" for i in range(N)]))
    assert draft.policy().unit is None
    assert "it is missing in some rows" in " ".join(draft.to_yaml().split("\n# "))


def test_names_that_repeat_and_numbers_that_do_not_are_no_unit():
    names = [
        f"{given} {family}"
        for given, family in itertools.product(("Anna", "Paul"), ("Berg", "Vogt", "Kaya", "Roth"))
    ]
    draft = profile(
        stays(patient=[names[i % 8] for i in range(N)], visit_no=[f"{9000 + 3 * i}" for i in range(N)])
    )
    assert column(draft, "patient").role is Role.IDENTIFIER
    assert draft.people is None


def test_a_number_of_persons_comes_before_another_that_repeats():
    table = stays(
        patient_id=[f"{1000 + i // 4}" for i in range(N)], serialno=[f"{5000 + i // 2}" for i in range(N)]
    )
    assert profile(table).people.name == "patient_id"


def test_fewer_people_than_k_are_asked_for_as_many_as_there_are():
    table = stays(patient_id=[f"P{i % 4}" for i in range(N)])
    assert [requirement.as_policy() for requirement in profile(table).policy().requirements] == [
        {"k-anonymity": 4}
    ]
