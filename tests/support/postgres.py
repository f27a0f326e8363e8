"""A PostgreSQL server of one's own for a test: on loopback, in a temporary folder, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "s3cret#/:@?"
USER = "owner"


def programs() -> Path | None:
    """The folder of ``initdb`` and ``pg_ctl``; Debian does not put it on the path."""
    found = shutil.which("pg_ctl")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    folders += [Path(found).resolve().parent] if found else []
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def running_server() -> Iterator[str]:
    """The address of the database of a running server, with user and password."""
    where = programs()
    if where is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs PostgreSQL: install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="sfumato-pg-"))
    try:
        (folder / "password").write_text(PASSWORD)
        if os.geteuid() == 0:  # a server refuses to run as root
            for path in (folder, folder / "password"):
                shutil.chown(path, "postgres")
        data = folder / "data"
        _run(where / "initdb", "-D", data, "-U", USER, "-N", "-E", "UTF8", "--locale=C",
             "--auth=scram-sha-256", f"--pwfile={folder / 'password'}")  # fmt: skip
        port = _free_port()
        options = f"-c listen_addresses=127.0.0.1 -c fsync=off -p {port} -k {folder}"
        _run(where / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
        try:
            yield f"postgresql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/postgres"
        finally:
            _run(where / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(*arguments: object) -> None:
    as_user: Sequence[str] = ("runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()
    subprocess.run(
        [*as_user, *map(str, arguments)], check=True, timeout=120, cwd="/", stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
