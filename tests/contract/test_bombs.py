"""Small files that hold very much: memory is counted while they are read, and the run ends with a sentence."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import Outcome, command, environment

from sfumato.table.allowance import TooLarge, allowing, memory_allowed
from sfumato.table.opening import open_table
from sfumato.verify.rows import is_small

POLICY = """\
attributes: {age: {role: quasi-identifier, type: number}, sex: {role: other}}
require: [k-anonymity: 5]
workload: [classify: sex]
"""
ALLOWED = "100MB"
SENTENCE = "takes more than 100 MB of memory when it is read; allow more with --memory"
MOST = 700 << 20
"""Bytes of a whole process that is allowed 100 MB for its table: interpreter, compiler and blocks come on top."""


MEASURE = """
import pathlib, resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
pathlib.Path("most.txt").write_text(str(most))
sys.exit(done.returncode)
"""
"""A small process between this one and the command: the kernel counts the memory of whoever starts a process as the
process's own, and this one may have had more than it allows."""


def run(here, *arguments: object) -> tuple[Outcome, int]:
    """What a run left behind, and the most memory it had."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, *command(*arguments)],
        cwd=here,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr), int((here / "most.txt").read_text())


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    """3 MB of gzip that hold 3 GB of text, and half a MB of Parquet that holds 500 MB of numbers."""
    folder = tmp_path_factory.mktemp("bombs")
    rows = gzip.compress(b"1,m\n" * (1 << 22))
    with (folder / "t.csv.gz").open("wb") as file:
        file.write(gzip.compress(b"age,sex\n"))
        for _ in range(3_000_000 // len(rows)):
            file.write(rows)
    zeros = pa.table({f"c{i}": np.zeros(1 << 18, dtype=np.int64) for i in range(30)})
    with pq.ParquetWriter(folder / "wide.parquet", zeros.schema, compression="zstd") as writer:
        for _ in range(8):
            writer.write_table(zeros)
    (folder / "policy.yaml").write_text(POLICY)
    return folder


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the unit of ru_maxrss is known on Linux only"
)
@pytest.mark.parametrize("arguments", [
    ("publish", "t.csv.gz", "--policy", "policy.yaml", "--out", "out"),
    ("profile", "t.csv.gz"),
    ("profile", "wide.parquet"),
    ("evaluate", "t.csv.gz", "--policy", "policy.yaml"),
], ids=" ".join)  # fmt: skip
def test_a_bomb_ends_with_a_sentence_and_in_little_memory(bombs, arguments):
    done, most = run(bombs, *arguments, "--memory", ALLOWED)
    assert done.code == 2
    assert SENTENCE in done.sentence
    assert most < MOST
    assert not (bombs / "out").exists()


def test_verify_reads_a_bomb_some_rows_at_a_time(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"age,sex\n" + b"1,m\n" * (1 << 24), 1))
    (tmp_path / "policy.yaml").write_text(POLICY)
    assert not is_small(tmp_path / "t.csv.gz", 64_000_000)
    assert is_small(tmp_path / "policy.yaml", 64_000_000)
    done, most = run(tmp_path, "verify", "t.csv.gz", "--policy", "policy.yaml", "--memory", "64MB")
    assert done.code == 0, done.err
    assert "the smallest group is 16777216" in done.out.replace(",", "")
    assert most < MOST


def test_what_a_table_may_take_is_said_once_for_all_that_is_read(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,2\n" * (1 << 22))
    table = pa.table({"a": np.zeros(1 << 21, dtype=np.int64), "b": [b"x" * 50] * (1 << 21)})
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(file, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=1 << 16)
    with allowing(4_000_000):
        assert memory_allowed() == 4_000_000
        with pytest.raises(TooLarge, match="takes more than 4 MB of memory"):
            open_table(tmp_path / "t.csv")
        with pytest.raises(TooLarge, match="takes more than 4 MB of memory"):
            open_table(tmp_path / "t.arrow")
        source = open_table(tmp_path / "t.parquet")
        for name in source.names:
            with pytest.raises(TooLarge, match="takes more than 4 MB of memory"):
                source.column(name)
    assert open_table(tmp_path / "t.csv").n_rows == 1 << 22
    assert memory_allowed() > 4_000_000
    with allowing(None):
        assert memory_allowed() > 4_000_000


def test_memory_that_was_free_before_is_counted_too(tmp_path, monkeypatch):
    """As in a process that has freed much: it does not grow, whatever is read."""
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,2\n" * (1 << 22))
    resident = tmp_path / "statm"
    resident.write_text("100 100 0", encoding="ascii")
    monkeypatch.setattr("sfumato.table.allowance.RESIDENT", resident)
    with allowing(4_000_000), pytest.raises(TooLarge, match="takes more than 4 MB of memory"):
        open_table(tmp_path / "t.csv")


def test_stdin_is_counted_too():
    text = b"a,b\n" + b"1,2\n" * (1 << 24)
    done = subprocess.run(
        command("profile", "-", "--memory", "64MB"),
        input=text,
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 2
    assert b"stdin takes more than 64 MB of memory" in done.stderr
