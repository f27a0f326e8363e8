"""``verify --side-table`` and ``apply --side-table`` of risk-utility releases, as a user meets them."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pyarrow.csv as pv
import pytest
from tradeoff_releases import POLICY, people, release_of

from sfumato.errors import InputError
from sfumato.methods.risk_utility.apply import generalize_rows
from sfumato.policy.document import Policy
from sfumato.table.write import write_table
from sfumato.verify.risk_utility.boxes import Boxes, Utilities

PEOPLE = people()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    release_of(PEOPLE).write(folder / "out")
    write_table(PEOPLE, folder / "people.csv")
    write_table(people(15, seed=7).append_column("note", pa.array(list(range(15)))), folder / "more.csv")
    return folder


@pytest.fixture
def release(made, here):
    """A release, its table and further rows, in the folder where the command runs."""
    shutil.copytree(made, here, dirs_exist_ok=True)
    return here


def test_verify_counts_risk_again_with_the_side_table(release, sfumato):
    done = sfumato("verify", "out", "--side-table", "people.csv")
    assert done.code == 0
    assert "ok    the mean risk is" in done.out
    assert "note  this is not k-anonymity" in done.out
    alone = sfumato("verify", "out")
    assert alone.code == 0
    assert "give it with --side-table" in alone.out


def test_verify_with_another_side_table_fails(release, sfumato):
    write_table(people(40, seed=9), release / "others.csv")
    done = sfumato("verify", "out", "--side-table", "others.csv")
    assert done.code == 1
    assert "FAIL" in done.out
    assert done.sentence.startswith("Verification failed: ")


@pytest.mark.parametrize(
    ("side", "words"),
    [("nowhere.csv", "nowhere.csv"), ("lacking.csv", "has no column 'zip', which risk is counted by")],
)
def test_a_side_table_that_cannot_be_used_is_one_sentence(release, sfumato, side, words):
    write_table(PEOPLE.drop_columns(["zip"]), release / "lacking.csv")
    done = sfumato("verify", "out", "--side-table", side)
    assert done.code == 2
    assert done.sentence.startswith("In the side table: ")
    assert words in done.sentence


def test_verify_of_a_table_takes_no_side_table_and_no_risk_utility_policy(release, sfumato):
    (release / "policy.yaml").write_text(POLICY)
    done = sfumato("verify", "people.csv", "--policy", "policy.yaml", "--side-table", "people.csv")
    assert (done.code, "leave out --policy" in done.sentence) == (2, True)
    done = sfumato("verify", "people.csv", "--policy", "policy.yaml")
    assert (done.code, "A table alone does not show" in done.sentence) == (2, True)


def test_apply_without_a_side_table_says_why_it_cannot(release, sfumato):
    done = sfumato("apply", "out", "more.csv", "--out", "recoded.csv")
    assert done.code == 2
    assert "has no recoding" in done.sentence
    assert "--side-table TABLE" in done.sentence
    assert not (release / "recoded.csv").exists()


def test_apply_optimizes_further_rows_anew_in_their_order(release, sfumato):
    done = sfumato("apply", "out", "more.csv", "--out", "recoded.csv", "--side-table", "people.csv")
    assert (done.code, done.out) == (0, "recoded.csv: 15 rows generalized anew, without a promise.\n")
    found = pv.read_csv(release / "recoded.csv", convert_options=pv.ConvertOptions(strings_can_be_null=True))
    assert found.column_names == ["age", "zip", "job", "admitted", "disease", "note"], (
        "without the identifier"
    )
    assert found.column("note").to_pylist() == list(range(15))
    boxes = Boxes.of(found, Policy.read(release / "out" / "policy.yaml"), ["age", "zip"])
    assert not boxes.find_strange()
    utilities = Utilities.of(boxes)
    assert isinstance(utilities, Utilities)
    assert utilities.of_line.best_excess.min() >= 0, "every row keeps what the policy asks for"


def test_apply_needs_the_quasi_identifiers_alone(release, sfumato):
    write_table(people(8, seed=3).drop_columns(["name", "disease"]), release / "few.csv")
    assert sfumato("apply", "out", "few.csv", "--out", "o.csv", "--side-table", "people.csv").code == 0
    write_table(people(8, seed=3).drop_columns(["job"]), release / "fewer.csv")
    done = sfumato("apply", "out", "fewer.csv", "--out", "other.csv", "--side-table", "people.csv")
    assert (done.code, "has no column 'job'" in done.sentence) == (2, True)


def test_apply_takes_no_memory_where_it_cannot_keep_to_it(release, sfumato):
    done = sfumato(
        "apply", "out", "more.csv", "--out", "o.csv", "--side-table", "people.csv", "--memory", "1GB"
    )
    assert (done.code, "leave out --memory" in done.sentence) == (2, True)


def test_only_risk_utility_releases_are_applied_with_a_side_table(here, sfumato):
    policy = "{attributes: {age: {role: quasi-identifier, type: number}}, require: [k-anonymity: 2]}"
    write_table(pa.table({"age": [1, 2, 3, 4]}), here / "t.csv")
    (here / "p.yaml").write_text(policy)
    assert sfumato("publish", "t.csv", "--policy", "p.yaml", "--out", "out").code == 0
    for command in (("apply", "out", "t.csv", "--out", "o.csv"), ("verify", "out")):
        done = sfumato(*command, "--side-table", "t.csv")
        assert done.code == 2
        assert "leave it out" in done.sentence
    with pytest.raises(InputError, match="Only a risk-utility release"):
        generalize_rows(here / "t.csv", here / "p.yaml", here / "t.csv")
