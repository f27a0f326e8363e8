"""Folders of temporary files: what a killed run left is removed, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sfumato.table.spill import LOCK, PREFIX, YOUNG, Spill, remove_dead

LONG_AGO = time.time() - 2 * YOUNG


def a_folder(parent, name="left"):
    folder = parent / f"{PREFIX}{name}"
    folder.mkdir()
    (folder / "rows").write_text("encoded")
    return folder


def test_the_folder_of_a_killed_run_is_removed_and_that_of_a_living_one_stays(tmp_path):
    dead = a_folder(tmp_path)
    (dead / LOCK).touch()
    with Spill(tmp_path / "out") as living:
        assert not dead.exists()
        remove_dead(tmp_path)
        assert living.folder.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_nobody_waits_for_a_pipe_that_is_named_like_a_lock(tmp_path):
    os.mkfifo(a_folder(tmp_path) / LOCK)
    run = threading.Thread(target=remove_dead, args=(tmp_path,), daemon=True)
    run.start()
    run.join(10)
    assert not run.is_alive()


def test_links_are_left_alone_and_so_is_what_they_lead_to(tmp_path):
    (tmp_path / "other").mkdir()
    mine = a_folder(tmp_path / "other")
    os.utime(mine, (LONG_AGO, LONG_AGO))
    (tmp_path / f"{PREFIX}link").symlink_to(mine)
    held = a_folder(tmp_path, "held")
    (tmp_path / "file").write_text("mine")
    (held / LOCK).symlink_to(tmp_path / "file")
    remove_dead(tmp_path)
    assert (mine / "rows").exists()
    assert (held / "rows").exists()
    assert (tmp_path / "file").read_text() == "mine"


def test_the_folder_of_somebody_else_is_left_alone(tmp_path, monkeypatch):
    theirs = a_folder(tmp_path)
    os.utime(theirs, (LONG_AGO, LONG_AGO))
    monkeypatch.setattr(os, "geteuid", lambda: theirs.stat().st_uid + 1)
    remove_dead(tmp_path)
    assert theirs.exists()


KEEP = """
import os, sys, tempfile
sys.path[:0] = {path!r}
from sfumato import cli
from sfumato.table.spill import keep_folder
cli.run = lambda arguments: (keep_folder() / "props").write_text("Weka's") and 0
{end}
"""


@pytest.mark.parametrize("end", ["cli.main()", "cli.run([])"])
def test_a_folder_that_is_kept_is_gone_when_the_process_is(tmp_path, end):
    """By the command, which ends without Python's own end, and by a script."""
    program = KEEP.format(path=sys.path, end=end)
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False
    )
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_comes_while_the_folder_is_removed_goes_with_it(tmp_path, monkeypatch):
    remove = os.rmdir
    late: list[Path] = []

    def write_late(path, **options):
        if not late:
            late.append(spill.folder / "rows-late")
            late[0].touch()
        remove(path, **options)

    with Spill(tmp_path / "out") as spill:
        (spill.folder / "rows").touch()
        monkeypatch.setattr("os.rmdir", write_late)
    assert late
    assert list(tmp_path.iterdir()) == []
