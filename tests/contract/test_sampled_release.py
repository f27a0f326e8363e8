"""Private risk-utility through the command: rows are drawn, what is rare is not published, and the cost is kept."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import pytest
import sampled_people as people

import sfumato as sf
from sfumato.table.write import write_table

SECRET = "SECRET-CELL"  # a cell that no message may quote, and no file of a release may hold
PUBLISH = ("publish", "table.csv", "--policy", "policy.yaml", "--out", "out")


@pytest.fixture
def folder(here):
    """A policy with its side table beside it, and a table with cells of all kinds."""
    (here / "policy.yaml").write_text(people.policy().to_yaml())
    write_table(people.people(1500, seed=2, public=True), here / "side.csv")
    table = people.people()
    strange = [SECRET if at % 40 == 0 else cell for at, cell in enumerate(table["zip"].to_pylist())]
    write_table(table.set_column(2, "zip", [strange]), here / "table.csv")
    return here


def test_a_private_release_is_published_and_verified(sfumato, folder):
    done = sfumato(*PUBLISH)
    assert (done.code, done.err) == (0, "")
    assert " drawn rows in " in done.out
    assert (
        "(epsilon, delta)-differential privacy, in both directions: epsilon 1, delta 9.24694e-07" in done.out
    )
    assert "boxes that fewer than 35 of the drawn rows have are not published" in done.out
    assert {path.name for path in (folder / "out").iterdir()} == {
        "release.csv", "certificate.json", "policy.yaml", "report.html",
    }  # fmt: skip
    assert all(SECRET.encode() not in path.read_bytes() for path in (folder / "out").iterdir())
    checked = sfumato("verify", "out", "--side-table", "side.csv")
    assert checked.code == 0
    assert "ok    every box is published at least 35 times" in checked.out
    assert "ok    the public side table is the one that boxes were chosen by" in checked.out
    assert "note  owner's word: the randomness itself cannot be checked from an output" in checked.out


def test_nothing_tells_how_many_rows_there_are(sfumato, folder):
    """Twice the table: all that may differ in the certificate is what follows from the published rows."""
    said = []
    for n in (1, 2):
        table = people.people()
        write_table(table.take([at for _ in range(n) for at in range(len(table))]), folder / "table.csv")
        assert sfumato(*PUBLISH, "--overwrite").code == 0
        certificate = json.loads((folder / "out" / "certificate.json").read_text())
        said.append({word: part for word, part in certificate.items() if word != "claims"})
    assert said[0] == said[1]


def test_another_side_table_is_found(sfumato, folder):
    assert sfumato(*PUBLISH).code == 0
    write_table(people.people(1500, seed=3, public=True), folder / "side.csv")
    checked = sfumato("verify", "out", "--side-table", "side.csv")
    assert checked.code == 1
    assert "its SHA-256 is another" in checked.err


def test_a_row_that_is_added_by_hand_is_found(sfumato, folder):
    assert sfumato(*PUBLISH).code == 0
    release = folder / "out" / "release.csv"
    release.write_text(release.read_text() + "99,*,*,*\n")
    checked = sfumato("verify", "out")
    assert checked.code == 1
    assert "FAIL  every box is published at least 35 times" in checked.out


def test_the_ledger_keeps_epsilon_and_delta(sfumato, folder):
    (folder / "ledger.json").write_text('{"budget": {"epsilon": 3, "delta": 1.0e-6}}')
    assert sfumato(*PUBLISH, "--ledger", "ledger.json").code == 0
    (entry,) = json.loads((folder / "ledger.json").read_text())["releases"]
    assert entry["epsilon"] == "1"
    assert Fraction(entry["delta"]) == Fraction("9.24694e-07")
    done = sfumato(*PUBLISH[:-1], "again", "--ledger", "ledger.json")
    assert done.code == 1
    assert "would exceed the budget of ledger.json" in done.sentence
    assert not (folder / "again").exists()


def test_a_seed_is_said_aloud(sfumato, folder):
    done = sfumato(*PUBLISH, "--seed", "3")
    assert done.code == 0
    assert "seeded, not private" in done.err
    assert json.loads((folder / "out" / "certificate.json").read_text())["promise"] == "nothing is promised"


def test_an_empty_table_is_an_empty_release_that_says_so(sfumato, folder):
    (folder / "table.csv").write_text("name,age,zip,sex,born,note\n")
    done = sfumato(*PUBLISH)
    assert done.code == 0
    assert (
        "out: 0 drawn rows in 0 boxes, verified. Nothing was drawn often enough to be published." in done.out
    )
    assert sfumato("verify", "out").code == 0


def test_parameters_that_are_of_no_use_are_said_to_be(sfumato, folder):
    (folder / "policy.yaml").write_text(people.policy(**{"utility-at-least": 1}).to_yaml())
    done = sfumato(*PUBLISH)
    assert done.code == 0
    assert "these numbers make the release of little use: only " in done.out


@pytest.mark.parametrize(
    ("replaced", "by", "sentence"),
    [
        ('side-table: "side.csv"', 'side-table: "nowhere.csv"', "nowhere.csv"),
        ("delta: 1.0e-06", "delta: 1.0e-06, sample: 0.7", "must be at most 1 - exp(-epsilon), which is 0.6321"),
        ("bounds: [0, 99], step: 1, hierarchy: {balanced: 2}", "bounds: [0, 99]", "declare bounds and step"),
        ("note: {role: drop", "note: {role: other", "publishes quasi-identifiers alone"),
        ("optimizer: auto", "optimizer: genetic", "does not choose the box of a row by the row and the side table alone"),
    ],
)  # fmt: skip
def test_what_cannot_be_private_is_said_before_anything_is_charged(sfumato, folder, replaced, by, sentence):
    text = (folder / "policy.yaml").read_text().replace("step: 1}", "step: 1, hierarchy: {balanced: 2}}")
    assert replaced in text
    (folder / "policy.yaml").write_text(text.replace(replaced, by))
    done = sfumato(*PUBLISH, "--ledger", "ledger.json")
    assert done.code == 2
    assert sentence in done.sentence
    assert not (folder / "ledger.json").exists()
    assert not (folder / "out").exists()


def test_the_published_rows_answer_by_their_labels(sfumato, folder):
    """Labels that lie wholly inside count wholly; bounds are told of no private release."""
    sfumato(*PUBLISH)
    read = sf.Release.read(folder / "out")
    labels = read.rows.column("age").to_pylist()
    whole = sum(n for label, n in Counter(labels).items() if label != "*")
    assert whole < len(labels) or "*" not in labels
    answer = read.query("COUNT(*)", "age >= 0")
    assert whole <= answer.value <= len(labels)
    assert (answer.low, answer.high) == (None, None)
    done = sfumato("query", "out", "AVG(age) WHERE age >= 40")
    assert (done.code, done.err) == (0, "")
    assert "drawn at random: of the table nothing is certain" in done.out
    chosen = sfumato("select", "out", "age >= 40", "--out", "old.csv")
    assert chosen.code == 0, chosen.err
    assert "rows that may match." in chosen.out
    refused = sfumato("query", "out", "MIN(age)")
    assert (refused.code, "tells nothing" in refused.err) == (2, True)
