"""The command as a user meets it: in an empty folder, with its exit code, its output and what it wrote."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import POLICY, Outcome, command, environment, people, without_compiling

from sfumato import cli, publish
from sfumato.policy.document import Policy
from sfumato.table.write import write_table


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """The first run on a machine compiles the kernels and says so; these tests are about all others."""
    publish(people(), Policy.parse(POLICY))


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder, and the process is in it."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def sfumato(here, capsys, monkeypatch):
    """Run the command inside this process: a user's path but for the start of Python."""

    def run(*arguments: object, stdin: bytes | None = None) -> Outcome:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = cli.run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, without_compiling(captured.err))

    return run


@pytest.fixture
def sfumato_process(here):
    """Run the command as a process of its own."""

    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        done = subprocess.run(
            command(*arguments), input=stdin, capture_output=True, check=False, timeout=300, env=environment()
        )
        return Outcome(done.returncode, done.stdout.decode(), without_compiling(done.stderr.decode()))

    return run


@pytest.fixture
def table(here) -> Path:
    write_table(people(), here / "people.csv")
    return here / "people.csv"


@pytest.fixture
def policy(here) -> Path:
    path = here / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


@pytest.fixture
def release(sfumato, here, table, policy) -> Path:
    """A release folder made by the command."""
    done = sfumato("publish", table, "--policy", policy, "--out", "release", "--seed", 1)
    assert (done.code, done.err) == (0, "")
    return here / "release"
