"""A ledger over all private releases of a table, through the command."""

from __future__ import annotations

import json
import subprocess

import pytest
from commandline import command, environment

from sfumato import verify_folder
from sfumato.methods.specialization.diffgen.release import draw_release
from sfumato.privacy.mechanisms import secret

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
    words = "Leave out --seed." if seed else "--ledger is only for differentially private releases"
    assert words in done.sentence
    assert not (table / "ledger.json").exists()


def test_a_bad_request_is_not_charged(sfumato, table):
    (table / "table.csv").write_text("work,class\nEngineer,Y\n")
    assert sfumato(*PUBLISH, "out").code == 2
    assert not (table / "ledger.json").exists()


def test_four_runs_into_one_folder_give_one_release_and_say_what_the_others_cost(table):
    """One wins. The others end with a sentence, and those that were charged say so."""
    runs = [
        subprocess.Popen(command(*PUBLISH, "out"), stderr=subprocess.PIPE, env=environment(), text=True)
        for _ in range(4)
    ]
    ended = [(run.communicate()[1], run.returncode) for run in runs]
    assert sorted(code for _, code in ended) == [0, 2, 2, 2]
    lost = [error for error, code in ended if code]
    assert all("out already exists" in error or "out appeared" in error for error in lost)
    charged = [error for error in lost if "Epsilon 1/2 of this run stays charged to ledger.json" in error]
    assert len(spent(table)) == 1 + len(charged)
    assert verify_folder(table / "out").ok


def test_a_run_that_loses_its_folder_after_the_charge_says_what_it_cost(sfumato, table, monkeypatch):
    def appear(*arguments, **options):
        (table / "out").mkdir()
        return draw_release(*arguments, **options)

    monkeypatch.setattr("sfumato.methods.specialization.diffgen.release.draw_release", appear)
    done = sfumato(*PUBLISH, "out")
    assert done.code == 2
    assert done.sentence.startswith("The folder out already exists")
    assert done.sentence.endswith(
        "Epsilon 1/2 of this run stays charged to ledger.json: rows were drawn before this happened."
    )
    assert list((table / "out").iterdir()) == []


def test_ctrl_c_after_the_charge_says_what_stays_charged(sfumato, table, monkeypatch):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sfumato.methods.specialization.diffgen.release.draw_release", interrupted)
    done = sfumato(*PUBLISH, "out")
    assert done.code == 130
    assert (
        "Interrupted; no release was written. Epsilon 1/2 of this run stays charged to ledger.json"
        in done.err
    )
    assert len(spent(table)) == 1


def test_a_run_that_finds_its_folder_taken_is_not_charged(sfumato, table, monkeypatch):
    def appear(*arguments):
        (table / "out").mkdir()
        return secret(*arguments)

    monkeypatch.setattr("sfumato.privacy.mechanisms.secret", appear)
    done = sfumato(*PUBLISH, "out")
    assert done.sentence == (
        "The folder out already exists; name another one, or allow it to be replaced (--overwrite)."
    )
    assert not (table / "ledger.json").exists()
