"""The account of all releases of a table."""

from __future__ import annotations

import json
import os
import threading
from fractions import Fraction
from typing import Any

import pytest

from sfumato.errors import BudgetExceeded, InputError
from sfumato.privacy import account


def entries(path):
    return [(one["release"], one["epsilon"]) for one in json.loads(path.read_text())["releases"]]


def test_releases_are_written_down_one_after_the_other(tmp_path):
    path = tmp_path / "ledger.json"
    account.charge(path, "first", Fraction(1, 10))
    account.charge(path, "second", Fraction(2))
    assert entries(path) == [("first", "1/10"), ("second", "2")]


def test_a_budget_is_kept_to_the_last_fraction(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_text('{"budget": "0.3"}')
    for name in "abc":
        account.charge(path, name, Fraction(1, 10))
    with pytest.raises(BudgetExceeded, match=r"3/10 of 3/10 is spent\. Nothing more") as raised:
        account.charge(path, "d", Fraction(1, 10**9))
    assert raised.value.exit_code == 1
    assert len(entries(path)) == 3


def test_what_is_left_of_a_budget_can_still_be_asked_for(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_text('{"budget": "1"}')
    account.charge(path, "a", Fraction(9, 10))
    with pytest.raises(BudgetExceeded, match=r"9/10 of 1 is spent\. Ask for a smaller epsilon"):
        account.charge(path, "b", Fraction(2, 10))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"releases": 3}',
        '{"releases": [{}]}',
        '{"releases": [{"epsilon": 1}]}',
        "\udcff",
        '{"releases": {}}',
        '{"releases": null}',
        '{"releases": "abc"}',
        '{"releases": [["epsilon"]]}',
        "[" * 99_999,
    ],
)
def test_rubbish_is_no_ledger_and_stays_as_it_is(tmp_path, text):
    path = tmp_path / "ledger.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    with pytest.raises(InputError, match="is no ledger of releases"):
        account.charge(path, "a", Fraction(1))
    assert path.read_bytes() == before


@pytest.mark.parametrize("number", ["-1", "many", "nan", "1/0", "1e999999999", "1e-999999999", "", "."])
def test_an_epsilon_that_is_no_number(tmp_path, number):
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps({"budget": number}))
    with pytest.raises(InputError, match="no number of at least 0"):
        account.charge(path, "a", Fraction(1))


@pytest.mark.parametrize("budget", [0, "0", 0.0, {"epsilon": 0}])
def test_a_budget_of_nothing_allows_nothing(tmp_path, budget):
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps({"budget": budget}))
    with pytest.raises(BudgetExceeded, match="0 of 0 is spent"):
        account.charge(path, "a", Fraction(1, 10**9))


def test_what_the_owner_wrote_stays_as_it_is(tmp_path):
    path = tmp_path / "ledger.json"
    written: dict[str, Any] = {
        "budget": 2.50,
        "releases": [{"epsilon": " 0.50 ", "release": "a", "note": ["mine"]}],
    }
    path.write_text(json.dumps(written))
    account.charge(path, "b", Fraction(2))
    with pytest.raises(BudgetExceeded):
        account.charge(path, "c", Fraction(1, 10**9))
    written["releases"].append({"release": "b", "epsilon": "2"})
    assert path.read_text() == json.dumps(written, indent=2) + "\n"


def test_the_schema_of_an_account_is_generated():
    schema = account.Account.model_json_schema()
    assert {*schema["properties"]} == {"budget", "releases"}
    assert schema["$defs"]["Entry"]["required"] == ["epsilon"]


def test_deltas_add_up_beside_epsilons(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_text(
        '{"budget": {"epsilon": "3", "delta": "2e-6"}, "releases": [{"release": "old", "epsilon": "1"}]}'
    )
    account.charge(path, "a", Fraction(1), Fraction(1, 10**6))
    account.charge(path, "b", Fraction(1, 2))
    with pytest.raises(
        BudgetExceeded, match=r"of delta 1/500000 would .* 1/1000000 of 1/500000 is spent\. Ask .* delta"
    ):
        account.charge(path, "c", Fraction(1, 10), Fraction(2, 10**6))
    account.charge(path, "d", Fraction(1, 10), Fraction(1, 10**6))
    with pytest.raises(BudgetExceeded, match="Nothing more with a delta above 0"):
        account.charge(path, "e", Fraction(1, 10), Fraction(1, 10**12))
    with pytest.raises(BudgetExceeded, match="of epsilon 1 would exceed"):
        account.charge(path, "f", Fraction(1))
    written = [tuple(one.values()) for one in json.loads(path.read_text())["releases"]]
    assert written == [("old", "1"), ("a", "1", "1/1000000"), ("b", "1/2"), ("d", "1/10", "1/1000000")]


def test_a_budget_of_epsilon_alone_allows_no_delta(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_text('{"budget": "1"}')
    with pytest.raises(BudgetExceeded, match=r"0 of 0 is spent.*says nothing of delta allows none"):
        account.charge(path, "a", Fraction(1, 10), Fraction(1, 10**9))
    account.charge(path, "a", Fraction(1))


def test_a_budget_that_came_after_its_releases_says_that_nothing_is_left(tmp_path):
    path = tmp_path / "ledger.json"
    account.charge(path, "a", Fraction(1), Fraction(1, 10**6))
    path.write_text(json.dumps({"budget": "5", **json.loads(path.read_text())}))
    with pytest.raises(BudgetExceeded, match=r"1/1000000 of 0 is spent\. Nothing more with a delta above 0"):
        account.charge(path, "b", Fraction(1), Fraction(1, 10**6))


@pytest.mark.parametrize("word", ["Budget", "delta budget"])
def test_a_misspelt_budget_is_not_passed_over(tmp_path, word):
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps({word: "1"}))
    with pytest.raises(InputError, match=f"holds '{word}', and a ledger has a budget and releases alone"):
        account.charge(path, "a", Fraction(1))
    assert json.loads(path.read_text()) == {word: "1"}


def test_without_a_budget_deltas_are_written_down(tmp_path):
    path = tmp_path / "ledger.json"
    account.charge(path, "a", Fraction(1), Fraction(1, 10**6))
    assert json.loads(path.read_text()) == {
        "releases": [{"release": "a", "epsilon": "1", "delta": "1/1000000"}]
    }


@pytest.mark.parametrize("budget", [{"delta": "1"}, {"epsilon": "1", "k": "2"}, {}])
def test_a_budget_of_other_words(tmp_path, budget):
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps({"budget": budget}))
    with pytest.raises(InputError, match="neither a number nor epsilon and delta"):
        account.charge(path, "a", Fraction(1))


