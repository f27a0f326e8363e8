"""Groups of people: what published rows show, what is the owner's word, and what the raw table says again."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tampering import edit_certificate, rehash
from unit_tables import PERSON, people_table

import sfumato as sf
from sfumato.errors import InputError, PromiseError
from sfumato.methods.people import CountedPeople
from sfumato.policy.document import Policy
from sfumato.release.certificate import RiskClaim
from sfumato.table.opening import open_table
from sfumato.verify import drafts
from sfumato.verify.recoding import read_recoding
from sfumato.verify.routing import route_rows
from sfumato.verify.sql import sql_of

POLICY = """
attributes:
  patient: {role: identifier}
  age: {role: quasi-identifier, type: number, bounds: [0, 99], step: 1}
  zip: {role: quasi-identifier, hierarchy: {mask: 2}}
  disease: {role: sensitive}
  pay: {role: sensitive, type: number}
require:
- k-anonymity: 3
- entropy-diversity: {l: 1.5, of: disease}
- distinct-diversity: {l: 2, of: disease}
- variance-diversity: {at-least: 1, of: pay}
- t-closeness: {t: 0.6, of: disease}
unit: patient
"""
OWNERS_WORD = "owner's word: "


def stays(n: int = 200) -> pa.Table:
    chance = random.Random(4)
    patient = [chance.randrange(n // 3) for _ in range(n)]
    return pa.table(
        {
            "patient": [f"p{who}" for who in patient],
            "age": [who * 7 % 60 + 20 for who in patient],
            "zip": [f"{10 + who % 9}" for who in patient],
            "disease": [chance.choice(["flu", "cold", "gout"]) for _ in patient],
            "pay": [chance.randrange(50) for _ in patient],
        }
    )


PEOPLE = len({*stays()["patient"].to_pylist()})


@pytest.fixture
def released(tmp_path):
    folder = tmp_path / "release"
    sf.publish(stays(), Policy.parse(POLICY)).write(folder)
    return folder


def claims_of(folder: Any, **options: Any) -> dict[str, str]:
    return {check.claim: check.mark for check in sf.verify_folder(folder, **options).checks}


def test_what_people_reach_is_the_owners_word(released):
    found = claims_of(released)
    assert "FAIL" not in found.values()
    assert found[f"{OWNERS_WORD}3-anonymity holds of people"] == "note"
    assert found[f"{OWNERS_WORD}0.6-closeness of 'disease' holds of people"] == "note"
    assert found[f"{OWNERS_WORD}the rows are those of {PEOPLE} people"] == "note"


def test_the_raw_table_says_it_again(released):
    found = claims_of(released, table=stays())
    assert "FAIL" not in found.values()
    assert [found[f"{item} holds of people"] for item in Policy.parse(POLICY).requirements] == ["ok"] * 5
    assert found[f"the number of people is {PEOPLE}"] == "ok"


def edit_rows(folder: Any, change: Any) -> None:
    table = pq.read_table(folder / "release.parquet")
    pq.write_table(change(table), folder / "release.parquet")
    rehash(folder)


def test_a_group_with_fewer_rows_than_people_are_asked_for_fails(released):
    def split_off(table: pa.Table) -> pa.Table:
        zips = table["zip"].to_pylist()
        zips[0] = "xx"
        return table.set_column(table.column_names.index("zip"), "zip", pa.array(zips).dictionary_encode())

    edit_rows(released, split_off)
    (check,) = [one for one in sf.verify_folder(released).checks if one.claim == "3-anonymity holds"]
    assert check.mark == "FAIL"
    assert check.detail.startswith("the smallest group has 1 row, and no more people, and 1 of ")


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        (lambda claims: claims["requirements"][0].update(achieved=2.0), "the smallest group has 2 people"),
        (lambda claims: claims["requirements"][0].update(achieved=150.0), "the smallest group has 150 people"),
        (lambda claims: claims["requirements"][2].update(achieved=9.0), "the fewest different values is 9"),
        (lambda claims: claims["requirements"][1].update(achieved=40.0), "counts as 40 equally"),
        (lambda claims: claims.update(people=201), "the rows are those of 201 people"),
        (lambda claims: claims.update(people=0), "the rows are those of 0 people"),
        (lambda claims: claims.update(unit="age"), "the certificate counts what the policy says"),
        (lambda claims: (claims.pop("unit"), claims.pop("people")), "the certificate counts what the policy says"),
        (lambda claims: claims.pop("people"), "the certificate is readable and complete"),
    ],
)  # fmt: skip
def test_claims_that_cannot_be_true_fail_without_the_raw_table(released, change, claim):
    edit_certificate(released, lambda document: change(document["claims"]))
    failures = [check.claim for check in sf.verify_folder(released).failures]
    assert any(claim in failure for failure in failures), failures


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        (lambda claims: claims["requirements"][0].update(achieved=4.0), "the smallest group has 4 people"),
        (lambda claims: claims["requirements"][4].update(achieved=0.1), "whole table is 0.1 for"),
        (lambda claims: claims.update(people=PEOPLE - 1), f"the number of people is {PEOPLE - 1}"),
    ],
)
def test_claims_that_might_be_true_fail_with_the_raw_table(released, change, claim):
    edit_certificate(released, lambda document: change(document["claims"]))
    assert not sf.verify_folder(released).failures
    failures = [check.claim for check in sf.verify_folder(released, table=stays()).failures]
    assert any(claim in failure for failure in failures), failures


def test_patients_who_are_fewer_than_the_rows_say_fail_with_the_raw_table(released):
    raw = stays()
    merged = pa.array([who[:2] for who in raw["patient"].to_pylist()])
    failures = sf.verify_folder(released, table=raw.set_column(0, "patient", merged)).failures
    assert any(check.claim == "3-anonymity holds of people" for check in failures)


def test_another_raw_table_is_told(released):
    raw = stays()
    older = raw.set_column(1, "age", pa.array(raw["age"].to_pylist()[::-1]))
    for other in (raw.slice(1), older):
        (failure,) = sf.verify_folder(released, table=other).failures
        assert failure.claim == "the rows of the raw table fall into the groups of the release"


def test_a_raw_table_must_say_whose_each_row_is(released):
    raw = stays()
    nobody = pa.array([None, *raw["patient"].to_pylist()[1:]])
    with pytest.raises(InputError, match="'patient', the unit, is missing in 1 row"):
        sf.verify_folder(released, table=raw.set_column(0, "patient", nobody))
    with pytest.raises(InputError, match="has no column 'patient'"):
        sf.verify_folder(released, table=raw.drop_columns("patient"))


def test_a_release_of_rows_has_no_people_to_count(tmp_path):
    policy = Policy.parse(
        POLICY.replace("unit: patient", "unit: row").replace("t-closeness: {t: 0.6", "t-closeness: {t: 0.9")
    )
    sf.publish(stays(), policy).write(tmp_path / "release")
    with pytest.raises(InputError, match="this one does neither"):
        sf.verify_folder(tmp_path / "release", table=stays())


def test_no_sql_counts_people():
    assert sql_of(Policy.parse(POLICY), ["age", "zip", "disease", "pay"], "duckdb").endswith(
        "no SQL can count them."
    )


def test_groups_whose_labels_coincide_are_not_counted_apart():
    policy, rows = Policy.parse(POLICY), stays().drop_columns("patient")
    given = drafts.DraftRows(
        rows, policy, people=CountedPeople(63, 10_000, (3.0,) * 5, RiskClaim(1 / 3, 0.1, {}))
    )
    with pytest.raises(PromiseError, match="the same labels are one group"):
        drafts.examine_draft(given)


@pytest.mark.parametrize("number", range(0, 200, 3))
def test_rows_are_routed_to_the_labels_that_they_are_published_with(number, tmp_path):
    """By another reader of the recoding than the one that published them."""
    case = people_table(number)
    if not case.is_reachable:
        return
    release = sf.publish(case.table, case.policy)
    release.write(tmp_path / "release")
    recoding = read_recoding(tmp_path / "release", release.policy, 1 << 30)
    assert recoding is not None
    leaf = route_rows(recoding, open_table(case.table.drop_columns(PERSON)))[0]
    groups = case.groups(release.table)
    assert sorted(leaf[rows].tolist() for rows in groups.values()) == sorted(
        [leaf[rows[0]].item()] * len(rows) for rows in groups.values()
    )
    assert len({leaf[rows[0]].item() for rows in groups.values()} - {-1}) == len(groups)
