"""Workers that cannot reach the run's folder: Spark hands them the rows, and the release is the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import tradeoff_releases
from spark_clients import python_path
from spark_people import DIFFGEN, METHODS, people, rows_of

import sfumato as sf
from sfumato.engines.spark.file_pieces import cut_file, put_piece
from sfumato.engines.spark.handed import HandedJobs
from sfumato.engines.spark.jobs import Jobs
from sfumato.engines.spark.session import start_jobs
from sfumato.engines.spark.tasks import TouchFolder
from sfumato.errors import InputError, Notice
from sfumato.table.spill import SharedSpill

CLIENT = """
import json, sys, warnings
from pathlib import Path
import sfumato as sf
from sfumato.engines.spark.session import start_session
from sfumato.publishing import Request, publish_to
from spark_clients import cut_small_tables
from spark_people import rows_of

cut_small_tables()
folder = Path(sys.argv[1])
session = start_session()
found = {}
for path in sorted(folder.glob("*.yaml")):
    name = path.stem
    table = folder / ("others.parquet" if name == "risk-utility" else "rows.parquet")
    given = table if name == "tds" else session.read.parquet(str(table))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        publish_to(folder / f"out [{name}]", given, sf.Policy.read(path), Request(engine="spark", seed=1))
    assert any("Spark hands rows to the workers instead" in str(each.message) for each in said), said
    found[name] = rows_of(sf.Release.read(folder / f"out [{name}]"))
(folder / "found.json").write_text(json.dumps(found))
"""


def test_a_file_in_pieces_is_whole_again_in_whatever_order_they_come(tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.engines.spark.file_pieces.PIECE", 3)
    (tmp_path / "there").mkdir()
    for name, data in {"rows": b"0123456789", "nothing": b""}.items():
        (tmp_path / name).write_bytes(data)
        pieces = [*cut_file(tmp_path / name)]
        for piece in [*reversed(pieces), pieces[0]]:
            put_piece(tmp_path / "there", piece)
        assert (tmp_path / "there" / name).read_bytes() == data


LOST = (
    r"^Spark has written rows below .*, and this machine does not find all of them there; publish to a folder"
)


@pytest.mark.parametrize("kind", [Jobs, HandedJobs])
@pytest.mark.parametrize("n_lost", [1, 2])
def test_rows_that_spark_wrote_elsewhere_are_missed(kind, n_lost, spark, tmp_path, monkeypatch):
    """As where the folder is one of each machine's own: the files of the others are not here."""
    frame, usual = spark.range(0, 100, 1, 2), kind.run
    assert kind(spark, tmp_path).store_frame(frame)

    def lose(jobs, *given, **options):
        answer = usual(jobs, *given, **options)
        for path in sorted(jobs.folder.rglob("part-*.parquet"))[:n_lost]:
            path.unlink()
        return answer

    monkeypatch.setattr(kind, "run", lose)
    for name in ("storing", "working"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=LOST):
        kind(spark, tmp_path / "storing").store_frame(frame)
    if kind is HandedJobs:
        with pytest.raises(InputError, match=LOST):
            kind(spark, tmp_path / "working").do(TouchFolder(SharedSpill(tmp_path / "working")), [0, 1])


def test_workers_with_a_folder_of_their_own_are_handed_the_files(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(Jobs, "do", lambda *_given: [tmp_path / "on another machine"])
    with pytest.warns(Notice, match=r"where the run's should be\. Spark hands rows to the workers instead"):
        assert isinstance(start_jobs(None, tmp_path), HandedJobs)


def can_hide_folders() -> bool:
    """Whether this machine lets us start a process that sees an empty folder in place of one with files."""
    tools = all(map(shutil.which, ("unshare", "mount")))
    return (
        tools and subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not can_hide_folders(), reason="keeping workers from files that Spark can read needs root on Linux"
)
def test_releases_are_the_same_where_functions_are_kept_from_storage(tmp_path):
    """Workers see an empty folder where the table and the files of the run are."""
    pyspark = pytest.importorskip("pyspark", reason="needs Spark: pip install 'sfumato[spark]'")
    pq.write_table(people(1200), tmp_path / "rows.parquet", row_group_size=300)
    pq.write_table(tradeoff_releases.people(), tmp_path / "others.parquet")
    policies = {name: METHODS[name] for name in ("rothko-t", "rothko-s", "summary", "tds")}
    policies |= {"diffgen": DIFFGEN, "risk-utility": tradeoff_releases.POLICY}
    for name, policy in policies.items():
        (tmp_path / f"{name}.yaml").write_text(policy, encoding="utf-8")
    python = tmp_path / "python"
    hide = 'mount -t tmpfs none "$0" && exec "$@"'
    python.write_text(
        f"#!/bin/sh\nexec unshare -m sh -c '{hide}' '{tmp_path}' '{sys.executable}' \"$@\"\n", "utf-8"
    )
    python.chmod(0o755)
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--master local[2] --driver-memory 1g --conf spark.ui.enabled=false pyspark-shell",
    }
    command = [sys.executable, "-W", "ignore", "-c", CLIENT, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-6000:]
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    for name, policy in policies.items():
        table = tmp_path / ("others.parquet" if name == "risk-utility" else "rows.parquet")
        engine = {"diffgen": "memory", "risk-utility": "memory"}.get(name, "disk")
        expected = sf.publish(table, sf.Policy.parse(policy), engine=engine, memory=64_000_000, seed=1)
        assert found[name] == rows_of(expected), name
    assert not list(tmp_path.glob(".sfumato-spill-*"))
