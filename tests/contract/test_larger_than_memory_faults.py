"""The engine `disk` when things break: killed, interrupted, a full disk, damaged input."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import resource
import signal
import subprocess
import time

import pyarrow.parquet as pq
import pytest
from commandline import command, environment, names

from sfumato.examples.agrawal import AGRAWAL_SCHEMA, write_agrawal
from sfumato.table.write import write_table

QUASI = {"salary", "age", "elevel", "car"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A table and a policy."""
    folder = tmp_path_factory.mktemp("agrawal")
    write_agrawal(60_000, folder / "t.parquet", seed=1)
    table = pq.read_table(folder / "t.parquet")
    pq.write_table(table, folder / "t.parquet", row_group_size=10_000)
    write_table(table, folder / "t.csv")
    attributes = {
        name: {"role": "quasi-identifier", "type": "number"}
        if name in QUASI
        else {"role": "other", "passes": "unique"}
        for name in AGRAWAL_SCHEMA.names
    }
    for scale in ("rothko-t", "rothko-s"):
        options = {"scale": scale, "rows-in-memory": 4000}
        policy = {"attributes": attributes, "require": [{"k-anonymity": 20}], "method": {"mondrian": options}}
        (folder / f"{scale}.yaml").write_text(json.dumps(policy))
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def publishing(table, policy) -> list[str]:
    options = ["--engine", "disk", "--memory", "64MB", "--quiet"]
    return command("publish", str(table), "--policy", str(policy), "--out", "out", *options)


def start(arguments, **options) -> subprocess.Popen:
    return subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), **options
    )


def sha256(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def leftovers(here) -> list[str]:
    return [name for name in names(here) if name.startswith(".sfumato")]


@pytest.mark.parametrize("scale", ["rothko-t", "rothko-s"])
def test_a_killed_run_leaves_no_release_and_the_next_one_cleans_up(written, here, scale):
    before = sha256(written / "t.parquet")
    arguments = publishing(written / "t.parquet", written / f"{scale}.yaml")
    random.seed(scale)
    n_left = 0
    for _ in range(4):
        process = start(arguments)
        deadline = time.monotonic() + 60
        while process.poll() is None and not leftovers(here) and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(random.random() * 0.3)  # somewhere in the work
        process.kill()
        process.communicate()
        assert process.returncode in (-signal.SIGKILL, 0)
        if process.returncode == 0:
            assert names(here) == ["out"]
            return
        n_left += len(leftovers(here))
        assert "out" not in names(here)
        assert sha256(written / "t.parquet") == before
    assert n_left > 0  # some run was killed while it spilled
    process = start(arguments)
    assert (process.communicate()[1], process.returncode) == ("", 0)
    assert names(here) == ["out"]


def test_an_interrupted_run_removes_what_it_spilled(written, here):
    process = start(publishing(written / "t.parquet", written / "rothko-t.yaml"))
    while process.poll() is None and not leftovers(here):
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode in (130, 0)
    assert names(here) == ([] if process.returncode else ["out"])


@pytest.mark.parametrize("most", [50_000, 400_000])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(written, here, most):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    process = start(publishing(written / "t.parquet", written / "rothko-t.yaml"), preexec_fn=limit)
    _, error = process.communicate()
    assert process.returncode == 2
    assert error.count("\n") == 1
    assert "cannot be written" in error
    assert names(here) == []


def test_a_damaged_row_group_is_one_sentence_and_leaves_nothing(written, here):
    damaged = bytearray((written / "t.parquet").read_bytes())
    middle = pq.ParquetFile(written / "t.parquet").metadata.row_group(3).column(0).data_page_offset
    damaged[middle : middle + 2000] = bytes(2000)
    (here / "t.parquet").write_bytes(bytes(damaged))
    process = start(publishing("t.parquet", written / "rothko-s.yaml"))
    _, error = process.communicate()
    assert (process.returncode, error.count("\n")) == (2, 1)
    assert "damaged" in error
    assert names(here) == ["t.parquet"]


@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_truncated_csv_is_one_sentence_and_leaves_nothing(written, here, is_zipped):
    whole = (written / "t.csv").read_bytes()
    if is_zipped:
        (here / "t.csv.gz").write_bytes(gzip.compress(whole)[:-2000])
    else:
        (here / "t.csv").write_bytes(whole[: whole.rindex(b",")])  # the last row lacks its last cell
    name = "t.csv.gz" if is_zipped else "t.csv"
    process = start(publishing(name, written / "rothko-t.yaml"))
    _, error = process.communicate()
    assert (process.returncode, error.count("\n")) == (2, 1)
    assert names(here) == [name]


def test_a_disk_that_is_too_small_is_known_before_the_work(monkeypatch, tmp_path):
    from sfumato.errors import InputError
    from sfumato.table import spill

    class Usage:
        free = 1_000_000

    monkeypatch.setattr(spill.shutil, "disk_usage", lambda _: Usage)
    with (
        spill.Spill(tmp_path / "out") as folder,
        pytest.raises(InputError, match=r"needs about 5 MB .* has 1 MB free"),
    ):
        folder.check_room(5_000_000, "Publishing 10 rows")
