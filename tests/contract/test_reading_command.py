"""Tables as people have them: German CSV files, spreadsheets, databases; each by the command."""

from __future__ import annotations

import pytest
from private_people import the_policy

from sfumato.policy.yaml import dump

POLICY = """\
attributes:
  age:   {role: quasi-identifier, type: number}
  born:  {role: quasi-identifier, type: date}
  größe: {role: other, type: number, passes: unique}
  stadt: {role: sensitive}
require: [k-anonymity: 5]
method: {mondrian: {variant: paper}}
"""
ROWS = "".join(
    f"{20 + i % 40};{i % 28 + 1}.{i % 12 + 1}.19{50 + i % 50};1,{i % 90 + 10};{'Köln' if i % 3 else 'Fürth'}\n"
    for i in range(60)
)
GERMAN = ("age;born;größe;stadt\n" + ROWS).encode("latin-1")
OPTIONS = ("--encoding", "latin-1", "--decimal", ",", "--dates", "%d.%m.%Y")


@pytest.fixture
def german(here):
    (here / "people.csv").write_bytes(GERMAN)
    (here / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return here


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_german_table_is_recognized_and_what_was_recognized_is_said(sfumato, german, engine):
    done = sfumato("publish", "people.csv", "--policy", "policy.yaml", "--out", "out", "--engine", engine)
    assert done.code == 0
    lines = done.err.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["note:"] * 3
    for line, words in zip(lines, ("cp1252", "decimal comma", "day.month.year"), strict=True):
        assert words in line
    assert "Köln" not in done.err
    header, first, *_ = (german / "out" / "release.csv").read_text(encoding="utf-8").splitlines()
    assert header == "age,born,größe,stadt"
    assert ",1." in first
    assert sfumato("verify", "out").code == 0


def test_declared_options_say_the_same_and_quiet_says_nothing(sfumato, german):
    arguments = ("publish", "people.csv", "--policy", "policy.yaml", "--seed", "1")
    told = sfumato(*arguments, "--out", "told", *OPTIONS)
    quiet = sfumato(*arguments, "--out", "quiet", "--quiet")
    assert (told.code, told.err, quiet.code, quiet.err) == (0, "", 0, "")
    assert (german / "told/release.csv").read_bytes() == (german / "quiet/release.csv").read_bytes()


def test_every_command_that_reads_a_table_takes_the_options(sfumato, german):
    publish = ("publish", "people.csv", "--policy", "policy.yaml", "--out", "out")
    assert sfumato(*publish, *OPTIONS).code == 0
    for command in (
        ("profile", "people.csv", "--out", "draft.yaml"),
        ("apply", "out", "people.csv", "--out", "further.csv"),
        ("evaluate", "people.csv", "--policy", "policy.yaml", "--folds", "2"),
    ):
        done = sfumato(*command, *OPTIONS)
        assert (done.code, done.err) == (0, ""), command
    assert (
        " --encoding cp1252 --decimal , " in sfumato("profile", "people.csv", "--out", "d.yaml", *OPTIONS).out
    )
    done = sfumato("verify", "people.csv", "--policy", "policy.yaml", *OPTIONS)
    assert (done.code, done.err[:28]) == (1, "sfumato: Verification failed")
    assert "--encoding" in sfumato("compare", "--help").out


def test_a_wrong_option_is_one_sentence(sfumato, german):
    done = sfumato("publish", "people.csv", "--policy", "policy.yaml", "--out", "out", "--decimal", ";")
    assert (done.code, done.sentence) == (2, "The decimal sign (--decimal) is . or , alone.")


def test_a_private_method_recognizes_nothing(sfumato, here):
    rows = "".join(f"0,{i % 10};{'low' if i % 10 < 5 else 'high'}\n" for i in range(500))
    (here / "people.csv").write_bytes(("rate;income\n" + rows).encode())
    policy = the_policy(columns=("rate",), epsilon=20).as_dict()
    policy["attributes"] = {
        name: given
        for name, given in policy["attributes"].items()
        if given["role"] not in ("drop", "identifier")
    }
    (here / "policy.yaml").write_text(dump(policy), encoding="utf-8")
    arguments = ("publish", "people.csv", "--policy", "policy.yaml", "--seed", "1")
    plain = sfumato(*arguments, "--out", "plain")
    told = sfumato(*arguments, "--out", "told", "--decimal", ",")
    assert (plain.code, told.code) == (0, 0)
    assert "note:" not in plain.err + told.err
    assert (here / "plain/release.csv").read_bytes() != (here / "told/release.csv").read_bytes()
