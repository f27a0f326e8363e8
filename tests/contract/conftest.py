"""The command as a user meets it: in an empty folder, judged by exit code, output and what was written."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato import cli
from sfumato.demo import patients
from sfumato.tables import write_table

POLICY = """\
attributes:
  id:      {role: identifier}
  age:     {role: quasi-identifier, type: number}
  sex:     {role: quasi-identifier}
  zip:     {role: quasi-identifier, hierarchy: {mask: 5}}
  disease: {role: sensitive}
  charge:  {role: other, type: number}
  note:    {role: drop}
require:
  - k-anonymity: 5
"""


@dataclass(frozen=True)
class Outcome:
    """What a run of the command left behind, but for files."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line of an error, without the name of the command."""
        assert self.err.startswith("sfumato: "), self.err
        assert self.err.endswith("\n"), self.err
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.removeprefix("sfumato: ").rstrip("\n")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder, and the process is in it."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def sfumato(here, capsys, monkeypatch):
    """Run the command inside this process: the same path as a user's but for the start of Python."""

    def run(*arguments: object, stdin: bytes | None = None) -> Outcome:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = cli.run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def sfumato_process(here):
    """Run the command as a process of its own."""

    def run(*arguments: object, stdin: bytes = b"", **options) -> Outcome:
        done = subprocess.run(
            command(*arguments),
            input=stdin,
            capture_output=True,
            check=False,
            timeout=300,
            env=environment(),
            **options,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def command(*arguments: object) -> list[str]:
    installed = Path(sys.executable).with_name("sfumato")
    return [str(installed), *map(str, arguments)]


def environment() -> dict[str, str]:
    """As on a plain terminal: nothing that pytest or a build server set decides how output looks."""
    return {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "PYTHONWARNINGS": "error"}


def names(folder: Path) -> list[str]:
    """Everything in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def people(n_rows: int = 60) -> pa.Table:
    """A small table that POLICY fits, with a missing cell here and there."""
    drawn = patients(n_rows, seed=20080801)
    return pa.table(
        {
            "id": drawn["patient_id"],
            "age": drawn["age"],
            "sex": drawn["sex"],
            "zip": drawn["zip"],
            "disease": drawn["diagnosis"],
            "charge": drawn["charge"],
            "note": pa.array([f"note {i}" for i in range(n_rows)]),
        }
    )


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
