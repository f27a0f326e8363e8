"""A real Spark on two cores, and a server of Spark Connect, each started once for all tests of this folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from spark_clients import cut_small_tables, python_path


@pytest.fixture(scope="session", autouse=True)
def small_slices() -> None:
    """The tables of tests are small, and should be read by several tasks all the same."""
    cut_small_tables()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A classic session, on two cores of this machine."""
    pytest.importorskip("pyspark", reason="needs Spark: pip install 'sfumato[spark]'")
    from sfumato.engines.spark.session import start_session

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYTHONPATH"] = python_path()
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        "--master local[2] --driver-memory 1g --conf spark.ui.enabled=false "
        "--conf spark.ui.showConsoleProgress=false --conf spark.sql.shuffle.partitions=2 pyspark-shell"
    )
    session = start_session()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    pyspark = pytest.importorskip("pyspark", reason="needs Spark: pip install 'sfumato[spark]'")
    pytest.importorskip("grpc", reason="needs Spark Connect: pip install 'sfumato[spark]'")
    from sfumato.engines.spark.session import provide_java

    provide_java()
    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": python_path(),
    }
    environment.pop("PYSPARK_SUBMIT_ARGS", None)
    command = [
        str(home / "sbin" / "start-connect-server.sh"), "--master", "local[2]", "--driver-memory", "1g",
        "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false",
    ]  # fmt: skip
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            _wait_for(port)
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def _wait_for(port: int, seconds: float = 120) -> None:
    for _ in range(int(5 * seconds)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail("the Connect server did not start")
