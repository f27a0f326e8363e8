"""``sfumato report``: the owner's page, which is never a part of a release."""

from __future__ import annotations

import pytest
from commandline import POLICY, names, people

import sfumato as sf


def test_the_page_is_written_beside_and_says_whom_it_is_for(sfumato, here, release, table):
    before = {path.name: path.read_bytes() for path in release.iterdir()}
    done = sfumato("report", release, "--raw", table, "--out", "mine.html")
    assert (done.code, done.err) == (0, "")
    assert done.out == "mine.html: for the owner alone; it holds facts of the raw table. Do not publish it.\n"
    assert "For the owner alone." in (here / "mine.html").read_text(encoding="utf-8")
    assert {path.name: path.read_bytes() for path in release.iterdir()} == before
    assert sfumato("verify", release).code == 0


def test_it_is_never_written_into_a_release(sfumato, here, release, table, policy):
    assert sfumato("publish", table, "--policy", policy, "--out", "other", "--quiet").code == 0
    (release / "deep").mkdir()
    (here / "link").symlink_to(release)
    for folder in (release, here / "other", release / "deep", here / "link"):
        done = sfumato("report", release, "--raw", table, "--out", folder / "mine.html")
        assert (done.code, done.out) == (2, "")
        assert "is a release, and nothing else belongs there" in done.sentence
        assert not (folder / "mine.html").exists()


def test_a_page_that_is_there_stays_unless_it_may_be_replaced(sfumato, here, release, table):
    (here / "mine.html").write_text("mine", encoding="utf-8")
    arguments = ("report", release, "--raw", table, "--out", "mine.html")
    assert "already exists" in sfumato(*arguments).sentence
    assert (here / "mine.html").read_text(encoding="utf-8") == "mine"
    assert sfumato(*arguments, "--overwrite").code == 0
    assert "For the owner alone." in (here / "mine.html").read_text(encoding="utf-8")


def test_a_page_that_fails_leaves_nothing(sfumato, here, release):
    (here / "other.csv").write_text("age,sex,zip,disease,charge\n3,Male,02139,flu,1\n", encoding="utf-8")
    done = sfumato("report", release, "--raw", "other.csv", "--out", "mine.html")
    assert done.code == 2
    assert "The table has 1 row, and the release was made from 60" in done.sentence
    assert "mine.html" not in names(here)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--raw", "people.csv"), "Missing option '--out'"),
        (("--out", "a.html"), "Missing option '--raw'"),
        (("--raw", "people.csv", "--out", "a.txt"), "--out writes an .html file"),
        (("--raw", "nowhere.csv", "--out", "a.html"), "nowhere.csv"),
        (("--raw", "people.csv", "--out", "no/such/a.html"), "there is no folder"),
        (("--raw", "people.csv", "--out", "a.html", "--memory", "1MB"), "--memory must be at least"),
    ],
)
def test_wrong_usage_is_one_sentence(sfumato, here, release, table, arguments, sentence):
    done = sfumato("report", release, *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.sentence
    assert not list(here.glob("a.*"))


def test_a_folder_that_is_no_release_is_refused(sfumato, here, table):
    (here / "folder").mkdir()
    assert "is it a release folder" in sfumato("report", "folder", "--raw", table, "--out", "a.html").sentence


@pytest.mark.parametrize("method", ["{risk-utility: {utility-at-least: 0.5}}", "tds"])
def test_other_methods_have_a_page_too(sfumato, here, table, method):
    text = POLICY.partition("require")[0] if method != "tds" else POLICY + "workload: [classify: disease]\n"
    sf.publish(people(), sf.Policy.parse(f"{text}method: {method}\n"), file_format="csv").write(here / "out")
    assert sfumato("report", "out", "--raw", table, "--out", "mine.html").code == 0
    page = (here / "mine.html").read_text(encoding="utf-8")
    assert "Before and after" in page
    assert ("What was lost, and why" in page) == (method == "tds")
