"""A ledger over all private releases of a table, through the command."""

from __future__ import annotations

import json

import pytest

POLICY = """
attributes:
  job: {role: quasi-identifier, values: [Engineer, Lawyer]}
  class: {role: other, values: [Y, N]}
workload: [classify: class]
method: {diffgen: {epsilon: 0.5}}
"""

PUBLISH = ("publish", "table.csv", "--policy", "policy.yaml", "--ledger", "ledger.json", "--out")


@pytest.fixture
def table(here):
    (here / "policy.yaml").write_text(POLICY)
    (here / "table.csv").write_text("job,class\nEngineer,Y\nLawyer,N\n")
    return here


def spent(folder):
    return [tuple(entry.values()) for entry in json.loads((folder / "ledger.json").read_text())["releases"]]


def test_releases_add_up_and_the_budget_is_kept(sfumato, table):
    (table / "ledger.json").write_text('{"budget": 1}')
    for name in ("first", "second"):
        assert sfumato(*PUBLISH, name).code == 0
    assert spent(table) == [("first", "1/2"), ("second", "1/2")]
    done = sfumato(*PUBLISH, "third")
    assert done.code == 1
    assert "1 of 1 is spent" in done.sentence
    assert not (table / "third").exists()
    assert len(spent(table)) == 2
    assert (table / "first" / "certificate.json").exists()


@pytest.mark.parametrize("seed", [True, False])
def test_what_is_not_private_has_no_place_in_it(sfumato, table, seed):
    if not seed:
        text = POLICY.replace("method: {diffgen: {epsilon: 0.5}}", "require: []")
        (table / "policy.yaml").write_text(text)
    done = sfumato(*PUBLISH, "out", *(["--seed", "1"] if seed else []))
    assert done.code == 2
    assert "leave out --seed" in done.sentence or "leave out --ledger" in done.sentence
    assert not (table / "ledger.json").exists()


def test_a_bad_request_is_not_charged(sfumato, table):
    (table / "table.csv").write_text("work,class\nEngineer,Y\n")
    assert sfumato(*PUBLISH, "out").code == 2
    assert not (table / "ledger.json").exists()
