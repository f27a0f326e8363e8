"""Workers that die, and tasks that run twice: the release is right all the same, and nothing is left behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from spark_clients import python_path
from spark_people import METHODS, people, rows_of

import sfumato as sf

KILLED = """
import sys
from pathlib import Path
from broken_task import KillsExecutor
import sfumato as sf
from sfumato.engines.spark.jobs import Jobs
from sfumato.engines.spark.session import start_session
from sfumato.engines.spark.tasks import DivideSlice
from sfumato.publishing import Request, publish_to
from spark_clients import cut_small_tables

cut_small_tables()
table, policy, out = map(Path, sys.argv[1:])
session, do = start_session(), Jobs.do
found = []

def do_and_kill(jobs, work, arguments, **options):
    if not isinstance(work, DivideSlice):
        return do(jobs, work, arguments, **options)
    answers = do(jobs, KillsExecutor(work, out.parent), arguments, **options)
    found.append((len(list(jobs.folder.glob("rows-*"))), len(arguments)))
    return answers

Jobs.do = do_and_kill
try:
    publish_to(out, table, sf.Policy.read(policy), Request(engine="spark", seed=1))
finally:
    session.stop()  # else the master starts executors while Spark ends, and says so at length
n_files, n_tasks = found[0]
assert n_files == n_tasks + 1, "the dead attempt left no file"
"""

TWICE = """
import sys
from pathlib import Path
from broken_task import SlowPlaces
from sfumato.engines.engine import Resources
from sfumato.engines.memory_plan import plan_memory
from sfumato.engines.spark.engine import start_spark
from sfumato.engines.spark.jobs import Jobs
from sfumato.engines.spark.session import start_session
from sfumato.engines.start import scan_table
from sfumato.policy.document import Policy
from sfumato.table.opening import open_table
from sfumato.table.spill import Spill
from spark_clients import cut_small_tables

cut_small_tables()
table, policy, folder = map(Path, sys.argv[1:])
policy = Policy.read(policy)
with Spill(folder / "out") as spill, Jobs(start_session(), spill.folder) as jobs:
    jobs.n_slots = 6
    resources = Resources(spill=spill, memory=64_000_000, jobs=jobs)
    encoded = scan_table(open_table(table), policy, resources)
    engine = start_spark(resources, encoded.layout, plan_memory(resources, policy))
    parts = engine.divide(encoded, SlowPlaces(folder, 20)).parts
    found = [sorted(map(tuple, (row for block in part.blocks() for row in block.rows.tolist()))) for part in parts]
    expected = sorted(map(tuple, (row for block in encoded.blocks() for row in block.rows.tolist())))
    assert sorted(found[0] + found[1]) == expected
    assert all(row[0] % 2 == number for number, part in enumerate(found) for row in part)
assert (folder / "second-began").exists(), "no task ran twice"
assert not list(folder.glob(".sfumato-spill-*"))
"""


def run_client(code: str, *arguments: Path, spark: str) -> None:
    pyspark = pytest.importorskip("pyspark", reason="needs Spark: pip install 'sfumato[spark]'")
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"{spark} --conf spark.ui.enabled=false pyspark-shell",
    }
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.slow
def test_a_worker_that_is_killed_half_way_leaves_a_right_release(tmp_path):
    table, policy, out = (tmp_path / name for name in ("rows.parquet", "policy.yaml", "out"))
    pq.write_table(people(), table, row_group_size=100)
    policy.write_text(METHODS["rothko-t"], encoding="utf-8")
    run_client(
        KILLED, table, policy, out, spark="--master local-cluster[2,1,1024] --conf spark.executor.memory=512m"
    )
    expected = sf.publish(table, sf.Policy.read(policy), engine="disk", memory=64_000_000)
    assert rows_of(sf.Release.read(out)) == rows_of(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "killed",
        "out",
        "policy.yaml",
        "rows.parquet",
    ]


@contextmanager
def standalone() -> Iterator[str]:
    """A master and two workers that look like two machines: only then does Spark start a second attempt."""
    pyspark = pytest.importorskip("pyspark", reason="needs Spark: pip install 'sfumato[spark]'")
    from sfumato.engines.spark.session import provide_java

    provide_java()
    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    environment["PYTHONPATH"] = python_path()
    start = [str(home / "bin" / "spark-class")]
    deploy = "org.apache.spark.deploy"
    commands = [[*start, f"{deploy}.master.Master", "-h", "127.0.0.1", "-p", str(port), "--webui-port", "0"]]
    commands += [
        [*start, f"{deploy}.worker.Worker", "-h", host, "-c", "1", "-m", "1g", "--webui-port", "0",
         f"spark://127.0.0.1:{port}"]
        for host in ("127.0.0.2", "127.0.0.3")
    ]  # fmt: skip
    running = []
    try:
        for command in commands:
            running.append(
                subprocess.Popen(
                    command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
            time.sleep(4)
        yield f"spark://127.0.0.1:{port}"
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_task_that_runs_twice_gives_its_rows_once(tmp_path):
    table, policy = tmp_path / "rows.parquet", tmp_path / "policy.yaml"
    pq.write_table(people(600), table, row_group_size=100)
    policy.write_text(METHODS["mondrian"], encoding="utf-8")
    with standalone() as master:
        speculation = (
            "--conf spark.speculation=true --conf spark.speculation.interval=200ms "
            "--conf spark.speculation.multiplier=1.2 --conf spark.speculation.quantile=0.5"
        )
        run_client(
            TWICE, table, policy, tmp_path, spark=f"--master {master} --executor-memory 512m {speculation}"
        )