def test_a_delta_that_is_no_number(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_text('{"releases": [{"release": "a", "epsilon": "1", "delta": "-1"}]}')
    with pytest.raises(InputError, match="a delta that is no number of at least 0"):
        account.charge(path, "b", Fraction(1))


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        account.charge(tmp_path / "nowhere" / "ledger.json", "a", Fraction(1))


def test_runs_at_once_are_all_charged(tmp_path):
    path = tmp_path / "ledger.json"
    runs = [threading.Thread(target=account.charge, args=(path, str(i), Fraction(1, 16))) for i in range(16)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert sorted(entries(path)) == sorted((str(i), "1/16") for i in range(16))


def test_nothing_is_left_beside_the_ledger(tmp_path):
    account.charge(tmp_path / "ledger.json", "a", Fraction(1))
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.json"]


def test_two_names_of_one_ledger_are_one_ledger(tmp_path):
    """By way of a link, in another folder: every run is charged, whichever name it used."""
    path, link = tmp_path / "ledger.json", tmp_path / "elsewhere" / "link.json"
    link.parent.mkdir()
    account.charge(path, "first", Fraction(1, 32))
    link.symlink_to(path)
    names = [path, link] * 12
    runs = [threading.Thread(target=account.charge, args=(name, "a", Fraction(1, 32))) for name in names]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert len(entries(path)) == 25
    assert link.is_symlink()
    assert [each.name for each in link.parent.iterdir()] == ["link.json"]


def test_a_hard_link_of_a_ledger_is_refused(tmp_path):
    account.charge(tmp_path / "ledger.json", "a", Fraction(1))
    os.link(tmp_path / "ledger.json", tmp_path / "other.json")
    with pytest.raises(InputError, match=r"has a second name \(a hard link\)"):
        account.charge(tmp_path / "other.json", "b", Fraction(1))
    assert len(entries(tmp_path / "ledger.json")) == 1


def test_a_planted_lock_is_neither_followed_nor_emptied(tmp_path):
    (tmp_path / "thesis.doc").write_text("years of work")
    (tmp_path / ".ledger.json.lock").symlink_to("thesis.doc")
    with pytest.raises(InputError, match="something else has the name of its lock"):
        account.charge(tmp_path / "ledger.json", "a", Fraction(1))
    assert (tmp_path / "thesis.doc").read_text() == "years of work"
    assert not (tmp_path / "ledger.json").exists()


@pytest.mark.parametrize("name", ["ledger.json", ".ledger.json.lock"])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_nobody_waits_for_a_pipe(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match=r"ledger\.json cannot be (read|written)"):
        account.charge(tmp_path / "ledger.json", "a", Fraction(1))


def test_a_lock_that_a_killed_run_left_stands_in_nobodys_way(tmp_path):
    (tmp_path / ".ledger.json.lock").touch()
    account.charge(tmp_path / "ledger.json", "a", Fraction(1))
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.json"]


def test_a_link_to_nowhere_begins_no_ledger(tmp_path):
    (tmp_path / "link.json").symlink_to("nowhere.json")
    with pytest.raises(InputError, match="is a link that leads nowhere"):
        account.charge(tmp_path / "link.json", "a", Fraction(1))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"budget": "1", "budget": "9"}', "budget"),
        ('{"releases": [{"release": "a", "epsilon": "1", "epsilon": "0"}]}', "epsilon"),
    ],
)
def test_a_key_that_stands_twice_is_refused(tmp_path, text, key):
    (tmp_path / "ledger.json").write_text(text)
    with pytest.raises(InputError, match=f"holds the key '{key}' twice"):
        account.charge(tmp_path / "ledger.json", "b", Fraction(1, 2))
    assert (tmp_path / "ledger.json").read_text() == text
