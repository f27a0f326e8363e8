"""What Spark cannot do ends in one sentence: what happened, what to do, and nothing of the rows."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from spark_clients import python_path

CLIENT = """
import os, sys
from pathlib import Path
from broken_task import Dies, Talks
from pyspark.sql.functions import udf
import sfumato as sf
from sfumato.engines.spark.jobs import Jobs
from sfumato.engines.spark.session import start_session
from sfumato.errors import InputError
from spark_people import MONDRIAN, people

remote, folder = sys.argv[1], Path(sys.argv[2])
if remote:
    os.environ["SPARK_REMOTE"] = remote
session, policy = start_session(), sf.Policy.parse(MONDRIAN)

def tell(name, call):
    try:
        call()
    except InputError as error:
        assert error.__cause__ is None
        assert error.__suppress_context__
        print(name, str(error), sep=": ", flush=True)

texts = session.createDataFrame([("secret",)], ["age"])
with Jobs(session, folder) as jobs:
    tell("dies", lambda: jobs.do(Dies(), [0]))
    if not remote:
        tell("talks", lambda: jobs.do(Talks(5_000_000), [0]))
tell("cast", lambda: sf.publish(texts.selectExpr("cast(age as int) as age"), policy))
tell("raised", lambda: sf.publish(texts.selectExpr("raise_error(age) as age"), policy))
tell("function", lambda: sf.publish(texts.select(udf(lambda x: str(int(x)))("age").alias("age")), policy))
"""
DIED = (
    "A worker of the cluster died, perhaps because its memory was full; give executors more memory "
    "(spark.executor.memoryOverhead), or each task less (--memory)."
)
TALKED = (
    "The answers of the tasks are larger than Spark's driver takes; raise spark.driver.maxResultSize, "
    "and spark.driver.memory with it."
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_what_spark_cannot_do_is_told_in_a_sentence_without_a_cell(kind, request, tmp_path):
    pytest.importorskip("pyspark", reason="needs Spark: pip install 'sfumato[spark]'")
    remote = request.getfixturevalue("server") if kind == "connect" else ""
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    if kind == "classic":
        environment["PYSPARK_SUBMIT_ARGS"] = (
            "--master local[2] --conf spark.ui.enabled=false --conf spark.driver.maxResultSize=2m pyspark-shell"
        )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, remote, str(tmp_path)],
        env=environment, capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert told.pop("dies") == DIED
    assert kind == "connect" or told.pop("talks") == TALKED
    assert told.pop("cast") == CAST
    assert told == {
        name: f"Spark could not do the work: {condition}. Its log says more."
        for name, condition in NAMES[kind].items()
    }


CAST = "A cell is not the number or date that its column should hold (CAST_INVALID_INPUT)."
NAMES = {
    "classic": {"raised": "USER_RAISED_EXCEPTION", "function": "PYTHON_EXCEPTION"},
    "connect": {"raised": "USER_RAISED_EXCEPTION", "function": "PythonException"},
}
"""By which name Spark's errors go."""
