"""What stands in the way of --out stays, wrong words get a hint, and nothing steers the terminal."""

from __future__ import annotations

import click
import pyarrow as pa
import pytest
from commandline import POLICY

from sfumato import cli
from sfumato.errors import InputError
from sfumato.examples.agrawal import write_agrawal
from sfumato.table.files import check_file_target, replace_atomically
from sfumato.table.write import TableWriter

CLASSIFY = f"{POLICY}workload: [classify: sex]\n".replace(
    "sex:     {role: quasi-identifier}", "sex: {role: other}"
)

EVALUATE = ("evaluate", "people.csv", "--policy", "classify.yaml", "--folds", 2, "--models", "naive-bayes")
WRITERS = {
    "profile": ("profile", "people.csv", "--out", "file.yaml"),
    "apply": ("apply", "release", "people.csv", "--out", "file.csv"),
    "evaluate": (*EVALUATE, "--out", "file.json"),
    "risk": ("risk", "release", "--out", "file.json"),
    "evaluate as a table": (*EVALUATE, "--out", "file.csv"),
    "generate agrawal": ("generate", "agrawal", "--rows", 20, "--out", "file.csv"),
}
"""A run of every command that writes a file."""


def commands_of(group, prefix=""):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def test_every_command_with_an_out_has_overwrite_but_the_demo_which_keeps_its_own_folder():
    options = {
        name: {each for option in command.params for each in option.opts}
        for name, command in commands_of(cli.commands)
    }
    writers = {name for name, known in options.items() if "--out" in known}
    assert {name for name in writers if "--overwrite" not in options[name]} == {"demo"}
    assert writers >= {"profile", "publish", "apply", "evaluate", "compare", "risk", "generate agrawal"}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_exists_is_refused_before_the_work_and_replaced_when_that_is_allowed(
    sfumato, here, table, policy, release, name
):
    (here / "classify.yaml").write_text(CLASSIFY)
    arguments = WRITERS[name]
    (here / arguments[-1]).write_text("years of work")
    done = sfumato(*arguments)
    assert done.code == 2
    assert done.sentence == (
        f"{arguments[-1]} already exists; name another file, or allow it to be replaced (--overwrite)."
    )
    assert (here / arguments[-1]).read_text() == "years of work"
    assert sfumato(*arguments, "--overwrite").code == 0
    assert (here / arguments[-1]).read_bytes() != b"years of work"


def test_a_frontier_is_not_drawn_over_another(sfumato, here, table, policy):
    (here / "frontier").mkdir()
    (here / "frontier" / "frontier.csv").write_text("weeks of work")
    done = sfumato("compare", table, "--policy", policy, "--vary", "k=5")
    assert done.code == 2
    assert "The folder frontier is not empty" in done.sentence
    assert "--overwrite" in done.sentence
    assert [path.name for path in (here / "frontier").iterdir()] == ["frontier.csv"]


def write_rows(path, appear):
    with TableWriter(path, overwrite=False) as writer:
        writer.append(pa.table({"age": ["3"]}))
        appear()


def write_document(path, appear):
    with replace_atomically(path, overwrite=False) as temporary:
        temporary.write_text("new")
        appear()


def write_generated_rows(path, appear):
    write_agrawal(5, path, seed=1, overwrite=False, progress=lambda _: appear())


@pytest.mark.parametrize("write", [write_rows, write_document, write_generated_rows])
def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path, write):
    path = tmp_path / "out.csv"
    with pytest.raises(InputError, match=r"out\.csv already exists"):
        write(path, lambda: path.write_text("years of work"))
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]
    assert path.read_text() == "years of work"
    assert check_file_target(path) == path


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["publsh"], "No such command: publsh. Did you mean 'publish'?"),
        (["anonymize", "people.csv"], "Did you mean 'publish'?"),
        (["publish", "people.csv", "--k", "5"], "It stands in the policy: require: [k-anonymity: 5]."),
        (["publish", "people.csv", "--k=5"], "It stands in the policy: require: [k-anonymity: 5]."),
        (["publish", "people.csv", "--epsilon", "1"], "It stands in the policy: method: {diffgen:"),
        (["verify", "out", "--polcy", "x"], "Did you mean '--policy'?"),
    ],
)
def test_a_wrong_word_ends_with_what_was_perhaps_meant(sfumato, arguments, hint):
    done = sfumato(*arguments)
    assert done.code == 2
    assert hint in done.sentence


def test_one_of_a_thing_is_one(sfumato, here):
    (here / "one.csv").write_text("age,sex\n" + "31,m\n" * 5)
    (here / "policy.yaml").write_text(
        "{attributes: {age: {role: quasi-identifier}, sex: {role: other}}, require: [k-anonymity: 5]}"
    )
    done = sfumato("publish", "one.csv", "--policy", "policy.yaml", "--out", "out")
    assert done.out.startswith("out: 5 rows in 1 group, verified.")
    (here / "policy.yaml").write_text(
        '{attributes: {age: {role: quasi-identifier, values: ["30"]}, sex: {role: other}}, require: [k-anonymity: 5]}'
    )
    done = sfumato("publish", "one.csv", "--policy", "policy.yaml", "--out", "other")
    assert "has 5 cells (1 distinct value) that its declared values lack" in done.sentence


def test_control_characters_of_a_condition_do_not_reach_the_terminal(sfumato, here):
    (here / "jobs.csv").write_text("job\n" + "nurse\n" * 5, encoding="utf-8")
    (here / "policy.yaml").write_text(
        "attributes: {job: {role: quasi-identifier}}\nrequire: [k-anonymity: 5]\n"
        "workload:\n  - select: \"job <> '\\u001b]0;owned\\u0007\\u202e'\"\n"
    )
    done = sfumato("publish", "jobs.csv", "--policy", "policy.yaml", "--out", "out", "--verbose")
    assert done.code == 0, done.err
    assert "select job <> '\\x1b]0;owned\\x07\\u202e'" in done.out
    assert all(letter.isprintable() or letter == "\n" for letter in done.out + done.err)
    done = sfumato("publish", "no\x1b[2Jwhere.csv", "--policy", "policy.yaml", "--out", "other")
    assert done.code == 2
    assert "no\\x1b[2Jwhere.csv" in done.sentence
