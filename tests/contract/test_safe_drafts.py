"""The two aims of a draft, on tables that it was not made for: it keeps the columns, and what passes singles out few.

At most 5% of the rows of its release are alone by any three of the columns that pass as they are. It keeps at least 80%
of the columns that are no direct identifiers, free text or unique, and half of those are ``*`` in under half of the rows.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter

import pytest
from drafted_tables import TABLES

import sfumato as sf
from sfumato.errors import Notice
from sfumato.table.write import write_table

IDENTIFIERS = {
    "hospital": {"encounter_id", "patient_no", "patient_name", "contact", "callback", "attending"},
    "survey": {"respondent"},
    "payroll": {"Personalnummer", "Vorname", "Nachname", "Anschrift", "Konto"},
}
NO_LOSS = {"hospital": {"notes"}, "survey": {"open_answer"}, "payroll": {"Bemerkung"}}
"""Free text."""


def passing(policy: dict) -> list[str]:
    return [name for name, said in policy["attributes"].items() if said["role"] in ("other", "sensitive")]


@pytest.fixture(scope="module", params=TABLES)
def drafted(request):
    """A table by name, the policy that was drafted for it, and its release."""
    table = TABLES[request.param](1_200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)  # German days are recognized
        policy = sf.profile(table).policy()
        return request.param, table, policy.as_dict(), sf.publish(table, policy).table


def test_direct_identifiers_are_left_out(drafted):
    name, _, policy, rows = drafted
    roles = {column: said["role"] for column, said in policy["attributes"].items()}
    assert {column for column, role in roles.items() if role == "identifier"} == IDENTIFIERS[name]
    assert all(roles[column] == "drop" for column in NO_LOSS[name])
    assert not (IDENTIFIERS[name] | NO_LOSS[name]) & set(rows.column_names)


def test_no_three_columns_that_pass_single_out_more_than_one_row_in_twenty(drafted):
    _, _, policy, rows = drafted
    columns = {column: rows[column].to_pylist() for column in passing(policy)}
    for three in itertools.combinations(columns, min(3, len(columns))):
        alone = sum(n == 1 for n in Counter(zip(*(columns[c] for c in three), strict=True)).values())
        assert alone <= 0.05 * rows.num_rows, three


def test_nothing_passes_because_its_name_says_nothing(drafted):
    name, _, policy, _ = drafted
    named = {"hospital": {"died", "insulin_pump"}, "survey": {"party"}, "payroll": {"Krankheitstage"}}
    assert set(passing(policy)) <= named[name]


def test_four_columns_in_five_are_kept_and_half_of_them_say_something(drafted):
    name, table, _, rows = drafted
    worth_keeping = set(table.column_names) - IDENTIFIERS[name] - NO_LOSS[name]
    kept = worth_keeping & set(rows.column_names)
    assert len(kept) >= 0.8 * len(worth_keeping)
    speaking = [column for column in kept if rows[column].to_pylist().count("*") < rows.num_rows / 2]
    assert len(speaking) >= len(kept) / 2


def test_the_command_shows_what_each_column_adds_and_its_draft_publishes(sfumato, here):
    write_table(TABLES["hospital"](600), "stays.csv")
    done = sfumato("profile", "stays.csv", "--out", "policy.yaml")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("By what others know, going by the names (")
    assert lines[2].split("  ")[1] == "column"
    assert lines[-2].startswith("Drafted: ")
    text = (here / "policy.yaml").read_text(encoding="utf-8")
    assert all(f"# {line}\n" in text for line in lines[:-2])
    assert "unit: patient_no\n" in text
    assert sfumato("publish", "stays.csv", "--policy", "policy.yaml", "--out", "release").code == 0
    assert sfumato("verify", "release").code == 0
