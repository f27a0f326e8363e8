"""Ctrl-C, by a real signal: the jobs of the run end, and those of others go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from spark_clients import python_path

CLIENT = """
import os, sys, threading
from pathlib import Path
from broken_task import Slow
from pyspark.sql.functions import udf
from sfumato.engines.spark.jobs import Jobs
from sfumato.engines.spark.session import start_session

remote, folder, what = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
if remote:
    os.environ["SPARK_REMOTE"] = remote
session = start_session()
(folder / "run").mkdir()
others = []
other = threading.Thread(target=lambda: others.extend(Jobs(session, folder).do(Slow(folder, "other", 6), [0])))
other.start()
try:
    with Jobs(session, folder / "run") as jobs:
        if what == "tasks":
            jobs.do(Slow(folder, "ours", 60), [0])
        else:
            work = udf(lambda number: next(Slow(folder, "ours", 60)(number))[1])
            jobs.store_frame(session.range(0, 1, 1, 1).select(work("id").alias("name")))
except KeyboardInterrupt:
    (folder / "interrupted").touch()
other.join()
assert others == ["other"]
assert not (folder / "ours-ended").exists()
"""


def wait_for(path: Path, process: subprocess.Popen[str], seconds: float = 120) -> None:
    for _ in range(int(10 * seconds)):
        if path.exists():
            return
        if process.poll() is not None:
            pytest.fail(process.communicate()[1])
        time.sleep(0.1)
    pytest.fail(f"{path.name} did not come")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["tasks", "frame"])
@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_an_interrupted_run_ends_its_own_jobs_and_no_others(kind, what, request, tmp_path):
    pytest.importorskip("pyspark", reason="needs Spark: pip install 'sfumato[spark]'")
    remote = request.getfixturevalue("server") if kind == "connect" else ""
    environment = {**os.environ, "PYTHONPATH": python_path(), "SPARK_LOCAL_IP": "127.0.0.1"}
    if kind == "classic":
        environment["PYSPARK_SUBMIT_ARGS"] = "--master local[2] --conf spark.ui.enabled=false pyspark-shell"
    command = [sys.executable, "-W", "ignore", "-c", CLIENT, remote, str(tmp_path), what]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        wait_for(tmp_path / "ours-began", process)
        wait_for(tmp_path / "other-began", process)
        process.send_signal(signal.SIGINT)
        wait_for(tmp_path / "interrupted", process, seconds=15)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert (tmp_path / "other-ended").exists()
