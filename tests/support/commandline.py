"""What the tests of the command share: a small table, its policy, and how to run the command and look at what it did."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sfumato.examples.demo import patients

POLICY = """\
attributes:
  id:      {role: identifier}
  age:     {role: quasi-identifier, type: number, bounds: [0, 110]}
  sex:     {role: quasi-identifier}
  zip:     {role: quasi-identifier, hierarchy: {mask: 5}}
  disease: {role: sensitive}
  charge:  {role: other, type: number, passes: unique}
  note:    {role: drop}
require:
  - k-anonymity: 5
"""


def people(n_rows: int = 60) -> pa.Table:
    """A small table that POLICY fits, with a missing cell here and there."""
    drawn = patients(n_rows, seed=20080801)
    named = {"id": "patient_id", "age": "age", "sex": "sex", "zip": "zip", "disease": "diagnosis"}
    columns = {name: drawn[column] for name, column in named.items()}
    notes = pa.array([f"note {i}" for i in range(n_rows)])
    return pa.table({**columns, "charge": drawn["charge"], "note": notes})


def without_compiling(err: str) -> str:
    """What a run said, but for the lines of one that had to compile, which depends on the runs before it."""
    return re.sub(r"^Compil(ing|ed) .*\n", "", err, flags=re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What a run of the command left behind, but for files."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line of an error, or a policy's list of mistakes, without the name of the command before it."""
        assert self.err.startswith("sfumato: "), self.err
        assert self.err.endswith((".\n", "?\n")), self.err
        is_list = re.fullmatch(r"sfumato: .+ has \d+ mistakes:\n(  .+\n)+", self.err)
        assert self.err.count("\n") == 1 or is_list, self.err
        assert "Traceback" not in self.err
        return self.err.removeprefix("sfumato: ").rstrip("\n")


def command(*arguments: object) -> list[str]:
    """The installed command with arguments."""
    return [str(Path(sys.executable).with_name("sfumato")), *map(str, arguments)]


def environment() -> dict[str, str]:
    """As on a plain terminal: nothing that pytest or a build server sets decides how output looks."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return {**kept, "TERM": "xterm-256color", "COLUMNS": "100", "PYTHONWARNINGS": "error"}


def names(folder: Path) -> list[str]:
    """Everything in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def on_terminal(arguments: list[str], *, until: bytes | None = None) -> tuple[int, bytes]:
    """Run with a terminal on stdout and stderr; at the sight of ``until`` send what Ctrl-C sends."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command(*arguments),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(),
        start_new_session=True,
    )
    os.close(slave)
    shown, deadline = b"", time.monotonic() + 300
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.05)[0]:
            try:
                shown += os.read(master, 65536)
            except OSError:  # the other end is closed
                break
        if until is not None and until in shown:
            process.send_signal(signal.SIGINT)
            until = None
        if process.poll() is not None and not select.select([master], [], [], 0.05)[0]:
            break
    os.close(master)
    return process.wait(timeout=300), shown
